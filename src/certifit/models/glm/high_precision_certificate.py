"""Certificates of losses of scores in long decimal numbers: for small data that float64 cannot tell enough of.

X, y and weights are exactly the numbers given, and sums have as many digits as it takes. From the state Newton's method
descends to a point where self-concordance (concordance.py) bounds the objective below; with P the objective,

    P(state) - min P <= P(state) - [ P(point) - bound(point) ]

which is the excess itself but for the bound, a small share of it. Columns that are exact combinations of others, in
integers, are left out: they change no score. Products are rounded to `digits`, which are doubled until the pivots of
the Hessian leave SPARE of them; exponentials and logarithms (high_precision_losses.py) lose one or two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.models.glm.high_precision_losses import ONE, ZERO, LossOfScore, RowLoss, exponential, log_of_one_plus
from certifit.models.least_squares.task import independent_columns
from certifit.statistics.residual import EXACT_FIT

MOST_WORK = 400_000  # rows x parameters^2
FEWEST_DIGITS, MOST_DIGITS = 80, 640
SPARE = 30  # digits that products keep beyond the smallest pivot
SPREAD_DIGITS = 60  # of a variance that a penalty is relative to
MOST_STEPS = 40
MOST_HALVINGS = 40
MOST_EXPONENTIALS = 8_000  # in FEWEST_DIGITS; more digits count for more
SMALL_SHARE = Decimal("1e-3")  # of the excess: a smaller bound ends the descent
NOTHING = Decimal("1e-28")  # of the objective: and so does a bound below it
SAFETY = Decimal(1) + Decimal("1e-12")

Sums = tuple[Decimal, Array, Array]  # objective, slopes, curvatures or chances: what takes exponentials


@dataclass(frozen=True)
class LongRows:
    """Rows with a weight: entries of the columns and 1 for the intercept, targets, shares of the weights, offsets."""

    X: Array
    y: Array
    weight: Array
    offset: Array

    @staticmethod
    def of(source: Source, fit_intercept: bool) -> LongRows:
        """Exactly the numbers given."""
        parts = list(source.map(_floats_of_run))
        X, y, weight, offset = (np.concatenate(part) for part in zip(*parts, strict=True))
        X = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
        return LongRows(X, y, weight, offset)

    @cached_property
    def n_rows(self) -> int:
        """Rows with a weight."""
        return len(self.y)

    def squared_spreads(self, n_columns: int, centred: bool) -> list[Decimal]:
        """Variances of the columns, mean squares where not centred, of the numbers given; 1 for what does not vary."""
        weight = [Fraction(w) for w in self.weight.tolist()]
        total = sum(weight, Fraction(0))
        return [_squared_spread(column.tolist(), weight, total, centred) for column in self.X.T[:n_columns]]


def _squared_spread(column: list[float], weight: list[Fraction], total: Fraction, centred: bool) -> Decimal:
    entries = [Fraction(x) for x in column]
    mean = sum((w * x for w, x in zip(weight, entries, strict=True)), Fraction(0)) / total if centred else Fraction(0)
    variance = sum((w * (x - mean) ** 2 for w, x in zip(weight, entries, strict=True)), Fraction(0)) / total
    with localcontext() as context:
        context.prec = SPREAD_DIGITS
        return Decimal(variance.numerator) / Decimal(variance.denominator) if variance else Decimal(1)


def _floats_of_run(run: Block) -> tuple[Array, Array, Array, Array]:
    X = run.X.toarray() if isinstance(run.X, Columns) or hasattr(run.X, "toarray") else run.X
    X, y = np.asarray(X, dtype=np.float64), np.asarray(run.y, dtype=np.float64)
    weight = np.ones(len(y)) if run.weight is None else np.asarray(run.weight, dtype=np.float64)
    offset = np.zeros(len(y)) if run.offset is None else np.asarray(run.offset, dtype=np.float64)
    counted = weight > 0
    return X[counted], y[counted], weight[counted], offset[counted]


def long_pulls(alpha: float, l1_ratio: float, factors: Array, squares: list[Decimal]) -> list[Decimal]:
    """alpha (1 - l1_ratio) f_j s_j^2 of the numbers given, in more digits than Decimal has at first."""
    with _digits(MOST_DIGITS):
        pull = Decimal(alpha) * (1 - Decimal(l1_ratio))
        return [pull * Decimal(factor) * square for factor, square in zip(factors.tolist(), squares, strict=True)]


@dataclass(frozen=True)
class LongProblem:
    """sum_i w_i l_i / W + sum l2/2 coef^2 over parameters: entries (column, class) of a matrix of coefficients.

    loss: of a row, None for softmax, whose targets are codes; l2: one per column, the intercept's last.
    """

    rows: LongRows
    loss: RowLoss | None
    concordance: Decimal
    l2: tuple[Decimal, ...]
    n_classes: int
    parameters: tuple[tuple[int, int], ...]

    @cached_property
    def X(self) -> Array:
        """Entries, in the digits of the context that asks first."""
        return _decimals(self.rows.X)

    @cached_property
    def losses(self) -> list[LossOfScore]:
        """Of every row, where the loss is one of single scores."""
        assert self.loss is not None
        return [self.loss(y) for y in _decimals(self.rows.y)]

    @cached_property
    def shares(self) -> Array:
        """w_i / W."""
        weight = _decimals(self.rows.weight)
        return np.asarray(weight / weight.sum())

    def scores(self, at: Array) -> Array:
        """Rows x classes."""
        return np.asarray(_product(self.X, at) + _decimals(self.rows.offset)[:, None])

    def value(self, at: Array) -> Decimal:
        """The objective."""
        return self.sums(at)[0]

    def sums(self, at: Array) -> Sums:
        """The objective, slopes (rows x classes) and curvatures (rows) or chances (rows x classes), times shares."""
        z = self.scores(at)
        parts = self._softmax(z) if self.loss is None else self._by_row(z)
        penalty = sum((pull * (at[j] * at[j]).sum() for j, pull in enumerate(self.l2) if pull), ZERO) / 2
        return parts[0] + penalty, parts[1], parts[2]

    def _by_row(self, z: Array) -> Sums:
        terms = [loss(score) for loss, score in zip(self.losses, z[:, 0], strict=True)]
        values, slopes, curvatures, _ = (np.array(part, dtype=object) for part in zip(*terms, strict=True))
        return (self.shares * values).sum(), (self.shares * slopes)[:, None], self.shares * curvatures

    def rounding(self, at: Array, digits: int) -> Decimal:
        """What rounding may have moved the objective by: of the terms that cancel in losses and in scores."""
        z, reach = self.scores(at), _product(abs(self.X), abs(at)) + abs(_decimals(self.rows.offset))[:, None]
        sizes = reach.max(axis=1)
        if self.loss is None:
            terms = 2 * sizes + ONE
        else:
            row_terms = [loss(score) for loss, score in zip(self.losses, z[:, 0], strict=True)]
            terms = np.array(
                [
                    abs(value) + abs(slope) * size + score
                    for (value, slope, _, score), size in zip(row_terms, sizes, strict=True)
                ]
            )
        return Decimal(10) ** (SPARE - digits) * Decimal((self.shares * terms).sum())

    def _softmax(self, z: Array) -> Sums:
        chances, value = np.empty_like(z), ZERO
        for i, (row, code) in enumerate(zip(z, self.rows.y, strict=True)):
            top = max(row)
            powers = [exponential(score - top) for score in row]
            rest = sum(sorted(powers)[:-1], ZERO)
            chances[i] = [power / (1 + rest) for power in powers]
            value += self.shares[i] * (top - row[int(code)] + log_of_one_plus(rest))
        slopes = chances.copy()
        for i, code in enumerate(self.rows.y):
            slopes[i, int(code)] -= ONE
        return value, self.shares[:, None] * slopes, chances

    def slopes(self, at: Array, sums: Sums) -> tuple[Array, Array]:
        """Gradient and Hessian of the objective by the parameters, from the sums at a point."""
        _, slopes, more = sums
        columns, classes = (np.array(index) for index in zip(*self.parameters, strict=True))
        gradient = _product(self.X.T, slopes)[columns, classes] + np.array(
            [self.l2[j] * at[j, k] for j, k in self.parameters], dtype=object
        )
        hessian = np.full((len(columns), len(columns)), ZERO, dtype=object)
        for k in range(self.n_classes):
            for m in range(k + 1):
                first, other = np.flatnonzero(classes == k), np.flatnonzero(classes == m)
                curvature = more if self.loss is not None else self._across(more, k, m)
                part = _product((self.X[:, columns[first]] * curvature[:, None]).T, self.X[:, columns[other]])
                hessian[np.ix_(first, other)], hessian[np.ix_(other, first)] = part, part.T
        for place, (j, _) in enumerate(self.parameters):
            hessian[place, place] += self.l2[j]
        return gradient, hessian

    def _across(self, chances: Array, k: int, m: int) -> Array:
        """w p_k ([k = m] - p_m)."""
        return np.asarray(self.shares * chances[:, k] * ((ONE if k == m else ZERO) - chances[:, m]))

    def reach(self, factor: Factor) -> Decimal:
        """R: M max_i |x_i|_{H^-1}, for softmax twice the largest of a class, which no difference of two exceeds."""
        if not self.concordance:
            return ZERO
        most = ZERO
        for k in range(self.n_classes):
            columns = [j if c == k else None for j, c in self.parameters]
            for x in self.X:
                most = max(most, factor.square([ZERO if j is None else x[j] for j in columns]))
        return self.concordance * most.sqrt() * SAFETY


class Factor:
    """H = L D L' of a matrix > 0, in decimals; `least`: the smallest pivot relative to its diagonal entry."""

    def __init__(self, matrix: Array) -> None:
        size = len(matrix)
        self._L: list[list[Decimal]] = []
        self._D: list[Decimal] = []
        self.least = ONE
        for i in range(size):
            row: list[Decimal] = []
            for j in range(i):
                row.append(matrix[i, j] - sum((row[k] * self._L[j][k] for k in range(j)), ZERO))
            pivot = matrix[i, i]
            for j in range(i):
                whole, row[j] = row[j], row[j] / self._D[j]
                pivot -= whole * row[j]
            self.least = min(self.least, pivot / matrix[i, i]) if matrix[i, i] > 0 else ZERO
            if not pivot > 0 or not self.least > 0:
                self.least = ZERO
                return
            self._L.append(row)
            self._D.append(pivot)

    def _forward(self, right: Any) -> list[Decimal]:
        solved: list[Decimal] = []
        for i, row in enumerate(self._L):
            solved.append(right[i] - sum((row[k] * solved[k] for k in range(i) if solved[k]), ZERO))
        return solved

    def square(self, right: Any) -> Decimal:
        """right' H^-1 right."""
        return sum((v * v / d for v, d in zip(self._forward(right), self._D, strict=True)), ZERO)

    def solve(self, right: Any) -> list[Decimal]:
        """H^-1 right."""
        scaled = [v / d for v, d in zip(self._forward(right), self._D, strict=True)]
        for i in reversed(range(len(scaled))):
            scaled[i] -= sum((self._L[k][i] * scaled[k] for k in range(i + 1, len(scaled))), ZERO)
        return scaled


