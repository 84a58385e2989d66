"""The figures of a leaderboard redone by plain loops over NumPy and scikit-learn, on three data sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

import certifit as cf
from certifit import demo

ALPHAS = [0.001, 0.1, 10.0]


def flights(folder):
    table = pd.read_csv(demo.path()).head(400)
    return table[["dep_delay", "distance", "hour"]], table["arr_delay"].to_numpy(float)


def housing(folder):
    table = pd.read_parquet(folder() / "california_housing" / "california_housing.parquet").dropna().head(400)
    columns = ["total_rooms", "median_income", "households"]
    return np.log1p(table[columns]), np.log(table["median_house_value"].to_numpy(float))


@pytest.mark.parametrize("rows", [flights, housing])
def test_errors_of_a_quantity(rows, request):
    frame, y = rows(lambda: request.getfixturevalue("shared_data"))
    X = frame.to_numpy(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    models = {"least squares": cf.LinearRegression(), "ridge": cf.CrossValidated(cf.Ridge(), {"alpha": ALPHAS})}
    board = cf.leaderboard(models, X, y, cv=5)
    errors = np.zeros((4, 5))
    base, squares, null = np.zeros(5), np.zeros(4), 0.0
    for k, (train, out) in enumerate(cf.Folds(5).split(X)):
        ones = np.column_stack([np.ones(len(train)), X[train]])
        w = np.linalg.lstsq(ones, y[train], rcond=None)[0]
        guesses = [w[0] + X[out] @ w[1:]]
        guesses += [Ridge(alpha=alpha * len(train)).fit(X[train], y[train]).predict(X[out]) for alpha in ALPHAS]
        for c, guess in enumerate(guesses):
            errors[c, k] = np.sqrt(np.mean((y[out] - guess) ** 2))
            squares[c] += np.sum((y[out] - guess) ** 2)
        base[k] = np.sqrt(np.mean((y[out] - y[train].mean()) ** 2))
        null += np.sum((y[out] - y[train].mean()) ** 2)
    best = 1 + int(errors[1:].mean(axis=1).argmin())
    assert board["ridge"].params == {"alpha": ALPHAS[best - 1]}
    for name, c in (("least squares", 0), ("ridge", best)):
        assert -board[name].fold_scores == pytest.approx(errors[c], rel=1e-8)
        assert board[name].standard_error == pytest.approx(errors[c].std(ddof=1) / np.sqrt(5), rel=1e-6)
        assert board.r2(board[name]) == pytest.approx(1 - squares[c] / null, rel=1e-8)
    assert -board.baseline.fold_scores == pytest.approx(base, rel=1e-10)
    chosen = 0 if board.chosen.name == "least squares" else best
    assert board.correction.winner == pytest.approx(-np.sqrt(squares[chosen] / len(y)), rel=1e-8)


def test_rates_of_classes(shared_data):
    table = pd.read_parquet(shared_data / "wine_quality" / "wine_quality.parquet").head(500)
    y = (table["quality"].to_numpy() > 5).astype(int)
    X = table.drop(columns="quality").select_dtypes("number").iloc[:, :4].to_numpy(float)
    board = cf.leaderboard({"linear": cf.GaussianDiscriminant(), "naive Bayes": cf.GaussianNB()}, X, y, cv=5)
    proba, losses = np.zeros((2, len(y))), np.zeros((2, 5))
    for k, (train, out) in enumerate(cf.Folds(5, stratify=True).split(X, y)):
        for c, model in enumerate((LinearDiscriminantAnalysis(), GaussianNB(var_smoothing=0.0))):
            proba[c, out] = model.fit(X[train], y[train]).predict_proba(X[out])[:, 1]
            losses[c, k] = log_loss(y[out], proba[c, out])
    # scikit-learn divides the covariance by n - 2, certifit by n.
    for c, (name, tolerance) in enumerate((("linear", 2e-2), ("naive Bayes", 1e-6))):
        assert -board[name].fold_scores == pytest.approx(losses[c], rel=tolerance)
        right = np.mean((proba[c] > 0.5) == y)
        assert board[name].metrics["accuracy"] == pytest.approx(right, abs=0.005)
    assert board.baseline.metrics["accuracy"] == pytest.approx(max(np.mean(y), 1 - np.mean(y)))
