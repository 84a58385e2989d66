"""The certificate of closed-form maximum likelihood: how far the likelihood is from its maximum, in nats per row.

In an exponential family the mean log-likelihood at a state falls short of its maximum by exactly the divergence of
the state from the distribution whose moments are those of the rows (smoothed, shrunk as the parameters say):

    priors   sum_k p^_k log(p^_k / p_k)
    counts   sum_k p^_k c_k sum_j p^_jk log(p^_jk / p_jk)  over the outcomes j of a trial, c_k trials per row of class k
    Gaussian classes: see `certificates.gaussian_classes`

What smoothing adds counts as rows of as many trials. A class of few rows, or of rows without words, weighs next to
nothing there, so a second number is bounded too: the relative error of every stored chance. The value is the larger.

sum_j p^_j log(p^_j / p_j) = sum_j p_j h((p^_j - p_j) / p_j) + 1 - sum_j p_j with h(t) = (1 + t) log(1 + t) - t >= 0:
errors of the p^ are squared, and the sum of the p, which are stored as logarithms, is known in twofold precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import Certificate
from certifit.models.naive_bayes.task import CountState, CountTask
from certifit.statistics.double_double import EXCESS_ERROR, excess
from certifit.statistics.residual import MATRIX_ERROR, TINY, UNIT

CLAIM = "shortfall of the mean log-likelihood, in nats per row, or relative error of a stored number"
TREATING = ", treating "  # in the kind of a likelihood: columns that are combinations but for the rounding of entries
THEOREM = "a log-likelihood falls short of its maximum by the divergence of the state from the moments of the rows"


@dataclass(frozen=True)
class LikelihoodCertificate(Certificate):
    """The proof that goes with a closed form. kind: "likelihood", or "smoothed likelihood".

    fault: why there is no proof: the parts of the state contradict each other, or columns left out may say more.
    shortfall: in nats per row, mean over the rows; error: of a stored number, relative; the value is at least either.
    Both are None in a model read from a file.
    """

    kind: str = "likelihood"
    fault: str = ""
    shortfall: float | None = field(default=None, compare=False)
    error: float | None = field(default=None, compare=False)

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.holds:
            first = (
                f"Closed form: the {self.kind} is proven to be within {self.value:.1e} nats per row of its maximum"
                f"{self._numbers_proven()}."
            )
        elif self.fault:
            first = f"NOT certified: {self.fault}"
        else:
            first = (
                f"NOT certified: the {self.kind} can be up to {self.value:.1e} nats per row below its maximum, or a "
                f"stored number off by as much (relative); asked was {self.tolerance:.0e}."
            )
        return [first, *self._redundant_sentences(), *self._condition_sentences()]

    def _numbers_proven(self) -> str:
        if self.claim != CLAIM:  # of a file from before numbers were bounded
            return ""
        return ", and every stored number to be right to as much (relative)"

    def _condition_sentences(self) -> list[str]:
        # A covariance rounded to float64 is another model by some (condition^2 unit)^2 nats.
        if self.condition is None or not (self.condition**2 * UNIT) ** 2 > self.tolerance:
            return []
        return [
            f"Columns nearly repeat others within classes (condition number {self.condition:.1e}): every entry of the "
            "covariance is right, but its inverse taken in float64 is not that of the model. Take it from roots_."
        ]

    def _redundant_sentences(self) -> list[str]:
        if not self.dependent:
            return []
        noun = "column is" if len(self.dependent) == 1 else "columns are"
        shown = ", ".join(map(repr, self.dependent[:10])) + (", ..." if len(self.dependent) > 10 else "")
        is_exact = TREATING not in self.kind and not self.fault
        more = "say nothing more about the class and " if is_exact else ""
        last = " Taken literally, their last digits could say more about the class." if TREATING in self.kind else ""
        return [
            f"{len(self.dependent)} {noun} constant or a combination of the columns before it: {shown}. "
            f"They {more}are left out.{last}"
        ]


def certify_counts(task: CountTask, state: CountState, tolerance: float) -> LikelihoodCertificate:
    """How far the state of a model of counts is from the best."""
    best = task.solve()
    priors = _Chances.of(best.log_priors, state.log_priors, task.prior_error())
    value, rounding = priors.nats(priors.missing()), priors.rounding()
    error, lost = priors.error(), priors.slack.max()
    for k, share in enumerate(np.exp(best.log_priors)):
        chances = [_Chances.of(*pair) for pair in task.outcomes(best, state, k)]
        times = float(share) * task.trials(k)
        missing = 0.0 if task.is_complete else chances[0].missing()
        value += times * sum(chance.nats(missing) for chance in chances) if times > 0 else 0.0
        rounding += times * sum(chance.rounding() for chance in chances) if times > 0 else 0.0
        error, lost = (
            max(error, *(chance.error() for chance in chances)),
            max(lost, *(chance.slack.max() for chance in chances)),
        )
    worst = max(value, error) + TINY
    return LikelihoodCertificate(
        claim=CLAIM,
        theorem=THEOREM,
        value=float(worst) if np.isfinite(worst) else np.inf,
        tolerance=tolerance,
        rounding=float(rounding + lost) + TINY,
        kind="smoothed likelihood" if task.alpha > 0 else "likelihood",
        shortfall=float(value) + TINY,
        error=float(error),
    )


@dataclass(frozen=True)
class _Chances:
    """Logarithms of chances, the best and the state's. slack: bounds on the relative errors of both as chances."""

    right: Array
    wrong: Array
    slack: Array

    @staticmethod
    def of(right: Array, wrong: Array, slack: Array | float) -> _Chances:
        with np.errstate(invalid="ignore"):
            logs = np.where(np.isfinite(right), np.abs(right), 0.0)
        return _Chances(right, wrong, slack + 4 * UNIT * (1 + logs))

    def missing(self) -> float:
        """1 - sum p at most, and at least 0: chances of a larger sum do not fall short, and `error` bounds them."""
        return max(-float(excess(self.wrong[None, :])[0]), 0.0) + EXCESS_ERROR * (1 + len(self.wrong))

    def nats(self, missing: float) -> float:
        """sum_j p_j h(t_j) + 1 - sum p at most."""
        with np.errstate(all="ignore"):
            step = np.where(self.right == self.wrong, 0.0, np.expm1(self.right - self.wrong))
            terms = np.maximum(_h(step - self.slack), _h(step + self.slack))
            terms = np.where(
                self.wrong > -np.inf, np.exp(self.wrong) * terms, np.where(self.right > -np.inf, np.inf, 0)
            )
        return float(terms.sum()) * (1 + MATRIX_ERROR) + missing

    def rounding(self) -> float:
        """What of `nats` may be the arithmetic's own, and what another machine's logarithms may add to it."""
        p = np.exp(self.right)
        return float(p @ (self.slack**2 / 2)) + chance_rounding(self.right)

    def error(self) -> float:
        """Largest relative error of a chance."""
        with np.errstate(all="ignore"):
            step = np.where(self.right == self.wrong, 0.0, np.abs(np.expm1(self.wrong - self.right)))
        return float((step + self.slack).max(initial=0.0))


