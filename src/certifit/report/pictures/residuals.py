"""Residuals against predictions: a good fit has a flat band of equal width round zero."""

from typing import Any

from certifit.report import svg, text


def draw(context: dict[str, Any]) -> str:
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
