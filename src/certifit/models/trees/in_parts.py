"""Trees on rows in parts: the process that fits holds no row.

Every level of the tree is one pass: parts add up histograms by node, column and bin, in whole numbers, and sums of
their rows in blocks, which are added in the order of the blocks. Of two children the smaller histogram is summed, the
larger one is what remains of their parent. All this is exact, or rounded in an order that hangs on the rows alone, so
the tree is that of rows in memory. The rows of nodes that are small against the memory allowed are gathered, some nodes
at a time, and their subtrees are grown at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Arrays, Part, Parts
from certifit.runtime import core, memory_limit, n_threads

if TYPE_CHECKING:
    from certifit.models.trees.task import TreeTask

BYTES_PER_ROW = 112  # of a subtree beside its codes
SHARE = 8  # of the memory limit: one for the rows of subtrees, one for histograms
LEAST_ROWS = 4096  # of a subtree
ALL_BINS = 255  # codes before that of missing values
BLOCK = 1 << 14  # rows whose sums are rounded together (cpp/tree/tree.hpp)
NUMBERS = 5  # that say what rows of numbers are (cpp/tree/levels.hpp)
MOST_WHOLE = 2.0**31  # of whole weights that are counted
READS = ("codes", "y", "weight", "node")


@dataclass(frozen=True)
class BinSplit:
    """The best split of a node, by the number of a bin, as the core gives it. levels: that go left, as bits."""

    is_found: bool
    feature: int
    bin: int
    is_missing_left: bool
    left_rows: int
    levels: Array


@dataclass(frozen=True)
class _Split(BinSplit):
    """What a node is besides (cpp/tree/levels.hpp)."""

    is_exact: bool
    left_value: float
    right_value: float
    weight: float
    impurity: float
    decrease: float
    values: Array


@dataclass
class _Node:
    """A node of the tree so far. words: its histogram, while it may be needed; left: the number of its left child.

    low, high: between which the means of its leaves must lie. sums: of its rows, as the core takes them.
    """

    depth: int
    n_rows: int
    low: float = -np.inf
    high: float = np.inf
    words: Array | None = None
    sums: Array | None = None
    split: _Split | None = None
    left: int = 0


@dataclass(frozen=True)
class TreePlan:
    """How a tree is grown. stops: depth, rows of a split and of a leaf, least decrease. whole: what all rows are."""

    criterion: str
    n_classes: int
    stops: tuple[int, int, int, float]
    direction: Array | None
    n_levels: Array | None
    edges: list[Array]
    whole: Array

    @property
    def target(self) -> tuple[str, int]:
        """What is asked of sums of rows."""
        return self.criterion, self.n_classes


def grown_in_parts(task: TreeTask, max_depth: int, min_decrease: float) -> dict[str, Array]:
    """The nodes of the greedy tree, level by level, as the core gives them for rows in memory."""
    assert task.passed is not None
    edges, columns = task.edges or [], task.splitting.columns
    parts = task.passed.parts(edges, columns.n_levels, None, (1.0, task.weight_unit))
    stops = (max_depth, int(task.stops.min_samples_split), int(task.stops.min_samples_leaf), min_decrease)
    whole, sums = _whole(parts, task.criterion, task.n_classes)
    plan = TreePlan(task.criterion, task.n_classes, stops, columns.direction, columns.n_levels, edges, whole)
    return _Growth(parts, plan, _Node(0, parts.n_rows, sums=sums)).tree()


def _whole(parts: Parts, criterion: str, n_classes: int) -> tuple[Array, Array]:
    """What a tree must know of all rows (cpp/tree/tree.hpp), and the sums of its root."""
    sums: Array = np.zeros((1, n_classes or NUMBERS))
    is_weighted, is_whole = False, True
    root = partial(_root_of, criterion=criterion, n_classes=n_classes)
    for blocks, has_weights, has_whole in parts.map(root, ("codes", "y", "weight")):
        sums = core.add_block_sums(sums, blocks, criterion, n_classes)
        is_weighted, is_whole = is_weighted or has_weights, is_whole and has_whole
    centre = float(sums[0, 1]) if criterion == "squared_error" else 0.0
    total = moments = 0.0
    for sizes in parts.map(partial(_sizes, centre=centre), ("y", "weight")):
        for weight, moment in sizes.tolist():
            total, moments = total + weight, moments + moment
    is_whole = is_whole and total < MOST_WHOLE
    return np.array([parts.n_rows, total, is_weighted, is_whole, centre, moments], dtype=np.float64), sums[0]


def _root_of(part: Part, criterion: str, n_classes: int) -> tuple[Array, bool, bool]:
    slot, weight = np.zeros(part.n_rows, dtype=np.int32), part["weight"]
    blocks = core.block_sums(part["codes"], part["y"], weight, slot, 1, criterion, n_classes)
    return blocks, bool((weight != 1).any()), bool((weight == np.floor(weight)).all())


def _sizes(part: Part, centre: float) -> Array:
    sizes: Array = core.block_sizes(part["y"], part["weight"], centre)
    return sizes


def _sides(plan: TreePlan, node: _Node, split: _Split) -> list[_Node]:
    """The children of a node; where its column has a direction, they stay on their sides of the middle."""
    n_left = int(split.left_rows)
    left = _Node(node.depth + 1, n_left, node.low, node.high)
    right = _Node(node.depth + 1, node.n_rows - n_left, node.low, node.high)
    direction = 0 if plan.direction is None else int(plan.direction[split.feature])
    between = split.left_value / 2 + split.right_value / 2
    if direction > 0:
        left.high = right.low = between
    if direction < 0:
        left.low = right.high = between
    return [left, right]


class _Growth:
    """A tree that grows. most_rows: nodes of no more are grown at once, from rows that are gathered."""

    def __init__(self, parts: Parts, plan: TreePlan, root: _Node) -> None:
        self.parts, self.plan, self.nodes = parts, plan, [root]
        self.most_rows = max(LEAST_ROWS, int(memory_limit() / SHARE / (BYTES_PER_ROW + len(plan.edges))))

    def tree(self) -> dict[str, Array]:
        """The whole tree."""
        root = self.nodes[0]
        if root.n_rows > self.most_rows:
            root.words = self._summed([0], [])[0]
            at_once = max(1, int(memory_limit() / SHARE / root.words.nbytes))
            level = [0]
            while level:
                level = self._divided(level, at_once)
        return _assembled(self.plan, self.nodes, self._subtrees())

    def _divided(self, level: list[int], at_once: int) -> list[int]:
        """Splits the nodes of a level. The nodes of the next one whose histograms are known."""
        nodes = self.nodes
        summed: list[tuple[int, int, int]] = []  # parent, the child to be summed, the other one
        for number in level:
            node = nodes[number]
            split = node.split = _best_split(self.plan, node)
            if split.is_found:
                node.left = len(nodes)
                nodes += _sides(self.plan, node, split)
                small, large = sorted((node.left, node.left + 1), key=lambda child: nodes[child].n_rows)
                if nodes[large].n_rows > self.most_rows:
                    summed.append((number, small, large))
                    continue
            node.words = None
        for begin in range(0, len(summed), at_once):
            some = summed[begin : begin + at_once]
            both = [child for _, *children in some for child in children]
            histograms = self._summed([small for _, small, _ in some], both)
            for words, (parent, small, large) in zip(histograms, some, strict=True):
                whole = nodes[parent].words
                assert whole is not None
                nodes[large].words, nodes[parent].words = whole - words, None
                if nodes[small].n_rows > self.most_rows:
                    nodes[small].words = words
        children = [child for _, small, large in summed for child in sorted((small, large))]
        return [child for child in children if nodes[child].words is not None]

    def _summed(self, of_words: list[int], of_sums: list[int]) -> Array:
        """Histograms of some nodes, added up over the parts, which keep the nodes of their rows; others get sums."""
        slots, places = self._numbered(of_words), self._numbered(of_sums)
        f = partial(_of_part, plan=self.plan, tree=_paths(self.plan, self.nodes), slots=slots, places=places)
        words: Array | None = None
        sums = np.zeros((len(of_sums), self.plan.n_classes or NUMBERS))
        for of_part, blocks in self.parts.update(f, READS):
            if blocks is not None:
                sums = core.add_block_sums(sums, blocks, *self.plan.target)
            if words is None:
                words = of_part
            else:
                words += of_part
        assert words is not None
        for number, of_node in zip(of_sums, sums, strict=True):
            self.nodes[number].sums = of_node
        return words

    def _numbered(self, wanted: list[int]) -> Array:
        """Of every node its place among some, or -1."""
        slots = np.full(len(self.nodes), -1, dtype=np.int32)
        slots[wanted] = np.arange(len(wanted))
        return slots

    def _subtrees(self) -> dict[int, dict[str, Array]]:
        """The trees of the nodes whose histograms were not looked at, by the numbers of these nodes."""
        rest = [number for number, node in enumerate(self.nodes) if node.split is None]
        tree, subtrees = _paths(self.plan, self.nodes), {}
        while rest:
            ends = np.cumsum([self.nodes[number].n_rows for number in rest])
            n_some = max(1, int(np.searchsorted(ends, self.most_rows, side="right")))
            some, rest = rest[:n_some], rest[n_some:]
            f = partial(_rows_of, plan=self.plan, tree=tree, slots=self._numbered(some))
            gathered = list(self.parts.map(f, READS))
            slot, *rows = (np.concatenate(column) for column in zip(*gathered, strict=True))
            gathered.clear()
            order = np.argsort(slot, kind="stable")
            cuts = np.searchsorted(slot[order], np.arange(n_some + 1))
            for k, number in enumerate(some):
                chosen = order[cuts[k] : cuts[k + 1]]
                subtrees[number] = self._subtree(self.nodes[number], *(column[chosen] for column in rows))
        return subtrees

    def _subtree(self, node: _Node, codes: Array, y: Array, weight: Array, block: Array) -> dict[str, Array]:
        """The tree of a node from its rows. block: of all rows, by the numbers of their blocks."""
        plan, (depth, *stops) = self.plan, self.plan.stops
        starts = np.flatnonzero(np.diff(block, prepend=-1)).astype(np.int64)
        tree: dict[str, Array] = core.grow_codes(
            codes, plan.edges, y, weight, *plan.target, depth - node.depth, *stops, plan.direction, plan.n_levels,
            node.low, node.high, starts, plan.whole, n_threads(),
        )  # fmt: skip
        return tree


def _best_split(plan: TreePlan, node: _Node) -> _Split:
    """What a node is, and its best split."""
    split = core.level_split(
        node.words, node.sums, node.depth, node.n_rows, node.low, node.high, len(plan.edges), *plan.target,
        *plan.stops, plan.direction, plan.n_levels, plan.whole, n_threads(),
    )  # fmt: skip
    return _Split(**split)


def paths_of(splits: Sequence[BinSplit | None], left: Sequence[int], n_levels: Array | None) -> tuple[Array, ...]:
    """What leads rows through a tree so far, as the core takes it. left: the number of a node's left child, or 0."""
    feature, bins = (np.zeros(len(left), dtype=np.int64) for _ in range(2))
    is_missing_left = np.zeros(len(left), dtype=np.uint8)
    sets: list[Array] = []
    for number in np.flatnonzero(left).tolist():
        split = splits[number]
        assert split is not None
        feature[number], bins[number] = split.feature, split.bin
        is_missing_left[number] = split.is_missing_left
        if n_levels is not None and n_levels[split.feature]:
            bins[number] = len(sets)
            sets.append(split.levels)
    left_children = np.array(left, dtype=np.int64)
    return feature, left_children, bins, is_missing_left, np.array(sets, dtype=np.uint64).reshape(-1, 4)


