"""Rows that are read once: those of files parsed, those of a table encoded.

Rows of files are kept in memory where they fit the budget of `certifit.memory`; text files that do not fit are written
once, parsed, to a temporary file. The budget decides how long a fit takes and never what it finds: kept, written and
read anew, they are the same rows in the same blocks.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from certifit.data.arrow import number_type, values_of
from certifit.data.columns import Bits, Columns, Dense, Missing, Number, Segment
from certifit.data.picked import FEW_ROWS
from certifit.data.source import Block, Result, Source
from certifit.data.source_wrappers import Wrapped
from certifit.runtime import in_order, memory_limit

if TYPE_CHECKING:
    from certifit.data.files import Files

_BATCH_ROWS = 65_536
_MOST_TEXT = (1 << 31) - 1  # bytes of one piece of Arrow's text
_MOST_CHOSEN = 8  # choices of columns that are kept
_SPARE = 1.1  # times the size that rows are expected to have, free on the disk before they are written
PASSES_UNTIL_KEPT = 2  # a closed form reads encoded rows twice; a solver that iterates reads them a third time
WHOLE = 4  # times the rows as float64: where memory has room for it, rows in memory are one stretch: threads start once


class Place(Enum):
    """Where the parsed rows of files are after the first pass."""

    MEMORY = "memory"
    DISK = "a temporary file"
    FILES = "the files alone"


class KeptFiles:
    """Files whose rows are parsed once, by the first pass, which reads all columns that any later pass may ask for.

    may_spill: whether text that does not fit the memory budget may be written, parsed, to a temporary file without a
    name: no other program can open it, and it is gone when this process ends, in whatever way. Parquet is never
    written again: reading it costs as much as reading the copy.
    """

    def __init__(self, files: Files, columns: Sequence[str], may_spill: bool) -> None:
        self.files, self.columns, self.may_spill = files, list(columns), may_spill
        self.limit = memory_limit()  # here: a thread that reads ahead knows no limit of this one
        self.place_of_rows: Place | None = None
        self.why = ""  # a sentence on why the rows are read anew in every pass, where they are
        self._table: pa.Table | None = None
        self._chosen: dict[tuple[str, ...], pa.Table] = {}
        self._spill: Spill | None = None
        self._filling = Lock()

    def __getattr__(self, name: str) -> Any:
        """Facts of the files: schema, n_rows, skipped, checksummed, notes, place."""
        if name.startswith("_") or name == "files":
            raise AttributeError(name)
        return getattr(self.files, name)

    @property
    def in_memory(self) -> bool:
        """Whether a pass reads no file."""
        return self._table is not None

    def batches(self, columns: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All rows of these columns."""
        self.fill()
        if self._table is not None:
            yield from self.table(columns).to_batches()
        elif self._spill is not None:
            yield from self._spill.batches(columns)
        else:
            yield from self.files.batches(columns, size)

    def table(self, columns: Sequence[str]) -> pa.Table:
        """All rows of these columns, once they are in memory: folds ask again and again, and to choose takes long."""
        assert self._table is not None
        names = tuple(columns)
        if names not in self._chosen:
            if len(self._chosen) == _MOST_CHOSEN:
                self._chosen.clear()
            self._chosen[names] = self._table.select(list(columns))
        return self._chosen[names]

    def fill(self) -> Place:
        """Parse the rows, where that is not done, and say where they are."""
        with self._filling:
            if self.place_of_rows is None:
                self.place_of_rows = self._filled()
            return self.place_of_rows

    def note(self, n_passes: int) -> str | None:
        """What a user has to know before a long wait: that text is parsed anew in every pass, of so many expected."""
        if self.fill() is not Place.FILES or not self.files.is_text:
            return None
        return (
            f"The parsed rows do not fit in {self.limit / 1e9:.2g} GB of memory and {self.why}: the files are parsed "
            f"anew for every pass over the rows, some {n_passes:,} passes; more where a solver takes more steps."
        )

    def close(self) -> None:
        """Forget the rows; the temporary file is gone."""
        self._table = None
        self._chosen = {}
        if self._spill is not None:
            self._spill.close()
            self._spill = None
        self.place_of_rows = None

    def _filled(self) -> Place:
        if not self.files.is_text and self._least_bytes() > self.limit:
            return Place.FILES  # no row is read to find that out
        size = 0
        held = Held(self.files.n_rows, self.limit // (8 * len(self.columns)))
        batches = self.files.batches(self.columns, _BATCH_ROWS)
        for batch in batches:
            size += batch.nbytes
            held.add(batch)
            if size > self.limit:
                return self._spilled(held, batches, size)
        self._table = held.table()
        return Place.MEMORY

    def _least_bytes(self) -> float:
        """Bytes of the columns whose values all take as many."""
        kinds = [self.files.schema.field(name).type for name in self.columns]
        return float(self.files.n_rows * sum(kind.bit_width for kind in kinds if pt.is_primitive(kind)) / 8)

    def _spilled(self, held: Held, batches: Iterator[pa.RecordBatch], size: int) -> Place:
        needed = _SPARE * size * self.files.n_rows / max(held.n_rows, 1)
        self.why = self._refused(needed)
        if self.why:
            batches.close()  # type: ignore[attr-defined]  # a generator, which lets go of its file
            return Place.FILES
        spill = Spill()
        try:
            for batch in held.taken():
                spill.add(batch)
            for batch in batches:
                spill.add(batch)
        except OSError as error:
            spill.close()
            self.why = f"the temporary file could not be written ({error.strerror})"
            return Place.FILES
        except BaseException:
            spill.close()
            raise
        self._spill = spill
        return Place.DISK

    def _refused(self, needed: float) -> str:
        """Why rows of so many bytes are not written to a temporary file; empty where they may be."""
        if not self.files.is_text:
            return "Parquet is read again as fast as a copy of it"
        if not self.may_spill:
            return "a temporary file is not allowed"
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free
        if needed > free:
            return (
                f"a temporary file of {needed / 1e9:.3g} GB is needed and {folder!r} has {free / 1e9:.3g} GB free; "
                "TMPDIR names another folder"
            )
        return ""


class Held:
    """Rows as they come, at last one table whose columns are in one piece, so that any stretch of rows is a slice.

    Numbers are copied to their place at once, for never are there two copies of all rows: memory that was not used
    before takes the system as long to give as a file takes to decode. most: rows up to which a place is kept for them.
    """

    def __init__(self, n_rows: int, most: int) -> None:
        self.n_expected = n_rows if n_rows <= most else 0
        self.n_rows = 0
        self._columns: dict[str, HeldColumn] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Rows behind the others."""
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name not in self._columns:
                self._columns[name] = HeldColumn(column.type, self.n_expected)
            self._columns[name].add(column)
        self.n_rows += batch.num_rows

    def table(self) -> pa.Table:
        """All rows; column by column, each freed as it is joined."""
        names = list(self._columns)
        joined = in_order(lambda name: self._columns.pop(name).joined(), names)
        return pa.table(dict(zip(names, joined, strict=True)))

    def taken(self) -> Iterator[pa.RecordBatch]:
        """All rows, which are let go of."""
        columns, self._columns = self._columns, {}
        yield from pa.table({name: pa.chunked_array(column.parts()) for name, column in columns.items()}).to_batches()


class HeldColumn:
    """One column: numbers in their place while there is no gap, else the pieces as they came."""

    def __init__(self, kind: pa.DataType, n_rows: int) -> None:
        self._kind, self._n_rows = kind, 0
        self._pieces: list[pa.Array] = []
        self._place: pa.Buffer | None = None
        if n_rows and (pt.is_integer(kind) or pt.is_floating(kind)):
            self._place = pa.allocate_buffer(n_rows * kind.bit_width // 8)
            self._numbers = np.frombuffer(self._place, number_type(kind))

    def add(self, piece: pa.Array) -> None:
        """Rows behind the others."""
        end = self._n_rows + len(piece)
        if self._place is not None and (piece.null_count or end > len(self._numbers)):
            self._pieces, self._place = self.parts(), None
        if self._place is None:
            self._pieces.append(piece)
        elif len(piece):
            self._numbers[self._n_rows : end] = values_of(piece)
        self._n_rows = end

    def parts(self) -> list[pa.Array]:
        """The rows in pieces."""
        if self._place is None:
            return self._pieces
        return [pa.Array.from_buffers(self._kind, self._n_rows, [None, self._place])]

    def joined(self) -> pa.ChunkedArray | pa.Array:
        """The rows in one piece, where that may be."""
        parts = self.parts()
        if len(parts) == 1:
            return parts[0]
        is_apart = pt.is_dictionary(self._kind) or sum(part.nbytes for part in parts) > _MOST_TEXT
        return pa.chunked_array(parts) if is_apart else pa.concat_arrays(parts)


class Spill:
    """Parsed rows in a temporary file, every column of a batch apart, so that a pass reads only what it asks for."""

    def __init__(self) -> None:
        # No name, readable by its owner alone; on Linux it never has a name.
        self.file = tempfile.TemporaryFile(prefix="certifit-")  # noqa: SIM115 (closed by close)
        self._places: list[dict[str, tuple[int, int]]] = []  # of every batch: column -> first byte, how many
        self._end = 0
        self._lock = Lock()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch behind the others."""
        places = {}
        for name in batch.schema.names:
            column = batch.select([name])
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, column.schema) as writer:
                writer.write_batch(column)
            data = sink.getvalue()
            self.file.write(data)
            places[name] = self._end, data.size
            self._end += data.size
        self._places.append(places)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of these columns, batch by batch."""
        for places in self._places:
            arrays = [self._read(*places[name]).column(0) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def close(self) -> None:
        """Remove the file."""
        self.file.close()

    def _read(self, first_byte: int, size: int) -> pa.RecordBatch:
        with self._lock:  # two passes may be under way
            self.file.seek(first_byte)
            data = self.file.read(size)
        return pa.ipc.open_stream(data).read_next_batch()


# ---- encoded rows ----------------------------------------------------------------------------------------------------


def kept_rows(source: Source, n_done: int = 0) -> Source:
    """The same rows; where they are read again and again and fit the memory budget, they are encoded once.

    n_done: passes over the encoded rows that were made already.
    """
    return Kept(source, n_done) if source.is_local else source


class Kept(Wrapped):
    """A source whose stretches are kept: by the first pass where its rows are in memory already, else by the third."""

    def __init__(self, inner: Source, n_done: int = 0) -> None:
        super().__init__(inner)
        self._shelf = Shelf(0 if inner.in_memory else PASSES_UNTIL_KEPT - n_done)
        n_rows = getattr(getattr(inner, "inner", inner), "n_rows", None) if inner.in_memory else None
        if n_rows and WHOLE * 8 * n_rows * inner.n_features <= self._shelf.limit:
            n_blocks = -(-n_rows // self.block_rows)
            self.stretch_rows = self.block_rows << (n_blocks - 1).bit_length()

    def over(self, inner: Source) -> Self:
        """Another source, whose rows are kept for themselves."""
        return type(self)(inner)

    def unkept(self) -> Source:
        """The inner source."""
        return self.inner

    def stretches(self) -> Iterator[Block]:
        """The stretches of the inner source, or those kept."""
        return self._shelf.through((self.block_rows, self.stretch_rows), self._cut().stretches)

    def map(self, f: Callable[[Block], Result]) -> Iterable[Result]:
        """f of every stretch. A pass that keeps nothing is one of the inner source, which may show what f does."""
        if self._shelf.n_before <= 0:
            yield from map(f, self.stretches())
        else:
            yield from self._cut().map(f)
            self._shelf.n_before -= 1

    def first_block(self) -> Block:
        """Rows of block 0; where all rows will be kept, they are kept now: a pass that ends early keeps none."""
        if self._shelf.n_before > 0:
            return self._cut().first_block()
        for _ in self.stretches():
            pass
        return super().first_block()


class Shelf:
    """Stretches of one source by the size of its blocks; all of them within the memory budget."""

    def __init__(self, n_passes: int) -> None:
        self.n_before = n_passes  # passes that keep nothing
        self.limit = memory_limit()
        self.n_bytes = 0
        self._whole: dict[Any, list[Block]] = {}
        self._too_large: set[Any] = set()

    def through(self, key: Any, read: Callable[[], Iterator[Block]]) -> Iterator[Block]:
        """The stretches of this key: those kept, else those read, which are kept where all of them fit."""
        if key in self._whole:
            yield from self._whole[key]
            return
        keeps = self.n_before <= 0 and key not in self._too_large
        held: list[Block] = []
        size = 0
        for read_stretch in read():
            stretch = packed(read_stretch) if keeps else read_stretch
            if keeps:
                size += block_bytes(stretch)
                held.append(stretch)
                if self.n_bytes + size > self.limit:
                    keeps = False
                    self._too_large.add(key)
                    held.clear()
            yield stretch
        self.n_before -= 1
        if keeps and key not in self._whole:
            self._whole[key] = held
            self.n_bytes += size


def packed(block: Block) -> Block:
    """A short block with its neighbouring numbers in one array: a pass then costs no time per column.

    Longer blocks stay as they are, views of the table without a copy.
    """
    if not isinstance(block.X, Columns) or block.n_rows > FEW_ROWS:
        return block
    segments: list[Segment] = []
    run: list[Segment] = []
    for segment in [*block.X.segments, None]:
        if isinstance(segment, Number | Missing | Dense):
            run.append(segment)
            continue
        if len(run) > 1:
            segments.append(Dense(np.concatenate([part.dense(block.n_rows) for part in run], axis=1)))
        else:
            segments += run
        run = []
        segments += [] if segment is None else [segment]
    return replace(block, X=Columns(segments, block.n_rows))


def block_bytes(block: Block) -> int:
    """Bytes of a block, those it has in common with the table it was made of included."""
    beside = sum(column.nbytes for column in (block.y, block.weight, block.group, block.offset) if column is not None)
    return beside + _bytes(block.X)


def _bytes(X: Any) -> int:
    if isinstance(X, np.ndarray):
        return X.nbytes
    if isinstance(X, Bits):
        return 0  # one bit per row
    if isinstance(X, Columns):
        return sum(_bytes(value) for segment in X.segments for value in vars(segment).values())
    if hasattr(X, "indptr"):
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    return int(getattr(X, "nbytes", 0))
