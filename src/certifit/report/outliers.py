"""Rows that a robust fit holds back: beyond delta scales a residual pulls no harder than one at delta."""

import heapq

import numpy as np

from certifit.report import passes, text
from certifit.report.facts import Fit, Table

MOST_ROWS = 10


def outlier_facts(fit: Fit) -> Table | None:
    """How many rows are held back, and those furthest out; None for a model that holds none back."""
    if "outliers" not in fit.sections:
        return None
    delta, scale = float(fit.model.delta), float(fit.model.scale_)
    limit = delta * scale
    n_beyond, mass, furthest = 0, 0.0, []
    of_row = fit.printed.rule.of_row
    for block, prediction, weight in passes.predicted(fit.model, fit.source):
        residual = np.asarray(block.y, dtype=np.float64) - prediction
        size = np.where(weight > 0, np.abs(residual), 0.0)
        beyond = size > limit
        n_beyond, mass = n_beyond + int(beyond.sum()), mass + float(weight[beyond].sum())
        for k in np.argsort(-size, kind="stable")[:MOST_ROWS]:
            if beyond[k]:
                furthest.append((float(size[k]), -(block.first_row + int(k)), float(residual[k])))
        furthest = heapq.nlargest(MOST_ROWS, furthest)
    return {
        "delta": delta,
        "scale": scale,
        "limit": limit,
        "n_beyond": n_beyond,
        "share": mass / fit.seen.mass,
        "rows": [
            {"row": -place, "residual": of_row(residual), "scales": of_row(size / scale), "pull": of_row(limit / size)}
            for size, place, residual in furthest
        ],
        "sentences": _sentences(fit, n_beyond, limit),
    }


def _sentences(fit: Fit, n_beyond: int, limit: float) -> list[str]:
    target = text.visible(fit.model.target_name_, 60)
    held = f"{text.plural(n_beyond, 'row')} of {text.count(fit.seen.n_rows)} {'lies' if n_beyond == 1 else 'lie'}"
    return [
        f"{held} further than {text.number(limit)} from the prediction of {target}. Such a row pulls the fit no harder "
        "than one at that distance.",
        "A row that is far out in its columns still pulls: Huber's loss limits residuals, not leverage.",
    ]