@dataclass(frozen=True)
class LongExcess:
    """How far the objective is above a proven lower bound of it, and the null model's objective."""

    objective: Decimal
    excess: Decimal
    null: Decimal
    is_zero: bool  # no coefficient and no offset: all scores are exactly 0

    @property
    def is_exact_fit(self) -> bool:
        """Whether the value is relative to the null model's objective."""
        return bool(self.null > 0 and self.objective < Decimal(EXACT_FIT) * self.null)

    @property
    def relative(self) -> float:
        """The excess relative to the objective, or at an exact fit to the null model's; rounded up."""
        base = self.null if self.is_exact_fit else self.objective
        if not base > 0:
            return 0.0 if self.is_zero else np.inf  # else an objective above 0 may have been lost to rounding
        with _digits(40):
            return float(self.excess / base) * (1 + 1e-9)


def long_excess(problem: LongProblem, at: Array, null: Array | None, aim: float) -> LongExcess | None:
    """The excess at a matrix of coefficients; None where no lower bound but 0 is found. aim: relative, ends the search.

    null: the coefficients that a descent to the null model starts from, the intercepts being all that moves.
    """
    digits, budget = FEWEST_DIGITS, _Budget()
    while digits <= MOST_DIGITS:
        with _digits(digits):
            copied = replace(problem)  # its decimals are made anew
            try:
                low = _lower_bound(copied, _decimals(at), Decimal(aim), digits, budget)
                if low is not None:
                    return _excess(copied, at, low, null, digits)
            except _TooLong:
                return None
            except _TooFewDigits:
                independent = _without_copies(problem)
                if len(independent.parameters) < len(problem.parameters):
                    problem = independent
                    continue
                digits *= 2
                continue
            return None
    return None


