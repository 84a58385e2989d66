"""Quantile regression against vertices that are all tried, and against HiGHS on real data."""

from __future__ import annotations

import json
import warnings
from copy import copy
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from reference import pinball_errors, pinball_objective
from sklearn.linear_model import QuantileRegressor as Peer
from sklearn.utils.estimator_checks import check_estimator

import certifit as cf
from certifit.cli import main
from certifit.models.quantile.metric import PinballLoss


def least(X, y, quantile, weight=None) -> Fraction:
    """The least loss of a line b + w x, by all lines through two of the rows and all constants, in rationals."""
    x, y = [Fraction(v) for v in X[:, 0]], [Fraction(v) for v in y]
    weight = [Fraction(1)] * len(y) if weight is None else [Fraction(v) for v in weight]
    lines = [(Fraction(0), level) for level in y]
    for i, j in combinations(range(len(y)), 2):
        if x[i] != x[j]:
            slope = (y[j] - y[i]) / (x[j] - x[i])
            lines.append((slope, y[i] - slope * x[i]))
    return min(exact_loss(x, y, weight, Fraction(quantile), *line) for line in lines)


def exact_loss(x, y, weight, quantile, slope, level) -> Fraction:
    """The loss of a line, in rationals."""
    residuals = [b - level - slope * a for a, b in zip(x, y, strict=True)]
    losses = [w * (quantile if r >= 0 else quantile - 1) * r for w, r in zip(weight, residuals, strict=True)]
    return sum(losses, Fraction(0)) / sum(weight)


def rows(seed: int, n: int = 12, is_whole: bool = False):
    rng = np.random.default_rng(seed)
    if is_whole:
        return rng.integers(-3, 4, size=(n, 1)).astype(float), rng.integers(-3, 4, size=n).astype(float)
    return rng.normal(size=(n, 1)), rng.normal(size=n)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.75])
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.slow
def test_value_is_never_below_the_true_excess_of_a_state(quantile, is_whole):
    for seed in range(8):
        X, y = rows(seed, is_whole=is_whole)
        weight = np.random.default_rng(seed).integers(1, 4, size=len(y)).astype(float)
        model = cf.QuantileRegressor(quantile).fit(X, y, weight)
        assert model.certificate_.value < 1e-13
        best = least(X, y, quantile, weight)
        for step in (0.0, 1e-12, 1e-6, 0.1):
            model.coef_ = model.coef_ + step
            x, targets, weights = ([Fraction(v) for v in column] for column in (X[:, 0], y, weight))
            state = Fraction(float(model.coef_[0])), Fraction(float(model.intercept_))
            loss = exact_loss(x, targets, weights, Fraction(quantile), *state)
            certificate = model.certify(X, y, weight)
            unit = loss if not certificate.is_exact_fit else Fraction(1, 10**300)
            assert float((loss - best) / unit) <= certificate.value


def test_a_fit_meets_as_many_rows_as_it_has_coefficients():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.normal(size=200)
    model = cf.QuantileRegressor(0.3).fit(X, y)
    assert np.count_nonzero(np.abs(y - model.predict(X)) < 1e-13) == 5


def test_the_share_below_is_the_quantile():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(1000, 3)), rng.standard_t(2, size=1000)
    for quantile in (0.01, 0.2, 0.9):
        r = y - cf.QuantileRegressor(quantile).fit(X, y).predict(X)
        assert np.sum(r < -1e-10) <= quantile * 1000 <= np.sum(r < 1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.3])
def test_a_nudge_is_seen(alpha):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = cf.QuantileRegressor(0.4, alpha).fit(X, y)
    assert model.certificate_.holds
    for j in np.flatnonzero(model.coef_):
        other = cf.QuantileRegressor(0.4, alpha).fit(X, y)
        other.coef_ = other.coef_ * (1 + 1e-4 * (np.arange(3) == j))
        assert other.certify(X, y).value > 1e4 * model.certificate_.value
        assert not cf.verify(other, X, y)


