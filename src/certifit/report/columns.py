"""What is known of each column of the data: kind, gaps, range, levels, and what it alone says about the target."""

from datetime import date, timedelta
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.report.facts import Fit
from certifit.report.moments import Moments
from certifit.report.text import Table

KINDS = {"level": "levels"}
MOST_LEVELS = 20
# Kinds whose columns speak together only: the words of a text.
NOT_ALONE = ("text",)
BLANK = dict.fromkeys(
    ("type", "distinct", "mean", "sd", "low", "high", "first", "last", "reference", "reason", "alone")
) | {"missing": 0, "levels": [], "constant": False}


def column_facts(fit: Fit) -> list[Table]:
    """One dictionary a column, in the order of the data."""
    encoder = fit.model.encoder_
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
    facts = {"name": name, "kind": "number", "mean": columns.mean[j], "sd": columns.sd[j]}
    low, high = _ends(fit, fit.seen.drawn.values(j), columns.low[j], columns.high[j], fit.seen.n_rows)
    is_constant = bool(columns.low[j] == columns.high[j])
    return BLANK | facts | {"low": low, "high": high, "constant": is_constant, "alone": _alone("number", [j], fit)}


def _of_table(kind: Any, surveyed: Any, places: range, fit: Fit) -> Table:
    facts = surveyed.to_dict()
    days = facts if "mean" in facts else facts.get("days", {})
    column = {
        "name": kind.name,
        "kind": KINDS.get(kind.kind, kind.kind),
        "type": facts["type"],
        "missing": facts["missing"],
        "distinct": facts.get("distinct"),
        "levels": _levels(fit, kind, surveyed),
        "reference": fit.printed.reference(kind, surveyed)[0] if kind.kind == "level" else None,
        "reason": getattr(kind, "reason", None),
        "alone": _alone(kind.kind, list(places), fit) if places else None,
    }
    if days:
        column |= _numbers(kind, surveyed, days, places, fit)
    return BLANK | column


def _numbers(kind: Any, surveyed: Any, facts: Table, places: range, fit: Fit) -> Table:
    """Range, mean and spread of a number; the range of days of a date. Those of few rows would tell their values."""
    rule, n_rows = fit.printed.rule, surveyed.count
    low, high = facts["min"], facts["max"]
    if kind.kind != "flag":
        place = kind.parts.index("days") if "days" in getattr(kind, "parts", ()) else 0
        values = fit.seen.drawn.values(places[place]) if places else np.zeros(0)
        fills = kind.record()[1] if surveyed.missing else []
        values = values[values != fills[place]] if fills else values  # gaps, where rows were drawn after filling
        low, high = _ends(fit, values, low, high, n_rows)
    if surveyed.family == "date":
        return {"first": _day(low, rule.shows), "last": _day(high, rule.shows)}
    moments = {"mean": facts["mean"], "sd": facts["sd"]} if rule.may_print(n_rows) else {}
    return moments | {"low": low, "high": high}


def _ends(fit: Fit, values: Array, low: float, high: float, n_rows: int) -> tuple[float | None, float | None]:
    """The printed range. A constant is held by all rows."""
    if low == high:
        return (low, high) if fit.printed.rule.may_print(n_rows) else (None, None)
    return fit.printed.rule.ends(values, low, high)


def _levels(fit: Fit, kind: Any, surveyed: Any) -> list[list[Any]]:
    """The most frequent levels that enough rows hold, with their shares; none of an identifier."""
    texts, rule = surveyed.texts, fit.printed.rule
    if texts is None or not (rule.shows or kind.kind == "level" or texts.distinct == 1):
        return []
    shown = [(level, mass) for level, mass in (texts.counts or {}).items() if rule.may_print(texts.rows_of(level))]
    often = sorted(shown, key=lambda item: (-item[1], item[0]))[:MOST_LEVELS]
    return [[level, float(mass) / fit.seen.mass] for level, mass in often]


def _alone(kind: str, places: list[int], fit: Fit) -> float | None:
    """Share of what there is to know about the target that this column alone tells, less what chance would."""
    if kind in NOT_ALONE:
        return None
    if fit.by_class is not None:
        return fit.by_class.told(places, kind == "level")
    return _explained(kind, places, fit.seen.n_rows, fit.seen.columns)


def _explained(kind: str, places: list[int], n_rows: int, moments: Moments) -> float | None:
    """Share of the target's variance that a fit of this column alone explains, less what chance would."""
    between = moments.between(places) if kind == "level" else moments.correlation(places)
    free = len(places) if kind == "level" else 1
    left = n_rows - 1 - free
    if between is None or left <= 0:
        return None
    return max(1 - (1 - between) * (n_rows - 1) / left, 0.0)


def _day(days: float | None, is_exact: bool) -> str | None:
    """A day, or its month: a day may be that of one row."""
    if days is None or not np.isfinite(days):
        return None
    try:
        return (date(1970, 1, 1) + timedelta(days=int(np.floor(days)))).isoformat()[: 10 if is_exact else 7]
    except OverflowError:
        return None
