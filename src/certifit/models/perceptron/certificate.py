"""The certificate of a perceptron: its updates against the most that the theorem allows, or a proof that it has no end.

Signed, augmented examples a_i = y_i (x_i, 1), R = max |a_i|, threshold delta, B = R^2 + 2 delta. For any unit vector u
with u'a_i >= gamma > 0 for all i, k updates from w_0 give

    u'w_k >= u'w_0 + k gamma    and    |w_k|^2 <= |w_0|^2 + k B,    so    (s + k gamma)^2 <= |w_0|^2 + k B,  s = u'w_0:

    k <= [ B - 2 s gamma + sqrt( (B - 2 s gamma)^2 + 4 gamma^2 (|w_0|^2 - s^2) ) ] / (2 gamma^2)

From w_0 = 0 that is (R^2 + 2 delta) / gamma^2. Here u is the direction of the weights that were found, or of a
separator of wider margin that is handed in: whatever it is, its margin is measured, and bounds the updates. Where the
classes cannot be separated, rows with positive multipliers that cancel prove it (glm/separation.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import Certificate
from certifit.models.glm.separation import class_sides
from certifit.models.glm.separation_certificate import Separation, separation
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.perceptron.task import Margins, PerceptronTask
from certifit.statistics.residual import UNIT

CLAIM = "updates made, as a share of the most that are possible"
THEOREM = "the perceptron theorem on signed, augmented examples; or Gordan's, that no weights separate the classes"


@dataclass(frozen=True)
class PerceptronCertificate(Certificate):
    """The proof that goes with a perceptron.

    n_updates, bound: made, and the most that are possible; radius R and margin gamma of the augmented examples.
    rows, multipliers: of the proof that no weights separate the classes. cycle: epochs that end with the same weights.
    fault: why there is no proof of convergence. was_seen_once: rows passed once, and were not looked at again.
    """

    n_updates: int = 0
    bound: float = math.inf
    radius: float = 0.0
    margin: float = 0.0
    rows: tuple[int, ...] = ()
    multipliers: tuple[float, ...] = ()
    cycle: tuple[int, ...] = ()
    fault: str = ""
    was_seen_once: bool = False
    separation: Separation | None = field(default=None, compare=False, repr=False)

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if not self.fault:
            return [
                f"Converged: every row is on the side of its class. {self.n_updates:,} updates of at most "
                f"{self.bound:,.0f} that R = {self.radius:.4g} and margin {self.margin:.4g} allow."
            ]
        out = [f"{'not certified' if self.was_seen_once else 'NOT converged'}: {self.fault}"]
        if self.cycle:
            first, last = self.cycle
            out.append(f"Epoch {last} ends with the weights of epoch {first}: they go round for ever.")
        return out

    def to_dict(self) -> dict[str, object]:
        """Plain JSON types."""
        return {name: value for name, value in super().to_dict().items() if name != "separation"}


def bound_on_updates(square: float, delta: float, margin: float, start: Array, end: Array) -> float:
    """The most updates from `start`, for examples of |a|^2 <= square and margin >= gamma along the weights of `end`.

    Both weights are augmented. What leaves the range of float64 is infinite: no bound. With t = B / gamma - 2 s and
    c^2 = |w_0|^2 - s^2 it is (t + sqrt(t^2 + 4 c^2)) / (2 gamma), where t and c are taken at the upper end of their
    rounding.
    """
    with np.errstate(all="ignore"):
        size = np.abs(start).max(initial=0.0)  # of unit size no square overflows
        unit = end / np.abs(end).max()
        unit, first = unit / np.linalg.norm(unit), start / (size or 1.0)
        along, lost = first @ unit, 8 * len(start) * UNIT
        across = size * (np.linalg.norm(first - along * unit) + lost * np.linalg.norm(first))
        terms = np.array([(square + 2 * delta) / margin, -2 * size * along])
        t = terms.sum() + lost * (np.abs(terms).sum() + size)
        both = np.hypot(t, 2 * across)
        bound = float((t + both if t >= 0 else 4 * across * (across / (both - t))) / (2 * np.float64(margin)))
    return math.inf if math.isnan(bound) else bound


def seen_once(n_updates: int) -> PerceptronCertificate:
    """Of weights that learned from rows as they passed."""
    fault = "rows were seen once. certify(X, y) looks at all of them."
    return _certificate(math.inf, n_updates, fault=fault, was_seen_once=True)


def certify(
    task: PerceptronTask,
    state: Weights,
    n_updates: int,
    cycle: tuple[int, int] | None,
    known: Separation | None = None,
    witness: Weights | None = None,
) -> PerceptronCertificate:
    """The proof of weights that were found with so many updates.

    known: what is known of separation. witness: weights from anywhere, whose margin is measured here.
    """
    at = task.margins(state)
    if at.n_mistakes == 0 and at.n_wrong == 0 and at.n_unknown == 0:
        return _converged(task, state, n_updates, at, witness)
    proof = known or inseparability(task)
    cycle_rows = cycle or ()
    if proof.kind == "none":
        return _certificate(
            math.inf, n_updates, rows=proof.rows, multipliers=proof.multipliers, cycle=cycle_rows, separation=proof,
            fault=f"no weights separate the classes. {proof.sentence()}",
        )  # fmt: skip
    left = f"{at.n_mistakes:,} of {at.n_rows:,} rows are mistakes after {n_updates:,} updates"
    if proof.kind == "complete":
        fault = f"{left}, but the classes can be separated: raise max_iter."
    else:
        fault = f"{left}. Whether the classes can be separated is undecided within rounding."
    return _certificate(math.inf, n_updates, cycle=cycle_rows, fault=fault, separation=proof)


def inseparability(task: PerceptronTask) -> Separation:
    """Whether weights separate the classes."""
    return separation(task.source, class_sides, task.fit_intercept, complete=True)


def _margin(at: Margins, weights: Array) -> float:
    """The least w'a_i / |w|, rounded down."""
    largest = np.abs(weights).max()  # squares of its share neither vanish nor overflow
    with np.errstate(all="ignore"):
        return float(at.least / largest / np.linalg.norm(weights / largest)) * (1 - 8 * len(weights) * UNIT)


