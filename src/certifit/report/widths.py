"""The width tau of local regression: errors by leave-one-out, and how well the rows near a point determine its fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures.local import drawn_widths
from certifit.models.local.about import n_left_out
from certifit.report import svg, text
from certifit.report.facts import Fit
from certifit.report.text import Table

N_WORST = 5
MOST_ROWS = 3000  # whose errors by leave-one-out are made for the picture


def width_facts(fit: Fit) -> Table | None:
    """None of a model without a width of its weights."""
    if "widths" not in fit.sections:
        return None
    model = fit.model
    is_small = len(model.curve_) or len(model.X_fit_) <= MOST_ROWS
    taus, errors, chosen = drawn_widths(model.leave_one_out() if is_small else model.curve_, model.tau_)
    sizes = np.sort(model.conditions())[::-1]
    n_singular = int(np.isinf(sizes).sum())
    finite = sizes[np.isfinite(sizes)]
    return {
        "tau": float(model.tau_),
        "taus": taus.tolist(),
        "errors": errors.tolist(),
        "chosen": chosen,
        "degrees": float(model.degrees_),
        "n_points": len(sizes),
        "n_singular": n_singular,
        "worst": finite[:N_WORST].tolist(),
        "median": float(np.median(finite)) if len(finite) else None,
        "sentences": _sentences(model, taus, errors, finite, n_singular),
    }


def _sentences(model: Any, taus: Array, errors: Array, finite: Array, n_singular: int) -> list[str]:
    tau, degrees = text.number(float(model.tau_)), text.number(float(model.degrees_), 3)
    sentences = [f"The width is tau = {tau}; the fit is worth {degrees} parameters."]
    if len(taus):
        best = int(np.argmin(errors))
        n_rows = len(model.X_fit_)
        n_left = n_left_out(n_rows, model.local_coef_.shape[1])
        which = f" of {n_left:,} rows" if n_left < n_rows else ""
        sentences.append(
            f"Of {len(taus)} widths the least mean squared error by leave-one-out{which} is "
            f"{text.number(errors[best])}, at tau = {text.number(taus[best])}."
        )
        if best in (0, len(taus) - 1):
            side = "narrowest" if best == 0 else "widest"
            sentences.append(f"It is the {side} one that was tried: another may do better still.")
    if len(finite):
        digits = max(round(2 * float(np.log10(max(finite[0], 1.0)))), 0)
        sentences.append(
            f"The worst condition of a local system is {text.number(float(finite[0]), 2)}: its coefficients lose about "
            f"{digits} of 16 digits."
        )
    if n_singular:
        sentences.append(f"At {text.plural(n_singular, 'point')} the rows near it hardly determine the coefficients.")
    return sentences


def draw_widths(context: dict[str, Any]) -> str:
    """A line with the width of the model ringed; empty text for models without a width, and of very many rows."""
    facts = context["widths"]
    if facts is None or facts["chosen"] < 0:
        return ""
    points = [(svg.log10(tau), error) for tau, error in zip(facts["taus"], facts["errors"], strict=True)]
    x, y = [at for at, _ in points], [height for _, height in points]
    frame = svg.LogFrame.around((min(x), max(x)), (min(y), max(y)), margin=0.06)
    marks = [frame.line(points, "line"), frame.dots(points, "s6", 6)]
    ring = svg.marked(frame, *points[facts["chosen"]])
    body = [frame.axes("tau", "mean squared error"), frame.clipped("widths", marks), ring]
    least, most = text.number(min(y)), text.number(max(y))
    words = f"From {least} to {most}; the width of the model is {text.number(facts['tau'])}."
    return svg.document("widths", "Error against tau", words, body)
