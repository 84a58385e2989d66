"""Bias and variance against the strength of the penalty: what is lost by too little of it, and by too much."""

from __future__ import annotations

from typing import Any

from certifit.report import svg


def draw(context: dict[str, Any]) -> str:
    """Variance, bias^2 + noise and their sum, as shares of the variance of the target; empty where not known."""
    found = None if context["validation"] is None else context["validation"]["decomposition"]
    sd = context["data"]["target"]["sd"]
    if found is None or not sd or None in (*found["error"], *found["variance"]):
        return ""
    x = [svg.log10(value) for value in found["values"]]
    lines = {
        kind: [(at, value / sd / sd) for at, value in zip(x, found[key], strict=True)]
        for kind, key in (("line", "error"), ("line-fit", "variance"), ("line-soft", "bias_and_noise"))
    }
    top = max(y for points in lines.values() for _, y in points)
    frame = svg.LogFrame.around((min(x), max(x)), (0.0, top))
    marks = [frame.line(points, kind) for kind, points in lines.items()]
    keys = [("line", "error"), ("line-soft", "bias² + noise"), ("line-fit", "variance")]
    body = [frame.axes("alpha", "share of the target's variance"), frame.clipped("variance", marks)]
    body.append(svg.legend(frame, keys))
    description = "Squared error on rows not drawn, and its parts, against alpha, as shares of the target's variance."
    return svg.document("variance", "Bias and variance", description, body)
