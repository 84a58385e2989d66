"""Residuals against predictions: a good fit has a flat band of equal width round zero.

Predicted against actual: rows on the line are predicted perfectly.

Histogram of residuals beside the normal curve of the same spread.

Normal quantile plot: normal residuals follow the line; ends that leave it are heavy or light tails.

The fitted curve, when there is one column: with the band of the mean and the band of new rows.
"""

from __future__ import annotations

import math
from typing import Any

from certifit.report import svg, text


def draw_residuals(context: dict[str, Any]) -> str:
    """Density of (prediction, residual), with running quantiles."""
    if context["pictures"] is None:
        return ""
    grid, bands = context["pictures"]["spread"], context["pictures"]["bands"]
    target = context["model"]["target"]
    frame = svg.Frame.around(tuple(grid["x"]), tuple(grid["y"]))
    zero = [(frame.x[0], 0.0), (frame.x[1], 0.0)]
    marks, keys = [svg.density(frame, grid)], []
    if len(bands["x"]) > 1:
        line = [list(zip(bands["x"], values, strict=True)) for values in zip(*bands["quantiles"], strict=True)]
        marks += [frame.area(line[0], line[4], "band-wide"), frame.area(line[1], line[3], "band-narrow")]
        marks.append(frame.line(line[2], "line"))
        keys = [("band-wide", "90 % of rows"), ("band-narrow", "middle half"), ("line", "median")]
    marks.append(frame.line(zero, "zero"))
    if context["outliers"] is not None:
        limit = context["outliers"]["limit"]
        marks += [frame.line([(x, sign * limit) for x in frame.x], "line-soft") for sign in (-1, 1)]
        keys.append(("line-soft", "held back beyond"))
    body = [
        frame.axes(f"predicted {text.visible(target)}", "actual − predicted"),
        frame.clipped("residuals", marks),
        svg.legend(frame, keys) if keys else "",
    ]
    description = "Residual (actual minus predicted) against prediction, with the 5, 25, 50, 75 and 95 % quantiles."
    return svg.document("residuals", "Residuals against predictions", description, body)


def draw_fit(context: dict[str, Any]) -> str:
    """Density of (prediction, target), and the line target = prediction."""
    if context["pictures"] is None:
        return ""
    grid, target = context["pictures"]["fit"], context["model"]["target"]
    frame = svg.Frame.around(tuple(grid["x"]), tuple(grid["y"]))
    by = ", by folds that did not see the row" if grid["is_new"] else ", by the fit to these rows"
    low, high = min(frame.x[0], frame.y[0]), max(frame.x[1], frame.y[1])
    marks = [svg.density(frame, grid), frame.line([(low, low), (high, high)], "line")]
    body = [
        frame.axes(f"predicted {text.visible(target)}", f"actual {text.visible(target)}"),
        frame.clipped("fit", marks),
        svg.legend(frame, [("line", "actual = predicted")]),
    ]
    description = (
        f"Density of {text.count(context['data']['n_rows'])} rows; predicted value across{by}; actual value up. "
        f"{_new_r2(context) if grid['is_new'] else _how_good(context['quality'])}"
    )
    return svg.document("fit", "Predicted against actual", description, body)


def _how_good(quality: dict[str, Any]) -> str:
    metric = quality["metric"]
    if metric is None:
        return f"R squared is {text.share(quality['r2'])}."
    return f"The {metric['name']} is {text.number(metric['value'])}."


def _new_r2(context: dict[str, Any]) -> str:
    validation = context["validation"]
    r2 = next(row["r2"] for row in validation["rows"] if row["is_chosen"])
    return "" if r2 is None or validation["share"] != "R²" else f"R squared on these new rows is {text.share(r2)}."


def draw_histogram(context: dict[str, Any]) -> str:
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


def draw_quantiles(context: dict[str, Any]) -> str:
    """Quantiles of the residuals in units of sigma against those of the normal law."""
    if context["pictures"] is None:
        return ""
    shape = context["pictures"]["quantiles"]
    normal, quantiles = shape["normal"], shape["found"]
    low, high = min([*normal, *quantiles]), max([*normal, *quantiles])
    frame = svg.Frame.around((min(normal), max(normal)), (low, high), margin=0.04)
    ends = (frame.x[0], frame.x[1])
    band = frame.area(
        list(zip(normal, shape["low"], strict=True)),
        list(zip(normal, shape["high"], strict=True)),
        "band-wide",
    )
    marks = [
        band,
        frame.line([(ends[0], ends[0]), (ends[1], ends[1])], "line"),
        frame.dots(list(zip(normal, quantiles, strict=True)), "s5", 4.5),
    ]
    keys = [("dot s5", "residuals"), ("line", "normal law"), ("band-wide", "95 % of normal samples")]
    body = [
        frame.axes("normal quantile", "residual / typical error"),
        frame.clipped("quantiles", marks),
        svg.legend(frame, keys),
    ]
    description = "Quantiles of the residuals, in units of the typical error, against quantiles of the normal law."
    return svg.document("quantiles", "Are residuals normal?", description, body)


def draw_curve(context: dict[str, Any]) -> str:
    """Density of (x, target), the curve, and intervals when there are any."""
    curve, target = (context["pictures"] or {}).get("curve"), context["model"]["target"]
    if curve is None:
        return ""
    grid, x = curve["grid"], curve["x"]
    frame = svg.Frame.around(tuple(grid["x"]), _y_range(curve))
    marks, keys = [], []
    percent = text.number(100 * curve["level"])
    if curve["prediction"] is not None:
        marks.append(_band(frame, x, curve["prediction"], "band-wide"))
        keys.append(("band-wide", f"{percent} % of new rows"))
    marks.append(svg.density(frame, grid))
    if curve["confidence"] is not None:
        marks.append(_band(frame, x, curve["confidence"], "band-narrow"))
        keys.append(("band-narrow", f"{percent} % interval of the mean"))
    marks.append(frame.line(list(zip(x, curve["y"], strict=True)), "line"))
    keys.append(("line", "fit"))
    body = [
        frame.axes(curve["name"], target),
        frame.clipped("curve", marks),
        svg.legend(frame, keys),
    ]
    names = f"{text.visible(target)} over {text.visible(curve['name'])}"
    description = f"Fitted curve of {names}, with the density of the rows."
    return svg.document("curve", "The fit", description, body)


def _band(frame: svg.Frame, x: list[float], bounds: list[list[float]], kind: str) -> str:
    lower = [(at, low) for at, (low, _) in zip(x, bounds, strict=True)]
    upper = [(at, high) for at, (_, high) in zip(x, bounds, strict=True)]
    return frame.area(lower, upper, kind)


def _y_range(curve: dict[str, Any]) -> svg.Range:
    bounds = [bound for pair in curve["prediction"] or [] for bound in pair]
    values = [*curve["grid"]["y"], *curve["y"], *bounds]
    return min(values), max(values)
