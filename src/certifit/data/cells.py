"""Cells: rows that are summed apart, so that training and validation sets are sums of cells.

The cell of a row depends on its global number, or on its group's key, and on a seed: never on the engine, the
chunks or the order in which blocks arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import gcd
from typing import Protocol

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source

NO_CELL = -1


class Cells(Protocol):
    """Which cell each row of a block is in. Can be sent to a worker."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""

    def of(self, block: Block) -> Array:
        """Cell of every row, int32; NO_CELL for none."""


@dataclass(frozen=True)
class ByRow:
    """Cells of equal size: every n_cells consecutive rows are dealt out to all cells in a random order.

    Row i = q n + r goes to cell (a_q r + b_q) mod n, with a_q prime to n and b_q hashed from (seed, q).
    """

    n_cells: int
    seed: int

    def of(self, block: Block) -> Array:
        """Cell of every row."""
        n, first, last = self.n_cells, block.first_row, block.first_row + block.n_rows
        deals = np.arange(first // n, -(-last // n), dtype=np.uint64)
        random = mixed(deals, self.seed)
        units = np.array([a for a in range(1, n + 1) if gcd(a, n) == 1], dtype=np.int64)
        a = units[(random % np.uint64(len(units))).astype(np.int64)]
        b = ((random >> np.uint64(32)) % np.uint64(n)).astype(np.int64)
        cells = (a[:, None] * np.arange(n) + b[:, None]) % n
        begin = first - (first // n) * n
        return cells.ravel()[begin : begin + block.n_rows].astype(np.int32)


@dataclass(frozen=True)
class ByGroup:
    """Cells of whole groups: `keys` sorted, and the cell of each."""

    n_cells: int
    keys: Array  # uint64
    cells: Array  # int32

    def of(self, block: Block) -> Array:
        """Cell of every row, found by the key of its group."""
        if block.group is None:
            raise ValueError("The rows carry no group. Scan with group='name of the column'.")
        return np.asarray(self.cells[np.searchsorted(self.keys, block.group)])


@dataclass(frozen=True)
class Listed:
    """Cells written down, one per row."""

    n_cells: int
    cells: Array

    def of(self, block: Block) -> Array:
        """Cell of every row."""
        end = block.first_row + block.n_rows
        if end > len(self.cells):
            raise ValueError(f"The splits are for {len(self.cells)} rows, and the data has {end} or more.")
        return np.ascontiguousarray(self.cells[block.first_row : end], dtype=np.int32)


def has_every_row(cells: Cells) -> bool:
    """Whether each row is in some cell, as far as the cells alone tell."""
    return isinstance(cells, ByRow | ByGroup) or (isinstance(cells, Listed) and bool((cells.cells >= 0).all()))


@dataclass(frozen=True)
class ByLabel:
    """The cell of a row is the code of its label. within: other cells, each of which is divided by label."""

    n_labels: int
    within: Cells | None = None

    @property
    def n_cells(self) -> int:
        """Cell c of the others holds cells c n_labels, ..., c n_labels + n_labels - 1."""
        return self.n_labels * (1 if self.within is None else self.within.n_cells)

    def of(self, block: Block) -> Array:
        """Cell of every row."""
        if block.y is None:
            raise ValueError("The rows carry no labels.")
        labels = block.y.astype(np.int32)
        if self.within is None:
            return labels
        outer = self.within.of(block).astype(np.int32)
        return np.where((outer < 0) | (labels < 0), np.int32(NO_CELL), outer * np.int32(self.n_labels) + labels)


@dataclass(frozen=True)
class Splits:
    """Training and validation sets as sums of cells: split s holds cell c train[s, c] or validation[s, c] times."""

    cells: Cells
    train: Array
    validation: Array

    @staticmethod
    def folds(cells: Cells) -> Splits:
        """Each cell in turn validates the fit to all others."""
        left_out = np.eye(cells.n_cells)
        return Splits(cells, 1.0 - left_out, left_out)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.train)

    def trained(self, source: Source, split: int) -> Source:
        """The source with only the training rows of a split: the others have weight 0."""
        return source.weighted(
            partial(_times, self.cells, self.train[split]), (Same(self.cells), self.train[split].tobytes())
        )

    def sharing(self) -> Splits:
        """The same splits for several fits in a row: rows that one fit has encoded, the next does not encode again."""
        return _SharedSplits(self.cells, self.train, self.validation)

    def validated(self, block: Block, split: int) -> Array:
        """How many times each row of a block validates a split."""
        return _times(self.cells, self.validation[split], block)


@dataclass(frozen=True)
class _SharedSplits(Splits):
    """Splits whose training rows are the same object for every fit, and are told that others will read them."""

    _training: dict[tuple[int, int], tuple[Source, Source]] = field(default_factory=dict, compare=False)

    def trained(self, source: Source, split: int) -> Source:
        """The training rows of a split, made once per source."""
        key = id(source), split  # the source is kept beside them, so no other can have its id
        if key not in self._training:
            rows = super().trained(source, split)
            rows.is_shared = True
            self._training.clear()  # of one split at a time: they may fill the memory budget
            self._training[key] = source, rows
        return self._training[key][1]


@dataclass(frozen=True, eq=False)
class Same:
    """An object as a key that is equal to itself alone; the key keeps it, so no other takes its place."""

    value: object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def _times(cells: Cells, times: Array, block: Block) -> Array:
    return np.append(times, 0.0)[cells.of(block)]  # NO_CELL is the last


def group_cells(source: Source, n_cells: int, seed: int) -> ByGroup:
    """Whole groups dealt out so that cells have equal weights as nearly as the groups allow: one pass.

    The largest group goes first, to the cell with the least so far; equal ones in an order hashed from the seed.
    """
    sizes = source.reduce(GroupSizes.of)
    if len(sizes.keys) < n_cells:
        raise ValueError(f"{n_cells} folds need {n_cells} groups. The data has {len(sizes.keys)}.")
    order = np.lexsort((mixed(sizes.keys, seed), -sizes.counts))
    held = np.zeros(n_cells)
    cells = np.zeros(len(sizes.keys), dtype=np.int32)
    for at in order:
        cells[at] = np.argmin(held)
        held[cells[at]] += sizes.counts[at]
    return ByGroup(n_cells, sizes.keys, cells)


@dataclass(frozen=True)
class GroupSizes:
    """Rows of every group, keys sorted."""

    keys: Array
    counts: Array

    @staticmethod
    def of(block: Block) -> GroupSizes:
        """Of the rows of one block."""
        if block.group is None:
            raise ValueError("The rows carry no group. Scan with group='name of the column'.")
        return GroupSizes(*np.unique(block.group, return_counts=True))

    def __add__(self, other: GroupSizes) -> GroupSizes:
        keys, places = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        return GroupSizes(keys, np.bincount(places, np.concatenate([self.counts, other.counts])).astype(np.int64))


def patterns(sets: Sequence[tuple[Array, Array]], n_rows: int, most: int) -> Splits | None:
    """Splits given as pairs of row numbers (repeats count), as sums of cells; None if more than `most` are needed.

    A cell is the rows that all splits treat alike.
    """
    folds = _plain_folds(sets, n_rows) if len(sets) <= most else None
    if folds is not None:
        return Splits.folds(Listed(len(sets), _narrow(folds, len(sets))))
    cells = np.zeros(n_rows, dtype=np.int64)
    counts: list[Array] = []
    for rows in (part for pair in sets for part in pair):
        times = np.bincount(np.asarray(rows, dtype=np.int64), minlength=n_rows)
        if len(times) > n_rows:
            raise ValueError(f"A split names row {len(times) - 1}, and the data has {n_rows} rows.")
        counts.append(times)
        _, cells = np.unique(cells * (times.max(initial=0) + 1) + times, return_inverse=True)
        if cells.max(initial=0) >= most:
            return None
    n_cells = int(cells.max(initial=0)) + 1
    shown = np.zeros(n_cells, dtype=np.int64)
    shown[cells] = np.arange(n_rows)  # a row of every cell tells how often the cell counts
    table = np.array([times[shown] for times in counts], dtype=np.float64)
    return Splits(Listed(n_cells, _narrow(cells, n_cells)), table[0::2], table[1::2])


def _plain_folds(sets: Sequence[tuple[Array, Array]], n_rows: int) -> Array | None:
    """The fold of every row where each row validates once and trains in all other splits, else None."""
    cells = np.full(n_rows, NO_CELL)
    for k, (train, test) in enumerate(sets):
        if len(train) + len(test) != n_rows or (cells[test] != NO_CELL).any():
            return None
        cells[test] = k
    if (np.bincount(cells + 1, minlength=len(sets) + 1) != [0, *(len(test) for _, test in sets)]).any():
        return None  # a row in no fold, or twice in one
    for train, test in sets:
        is_trained = np.zeros(n_rows, dtype=bool)
        is_trained[train] = True
        if np.count_nonzero(is_trained) != len(train) or is_trained[test].any():
            return None
    return cells


def _narrow(cells: Array, n_cells: int) -> Array:
    return cells.astype(np.int8 if n_cells <= 127 else np.int32)


def mixed(values: Array, seed: int) -> Array:
    """64 well mixed bits of every number and the seed (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = values + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % (1 << 64))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(31)))
