"""Formats that carry their types: Parquet, Feather and Arrow files, JSON lines.

Parquet is read in constant memory, its page checksums verified. `pre_buffer` would hold whole row groups; a small
buffer per column keeps memory at a few pages, at the same speed. Page checksums do not cover the footer and the headers
of pages: `Footer` checks those.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from certifit.data.formats.json_faults import first_fault
from certifit.data.formats.paths import Unchanged, refused_memory
from certifit.data.roles import repeated_names

_BUFFER = 1 << 16  # bytes per column; as fast as larger ones


class ParquetFiles:
    """Files of one schema, in order."""

    skipped = 0
    is_text = False

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = list(paths)
        self.unchanged = Unchanged(self.paths)
        self.rows: list[int] = []
        schemas = []
        self.checksummed = True
        self.counted: set[tuple[str, str]] = set()  # (path, column) whose pages were counted
        self._last: tuple[str, Footer] | None = None
        for path in self.paths:
            with _opened(path) as file:
                schemas.append(_schema(path, file))
                self.rows.append(file.metadata.num_rows)
                self.checksummed &= self._footer(path).has_checksums(path)
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
        """Once per column: the heads of its pages, which no checksum covers, must add up."""
        new = {name for name in columns if (path, name) not in self.counted}
        if new:
            self.checksummed &= self._footer(path).check_pages(path, new)
            self.counted |= {(path, name) for name in new}

    def _footer(self, path: str) -> Footer:
        """That of a file. The last one is kept: one of thousands of columns takes long to read."""
        if self._last is None or self._last[0] != path:
            self._last = path, Footer(path)
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_last": None}

    def place(self, row: int) -> str:
        """Where a row stands."""
        return _place(self.paths, self.rows, row, "row")


def parquet_schema(paths: Sequence[str]) -> pa.Schema:
    """Names and types of the columns, from what Arrow reads of the footers."""
    schemas = []
    for path in paths:
        with _opened(path) as file:
            schemas.append(_schema(path, file))
    return _common(list(paths), schemas)


def _place(paths: Sequence[str], rows: Sequence[int], row: int, word: str) -> str:
    """The file of a row, and its number in it from 1."""
    for path, n_rows in zip(paths, rows, strict=True):
        if row < n_rows:
            return f"{word} {row + 1} of {path!r}"
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
        raise ValueError(f"{path!r} has more than one column named {', '.join(map(repr, repeated))}. Rename them.")
    return schema


def _common(paths: list[str], schemas: list[pa.Schema]) -> pa.Schema:
    """The schema of all files; a difference is named. A column without a value (type null) may be of any type."""
    names = schemas[0].names
    expected, types = set(names), dict[str, pa.DataType]()
    for path, schema in zip(paths, schemas, strict=True):
        present = set(schema.names)
        missing = [name for name in names if name not in present]
        extra = [name for name in schema.names if name not in expected]
        if missing or extra:
            what = f"lacks column {missing[0]!r}" if missing else f"has a column {extra[0]!r}"
            raise ValueError(f"{path!r} {what}, unlike {paths[0]!r}. All files of a scan need the same columns.")
        for name in names:
            stored, known = schema.field(name).type, types.setdefault(name, schema.field(name).type)
            if known == pa.null():
                types[name] = stored
            elif stored not in (known, pa.null()):
                first = next(p for p, s in zip(paths, schemas, strict=True) if s.field(name).type == known)
                raise ValueError(
                    f"Column {name!r} is {stored} in {path!r} and {known} in {first!r}. Make them one type."
                )
    return pa.schema([(name, types[name]) for name in names])


# ---- the footer and the headers of pages -----------------------------------------------------------------------------
# A file states most facts twice. Every row group repeats the names and types of the schema; the values in the pages of
# a column add up to the rows of its group; the Arrow schema, where there is one, repeats the types. One changed bit
# makes two of them differ. Footer and headers are in Thrift's compact form, which is read here, because pyarrow can
# end the process on a damaged footer.

_HEAD = 256
Struct = dict[int, Any]


class Damaged(ValueError):
    """Two places of a file contradict each other."""


@dataclass(frozen=True)
class Chunk:
    """The pages of one column in one row group."""

    name: str
    begin: int
    size: int
    n_values: int


@dataclass(frozen=True)
class Head:
    """That of a page: its values, whether it states a checksum, and the bytes that it and its page take."""

    n_values: int
    has_checksum: bool
    size: int

    @classmethod
    def read(cls, descriptor: int, at: int) -> Head:
        """The one that begins at a byte of a file."""
        page, length = _page(descriptor, at)
        values = page.get(5) or page.get(8)
        return cls(values[1] if values else 0, 4 in page, length + abs(page[3]))


Leaf = tuple[tuple[bytes, ...], int, bool]  # path, physical type, whether one value is one row


class Footer:
    """The facts of a footer, checked against each other."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            file.seek(-8, os.SEEK_END)
            size = int.from_bytes(file.read(4), "little")
            file.seek(-8 - size, os.SEEK_END)
            data = file.read(size)
        with _readable("its footer"):
            facts = _struct(data, 0)[0]
            leaves = list(_leaves(iter(facts[2])))
            self.n_leaves = len(leaves)
            self.chunks = list(_chunks(facts[4], leaves))
            if sum(group[3] for group in facts[4]) != facts[3]:
                raise Damaged("its row groups do not add up to its rows")
        self._heads: dict[int, Head] = {}  # of the first pages of columns, by place

    def has_checksums(self, path: str) -> bool:
        """Whether the first page of every column of the first row group has one."""
        with open(path, "rb") as file, _readable("the head of a page"):
            for chunk in self.chunks[: self.n_leaves]:
                head = self._heads[chunk.begin] = Head.read(file.fileno(), chunk.begin)
                if not head.has_checksum:
                    return False
        return True

    def check_pages(self, path: str, columns: Collection[str]) -> bool:
        """Count the values of all pages of these columns; whether every page has a checksum."""
        has_checksums = True
        with open(path, "rb") as file, _readable("the head of a page"):
            for chunk in self.chunks:
                if chunk.name not in columns:
                    continue
                at, n_values = chunk.begin, 0
                while at < chunk.begin + chunk.size:
                    head = self._heads.get(at) or Head.read(file.fileno(), at)
                    n_values += head.n_values
                    has_checksums &= head.has_checksum
                    at += head.size
                if at != chunk.begin + chunk.size or n_values != chunk.n_values:
                    raise Damaged(f"the pages of column {chunk.name!r} hold {n_values} values, not {chunk.n_values}")
        return has_checksums


