"""A tree in words: its rules, and the way of a row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from certifit.models.trees.state import TreeState

Codes = Mapping[str, list[str]]  # what the codes of a category stand for, by the name of its column


def rules(tree: TreeState, names: list[str], answers: list[str], codes: Codes, max_depth: int | None = None) -> str:
    """A line for each condition; that of a leaf ends with its answer. max_depth: levels that are shown."""
    lines: list[str] = []
    most = math.inf if max_depth is None else max_depth
    if not tree.left[0] or most < 1:
        return answers[0] if not tree.left[0] else f"{answers[0]}, split further"
    open_nodes = [(int(tree.left[0]) + side, 0) for side in (1, 0)]
    while open_nodes:
        node, depth = open_nodes.pop()
        parent = int(tree.parents[node])
        is_left = node == tree.left[parent]
        condition = f"if {_condition(tree, parent, True, names, codes)}" if is_left else "else"
        if not tree.left[node]:
            lines.append(f"{'  ' * depth}{condition}: {answers[node]}")
        elif depth + 1 >= most:
            lines.append(f"{'  ' * depth}{condition}: {answers[node]}, split further")
        else:
            lines.append(f"{'  ' * depth}{condition}")
            open_nodes += [(int(tree.left[node]) + side, depth + 1) for side in (1, 0)]
    return "\n".join(lines)


def path_in_words(tree: TreeState, leaf: int, names: list[str], answers: list[str], codes: Codes) -> str:
    """The conditions that lead to a leaf, and its answer."""
    path = tree.path_of(leaf)
    steps = itertools.pairwise(path)
    conditions = [_condition(tree, node, child == tree.left[node], names, codes) for node, child in steps]
    return f"{' and '.join(conditions) or 'every row'}: {answers[leaf]}"


def _condition(tree: TreeState, node: int, is_left: bool, names: list[str], codes: Codes) -> str:
    name, threshold = names[tree.feature[node]], float(tree.threshold[node])
    if tree.is_of_levels[node]:
        return f"{name} {'in' if is_left else 'not in'} {{{level_words(tree.levels_left(node), codes.get(name))}}}"
    if math.isinf(threshold):
        return f"{name} is {'known' if is_left else 'missing'}"
    return f"{name} {'<=' if is_left else '>'} {threshold:.6g}"


def level_words(levels: list[int], codes: list[str] | None) -> str:
    """Levels by what their codes stand for, each said once, or by their codes where that is not known."""
    return ", ".join(dict.fromkeys(str(code) if codes is None else codes[code] for code in levels))