def _converged(
    task: PerceptronTask, state: Weights, n_updates: int, at: Margins, witness: Weights | None
) -> PerceptronCertificate:
    start, end = (np.append(weights.coef, weights.intercept) for weights in (task.start, state))
    margin = _margin(at, end)
    if witness is not None:
        wide = np.append(witness.coef, witness.intercept)
        measured = _margin(task.margins(witness), wide)
        end, margin = (wide, measured) if measured > margin else (end, margin)
    if not 0 < margin < math.inf:
        return _certificate(math.inf, n_updates, fault="the margin is undecided within rounding.")
    bound = bound_on_updates(at.square, task.delta, margin, start, end) * (1 + 1e-12)
    if math.isinf(bound):
        fault = (
            "every row is on the side of its class, but the most updates that are possible leave the range of float64. "
            "Divide start and the columns by a power of ten."
        )
        return _certificate(math.inf, n_updates, fault=fault)
    value = n_updates / bound if bound > 0 else 0.0
    fault = "" if value <= 1 else f"{n_updates:,} updates are more than the {bound:,.0f} that are possible."
    return _certificate(value, n_updates, bound=bound, radius=math.sqrt(at.square), margin=margin, fault=fault)


def _certificate(value: float, n_updates: int, **facts: object) -> PerceptronCertificate:
    plain = {"claim": CLAIM, "theorem": THEOREM, "tolerance": 1.0, "rounding": 0.0}
    return PerceptronCertificate(value=value, n_updates=n_updates, **plain, **facts)  # type: ignore[arg-type]
