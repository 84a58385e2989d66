"""Pens of predicted classes.

Confusion matrix: of the rows of each class, the share that is predicted as each; the diagonal is right. Calibration:
what happens against the probability it was given, in ten groups of equally many rows.

ROC curve: the share found of a class against the share of the others taken for it, at every threshold.

Of rows that fold models predicted it is the mean of the folds' curves, weighted by their pairs: its area is the AUC.

Precision against recall, at every threshold: what finding more of a class costs in wrong calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from certifit.evaluation.pictures.confusion_and_calibration import true_shares
from certifit.report import svg, text
from certifit.report.tables import decimals

# Cells of a matrix with more classes carry no numbers.
MOST_WITH_NUMBERS = 10
LABEL = 16
# Shades of a share: the darkest two need light letters.
SHADES = (0.0, 0.02, 0.1, 0.25, 0.45, 0.7)


def draw_matrix(context: dict[str, Any]) -> str:
    """A shaded cell for every truth (down) and prediction (across); empty text without classes."""
    if context["classes"] is None:
        return ""
    matrix = context["classes"]["matrix"]
    labels, counts, rows = matrix["labels"], matrix["counts"], matrix["rows"]
    longest = max(len(text.visible(label, LABEL)) for label in labels)
    left = 34 + svg.CHARACTER * longest
    is_few = len(labels) <= 4
    room, most = svg.WIDTH - left - 8, 64 if is_few else 46
    side = min(room / len(labels), most)
    width = room / len(labels) if is_few else side
    top = 44.0 if _fits(labels, width) else 24 + svg.CHARACTER * longest
    body = [_heads(left, top, width, side, labels)]
    shares = true_shares(counts, rows)
    for i, label in enumerate(labels):
        for j, other in enumerate(labels):
            place = (left + j * width, top + i * side, width, side)
            body.append(_cell(place, float(shares[i, j]), counts[i][j], i == j, len(labels), (label, other)))
    description = "; ".join(
        f"of {text.visible(label, 40)} {text.percent(float(shares[i, i]))} right" for i, label in enumerate(labels)
    )
    title = "Confusion matrix: truth down, prediction across"
    return svg.document("matrix", title, description, body, height=top + side * len(labels) + 10)


def _fits(labels: list[str], width: float) -> bool:
    return all(svg.CHARACTER * len(text.visible(label, LABEL)) < width for label in labels)


def _heads(left: float, top: float, width: float, side: float, labels: list[str]) -> str:
    middle = left + width * len(labels) / 2
    parts = [
        f'<text class="label" x="{middle:.1f}" y="13" text-anchor="middle">predicted</text>',
        f'<text class="label" transform="translate(12 {top + side * len(labels) / 2:.1f}) rotate(-90)" '
        'text-anchor="middle">actual</text>',
    ]
    is_flat = _fits(labels, width)
    for k, label in enumerate(labels):
        name = svg.escape(label, LABEL)
        x, y = left + (k + 0.5) * width, top + (k + 0.5) * side + 4
        turned = f'x="{x:.1f}" y="{top - 8:.1f}" text-anchor="middle"'
        if not is_flat:
            turned = f'transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)"'
        parts.append(f'<text class="name" {turned}>{name}</text>')
        parts.append(f'<text class="name" x="{left - 8:.1f}" y="{y:.1f}" text-anchor="end">{name}</text>')
    return "".join(parts)


def _cell(
    place: tuple[float, float, float, float],
    share: float,
    count: float,
    is_right: bool,
    n_classes: int,
    names: tuple[str, str],
) -> str:
    x, y, width, height = place
    shade = sum(share >= edge for edge in SHADES) if count else 0
    truth, predicted = (text.visible(name, 60) for name in names)
    tip = f"{truth} predicted as {predicted}: {text.plural(count, 'row')}, {text.percent(share)}"
    kind = f"d{shade}" if shade else "empty"
    kind += " right" if is_right else ""
    box = f'x="{x + 0.75:.1f}" y="{y + 0.75:.1f}" width="{width - 1.5:.1f}" height="{height - 1.5:.1f}"'
    parts = [f'<g><title>{svg.escape(tip)}</title><rect class="{kind}" {box}/>']
    if n_classes <= MOST_WITH_NUMBERS and count:
        light = " light" if shade >= 5 else ""
        middle = x + width / 2
        lines = [text.count(count), text.percent(share)] if n_classes <= 4 else [text.count(count)]
        first = y + height / 2 + 4 - 8 * (len(lines) - 1)
        parts += [
            f'<text class="{"in strong" if k == 0 else "in"}{light}" x="{middle:.1f}" y="{first + 17 * k:.1f}" '
            f'text-anchor="middle">{line}</text>'
            for k, line in enumerate(lines)
        ]
    return "".join([*parts, "</g>"])


def draw_calibration(context: dict[str, Any]) -> str:
    """Dots with intervals round the line of equality; empty text without classes."""
    if context["classes"] is None:
        return ""
    classes = context["classes"]
    bins = classes["calibration"]["bins"]
    frame = svg.Frame.around((0.0, 1.0), (0.0, 1.0), margin=0.03)
    marks = frame.agreement(bins, (0.0, 1.0), [_tip(one) for one in bins])
    what = (
        "the predicted class"
        if classes["positive"] is None
        else text.visible(classes["labels"][classes["positive"]], 20)
    )
    body = [frame.axes(f"probability of {what}", "share in which it happened"), frame.clipped("calibration", marks)]
    words = "; ".join(f"{text.number(b['predicted'], 2)} happened in {text.number(b['observed'], 2)}" for b in bins)
    return svg.document("calibration", "Calibration", f"Mean probability and share that happened: {words}.", body)


def _tip(one: dict[str, Any]) -> str:
    """Of a group whose interval is drawn; empty text without one."""
    if one["low"] is None:
        return ""
    return (
        f"{text.count(one['count'])} rows: probability {text.number(one['predicted'], 3)}, happened in "
        f"{text.number(one['observed'], 3)} ({text.number(one['low'], 3)} to {text.number(one['high'], 3)})"
    )


NAME = 14


def draw_roc(context: dict[str, Any]) -> str:
    """A line for the positive class, or for each of the largest classes; empty text without one."""
    curves = [] if context["classes"] is None else [curve for curve in context["classes"]["curves"] if curve["roc"]]
    if not curves:
        return ""
    frame = svg.Frame.around((0.0, 1.0), (0.0, 1.0))
    marks = [frame.line([(0.0, 0.0), (1.0, 1.0)], "zero")]
    marks += [frame.line([(x, y) for x, y in curve["roc"]], colour(k, len(curves))) for k, curve in enumerate(curves)]
    label = curves[0]["label"] if len(curves) == 1 else "the class"
    body = [
        frame.axes("share of the others taken for it", f"share found of {text.visible(label, 18)}"),
        frame.clipped("roc", marks),
        names(frame, [(curve["label"], decimals(curve["auc"]["value"])) for curve in curves], "area"),
    ]
    words = ", ".join(f"{text.visible(one['label'], 40)} {decimals(one['auc']['value'])}" for one in curves)
    mean = " The mean of the folds' curves." if context["classes"]["is_new"] else ""
    return svg.document("roc", "ROC curve", f"Area under the curve: {words}; 0.5 is guessing.{mean}", body)


def colour(k: int, n_lines: int) -> str:
    """The class of a line: one alone is in the colour of the fit."""
    return "line" if n_lines == 1 else f"line-many c{k + 1}"


def names(frame: svg.Frame, entries: list[tuple[str, str]], alone: str) -> str:
    """Names and numbers of the lines in the lower right corner; alone: what the number of one line is."""
    x, parts = frame.px(0.97), []
    for k, (name, number) in enumerate(entries):
        y = frame.py(0.04) - 16 * (len(entries) - 1 - k)
        shown = f"{svg.escape(name, NAME)} {number}" if len(entries) > 1 else f"{alone} {number}"
        kind = f"key c{k + 1} strong" if len(entries) > 1 else "key strong"
        parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="end">{shown}</text>')
    return "".join(parts)


def draw_precision(context: dict[str, Any]) -> str:
    """A line for the positive class, or for each of the largest classes; empty text without one.

    Their names are above the frame: curves may run through every corner of it.
    """
    curves = [] if context["classes"] is None else context["classes"]["curves"]
    if not curves:
        return ""
    kinds = [colour(k, len(curves)) for k in range(len(curves))]
    entries = [(curve["label"], decimals(curve["average_precision"])) for curve in curves]
    words = [f"{text.visible(name, NAME)} {number}" for name, number in entries]
    keys = list(zip(kinds, words if len(curves) > 1 else [f"average precision {entries[0][1]}"], strict=True))
    frame = svg.Frame.around((0.0, 1.0), (0.0, 1.0))
    frame = replace(frame, top=10 + svg.KEY_ROW * svg.legend_rows(frame.left, keys))
    marks = []
    if len(curves) == 1:
        marks.append(frame.line([(0.0, curves[0]["share"]), (1.0, curves[0]["share"])], "zero"))
    for kind, curve in zip(kinds, curves, strict=True):
        marks.append(frame.line([(x, y) for x, y in curve["precision_recall"]], kind))
    body = [
        frame.axes("recall: share found of the class", "precision: predictions right"),
        frame.clipped("precision", marks),
        svg.legend(frame, keys),
    ]
    described = ", ".join(f"{text.visible(name, 40)} {number}" for name, number in entries)
    return svg.document("precision", "Precision and recall", f"Average precision: {described}.", body)
