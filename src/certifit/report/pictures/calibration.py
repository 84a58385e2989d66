"""Calibration: what happens against the probability it was given, in ten groups of equally many rows.

Observed against predicted rates, in ten groups of equal exposure.
"""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text


def draw_calibration(context: dict[str, Any]) -> str:
    """Dots with intervals round the line of equality; empty text without classes."""
    if context["classes"] is None:
        return ""
    classes = context["classes"]
    bins = classes["calibration"]["bins"]
    frame = svg.Frame.around((0.0, 1.0), (0.0, 1.0), margin=0.03)
    points = [(one["predicted"], one["observed"]) for one in bins]
    marks = [frame.line([(0.0, 0.0), (1.0, 1.0)], "zero")]
    marks += [_whisker(frame, one) for one in bins if one["low"] is not None]
    marks += [frame.line(points, "join"), frame.dots(points, "s6", 7)]
    what = (
        "the predicted class"
        if classes["positive"] is None
        else text.visible(classes["labels"][classes["positive"]], 20)
    )
    body = [frame.axes(f"probability of {what}", "share in which it happened"), frame.clipped("calibration", marks)]
    words = "; ".join(f"{text.number(x, 2)} happened in {text.number(y, 2)}" for x, y in points)
    return svg.document("calibration", "Calibration", f"Mean probability and share that happened: {words}.", body)


def _whisker(frame: svg.Frame, one: dict[str, Any]) -> str:
    x, low, high = frame.px(one["predicted"]), frame.py(one["low"]), frame.py(one["high"])
    tip = (
        f"{text.count(one['count'])} rows: probability {text.number(one['predicted'], 3)}, happened in "
        f"{text.number(one['observed'], 3)} ({text.number(one['low'], 3)} to {text.number(one['high'], 3)})"
    )
    return f'<g><title>{svg.escape(tip)}</title><path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}"/></g>'