def shortfall(right: Array, wrong: Array) -> float:
    """sum_j p^_j log(p^_j / p_j) at most: the divergence, and how far the sums of both are apart."""
    with np.errstate(invalid="ignore"):
        return divergence(right, wrong) + abs(float((right - wrong).sum()))


def divergence(right: Array, wrong: Array) -> float:
    """sum_j p^_j log(p^_j / p_j) + p_j - p^_j = sum_j p_j h(t_j), t = (p^ - p) / p."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(right == wrong, 0.0, (right - wrong) / wrong)
        terms = np.where(wrong > 0, wrong * _h(t), np.where(right > 0, np.inf, 0.0))
    return float(terms.sum())


def _h(t: Array) -> Array:
    """(1 + t) log(1 + t) - t for t > -1, else 1: its limit at -1."""
    small = np.abs(t) < 1e-4  # the series: t^2/2 - t^3/6 + t^4/12
    near = t * t * (0.5 - t / 6 + t * t / 12)
    return np.where(small, near, np.where(t > -1, (1 + t) * np.log1p(t) - t, 1.0))


def chance_rounding(log_p: Array) -> float:
    """What roundings add: chances that add up to 1 do so but for some units, and count in full, not squared."""
    p = np.exp(log_p)
    entropy = -float(p[p > 0] @ log_p[p > 0])
    return float(UNIT * (p.sum() * (4 + np.log2(len(p))) + 2 * entropy))
