"""Claims about the descent of the multipliers of a linear machine: every round raises the dual, and rests end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.source import Block
from tests.repetitions import some_of

N, D = 150, 40
LONGEST = 128  # passes that a row may rest


@pytest.fixture
def problem(rng):
    X = np.where(rng.random((N, D)) < 0.8, 0.0, rng.normal(size=(N, D)))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, N)


def start(n, d):
    return np.zeros(n), np.zeros(d), 0.0, np.ones(n, dtype=np.uint8), np.zeros(n, dtype=np.uint8)


@pytest.mark.parametrize("diagonal", [0.0, 0.3], ids=["hinge", "squared"])
@pytest.mark.parametrize("stored", [np.ascontiguousarray, sp.csr_array], ids=["dense", "sparse"])
def test_rounds_raise_the_dual_to_the_conditions_of_the_optimum(core, problem, stored, diagonal):
    X, y, bound = problem
    bound = bound if diagonal == 0 else np.full(N, np.inf)
    parts = (y, bound, np.full(N, diagonal), np.square(X).sum(axis=1), 0.0)
    state, last = start(N, D), 0.0
    for seed in range(some_of(200)):
        state, mean, worst, n_visits = core.dual_descent(Block(stored(X), None, None).rows, *parts, *state, 5 * N, seed)
        a, w = state[0], state[1]
        dual = a.sum() - diagonal * (a @ a) / 2 - w @ w / 2
        assert dual >= last - 1e-9 and n_visits >= 5 * N and mean.shape == (D,)
        last = dual
    assert np.allclose(w, X.T @ (y * a), atol=1e-9)
    slope = y * (X @ w) - 1 + diagonal * a
    assert (a >= 0).all() and (a <= bound).all() and worst < 1e-6
    assert (slope[a == 0] >= -1e-6).all() and (slope[a == bound] <= 1e-6).all()
    assert np.abs(slope[(a > 0) & (a < bound)]).max(initial=0.0) < 1e-6


def test_the_sum_of_an_intercept_goes_to_zero(core, problem):
    X, y, bound = problem
    squares = np.square(X).sum(axis=1)
    parts, state = (y, bound, np.zeros(N), squares, squares.mean()), start(N, D)
    for seed in range(some_of(200)):
        state, *_ = core.dual_descent(Block(X, None, None).rows, *parts, *state, 5 * N, seed)
    assert abs(y @ state[0]) < 1e-6 * state[0].sum()


def test_a_row_that_rests_longest_still_has_its_turn(core):
    X, one = np.array([[1.0], [1.0]]), np.ones(2)
    parts = (np.array([1.0, -1.0]), one, np.zeros(2), one, 0.0)
    waits = np.array([1, LONGEST], dtype=np.uint8), np.array([0, LONGEST], dtype=np.uint8)
    state, *_ = core.dual_descent(Block(X, None, None).rows, *parts, *start(2, 1)[:3], *waits, 3, 0)
    assert state[0][1] == 0  # the row's slope is -1 - w: it would move if it were asked
    state, *_ = core.dual_descent(Block(X, None, None).rows, *parts, *state, 20, 1)
    assert state[0][1] > 0


@pytest.mark.parametrize(("name", "value"), [("wait", 0), ("wait", LONGEST + 1), ("due", LONGEST + 1)])
def test_rests_that_no_row_can_have_are_refused(core, name, value):
    one = np.ones(2)
    rests = {"wait": np.ones(2, dtype=np.uint8), "due": np.zeros(2, dtype=np.uint8)}
    rests[name] = np.array([1, value], dtype=np.uint8)
    sizes = {"bound": one, "diagonal": one, "squares": one, "ridge": 0.0, "a": one / 2, "weights": one[:1]}
    with pytest.raises(ValueError, match=name):
        core.dual_descent(
            x=Block(np.ones((2, 1)), None, None).rows, y=one, **sizes, intercept=0.0, **rests, n_visits=9, seed=0
        )
