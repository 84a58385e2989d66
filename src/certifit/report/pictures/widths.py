"""The error of local regression by leave-one-out against the width tau."""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text


def draw_widths(context: dict[str, Any]) -> str:
    """A line with the width of the model ringed; empty text for models without a width, and of very many rows."""
    facts = context["widths"]
    if facts is None or facts["chosen"] < 0:
        return ""
    points = [(svg.log10(tau), error) for tau, error in zip(facts["taus"], facts["errors"], strict=True)]
    x, y = [at for at, _ in points], [height for _, height in points]
    frame = svg.LogFrame.around((min(x), max(x)), (min(y), max(y)), margin=0.06)
    marks = [frame.line(points, "line"), frame.dots(points, "s6", 6)]
    ring = svg.marked(frame, *points[facts["chosen"]])
    body = [frame.axes("tau", "mean squared error"), frame.clipped("widths", marks), ring]
    least, most = text.number(min(y)), text.number(max(y))
    words = f"From {least} to {most}; the width of the model is {text.number(facts['tau'])}."
    return svg.document("widths", "Error against tau", words, body)
