"""Gaps that several columns have in the same rows: one 0/1 column marks them, that of the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from certifit.data.source import RowError
from certifit.maps.table.kinds import KINDS, SetAside, TableColumn, Text
from certifit.maps.table.reading import missing_rows, plain
from certifit.maps.table.survey import Survey


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
