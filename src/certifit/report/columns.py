"""What is known of each column of the data: kind, gaps, range, levels, and what it alone says about the target.

Mean and spread of every fitted column and its covariance with the target are merged block by block (Chan's formula).
From these follows what each column alone says: squared correlation for a number, and for the levels l of a category
with n_l rows, eta^2 = sum_l n_l (mean_l - mean)^2 / sum_i (y_i - mean)^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from certifit.data import columns as seg
from certifit.data.columns import Array
from certifit.maps.table.moments import NumberMoments
from certifit.maps.table.survey import not_alike
from certifit.report.text import Table
from certifit.statistics.moments import Merge

if TYPE_CHECKING:
    from certifit.report.facts import Fit

# mean, squares, cross, low, high: one entry per column
Sums = tuple[Array, Array, Array, Array, Array]


@dataclass
class Moments:
    """squares = sum w (x - mean)^2, cross = sum w (x - mean) (y - mean y); low and high of numbers."""

    mass: float = 0.0
    y_mean: float = 0.0
    y_squares: float = 0.0
    mean: Array = field(default_factory=lambda: np.empty(0))
    squares: Array = field(default_factory=lambda: np.empty(0))
    cross: Array = field(default_factory=lambda: np.empty(0))
    low: Array = field(default_factory=lambda: np.empty(0))
    high: Array = field(default_factory=lambda: np.empty(0))

    def add(self, X: Any, y: Array, weight: Array) -> None:
        """Merge the rows of one block: an array, CSR, or the segments of an encoded table."""
        mass = float(weight.sum())
        if mass <= 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            y_mean = float(weight @ y) / mass
            pull = weight * (y - y_mean)
            y_squares = float(pull @ (y - y_mean))
            sums = _sums(X, weight, pull, mass)
            self._merge(mass, y_mean, y_squares, sums)

    def _merge(self, mass: float, y_mean: float, y_squares: float, sums: Sums) -> None:
        mean, squares, cross, low, high = sums
        if self.mass == 0:
            self.mass, self.y_mean, self.y_squares = mass, y_mean, y_squares
            self.mean, self.squares, self.cross, self.low, self.high = sums
            return
        both = Merge.of(self.mass, mass)
        step, y_step = mean - self.mean, np.asarray(y_mean - self.y_mean)
        self.squares = both.products(self.squares, squares, step, step)
        self.cross = both.products(self.cross, cross, step, y_step)
        self.y_squares = float(both.products(self.y_squares, y_squares, y_step, y_step))
        self.mean, self.y_mean = both.mean(self.mean, mean), float(both.mean(self.y_mean, y_mean))
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        self.mass = float(both.weight)

    @property
    def sd(self) -> Array:
        """Standard deviations."""
        return np.sqrt(self.squares / self.mass) if self.mass > 0 else self.squares

    def correlation(self, places: Sequence[int]) -> float | None:
        """Largest squared correlation of these columns with the target."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            r2 = self.cross[list(places)] ** 2 / (self.squares[list(places)] * self.y_squares)
        r2 = r2[np.isfinite(r2)]
        return min(float(r2.max()), 1.0) if r2.size else None

    def between(self, places: Sequence[int]) -> float | None:
        """eta^2 of a category whose 0/1 columns these are; rows without a 1 are its reference level."""
        rows, pull = self.mass * self.mean[list(places)], self.cross[list(places)]
        rows, pull = np.append(rows, self.mass - rows.sum()), np.append(pull, -pull.sum())
        used = rows > 0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            eta2 = float((pull[used] ** 2 / rows[used]).sum() / self.y_squares) if self.y_squares > 0 else np.nan
        return min(eta2, 1.0) if np.isfinite(eta2) else None


