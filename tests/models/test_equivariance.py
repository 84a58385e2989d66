"""What must happen to a fit when rows are repeated, weighted, moved, scaled or shuffled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference import Exact, minimum_norm, standard_errors
from reference import ridge as reference_ridge
from sklearn.base import clone

import certifit as cf

MODELS = [
    cf.LinearRegression(),
    cf.LinearRegression(fit_intercept=False),
    cf.Ridge(0.1),
    cf.Ridge(0.1, fit_intercept=False),
    cf.LinearRegression(basis=cf.Polynomial(2)),
]
PLAIN = MODELS[:4]
LEAST_SQUARES = MODELS[:2]


def rows(rng: np.random.Generator, n: int = 60, d: int = 4) -> tuple[Any, Any]:
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    return X, X @ rng.normal(size=d) + rng.normal(size=n) + 3


def state(model: Any) -> Any:
    return np.array([model.intercept_, *model.coef_])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_that_of_the_formula(rng, weighted, fit_intercept):
    X, y = rows(rng)
    weight = rng.random(60) if weighted else None
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight)
    coef, intercept = minimum_norm(X, y, weight, fit_intercept)
    assert state(model) == pytest.approx([intercept, *coef], rel=1e-10)
    errors = standard_errors(X, y, weight, fit_intercept)
    # Weights are counts: a sum of 30 with 5 coefficients leaves 25 degrees of freedom.
    assert model.inference_.standard_errors == pytest.approx(errors, rel=1e-9)
    ridge = cf.Ridge(0.3, fit_intercept=fit_intercept).fit(X, y, weight)
    coef, intercept = reference_ridge(X, y, 0.3, weight, fit_intercept)
    assert state(ridge) == pytest.approx([intercept, *coef], rel=1e-10)


def test_one_variable_is_the_closed_form(rng):
    x, y = rng.normal(size=30), rng.normal(size=30)
    model = cf.LinearRegression().fit(x[:, None], y)
    slope = np.sum((x - x.mean()) * (y - y.mean())) / np.sum((x - x.mean()) ** 2)
    assert model.coef_[0] == pytest.approx(slope, rel=1e-13)
    assert model.intercept_ == pytest.approx(y.mean() - slope * x.mean(), rel=1e-13)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(rng, model):
    X, y = rows(rng)
    weight = rng.integers(0, 4, size=60)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    again = np.repeat(np.arange(60), weight)
    repeated = clone(model).fit(X[again], y[again])
    assert state(weighted) == pytest.approx(state(repeated), rel=1e-11)
    assert weighted.alpha_ == pytest.approx(repeated.alpha_)
    if weighted.inference_ is not None:
        assert weighted.inference_.standard_errors == pytest.approx(repeated.inference_.standard_errors, rel=1e-10)
        assert weighted.inference_.df_resid == repeated.inference_.df_resid
    assert weighted.data_["target_sd"] == pytest.approx(repeated.data_["target_sd"])


@pytest.mark.parametrize("model", PLAIN, ids=str)
@pytest.mark.parametrize("shape", [(60, 4), (5, 9)])
@pytest.mark.parametrize("value", [1e3, 1e12, 1e200])
def test_what_stands_in_a_row_of_weight_zero_does_not_matter(rng, model, shape, value):
    X, y = rows(rng, *shape)
    weight = np.ones(shape[0])
    weight[2] = 0
    wild_X, wild_y = X.copy(), y.copy()
    wild_X[2], wild_y[2] = value, -value
    expected = clone(model).fit(np.delete(X, 2, axis=0), np.delete(y, 2))
    assert state(clone(model).fit(wild_X, wild_y, weight)) == pytest.approx(state(expected), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("factor", [2.0**-900, 1e-3, 7.0, 2.0**900])
def test_the_scale_of_all_weights_does_not_matter(rng, model, factor):
    X, y = rows(rng)
    weight = rng.random(60)
    one, other = clone(model).fit(X, y, weight), clone(model).fit(X, y, weight * factor)
    if type(model) is cf.Ridge or np.log2(factor) % 1:
        assert state(one) == pytest.approx(state(other), rel=1e-12)
    else:
        assert np.array_equal(state(one), state(other))


@pytest.mark.parametrize("shape", [(60, 4), (5, 9)])
@pytest.mark.parametrize("model", LEAST_SQUARES, ids=str)
def test_a_power_of_two_in_a_column_goes_to_its_coefficient_exactly(rng, model, shape):
    X, y = rows(rng, *shape)
    scale = 2.0 ** rng.integers(-40, 41, size=shape[1]) if shape[0] > shape[1] else np.full(shape[1], 2.0**-37)
    one, other = clone(model).fit(X, y), clone(model).fit(X * scale, y)
    assert np.array_equal(one.coef_, other.coef_ * scale)
    assert one.intercept_ == other.intercept_
    assert one.certificate_.value == other.certificate_.value


@pytest.mark.parametrize("shape", [(60, 4), (5, 9)])
@pytest.mark.parametrize("model", PLAIN, ids=str)
def test_a_power_of_two_in_the_target_goes_to_every_coefficient_exactly(rng, model, shape):
    X, y = rows(rng, *shape)
    one = clone(model).fit(X, y)
    for scale in (2.0**-500, 0.5, 2.0**500):
        assert np.array_equal(clone(model).fit(X, y * scale, None).coef_, one.coef_ * scale)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], MODELS[4]], ids=str)
def test_a_shift_of_columns_moves_only_the_intercept(rng, model):
    X, y = rows(rng)
    shift = np.array([1.0, -100.0, 1e4, 0.0])
    one, other = clone(model).fit(X, y), clone(model).fit(X + shift, y)
    assert other.coef_ == pytest.approx(one.coef_, rel=1e-9)
    assert other.predict(X + shift) == pytest.approx(one.predict(X), rel=1e-9)


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2]], ids=str)
def test_a_shift_of_the_target_moves_only_the_intercept(rng, model):
    X, y = rows(rng)
    one, other = clone(model).fit(X, y), clone(model).fit(X, y + 1000)
    assert other.coef_ == pytest.approx(one.coef_, rel=1e-10)
    assert other.intercept_ == pytest.approx(one.intercept_ + 1000, rel=1e-12)


@pytest.mark.parametrize("shape", [(60, 4), (5, 9)])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_order_of_rows_and_columns_does_not_matter(rng, model, shape):
    X, y = rows(rng, *shape)
    weight, one = rng.random(shape[0]), clone(model)
    expected = one.fit(X, y, weight).predict(X)
    order = rng.permutation(shape[0])
    shuffled = clone(model).fit(X[order], y[order], weight[order])
    assert state(shuffled) == pytest.approx(state(one), rel=1e-11, abs=1e-12)
    order = rng.permutation(shape[1])
    assert clone(model).fit(X[:, order], y, weight).predict(X[:, order]) == pytest.approx(
        expected, rel=1e-10, abs=1e-10
    )


@pytest.mark.parametrize("model", LEAST_SQUARES, ids=str)
def test_a_copy_of_a_column_changes_no_prediction_and_is_named(rng, model):
    X, y = rows(rng)
    one, other = clone(model).fit(X, y), clone(model).fit(np.column_stack([X, X[:, 1]]), y)
    assert other.predict(np.column_stack([X, X[:, 1]])) == pytest.approx(one.predict(X), rel=1e-12, abs=1e-12)
    assert other.coef_[1] == pytest.approx(one.coef_[1] / 2, rel=1e-12)
    assert other.certificate_.dependent == ("x4 = x1",)


@pytest.mark.parametrize("model", LEAST_SQUARES, ids=str)
def test_a_column_of_noise_lowers_the_sum_of_squares(rng, model):
    X, y = rows(rng)
    more = np.column_stack([X, rng.normal(size=60)])
    assert clone(model).fit(more, y).inference_.rss < clone(model).fit(X, y).inference_.rss


@pytest.mark.parametrize("model", LEAST_SQUARES, ids=str)
def test_residuals_are_orthogonal_to_the_columns(rng, model):
    X, y = rows(rng)
    model = clone(model).fit(X, y)
    exact = Exact(X, y)
    r = np.array([float(v) for v in exact.residuals(state(model))])
    assert np.abs(X.T @ r).max() < 1e-12
    assert not model.fit_intercept or abs(r.sum()) < 1e-12


def test_no_intercept_is_a_line_through_the_origin(rng):
    X, y = rows(rng)
    model = cf.LinearRegression(fit_intercept=False).fit(X, y)
    assert model.intercept_ == 0.0
    assert model.predict(np.zeros((1, 4))) == 0.0
    with_ones = cf.LinearRegression(fit_intercept=False).fit(np.column_stack([np.ones(60), X]), y)
    assert with_ones.coef_ == pytest.approx(state(cf.LinearRegression().fit(X, y)), rel=1e-10)


@pytest.mark.parametrize("form", ["chebyshev", "powers"])
def test_a_polynomial_is_least_squares_in_its_powers(rng, form):
    x = rng.uniform(-2, 3, size=(80, 1))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=80)
    model = cf.LinearRegression(basis=cf.Polynomial(4, form=form)).fit(x, y)
    powers = np.column_stack([x**k for k in range(1, 5)])
    plain = cf.LinearRegression().fit(powers, y)
    assert model.predict(x) == pytest.approx(plain.predict(powers), rel=1e-10)
    assert list(model.monomials()) == ["1", "x0", "x0^2", "x0^3", "x0^4"]
    assert list(model.monomials().values()) == pytest.approx(state(plain), rel=1e-9)
    assert model.inference_.rss == pytest.approx(plain.inference_.rss, rel=1e-12)


def test_functions_of_a_user_are_columns(rng):
    X = rng.normal(size=(50, 2))
    y = 2 * np.sin(X[:, 0]) - X[:, 1] ** 2 + 1
    basis = cf.Functions([lambda X: np.sin(X[:, 0]), lambda X: X[:, 1] ** 2])
    model = cf.LinearRegression(basis=basis).fit(X, y)
    assert state(model) == pytest.approx([1, 2, -1], rel=1e-12)
    with pytest.raises(ValueError, match="monomials"):
        model.monomials()
