"""Pens of what cross-validation found.

Models that were compared: error on new rows with its standard error, the best on top. The path of a selection: the
error against the number of columns, and the columns in their order. The error along a parameter. Bias and variance
against the strength of the penalty: what is lost by too little of it, and by too much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.evaluation.pictures import Band
from certifit.evaluation.pictures.bias_variance import drawn_parts
from certifit.report import svg, text

MOST_MODELS = 16
MODEL_ROW = 21
FAR = 3.0  # a baseline beyond so many times the largest other error would squeeze the others: it is told, not drawn


def draw_leaders(context: dict[str, Any]) -> str:
    """Dots with whiskers; empty text where fewer than two models were compared."""
    rows = _models(context)
    if len(rows) < 2:
        return ""
    ends = [row["error"] + sign * (row["standard_error"] or 0.0) for row in rows for sign in (-1, 1)]
    longest = max(len(text.visible(_name(row), 30)) for row in rows)
    bottom = 14 + MODEL_ROW * len(rows)
    frame = svg.Frame(
        svg.widened((min(ends), max(ends)), 0.06), (float(len(rows)) - 0.5, -0.5),
        left=14 + svg.CHARACTER * longest, top=10, bottom=bottom,
    )  # fmt: skip
    body = [_error_axis(frame, svg.escape(f"{context['validation']['measure']} on new rows", 60))]
    body += [_model_row(frame, k, row) for k, row in enumerate(rows)]
    said = "; ".join(f"{text.visible(row['name'], 40)} {text.number(row['error'], 3)}" for row in rows)
    return svg.document("leaders", "Error of every model on new rows", said, body, height=bottom + 46)


def _models(context: dict[str, Any]) -> list[dict[str, Any]]:
    validation = context["validation"]
    rows = [] if validation is None else [row for row in validation["rows"] if row["error"] is not None]
    models = sorted((row for row in rows if not row["is_baseline"]), key=lambda row: row["error"])[:MOST_MODELS]
    most = max((row["error"] for row in models), default=0.0)
    return models + [row for row in rows if row["is_baseline"] and row["error"] <= FAR * most and len(models) > 1]


def _name(row: dict[str, Any]) -> str:
    return f"{row['name']} (baseline)" if row["is_baseline"] else str(row["name"])


def _error_axis(frame: svg.Frame, label: str) -> str:
    parts = []
    for value, tick in frame.x_ticks():
        at = f"{frame.px(value):.1f}"
        parts.append(f'<path class="grid" d="M{at} {frame.top}V{frame.bottom}"/>')
        parts.append(f'<text class="tick" x="{at}" y="{frame.bottom + 16}" text-anchor="middle">{tick}</text>')
    middle = (frame.left + frame.right) / 2
    parts.append(f'<text class="label" x="{middle:.0f}" y="{frame.bottom + 38}" text-anchor="middle">{label}</text>')
    return "".join(parts)


def _model_row(frame: svg.Frame, k: int, row: dict[str, Any]) -> str:
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
        f"{svg.escape(_name(row), 30)}</text>"
        f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}"/>{mark}</g>'
    )


COLUMN_ROW = 19
MOST_COLUMNS = 26
NAME = 30


def draw_names(context: dict[str, Any]) -> str:
    """A row per step: the column that comes in, and the error with it. Rows beyond the chosen one are few."""
    if context["selection"] is None:
        return ""
    chosen = context["selection"]["steps"][context["selection"]["chosen"]]
    steps = ordered(context)[:MOST_COLUMNS]
    ends = [step["error"] + sign * step["standard_error"] for step in steps for sign in (-1, 1)]
    longest = max(len(label(step)) for step in steps)
    bottom = 14.0 + COLUMN_ROW * len(steps)
    frame = svg.Frame(
        svg.widened((min(ends), max(ends)), 0.04),
        (len(steps) - 0.5, -0.5),
        44 + svg.CHARACTER * longest,
        top=10,
        bottom=bottom,
    )
    body = [svg.x_axis(frame, f"error of {text.visible(context['model']['target'])} on new rows")]
    body.append(frame.line([(step["error"], k) for k, step in enumerate(steps)], "join"))
    body += [_column_row(frame, k, step, step is chosen) for k, step in enumerate(steps)]
    words = "; ".join(f"{step['n_features']} {label(step)} {text.number(step['error'], 3)}" for step in steps)
    return svg.document("names", "Columns along the path", words, body, height=bottom + 46)


def ordered(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps from the fewest columns to the most."""
    return sorted(context["selection"]["steps"], key=lambda step: step["n_features"])


