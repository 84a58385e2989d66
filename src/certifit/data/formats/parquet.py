"""Parquet files: rows in constant memory, page checksums verified.

`pre_buffer` would hold whole row groups; a small buffer a column keeps memory at a few pages, at the same speed.
`parquet_check` covers what page checksums do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from certifit.data.formats.parquet_check import Damaged, Footer, check_schema
from certifit.data.formats.paths import Unchanged, refused_memory
from certifit.data.roles import repeated_names

_BUFFER = 1 << 20


class ParquetFiles:
    """Files of one schema, in order."""

    skipped = 0

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        self.unchanged = Unchanged(self.paths)
        self.rows: list[int] = []
        schemas = []
        self.checksummed = True
        self.counted: set[tuple[str, str]] = set()  # (path, column) whose pages were counted
        for path in self.paths:
            with _opened(path) as file:
                schemas.append(_schema(path, file))
                self.rows.append(file.metadata.num_rows)
                self.checksummed &= Footer(path).has_checksums(path)
        self.schema = _common(self.paths, schemas)
        self.n_rows = sum(self.rows)
        if not self.n_rows:
            raise ValueError(f"{self.paths[0]!r} has no rows.")

    @property
    def notes(self) -> list[str]:
        """What a report should say."""
        if self.checksummed:
            return []
        return ["The Parquet files carry no page checksums, so a damaged byte can go unnoticed."]

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for path, n_rows in zip(self.paths, self.rows, strict=True):
            self.unchanged.check(path)
            read = 0
            with _opened(path) as file:
                self._count_pages(path, columns)
                for batch in file.iter_batches(batch_size=size, columns=list(columns)):
                    read += batch.num_rows
                    chosen = batch.select(list(columns)).replace_schema_metadata(None)
                    yield chosen if chosen.schema.equals(schema) else chosen.cast(schema)
            self.unchanged.check(path)
            if read != n_rows:
                raise ValueError(f"{path!r} is corrupt: it has {read} rows and says {n_rows}.")

    def _count_pages(self, path: str, columns: Sequence[str]) -> None:
        """Once a column: the heads of its pages, which no checksum covers, must add up."""
        new = {name for name in columns if (path, name) not in self.counted}
        if new:
            self.checksummed &= Footer(path).check_pages(path, new)
            self.counted |= {(path, name) for name in new}

    def place(self, row: int) -> str:
        """Where a row stands."""
        for path, n_rows in zip(self.paths, self.rows, strict=True):
            if row < n_rows:
                return f"row {row} of {path!r}"
            row -= n_rows
        return f"row {row}"


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False, buffer_size=_BUFFER) as file:
            yield file
    except MemoryError as error:  # pyarrow's own is an ArrowException too
        raise refused_memory(path, error) from error
    except PermissionError as error:
        raise ValueError(f"{path!r} could not be read: {error.strerror}.") from error
    except (pa.ArrowException, Damaged, OSError, RuntimeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path!r} is cut, corrupt or no Parquet file: {str(error).strip().rstrip('.')}.") from error


def _schema(path: str, file: Any) -> pa.Schema:
    schema = file.schema_arrow.remove_metadata()
    check_schema(schema, file.metadata)
    if repeated := repeated_names(schema.names):
        raise ValueError(f"{path!r} has more than one column named {repeated}. Rename them.")
    return schema


def _common(paths: list[str], schemas: list[pa.Schema]) -> pa.Schema:
    """The schema of all files; a difference is named. A column without a value (type null) may be of any type."""
    names = schemas[0].names
    expected, types = set(names), dict[str, pa.DataType]()
    for path, schema in zip(paths, schemas, strict=True):
        own = set(schema.names)
        missing = [name for name in names if name not in own]
        extra = [name for name in schema.names if name not in expected]
        if missing or extra:
            what = f"lacks column {missing[0]!r}" if missing else f"has a column {extra[0]!r}"
            raise ValueError(f"{path!r} {what}, unlike {paths[0]!r}. All files of a scan need the same columns.")
        for name in names:
            found, known = schema.field(name).type, types.setdefault(name, schema.field(name).type)
            if known == pa.null():
                types[name] = found
            elif found not in (known, pa.null()):
                first = next(p for p, s in zip(paths, schemas, strict=True) if s.field(name).type == known)
                raise ValueError(
                    f"Column {name!r} is {found} in {path!r} and {known} in {first!r}. Make them one type."
                )
    return pa.schema([(name, types[name]) for name in names])
