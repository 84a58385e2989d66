"""A metric with its confidence interval: `Estimate`.

An interval stands where theory gives one; elsewhere `sentence` says why there is none. Clopper-Pearson is exact for
shares of independent unweighted rows. The bootstrap, of any statistic or studentised for means and ratios of means, is
approximate. Neither holds for errors pooled over folds. How often each of them covers is measured:
`python -m benchmarks.coverage`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import special

from certifit.data.columns import Array
from certifit.evaluation.metrics.rows import check_lengths, column

WEIGHTED = (
    "No interval: Clopper-Pearson counts rows and these carry weights. "
    "For an approximate one call bootstrap_interval with the weights as one of the arrays."
)
POOLED = (
    "No interval: errors pooled over folds are not independent, for the fits share training rows. "
    "Hold rows out to get one."
)
HELD_OUT = "if the rows are independent and the fit has not seen them"
MOST_ROWS = 1e11  # beyond it the quantiles of the beta distribution lose their digits
_GROUPS = 200  # the jackknife behind BCa leaves out this many groups of rows, or each row of fewer


class Estimate(float):
    """A float with an interval.

    `low` and `high` are the ends, None where there is no interval; `level` is the coverage aimed at, `method` the
    theory used ("none" without an interval), `sentence` says what the interval means or why there is none.

    >>> Estimate(0.9, 0.82, 0.95, level=0.95, method="Clopper-Pearson")
    Estimate(0.9, 95 % interval [0.82, 0.95], Clopper-Pearson)
    >>> Estimate(0.9, sentence="No interval: the rows carry weights.")
    Estimate(0.9, no interval)
    >>> Estimate(0.9, 0.82, 0.95) + 0.1
    1.0
    """

    __slots__ = ("high", "level", "low", "method", "sentence")
    low: float | None
    high: float | None
    level: float
    method: str
    sentence: str

    def __new__(
        cls,
        value: float,
        low: float | None = None,
        high: float | None = None,
        *,
        level: float = 0.95,
        method: str = "none",
        sentence: str = "",
    ) -> Estimate:
        """The value alone, without its interval."""
        if (low is None) != (high is None):
            raise ValueError(f"An interval has two ends, or none. Got low {low} and high {high}.")
        self = super().__new__(cls, value)
        self.low, self.high = (None, None) if low is None or high is None else (float(low), float(high))
        self.level, self.method, self.sentence = check_level(level), method, sentence
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), float(self), self.low, self.high, self.level, self.method, self.sentence)

    def __repr__(self) -> str:
        if self.low is None:
            return f"Estimate({float(self)!r}, no interval)"
        return f"Estimate({float(self)!r}, {interval_words(self.level, self.low, self.high)}, {self.method})"

    def __str__(self) -> str:  # the number alone, as a CSV writer wants it
        return float.__repr__(self)


def _restored(cls: type[Estimate], value: float, low: Any, high: Any, level: float, *words: str) -> Estimate:
    return cls(value, low, high, level=level, method=words[0], sentence=words[1])


def interval_words(level: float, low: Any, high: Any) -> str:
    """'95 % interval [0.82, 0.95]'."""
    return f"{100 * level:g} % interval [{low:.4g}, {high:.4g}]"


def check_level(level: Any) -> float:
    """The coverage of an interval, strictly between 0 and 1."""
    value = float(level)
    if not 0 < value < 1:
        raise ValueError(f"level must be between 0 and 1, for example 0.95. Got {level}.")
    return value


# ---- shares of rows -------------------------------------------------------------------------------------------------


def clopper_pearson(errors: Any, n: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Exact interval of a share from `errors` of `n` rows. Arrays give arrays.

    low  = the p with P(Binomial(n, p) >= errors) = (1 - level) / 2, 0 without an error
    high = the p with P(Binomial(n, p) <= errors) = (1 - level) / 2, 1 if all are errors

    It covers the true share with probability `level` at least, for independent rows that weigh the same.

    >>> low, high = clopper_pearson(0, 10)
    >>> low, round(high, 4)
    (0.0, 0.3085)
    """
    k, rows = np.asarray(errors, dtype=np.float64), np.asarray(n, dtype=np.float64)
    whole = (k == np.floor(k)) & (rows == np.floor(rows))
    if not np.all(whole & (k >= 0) & (k <= rows) & (rows >= 1) & (rows <= MOST_ROWS)):
        legal = f"whole numbers with 0 <= errors <= n and 1 <= n <= {MOST_ROWS:.0e}"
        raise ValueError(f"errors and n must be {legal}. Got {errors} of {n}.")
    tail = (1 - check_level(level)) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(k == 0, 0.0, special.betaincinv(np.maximum(k, 1), rows - k + 1, tail))
        high = np.where(k == rows, 1.0, special.betainccinv(k + 1, np.maximum(rows - k, 1), tail))
    return (float(low), float(high)) if low.ndim == 0 else (low, high)


