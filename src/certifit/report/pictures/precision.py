"""Precision against recall, at every threshold: what finding more of a class costs in wrong calls."""

from typing import Any

from certifit.report import svg, text
from certifit.report.class_tables import decimals
from certifit.report.pictures.roc import colour, names


def draw(context: dict[str, Any]) -> str:
    """A line for the positive class, or for each of the largest classes; empty text without one."""
    curves = [] if context["classes"] is None else context["classes"]["curves"]
    if not curves:
        return ""
    frame = svg.Frame.around((0.0, 1.0), (0.0, 1.0))
    marks = []
    if len(curves) == 1:
        marks.append(frame.line([(0.0, curves[0]["share"]), (1.0, curves[0]["share"])], "zero"))
    for k, curve in enumerate(curves):
        # The point at recall 0 is a convention and no threshold.
        points = [(x, y) for x, y in curve["precision_recall"] if x > 0]
        marks.append(frame.line(points, colour(k, len(curves))))
    entries = [(curve["label"], decimals(curve["average_precision"])) for curve in curves]
    body = [
        frame.axes("recall: share found of the class", "precision: share of calls right"),
        frame.clipped("precision", marks),
        names(frame, entries, "average precision", is_left=True),
    ]
    words = ", ".join(f"{text.visible(name, 40)} {number}" for name, number in entries)
    return svg.document("precision", "Precision and recall", f"Average precision: {words}.", body)
