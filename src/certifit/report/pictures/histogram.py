"""Histogram of residuals beside the normal curve of the same spread."""

import math
from typing import Any

from certifit.report import svg


def draw(context: dict[str, Any]) -> str:
    """Bars are shares of rows; the curve is what normal residuals with spread sigma would give."""
    if context["pictures"] is None:
        return ""
    shape = context["pictures"]["histogram"]
    edges, mass, sigma = shape["edges"], shape["mass"] or 1.0, shape["sigma"]
    shares = [100 * n / mass for n in shape["counts"]]
    normal = _normal(edges, sigma) if sigma else []
    top = max([*shares, *(y for _, y in normal)], default=1.0) or 1.0
    frame = svg.Frame.around((edges[0], edges[-1]), (0.0, top * 1.05), margin=0.0)
    bars = []
    for left, right, share in zip(edges[:-1], edges[1:], shares, strict=True):
        if share > 0:
            x, width = frame.px(left), frame.px(right) - frame.px(left)
            y = frame.py(share)
            bars.append(f"M{x + 0.5:.1f} {frame.bottom:.1f}V{y:.1f}h{max(width - 1, 0.5):.1f}V{frame.bottom:.1f}z")
    marks = [f'<path class="bar" d="{"".join(bars)}"/>']
    keys = [("band-bar", "residuals")]
    if normal:
        marks.append(frame.line(normal, "line"))
        keys.append(("line", "normal curve"))
    body = [
        frame.axes("actual − predicted", "share of rows, %"),
        frame.clipped("histogram", marks),
        svg.legend(frame, keys),
    ]
    description = "Share of rows by residual, and the normal curve with the same spread."
    return svg.document("histogram", "Histogram of residuals", description, body)


def _normal(edges: list[float], sigma: float) -> list[svg.Point]:
    """Share of rows in a bar round x, in per cent: 100 * width * density(x)."""
    width = edges[1] - edges[0]
    points = [edges[0] + (edges[-1] - edges[0]) * k / 160 for k in range(161)]
    height = 100 * (width / sigma) / math.sqrt(2 * math.pi)
    return [(x, height * math.exp(-((x / sigma) ** 2) / 2)) for x in points]
