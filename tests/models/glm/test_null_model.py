"""The best constant beside offsets of many sizes: what an exact fit is relative to, and deviances are compared with."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.optimize import brentq

import certifit as cf
from certifit.data.source import Memory
from certifit.mathematics.losses.families import loss_of
from certifit.models.glm.points import null_objective
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths
from certifit.statistics.glm_sums import null_score

FAMILIES = {
    "poisson": "poisson",
    "gamma": "gamma",
    "tweedie": cf.families.Tweedie(1.5),
    "negative-binomial": cf.families.NegativeBinomial(0.5),
    "bernoulli": "bernoulli",
}


def best_constant(loss, y, weight, offset):
    """The root of the slope, and the objective there."""
    slope = lambda b: float(np.sum(weight * loss.slope(y, b + offset)))  # noqa: E731
    b = brentq(slope, -80.0, 80.0, xtol=1e-13)
    return b, float(np.sum(weight * loss.value(y, b + offset)) / np.sum(weight))


def drawn(family, reach, rng):
    loss, n = loss_of(FAMILIES[family]), 7
    offset = np.log(10.0) * rng.uniform(-reach, reach, size=n)
    y = rng.uniform(0.01, 0.99, size=n) if family == "bernoulli" else 10.0 ** rng.uniform(0, 5, size=n)
    return loss, y, rng.integers(1, 4, size=n).astype(float), offset


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("reach", [0.5, 3.0, 12.0])
@pytest.mark.slow
def test_the_best_constant_is_found_beside_exposures_of_many_sizes(family, reach, rng):
    for _ in range(10):
        loss, y, weight, offset = drawn(family, reach, rng)
        X = rng.normal(size=(len(y), 2))
        source = Memory(X, y, weight, ["a", "b"], offset)
        b, value = best_constant(loss, y, weight, offset)
        for start in (loss.score(np.average(y, weights=weight)), 0.0):
            assert null_score(source, loss, float(start)) == pytest.approx(b, rel=1e-6, abs=1e-6)
        free = np.full(2, np.inf)
        task = GlmTask(source, loss, Strengths(0.0, 0.0, np.ones(2), -free, free), True)
        assert value * (1 - 1e-2) <= null_objective(task) <= value * (1 + 1e-9)


def test_a_nudged_exact_fit_beside_exposures_is_not_called_nearer_than_it_is():
    x = np.array([1, 2, 3, 6, 7]) / 7
    X = np.column_stack([x, x**2, x**3, x**4])  # five rows and five coefficients: every target is met
    y, weight = np.array([10331.0, 7045.0, 5172.0, 12080.0, 50107.0]), np.array([1.0, 2.0, 2.0, 2.0, 1.0])
    exposure = np.array([407.0, 32.1, 589.0, 0.0061, 475.0])
    model = cf.GammaRegressor(alpha=0.0).fit(X, y, weight, exposure=exposure)
    assert model.certificate_.is_exact_fit
    assert model.score(X, y, weight, exposure=exposure) == pytest.approx(1.0)
    _, null = best_constant(loss_of("gamma"), y, weight, np.log(exposure))
    for power in (-11, -10, -9):
        other = copy.copy(model)
        other.coef_ = model.coef_ * (1 + 10.0**power * np.array([1.0, 0, 0, 0]))
        # l = e^u - 1 - u >= u^2 / 2 - |u|^3, u the change of a score; the fit itself is off by rounding
        u = (other.coef_[0] - model.coef_[0]) * x
        excess = float(weight @ (u**2 / 2 - np.abs(u) ** 3) / weight.sum()) / null
        assert other.certify(X, y, weight, exposure=exposure).value >= 0.99 * excess


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # what is tested is the score
def test_the_explained_deviance_beside_exposures_is_that_over_the_best_constant(rng):
    _, y, weight, offset = drawn("gamma", 12.0, rng)
    X = rng.normal(size=(len(y), 1))
    model = cf.GammaRegressor(alpha=0.0).fit(X, y, weight, offset=offset)
    loss, (_, null) = loss_of("gamma"), best_constant(loss_of("gamma"), y, weight, offset)
    own = np.average(loss.value(y, offset + X @ model.coef_ + model.intercept_), weights=weight)
    assert model.score(X, y, weight, offset=offset) == pytest.approx(1 - own / null, rel=1e-6)


def test_a_null_model_beside_offsets_and_weights_that_are_far_from_1() -> None:
    """The powers of its start were beyond float64: a null deviance of inf, and a share explained of 1."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1)), rng.poisson(2.0, size=30)
    plain = cf.PoissonRegressor(alpha=0).fit(X, y)
    far = cf.PoissonRegressor(alpha=0).fit(X, y, sample_weight=np.full(30, 1e200), offset=np.full(30, 300.0))
    score = far.score(X, y, sample_weight=np.full(30, 1e200), offset=np.full(30, 300.0))
    assert score == pytest.approx(plain.score(X, y), rel=1e-9)
    assert far.inference_.null_deviance / 1e200 == pytest.approx(plain.inference_.null_deviance, rel=1e-9)


def test_a_slope_beside_next_to_no_curvature_ends_the_search():
    # A slope of 1e280 over a curvature of 1e-36 is no step of float64, and half of an infinite one is no shorter.
    y, offset = np.array([0.0, 0.0, 1.0, 1.0]), np.array([1045.7, 204.6, 318.4, 166.5])
    source = Memory(np.zeros((4, 1)), y, None, ["a"], offset)
    assert np.isfinite(null_score(source, loss_of("bernoulli", "cloglog"), -400.0))
