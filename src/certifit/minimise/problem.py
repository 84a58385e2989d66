"""What a smooth solver takes, a problem, and what it returns, a run with its trace.

A problem is a function of a vector with a gradient; outside its domain the value is infinite or NaN, and solvers turn
back. A trace has a row per iteration: iteration, objective, gap (NaN where none is known), gradient_norm, step_size
(what the direction was multiplied by), step = |x_k - x_(k-1)| and seconds since the start. Row 0 is the start.

The points that a solver visits, the trace of them, and when they are at an end.

Inside, values and gradients are divided by a power of two near the first gradient's size: exact, and squares of
gradients neither overflow nor vanish, whatever the unit of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Generic, Literal, Protocol, TypeVar

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.steps import NAN, Steps

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


EPS = float(np.finfo(float).eps)
NOISE = 2.0**-43  # relative differences of values below this may be rounding
PATIENCE = {True: 100, False: 1000}  # most iterations without progress, with a model and without
LOWEST = -1e60  # a value this far below the first, in units of the first gradient: there is no minimum
IN_A_ROW = 3  # iterations in a row at which an approximate model must find the end near


@dataclass(frozen=True)
class Point:
    """A place with the value and the gradient there."""

    x: Array
    value: float
    gradient: Array

    @cached_property
    def size(self) -> float:
        """The norm of the gradient."""
        return norm(self.gradient)

    @property
    def is_inside(self) -> bool:
        """Whether the function is finite there."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