def _chunks(groups: list[Struct], leaves: list[Leaf]) -> Iterator[Chunk]:
    """The columns of the row groups, whose names, types and numbers of values must agree with the schema."""
    for group in groups:
        if len(group[1]) != len(leaves):
            raise Damaged("a row group lacks a column")
        for column, (names, kind, is_flat) in zip(group[1], leaves, strict=True):
            facts = column[3]
            if tuple(facts[3]) != names or facts[1] != kind:
                raise Damaged(f"it gives column {names[-1].decode(errors='replace')!r} two names or types")
            if is_flat and facts[5] != group[3]:
                raise Damaged(f"column {names[-1].decode(errors='replace')!r} has {facts[5]} values in {group[3]} rows")
            begin = min(at for at in (facts[9], facts.get(11)) if at)
            yield Chunk(names[0].decode(errors="replace"), begin, facts[7], facts[5])


@contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise Damaged(f"{what} cannot be read") from error


def check_schema(schema: pa.Schema, metadata: Any) -> None:
    """Compare the types of the schema with the Arrow schema that the writer stored beside it, if any."""
    import base64

    stored = (metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return
    try:
        other = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored, validate=True)))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged("its Arrow schema cannot be read") from error
    if other.names != schema.names:
        raise Damaged("it gives its columns two names")
    for field, written in zip(schema, other, strict=True):
        if field.nullable != written.nullable or not _reads_as(written.type, field.type, metadata.format_version):
            raise Damaged(f"it gives column {field.name!r} two types, {written.type} and {field.type}")


