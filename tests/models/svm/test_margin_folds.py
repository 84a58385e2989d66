"""Support vector machines on all folds and alphas from one pool of rows: the fits are those of refits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import StratifiedKFold

import certifit as cf
from certifit.data.source import Block, Memory
from certifit.mathematics.kernels.basic import squared_distances
from certifit.models.folds import Candidates, RowFolds
from certifit.models.kernel.task import KernelRows
from certifit.models.svm import folds
from certifit.models.svm.solver import Pool
from certifit.selection.folds.engine import offered_scores
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.splits import rounds_of

ALPHAS = [0.001, 0.3, None, 0.03]
CV = StratifiedKFold(4, shuffle=True, random_state=3)
KERNEL = cf.kernels.Gaussian(2.0)


@pytest.fixture(scope="module")
def two():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(240, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=240) > 0, "in", "out")
    return X, y, rng.integers(1, 4, size=240).astype(float)


def offered(model, X, y, weight=None):
    """What the model makes of all folds and alphas together: scores of the rows left out, by candidate."""
    rows = Rows.of(model, X, y, weight)
    rounds = rounds_of(CV, rows.source, rows.labels, rows.groups)
    candidates = Candidates([{"alpha": alpha} for alpha in ALPHAS], rows.classes)
    states = model.folds(rows.source, rounds, candidates, rows.shared)
    assert isinstance(states, RowFolds)
    return [[odds for _, odds, _ in states.validated(c)] for c in range(len(ALPHAS))]


def refitted(model, X, y, weight=None):
    """Scores of every class of the rows left out, by refits; ranks of the classes as logarithms of chances."""
    by_alpha = []
    for alpha in ALPHAS:
        scores = []
        for train, test in CV.split(X, y):
            shown = None if weight is None else weight[train]
            rows, new = (X.iloc[train], X.iloc[test]) if hasattr(X, "iloc") else (X[train], X[test])
            z = clone(model).set_params(alpha=alpha).fit(rows, y[train], shown).decision_function(new)
            scores.append(np.column_stack([-z, z]) if z.ndim == 1 else z)
        by_alpha.append([z - np.log(np.exp(z).sum(axis=1, keepdims=True)) for z in scores])
    return by_alpha


def largest_difference(one, other):
    return max(np.abs(a - b).max() for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scores_of_rows_left_out_are_those_of_refits(two, standardize, fit_intercept):
    X, y, weight = two
    model = cf.SVC(kernel=KERNEL, standardize=standardize, fit_intercept=fit_intercept, tol=1e-9)
    assert largest_difference(offered(model, X, y, weight), refitted(model, X, y, weight)) < 1e-6


@pytest.mark.parametrize("multi_class", ["one-vs-one", "one-vs-rest"])
def test_more_classes_share_the_pool(multi_class):
    X, y = load_wine(return_X_y=True)
    model = cf.SVC(kernel=cf.kernels.Gaussian(4.0), standardize=True, multi_class=multi_class, tol=1e-9)
    assert largest_difference(offered(model, X, y), refitted(model, X, y)) < 1e-6


def test_rows_in_float32_leave_scores_within_the_tolerance(two, monkeypatch):
    X, y, _ = two
    model = cf.SVC(kernel=KERNEL)
    exact = offered(model.set_params(tol=1e-9), X, y)
    monkeypatch.setattr(folds, "FEW_ROWS", 10)
    assert largest_difference(offered(model.set_params(tol=1e-4), X, y), exact) < 0.02


def test_gaps_are_filled_by_the_rows_of_each_training_set(two):
    X, y, _ = two
    frame = pd.DataFrame(X.copy(), columns=["a", "b", "c"])
    frame.loc[np.random.default_rng(0).random(len(y)) < 0.2, "b"] = np.nan
    model = cf.SVC(kernel=KERNEL, standardize=True, encoder=cf.TableEncoder(), tol=1e-9)
    assert largest_difference(offered(model, frame, y), refitted(model, frame, y)) < 1e-6


def test_cross_validation_counts_right_rows_as_refits_do(two):
    X, y, _ = two
    model = cf.SVC(kernel=KERNEL)
    search = cf.CrossValidated(model, {"alpha": ALPHAS}, cv=CV).fit(X, y)
    for place, alpha in enumerate(ALPHAS):
        fits = [clone(model).set_params(alpha=alpha).fit(X[train], y[train]) for train, _ in CV.split(X, y)]
        right = [fit.score(X[test], y[test]) for fit, (_, test) in zip(fits, CV.split(X, y), strict=True)]
        got = [search.cv_results_[f"split{k}_test_score"][place] for k in range(4)]
        assert got == pytest.approx(right, abs=1.5 / 60)  # a row on the boundary may fall to either side


@pytest.mark.parametrize("changes", [{"class_weight": "balanced"}, {"solver": "smo"}, {"max_time": 60.0}])
def test_what_each_training_set_decides_for_itself_is_refitted(two, changes):
    X, y, _ = two
    rows = Rows.of(cf.SVC(), X, y)
    rounds = rounds_of(CV, rows.source, rows.labels, rows.groups)
    model = cf.SVC(**changes)
    assert model.folds(rows.source, rounds, Candidates([{"alpha": 0.1}], rows.classes), rows.shared) is None


def test_scores_that_need_more_than_the_class_are_refitted(two):
    X, y, _ = two
    rows = Rows.of(cf.SVC(), X, y)
    rounds = rounds_of(CV, rows.source, rows.labels, rows.groups)
    assert offered_scores(cf.SVC(), rows, rounds, [{}], "roc_auc") is None
    assert offered_scores(cf.SVC(), rows, rounds, [{}], "accuracy") is not None
    search = cf.CrossValidated(cf.SVC(), {"alpha": [0.01, 0.1]}, cv=CV, scoring="roc_auc").fit(X, y)
    assert search.best_score_ > 0.7


def test_a_fit_that_needs_float64_leaves_the_rows_that_others_share_in_float32(two):
    X, _, _ = two
    rows = KernelRows(Memory.of(Block(X, None, None)), KERNEL)
    pool = Pool(rows, np.arange(len(X)), 1e6, is_shared=True)
    wide = pool.widened()
    assert pool.is_single and not wide.is_single
    assert wide.widened() is wide


def test_widths_share_the_squared_distances(two, monkeypatch):
    X, y, weight = two
    made = []

    def counted(points):
        made.append(len(points))
        return squared_distances(points)

    monkeypatch.setattr(folds, "squared_distances", counted)
    monkeypatch.setattr(folds, "MANY_COLUMNS", 1)
    kernels = [cf.kernels.Gaussian(0.5), cf.kernels.Gaussian(2.0), cf.kernels.Gaussian(), cf.kernels.Linear()]
    model = cf.SVC(tol=1e-9)
    rows = Rows.of(model, X, y, weight)
    rounds = rounds_of(CV, rows.source, rows.labels, rows.groups)

    def scores(settings, cache_size=200.0):
        grid = Candidates(settings, rows.classes)
        states = clone(model).set_params(cache_size=cache_size).folds(rows.source, rounds, grid, rows.shared)
        return [[odds for _, odds, _ in states.validated(c)] for c in range(len(settings))]

    settings = [{"kernel": kernel, "alpha": alpha} for kernel in kernels for alpha in (0.001, 0.1)]
    together = scores(settings)
    assert made == [len(X)]
    assert np.array_equal(cf.kernels.Gaussian(1e-200).of_squares(np.array([0.0, 1.0])), [1.0, 0.0])
    assert largest_difference(together, [scores([setting])[0] for setting in settings]) < 1e-6
    assert largest_difference(together, scores(settings, cache_size=0.5)) < 1e-6  # no room for the distances
    assert made == [len(X)]
