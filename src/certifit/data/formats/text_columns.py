"""Columns of text in files that carry their types: Parquet, Arrow, JSON lines.

Text stays text, unless a reading is asked for by a word of `types`, or every filled cell is a date, a time of
day, a number with a fraction or a number written as people write it ("$4,217.30"). Whole numbers stored as text
stay codes. Columns of whole numbers stay numbers, unless all are dates such as 20260131.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.arrow import READING
from certifit.data.formats.cell_types import DIGITS, KINDS, LOWER, CellType, Decision, Look, named_type
from certifit.data.formats.csv_text import MISSING
from certifit.data.formats.paths import Around
from certifit.data.roles import refuse_unknown

_ROWS = 65_536
_FIRST_CELLS = 200
_WORDS = {pa.float64(): "number", pa.date32(): "date", pa.timestamp("us"): "date", pa.timestamp("us", "UTC"): "date",
          pa.time64("us"): "time"}  # fmt: skip


class TypedFiles(Protocol):
    """What is asked of files that carry their types."""

    paths: list[str]
    schema: pa.Schema

    @property
    def notes(self) -> list[str]:
        """What a report should say."""

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns."""


def read_texts(
    files: TypedFiles, names: Sequence[str], types: Mapping[str, str], is_recognised: bool, target: str | None = None
) -> TypedFiles | ReadTexts:
    """The files, columns of text among `names` read by `types`, or by what all their cells are; as they are else.

    target: months and whole numbers in it are no dates.
    """
    for name in types:
        refuse_unknown(name, files.schema.names, repr(files.paths[0]))
    texts = [name for name in names if _is_text(files.schema.field(name).type)]
    as_text = [name for name in names if types.get(name) == "text" and name not in texts]
    whole = [name for name in names if _is_whole(files.schema.field(name).type)]
    asked = {name: types[name] for name in texts if types.get(name, "text") != "text"}
    asked |= {name: "date" for name in whole if types.get(name) == "date"}
    _refuse_types(files, types, [*texts, *as_text, *asked])
    free = [name for name in (*texts, *whole) if name not in types and (name in texts or name != target)]
    free = free if is_recognised else []
    looks = _looks(files, list(asked), _likely(files, free))
    decisions = {name: _asked(files, name, word, looks[name]) for name, word in asked.items()}
    decisions |= {name: _recognised(look, name != target) for name, look in looks.items() if name in free}
    taken = {name: decision for name, decision in decisions.items() if decision.kind is not None}
    return ReadTexts(files, taken, as_text) if taken or as_text else files


class ReadTexts(Around):
    """Files with some columns of text read as dates or numbers, and some columns of numbers as text."""

    def __init__(self, files: TypedFiles, decisions: Mapping[str, Decision], as_text: Sequence[str]) -> None:
        self.files, self.decisions, self.as_text = files, dict(decisions), set(as_text)
        self.schema = pa.schema([self._field(field) for field in files.schema])

    def _field(self, field: pa.Field) -> pa.Field:
        if field.name in self.as_text:
            return pa.field(field.name, pa.string())
        if field.name not in self.decisions:
            return field
        kind = self._kind(field.name)
        return pa.field(field.name, kind.type, metadata={READING: kind.word or _WORDS.get(kind.type, "flag")})

    def _kind(self, name: str) -> CellType:
        kind = self.decisions[name].kind
        assert kind is not None
        return kind

    @property
    def notes(self) -> list[str]:
        """What a report should say."""
        said = [
            f"Column {name!r} {(decision.note or _plain_note(self._kind(name))).replace('COLUMN', repr(name))}."
            for name, decision in self.decisions.items()
        ]
        return [*self.files.notes, *said]

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for batch in self.files.batches(columns, size):
            arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name in columns:
                if name in self.as_text:
                    arrays[name] = pc.cast(arrays[name], pa.string())
                elif name in self.decisions:
                    arrays[name] = self._kind(name).converted(_cells(arrays[name]))
            yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], schema=schema)


def _plain_note(kind: CellType) -> str:
    return f"holds {kind.plural} as text, read as {kind.plural}. To keep it as text: types={{COLUMN: 'text'}}"


def _is_text(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_whole(kind: pa.DataType) -> bool:
    """Whether numbers of the type can be dates such as 20260131."""
    return bool(pa.types.is_int32(kind) or pa.types.is_int64(kind))


def _cells(column: pa.Array) -> pa.Array:
    """Text, null where a cell is a sign for no value."""
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    column = pc.cast(column, pa.string())
    return pc.if_else(pc.is_in(column, value_set=pa.array(MISSING, pa.string())), pa.scalar(None, pa.string()), column)


def _refuse_types(files: TypedFiles, types: Mapping[str, str], readable: Sequence[str]) -> None:
    for name, word in types.items():
        named_type(name, word)
        if name not in readable and word not in ("text", "number" if _is_whole(files.schema.field(name).type) else ""):
            kind = files.schema.field(name).type
            raise ValueError(
                f"types={{{name!r}: {word!r}}} asks for another reading, but {files.paths[0]!r} holds the column as "
                f"{kind}. Only columns of text can be read otherwise."
            )


def _likely(files: TypedFiles, names: Sequence[str]) -> list[str]:
    """The columns whose first filled cells all are dates or numbers."""
    if not names:
        return []
    batch = next(iter(files.batches(list(names), _ROWS)))
    likely = []
    for name in names:
        look = Look()
        look.add(_cells(batch.column(name)).drop_null()[:_FIRST_CELLS])
        look.count()
        likely += [name] if look.n_cells and _recognised(look).kind is not None else []
    return likely


def _looks(files: TypedFiles, asked: Sequence[str], likely: Sequence[str]) -> dict[str, Look]:
    """What the cells of some columns are: one pass."""
    looks = {name: Look() for name in (*asked, *likely)}
    if looks:
        for batch in files.batches(list(looks), _ROWS):
            for name, look in looks.items():
                look.add(_cells(batch.column(name)))
    for look in looks.values():
        look.count()
    return looks


def _recognised(look: Look, may_be_month: bool = True) -> Decision:
    """A reading that suits every filled cell, but for whole numbers, flags and nothing at all."""
    decision = look.decide(may_be_month=may_be_month)
    is_taken = decision.kind is not None and (decision.kind.type in _WORDS) and not decision.bad_cells
    return decision if is_taken else Decision(None)


def _asked(files: TypedFiles, name: str, word: str, look: Look) -> Decision:
    meant = named_type(name, word)
    if meant is LOWER:
        return Decision(LOWER, note=f"was read as {LOWER.plural}")
    kinds = [kind for kind in KINDS if kind is meant or (kind.type == meant and kind.word in ("", word))]
    for kind in kinds:
        if look.of_kind[KINDS.index(kind)] == look.n_cells:
            return Decision(kind, note=f"was read as {kind.plural}")
    is_whole = _is_whole(files.schema.field(name).type)
    article = DIGITS.article if is_whole else kinds[0].article
    raise ValueError(f"Column {name!r} of {files.paths[0]!r} has cells that are not {article}: it is no {word}.")