def _paths(plan: TreePlan, nodes: list[_Node]) -> tuple[Array, ...]:
    return paths_of([node.split for node in nodes], [node.left for node in nodes], plan.n_levels)


def _led(part: Part, plan: TreePlan, tree: tuple[Array, ...]) -> Array:
    codes, before = part["codes"], part.get("node")
    start = np.zeros(len(codes), dtype=np.int32) if before is None else before
    n_bins = np.full(codes.shape[1], ALL_BINS, dtype=np.uint8)
    node: Array = core.lead_codes(codes, start, n_bins, plan.n_levels, *tree, n_threads())
    return node


def _of_part(
    part: Part, plan: TreePlan, tree: tuple[Array, ...], slots: Array, places: Array
) -> tuple[Arrays, tuple[Array, Array | None]]:
    """Histograms of some nodes of a part, and sums of the blocks of others."""
    node = _led(part, plan, tree)
    rows = (part["codes"], part["y"], part["weight"])
    words = core.level_histograms(
        *rows, slots[node], int(slots.max()) + 1, *plan.target, plan.direction, plan.whole, n_threads()
    )
    n_places = int(places.max()) + 1
    blocks = core.block_sums(*rows, places[node], n_places, *plan.target) if n_places else None
    return {"node": node}, (words, blocks)