class Walk:
    """A run of a solver: `move` to the next point until `is_over`.

    trusts_model: the solver's decrement is that of a second-order model, so that a step below the rounding of x is an
    end and not only a standstill. in_a_row: how often tol must be met before that counts. record="weights" keeps
    every point.
    """

    def __init__(
        self,
        problem: Problem,
        start: Array,
        stop: Stop,
        trusts_model: bool,
        in_a_row: int = IN_A_ROW,
        record: Record = None,
    ) -> None:
        check_record(record)
        self.problem, self.stop, self.trusts_model, self.in_a_row = problem, stop, trusts_model, in_a_row
        self.steps = Steps(keeps_weights=record is not None)
        self.trace = self.steps.rows
        self.unit = 1.0
        self.reason, self.converged = "", False
        self.direction: Array | None = None
        self.decrement = np.nan
        first = self.evaluate(_checked_start(start, problem.size))
        _check_inside(first)
        self.unit = _power_of_two(float(np.max(np.abs(first.gradient), initial=0.0)))
        self.at = self.best = Point(first.x, first.value / self.unit, first.gradient / self.unit)
        self.first_norm = self.least_norm = self.at.size
        self.stuck = self.near = 0
        self.lowest = LOWEST * max(1.0, abs(self.at.value))
        self.origin = self.at.x
        self.knows_gap = not np.isnan(self._record(0.0, np.nan)["gap"])
        if self.first_norm == 0:
            self.end("The gradient is zero at the start.", True)
        elif self.knows_gap and self._is_near(self.trace[0], self.first_norm, np.nan):
            self.end(self._met(self.trace[0], self.first_norm), True)
        elif stop.max_iter == 0:
            self.end("No iteration was allowed (max_iter=0).", False)

    @property
    def is_over(self) -> bool:
        """Whether there is a reason to stop."""
        return bool(self.reason)

    @property
    def iteration(self) -> int:
        """Moves made."""
        return len(self.trace) - 1

    def evaluate(self, x: Array) -> Point:
        """The point at x, in the walk's unit."""
        value, gradient = self.problem.value_gradient(x)
        return Point(x, float(value) / self.unit, np.asarray(gradient, dtype=np.float64) / self.unit)

    def move(self, point: Point, decrement: float, step_size: float, may_end: bool = True) -> None:
        """Go to a point; decrement is what the solver's model says is left above the minimum there (NaN: unknown).

        step_size: the number that the solver's direction was multiplied by. may_end=False: the point is known not to be
        a minimum, however flat it is.
        """
        before, self.at = self.at, point
        change = point.x - before.x
        self.first_norm = self.first_norm or point.size  # a start at a saddle
        self._note_progress(before)
        row = self._record(norm(change), step_size)
        self.decrement = decrement
        if point.value < self.lowest:
            self.fall(point.x - self.origin, norm(point.x - self.origin), point.value)
        elif may_end:
            self._judge_end(row, decrement, change)
        if not self.is_over:
            self._judge_limits(row)
        asked = self.stop.callback(row, point.x) if self.stop.callback is not None else False
        if isinstance(asked, bool | np.bool_) and asked and not self.is_over:
            self.end("The callback asked to stop.", False)

    def stand_still(self, decrement: float) -> None:
        """End where no step lowers the function."""
        self.decrement = decrement
        size = self.at.size
        if self.trusts_model and decrement <= NOISE * abs(self.at.value):
            self.end("No step lowers the value any more: what is left is below its rounding.", True)
            return
        if not self.knows_gap and size <= self.stop.tol * self.first_norm:
            self.end(f"{self._met(self.trace[-1], size)} No step lowers the value any more.", True)
            return
        self.end(
            f"No step lowers the value any more, though {self._left(self.trace[-1], size)}: rounding stops this "
            "solver, or the gradient is not that of the function.",
            False,
        )

    def fall(self, direction: Array, distance: float, value: float) -> None:
        """End on a function without a minimum."""
        self.direction = direction / norm(direction)
        shown = np.array2string(self.direction, precision=4, threshold=8, separator=", ")
        self.end(
            f"The function is unbounded below: along the direction {shown} it falls to {value * self.unit:.3g} at a "
            f"distance of {distance:.3g}, and goes on. It has no minimum.",
            False,
        )

    def estimate_gap(self, decrement: float) -> None:
        """Show the decrement as the gap of the last row where the problem knows none."""
        self.decrement = decrement
        if not self.knows_gap:
            self.trace[-1]["gap"] = decrement * self.unit

    def end(self, reason: str, converged: bool) -> None:
        """Stop, and why."""
        self.reason, self.converged = reason, converged

    def result(self, largest_step: float | None = None) -> Minimised:
        """The result in the user's units: the last point where the run converged, else the best point."""
        point = self.at if self.converged else self.best
        return Minimised(
            point.x,
            point.value * self.unit,
            point.gradient * self.unit,
            self.trace,
            self.reason,
            self.converged,
            largest_step,
            self.direction,
            self.decrement * self.unit,
            None if self.steps.weights is None else np.array(self.steps.weights),
        )

    def _record(self, step: float, step_size: float) -> dict[str, float]:
        value, gradient = self.at.value * self.unit, self.at.gradient * self.unit
        gap = self.problem.gap(self.at.x, value, gradient)
        return self.steps.add(
            value,
            NAN if gap is None else float(gap),
            gradient_norm=self.at.size * self.unit,  # a power of two: exact
            step_size=step_size,
            step=step,
            weights=self.at.x,
        )

    def _note_progress(self, before: Point) -> None:
        """Keep the best point: the lowest, and of points as low within rounding the one of least gradient."""
        noise = NOISE * max(abs(self.best.value), abs(before.value))
        size = self.at.size
        lower, as_low = self.at.value < self.best.value - noise, self.at.value <= self.best.value + noise
        if lower or (as_low and size < self.best.size):
            self.best = self.at
        is_flatter = size < 0.9 * self.least_norm
        self.stuck = 0 if is_flatter or self.at.value < before.value - noise else self.stuck + 1
        self.least_norm = size if is_flatter else self.least_norm

    def _judge_end(self, row: dict[str, float], decrement: float, change: Array) -> None:
        stop, size = self.stop, self.at.size
        if size == 0:
            self.end("The gradient is zero.", True)
        elif self._is_near(row, size, decrement):
            self.end(self._met(row, size), True)
        elif stop.step_tol > 0 and row["step"] <= stop.step_tol:
            self.end(f"The last step, {row['step']:.2e}, is within step_tol = {stop.step_tol:g}.", True)
        elif (np.abs(change) <= EPS * np.abs(self.at.x)).all():
            is_small = self.trusts_model or size <= stop.tol * self.first_norm
            self.end("The last step is below the rounding of x.", is_small)
        elif self.stuck >= PATIENCE[self.trusts_model]:
            self.stand_still(decrement)

    def _judge_limits(self, row: dict[str, float]) -> None:
        stop = self.stop
        is_late = stop.max_time is not None and row["seconds"] >= stop.max_time
        if not (self.iteration >= stop.max_iter or is_late or self.steps.reason):
            return
        left = f"{self._left(row, self.at.size)}.{self._still_falling()}"
        if self.iteration >= stop.max_iter:
            self.end(f"Not converged after {stop.max_iter} iterations (max_iter): {left}", False)
        elif is_late:
            self.end(f"Not converged after {row['seconds']:.3g} s (max_time): {left}", False)
        else:
            self.end(f"{self.steps.reason} Not converged: {left}", False)

    def _still_falling(self) -> str:
        """A hint where the second half of the way lowered the value about as much as the first."""
        first, middle, last = (self.trace[k]["objective"] for k in (0, len(self.trace) // 2, -1))
        if self.iteration >= 10 and middle - last > 0.25 * (first - last) > 0:
            return " The value still falls as fast as at first: there may be no minimum."
        return ""

    def _is_near(self, row: dict[str, float], size: float, decrement: float) -> bool:
        """Whether tol is met: see `Stop`."""
        tol = self.stop.tol
        scale = max(abs(self.at.value), self.stop.floor / self.unit)
        if self.knows_gap:
            return bool(row["gap"] / self.unit <= tol * scale)
        flat = size <= tol * self.first_norm
        # without a model a minimum of 0 is only neared: there the gradient alone must do
        low = decrement <= tol * scale or (not self.trusts_model and size <= tol**3 * self.first_norm)
        self.near = self.near + 1 if flat and low else 0
        return self.near >= self.in_a_row

    def _met(self, row: dict[str, float], size: float) -> str:
        return f"Converged: {self._left(row, size)}."

    def _left(self, row: dict[str, float], size: float) -> str:
        tol = self.stop.tol
        if not self.knows_gap:
            return f"the gradient's norm is {size / self.first_norm:.1e} of its first; asked was {tol:g}"
        scale = max(abs(row["objective"]), self.stop.floor)
        return f"the gap is {row['gap'] / scale if scale > 0 else row['gap']:.1e} of the objective; asked was {tol:g}"


def _checked_start(start: Array, size: int) -> Array:
    x = np.array(start, dtype=np.float64)
    if x.shape != (size,):
        raise ValueError(f"The start must be a vector of {size} numbers. Got shape {x.shape}.")
    if not np.isfinite(x).all():
        raise ValueError(f"The start must be finite. Entry {int(np.argmin(np.isfinite(x)))} is not.")
    return x


def _check_inside(first: Point) -> None:
    if not np.isfinite(first.value):
        raise ValueError(f"The function is {first.value} at the start. Start where it is finite.")
    if not np.isfinite(first.gradient).all():
        worst = int(np.argmin(np.isfinite(first.gradient)))
        raise ValueError(
            f"Entry {worst} of the gradient is {first.gradient[worst]} at the start. Start where it is finite."
        )


def _power_of_two(size: float) -> float:
    """The power of two just above a size; 1 for 0."""
    return float(2.0 ** np.clip(np.frexp(size)[1], -1000, 1000)) if size > 0 else 1.0
