"""The fitted curve, when there is one column: with the band of the mean and the band of new rows."""

from typing import Any

from certifit.report import svg, text


def draw(context: dict[str, Any]) -> str:
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