def share(count: float, n: float, level: float = 0.95, *, reason: str = "") -> Estimate:
    """count / n of n rows with its Clopper-Pearson interval; `reason`: the sentence that says why it may not have one.

    >>> share(9, 10)
    Estimate(0.9, 95 % interval [0.555, 0.9975], Clopper-Pearson)
    """
    if reason:
        return Estimate(count / n, level=level, sentence=reason)
    low, high = clopper_pearson(count, n, level)
    sentence = (
        f"{interval_words(level, low, high)} (Clopper-Pearson): this coverage or more over {n:g} rows, {HELD_OUT}."
    )
    return Estimate(count / n, low, high, level=level, method="Clopper-Pearson", sentence=sentence)


# ---- bootstrap ------------------------------------------------------------------------------------------------------

Method = Literal["expanded", "bca", "percentile"]


def bootstrap_interval(
    statistic: Callable[..., float],
    *arrays: Any,
    n_resamples: int = 1000,
    level: float = 0.95,
    random_state: int = 0,
    method: Method = "expanded",
) -> Estimate:
    """statistic(*arrays) with an interval from resampled rows.

    Rows are drawn with repetition, the same rows of every array (y, predictions, weights). Replicate b depends on
    (random_state, b) alone. Approximate: coverage nears `level` as rows grow, if they are independent.
    "percentile" takes quantiles of the replicates; "bca" corrects them for bias and skewness (Efron 1987); "expanded"
    takes those of "bca" farther out, as Student's law is farther out than the normal one (Hesterberg 2015): of the
    three it covers best with few rows. Scores such as mean_squared_error have a better interval of their own.

    >>> y = np.arange(20.0)
    >>> bootstrap_interval(np.mean, y, n_resamples=200, method="percentile")
    Estimate(9.5, 95 % interval [7.3, 12.16], bootstrap percentile)
    """
    columns = {f"array {i}": column(array, f"array {i}") for i, array in enumerate(arrays)}
    if not columns:
        raise ValueError("bootstrap_interval needs at least one array of rows. Got none.")
    if method not in METHODS:
        raise ValueError(f"method must be 'expanded', 'bca' or 'percentile'. Got {method!r}.")
    n_rows = check_lengths(columns)

    def of(rows: Any) -> float:
        return float(statistic(*(values[rows] for values in columns.values())))

    value = of(slice(None))
    ends = METHODS[method](of, n_rows) if math.isfinite(value) else percentile_ends

    def draw(rng: np.random.Generator) -> float:
        return of(drawn_rows(n_rows, rng))

    return bootstrap(value, draw, n_resamples, level, random_state, ends, NAMES[method])


Ends = Callable[[float, Array, float], "tuple[float, float] | None"]  # (value, sorted replicates, tail) -> low, high


def percentile_ends(value: float, values: Array, tail: float) -> tuple[float, float] | None:
    """Quantiles of the replicates."""
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap(
    value: float,
    replicate: Callable[[np.random.Generator], float],
    n_resamples: int,
    level: float,
    random_state: int,
    ends: Ends = percentile_ends,
    name: str = "bootstrap percentile",
) -> Estimate:
    """The value with the interval of its replicates, number b drawn with `generator(random_state, b)`."""
    check_level(level)
    check_resamples(n_resamples)
    if not math.isfinite(value):
        return Estimate(value, level=level, sentence=f"No interval: the statistic of all rows is {value}.")
    values = np.array([replicate(generator(random_state, b)) for b in range(n_resamples)])
    defined = np.sort(values[np.isfinite(values)])
    interval = ends(value, defined, (1 - level) / 2) if len(defined) >= 2 else None
    if interval is None:
        reason = f"No interval: {n_resamples} resamples do not lie on both sides of the value."
        return Estimate(value, level=level, sentence=reason)
    lost = n_resamples - len(defined)
    left_out = f" {lost} resamples without a finite value are left out." if lost else ""
    sentence = (
        f"{interval_words(level, *interval)} (bootstrap, {n_resamples} resamples): approximate, {HELD_OUT}; "
        f"its coverage is not guaranteed.{left_out}"
    )
    return Estimate(value, *interval, level=level, method=name, sentence=sentence)


