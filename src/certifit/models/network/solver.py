"""Ways down: Adam and stochastic gradient descent over batches, gradient descent on all rows, L-BFGS.

An epoch visits every row once, in an order that the contents of the rows and the seed decide; a row of weight 2 is
visited twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.minimum import minimize
from certifit.minimise.row_pass import RowOrder
from certifit.minimise.steps import NAN, Steps, is_limited, time_is_up
from certifit.models.network.task import KINDS, NetworkTask
from certifit.runtime import announce_work, core, n_threads, one_blas_thread

BETAS = (0.9, 0.999, 1e-8)  # of Adam
DIVERGED = "The steps diverged: {}. Take a smaller learning_rate."
LEFT = "the weights left the numbers"
TOO_HIGH = "The loss ended above that of the best constant: the steps were too few (max_iter), or too large."
USUAL_EPOCHS = 30  # what a fit is expected to take, if it may
WEIGHT_SECONDS = 6e-10  # per row and weight: forward, back and the step
NOT_YET = "The loss still fell at the last epoch: raise max_iter, or least_fall."


@dataclass(frozen=True)
class Rules:
    """How to walk: the parameters of a model that are about steps."""

    solver: str
    step: float
    schedule: str
    decay: float
    momentum: float
    batch: int
    max_iter: int
    tol: float
    patience: int
    shuffle: bool
    seed: int


@dataclass
class Walk:
    """Where a run is: parameters, velocity or moments, and the steps so far. best: of the epoch of the least loss."""

    parameters: Array
    first: Array
    second: Array
    n_steps: int = 0
    n_passes: int = 0
    reason: str = ""
    best: Array | None = None
    steps: Steps = field(default_factory=lambda: Steps(first=1))

    @staticmethod
    def of(parameters: Array, dtype: str) -> Walk:
        """A walk that begins here."""
        point = np.ascontiguousarray(parameters, dtype=KINDS[dtype])
        return Walk(point, np.zeros_like(point), np.zeros_like(point))


@one_blas_thread
def solve(task: NetworkTask, rules: Rules, start: Array) -> Walk:
    """A walk from one start to its end. With held-out rows the best of all epochs is its end."""
    n_epochs = min(rules.max_iter, USUAL_EPOCHS)
    what = f"{n_epochs} epochs of a network of {len(start):,} weights on {task.n_rows:,} rows"
    seconds = n_epochs * task.n_rows * float(len(start)) * WEIGHT_SECONDS
    announce_work(seconds, what, "Use fewer units, classes or rows.")
    walk = Walk.of(start, task.dtype)
    if rules.solver == "lbfgs":
        return _lbfgs(task, rules, walk)
    step = _descend if rules.solver == "gradient-descent" else epoch
    return _epochs(task, rules, walk, step)


def _epochs(
    task: NetworkTask, rules: Rules, walk: Walk, step: Callable[[NetworkTask, Rules, Walk, RowOrder], float]
) -> Walk:
    order = RowOrder(rules.shuffle, rules.seed)
    best, since, kept = np.inf, 0, walk.parameters
    for _ in range(rules.max_iter):
        objective = step(task, rules, walk, order)
        held = task.held_loss(walk.parameters) if task.held is not None else NAN
        if not (np.isfinite(walk.parameters).all() and np.isfinite(objective)):
            raise ValueError(DIVERGED.format(LEFT))
        walk.steps.add(objective, held_out=held)
        watched = objective if task.held is None else held
        since = 0 if watched < best - rules.tol else since + 1
        if watched < best:
            best, kept = watched, walk.parameters
        if since >= rules.patience or walk.steps.is_over:
            break
    else:
        walk.reason = NOT_YET
    walk.reason = walk.steps.reason or walk.reason
    walk.best = kept
    if task.held is not None:
        walk.parameters = kept
    return walk


def epoch(task: NetworkTask, rules: Rules, walk: Walk, order: RowOrder) -> float:
    """One pass over all rows in batches; the mean of the losses as they were met, and the penalty."""
    call = core.network_train_short if task.dtype == "float32" else core.network_train
    method = "adam" if rules.solver == "adam" else "descent"
    pace = np.array([rules.step, rules.decay, rules.momentum, *BETAS, task.alpha])
    walk.n_passes += 1
    loss, n_visits = 0.0, 0
    for part in task.parts(ordered=order.shuffle):
        rows = np.arange(len(part.y)) if part.order is None else part.order
        visits = order.drawn(rows, part.weight, walk.n_passes, part.number)
        visits = np.ascontiguousarray(visits if part.held is None else visits[~part.held[visits]], dtype=np.int64)
        n_once = (
            rules.batch * batches_between_looks(rules.batch, len(walk.parameters))
            if is_limited()
            else max(len(visits), 1)
        )
        for some in (visits[begin : begin + n_once] for begin in range(0, len(visits), n_once)):
            out = call(
                *task.shape(),
                *task.loss.compiled,
                part.X,
                part.y,
                part.offset,
                some,
                walk.parameters,
                walk.first,
                walk.second,
                walk.n_steps,
                method,
                rules.schedule,
                pace,
                rules.batch,
                n_threads(),
            )
            walk.parameters, walk.first, walk.second, walk.n_steps = out[:4]
            loss, n_visits = loss + out[4], n_visits + len(some)
            if time_is_up():
                return float(loss / n_visits + task.penalty(walk.parameters))
    return loss / max(n_visits, 1) + task.penalty(walk.parameters)


def batches_between_looks(n_rows: int, n_weights: int) -> int:
    """Batches of so many rows that take a tenth of a second of one core: what `max_time` waits for."""
    return max(int(0.1 / (n_rows * n_weights * WEIGHT_SECONDS)), 1)


def _descend(task: NetworkTask, rules: Rules, walk: Walk, order: RowOrder) -> float:
    """One step on all rows."""
    value, gradient = task.value_gradient(walk.parameters)
    grown = 1 + rules.decay * walk.n_steps
    rate = rules.step / {"constant": 1.0, "inverse": grown, "inverse-root": np.sqrt(grown)}[rules.schedule]
    walk.first = (rules.momentum * walk.first - rate * gradient).astype(walk.first.dtype)
    walk.parameters = walk.parameters + walk.first
    walk.n_steps += 1
    walk.n_passes += 1
    return value


def _lbfgs(task: NetworkTask, rules: Rules, walk: Walk) -> Walk:
    """L-BFGS on all rows."""
    import warnings

    last: dict[bytes, tuple[float, Array]] = {}

    def both(x: Array) -> tuple[float, Array]:
        key = x.tobytes()
        if key not in last:
            last.clear()
            last[key] = task.value_gradient(x)
        return last[key]

    def tell(row: object, x: Array) -> bool:
        walk.steps.add(both(x)[0], gradient_norm=float(np.linalg.norm(both(x)[1])))
        return walk.steps.is_over

    start = np.asarray(walk.parameters, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        minimum = minimize(
            lambda x: both(x)[0],
            start,
            "lbfgs",
            lambda x: both(x)[1],
            tol=rules.tol * 1e-2,
            max_iter=rules.max_iter,
            check=False,
            callback=tell,
        )
    walk.parameters = np.ascontiguousarray(minimum.x, dtype=KINDS[task.dtype])
    walk.reason = walk.steps.reason or ("" if minimum.converged else NOT_YET)
    if not walk.steps.rows:
        walk.steps.add(both(start)[0])
    return walk
