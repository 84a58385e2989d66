"""Arrow tables as sources of rows: tables in memory, re-openable streams, files.

Rows come as record batches of any size and leave as stretches of blocks by global row number. A table source needs
a map to numbers: `TableEncoder` turns its columns into segments the compiled core reads in place.

Frames and arrays become Arrow tables; `from_arrow` takes what hands out an Arrow stream as often as it is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, Self

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

READING = b"certifit reading"  # of a field of a schema: the word that types= takes for how its cells were written


class ArrowSource(Source):
    """Rows of an Arrow schema. `open_batches` starts again at row 0 on every call.

    place(row) says where a row stands, for errors: "row 17", "line 19 of 'a.csv'".
    """

    is_table = True
    declared: Mapping[str, Sequence[str]] = MappingProxyType({})  # levels that types of columns name, in rows or not

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
        # Once: folds ask again and again, and fields of many columns take long to look at.
        self._readings = {
            field.name: field.metadata[READING].decode() for field in schema if READING in (field.metadata or {})
        }
        self.set_names([name for name in schema.names if name not in roles.columns()] if columns is None else columns)
        self.named = True
        self.target = target or "y"
        self.place = place
        self.n_rows = n_rows

    @classmethod
    def of_table(cls, table: pa.Table, target: str | None = None, weight: str | None = None, **roles: Any) -> Self:
        """The rows of a user's table; a column of pandas' categories declares its levels."""
        source = cls(table.to_batches, table.schema, target, weight, n_rows=table.num_rows, **roles)
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_dictionary(column.type):
                levels = [level for chunk in column.chunks for level in chunk.dictionary.to_pylist()]
                source.declared = {**source.declared, name: [str(level) for level in levels if level is not None]}
        return source

    @property
    def readings(self) -> dict[str, str]:
        """Columns whose cells were not written plainly, and the word for how: "decimal-comma", "day-first"."""
        names = set(self.names) if self._readings else set()
        return {name: word for name, word in self._readings.items() if name in names}

    @property
    def in_memory(self) -> bool:
        """Whether the batches are those of a table."""
        opener = self.open_batches.open_batches if isinstance(self.open_batches, Repeated) else self.open_batches
        return isinstance(getattr(opener, "__self__", None), pa.Table)

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
        return Block(self._features(table), y, weight, first_row, group, added(offset, exposure))

    def _features(self, table: pa.Table) -> pa.Table:
        return table.select(self.names)

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
            if pa.types.is_temporal(column.type):
                held = f"holds dates or times ({column.type})"
                instead = " Make numbers of them, such as days since a date."
            else:
                held, instead = f"is {column.type}", " For labels use a classifier." if role == "target" else ""
            raise TypeError(f"Column {name!r} {held}, but the {role} must be numbers.{instead}")
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
            is_whole = begin == 0 and batch.num_rows <= size - n_held
            piece = batch if is_whole else batch.slice(begin, size - n_held)
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


def number_type(kind: pa.DataType) -> np.dtype[Any]:
    """NumPy's type of numbers; pyarrow's own word for it, `to_pandas_dtype`, may import pandas."""
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    return np.dtype(f"{letter}{kind.bit_width // 8}")


def values_of(column: pa.Array) -> Array | Bits:
    """The numbers of a column in place: an array, or bits for booleans."""
    buffer = column.buffers()[1]
    if pa.types.is_boolean(column.type):
        return Bits(np.frombuffer(buffer, dtype=np.uint8), column.offset)
    return np.frombuffer(buffer, dtype=number_type(column.type), count=column.offset + len(column))[column.offset :]


# What a column of Python objects that Arrow cannot hold becomes: no kind reads it, so it is set aside.
MIXED = pa.struct([pa.field("mixed Python objects", pa.null())])


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns rather than an array."""
    return _is_pandas(X) or isinstance(X, pa.RecordBatch) or hasattr(X, "__arrow_c_stream__")


def frame_table(X: Any) -> pa.Table:
    """A frame (pandas, polars, pyarrow, anything with an Arrow stream) as an Arrow table."""
    if _is_pandas(X):
        names = [str(name) for name in X.columns]
        return _table([_pandas_column(X.iloc[:, j]) for j in range(X.shape[1])], names)
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    try:
        table = X if isinstance(X, pa.Table) else pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"X must be a table with named columns. Got {type(X).__name__}: {error}") from None
    refuse_repeated(table.column_names)
    return table


def array_table(X: Array) -> pa.Table:
    """The columns of a 2-D array as a table with columns x0, x1, ..."""
    return _table([_array_column(X[:, j]) for j in range(X.shape[1])], [f"x{j}" for j in range(X.shape[1])])


