"""A tree of boosting grown on rows in parts: every level is one pass, whose histograms add up to those of all rows.

Which leaf is split next depends on gains of leaves whose histograms are not known yet. A pass looks at the children of
every leaf that would be split if leaves without a histogram stayed leaves; then the order of splits is played again. A
leaf that is looked at and not split in the end costs its histogram and changes nothing: the tree is that of rows in
memory, which splits one leaf at a time. Of two children the smaller one is summed, the larger one is what remains of
their parent: sums of whole numbers, exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Arrays, Part, Parts
from certifit.models.boosting.task import BoostingSettings
from certifit.runtime import core, n_threads

UNLIMITED = 2**29  # levels, leaves
MOST_WORDS = 1 << 25  # of histograms of a pass: 256 MB


@dataclass(frozen=True)
class BinnedColumns:
    """n_bins: of every column; n_levels: of categories, 0 of other columns. tried: those of a round."""

    n_bins: Array
    n_levels: Array | None
    tried: Array


@dataclass
class _Leaf:
    """A node of all that were looked at. sum: words of its rows; words: its histogram, while it may be needed."""

    depth: int
    sum: Array
    bounds: Array
    words: Array | None = None
    split: dict[str, Array] | None = None
    children: int = 0  # the number of the left one


@dataclass
class _Seen:
    """Nodes that were looked at, in the order in which their children were made; arrays lead rows."""

    leaves: list[_Leaf]
    columns: BinnedColumns
    sets: list[Array] = field(default_factory=list)

    def arrays(self) -> dict[str, Array]:
        """What leads rows, as the core takes it."""
        n = len(self.leaves)
        feature, left, bins = (np.zeros(n, dtype=np.int64) for _ in range(3))
        is_missing_left = np.zeros(n, dtype=np.uint8)
        sets: list[Array] = []
        for number, leaf in enumerate(self.leaves):
            if not leaf.children:
                continue
            assert leaf.split is not None
            feature[number], left[number] = leaf.split["feature"], leaf.children
            bins[number], is_missing_left[number] = leaf.split["bin"], leaf.split["is_missing_left"]
            if self.columns.n_levels is not None and self.columns.n_levels[feature[number]]:
                bins[number] = len(sets)
                sets.append(leaf.split["levels"])
        return {
            "feature": feature, "left": left, "bin": bins, "is_missing_left": is_missing_left,
            "sets": np.array(sets, dtype=np.uint64).reshape(-1, 4),
        }  # fmt: skip


def grown_tree(
    parts: Parts, k: int, settings: BoostingSettings, columns: BinnedColumns, sizes: tuple[float, float, int]
) -> dict[str, Array]:
    """The nodes of a tree on slopes and curvatures number k; every part keeps the leaves of its rows, `leaf k`."""
    plan = _Plan(settings, columns, sizes)
    seen = _Seen([], columns)
    if np.isfinite(sizes[:2]).all() and plan.max_leaves > 1:
        words = _histograms(parts, k, plan, None, np.zeros(1, dtype=np.int32))
        n_first = 2 * (int(columns.n_bins[columns.tried[0]]) + 1)
        root = _Leaf(0, words[0, :n_first].reshape(-1, 2).sum(axis=0), np.array([-np.inf, np.inf]), words[0])
        seen.leaves.append(root)
        if plan.can_split(root):
            plan.search([root])
        while wanted := _wanted(seen, plan):
            _look_at_children(parts, k, plan, seen, wanted)
    else:
        seen.leaves.append(_Leaf(0, np.zeros(2, dtype=np.int64), np.array([-np.inf, np.inf])))
    tree, place = _played(seen, plan)
    lead = partial(_led, k=k, columns=columns, tree=tree, place=place if len(seen.leaves) > 1 else None)
    for _ in parts.update(lead, ("codes", "node")):
        pass
    sums = np.zeros((len(tree["left"]), 3))
    sums = parts.fold(partial(_leaf_sums, k=k), sums, (f"leaf {k}", "drawn", f"slope {k}", f"curvature {k}", "weight"))
    value, gain, weight = core.newton_values(tree["feature"], tree["left"], sums, settings.l2, plan.direction)
    return tree | {"value": value, "gain": gain, "weight": weight}


class _Plan:
    """How a tree is grown, and the units of its histograms."""

    def __init__(self, settings: BoostingSettings, columns: BinnedColumns, sizes: tuple[float, float, int]) -> None:
        self.columns, self.sizes = columns, sizes
        self.max_depth = UNLIMITED if settings.max_depth is None else settings.max_depth
        self.max_leaves = UNLIMITED if settings.max_leaf_nodes is None else settings.max_leaf_nodes
        self.least, self.ridge, self.is_best_first = settings.min_samples_leaf, settings.l2, settings.growth == "leaf"
        self.direction = None if settings.directions is None else np.array(settings.directions, dtype=np.int8)
        self.mask = np.int64((1 << int(sizes[2]).bit_length()) - 1)

    def n_rows(self, leaf: _Leaf) -> int:
        """Rows that the tree is grown on, of a leaf."""
        return int(leaf.sum[1] & self.mask)

    def can_split(self, leaf: _Leaf) -> bool:
        """Whether a leaf is neither too deep nor too small."""
        return leaf.depth < self.max_depth and self.n_rows(leaf) >= 2 * max(self.least, 1)

    def search(self, leaves: Sequence[_Leaf]) -> None:
        """The best splits of leaves whose histograms are known."""
        columns = self.columns
        splits = core.newton_splits(
            np.array([leaf.words for leaf in leaves]), np.array([leaf.sum for leaf in leaves]),
            np.array([leaf.bounds for leaf in leaves]), columns.n_bins, columns.n_levels, columns.tried, self.sizes,
            self.least, self.ridge, self.direction, n_threads(),
        )  # fmt: skip
        for number, leaf in enumerate(leaves):
            leaf.split = {name: array[number] for name, array in splits.items()} if splits["is_found"][number] else None

    def order(self, leaf: _Leaf, place: int) -> tuple[float, int]:
        """What leaves are split in the order of."""
        assert leaf.split is not None
        return (-float(leaf.split["gain"]) if self.is_best_first else float(leaf.depth), place)


def _wanted(seen: _Seen, plan: _Plan) -> list[int]:
    """Leaves that are split where those without known children stay leaves, and whose children are not known."""
    open_leaves = _Queue(seen, plan)
    wanted = []
    n_leaves = 1
    while n_leaves < plan.max_leaves and (number := open_leaves.next()) is not None:
        n_leaves += 1
        if seen.leaves[number].children:
            open_leaves.offer(seen.leaves[number].children)
            open_leaves.offer(seen.leaves[number].children + 1)
        else:
            wanted.append(number)
    return wanted


class _Queue:
    """Leaves by the order in which they are split."""

    def __init__(self, seen: _Seen, plan: _Plan) -> None:
        self.seen, self.plan, self._n_offered = seen, plan, 0
        self._heap: list[tuple[tuple[float, int], int]] = []
        self.offer(0)

    def offer(self, number: int) -> None:
        """Line up a leaf that may be split."""
        leaf = self.seen.leaves[number]
        if leaf.split is not None:
            heappush(self._heap, (self.plan.order(leaf, self._n_offered), number))
        self._n_offered += 1

    def next(self) -> int | None:
        """The leaf that is split next."""
        return heappop(self._heap)[1] if self._heap else None


def _look_at_children(parts: Parts, k: int, plan: _Plan, seen: _Seen, wanted: list[int]) -> None:
    """Children of leaves with their histograms and splits: one pass, or more where histograms are large."""
    first = seen.leaves[wanted[0]].words
    assert first is not None
    at_once = max(1, MOST_WORDS // len(first))
    for begin in range(0, len(wanted), at_once):
        _look_at_some(parts, k, plan, seen, wanted[begin : begin + at_once])


def _look_at_some(parts: Parts, k: int, plan: _Plan, seen: _Seen, wanted: list[int]) -> None:
    summed: list[tuple[int, int]] = []  # of every parent: its smaller child, the other one
    for number in wanted:
        leaf = seen.leaves[number]
        assert leaf.split is not None
        left, bounds = leaf.split["left"], leaf.split["bounds"]
        sides = [_Leaf(leaf.depth + 1, left, bounds[:2]), _Leaf(leaf.depth + 1, leaf.sum - left, bounds[2:])]
        leaf.children = len(seen.leaves)
        seen.leaves += sides
        few = int(plan.n_rows(sides[0]) > plan.n_rows(sides[1]))
        if plan.can_split(sides[1 - few]):
            summed.append((leaf.children + few, leaf.children + 1 - few))
    slots = np.full(len(seen.leaves), -1, dtype=np.int32)
    slots[[small for small, _ in summed]] = np.arange(len(summed))
    if not summed:
        return
    words = _histograms(parts, k, plan, seen.arrays(), slots)
    searched = []
    for slot, (small, large) in enumerate(summed):
        parent = next(number for number in wanted if seen.leaves[number].children in (small, large))
        whole = seen.leaves[parent].words
        assert whole is not None
        seen.leaves[small].words, seen.leaves[large].words = words[slot], whole - words[slot]
        searched += [seen.leaves[large], *([seen.leaves[small]] if plan.can_split(seen.leaves[small]) else [])]
    for number in wanted:
        seen.leaves[number].words = None
    plan.search(searched)


def _histograms(parts: Parts, k: int, plan: _Plan, tree: dict[str, Array] | None, slots: Array) -> Array:
    """Histograms of leaves, leaves x words, added up over the parts. slots: of every node its number here, or -1."""
    f = partial(_of_part, k=k, columns=plan.columns, sizes=plan.sizes, tree=tree, slots=slots)
    return parts.updated_total(f, ("codes", "node", "drawn", f"slope {k}", f"curvature {k}"))


def _of_part(
    part: Part,
    k: int,
    columns: BinnedColumns,
    sizes: tuple[float, float, int],
    tree: dict[str, Array] | None,
    slots: Array,
) -> tuple[Arrays, Array]:
    codes = part["codes"]
    node = np.zeros(len(codes), dtype=np.int32)
    if tree is not None:
        node = core.lead_codes(codes, part["node"], columns.n_bins, columns.n_levels, *_paths(tree), n_threads())
    words = core.newton_histograms(
        codes, part[f"slope {k}"], part[f"curvature {k}"], part.get("drawn"), slots[node], int(slots.max()) + 1,
        columns.n_bins, columns.tried, sizes, n_threads(),
    )  # fmt: skip
    return {"node": node}, words


def _paths(tree: dict[str, Array]) -> tuple[Array, ...]:
    return tree["feature"], tree["left"], tree["bin"], tree["is_missing_left"], tree["sets"]


def _played(seen: _Seen, plan: _Plan) -> tuple[dict[str, Array], Array]:
    """The tree, its nodes numbered as they are split; and of every node that was looked at where its rows are in it."""
    open_leaves = _Queue(seen, plan)
    place = np.full(len(seen.leaves), -1, dtype=np.int32)
    place[0] = 0
    nodes: list[tuple[int, int, int, int]] = [(-1, 0, 0, 0)]
    sets: list[Array] = []
    n_leaves = 1
    while n_leaves < plan.max_leaves and (number := open_leaves.next()) is not None:
        leaf = seen.leaves[number]
        assert leaf.split is not None and leaf.children
        n_leaves += 1
        bin_ = int(leaf.split["bin"])
        if plan.columns.n_levels is not None and plan.columns.n_levels[int(leaf.split["feature"])]:
            bin_ = len(sets)
            sets.append(leaf.split["levels"])
        nodes[place[number]] = (int(leaf.split["feature"]), len(nodes), bin_, int(leaf.split["is_missing_left"]))
        for side in (0, 1):
            place[leaf.children + side] = len(nodes)
            nodes.append((-1, 0, 0, 0))
            open_leaves.offer(leaf.children + side)
    for number, leaf in enumerate(seen.leaves):  # rows of leaves that were looked at in vain are where they came from
        for side in (0, 1) if leaf.children else ():
            if place[leaf.children + side] < 0:
                place[leaf.children + side] = place[number]
    columns = np.array(nodes, dtype=np.int64).T
    tree: dict[str, Array] = {
        "feature": columns[0].copy(), "left": columns[1].copy(), "bin": columns[2].copy(),
        "is_missing_left": columns[3].astype(np.uint8), "sets": np.array(sets, dtype=np.uint64).reshape(-1, 4),
    }  # fmt: skip
    return tree, place


def _led(
    part: Part, k: int, columns: BinnedColumns, tree: dict[str, Array], place: Array | None
) -> tuple[Arrays, None]:
    """Rows at the leaves of the tree."""
    codes = part["codes"]
    start = np.zeros(len(codes), dtype=np.int32) if place is None else place[part["node"]]
    led = core.lead_codes(codes, start, columns.n_bins, columns.n_levels, *_paths(tree), n_threads())
    return {f"leaf {k}": led}, None


def _leaf_sums(part: Part, before: Array, k: int) -> Array:
    sums: Array = core.newton_leaf_sums(
        part[f"leaf {k}"], part.get("drawn"), part[f"slope {k}"], part[f"curvature {k}"], part["weight"], before
    )
    return sums
