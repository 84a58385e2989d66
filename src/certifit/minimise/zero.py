"""Newton's method for a zero: x <- x - t J^-1 f(x), for a number or a vector of equations.

t = 1 near a zero, where the number of right digits doubles with every step; far from it t is halved until |f| falls.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from certifit.data.columns import Array, Numbers
from certifit.minimise.function import EPS, User, as_numbers, called, check_jacobian, checked_start, difference_jacobian
from certifit.minimise.problem import norm

if TYPE_CHECKING:
    from certifit.evaluation.pictures.convergence import RunsDisplay

FALL = 1e-4  # least share of |f| that a full step should take off
HALVINGS = 60
SINGULAR = 1e-13  # singular values below this share of the largest are zero to rounding
ROUNDING = 1e-7  # a Newton step below this share of x that no longer lowers |f|: at the rounding of f


@dataclass(frozen=True)
class Zero:
    """What `find_zero` found. `print` shows it in words.

    residual: |f(x)|. rank and condition are those of the Jacobian at x. history_: a row per iteration; objective is
    |f|, step the length of the step, gap the length of the next Newton step: an estimate of the distance to the zero.
    """

    x: Numbers
    value: Numbers
    residual: float
    converged: bool
    reason: str
    rank: int
    condition: float
    history_: list[dict[str, float]] = field(repr=False)

    def sentences(self) -> list[str]:
        """What is known, in words."""
        out = [self.reason]
        size = np.size(self.x)
        if self.rank < size:
            out.append(
                f"The Jacobian there is singular to rounding (rank {self.rank} of {size}): the zero may not be unique, "
                "and convergence is slow."
            )
        elif self.converged:
            out.append(f"The Jacobian there is regular (condition number {self.condition:.1e}): no other zero is near.")
        return out

    def plot(self, ax: object = None, *, y: str = "objective", x: str = "iteration") -> RunsDisplay:
        """Draw |f| step by step on a log axis, or y="step" or "gap" (the next Newton step)."""
        from certifit.evaluation.pictures.convergence import RunsDisplay

        shown = RunsDisplay.from_runs({"newton": self}, x=x, y=y, ax=ax)
        shown.ax_.set_yscale("log")
        return shown

    def __str__(self) -> str:
        shown = np.array2string(np.asarray(self.x), precision=12, threshold=20, separator=", ")
        steps = int(self.history_[-1]["iteration"])
        return "\n".join([f"x = {shown}, |f(x)| = {self.residual:.3g}, after {steps} steps.", *self.sentences()])


def find_zero(
    f: User, x0: ArrayLike, jacobian: User | None = None, *, tol: float = 1e-12, max_iter: int = 100, check: bool = True
) -> Zero:
    """A zero of a smooth function by Newton's method: a number of a number, or as many numbers as x has.

    jacobian : function of x: the derivative, or the matrix with a row per equation. Without it central differences.
    tol : the next Newton step, an estimate of the distance to the zero, relative to |x|.
    check : compare the Jacobian with differences at x0, and refuse a wrong one.

    Zeros in the complex plane, or none at all, end where |f| has a minimum, and the result states it.

    >>> import certifit as cf
    >>> print(f"{cf.find_zero(lambda x: x**2 - 2, 1.0).x:.12f}")
    1.414213562373
    """
    if not 0 <= tol < np.inf:
        raise ValueError(f"tol must be a number >= 0. Got {tol!r}.")
    if not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise ValueError(f"max_iter must be an integer >= 1. Got {max_iter!r}.")
    system = _System(f, x0, jacobian)
    if check and jacobian is not None:
        names = ("jacobian", "entry [{i}, {j}]" if system.size > 1 else "it", "f")
        check_jacobian(system.values, system.jacobian(system.start), system.start, names)
    zero = _Search(system, tol, int(max_iter)).run()
    if not zero.converged:
        warnings.warn("\n".join(zero.sentences()), ConvergenceWarning, stacklevel=2)
    return zero


class _System:
    """The user's equations as a function of a flat vector."""

    def __init__(self, f: User, x0: ArrayLike, jacobian: User | None) -> None:
        start = checked_start(x0)
        self.f, self.own_jacobian = f, jacobian
        self.shape, self.size, self.start = start.shape, start.size, start.ravel()
        if not np.isfinite(self.values(self.start)).all():
            raise ValueError("f is not finite at x0. Start where it is.")

    def shaped(self, x: Array) -> Numbers:
        return float(x[0]) if not self.shape else x.reshape(self.shape).copy()

    def values(self, x: Array) -> Array:
        out = as_numbers(called(self.f, self.shaped(x)), "f")
        if out.size == 1 and np.isnan(out).all():
            return np.full(self.size, np.nan)
        if out.size != self.size:
            raise ValueError(f"f must give as many numbers as x has, {self.size}. Got {out.size}.")
        return out.ravel()

    def jacobian(self, x: Array) -> Array:
        if self.own_jacobian is None:
            return difference_jacobian(self.values, x)
        out = as_numbers(called(self.own_jacobian, self.shaped(x)), "jacobian")
        if out.size != self.size**2:
            raise ValueError(f"jacobian must give {self.size} x {self.size} numbers. Got shape {out.shape}.")
        return out.reshape(self.size, self.size)


