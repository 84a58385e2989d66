"""Lasso and elastic net where columns lie far from 0, or vary in light rows alone, dense and sparse."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.source import Memory
from certifit.selection.folds.engine import offered_scores
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.splits import rounds_of
from certifit.statistics.gram import centred_gram, gram


def rows(rng: np.random.Generator, offset: float, n: int = 50, d: int = 3) -> tuple[Any, Any]:
    X = rng.normal(size=(n, d))
    y = X @ np.arange(d) + 0.1 * rng.normal(size=n)
    X[:, 0] += offset
    X[:, 1] += offset
    return X, y


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("offset", [1e5, 1e8])
def test_sparse_columns_far_from_zero_give_the_fit_of_dense_ones(rng, offset, standardize):
    X, y = rows(rng, offset)
    models = [cf.Lasso(0.01, standardize=standardize).fit(Z, y) for Z in (X, sp.csr_array(X))]
    assert all(model.certificate_.holds for model in models)
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_folds_of_sparse_columns_far_from_zero_score_as_dense_ones(rng, offset):
    X, y = rows(rng, offset, n=60)
    scores = [
        cf.CrossValidated(cf.Lasso(0.01), {"alpha": [0.001, 0.1]}).fit(Z, y).cv_results_["mean_test_score"]
        for Z in (X, sp.csr_array(X))
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("offset", [1e8, 1e9])
def test_squares_of_folds_are_those_of_their_fits_far_from_zero(rng, offset, fit_intercept):
    """Products about 0 have no digits of the squares: some were 0."""
    X = rng.normal(size=(40, 3)) + offset * np.array([1.0, 0.3, 2.0])
    y = X @ [1.0, 2.0, -1.0] + rng.normal(size=40)
    model = cf.Lasso(fit_intercept=fit_intercept)
    of_rows = Rows.of(model, X, y, None)
    rounds = rounds_of(cf.Folds(3), of_rows.source, of_rows.labels, of_rows.groups)
    scores = offered_scores(model, of_rows, rounds, [{"alpha": 1e-6}], "neg_mean_squared_error", with_rows=True)
    assert scores is not None
    for error, fold in zip(scores.validation[0], scores.held_out, strict=True):
        assert error == pytest.approx(fold.values["score"].mean(), rel=1e-3)


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_a_full_column_far_from_zero_among_more_sparse_columns_than_rows(rng, offset):
    X = np.where(rng.random(size=(30, 200)) < 0.1, rng.normal(size=(30, 200)), 0.0)
    X[:, 0] = rng.normal(size=30)
    y = X[:, 0] + rng.normal(size=30)
    X[:, 0] += offset
    dense, sparse = (cf.Lasso(0.05).fit(Z, y) for Z in (X, sp.csr_array(X)))
    assert dense.certificate_.holds and sparse.certificate_.holds
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_target_that_varies_only_in_a_light_row_is_fitted(form):
    model = cf.ElasticNet(0.9, 0.5).fit(form(np.array([[1.74e-12], [-2.0]])), [-0.86, 0.03], [1e27, 1.0])
    assert model.certificate_.holds


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_centred_sums_of_columns_far_from_zero_keep_their_digits(rng, form):
    X, y = rows(rng, 1e8)
    found = centred_gram(Memory(form(X), y, None))
    s = found.scaling
    Z = [[Fraction(x) * Fraction(scale) for x, scale in zip(row, s.scale, strict=True)] for row in X.tolist()]
    means = [sum(column) / len(Z) for column in zip(*Z, strict=True)]
    exact = [[float(sum((row[j] - means[j]) * (row[k] - means[k]) for row in Z)) for k in range(3)] for j in range(3)]
    d, total = 3, found.sum_weight
    about = found.sums[:d, :d] - np.outer(found.sums[d, :d], found.sums[d, :d]) / total
    roots = np.sqrt(np.diagonal(exact))
    assert np.abs((about - exact) / roots / roots[:, None]).max() < 1e-13


def test_sums_of_ordinary_columns_are_the_same_bits(rng):
    X, y = rows(rng, 0.0)
    source = Memory(X, y, None)
    assert centred_gram(source).sums.tobytes() == gram(source, centred=True).sums.tobytes()


def test_a_constant_sparse_column_has_no_weight(rng):
    X, y = rows(rng, 0.0)
    X[:, 2] = 1e8
    model = cf.Lasso(1e-3).fit(sp.csr_array(X), y)
    assert model.certificate_.holds and model.coef_[2] == 0


def test_the_lasso_has_no_floor_but_that_of_an_exact_fit(rng):
    x = rng.normal(size=30)
    y = 1e12 + 0.01 * (x + rng.normal(size=30))
    model = cf.Lasso(1e-6, tol=1e-4).fit(x[:, None], y)
    # 1/(2n) sum (y - b - xw)^2 + alpha |w| is a parabola in w beside the best b: its minimum in rationals.
    n, X, Y = 30, [Fraction(v) for v in x.tolist()], [Fraction(v) for v in y.tolist()]
    mx, my = sum(X) / n, sum(Y) / n
    xx, xy = (sum((a - mx) * (b - m) for a, b in zip(X, other, strict=True)) / n for other, m in ((X, mx), (Y, my)))
    alpha = Fraction(1e-6)
    best = (xy - alpha) / xx

    def objective(w: Fraction, b: Fraction) -> Fraction:
        return sum((q - b - w * p) ** 2 for p, q in zip(X, Y, strict=True)) / (2 * n) + alpha * abs(w)

    assert best > 0
    own = objective(Fraction(float(model.coef_[0])), Fraction(model.intercept_))
    excess = float((own - objective(best, my - best * mx)) / own)
    assert excess <= model.certificate_.value and not model.certificate_.is_exact_fit


def with_nanoseconds(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(100, 3)), 1.38e18 + 8.64e13 * rng.integers(365, size=100)])
    return X, X[:, 0] + 1e-15 * (X[:, 3] - 1.38e18) + rng.normal(size=100)


@pytest.mark.parametrize("model", [cf.Lasso(0.01), cf.Lasso(1e-4), cf.ElasticNet(1e-4, 0.1)])
def test_nanoseconds_since_1970_are_certified_beside_columns_of_size_1(seed, model):
    X, y = with_nanoseconds(seed)
    model.fit(X, y)
    share = model.get_params().get("l1_ratio", 1.0)
    centred, spread = X - X.mean(axis=0), np.array([1.0, 1.0, 1.0, 1e16])
    factors = [1.0, 1.0, 1.0, 0.0]  # in this unit the penalty of the date is some 1e-17 of the objective
    free = cf.ElasticNet(model.alpha, share, penalty_factors=factors).fit(centred / spread, y)

    def objective(w, b):
        penalty = share * np.abs(w).sum() + (1 - share) / 2 * (w @ w)
        return ((y - centred @ w - b) ** 2).mean() / 2 + model.alpha * penalty

    best = objective(free.coef_ / spread, free.intercept_)
    assert model.certificate_.holds
    assert objective(model.coef_, model.intercept_ + X.mean(axis=0) @ model.coef_) <= best * (1 + 1e-8)


def test_a_column_whose_penalty_is_lost_is_named():
    X, y = with_nanoseconds(0)
    with pytest.warns(ConvergenceWarning, match="'x3' is so large that its penalty is lost"):
        cf.ElasticNet(0.01).fit(X, y)
    assert cf.ElasticNet(0.01, standardize=True).fit(X, y).certificate_.holds
