"""Leverage against studentised residual, with lines of equal Cook's distance and the rows that matter most."""

from typing import Any

import numpy as np

from certifit.evaluation.pictures.influence import cook_contour
from certifit.report import svg, text
from certifit.report.places import place_number

LEVELS = ((0.1, "line-soft"), (1.0, "line-chosen"))
MOST_NAMED = 6


def draw_influence(context: dict[str, Any]) -> str:
    """Density of rows, leverage on a log axis; empty text where rows have no influence."""
    influence = context["influence"]
    if influence is None:
        return ""
    grid, rows = (
        influence["grid"],
        [row for row in influence["rows"] if row["studentised"] is not None and row["leverage"]],
    )
    points = [(svg.log10(row["leverage"]), row["studentised"]) for row in rows]
    frame = svg.LogFrame.around(_x_range(grid, points), _y_range(grid, points), margin=0.04)
    marks = [svg.density(frame, grid), frame.line([(frame.x[0], 0.0), (frame.x[1], 0.0)], "zero")]
    for level, kind in LEVELS:
        marks += [frame.line(contour, kind) for contour in _contours(frame, level, influence)]
    marks.append("".join(svg.marked(frame, x, y, 3.5) for x, y in points))
    labels = _labels(frame, rows, points)
    keys = [("dot s4", "rows"), *((kind, f"Cook's distance {level:g}") for level, kind in LEVELS)]
    body = [
        frame.axes("leverage (share of its own prediction)", "studentised residual"),
        frame.clipped("influence", marks),
        labels,
        svg.legend(frame, keys),
    ]
    shown = ", ".join(f"{text.visible(row['place'])} ({text.number(row['cooks_distance'], 2)})" for row in rows)
    description = f"Studentised residual against leverage. Rows of largest Cook's distance: {shown}."
    return svg.document("influence", "Leverage and residuals", description, body)


def _contours(frame: svg.Frame, level: float, influence: dict[str, Any]) -> list[list[svg.Point]]:
    """Where Cook's distance is this, above and below zero."""
    places = np.linspace(frame.x[0], min(frame.x[1], -1e-6), 121)
    t = cook_contour(10**places, level, influence["n_coefficients"], influence["df_resid"])
    above = [(float(x), float(y)) for x, y in zip(places, t, strict=True) if np.isfinite(y)]
    return [above, [(x, -y) for x, y in above]] if len(above) > 1 else []


def _x_range(grid: dict[str, Any], points: list[svg.Point]) -> svg.Range:
    """The cells that hold rows, and the rows that are marked."""
    (low, high), n_columns = grid["x"], grid["shape"][0]
    width = (high - low) / n_columns
    used = [low + width * (cell[0] + end) for cell in grid["cells"] for end in (0, 1)] + [x for x, _ in points]
    return (min(used), max(used)) if used else (low, high)


def _y_range(grid: dict[str, Any], points: list[svg.Point]) -> svg.Range:
    values = [*grid["y"], *(y for _, y in points)]
    return min(values), max(values)


def _labels(frame: svg.Frame, rows: list[dict[str, Any]], points: list[svg.Point]) -> str:
    """Numbers of the first rows, where they do not cover each other."""
    placed: list[svg.Point] = []
    parts = []
    for row, point in list(zip(rows, points, strict=True))[:MOST_NAMED]:
        x, y = frame.px(point[0]), frame.py(point[1])
        number = str(place_number(row["place"]))
        width = svg.CHARACTER * len(number)
        if any(abs(x - a) < width + 10 and abs(y - b) < 12 for a, b in placed):
            continue
        placed.append((x, y))
        is_right = x + width + 10 < frame.right
        parts.append(
            f'<text class="name" x="{x + (8 if is_right else -8):.1f}" y="{y + 4:.1f}" '
            f'text-anchor="{"start" if is_right else "end"}">{number}</text>'
        )
    return "".join(parts)