@pytest.mark.parametrize("is_whole", [False, True])
def test_weight_two_is_the_row_twice_in_any_order(is_whole):
    rng = np.random.default_rng(3)
    for seed in range(10):
        X, y = rows(seed, 15, is_whole)
        weight = rng.integers(0, 4, size=15)
        if not weight.any():
            continue
        order = rng.permutation(weight.sum())
        weighted = cf.QuantileRegressor().fit(X, y, weight)
        repeated = cf.QuantileRegressor().fit(np.repeat(X, weight, axis=0)[order], np.repeat(y, weight)[order])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9, atol=1e-9)


def test_of_several_best_fits_the_one_of_least_squares_is_taken():
    y = np.array([0.0, 1.0, 5.0, 6.0, 1000.0, -3.0])
    model = cf.QuantileRegressor().fit(np.zeros((6, 1)), y)
    assert model.intercept_ == 5.0  # the median is anywhere in [1, 5], the mean above it
    assert cf.QuantileRegressor().fit(np.zeros((4, 1)), [0.0, 1.0, 5.0, 6.0]).intercept_ == pytest.approx(3.0)


def test_sparse_rows_give_the_same_fit():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(150, 6)) * (rng.random((150, 6)) < 0.3)
    y = X @ rng.normal(size=6) + rng.normal(size=150)
    for alpha in (0.0, 0.02):
        dense, sparse = (cf.QuantileRegressor(0.7, alpha).fit(rows, y) for rows in (X, sp.csr_array(X)))
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
        assert sparse.certificate_.holds


@pytest.mark.parametrize("power", [-150, 0, 150])
def test_any_scale_of_columns_and_target(power):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    model = cf.QuantileRegressor(0.6).fit(X, y)
    far = cf.QuantileRegressor(0.6).fit(X * [10.0**power, 1.0], y * 10.0**-power)
    assert far.certificate_.holds
    np.testing.assert_allclose(far.coef_ * [10.0 ** (2 * power), 10.0**power], model.coef_, rtol=1e-9)


def test_redundant_columns_are_named_and_have_no_weight():
    rng = np.random.default_rng(6)
    X = rng.integers(0, 9, size=(50, 2)).astype(float)
    X = np.column_stack([X, X[:, 0] + 2 * X[:, 1], np.full(50, 3.0)])
    model = cf.QuantileRegressor().fit(X, rng.normal(size=50))
    assert model.certificate_.holds
    assert {relation.split(" = ")[0] for relation in model.certificate_.dependent} == {"x2", "x3"}
    assert not model.coef_[2:].any()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (20, 40)])
def test_fewer_rows_than_columns_are_met(shape):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    model = cf.QuantileRegressor(0.2).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-12, atol=1e-12)
    assert model.certificate_.is_exact_fit
    assert model.certificate_.holds


def test_every_dual_value_is_a_lower_bound():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(300, 4)), rng.standard_t(2, size=300)
    model = cf.QuantileRegressor(0.8).fit(X, y)
    assert len(model.history_) - 1 == model.n_iter_ > 0  # row 0 is the start
    assert all(row["dual"] <= row["objective"] for row in model.history_)
    least_loss = pinball_objective(X, y, model)
    assert all(0 <= row["dual"] <= least_loss * (1 + 1e-12) for row in model.history_)
    assert model.history_[-1]["objective"] == pytest.approx(pinball_objective(X, y, model), rel=1e-9)


