"""Errors of predicted numbers: means of a loss over rows, and shares of spread explained.

    mean squared error  sum w (y - p)^2 / sum w        R^2 = 1 - sum w (y - p)^2 / sum w (y - mean y)^2
    mean deviance       sum w d(y, p) / sum w, d of a Tweedie family: power 0 Gaussian, 1 Poisson, 2 Gamma

Weight 2 is the row twice. Statistics add, so blocks merge: sums are kept as means and as squares about them in units
of a power of two, and values up to 1e+-300 do not overflow where the answer itself does not.
Every error takes `n_resamples`: 0 gives no interval, 1000 a studentised bootstrap interval over rows (`studentised`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.metrics.intervals import HELD_OUT, Estimate, Parts, check_level, interval_words, studentised
from certifit.evaluation.metrics.rows import check_lengths, numbers, row_weights
from certifit.mathematics.families import deviances

Deviance = Callable[[Array, Array], Array]
NOT_ASKED = f"No interval asked for. n_resamples=1000 gives one by the bootstrap, valid {HELD_OUT}."
UNDEFINED = "No interval: the score is undefined or beyond float64 (one row, constant y, or values too large)."
CONSTANT = "No interval: y is constant, so there is no spread to explain, and the value is a convention."
_SAFE = 300  # exponents of two whose squares, summed, stay in range
_LOWEST = -2000  # the exponent of zeros: any other block sets the unit of a sum


# ---- what is added --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeanLoss:
    """Mean of a loss over rows; + merges blocks.

    >>> (MeanLoss.of(np.array([1.0, 3.0])) + MeanLoss.of(np.array([8.0]))).mean
    4.0
    """

    mean: float
    weight: float  # sum of weights, or number of rows

    @classmethod
    def of(cls, losses: Array, weight: Array | None = None) -> MeanLoss:
        """Of one block of rows."""
        if weight is None:
            return cls(_sum(losses / len(losses)), float(len(losses)))
        total = float(weight.sum())
        # A row of weight 0 counts for nothing, whatever its loss.
        return cls(_sum(np.where(weight > 0, losses, 0.0) * (weight / total)), total)

    def __add__(self, other: MeanLoss) -> MeanLoss:
        weight = self.weight + other.weight
        return MeanLoss(self.mean * (self.weight / weight) + other.mean * (other.weight / weight), weight)


@dataclass(frozen=True)
class Spread:
    """Mean and sum of squares about it, both scaled: x = 2**exponent times the number here. + merges blocks (Chan)."""

    mean: float
    squares: float  # sum w (x - mean)^2
    weight: float
    exponent: int = 0

    @classmethod
    def of(cls, values: Array, weight: Array | None = None, exponent: int = 0) -> Spread:
        """Of one block of rows, given in units of 2**exponent."""
        largest = float(np.abs(values).max())
        shift = math.frexp(largest)[1] if largest > 0 else _LOWEST
        shift = 0 if abs(shift) <= _SAFE else shift
        x = np.ldexp(values, -shift) if shift else values
        first = x[
            0 if weight is None else int(np.argmax(weight > 0))
        ]  # the squares of equal values are 0, not rounding
        mean = float(first + np.average(x - first, weights=weight))
        squares = (x - mean) ** 2
        total = float(len(x)) if weight is None else float(weight.sum())
        return cls(mean, _sum(squares if weight is None else squares * weight), total, shift + exponent)

    def __add__(self, other: Spread) -> Spread:
        exponent = max(self.exponent, other.exponent)
        a, b = self._in_units(exponent), other._in_units(exponent)
        weight = a.weight + b.weight
        apart = b.mean - a.mean
        mean = a.mean + apart * (b.weight / weight)
        squares = a.squares + b.squares + apart * apart * a.weight * (b.weight / weight)
        return Spread(mean, squares, weight, exponent)

    @property
    def about_zero(self) -> float:
        """sum w x^2, in units of 4**exponent."""
        return self.squares + self.weight * self.mean**2

    @property
    def mean_square(self) -> float:
        """sum w x^2 / sum w in the units of the rows; inf where that is too large for a float64."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(self.about_zero / self.weight, 2 * self.exponent))

    @property
    def root_mean_square(self) -> float:
        """Its root."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(math.sqrt(self.about_zero / self.weight), self.exponent))

    def _in_units(self, exponent: int) -> Spread:
        down = self.exponent - exponent
        return Spread(math.ldexp(self.mean, down), math.ldexp(self.squares, 2 * down), self.weight, exponent)


def _sum(values: Array) -> float:
    with np.errstate(over="ignore"):
        return float(np.sum(values))


# ---- scores ---------------------------------------------------------------------------------------------------------


def mean_squared_error(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """sum w (y - p)^2 / sum w; inf where that is too large for a float64.

    >>> mean_squared_error([1.0, 2.0, 3.0], [1.0, 2.0, 6.0])
    Estimate(3.0, no interval)
    """
    _, r, unit, weight = residuals(y_true, y_pred, sample_weight)

    def score(r: Array, w: Array) -> float:
        return Spread.of(r, w, unit).mean_square

    return scored(score, (r,), weight, n_resamples, level, random_state, _squares)


def root_mean_squared_error(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """Square root of the mean squared error, which may itself be too large for a float64.

    >>> float(root_mean_squared_error([1e300, 0.0], [0.0, 1e300]))
    1e+300
    """
    _, r, unit, weight = residuals(y_true, y_pred, sample_weight)

    def score(r: Array, w: Array) -> float:
        return Spread.of(r, w, unit).root_mean_square

    return scored(score, (r,), weight, n_resamples, level, random_state, _squares, _root_moved)


def mean_absolute_error(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """sum w |y - p| / sum w.

    >>> float(mean_absolute_error([1.0, 2.0, 3.0], [1.0, 2.0, 6.0]))
    1.0
    """
    _, r, unit, weight = residuals(y_true, y_pred, sample_weight)
    return scored(
        lambda r, w: math.ldexp(MeanLoss.of(np.abs(r), w).mean, unit), (r,), weight, n_resamples, level, random_state
    )


def r2_score(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    force_finite: bool = True,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """R^2 = 1 - sum w (y - p)^2 / sum w (y - mean y)^2.

    Constant y: 1 for perfect predictions, else 0; with force_finite=False nan and -inf. One row: nan.

    >>> float(r2_score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))
    0.5
    """
    rows = residuals(y_true, y_pred, sample_weight)
    return _explained_share(rows, False, force_finite, n_resamples, level, random_state)


def explained_variance_score(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    force_finite: bool = True,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """1 - var(y - p) / var(y): R^2 of predictions that may be off by a constant. Constant y: as in `r2_score`.

    >>> float(explained_variance_score([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]))
    1.0
    """
    rows = residuals(y_true, y_pred, sample_weight)
    return _explained_share(rows, True, force_finite, n_resamples, level, random_state)


def mean_tweedie_deviance(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    power: float = 0,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """sum w d(y, p) / sum w for the Tweedie family whose variance is mean^power.

    power 0: (y - p)^2;  1: Poisson, y >= 0;  2: Gamma, y > 0;  3: inverse Gaussian, y > 0;  p > 0 but at power 0.

    >>> float(mean_tweedie_deviance([1.0, 2.0], [1.0, 3.0], power=0))
    0.5
    """
    y, p, weight = read(y_true, y_pred, sample_weight)
    losses = unit_deviance(y, p, power)
    return scored(lambda d, w: MeanLoss.of(d, w).mean, (losses,), weight, n_resamples, level, random_state)


def mean_poisson_deviance(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """Mean of 2 (y log(y / p) - y + p), y >= 0, p > 0.

    >>> float(mean_poisson_deviance([0.0, 2.0], [1.0, 2.0]))
    1.0
    """
    y, p, weight = read(y_true, y_pred, sample_weight)
    losses = unit_deviance(y, p, 1)
    return scored(lambda d, w: MeanLoss.of(d, w).mean, (losses,), weight, n_resamples, level, random_state)


def mean_gamma_deviance(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """Mean of 2 (log(p / y) + y / p - 1), y > 0, p > 0.

    >>> round(float(mean_gamma_deviance([1.0, 2.0], [2.0, 2.0])), 12)
    0.19314718056
    """
    y, p, weight = read(y_true, y_pred, sample_weight)
    losses = unit_deviance(y, p, 2)
    return scored(lambda d, w: MeanLoss.of(d, w).mean, (losses,), weight, n_resamples, level, random_state)


def d2_tweedie_score(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    power: float = 0,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: int = 0,
) -> Estimate:
    """D^2 = 1 - deviance of p / deviance of the mean of y: R^2 at power 0. nan for constant y and for one row.

    >>> float(d2_tweedie_score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]))
    0.5
    """
    y, p, weight = read(y_true, y_pred, sample_weight)
    losses = unit_deviance(y, p, power)
    score, parts = partial(_explained_deviance, power=power), partial(_deviances, power=power)
    return scored(
        score, (y, losses), weight, n_resamples, level, random_state, parts, _share_moved, is_homogeneous=False
    )


# ---- how ------------------------------------------------------------------------------------------------------------


def read(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
    """Checked float64 columns and weights."""
    y, p = numbers(y_true, "y_true"), numbers(y_pred, "y_pred")
    return y, p, row_weights(sample_weight, check_lengths({"y_true": y, "y_pred": p}))


def residuals(y_true: Any, y_pred: Any, sample_weight: Any) -> tuple[Array, Array, int, Array | None]:
    """(y, (y - p) / 2**unit, unit, weights); the unit is 0, or 2 where a difference is too large for a float64."""
    y, p, weight = read(y_true, y_pred, sample_weight)
    with np.errstate(over="ignore"):
        r = y - p
    if np.isfinite(r).all():
        return y, r, 0, weight
    return y, np.ldexp(y, -2) - np.ldexp(p, -2), 2, weight


def unit_deviance(y: Array, p: Array, power: float) -> Array:
    """d(y, p) of each row; refuses rows outside the family's range."""
    power = float(power)
    if 0 < power < 1:
        raise ValueError(f"power must be <= 0 or >= 1: no Tweedie family lies between. Got {power:g}.")
    needs = [("y_pred", p, p > 0, "> 0")] if power != 0 else []
    needs += [("y_true", y, y >= 0, ">= 0")] if 1 <= power < 2 else [("y_true", y, y > 0, "> 0")] if power >= 2 else []
    for name, values, holds, legal in needs:
        if not holds.all():
            row = int(np.argmin(holds))
            family = _FAMILIES.get(power, f"Tweedie (power {power:g})")
            raise ValueError(f"The {family} deviance needs {name} {legal}. Row {row} is {values[row]:g}.")
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        return np.maximum(2.0 * _DEVIANCES.get(power, partial(_tweedie, power=power))(y, p), 0.0)


