"""Claims about learning row by row: the rule of the course, the same optimum as anyone's, weights that repeat rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.source import Batches, Block, Memory, Source
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, ScoreLoss, Squared
from certifit.minimise.problem import Problem, Stop
from certifit.minimise.row_pass import RowOrder, one_pass
from certifit.minimise.steps import COLUMNS
from certifit.minimise.stochastic import SGD, AveragedSGD, MiniBatch

D = 5


@dataclass
class Rows(Problem):
    """Mean loss of the scores b + x'w of rows in an array, plus strengths."""

    source: Source
    loss: ScoreLoss
    strengths: np.ndarray
    fit_intercept: bool = True
    best: float | None = None

    def __post_init__(self):
        self.size = self.source.n_features + self.fit_intercept
        block = self.source.gather()
        X = block.X.toarray() if sp.issparse(block.X) else block.X
        self.A = np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X
        self.y, self.weight = block.y, np.ones(len(X)) if block.weight is None else block.weight
        self.offset = 0.0 if block.offset is None else block.offset
        self.all_strengths = np.append(self.strengths, 0.0) if self.fit_intercept else self.strengths

    def value_gradient(self, x):
        z, total = self.A @ x + self.offset, self.weight.sum()
        value = self.weight @ self.loss.value(self.y, z) / total + self.all_strengths @ x**2 / 2
        return float(value), self.A.T @ (self.weight * self.loss.slope(self.y, z)) / total + self.all_strengths * x

    def hessian(self, x):
        z = self.A @ x + self.offset
        bend = self.weight * self.loss.curvature(self.y, z) / self.weight.sum()
        return (self.A.T * bend) @ self.A + np.diag(self.all_strengths)

    def gap(self, x, value, gradient):
        return None if self.best is None else value - self.best

    def solved(self):
        """The minimum by plain Newton steps."""
        x = np.zeros(self.size)
        for _ in range(50):
            x = x - np.linalg.solve(self.hessian(x), self.value_gradient(x)[1])
        self.best = self.value_gradient(x)[0]
        return x


def drawn(rng, loss, n=400):
    X = rng.normal(size=(n, D))
    z = X @ np.linspace(-1, 1, D) / 2 + 0.3
    y = {
        "Logistic": lambda: (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float),
        "PoissonLog": lambda: rng.poisson(np.exp(z)).astype(float),
        "GammaLog": lambda: rng.gamma(2.0, np.exp(z) / 2),
        "Squared": lambda: z + rng.normal(size=n) / 4,
        "TweedieLog": lambda: np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2.0, np.exp(z) / 2)),
    }[type(loss).__name__]()
    return X, y


LOSSES = [Logistic(), PoissonLog(), GammaLog(), Squared(), TweedieLog(1.5)]
SOLVERS = [SGD(), MiniBatch(batch_rows=16), AveragedSGD()]


def test_lms_is_three_lines_of_numpy(rng):
    X, y = drawn(rng, Squared(), 50)
    w = np.zeros(D)
    for x_i, y_i in zip(X, y, strict=True):
        w += 0.02 * (y_i - w @ x_i) * x_i
    problem = Rows(Memory(X, y), Squared(), np.zeros(D), fit_intercept=False)
    solver = SGD(step=0.02, schedule="constant", shuffle=False)
    found = solver.minimise(problem, np.zeros(D), Stop(max_iter=1))
    np.testing.assert_allclose(found.x, w, rtol=1e-13)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_every_stochastic_solver_comes_within_a_thousandth_of_the_optimum(rng, loss, solver):
    problem = Rows(Memory(*drawn(rng, loss)), loss, np.full(D, 0.01))
    problem.solved()
    found = solver.minimise(problem, np.zeros(D + 1), Stop(tol=1e-3, max_iter=500))
    assert found.converged, found.reason
    assert found.value - problem.best <= 1e-3 * found.value
    rows = found.trace
    assert [row["iteration"] for row in rows] == list(range(len(rows)))
    assert rows[-1]["objective"] == found.value
    assert tuple(rows[0]) == COLUMNS


def test_a_loss_in_python_takes_the_same_steps_as_the_compiled_one(rng):
    class Own(Logistic):
        code = None

    X, y = drawn(rng, Logistic(), 60)
    for solver in (SGD(step=0.1), AveragedSGD(step=0.1, batch_rows=7)):
        a, b = (
            solver.minimise(Rows(Memory(X, y), loss, np.full(D, 0.1)), np.zeros(D + 1), Stop(max_iter=3))
            for loss in (Logistic(), Own())
        )
        np.testing.assert_allclose(a.x, b.x, rtol=1e-11)


@pytest.mark.parametrize("solver", [SGD(), MiniBatch(), AveragedSGD()], ids=lambda solver: type(solver).__name__)
def test_weight_two_is_the_row_twice_in_any_order_to_the_last_bit(rng, solver):
    X, y = drawn(rng, Logistic(), 80)
    weight = rng.integers(0, 4, 80).astype(float)
    repeated = rng.permutation(np.repeat(np.arange(80), weight.astype(int)))
    stop, start = Stop(tol=0.0, max_iter=4), np.zeros(D + 1)
    weighted = solver.minimise(Rows(Memory(X, y, weight), Logistic(), np.full(D, 0.1)), start, stop)
    twice = solver.minimise(Rows(Memory(X[repeated], y[repeated]), Logistic(), np.full(D, 0.1)), start, stop)
    # The default step is of the steepest row, so both have the same.
    assert [row["step"] for row in weighted.trace] == [row["step"] for row in twice.trace]