def _sums(X: Any, weight: Array, pull: Array, mass: float) -> Sums:
    if isinstance(X, seg.Columns):
        parts = [_of_segment(segment, X.shape[0], weight, pull, mass) for segment in X.segments]
        mean, squares, cross, low, high = (np.concatenate(column_sums) for column_sums in zip(*parts, strict=True))
        return mean, squares, cross, low, high
    if scipy.sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        mean = np.asarray(weight @ X).ravel() / mass
        squares = np.asarray(weight @ X.power(2)).ravel() - mass * mean**2
        low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
        return mean, np.maximum(squares, 0.0), np.asarray(pull @ X).ravel(), low, high
    dense = np.asarray(X, dtype=np.float64)
    mean = weight @ dense / mass
    about = dense - mean
    return mean, weight @ about**2, pull @ about, dense.min(axis=0), dense.max(axis=0)


def _of_segment(segment: seg.Segment, n_rows: int, weight: Array, pull: Array, mass: float) -> Sums:
    if isinstance(segment, seg.Csr):
        return _sums(segment.rows, weight, pull, mass)
    if not isinstance(segment, seg.Codes):
        dense = segment.dense(n_rows)
        return _of_column(dense[:, 0], weight, pull, mass) if dense.shape[1] == 1 else _sums(dense, weight, pull, mass)
    place = _places(segment, n_rows) + 1
    size = segment.n_columns + 1
    share = np.bincount(place, weights=weight, minlength=size)[1:] / mass
    cross = np.bincount(place, weights=pull, minlength=size)[1:].astype(np.float64, copy=False)
    return share, mass * share * (1 - share), cross, np.zeros(size - 1), np.ones(size - 1)


def _of_column(x: Array, weight: Array, pull: Array, mass: float) -> Sums:
    low, high = x.min(), x.max()
    mean = float(weight @ x) / mass
    about = x - mean
    cross = float(pull @ about)
    about *= about
    sums = (mean, float(weight @ about), cross, low, high)
    first, second, third, fourth, fifth = (np.array([value], dtype=np.float64) for value in sums)
    return first, second, third, fourth, fifth


def _places(segment: seg.Codes, n_rows: int) -> Any:
    """The column in which each row has its 1; -1 is none."""
    if segment.valid is None:
        return segment.columns[segment.codes].astype(np.int64)
    valid = segment.valid.to_bool(n_rows)
    place = np.full(n_rows, segment.null_column, dtype=np.int64)
    place[valid] = segment.columns[segment.codes[valid]]
    return place


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
    for kind in encoder.uncoded().columns_:  # as `passes.encoded` reads them
        places = range(first, first + len(kind.names_out("")))
        facts.append(_of_table(kind, encoder.survey_.columns[kind.name], places, fit))
        first += len(places)
    return facts


def _of_array(name: str, j: int, fit: Fit) -> Table:
    columns = fit.seen.columns
    values = fit.seen.drawn.values(j)
    most_alike = np.unique(values, return_counts=True)[1].max(initial=0)
    low, high = _ends(fit, values, columns.low[j], columns.high[j], fit.seen.n_rows)
    is_constant = bool(columns.low[j] == columns.high[j])
    facts = {"name": name, "kind": "number", "mean": columns.mean[j], "sd": columns.sd[j]}
    if not is_constant and not fit.printed.rule.may_print(len(values) - most_alike):
        facts, low, high = {"name": name, "kind": "number"}, None, None
    return BLANK | facts | {"low": low, "high": high, "constant": is_constant, "alone": _alone("number", [j], fit)}


def _of_table(kind: Any, surveyed: Any, places: range, fit: Fit) -> Table:
    facts = surveyed.to_dict()
    part = "" if "" in surveyed.numbers else "days"
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
    days = facts if part == "" else facts.get(part, {})
    if days and "mean" in days and _may_tell(fit, surveyed.numbers[part]):
        column |= _numbers(kind, surveyed, days, places, fit)
    return BLANK | column


def _may_tell(fit: Fit, numbers: NumberMoments) -> bool:
    """Whether mean, spread and range do not tell the values of a few rows that differ from all others."""
    n_rows = not_alike(numbers)
    return n_rows == 0 or fit.printed.rule.may_print(n_rows)


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
