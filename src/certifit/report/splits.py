"""What a model of trees splits on: the tree itself, the share of each column in all gains, and rounds of boosting.

The answer and the threshold of a node that fewer rows reach than `data.privacy` asks for are not printed. The pens
draw the tree as lines of an outline, shares as bars, and the rounds as curves.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.privacy import NOT_SHOWN
from certifit.data.view import Target
from certifit.evaluation.pictures.trees import TreeBox, drawn_rounds, reached_by, reading_order, tree_boxes
from certifit.maps.table.survey import printed_codes
from certifit.report import svg, text
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


ROW = 22.0
INDENT = 16.0
STRIP, SHARE = 96.0, 52.0  # widths of the strip of classes and of the share
NAME = 24


def draw_tree(context: dict[str, Any]) -> str:
    """One line per node: what its rows have in common, its answer, its share of all rows, and its classes or mean."""
    splits = context["splits"]
    if splits is None or splits["nodes"] is None or len(splits["nodes"]) < 2:
        return ""
    nodes, labels = splits["nodes"], splits["labels"]
    top = 22.0 if labels and len(labels) <= svg.N_COLOURS else 6.0
    body = [_legend(labels)] if top > 6 else []
    height_of = {node["node"]: top + ROW * (k + 0.5) for k, node in enumerate(nodes)}
    parents: dict[int, float] = {}
    for node in nodes:
        y, x = height_of[node["node"]], 8 + INDENT * node["depth"]
        if node["depth"] > 0:
            body.append(
                f'<path class="axis" d="M{x - INDENT + 3:.1f} {parents[node["depth"] - 1] + 9:.1f}V{y:.1f}h9"/>'
            )
        parents[node["depth"]] = y
        body.append(_line(node, labels, x, y))
    words = "; ".join(_words(node) for node in nodes)
    return svg.document("tree", "The tree", words, body, height=top + ROW * len(nodes) + 8)


def _words(node: dict[str, Any]) -> str:
    where = node["reached_by"] or "all rows"
    return f"{where}: {node['answer']}, {100 * node['share']:.3g} % of the weight"


def _line(node: dict[str, Any], labels: list[str] | None, x: float, y: float) -> str:
    ends = "" if node["question"] else " strong"
    room = int((svg.WIDTH - STRIP - SHARE - x - 16) / svg.CHARACTER) + 3
    where = text.visible(node["reached_by"] or "all rows", NAME + 14)
    more = " \N{HORIZONTAL ELLIPSIS}" if node["is_cut"] else ""
    answer = text.visible(str(node["answer"]), max(8, room - len(where) - 4))
    share = f"{100 * node['share']:.3g} %"
    return (
        f"<g><title>{svg.escape(_words(node))}</title>"
        f'<text class="name" x="{x:.1f}" y="{y + 4:.1f}">{svg.escape(where)}'
        f'<tspan class="in{ends}" dx="8">\N{RIGHTWARDS ARROW} {svg.escape(answer)}{more}</tspan></text>'
        f'<text class="tick" x="{svg.WIDTH - STRIP - 14:.1f}" y="{y + 4:.1f}" text-anchor="end">{share}</text>'
        f"{_strip(node['parts'], labels, y)}</g>"
    )


def _strip(parts: list[float], labels: list[str] | None, y: float) -> str:
    """Shares of the classes side by side, or a mark where the mean lies between the least and the largest."""
    left, right = svg.WIDTH - STRIP - 6, svg.WIDTH - 6.0
    frame = f'<rect class="empty" x="{left:.1f}" y="{y - 6:.1f}" width="{STRIP:.1f}" height="12"/>'
    if not parts:
        return frame
    if labels is None:
        at = left + parts[0] * (right - left)
        return f'{frame}<path class="whisker" d="M{at:.1f} {y - 6:.1f}v12"/>'
    marks = []
    for k, part in enumerate(parts):
        if part > 0:
            kind = f"c{k + 1}" if len(parts) <= svg.N_COLOURS else ("c1" if part == max(parts) else "c2")
            marks.append(f'<path class="point {kind}" stroke-width="12" d="M{left:.1f} {y:.1f}h{STRIP * part:.2f}"/>')
        left += STRIP * part
    return frame + "".join(marks)


def _legend(labels: list[str]) -> str:
    parts, x = [], 8.0
    for k, label in enumerate(labels):
        words = text.visible(label, 18)
        parts.append(f'<text class="key c{k + 1}" x="{x:.1f}" y="14">\N{BLACK SQUARE} {svg.escape(words)}</text>')
        x += svg.CHARACTER * (len(words) + 4)
    return "".join(parts)


def draw_shares(context: dict[str, Any]) -> str:
    """Bars of the share of each column in the gains of all splits, with whiskers over the trees of a forest."""
    splits = context["splits"]
    rows = [] if splits is None else splits["columns"]
    if len(rows) < 2:
        return ""
    most = max(row["high"] or row["share"] for row in rows)
    longest = max(len(text.visible(row["name"], NAME)) for row in rows)
    bottom = 10 + 21.0 * len(rows)
    frame = svg.Frame((0.0, 104 * most), (len(rows) - 0.5, -0.5), 14 + svg.CHARACTER * longest, top=8.0, bottom=bottom)
    body = [svg.x_axis(frame, "share of the gains of all splits, %")]
    for k, row in enumerate(rows):
        y, zero, x = frame.py(k), frame.px(0.0), frame.px(100 * row["share"])
        body.append(
            f'<text class="name" x="{frame.left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">'
            f"{svg.escape(row['name'], NAME)}</text>"
            f'<rect class="bar" x="{zero:.1f}" y="{y - 6:.1f}" width="{max(x - zero, 0.5):.1f}" height="12"/>'
        )
        if row["low"] is not None:
            ends = frame.px(100 * row["low"]), frame.px(100 * row["high"])
            body.append(f'<path class="whisker" d="M{ends[0]:.1f} {y:.1f}H{ends[1]:.1f}"/>')
    words = "; ".join(f"{text.visible(row['name'], 40)} {100 * row['share']:.3g} %" for row in rows)
    return svg.document("shares", "Shares of the columns", words, body, height=bottom + 46)


def draw_rounds(context: dict[str, Any]) -> str:
    """Error under its bound, or losses on the rows of the fit and on rows held out, after every round."""
    splits = context["splits"]
    lines = None if splits is None else splits["rounds"]
    if not lines or len(next(iter(lines.values()))) < 3:
        return ""
    values = [value for line in lines.values() for value in line]
    n_rounds = len(next(iter(lines.values())))
    frame = svg.Frame.around((1.0, float(n_rounds)), (min(values), max(values)), margin=0.04)
    label = "share of wrong rows" if "training error" in lines else "mean loss"
    marks, keys = [], []
    for k, (name, line) in enumerate(lines.items()):
        dashed = " dashed" if name == "bound on it" else ""
        points = [(float(i + 1), value) for i, value in enumerate(line)]
        marks.append(frame.line(points, f"line-many c{k + 1}{dashed}"))
        keys.append(
            f'<text class="key c{k + 1}{dashed}" x="{frame.right - 6:.1f}" y="{frame.top + 16 + 16 * k:.1f}" '
            f'text-anchor="end">{svg.escape(name)}</text>'
        )
    body = [frame.axes("round", label), frame.clipped("rounds", marks), *keys]
    words = "; ".join(f"{name} from {text.number(line[0])} to {text.number(line[-1])}" for name, line in lines.items())
    return svg.document("rounds", "Round by round", words, body)
