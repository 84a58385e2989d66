"""What a model of trees splits on: the tree itself, the share of each column in all gains, and rounds of boosting.

The answer and the threshold of a node that fewer rows reach than `data.privacy` asks for are not printed, nor those of
the split above it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import NOT_SHOWN
from certifit.data.view import Target
from certifit.evaluation.pictures.boosting import drawn_rounds
from certifit.evaluation.pictures.tree import TreeBox, reached_by, reading_order, tree_boxes
from certifit.maps.table.survey import printed_codes
from certifit.report import text
from certifit.report.facts import Fit
from certifit.report.text import Table

MOST_COLUMNS = 15  # that are drawn
LONGEST = 26  # characters of a column's name
Z = 1.959963984540054  # standard errors of a 95 % interval


def split_facts(fit: Fit) -> Table | None:
    """None of a model that has no trees."""
    if "splits" not in fit.sections:
        return None
    facts: Table = {"nodes": None, "labels": None, "n_nodes": None, "rounds": None}
    if "tree" in fit.sections:
        facts |= _tree(fit)
    if "rounds" in fit.sections:
        facts["rounds"] = drawn_rounds(fit.model.history_) or None
    facts["columns"], facts["n_other"] = _columns(fit)
    facts["sentences"] = _sentences(facts)
    return facts


def _tree(fit: Fit) -> Table:
    """Nodes down to four levels of splits, in the order of reading."""
    tree = fit.model.tree_
    n_rows = _rows_of_nodes(fit)
    is_hidden = np.array([not fit.printed.rule.may_print(int(n)) for n in n_rows])
    rounded = np.array([fit.printed.rule.of_row(float(x)) for x in tree.threshold])
    shown = replace(tree, threshold=np.where(tree.is_of_levels, tree.threshold, rounded))  # or the number of a set
    codes = {} if fit.model.encoder_ is None else printed_codes(fit.model.encoder_, fit.printed.rule)
    boxes = tree_boxes(shown, fit.printed.columns, _answers(fit), longest=LONGEST, codes=codes)
    nodes = []
    for place in reading_order(boxes):
        box = boxes[place]
        is_split_hidden = box.parent >= 0 and _hides_split(tree, is_hidden, boxes[box.parent])
        node = asdict(box) | {"reached_by": NOT_SHOWN if is_split_hidden else reached_by(boxes, place)}
        node |= {"n_rows": int(n_rows[box.node])} if not is_hidden[box.node] else {"n_rows": None}
        if is_hidden[box.node]:
            node |= {"answer": NOT_SHOWN, "parts": []}
        if box.question and _hides_split(tree, is_hidden, box):
            node["question"] = NOT_SHOWN
        nodes.append(node)
    labels = None if fit.by_class is None else fit.printed.labels
    return {"nodes": nodes, "labels": labels, "n_nodes": int(tree.n_nodes)}


def _hides_split(tree: Any, is_hidden: Array, box: TreeBox) -> bool:
    left = int(tree.left[box.node])
    return bool(is_hidden[left] or is_hidden[left + 1])


def _answers(fit: Fit) -> list[str]:
    tree = fit.model.tree_
    if fit.by_class is not None:
        return [fit.printed.labels[k] for k in tree.values.argmax(axis=1)]
    return [f"{mean:.4g}" for mean in np.ravel(tree.values)]


def _rows_of_nodes(fit: Fit) -> Array:
    """Rows that reach every node."""
    tree = fit.model.tree_
    counts = np.zeros(tree.n_nodes, dtype=np.int64)
    for part in fit.source.reading(Target.NONE).map(
        lambda block: np.bincount(fit.model.leaves(block), minlength=tree.n_nodes)
    ):
        counts += part
    for node in np.flatnonzero(tree.left)[::-1]:
        counts[node] = counts[tree.left[node]] + counts[tree.left[node] + 1]
    return counts


def _columns(fit: Fit) -> tuple[list[Table], int]:
    """Columns with a share in the gains of splits, the largest first; intervals where there are many trees."""
    shares = np.asarray(fit.model.feature_importances_)
    errors = _standard_errors(fit.model.forest_.gains) if "forest" in fit.sections else None
    order = [int(j) for j in np.argsort(-shares, kind="stable") if shares[j] > 0]
    rows = []
    for j in order[:MOST_COLUMNS]:
        low, high = (None, None) if errors is None else (max(0.0, shares[j] - Z * errors[j]), shares[j] + Z * errors[j])
        rows.append({"name": fit.printed.columns[j], "share": float(shares[j]), "low": low, "high": high})
    return rows, len(order) - len(rows)


def _standard_errors(gains: Array) -> Array | None:
    """Of the mean share over the trees of a forest."""
    totals = gains.sum(axis=1, keepdims=True)
    shares = gains[totals[:, 0] > 0] / totals[totals[:, 0] > 0]
    return np.asarray(shares.std(axis=0, ddof=1) / np.sqrt(len(shares))) if len(shares) > 1 else None


def _sentences(facts: Table) -> list[str]:
    columns, sentences = facts["columns"], []
    if not columns:
        return ["No column is split on: every row gets the same answer."]
    first = columns[0]
    sentences.append(
        f"{text.visible(first['name'], 60)} brings {100 * first['share']:.3g} % of what all splits gain together. "
        "Columns that say the same share their gains, and columns of many values are favoured: a share is no proof of "
        "an effect."
    )
    if facts["nodes"] is not None and any(node["is_cut"] for node in facts["nodes"]):
        sentences.append(f"The first four levels of {text.plural(facts['n_nodes'], 'node')} are drawn.")
    held = (facts["rounds"] or {}).get("loss on rows held out")
    if held:
        best = int(np.argmin(held))
        sentences.append(f"The loss on the rows held out was lowest after round {best + 1}, {text.number(held[best])}.")
    return sentences
