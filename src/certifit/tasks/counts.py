"""Naive Bayes over counts: the closed form of smoothed maximum likelihood from counts by class.

Bernoulli:    p_jk = (n_jk + alpha) / (W_k + 2 alpha), n_jk the weight of rows of class k that have word j
Multinomial:  p_jk = (n_jk + alpha) / (sum_j n_jk + alpha V), n_jk how often class k has word j, V words
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.statistics.cell_sums import CellCounts


@dataclass(frozen=True)
class CountState:
    """Logarithms of the priors and of p_jk, classes x columns."""

    log_priors: Array
    log_p: Array


class CountTask(ABC):
    """Counts by class, the smoothing and the priors: None is the classes' shares."""

    def __init__(self, counts: CellCounts, alpha: float, priors: Array | None, names: Sequence[str]) -> None:
        self.counts, self.alpha, self.names = counts, alpha, names
        self.given = priors

    def log_priors(self) -> Array:
        """Logarithms of the priors."""
        if self.given is None:
            return log_quotient(self.counts.weight, self.counts.weight.sum())
        return log_quotient(self.given, 1.0)

    @abstractmethod
    def solve(self) -> CountState:
        """The state of largest (smoothed) likelihood."""

    def _of_rows(self, log_p: Array, n_outcomes: int) -> Array:
        """The same; a class without rows says nothing, and all outcomes have the same chance."""
        return np.where(self.counts.weight[:, None] > 0, log_p, -np.log(n_outcomes))

    @abstractmethod
    def trials(self, k: int) -> float:
        """Trials a row of class k holds on average."""

    @abstractmethod
    def outcomes(self, best: CountState, state: CountState, k: int) -> Iterator[tuple[Array, Array]]:
        """Logarithms of the chances of all outcomes of a trial, the best and the state's."""


class BernoulliTask(CountTask):
    """Every column is a trial of its own: there or not."""

    def solve(self) -> CountState:
        """The closed form."""
        weight = self.counts.weight[:, None]
        counts = np.minimum(self.counts.counts, weight)  # sums of weights in another order may end beyond
        log_p, log_no = (log_quotient(n + self.alpha, weight + 2 * self.alpha) for n in (counts, weight - counts))
        with np.errstate(divide="ignore"):
            log_p = np.where(log_no < log_p, np.log1p(-np.exp(log_no)), log_p)  # near 1 the rest has the digits
        return CountState(self.log_priors(), self._of_rows(log_p, 2))

    def trials(self, k: int) -> float:
        """One a column: each is an outcome of its own."""
        return 1.0

    def outcomes(self, best: CountState, state: CountState, k: int) -> Iterator[tuple[Array, Array]]:
        """There, and not there."""
        yield best.log_p[k], state.log_p[k]
        yield log_not(best.log_p[k]), log_not(state.log_p[k])


class MultinomialTask(CountTask):
    """Every word of a row is a trial with V outcomes."""

    def solve(self) -> CountState:
        """The closed form."""
        smoothed = self.counts.counts + self.alpha
        log_p = log_quotient(smoothed, smoothed.sum(axis=1, keepdims=True))
        return CountState(self.log_priors(), self._of_rows(log_p, log_p.shape[1]))

    def trials(self, k: int) -> float:
        """Words a row of class k."""
        weight = self.counts.weight[k]
        return float(self.counts.counts[k].sum() / weight) if weight > 0 else 0.0

    def outcomes(self, best: CountState, state: CountState, k: int) -> Iterator[tuple[Array, Array]]:
        """The words."""
        yield best.log_p[k], state.log_p[k]


def log_quotient(part: Array, whole: Array | float) -> Array:
    """log(part / whole). A quotient below the range of float64 is that of logarithms."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        quotient = part / whole
        apart = np.log(part) - np.log(whole)
        return np.where(quotient > np.finfo(np.float64).tiny, np.log(quotient), apart)


def log_not(log_p: Array) -> Array:
    """log(1 - p)."""
    with np.errstate(divide="ignore"):
        return np.where(log_p > -np.log(2), np.log(-np.expm1(log_p)), np.log1p(-np.exp(log_p)))
