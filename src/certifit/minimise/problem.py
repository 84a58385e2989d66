"""What a smooth solver takes, a problem, and what it returns, a run with its trace.

A problem is a function of a vector with a gradient; outside its domain the value is infinite or NaN, and solvers turn
back. A trace has a row per iteration: iteration, objective, gap (NaN where none is known), gradient_norm, step_size
(what the direction was multiplied by), step = |x_k - x_(k-1)| and seconds since the start. Row 0 is the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np

from certifit.data.columns import Array

Row = Mapping[str, float]
Record = Literal["weights"] | None
DIFFERENCE = float(np.finfo(float).eps) ** (1 / 3)  # relative step of a central difference


class Problem(Protocol):
    """A smooth function of a vector of `size` numbers. Inherit from it to get `product` and `gap`."""

    size: int

    def value_gradient(self, x: Array) -> tuple[float, Array]:
        """f(x) and its gradient; a value that is not finite says: outside the domain."""
        ...

    def hessian(self, x: Array) -> Array:
        """The second derivatives, d x d and symmetric."""
        raise NotImplementedError

    def product(self, x: Array, v: Array) -> Array:
        """The Hessian times v: from `hessian`, else from a central difference of gradients along v."""
        try:
            return np.asarray(self.hessian(x) @ v)
        except NotImplementedError:
            return difference_product(self, x, v)

    def gap(self, x: Array, value: float, gradient: Array) -> float | None:
        """A bound or an estimate of f(x) - min f; None where none is known."""
        return None


def difference_product(problem: Problem, x: Array, v: Array, times: float = 1.0) -> Array:
    """(g(x + h v) - g(x - h v)) / (2 h), h some times the cube root of the rounding of x; exact for quadratics."""
    size = norm(v)
    if size == 0:
        return np.zeros_like(v)
    h = times * DIFFERENCE * max(norm(x), 1.0) / size
    ahead, behind = problem.value_gradient(x + h * v)[1], problem.value_gradient(x - h * v)[1]
    return np.asarray((ahead - behind) / (2 * h))


def norm(v: Array) -> float:
    """The length of a vector, without overflow or underflow of its squares."""
    largest = float(np.max(np.abs(v), initial=0.0))
    if largest == 0 or not np.isfinite(largest):
        return largest
    return largest * float(np.linalg.norm(v / largest))


def check_record(record: Record) -> None:
    """Refuse what cannot be recorded."""
    if record not in (None, "weights"):
        raise ValueError(f"record must be None or 'weights'. Got {record!r}.")


@dataclass(frozen=True)
class Stop:
    """When a solver stops.

    tol: where the problem knows a gap, gap <= tol max(|f|, floor). Elsewhere the gradient's norm must be at most tol
    times its first, and what is left by the solver's own quadratic model at most tol max(|f|, floor): that second rule
    keeps a far start from making the first one easy. tol = 0 continues to the rounding of the arithmetic.
    step_tol: stop when |x_k - x_(k-1)| <= step_tol; 0 is off. max_time in seconds; None is off.
    callback(row, x) is called after every iteration; the run ends when it returns True.
    """

    tol: float = 1e-8
    step_tol: float = 0.0
    max_iter: int = 1000
    max_time: float | None = None
    floor: float = 0.0
    callback: Callable[[Row, Array], object] | None = None

    def __post_init__(self) -> None:
        for name in ("tol", "step_tol", "floor"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a number >= 0. Got {getattr(self, name)!r}.")
        if not isinstance(self.max_iter, int | np.integer) or isinstance(self.max_iter, bool) or self.max_iter < 0:
            raise ValueError(f"max_iter must be an integer >= 0. Got {self.max_iter!r}.")
        if self.max_time is not None and not self.max_time > 0:
            raise ValueError(f"max_time must be a number of seconds > 0, or None. Got {self.max_time!r}.")


@dataclass(frozen=True)
class Minimised:
    """Where a solver ended.

    reason: a sentence, why it stopped. converged: whether tol or step_tol was met, or the step fell to the rounding of
    x. largest_step: of gradient descent with a fixed step that did not converge, 2 / largest curvature. direction: of
    a function that falls without end, the unit vector along which it does. weights: of a solver with record="weights",
    a row per step, the start first.
    """

    x: Array
    value: float
    gradient: Array
    trace: list[dict[str, float]]
    reason: str
    converged: bool
    largest_step: float | None = None
    direction: Array | None = None
    decrement: float = field(default=np.nan)
    weights: Array | None = None


class Solver(Protocol):
    """A way to a minimum. `needs` names what it asks of a problem: "gradient", "hessian" or "rows"."""

    needs: ClassVar[frozenset[str]]

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        ...


# ---- what a solver returns -------------------------------------------------------------------------------------------

State_co = TypeVar("State_co", covariant=True)


@dataclass(frozen=True)
class Run(Generic[State_co]):
    """The state that was found and its trace, one row per step; none of a closed form.

    reason: why it did not converge. weights: of a solver that records them, a row per step, the intercept last.
    """

    state: State_co
    history: list[dict[str, float]] = field(default_factory=list)
    reason: str = ""
    weights: Array | None = None
