"""Copies: rows that are equal in every column and in the target, found by a 64-bit hash of each row.

A hash depends on the values alone, so any engine and any cutting of the rows finds the same copies. Two different rows
of n have the same hash with a probability of about n^2 / 2^65: 3e-8 for a million rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from certifit.data.arrow import key_of
from certifit.data.cells import mixed
from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.runtime import suited_map

_PIECE = 8192  # rows made dense at a time


@dataclass(frozen=True)
class Copies:
    """first: the number of the first of the rows that each row equals, itself where it is alone."""

    first: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.first)

    @property
    def n_copies(self) -> int:
        """Rows that repeat an earlier one."""
        return int(np.count_nonzero(self.first != np.arange(self.n_rows)))


def copies(source: Source) -> Copies:
    """Which rows of a source are copies: one pass, eight bytes per row; remembered by the source."""
    repeated: Copies = source.remembered("copies", lambda: _found(np.concatenate([*source.map(row_keys)])))
    return repeated


def _found(keys: Array) -> Copies:
    in_order_of_keys = np.sort(keys)
    if not (in_order_of_keys[1:] == in_order_of_keys[:-1]).any():  # a tenth of the time of what follows
        return Copies(np.arange(len(keys)))
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    return Copies(first[places])


def row_keys(block: Block) -> Array:
    """64 bits of every row: of its columns, its target and its offset, in order."""
    keys = np.zeros(block.n_rows, dtype=np.uint64)
    beside = [part for part in (block.y, block.offset) if part is not None]
    for j, column in enumerate([*_columns(block.X), *map(_of_numbers, beside)]):
        keys = mixed(keys ^ column, j + 1)
    return keys


def _columns(X: Any) -> Any:
    if isinstance(X, pa.Table):
        yield from suited_map(X.num_rows)(_of_arrow, X.columns)
        return
    width = X.shape[1]
    if isinstance(X, Columns) or sp.issparse(X):
        parts = [X[begin : begin + _PIECE].toarray() for begin in range(0, X.shape[0], _PIECE)]
        X = np.concatenate(parts) if parts else np.zeros((0, width))
    yield from (_of_numbers(X[:, j]) for j in range(width))


def _of_numbers(values: Array) -> Array:
    """Bits of numbers as float64; 0 and -0 are equal, and so are gaps."""
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return mixed(np.ascontiguousarray(numbers).view(np.uint64), 0)


def _of_arrow(column: Any) -> Array:
    """Numbers and times by their bits; anything else by a hash of every distinct value as text."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        values = column.cast(pa.int8()) if pa.types.is_boolean(kind) else column
        return _of_numbers(values.cast(pa.float64(), safe=False).to_numpy())  # rounded beyond 2^53, as models read them
    plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    plain = plain.cast(kind.value_type) if pa.types.is_dictionary(kind) else plain
    if pa.types.is_temporal(plain.type) and plain.type.bit_width <= 64:  # Python has no times of nanoseconds
        ticks = plain.view(pa.int32() if plain.type.bit_width == 32 else pa.int64()).cast(pa.int64())
        keys = mixed(ticks.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64), 0)
        return np.where(plain.is_valid().to_numpy(zero_copy_only=False), keys, np.uint64(0))
    if pa.types.is_nested(kind):
        values = plain.to_pylist()
        return np.array([0 if value is None else key_of(str(value)) for value in values], dtype=np.uint64)
    coded = plain.dictionary_encode()
    words = [key_of(str(value)) for value in coded.dictionary.to_pylist()]
    table = np.array([*words, 0], dtype=np.uint64)  # the last for a gap
    places = coded.indices.fill_null(len(words)).to_numpy(zero_copy_only=False)
    return np.asarray(table[places])