def _excess(problem: LongProblem, at: Array, low: Decimal, null: Array | None, digits: int) -> LongExcess:
    """The excess over a lower bound, its rounding included."""
    objective, rounding = problem.value(_decimals(at)), problem.rounding(_decimals(at), digits)
    is_zero = not at.any() and not problem.rows.offset.any()
    bound = LongExcess(objective, max(objective - low, ZERO) + rounding, _null(problem, null, digits), is_zero)
    if not is_zero and not rounding <= NOTHING * (bound.null if bound.is_exact_fit else objective):
        raise _TooFewDigits
    return bound if not is_zero else replace(bound, excess=max(objective - low, ZERO))


class _TooFewDigits(Exception):
    """Pivots that leave too few digits."""


class _TooLong(Exception):
    """More exponentials than a proof is worth."""


class _Budget:
    """Exponentials that are left."""

    def __init__(self) -> None:
        self.left = float(MOST_EXPONENTIALS)

    def spend(self, problem: LongProblem, digits: int) -> None:
        """One evaluation of the objective."""
        self.left -= problem.rows.n_rows * problem.n_classes * (digits / FEWEST_DIGITS) ** 1.5
        if self.left < 0:
            raise _TooLong


def _lower_bound(problem: LongProblem, at: Array, aim: Decimal, digits: int, budget: _Budget) -> Decimal | None:
    """A proven lower bound of the objective by descending from a point; None where none is found."""
    budget.spend(problem, digits)
    sums = problem.sums(at)
    start = sums[0]
    if not start.is_finite():
        return None
    for _ in range(MOST_STEPS):
        value = sums[0]
        gradient, hessian = problem.slopes(at, sums)
        factor = Factor(hessian)
        if factor.least < Decimal(10) ** (SPARE - digits):
            raise _TooFewDigits
        square = factor.square(gradient) * SAFETY
        bound = _bound(square, problem.reach(factor))
        above = start - value + bound if bound is not None else None
        if bound is not None and above is not None and _is_enough(bound, above, start, aim):
            return value - bound - Decimal(10) ** (SPARE - digits) * abs(start)
        moved = _lower(problem, at, value, square, factor.solve(gradient), partial(budget.spend, problem, digits))
        if moved is None:
            return None
        at, sums = moved
    return None


