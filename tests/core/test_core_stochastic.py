"""Claims about the compiled loops over rows: each step is the formula, on any storage, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.columns import Codes, Columns, Dense, Number
from certifit.data.source import Block

N, D = 211, 9
POWER = 1.5
CONSTANT, INVERSE, INVERSE_ROOT = range(3)


def slope(loss, y, z):
    """dl/dz in plain NumPy: logistic, Poisson, Gamma, squared, Tweedie."""
    mu = np.exp(z)
    a, b = 2 - POWER, POWER - 1
    return [1 / (1 + np.exp(-z)) - y, mu - y, 1 - y / mu, z - y, mu**a - y * mu**-b][loss]


def stepped(X, y, offset, order, strengths, fit_intercept, loss, batch, size_at, w, b):
    """Every state of a pass, step by step."""
    states = []
    for t, begin in enumerate(range(0, len(order), batch)):
        rows = order[begin : begin + batch]
        r = slope(loss, y[rows], offset[rows] + b + X[rows] @ w)
        w = w - size_at(t) * (X[rows].T @ r / len(rows) + strengths * w)
        b = b - size_at(t) * r.mean() * fit_intercept
        states.append(np.append(w, b))
    return np.array(states)


@pytest.fixture
def problem(rng):
    X = np.where(rng.random((N, D)) < 0.5, 0.0, rng.normal(size=(N, D)))
    y = rng.integers(0, 2, N).astype(float) + 0.25
    return X, y, rng.normal(size=N) / 10, rng.permutation(np.r_[np.arange(N), np.arange(40)]), rng.normal(size=D) / 9


def wide(X):
    """CSR with so many columns that rows are read entry by entry."""
    return sp.csr_array(np.hstack([X, np.zeros((len(X), 40))]))


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("loss", range(5))
def test_a_pass_is_its_steps_and_the_sums_are_those_of_all_states(core, problem, loss, batch, is_sparse):
    X, y, offset, order, w = problem
    strengths = np.where(np.arange(D) % 3, 0.3, 0.0)
    expected = stepped(X, y, offset, order, strengths, True, loss, batch, lambda t: 0.1 / (1 + 0.01 * (t + 5)), w, 0.2)
    if is_sparse:
        X, w, strengths = wide(X), np.append(w, np.zeros(40)), np.append(strengths, np.full(40, 0.3))
    before = np.ones(len(w))
    weights, b, sums, sum_b, n_steps, is_finite = core.stochastic_pass(
        Block(X, None, None).rows, y, offset, order, strengths, True, loss, POWER, batch, INVERSE, 0.1, 0.01, w, 0.2,
        before, 3.0, 5,
    )  # fmt: skip
    assert n_steps == 5 + len(expected)
    assert is_finite
    np.testing.assert_allclose(np.append(weights[:D], b), expected[-1], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(np.append(sums[:D] - 1, sum_b - 3), expected.sum(axis=0), rtol=1e-10, atol=1e-11)
    assert (before == 1).all()
    if is_sparse:
        assert (weights[D:] == 0).all()
        assert (sums[D:] == 1).all()


def test_the_squared_loss_and_single_rows_are_the_rule_of_widrow_and_hoff(core, rng):
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    w = np.zeros(4)
    for x_i, y_i in zip(X, y, strict=True):
        w = w + 0.05 * (y_i - x_i @ w) * x_i
    found = core.stochastic_pass(
        [("dense", X)],
        y,
        None,
        None,
        np.zeros(4),
        False,
        3,
        0.0,
        1,
        CONSTANT,
        0.05,
        0.0,
        np.zeros(4),
        0.0,
        None,
        0.0,
        0,
    )
    np.testing.assert_allclose(found[0], w, rtol=1e-13)
    assert found[1] == 0.0
    assert found[2] is None


@pytest.mark.parametrize("schedule", [CONSTANT, INVERSE, INVERSE_ROOT])
def test_schedules_are_their_formulas(core, schedule):
    """On x = 1, y = 0, w = 1 a squared step multiplies w by 1 - step_t."""
    found = core.stochastic_pass(
        [("dense", np.ones((6, 1)))], np.zeros(6), None, None, np.zeros(1), False, 3, 0.0, 1, schedule, 0.5, 0.3,
        np.ones(1), 0.0, None, 0.0, 10,
    )  # fmt: skip
    t = 10 + np.arange(6)
    size = [np.full(6, 0.5), 0.5 / (1 + 0.3 * t), 0.5 / np.sqrt(1 + 0.3 * t)][schedule]
    np.testing.assert_allclose(found[0], np.prod(1 - size), rtol=1e-14)


def test_a_shrinkage_to_nothing_and_beyond_is_the_same_on_thin_columns(core, problem):
    X, y, offset, order, w = problem
    for strength in (10.0, 15.0, 25.0):  # step 0.1: factors 0, -0.5 and -1.5
        strengths = np.full(D + 40, strength)
        dense, thin = (
            core.stochastic_pass(
                Block(rows, None, None).rows, y, offset, order[:50], strengths, True, 0, 0.0, 1, CONSTANT, 0.1, 0.0,
                np.append(w, np.zeros(40)), 0.0, np.zeros(D + 40), 0.0, 0,
            )
            for rows in (wide(X).toarray(), wide(X))
        )  # fmt: skip
        np.testing.assert_allclose(thin[0], dense[0], rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(thin[2], dense[2], rtol=1e-9, atol=1e-12)


def test_tables_of_numbers_and_codes_take_the_same_steps(core, problem, rng):
    X, y, offset, order, _ = problem
    codes = rng.integers(0, 3, N).astype(np.int32)
    table = Columns(
        [Dense(X[:, :4].astype(np.float32)), Number(X[:, 4].copy()), Codes(codes, np.array([-1, 0, 1], np.int32), 2)], N
    )
    options = (np.full(7, 0.01), True, 0, 0.0, 3, CONSTANT, 0.1, 0.0, np.zeros(7), 0.0, np.zeros(7), 0.0, 0)
    of_table = core.stochastic_pass(table.core(), y, offset, order, *options)
    of_array = core.stochastic_pass([("dense", table.toarray())], y, offset, order, *options)
    for own, other in zip(of_table[:4], of_array[:4], strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12)


def test_steps_end_where_a_score_leaves_the_numbers(core):
    X = np.full((500, 1), 10.0)
    found = core.stochastic_pass(
        [("dense", X)], np.ones(500), None, None, np.zeros(1), False, 3, 0.0, 1, CONSTANT, 1e3, 0.0, np.zeros(1), 0.0,
        None, 0.0, 0,
    )  # fmt: skip
    assert not found[5]
    assert found[4] < 500


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_the_perceptron_steps_where_the_margin_is_not_above_the_threshold(core, rng, is_sparse):
    X = rng.integers(-3, 4, size=(N, D)).astype(float)
    y = rng.choice([-1.0, 1.0], N)
    order = rng.permutation(N)
    w, b, count = rng.integers(-2, 3, D).astype(float), 1.0, 0
    start = w.copy()
    for i in order:
        if y[i] * (X[i] @ w + b) <= 2.0:
            w, b, count = w + 0.5 * y[i] * X[i], b + 0.5 * y[i], count + 1
    rows = Block(wide(X) if is_sparse else X, None, None).rows
    start = np.append(start, np.zeros(40)) if is_sparse else start
    found = core.perceptron_pass(rows, y, order, 2.0, 0.5, True, start, 1.0)
    assert np.array_equal(found[0][:D], w)
    assert found[1:] == (b, count, True)


def test_row_squares_and_hashes_are_of_what_stands_in_the_rows(core, problem):
    X, y, _, _, _ = problem
    np.testing.assert_allclose(core.row_squares([("dense", X)], 2), np.square(X).sum(axis=1), rtol=1e-14)
    twice = np.vstack([X, X[::-1]])
    y = np.append(y, y[::-1])
    hashes = core.row_hashes([("dense", twice)], y, None, 2)
    assert np.array_equal(hashes, np.append(hashes[:N], hashes[:N][::-1]))
    assert len(np.unique(hashes)) == len(np.unique(np.column_stack([twice, y]), axis=0))
    assert np.array_equal(hashes, core.row_hashes([("dense", np.where(twice == 0, -0.0, twice))], y, None, 1))
    assert np.array_equal(hashes, core.row_hashes(Block(sp.csr_array(twice), None, None).rows, y, None, 1))


def test_an_order_beyond_the_rows_is_refused(core):
    with pytest.raises(ValueError, match="order holds a row that is not there"):
        core.perceptron_pass(
            [("dense", np.ones((2, 1)))], np.ones(2), np.array([0, 2]), 0.0, 1.0, True, np.ones(1), 0.0
        )
