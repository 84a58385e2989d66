"""The way of the solver to the best fit: its own estimate of the excess, step by step."""

from __future__ import annotations

from typing import Any

from certifit.evaluation.pictures.convergence import drawn_gaps
from certifit.report import svg, text

FEWEST = 3
# What is at or below this is rounding, and left out.
FLOOR = 1e-35


def draw_gaps(context: dict[str, Any]) -> str:
    """Gaps on a log axis against steps; empty text for fewer than three of them."""
    history = context["history"]
    rows = [] if history is None else history["rows"]
    steps, gaps = drawn_gaps([row["iteration"] for row in rows], [row["gap"] for row in rows], FLOOR)
    drawn = [(step, gap) for step, gap in zip(steps.tolist(), gaps.tolist(), strict=True) if gap > FLOOR]
    if len(drawn) < FEWEST:
        return ""
    points = [(step, svg.log10(gap)) for step, gap in drawn]
    x, y = [at for at, _ in points], [height for _, height in points]
    frame = svg.PowerFrame.around((min(x), max(x)), (min(y), max(y)), margin=0.04)
    marks = [frame.line(points, "line"), frame.dots(points, "s6", 6)]
    body = [frame.axes("step", "excess over the best"), frame.clipped("gaps", marks)]
    description = (
        f"Excess of the objective over the best, as the solver reckons, from {text.power(drawn[0][1])} "
        f"to {text.power(drawn[-1][1])} in {history['n_steps']} steps."
    )
    return svg.document("gaps", "Excess step by step", description, body)
