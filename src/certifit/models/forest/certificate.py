"""The certificate of a forest: the leaves of every tree derived again, and its error on rows that a tree did not draw.

The draws of every tree follow from random_state and the rows. Rows that were drawn are led to their leaves, and shares
or means of the leaves are added up anew. Bins are cut again, and every threshold must be an edge of a bin of its
column, or infinite, where only missing values go right. A row that a tree did not draw is new to it: the mean of these
trees predicts it, and the errors of these predictions are the out-of-bag error. Nothing is claimed about other forests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Part
from certifit.models.certificate import Certificate, unfinished
from certifit.models.forest.draws import BLOCK, Draws, drawn_rows
from certifit.models.forest.out_of_bag import OutOfBag, out_of_bag
from certifit.models.forest.state import ForestState, ForestTask
from certifit.models.trees.rows import ranked_thresholds
from certifit.runtime import core, n_threads
from certifit.statistics.residual import UNIT

CLAIM = "largest deviation of a leaf from the one derived again, as a share of what rounding allows"
THEOREM = "leaves are sums over the rows drawn for their tree; rows that were not drawn are new to it"
MOST_EDGES = 256  # of a column, a power of two: more than bins have


@dataclass(frozen=True)
class ForestCertificate(Certificate):
    """The proof that goes with a forest.

    out_of_bag: the share of wrong classes, or the mean squared error, on rows that at least 10 trees did not draw; low
    and high: a 95 % interval for it. None where such rows hold less than 95 % of the weight. left_out: the share of the
    weight of other rows; 0 in a model read from a file.
    """

    n_trees: int = 0
    deviation: float = 0.0
    out_of_bag: float | None = None
    low: float | None = None
    high: float | None = None
    fault: str = ""
    left_out: float = field(default=0.0, compare=False)

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}"]
        first = (
            f"Derived again from the rows drawn: every leaf of the {self.n_trees:,} trees agrees to "
            f"{self.deviation:.1e}, within rounding."
        )
        if self.out_of_bag is None:
            share = f"{100 * self.left_out:.2g}" if self.left_out else "more than 5"
            few = f"rows of {share} % of the weight are out of bag in fewer than 10 trees. More trees give one."
            return [first, f"No out-of-bag error: {few}"]
        others = f" Other rows hold {100 * self.left_out:.2g} % of the weight." if self.left_out else ""
        return [
            first,
            f"Out-of-bag error {self.out_of_bag:.4g} (95 %: {self.low:.4g} to {self.high:.4g}), on rows that at least "
            f"10 trees did not draw.{others}",
        ]


def certify(task: ForestTask, state: ForestState) -> ForestCertificate:
    """The leaves of a forest beside the rows that were drawn into them."""
    fault = _threshold_fault(task, state)
    if fault:
        return ForestCertificate(
            claim=CLAIM, theorem=THEOREM, value=math.inf, tolerance=1.0, rounding=1.0, n_trees=state.n_trees,
            deviation=math.inf, fault=fault,
        )  # fmt: skip
    deviation, errors = (_of_memory if task.passed is None else _of_parts)(task, state)
    allowed = 16 * (task.n_rows + 16) * UNIT  # a sum has as many terms as rows were drawn, whatever they weigh
    unit = 1.0 if task.n_classes else task.y_unit**2
    error, low, high = (None if number is None else number * unit for number in errors.error(task.n_classes > 0))
    value, n_asked = (deviation + UNIT) / allowed, task.settings.n_estimators
    fault = ""
    if not value <= 1:
        fault = _leaf_fault(deviation + UNIT)
    elif state.n_trees < n_asked:
        value, fault = math.inf, unfinished(state.n_trees, n_asked, "trees")
    return ForestCertificate(
        claim=CLAIM, theorem=THEOREM, value=value, tolerance=1.0, rounding=1.0, n_trees=state.n_trees,
        deviation=deviation + UNIT, out_of_bag=error, low=low, high=high, fault=fault, left_out=errors.left_out,
    )  # fmt: skip


def _leaf_fault(deviation: float) -> str:
    """What a leaf that its rows do not give may come from."""
    what = f"a leaf is off by {deviation:.1e} from what its rows give, more than rounding allows"
    if math.isinf(deviation):
        what = "a leaf has none of the rows drawn for its tree, or a split divides levels that none of these has"
    return (
        f"{what}. The forest was changed, or these are not its rows, or it was fitted by a version that drew rows of "
        f"weights, copies or more than {BLOCK:,} rows in another way. It predicts what it did then; to have it proven, "
        "fit it again."
    )


def _of_memory(task: ForestTask, state: ForestState) -> tuple[float, OutOfBag]:
    """The largest deviation of a leaf, and the errors on rows that trees did not draw."""
    leaves = core.check_forest(
        task.block.rows, *task.scaled(), *state.paths(), _values(task, state), task.n_classes,
        task.settings.random_state, n_threads(), task.edges,
    )  # fmt: skip
    if leaves is None:
        task.refuse()
    deviation, means, n_out, target, mass = leaves
    return deviation, out_of_bag(OutOfBag(), means, n_out, target, mass, task.n_classes)


def _values(task: ForestTask, state: ForestState) -> Array:
    """What leaves say, in the units of the targets."""
    return state.values if task.n_classes else state.values / task.y_unit


@dataclass(frozen=True)
class _Sums:
    """Of the rows of some parts: by leaf and class, or of y; draws by leaf; the levels that nodes met; errors."""

    sums: Array
    mass: Array
    seen: Array
    errors: OutOfBag


def _of_parts(task: ForestTask, state: ForestState) -> tuple[float, OutOfBag]:
    """The same of rows in parts, which are led by the ranks of their values: edges of bins are few enough."""
    assert task.passed is not None
    is_number = (state.left > 0) & ~state.is_of_levels
    ranked = ranked_thresholds(state.feature, state.threshold, is_number, task.source.n_features)
    assert ranked is not None
    parts = task.passed.parts(ranked.edges, state.n_levels, None, (1.0, task.weight_unit))
    values = _values(task, state)
    draws = drawn_rows(parts).draws(task.settings.random_state, 0, state.n_trees)
    asked = (*replace(state, threshold=ranked.threshold).paths(), values)
    n_seen = 0 if state.n_levels is None else len(state.left)
    before = _Sums(np.zeros_like(values), np.zeros(len(values)), np.zeros((n_seen, 4), dtype=np.uint64), OutOfBag())
    f = partial(_with_part, draws=draws, asked=asked, n_classes=task.n_classes)
    sums = parts.fold(f, before, ("codes", "y", "weight"))
    if _divides_unseen_levels(state, sums.seen):
        return math.inf, sums.errors
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(sums.sums / sums.mass[:, None] - values)
    size = 1.0 if task.n_classes else task.y_size / task.y_unit or 1.0
    return float(np.where(np.isnan(off), np.inf, off / size).max()), sums.errors


def _with_part(part: Part, before: _Sums, draws: Draws, asked: tuple[Array | None, ...], n_classes: int) -> _Sums:
    y, weight = part["y"], part["weight"]
    sums, mass, seen, means, n_out = core.check_forest_part(
        part["codes"], y, weight, draws.is_weighted, draws.blocks_of(part), part.first // BLOCK, before.sums,
        before.mass, before.seen, *asked, n_classes, draws.seed, n_threads(),
    )  # fmt: skip
    return _Sums(sums, mass, seen, out_of_bag(before.errors, means, n_out, y, weight, n_classes))


def _divides_unseen_levels(state: ForestState, seen: Array) -> bool:
    """Whether a node sends some of the levels that none of its drawn rows has left, and others right."""
    nodes = np.flatnonzero(state.is_of_levels)
    if not len(nodes) or state.n_levels is None:
        return False
    codes = np.arange(256)
    bits = np.uint64(1) << (codes % 64).astype(np.uint64)
    is_seen, is_left = (
        (words[:, codes // 64] & bits) > 0 for words in (seen[nodes], state.sets[state.threshold[nodes].astype(int)])
    )
    is_unseen = ~is_seen & (codes < state.n_levels[state.feature[nodes]][:, None])
    return bool(((is_unseen & is_left).any(axis=1) & (is_unseen & ~is_left).any(axis=1)).any())


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
