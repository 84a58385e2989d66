"""Covariance of least squares estimates that holds for noise of unequal variance: HC0 to HC3.

    V = A^-1 (sum_i e_i^2 (1 - h_i)^-k x_i x_i') A^-1,   k = 0 (HC0, HC1), 1 (HC2), 2 (HC3);  HC1 is N / (N - p) HC0

The sum is taken in the frame t of `influence`, where A is the identity: it does not feel the condition of the columns,
only what the residuals lose to the rounding of the coefficients, 2^-53 |X||b|.
Standard errors are those of statsmodels. Coefficients are tested with Student's law and degrees of freedom of their own
(`law_of`), or with the normal law (z) as statsmodels does; all together with F(q, N - p).
A coefficient that only rows without a residual determine would have an error of 0, to rounding: it is nan here, with a
sentence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Literal

import numpy as np
from scipy import linalg, special

from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.inference.least_squares import Inference, Kind
from certifit.models.least_squares.influence import Frame, SeenRows
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.task import LeastSquares
from certifit.runtime import in_order, one_blas_thread

Covariance = Literal["nonrobust", "HC0", "HC1", "HC2", "HC3"]
POWERS = {"HC0": 0, "HC1": 0, "HC2": 1, "HC3": 2}
SHOWN = 5
RobustLaw = Literal["t", "z"]
FEWEST_SEEN = 0.8  # share of the variance that HC0 and HC1 see on average; with less their intervals are not given
NO_SPREAD = 1e-7  # a robust error below this share of the plain one is the rounding of residuals that are 0


@dataclass(frozen=True, eq=False, kw_only=True)
class RobustInference(Inference):
    """Inference with a robust covariance; all but standard errors, tests and intervals is that of the plain fit."""

    kind: str
    scaled_covariance: Array  # (p, p), in units of 4**exponent
    wald: float  # b'V^-1 b / q of the q coefficients besides the intercept; nan where V is singular
    own_law: Law | None  # None: the normal law
    alone: tuple[int, ...] = ()  # the first rows of leverage 1
    n_alone: int = 0

    @property
    def law(self) -> str:
        """ "t", with degrees of freedom for every coefficient; "z", the normal law."""
        return "z" if self.own_law is None else "t"

    @property
    def degrees_of_freedom(self) -> Array:
        """Of the law of every coefficient, shape (p,); inf for the normal law."""
        return np.full(len(self.names), np.inf) if self.own_law is None else self.own_law.freedom

    @property
    def covariance_type(self) -> str:
        """HC0 to HC3."""
        return self.kind

    @property
    def covariance(self) -> Array:
        """V, shape (p, p)."""
        return self._unscaled(self._unscaled(self.scaled_covariance))

    @property
    def p_values(self) -> Array:
        """P(|T| > |t_j| sqrt(b_j)) for T of the coefficient's law, shape (p,); nan where rows are too few."""
        if self.own_law is None:
            return np.asarray(2.0 * special.ndtr(-np.abs(self.t_values)))
        size = np.abs(self.t_values) * np.sqrt(self.own_law.bias)
        return np.where(self._is_too_few, np.nan, 2.0 * special.stdtr(self.own_law.freedom, -size))

    @property
    def f_statistic(self) -> float:
        """Wald's test that every coefficient besides the intercept is 0, over their number."""
        return self.wald

    def interval(self, rows: Array, predictions: Array, level: float = 0.95, kind: Kind = "prediction") -> Array:
        """Refused: the noise of a new row is not known where it differs from row to row."""
        raise ValueError(
            f"A robust covariance ({self.kind}) says nothing about the noise of a new row. "
            "Use the intervals of the plain fit: model.predict_interval(X)."
        )

    @property
    def _scaled_errors(self) -> Array:
        errors = np.sqrt(np.maximum(np.diagonal(self.scaled_covariance), 0.0))
        return np.asarray(np.where(errors < NO_SPREAD * super()._scaled_errors, np.nan, errors))

    def _quantile(self, level: float) -> Array:
        super()._quantile(level)
        tail = (1 - level) / 2
        if self.own_law is None:
            return np.full(len(self.names), -special.ndtri(tail))
        quantile = -special.stdtrit(self.own_law.freedom, tail) / np.sqrt(self.own_law.bias)
        return np.where(self._is_too_few, np.nan, quantile)

    @property
    def _is_too_few(self) -> Array:
        """Coefficients whose noise HC0 and HC1 mostly do not see."""
        if self.own_law is None or POWERS[self.kind] > 0:
            return np.zeros(len(self.names), dtype=bool)
        return np.asarray(self.own_law.bias < FEWEST_SEEN)

    def _assumption(self) -> str:
        noise = f"Standard errors hold for independent noise of unequal variance ({self.kind})."
        if self.own_law is None:
            return f"{noise} Tests and intervals use the normal law (z), the F test this covariance."
        low, high = self.own_law.freedom.min(), self.own_law.freedom.max()
        return (
            f"{noise} Tests and intervals use Student's law (t) with the degrees of freedom of each coefficient's "
            f"standard error, {low:.3g} to {high:.3g}; law='z' is the normal law, as in statsmodels. The F test uses "
            "this covariance."
        )

    def _sentences(self) -> Iterator[str]:
        yield from super()._sentences()
        empty = [name for name, error in zip(self.names, self._scaled_errors, strict=True) if math.isnan(error)]
        if empty:
            shown = ", ".join(map(repr, empty[:SHOWN])) + (", ..." if len(empty) > SHOWN else "")
            yield (
                f"No robust standard error exists for {shown}: only rows that the fit passes through tell the "
                "coefficient."
            )
        few = [name for name, is_few in zip(self.names, self._is_too_few, strict=True) if is_few]
        if few:
            shown = ", ".join(map(repr, few[:SHOWN])) + (", ..." if len(few) > SHOWN else "")
            yield (
                f"Too few rows for the interval and the p-value of {shown}: a few rows decide the coefficient, and "
                f"{self.kind} hardly sees their noise. Use covariance='HC3'."
            )
        if self.alone:
            yield (
                f"The fit passes through {_rows(self.alone, self.n_alone)} whatever the target there (leverage 1), so "
                "that noise is not seen: robust standard errors of coefficients that such a row tells are too small."
            )
        if math.isnan(self.wald) and self.df_model > 0 and self.tss > 0:
            yield "F is undefined: this covariance is singular, too few rows differ from the fit."