def _is_enough(bound: Decimal, above: Decimal, start: Decimal, aim: Decimal) -> bool:
    """Whether a bound settles the matter: it is rounding, a small share, or the excess is far within the aim."""
    return bound <= SMALL_SHARE * above or bound <= NOTHING * start or above <= aim * start * SMALL_SHARE


def _bound(square: Decimal, reach: Decimal) -> Decimal | None:
    """[q + (1 - q) log(1 - q)] / R^2, q = R lambda < 1; None beyond."""
    q = reach * square.sqrt()
    if q < Decimal("0.5"):
        return square / 2 * (1 + q)  # at least the series 1 + q/3 + q^2/6 + ...
    return (q + (1 - q) * (1 - q).ln()) / (reach * reach) * SAFETY if q < 1 else None


def _lower(
    problem: LongProblem,
    at: Array,
    value: Decimal,
    square: Decimal,
    step: list[Decimal],
    spend: Callable[[], None],
) -> tuple[Array, Sums] | None:
    """The first of a step, its half, ... that lowers the objective enough; None where none does."""
    length = ONE
    for _ in range(MOST_HALVINGS):
        spend()
        trial = at.copy()
        for (j, k), change in zip(problem.parameters, step, strict=True):
            trial[j, k] -= length * change
        sums = problem.sums(trial)
        if sums[0].is_finite() and sums[0] <= value - Decimal("1e-4") * length * square:
            return trial, sums
        length /= 2
    return None


def _null(problem: LongProblem, start: Array | None, digits: int) -> Decimal:
    """The null model's objective, from below; 0 where there is none."""
    at = np.full((problem.X.shape[1], problem.n_classes), ZERO, dtype=object)
    if start is None:
        value = problem.value(at)
        return value if value.is_finite() else ZERO
    at[-1] = _decimals(np.asarray(start, dtype=np.float64))
    intercepts = tuple((problem.X.shape[1] - 1, k) for k in range(max(problem.n_classes - 1, 1)))
    constant = replace(problem, parameters=intercepts)
    if not np.isfinite(np.asarray(start, dtype=np.float64)).all():
        return ZERO
    low = _lower_bound(constant, at, Decimal("1e-3"), digits, _Budget())
    return ZERO if low is None else max(low, ZERO)


def _without_copies(problem: LongProblem) -> LongProblem:
    """Without unpenalised columns that are exact combinations of other such columns before them."""
    free = [j for j, pull in enumerate(problem.l2) if not pull]
    kept = {free[j] for j in independent_columns(problem.rows.X[:, free])}
    dropped = set(free) - kept
    return replace(problem, parameters=tuple(pair for pair in problem.parameters if pair[0] not in dropped))


@contextmanager
def _digits(count: int) -> Iterator[None]:
    """Decimals of so many digits whose exponents have no end."""
    with localcontext(Context(prec=count, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        for signal in (Overflow, InvalidOperation, DivisionByZero):
            context.traps[signal] = False
        yield


def _decimals(values: Any) -> Array:
    """Floats as the decimals that they are."""
    values = np.asarray(values)
    if values.dtype == object:
        return np.asarray(values)
    flat = [Decimal(float(value)) for value in values.ravel()]
    return np.array(flat, dtype=object).reshape(values.shape)


def _product(a: Array, b: Array) -> Array:
    return np.asarray(np.dot(a, b))
