"""The law of a coefficient over its robust standard error: Student's, with degrees of freedom of its own.

A robust variance is a weighted sum of squared residuals, V = sum_i d_i e_i^2, d_i = c_i^2 (1 - h_i)^-k for the
coefficient sum_i c_i y_i. Where few rows carry the weights d, or the noise, V is itself uncertain, and the normal law
gives intervals that are too short: HC3 with n = 100 and noise that grows with a skew column covered 89 % for 95 %.
With M = I - H and D = diag(d):

    b = tr(MD) / sum c_i^2                         V is b times the true variance on average, for equal noise
    tr(MD)^2 / tr(MDMD)                            degrees of freedom for equal noise (Bell and McCaffrey 2002)
    3 (sum d_i e_i^2)^2 / sum d_i^2 e_i^4 - 2      the same for the noise that the residuals show (Lipsitz, Ibrahim and
                                                   Parzen 1999)

The smaller of both is used, at least 1, and the standard error is divided by sqrt(b) where b < 1 (Young 2016). The
product tr(MDMD) = sum_i d_i^2 ((1 - h_i)^2 - h_i^2) + |sum_i d_i t_i t_i'|^2 costs n p^2 for each coefficient; where
tr(MD) / max d_i, which is never above tr(MD)^2 / tr(MDMD), exceeds 1,000, it takes its place. So it does where the
products would cost too much: intervals then are a little wider than they need be, never shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.certificates.influence import Frame, SeenRows
from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.runtime import one_blas_thread

ENOUGH = 1000.0  # degrees of freedom: Student's quantile is within 0.3 % of the normal one
MOST_PRODUCTS = 2e10  # multiplications of tr(MDMD), all coefficients together: some seconds
MOST_ENTRIES = 1 << 24  # of the matrices that they need: 128 MB


@dataclass(frozen=True)
class Law:
    """Of every coefficient: degrees of freedom, and b where it is below 1, else 1."""

    freedom: Array
    bias: Array


@dataclass(frozen=True)
class LawSums:
    """Sums over observations for every coefficient, a column each; largest is a maximum."""

    plain: Array  # c^2
    expected: Array  # d (1 - h)
    crossed: Array  # d^2 ((1 - h)^2 - h^2)
    squares: Array  # d e^2
    fourth: Array  # d^2 e^4
    largest: Array  # d

    def __add__(self, other: LawSums) -> LawSums:
        return LawSums(
            self.plain + other.plain,
            self.expected + other.expected,
            self.crossed + other.crossed,
            self.squares + other.squares,
            self.fourth + other.fourth,
            np.maximum(self.largest, other.largest),
        )


@dataclass(frozen=True)
class Pull:
    """How observations pull at the coefficients: directions (p, p) with c = t directions', power k, size of e."""

    directions: Array
    power: int
    size: float

    @staticmethod
    def of(root: Array, power: int, size: float) -> Pull:
        """Rows of unit length: the law knows no unit of a coefficient."""
        return Pull(root / np.linalg.norm(root, axis=1, keepdims=True), power, size if size > 0 else 1.0)

    def squared(self, seen: SeenRows) -> tuple[Array, Array]:
        """c^2 and d of every observation; d is 0 for a row of leverage 1, whose residual is 0 whatever its noise."""
        c2 = (seen.directions @ self.directions.T) ** 2
        rest = seen.rest[:, None]
        return c2, np.where(np.isnan(rest), 0.0, c2 / np.where(np.isnan(rest), 1.0, rest) ** self.power)

    def sums(self, seen: SeenRows) -> LawSums:
        """Of the rows of a piece."""
        c2, d = self.squared(seen)
        h, times = seen.leverage, seen.times
        de2 = d * ((seen.residual / self.size) ** 2)[:, None]
        counted = np.where(times[:, None] > 0, d, 0.0)
        return LawSums(
            times @ c2, (times * (1 - h)) @ d, (times * ((1 - h) ** 2 - h**2)) @ d**2, times @ de2, times @ de2**2,
            counted.max(axis=0, initial=0.0),
        )  # fmt: skip


def law_of(source: Source, frame: Frame, pull: Pull, sums: LawSums, factor: float, n_obs: float) -> Law:
    """The law of every coefficient: one pass more for those that few observations decide.

    factor: what the variance is multiplied by besides, N / (N - p) for HC1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        equal = sums.expected / sums.largest
        shown = 3 * sums.squares**2 / sums.fourth - 2
        bias = np.minimum(factor * sums.expected / sums.plain, 1.0)
    few = np.flatnonzero(~(equal > ENOUGH))
    n_entries = len(few) * len(pull.directions) ** 2
    if 0 < n_entries <= MOST_ENTRIES and n_entries * n_obs <= MOST_PRODUCTS:
        crossed = source.reduce(partial(_crossed_of_run, frame=frame, pull=pull, few=few))
        with np.errstate(divide="ignore", invalid="ignore"):
            equal[few] = sums.expected[few] ** 2 / (sums.crossed[few] + (crossed**2).sum(axis=(1, 2)))
    freedom = np.minimum(np.where(np.isnan(equal), 1.0, equal), np.where(np.isnan(shown), 1.0, shown))
    return Law(np.maximum(freedom, 1.0), bias)


def _crossed_of_run(run: Block, frame: Frame, pull: Pull, few: Array) -> Array:
    return tree_sum(_crossed(block, frame, pull, few) for block in frame.pieces(run))


@one_blas_thread
def _crossed(block: Block, frame: Frame, pull: Pull, few: Array) -> Array:
    """sum_i d_i t_i t_i' of some coefficients, a matrix each."""
    seen = frame.seen(block)
    d = (pull.squared(seen)[1] * seen.times[:, None])[:, few]
    return np.stack([(seen.directions * each[:, None]).T @ seen.directions for each in d.T])
