"""The certificate of a forest: the leaves of every tree derived again, and its error on rows that a tree did not draw.

The draws of every tree follow from random_state and the rows. Rows that were drawn are led to their leaves, and shares
or means of the leaves are added up anew. Bins are cut again, and every threshold must be an edge of a bin of its
column, or infinite, where only missing values go right. A row that a tree did not draw is new to it: the mean of these
trees predicts it, and the errors of these predictions are the out-of-bag error. Nothing is claimed about other forests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import Certificate, unfinished
from certifit.models.forest.state import ForestState, ForestTask
from certifit.models.trees.streamed import ranked_thresholds
from certifit.runtime import core, n_threads
from certifit.statistics.residual import UNIT

CLAIM = "largest deviation of a leaf from the one derived again, as a share of what rounding allows"
THEOREM = "leaves are sums over the rows drawn for their tree; rows that were not drawn are new to it"
Z = 1.959963984540054  # of 95 %
MOST_EDGES = 256  # of a column, a power of two: more than bins have


@dataclass(frozen=True)
class ForestCertificate(Certificate):
    """The proof that goes with a forest.

    out_of_bag: the share of wrong classes, or the mean squared error, on rows that trees did not draw; low and high: a
    95 % interval for it. None where every row was drawn for every tree.
    """

    n_trees: int = 0
    deviation: float = 0.0
    out_of_bag: float | None = None
    low: float | None = None
    high: float | None = None
    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}"]
        if not self.holds:
            return [
                f"NOT certified: a leaf is off by {self.deviation:.1e} from what its rows give, more than rounding "
                "allows. The forest was changed, or these are not its rows."
            ]
        first = (
            f"Derived again from the rows drawn: every leaf of the {self.n_trees:,} trees is right to "
            f"{self.deviation:.1e}, within rounding."
        )
        if self.out_of_bag is None:
            return [first, "Every tree drew every row: there is no out-of-bag error."]
        return [
            first,
            f"Out-of-bag error {self.out_of_bag:.4g} (95 %: {self.low:.4g} to {self.high:.4g}), on rows that trees did "
            "not draw.",
        ]


def certify(task: ForestTask, state: ForestState) -> ForestCertificate:
    """The leaves of a forest beside the rows that were drawn into them."""
    fault = _threshold_fault(task, state)
    if fault:
        return ForestCertificate(
            claim=CLAIM, theorem=THEOREM, value=math.inf, tolerance=1.0, rounding=1.0, n_trees=state.n_trees,
            deviation=math.inf, fault=fault,
        )  # fmt: skip
    deviation, out, n_out, target, mass = _checked(task, state)
    allowed = 16 * (float(mass.sum()) + 16) * UNIT
    error, low, high = _out_of_bag(task, out, n_out > 0, target, mass)
    value, n_asked = (deviation + UNIT) / allowed, task.settings.n_estimators
    is_short = value <= 1 and state.n_trees < n_asked
    return ForestCertificate(
        claim=CLAIM, theorem=THEOREM, value=math.inf if is_short else value, tolerance=1.0, rounding=1.0,
        n_trees=state.n_trees, deviation=deviation + UNIT, out_of_bag=error, low=low, high=high,
        fault=unfinished(state.n_trees, n_asked, "trees") if is_short else "",
    )  # fmt: skip


def _checked(task: ForestTask, state: ForestState) -> tuple[float, Array, Array, Array, Array]:
    """The largest deviation of a leaf; per distinct row the mean of the trees that did not draw it, and their number.

    Then its target and its weight. Rows that are read in passes are led by the ranks of their values: thresholds that
    are edges of bins are few enough.
    """
    values = state.values if task.n_classes else state.values / task.y_unit
    last = (values, task.n_classes, task.settings.random_state, n_threads())
    if task.streamed is None:
        leaves = core.check_forest(task.block.rows, *task.scaled(), *state.paths(), *last, task.edges)
    else:
        is_number = (state.left > 0) & ~state.is_of_levels
        ranked = ranked_thresholds(state.feature, state.threshold, is_number, task.source.n_features)
        assert ranked is not None
        rows, asked = task.distinct, replace(state, threshold=ranked.threshold)
        ranks = task.streamed.codes(rows, ranked.edges, state.n_levels)
        leaves = core.check_forest_ranks(ranks, rows.y, rows.weight, *asked.paths(), *last)
    if leaves is None:
        task.refuse()
    checked: tuple[float, Array, Array, Array, Array] = leaves
    return checked


def _threshold_fault(task: ForestTask, state: ForestState) -> str:
    """A threshold that is no edge of a bin."""
    is_number = (state.left > 0) & ~state.is_of_levels
    for tree, (begin, end) in enumerate(pairwise(state.ends.tolist()), start=1):
        nodes = begin + np.flatnonzero(is_number[begin:end])
        feature, threshold = state.feature[nodes], state.threshold[nodes]
        columns = np.flatnonzero(np.bincount(feature, minlength=1))
        known = np.full(len(columns) * MOST_EDGES, np.inf)
        for k, j in enumerate(columns.tolist()):
            known[k * MOST_EDGES :][: len(task.edges[j])] = task.edges[j]
        place = MOST_EDGES * np.searchsorted(columns, feature)  # first of its column; found by halving: not below it
        half = MOST_EDGES // 2
        while half:
            place += half * (known.take(place + (half - 1)) < threshold)
            half //= 2
        if (known.take(place) != threshold).any():
            return (
                f"a threshold of tree {tree} is no edge of a bin of its column. The forest was changed, or these are "
                "not its rows."
            )
    return ""


def _out_of_bag(
    task: ForestTask, out: Array, is_out: Array, target: Array, mass: Array
) -> tuple[float | None, float | None, float | None]:
    """The error on rows that trees did not draw, with an interval: Wilson's of shares, the normal one of squares."""
    if not is_out.any():
        return None, None, None
    weight = mass[is_out] / mass[is_out].sum()
    n = float(mass[is_out].sum() / mass[is_out].max()) if task.weight is not None else float(is_out.sum())
    if task.n_classes:
        share = float(weight @ (out[is_out].argmax(axis=1) != target[is_out]))
        middle, width = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
        return share, max((middle - width) / (1 + Z**2 / n), 0.0), min((middle + width) / (1 + Z**2 / n), 1.0)
    squares = np.square(out[is_out, 0] - target[is_out])
    mean = float(weight @ squares)
    half = Z * math.sqrt(float(weight @ np.square(squares - mean)) / n)
    unit = task.y_unit**2
    return mean * unit, max(mean - half, 0.0) * unit, (mean + half) * unit