@dataclass(frozen=True)
class RowFacts:
    """Sums over rows: N and sum of log weights of variance weights."""

    n_rows: int
    log_weight: float

    @staticmethod
    def of(stretch: Block, block_rows: int) -> RowFacts:
        """Of the rows of positive weight, block by block."""
        if stretch.weight is None:
            return RowFacts(stretch.n_rows, 0.0)
        parts = (stretch.weight[begin : begin + block_rows] for begin in range(0, stretch.n_rows, block_rows))
        return tree_sum(RowFacts(int((part > 0).sum()), float(np.log(part[part > 0]).sum())) for part in parts)

    def __add__(self, other: RowFacts) -> RowFacts:
        return RowFacts(self.n_rows + other.n_rows, self.log_weight + other.log_weight)


@dataclass(frozen=True)
class Meat:
    """sum_i e_i^2 (1 - h_i)^-k t_i t_i' over observations; rows of leverage 1 (no residual) are left out, and named."""

    sums: Array
    law: LawSums
    alone: tuple[int, ...]
    n_alone: int

    def __add__(self, other: Meat) -> Meat:
        alone = (*self.alone, *other.alone)[:SHOWN]
        return Meat(self.sums + other.sums, self.law + other.law, alone, self.n_alone + other.n_alone)


def row_facts(source: Source) -> RowFacts:
    """The facts of all rows: one pass."""
    return source.reduce(partial(RowFacts.of, block_rows=source.block_rows))


