"""ROC curve: the share found of a class against the share of the others taken for it, at every threshold.

Of rows that fold models predicted it is the mean of the folds' curves, weighted by their pairs: its area is the AUC.

Precision against recall, at every threshold: what finding more of a class costs in wrong calls.
"""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text
from certifit.report.tables import decimals

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


def names(frame: svg.Frame, entries: list[tuple[str, str]], alone: str, is_left: bool = False) -> str:
    """Names and numbers of the lines in a lower corner of the frame; alone: what the number of one line is."""
    x = frame.px(0.03) if is_left else frame.px(0.97)
    anchor = "start" if is_left else "end"
    parts = []
    for k, (name, number) in enumerate(entries):
        y = frame.py(0.04) - 16 * (len(entries) - 1 - k)
        shown = f"{svg.escape(name, NAME)} {number}" if len(entries) > 1 else f"{alone} {number}"
        kind = f"key c{k + 1} strong" if len(entries) > 1 else "key strong"
        parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>')
    return "".join(parts)


def draw_precision(context: dict[str, Any]) -> str:
    """A line for the positive class, or for each of the largest classes; empty text without one."""
    curves = [] if context["classes"] is None else context["classes"]["curves"]
    if not curves:
        return ""
    frame = svg.Frame.around((0.0, 1.0), (0.0, 1.0))
    marks = []
    if len(curves) == 1:
        marks.append(frame.line([(0.0, curves[0]["share"]), (1.0, curves[0]["share"])], "zero"))
    for k, curve in enumerate(curves):
        marks.append(frame.line([(x, y) for x, y in curve["precision_recall"]], colour(k, len(curves))))
    entries = [(curve["label"], decimals(curve["average_precision"])) for curve in curves]
    body = [
        frame.axes("recall: share found of the class", "precision: share of calls right"),
        frame.clipped("precision", marks),
        names(frame, entries, "average precision", is_left=True),
    ]
    words = ", ".join(f"{text.visible(name, 40)} {number}" for name, number in entries)
    return svg.document("precision", "Precision and recall", f"Average precision: {words}.", body)
