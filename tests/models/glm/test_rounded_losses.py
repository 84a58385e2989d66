"""Certificates where the loss itself is rounded: where its terms cancel, below the normal numbers, beyond float64."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.mathematics.families.deviances import shares
from certifit.mathematics.losses.poisson_gamma_tweedie import NegativeBinomialLog
from certifit.models.glm.concordance import Decrement
from certifit.models.glm.points import point_of
from certifit.statistics.factor import Curvature
from tests.hunt.generate import Problem
from tests.hunt.score_truth import ScoreTruth

X, Y = np.array([[1.0], [2.0], [-1.0], [0.5]]), np.array([6.0, 14.0, 11.0, 5.0])
WEIGHT = np.array([1.0, 1e-16, 1e-16, 1e-16])  # one row decides: its loss is nearly 0, and cancels


def fitted(**given: Any) -> Any:
    """Without an intercept; whether it is proven is not asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cf.GLM(fit_intercept=False, **given).fit(X, Y, WEIGHT)


@pytest.mark.parametrize("family", [cf.families.Tweedie(power=power) for power in (1 + 1e-9, 1.0001, 1.01, 2 - 1e-9)])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_terms_that_cancel_in_a_loss_are_counted(family: Any, l1_ratio: float) -> None:
    """y^a / (ab) is 1e9 for a power of 1 + 1e-9, its loss nearly nothing."""
    given = {"family": family, "alpha": 1e-9, "l1_ratio": l1_ratio, "fit_intercept": False}
    model = fitted(family=family, alpha=1e-9, l1_ratio=l1_ratio)
    truth = ScoreTruth(Problem(X, Y, WEIGHT, given, []), model)
    for share in (0.0, 1e-9, 1e-6, 1e-3):
        state = copy.copy(model)
        state.coef_ = model.coef_ * (1 + share)
        found = state.certify(X, Y, WEIGHT)
        assert truth.verdict(state, found).true <= found.value * (1 + 1e-9)
        task = state._task_on(X, Y, sample_weight=WEIGHT)
        assert point_of(task, task.to_point(state._state()), False).scale <= float(truth.objective(state)) * (1 + 1e-15)


def test_an_objective_below_the_normal_numbers_is_no_base() -> None:
    """Every weight is 0 at the minimum, where nothing is left; beside it all of the objective is excess."""
    rows, y = np.array([[1.0, -0.5], [0.3, 2.0], [-1.0, 0.7]]), np.ones(3)
    model = cf.GLM("poisson", alpha=1.0, l1_ratio=1.0, fit_intercept=False).fit(rows, y)
    assert not model.coef_.any() and model.certificate_.holds
    for size in (5e-324, 1e-320, 1e-310):
        model.coef_ = np.full(2, size)
        assert not model.certify(rows, y).holds


def test_rounding_beyond_float64_proves_nothing_and_raises_nothing() -> None:
    far = Decrement(1e200, 1e200, 1e-300)
    assert far.allowance(1.0) == far.estimate() == math.inf
    assert not Decrement(1e200, 0.0, 0.0).excess() < math.inf
    assert Decrement(1e200, 0.0, 0.0).is_far(1.0)


@pytest.mark.parametrize("u", [-1e3, -1e10, -1e130, 1e3, 1e10])
def test_a_share_that_is_rounded_to_1_has_a_loss(u: float) -> None:
    """-log of the smaller share less u times the larger one, but for a power of e that is nothing."""
    q, complement = (1.0, 1e-19) if u < 0 else (1e-19, 1.0)
    assert shares(np.array([q]), np.array([complement]), np.array([u]))[0] == pytest.approx(math.log(1e-19) + abs(u))
    loss = NegativeBinomialLog(1e8)
    assert loss.value(np.array([8e10]), np.array([-1e5]))[0] == pytest.approx(8e15, rel=1e-3)


def test_a_score_far_below_a_large_count_is_no_exact_fit() -> None:
    rows, y = np.full((3, 1), 1e149), np.array([8.6000730377e10, 8.7426319028e10, 9.7647490035e10])
    weight = np.array([8.55e-50, 6.7e-80, 128.0])
    model = cf.GLM(cf.families.NegativeBinomial(alpha=1e8), alpha=1e-6, penalty_factors=[0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, y, weight)
    model.coef_ = np.array([-4.8678029767595584e-14])
    found = model.certify(rows, y, weight)
    assert not found.holds and not found.is_exact_fit


def test_a_covariance_beyond_float64_is_infinite_without_warnings() -> None:
    """As of counts that hardly tell a rate, with weights of 1e-280."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inverse = Curvature(np.array([[1e-310, 0.0], [0.0, 1.0]])).inverse
    assert inverse[0, 0] == np.inf and inverse[1, 1] == 1
