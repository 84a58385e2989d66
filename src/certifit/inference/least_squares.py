"""Inference for least squares with Gaussian noise: standard errors, tests, intervals, the summary table.

    y = Xw + b + e,  e ~ N(0, sigma^2):   least squares is the maximum likelihood estimate

Conventions (those of statsmodels' OLS and WLS): sigma^2-hat is RSS / (N - p), the log-likelihood uses RSS / N.
Frequency weights count rows: weight 2 is the row twice, N is the sum of weights. Variance weights are inverse
variances up to a factor: N is the number of rows. p counts the intercept. Without an intercept R-squared and F
compare with the prediction 0 ("uncentered"), even if a column is constant.
What has no value (0 / 0) is nan in Python, None in `to_dict` and "undefined" in print, with a note.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import linalg, special

from certifit.inference.summary import Dropped, Summary, left_out

EPSILON = float(np.finfo(np.float64).eps)
BLOCK_NUMBERS = 2**17  # numbers of a block of rows in `interval`: 1 MB
FEWEST_DIGITS = 1e-6  # largest relative error, from the rounded entries of A, with which a number is still printed
Kind = Literal["confidence", "prediction"]
Convention = Literal["frequency", "variance"]
WEIGHTS: dict[Convention, str] = {
    "frequency": "Weights count rows (frequency): weight 2 is the row twice.",
    "variance": "Weights are inverse variances up to a factor (variance): every row counts once.",
}
NOISE = {"confidence": 0.0, "prediction": 1.0}  # a prediction interval adds the noise of one new row


@dataclass(frozen=True, eq=False)
class Inference:
    """All that a summary and an interval need; no rows.

    sigma^2-hat = RSS / (N - p),   cov(estimate) = sigma^2-hat A,   A = ([1 X]' W [1 X])^-1

    The columns must be independent: a pseudo-inverse for A is not enough.

    >>> A = np.array([[0.7, -0.3], [-0.3, 0.2]])        # x = 0, 1, 2, 3 and y = 1, 2, 3, 5
    >>> fit = Inference(("intercept", "x"), np.array([0.8, 1.3]), A, 0.3, 8.75, 0, 4.0, True)
    >>> round(fit.sigma2, 6), round(fit.r_squared, 6)
    (0.15, 0.965714)
    >>> fit.interval(np.array([[1.0, 4.0]]), np.array([6.0]), kind="confidence").round(4)
    array([[3.9591, 8.0409]])
    """

    names: tuple[str, ...]  # p names, "intercept" first when there is one
    estimate: np.ndarray  # (p,)
    inverse: np.ndarray  # (p, p): A
    rss: float  # weighted sum of squared residuals, in units of 4**exponent
    tss: float  # the same of y about its mean, about 0 without an intercept
    exponent: int  # y was scaled by 2**-exponent to keep its squares finite; nearly always 0
    n_obs: float  # N > p: the sum of weights, or with variance weights the number of rows
    has_intercept: bool
    sum_weight: float | None = None  # of variance weights; None says that weights count rows
    log_weight: float = math.nan  # sum of the logarithms of variance weights; nan where it is not known

    def __post_init__(self) -> None:
        p = len(self.names)
        if self.estimate.shape != (p,) or self.inverse.shape != (p, p):
            shapes = f"{self.estimate.shape} and {self.inverse.shape}"
            raise ValueError(f"{p} names need shapes ({p},) and ({p}, {p}). Got {shapes}.")
        if not self.df_resid > 0:
            rows = "the rows' weights sum to" if self.sum_weight is None else "the number of rows is"
            sizes = f"{rows} {self.n_obs:g} and {p} coefficients are estimated"
            raise ValueError(f"no residual degree of freedom: {sizes}. Use more rows or fewer columns.")
        if not (0 <= self.rss < math.inf and 0 <= self.tss < math.inf and np.isfinite(self.estimate).all()):
            raise ValueError(f"estimate, rss and tss must be finite. Got rss {self.rss}, tss {self.tss}.")
        if not (np.isfinite(self.inverse).all() and np.all(np.diagonal(self.inverse) > 0)):
            raise ValueError("the inverse must be finite, its diagonal positive. Rescale or drop columns.")

    @property
    def weights(self) -> Convention:
        """What the rows' weights mean."""
        return "frequency" if self.sum_weight is None else "variance"

    @property
    def law(self) -> str:
        """The law that coefficients are tested with: "t" (Student's) or "z" (normal)."""
        return "t"

    @property
    def covariance_type(self) -> str:
        """ "nonrobust", or the name of a robust covariance."""
        return "nonrobust"

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the estimates, shape (p, p)."""
        return self._unscaled(self._unscaled(self.rss / self.df_resid * self.inverse))

    def with_variance_weights(self, n_rows: float, log_weight: float = math.nan) -> Inference:
        """The same fit, its weights read as inverse variances of `n_rows` rows."""
        return replace(self, n_obs=float(n_rows), sum_weight=self._mass, log_weight=log_weight)

    @property
    def df_model(self) -> float:
        """Columns besides the intercept."""
        return float(len(self.names) - self.has_intercept)

    @property
    def df_resid(self) -> float:
        """N - p."""
        return float(self.n_obs - len(self.names))

    @property
    def sigma(self) -> float:
        """sqrt(RSS / (N - p)); finite for any exponent of a finite y."""
        return float(np.ldexp(self._scaled_sigma, self.exponent))

    @property
    def sigma2(self) -> float:
        """RSS / (N - p); inf when the square of y has no float64."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(self.rss / self.df_resid, 2 * self.exponent))

    @property
    def standard_errors(self) -> np.ndarray:
        """sigma sqrt(A_jj), shape (p,)."""
        return self._unscaled(self._scaled_errors)

    @property
    def t_values(self) -> np.ndarray:
        """estimate_j / standard error_j, shape (p,); infinite at an exact fit, nan where both are 0."""
        # In the units of rss: the ratio survives a standard error that underflows.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            return np.asarray(np.ldexp(self.estimate, -self.exponent) / self._scaled_errors)

    @property
    def p_values(self) -> np.ndarray:
        """P(|T| > |t_j|) for T of Student's law with N - p degrees of freedom, shape (p,)."""
        # Twice the lower tail: 1 - (upper) would round every p below 1e-16 to 0.
        return np.asarray(2.0 * special.stdtr(self.df_resid, -np.abs(self.t_values)))

    def confidence_interval(self, level: float = 0.95) -> np.ndarray:
        """estimate_j -+ t sigma sqrt(A_jj), shape (p, 2)."""
        half = self._unscaled(self._quantile(level) * self._scaled_errors)
        return np.column_stack([self.estimate - half, self.estimate + half])

    @property
    def r_squared(self) -> float:
        """1 - RSS / TSS; nan when the target is constant."""
        return 1.0 - self._unexplained

    @property
    def adjusted_r_squared(self) -> float:
        """1 - (RSS / (N - p)) / (TSS / (N - 1)), with N for N - 1 when there is no intercept."""
        return 1.0 - (self.n_obs - self.has_intercept) / self.df_resid * self._unexplained

    @property
    def f_statistic(self) -> float:
        """((TSS - RSS) / df_model) / (RSS / df_resid); nan when there is nothing to test."""
        if self.tss == 0 or self.df_model == 0:
            return math.nan
        if self._unexplained == 0:
            return math.inf
        per_freedom = self._unexplained / self.df_resid  # 0 where rows stand for more than 1e300 others
        return math.inf if per_freedom == 0 else self.r_squared / self.df_model / per_freedom

    @property
    def f_pvalue(self) -> float:
        """P(F > f_statistic) when every coefficient besides the intercept is 0."""
        return float(special.fdtrc(self.df_model, self.df_resid, self.f_statistic))

    @property
    def log_likelihood(self) -> float:
        """-N/2 (log(2 pi RSS / N) + 1), with variance weights + sum_i log(weight_i) / 2; inf at an exact fit."""
        if self.rss == 0:
            return math.inf
        log_variance = math.log(self.rss) - math.log(self.n_obs) + 2 * self.exponent * math.log(2)
        of_weights = 0.0 if self.sum_weight is None else self.log_weight / 2
        return of_weights - self.n_obs / 2 * (math.log(2 * math.pi) + log_variance + 1)

    @property
    def aic(self) -> float:
        """2p - 2 log-likelihood (sigma is not counted)."""
        return 2 * len(self.names) - 2 * self.log_likelihood

    @property
    def bic(self) -> float:
        """p log N - 2 log-likelihood."""
        return len(self.names) * math.log(self.n_obs) - 2 * self.log_likelihood

    @property
    def is_exact(self) -> bool:
        """The residuals are no larger than the rounding of y and of the intercept."""
        intercept = np.ldexp(self.estimate[0], -self.exponent) if self.has_intercept else 0.0
        size = max(math.sqrt(self.tss), math.sqrt(self._mass) * abs(float(intercept)))
        return math.sqrt(self.rss) <= 8 * EPSILON * size

    def variance_inflation(self) -> dict[str, float]:
        """S_jj (S^-1)_jj of every column, S the block of A for X: {column: factor}.

        1 / (1 - R^2) of the column regressed on the others (and the intercept): how many times as large its variance is
        as without them. 1 is uncorrelated; beyond 10 is a lot.
        """
        _, _, factor = self._factor
        values = np.maximum(_inflation(factor), 1.0)
        return dict(zip(self.names[int(self.has_intercept) :], values.tolist(), strict=True))

    def interval(
        self, rows: np.ndarray, predictions: np.ndarray, level: float = 0.95, kind: Kind = "prediction"
    ) -> np.ndarray:
        """prediction -+ t sigma sqrt(x'Ax) (confidence) or t sigma sqrt(1 + x'Ax) (prediction), shape (n, 2).

        Rows have a leading 1 when there is an intercept. `prediction` covers a new y of weight 1.
        """
        if kind not in NOISE:
            raise ValueError(f"kind must be 'prediction' or 'confidence'. Got {kind!r}.")
        if rows.shape != (*predictions.shape, len(self.names)):
            legal = f"(n,) predictions and rows of shape (n, {len(self.names)})"
            raise ValueError(f"an interval needs {legal}. Got {predictions.shape} and {rows.shape}.")
        quantile = self._quantile(level) * self._scaled_sigma
        bounds = np.empty((len(rows), 2))
        step = max(1, BLOCK_NUMBERS // max(1, len(self.names)))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            half = self._unscaled(quantile * np.sqrt(NOISE[kind] + self._leverage(rows[part])))
            bounds[part] = np.column_stack([predictions[part] - half, predictions[part] + half])
        return bounds

    def summary(
        self,
        model: str,
        target: str,
        level: float = 0.95,
        notes: Sequence[str] = (),
        dropped: Sequence[Dropped] = (),
        undetermined: Sequence[int] = (),
    ) -> Summary:
        """The table of the fit; `notes` are sentences printed after those of the table itself.

        dropped: columns that were left out before the fit, to be named in the table. undetermined: places of rows of
        the table that are marked instead, those of `dropped` among them.
        """
        self._quantile(level)
        sentences = (*left_out(dropped, bool(undetermined)), *self._sentences(), *notes)
        return Summary(self, model, target, level, sentences, tuple(dropped), tuple(undetermined))

    @property
    def _mass(self) -> float:
        """Sum of weights, whatever they mean."""
        return self.n_obs if self.sum_weight is None else self.sum_weight

    @property
    def _scaled_sigma(self) -> float:
        return math.sqrt(self.rss / self.df_resid)

    @property
    def _scaled_errors(self) -> np.ndarray:
        return np.asarray(self._scaled_sigma * np.sqrt(np.diagonal(self.inverse)))

    @property
    def _unexplained(self) -> float:
        # RSS <= TSS but for rounding; a clear excess gets a note in the table.
        return math.nan if self.tss == 0 else min(self.rss / self.tss, 1.0)

    def _unscaled(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(values, self.exponent))

    def _quantile(self, level: float) -> float | np.ndarray:
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, such as 0.95. Got {level}.")
        return float(-special.stdtrit(self.df_resid, (1 - level) / 2))

    @cached_property
    def _factor(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return centred_factor(self.inverse, self.has_intercept)

    def _leverage(self, rows: np.ndarray) -> np.ndarray:
        """x'Ax of each row."""
        return leverage_of(rows, self._factor, self.has_intercept, self._mass)

    def _assumption(self) -> str:
        spread = "equal variance" if self.sum_weight is None else "variance proportional to 1 / weight"
        return f"Standard errors assume independent Gaussian noise of {spread}."

    def _sentences(self) -> Iterator[str]:
        """What a reader of the table must know."""
        yield self._assumption()
        yield WEIGHTS[self.weights]
        if self.sum_weight is not None and math.isnan(self.log_weight):
            yield (
                "N counts every row of the fit. Log-likelihood, AIC and BIC need the rows' weights: "
                "summary(X, y, sample_weight=..., weights='variance')."
            )
        if not self.has_intercept:
            yield "R-squared and F compare with the prediction 0 (uncentered): the model has no intercept."
        if self.is_exact:
            yield "exact fit: residuals are zero to rounding, so t, P, F and the likelihood are no evidence."
        if self.tss == 0:
            value = "constant" if self.has_intercept else "0 in every row"
            yield f"The target is {value}: R-squared and F are undefined."
        elif self.rss > self.tss * (1 + 1e-8):
            yield "The residuals exceed the spread of the target: R-squared is set to 0."
        if self.df_model == 0:
            yield "F is undefined: there is no column besides the intercept."
        if np.any(np.isnan(self.t_values)):
            yield "t is undefined where the coefficient and its standard error are both 0."


def centred_factor(inverse: np.ndarray, has_intercept: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centre m, scale d and lower factor L with S = diag(d) L L' diag(d), S the block of A = `inverse` for X."""
    first = int(has_intercept)
    block = inverse[first:, first:]
    scale = np.sqrt(np.diagonal(block))
    if not len(block):
        return scale, scale, block
    try:
        factor = np.linalg.cholesky(block / scale / scale[:, None])
        # Entries of A are rounded: S has so many digits less, and a small pivot need not show it.
        lost = len(block) * EPSILON * float(_inflation(factor).max(initial=0.0))
    except np.linalg.LinAlgError:
        lost = math.inf
    if not lost <= FEWEST_DIGITS:
        raise ValueError("the columns are too close to dependent to tell them apart in float64. Drop some.")
    # A = [1/N + m'Sm, -m'S; -Sm, S] with m the (weighted) mean of X, so m solves Sm = -A[1:, 0].
    side = -inverse[1:, 0] / scale if first else np.zeros(len(block))
    return linalg.cho_solve((factor, True), side) / scale, scale, factor


def leverage_of(
    rows: np.ndarray, parts: tuple[np.ndarray, np.ndarray, np.ndarray], has_intercept: bool, mass: float
) -> np.ndarray:
    """x'Ax of each row, parts those of A, mass the sum of weights that A is of."""
    # x'Ax = 1/N + (x - m)'S(x - m): nothing cancels for columns far from 0, and no term is negative.
    centre, scale, factor = parts
    first = int(has_intercept)
    whitened = ((rows[:, first:].astype(np.float64) - centre) * scale) @ factor
    return np.asarray(first / mass + np.einsum("ij,ij->i", whitened, whitened))


def _inflation(factor: np.ndarray) -> np.ndarray:
    """(S^-1)_jj S_jj for S = diag(d) L L' diag(d) with (L L')_jj = 1, shape (d,)."""
    if not len(factor):  # SciPy before 1.14 refuses systems without columns
        return np.zeros(0)
    inverse = linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
    return np.asarray(np.einsum("ij,ij->j", inverse, inverse))
