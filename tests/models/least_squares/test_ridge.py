"""Ridge: one objective in two forms, scikit-learn's alpha, the ends of float64."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from reference import Exact, dot, minimum_norm, rational, ridge, ridge_dual
from sklearn.linear_model import Ridge as SklearnRidge

import certifit as cf

SHAPES = {"more rows": (40, 6), "more columns": (6, 40), "as many": (8, 8)}


def rows(rng: np.random.Generator, shape: str) -> tuple[Any, Any, Any]:
    n, d = SHAPES[shape]
    return rng.normal(size=(n, d)) + rng.normal(size=d), rng.normal(size=n) + 2, rng.random(n) + 0.1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1.0, 100.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_fit_is_that_of_both_formulas_and_of_scikit_learn(rng, shape, alpha, fit_intercept, weighted):
    X, y, weight = rows(rng, shape)
    weight = weight if weighted else None
    model = cf.Ridge(alpha, fit_intercept=fit_intercept).fit(X, y, weight)
    for formula in (ridge, ridge_dual):
        coef, intercept = formula(X, y, alpha, weight, fit_intercept)
        assert model.coef_ == pytest.approx(coef, rel=1e-9, abs=1e-11)
        assert model.intercept_ == pytest.approx(intercept, rel=1e-9, abs=1e-11)
    total = len(y) if weight is None else weight.sum()
    other = SklearnRidge(total * alpha, fit_intercept=fit_intercept, solver="cholesky").fit(X, y, weight)
    assert model.coef_ == pytest.approx(other.coef_, rel=1e-9, abs=1e-11)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-9, abs=1e-11)
    assert model.certificate_.holds


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_alpha_none_is_scikit_learns_default(rng, shape, weighted):
    X, y, weight = rows(rng, shape)
    weight = weight if weighted else None
    model = cf.Ridge().fit(X, y, weight)
    assert model.alpha_ == pytest.approx(1 / (len(y) if weight is None else weight.sum()), rel=1e-14)
    assert model.coef_ == pytest.approx(SklearnRidge().fit(X, y, weight).coef_, rel=1e-8, abs=1e-11)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_alpha_zero_is_least_squares(rng, shape, fit_intercept):
    X, y, weight = rows(rng, shape)
    penalised = cf.Ridge(0.0, fit_intercept=fit_intercept).fit(X, y, weight)
    plain = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight)
    assert np.array_equal(penalised.coef_, plain.coef_)
    assert penalised.intercept_ == plain.intercept_
    assert penalised.certificate_ == plain.certificate_
    assert (penalised.inference_ is None) == (plain.inference_ is None)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_vanishing_alpha_leads_to_the_shortest_least_squares(rng, shape, fit_intercept):
    X, y, _ = rows(rng, shape)
    for alpha in (1e-14, 1e-300) if shape == "more rows" else (1e-300,):
        model = cf.Ridge(alpha, fit_intercept=fit_intercept).fit(X, y)
        coef, intercept = minimum_norm(X, y, None, fit_intercept)
        assert model.coef_ == pytest.approx(coef, rel=1e-6, abs=1e-9)
        assert model.intercept_ == pytest.approx(intercept, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("alpha", [1e12, 1e100, 1e200, 1e300])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_huge_alpha_leads_to_the_mean(rng, shape, alpha):
    X, y, _ = rows(rng, shape)
    model = cf.Ridge(alpha).fit(X, y)
    assert np.abs(model.coef_).max() <= 1e3 / alpha
    assert model.intercept_ == pytest.approx(y.mean(), rel=1e-9)
    assert model.certificate_.holds


@pytest.mark.parametrize("alpha", [1e-300, 1e-3, 1e300])
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-600, 2.0**-300, 2.0**300, 2.0**900])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_scale_of_columns_makes_the_objective_worse_than_the_mean(rng, shape, scale, alpha):
    """The claim of the certificate, tried where squares leave float64: P(w) <= P(0)."""
    X, y, _ = rows(rng, shape)
    model = cf.Ridge(alpha).fit(X * scale, y)
    assert model.certificate_.holds
    exact = Exact(X * scale, y, None, alpha)
    squares = sum(r * r for r in exact.residuals([model.intercept_, *model.coef_]))
    penalty = len(y) * Fraction(alpha) * dot(rational(model.coef_), rational(model.coef_))
    assert float((squares + penalty) / exact.null_objective) <= 1 + 1e-7


def test_weights_shrink_as_alpha_grows(rng):
    X, y, _ = rows(rng, "more rows")
    norms = [np.linalg.norm(cf.Ridge(alpha).fit(X, y).coef_) for alpha in 10.0 ** np.arange(-6, 6)]
    assert np.all(np.diff(norms) < 0)


def test_the_intercept_is_not_penalised(rng):
    X, y, _ = rows(rng, "more rows")
    model = cf.Ridge(1e6).fit(X, y + 1e5)
    assert model.intercept_ == pytest.approx(y.mean() + 1e5, rel=1e-4)


def test_the_objective_is_told_with_its_alpha(rng):
    X, y, _ = rows(rng, "more rows")
    assert "+ alpha/2 |w|^2" in cf.Ridge().objective
    assert "+ 0.5/2 |w|^2" in cf.Ridge(0.5).objective
    assert "+ 0.025/2 |w|^2" in cf.Ridge().fit(X, y).objective
    assert cf.Ridge(0.5, fit_intercept=False).objective.endswith("with b = 0")
    assert "alpha" not in cf.LinearRegression().objective


def test_a_penalty_acts_on_the_columns_of_the_basis(rng):
    x, y = rng.uniform(-1, 1, size=(50, 1)), rng.normal(size=50)
    model = cf.Ridge(0.1, basis=cf.Polynomial(3)).fit(x, y)
    columns = model.basis_.transform(x)
    coef, intercept = ridge(columns, y, 0.1)
    assert model.coef_ == pytest.approx(coef, rel=1e-9)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("weighted", [False, True])
def test_wide_rows_have_the_bits_of_any_layout_any_memory_and_any_threads(rng, weighted, offset):
    X, y = rng.normal(size=(20, 5000)) + offset, rng.normal(size=20)
    weight = rng.integers(0, 3, 20).astype(float) if weighted else None
    model = cf.Ridge().fit(X, y, weight)
    with cf.threads(2):
        turned = cf.Ridge().fit(np.asfortranarray(X), y, weight)
    short = np.asarray(X, dtype=np.float32)  # its columns are copied as float64 where twice its size is allowed
    with cf.memory(1.5 * short.nbytes):
        read = cf.Ridge().fit(short, y, weight)
    copied = cf.Ridge().fit(short, y, weight)
    for one, other in ((model, turned), (read, copied)):
        assert one.coef_.tobytes() == other.coef_.tobytes() and one.intercept_ == other.intercept_
        assert one.certificate_.value == other.certificate_.value
    assert model.certificate_.holds
