"""Losses of a network after every epoch."""

from __future__ import annotations

from typing import Any

from certifit.report import svg, text

FEWEST = 3


def draw_learning(context: dict[str, Any]) -> str:
    """A line per loss; empty text for models that are no network, and for fewer than three epochs."""
    facts = context["learning"]
    if facts is None or len(facts["epochs"]) < FEWEST or not facts["lines"]:
        return ""
    epochs = [float(epoch) for epoch in facts["epochs"]]
    values = [value for line in facts["lines"].values() for value in line]
    is_log = min(values) > 0 and max(values) > 100 * min(values)
    scale = svg.log10 if is_log else float
    kind = svg.PowerFrame if is_log else svg.Frame
    frame = kind.around((epochs[0], epochs[-1]), (scale(min(values)), scale(max(values))), margin=0.04)
    marks, keys = [], []
    for k, (name, line) in enumerate(facts["lines"].items()):
        points = [(epoch, scale(value)) for epoch, value in zip(epochs, line, strict=True)]
        marks.append(frame.line(points, f"line-many c{k + 1}"))
        keys.append(
            f'<text class="key c{k + 1}" x="{frame.right - 6:.1f}" y="{frame.top + 16 + 16 * k:.1f}" '
            f'text-anchor="end">{svg.escape(name)}</text>'
        )
    body = [frame.axes("epoch", "mean loss"), frame.clipped("learning", marks), *keys]
    words = "; ".join(
        f"{name} from {text.number(line[0])} to {text.number(line[-1])}" for name, line in facts["lines"].items()
    )
    return svg.document("learning", "Epoch by epoch", words, body)
