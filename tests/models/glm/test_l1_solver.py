"""Losses of scores with an L1 penalty, factors and bounds: every solution satisfies the conditions of a minimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from chunks import batches, memory
from score_cases import LOSSES, Case, case

from certifit.data.source import Memory
from certifit.mathematics.losses.poisson_gamma_tweedie import PoissonLog
from certifit.mathematics.losses.scores import Logistic, Squared
from certifit.models.glm import l1_solver as score_path
from certifit.models.glm.l1_certificate import prove
from certifit.models.glm.l1_solver import alpha_max, solve, solve_path
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.solver import solve as solve_squares
from certifit.models.lasso.task import GramLasso

FLOOR = 1e-12  # of a condition: squares of it are rounding of the objective

KINDS = {
    "lasso": {},
    "elastic net": {"l1_ratio": 0.4},
    "bounds": {"bounds": True},
    "bounds alone": {"bounds": True, "alpha": 0.0},
    "bounds and ridge": {"bounds": True, "l1_ratio": 0.0},
    "free columns": {"free": 3},
    "free columns with bounds": {"free": 3, "bounds": True},
    "no intercept": {"fit_intercept": False},
    "plain rows": {"plain": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_solution_satisfies_the_conditions_of_a_minimum_to_twelve_digits(loss, kind, seed):
    problem = case(loss, seed, **KINDS[kind])
    run = solve(problem.task(), 1000)
    assert problem.broken(run.state) <= FLOOR * max(1.0, np.abs(problem.y).max())


@pytest.mark.parametrize("loss", [Logistic(), PoissonLog()], ids=lambda loss: loss.name)
def test_many_rows_start_from_some_of_them_and_end_at_the_same_floor(loss, seed):
    problem = case(loss, seed, n=6000, alpha=0.02)
    run = solve(problem.task(), 1000)
    assert problem.broken(run.state) <= FLOOR * max(1.0, np.abs(problem.y).max())
    assert len(run.history) < 20


@pytest.mark.parametrize("kind", ["lasso", "elastic net", "bounds", "free columns"])
def test_the_squared_loss_gives_the_lasso(kind, seed):
    problem = case(Squared(), seed, **KINDS[kind])
    problem.offset[:] = 0.0
    own = solve(problem.task(), 1000).state
    source = Memory(problem.X, problem.y, problem.weight)
    other = solve_squares(GramLasso(source, problem.strengths, True, False), 1e-12, 10_000).state
    assert np.abs(own.coef - other.coef).max() <= 1e-12
    assert abs(own.intercept - other.intercept) <= 1e-12


def wide(seed: int, n: int, d: int) -> Case:
    problem = case(Logistic(), seed, n=n, d=d, alpha=0.02, free=2)
    X = problem.X * (np.random.default_rng(seed).random(problem.X.shape) < 0.2)
    return replace(problem, X=X)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_working_set_of_many_columns_ends_at_the_same_floor(is_sparse, seed):
    problem = wide(seed, 400, score_path.WIDE + 200)
    task = problem.task()
    if is_sparse:
        source = Memory(sp.csr_array(problem.X), problem.y, problem.weight, None, problem.offset)
        task = GlmTask(source, problem.loss, problem.strengths, True)
    assert score_path.is_wide(task)
    state = solve(task, 1000).state
    assert problem.broken(state) <= FLOOR
    assert 0 < np.count_nonzero(state.coef) < 200


@pytest.mark.parametrize("kind", ["lasso", "elastic net", "bounds", "free columns", "plain rows"])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_alpha_max_is_the_least_alpha_without_penalised_weights(loss, kind, seed):
    problem = case(loss, seed, **KINDS[kind])
    task = problem.task()
    most = alpha_max(task)
    penalised = problem.strengths.factors > 0
    above, below = (solve(task.at_strength(most * share), 1000).state.coef for share in (1 + 1e-9, 0.98))
    assert not above[penalised].any()
    assert below[penalised].any()


@pytest.mark.parametrize("d", [12, score_path.WIDE + 100])
def test_a_path_holds_the_single_solutions_in_the_order_asked(d, seed):
    problem = wide(seed, 300, d) if d > score_path.WIDE else case(PoissonLog(), seed)
    task = problem.task()
    most = alpha_max(task)
    alphas = most * np.array([0.3, 1.0, 0.1, 0.7])
    path = solve_path(task, alphas, 1e-10, 1000)
    for k, alpha in enumerate(alphas):
        alone = solve(task.at_strength(alpha), 1000).state
        assert np.abs(path.coef[k] - alone.coef).max() <= 1e-6
        assert abs(path.intercept[k] - alone.intercept) <= 1e-6
        at = replace(problem, strengths=replace(problem.strengths, alpha=float(alpha)))
        found = at.objective(replace(alone, coef=path.coef[k], intercept=float(path.intercept[k])))
        assert found <= at.objective(alone) * (1 + 1e-10)
    assert list(path.n_nonzero[[1, 3, 0, 2]]) == sorted(path.n_nonzero)


def test_a_column_that_does_not_vary_gets_no_weight(seed):
    problem = case(PoissonLog(), seed)
    problem.X[:, 5] = 0.1
    state = solve(problem.task(), 1000).state
    assert state.coef[5] == 0.0
    assert problem.broken(state) <= FLOOR


def test_the_same_column_twice_is_no_obstacle(seed):
    problem = case(Logistic(), seed)
    problem.X[:, 1] = problem.X[:, 0]
    problem.strengths.factors[:2] = 1.0
    assert problem.broken(solve(problem.task(), 1000).state) <= FLOOR


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("loss", [Logistic(), PoissonLog()], ids=lambda loss: loss.name)
def test_large_sets_of_sparse_columns_go_by_coordinate_descent_to_the_same_floor(loss, l1_ratio, seed, monkeypatch):
    monkeypatch.setattr(score_path, "MOST_GRAM", 0)
    rng = np.random.default_rng(seed)
    for bounds in (False, True):
        problem = case(loss, seed, n=400, d=score_path.WIDE + 100, alpha=0.03, l1_ratio=l1_ratio, bounds=bounds, free=2)
        problem = replace(problem, X=np.where(rng.random(problem.X.shape) < 0.1, problem.X, 0.0))
        source = Memory(sp.csr_array(problem.X), problem.y, problem.weight, None, problem.offset)
        state = solve(GlmTask(source, problem.loss, problem.strengths, True), 1000).state
        assert 0 < np.count_nonzero(state.coef) < 400
        assert problem.broken(state) <= 1e-11
        alone = solve(problem.task(), 1000).state
        assert np.abs(state.coef - alone.coef).max() <= 1e-7


def test_rows_in_batches_give_the_same_bits(seed):
    problem = case(PoissonLog(), seed, n=3000)
    problem.offset[:] = 0.0
    sources = (
        memory(problem.X, problem.y, problem.weight, block_rows=256),
        batches(problem.X, problem.y, problem.weight, block_rows=256, cuts=[700, 701, 2000]),
    )
    tasks = [GlmTask(source, problem.loss, problem.strengths, True) for source in sources]
    states = [solve(task, 1000).state for task in tasks]
    assert states[0].intercept == states[1].intercept
    assert (states[0].coef == states[1].coef).all()
    proofs = [prove(task, task.to_point(states[0]), 0.0).gap for task in tasks]
    assert proofs[0] == proofs[1]
