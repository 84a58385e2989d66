"""Draws of the rows of a part: a function of seed, tree and block of rows, so that every part makes its own.

How many draws fall into every block of rows follows from the seed and the tree; which rows of a block they fall on,
from these and the number of the block (cpp/tree/draws.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.parts import Part, Parts
from certifit.runtime import core

BLOCK = 1 << 14  # rows that are drawn, and rounded sums of them added up, together (cpp/tree/tree.hpp)


@dataclass(frozen=True)
class Draws:
    """The draws of some trees, numbered from first_tree on. of_blocks: trees x blocks, of all rows."""

    seed: int
    is_weighted: bool
    first_tree: int
    of_blocks: Array

    def blocks_of(self, part: Part) -> Array:
        """Those of the blocks of a part."""
        first = part.first // BLOCK
        return np.ascontiguousarray(self.of_blocks[:, first : first + -(-part.n_rows // BLOCK)])

    def of(self, part: Part, tree: int) -> Array:
        """How often each row of a part is drawn for a tree."""
        weight = part["weight"] if self.is_weighted else None
        blocks, number = self.blocks_of(part)[tree - self.first_tree], part.first // BLOCK
        draws: Array = core.forest_draws(part.n_rows, weight, blocks, number, self.seed, tree)
        return draws


@dataclass(frozen=True)
class DrawnRows:
    """What draws must know of all rows. block_weights: None where all rows weigh the same."""

    n_rows: int
    block_weights: Array | None

    def draws(self, seed: int, first: int, end: int) -> Draws:
        """Of trees [first, end)."""
        known = (self.n_rows, self.block_weights, seed)
        of_blocks = np.array([core.forest_block_draws(*known, tree) for tree in range(first, end)], dtype=np.uint32)
        return Draws(seed, self.block_weights is not None, first, of_blocks)


def drawn_rows(parts: Parts) -> DrawnRows:
    """Of the rows of all parts."""
    of_parts = list(parts.map(_weights, ("y", "weight")))
    is_weighted = min(low for _, low, _ in of_parts) < max(high for _, _, high in of_parts)
    weights = np.concatenate([blocks for blocks, _, _ in of_parts]) if is_weighted else None
    return DrawnRows(parts.n_rows, weights)


def _weights(part: Part) -> tuple[Array, float, float]:
    weight = part["weight"]
    blocks = np.ascontiguousarray(core.block_sizes(part["y"], weight, 0.0)[:, 0])
    return blocks, float(weight.min()), float(weight.max())
