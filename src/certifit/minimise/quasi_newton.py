"""Quasi-Newton methods: the curvature is learnt from how the gradient changes from step to step.

s = x_(k+1) - x_k,  y = g_(k+1) - g_k.  The inverse Hessian's stand-in B maps every new y to its s (secant condition):

    B <- (I - s y' / y's) B (I - y s' / y's) + s s' / y's,      d = -B g

It stays positive definite because the line search makes y's > 0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.line_search import first_length, search
from certifit.minimise.problem import EPS, Minimised, Problem, Record, Stop, Walk, norm
from certifit.runtime import one_blas_thread

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
