"""The duality gap of losses of scores is never below the true excess, and small at a solution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from score_cases import LOSSES, Case, case

import certifit as cf
from certifit.data.source import Memory
from certifit.mathematics.losses.scores import Logistic, Squared
from certifit.models.glm.certificate import certify
from certifit.models.glm.l1_certificate import prove
from certifit.models.glm.l1_solver import solve
from certifit.models.lasso.certificate import certify as certify_squares
from certifit.models.lasso.task import GramLasso
from certifit.models.least_squares.normal_equations import Weights
from tests.repetitions import some_of

KINDS = {
    "lasso": {},
    "elastic net": {"l1_ratio": 0.4},
    "bounds": {"bounds": True},
    "bounds alone": {"bounds": True, "alpha": 0.0},
    "bounds and ridge": {"bounds": True, "l1_ratio": 0.0},
    "free columns": {"free": 3},
    "no intercept": {"fit_intercept": False},
    "free columns, no intercept": {"fit_intercept": False, "free": 2},
}


def perturbed(problem: Case, state: Weights, rng: np.random.Generator) -> Weights:
    """The state moved by a random amount in some coefficients, within the bounds."""
    size = 10.0 ** rng.uniform(-12, 0.5)
    some = rng.random(len(state.coef)) < rng.choice([0.1, 0.5, 1.0])
    if rng.random() < 0.5:
        some &= state.coef != 0
    coef = state.coef + size * some * rng.normal(size=len(state.coef))
    level = state.intercept + size * rng.normal() * rng.integers(0, 2) * problem.fit_intercept
    return problem.strengths.within(Weights(coef, float(level)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.slow
def test_the_gap_is_never_below_the_true_excess(loss, kind, seed):
    rng = np.random.default_rng(seed)
    problem = case(loss, seed, **KINDS[kind])
    task = problem.task()
    best = solve(task, 1000).state
    least = problem.objective(best)
    for enough in (0.0, np.inf):
        for _ in range(some_of(40)):
            state = perturbed(problem, best, rng)
            objective = problem.objective(state)
            if not np.isfinite(objective):
                continue
            gap = prove(task, task.to_point(state), enough).gap
            excess = objective - least
            assert gap.value + gap.rounding >= excess - 1e-14 * objective
            assert gap.relative <= 1 + 1e-9  # u = 0 proves that losses are not negative


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.slow
def test_a_solution_is_proven_to_rounding_and_a_perturbed_one_refused(loss, kind, seed):
    problem = case(loss, seed, **KINDS[kind])
    task = problem.task()
    best = solve(task, 1000).state
    certificate = certify(task, best, 1e-8)
    assert certificate.holds
    assert certificate.value <= 1e-9
    assert prove(task, task.to_point(best), 0.0).gap.relative <= 1e-13
    assert certificate.rank == np.count_nonzero(best.coef)
    free = (best.coef != problem.strengths.lower) & (best.coef != problem.strengths.upper)
    nudged = Weights(best.coef + 1e-2 * free * (best.coef != 0), best.intercept)
    assert not certify(task, problem.strengths.within(nudged), 1e-8).holds


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_near_a_solution_the_gap_is_about_the_true_excess(loss, seed):
    problem = case(loss, seed)
    task = problem.task()
    best = solve(task, 1000).state
    nudged = Weights(best.coef * (1 + 1e-4), best.intercept)
    excess = problem.objective(nudged) - problem.objective(best)
    gap = prove(task, task.to_point(nudged), 0.0).gap
    assert gap.value + gap.rounding <= 1.1 * excess + 1e-13


def test_the_squared_loss_is_certified_as_the_lasso_is(seed):
    problem = case(Squared(), seed)
    problem.offset[:] = 0.0
    task = problem.task()
    best = solve(task, 1000).state
    nudged = Weights(best.coef * (1 + 1e-3), best.intercept)
    squares = GramLasso(Memory(problem.X, problem.y, problem.weight), problem.strengths, True, False)
    own, other = certify(task, nudged, 1e-8), certify_squares(squares, nudged, 1e-8)
    assert own.value == pytest.approx(other.value, rel=0.05)


def test_a_state_beyond_a_bound_is_refused(seed):
    problem = case(Logistic(), seed, bounds=True)
    task = problem.task()
    best = solve(task, 1000).state
    coef = best.coef.copy()
    coef[2] = problem.strengths.upper[2] + 1e-6
    assert not certify(task, Weights(coef, best.intercept), 1.0).holds


def test_columns_without_a_penalty_that_depend_on_each_other_prove_nothing(seed):
    problem = case(Logistic(), seed, free=2)
    problem.X[:, -1] = problem.X[:, -2]
    task = problem.task()
    best = solve(task, 1000).state
    assert certify(task, best, 1e-8).value == pytest.approx(1.0)


def test_a_ridge_of_more_columns_than_a_hessian_bears_is_proven_by_its_gap(seed, monkeypatch):
    from certifit.models.glm import certificate as generalised

    problem = case(Logistic(), seed, l1_ratio=0.0)
    from certifit.models.glm.newton import solve as solve_smooth

    task = problem.task()
    state = solve_smooth(task, 1000).state
    by_curvature = certify(task, state, 1e-8)
    monkeypatch.setattr(generalised, "most_entries", lambda task: 1)
    by_gap = certify(task, state, 1e-8)
    assert by_gap.theorem == generalised.GAP != by_curvature.theorem
    assert by_gap.holds


def test_far_shifted_columns_are_still_proven(seed):
    problem = case(Logistic(), seed)
    moved = replace(problem, X=problem.X + 1e5)
    state = solve(moved.task(), 1000).state
    certificate = certify(moved.task(), state, 1e-8)
    assert certificate.holds


def test_weights_beyond_float64_beside_curvature_do_not_make_a_bound_smaller():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 2)), 1e100 * rng.uniform(1, 5, 7)
    for weight in (None, rng.uniform(1e200, 2e200, 7)):
        model = cf.GammaRegressor(1.0, l1_ratio=1.0).fit(X, y, weight)
        model.intercept_ = -model.intercept_  # losses of 1e200
        assert cf.verify(model, X, y, sample_weight=weight).certificate.value == pytest.approx(1.0)
