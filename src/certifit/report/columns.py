"""What is known of each column of the data: kind, gaps, range, levels, and what it alone says about the target."""

from datetime import date, timedelta
from typing import Any

import numpy as np

from certifit.report.facts import Fit, Table
from certifit.report.moments import Moments

KINDS = {"level": "levels"}
MOST_LEVELS = 20
# Kinds whose columns speak together only: the words of a text.
NOT_ALONE = ("text",)
BLANK = dict.fromkeys(
    ("type", "distinct", "mean", "sd", "low", "high", "first", "last", "reference", "reason", "alone")
) | {"missing": 0, "levels": []}


def column_facts(fit: Fit) -> list[Table]:
    """One dictionary a column, in the order of the data."""
    encoder = getattr(fit.model, "encoder_", None)
    if encoder is None:
        return [_of_array(name, j, fit) for j, name in enumerate(fit.source.names)]
    facts = []
    first = 0
    for kind in encoder.columns_:
        places = range(first, first + len(kind.names_out("")))
        facts.append(_of_table(kind, encoder.survey_.columns[kind.name], places, fit))
        first += len(places)
    return facts


def _of_array(name: str, j: int, fit: Fit) -> Table:
    columns = fit.seen.columns
    found = {"name": name, "kind": "number", "mean": columns.mean[j], "sd": columns.sd[j]}
    return BLANK | found | {"low": columns.low[j], "high": columns.high[j], "alone": _alone("number", [j], fit)}


def _of_table(kind: Any, surveyed: Any, places: range, fit: Fit) -> Table:
    facts = surveyed.to_dict()
    own = facts if "mean" in facts else facts.get("days", {})
    found = {
        "name": kind.name,
        "kind": KINDS.get(kind.kind, kind.kind),
        "type": facts["type"],
        "missing": facts["missing"],
        "distinct": facts.get("distinct"),
        "levels": [[level, weight / fit.seen.mass] for level, weight in facts.get("levels", [])[:MOST_LEVELS]],
        "reference": getattr(kind, "reference", None),
        "reason": getattr(kind, "reason", None),
        "alone": _alone(kind.kind, list(places), fit) if places else None,
    }
    if facts["family"] == "date":
        found |= {"first": _day(own.get("min")), "last": _day(own.get("max"))}
    elif own:
        found |= {"mean": own["mean"], "sd": own["sd"], "low": own["min"], "high": own["max"]}
    return BLANK | found


def _alone(kind: str, places: list[int], fit: Fit) -> float | None:
    """Share of what there is to know about the target that this column alone tells, less what chance would."""
    if kind in NOT_ALONE:
        return None
    if fit.by_class is not None:
        return fit.by_class.told(places, kind == "level")
    return _explained(kind, places, fit.seen.n_rows, fit.seen.columns)


def _explained(kind: str, places: list[int], n_rows: int, moments: Moments) -> float | None:
    """Share of the target's variance that a fit of this column alone explains, less what chance would."""
    found = moments.between(places) if kind == "level" else moments.correlation(places)
    free = len(places) if kind == "level" else 1
    left = n_rows - 1 - free
    if found is None or left <= 0:
        return None
    return max(1 - (1 - found) * (n_rows - 1) / left, 0.0)


def _day(days: float | None) -> str | None:
    if days is None or not np.isfinite(days):
        return None
    try:
        return (date(1970, 1, 1) + timedelta(days=int(np.floor(days)))).isoformat()
    except OverflowError:
        return None
