"""What a usual step of each column does to the target: coefficient times spread, with its interval.

A category is one row: the spread of its part of the prediction, which has no sign.

Coefficients along the strength of the penalty; above them, how many are not zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.pictures.coefficients import drawn_path
from certifit.report import svg, text

MOST = 16
ROW = 21


def draw_effects(context: dict[str, Any]) -> str:
    """Dots with whiskers, largest effect first; empty text when there are not two to compare."""
    rows = [] if context["coefficients"] is None or context["classes"] is not None else _rows(context)
    rows = sorted(rows, key=lambda row: -abs(row["effect"]))[:MOST]
    if len(rows) < 2:
        return ""
    values = [row[key] for row in rows for key in ("effect", "effect_low", "effect_high") if row[key] is not None]
    longest = max(len(text.visible(row["name"], 26)) for row in rows)
    bottom = 14 + ROW * len(rows)
    frame = svg.Frame(
        svg.widened((min(0.0, *values), max(0.0, *values)), 0.04),
        (float(len(rows)) - 0.5, -0.5),
        left=14 + svg.CHARACTER * longest,
        top=10,
        bottom=bottom,
    )
    body = [_axis(frame, _changed(context))]
    body += [_row(frame, k, row, context) for k, row in enumerate(rows)]
    description = "; ".join(f"{text.visible(row['name'], 40)} {text.number(row['effect'], 3)}" for row in rows)
    title = "Change of the prediction for one standard deviation of each column"
    return svg.document("effects", title, description, body, height=bottom + 46)


def _changed(context: dict[str, Any]) -> str:
    """What is changed, as it is drawn."""
    target = svg.escape(context["model"]["target"], 28)
    return target if context["coefficients"]["ratio"] is None else f"the logarithm of {target}"


def _rows(context: dict[str, Any]) -> list[dict[str, Any]]:
    table = context["coefficients"]
    groups = [
        {"name": group["column"], "effect": group["effect"], "effect_low": -group["effect"], "effect_high": None}
        | {"n_levels": group["n_levels"]}
        for group in table["groups"]
        if group["effect"] is not None
    ]
    merged = {group["column"] for group in table["groups"]}
    rows = [row for row in table["rows"] if row["effect"] is not None and row["column"] not in merged]
    return [row | {"n_levels": None} for row in rows] + groups


def _axis(frame: svg.Frame, changed: str) -> str:
    parts = []
    for value, label in frame.x_ticks():
        at = f"{frame.px(value):.1f}"
        kind = "axis" if value == 0 else "grid"
        parts.append(f'<path class="{kind}" d="M{at} {frame.top}V{frame.bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{frame.bottom + 16}" text-anchor="middle">{label}</text>')
    parts.append(
        f'<text class="label" x="{svg.WIDTH / 2:.0f}" y="{frame.bottom + 38}" text-anchor="middle">'
        f"change of {changed} for one standard deviation</text>"
    )
    return "".join(parts)


def _row(frame: svg.Frame, k: int, row: dict[str, Any], context: dict[str, Any]) -> str:
    y, x = frame.py(k), frame.px(row["effect"])
    tip = f"{text.visible(row['name'])}: {text.number(row['effect'])}"
    if row["n_levels"] is not None:
        return _category(frame, y, row)
    whisker = ""
    if row["effect_low"] is not None:
        low, high = sorted((row["effect_low"], row["effect_high"]))
        whisker = f'<path class="whisker" d="M{frame.px(low):.1f} {y:.1f}H{frame.px(high):.1f}"/>'
        percent = text.number(100 * context["coefficients"]["level"])
        tip += f" ({percent} % interval {text.number(low)} to {text.number(high)})"
    return (
        f'<g><title>{svg.escape(tip)}</title><text class="name" x="{frame.left - 8:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="end">{svg.escape(row["name"], 26)}</text>{whisker}'
        f'<path class="dot s6" stroke-width="7" d="M{x:.1f} {y:.1f}h0"/></g>'
    )


def _category(frame: svg.Frame, y: float, row: dict[str, Any]) -> str:
    tip = f"{text.visible(row['name'])}: {row['n_levels']} levels, about {text.number(row['effect'])} either way"
    low, high = frame.px(-row["effect"]), frame.px(row["effect"])
    rings = "".join(f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>' for x in (low, high))
    return (
        f'<g><title>{svg.escape(tip)}</title><text class="name" x="{frame.left - 8:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="end">{svg.escape(row["name"], 26)}</text>'
        f'<path class="join" d="M{low:.1f} {y:.1f}H{high:.1f}"/>{rings}</g>'
    )


# Ends of lines nearer than this, in pixels, have their names moved apart.
APART = 13
NAME = 18


def draw_penalty(context: dict[str, Any]) -> str:
    """Lines of coefficient times spread of its column, alpha on a log axis; empty text for a model without a path."""
    path = context["path"]
    if path is None:
        return ""
    columns = [line["effects"] for line in path["lines"]]
    alphas, drawn = drawn_path(path["alphas"], np.column_stack([path["n_nonzero"], *columns]))
    x, n_nonzero = [svg.log10(alpha) for alpha in alphas.tolist()], drawn[:, 0].astype(int).tolist()
    lines = list(zip(path["lines"], drawn[:, 1:].T.tolist(), strict=True))
    if len(x) < 2 or not lines or max(x) <= min(x):
        return ""
    values = [value for _, effects in lines for value in effects]
    frame = _frame((min(x), max(x)), (min(0.0, *values), max(0.0, *values)), lines)
    marks = [
        frame.line(list(zip(x, effects, strict=True)), f"line-many {_colour(k)}")
        for k, (_, effects) in enumerate(lines)
    ]
    marks.append(frame.line([(frame.x[0], 0.0), (frame.x[1], 0.0)], "zero"))
    at = svg.log10(path["chosen"]) if path["chosen"] > 0 else min(x)
    if path["chosen"] > 0:
        marks.append(frame.line([(at, frame.y[0]), (at, frame.y[1])], "line-chosen"))
    body = [
        frame.axes("penalty alpha", f"{text.visible(context['model']['target'], 13)} per standard deviation"),
        frame.clipped("penalty", marks),
        _counts(frame, x, n_nonzero, at),
        _names(frame, lines),
    ]
    description = (
        f"Coefficient times standard deviation of its column against alpha, for the {len(lines)} columns that move the "
        f"prediction most: {text.joined([line['name'] for line in path['lines']], 12)}. "
        f"Chosen: alpha {text.number(path['chosen'], 3)}."
    )
    return svg.document("penalty", "Coefficients against the penalty", description, body)


def _frame(x: svg.Range, y: svg.Range, lines: list[Any]) -> svg.Frame:
    """Room on the right for the names; small alphas, where all columns are in, stand there."""
    widest = max(len(text.visible(line["name"], NAME)) for line, _ in lines)
    around = svg.LogFrame.around(x, y)
    return svg.LogFrame(around.x[::-1], around.y, around.left, svg.WIDTH - 10 - svg.CHARACTER * widest, around.top + 14)


def _counts(frame: svg.Frame, x: list[float], n_nonzero: list[int], chosen: float) -> str:
    """The number of coefficients that are not zero, above the frame; that of the chosen alpha in any case."""
    parts = [f'<text class="tick" x="{frame.left:.1f}" y="12">coefficients that are not zero</text>']
    room = (frame.right - frame.left) / 6
    nearest = min(range(len(x)), key=lambda k: abs(x[k] - chosen))
    taken = [frame.px(x[nearest])]
    for k, at in enumerate(x):
        place = frame.px(at)
        if k == nearest or all(abs(place - other) >= room for other in taken):
            taken.append(place)
            look = f'class="{"name strong" if k == nearest else "tick"}" text-anchor="middle"'
            parts.append(f'<text {look} x="{place:.1f}" y="{frame.top - 6:.1f}">{n_nonzero[k]}</text>')
    return "".join(parts)


def _names(frame: svg.Frame, lines: list[Any]) -> str:
    """Names at the ends of the lines, moved apart where they would overlap."""
    ends = sorted((frame.py(effects[-1]), k) for k, (_, effects) in enumerate(lines))
    low, high = frame.top + 4, frame.bottom
    placed: list[float] = []
    for y, _ in ends:
        placed.append(max(y, low, placed[-1] + APART if placed else low))
    for k in range(len(placed) - 1, -1, -1):  # what went below the frame is pushed up again
        limit = high if k == len(placed) - 1 else placed[k + 1] - APART
        placed[k] = min(placed[k], limit)
    return "".join(
        f'<text class="key {_colour(k)}" x="{frame.right + 6:.1f}" y="{y + 4:.1f}">'
        f"{svg.escape(lines[k][0]['name'], NAME)}</text>"
        for y, (_, k) in zip(placed, ends, strict=True)
    )


def _colour(k: int) -> str:
    """Six colours; the lines after the sixth are dashed."""
    return f"c{1 + k % svg.N_COLOURS}" + (" dashed" if k >= svg.N_COLOURS else "")
