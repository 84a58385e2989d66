"""Which rows the fit hangs on: leverage, studentised residual and Cook's distance, in one pass of constant memory.

Rows that a robust fit holds back: beyond delta scales a residual pulls no harder than one at delta.

The pen draws leverage against studentised residual, with lines of equal Cook's distance.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from certifit.evaluation.pictures.influence import cook_contour
from certifit.models.least_squares.influence import Influence
from certifit.report import passes, svg, text
from certifit.report.facts import Fit
from certifit.report.passes import Grid, Survey
from certifit.report.places import counted_how, place_number, row_places
from certifit.report.text import Table

MOST_ROWS = 10
# Usual marks: leverage of twice the mean, a studentised residual of 3, a Cook's distance of 1.
HIGH_LEVERAGE, FAR, MUCH = 2.0, 3.0, 1.0


def influence_facts(fit: Fit) -> Table | None:
    """Counts on a grid, and the rows of largest Cook's distance; None where rows have no such numbers."""
    if fit.errors is None or fit.inference is None or fit.inference.is_exact:
        return None
    try:
        parts = fit.model.influence_iter(fit.source)
    except ValueError:
        return None  # roundings leave no leverages, or the rows cannot be read twice
    p, grid = len(fit.inference.names), _grid(fit, fit.errors.seen)
    counts = dict.fromkeys(("high_leverage", "far", "much"), 0)
    best: Influence | None = None
    for part in parts:
        _count(part, counts, HIGH_LEVERAGE * p / fit.seen.mass)
        _add(grid, part)
        best = (part if best is None else Influence.joined([best, part])).most(MOST_ROWS)
    if best is None or not np.isfinite(best.cooks_distance[:1]).all():
        return None
    of_row = fit.printed.rule.of_row
    rows = [_row(best, k, of_row) for k in range(len(best)) if np.isfinite(best.cooks_distance[k])]
    counted = _named(fit, rows)
    facts: Table = {
        "counted": counted,
        "n_coefficients": p,
        "df_resid": fit.seen.mass - p,
        "mean_leverage": p / fit.seen.mass,
        "grid": grid.to_dict(),
        "rows": rows,
    }
    return facts | counts | {"sentences": _sentences(fit, facts | counts)}


def _named(fit: Fit, rows: list[Table]) -> str:
    """Add to every row where it stands in the data; the sentence that says how these are counted."""
    places = row_places(fit.source, [row["row"] for row in rows])
    for row, place in zip(rows, places, strict=True):
        row["place"] = place
    return counted_how(fit.source, places)


def _grid(fit: Fit, seen: Survey) -> Grid:
    """x: log10 of the leverage, which lies between 1 / N and 1 where there is an intercept; y: studentised."""
    sigma = float(fit.inference.sigma)
    low, high = fit.printed.rule.window(*(float(end) / sigma for end in seen.residual.window()))
    least = math.log10(1 / max(seen.mass, 2.0)) if fit.has_intercept else math.log10(0.01 / max(seen.mass, 2.0))
    return Grid((least, 0.0), (min(low * 1.1, -FAR), max(high * 1.1, FAR)))


def _add(grid: Grid, part: Influence) -> None:
    seen = np.isfinite(part.studentised) & (part.leverage > 0)
    x, y = np.log10(part.leverage[seen]), part.studentised[seen]
    grid.add(np.clip(x, *grid.x), y, np.ones(len(x)))


def _count(part: Influence, counts: dict[str, int], high: float) -> None:
    with np.errstate(invalid="ignore"):
        counts["high_leverage"] += int((part.leverage > high).sum())
        counts["far"] += int((np.abs(part.studentised) > FAR).sum())
        counts["much"] += int((part.cooks_distance > MUCH).sum())


def _row(influence: Influence, k: int, of_row: Callable[[float], float]) -> Table:
    names = ("leverage", "residual", "studentised", "cooks_distance", "dffits")
    return {"row": int(influence.row[k])} | {name: of_row(getattr(influence, name)[k]) for name in names}


def _sentences(fit: Fit, facts: Table) -> list[str]:
    """Cook's distance D in words: without the row the predictions move by s sqrt(D p / N), root mean square."""
    top, target = facts["rows"][0], text.visible(fit.model.target_name_, 60)
    moved = float(fit.inference.sigma) * math.sqrt(top["cooks_distance"] * facts["n_coefficients"] / fit.seen.mass)
    n_much, cook = facts["much"], text.number(top["cooks_distance"], 2)
    verdict = (
        f"No row has a Cook's distance above {MUCH:g}: none decides the fit by itself."
        if n_much == 0
        else f"{text.plural(n_much, 'row')} {'has' if n_much == 1 else 'have'} a Cook's distance above {MUCH:g}: "
        "see whether they are right before you rely on the coefficients."
    )
    return [
        f"The fit depends most on {top['place']}: without it, predictions of {target} would move by "
        f"{text.number(moved, 2)} (root mean square over the rows), Cook's distance {cook}.",
        verdict,
        f"{text.plural(facts['far'], 'row')} of {text.count(fit.seen.n_rows)} "
        f"{'has' if facts['far'] == 1 else 'have'} a studentised residual beyond {FAR:g} "
        f"(normal noise: {text.number(0.0027 * fit.seen.n_rows, 2)}); {text.plural(facts['high_leverage'], 'row')} "
        f"{'has' if facts['high_leverage'] == 1 else 'have'} more than twice the mean leverage.",
    ]


MOST_OUTLIERS = 10


def outlier_facts(fit: Fit) -> Table | None:
    """How many rows are held back, and those furthest out; None for a model that holds none back."""
    if "outliers" not in fit.sections:
        return None
    delta, scale = float(fit.model.delta), float(fit.model.scale_)
    limit = delta * scale
    n_beyond, mass, furthest = 0, 0.0, []
    of_row = fit.printed.rule.of_row
    for block, prediction, weight in passes.predicted(fit.model, fit.source):
        residual = np.asarray(block.y, dtype=np.float64) - prediction
        size = np.where(weight > 0, np.abs(residual), 0.0)
        beyond = size > limit
        n_beyond, mass = n_beyond + int(beyond.sum()), mass + float(weight[beyond].sum())
        for k in np.argsort(-size, kind="stable")[:MOST_OUTLIERS]:
            if beyond[k]:
                furthest.append((float(size[k]), -(block.first_row + int(k)), float(residual[k])))
        furthest = heapq.nlargest(MOST_OUTLIERS, furthest)
    rows: list[Table] = [
        {"row": -place, "residual": of_row(residual), "scales": of_row(size / scale), "pull": of_row(limit / size)}
        for size, place, residual in furthest
    ]
    return {
        "counted": _named(fit, rows),
        "delta": delta,
        "scale": scale,
        "limit": limit,
        "n_beyond": n_beyond,
        "share": mass / fit.seen.mass,
        "rows": rows,
        "sentences": _outlier_sentences(fit, n_beyond, limit),
    }


def _outlier_sentences(fit: Fit, n_beyond: int, limit: float) -> list[str]:
    target = text.visible(fit.model.target_name_, 60)
    held = f"{text.plural(n_beyond, 'row')} of {text.count(fit.seen.n_rows)} {'lies' if n_beyond == 1 else 'lie'}"
    return [
        f"{held} further than {text.number(limit)} from the prediction of {target}. Such a row pulls the fit no harder "
        "than one at that distance.",
        "A row that is far out in its columns still pulls: Huber's loss limits residuals, not leverage.",
    ]


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