def _tweedie(y: Array, p: Array, power: float) -> Array:
    a, b = 1 - power, 2 - power
    return np.asarray(np.maximum(y, 0) ** b / (a * b) - y * p**a / a + p**b / b)


_FAMILIES = {1.0: "Poisson", 2.0: "Gamma", 3.0: "inverse Gaussian"}
_DEVIANCES: dict[float, Deviance] = {0.0: deviances.squared, 1.0: deviances.relative, 2.0: deviances.gamma}


def _explained_share(
    rows: tuple[Array, Array, int, Array | None],
    centred: bool,
    force_finite: bool,
    n_resamples: int,
    level: float,
    random_state: int,
) -> Estimate:
    """1 - squares of the residuals, about their mean where centred, over those of y about theirs."""
    y, r, unit, weight = rows
    score = partial(_explained, unit=unit, centred=centred, force_finite=force_finite)
    if is_constant(y, weight):
        return Estimate(score(y, r, weight), level=level, sentence=CONSTANT)
    parts = _spreads if centred else _left_and_spread
    return scored(score, (y, r), weight, n_resamples, level, random_state, parts, _share_moved)


def _explained(y: Array, r: Array, weight: Array | None, *, unit: int, centred: bool, force_finite: bool) -> float:
    if len(y) < 2:
        return math.nan
    total, left = Spread.of(y, weight), Spread.of(r, weight, unit)
    squares = left.squares if centred else left.about_zero
    if total.squares == 0:
        perfect = squares == 0
        return float(perfect) if force_finite else math.nan if perfect else -math.inf
    with np.errstate(over="ignore", under="ignore"):
        return 1.0 - float(np.ldexp(squares / total.squares, 2 * (left.exponent - total.exponent)))


