"""Rows in parts: arrays sorted by a key, cut at multiples of a number of rows, each part read by itself.

A fit that goes over its rows again and again, and keeps numbers of every row in between, holds one part at a time. The
parts of local rows are in memory where the budget has room, else in temporary files without a name; those of Dask are
held by its workers (`data/engines/dask_parts.py`).

build     every stretch becomes arrays, which are dealt out by ranges of the key; a range is sorted and merged at once
cut       part k has the rows [k part_rows, (k + 1) part_rows) of all ranges in their order
"""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, TypeVar

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import memory_limit

Arrays = dict[str, Array]
Result = TypeVar("Result")
Carry = TypeVar("Carry")
_SPARE = 2.2  # times the bytes of all rows, free on the disk before they are dealt out and then written in order


@dataclass(frozen=True)
class Part:
    """Some rows in the order of all. first: how many there are before them; arrays: by name, a row per row."""

    first: int
    arrays: Arrays

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def get(self, name: str) -> Array | None:
        """An array, or None where there is none of this name."""
        return self.arrays.get(name)

    @property
    def n_rows(self) -> int:
        """Rows of this part."""
        return len(next(iter(self.arrays.values())))

    def __sizeof__(self) -> int:
        """Bytes of all arrays: Dask's measure of what a worker holds, and of what moving a part costs."""
        return sum(array.nbytes for array in self.arrays.values())


