"""A choice among candidates accounted for: bootstrap correction, fold correction, nested folds, rows held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.selection.compare import rules
from certifit.selection.compare.leaderboard import leaderboard

RMSE = "neg_root_mean_squared_error"


def numbers(seed=0, n_rows=60, n_columns=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X @ np.linspace(-1, 1, n_columns) + rng.normal(size=n_rows)


def labels(seed=0, n_rows=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    return X, (X[:, 0] + rng.normal(size=n_rows) > 0).astype(int)


def scan(X, y, size, **others):
    table = pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])} | {"y": y} | others)
    roles = {"weight": "w" if "w" in others else None, "group": "g" if "g" in others else None}
    return ArrowSource(lambda: table.to_batches(size), table.schema, "y", n_rows=len(y), **roles)


RIDGE = {"ridge": cf.CrossValidated(cf.Ridge(), {"alpha": [1e-3, 0.1, 10.0]}), "least squares": cf.LinearRegression()}
LDA = {"discriminant": cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.0, 0.5]}), "nb": cf.GaussianNB()}


@pytest.mark.parametrize("scoring", [RMSE, "r2", "neg_mean_squared_error"])
def test_the_corrected_score_of_one_candidate_is_its_score_of_all_rows_together(scoring):
    X, y = numbers()
    board = leaderboard({"least squares": cf.LinearRegression()}, X, y, scoring=scoring)
    assert board.corrected == pytest.approx(board.correction.winner, rel=1e-12)
    assert board.corrected.low < board.corrected < board.corrected.high
    assert not any("Chosen among" in sentence for sentence in board.sentences())


def test_the_correction_is_that_of_a_plain_loop_over_draws():
    X, y = labels()
    board = leaderboard(LDA, X, y, scoring="accuracy", cv=5)
    right = np.zeros((3, len(y)))
    models = [cf.GaussianDiscriminant(shrinkage=0.0), cf.GaussianDiscriminant(shrinkage=0.5), cf.GaussianNB()]
    folds = list(cf.Folds(5, stratify=True).split(X, y))
    for train, out in folds:
        for c, model in enumerate(models):
            right[c, out] = model.fit(X[train], y[train]).predict(X[out]) == y[out]
    sums, counts, means = np.zeros(len(y)), np.zeros(len(y)), []
    for draw in range(rules.N_DRAWS):
        rng = np.random.Generator(np.random.Philox(key=np.array([0, draw], dtype=np.uint64)))
        times = np.bincount(rng.integers(0, len(y), len(y)), minlength=len(y))
        scores = [
            [np.average(right[c, out], weights=times[out]) for _, out in folds if times[out].any()] for c in range(3)
        ]
        best = np.argmax(np.mean(scores, axis=1).round(12))
        left = times == 0
        sums[left] += right[best, left]
        counts += left
        means.append(right[best, left].mean())
    assert board.corrected == pytest.approx(np.mean(sums / counts), abs=2e-3)  # ties of means may fall either way
    assert [board.corrected.low, board.corrected.high] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.02)


@pytest.mark.parametrize("rule", ["min", "1se"])
def test_a_candidate_that_is_there_twice_changes_nothing(rule):
    X, y = numbers()
    once = leaderboard({"a": cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 1.0]}, rule=rule)}, X, y)
    twice = leaderboard({"a": cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 1.0, 1.0]}, rule=rule)}, X, y)
    assert float(once.corrected) == float(twice.corrected)
    assert once.corrected.low == twice.corrected.low


def test_weight_two_is_the_row_twice_where_copies_are_drawn_together():
    X, y = numbers(n_rows=40)
    weight = np.where(np.arange(40) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(40), weight.astype(int))
    weighted = leaderboard(RIDGE, X, y, cv=list(cf.Folds(5).split(X)), sample_weight=weight, groups=np.arange(40))
    cells = [
        (np.flatnonzero(np.isin(rows, train)), np.flatnonzero(np.isin(rows, out)))
        for train, out in cf.Folds(5).split(X)
    ]
    copied = leaderboard(RIDGE, X[rows], y[rows], cv=cells, groups=rows)
    assert copied.corrected == pytest.approx(weighted.corrected, rel=1e-9)
    assert copied.corrected.high == pytest.approx(weighted.corrected.high, rel=1e-9)


def test_groups_are_drawn_whole():
    X, y = numbers(n_rows=60)
    groups = np.arange(60) // 6
    board = leaderboard(RIDGE, X, y, cv=5, groups=groups)
    numbers_of = np.concatenate([split.numbers for split in board.evidence.held_out])
    assert len(np.unique(board.evidence.units)) == 10
    assert np.array_equal(board.evidence.units, groups[numbers_of])
    for times in rules._drawn(board.evidence.units, 3, 0):
        for draw in times:
            assert all(len(set(draw[groups[numbers_of] == group])) == 1 for group in range(10))


@pytest.mark.parametrize(
    "models, make",
    [(RIDGE, numbers), ({"lasso": cf.CrossValidated(cf.Lasso(), {"alpha": [0.01, 0.1]})}, numbers), (LDA, labels)],
)
def test_a_file_in_any_chunks_and_memory_give_the_same_bits(models, make):
    X, y = make()
    found = {}
    for name, rows in {"memory": (X, y), "7": (scan(X, y, 7),), "1000": (scan(X, y, 1000),)}.items():
        board = leaderboard(models, *rows, cv=5, nested=True)
        found[name] = (float(board.corrected), board.corrected.low, board.corrected.high, float(board.nested_score))
    assert found["memory"] == found["7"] == found["1000"]


def test_rows_of_a_fit_from_sums_are_those_of_refits():
    X, y = numbers()
    X[[3, 17, 20, 31, 44], 1] = np.nan
    X[[5, 30, 41, 52, 59], 2] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    grid = {"alpha": [0.01, 1.0]}
    for model in (
        cf.Ridge(encoder=cf.TableEncoder(unseen="reference")),
        cf.Lasso(encoder=cf.TableEncoder(unseen="reference"), standardize=True),
    ):
        board = leaderboard({"m": cf.CrossValidated(model, grid)}, frame, y, cv=5)
        for split, (train, out) in zip(board.evidence.held_out, cf.Folds(5).split(X), strict=True):
            assert np.array_equal(split.numbers, out)
            for c, alpha in enumerate(grid["alpha"]):
                fitted = clone(model).set_params(alpha=alpha).fit(frame.iloc[train], y[train])
                errors = (y[out] - fitted.predict(frame.iloc[out])) ** 2
                assert -split.values["score"][c] == pytest.approx(errors, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("n_columns", [4, 90])
@pytest.mark.slow
def test_row_scores_of_every_route_add_up_to_the_fold_scores(n_columns):
    X, y = numbers(n_columns=n_columns)
    models = {
        "ridge": cf.Ridge(),
        "lasso": cf.CrossValidated(cf.Lasso(), {"alpha": [0.1, 0.3]}),
        "tree": DecisionTreeRegressor(max_depth=2),
    }
    counts = np.random.default_rng(0).poisson(1.0, len(y)).astype(float)
    Z, c = labels()
    boards = [
        leaderboard(models, X, y, cv=4),
        leaderboard({"poisson": cf.PoissonRegressor()}, X[:, :4], counts, cv=4),
        leaderboard(
            LDA
            | {
                "logistic": cf.LogisticRegression(),
                "sklearn": LogisticRegression(),
                "tree": DecisionTreeClassifier(max_depth=1),
            },
            Z,
            c,
            cv=4,
        ),
    ]
    for board in boards:
        found = np.array(
            [
                rules.of_mean(board.scoring, split.values["score"] @ split.weight / split.weight.sum())
                for split in board.evidence.held_out
            ]
        ).T
        assert found == pytest.approx(board.evidence.fold_scores, rel=1e-8)


def test_beyond_the_budget_the_correction_comes_from_the_folds_and_says_so(monkeypatch):
    X, y = numbers()
    monkeypatch.setattr(rules, "MOST_NUMBERS", 10)
    board = leaderboard(RIDGE, X, y, cv=5)
    scores = board.evidence.fold_scores
    best = scores[
        board.evidence.choosing.first(board.chosen.name)
        + list(board.chosen.candidates["params"]).index(board.chosen.params)
    ]
    assert board.corrected == pytest.approx(best.mean() - (scores.max(axis=0) - best).mean())
    assert board.corrected.low is None
    assert board.correction.method == rules.TIBSHIRANI
    assert any("Tibshirani" in sentence for sentence in board.sentences())


def test_a_score_that_is_no_mean_over_rows_is_corrected_from_the_folds():
    X, y = labels()
    board = leaderboard(LDA, X, y, cv=4, scoring="roc_auc")
    assert board.correction.method == rules.TIBSHIRANI
    assert "no mean over rows" in board.corrected.sentence


@pytest.mark.parametrize("prefer", [None, "nb"])
def test_nested_scores_are_those_of_a_plain_double_loop(prefer):
    X, y = labels(3)
    board = leaderboard(LDA, X, y, cv=4, nested=True, prefer=prefer)
    folds = [out for _, out in cf.Folds(4, stratify=True).split(X, y)]
    models = [cf.GaussianDiscriminant(shrinkage=0.0), cf.GaussianDiscriminant(shrinkage=0.5), cf.GaussianNB()]

    def loss(model, train, out):
        proba = model.fit(X[train], y[train]).predict_proba(X[out])
        return np.log(proba[np.arange(len(out)), y[out]]).mean()

    expected = []
    for s in range(4):
        others = [t for t in range(4) if t != s]
        inner = np.array(
            [
                [loss(model, np.concatenate([folds[u] for u in others if u != t]), folds[t]) for t in others]
                for model in models
            ]
        )
        means = inner.mean(axis=1)
        best = int(means.argmax())
        if prefer and means[2] >= means[best] - inner[best].std(ddof=1) / np.sqrt(3):
            best = 2
        expected.append(loss(models[best], np.concatenate([folds[u] for u in others]), folds[s]))
    assert board.nested.fold_scores == pytest.approx(expected, rel=1e-8)
    assert board.nested_score == pytest.approx(np.average(expected, weights=[len(fold) for fold in folds]))
    assert board.nested.n_refits == 0


def test_nested_refits_are_counted_and_told():
    X, y = numbers()
    board = leaderboard(
        {"tree": cf.CrossValidated(DecisionTreeRegressor(), {"max_depth": [1, 2]})}, X, y, cv=3, nested=True
    )
    assert board.nested.n_refits == 2 * 3 * 2
    assert any("12 refits" in sentence for sentence in board.sentences())


@pytest.mark.parametrize("cv", [2, cf.HoldOut(0.5), cf.Bootstrap(3)])
def test_nested_needs_three_folds(cv):
    X, y = numbers()
    with pytest.raises(ValueError, match="3 folds or more"):
        leaderboard(RIDGE, X, y, cv=cv, nested=True)


@pytest.mark.slow
def test_on_noise_the_winner_is_too_good_and_the_correction_and_nested_folds_are_not():
    figures = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 10)), rng.permutation(np.arange(40) % 2)
        grid = {"shrinkage": [0.0, 0.2, 0.5, 0.8, 1.0]}
        models = {kind: cf.CrossValidated(cf.GaussianDiscriminant(kind), grid) for kind in ("shared", "class")}
        board = leaderboard(models, X, y, cv=4, scoring="accuracy", nested=True)
        figures.append((board.correction.winner, board.corrected, board.nested_score))
    winner, corrected, nested = np.mean(figures, axis=0)
    assert winner > 0.55
    assert 0.42 < nested < 0.58
    assert abs(corrected - 0.5) < winner - 0.5


def test_cross_validated_has_both_figures_on_request():
    X, y = numbers()
    model = cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 1.0]}, corrected=True, nested=True, cv=5).fit(X, y)
    board = leaderboard(
        {"r": cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 1.0]})}, X, y, cv=5, scoring="r2", nested=True
    )
    assert float(model.corrected_score_) == float(board.corrected)
    assert float(model.nested_score_) == float(board.nested_score)
    plain = cf.CrossValidated(cf.Ridge()).fit(X, y)
    assert plain.corrected_score_ is None
    assert plain.nested_score_ is None
    with pytest.raises(ValueError, match="need folds"):
        cf.CrossValidated(cf.Ridge(), cv="loo", corrected=True).fit(X, y)


def test_a_named_choice_has_no_correction():
    X, y = numbers()
    board = leaderboard(RIDGE, X, y)
    assert board.joined(board.entries[1], is_chosen=True).corrected is None
