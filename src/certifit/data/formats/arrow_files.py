"""Feather and Arrow files, and JSON lines: formats that carry their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from certifit.data.formats.paths import Unchanged, refused_memory
from certifit.data.roles import repeated_names

Opened = tuple[pa.Schema, Iterator[pa.RecordBatch]]


def open_arrow(path: str, schema: pa.Schema | None) -> Opened:
    """The batches of a Feather (Arrow IPC) file or stream."""
    source = pa.memory_map(path) if not path.endswith((".gz", ".zst")) else pa.input_stream(path, compression="detect")
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)
    return file.schema, (file.get_batch(k) for k in range(file.num_record_batches))


def open_json(path: str, schema: pa.Schema | None) -> Opened:
    """The objects of a file of JSON lines, one per line."""
    import pyarrow.json as arrow_json

    options = arrow_json.ParseOptions(explicit_schema=schema) if schema is not None else None
    reader = arrow_json.open_json(pa.input_stream(path, compression="detect"), parse_options=options)
    return reader.schema, iter(reader)


class ArrowFiles:
    """Files of one schema, in order. JSON lines are read once here, for all objects may tell the names and types."""

    skipped, checksummed = 0, False

    def __init__(self, paths: Sequence[str], opens: Callable[[str, pa.Schema | None], Opened], what: str) -> None:
        self.paths, self.opens, self.what = list(paths), opens, what
        self.is_text = opens is open_json
        self.unchanged = Unchanged(self.paths)
        self.notes: list[str] = []
        self.schema = pa.unify_schemas([self._schema(path) for path in self.paths], promote_options="permissive")
        if repeated := repeated_names(self.schema.names):
            raise ValueError(f"{self.paths[0]!r} has more than one column named {repeated}. Rename them.")
        self.rows = [sum(batch.num_rows for batch in self._read(path, self.schema)) for path in self.paths]
        self.n_rows = sum(self.rows)
        if not self.n_rows:
            raise ValueError(f"{self.paths[0]!r} has no rows.")

    def _schema(self, path: str) -> pa.Schema:
        """Of the first block; of later blocks where they have names or types that it lacks."""
        with self._readable(path):
            schema, _ = self.opens(path, None)
            if self.opens is open_json:
                import pyarrow.json as arrow_json

                try:
                    for _ in self.opens(path, None)[1]:
                        pass
                except pa.ArrowInvalid:  # a number, then a text; a name that comes later
                    schema = arrow_json.read_json(pa.input_stream(path, compression="detect")).schema
            return schema.remove_metadata()

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for path in self.paths:
            self.unchanged.check(path)
            for batch in self._read(path, self.schema):
                table = pa.Table.from_batches([batch]).select(list(columns)).cast(schema)
                yield from table.to_batches(max_chunksize=size)
            self.unchanged.check(path)

    def _read(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with self._readable(path):
            for batch in self.opens(path, schema)[1]:
                columns = [
                    batch.column(field.name)
                    if field.name in batch.schema.names
                    else pa.nulls(batch.num_rows, field.type)
                    for field in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, names=schema.names)

    def place(self, row: int) -> str:
        """Where a row stands."""
        for path, n_rows in zip(self.paths, self.rows, strict=True):
            if row < n_rows:
                return f"{'line' if self.opens is open_json else 'row'} {row + 1} of {path!r}"
            row -= n_rows
        return f"row {row}"

    @contextmanager
    def _readable(self, path: str) -> Iterator[Any]:
        try:
            yield
        except MemoryError as error:
            raise refused_memory(path, error) from error
        except (pa.ArrowException, OSError) as error:
            raise ValueError(
                f"{path!r} is cut, corrupt or no {self.what}: {str(error).strip().rstrip('.')}."
            ) from error
