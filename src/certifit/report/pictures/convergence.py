"""The way of the solver to the best fit: its own estimate of the excess, step by step."""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text

FEWEST = 3
# What is below this is rounding; the axis ends here.
FLOOR = 1e-35


def draw(context: dict[str, Any]) -> str:
    """Gaps on a log axis against steps; empty text for fewer than three of them."""
    history = context["history"]
    rows = [] if history is None else [row for row in history["rows"] if row["gap"] is not None and row["gap"] > FLOOR]
    if len(rows) < FEWEST:
        return ""
    points = [(float(row["iteration"]), svg.log10(row["gap"])) for row in rows]
    x, y = [at for at, _ in points], [height for _, height in points]
    frame = svg.PowerFrame.around((min(x), max(x)), (min(y), max(y)), margin=0.04)
    marks = [frame.line(points, "line"), frame.dots(points, "s6", 6)]
    body = [frame.axes("step", "excess over the best"), frame.clipped("gaps", marks)]
    description = (
        f"Excess of the objective over the best, as the solver reckons, from {text.power(rows[0]['gap'])} "
        f"to {text.power(rows[-1]['gap'])} in {history['n_steps']} steps."
    )
    return svg.document("gaps", "Excess step by step", description, body)