def check_resamples(n_resamples: Any) -> None:
    """Refuse what is no number of resamples."""
    if not isinstance(n_resamples, int | np.integer) or n_resamples < 2:
        raise ValueError(f"n_resamples must be a whole number >= 2. Got {n_resamples!r}.")


def check_seed(random_state: Any) -> None:
    """Refuse what is no seed."""
    if not isinstance(random_state, int | np.integer) or not 0 <= random_state < 2**64:
        raise ValueError(f"random_state must be a whole number from 0 to 2^64 - 1. Got {random_state!r}.")


def generator(random_state: Any, replicate: int) -> np.random.Generator:
    """The random numbers of one replicate: Philox keyed by (random_state, replicate), whatever else was drawn."""
    check_seed(random_state)
    return np.random.Generator(np.random.Philox(key=np.array([random_state, replicate], dtype=np.uint64)))


def drawn_rows(n_rows: int, rng: np.random.Generator) -> Array:
    """n_rows row numbers drawn with repetition."""
    return rng.integers(0, n_rows, n_rows)


def _bca_ends(skew: float, value: float, values: Array, tail: float) -> tuple[float, float] | None:
    """Efron 1987: quantiles at Phi(z0 + z / (1 - skew z)), z = z0 -+ Phi^-1(tail), z0 = Phi^-1(share below value)."""
    below = float(np.mean(values < value) + np.mean(values == value) / 2)
    z0 = special.ndtri(below)
    z = z0 + special.ndtri([tail, 1 - tail])
    if not 0 < below < 1 or np.any(skew * z >= 1):
        return None
    low, high = np.quantile(values, special.ndtr(z0 + z / (1 - skew * z)))
    return float(low), float(high)


def _acceleration(of: Callable[[Array], float], n_rows: int) -> float:
    """sum d^3 / (6 (sum d^2)^1.5), d the effects of leaving out each group of rows."""
    if n_rows < 2:
        return 0.0
    group = np.arange(n_rows) % min(n_rows, _GROUPS)
    left = np.array([of(np.flatnonzero(group != g)) for g in range(int(group[:_GROUPS].max()) + 1)])
    effects = left.mean() - left
    effects = effects / (np.abs(effects).max() or 1.0)
    squares = float(np.sum(effects**2))
    return float(np.sum(effects**3)) / (6 * squares**1.5) if squares > 0 else 0.0


def expanded_ends(n_rows: int, ends: Ends) -> Ends:
    """Ends at the tail Phi(-sqrt(n / (n - 1)) t), t the quantile of Student's law with n - 1 degrees of freedom."""

    def wider(value: float, values: Array, tail: float) -> tuple[float, float] | None:
        if n_rows < 2:
            return None
        t = special.stdtrit(n_rows - 1, tail)
        return ends(value, values, float(special.ndtr(math.sqrt(n_rows / (n_rows - 1)) * t)))

    return wider


def _bca(of: Callable[[Any], float], n_rows: int) -> Ends:
    return partial(_bca_ends, _acceleration(of, n_rows))


METHODS: dict[str, Callable[[Callable[[Any], float], int], Ends]] = {
    "expanded": lambda of, n_rows: expanded_ends(n_rows, _bca(of, n_rows)),
    "bca": _bca,
    "percentile": lambda of, n_rows: percentile_ends,
}
NAMES = {"expanded": "bootstrap BCa, expanded", "bca": "bootstrap BCa", "percentile": "bootstrap percentile"}