def robust(task: LeastSquares, state: Weights, fit: Inference, kind: str, law: RobustLaw = "t") -> RobustInference:
    """The inference of a fit with covariance HC0 to HC3: one pass over the rows of the task, or two.

    The second is for the law of coefficients that few rows decide.
    """
    frame = Frame.of(task, state, fit)
    root = _raw_root(frame)
    pull = Pull.of(root, POWERS[kind], math.sqrt(fit.rss / fit.df_resid))
    meat = task.source.reduce(partial(_of_stretch, frame=frame, pull=pull))
    if meat.n_alone and POWERS[kind]:
        raise ValueError(
            f"{kind} does not exist: the fit passes through {_rows(meat.alone, meat.n_alone)} whatever the target "
            "there (leverage 1). Use covariance='HC1', or leave these rows out."
        )
    factor = fit.n_obs / fit.df_resid if kind == "HC1" else 1.0
    sums = meat.sums * factor
    covariance = root @ sums @ root.T
    row_law = law_of(task.source, frame, pull, meat.law, factor, fit.n_obs) if law == "t" else None
    plain = {field.name: getattr(fit, field.name) for field in fields(fit)}
    return RobustInference(
        **plain,
        kind=kind,
        scaled_covariance=(covariance + covariance.T) / 2,
        wald=_wald(fit, root, sums),
        own_law=row_law,
        alone=meat.alone,
        n_alone=meat.n_alone,
    )


def _rows(shown: tuple[int, ...], count: int) -> str:
    """ "row 17", "rows 1, 2, 3, 4, 5, ..." """
    more = ", ..." if count > len(shown) else ""
    return f"row{'s' if count > 1 else ''} {', '.join(map(str, shown))}{more}"


def _of_stretch(stretch: Block, frame: Frame, pull: Pull) -> Meat:
    return tree_sum(in_order(partial(_meat, frame=frame, pull=pull), frame.pieces(stretch)))


@one_blas_thread
def _meat(block: Block, frame: Frame, pull: Pull) -> Meat:
    seen = frame.seen(block)
    complement = seen.complement
    alone = np.flatnonzero(np.isnan(complement) & (seen.times > 0))
    size = np.sqrt(seen.times) * np.abs(seen.residual)
    size = np.where(np.isnan(complement), 0.0, size / np.sqrt(complement) ** pull.power)
    rows = seen.directions * size[:, None]
    first = tuple((block.first_row + alone[:SHOWN]).tolist())
    return Meat(rows.T @ rows, pull.sums(seen), first, len(alone))


def _raw_root(frame: Frame) -> Array:
    """B with cov = B (sums) B' for the columns (1, x) in the user's units; b = b' - sum_j w_j shift_j."""
    root, s = frame.root.copy(), frame.scaling
    if not frame.has_intercept:
        return np.asarray(root * s.scale[:, None])
    root[0] -= s.shift @ root[1:]
    root[1:] *= s.scale[:, None]
    return root


def _wald(fit: Inference, root: Array, sums: Array) -> float:
    """b'V^-1 b / q = u'M^-1 u / q with b = Tu: T the triangle of the root, M the sums, both without the intercept."""
    first, q = int(fit.has_intercept), int(fit.df_model)
    if fit.tss == 0 or q == 0:
        return math.nan
    b = np.ldexp(fit.estimate[first:], -fit.exponent)
    triangle, inner = root[first:, first:], sums[first:, first:]
    size = np.sqrt(np.diagonal(inner))
    # With equal variances the sums are sigma^2 times the identity.
    if not (size > NO_SPREAD * math.sqrt(fit.rss / fit.df_resid)).all():
        return math.nan
    try:
        u = linalg.solve_triangular(triangle, b) / size
        half = linalg.solve_triangular(np.linalg.cholesky(inner / size / size[:, None]), u, lower=True)
    except np.linalg.LinAlgError:  # some combination of coefficients has no variance
        return math.nan
    return float(half @ half) / q


