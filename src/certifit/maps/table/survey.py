"""The survey of a table: one pass, statistics that add. Rows of weight 0 are no rows.

Gaps and levels of encoded columns: which rows have them, and how many.

Gaps that several columns have in the same rows are marked by one 0/1 column, that of the first. `rows_held` and
`rows_apart` count the rows behind an encoded column, which decides whether its name may be printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import ArrayLike

from certifit.data.arrow import values_of
from certifit.data.columns import Array, Bits
from certifit.data.privacy import FEWEST, NOT_SHOWN, Rule
from certifit.data.source import Block, RowError
from certifit.maps.table.kinds import KINDS, Level, SetAside, TableColumn, Text
from certifit.maps.table.moments import (
    PIECE,
    WORD,
    Levels,
    NumberMoments,
    levels,
    moments,
    moments_of_columns,
    plain_pieces,
    row_keys,
)
from certifit.maps.table.reading import (
    PARTS,
    as_text,
    date_parts,
    family,
    missing_rows,
    plain,
    valid_rows,
    whole_numbers,
    without_number,
)

_SHOWN_LEVELS = 20
_NEAR = 1 << 17  # numbers of columns that are looked at together
ABSENT = (-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)  # numbers that often mean no value


@dataclass(frozen=True)
class RowKeys:
    """Rows of a stretch: global numbers, keys for fingerprints, weights."""

    number: Array
    key: Array
    weight: Array | None

    @staticmethod
    def of(block: Block) -> RowKeys:
        """All rows of a block."""
        number = np.arange(block.first_row, block.first_row + block.X.num_rows)
        return RowKeys(number, row_keys(number), block.weight)

    def pick(self, where: Array) -> RowKeys:
        """Some of the rows, by mask or place."""
        return RowKeys(self.number[where], self.key[where], None if self.weight is None else self.weight[where])


@dataclass(frozen=True)
class ColumnSurvey:
    """One column: its family, its gaps, and its numbers (of each part of a date) or its texts."""

    type: str
    family: str
    missing: int = 0
    first_missing: int | None = None  # global row number
    gaps: int = 0  # fingerprint of the rows that are missing
    first_infinite: int | None = None
    numbers: dict[str, NumberMoments] = field(default_factory=dict)  # "" for a number or a flag
    texts: Levels | None = None
    is_readable: bool = True
    codes: Mapping[float, int] = field(default_factory=dict)  # rows of numbers such as -999 beyond all others
    others: tuple[float, float] = (np.inf, -np.inf)  # the smallest and the largest of all other numbers

    @property
    def count(self) -> int:
        """Rows with a value."""
        if self.texts is not None:
            return self.texts.count
        return next((part.count for part in self.numbers.values()), 0)

    def added(self, other: ColumnSurvey, cap: int) -> ColumnSurvey:
        """The sum; `other` holds later rows."""
        texts = None
        if self.texts is not None and other.texts is not None:
            texts = self.texts.added(other.texts, cap)
        others = (min(self.others[0], other.others[0]), max(self.others[1], other.others[1]))
        return replace(
            self,
            missing=self.missing + other.missing,
            first_missing=_first(self.first_missing, other.first_missing),
            gaps=(self.gaps + other.gaps) % WORD,
            first_infinite=_first(self.first_infinite, other.first_infinite),
            numbers={part: value + other.numbers[part] for part, value in self.numbers.items()},
            texts=texts,
            is_readable=self.is_readable and other.is_readable,
            codes=_beyond(others, Counter(self.codes) + Counter(other.codes)),
            others=others,
        )

    @property
    def absent(self) -> float | None:
        """A number that means no value: -999 or the like in 5 rows or more, far from all other numbers."""
        lower, upper = self.others
        for code, n_rows in self.codes.items():
            gap = lower - code if code < 0 else code - upper
            if n_rows >= FEWEST and gap > 0 and (gap > upper - lower or (code < 0 <= lower)):
                return code
        return None

    def to_dict(self) -> dict[str, Any]:
        """Facts for a report, in JSON types."""
        facts: dict[str, Any] = {"type": self.type, "family": self.family, "missing": self.missing}
        for part, m in self.numbers.items():
            details = {} if not m.count else {"min": m.lower, "max": m.upper, "mean": m.mean, "sd": _finite(m.sd)}
            details |= {"distinct": None if m.counts is None else len(m.counts)} if part == "" else {}
            facts |= {part: details} if part else details
        if self.texts is not None:
            facts["distinct"] = self.texts.distinct
            counts = self.texts.counts or {}
            often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN_LEVELS]
            facts["levels"] = [[level, float(count)] for level, count in often]
        return facts


@dataclass(frozen=True)
class Survey:
    """What one pass learns of a table. heaviest: the largest FEWEST - 1 weights, none where rows have no weights."""

    n_rows: int
    columns: dict[str, ColumnSurvey]
    cap: int
    sum_weight: float = 0.0
    heaviest: tuple[float, ...] = ()

    @staticmethod
    def of(
        block: Block, cap: int, categories: Collection[str] = (), absent: Sequence[tuple[str, float]] = ()
    ) -> Survey:
        """Of the rows of one stretch; whole numbers named in `categories` are counted as texts.

        absent: (column, number that means no value in it).
        """
        arrays = {name: plain(block.X.column(name)) for name in block.X.column_names}
        arrays |= {name: without_number(arrays[name], number) for name, number in absent}
        rows = RowKeys.of(block)
        used = None
        if block.weight is not None and not (block.weight > 0).all():
            used = np.flatnonzero(block.weight > 0)
            rows = rows.pick(used)
        known = _plain_numbers({name: array for name, array in arrays.items() if name not in categories}, used, rows)
        columns = {}
        for name, array in arrays.items():
            taken = array if used is None or name in known else array.take(pa.array(used))
            columns[name] = known.get(name) or _surveyed(name, taken, rows, cap, name in categories)
        if rows.weight is None:
            return Survey(len(rows.number), columns, cap)
        return Survey(len(rows.number), columns, cap, float(rows.weight.sum()), _heaviest(rows.weight))

    def __add__(self, other: Survey) -> Survey:
        columns = {name: column.added(other.columns[name], self.cap) for name, column in self.columns.items()}
        sum_weight, heaviest = self.sum_weight + other.sum_weight, _heaviest([*self.heaviest, *other.heaviest])
        return Survey(self.n_rows + other.n_rows, columns, self.cap, sum_weight, heaviest)

    @property
    def heaviest_share(self) -> float:
        """Share of all weight that fewer than FEWEST rows have; 0 where rows have no weights."""
        return sum(self.heaviest) / self.sum_weight if self.heaviest else 0.0

    def brief(self, limit: int) -> Survey:
        """Without the texts of columns that have more than `limit`: a survey holds no rows."""
        columns = {
            name: replace(column, texts=column.texts.without_texts())
            if column.texts is not None and (column.texts.distinct is None or column.texts.distinct > limit)
            else column
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Facts for a report, in JSON types."""
        return {"n_rows": self.n_rows, "columns": {name: c.to_dict() for name, c in self.columns.items()}}


