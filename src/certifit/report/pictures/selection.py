"""The path of a selection: the error against the number of columns.

The columns of a selection in the order of its path, each with the error once it is in.

Error against the strength of the penalty: on the rows of the fit, and on rows that it did not see.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from certifit.evaluation.pictures import Band
from certifit.report import svg, text

ROW = 19
MOST_ROWS = 26
NAME = 30


def draw_names(context: dict[str, Any]) -> str:
    """A row per step: the column that comes in, and the error with it. Rows beyond the chosen one are few."""
    if context["selection"] is None:
        return ""
    chosen = context["selection"]["steps"][context["selection"]["chosen"]]
    steps = ordered(context)[:MOST_ROWS]
    ends = [step["error"] + sign * step["standard_error"] for step in steps for sign in (-1, 1)]
    longest = max(len(label(step)) for step in steps)
    bottom = 14.0 + ROW * len(steps)
    frame = svg.Frame(
        svg.widened((min(ends), max(ends)), 0.04),
        (len(steps) - 0.5, -0.5),
        44 + svg.CHARACTER * longest,
        top=10,
        bottom=bottom,
    )
    body = [svg.x_axis(frame, f"error of {text.visible(context['model']['target'])} on new rows")]
    body.append(frame.line([(step["error"], k) for k, step in enumerate(steps)], "join"))
    body += [_row(frame, k, step, step is chosen) for k, step in enumerate(steps)]
    words = "; ".join(f"{step['n_features']} {label(step)} {text.number(step['error'], 3)}" for step in steps)
    return svg.document("names", "Columns along the path", words, body, height=bottom + 46)


def ordered(context: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps from the fewest columns to the most."""
    return sorted(context["selection"]["steps"], key=lambda step: step["n_features"])


def label(step: dict[str, Any]) -> str:
    """What came in; many at once are counted."""
    names = step["added"]
    return text.visible(names[0], NAME) if len(names) == 1 else f"{text.count(len(names))} columns"


def _row(frame: svg.Frame, k: int, step: dict[str, Any], is_chosen: bool) -> str:
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
        frame.axes(curve["parameter"], _error(context)),
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
