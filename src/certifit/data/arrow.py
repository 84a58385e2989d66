"""Arrow tables as sources of rows: tables in memory, re-openable streams, files.

Rows come as record batches of any size and leave as stretches of blocks by global row number. A table source needs
a map to numbers: `TableEncoder` turns its columns into segments the compiled core reads in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from hashlib import blake2b

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.columns import Array, Bits
from certifit.data.labels import codes_of, label_column
from certifit.data.offsets import added, refuse_no_exposure
from certifit.data.privacy import cell
from certifit.data.roles import Roles, features
from certifit.data.source import Block, Source
from certifit.data.view import Target, View


class ArrowSource(Source):
    """Rows of an Arrow schema. `open_batches` starts again at row 0 on every call.

    place(row) says where a row stands, for errors: "row 17", "line 19 of 'a.csv'".
    """

    is_table = True

    def __init__(
        self,
        open_batches: Callable[[], Iterable[pa.RecordBatch]],
        schema: pa.Schema,
        target: str | None = None,
        weight: str | None = None,
        columns: list[str] | None = None,
        place: Callable[[int], str] = "row {}".format,
        n_rows: int | None = None,
        group: str | None = None,
        offset: str | None = None,
        exposure: str | None = None,
    ) -> None:
        roles = Roles(target, weight, group, offset, exposure)
        self.view = View.of(roles)
        self.open_batches = open_batches
        self.schema = schema
        self.set_names([name for name in schema.names if name not in roles.columns()] if columns is None else columns)
        self.named = True
        self.target = target or "y"
        self.place = place
        self.n_rows = n_rows

    def select(self, columns: Sequence[str]) -> ArrowSource:
        """The same rows with only these feature columns."""
        other = copy(self)
        other.set_names(features(self.names, Roles(), columns, "The table"))
        return other

    def narrow(self) -> ArrowSource:
        """The same rows with one feature column."""
        return self.select(self.names[:1])

    def reading(self, target: Target, classes: Array | None = None) -> ArrowSource:
        """The same rows with their target read in another way: raw, it is their only column."""
        other = copy(self)
        other.view = self.view.reading(target, classes)
        if target is Target.RAW:
            other.set_names([self.target])
        return other

    def stretches(self) -> Iterator[Block]:
        """Runs of rows as Arrow tables of the feature columns."""
        first_row = 0
        for table in self._tables(self.rows_of_stretch()):
            yield self.block(table, first_row)
            first_row += table.num_rows

    def block(self, table: pa.Table, first_row: int) -> Block:
        """Rows of the schema as a block; target, weight, offset and exposure checked."""
        roles = self.view.roles
        y = self._target(table, first_row) if self.view.has_target else None
        weight, offset, exposure = (
            None if name is None else self._numbers(table, name, first_row, role)
            for role, name in (("weight", roles.weight), ("offset", roles.offset), ("exposure", roles.exposure))
        )
        if weight is not None and (weight < 0).any():
            at = int(np.flatnonzero(weight < 0)[0])
            raise ValueError(
                f"Weight {roles.weight!r} is negative at {self.place(first_row + at)}: {cell(weight[at])}."
            )
        if exposure is not None:
            refuse_no_exposure(exposure, f"Exposure {roles.exposure!r}", lambda at: self.place(first_row + at))
        group = None if roles.group is None else group_keys(table.column(roles.group))
        return Block(table.select(self.names), y, weight, first_row, group, added(offset, exposure))

    def _tables(self, size: int) -> Iterator[pa.Table]:
        return rebatched(self.open_batches(), size)

    def _target(self, table: pa.Table, first_row: int) -> Array:
        if self.view.classes is None:
            return self._numbers(table, self.target, first_row, "target")
        return codes_of(label_column(table.column(self.target), self.target, self.place, first_row), self.view.classes)

    def _numbers(self, table: pa.Table, name: str, first_row: int, role: str) -> Array:
        """A column with a role as float64; every entry must be a finite number."""
        column = one_chunk(table.column(name))
        if not (
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_boolean(column.type)
            or pa.types.is_decimal(column.type)
        ):
            raise TypeError(f"Column {name!r} is {column.type}, but the {role} must be numbers.")
        if column.null_count:
            at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise ValueError(f"Column {name!r} is empty at {self.place(first_row + at)}. Remove such rows first.")
        # Whole numbers beyond 2^53 become the nearest float64, as they do in an array.
        values = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if not np.isfinite(values).all():
            at = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"Column {name!r} is NaN or infinite at {self.place(first_row + at)}.")
        return np.ascontiguousarray(values)


def group_keys(column: pa.ChunkedArray | pa.Array) -> Array:
    """A key a row: 64 bits of a hash of the value's text, so numbers of any width and texts agree on every engine."""
    codes = pc.dictionary_encode(one_chunk(column), null_encoding="encode")
    if pa.types.is_dictionary(one_chunk(column).type):
        codes = one_chunk(column)
    words = ["" if value is None else str(value) for value in codes.dictionary.to_pylist()]
    keys = np.array([key_of(word) for word in [*words, ""]], dtype=np.uint64)  # last: no value
    return np.asarray(keys[pc.fill_null(codes.indices, len(words)).to_numpy(zero_copy_only=False)])


def key_of(word: str) -> int:
    """64 bits of a hash of a text."""
    return int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")


def rebatched(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of `size` rows (the last may be shorter). A batch of that size is passed on as it is."""
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in batches:
        begin = 0
        while begin < batch.num_rows:
            piece = batch.slice(begin, size - n_held)
            held.append(piece)
            n_held += piece.num_rows
            begin += piece.num_rows
            if n_held == size:
                yield pa.Table.from_batches(held)
                held, n_held = [], 0
    if held:
        yield pa.Table.from_batches(held)


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece; a copy only if it was in several."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


def valid_bits(column: pa.Array) -> Bits | None:
    """The validity bits of a column; None where every row is valid."""
    buffer = column.buffers()[0]
    if column.null_count == 0 or buffer is None:
        return None
    return Bits(np.frombuffer(buffer, dtype=np.uint8), column.offset)


def values_of(column: pa.Array) -> Array | Bits:
    """The numbers of a column in place: an array, or bits for booleans."""
    buffer = column.buffers()[1]
    if pa.types.is_boolean(column.type):
        return Bits(np.frombuffer(buffer, dtype=np.uint8), column.offset)
    dtype = np.dtype(column.type.to_pandas_dtype())
    return np.frombuffer(buffer, dtype=dtype, count=column.offset + len(column))[column.offset :]
