"""Rows that arrive in batches of unequal size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from certifit.data.source import Batches, Block, Memory


def random_cuts(rng: np.random.Generator, n_rows: int, n_cuts: int = 12) -> list[int]:
    """Where batches end: sorted, some batches empty."""
    return sorted(int(cut) for cut in rng.integers(0, n_rows + 1, size=n_cuts))


def batches(X: Any, y: Any = None, weight: Any = None, *, block_rows: int, cuts: Iterable[int]) -> Batches:
    """The rows in batches that end at `cuts`."""
    ends = [*cuts, X.shape[0]]

    def open_batches() -> Iterator[Block]:
        begin = 0
        for end in ends:
            yield Block(X, y, weight).part(begin, end)
            begin = end

    source = Batches(open_batches, [f"x{j}" for j in range(X.shape[1])], named=False)
    source.block_rows = block_rows
    return source


def memory(X: Any, y: Any, weight: Any = None, *, block_rows: int) -> Memory:
    """The rows in memory, with blocks of the size given."""
    source = Memory(X, y, weight)
    source.block_rows = block_rows
    return source
