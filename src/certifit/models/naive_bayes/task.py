"""Naive Bayes over counts: the closed form of smoothed maximum likelihood from counts by class.

Bernoulli:    p_jk = (n_jk + alpha) / (W_k + 2 alpha), n_jk the weight of rows of class k that have word j
Multinomial:  p_jk = (n_jk + alpha) / (sum_j n_jk + alpha V), n_jk how often class k has word j, V words
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.discriminant.closed_form import ClosedForm
from certifit.statistics.cell_sums import CellCounts, absent_weights
from certifit.statistics.double_double import balanced
from certifit.statistics.residual import MATRIX_ERROR, UNIT

ASK = 1e-10  # relative error of a difference of sums above which exact sums are made
SMALLEST = 5e-324  # error of a product of a weight and an entry below the normal numbers
MANY_WORDS = 1e5  # per row: from here on the chances are made to add up to 1 beyond the rounding of their logarithms


@dataclass(frozen=True)
class CountState:
    """Logarithms of the priors and of p_jk, classes x columns."""

    log_priors: Array
    log_p: Array


class CountTask(ClosedForm[CountState]):
    """Counts by class, the smoothing and the priors: None is the classes' shares."""

    is_complete: bool

    def __init__(self, counts: CellCounts, alpha: float, priors: Array | None, names: Sequence[str]) -> None:
        self.counts, self.alpha, self.names = counts, alpha, names
        self.given = priors

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        return {"n_rows": int(self.counts.n_rows.sum()), "sum_weight": float(self.counts.weight.sum())}

    def log_priors(self) -> Array:
        """Logarithms of the priors."""
        if self.given is None:
            return log_quotient(self.counts.weight, self.counts.weight.sum())
        return log_quotient(self.given, 1.0)

    def _of_rows(self, log_p: Array, n_outcomes: int) -> Array:
        """The same; a class without rows says nothing, and all outcomes have the same chance."""
        return np.where(self.counts.weight[:, None] > 0, log_p, -np.log(n_outcomes))

    @abstractmethod
    def trials(self, k: int) -> float:
        """Trials a row of class k holds on average."""

    @abstractmethod
    def outcomes(self, best: CountState, state: CountState, k: int) -> Iterator[tuple[Array, Array, Array]]:
        """Logarithms of the chances of all outcomes of a trial, the best and the state's, and the best's error."""

    def prior_error(self) -> float:
        """Relative error of the priors as the sums give them."""
        return MATRIX_ERROR if self.given is None else 0.0

    def _error(self, k: int, counts: Array) -> Array:
        """Relative error of chances that are these counts, smoothed, by their sum; products may leave float64 below."""
        if not self.counts.weight[k] > 0:
            return np.zeros(len(counts))
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(2 * MATRIX_ERROR + self.counts.n_rows[k] * SMALLEST / (counts + self.alpha))


class BernoulliTask(CountTask):
    """Every column is a trial of its own: there or not."""

    is_complete = True  # the chance of no is 1 less that of yes
    threshold: float | None = None
    _absent: tuple[Array, Array] | None = None

    def solve(self) -> CountState:
        """The closed form."""
        weight = self.counts.weight[:, None]
        counts = np.minimum(self.counts.counts, weight)  # sums of weights in another order may end beyond
        absent = np.minimum(self.absent()[0], weight)
        log_p, log_no = (log_quotient(n + self.alpha, weight + 2 * self.alpha) for n in (counts, absent))
        with np.errstate(divide="ignore"):
            log_p = np.where(log_no < log_p, np.log1p(-np.exp(log_no)), log_p)  # near 1 the rest has the digits
        return CountState(self.log_priors(), self._of_rows(log_p, 2))

    def absent(self) -> tuple[Array, Array]:
        """Weight of the rows of every class that lack every column, and its error.

        The weight of the class less that of the rows that have it, while that leaves digits relative to the smoothing;
        otherwise exact sums of the weights' leading bits, a few passes.
        """
        if self._absent is None:
            weight = self.counts.weight[:, None]
            difference = np.maximum(weight - self.counts.counts, 0.0)
            lost = MATRIX_ERROR * np.broadcast_to(weight, difference.shape)
            asks = bool((lost > ASK * (difference + self.alpha)).any())
            if asks and self._is_whole():
                lost = np.zeros_like(difference)
            elif asks and self.rows is not None and self.cells is not None:
                difference = absent_weights(self.rows, self.cells, self.threshold)
                lost = 4 * UNIT * difference
            self._absent = difference, lost
        return self._absent

    def _is_whole(self) -> bool:
        """Whether rows count once each, so that sums of them are exact."""
        if self.rows is not None:
            return self.rows.first_block().weight is None
        counts, weight = self.counts.counts, self.counts.weight
        return bool((weight == self.counts.n_rows).all() and (counts == np.rint(counts)).all())

    def trials(self, k: int) -> float:
        """One per column: each is an outcome of its own."""
        return 1.0

    def outcomes(self, best: CountState, state: CountState, k: int) -> Iterator[tuple[Array, Array, Array]]:
        """There, and not there."""
        absent, lost = (by_class[k] for by_class in self.absent())
        present, weight = self._error(k, self.counts.counts[k]), self.counts.weight[k]
        # Of p near 1 the logarithm is that of 1 less the chance of the other.
        yield best.log_p[k], state.log_p[k], present + 2 * MATRIX_ERROR
        missing = self._error(k, absent) + (lost / (absent + self.alpha) if weight > 0 else 0.0)
        yield log_not(best.log_p[k]), log_not(state.log_p[k]), missing


class MultinomialTask(CountTask):
    """Every word of a row is a trial with V outcomes."""

    is_complete = False  # chances add up to 1 but for rounding

    def solve(self) -> CountState:
        """The closed form."""
        smoothed = self.counts.counts + self.alpha
        log_p = log_quotient(smoothed, smoothed.sum(axis=1, keepdims=True))
        log_p = self._of_rows(log_p, log_p.shape[1])
        for k in range(len(log_p)):  # every word counts the roundings of the chances once more
            if self.trials(k) > MANY_WORDS:
                log_p[k] = balanced(log_p[k : k + 1])[0]
        return CountState(self.log_priors(), log_p)

    def trials(self, k: int) -> float:
        """Words a row of class k."""
        weight = self.counts.weight[k]
        return float(self.counts.counts[k].sum() / weight) if weight > 0 else 0.0

    def outcomes(self, best: CountState, state: CountState, k: int) -> Iterator[tuple[Array, Array, Array]]:
        """The words."""
        yield best.log_p[k], state.log_p[k], self._error(k, self.counts.counts[k])


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