def test_fractions_of_weights_are_shares_of_the_visits(rng):
    weight = np.array([0.5, 0.25, 0.0, 1.25, 2.0])
    run = Block(np.arange(5.0)[:, None], np.zeros(5), weight)
    visits = np.concatenate([RowOrder(True, 0).visits(run, epoch, 0) for epoch in range(2000)])
    share = np.bincount(visits, minlength=5) / len(visits)
    np.testing.assert_allclose(share, weight / weight.sum(), atol=0.02)
    assert share[2] == 0
    assert len(visits) == 4 * 2000  # an epoch has as many visits as rows with a weight


def test_every_chunking_and_any_number_of_threads_give_the_same_bits(rng):
    X, y = drawn(rng, Logistic(), 300)
    cuts = [0, 7, 90, 91, 300]

    def chunks():
        return (Block(X[a:b], y[a:b], None, a) for a, b in pairwise(cuts))

    whole, cut = Memory(X, y), Batches(chunks, list("abcde"))
    found = [
        SGD().minimise(Rows(source, Logistic(), np.full(D, 0.1)), np.zeros(D + 1), Stop(max_iter=3, tol=0.0)).x
        for source in (whole, cut)
    ]
    assert np.array_equal(*found)


def test_sparse_rows_take_the_steps_of_dense_ones(rng):
    X, y = drawn(rng, PoissonLog(), 120)
    X = np.hstack([np.where(rng.random(X.shape) < 0.6, 0.0, X), np.zeros((120, 40))])
    stop = Stop(max_iter=3, tol=0.0)
    dense, thin = (
        AveragedSGD().minimise(Rows(Memory(rows, y), PoissonLog(), np.full(D + 40, 0.1)), np.zeros(D + 41), stop).x
        for rows in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(thin, dense, rtol=1e-9, atol=1e-12)


def test_divergence_is_told_with_the_largest_stable_step(rng):
    X, y = drawn(rng, Squared())
    problem = Rows(Memory(X, y), Squared(), np.zeros(D))
    largest = 2 / (np.square(X).sum(axis=1) + 1).max()
    found = SGD(step=20 * largest, schedule="constant").minimise(problem, np.zeros(D + 1), Stop(max_iter=50))
    assert not found.converged
    assert found.reason.startswith("Diverged in epoch 1")
    told = float(re.search(r"row's loss\) = ([\d.e+-]+) ", found.reason)[1])
    assert (1 - 1e-5) * largest < told <= largest
    np.testing.assert_allclose(found.largest_step, largest, rtol=1e-12)
    assert found.value <= problem.value_gradient(np.zeros(D + 1))[0]  # the best state seen
    stable = SGD(step=found.largest_step / 2, schedule="constant").minimise(problem, np.zeros(D + 1), Stop(max_iter=50))
    assert "Diverged" not in stable.reason


def test_offsets_and_starts_are_used(rng):
    X, y = drawn(rng, PoissonLog())
    offset = rng.normal(size=len(y))
    source = Memory(X, y, offset=offset)
    problem = Rows(source, PoissonLog(), np.full(D, 0.05))
    best = problem.solved()
    found = AveragedSGD().minimise(problem, np.zeros(D + 1), Stop(tol=1e-3, max_iter=3000))
    assert found.converged
    again = SGD(step=1e-9).minimise(problem, best, Stop(tol=0.0, max_iter=1))
    np.testing.assert_allclose(again.x, best, atol=1e-5)


def test_step_tol_stops_on_the_move_of_an_epoch(rng):
    problem = Rows(Memory(*drawn(rng, Squared())), Squared(), np.zeros(D))
    found = SGD(schedule="inverse").minimise(problem, np.zeros(D + 1), Stop(tol=0.0, step_tol=1e-3, max_iter=1000))
    assert found.converged
    assert found.trace[-1]["step"] <= 1e-3 < found.trace[-2]["step"]
    assert "step_tol" in found.reason


def test_one_pass_goes_on_where_the_last_one_ended(rng):
    X, y = drawn(rng, Logistic(), 100)
    source, solver, strengths = Memory(X, y), SGD(step=0.1, decay=0.01), np.zeros(D)
    start = solver.start(source, Logistic(), True, np.zeros(D), 0.0)
    learn = partial(one_pass, loss=Logistic(), strengths=strengths, fit_intercept=True, visits=None)
    whole = learn(source.block, state=start)
    parts = learn(source.block.part(40, 100), state=learn(source.block.part(0, 40), state=start))
    assert np.array_equal(whole.weights, parts.weights)
    assert whole.n_steps == parts.n_steps == 100


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"step": -1.0}, "step must be a number > 0"),
        ({"schedule": "linear"}, "schedule must be one of"),
        ({"decay": -1.0}, "decay must be a number >= 0"),
        ({"batch_rows": 0}, "batch_rows must be an integer >= 1"),
        ({"random_state": None}, "random_state must be an integer >= 0"),
    ],
)
def test_what_is_not_legal_is_refused(given, word):
    with pytest.raises(ValueError, match=word):
        SGD(**given)