def label(step: dict[str, Any]) -> str:
    """What came in; many at once are counted."""
    names = step["added"]
    return text.visible(names[0], NAME) if len(names) == 1 else f"{text.count(len(names))} columns"


def _column_row(frame: svg.Frame, k: int, step: dict[str, Any], is_chosen: bool) -> str:
    y, x = frame.py(k), frame.px(step["error"])
    low, high = (frame.px(step["error"] + sign * step["standard_error"]) for sign in (-1, 1))
    error, plus_minus = text.measured(step["error"], step["standard_error"])
    tip = f"{step['n_features']}: {text.joined(step['added'], 10)}, error {error} ± {plus_minus}"
    kind = "name strong" if is_chosen else "name"
    dot = (
        svg.marked(frame, step["error"], k)
        if is_chosen
        else f'<path class="dot s6" stroke-width="6" d="M{x:.1f} {y:.1f}h0"/>'
    )
    return (
        f'<g><title>{svg.escape(tip)}</title><text class="{kind}" x="{frame.left - 34:.1f}" y="{y + 4:.1f}" '
        f'text-anchor="end">{svg.escape(label(step))}</text><text class="tick" x="{frame.left - 10:.1f}" '
        f'y="{y + 4:.1f}" text-anchor="end">{step["n_features"]}</text>'
        f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}"/>{dot}</g>'
    )


def draw_path(context: dict[str, Any]) -> str:
    """Error on new rows and on the rows of the fit, with bands of one standard error."""
    if context["selection"] is None:
        return ""
    steps = ordered(context)
    chosen = context["selection"]["steps"][context["selection"]["chosen"]]
    x = [step["n_features"] for step in steps]
    band = Band.of(*([step[key] for step in steps] for key in ("n_features", "error", "standard_error")))
    ends = [*band.low, *band.high, *(step["train_error"] for step in steps)]
    frame = svg.Frame.around((min(x), max(x)), (min(ends), max(ends)))
    marks = [
        frame.area(*svg.edges(band), "band-wide"),
        frame.line([(step["n_features"], step["train_error"]) for step in steps], "line-fit"),
        frame.line([(step["n_features"], step["error"]) for step in steps], "line"),
        svg.marked(frame, chosen["n_features"], chosen["error"]),
    ]
    keys = [("line", "new rows"), ("line-fit", "rows of the fit"), ("band-wide", "± 1 standard error")]
    body = [
        frame.axes("number of columns", f"error of {text.visible(context['model']['target'])}"),
        frame.clipped("path", marks),
        svg.legend(frame, keys),
    ]
    measure = (context["validation"] or {}).get("measure") or "error"
    description = (
        f"{measure[:1].upper()}{measure[1:]} against the number of columns; {chosen['n_features']} are chosen, "
        f"with an error of {text.number(chosen['error'])}."
    )
    return svg.document("path", "Error against the number of columns", description, body)


def draw_validation(context: dict[str, Any]) -> str:
    """The errors with bands of one standard error; empty text where there is no curve."""
    curve = None if context["validation"] is None else context["validation"]["curve"]
    if curve is None:
        return ""
    shown = {key: kind for key, kind in KEYS.items() if curve[key] is not None and None not in curve[key]}
    names = [name for key in shown for name in (key, f"{key}_error")]
    points = [k for k, _ in enumerate(curve["values"]) if None not in [curve[key][k] for key in names]]
    make = _steps if 0 in curve["values"] and curve["parameter"] == "shrinkage" else _logarithms
    x, axis = make(curve["values"], points)
    if len(x) < 2 or "validation" not in shown:
        return ""
    ends = [end for key in shown for band in [_band(curve, key, x)] for end in (*band.low, *band.high)]
    frame = axis((min(x.values()), max(x.values())), (min(ends), max(ends)))
    marks = [mark for key, kind in shown.items() for mark in _line(frame, curve, key, kind, x)]
    best, chosen = curve["best"], curve["chosen"]
    legend = [LEGEND[key] for key in reversed(shown)] + [("band-wide", "± 1 standard error")]
    if best in x and best != chosen:
        marks.append(frame.dots([(x[best], curve["validation"][best])], "s6", 8))
        legend.append(("dot s6", "best"))
    if chosen in x:
        marks.append(svg.marked(frame, x[chosen], curve["validation"][chosen]))
    body = [
        frame.axes(curve["label"], _error(context)),
        frame.clipped("validation", marks),
        svg.legend(frame, legend),
    ]
    title = f"Error against {curve['parameter']}"
    return svg.document("validation", title, _description(curve, context["validation"]["measure"]), body)


