"""Rows held out, and rows and columns of a round: drawn among distinct rows in the order of their hashes.

The numbers follow from random_state, the round and the place of a row: neither the order of rows nor copies instead of
weights matter, and a part of the rows has its draws without those before it.
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array

HELD_OUT = 2**62  # the number of the draw of held-out rows, beyond that of any round
_AT_ONCE = 1 << 20


def random_of(seed: int, number: int, n_before: int = 0) -> np.random.Generator:
    """The generator of a draw, after so many numbers."""
    bits = np.random.Philox(key=[seed, number])
    if n_before:
        bits.advance(n_before // 4)  # four numbers per step
    random = np.random.Generator(bits)
    random.random(n_before % 4)
    return random


def rows_of_round(seed: int, number: int, share: float, n_rows: int, n_before: int = 0) -> Array:
    """Whether each of some consecutive rows is drawn."""
    return np.asarray(random_of(seed, number, n_before).random(n_rows) < share)


def columns_of_round(seed: int, number: int, share: float, n_columns: int, n_rows_before: int) -> Array:
    """The columns of a round, ascending. n_rows_before: numbers that the draw of rows took."""
    if share == 1:
        return np.arange(n_columns, dtype=np.uint32)
    order = random_of(seed, number, n_rows_before).permutation(n_columns)
    return np.sort(order[: max(1, int(share * n_columns))]).astype(np.uint32)


def trained_rows(seed: int, weight: Array, share: float) -> Array:
    """Whether each distinct row is trained on; the others, a share of the weight, are held out."""
    order = random_of(seed, HELD_OUT).permutation(len(weight))
    below = np.cumsum(weight[order])
    is_trained = np.ones(len(weight), dtype=bool)
    is_trained[order[below <= share * below[-1]]] = False
    if is_trained.all():
        raise ValueError(
            f"No row is held out of {len(weight)} distinct ones at validation_fraction={share:g}. Raise it, or set "
            "early_stopping=False."
        )
    return is_trained