def _heaviest(weights: ArrayLike) -> tuple[float, ...]:
    return tuple(np.sort(np.asarray(weights, dtype=np.float64))[1 - FEWEST :].tolist())


def _plain_numbers(arrays: Mapping[str, pa.Array], used: Array | None, rows: RowKeys) -> dict[str, ColumnSurvey]:
    """Columns of float64 without gaps, where the rows are few: together, which takes little time per column."""
    kind = pa.float64()
    names = [name for name, array in arrays.items() if array.type == kind and not array.null_count]
    if not names or not 0 < len(rows.number) <= PIECE:
        return {}
    out: dict[str, ColumnSurvey] = {}
    step = max(_NEAR // max(map(len, arrays.values())), 1)
    for begin in range(0, len(names), step):
        X = np.stack([_values(arrays[name]) for name in names[begin : begin + step]])
        X = X if used is None else np.take(X, used, axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            is_finite = np.isfinite(X.sum(axis=1))
        some = [names[begin + place] for place in np.flatnonzero(is_finite).tolist()]
        X = X if is_finite.all() else X[is_finite]
        numbers = moments_of_columns(X, rows.key, rows.weight) if some else []
        for name, x, facts in zip(some, X, numbers, strict=True):
            out[name] = ColumnSurvey(str(kind), "number", numbers={"": facts}, **_codes(x, None, facts))
    return out


def _surveyed(name: str, column: pa.Array, rows: RowKeys, cap: int, as_level: bool) -> ColumnSurvey:
    kind = family(column.type)
    if as_level and kind == "number":
        column, kind = whole_numbers(column, name), "text"
    of = ColumnSurvey(str(column.type), kind)
    if kind == "text":
        return _texts(of, column, rows, cap)
    return _READERS[kind](of, column, rows)


def _unread(of: ColumnSurvey, column: pa.Array, rows: RowKeys) -> ColumnSurvey:
    return _with_gaps(of, _validity(column), rows)


def _numbers(of: ColumnSurvey, column: pa.Array, rows: RowKeys) -> ColumnSurvey:
    x, valid = _values(column), _validity(column)
    used = valid
    with np.errstate(over="ignore", invalid="ignore"):
        pieces = plain_pieces(x, valid, rows.key, rows.weight)
        is_finite = pieces is not None or x.dtype.kind != "f" or bool(np.isfinite(x.sum(dtype=np.float64)))
    if not is_finite:
        infinite, number = np.isinf(x), ~np.isnan(x)
        valid = number if valid is None else number & valid
        infinite &= valid
        used = valid & ~infinite
        of = replace(of, first_infinite=int(rows.number[infinite][0]) if infinite.any() else None)
    numbers = moments(x, used, rows.key, rows.weight, pieces)
    return _with_gaps(replace(of, numbers={"": numbers}, **_codes(x, used, numbers)), valid, rows)


def _codes(x: Array, used: Array | None, numbers: NumberMoments) -> dict[str, Any]:
    """Rows of the numbers that often mean no value, beyond all other numbers; and the range of these."""
    if numbers.lower not in ABSENT and numbers.upper not in ABSENT:
        return {"others": (numbers.lower, numbers.upper)}
    values = x if used is None else x[used]
    is_code = np.isin(values, ABSENT)
    left = values[~is_code]
    others = (float(left.min()), float(left.max())) if len(left) else (np.inf, -np.inf)
    return {"codes": _beyond(others, Counter(values[is_code].tolist())), "others": others}


def _beyond(others: tuple[float, float], codes: Mapping[float, int]) -> dict[float, int]:
    """Codes that no other number reaches, in order: the same for any cut of the rows."""
    return {float(code): codes[code] for code in sorted(codes) if not others[0] <= code <= others[1]}


def _dates(of: ColumnSurvey, column: pa.Array, rows: RowKeys) -> ColumnSurvey:
    valid = _validity(column)
    try:
        parts = date_parts(column, PARTS[of.family])
    except pa.ArrowException:  # a time zone that is not known here
        return _with_gaps(replace(of, is_readable=False), valid, rows)
    numbers = {part: moments(x, valid, rows.key, rows.weight) for part, x in parts.items()}
    return _with_gaps(replace(of, numbers=numbers), valid, rows)


def _texts(of: ColumnSurvey, column: pa.Array, rows: RowKeys, cap: int) -> ColumnSurvey:
    if pt.is_dictionary(column.type) and column.dictionary.null_count:  # a null among the levels
        column = pc.take(as_text(column.dictionary), column.indices)
    valid = _validity(column)
    present = rows if valid is None else rows.pick(valid)
    there = column if valid is None else column.drop_null()
    return _with_gaps(replace(of, texts=levels(there, present.key, present.weight, cap)), valid, rows)


_READERS = {
    "number": _numbers,
    "flag": _numbers,
    "date": _dates,
    "time": _dates,
    "duration": _dates,
    "empty": _unread,
    "other": _unread,
}


def _values(column: pa.Array) -> Array:
    """The numbers in place; where the column is null they are of no meaning."""
    if pt.is_decimal(column.type):
        column = pc.cast(column, pa.float64())
    values = values_of(column) if len(column) else np.zeros(0)
    return values.to_bool(len(column)) if isinstance(values, Bits) else values


def _validity(column: pa.Array) -> Array | None:
    if pt.is_null(column.type):
        return np.zeros(len(column), dtype=bool)
    return valid_rows(column)


def _with_gaps(of: ColumnSurvey, valid: Array | None, rows: RowKeys) -> ColumnSurvey:
    if valid is None or valid.all():
        return of
    gaps = rows.pick(~valid)
    return replace(
        of, missing=len(gaps.number), first_missing=int(gaps.number[0]), gaps=int(gaps.key.sum(dtype=np.uint64))
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None  # squares of huge numbers overflow


def _first(a: int | None, b: int | None) -> int | None:
    return b if a is None else a


def sharing(kinds: list[TableColumn], survey: Survey) -> list[TableColumn]:
    """Columns that are missing in exactly the same rows share the 0/1 column of the first: more would repeat it."""
    first: dict[tuple[int, int], str] = {}
    out: list[TableColumn] = []
    for kind in kinds:
        column = survey.columns[kind.name]
        owner = first.setdefault((column.gaps, column.missing), kind.name) if _may_share(kind) else kind.name
        if owner == kind.name:
            out.append(kind)
        elif not kind.own_names:
            out.append(SetAside(kind.name, reason=f"it has one value, and is missing in the same rows as {owner!r}"))
        else:
            out.append(replace(kind, has_indicator=False, marked_by=owner))
    return with_shares(out)


def _may_share(kind: TableColumn) -> bool:
    """Whether a column marks its gaps and is sure to stay; free text may turn out to hold no words."""
    return kind.has_mark and not isinstance(kind, Text)


def of_record(record: dict[str, Any], fills: list[float]) -> TableColumn:
    """The kind that `record` of any kind wrote; what it shares is not of its own record, see `with_shares`."""
    if record["kind"] not in KINDS:
        raise ValueError(f"Column {record['name']!r} is of the unknown kind {record['kind']!r}.")
    marks = {"marked_by": record["marked_by"], "absent": record.get("absent")}
    return replace(KINDS[record["kind"]].of_record(record, fills), **marks)


def with_shares(kinds: list[TableColumn]) -> list[TableColumn]:
    """Columns whose gaps another one marks, made known to that one; refuses one that marks none."""
    by_name = {kind.name: kind for kind in kinds}
    shares: dict[str, list[str]] = {}
    for kind in kinds:
        if kind.marked_by is None:
            continue
        owner = by_name.get(kind.marked_by)
        if owner is None or not owner.has_indicator or kind.has_indicator or isinstance(kind, SetAside):
            raise ValueError(f"The gaps of column {kind.name!r} cannot be marked by {kind.marked_by!r}.")
        shares.setdefault(kind.marked_by, []).append(kind.name)
    every = ((kind, tuple(shares.get(kind.name, ()))) for kind in kinds)
    return [kind if kind.shares == of_kind else replace(kind, shares=of_kind) for kind, of_kind in every]


def refuse_lone_gaps(kinds: Sequence[TableColumn], table: pa.Table | pa.RecordBatch) -> None:
    """Refuse a row where only some of the columns are missing that were missing together in the fit."""
    absent = {each.name: each.present for each in kinds}
    for kind in kinds:
        for name in kind.shares:
            first, other = (missing_rows(absent[each](plain(table.column(each)))) for each in (kind.name, name))
            differs = first ^ other
            if differs.any():
                row = int(np.argmax(differs))
                gap, there = (kind.name, name) if first[row] else (name, kind.name)
                advice = (
                    f", and {there!r} is not; in the fit both were missing in the same rows. Fill it, or fit with "
                    "unseen='reference' to read it as its mean or reference level."
                )
                raise RowError(f"Column {gap!r} is missing", row, advice)


# ---- rows that hold the value in the name of an encoded column: 'carrier=UA' tells a level, 'x' none -----------------


def rows_held(encoder: Any) -> Array:
    """One number per encoded column: rows of its level or texts with its term; infinite where the name tells no value.

    0 of a level where the encoder was loaded from a file, which does not hold the rows of each.
    """
    survey = encoder.survey_
    counts = [
        n_rows
        for kind in encoder.columns_
        for n_rows in _held(kind, None if survey is None else survey.columns[kind.name])
    ]
    return np.array(counts, dtype=np.float64)


def reference_rows(kind: Level, surveyed: ColumnSurvey | None) -> float:
    """Rows of the level that the others of a category are compared with; 0 where that is not known."""
    return _level_rows(kind, kind.reference, surveyed)


def rows_apart(encoder: Any) -> Array:
    """One number per encoded column: rows that alone decide its coefficient; infinite where that is not known.

    Rows of its level or term, and where nearly all rows of a number, a flag, a date or of gaps are alike, the others.
    """
    counts = [
        n_rows
        for kind in encoder.columns_
        for n_rows in _apart(kind, None if encoder.survey_ is None else encoder.survey_.columns[kind.name])
    ]
    return np.minimum(rows_held(encoder), np.array(counts, dtype=np.float64))


def printed_codes(encoder: Any, asked: Rule) -> dict[str, list[str]]:
    """What the codes of each coded category stand for, by the name of its column; levels of too few rows are hidden."""
    printed: dict[str, list[str]] = {}
    for (name, codes), kind in zip(encoder.coded_.items(), _coded(encoder), strict=True):
        surveyed = None if encoder.survey_ is None else encoder.survey_.columns[kind.name]
        known = [*kind.levels, *([] if kind.other is None else [kind.other])]
        rows = [_level_rows(kind, level, surveyed) for level in known]
        rows += [0 if surveyed is None else surveyed.missing] * kind.has_indicator
        printed[name] = [code if asked.may_print(n) else NOT_SHOWN for code, n in zip(codes, rows, strict=True)]
    return printed


def _coded(encoder: Any) -> list[Level]:
    return [kind for kind in encoder.columns_ if isinstance(kind, Level) and kind.is_coded]


def has_rare_zero(kind: TableColumn, surveyed: ColumnSurvey | None) -> bool:
    """Whether so few rows are 0 in a number, a flag, a date or the mark of gaps that the intercept tells of them."""
    if surveyed is None:
        return False
    zeros = [(part.rows_by_number or {}).get(0, 0) for part in surveyed.numbers.values()]
    return any(0 < n < FEWEST for n in zeros) or (kind.has_indicator and surveyed.count < FEWEST)


def told_names(encoder: Any) -> tuple[dict[str, str], list[str]]:
    """(name: what is printed instead, of columns whose value fewer than FEWEST rows hold; names of all others)."""
    names, owners = list(encoder.get_feature_names_out()), _owners(encoder)
    is_rare = rows_held(encoder) < FEWEST
    secrets = {name: owners[j] for j, name in enumerate(names) if is_rare[j]}
    return secrets, [name for j, name in enumerate(names) if not is_rare[j]]


def _owners(encoder: Any) -> list[str]:
    """What is printed for an encoded column whose value is not."""
    printed = {kind.name: f"{kind.name}{': ' if kind.kind == 'text' else '='}{NOT_SHOWN}" for kind in encoder.columns_}
    return [printed[kind.name] for kind in encoder.columns_ for _ in kind.names_out("")]


def _held(kind: TableColumn, surveyed: ColumnSurvey | None) -> Iterator[float]:
    if isinstance(kind, Level) and not kind.is_coded:
        shown = (level for level in (*kind.levels, kind.other) if level not in (kind.reference, None))
        yield from (_level_rows(kind, level, surveyed) for level in shown)
    elif isinstance(kind, Text) and kind.words.n_hash is None:
        yield from kind.words.document_counts_.tolist()
    else:
        yield from [np.inf] * len(kind.own_names)
    yield from [np.inf] * kind.has_mark


def _apart(kind: TableColumn, surveyed: ColumnSurvey | None) -> Iterator[float]:
    if surveyed is None or not surveyed.numbers:
        yield from [np.inf] * len(kind.own_names)
    else:
        yield from (not_alike(surveyed.numbers[part]) for part in getattr(kind, "parts", [""] * len(kind.own_names)))
    if kind.has_mark:
        yield np.inf if surveyed is None else min(surveyed.missing, surveyed.count)


def not_alike(numbers: NumberMoments) -> float:
    """Rows that hold another number than most, where these are counted; at most the rows that hold one."""
    rows = numbers.rows_by_number
    return numbers.count if rows is None else numbers.count - max(rows.values(), default=0)


def _level_rows(kind: Level, level: str | None, surveyed: ColumnSurvey | None) -> float:
    """Rows of a level; of `other`, of all that it stands for."""
    texts = None if surveyed is None else surveyed.texts
    if texts is None or texts.counts is None or level is None:
        return 0
    if level == kind.other:
        return sum(texts.rows_of(text) for text in texts.counts if text not in kind.levels)
    return texts.rows_of(level)