def _rows_of(part: Part, plan: TreePlan, tree: tuple[Array, ...], slots: Array) -> tuple[Array, ...]:
    """The rows of some nodes: which of them, codes, y, weights, and the numbers of their blocks among all rows."""
    slot = slots[_led(part, plan, tree)]
    chosen = np.flatnonzero(slot >= 0)
    block = ((part.first + chosen) // BLOCK).astype(np.int64)
    return slot[chosen], part["codes"][chosen], part["y"][chosen], part["weight"][chosen], block


def _assembled(plan: TreePlan, nodes: list[_Node], subtrees: dict[int, dict[str, Array]]) -> dict[str, Array]:
    """One tree, level by level."""
    tables = [_top(plan, nodes, subtrees), *subtrees.values()]
    begins = np.cumsum([0, *(len(table["left"]) for table in tables)])
    n_sets = np.cumsum([0, *(len(table["sets"]) // 4 for table in tables)])
    nodes_of = {name: np.concatenate([table[name] for table in tables]) for name in tables[0] if name != "sets"}
    left = np.concatenate(
        [np.where(table["left"] > 0, table["left"] + begin, 0) for table, begin in zip(tables, begins, strict=False)]
    )
    place = np.arange(len(left))  # where the numbers of a node are
    place[list(subtrees)] = begins[1:-1]
    of_set = np.concatenate([table["threshold"] + first for table, first in zip(tables, n_sets, strict=False)])
    levels, level = [], place[:1]
    while len(level):
        levels.append(level)
        inner = level[left[level] > 0]
        level = place[np.column_stack([left[inner], left[inner] + 1]).ravel()]
    order = np.concatenate(levels)
    out = {name: array[order] for name, array in nodes_of.items()}
    is_inner = left[order] > 0
    out["left"] = np.where(is_inner, 2 * np.cumsum(is_inner) - 1, 0)
    sets = np.concatenate([table["sets"].reshape(-1, 4) for table in tables])
    if plan.n_levels is not None:
        is_of_levels = is_inner & (plan.n_levels[np.maximum(out["feature"], 0)] > 0)
        sets = sets[of_set[order][is_of_levels].astype(np.int64)]
        out["threshold"][is_of_levels] = np.arange(len(sets))
    return out | {"sets": sets.ravel()}


def _top(plan: TreePlan, nodes: list[_Node], subtrees: dict[int, dict[str, Array]]) -> dict[str, Array]:
    """The nodes whose histograms were looked at, as the core gives nodes; others are roots of subtrees."""
    feature, left, bins, is_missing_left, sets = _paths(plan, nodes)
    threshold = np.zeros(len(nodes))
    for number in np.flatnonzero(left).tolist():
        edges = plan.edges[feature[number]]
        is_of_levels = plan.n_levels is not None and plan.n_levels[feature[number]] > 0
        inside = bins[number] < len(edges)
        threshold[number] = bins[number] if is_of_levels else edges[bins[number]] if inside else np.inf
    table = {
        "feature": np.where(left > 0, feature, -1), "left": left, "threshold": threshold,
        "is_missing_left": is_missing_left, "n_rows": np.array([node.n_rows for node in nodes]),
        "values": np.zeros((len(nodes), plan.n_classes or 1)), "sets": sets.ravel(),
        "weight": np.zeros(len(nodes)), "impurity": np.zeros(len(nodes)), "decrease": np.zeros(len(nodes)),
    }  # fmt: skip
    for number, node in enumerate(nodes):
        for name in ("weight", "impurity", "values"):
            table[name][number] = subtrees[number][name][0] if node.split is None else getattr(node.split, name)
    for number in np.flatnonzero(left).tolist():
        split = nodes[number].split
        assert split is not None
        table["decrease"][number] = split.decrease if split.is_exact else _decrease(plan, table, number)
    return table


def _decrease(plan: TreePlan, table: dict[str, Array], number: int) -> float:
    """What a split takes from squared errors, or from Gini of two classes, by the numbers of its sides."""
    left = int(table["left"][number])
    a, b, weight = (float(table["weight"][node]) for node in (left, left + 1, number))
    values = table["values"][left : left + 2]
    apart = float(values[0, 1] / a - values[1, 1] / b) if plan.n_classes else float(values[0, 0] - values[1, 0])
    return (2 if plan.n_classes else 1) * a / weight * b * apart * apart / float(plan.whole[1])
