"""The path of a selection: the error against the number of columns."""

from typing import Any

from certifit.report import svg, text
from certifit.report.pictures.names import ordered


def draw(context: dict[str, Any]) -> str:
    """Error on new rows and on the rows of the fit, with bands of one standard error."""
    if context["selection"] is None:
        return ""
    steps = ordered(context)
    chosen = context["selection"]["steps"][context["selection"]["chosen"]]
    x = [step["n_features"] for step in steps]
    ends = [step["error"] + sign * step["standard_error"] for step in steps for sign in (-1, 1)]
    ends += [step["train_error"] for step in steps]
    frame = svg.Frame.around((min(x), max(x)), (min(ends), max(ends)))
    lower, upper = ([(s["n_features"], s["error"] + k * s["standard_error"]) for s in steps] for k in (-1, 1))
    marks = [
        frame.area(lower, upper, "band-wide"),
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
