"""Bias and variance against the strength of the penalty: what is lost by too little of it, and by too much."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.pictures.bias_variance import drawn_parts
from certifit.report import svg

KINDS = {"bias": "line-soft", "variance": "line-fit"}  # of a part -> of its line


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
    lines = {"line": ("error", share["error"])} | {KINDS[part]: line for part, line in parts.items()}
    frame = svg.LogFrame.around((min(x), max(x)), (0.0, max(float(values.max()) for _, values in lines.values())))
    marks = [frame.line(list(zip(x, values.tolist(), strict=True)), kind) for kind, (_, values) in lines.items()]
    body = [frame.axes("alpha", "share of the target's variance"), frame.clipped("variance", marks)]
    body.append(svg.legend(frame, [(kind, label) for kind, (label, _) in lines.items()]))
    description = "Squared error on rows not drawn, and its parts, against alpha, as shares of the target's variance."
    return svg.document("variance", "Bias and variance", description, body)