@dataclass(frozen=True)
class PartPlan:
    """How rows become parts. n_rows: at least as many as there are; key: the array of uint64 that they are sorted by.

    merged: the rows of one range of keys in their order, from those of all stretches in the order of the stretches.
    """

    n_rows: int
    part_rows: int
    key: str
    merged: Callable[[Arrays], Arrays]

    @property
    def n_ranges(self) -> int:
        """Ranges of keys of some part_rows rows each."""
        return max(1, -(-self.n_rows // self.part_rows))

    def dealt(self, rows: Arrays) -> list[Arrays]:
        """Rows by the range that their key is in."""
        places = ((rows[self.key] >> np.uint64(32)) * np.uint64(self.n_ranges)) >> np.uint64(32)
        order = np.argsort(places, kind="stable")
        cuts = np.searchsorted(places[order], np.arange(self.n_ranges + 1))
        return [{name: array[order[a:b]] for name, array in rows.items()} for a, b in pairwise(cuts)]


class Parts(ABC):
    """Parts of rows. f is given a part with the arrays named by `reads`; it may be sent to a worker."""

    n_rows: int

    @abstractmethod
    def map(self, f: Callable[[Part], Result], reads: Sequence[str]) -> Iterator[Result]:
        """f of every part, in their order."""

    @abstractmethod
    def update(self, f: Callable[[Part], tuple[Arrays, Result]], reads: Sequence[str]) -> Iterator[Result]:
        """The second result of f of every part, in their order; the first are arrays that are kept with the part.

        Nothing is kept before the iterator is at its end.
        """

    @abstractmethod
    def fold(self, f: Callable[[Part, Carry], Carry], carry: Carry, reads: Sequence[str]) -> Carry:
        """f of every part and what f gave of the part before: sums in the order of the rows."""

    def total(self, f: Callable[[Part], Array], reads: Sequence[str]) -> Array:
        """The sum over parts of what f gives: whole numbers, which add up to the same in any order."""
        results = self.map(f, reads)
        out = next(results)
        for of_part in results:
            out += of_part
        return out

    def updated_total(self, f: Callable[[Part], tuple[Arrays, Array]], reads: Sequence[str]) -> Array:
        """The same of the second results; the first are arrays that are kept with the part."""
        results = self.update(f, reads)
        out = next(results)
        for of_part in results:
            out += of_part
        return out

    def gathered(self, f: Callable[[Part], Array], reads: Sequence[str]) -> Array:
        """f of all parts, end to end: held here as a whole."""
        return np.concatenate(list(self.map(f, reads)))


def local_parts(pieces: Iterable[Arrays], plan: PartPlan, may_spill: bool) -> Parts:
    """The parts of rows that this process reads. pieces: of every stretch; may_spill: temporary files are allowed."""
    return LocalParts.built(iter(pieces), plan, may_spill)


class RowTable:
    """Rows of one array: in memory, or in a temporary file without a name, gone when the table is."""

    def __init__(self, n_rows: int, like: Array, in_memory: bool) -> None:
        self.dtype, self.shape = like.dtype, like.shape[1:]
        self.bytes_per_row = int(self.dtype.itemsize * np.prod(self.shape, dtype=np.int64))
        self._array = np.zeros((n_rows, *self.shape), dtype=self.dtype) if in_memory else None
        self._file = None if in_memory else temporary_file(n_rows * self.bytes_per_row)

    def read(self, begin: int, end: int) -> Array:
        """Rows [begin, end)."""
        if self._array is not None:
            return self._array[begin:end]
        assert self._file is not None
        data = bytearray((end - begin) * self.bytes_per_row)
        view, at = memoryview(data), 0
        while at < len(data):
            n_read = os.preadv(self._file.fileno(), [view[at:]], begin * self.bytes_per_row + at)
            if n_read == 0:
                raise OSError("The temporary file of rows is shorter than it was.")
            at += n_read
        return np.frombuffer(data, dtype=self.dtype).reshape(end - begin, *self.shape)

    def write(self, begin: int, rows: Array) -> None:
        """Put rows from `begin` on."""
        if self._array is not None:
            self._array[begin : begin + len(rows)] = rows
            return
        assert self._file is not None
        view, at = memoryview(np.ascontiguousarray(rows, dtype=self.dtype).data).cast("B"), 0
        while at < len(view):
            at += os.pwrite(self._file.fileno(), view[at:], begin * self.bytes_per_row + at)


def temporary_file(size: int) -> IO[bytes]:
    """A temporary file without a name that has room for so many bytes."""
    file = tempfile.TemporaryFile(prefix="certifit-")  # noqa: SIM115 (closed when nobody holds it)
    try:
        if size:
            os.posix_fallocate(file.fileno(), 0, size)  # what is not there now would be missed when it is written
    except OSError as error:
        file.close()
        raise MemoryError(_no_room(size, error.strerror)) from error
    return file


def refuse_spill(size: float, may_spill: bool) -> None:
    """Raise where temporary files of so many bytes are not allowed, or the disk has no room for them."""
    if not may_spill:
        raise MemoryError(_no_room(size, "--no-spill forbids it"))
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if size > free:
        raise MemoryError(_no_room(size, f"{free / 1e9:.3g} GB are free"))


def _no_room(size: float, why: str | None) -> str:
    return (
        f"A temporary file of {size / 1e9:.3g} GB could not be made in {tempfile.gettempdir()!r} ({why}). TMPDIR names "
        "another folder; or allow more memory with certifit.memory(bytes)."
    )


class _Dealt:
    """Rows by range, in memory or end to end in a temporary file."""

    def __init__(self, plan: PartPlan, first: Arrays, in_memory: bool) -> None:
        self.plan, self.in_memory = plan, in_memory
        self._like = {name: (array.dtype, array.shape[1:]) for name, array in first.items()}
        self._pieces: list[list[Arrays | tuple[int, int]]] = [[] for _ in range(plan.n_ranges)]  # (first byte, rows)
        self._file = None if in_memory else temporary_file(0)
        self._end = 0

    def add(self, rows: Arrays) -> None:
        """Deal out the rows of a stretch."""
        for pieces, part in zip(self._pieces, self.plan.dealt(rows), strict=True):
            n_rows = len(part[self.plan.key])
            if not n_rows:
                continue
            if self._file is None:
                pieces.append(part)
                continue
            pieces.append((self._end, n_rows))
            try:
                for name in self._like:
                    self._end += self._file.write(np.ascontiguousarray(part[name]).data)
            except OSError as error:
                raise MemoryError(_no_room(self._end, error.strerror)) from error

    def ranges(self) -> Iterator[Arrays]:
        """The rows of every range that has any."""
        for number, pieces in enumerate(self._pieces):
            self._pieces[number] = []
            parts = [self._read(*piece) if isinstance(piece, tuple) else piece for piece in pieces]
            if parts:
                yield {name: np.concatenate([part[name] for part in parts]) for name in self._like}

    def _read(self, first_byte: int, n_rows: int) -> Arrays:
        assert self._file is not None
        self._file.seek(first_byte)
        rows = {}
        for name, (dtype, shape) in self._like.items():
            size = int(n_rows * dtype.itemsize * np.prod(shape, dtype=np.int64))
            rows[name] = np.frombuffer(self._file.read(size), dtype=dtype).reshape(n_rows, *shape)
        return rows


class LocalParts(Parts):
    """Parts of tables of rows in this process."""

    def __init__(self, n_rows: int, part_rows: int, in_memory: bool) -> None:
        self.n_rows, self.part_rows, self.in_memory = n_rows, part_rows, in_memory
        self.tables: dict[str, RowTable] = {}

    @classmethod
    def built(cls, pieces: Iterator[Arrays], plan: PartPlan, may_spill: bool) -> LocalParts:
        """The parts of rows that come stretch by stretch."""
        dealt: _Dealt | None = None
        for rows in pieces:
            if dealt is None:
                size = float(plan.n_rows) * sum(array[:1].nbytes for array in rows.values())
                in_memory = 4 * size <= memory_limit()
                if not in_memory:
                    refuse_spill(_SPARE * size, may_spill)
                dealt = _Dealt(plan, rows, in_memory)
            dealt.add(rows)
        assert dealt is not None
        parts = cls(0, plan.part_rows, dealt.in_memory)
        for of_range in dealt.ranges():
            merged = plan.merged(of_range)
            for name, array in merged.items():
                if name not in parts.tables:
                    parts.tables[name] = RowTable(plan.n_rows, array, dealt.in_memory)
                parts.tables[name].write(parts.n_rows, array)
            parts.n_rows += len(next(iter(merged.values())))
        return parts

    def _parts(self, reads: Sequence[str]) -> Iterator[Part]:
        names = [name for name in reads if name in self.tables]
        for begin in range(0, self.n_rows, self.part_rows):
            end = min(begin + self.part_rows, self.n_rows)
            yield Part(begin, {name: self.tables[name].read(begin, end) for name in names})

    def map(self, f: Callable[[Part], Result], reads: Sequence[str]) -> Iterator[Result]:
        """f of every part, in their order."""
        return map(f, self._parts(reads))

    def update(self, f: Callable[[Part], tuple[Arrays, Result]], reads: Sequence[str]) -> Iterator[Result]:
        """The second result of f of every part; the first are arrays that are kept."""
        for part in self._parts(reads):
            arrays, result = f(part)
            for name, array in arrays.items():
                if name not in self.tables:
                    self.tables[name] = RowTable(self.n_rows, array, self.in_memory)
                self.tables[name].write(part.first, array)
            yield result

    def fold(self, f: Callable[[Part, Carry], Carry], carry: Carry, reads: Sequence[str]) -> Carry:
        """f of every part and what f gave of the part before."""
        for part in self._parts(reads):
            carry = f(part, carry)
        return carry
