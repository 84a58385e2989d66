"""What the theorems of the course promise, as numbers with their assumptions.

A bound is a promise under assumptions about data nobody has seen. It is not a measured error and mostly far above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.intervals import HELD_OUT, check_level, clopper_pearson
from certifit.evaluation.pictures import new_axes

NOT_MEASURED = "This is a promise under assumptions, not a measured error."


@dataclass(frozen=True)
class Bound:
    """A number that a theorem promises. `sentence` names the assumptions."""

    value: float
    sentence: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value:.6g}: {self.sentence})"


@dataclass(frozen=True, repr=False)
class RidgeStability(Bound):
    """m, alpha and epsilon of the ridge stability theorem; `curve` and `plot` show epsilon over m."""

    epsilon: float
    m: int
    alpha: float
    B: float

    def curve(self, m: Any = None) -> tuple[Array, Array]:
        """(m, epsilon): the rows where the theorem speaks (epsilon < 1) up to 100 times as many, or those given."""
        least = 150 * self.B**2
        rows = np.geomspace(max(least, 1.0), 100 * max(least, self.m), 100) if m is None else np.asarray(m, dtype=float)
        if not (rows >= 1).all():
            raise ValueError(f"m must be >= 1. Got {rows.min():g}.")
        return rows, np.sqrt(least / rows)

    def plot(self, ax: Any = None) -> Any:
        """Draw epsilon over m and give back the axes."""
        ax = new_axes(ax, "RidgeStability.plot")
        rows, epsilon = self.curve()
        ax.plot(rows, epsilon, label=rf"$\epsilon = B\sqrt{{150/m}}$, B = {self.B:g}")
        if self.epsilon < 1:
            ax.plot([self.m], [self.epsilon], "o", label=f"m = {self.m:,}, $\\epsilon$ = {self.epsilon:.3g}")
        ax.set(xscale="log", yscale="log", xlabel="training rows m", ylabel="excess risk promised in expectation")
        ax.set_title("Ridge stability: a promise, not a measured error")
        ax.legend()
        return ax


def ridge_stability(epsilon: float | None = None, m: int | None = None, B: float = 1.0) -> RidgeStability:
    """Rows and alpha for a wanted epsilon, or epsilon for given rows.

    m >= 150 B^2 / epsilon^2,  alpha = 2 epsilon / (3 B^2),  epsilon < 1
        =>  E[risk of ridge] <= min over |w| <= B of the risk + epsilon

    for the loss 1/2 (y - x'w)^2, no intercept, |x| <= 1, |y| <= 1. `value` is m when epsilon is given, epsilon when m
    is; inf below 150 B^2 rows, where the theorem says nothing.

    >>> bound = ridge_stability(epsilon=0.1)
    >>> bound.m, round(bound.alpha, 6)
    (15000, 0.066667)
    >>> round(ridge_stability(m=15000).value, 6)
    0.1
    """
    _check(B > 0 and math.isfinite(B), "B must be a positive number", B)
    if (epsilon is None) == (m is None):
        raise ValueError(f"Give epsilon or m, and not both. Got epsilon={epsilon}, m={m}.")
    if epsilon is not None:
        _check(0 < epsilon < 1, "epsilon must be between 0 and 1", epsilon)
        rows, excess = math.ceil(150 * (Fraction(B) / Fraction(epsilon)) ** 2), float(epsilon)
    else:
        rows = _whole(m, "m")
        excess = B * math.sqrt(150 / rows)
        excess = excess if excess < 1 else math.inf
    alpha = 2 * excess / (3 * B**2) if math.isfinite(excess) else math.nan
    value = float(rows) if epsilon is not None else excess
    return RidgeStability(value, _ridge_sentence(excess, rows, alpha, B), excess, rows, alpha, B)


def _ridge_sentence(epsilon: float, m: int, alpha: float, B: float) -> str:
    if math.isinf(epsilon):
        return f"With {m} rows the theorem says nothing: it needs more than 150 B^2 = {150 * B**2:g} rows."
    return (
        f"On {m} independent rows, ridge with alpha={alpha:.4g} is in expectation at most {epsilon:.4g} worse in "
        f"mean 1/2 (y - x'w)^2 than the best w with |w| <= {B:g}, if |x| <= 1, |y| <= 1 and there is no intercept. "
        f"{NOT_MEASURED}"
    )


def hard_margin(margin: float, radius: float, m: int, delta: float) -> Bound:
    """sqrt(4 (radius / margin)^2 / m) + sqrt(2 ln(2 / delta) / m), at most 1: the error of the hard-margin SVM.

    >>> round(hard_margin(margin=1.0, radius=2.0, m=10_000, delta=0.05).value, 4)
    0.0672
    """
    _check(0 < margin <= radius < math.inf, "margin must be in (0, radius], radius finite", (margin, radius))
    _check(0 < delta < 1, "delta must be between 0 and 1", delta)
    rows = _whole(m, "m")
    value = math.sqrt(4 * (radius / margin) ** 2 / rows) + math.sqrt(2 * math.log(2 / delta) / rows)
    vacuous = " It is above 1 and says nothing." if value >= 1 else ""
    sentence = (
        f"If the distribution has this margin, {margin:g} in radius {radius:g}, and the halfspace no intercept, the "
        f"error on new rows is at most {min(value, 1):.4g} with probability {1 - delta:g} over {rows} training rows."
        f"{vacuous} The margin seen in the data does not prove the assumption. {NOT_MEASURED}"
    )
    return Bound(min(value, 1.0), sentence)


def perceptron(radius: float, margin: float, delta: float = 0.0) -> Bound:
    """(R^2 + 2 delta) / gamma^2: the most updates from zero, delta the threshold; (R / gamma)^2 for delta 0.

    R and gamma are those of the augmented examples y_i (x_i, 1), not the margin of an SVM.

    >>> perceptron(radius=2.0, margin=0.5).value
    16.0
    """
    _check(0 < margin <= radius < math.inf, "margin must be in (0, radius], radius finite", (margin, radius))
    _check(0 <= delta < math.inf, "delta must be >= 0", delta)
    value = (radius / margin) ** 2 + 2 * (delta / margin) / margin
    sentence = (
        f"At most {math.floor(value)} updates from zero at threshold {delta:g}, if every augmented example "
        f"y (x, 1) has norm {radius:g} at most and some unit vector gives each of them {margin:g} at least. "
        "It bounds the updates in training and says nothing about new rows."
    )
    return Bound(value, sentence)


def adaboost(errors: Any) -> Bound:
    """prod_j 2 sqrt(d_j (1 - d_j)): the training error of AdaBoost with two classes, d_j the weighted errors.

    >>> round(adaboost([0.3, 0.2]).value, 6)
    0.733212
    """
    d = np.asarray(errors, dtype=np.float64).reshape(-1)
    _check(len(d) > 0 and bool(((d >= 0) & (d <= 1)).all()), "errors must be one or more numbers in [0, 1]", errors)
    value = float(np.prod(2 * np.sqrt(d * (1 - d))))
    sentence = (
        f"After {len(d)} rounds at most {value:.4g} of the training rows are wrong, for two classes. "
        "It bounds the training error and says nothing about new rows."
    )
    return Bound(value, sentence)


@dataclass(frozen=True, repr=False)
class HeldOut(Bound):
    """The true error is in [low, high] with this level; `value` is high."""

    low: float
    high: float
    level: float


def held_out(errors: int, n: int, level: float = 0.95) -> HeldOut:
    """Clopper-Pearson interval of the true error from errors on n held-out rows.

    >>> held_out(5, 100).low.__round__(4), held_out(5, 100).high.__round__(4)
    (0.0164, 0.1128)
    """
    low, high = clopper_pearson(_whole(errors, "errors", least=0), _whole(n, "n"), check_level(level))
    sentence = (
        f"{errors} errors in {n} rows: the true error is in [{low:.4g}, {high:.4g}] with confidence {100 * level:g} % "
        f"or more, {HELD_OUT}. Errors pooled over folds are not independent: this does not hold for them."
    )
    return HeldOut(high, sentence, low, high, float(level))


def left_out_share(m: int) -> Bound:
    """(1 - 1/m)^m -> 1/e: the probability that a bootstrap sample of m rows leaves a given row out.

    >>> left_out_share(2).value
    0.25
    """
    rows = _whole(m, "m")
    value = math.exp(rows * math.log1p(-1 / rows)) if rows > 1 else 0.0
    sentence = (
        f"A bootstrap sample of {rows} rows leaves a given row out with probability {value:.6g} (1/e = 0.367879)."
    )
    return Bound(value, sentence)


def _check(holds: bool, legal: str, got: Any) -> None:
    if not holds:
        raise ValueError(f"{legal}. Got {got}.")


def _whole(value: Any, name: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}. Got {value!r}.")
    return int(value)
