"""Columns whose coefficients can hardly be told apart, for each nearly follows from the others: variance inflation."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.labels import with_codes
from certifit.report import text
from certifit.report.facts import Fit
from certifit.report.text import Table
from certifit.statistics.collinearity import correlations, variance_inflation

MOST_COLUMNS = 300  # fitted columns whose correlations are looked at
# Variance inflation that is worth a line in the table, and a warning: the usual marks.
WORTH_A_LINE, STRONG = 5.0, 10.0
MOST_LINES = 20


def collinear_facts(fit: Fit) -> list[Table]:
    """Columns of strong variance inflation, the strongest first: column, vif, like (its nearest), correlation.

    Empty where there is none, or where it does not apply: a polynomial, a fit without an intercept, many columns.
    """
    if fit.weights is None or fit.model.basis_ is not None or not fit.has_intercept:
        return []
    if not 1 < len(fit.weights) <= MOST_COLUMNS:
        return []
    encoder = fit.model.encoder_
    source = fit.source if fit.by_class is None else with_codes(fit.source, fit.model.classes_)[0]
    R = correlations(source if encoder is None else source.through(encoder))
    groups = _columns(encoder, fit.printed.columns)
    inflation = variance_inflation(R, [places for _, places in groups])
    facts: list[Table] = []
    for (name, places), vif in zip(groups, inflation, strict=True):
        if vif is not None and vif > WORTH_A_LINE:
            like, correlation = _nearest(R, places, groups)
            facts.append({"column": name, "vif": vif, "like": like, "correlation": correlation})
    return sorted(facts, key=lambda one: -one["vif"])[:MOST_LINES]


def _columns(encoder: Any, names: list[str]) -> list[tuple[str, list[int]]]:
    """Columns of the data, and the places of what became of them."""
    if encoder is None:
        return [(name, [place]) for place, name in enumerate(names)]
    groups, first = [], 0
    for kind in encoder.columns_:
        size = len(kind.names_out(""))
        groups.append((kind.name, list(range(first, first + size))))
        first += size
    return [group for group in groups if group[1]]


def _nearest(R: Any, places: list[int], groups: list[tuple[str, list[int]]]) -> tuple[str, float]:
    """The other column with the largest correlation, and that correlation."""
    best = ("", 0.0)
    for name, others in groups:
        if others == places:
            continue
        block = np.nan_to_num(R[np.ix_(places, others)])
        strongest = float(block.flat[np.abs(block).argmax()])
        if abs(strongest) > abs(best[1]):
            best = (name, strongest)
    return best


def collinear_notice(context: Table) -> Table | None:
    """The warning where coefficients are read one by one although the columns hardly allow it."""
    table = context["coefficients"]
    strong = [one for one in (table or {}).get("collinear", []) if one["vif"] > STRONG]
    if not strong:
        return None
    names = text.joined([one["column"] for one in strong], 4)
    first = strong[0]
    repeat = "repeats" if len(strong) == 1 else "repeat"
    wider = text.number(float(np.sqrt(first["vif"])), 2)
    alike = f"{text.visible(first['column'], 40)} and {text.visible(first['like'], 40)}"
    return {
        "level": "warn" if table["has_inference"] else "note",
        "title": f"{names} nearly {repeat} other columns (variance inflation {text.number(first['vif'], 2)})",
        "text": f"The correlation of {alike} is {text.share(first['correlation'])}. Their coefficients can be large, "
        f"of opposite sign, and differ much from sample to sample: standard errors are up to {wider} times as large as "
        "they would be without the others. Predictions are not affected.",
        "action": "To read the coefficients one by one, leave out (--drop) one of the columns that are alike, or "
        "take their mean.",
    }
