"""Scores of folds against fits in exact rationals, and against refits, where sums over all rows tell little of some."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from folding import fold_squares
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Memory
from tests.hunt.references.numbers import as_float, rational

SPLITS = Splits.folds(ByRow(4, 0))
ALPHAS = [1e-3, 0.01, 0.1, 1.0, 10.0]


def exact_squares(X: Any, y: Any, train: Any, alpha: float, standardize: bool) -> tuple[float, float]:
    """Squares of validation and of training rows by the ridge fit with an intercept to the training rows."""
    n, d = X.shape
    rows = [i for i in range(n) if train[i]]
    means = [sum((rational(X[i, j]) for i in rows), fmpq(0)) / len(rows) for j in range(d)]
    level = sum((rational(y[i]) for i in rows), fmpq(0)) / len(rows)
    Z = [[rational(X[i, j]) - means[j] for j in range(d)] for i in range(n)]
    target = [rational(value) - level for value in y]
    units = [sum((Z[i][j] ** 2 for i in rows), fmpq(0)) if standardize else len(rows) for j in range(d)]
    pulls = [rational(alpha) * unit for unit in units]
    # (Z P^-1 Z' + 1) a = target: of the rows that train
    inner = [sum((Z[i][j] * Z[k][j] / pulls[j] for j in range(d)), fmpq(int(i == k))) for i in rows for k in rows]
    a = fmpq_mat(len(rows), len(rows), inner).solve(fmpq_mat(len(rows), 1, [target[i] for i in rows]))
    w = [sum((a[r, 0] * Z[i][j] for r, i in enumerate(rows)), fmpq(0)) / pulls[j] for j in range(d)]
    left = [target[i] - sum((z * v for z, v in zip(Z[i], w, strict=True)), fmpq(0)) for i in range(n)]
    sides = [[i for i in range(n) if bool(train[i]) == is_train] for is_train in (False, True)]
    validation, training = (as_float(sum((left[i] ** 2 for i in side), fmpq(0))) for side in sides)
    return validation, training


def table(shape: tuple[int, int], outlier: str, size: float) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    y = X[:, 0] + rng.normal(size=shape[0])
    if outlier == "row":
        X[5] *= size
    elif outlier == "entry":
        X[5, 1] = size
    else:
        y[5] = size
    return X, y


@pytest.mark.parametrize("shape", [(12, 3), (12, 15)])
@pytest.mark.parametrize(
    "outlier, size", [("row", 1e6), ("row", 1e11), ("entry", 1e12), ("target", 1e11), ("target", 1e17)]
)
@pytest.mark.parametrize("standardize", [False, True])
def test_a_row_far_from_the_others_costs_other_folds_no_digits(
    shape: tuple[int, int], outlier: str, size: float, standardize: bool
) -> None:
    """Of the fold that it is left out of: sums of all rows have its size. None: the folds are refitted."""
    X, y = table(shape, outlier, size)
    source = Memory(X, y)
    path = fold_squares(cf.Ridge(standardize=standardize), source, [SPLITS], [{"alpha": alpha} for alpha in ALPHAS])
    if path is None:
        assert shape[0] < shape[1] and outlier != "target"
        return
    cells = SPLITS.cells.of(source.block)
    for split in range(4):
        for a, alpha in enumerate(ALPHAS):
            validation, training = exact_squares(X, y, cells != split, alpha, standardize)
            assert path.validation[a, split] == pytest.approx(validation, rel=1e-5)
            assert path.train[a, split] == pytest.approx(training, rel=1e-5)


@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 1.0])
def test_a_column_that_is_constant_in_training_rows_alone_has_no_weight_of_rounding(alpha: float) -> None:
    """1e10, and 1e4 in a row that validates; roots of weights are rounded, and twofold sums have that."""
    rng = np.random.default_rng(3)
    X, y, weight = rng.normal(size=(12, 3)), 528 + rng.normal(size=12), rng.integers(1, 4, size=12).astype(float)
    X[:, 1] = 1e10
    X[5, 1] = 1e4
    source = Memory(X, y, weight)
    path = fold_squares(cf.Ridge(), source, [SPLITS], [{"alpha": alpha}])
    cells = SPLITS.cells.of(source.block)
    train = cells != cells[5]
    refit = cf.Ridge(alpha=alpha).fit(X[train], y[train], weight[train])
    assert refit.certificate_.holds
    wanted = weight[~train] @ (y - refit.predict(X))[~train] ** 2
    assert path.validation[0, cells[5]] == pytest.approx(wanted, rel=1e-6)


def test_training_rows_of_constant_columns_have_paths() -> None:
    """All columns are 0 but in one row: the fit of the others is their mean, whatever the strength."""
    X, y = np.zeros((12, 2)), np.arange(12.0)
    X[5] = 1.0
    source = Memory(X, y)
    path = fold_squares(cf.Ridge(), source, [SPLITS], [{"alpha": alpha} for alpha in ALPHAS])
    cells = SPLITS.cells.of(source.block)
    rows = cells == cells[5]
    assert path.validation[:, cells[5]] == pytest.approx(np.sum((y[rows] - y[~rows].mean()) ** 2))


@pytest.mark.parametrize("n_columns", [3, 35])
@pytest.mark.parametrize("level", [0.0, 0.1, 1e8])
@pytest.mark.parametrize("model", [cf.Ridge(), cf.Ridge(standardize=True), cf.Lasso(), cf.KernelRidge(), cf.GLM()])
def test_a_fold_whose_target_does_not_vary_has_the_r2_of_refits(model: Any, n_columns: int, level: float) -> None:
    """0, for its fit is not exact: squares over what was left of a rounded mean were -1e17."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, n_columns)), level + rng.normal(size=30)
    y[20:] = level
    folds = [(np.r_[10:30], np.r_[:10]), (np.r_[:10, 20:30], np.r_[10:20]), (np.r_[:20], np.r_[20:30])]
    alpha = {"alpha": [0.1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = cf.CrossValidated(model, alpha, cv=folds, scoring="r2").fit(X, y).cv_results_
    assert found["split2_test_score"][0] == 0
    assert abs(found["split0_test_score"][0]) < 100


@pytest.mark.parametrize("n_columns", [2, 12])
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    "model", [cf.Ridge(), cf.Ridge(standardize=True), cf.Lasso(), cf.KernelRidge(), cf.QuantileRegressor(), cf.GLM()]
)
def test_a_split_without_weights_is_refused_in_words(model: Any, n_columns: int, side: int) -> None:
    """Rows that validate with no weight had an R2 of 1."""
    rng = np.random.default_rng(2)
    X, y, weight = rng.normal(size=(9, n_columns)), rng.normal(size=9), np.ones(9)
    folds = [(np.r_[3:9], np.r_[:3]), (np.r_[:3, 6:9], np.r_[3:6]), (np.r_[:6], np.r_[6:9])]
    weight[folds[0][side]] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(ValueError, match=r"no weight|no rows of positive weight"):
            cf.CrossValidated(model, {}, cv=folds).fit(X, y, weight)