class _Search:
    def __init__(self, system: _System, tol: float, max_iter: int) -> None:
        self.system, self.tol, self.max_iter = system, tol, max_iter
        self.started = time.perf_counter()
        self.history: list[dict[str, float]] = []
        self.x = system.start
        self.values = system.values(self.x)
        self.moved = 0.0
        self.reason, self.converged = "", False

    def run(self) -> Zero:
        while True:
            step, rank, condition = self._newton_step()
            self._record(step)
            self._judge(step, rank)
            if self.reason:
                break
            self._move(step)
            if self.reason:
                break
        return Zero(
            self.system.shaped(self.x),
            self.system.shaped(self.values),
            norm(self.values),
            self.converged,
            self.reason,
            rank,
            condition,
            self.history,
        )

    def _newton_step(self) -> tuple[Array, int, float]:
        """(-J^+ f, rank, condition): of all steps that solve the linear equations best, the shortest."""
        J = self.system.jacobian(self.x)
        if not np.isfinite(J).all():
            self.reason = "The Jacobian is not finite there."
            return np.zeros_like(self.x), 0, np.inf
        U, sizes, V = np.linalg.svd(J)
        rank = int(np.sum(sizes > SINGULAR * sizes[0])) if sizes[0] > 0 else 0
        step = -V[:rank].T @ ((U[:, :rank].T @ self.values) / sizes[:rank])
        return step, rank, float(sizes[0] / sizes[-1]) if sizes[-1] > 0 else np.inf

    def _record(self, step: Array) -> None:
        self.history.append(
            {
                "iteration": len(self.history),
                "objective": norm(self.values),
                "gap": norm(step),
                "step": self.moved,
                "seconds": time.perf_counter() - self.started,
            }
        )

    def _judge(self, step: Array, rank: int) -> None:
        scale, length, steps = self._scale(), norm(step), len(self.history) - 1
        if self.reason:
            return
        small = norm(self.values) / self.history[0]["objective"] if self.history[0]["objective"] > 0 else 0.0
        if not self.values.any():
            self.reason, self.converged = "Converged: f(x), as float64 computes it, is 0.", True
        elif rank < len(step) and small <= self.tol:
            self.reason, self.converged = f"Converged: |f| is {small:.1e} of its first.", True
        elif rank == 0 or length == 0:
            self.reason = "The Jacobian is zero there, or f is at right angles to it: no Newton step. Start elsewhere."
        elif length <= self.tol * scale and rank == len(step):
            self.reason = f"Converged: the next step is {length / scale:.1e} of x; asked was {self.tol:g}."
            self.converged = True
        elif steps >= self.max_iter:
            self.reason = f"Not converged after {steps} steps (max_iter): |f| is {norm(self.values):.3g}."

    def _scale(self) -> float:
        """The length of x; where the zero is at 0, the rounding of the start."""
        return max(norm(self.x), EPS * (norm(self.system.start) or 1.0))

    def _move(self, step: Array) -> None:
        """The longest of the steps 1, 1/2, 1/4, ... that lowers |f| enough."""
        now, t = norm(self.values), 1.0
        for _ in range(HALVINGS):
            x = self.x + t * step
            values = self.system.values(x)
            if np.isfinite(values).all() and norm(values) <= (1 - FALL * t) * now:
                self.moved, self.x, self.values = norm(x - self.x), x, values
                return
            t /= 2
        if norm(step) <= ROUNDING * self._scale():
            self.reason, self.converged = "Converged: |f| is at its rounding, no step lowers it.", True
        else:
            self.reason = (
                f"No zero is near: |f| = {now:.3g} has a minimum there, or f is not smooth. Start elsewhere; there may "
                "be no zero."
            )