# ---- studentised bootstrap of a mean, or of a ratio of two means, on the logarithmic scale ---------------------------
#     A = sum w a / sum w,   B = sum w b / sum w (1 where there is no b),   L = log(A / B)
#     s^2 = n / (n - 1) sum_i (w_i (a_i / A - b_i / B) / sum w)^2,   the variance of L to first order
#
# A mean squared error is A; R^2 is 1 - A / B with a the squared error and b the square about the mean of y. With L*
# and s* of rows drawn with repetition, t* = (L* - L) / s*, and the interval of L goes from L - c s t_high to L - c s
# t_low, the quantiles of t*; c^2 = n / (n - 1), for drawn rows spread about the mean of n rows and not about the
# truth. It covers far better than quantiles of A* where errors are skew and rows few: `python -m benchmarks.coverage
# errors`.

FEWEST = 15  # rows; with fewer the interval of a mean squared error covers less than 93 % where 95 % is meant
TOO_FEW = (
    "Too few rows for this interval: it needs {}, and these are {:.4g}{}. Hold out more rows, or judge the errors one "
    "by one."
)
NO_ERROR = "No interval: every error is 0."
NO_SPREAD = "No interval: every row has the same error."
ONE_SIDED = "No interval: too many resamples have no error at all."

# (columns, weight) -> a, b of every row; b None: 1
Parts = Callable[[tuple[Array, ...], Array | None], tuple[Array, Array | None]]


@dataclass(frozen=True)
class Factors:
    """What A / B is multiplied by at both ends of its interval; reason: why there is none."""

    low: float = math.nan
    high: float = math.nan
    left_out: int = 0
    reason: str = ""


def effective_rows(n_rows: int, weight: Array | None) -> float:
    """n, or (sum w)^2 / sum w^2: how many rows of equal weight are as informative."""
    if weight is None:
        return float(n_rows)
    share = weight / weight.max()
    return float(share.sum() ** 2 / (share**2).sum())


def studentised(
    parts: Parts, columns: tuple[Array, ...], weight: Array | None, n_resamples: int, level: float, random_state: int
) -> Factors:
    """The interval of A / B, relative to it."""
    check_resamples(n_resamples)
    n_rows = len(columns[0])
    counted = effective_rows(n_rows, weight)
    if counted < FEWEST:
        worth = "" if weight is None else " by their weights"
        return Factors(reason=TOO_FEW.format(FEWEST, counted, worth))
    value, spread = _log_ratio(parts, columns, weight)
    if not math.isfinite(value) or not spread > 0:
        return Factors(reason=NO_SPREAD if math.isfinite(value) else NO_ERROR)
    drawn = np.array([
        _log_ratio(parts, *_drawn(columns, weight, generator(random_state, b))) for b in range(n_resamples)
    ])  # fmt: skip
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (drawn[:, 0] - value) / drawn[:, 1]
    t = t[~np.isnan(t)]
    tail = (1 - level) / 2
    wide = math.sqrt(counted / (counted - 1)) * spread
    # Whole places: t may be infinite, and between infinities there is nothing to interpolate.
    high = -wide * np.quantile(t, tail, method="lower") if len(t) else math.inf
    low = -wide * np.quantile(t, 1 - tail, method="higher") if len(t) else -math.inf
    if not (math.isfinite(low) and math.isfinite(high) and low < high < 700):
        return Factors(reason=ONE_SIDED)
    return Factors(math.exp(low), math.exp(high), n_resamples - len(t))


def _drawn(
    columns: tuple[Array, ...], weight: Array | None, rng: np.random.Generator
) -> tuple[tuple[Array, ...], Array | None]:
    rows = drawn_rows(len(columns[0]), rng)
    return tuple(values[rows] for values in columns), None if weight is None else weight[rows]


def _log_ratio(parts: Parts, columns: tuple[Array, ...], weight: Array | None) -> tuple[float, float]:
    """L and s; nan where a mean is 0 or undefined, -inf and nan without an error."""
    n_rows = len(columns[0])
    if weight is not None and not weight.any():
        return math.nan, math.nan
    shares = np.full(n_rows, 1.0 / n_rows) if weight is None else weight / weight.sum()
    a, b = parts(columns, weight)
    top, bottom = float(shares @ a), 1.0 if b is None else float(shares @ b)
    if not (top > 0 and bottom > 0):
        return -math.inf if top == 0 and bottom > 0 else math.nan, math.nan
    effects = shares * (a / top - (1.0 if b is None else b / bottom))
    spread = math.sqrt(n_rows / (n_rows - 1) * float(effects @ effects))
    return math.log(top) - math.log(bottom), spread
