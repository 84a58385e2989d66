"""The certificate of boosted regression trees: every round played again from the first weights.

The rows of a leaf give its value anew, a weighted mean; the residuals of a tree give its mean loss, this its weight in
the median and the weights of the next round. A threshold must lie halfway between the nearest values of the rows on its
two sides. Deviations are relative to the largest distance of y from its mean, and measured in what rounding allows: n
units for sums over n rows, times the rounds before. No bound on the error of such a median is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.adaboost_r2.state import MedianTask, TreeMedian
from certifit.models.certificate import Certificate, unfinished
from certifit.models.trees.state import Walked
from certifit.statistics.residual import TINY, UNIT

CLAIM = "largest deviation of a round from the one derived again, as a share of what rounding allows"
THEOREM = "values, losses and weights of rounds are sums over rows; no bound on the error of the median is known"


@dataclass(frozen=True)
class MedianCertificate(Certificate):
    """The proof that goes with boosted regression trees. deviation: the largest, relative. fault: what is none."""

    n_rounds: int = 0
    deviation: float = 0.0
    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}"]
        if not self.holds:
            return [f"NOT certified: a number of a round is off by {self.deviation:.1e}, more than rounding allows."]
        rounds = "round" if self.n_rounds == 1 else "rounds"
        return [
            f"Derived again from the rows: leaves, losses and weights of the {self.n_rounds:,} {rounds} are right to "
            f"{self.deviation:.1e}, within rounding.",
            "No bound on the error of a boosted median is known, and none is claimed.",
        ]


def certify(task: MedianTask, state: TreeMedian) -> MedianCertificate:
    """The rounds of a model beside those that the rows give."""
    rows, y = task.rows, np.asarray(task.rows.y) / task.y_unit
    weight = np.asarray(task.rows.weight)
    centre = float(weight @ y)
    unit = float(np.abs(y - centre).max(initial=0.0)) or 1.0
    size = 1.0 + float(np.abs(y).max(initial=0.0)) / unit
    worst = deviation = 0.0
    for j in range(state.n_rounds):
        walked = state.walk(rows, j, with_ranges=True)
        fault = _threshold_fault(state, walked, j)
        if fault:
            return _certificate(state, math.inf, math.inf, fault)
        values = state.values[state.nodes(j)] / task.y_unit
        off = _leaf_deviation(values, walked.leaves, y - centre, weight, centre) / unit
        losses, largest = task.losses(values[walked.leaves], y)
        error = float(weight @ losses) if largest > 0 else 0.0
        alpha = _alpha(task, state, error, j)
        off = max(off, abs(error - float(state.error[j])), abs(alpha - float(state.alpha[j])) / (4 + abs(alpha)))
        deviation = max(deviation, off)
        worst = max(worst, off / (64 * (len(y) + 16) * (j + 1) ** 2 * UNIT * size))
        if worst > 1 or not math.isfinite(worst):
            return _certificate(state, math.inf, deviation, _changed(j, "leaf, loss or weight is not that of the rows"))
        weight = task.reweighted(weight, losses, float(state.alpha[j]))
    if _is_unfinished(task, state, weight):
        return _certificate(state, math.inf, deviation + UNIT, unfinished(state.n_rounds, task.n_estimators))
    return _certificate(state, worst + TINY, deviation + UNIT)


def _is_unfinished(task: MedianTask, state: TreeMedian, weight: Array) -> bool:
    """Whether rounds are missing: no tree was exact, and one for the weights after the last round beats one half."""
    if state.n_rounds >= task.n_estimators or not 0 < state.error[-1] < 0.5:
        return False
    return task.mean_loss(task.tree(weight), weight)[1] < 0.5


def _alpha(task: MedianTask, state: TreeMedian, error: float, j: int) -> float:
    """The weight that a round must have; of an exact tree at the end that of all before it."""
    if j > 0 and error == 0:
        return float(state.alpha[:j].sum()) or 1.0
    return task.alpha(error, j)


def _certificate(state: TreeMedian, value: float, deviation: float, fault: str = "") -> MedianCertificate:
    return MedianCertificate(
        claim=CLAIM, theorem=THEOREM, value=float(value), tolerance=1.0, rounding=1.0, n_rounds=state.n_rounds,
        deviation=float(deviation), fault=fault,
    )  # fmt: skip


def _changed(round_number: int, what: str) -> str:
    return f"round {round_number + 1}: its {what}. The model was changed, or these are not its rows."


def _leaf_deviation(values: Array, leaves: Array, apart: Array, weight: Array, centre: float) -> float:
    mass = np.bincount(leaves, weights=weight, minlength=len(values))
    sums = np.bincount(leaves, weights=weight * apart, minlength=len(values))
    reached = np.unique(leaves)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(values[reached] - centre - sums[reached] / mass[reached])
    return float(np.where(mass[reached] > 0, off, 0.0).max(initial=0.0))


def _threshold_fault(state: TreeMedian, walked: Walked, j: int) -> str:
    nodes = state.nodes(j)
    inner = state.left[nodes] > 0
    low, high, threshold = walked.below[inner], walked.above[inner], state.threshold[nodes][inner]
    with np.errstate(invalid="ignore", over="ignore"):
        halfway = low / 2 + high / 2
        halfway = np.where((halfway >= low) & (halfway < high), halfway, low)
    expected = np.where(np.isinf(high), np.inf, halfway)
    if ((threshold != expected) | np.isinf(low)).any():
        return _changed(j, "threshold is not halfway between values of rows")
    return ""
