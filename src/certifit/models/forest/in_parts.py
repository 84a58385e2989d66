"""Forests on rows in parts: the process that fits holds no row.

Some trees grow at a time, all of them level by level: one pass of the parts adds up the histograms of the nodes of a
level, in whole numbers. Of two children the smaller histogram is summed, the larger one is what remains of their
parent. The rows of nodes that are small against the memory allowed are gathered, some nodes at a time, and what is
below these nodes is grown at once. Draws of rows hang on their block, the columns that a node tries on its way from the
root: the trees are those of rows in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Part, Parts
from certifit.models.forest.draws import BLOCK, DrawnRows, Draws, drawn_rows
from certifit.models.forest.state import ForestTask
from certifit.models.trees.in_parts import ALL_BINS, BYTES_PER_ROW, LEAST_ROWS, NUMBERS, SHARE, BinSplit, paths_of
from certifit.runtime import core, memory_limit, n_threads

READS = ("codes", "y", "weight")
ONE_NUMBER = ("squared_error", 0)  # what is asked of sums of rows


@dataclass(frozen=True)
class ForestPlan:
    """How trees are grown. rules: columns that a node tries, depth, rows of a split and of a leaf."""

    n_classes: int
    rules: tuple[int, int, int, int]
    centre: float
    n_levels: Array | None
    edges: list[Array]

    def is_of_levels(self, feature: Array) -> Array:
        """Whether columns are categories."""
        return np.zeros(len(feature), dtype=bool) if self.n_levels is None else self.n_levels[feature] > 0


@dataclass(frozen=True)
class _Split(BinSplit):
    """And what a forest asks of a node. shares: of the classes in it; keys: of both sides."""

    gain: float
    shares: Array
    keys: tuple[int, int]


@dataclass
class _Node:
    """A node so far. words: its histogram, while it is needed; sums: of y; left: the number of its left child.

    rest: what is below, as the core grew it.
    """

    depth: int
    n_rows: int
    key: int
    words: Array | None = None
    sums: Array | None = None
    split: _Split | None = None
    rest: dict[str, Array] | None = None
    left: int = 0


@dataclass
class _Tree:
    """A tree that grows. sizes: what the units of its sums follow from."""

    number: int
    sizes: Array
    nodes: list[_Node]


@dataclass(frozen=True)
class _Wanted:
    """Some nodes of a tree, for parts: what leads rows to them, and the place of every node among these, or -1."""

    number: int
    sizes: Array
    paths: tuple[Array, ...]
    slots: Array

    @property
    def n_slots(self) -> int:
        """How many nodes."""
        return int(self.slots.max()) + 1


Item = TypeVar("Item")
Named = tuple[_Tree, int]  # a tree and the number of one of its nodes


def grown_in_parts(task: ForestTask, max_depth: int, tell: Callable[[int], bool]) -> dict[str, Array]:
    """The trees of a forest, as the core gives them for rows in memory. tell: as the core takes it."""
    assert task.passed is not None
    settings, stops, edges = task.settings, task.settings.stops, task.edges
    n_levels, n_trees = task.columns.n_levels, settings.n_estimators
    parts = task.passed.parts(edges, n_levels, None, (1.0, task.weight_unit))
    centre = 0.0
    for sums in parts.map(_sums_of_y, ("y",)):
        for block in sums:
            centre += block / parts.n_rows
    rules = (settings.n_tried(len(edges)), max_depth, int(stops.min_samples_split), int(stops.min_samples_leaf))
    growth = _Growth(parts, ForestPlan(task.n_classes, rules, centre, n_levels, edges), drawn_rows(parts))
    forest = _Forest(growth.plan)
    while forest.n_trees < n_trees:
        for tree in growth.trees(settings.random_state, forest.n_trees, n_trees):
            forest.add(_assembled(growth.plan, tree.nodes))
        if tell(forest.n_trees):
            break
    return forest.arrays()


def _sums_of_y(part: Part) -> list[float]:
    """Of every block, one after the other."""
    blocks = [part["y"][k : k + BLOCK] for k in range(0, part.n_rows, BLOCK)]
    return [float(np.add.accumulate(block)[-1]) for block in blocks]


class _Growth:
    """Trees that grow. most_rows: what is below nodes of no more is grown at once, from rows that are gathered."""

    def __init__(self, parts: Parts, plan: ForestPlan, rows: DrawnRows) -> None:
        self.parts, self.plan, self.rows = parts, plan, rows
        n_columns = len(plan.edges)
        stride = 2 + plan.n_classes if plan.n_classes > 2 else 2
        room = memory_limit() / SHARE
        self.most_rows = max(LEAST_ROWS, int(room / (BYTES_PER_ROW + n_columns)))
        self.at_once = max(1, int(room / (8 * stride * (ALL_BINS + 1) * max(n_columns, 1))))  # nodes

    def trees(self, seed: int, first: int, n_trees: int) -> list[_Tree]:
        """The next trees: as many as a pass has room for."""
        nodes_of_tree = 2 * (parts_of(self.parts.n_rows, self.most_rows) + 1)
        end = min(n_trees, first + max(1, self.at_once // nodes_of_tree))
        self.draws = self.rows.draws(seed, first, end)
        sizes = np.zeros((end - first, 3))
        f = partial(_sizes, draws=self.draws, n_classes=self.plan.n_classes, centre=self.plan.centre)
        for of_part in self.parts.map(f, ("y", "weight")):
            for block in range(of_part.shape[1]):
                sizes += of_part[:, block]
        trees = []
        for number, of_tree in zip(range(first, end), sizes, strict=True):
            root = _Node(0, int(of_tree[2]), core.forest_root(seed, number))
            trees.append(_Tree(number, np.ascontiguousarray(of_tree), [root]))
        level: list[Named] = [(tree, 0) for tree in trees if tree.nodes[0].n_rows > self.most_rows]
        for some in _some(level, self.at_once):
            for (tree, number), words in zip(some, self._histograms(some), strict=True):
                tree.nodes[number].words = words
        while level:
            level = self._divided(level)
        self._grow_rest(trees)
        return trees

    def _divided(self, level: list[Named]) -> list[Named]:
        """Splits the nodes of a level. Those of the next one whose histograms are known."""
        if not self.plan.n_classes:
            self._sum_up(level)
        summed: list[tuple[_Tree, int, int, int]] = []  # parent, the child to be summed, the other one
        for tree, number in level:
            node = tree.nodes[number]
            split = node.split = self._split(tree, node)
            if split.is_found:
                small, large = self._children(tree, node, split)
                if tree.nodes[large].n_rows > self.most_rows:
                    summed.append((tree, number, small, large))
                    continue
            node.words = None
        for some in _some(summed, self.at_once):
            histograms = self._histograms([(tree, small) for tree, _, small, _ in some])
            for words, (tree, parent, small, large) in zip(histograms, some, strict=True):
                whole = tree.nodes[parent].words
                assert whole is not None
                tree.nodes[large].words, tree.nodes[parent].words = whole - words, None
                if tree.nodes[small].n_rows > self.most_rows:
                    tree.nodes[small].words = words
        children = [(tree, child) for tree, _, *both in summed for child in sorted(both)]
        return [(tree, child) for tree, child in children if tree.nodes[child].words is not None]

    def _split(self, tree: _Tree, node: _Node) -> _Split:
        plan, (n_tried, *stops) = self.plan, self.plan.rules
        is_pure = node.sums is not None and bool(node.sums[4])
        split = core.forest_split(
            node.words, node.key, node.depth, node.n_rows, is_pure, len(plan.edges), plan.n_classes, n_tried, *stops,
            plan.centre, tree.sizes, plan.n_levels,
        )  # fmt: skip
        return _Split(**split)

    def _children(self, tree: _Tree, node: _Node, split: _Split) -> tuple[int, int]:
        """Adds both sides of a split: the number of the smaller one, then of the larger."""
        node.left, n_left = len(tree.nodes), split.left_rows
        for n_rows, key in zip((n_left, node.n_rows - n_left), split.keys, strict=True):
            tree.nodes.append(_Node(node.depth + 1, n_rows, key))
        small, large = sorted((node.left, node.left + 1), key=lambda child: tree.nodes[child].n_rows)
        return small, large

    def _wanted(self, nodes: list[Named]) -> list[_Wanted]:
        """Nodes that lie tree by tree, in this order."""
        trees = {tree.number: tree for tree, _ in nodes}
        out = []
        for tree in trees.values():
            numbers = [number for other, number in nodes if other is tree]
            slots = np.full(len(tree.nodes), -1, dtype=np.int32)
            slots[numbers] = np.arange(len(numbers))
            splits, left = [node.split for node in tree.nodes], [node.left for node in tree.nodes]
            out.append(_Wanted(tree.number, tree.sizes, paths_of(splits, left, self.plan.n_levels), slots))
        return out

    def _histograms(self, nodes: list[Named]) -> Array:
        """Of nodes of some trees, added up over the parts."""
        return self.parts.total(
            partial(_histograms, plan=self.plan, draws=self.draws, wanted=self._wanted(nodes)), READS
        )

    def _sum_up(self, nodes: list[Named]) -> None:
        """Means of y of some nodes, and whether all are equal."""
        sums = np.zeros((len(nodes), NUMBERS))
        for blocks in self.parts.map(
            partial(_block_sums, plan=self.plan, draws=self.draws, wanted=self._wanted(nodes)), READS
        ):
            sums = core.add_block_sums(sums, blocks, *ONE_NUMBER)
        for (tree, number), of_node in zip(nodes, sums, strict=True):
            tree.nodes[number].sums = of_node

    def _grow_rest(self, trees: list[_Tree]) -> None:
        """What is below the nodes whose histograms were not looked at."""
        rest = [(tree, k) for tree in trees for k, node in enumerate(tree.nodes) if node.split is None]
        while rest:
            ends = np.cumsum([tree.nodes[number].n_rows for tree, number in rest])
            n_some = max(1, int(np.searchsorted(ends, self.most_rows, side="right")))
            some, rest = rest[:n_some], rest[n_some:]
            f = partial(_rows_of, plan=self.plan, draws=self.draws, wanted=self._wanted(some))
            gathered = list(self.parts.map(f, READS))
            slot, *rows = (np.concatenate(column) for column in zip(*gathered, strict=True))
            gathered.clear()
            order = np.argsort(slot, kind="stable")
            cuts = np.searchsorted(slot[order], np.arange(n_some + 1))
            nodes = [tree.nodes[number] for tree, number in some]
            codes, y, draws, block = (column[order] for column in rows)
            plan, (n_tried, *stops) = self.plan, self.plan.rules
            grown = core.grow_forest_rest(
                codes, plan.edges, y, draws, block, cuts.astype(np.int64),
                np.array([node.key for node in nodes], dtype=np.uint64),
                np.array([node.depth for node in nodes], dtype=np.int64),
                np.array([tree.sizes for tree, _ in some]), plan.n_classes, n_tried, *stops, plan.centre,
                plan.n_levels, n_threads(),
            )  # fmt: skip
            for node, below in zip(nodes, grown, strict=True):
                node.rest = below


def parts_of(n_rows: int, size: int) -> int:
    """How many parts of a size rows make."""
    return -(-n_rows // size)


def _some(items: list[Item], size: int) -> list[list[Item]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _sizes(part: Part, draws: Draws, n_classes: int, centre: float) -> Array:
    """Trees x blocks x what units follow from."""
    trees = range(draws.first_tree, draws.first_tree + len(draws.of_blocks))
    return np.array([core.forest_sizes(part["y"], draws.of(part, tree), n_classes, centre) for tree in trees])


def _led(part: Part, plan: ForestPlan, draws: Array, wanted: _Wanted) -> Array:
    """The place of the node of every row, or -1."""
    codes = part["codes"]
    start, n_bins = np.zeros(len(codes), dtype=np.int32), np.full(codes.shape[1], ALL_BINS, dtype=np.uint8)
    node = core.lead_codes(codes, start, n_bins, plan.n_levels, *wanted.paths, n_threads())
    return np.where(draws > 0, wanted.slots[node], np.int32(-1))


def _histograms(part: Part, plan: ForestPlan, draws: Draws, wanted: list[_Wanted]) -> Array:
    words = []
    for some in wanted:
        drawn = draws.of(part, some.number)
        slot = _led(part, plan, drawn, some)
        rows = (part["codes"], part["y"], drawn, slot, some.n_slots)
        words.append(core.forest_histograms(*rows, plan.n_classes, plan.centre, some.sizes, n_threads()))
    return np.concatenate(words)


def _block_sums(part: Part, plan: ForestPlan, draws: Draws, wanted: list[_Wanted]) -> Array:
    """Blocks x nodes x numbers."""
    sums = []
    for some in wanted:
        drawn = draws.of(part, some.number)
        slot = _led(part, plan, drawn, some)
        mass = np.maximum(drawn, 1).astype(np.float64)  # rows that are not drawn are of no node
        sums.append(core.block_sums(part["codes"], part["y"], mass, slot, some.n_slots, *ONE_NUMBER))
    return np.ascontiguousarray(np.concatenate(sums, axis=1))


def _rows_of(part: Part, plan: ForestPlan, draws: Draws, wanted: list[_Wanted]) -> tuple[Array, ...]:
    """The rows of some nodes: of which one, codes, y, draws, and the numbers of their blocks."""
    found, first = [], 0
    for some in wanted:
        drawn = draws.of(part, some.number)
        slot = _led(part, plan, drawn, some)
        chosen = np.flatnonzero(slot >= 0)
        block = ((part.first + chosen) // BLOCK).astype(np.int64)
        found.append((slot[chosen] + first, part["codes"][chosen], part["y"][chosen], drawn[chosen], block))
        first += some.n_slots
    return tuple(np.concatenate(column) for column in zip(*found, strict=True))


@dataclass
class _Arrays:
    """Nodes in the order in which a tree in memory makes them: children when their parent is split, the left first."""

    n_nodes: int
    width: int
    sets: list[Array] = field(default_factory=list)
    n_sets: int = 0

    def __post_init__(self) -> None:
        self.feature, self.left = np.full(self.n_nodes, -1, dtype=np.int32), np.zeros(self.n_nodes, dtype=np.int32)
        self.threshold, self.gain = np.zeros(self.n_nodes), np.zeros(self.n_nodes)
        self.is_missing_left = np.zeros(self.n_nodes, dtype=np.uint8)
        self.values = np.zeros((self.n_nodes, self.width))

    def put(self, plan: ForestPlan, place: int, node: _Node, left: int) -> None:
        """A node that was split by its histogram."""
        split = node.split
        assert split is not None
        self.feature[place], self.left[place] = split.feature, left
        self.gain[place], self.is_missing_left[place] = split.gain, split.is_missing_left
        if plan.is_of_levels(self.feature[place : place + 1])[0]:
            self.threshold[place] = self.n_sets
            self.add_sets(split.levels)
        else:
            edges = plan.edges[split.feature]
            self.threshold[place] = edges[split.bin] if split.bin < len(edges) else np.inf

    def put_rest(self, plan: ForestPlan, place: int, begin: int, rest: dict[str, Array]) -> None:
        """A node and what is below it, which is stored from `begin` on."""
        left = rest["left"]
        places = np.concatenate([[place], np.arange(begin, begin + len(left) - 1)])
        for name in ("feature", "threshold", "gain", "is_missing_left"):
            getattr(self, name)[places] = rest[name]
        self.left[places] = np.where(left > 0, left + (begin - 1), 0)
        self.values[places[left == 0]] = rest["values"]
        inner = places[left > 0]
        self.threshold[inner[plan.is_of_levels(self.feature[inner])]] += self.n_sets
        self.add_sets(rest["sets"])

    def add_sets(self, words: Array) -> None:
        """More sets of levels, four words each."""
        self.sets.append(words)
        self.n_sets += len(words) // 4


def _assembled(plan: ForestPlan, nodes: list[_Node]) -> _Arrays:
    rests = [len(node.rest["left"]) - 1 for node in nodes if node.rest is not None]
    tree = _Arrays(len(nodes) + sum(rests), plan.n_classes or 1)
    end = 1
    waiting = [(0, 0)]  # nodes, and where they are stored
    while waiting:
        number, place = waiting.pop()
        node = nodes[number]
        if node.rest is not None:
            tree.put_rest(plan, place, end, node.rest)
            end += len(node.rest["left"]) - 1
        elif node.left:
            tree.put(plan, place, node, end)
            waiting += [(node.left + 1, end + 1), (node.left, end)]
            end += 2
        else:
            assert node.split is not None
            tree.values[place] = node.split.shares if plan.n_classes else node.sums[1]  # type: ignore[index]
    return tree


class _Forest:
    """Trees end to end."""

    def __init__(self, plan: ForestPlan) -> None:
        self.plan, self.trees, self.n_sets = plan, list[_Arrays](), 0

    @property
    def n_trees(self) -> int:
        """Trees so far."""
        return len(self.trees)

    def add(self, tree: _Arrays) -> None:
        """The next tree."""
        inner = np.flatnonzero(tree.left)
        tree.threshold[inner[self.plan.is_of_levels(tree.feature[inner])]] += self.n_sets
        self.n_sets += tree.n_sets
        of_columns = np.bincount(tree.feature[inner], weights=tree.gain[inner], minlength=len(self.plan.edges))
        tree.gain = np.asarray(of_columns, dtype=np.float64)
        tree.values = tree.values[tree.left == 0]
        self.trees.append(tree)

    def arrays(self) -> dict[str, Array]:
        """As the core gives them."""
        names = ("feature", "left", "threshold", "is_missing_left", "values")
        out: dict[str, Array] = {name: np.concatenate([getattr(tree, name) for tree in self.trees]) for name in names}
        sets = [words for tree in self.trees for words in tree.sets]
        return out | {
            "ends": np.cumsum([0, *(tree.n_nodes for tree in self.trees)]),
            "gains": np.array([tree.gain for tree in self.trees]),
            "sets": np.concatenate(sets) if sets else np.zeros(0, dtype=np.uint64),
        }
