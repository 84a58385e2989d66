"""The certificate of a tree: its numbers derived again from the rows, by code that knows nothing of the search.

Rows are led to their leaves. Sums of a leaf are added over its rows, those of a node over its children; from these
follow weights, values, impurities and decreases. A threshold must lie halfway between the nearest values of the rows on
its two sides, or, where columns were cut into bins, be an edge of a bin. Levels of a category that no row of a node has
must all go to one side. Where a column has a direction, no leaf on one side of its splits may answer more than one on
the other side, but for rounding.

The deviation is the largest one of a stored number from the derived one: of class shares, impurities and decreases
relative to 1, or to the largest distance of y from its mean (its square, for squared errors), or to |y| where all y are
equal. Sums of n numbers are off by some n units of rounding, which is what a deviation is measured in.

Of a greedy tree nothing is claimed about other trees. Of the best tree, and of any tree of depth 1 to 4 on request, the
certificate states how small the loss of a tree of its depth on the grid of thresholds can be: by branch and bound
(trees/optimal.py), run anew on the rows. The loss of the tree itself is derived here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Context
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.models.certificate import Certificate
from certifit.models.trees.columns import MOST_LEVELS, column_of
from certifit.models.trees.passes import Scale
from certifit.models.trees.rows import counted_rows
from certifit.models.trees.state import TreeState
from certifit.models.trees.task import FAR_WEIGHTS, LEAST_WEIGHT, POWERS, TreeTask
from certifit.statistics.residual import UNIT

CLAIM = "largest deviation of a number of the tree from the one derived again, as a share of what rounding allows"
OPTIMUM = (
    "for lo < s < hi a split s of the root has E(s) >= E_left(lo) + E_right(hi): the least losses of trees of one "
    "level less on the rows left of lo and right of hi"
)
THEOREM = "leaves, impurities and decreases are sums over rows; the search is greedy, and no other tree is excluded"

BETTER = (
    "the same search finds a tree of loss {:.8g}, and this one has {:.8g}. The tree was changed, or these are not its "
    "rows."
)
SHOWN = Context(prec=8, rounding=ROUND_DOWN)  # digits of a bound that are one as well
SLACK = 1e-12  # relative: losses that differ by less are equal
SHOWN_EQUAL = 1e-8  # relative: losses whose shown digits are the same
OPEN = 1e-3  # of the loss of the root alone: a bound that is further from the loss is not equal but for rounding


@dataclass(frozen=True)
class TreeCertificate(Certificate):
    """The proof that goes with a tree. deviation: relative, of its worst number. fault: a split that is none.

    least_loss: no tree of searched_depth on the grid of n_thresholds thresholds has a smaller one; loss: of this tree;
    share of wrong rows, or mean squared error. n_searched: nodes that the proof took. is_closed: nothing is left to
    search, and the two losses are equal but for rounding. least_rows: distinct rows that every leaf of these trees has;
    None: they need none. All None where nothing was searched.
    """

    n_leaves: int = 1
    depth: int = 0
    deviation: float = 0.0
    fault: str = ""
    loss: float | None = None
    least_loss: float | None = None
    n_thresholds: int | None = None
    n_searched: int | None = None
    searched_depth: int | None = None
    is_closed: bool | None = None
    least_rows: int | None = None

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}"]
        if not self.holds:
            return [
                f"NOT certified: a number of the tree is off by {self.deviation:.1e} from what the rows give, more "
                "than rounding allows. The tree was changed, or these are not its rows."
            ]
        leaves = "leaf" if self.n_leaves == 1 else "leaves"
        return [
            f"Derived again from the rows: every value, impurity and decrease of the tree ({self.n_leaves:,} {leaves}, "
            f"depth {self.depth}) agrees to {self.deviation:.1e}, within rounding.",
            self._against_others(),
        ]

    def _against_others(self) -> str:
        """What is known of other trees."""
        if self.loss is None or self.least_loss is None:
            return (
                "The search is greedy: each split is chosen for its own node. Another tree of this size may fit better."
            )
        leaves = "" if self.least_rows is None else f", with at least {self.least_rows:,} distinct rows in every leaf,"
        grid = f"on the {self.n_thresholds:,} thresholds of the grid"
        trees = f"No tree of depth {self.searched_depth} {grid}{leaves} has a"
        if self.is_closed and self.least_loss >= self.loss * (1 - SHOWN_EQUAL):
            rounding = "" if self.least_loss >= self.loss * (1 - 8 * UNIT) else " but for rounding"
            return f"{trees} smaller loss than this one{rounding}, {self.loss:.8g}: it is proven to be the best."
        least = SHOWN.create_decimal_from_float(self.least_loss)
        claim = f"{trees} loss below {float(least):.8g}; this one has {self.loss:.8g}"
        if self.is_closed:
            return f"{claim}. Nothing is left to search: what lies between the two is the rounding of sums."
        if self.loss < self.least_loss:
            return f"{claim}: its own thresholds are finer than the grid."
        most = math.ceil((self.loss - self.least_loss) / self.loss * 1e4) / 100
        return f"{claim}: the best can be at most {most:.2f}% smaller ({self.n_searched:,} subsets of rows searched)."


def certify(task: TreeTask, state: TreeState, against_best: bool = False) -> TreeCertificate:
    """The numbers of a tree beside those that the rows give. against_best: its loss beside the least of its depth."""
    # Where values lie beside thresholds matters where these are not edges of bins; infinite ones are none.
    with_ranges = task.splitting.max_bins is None or bool(np.isinf(state.threshold).any())
    walked = _all_walked(task, state, with_ranges)
    if walked.least < LEAST_WEIGHT:
        return _certificate(state, np.inf, np.inf, FAR_WEIGHTS)
    fault = _threshold_fault(task, state, walked.below, walked.above) or _level_fault(state, walked.seen)
    if fault:
        return _certificate(state, np.inf, np.inf, fault)
    derived = _classes(task, state, walked.sums) if task.n_classes else _numbers(task, state, walked.sums)
    deviation = (derived.deviation(task, state) + UNIT) * (1 + 8 * UNIT * derived.size)  # the unit is rounded too
    allowed = 16 * (task.n_rows + 16) * UNIT * derived.size
    fault = _direction_fault(task, state, allowed * derived.unit * task.y_unit)
    certificate = _certificate(state, np.inf if fault else deviation / allowed, deviation, fault)
    if fault:
        return certificate
    return _compared(task, state, certificate, derived) if against_best or not task.is_greedy else certificate


def _compared(task: TreeTask, state: TreeState, certificate: TreeCertificate, derived: _Derived) -> TreeCertificate:
    """The certificate with what branch and bound says of all trees of a depth."""
    best = task.optimum(certificate.depth if task.is_greedy else task.stops.max_depth or 0)
    loss, most = derived.loss(state, task.impurity_unit), OPEN * derived.of_root(task.impurity_unit)
    slack = 2 * best.rounding + SLACK * (1.0 if task.n_classes else best.upper)
    fault = "" if task.is_greedy or loss <= best.upper + slack else BETTER.format(best.upper, loss)
    return replace(
        certificate,
        theorem=f"{THEOREM}; {OPTIMUM}" if task.is_greedy else OPTIMUM,
        value=float("inf") if fault else certificate.value,
        fault=fault,
        loss=loss,
        least_loss=best.lower,
        n_thresholds=best.n_thresholds,
        n_searched=best.n_nodes,
        searched_depth=best.depth,
        is_closed=best.is_closed and abs(loss - best.upper) <= slack and loss - best.lower <= most,
        least_rows=int(task.stops.min_samples_leaf) if task.stops.min_samples_leaf > 1 else None,
    )


def _certificate(state: TreeState, value: float, deviation: float, fault: str = "") -> TreeCertificate:
    return TreeCertificate(
        claim=CLAIM, theorem=THEOREM, value=float(value), tolerance=1.0, rounding=1.0, fault=fault,
        n_leaves=state.n_leaves, depth=int(state.depths.max()), deviation=float(deviation),
    )  # fmt: skip


def _threshold_fault(task: TreeTask, state: TreeState, below: Array, above: Array) -> str:
    """A threshold that is not halfway between the values on its sides, or no edge of a bin."""
    inner = (state.left > 0) & ~state.is_of_levels
    if task.splitting.max_bins is not None:
        is_last = np.isinf(above[inner]) if len(above) else np.zeros(np.count_nonzero(inner), dtype=bool)
        return _edge_fault(task, state, np.flatnonzero(inner), is_last)
    low, high, threshold = below[inner], above[inner], state.threshold[inner]
    with np.errstate(invalid="ignore", over="ignore"):
        halfway = low / 2 + high / 2
        halfway = np.where((halfway >= low) & (halfway < high), halfway, low)
    expected = np.where(np.isinf(high), np.inf, halfway)  # all known values go left, missing ones right
    wrong = np.flatnonzero((threshold != expected) | np.isinf(low))
    if not len(wrong):
        return ""
    node = int(np.flatnonzero(inner)[wrong[0]])
    return (
        f"the threshold of node {node} is not halfway between the values of the rows on its two sides. The tree was "
        "changed, or these are not its rows."
    )


def _edge_fault(task: TreeTask, state: TreeState, nodes: Array, is_last: Array) -> str:
    """A threshold that is no edge of a bin. is_last: no row of the node has a value above it."""
    edges = task.edges or []
    is_edge = is_last & np.isinf(state.threshold[nodes])
    for j, of_column in enumerate(edges):
        here = state.feature[nodes] == j
        is_edge[here] |= np.isin(state.threshold[nodes][here], of_column)
    if is_edge.all():
        return ""
    return (
        f"the threshold of node {nodes[~is_edge][0]} is no edge of a bin of its column. The tree was changed, or these "
        "are not its rows."
    )


@dataclass(frozen=True)
class _Reading:
    """How rows are read: classes, or numbers by a criterion, less their mean in units."""

    n_classes: int
    criterion: str
    scale: Scale
    weight_unit: float
    centre: float

    def sums(self, rows: Block, leaves: Array, n_nodes: int) -> Array:
        """Of every leaf: the weight of every class; or weight, mean and spread of numbers."""
        mass = np.ones(rows.n_rows) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
        mass = mass / self.weight_unit
        if self.n_classes:
            places = leaves.astype(np.int64) * self.n_classes + np.asarray(rows.y).astype(np.int64)
            counts = np.bincount(places, weights=mass, minlength=n_nodes * self.n_classes)
            return counts.reshape(n_nodes, self.n_classes)
        y = self.scale.of(rows.y)
        weight = np.bincount(leaves, weights=mass, minlength=n_nodes)
        means = np.bincount(leaves, weights=mass * (y - self.centre), minlength=n_nodes) / np.where(weight, weight, 1.0)
        of_rows = means[leaves]
        if self.criterion == "poisson":
            positive = y > 0
            apart = y * np.log(np.where(positive, y, 1.0) / np.where(positive, of_rows, 1.0))
        else:
            apart = np.square(y - self.centre - of_rows)
        return np.column_stack([weight, means, np.bincount(leaves, weights=mass * apart, minlength=n_nodes)])

    def merged(self, first: Array, second: Array) -> Array:
        """Sums of two sets of rows: what means that differ add to the spread is added, nothing cancels."""
        if self.n_classes:
            return first + second
        (weight, means, spread), (more, other, beside) = first.T, second.T
        total = weight + more
        share = more / np.where(total, total, 1.0)
        apart = np.where((weight > 0) & (more > 0), other - means, 0.0)
        merged = np.where(weight > 0, means, other) + apart * share
        if self.criterion == "poisson":
            between = _logs(weight, means, merged) + _logs(more, other, merged)
        else:
            between = np.square(apart) * weight * share
        return np.column_stack([total, merged, spread + beside + between])


def _logs(weight: Array, mean: Array, merged: Array) -> Array:
    """weight x mean x log(mean / merged), 0 where there is none."""
    is_there = (weight > 0) & (mean > 0) & (merged > 0)
    ratio = np.where(is_there, mean, 1.0) / np.where(is_there, merged, 1.0)
    return np.where(is_there, weight * mean * np.log(ratio), 0.0)


@dataclass(frozen=True)
class _WalkedRows:
    """Rows on their way. seen: per node that splits a category, whether a row there has each level.

    sums: of every leaf, as `_Reading` gives them. least: weight of a row, in units.
    """

    least: float
    sums: Array
    below: Array
    above: Array
    seen: Array


def _centre(task: TreeTask) -> float:
    """What sums of y are about, in units: the mean where squares would lose digits."""
    return task.moments.mean if task.criterion == "squared_error" else 0.0


def _all_walked(task: TreeTask, state: TreeState, with_ranges: bool) -> _WalkedRows:
    """All rows, stretch by stretch, wherever they are."""
    reading = _Reading(task.n_classes, task.criterion, task.scale, task.weight_unit, _centre(task))
    f = partial(_walked, reading=reading, state=state, with_ranges=with_ranges)
    whole: _WalkedRows | None = None
    for part in task.each_stretch(f):
        if whole is None or part is None:
            whole = part if whole is None else whole
            continue
        whole = _WalkedRows(
            min(whole.least, part.least), reading.merged(whole.sums, part.sums), np.maximum(whole.below, part.below),
            np.minimum(whole.above, part.above), whole.seen | part.seen,
        )  # fmt: skip
    assert whole is not None
    return whole


def _walked(stretch: Block, reading: _Reading, state: TreeState, with_ranges: bool) -> _WalkedRows | None:
    rows = counted_rows(stretch, reading.n_classes)
    if not rows.n_rows:
        return None
    walked = state.walk(rows, with_ranges=with_ranges)
    nodes = np.flatnonzero(state.is_of_levels)
    seen = np.zeros((len(nodes), MOST_LEVELS), dtype=bool)
    for k, node in enumerate(nodes.tolist()):
        codes = column_of(rows, int(state.feature[node]))[np.isin(walked.leaves, _leaves_below(state, node))]
        seen[k, codes[~np.isnan(codes)].astype(np.int64)] = True
    sums = reading.sums(rows, walked.leaves, state.n_nodes)
    least = 1.0 if rows.weight is None else float(np.min(rows.weight)) / reading.weight_unit
    return _WalkedRows(least, sums, walked.below, walked.above, seen)


def _level_fault(state: TreeState, seen: Array) -> str:
    """A node that sends some of the levels that none of its rows has left, and others right."""
    if state.n_levels is None:
        return ""
    for k, node in enumerate(np.flatnonzero(state.is_of_levels).tolist()):
        left = np.array(state.levels_left(node), dtype=np.int64)
        unseen = np.flatnonzero(~seen[k, : int(state.n_levels[state.feature[node]])])
        if 0 < np.isin(unseen, left).sum() < len(unseen):
            return (
                f"node {node} sends some levels that none of its rows has left and others right. The tree was changed, "
                "or these are not its rows."
            )
    return ""


def _leaves_below(state: TreeState, node: int) -> list[int]:
    open_nodes, leaves = [node], []
    while open_nodes:
        at = open_nodes.pop()
        if state.left[at]:
            open_nodes += [int(state.left[at]), int(state.left[at]) + 1]
        else:
            leaves.append(at)
    return leaves


def _direction_fault(task: TreeTask, state: TreeState, allowed: float) -> str:
    """A column that its direction forbids to raise, or to lower, an answer, and that does."""
    direction = task.splitting.columns.direction
    if direction is None or not direction.any():
        return ""
    answers = state.values[:, 1] / state.weight if task.n_classes else state.values
    low, high = answers.copy(), answers.copy()  # of the leaves below every node
    for node in reversed(range(state.n_nodes)):
        if not state.left[node]:
            continue
        left, right = int(state.left[node]), int(state.left[node]) + 1
        low[node], high[node] = min(low[left], low[right]), max(high[left], high[right])
        sign = int(direction[state.feature[node]])
        below, above = (left, right) if sign > 0 else (right, left)
        if sign and high[below] > low[above] + allowed:
            return (
                f"answers do not keep to the direction of column {task.source.names[int(state.feature[node])]!r} at "
                f"node {node}. The tree was changed."
            )
    return ""


@dataclass(frozen=True)
class _Derived:
    """What rows give for every node. values: shares of the classes, or means less the mean of all rows, in units of y.

    unit: the largest distance of y from its mean, or |y| where all are equal. size: of y against that unit; subtracting
    the mean costs digits. wrong: of classes, the weight of the rows that are not of the heaviest one.
    """

    weight: Array
    values: Array
    impurity: Array
    unit: float = 1.0
    centre: float = 0.0
    size: float = 1.0
    wrong: Array | None = None

    def loss(self, state: TreeState, impurity_unit: float) -> float:
        """Share of wrong rows, or mean squared error. Whole weights are summed without rounding."""
        if self.wrong is not None:
            return float(self.wrong[state.is_leaf].sum() / self.weight[0])
        shares = self.weight[state.is_leaf] / self.weight[0]
        return float(shares @ (self.impurity[state.is_leaf] * self.unit**2)) * impurity_unit

    def of_root(self, impurity_unit: float) -> float:
        """The same of the root alone."""
        if self.wrong is not None:
            return float(self.wrong[0] / self.weight[0])
        return float(self.impurity[0] * self.unit**2) * impurity_unit

    def deviation(self, task: TreeTask, state: TreeState) -> float:
        """The largest deviation of a stored number."""
        stored = state.weight / task.weight_unit
        with np.errstate(over="ignore", under="ignore"):
            scale = task.impurity_unit * np.float64(self.unit) ** POWERS[task.criterion]
        scale = np.clip(scale, np.finfo(np.float64).tiny, np.finfo(np.float64).max)  # impurities of equal y are all 0
        if task.n_classes:
            values = state.values / state.weight[:, None] - self.values
        else:
            values = ((state.values - task.y_centre) / task.y_unit - self.centre - self.values) / self.unit
        wanted = self._decreases(state)
        parts = (
            (stored - self.weight) / self.weight * self.size,  # what an offset of y costs is no excuse for weights
            values.ravel(),
            state.impurity / scale - self.impurity,
            state.decrease / scale - wanted,
        )
        return float(max(np.abs(part).max(initial=0.0) for part in parts))

    def _decreases(self, state: TreeState) -> Array:
        inner = np.flatnonzero(state.left)
        mass = self.weight * self.impurity / self.weight[0]
        decreases = np.zeros(state.n_nodes)
        decreases[inner] = mass[inner] - mass[state.left[inner]] - mass[state.left[inner] + 1]
        return decreases


def _added_up(state: TreeState, of_leaves: Array) -> Array:
    """Sums of every node from those of its leaves, level by level from below."""
    sums = of_leaves.copy()
    for depth in range(int(state.depths.max()), 0, -1):
        level = np.flatnonzero(state.depths == depth)
        np.add.at(sums, state.parents[level], sums[level])
    return sums


def _classes(task: TreeTask, state: TreeState, counts: Array) -> _Derived:
    counts = _added_up(state, counts)
    weight = counts.sum(axis=1)
    shares = counts / weight[:, None]
    if task.criterion == "gini":
        impurity = (shares * (1 - shares)).sum(axis=1)
    else:
        impurity = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    return _Derived(weight, shares, impurity, wrong=weight - counts.max(axis=1))


def _numbers(task: TreeTask, state: TreeState, of_leaves: Array) -> _Derived:
    """Means and spreads of nodes are merged from those of their children: nothing cancels."""
    centre = _centre(task)
    ends = task.scale.of(task.y_ends) - task.moments.mean
    largest = task.y_size / task.y_unit
    unit = float(np.abs(ends).max()) or largest or 1.0
    weight = _added_up(state, of_leaves[:, 0])
    means = _added_up(state, of_leaves[:, 0] * of_leaves[:, 1]) / weight
    size = 1.0 + largest / unit
    inner = np.flatnonzero(state.left)
    first, second = state.left[inner], state.left[inner] + 1
    between = np.zeros(state.n_nodes)
    if task.criterion == "poisson":
        for child in (first, second):
            between[inner] += weight[child] * means[child] * np.log(means[child] / means[inner])
        spread = _added_up(state, of_leaves[:, 2] + between) / unit
        return _Derived(weight, means, spread / weight, unit, centre, size + abs(np.log(unit)))
    between[inner] = np.square((means[first] - means[second]) / unit) * weight[first] * weight[second] / weight[inner]
    spread = _added_up(state, of_leaves[:, 2] / unit / unit + between)
    return _Derived(weight, means, spread / weight, unit, centre, size)