def _explained_deviance(y: Array, losses: Array, weight: Array | None, *, power: float) -> float:
    if len(y) < 2 or is_constant(y, weight):
        return math.nan
    null = unit_deviance(y, np.full_like(y, MeanLoss.of(y, weight).mean), power)
    return 1.0 - MeanLoss.of(losses, weight).mean / MeanLoss.of(null, weight).mean


def is_constant(y: Array, weight: Array | None) -> bool:
    """Whether all rows that weigh something have one value."""
    rows = y if weight is None else y[weight > 0]
    return bool((rows == rows[0]).all())


# ---- intervals ------------------------------------------------------------------------------------------------------

Moved = Callable[[float, float], float]  # (value, what A / B of `studentised` is multiplied by) -> value there


def _moved(value: float, factor: float) -> float:
    return value * factor


def _root_moved(value: float, factor: float) -> float:
    return value * math.sqrt(factor)


def _share_moved(value: float, factor: float) -> float:
    return 1.0 - (1.0 - value) * factor


def _sizes(columns: tuple[Array, ...], weight: Array | None) -> tuple[Array, None]:
    return np.abs(columns[0]), None


def _squares(columns: tuple[Array, ...], weight: Array | None) -> tuple[Array, None]:
    return columns[0] ** 2, None


def _left_and_spread(columns: tuple[Array, ...], weight: Array | None) -> tuple[Array, Array]:
    y, r = columns
    return r**2, (y - np.average(y, weights=weight)) ** 2


