"""What is checked of a network, from the rows and the state alone, in float64.

(1) The core's back-propagation against central differences of the loss by the formulas of `formulas.py`, for some
    parameters of every layer on some rows; where a unit of ReLU changes sides within the difference the derivative does
    not exist: such parameters are left out, and counted.
(2) The objective on all rows is the one that the fit ended at.
(3) It is not above that of the best constant: all weights 0 but the biases of the output.
(4) The gradient's norm there: a local claim. A network has many minima, and none is proven to be the best.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import OUT_OF_TIME, Certificate
from certifit.models.network.formulas import activated, forward
from certifit.models.network.task import NetworkState, NetworkTask
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.residual import TINY

CHECKED = 8  # parameters per layer that are compared with differences
CHECKED_ROWS = 64
NUMBERS_AT_ONCE = 1 << 22  # of states that are held at a time
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
        if self.theorem == OUT_OF_TIME:
            return [self._first_sentence()]
        head = "Gradients checked" if self.holds else "NOT certified"
        kinks = f" {self.n_kinks} at kinks of ReLU were left out." if self.n_kinks else ""
        first = self.fault or (
            f"back-propagation agrees with differences of the loss to {self.value * TOLERANCE:.1e} in {self.n_checked} "
            f"derivatives.{kinks} That is about the code, not about the fit."
        )
        beside = ", not above that of the best constant," if self.holds else ""
        local = (
            f"The fit ended at an objective of {self.objective:.6g}{beside} with a gradient of norm "
            f"{self.gradient_norm:.2e} ({self.relative_norm:.1e} relative): a local claim. A network has many minima; "
            "none is proven to be the best."
        )
        return [f"{head}: {first}", local, *([self.polished] if self.polished else [])]


@np.errstate(all="ignore")  # far states: what is infinite or not a number proves nothing
@one_blas_thread
def certify(
    task: NetworkTask, state: NetworkState, polished: str = "", diverged: str = "", tol: float = 0.0
) -> NetworkCertificate:
    """The checks of a state on the rows of a task. diverged: what its fit said of its steps; tol: of the objective."""
    value, gradient = objective(task, state.parameters)
    worst, n_checked, n_kinks = _differences(task, np.asarray(state.parameters, dtype=np.float64))
    size = float(np.linalg.norm(np.asarray(state.parameters, dtype=np.float64)))
    norm = float(np.linalg.norm(gradient))
    fault = diverged
    if not abs(value - state.objective) <= SAME * abs(state.objective) + TINY:
        fault = f"the objective on these rows is {value:.6g}, and the model states {state.objective:.6g}."
    elif not fault and not value <= (constant := best_constant(task)) + tol:
        fault = f"the objective on these rows is {value:.6g}, above that of the best constant, {constant:.6g}."
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


def best_constant(task: NetworkTask) -> float:
    """The objective where all weights are 0 and the biases of the output are the score of the mean, or of shares."""
    last, point = task.last, np.zeros(task.layout.n_parameters)
    bias = task.layout.split(point)[-1][1]
    if bias is not None:
        bias[:] = task.constant()
    value = objective(task, point)[0]
    task.last = last
    return value


def _objective(task: NetworkTask, point: Array) -> tuple[float, Array]:
    value, gradient, total = 0.0, np.zeros(len(point)), 0.0
    for part in task.parts():
        some, slope = _core_gradient(task, point, part.X, part.y, part.offset, part.weight)
        value, gradient = value + some, gradient + slope
        total += float(len(part.y) if part.weight is None else part.weight.sum())
    weights = np.where(task.layout.is_weight(), point, 0.0)
    return value / total + task.penalty(point), gradient / total + task.alpha * weights


def _core_gradient(
    task: NetworkTask, point: Array, X: Array, y: Array, offset: Array | None, weight: Array | None
) -> tuple[float, Array]:
    """The sum of the losses of some rows and its gradient, in float64 of rows as they are stored."""
    call = core.network_gradient_of_short if X.dtype == np.float32 else core.network_gradient
    shape, loss = task.shape("float64"), task.loss.compiled
    value, gradient = call(*shape, *loss, X, y, offset, weight, point, n_threads())
    return float(value), np.asarray(gradient)


def _differences(task: NetworkTask, point: Array) -> tuple[float, int, int]:
    """The worst relative error of some derivatives, how many were compared, and how many kinks were left out."""
    part, widest = next(iter(task.parts())), max(task.layout.sizes[1:])
    n = min(max(NUMBERS_AT_ONCE // widest, 1), CHECKED_ROWS)
    X, y = np.asarray(part.X[:n], dtype=np.float64), part.y[:n]
    offset = None if part.offset is None else part.offset[:n]
    states = forward(task.layout, point, X)
    value, gradient = _core_gradient(task, point, X, y, offset, None)
    here = _Here(task, task.layout.split(point), states, y, 0.0 if offset is None else offset[:, None])
    apart = abs(float(here.losses(states[-1]).sum()) - value) / max(abs(value), TINY)
    worst = 0.0 if apart <= SAME else np.inf  # the core's loss must be the formula's
    largest, n_checked, n_kinks = float(np.abs(gradient).max(initial=0.0)), 0, 0
    at_once = max(NUMBERS_AT_ONCE // (2 * len(y) * widest), 1)
    for layer, places in enumerate(_places(task, len(point))):
        for begin in range(0, len(places), at_once):
            some = places[begin : begin + at_once]
            step = STEP * np.maximum(1.0, np.abs(point[some[:, 0]]))
            ends, is_kink = here.ends(layer, some[:, 1], some[:, 2], step)
            quotient = (ends[0] - ends[1]) / (2 * step)
            noise = 1e-15 * np.abs(ends[0]) / step  # rounding of the difference
            off = np.maximum(np.abs(quotient - gradient[some[:, 0]]) - 4 * noise, 0.0) / max(largest, TINY)
            # a NaN compares as no agreement
            worst = max(worst, float(np.where(np.isnan(off), np.inf, off)[~is_kink].max(initial=0.0)))
            n_checked, n_kinks = n_checked + int((~is_kink).sum()), n_kinks + int(is_kink.sum())
    return worst, n_checked, n_kinks


@dataclass(frozen=True)
class _Here:
    """A point: its layers, the states of some rows, their targets and offsets."""

    task: NetworkTask
    layers: list[tuple[Array, Array | None]]
    states: list[Array]
    y: Array
    offset: Array | float

    def losses(self, z: Array) -> Array:
        """The loss of every row. z: rows x outputs, or several such matrices, at as many points."""
        scores = (z + self.offset).reshape(-1, z.shape[-1])
        y = np.tile(self.y, len(scores) // len(self.y))
        return self.task.loss.values(y, scores).reshape(z.shape[:-1])

    def ends(self, layer: int, unit: Array, source: Array, step: Array) -> tuple[Array, Array]:
        """Sums of losses with a parameter of a layer moved up and down, and where a unit of ReLU changes sides.

        unit, source: of every parameter, what it feeds and what it multiplies; the source -1 is the 1 of a bias.
        """
        layout, is_relu = self.task.layout, "relu" in self.task.layout.activation
        inputs = np.column_stack([self.states[layer], np.ones(len(self.y))])[:, source].T  # parameters x rows
        W, b = self.layers[layer]
        z = np.tile(self.states[layer] @ W.T + (0.0 if b is None else b), (2, len(unit), 1, 1))
        for side, sign in enumerate((1.0, -1.0)):
            z[side, np.arange(len(unit)), :, unit] += sign * step[:, None] * inputs
        is_kink = np.zeros(len(unit), dtype=bool)
        for t in range(layer, layout.n_layers - 1):
            if is_relu:
                is_kink |= ((z > 0) != (self.states[t + 1] > 0)).any(axis=(0, 2, 3))
            W, b = self.layers[t + 1]
            z = activated(layout, z) @ W.T + (0.0 if b is None else b)
        return self.losses(z).sum(axis=-1), is_kink


def _places(task: NetworkTask, size: int) -> list[Array]:
    """Some parameters of every layer, evenly spaced: place, unit that it feeds, input that it multiplies; -1 is 1."""
    layers = []
    for W, bias in task.layout.split(np.arange(size)):
        n_inputs, places = W.shape[1], []
        for block in (W.ravel(), bias):
            if block is not None:
                chosen = np.unique(np.linspace(0, len(block) - 1, min(CHECKED, len(block))).astype(int))
                unit, source = (chosen, np.full(len(chosen), -1)) if block is bias else np.divmod(chosen, n_inputs)
                places.append(np.column_stack([block[chosen], unit, source]))
        layers.append(np.concatenate(places))
    return layers