def _reads_as(written: pa.DataType, read: pa.DataType, version: str) -> bool:
    """Whether a column written as one type may be read as the other.

    Seconds become milliseconds, old files round, and large text in a dictionary (a category of pandas) becomes text.
    """
    if pa.types.is_dictionary(written):  # numbers in a dictionary are read as numbers
        values = read.value_type if pa.types.is_dictionary(read) else read
        return bool(_short(written.value_type) == _short(values)) or _reads_as(written.value_type, values, version)
    if written == read or pa.types.is_nested(written) or isinstance(written, pa.BaseExtensionType):
        return True
    if pa.types.is_temporal(written):
        return bool(pa.types.is_temporal(read)) and (getattr(written, "unit", "s") == "s" or version in ("1.0", "2.4"))
    return bool(pa.types.is_integer(written) and pa.types.is_integer(read) and version == "1.0")


def _short(kind: pa.DataType) -> pa.DataType:
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def _leaves(elements: Iterator[Struct]) -> Iterator[Leaf]:
    """The columns; a schema is a tree in preorder."""

    def under(path: tuple[bytes, ...], repeated: bool, n_children: int) -> Iterator[Leaf]:
        for _ in range(n_children):
            element = next(elements)
            here, again = (*path, element[4]), repeated or element.get(3) == 2
            if element.get(5):
                yield from under(here, again, element[5])
            else:
                yield here, element[1], not again

    return under((), False, next(elements)[5])


def _page(descriptor: int, at: int) -> tuple[Struct, int]:
    """The head of a page and its length in bytes."""
    data = os.pread(descriptor, _HEAD, at)
    try:
        return _struct(data, 0)
    except IndexError:  # a head may hold long text: the least and largest value of the page
        return _struct(os.pread(descriptor, 1 << 20, at), 0)


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(data, at)
        kind = head & 15
        if 4 <= kind <= 6 and data[at] < 0x80:  # most values: whole numbers of one byte
            fields[number], at = (data[at] >> 1) ^ -(data[at] & 1), at + 1
        else:
            fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return kind == 1, at
    if kind in (4, 5, 6):
        return _signed(data, at)
    if kind == 12:
        return _struct(data, at)
    if kind == 8:
        size, at = _varint(data, at)
        if at + size > len(data):
            raise IndexError("text beyond the end")
        return data[at : at + size], at + size
    if kind in (9, 10):
        return _list(data, at)
    return None, at + {3: 1, 7: 8}[kind]


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    values = []
    for _ in range(size):
        value, at = (data[at] == 1, at + 1) if kind in (1, 2) else _value(data, at, kind)
        values.append(value)
    return values, at


def _signed(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value | data[at] << shift, at + 1


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
    stream = pa.input_stream(path, compression="detect")
    if not hasattr(arrow_json, "open_json"):  # pyarrow before 20 reads a file whole
        table = arrow_json.read_json(stream, parse_options=options)
        return table.schema, iter(table.to_batches())
    reader = arrow_json.open_json(stream, parse_options=options)
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
            raise ValueError(
                f"{self.paths[0]!r} has more than one column named {', '.join(map(repr, repeated))}. Rename them."
            )
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
        return _place(self.paths, self.rows, row, "line" if self.opens is open_json else "row")

    @contextmanager
    def _readable(self, path: str) -> Iterator[Any]:
        try:
            yield
        except MemoryError as error:
            raise refused_memory(path, error) from error
        except (pa.ArrowException, OSError) as error:
            fault = first_fault(path) if self.is_text and isinstance(error, pa.ArrowInvalid) else None
            if fault is not None:
                raise ValueError(f"{path!r} is no {self.what}: {fault}") from error
            reason = re.sub(r" in row \d+\.?$", "", str(error).strip()) if self.is_text else str(error).strip()
            raise ValueError(f"{path!r} is cut, corrupt or no {self.what}: {reason.rstrip('.')}.") from error
