"""The error of a forest on rows that trees did not draw: sums of blocks of rows, which add up in their order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.forest.draws import BLOCK
from certifit.models.trees.passes import Moments

Z = 1.959963984540054  # of 95 %
NOTHING = Moments(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class OutOfBag:
    """Errors of the rows that a tree did not draw. most: the largest weight; loss: the sum of weight times error.

    moments: of their weights and errors.
    """

    n_rows: int = 0
    most: float = 0.0
    loss: float = 0.0
    moments: Moments = NOTHING

    def __add__(self, other: OutOfBag) -> OutOfBag:
        return OutOfBag(
            self.n_rows + other.n_rows, max(self.most, other.most), self.loss + other.loss, self.moments + other.moments
        )

    def error(self, is_of_classes: bool, is_weighted: bool) -> tuple[float | None, float | None, float | None]:
        """The mean error and a 95 % interval: Wilson's of shares, the normal one of squares. None without rows."""
        if not self.n_rows:
            return None, None, None
        mass = self.moments.mass
        n, mean = (mass / self.most if is_weighted else float(self.n_rows)), self.loss / mass
        if is_of_classes:
            middle, width = mean + Z**2 / (2 * n), Z * math.sqrt(mean * (1 - mean) / n + Z**2 / (4 * n**2))
            return mean, max((middle - width) / (1 + Z**2 / n), 0.0), min((middle + width) / (1 + Z**2 / n), 1.0)
        half = Z * math.sqrt(self.moments.squares / mass / n)
        return mean, max(mean - half, 0.0), mean + half


def out_of_bag(before: OutOfBag, means: Array, n_trees: Array, y: Array, weight: Array, n_classes: int) -> OutOfBag:
    """With the errors of rows that begin with a block. means: of the n_trees trees that did not draw a row."""
    for begin in range(0, len(y), BLOCK):
        rows = slice(begin, begin + BLOCK)
        is_out = n_trees[rows] > 0
        mass, said, target = weight[rows][is_out], means[rows][is_out], y[rows][is_out]
        if len(mass):
            loss = (said.argmax(axis=1) != target).astype(np.float64) if n_classes else np.square(said[:, 0] - target)
            total, weighted = float(mass.sum()), float((mass * loss).sum())
            mean = weighted / total
            spread = float((mass * np.square(loss - mean)).sum())
            before += OutOfBag(len(mass), float(mass.max()), weighted, Moments(total, mean, spread))
    return before
