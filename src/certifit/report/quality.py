"""How good the fit is on its own rows: errors, R squared, and the pictures of the fit and its residuals.

Residuals against predictions: a good fit has a flat band of equal width round zero. Predicted against actual: rows on
the line are predicted perfectly. Normal quantiles: ends that leave the line are heavy or light tails. The fitted curve,
where there is one column, has a band of the mean and a band of new rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from certifit.data.privacy import Rule
from certifit.evaluation.pictures.dependence import curve_at
from certifit.models.metric import Metric
from certifit.report import passes, svg, text
from certifit.report.facts import Errors, Fit
from certifit.report.lift import lift_groups
from certifit.report.passes import Survey
from certifit.report.text import Table
from certifit.selection.folds.metrics import ROW_ERRORS

# Values of `family` and `loss` that count far errors less than their squares.
ROBUST = ("huber", "quantile")
# Two-sided 5 % point of the normal law; the middle half of a normal law is so many standard deviations wide.
NORMAL_95, NORMAL_HALF = 1.959963984540054, 1.3489795003921634


def quality_facts(fit: Fit) -> Table | None:
    """Errors on the rows of the fit; None for a model of classes."""
    if fit.errors is None:
        return None
    model, seen, inference = fit.model, fit.errors.seen, fit.inference
    rss, tss = seen.squares, seen.total
    df = seen.mass - int(model.rank_) - fit.has_intercept if model.alpha_ == 0 and fit.words.is_squared else 0.0
    rmse = math.sqrt(rss / seen.mass) * seen.scale
    quality: Table = {
        "r2": 1 - rss / tss if tss > 0 else None,
        "adjusted_r2": 1 - rss / df / (tss / (seen.mass - fit.has_intercept)) if df > 0 and tss > 0 else None,
        "centered": fit.is_centred,
        "flexible": fit.is_flexible,
        "sigma": math.sqrt(rss / df) * seen.scale if df > 0 else rmse,
        "sigma_words": "residual standard error" if df > 0 else "root mean square error",
        "rmse": rmse,
        "mean_error": seen.absolute / seen.mass * seen.scale,
        "df": df if df > 0 else None,
        "f": None,
        "f_p": None,
        "metric": None,
        "exact": rss <= (64 * np.finfo(float).eps) ** 2 * max(tss, seen.mass * (seen.center / seen.scale) ** 2),
    }
    params = model.get_params(deep=False)
    if fit.words.is_robust or params.get("family") in ROBUST or params.get("loss") in ROBUST:
        quality |= _middle_half(seen, rmse)
    if isinstance(model.default_scoring, Metric):
        quality |= {"r2": None, "metric": _metric(fit, model.default_scoring)}
    if inference is not None:
        quality |= {
            "r2": inference.r_squared,
            "adjusted_r2": inference.adjusted_r_squared,
            "sigma": inference.sigma,
            "df": inference.df_resid,
            "f": inference.f_statistic,
            "f_p": inference.f_pvalue,
            "exact": bool(inference.is_exact),
        }
    return quality | _residual_facts(fit.errors, quality["sigma"], fit.printed.rule)


def _metric(fit: Fit, metric: Metric) -> Table:
    """The mean error that the model is scored by, beside that of the best constant."""
    parts = [
        (np.asarray(block.y, dtype=np.float64), mean, weight)
        for block, mean, weight in passes.predicted(fit.model, fit.source)
    ]
    y, mean, weight = (np.concatenate(column) for column in zip(*parts, strict=True))
    error, null = metric.mean(y, mean, weight), metric.mean(y, np.full(len(y), metric.constant(y, weight)), weight)
    explained = 1 - error / null if null > 0 else None
    return {"name": metric.name, "value": error, "baseline": metric.baseline, "explained": explained}


def _middle_half(seen: Survey, rmse: float) -> Table:
    """The spread of the residuals that a few far rows do not change."""
    low, high = seen.residual.quantile([0.25, 0.75])
    if not high > low:
        return {"sigma": rmse, "sigma_words": "root mean square error"}
    return {"sigma": float(high / NORMAL_HALF - low / NORMAL_HALF), "sigma_words": "from the middle half of residuals"}


def _residual_facts(errors: Errors, sigma: float, rule: Rule) -> Table:
    levels = np.arange(1, 2000) / 2000
    residual = errors.seen.residual
    far = np.abs(residual.quantile(levels)) > NORMAL_95 * sigma
    bands = errors.shapes.bands.to_dict()
    widths = [q[3] - q[1] for q, mass in zip(bands["quantiles"], bands["mass"], strict=True) if mass >= 50]
    widths = [width for width in widths if width > 0]
    return {
        "outside95": float(far.mean()) if sigma > 0 else None,
        "largest": rule.of_row(max(abs(residual.low), abs(residual.high)) / sigma) if sigma > 0 else None,
        "quartiles": [rule.of_row(value) for value in residual.quantile(passes.BAND_LEVELS)],
        "spread_ratio": max(widths) / min(widths) if len(widths) >= 5 else None,
    }


def picture_facts(fit: Fit, quality: Table | None) -> Table | None:
    """Grids and curves of the pictures of the fit and its residuals; no rows. None without residuals."""
    if fit.errors is None or quality is None:
        return None
    seen, shapes, sigma = fit.errors.seen, fit.errors.shapes, quality["sigma"]
    return {
        "fit": grid_facts(fit, fit.errors.new or shapes.fit) | {"is_new": fit.errors.new is not None},
        "spread": grid_facts(fit, shapes.spread),
        "bands": _bands(shapes.bands, fit.printed.rule),
        "histogram": {
            "edges": shapes.histogram_edges.tolist(),
            "counts": fit.printed_mass(shapes.histogram).tolist(),
            "mass": seen.mass,
            "sigma": sigma,
        },
        "quantiles": _quantiles(seen, sigma, fit.printed.rule),
        "curve": None if shapes.curve is None or fit.printed.n_rare else _curve(fit, shapes.curve),
    }


def grid_facts(fit: Fit, grid: passes.Grid) -> Table:
    """The cells of a picture of rows; a cell may hold one row."""
    facts = grid.to_dict()
    return facts | {"cells": [[i, j, fit.printed_mass(mass)] for i, j, mass in facts["cells"]]}


def _bands(bands: passes.Bands, rule: Rule) -> Table:
    facts = bands.to_dict()
    return facts | {"quantiles": [[rule.of_row(value) for value in line] for line in facts["quantiles"]]}


def _quantiles(seen: Survey, sigma: float, rule: Rule) -> Table:
    """Residual quantiles in units of sigma against those of the normal law, with a 95 % band.

    The k-th of m values has level p = (k - 1/2) / m; a quantile has error sqrt(p (1 - p) / m) / density.
    """
    m = max(int(seen.mass), 1)
    # All of few values; of many, an even choice in the middle and ever finer steps towards both ends.
    ends = np.round(np.geomspace(1, max(0.02 * m, 1), 24)).astype(int) - 1
    middle = np.round(np.linspace(0, m - 1, 81)).astype(int)
    ranks = np.unique(np.concatenate([ends, middle, m - 1 - ends]))
    levels = (ranks + 0.5) / m
    normal = special.ndtri(levels)
    error = np.sqrt(levels * (1 - levels) / m) / (np.exp(-(normal**2) / 2) / math.sqrt(2 * math.pi))
    standardised = seen.residual.quantile(levels) / sigma if sigma > 0 else np.zeros_like(normal)
    return {
        "normal": normal.tolist(),
        "found": [rule.of_row(value) for value in standardised],
        "low": (normal - NORMAL_95 * error).tolist(),
        "high": (normal + NORMAL_95 * error).tolist(),
    }


def _curve(fit: Fit, shape: passes.Grid) -> Table:
    x = np.linspace(*shape.x, 161)
    drawn = curve_at(fit.model, x, fit.level, passes.named(fit.source, x[:, None]))
    curve: Table = {"grid": grid_facts(fit, shape), "name": fit.source.names[0], "level": fit.level, "x": x.tolist()}
    curve["y"] = drawn.curve.tolist()
    for kind, band in (("confidence", "mean"), ("prediction", "new row")):
        curve[kind] = np.column_stack(drawn.bands[band]).tolist() if band in drawn.bands else None
    return curve


# How good a generalised linear model is on its own rows: deviances, dispersion, observed rates by predicted ones.

# Pearson's sum over its degrees of freedom, where it should be 1, that is worth a warning.
SPREADS_MORE = 1.5
OF_INFERENCE = ("pearson", "df_resid", "df_null", "log_likelihood", "aic", "bic")


def deviance_facts(fit: Fit) -> Table | None:
    """Deviances, and the groups of the lift picture; None for a model without a deviance of its own."""
    inference = fit.inference if hasattr(fit.inference, "null_deviance") else None
    if fit.means is None and inference is None:
        return None
    facts: Table = dict.fromkeys(("family", "link", "deviance", "null_deviance", "dispersion", "ratio", "ratio_p"))
    facts |= dict.fromkeys((*OF_INFERENCE, "ratio_df", "is_estimated", "spread"))
    if inference is not None:
        test = inference.likelihood_ratio
        facts |= {"family": inference.family.name, "link": inference.link}
        facts |= {key: getattr(inference, key) for key in ("deviance", "null_deviance", "dispersion", *OF_INFERENCE)}
        facts |= {"ratio": test.statistic, "ratio_df": test.df, "ratio_p": test.p_value}
        facts |= {"is_estimated": bool(inference.is_estimated), "explained": inference.deviance_explained}
        if not inference.is_estimated and inference.df_resid > 0 and fit.by_class is None:
            facts["spread"] = inference.pearson / inference.df_resid
    else:
        facts |= _of_rows(fit)
    lift = None
    if fit.means is not None:
        groups = lift_groups(fit.means, fit.printed.rule)
        is_rate = fit.means.has_exposure and fit.source.view.has_offset
        lift = {"groups": groups, "is_rate": is_rate, "is_new": fit.means.is_new}
    return facts | {"lift": lift, "sentences": _sentences(facts, fit)}


def _of_rows(fit: Fit) -> Table:
    """Deviances under a penalty: 1 - explained = deviance / null deviance."""
    explained = float(fit.model.score(fit.source))
    errors = ROW_ERRORS.get(fit.model.default_scoring)
    if errors is None:
        return {"explained": explained}
    total = 0.0
    for block, mean, weight in passes.predicted(fit.model, fit.source):
        total += float(weight @ errors(np.asarray(block.y, dtype=np.float64), mean))
    return {
        "explained": explained,
        "deviance": total,
        "null_deviance": total / (1 - explained) if explained < 1 else None,
    }


def _sentences(facts: Table, fit: Fit) -> list[str]:
    target = text.visible(fit.model.target_name_, 60)
    if facts["explained"] is None or not np.isfinite(facts["explained"]):
        return []
    return [f"It explains {text.percent(facts['explained'])} of the deviance of {target}."]


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
