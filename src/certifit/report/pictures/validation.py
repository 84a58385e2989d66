"""Error against the strength of the penalty: on the rows of the fit, and on rows that it did not see."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from certifit.report import svg, text


def draw(context: dict[str, Any]) -> str:
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
    ends = [curve[key][k] + sign * curve[f"{key}_error"][k] for key in shown for k in x for sign in (-1, 1)]
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
    values, errors = curve[key], curve[f"{key}_error"]
    lower = [(at, values[k] - errors[k]) for k, at in x.items()]
    upper = [(at, values[k] + errors[k]) for k, at in x.items()]
    return [frame.area(lower, upper, _BANDS[key]), frame.line([(at, values[k]) for k, at in x.items()], kind)]


def _description(curve: dict[str, Any], measure: str) -> str:
    at = curve["chosen"]
    error, plus_minus = text.measured(curve["validation"][at], curve["validation_error"][at])
    what = "strength of the penalty" if curve["label"] == "penalty alpha" else curve["label"]
    return (
        f"{measure[:1].upper()}{measure[1:]} against the {what}, on the rows of the fit and on new rows. "
        f"Chosen: {curve['parameter']} {text.number(curve['values'][at], 3)}, error {error} plus or minus {plus_minus}."
    )
