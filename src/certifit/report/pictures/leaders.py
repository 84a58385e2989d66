"""The models that were compared: error on new rows with its standard error, the best on top."""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text

MOST = 16
ROW = 21
FAR = 3.0  # a baseline beyond so many times the largest other error would squeeze the others: it is told, not drawn


def draw_leaders(context: dict[str, Any]) -> str:
    """Dots with whiskers; empty text where fewer than two models were compared."""
    rows = _rows(context)
    if len(rows) < 2:
        return ""
    ends = [row["error"] + sign * (row["standard_error"] or 0.0) for row in rows for sign in (-1, 1)]
    longest = max(len(text.visible(row["name"], 26)) for row in rows)
    bottom = 14 + ROW * len(rows)
    frame = svg.Frame(
        svg.widened((min(ends), max(ends)), 0.06), (float(len(rows)) - 0.5, -0.5),
        left=14 + svg.CHARACTER * longest, top=10, bottom=bottom,
    )  # fmt: skip
    body = [_axis(frame, svg.escape(f"{context['validation']['measure']} on new rows", 60))]
    body += [_row(frame, k, row) for k, row in enumerate(rows)]
    said = "; ".join(f"{text.visible(row['name'], 40)} {text.number(row['error'], 3)}" for row in rows)
    return svg.document("leaders", "Error of every model on new rows", said, body, height=bottom + 46)


def _rows(context: dict[str, Any]) -> list[dict[str, Any]]:
    validation = context["validation"]
    rows = [] if validation is None else [row for row in validation["rows"] if row["error"] is not None]
    models = sorted((row for row in rows if not row["is_baseline"]), key=lambda row: row["error"])[:MOST]
    most = max((row["error"] for row in models), default=0.0)
    return models + [row for row in rows if row["is_baseline"] and row["error"] <= FAR * most and len(models) > 1]


def _axis(frame: svg.Frame, label: str) -> str:
    parts = []
    for value, tick in frame.x_ticks():
        at = f"{frame.px(value):.1f}"
        parts.append(f'<path class="grid" d="M{at} {frame.top}V{frame.bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{frame.bottom + 16}" text-anchor="middle">{tick}</text>')
    middle = (frame.left + frame.right) / 2
    parts.append(f'<text class="label" x="{middle:.0f}" y="{frame.bottom + 38}" text-anchor="middle">{label}</text>')
    return "".join(parts)


def _row(frame: svg.Frame, k: int, row: dict[str, Any]) -> str:
    y, x, error = frame.py(k), frame.px(row["error"]), row["standard_error"] or 0.0
    value, plus_minus = text.measured(row["error"], row["standard_error"])
    low, high = frame.px(row["error"] - error), frame.px(row["error"] + error)
    mark = f'<path class="dot s6" stroke-width="7" d="M{x:.1f} {y:.1f}h0"/>'
    tip = f"{text.visible(row['name'])}: {value} ± {plus_minus}"
    if row["is_chosen"]:
        mark += f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="6.5"/>'
    return (
        f"<g><title>{svg.escape(tip)}</title>"
        f'<text class="name" x="{frame.left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">'
        f"{svg.escape(row['name'], 26)}</text>"
        f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}"/>{mark}</g>'
    )
