"""Predicted against actual: rows on the line are predicted perfectly."""

from typing import Any

from certifit.report import svg, text


def draw(context: dict[str, Any]) -> str:
    """Density of (prediction, target), and the line target = prediction."""
    if context["pictures"] is None:
        return ""
    grid, target = context["pictures"]["fit"], context["model"]["target"]
    frame = svg.Frame.around(tuple(grid["x"]), tuple(grid["y"]))
    low, high = min(frame.x[0], frame.y[0]), max(frame.x[1], frame.y[1])
    marks = [svg.density(frame, grid), frame.line([(low, low), (high, high)], "line")]
    body = [
        frame.axes(f"predicted {text.visible(target)}", f"actual {text.visible(target)}"),
        frame.clipped("fit", marks),
        svg.legend(frame, [("line", "actual = predicted")]),
    ]
    description = (
        f"Density of {text.count(context['data']['n_rows'])} rows; predicted value across, actual value up. "
        f"{_how_good(context['quality'])}."
    )
    return svg.document("fit", "Predicted against actual", description, body)


def _how_good(quality: dict[str, Any]) -> str:
    metric = quality["metric"]
    if metric is None:
        return f"R squared is {text.share(quality['r2'])}"
    return f"The {metric['name']} is {text.number(metric['value'])}"
