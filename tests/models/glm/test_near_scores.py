"""Self-concordance near the scores of the rows: the bound is never below the true excess, for every convex pair."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certifit.data.source import Memory
from certifit.mathematics.families import FAMILIES
from certifit.mathematics.losses.families import loss_of
from certifit.mathematics.losses.user import Loss
from certifit.models.glm.certificate import Decrement
from certifit.models.glm.concordance import NearScores, near_scores
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import Weights

N, D = 300, 3
PAIRS = [
    ("bernoulli", "probit"),
    ("bernoulli", "cloglog"),
    ("bernoulli", "log"),
    ("bernoulli", "identity"),
    ("poisson", "identity"),
    ("poisson", "sqrt"),
    ("gamma", "inverse"),
    ("inverse-gaussian", "inverse"),
    ("inverse-gaussian", "inverse-squared"),
]


def problem(family, link, rng):
    """Rows with means well inside the legal ones, and their task."""
    X = rng.uniform(-1, 1, size=(N, D))
    truth = np.array([0.2, -0.15, 0.1])
    middle = {"log": -1.0, "identity": 0.5, "probit": 0.0, "cloglog": -0.5}.get(link, 1.0)
    mu = FAMILIES[family].link(link).mean(middle + (X @ truth) * (0.5 if link == "identity" else 1.0))
    drawn = {
        "bernoulli": lambda: (rng.random(N) < mu).astype(float),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(4.0, mu / 4),
        "inverse-gaussian": lambda: rng.wald(mu, 4.0),
    }
    free = Strengths(0.0, 0.0, np.ones(D), np.full(D, -np.inf), np.full(D, np.inf))
    y = drawn[family]()
    task = GlmTask(Memory(X, y, None), loss_of(family, link), free, True)
    return np.column_stack([X, np.ones(N)]), y, np.append(np.zeros(D), middle), task


def parts(loss, rows, y, w):
    z = rows @ w
    hessian = rows.T @ (rows * loss.curvature(y, z)[:, None]) / len(y)
    return loss.value(y, z).mean(), rows.T @ loss.slope(y, z) / len(y), hessian


def minimum(loss, rows, y, w):
    """By Newton's method with halved steps, in NumPy."""
    for _ in range(60):
        value, gradient, hessian = parts(loss, rows, y, w)
        step = np.linalg.solve(hessian, -gradient)
        while not parts(loss, rows, y, w + step)[0] <= value and np.abs(step).max() > 1e-16:
            step = step / 2
        w = w + step
    return w


@pytest.mark.parametrize("family, link", PAIRS)
@pytest.mark.slow
def test_the_bound_is_never_below_the_true_excess_and_near_it_close_by(family, link, rng):
    rows, y, start, task = problem(family, link, rng)
    loss = task.loss
    best = minimum(loss, rows, y, start)
    least = parts(loss, rows, y, best)[0]
    proven = 0
    for size in np.geomspace(1e-6, 0.3, 60):
        w = best + size * rng.normal(size=D + 1)
        value, gradient, hessian = parts(loss, rows, y, w)
        if not math.isfinite(value):
            continue
        near = near_scores(task, task.to_point(Weights(w[:-1], w[-1])))
        if near is None:
            continue
        decrement = math.sqrt(gradient @ np.linalg.solve(hessian, gradient))
        furthest = math.sqrt(np.einsum("ij,ij->i", rows @ np.linalg.inv(hessian), rows).max())
        bound = Decrement(decrement, 0.0, near.concordance * furthest)
        if not near.covers(bound.q):
            continue
        proven += 1
        assert bound.excess() >= (value - least) * (1 - 1e-6) - 1e-15
        if size < 1e-4:
            assert bound.excess() <= 1.1 * (value - least) + 1e-14
    assert proven >= 20


@pytest.mark.parametrize("family, link", PAIRS)
def test_the_concordance_holds_as_far_as_there_is_room(family, link, rng):
    rows, y, start, task = problem(family, link, rng)
    near = near_scores(task, task.to_point(Weights(start[:-1], start[-1])))
    z, step = rows @ start, 1e-5
    for away in np.linspace(-near.room, near.room, 9):
        at = z + away
        third = (task.loss.curvature(y, at + step) - task.loss.curvature(y, at - step)) / (2 * step)
        assert (np.abs(third) <= near.concordance * task.loss.curvature(y, at) * (1 + 1e-4) + 1e-6).all()


def test_one_m_for_all_scores_leaves_all_room(rng):
    *_, task = problem("bernoulli", "probit", rng)
    task.loss = loss_of("bernoulli", "logit")
    assert near_scores(task, np.zeros(D + 1)) == NearScores(1.0, math.inf)


def test_a_loss_that_is_not_convex_or_not_known_to_be_has_no_bound(rng):
    *_, task = problem("gamma", "inverse", rng)
    task.loss = loss_of("gamma", "identity")
    assert near_scores(task, np.append(np.zeros(D), 1.0)) is None
    task.loss = Loss(lambda y, z: (y - z) ** 2, lambda y, z: 2 * (z - y))
    assert near_scores(task, np.zeros(D + 1)) is None


def test_a_proof_that_needs_more_room_than_there_is_is_none():
    near = NearScores(concordance=2.0, room=0.05)
    assert near.covers(0.09) and not near.covers(0.1) and not near.covers(1.0) and not near.covers(math.nan)
