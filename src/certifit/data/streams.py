"""Tables that are there already: anything that hands out an Arrow stream as often as it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from certifit.data.arrow import ArrowSource
from certifit.data.roles import Roles, features

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