KEYS = {"train": "line-fit", "validation": "line"}
LEGEND = {"train": ("line-fit", "rows of the fit"), "validation": ("line", "new rows")}
_BANDS = {"train": "band-fit", "validation": "band-wide"}

Axis = Callable[[svg.Range, svg.Range], svg.Frame]


def _logarithms(values: list[float], points: list[int]) -> tuple[dict[int, float], Axis]:
    return {k: svg.log10(values[k]) for k in points if values[k] > 0}, svg.LogFrame.around


def _steps(values: list[float], points: list[int]) -> tuple[dict[int, float], Axis]:
    """One step per value, where 0 is among them."""
    labels = tuple((float(k), text.number(values[k], 2)) for k in points)

    def axis(x: svg.Range, y: svg.Range) -> svg.Frame:
        return replace(svg.StepFrame.around(x, y), labels=labels)

    return {k: float(k) for k in points}, axis


def _error(context: dict[str, Any]) -> str:
    if context["quality"] is None:
        return str(context["validation"]["measure"])
    return f"error of {text.visible(context['model']['target'])}"


def _line(frame: svg.Frame, curve: dict[str, Any], key: str, kind: str, x: dict[int, float]) -> list[str]:
    band = _band(curve, key, x)
    line = list(zip(band.x.tolist(), band.mean.tolist(), strict=True))
    return [frame.area(*svg.edges(band), _BANDS[key]), frame.line(line, kind)]


def _band(curve: dict[str, Any], key: str, x: dict[int, float]) -> Band:
    values, errors = curve[key], curve[f"{key}_error"]
    return Band.of(list(x.values()), [values[k] for k in x], [errors[k] for k in x])


def _description(curve: dict[str, Any], measure: str) -> str:
    at = curve["chosen"]
    error, plus_minus = text.measured(curve["validation"][at], curve["validation_error"][at])
    what = "strength of the penalty" if curve["label"] == "penalty alpha" else curve["label"]
    return (
        f"{measure[:1].upper()}{measure[1:]} against the {what}, on the rows of the fit and on new rows. "
        f"Chosen: {curve['parameter']} {text.number(curve['values'][at], 3)}, error {error} plus or minus {plus_minus}."
    )


PART_KINDS = {"bias": "line-soft", "variance": "line-fit"}  # of a part -> of its line


def draw_variance(context: dict[str, Any]) -> str:
    """Variance, bias^2 + noise and their sum, as shares of the variance of the target; empty where not known."""
    decomposition = None if context["validation"] is None else context["validation"]["decomposition"]
    sd = context["data"]["target"]["sd"]
    if decomposition is None or not sd or None in (*decomposition["error"], *decomposition["variance"]):
        return ""
    x = [svg.log10(value) for value in decomposition["values"]]
    share = {
        key: np.asarray(decomposition[key], dtype=np.float64) / sd / sd
        for key in ("error", "variance", "bias_and_noise")
    }
    parts = drawn_parts(share["bias_and_noise"], share["variance"], bias_name="bias^2 + noise")
    lines = {"line": ("error", share["error"])} | {PART_KINDS[part]: line for part, line in parts.items()}
    frame = svg.LogFrame.around((min(x), max(x)), (0.0, max(float(values.max()) for _, values in lines.values())))
    marks = [frame.line(list(zip(x, values.tolist(), strict=True)), kind) for kind, (_, values) in lines.items()]
    body = [frame.axes("alpha", "share of the target's variance"), frame.clipped("variance", marks)]
    body.append(svg.legend(frame, [(kind, label) for kind, (label, _) in lines.items()]))
    description = "Squared error on rows not drawn, and its parts, against alpha, as shares of the target's variance."
    return svg.document("variance", "Bias and variance", description, body)
