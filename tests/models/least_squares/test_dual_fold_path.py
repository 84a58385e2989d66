"""Fewer rows than columns: fold errors and leave-one-out from products of rows, against refits."""

from __future__ import annotations

import numpy as np
import pytest
from folding import fold_squares, left_out

import certifit as cf
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Memory

SPLITS = Splits.folds(ByRow(4, 0))


def wide(rng, n=24, d=60):
    X = rng.normal(size=(n, d)) + 5
    return X, X[:, :3].sum(axis=1) + rng.normal(size=n)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.3, None])
def test_fold_errors_are_those_of_refits(rng, fit_intercept, weighted, alpha):
    X, y = wide(rng)
    weight = rng.integers(0, 4, size=24).astype(float) if weighted else None
    make = lambda: cf.Ridge(alpha, fit_intercept=fit_intercept)  # noqa: E731
    path = fold_squares(make(), Memory(X, y, weight), [SPLITS], [{}])
    cells = SPLITS.cells.of(Memory(X, y).block)
    w = np.ones(24) if weight is None else weight
    for k in range(4):
        own = cells != k
        model = make().fit(X[own], y[own], None if weight is None else weight[own])
        residual = y - model.predict(X)
        assert path.validation[0, k] == pytest.approx(float(w[~own] @ residual[~own] ** 2), rel=1e-8)
        assert path.train[0, k] == pytest.approx(float(w[own] @ residual[own] ** 2), rel=1e-6, abs=1e-18)
        assert path.validation_weight[k] == pytest.approx(w[~own].sum())


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.3, None])
@pytest.mark.slow
def test_leaving_rows_out_is_refitting_without_them(rng, fit_intercept, alpha):
    X, y = wide(rng)
    left = left_out(cf.Ridge(alpha, fit_intercept=fit_intercept), Memory(X, y))
    errors = [
        y[i] - cf.Ridge(alpha, fit_intercept=fit_intercept).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0]
        for i in range(24)
    ]
    assert left.squares[0] / left.y_scale**2 == pytest.approx(float(np.square(errors).sum()), rel=1e-8)
    assert left.n_rows == 24


def test_repeated_rows_without_a_penalty_are_left_to_refits(rng):
    X, y = wide(rng)
    X[1] = X[0] + 1e-9 * rng.normal(size=60)
    assert fold_squares(cf.LinearRegression(), Memory(X, y), [SPLITS], [{}]) is None
    ours = cf.CrossValidated(cf.LinearRegression(), {}, cv=cf.Folds(4)).fit(X, y)
    assert ours.route_ == "refits" and np.isfinite(ours.best_score_)


def test_cross_validation_of_wide_rows_needs_no_refits(rng):
    X, y = wide(rng, 40, 100)
    ours = cf.CrossValidated(cf.Ridge(), {"alpha": [0.01, 1.0, 10.0]}, cv=cf.Folds(5)).fit(X, y)
    refit = cf.CrossValidated(
        cf.Ridge(), {"alpha": [0.01, 1.0, 10.0]}, cv=cf.Folds(5), scoring="explained_variance"
    ).fit(X, y)
    assert ours.route_ == "statistics" and refit.route_ == "refits"
    for k, (train, test) in enumerate(cf.Folds(5).split(X)):
        wanted = cf.Ridge(1.0).fit(X[train], y[train]).score(X[test], y[test])
        assert ours.cv_results_[f"split{k}_test_score"][1] == pytest.approx(wanted, rel=1e-9)
