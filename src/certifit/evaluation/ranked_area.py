"""The interval of an area under the ROC curve, from its estimated variance and the variance that areas usually have.

With m positives and k negatives of exponential scores the variance of an area t is (Hanley and McNeil 1982, both
classes treated alike, Newcombe 2006)

    H(t) = t (1 - t) (1 + (m + k - 2) / 2 ((1 - t) / (2 - t) + t / (1 + t))) / (m k)

The interval holds every t with (AUC - t)^2 <= q^2 f H(t): a score interval, whose variance moves with t, so it is not
symmetric and stays inside (0, 1). f = DeLong's variance / H(AUC) sets the size; q is Student's quantile, with the
degrees of freedom of DeLong's variance (Satterthwaite). Few rows, or an area near 0 or 1, often have an estimated
variance that is far too small: there f is drawn towards 1 where it is below,

    f + (max(f, 1) - f) 15 / (15 + 4 AUC (1 - AUC) min(m, k)),

which fades as rows grow. 15 is chosen by simulation: `python -m benchmarks.coverage auc`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

FADE = 15.0
_HALVINGS = 200  # of an interval of logarithms of odds: beyond float64


@dataclass(frozen=True)
class RankedArea:
    """An AUC strictly between 0 and 1, and what its interval needs.

    rest: 1 - AUC; variance: estimated; freedom: its degrees of freedom; H(t) = t (1 - t) (pairs + rows g(t)), g the
    bracket of the two fractions; fewest: rows of the smaller class.
    """

    auc: float
    rest: float
    variance: float
    freedom: float
    pairs: float
    rows: float
    fewest: float

    def interval(self, level: float) -> tuple[float, float]:
        """Both ends."""
        usual = self._usual_variance(self.auc, self.rest)
        ratio = self.variance / usual
        share = FADE / (FADE + 4 * self.auc * self.rest * self.fewest)
        size = ratio + (max(ratio, 1.0) - ratio) * share
        limit = student_quantile(level, self.freedom) ** 2 * size
        return self._end(limit, -1.0), self._end(limit, 1.0)

    def _usual_variance(self, area: float, rest: float) -> float:
        return area * rest * (self.pairs + self.rows * (rest / (1 + rest) + area / (1 + area)))

    def _end(self, limit: float, side: float) -> float:
        """The end on one side, by halving the logarithm of its odds."""
        inside, outside = math.log(self.auc) - math.log(self.rest), 745.0 * side
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            area, rest = float(special.expit(middle)), float(special.expit(-middle))
            # The smaller of both keeps its digits near 0 and 1.
            apart = area - self.auc if area < 0.5 else self.rest - rest
            if apart**2 <= limit * self._usual_variance(area, rest):
                inside = middle
            else:
                outside = middle
        return float(special.expit(inside))


def satterthwaite(first: float, first_freedom: float, second: float, second_freedom: float) -> float:
    """Degrees of freedom of the sum of two estimated variances."""
    total = first + second
    return total**2 / (first**2 / first_freedom + second**2 / second_freedom)


def student_quantile(level: float, freedom: float) -> float:
    """t with P(|T| <= t) = level, T of Student's law."""
    return float(-special.stdtrit(freedom, (1 - level) / 2))


def student_p_value(statistic: float, freedom: float) -> float:
    """P(|T| > |statistic|)."""
    return float(2 * special.stdtr(freedom, -abs(statistic)))