def refuse_repeated(names: Iterable[str]) -> None:
    """Refuse names that stand for more than one column."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"X has more than one column named {', '.join(map(repr, repeated))}. Rename them.")


def _table(columns: Sequence[Any], names: list[str]) -> pa.Table:
    refuse_repeated(names)
    return pa.table(list(columns), names=names)


def _is_pandas(X: Any) -> bool:
    return hasattr(X, "iloc") and hasattr(X, "columns")


def _pandas_column(series: Any) -> pa.Array | pa.ChunkedArray:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(series), MIXED)


def _array_column(values: Array) -> pa.Array:
    if values.dtype.kind == "f" and (values.dtype.itemsize > 8 or not values.dtype.isnative):
        values = values.astype(np.float64)
    elif values.dtype.kind in "iu" and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    try:
        return pa.array(values.tolist(), from_pandas=True) if values.dtype.kind == "O" else pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.nulls(len(values), MIXED)


_BATCH_ROWS = 65_536


def from_arrow(
    data: Any,
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    *,
    group: str | None = None,
    offset: str | None = None,
    exposure: str | None = None,
) -> ArrowSource:
    """A table to give to `fit` or `predict`: pyarrow, polars, pandas, a DuckDB relation, any `__arrow_c_stream__`.

    target, weight: the columns that hold y and the sample weight. columns: the features; default all others.
    group: the column whose equal values cross-validation keeps in one fold (a customer, a patient).
    offset: the column that is added to the score of a row. exposure: a column > 0 (time, people) whose log is added.
    The rows are read once per pass and must come in the same order each time: give a DuckDB query an ORDER BY.
    A polars LazyFrame is computed anew in batches on every pass. The index of a pandas frame is left out.
    """
    what = type(data).__name__
    schema, open_batches, n_rows = _opened(data, what)
    roles = Roles(target, weight, group, offset, exposure)
    chosen = features(schema.names, roles, columns, what)
    return ArrowSource(Repeated(open_batches, what), schema, columns=chosen, n_rows=n_rows, **roles.named())


class Repeated:
    """Opens a stream again and again; refuses one that has other rows the next time."""

    def __init__(self, open_batches: Callable[[], Iterable[pa.RecordBatch]], what: str) -> None:
        self.open_batches = open_batches
        self.what = what
        self.n_rows: int | None = None

    def __call__(self) -> Iterator[pa.RecordBatch]:
        """All batches."""
        n_rows = 0
        for batch in self.open_batches():
            n_rows += batch.num_rows
            yield batch
        if self.n_rows not in (None, n_rows):
            raise ValueError(
                f"{self.what} gave {self.n_rows:,} rows the first time and {n_rows:,} now. "
                "A fit reads its rows more than once: give a table or a query, not a stream."
            )
        self.n_rows = n_rows


def _opened(data: Any, what: str) -> tuple[pa.Schema, Callable[[], Iterable[pa.RecordBatch]], int | None]:
    """The schema, how to open the batches, and the number of rows if it is known."""
    if isinstance(data, pa.RecordBatchReader):
        raise TypeError("A RecordBatchReader can be read only once, and a fit reads its rows again. Give a table.")
    if _is_from(data, "pandas"):
        data = _of_pandas(data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.schema, data.to_batches, data.num_rows
    if _is_from(data, "polars") and hasattr(data, "collect_schema") and not hasattr(data, "__arrow_c_stream__"):
        return _of_lazy(data)
    if not hasattr(data, "__arrow_c_stream__"):
        raise TypeError(f"from_arrow needs a table that gives an Arrow stream (__arrow_c_stream__). Got {what}.")
    with pa.RecordBatchReader.from_stream(data) as reader:
        schema = _plain(reader.schema)
    height = getattr(data, "height", None)
    return schema, partial(_batches, data, schema), height if isinstance(height, int) else None


def _batches(data: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pa.RecordBatchReader.from_stream(data) as reader:
        for batch in reader:
            yield batch if batch.schema.equals(schema) else batch.cast(schema)


def _of_pandas(frame: Any) -> pa.Table:
    """Converted once. The index is no column."""
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(f"The frame has a column that is no table column: {error}") from error


def _of_lazy(frame: Any) -> tuple[pa.Schema, Callable[[], Iterable[pa.RecordBatch]], None]:
    if not hasattr(frame, "collect_batches"):
        raise TypeError("This polars cannot collect a LazyFrame in batches. Give frame.collect(), or write Parquet.")
    schema = _plain(frame.collect_schema().to_frame().to_arrow().schema)
    return schema, partial(_lazy_batches, frame, schema), None


def _lazy_batches(frame: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for part in frame.collect_batches(chunk_size=_BATCH_ROWS, maintain_order=True):
        yield from _batches(part, schema)


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with text views as text, which every kernel takes."""
    return pa.schema([(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    return kind


def _is_from(data: Any, library: str) -> bool:
    return type(data).__module__.partition(".")[0] == library
