"""The error of a mean of models on rows that some of them did not draw: sums of blocks of rows, added in their order.

A row counts where at least 10 models did not draw it: a mean of fewer says little of the mean of all. There is an error
only where such rows hold 95 % of the weight: of weights that differ much, the heavy rows are drawn nearly always.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.forest.draws import BLOCK
from certifit.models.trees.passes import Moments

Z = 1.959963984540054  # of 95 %
LEAST_MODELS = 10  # that did not draw a row
LEAST_SHARE = 0.95  # of the weight
NOTHING = Moments(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class OutOfBag:
    """Errors of rows. total: the weight of all; mass: of those that count; loss: the sum of their weights times errors.

    moments: of the squares of their weights, and of their errors.
    """

    total: float = 0.0
    mass: float = 0.0
    loss: float = 0.0
    moments: Moments = NOTHING

    def __add__(self, other: OutOfBag) -> OutOfBag:
        sums = (self.total + other.total, self.mass + other.mass, self.loss + other.loss)
        return OutOfBag(*sums, self.moments + other.moments)

    @property
    def left_out(self) -> float:
        """The share of the weight of rows that too few models did not draw."""
        return max(1 - self.mass / self.total, 0.0)

    def error(self, is_of_classes: bool) -> tuple[float | None, float | None, float | None]:
        """The mean error and a 95 % interval: Wilson's of shares, the normal one of squares. None of too few rows.

        The standard error is sqrt(sum w^2 (e - mean)^2) / sum w, Wilson's number of rows Kish's (sum w)^2 / sum w^2.
        """
        if not self.mass >= LEAST_SHARE * self.total:
            return None, None, None
        mean = self.loss / self.mass
        if is_of_classes:
            n = self.mass**2 / self.moments.mass
            middle, width = mean + Z**2 / (2 * n), Z * math.sqrt(mean * (1 - mean) / n + Z**2 / (4 * n**2))
            return mean, max((middle - width) / (1 + Z**2 / n), 0.0), min((middle + width) / (1 + Z**2 / n), 1.0)
        squares = self.moments.squares + self.moments.mass * (self.moments.mean - mean) ** 2
        half = Z * math.sqrt(squares) / self.mass
        return mean, max(mean - half, 0.0), mean + half


def out_of_bag(before: OutOfBag, means: Array, n_models: Array, y: Array, weight: Array, n_classes: int) -> OutOfBag:
    """With the errors of rows that begin with a block. means: of the n_models models that did not draw a row."""
    for begin in range(0, len(y), BLOCK):
        rows = slice(begin, begin + BLOCK)
        is_out = n_models[rows] >= LEAST_MODELS
        w, said, target = weight[rows][is_out], means[rows][is_out], y[rows][is_out]
        loss = (said.argmax(axis=1) != target).astype(np.float64) if n_classes else np.square(said[:, 0] - target)
        squares = np.square(w)
        sum_of_squares = float(squares.sum())
        mean = float((squares * loss).sum()) / (sum_of_squares or 1.0)
        moments = Moments(sum_of_squares, mean, float((squares * np.square(loss - mean)).sum()))
        before += OutOfBag(float(weight[rows].sum()), float(w.sum()), float((w * loss).sum()), moments)
    return before
