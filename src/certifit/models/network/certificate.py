"""What is checked of a network, from the rows and the state alone, in float64.

(1) The core's back-propagation against central differences of the loss by the formulas of `formulas.py`, for some
    parameters of every layer on some rows; where a unit of ReLU changes sides within the difference the derivative does
    not exist: such parameters are left out, and counted.
(2) The objective on all rows is the one that the fit ended at.
(3) The gradient's norm there: a local claim. A network has many minima, and none is proven to be the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import Certificate
from certifit.models.network.formulas import forward
from certifit.models.network.task import NetworkState, NetworkTask
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.residual import TINY

ROWS_AT_ONCE = 8192
CHECKED = 8  # parameters per layer that are compared with differences
CHECKED_ROWS = 64
STEP = 1e-5  # of a difference, relative to the size of the parameter or 1
SAME = 1e-9  # how nearly the objective is the one stated, relative
TOLERANCE = 1e-5  # largest relative error of a derivative that counts as right
LEAST = 1e-12  # differences say no more
CLAIM = "derivatives by back-propagation against differences: worst error as a share of what is allowed"
THEOREM = "central differences of a smooth function have an error of the square of their step"
SEEN_ONCE = "rows were seen once, part by part. certify(X, y) looks at all of them."


@dataclass(frozen=True)
class NetworkCertificate(Certificate):
    """value: worst relative difference between a derivative and its difference quotient, as a share of 1e-5.

    n_checked: derivatives compared; n_kinks: left out. objective, gradient_norm: at the end. relative_norm:
    gradient_norm * |weights| / objective. fault: why the state is not one of these rows. polished: what a refit of the
    output layer proves.
    """

    n_checked: int = 0
    n_kinks: int = 0
    objective: float = 0.0
    gradient_norm: float = 0.0
    relative_norm: float = 0.0
    fault: str = ""
    polished: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        head = "Gradients checked" if self.holds else "NOT certified"
        kinks = f" {self.n_kinks} at kinks of ReLU were left out." if self.n_kinks else ""
        first = self.fault or (
            f"back-propagation agrees with differences of the loss to {self.value * TOLERANCE:.1e} in {self.n_checked} "
            f"derivatives.{kinks}"
        )
        local = (
            f"The fit ended at an objective of {self.objective:.6g} with a gradient of norm {self.gradient_norm:.2e} "
            f"({self.relative_norm:.1e} relative): a local claim. A network has many minima; none is proven to be the "
            "best."
        )
        return [f"{head}: {first}", local, *([self.polished] if self.polished else [])]


@np.errstate(all="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: NetworkTask, state: NetworkState, polished: str = "") -> NetworkCertificate:
    """The checks of a state on the rows of a task."""
    value, gradient = objective(task, state.parameters)
    worst, n_checked, n_kinks = _differences(task, np.asarray(state.parameters, dtype=np.float64))
    size = float(np.linalg.norm(np.asarray(state.parameters, dtype=np.float64)))
    norm = float(np.linalg.norm(gradient))
    is_other = not abs(value - state.objective) <= SAME * abs(state.objective) + TINY
    fault = (
        f"the objective on these rows is {value:.6g}, and the model states {state.objective:.6g}." if is_other else ""
    )
    return NetworkCertificate(
        claim=CLAIM,
        theorem=THEOREM,
        value=np.inf if fault else max(worst, LEAST) / TOLERANCE,
        tolerance=1.0,
        rounding=1e-10,
        n_checked=n_checked,
        n_kinks=n_kinks,
        objective=value,
        gradient_norm=norm,
        relative_norm=norm * size / max(abs(value), TINY),
        fault=fault,
        polished=polished,
    )


def seen_once(end: float) -> NetworkCertificate:
    """Of a network that saw its rows in parts: nothing is claimed. end: its objective on the last part."""
    return NetworkCertificate(CLAIM, THEOREM, np.inf, 1.0, 0.0, objective=end, fault=SEEN_ONCE)


def objective(task: NetworkTask, parameters: Array) -> tuple[float, Array]:
    """The objective on all rows, in the units of the network, and its gradient, by the core in float64."""
    point = np.ascontiguousarray(parameters, dtype=np.float64)
    key = point.tobytes()
    if task.last is None or task.last[0] != key:  # the end of a fit is what its certificate looks at next
        task.last = key, _objective(task, point)
    return task.last[1]


def _objective(task: NetworkTask, point: Array) -> tuple[float, Array]:
    value, gradient, total = 0.0, np.zeros(len(point)), 0.0
    for part in task.parts():
        for begin in range(0, len(part.y), ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            weight = None if part.weight is None else part.weight[rows]
            some, slope = _core_gradient(task, point, part.X[rows], part.y[rows], weight)
            value, gradient = value + some, gradient + slope
            total += float(len(part.y[rows]) if weight is None else weight.sum())
    weights = np.where(task.layout.is_weight(), point, 0.0)
    return value / total + task.penalty(point), gradient / total + task.alpha * weights


def _core_gradient(task: NetworkTask, point: Array, X: Array, y: Array, weight: Array | None) -> tuple[float, Array]:
    """The sum of the losses of some rows and its gradient."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    loss = task.loss.compiled
    value, gradient = core.network_gradient(*task.shape("float64"), *loss, rows, y, None, weight, point, n_threads())
    return float(value), np.asarray(gradient)


def _differences(task: NetworkTask, point: Array) -> tuple[float, int, int]:
    """The worst relative error of some derivatives, how many were compared, and how many kinks were left out."""
    part = next(iter(task.parts()))
    X, y = np.asarray(part.X[:CHECKED_ROWS], dtype=np.float64), part.y[:CHECKED_ROWS]
    states = forward(task.layout, point, X)
    value, gradient = _core_gradient(task, point, X, y, None)
    apart = abs(float(task.loss.values(y, states[-1]).sum()) - value) / max(abs(value), TINY)
    largest = float(np.abs(gradient).max(initial=0.0))
    sides = [state > 0 for state in states[1:-1]]
    worst, n_checked, n_kinks = (0.0 if apart <= SAME else np.inf), 0, 0  # the core's loss must be the formula's
    for j in _places(task, len(point)):
        step = STEP * max(1.0, abs(point[j]))
        ends, is_kink = [], False
        for sign in (1.0, -1.0):
            moved = point.copy()
            moved[j] += sign * step
            there = forward(task.layout, moved, X)
            ends.append(float(task.loss.values(y, there[-1]).sum()))
            if "relu" in task.layout.activation:
                is_kink |= any(((a > 0) != b).any() for a, b in zip(there[1:-1], sides, strict=True))
        if is_kink:
            n_kinks += 1
            continue
        quotient = (ends[0] - ends[1]) / (2 * step)
        noise = 1e-15 * abs(ends[0]) / step  # rounding of the difference
        worst = max(worst, max(abs(quotient - gradient[j]) - 4 * noise, 0.0) / max(largest, TINY))
        n_checked += 1
    return worst, n_checked, n_kinks


def _places(task: NetworkTask, size: int) -> Array:
    """Some parameters of every layer, evenly spaced."""
    places = []
    for W, bias in task.layout.split(np.arange(size)):
        for block in (W.ravel(), bias):
            if block is not None:
                places.append(block[np.unique(np.linspace(0, len(block) - 1, min(CHECKED, len(block))).astype(int))])
    return np.concatenate(places)
