"""Error against the strength of the penalty: on the rows of the fit, and on rows that it did not see."""

from typing import Any

from certifit.report import svg, text


def draw(context: dict[str, Any]) -> str:
    """Both errors with bands of one standard error, alpha on a log axis; empty text where there is no curve."""
    curve = None if context["validation"] is None else context["validation"]["curve"]
    if curve is None:
        return ""
    keys = [name for key in KEYS for name in (key, f"{key}_error")]
    points = [k for k, alpha in enumerate(curve["values"]) if alpha > 0 and None not in [curve[key][k] for key in keys]]
    if len(points) < 2:
        return ""
    x = {k: svg.log10(curve["values"][k]) for k in points}
    ends = [curve[key][k] + sign * curve[f"{key}_error"][k] for key in KEYS for k in points for sign in (-1, 1)]
    frame = svg.LogFrame.around((min(x.values()), max(x.values())), (min(ends), max(ends)))
    marks = [mark for key, kind in KEYS.items() for mark in _line(frame, curve, key, kind, x)]
    best, chosen = curve["best"], curve["chosen"]
    shown = [("line", "new rows"), ("line-fit", "rows of the fit"), ("band-wide", "± 1 standard error")]
    if best in x and best != chosen:
        marks.append(frame.dots([(x[best], curve["validation"][best])], "s6", 8))
        shown.append(("dot s6", "best"))
    if chosen in x:
        marks.append(svg.marked(frame, x[chosen], curve["validation"][chosen]))
    body = [
        frame.axes("alpha", f"error of {text.visible(context['model']['target'])}"),
        frame.clipped("validation", marks),
        svg.legend(frame, shown),
    ]
    return svg.document("validation", "Error against alpha", _description(curve), body)


KEYS = {"train": "line-fit", "validation": "line"}
_BANDS = {"train": "band-fit", "validation": "band-wide"}


def _line(frame: svg.Frame, curve: dict[str, Any], key: str, kind: str, x: dict[int, float]) -> list[str]:
    values, errors = curve[key], curve[f"{key}_error"]
    lower = [(at, values[k] - errors[k]) for k, at in x.items()]
    upper = [(at, values[k] + errors[k]) for k, at in x.items()]
    return [frame.area(lower, upper, _BANDS[key]), frame.line([(at, values[k]) for k, at in x.items()], kind)]


def _description(curve: dict[str, Any]) -> str:
    at = curve["chosen"]
    error, plus_minus = text.measured(curve["validation"][at], curve["validation_error"][at])
    return (
        f"Root mean squared error against the strength of the penalty, on the rows of the fit and on new rows. "
        f"Chosen: alpha {text.number(curve['values'][at], 3)}, error {error} plus or minus {plus_minus}."
    )
