"""Normal quantile plot: normal residuals follow the line; ends that leave it are heavy or light tails."""

from typing import Any

from certifit.report import svg


def draw(context: dict[str, Any]) -> str:
    """Quantiles of the residuals in units of sigma against those of the normal law."""
    if context["pictures"] is None:
        return ""
    shape = context["pictures"]["quantiles"]
    normal, found = shape["normal"], shape["found"]
    low, high = min([*normal, *found]), max([*normal, *found])
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
        frame.dots(list(zip(normal, found, strict=True)), "s5", 4.5),
    ]
    keys = [("dot s5", "residuals"), ("line", "normal law"), ("band-wide", "95 % of normal samples")]
    body = [
        frame.axes("normal quantile", "residual / typical error"),
        frame.clipped("quantiles", marks),
        svg.legend(frame, keys),
    ]
    description = "Quantiles of the residuals, in units of the typical error, against quantiles of the normal law."
    return svg.document("quantiles", "Are residuals normal?", description, body)
