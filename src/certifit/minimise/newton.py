"""Newton's method and quasi-Newton methods.

Newton-Raphson: x_(k+1) = x_k - t H^-1 g, t = 1 near the end, so the number of right digits doubles with every step.

Where the Hessian is not positive definite its eigenvalues are taken by their size, so the direction still points
downhill and away from saddle points. Where the gradient vanishes and a curvature is negative, the next step is along
that curvature.

Quasi-Newton methods: the curvature is learnt from how the gradient changes from step to step.

s = x_(k+1) - x_k,  y = g_(k+1) - g_k.  The inverse Hessian's stand-in B maps every new y to its s (secant condition):

    B <- (I - s y' / y's) B (I - y s' / y's) + s s' / y's,      d = -B g

It stays positive definite because the line search makes y's > 0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from certifit.data.columns import Array
from certifit.minimise.line_search import Found, first_length, search
from certifit.minimise.problem import EPS, LOWEST, NOISE, Minimised, Point, Problem, Record, Stop, Walk, norm
from certifit.runtime import one_blas_thread

NEGATIVE = 1e-8  # a curvature below minus this share of the largest is more than rounding
FLAT = 1e-4  # share of the first gradient: a point this flat with a negative curvature is near a saddle


@dataclass(frozen=True)
class Newton:
    """Second-order steps with a line search: quadratic convergence, a d x d system a step. Needs a Hessian.

    Where the problem knows no gap, the trace shows half the squared Newton decrement, g' H^-1 g / 2: an estimate. One
    step more is then made after tol is met: it costs little and squares the error. record="weights" keeps the weights
    of every step.
    """

    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"gradient", "hessian"})

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        walk = Walk(problem, start, stop, trusts_model=True, in_a_row=2, record=self.record)
        if walk.is_over and walk.knows_gap:
            return walk.result()
        model = _model(walk, walk.at)
        walk.estimate_gap(model.decrement)
        if walk.converged and model.downward is not None:
            walk.end("", False)
        while not walk.is_over:
            if not np.isfinite(model.step).all():
                walk.end("The Hessian is not finite at the last point.", False)
            elif model.downward is not None and norm(walk.at.gradient) <= FLAT * walk.first_norm:
                model = _moved(walk, _fallen(walk, model.downward), model.downward) or model
            else:
                model = _moved(walk, search(walk.evaluate, walk.at, model.step, 1.0), model.step) or model
        return walk.result()


@dataclass(frozen=True)
class _Model:
    """The quadratic at a point: the step to its minimum, what that gains, and a direction of negative curvature."""

    step: Array
    decrement: float
    downward: Array | None = None


def _moved(walk: Walk, step: Found, direction: Array) -> _Model | None:
    """Go to what a search found, and give the model there; None where the walk is over before it is needed."""
    if step.ended == "unbounded":
        walk.fall(direction, step.t * norm(direction), step.point.value)
    elif step.ended == "none":
        walk.stand_still(walk.decrement)
    elif walk.knows_gap:
        walk.move(step.point, np.nan, step.t)
        if not walk.is_over:
            model = _model(walk, step.point)
            walk.estimate_gap(model.decrement)
            return model
    else:
        model = _model(walk, step.point)
        walk.move(step.point, model.decrement, step.t, may_end=model.downward is None)
        walk.estimate_gap(model.decrement)
        return model
    return None


def _model(walk: Walk, at: Point) -> _Model:
    try:
        H = np.asarray(walk.problem.hessian(at.x), dtype=np.float64) / walk.unit
    except NotImplementedError:
        raise ValueError(
            "Solver 'newton' needs a Hessian and this problem has none. Give one, or use solver 'bfgs' or 'lbfgs'."
        ) from None
    if not np.isfinite(H).all():
        return _Model(np.full(len(at.x), np.nan), np.nan)
    return _quadratic((H + H.T) / 2, at.gradient)


@one_blas_thread
def _quadratic(H: Array, g: Array) -> _Model:
    try:
        factor = cho_factor(H, lower=True)
    except LinAlgError:
        return _indefinite(H, g)
    if (np.diag(factor[0]) ** 2 <= len(g) * EPS * np.diag(H)).any():  # singular to rounding
        return _indefinite(H, g)
    step = -cho_solve(factor, g)
    return _Model(step, -float(g @ step) / 2)


def _indefinite(H: Array, g: Array) -> _Model:
    """-|H|^-1 g: the eigenvalues by their size, of the Hessian in units that make its diagonal 1.

    No step along what neither curves nor slopes: of all minima of a flat valley the nearest.
    """
    rows = np.max(np.abs(H), axis=0)
    diagonal = np.abs(np.diag(H))
    size = np.where(diagonal > EPS * rows, diagonal, np.where(rows > 0, rows, 1.0))
    unit = 1 / np.sqrt(size)
    values, vectors = eigh(H * unit[:, None] * unit)
    largest = float(np.max(np.abs(values)))
    if largest == 0:
        return _Model(-g, float(g @ g) / 2)
    rounding = len(g) * EPS
    along = vectors.T @ (unit * g)
    along[(np.abs(values) <= rounding * largest) & (np.abs(along) <= 10 * rounding * norm(along))] = 0.0
    step = -unit * (vectors @ (along / np.maximum(np.abs(values), rounding * largest)))
    downward = None
    if values[0] < -NEGATIVE * largest:
        downward = unit * vectors[:, 0]
        downward = downward / norm(downward) * (-1.0 if float(downward @ g) > 0 else 1.0)
    return _Model(step, -float(g @ step) / 2, downward)


def _fallen(walk: Walk, direction: Array) -> Found:
    """A step along a negative curvature: shrunk until the value falls, then doubled while it falls on."""
    at, t = walk.at, 0.1 * norm(walk.at.x) or 1.0
    noise = NOISE * abs(at.value)
    point = walk.evaluate(at.x + t * direction)
    while not (point.is_inside and point.value < at.value - noise):
        t /= 4
        if not (at.x + t * direction != at.x).any() or t == 0:
            return Found(0.0, at, "none")
        point = walk.evaluate(at.x + t * direction)
    while True:
        further = walk.evaluate(at.x + 2 * t * direction)
        if further.value < LOWEST * max(1.0, abs(at.value)):
            return Found(t, point, "unbounded")
        if not (further.is_inside and further.value < point.value):
            return Found(t, point)
        t, point = 2 * t, further


SMALLEST = 1e-150  # changes of the gradient, relative to the first one, whose squares are still numbers

FLATTER = {"bfgs": 0.5, "lbfgs": 0.9}  # share of the slope at which a line search ends


class _Memory(Protocol):
    """What is known of the inverse Hessian."""

    def times(self, g: Array) -> Array: ...
    def learn(self, s: Array, y: Array) -> None: ...
    def forget(self) -> None: ...
    @property
    def is_empty(self) -> bool: ...


@dataclass(frozen=True)
class BFGS:
    """The whole inverse Hessian's stand-in, d x d. Superlinear; for up to some thousands of unknowns.

    record="weights" keeps the weights of every step.
    """

    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        walk = Walk(problem, start, stop, trusts_model=True, record=self.record)
        return _minimise(walk, _Dense(problem.size), FLATTER["bfgs"])


@dataclass(frozen=True)
class LBFGS:
    """The last `memory` pairs (s, y) stand for the inverse Hessian: 2 memory d numbers, for many unknowns.

    record="weights" keeps the weights of every step.
    """

    memory: int = 10
    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def __post_init__(self) -> None:
        if not isinstance(self.memory, int | np.integer) or isinstance(self.memory, bool) or self.memory < 1:
            raise ValueError(f"memory must be an integer >= 1. Got {self.memory!r}.")

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        walk = Walk(problem, start, stop, trusts_model=True, record=self.record)
        return _minimise(walk, _Pairs(int(self.memory)), FLATTER["lbfgs"])


def _minimise(walk: Walk, memory: _Memory, flatter: float) -> Minimised:
    while not walk.is_over:
        direction = -memory.times(walk.at.gradient)
        if not float(direction @ walk.at.gradient) < 0:  # rounding in the memory
            memory.forget()
            direction = -walk.at.gradient
        first = first_length(walk.at) if memory.is_empty else 1.0
        step = search(walk.evaluate, walk.at, direction, first, flatter)
        if step.ended == "unbounded":
            walk.fall(direction, step.t * norm(direction), step.point.value)
        elif step.ended == "none":
            if memory.is_empty:
                walk.stand_still(walk.decrement)
            memory.forget()
        else:
            s, y = step.point.x - walk.at.x, step.point.gradient - walk.at.gradient
            if norm(y) > SMALLEST and float(s @ y) > EPS * norm(s) * norm(y):
                memory.learn(s, y)
            g = step.point.gradient
            walk.move(step.point, float(g @ memory.times(g)) / 2, step.t)
    return walk.result()


class _Dense:
    def __init__(self, size: int) -> None:
        self.size = size
        self.forget()

    def forget(self) -> None:
        self.inverse: Array | None = None

    @property
    def is_empty(self) -> bool:
        return self.inverse is None

    @one_blas_thread
    def times(self, g: Array) -> Array:
        return g.copy() if self.inverse is None else np.asarray(self.inverse @ g)

    @one_blas_thread
    def learn(self, s: Array, y: Array) -> None:
        along = float(s @ y)
        if self.inverse is None:  # the size of the curvature, from the first step
            self.inverse = np.eye(self.size) * (float(s @ s) / along)
        By = self.inverse @ y
        s, By = s / np.sqrt(along), By / np.sqrt(along)
        with np.errstate(over="ignore", invalid="ignore"):
            cross = np.outer(s, By)
            self.inverse += np.outer(s, s) * (1 + float(y @ By) / np.sqrt(along)) - cross - cross.T


class _Pairs:
    """Two loops over the pairs give B g without B (Nocedal)."""

    def __init__(self, memory: int) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=memory)

    def forget(self) -> None:
        self.pairs.clear()

    @property
    def is_empty(self) -> bool:
        return not self.pairs

    def learn(self, s: Array, y: Array) -> None:
        self.pairs.append((s, y, float(s @ y)))

    def times(self, g: Array) -> Array:
        out, shares = g.copy(), []
        for s, y, along in reversed(self.pairs):
            share = float(s @ out) / along
            shares.append(share)
            out -= share * y
        if self.pairs:
            _, y, along = self.pairs[-1]
            out *= along / float(y @ y)
        for (s, y, along), share in zip(self.pairs, reversed(shares), strict=True):
            out += (share - float(y @ out) / along) * s
        return out