# ---- the law of a coefficient over its robust standard error ---------------------------------------------------------
# A robust variance is a weighted sum of squared residuals, V = sum_i d_i e_i^2, d_i = c_i^2 (1 - h_i)^-k for the
# coefficient sum_i c_i y_i. Where few rows carry the weights d, or the noise, V is itself uncertain, and the normal
# law gives intervals that are too short: HC3 with n = 100 and noise that grows with a skew column covered 89 % for 95
# %. With M = I - H and D = diag(d):
#
#     b = tr(MD) / sum c_i^2                         V is b times the true variance on average, for equal noise
#     tr(MD)^2 / tr(MDMD)                            degrees of freedom for equal noise (Bell and McCaffrey 2002)
#     3 (sum d_i e_i^2)^2 / sum d_i^2 e_i^4 - 2      the same for the noise that the residuals show
#                                                    (Lipsitz, Ibrahim and Parzen 1999)
#
# The smaller of both is used, at least 1, and the standard error is divided by sqrt(b) where b < 1 (Young 2016). The
# product tr(MDMD) = sum_i d_i^2 ((1 - h_i)^2 - h_i^2) + |sum_i d_i t_i t_i'|^2 costs n p^2 for each coefficient;
# where tr(MD) / max d_i, which is never above tr(MD)^2 / tr(MDMD), exceeds 1,000, it takes its place. So it does
# where the products would cost too much: intervals then are a little wider than they need be, never shorter.

ENOUGH = 1000.0  # degrees of freedom: Student's quantile is within 0.3 % of the normal one
MOST_PRODUCTS = 2e10  # multiplications of tr(MDMD), all coefficients together: some seconds
MOST_ENTRIES = 1 << 24  # most entries of the matrices for tr(MDMD): 128 MB


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
        c2 = seen.directions @ self.directions.T
        c2 *= c2
        complement = seen.complement
        is_alone = np.isnan(complement)
        return c2, c2 * np.where(is_alone, 0.0, np.where(is_alone, 1.0, complement) ** -self.power)[:, None]

    def sums(self, seen: SeenRows) -> LawSums:
        """Of the rows of a piece."""
        c2, d = self.squared(seen)
        h, times, e2 = seen.leverage, seen.times, (seen.residual / self.size) ** 2
        counted = d if (times > 0).all() else d[times > 0]
        d2 = d * d
        return LawSums(
            times @ c2, (times * (1 - h)) @ d, (times * ((1 - h) ** 2 - h**2)) @ d2, (times * e2) @ d,
            (times * e2**2) @ d2, counted.max(axis=0, initial=0.0),
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
        crossed = source.reduce(partial(_crossed_of_stretch, frame=frame, pull=pull, few=few))
        with np.errstate(divide="ignore", invalid="ignore"):
            equal[few] = sums.expected[few] ** 2 / (sums.crossed[few] + (crossed**2).sum(axis=(1, 2)))
    freedom = np.minimum(np.where(np.isnan(equal), 1.0, equal), np.where(np.isnan(shown), 1.0, shown))
    return Law(np.maximum(freedom, 1.0), bias)


def _crossed_of_stretch(stretch: Block, frame: Frame, pull: Pull, few: Array) -> Array:
    return tree_sum(_crossed(block, frame, pull, few) for block in frame.pieces(stretch))


@one_blas_thread
def _crossed(block: Block, frame: Frame, pull: Pull, few: Array) -> Array:
    """sum_i d_i t_i t_i' of some coefficients, a matrix each."""
    seen = frame.seen(block)
    d = (pull.squared(seen)[1] * seen.times[:, None])[:, few]
    return np.stack([(seen.directions * each[:, None]).T @ seen.directions for each in d.T])