def test_a_strong_penalty_leaves_the_quantile_of_the_target():
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(31, 3)), rng.normal(size=31)
    model = cf.QuantileRegressor(0.5, alpha=10.0).fit(X, y)
    assert not model.coef_.any()
    assert model.intercept_ == np.median(y)


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_no_worse_than_highs_on_real_data(name, alpha):
    data = getattr(__import__("sklearn.datasets", fromlist=["x"]), f"load_{name}")()
    X, y = data.data[:, :8], data.target.astype(float)
    for quantile in (0.25, 0.9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = Peer(quantile=quantile, alpha=alpha, solver="highs").fit(X, y)
        model = cf.QuantileRegressor(quantile, alpha).fit(X, y)
        assert model.certificate_.value < 1e-10
        assert pinball_objective(X, y, model, alpha=alpha) <= pinball_objective(X, y, peer, alpha=alpha) * (1 + 1e-12)


@pytest.mark.slow
def test_scikit_learn_checks_pass():
    for model in (cf.QuantileRegressor(), cf.QuantileRegressor(0.3, 0.01)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_estimator(model)


@pytest.mark.parametrize("quantile", [0.0, 1.0, -1.0, float("nan"), "median"])
def test_a_quantile_is_inside_0_and_1(quantile):
    with pytest.raises((ValueError, TypeError), match="quantile must be a number above 0 and below 1"):
        cf.QuantileRegressor(quantile).fit(np.zeros((3, 1)), np.zeros(3))


def test_inference_is_refused_with_a_way_out():
    X, y = rows(0)
    with pytest.raises(ValueError, match="Bootstrap"):
        cf.QuantileRegressor().fit(X, y).summary()


def test_a_value_is_never_negative():
    """Near copies: the column left out helps the state below the best of the others."""
    X = np.array([[0.07932437885579963, 0.07932437885581636], [-2.032994240944063, -2.032994240944058],
                  [0.4936110319942107, 0.493611031994192]])  # fmt: skip
    model = cf.QuantileRegressor(0.25).fit(X, [-0.457536506859, 1.249962942474, -0.792426435618], [3.0, 2.0, 2.0])
    assert model.certificate_.value > 0


def test_roundings_alone_are_allowed_for_where_a_nudge_is_smaller_than_the_tolerance():
    """One target of 1e6 makes the objective so large that an excess of a nudge is below the tolerance."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(18, 2))
    y = X @ [1.0, -2.0] + rng.normal(size=18) + 1e6 * (np.arange(18) == 5)
    model = cf.QuantileRegressor(0.25).fit(X, y)
    for j in range(2):
        other = copy(model)
        other.coef_ = model.coef_ * (1 + 1e-4 * (np.arange(2) == j))
        certificate = other.certify(X, y)
        assert certificate.rounding < 1e-14 < certificate.value < certificate.tolerance
        assert not cf.verify(other, X, y)
    assert cf.verify(model, X, y)


@pytest.mark.parametrize(("quantile", "alpha"), [(0.1, 0.0), (0.9, 0.0), (0.5, 0.01)])
def test_it_agrees_with_highs_on_houses_to_1e_9(shared_data, quantile, alpha):
    houses = pd.read_parquet(shared_data / "california_housing" / "california_housing.parquet")
    houses = houses.select_dtypes("number").dropna().head(1500).astype(float)
    y = houses.pop("median_house_value").to_numpy() / 1e5
    X = houses.to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    peer = Peer(quantile=quantile, alpha=alpha, solver="highs").fit(X, y)
    model = cf.QuantileRegressor(quantile, alpha).fit(X, y)
    own, theirs = (pinball_objective(X, y, fit, alpha=alpha) for fit in (model, peer))
    assert own == pytest.approx(theirs, rel=1e-9)


# The metric that it is scored by


@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.9])
def test_the_constant_of_the_metric_is_the_best_one(quantile):
    rng = np.random.default_rng(3)
    y, weight = rng.integers(0, 9, size=40).astype(float), rng.integers(0, 3, size=40).astype(float)
    metric = PinballLoss(quantile)
    assert metric.errors(y, y[::-1]).tolist() == pytest.approx(pinball_errors(quantile, y, y[::-1]))
    means = {c: np.average(pinball_errors(quantile, y, np.full(40, c)), weights=weight) for c in y}
    assert means[metric.constant(y, weight)] == pytest.approx(min(means.values()))
    assert metric.constant(np.repeat(y, weight.astype(int))) == metric.constant(y, weight)


def heavy_rows(n: int = 120):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + rng.exponential(size=n)


def test_models_of_different_quantiles_are_not_ranked_by_one_error():
    X, y = heavy_rows(80)
    low, high = cf.QuantileRegressor(0.1), cf.QuantileRegressor(0.9)
    with pytest.raises(ValueError, match=r"'low' .*pinball loss at 0.1.*'high'.*pass scoring"):
        cf.leaderboard({"low": low, "high": high}, X, y, cv=4)
    board = cf.leaderboard({"low": low, "high": high}, X, y, cv=4, scoring="neg_mean_absolute_error")
    assert len(board.entries) == 3 and not board.notes
    board = cf.leaderboard({"high": high, "least squares": cf.LinearRegression()}, X, y, cv=4)
    assert board.scoring == "neg_root_mean_squared_error" and "pinball loss at 0.9" in board.notes[0]


def test_selection_scores_it_by_its_pinball_loss():
    X, y = heavy_rows()
    folds = cf.Folds(4, random_state=1)
    board = cf.leaderboard(
        {"upper": cf.QuantileRegressor(0.9), "narrow": cf.QuantileRegressor(0.9, 0.1)}, X, y, cv=folds
    )
    assert board.scoring == PinballLoss(0.9) and board.baseline.name == "0.9 quantile of y"
    search = cf.CrossValidated(cf.QuantileRegressor(0.9), {"alpha": [0.0, 0.1]}, cv=folds).fit(X, y)
    scores = dict(zip(("upper", "narrow"), search.cv_results_["mean_test_score"], strict=True))
    for name, score in scores.items():
        assert board[name].score == pytest.approx(score)
    assert search.score(X, y) == pytest.approx(-pinball_objective(X, y, search.best_estimator_))
    by_hand = []
    for train, test in folds.split(X):
        constant = PinballLoss(0.9).constant(y[train])
        by_hand.append(-np.mean(pinball_errors(0.9, y[test], np.full(len(test), constant))))
    assert board.baseline.fold_scores == pytest.approx(by_hand)
    assert "mean pinball loss at 0.9" in str(board) and "R2" not in str(board)


@pytest.mark.slow
def test_the_command_line_and_the_report_tell_the_pinball_loss(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = heavy_rows()
    pd.DataFrame(X, columns=["a", "b"]).assign(y=y).to_csv("d.csv", index=False)
    arguments = ["fit", "d.csv", "--target", "y", "--model", "quantile", "--quantile", "0.9", "--holdout", "0.3"]
    result = CliRunner().invoke(main, [*arguments, "--out", "r"])
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "r" / "report.json").read_text())
    assert found["quality"]["r2"] is None and found["validation"]["measure"] == "mean pinball loss at 0.9"
    model = cf.load(tmp_path / "r" / "model.certifit")
    assert found["quality"]["metric"]["name"] == "mean pinball loss at 0.9"
    assert found["validation"]["holdout"]["measure"] == "mean pinball loss at 0.9"
    for words in (
        result.output,
        (tmp_path / "r" / "MODEL_CARD.md").read_text(),
        (tmp_path / "r" / "report.html").read_text(),
    ):
        assert "pinball loss at 0.9" in words and "R2 " not in words and "R²" not in words and "Root mean" not in words
    assert model.quantile == 0.9


def test_a_penalty_beyond_float64_in_units_of_the_columns_has_its_price():
    X, y = 1e-300 * np.array([[1.0], [2.0], [4.0], [5.0], [7.0]]), np.array([1.0, 3.0, 2.0, 5.0, 4.0])
    model = cf.QuantileRegressor(0.5, alpha=1e10).fit(X, y)
    assert model.certificate_.holds and model.coef_[0] == 0
    x, targets, weights = [Fraction(v) for v in X[:, 0]], [Fraction(v) for v in y], [Fraction(1)] * 5
    best = min(exact_loss(x, targets, weights, Fraction(1, 2), Fraction(0), level) for level in targets)
    for slope in (1e-300, 1e-25, 1e-18, 1.0, 1e200):
        model.coef_ = np.array([slope])
        loss = exact_loss(x, targets, weights, Fraction(1, 2), Fraction(slope), Fraction(float(model.intercept_)))
        objective = loss + 10**10 * Fraction(slope)
        assert (objective - best) / objective <= model.certify(X, y).value
