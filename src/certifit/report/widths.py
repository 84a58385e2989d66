"""The width of local regression: errors by leave-one-out, and how well the rows near a point determine its fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.evaluation.pictures.local import drawn_widths
from certifit.report import text
from certifit.report.facts import Fit
from certifit.report.text import Table

N_WORST = 5


def width_facts(fit: Fit) -> Table | None:
    """None of a model without a width of its weights."""
    if "widths" not in fit.sections:
        return None
    model = fit.model
    taus, errors, best = drawn_widths(model.curve_)
    sizes = np.sort(model.conditions())[::-1]
    n_singular = int(np.isinf(sizes).sum())
    finite = sizes[np.isfinite(sizes)]
    return {
        "tau": float(model.tau_),
        "taus": taus.tolist(),
        "errors": errors.tolist(),
        "best": best,
        "degrees": float(model.degrees_),
        "n_points": len(sizes),
        "n_singular": n_singular,
        "worst": finite[:N_WORST].tolist(),
        "median": float(np.median(finite)) if len(finite) else None,
        "sentences": _sentences(model, taus, best, finite, n_singular),
    }


def _sentences(model: Any, taus: np.ndarray, best: int, finite: np.ndarray, n_singular: int) -> list[str]:
    tau, degrees = float(model.tau_), float(model.degrees_)
    chosen = "was given" if best < 0 else f"has the least error by leave-one-out of {len(taus)} widths"
    sentences = [f"The width tau = {text.number(tau)} {chosen}; the fit is worth {text.number(degrees, 3)} parameters."]
    if best >= 0 and best in (0, len(taus) - 1):
        side = "narrowest" if best == 0 else "widest"
        sentences.append(f"It is the {side} one that was tried: another may do better still.")
    if len(finite):
        sentences.append(
            f"The worst condition of a local system is {text.power(float(finite[0]))}: coefficients there lose about "
            f"{max(round(2 * float(np.log10(max(finite[0], 1.0)))), 0)} of 16 digits."
        )
    if n_singular:
        sentences.append(f"At {text.plural(n_singular, 'point')} the rows near it hardly determine the coefficients.")
    return sentences
