"""Gaps and levels of encoded columns: which rows have them, and how many.

Gaps that several columns have in the same rows are marked by one 0/1 column, that of the first. `rows_held` and
`rows_apart` count the rows behind an encoded column, which decides whether its name may be printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.data.columns import Array
from certifit.data.privacy import FEWEST, NOT_SHOWN
from certifit.data.source import RowError
from certifit.maps.table.kinds import KINDS, Level, SetAside, TableColumn, Text
from certifit.maps.table.moments import NumberMoments
from certifit.maps.table.reading import missing_rows, plain
from certifit.maps.table.survey import ColumnSurvey, Survey


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
    return kind.has_indicator and not isinstance(kind, Text)


def of_record(record: dict[str, Any], fills: list[float]) -> TableColumn:
    """The kind that `record` of any kind wrote; what it shares is not of its own record, see `with_shares`."""
    if record["kind"] not in KINDS:
        raise ValueError(f"Column {record['name']!r} is of the unknown kind {record['kind']!r}.")
    return replace(KINDS[record["kind"]].of_record(record, fills), marked_by=record["marked_by"])


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
    return [replace(kind, shares=tuple(shares.get(kind.name, ()))) for kind in kinds]


def refuse_lone_gaps(kinds: Sequence[TableColumn], table: pa.Table | pa.RecordBatch) -> None:
    """Refuse a row where only some of the columns are missing that were missing together in the fit."""
    for kind in kinds:
        for name in kind.shares:
            first, other = (missing_rows(plain(table.column(each))) for each in (kind.name, name))
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
    if isinstance(kind, Level):
        shown = (level for level in (*kind.levels, kind.other) if level not in (kind.reference, None))
        yield from (_level_rows(kind, level, surveyed) for level in shown)
    elif isinstance(kind, Text) and kind.words.n_hash is None:
        yield from kind.words.document_counts_.tolist()
    else:
        yield from [np.inf] * len(kind.own_names)
    yield from [np.inf] * kind.has_indicator


def _apart(kind: TableColumn, surveyed: ColumnSurvey | None) -> Iterator[float]:
    if surveyed is None or not surveyed.numbers:
        yield from [np.inf] * len(kind.own_names)
    else:
        yield from (_not_alike(surveyed.numbers[part]) for part in getattr(kind, "parts", [""] * len(kind.own_names)))
    if kind.has_indicator:
        yield np.inf if surveyed is None else min(surveyed.missing, surveyed.count)


def _not_alike(numbers: NumberMoments) -> float:
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
