"""What a usual step of each column does to the target: coefficient times spread, with its interval.

A category is one row: the spread of its part of the prediction, which has no sign.
"""

from typing import Any

from certifit.report import svg, text

MOST = 16
ROW = 21


def draw(context: dict[str, Any]) -> str:
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