def _spreads(columns: tuple[Array, ...], weight: Array | None) -> tuple[Array, Array]:
    y, r = columns
    return (r - np.average(r, weights=weight)) ** 2, (y - np.average(y, weights=weight)) ** 2


def _deviances(columns: tuple[Array, ...], weight: Array | None, *, power: float) -> tuple[Array, Array]:
    """Of the predictions and of the mean: the mean minimises its deviance, so to first order it does not move it."""
    y, losses = columns
    return losses, unit_deviance(y, np.full_like(y, np.average(y, weights=weight)), power)


def scored(
    score: Callable[..., float],
    columns: tuple[Array, ...],
    weight: Array | None,
    n_resamples: int,
    level: float,
    random_state: int,
    parts: Parts = _sizes,
    moved: Moved = _moved,
    is_homogeneous: bool = True,
) -> Estimate:
    """score(*columns, weight) of all rows, and its studentised bootstrap interval where one is asked for.

    is_homogeneous: the parts of columns in other units are the parts in other units.
    """
    value = score(*columns, weight)
    if n_resamples == 0 or not math.isfinite(value):
        return Estimate(value, level=level, sentence=NOT_ASKED if math.isfinite(value) else UNDEFINED)
    kept = columns if weight is None else tuple(values[weight > 0] for values in columns)
    kept = tuple(map(_in_range, kept)) if is_homogeneous else kept
    mass = None if weight is None else weight[weight > 0]
    factors = studentised(parts, kept, mass, n_resamples, check_level(level), random_state)
    if factors.reason:
        return Estimate(value, level=level, sentence=factors.reason)
    low, high = sorted((moved(value, factors.low), moved(value, factors.high)))
    lost = f" {factors.left_out} resamples without a finite value are left out." if factors.left_out else ""
    sentence = (
        f"{interval_words(level, low, high)} (studentised bootstrap, {n_resamples} resamples): approximate, "
        f"{HELD_OUT}; its coverage is not guaranteed.{lost}"
    )
    return Estimate(value, low, high, level=level, method="studentised bootstrap", sentence=sentence)


def _in_range(values: Array) -> Array:
    """The column in units of a power of two in which its squares are finite: A / B is the same up to a factor."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.ldexp(values, -math.frexp(largest)[1]) if largest > 0 else values
