"""Errors of all fits on all folds from sums alone, against fits to the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from folding import fold_squares, offered

import certifit as cf
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Memory
from certifit.models.least_squares.normal_equations import NormalEquations
from certifit.models.least_squares.ridge_path import along_strengths
from certifit.statistics.gram import gram

SPLITS = Splits.folds(ByRow(5, 0))


def designs(rng):
    X = rng.normal(size=(120, 6))
    base = X @ rng.normal(size=6)
    noise = rng.normal(size=120)
    rare = np.zeros((120, 1))
    rare[SPLITS.cells.of(Memory(X, base).block) == 1] = 1.0  # zero in the training rows of fold 1, constant elsewhere
    near = X[:, :1] + 1e-7 * rng.normal(size=(120, 1))
    t = np.linspace(-1, 1, 120)
    return {
        "plain": (X, base + noise),
        "far from zero": (X + 1e5, base + noise + 1e5),
        "scales apart": (X * 10.0 ** np.array([-150, -9, -3, 0, 40, 150]), base + noise),
        "a copy": (np.hstack([X, X[:, :1]]), base + noise),
        "a sum": (np.hstack([X, X[:, :1] + X[:, 1:2]]), base + noise),
        "constant in a fold": (np.hstack([X, rare]), base + noise),
        "nearly a copy": (np.hstack([X, near]), base + noise),
        "powers": (np.column_stack([t**k for k in range(1, 9)]), np.exp(t) + 0.1 * noise),
        "nearly exact": (X, base + 1e-6 * noise),
    }


def squares(model, X, y, weight, rows):
    w = np.ones(len(y)) if weight is None else weight
    residual = (y - model.predict(X))[rows]
    return float(w[rows] @ residual**2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", designs(np.random.default_rng(0)))
@pytest.mark.parametrize("alpha", [0.0, 1e-6, None, 10.0])
@pytest.mark.slow
def test_fold_errors_are_those_of_refits(rng, name, weighted, alpha):
    X, y = designs(rng)[name]
    weight = rng.integers(0, 4, size=120).astype(float) if weighted else None
    model = cf.Ridge(alpha=alpha)
    path = fold_squares(model, Memory(X, y, weight), [SPLITS], [{}])
    cells = SPLITS.cells.of(Memory(X, y).block)
    for k in range(5):
        train = np.flatnonzero(cells != k)
        own = None if weight is None else weight[train]
        fitted = cf.Ridge(alpha=alpha).fit(X[train], y[train], own)
        wanted = squares(fitted, X, y, weight, cells == k)
        assert path.validation[0, k] == pytest.approx(wanted, rel=1e-8)
        assert path.train[0, k] == pytest.approx(squares(fitted, X, y, weight, cells != k), rel=1e-8)


def test_a_path_is_its_members_one_by_one(rng):
    X, y = designs(rng)["plain"]
    grid = [{"alpha": alpha} for alpha in (3.0, 1e-4, 0.1)]
    whole = fold_squares(cf.Ridge(), Memory(X, y), [SPLITS], grid)
    for a, candidate in enumerate(grid):
        alone = fold_squares(cf.Ridge(), Memory(X, y), [SPLITS], [candidate])
        assert np.allclose(whole.validation[a], alone.validation[0], rtol=1e-12)


def test_candidates_may_differ_in_more_than_alpha(rng):
    X, y = designs(rng)["far from zero"]
    grid = [{"alpha": 0.1}, {"alpha": 0.1, "fit_intercept": False}, {"alpha": 2.0}]
    path = fold_squares(cf.Ridge(), Memory(X, y), [SPLITS], grid)
    for a, candidate in enumerate(grid):
        alone = fold_squares(cf.Ridge(**candidate), Memory(X, y), [SPLITS], [{}])
        assert np.allclose(path.validation[a], alone.validation[0], rtol=1e-9)


def test_the_null_model_predicts_the_training_mean(rng):
    X, y = designs(rng)["plain"]
    path = fold_squares(cf.LinearRegression(), Memory(X, y), [SPLITS], [{}])
    cells = SPLITS.cells.of(Memory(X, y).block)
    for k in range(5):
        assert path.validation_null[k] == pytest.approx(((y[cells == k] - y[cells != k].mean()) ** 2).sum(), rel=1e-12)


def test_fold_models_predict_as_refits_do(rng):
    X, y = designs(rng)["plain"]
    cells = SPLITS.cells.of(Memory(X, y).block)
    for k, model in enumerate(offered(cf.Ridge(0.1), Memory(X, y), [SPLITS]).models(0)):
        refit = cf.Ridge(0.1).fit(X[cells != k], y[cells != k])
        assert np.allclose(model.predict(X), refit.predict(X), rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("degree, n_rows", [(9, 12), (30, 20)])
def test_a_polynomial_that_a_fold_does_not_determine_is_refitted(degree, n_rows):
    x = np.random.default_rng(0).uniform(-1, 1, size=(n_rows, 1))
    y = np.sin(3 * x[:, 0])
    model = cf.LinearRegression(basis=cf.Polynomial(degree))
    assert fold_squares(model, Memory(x, y), [Splits.folds(ByRow(3, 0))], [{}]) is None
    folds = cf.Folds(3)
    scores = cf.CrossValidated(model, {}, cv=folds).fit(x, y).cv_results_
    for k, (train, test) in enumerate(folds.split(x)):
        wanted = cf.LinearRegression(basis=cf.Polynomial(degree)).fit(x[train], y[train]).score(x[test], y[test])
        assert scores[f"split{k}_test_score"][0] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
def test_many_penalties_from_one_tridiagonal_matrix_solve_their_systems(rng, fit_intercept, standardize):
    X, alphas = rng.normal(size=(60, 6)), [1e-8, 0.01, 1.0, 30.0, 1e9]
    X[:, 1] += X[:, 0] * 30  # of another size, and nearly along another column
    source = Memory(X, X @ rng.normal(size=6) + rng.normal(size=60))
    statistic = gram(source, centred=fit_intercept)
    equations = NormalEquations(statistic, 1e-8, fit_intercept, lambda: statistic, source.names, standardize)
    together = along_strengths(statistic, fit_intercept, standardize, alphas)
    if not standardize:
        assert together is None  # squared sizes 900 apart
        return
    assert together is not None
    for alpha, solution in zip(alphas, together.solutions, strict=True):
        matrix = equations.unpenalised() + np.diag(equations.diagonal(alpha))
        left, sizes = matrix @ solution - equations.right_hand_side(), np.abs(matrix) @ np.abs(solution)
        assert (np.abs(left) <= 1e-12 * sizes.max()).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("far", [0.0, 100.0])
def test_the_condition_of_many_penalties_is_no_less_than_that_of_the_weakest(rng, fit_intercept, alpha, far):
    X = rng.normal(size=(80, 5)) @ (np.eye(5) + 0.5) + 1.0
    X[60:] += far  # away from the shifts, which are those of block 0, where it has the first rows alone
    source = Memory(X, X @ rng.normal(size=5) + rng.normal(size=80)).resized(32, 64)
    statistic = gram(source, centred=fit_intercept)
    together = along_strengths(statistic, fit_intercept, False, [1e3, alpha, 30.0, 2.0])
    Z = X * statistic.scaling.scale
    Z = Z - Z.mean(axis=0) if fit_intercept else Z
    penalty = 80 * alpha * statistic.scaling.scale[0] ** 2
    assert together is not None
    assert together.condition**2 >= (1 - 1e-9) * np.linalg.cond(Z.T @ Z + penalty * np.eye(5))
