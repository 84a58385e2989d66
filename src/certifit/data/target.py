"""What a target asks for: classes to tell apart, or a quantity; and how many rows each label has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.labels import LabelSet
from certifit.data.source import Block, Source

MOST_CODES = 20  # whole numbers of so few values may be classes


@dataclass(frozen=True)
class Task:
    """What a model of a target is to do: tell classes apart, or predict a quantity; and the sentence that says so."""

    is_classes: bool
    sentence: str


def task_of(source: Source) -> Task:
    """What the target of a scan asks for. Its column alone is read, and no further than the answer needs.

    Text, categories, flags, and two distinct whole numbers are classes; other numbers are a quantity. Text that is
    mostly numbers, of more than 20 values, is a quantity with a fault in it.
    """
    column = source.target_column()
    values: set[Any] = set()
    kind = "number"
    for run in column.runs():
        found = _column_of(run)
        kind = "text" if _is_text(found.type) else "flag" if pa.types.is_boolean(found.type) else kind
        values |= set(pc.unique(found.drop_null()).to_pylist())
        if kind != "number" or len(values) > MOST_CODES or any(_has_fraction(value) for value in values):
            break
    return _TASKS[kind](f"{column.target!r}", values)


def _task_of_text(name: str, values: set[Any]) -> Task:
    words = sorted(value for value in values if not _is_number(value))
    if len(values) > MOST_CODES and 2 * len(words) < len(values):
        shown = ", ".join(map(repr, words[:3])) + (", ..." if len(words) > 3 else "")
        return Task(False, f"{name} is numbers but for {shown}: taken as a quantity. Mend or remove those rows.")
    return Task(True, f"{name} is text: its values are classes.")


def _task_of_flags(name: str, values: set[Any]) -> Task:
    return Task(True, f"{name} is true or false: two classes.")


def _task_of_numbers(name: str, values: set[Any]) -> Task:
    if len(values) > MOST_CODES or any(_has_fraction(value) for value in values):
        return Task(False, f"{name} is a number on a scale: a quantity.")
    if len(values) == 2:
        first, second = (int(value) for value in sorted(values))
        return Task(True, f"{name} is {first} or {second}: two classes. If it is a quantity, say so: --task quantity.")
    if len(values) < 2:
        return Task(False, f"{name} has {len(values)} distinct value{'s' * (len(values) != 1)}.")
    shown = f"{name} has {len(values)} distinct whole numbers and is taken as a quantity."
    return Task(False, f"{shown} If they are classes, say so: --task classes.")


_TASKS: dict[str, Callable[[str, set[Any]], Task]] = {
    "text": _task_of_text,
    "flag": _task_of_flags,
    "number": _task_of_numbers,
}


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _has_fraction(value: Any) -> bool:
    """A number that is not whole; what is no number (a date) is none."""
    try:
        return not float(value).is_integer()
    except (TypeError, ValueError):
        return True


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def label_counts(source: Source) -> dict[Any, int]:
    """Rows of every label of a scan, labels sorted: one pass over the target alone, once a source."""
    column = source.target_column()
    found = source.remembered("label counts", lambda: column.reduce(_Tally.finder(column)))
    return {label: found.rows[label] for label in sorted(found.rows)}


@dataclass(frozen=True)
class _Tally:
    """Rows by label."""

    rows: dict[Any, int]

    @staticmethod
    def finder(column: Source) -> Callable[[Block], _Tally]:
        return _Teller(LabelSet.finder(column))

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(self.rows | {label: n + self.rows.get(label, 0) for label, n in other.rows.items()})


@dataclass(frozen=True)
class _Teller:
    """Rows by label of a block; labels are refused as a fit refuses them. Can be sent to a worker."""

    finder: Callable[[Block], LabelSet]

    def __call__(self, block: Block) -> _Tally:
        self.finder(block)
        counts = pc.value_counts(_column_of(block))
        return _Tally(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


def _column_of(run: Block) -> pa.Array:
    """The target of a run of a `target_column`: text, flags or numbers; rows of weight 0 are none."""
    if isinstance(run.X, pa.Table):
        column = run.X.column(0).combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    elif run.y is None:
        raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
    else:
        column = pa.array(run.y)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if run.weight is None else column.filter(pa.array(run.weight > 0))
