"""Trees of classes on rows in parts, where weights are whole numbers: the process that fits holds no row.

Every level of the tree is one pass: parts add up weights of the classes by node, column and bin. Of two children the
smaller one is summed, the larger one is what remains of their parent: sums of whole numbers, exact, so the tree is that
of rows in memory. The rows of nodes that are small against the memory allowed are gathered, some nodes at a time, and
their subtrees are grown at once.
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

BYTES_PER_ROW = 64  # of a subtree beside its codes
SHARE = 8  # of the memory limit: one for the rows of subtrees, one for histograms
LEAST_ROWS = 4096  # of a subtree
ALL_BINS = 255  # codes before that of missing values
WORD = 8  # bytes


@dataclass
class _Node:
    """A node of the tree so far. words: its histogram, while it may be needed; left: the number of its left child."""

    depth: int
    n_rows: int
    words: Array | None = None
    numbers: dict[str, Array] | None = None
    left: int = 0


@dataclass(frozen=True)
class ClassPlan:
    """How a tree of classes is grown. stops: depth, rows of a split and of a leaf, least decrease."""

    criterion: str
    n_classes: int
    stops: tuple[int, int, int, float]
    n_levels: Array | None
    edges: list[Array]
    total: float
    is_weighted: bool

    @property
    def n_words(self) -> int:
        """Words of a histogram."""
        return len(self.edges) * (ALL_BINS + 1) * (1 + self.n_classes)


def grown_in_parts(task: TreeTask, max_depth: int, min_decrease: float) -> dict[str, Array]:
    """The nodes of the greedy tree, level by level, as the core gives them for rows in memory."""
    assert task.passed is not None
    edges, n_levels = task.edges or [], task.splitting.columns.n_levels
    parts = task.passed.parts(edges, n_levels, None, (1.0, task.weight_unit))
    facts = list(parts.map(_facts, ("weight",)))
    stops = (max_depth, int(task.stops.min_samples_split), int(task.stops.min_samples_leaf), min_decrease)
    total, is_weighted = sum(mass for mass, _ in facts), any(weighted for _, weighted in facts)
    plan = ClassPlan(task.criterion, task.n_classes, stops, n_levels, edges, total, is_weighted)
    nodes = [_Node(0, parts.n_rows)]
    most_rows = max(LEAST_ROWS, int(memory_limit() / SHARE / (BYTES_PER_ROW + len(edges))))
    if parts.n_rows > most_rows:
        nodes[0].words = _histograms(parts, plan, nodes, [0])[0]
        level = [0]
        while level:
            level = _divided(parts, plan, nodes, level, most_rows)
    subtrees = _subtrees(parts, plan, nodes, most_rows)
    return _assembled(plan, nodes, subtrees)


def _facts(part: Part) -> tuple[float, bool]:
    return float(part["weight"].sum()), bool((part["weight"] != 1).any())


def _divided(parts: Parts, plan: ClassPlan, nodes: list[_Node], level: list[int], most_rows: int) -> list[int]:
    """Splits the nodes of a level. The nodes of the next one whose histograms are known."""
    summed: list[tuple[int, int, int]] = []  # parent, the child to be summed, the other one
    _search(plan, [nodes[number] for number in level])
    for number in level:
        node = nodes[number]
        assert node.numbers is not None
        if not node.numbers["is_found"]:
            node.words = None
            continue
        node.left, n_left = len(nodes), int(node.numbers["left_rows"])
        sides = [_Node(node.depth + 1, n_left), _Node(node.depth + 1, node.n_rows - n_left)]
        nodes += sides
        few = int(sides[0].n_rows > sides[1].n_rows)
        if sides[1 - few].n_rows > most_rows:
            summed.append((number, node.left + few, node.left + 1 - few))
        else:
            node.words = None
    at_once = max(1, int(memory_limit() / SHARE / (WORD * plan.n_words)))
    for begin in range(0, len(summed), at_once):
        some = summed[begin : begin + at_once]
        for words, (parent, small, large) in zip(
            _histograms(parts, plan, nodes, [small for _, small, _ in some]), some, strict=True
        ):
            whole = nodes[parent].words
            assert whole is not None
            nodes[large].words, nodes[parent].words = whole - words, None
            if nodes[small].n_rows > most_rows:
                nodes[small].words = words
    return [child for _, small, large in summed for child in sorted((small, large)) if nodes[child].words is not None]


def _search(plan: ClassPlan, nodes: Sequence[_Node]) -> None:
    """The numbers of nodes whose histograms are known, and their best splits."""
    for node in nodes:
        assert node.words is not None
        splits = core.class_splits(
            node.words[None], np.array([node.depth]), len(plan.edges), plan.criterion, plan.n_classes, *plan.stops,
            plan.n_levels, plan.total, plan.is_weighted, n_threads(),
        )  # fmt: skip
        node.numbers = {name: array[0] for name, array in splits.items()}


def _histograms(parts: Parts, plan: ClassPlan, nodes: list[_Node], wanted: list[int]) -> Array:
    """Histograms of some nodes, added up over the parts; the parts keep the nodes of their rows."""
    slots = np.full(len(nodes), -1, dtype=np.int32)
    slots[wanted] = np.arange(len(wanted))
    f = partial(_of_part, plan=plan, tree=_paths(plan, nodes), slots=slots)
    total: Array | None = None
    for words in parts.update(f, ("codes", "y", "weight", "node")):
        if total is None:
            total = words
        else:
            total += words
    assert total is not None
    return total


def _paths(plan: ClassPlan, nodes: list[_Node]) -> tuple[Array, ...]:
    """What leads rows through the tree so far, as the core takes it."""
    feature, left, bins = (np.zeros(len(nodes), dtype=np.int64) for _ in range(3))
    is_missing_left = np.zeros(len(nodes), dtype=np.uint8)
    sets: list[Array] = []
    for number, node in enumerate(nodes):
        if not node.left:
            continue
        assert node.numbers is not None
        feature[number], left[number] = node.numbers["feature"], node.left
        bins[number], is_missing_left[number] = node.numbers["bin"], node.numbers["is_missing_left"]
        if plan.n_levels is not None and plan.n_levels[feature[number]]:
            bins[number] = len(sets)
            sets.append(node.numbers["levels"])
    return feature, left, bins, is_missing_left, np.array(sets, dtype=np.uint64).reshape(-1, 4)


def _led(part: Part, plan: ClassPlan, tree: tuple[Array, ...]) -> Array:
    codes, before = part["codes"], part.get("node")
    start = np.zeros(len(codes), dtype=np.int32) if before is None else before
    n_bins = np.full(codes.shape[1], ALL_BINS, dtype=np.uint8)
    node: Array = core.lead_codes(codes, start, n_bins, plan.n_levels, *tree, n_threads())
    return node


def _of_part(part: Part, plan: ClassPlan, tree: tuple[Array, ...], slots: Array) -> tuple[Arrays, Array]:
    node = _led(part, plan, tree)
    words: Array = core.class_histograms(
        part["codes"], part["y"], part["weight"], slots[node], int(slots.max()) + 1, plan.n_classes, n_threads()
    )
    return {"node": node}, words


def _subtrees(parts: Parts, plan: ClassPlan, nodes: list[_Node], most_rows: int) -> dict[int, dict[str, Array]]:
    """The trees of the nodes whose histograms were not looked at, by the numbers of these nodes."""
    rest = [number for number, node in enumerate(nodes) if node.numbers is None]
    tree, subtrees = _paths(plan, nodes), {}
    while rest:
        ends = np.cumsum([nodes[number].n_rows for number in rest])
        n_some = max(1, int(np.searchsorted(ends, most_rows, side="right")))
        some, rest = rest[:n_some], rest[n_some:]
        slots = np.full(len(nodes), -1, dtype=np.int32)
        slots[some] = np.arange(n_some)
        gathered = list(
            parts.map(partial(_rows_of, plan=plan, tree=tree, slots=slots), ("codes", "y", "weight", "node"))
        )
        slot, codes, y, weight = (np.concatenate(column) for column in zip(*gathered, strict=True))
        order = np.argsort(slot, kind="stable")
        cuts = np.searchsorted(slot[order], np.arange(n_some + 1))
        for k, number in enumerate(some):
            rows = order[cuts[k] : cuts[k + 1]]
            depth, *stops = plan.stops
            subtrees[number] = core.grow_codes(
                codes[rows], plan.edges, y[rows], weight[rows], plan.criterion, plan.n_classes,
                depth - nodes[number].depth, *stops, None, plan.n_levels, plan.total, plan.is_weighted, n_threads(),
            )  # fmt: skip
    return subtrees


def _rows_of(part: Part, plan: ClassPlan, tree: tuple[Array, ...], slots: Array) -> tuple[Array, ...]:
    """The rows of some nodes, and which of them."""
    slot = slots[_led(part, plan, tree)]
    chosen = np.flatnonzero(slot >= 0)
    return slot[chosen], part["codes"][chosen], part["y"][chosen], part["weight"][chosen]


def _assembled(plan: ClassPlan, nodes: list[_Node], subtrees: dict[int, dict[str, Array]]) -> dict[str, Array]:
    """One tree, level by level."""
    tables = [_top(plan, nodes), *subtrees.values()]
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


def _top(plan: ClassPlan, nodes: list[_Node]) -> dict[str, Array]:
    """The nodes whose histograms were looked at, as the core gives nodes; the others hold zeros."""
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
        "values": np.zeros((len(nodes), plan.n_classes)), "sets": sets.ravel(),
    }  # fmt: skip
    for name in ("weight", "impurity", "decrease"):
        table[name] = np.array([0.0 if node.numbers is None else float(node.numbers[name]) for node in nodes])
    table["decrease"][left == 0] = 0.0
    for number, node in enumerate(nodes):
        if node.numbers is not None:
            table["values"][number] = node.numbers["values"]
    return table
