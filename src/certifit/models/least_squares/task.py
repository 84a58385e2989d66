"""Least squares with an optional ridge penalty, on the Gram matrix of the columns.

A task gives its solver and its certificate the same few things: a factor of the system's matrix, residuals at a
state, and the scales between the user's units and those of the sums.

Where columns are nearly combinations of others the system is solved over all weights.

In the basis of `statistics/remainders.py` the system is well conditioned: with w = M u for the weights u of that
basis,

    (B'B + M' penalty M) step = B'r - M' penalty w

where B holds the kept columns and the remainders, and a column that is a combination to the last bit has no entries
in B'B. The residual r is that of the state in the columns as the user gave them: nothing is lost in converting it.
`independent_columns` decides in integers which columns are combinations of others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source, block_rows
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, NormalEquations, Weights
from certifit.runtime import core, n_threads
from certifit.statistics import double_double as dd
from certifit.statistics.factor import Factor, System, product_above_0, twofold_factor
from certifit.statistics.gram import Gram, Scaling, gram, scaled_weights
from certifit.statistics.moments import column_spreads
from certifit.statistics.remainders import LiteralBasis, Remainders, column_system, literal_columns, related_factor
from certifit.statistics.residual import MATRIX_ERROR, UNIT, Residual, is_exact_fit, residual, twofold_unit


@dataclass(frozen=True)
class LiteralStep:
    """At a state: the residual sums, the gradient of the system's unknowns, a bound on its error, and the step."""

    at: Residual
    gradient: Array
    error: Array
    step: Array


class LiteralSystem:
    """The system of one source in a literal basis; `of` gives None where no such basis is well conditioned.

    Unknowns: the intercept (of shifted columns), the kept columns, the live remainders, and under a penalty the
    columns that are exact combinations.
    """

    def __init__(
        self,
        source: Source,
        basis: LiteralBasis,
        gram: Gram,
        alpha: float,
        fit_intercept: bool,
        factor: Factor | None,
        spreads: Array,
    ) -> None:
        self.source = source
        self.basis = basis
        self.gram = gram
        self.fit_intercept = fit_intercept
        self._last: tuple[Weights, LiteralStep] | None = None
        remainders = basis.remainders
        # Roots of the penalty's diagonal: their squares may underflow.
        strength = np.sqrt(alpha) * np.sqrt(gram.sum_weight)
        self.roots = np.minimum(strength * (remainders.scale * spreads), np.sqrt(LARGEST_PENALTY))
        s = gram.scaling.scale
        dead = remainders.columns[remainders.is_exact] if alpha > 0 else np.zeros(0, dtype=np.int64)
        self.places = np.concatenate([remainders.kept, remainders.columns[basis.live], dead])
        # u in the scaled columns of the system = units times u of the columns x scale.
        k = len(remainders.kept)
        pulls = np.abs(self.roots[:, None] * self.mixing[:, dead]).max(axis=0, initial=0.0)
        near_one = np.ldexp(1.0, -np.frexp(pulls)[1])
        self.units = np.concatenate([s[:k] / remainders.scale[remainders.kept], basis.unit * s[k:], near_one])
        self.factor: Factor = factor if factor is not None else twofold_factor(self._system())

    @staticmethod
    def of(
        source: Source, remainders: Remainders, alpha: float, fit_intercept: bool, spreads: Array
    ) -> LiteralSystem | None:
        """The system, or None. spreads: what a weight is multiplied by in the penalty."""
        columns = literal_columns(source, remainders, fit_intercept)
        if columns is None:
            return None
        plain = columns.factor if alpha == 0 else None
        system = LiteralSystem(source, columns.basis, columns.gram, alpha, fit_intercept, plain, spreads)
        return None if len(system.factor.dependent) else system

    @property
    def mixing(self) -> Array:
        """M: w = M u, for weights of columns x scale: a column's weight less what the relations put on it."""
        remainders = self.basis.remainders
        out = np.eye(remainders.n_columns)
        out[:, remainders.columns] -= remainders.times[0].T
        return out

    def at(self, state: Weights) -> LiteralStep:
        """The residual of a state in the columns as given, its gradient in the basis, and the step to the minimum."""
        if self._last is None or not self._last[0].is_same(state):
            self._last = (state, self._at(state))
        return self._last[1]

    def _at(self, state: Weights) -> LiteralStep:
        remainders, s, offset = self.basis.remainders, self.gram.scaling, int(self.fit_intercept)
        k, live = len(remainders.kept), len(self.basis.live)
        scale = remainders.scale.copy()
        scale[remainders.kept] = s.scale[:k]
        shift = np.zeros(remainders.n_columns + live)
        shift[remainders.kept], shift[remainders.n_columns :] = s.shift[:k], s.shift[k:]
        wide = Scaling(np.concatenate([scale, s.scale[k:]]), shift, s.y_scale, s.y_shift, s.weight_scale)
        weights = np.concatenate([scaled_weights(state.coef, scale, s.y_scale), np.zeros(live)])
        rows = self.source.through(replace(self.basis, is_beside=True))
        at = residual(rows, wide, weights, state.intercept * s.y_scale, shift, np.zeros(len(weights)))
        taken = np.concatenate([remainders.kept, remainders.n_columns + np.arange(live)])
        sums, error = at.gradient[1:][taken], at.rounding[1:][taken] + self._sum_error(at, self.gram.norms)
        pull, pull_error = self._pull(state)
        none = np.zeros(len(pull) - len(sums))
        gradient = np.concatenate([at.gradient[:1], np.concatenate([sums, none]) - pull])
        errors = np.concatenate([at.rounding[:1], np.concatenate([error, none]) + pull_error])
        errors[:1] += self._sum_error(at, np.array([np.sqrt(self.gram.sum_weight)]))
        gradient, errors = gradient[1 - offset :], errors[1 - offset :]
        return LiteralStep(at, gradient, errors, self.factor.solve(gradient))

    def objective(self, at: Residual, state: Weights) -> float:
        """Squares and penalty, scaled."""
        return at.squares + float(np.sum((self.roots * self._scaled(state)) ** 2))

    def excess_bound(self, at: LiteralStep, state: Weights) -> float:
        """How far the objective can be above its minimum over all weights, in the units of `objective`.

        With p^2 = g'A^-1 g, and eta what the roundings of the remainders can be of any fit p: (p + (p + |r|) eta)^2.
        """
        p = float(np.sqrt(product_above_0(at.gradient, at.step)))
        inverse = np.abs(self.factor.inverse)
        eta = self._remainder_error(np.diagonal(inverse)) + self.matrix_error
        whole = at.at.raised(self.objective(at.at, state))
        if eta > 0.25:
            return whole
        of_remainders = 2 * np.sqrt(whole) * self._remainder_error(np.diagonal(inverse))
        rounding = float(np.sqrt(at.error @ (inverse @ at.error)))
        return min(float((p + rounding) * (1 + 2 * eta) + of_remainders) ** 2, whole)

    @property
    def matrix_error(self) -> float:
        """How far off sqrt(g' A^-1 g) can be, relative, for a given g: roundings of A, and of rows and relations."""
        condition = self.factor.condition
        return condition**2 * 32 * twofold_unit(self.gram.n_rows) + 16 * condition * UNIT

    def moved(self, state: Weights, step: Array) -> Weights:
        """The float64 state nearest to a state after a step of the unknowns."""
        remainders, s, offset = self.basis.remainders, self.gram.scaling, int(self.fit_intercept)
        weights = np.zeros(remainders.n_columns)
        weights[self.places] = step[offset:] * self.units / s.y_scale
        # First the weights of the columns set aside, as float64; the others then make up for them.
        total: dd.Pair = (state.coef / remainders.scale, np.zeros(remainders.n_columns))
        total = dd.add(total, (weights, np.zeros(remainders.n_columns)))
        constant: dd.Pair = (np.asarray(state.intercept), np.zeros(()))
        constant = dd.add(constant, (np.asarray(self._constant(step)), np.zeros(())))
        for i in np.argsort(-remainders.columns):
            j = int(remainders.columns[i])
            nearest = total[0][j] + total[1][j]
            change = dd.add((weights[j], np.zeros(())), dd.two_sum(nearest - total[0][j], -total[1][j]))
            total[0][j], total[1][j] = nearest, 0.0
            less = (-np.asarray(change[0]), -np.asarray(change[1]))
            line = (remainders.times[0][i], remainders.times[1][i])
            total = dd.add(total, dd.multiply(line, less))
            constant = dd.add(constant, dd.multiply((remainders.constants[0][i], remainders.constants[1][i]), less))
        return Weights((total[0] + total[1]) * remainders.scale, float(constant[0] + constant[1]))

    def _constant(self, step: Array) -> float:
        """What a step of the unknowns adds to the intercept of the basis's columns as they are."""
        if not self.fit_intercept:
            return 0.0
        s = self.gram.scaling
        hi, lo = dd.dot(step[1 : 1 + len(s.shift)], s.shift)
        return float((step[0] - hi) - lo) / s.y_scale

    def _scaled(self, state: Weights) -> Array:
        return scaled_weights(state.coef, self.basis.remainders.scale, self.gram.scaling.y_scale)

    def _pull(self, state: Weights) -> tuple[Array, Array]:
        """M' penalty w of the system's unknowns, and what its rounding can be."""
        pull, mixing = self.roots * self._scaled(state), self._pulling()
        return mixing.T @ pull, MATRIX_ERROR * (np.abs(mixing).T @ np.abs(pull))

    def _pulling(self) -> Array:
        """Roots of the penalty times M, for the system's unknowns."""
        return np.asarray(self.roots[:, None] * (self.mixing[:, self.places] * self.units))

    def _sum_error(self, at: Residual, norms: Array) -> Array:
        return np.asarray(at.unit * np.sqrt(at.magnitude) * norms)

    def _remainder_error(self, inverse: Array) -> float:
        """What the roundings of the remainders' entries can be of a fit of length 1."""
        first = int(self.fit_intercept) + len(self.basis.remainders.kept)
        k, live = len(self.basis.remainders.kept), len(self.basis.live)
        scale = self.gram.scaling.scale[k:]
        off = 2 * UNIT * self.gram.norms[k:] + self.basis.relative_error * scale * np.sqrt(self.gram.sum_weight)
        return float(off @ np.sqrt(inverse[first : first + live]))

    def _system(self) -> System:
        """B'B + M' penalty M."""
        d, offset = self.gram.n_columns, int(self.fit_intercept)
        order = np.concatenate([[d], np.arange(d)])[1 - offset :]
        size = offset + len(self.places)
        matrix, low, norms = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
        columns = slice(0, len(order))
        matrix[columns, columns] = self.gram.sums[np.ix_(order, order)]
        low[columns, columns] = 0.0 if self.gram.low is None else self.gram.low[np.ix_(order, order)]
        norms[columns] = np.concatenate([[np.sqrt(self.gram.sum_weight)], self.gram.norms])[1 - offset :]
        more = np.zeros((2, size, size))
        more[:, offset:, offset:] = _products(self._pulling())
        matrix, low = dd.add((matrix, low), (more[0], more[1]))
        norms[len(order) :] = np.sqrt(np.diagonal(matrix)[len(order) :])
        return System(matrix, low, norms)


def _products(rows: Array) -> dd.Pair:
    """rows' rows in twofold sums."""
    n, d = rows.shape
    ones, zeros = np.ones(d), np.zeros(d)
    dense = [("dense", np.ascontiguousarray(rows))]
    sums, low = core.gram(dense, None, None, ones, zeros, 1.0, 0.0, 1.0, block_rows(n), True, n_threads())
    return np.asarray(sums[:d, :d]), np.asarray(low[:d, :d])


# ---- rank in integers: float64 numbers are integers times powers of two ----------------------------------------------


def independent_columns(X: Array) -> list[int]:
    """The first columns that no combination of columns before them gives, exactly: Bareiss's elimination."""
    columns = [_integers(column) for column in np.asarray(X, dtype=np.float64).T]
    chosen: list[int] = []
    last = 1
    for j in range(len(columns)):
        row = next((i for i, entry in enumerate(columns[j]) if entry), None)
        if row is None:
            continue
        chosen.append(j)
        pivot_column, pivot = columns[j], columns[j][row]
        for k in range(j + 1, len(columns)):
            factor, other = columns[k][row], columns[k]
            columns[k] = [
                (entry * pivot - factor * mine) // last for entry, mine in zip(other, pivot_column, strict=True)
            ]
        last = pivot
    return chosen


def _integers(column: Array) -> list[int]:
    """A column times a power of two: integers without a common factor of two."""
    ratios = [float(entry).as_integer_ratio() for entry in column]
    denominator = max((below for _, below in ratios), default=1)
    whole = [above * (denominator // below) for above, below in ratios]
    shared = min(((entry & -entry).bit_length() - 1 for entry in whole if entry), default=0)
    return [entry >> shared for entry in whole]


SMALL_STEP = 1e-8  # relative to the size of predictions: beyond it a residual statistic is summed again
SMALL_CHANGE = 0.1  # relative to the size of residuals: beyond it their squares would be known to fewer digits
FAINT_SHARE = 2.0**-40  # of a column's squares: squares about its mean below it have lost digits of twofold sums


class LeastSquares(NormalEquations):
    """The task of rows that are at least as many as columns. alpha None means 1 / sum of weights."""

    _remainders: Remainders | None = None

    def __init__(self, source: Source, alpha: float | None, fit_intercept: bool, standardize: bool = False) -> None:
        self.source = source
        self._last: tuple[Weights, Residual] | None = None  # of a pass
        self._moved: tuple[Weights, Residual] | None = None  # of the last step from there
        summed = partial(gram, source, centred=fit_intercept)
        super().__init__(summed(), alpha, fit_intercept, partial(summed, twofold=True), source.names, standardize)

    @property
    def penalty_units(self) -> Array:
        """scale_j s_j. A column that varies by less than its sums tell has its spread from rows about one of them."""
        units = super().penalty_units
        if not self.standardize:
            return units
        squares = np.diagonal(self.gram.sums)[: self.gram.n_columns]
        about = self.gram.sum_weight * np.square(self.gram.spreads(self.fit_intercept))
        is_faint = about <= FAINT_SHARE * squares
        if not is_faint.any():
            return units
        return np.where(is_faint, self._spreads_about_a_row * self.gram.scaling.scale, units)

    @cached_property
    def _spreads_about_a_row(self) -> Array:
        return column_spreads(self.source, self.fit_intercept)

    def residual_at(self, state: Weights) -> Residual:
        """The residual statistic at a state: one pass over the rows, or none for a small step from the last."""
        if self._moved is not None and self._moved[0].is_same(state):
            return self._moved[1]
        if self._last is not None:
            at = self._moved_from(*self._last, state)
            if at is not None:
                self._moved = (state, at)
                return at
        weights, intercept = self.to_scaled(state)
        s = self.gram.scaling
        at = self._without_noise(residual(self.source, s, weights, intercept, s.shift, self.penalty), weights)
        self._last = (state, at)
        return at

    def _moved_from(self, old: Weights, last: Residual, state: Weights) -> Residual | None:
        """The statistic after a small step: it is quadratic in the state, so no pass is needed; None after a large one.

        The matrix is known to some hundred roundings.
        """
        s = self.gram.scaling
        moved = core.moved_residual(
            last.gradient,
            last.rounding,
            last.squares,
            last.magnitude,
            old.coef,
            old.intercept,
            state.coef,
            state.intercept,
            self.gram.sums,
            self.penalty,
            s.scale,
            s.shift,
            s.y_scale,
            SMALL_STEP,
            SMALL_CHANGE,
        )
        if moved is None:
            return None
        gradient, rounding, squares = moved
        return Residual(gradient, squares, last.magnitude, rounding, last.unit)

    def _without_noise(self, at: Residual, weights: Array) -> Residual:
        """Columns that are their shift in every row have no slope but the penalty's: what is summed is rounding."""
        still = np.flatnonzero(np.diagonal(self.gram.sums)[: self.gram.n_columns] == 0)
        if self.fit_intercept and len(still):
            at.gradient[1 + still] = -self.penalty[still] * weights[still]
            at.rounding[1 + still] = UNIT * np.abs(at.gradient[1 + still])
        return at

    @cached_property
    def raw_inverse(self) -> Array:
        """A^-1 for the columns (1, x), from that for (1, x - shift): b = b' - sum_j w_j shift_j."""
        inverse = self.factor.inverse
        return core.raw_inverse(inverse, self.gram.scaling.shift) if self.fit_intercept else inverse

    def _twofold_factor(self) -> Factor:
        factor, found = related_factor(self.source, self._system(), self.gram.scaling, self.fit_intercept)
        if found is not None and self.alpha > 0:  # the relations whatever the penalty
            system = column_system(self.gram, self.fit_intercept)
            found = related_factor(self.source, system, self.gram.scaling, self.fit_intercept)[1] or found
        self._remainders = found
        return factor

    @cached_property
    def remainders(self) -> Remainders | None:
        """What is left of the redundant columns, whatever the penalty; None where there are none."""
        left, system = self._remainders, self.literal
        if left is None or system is None or self.alpha > 0 or not left.is_rounding.any():
            return left
        state = self.from_solution(self.factor.solve(self.right_hand_side()))
        at, slope = system.at(state), self.gradient(self.residual_at(state))
        within = self.in_own_units(at.at.squares, system) - float(slope @ self.factor.solve(slope))
        gain = self.in_own_units(float(at.gradient @ at.step), system) - float(slope @ self.factor.solve(slope))
        if is_exact_fit(within, self.null_objective()):  # what is left is rounding too
            return left
        return left.trusted(within, gain, self.gram.n_rows - len(self.factor.kept) - len(system.basis.live))

    @cached_property
    def literal(self) -> LiteralSystem | None:
        """The system over all weights, with every column that differs from a combination of others as itself."""
        return None if self._remainders is None else self._in_basis(self._remainders)

    @cached_property
    def restricted(self) -> LiteralSystem | None:
        """The same with columns that are combinations but for the rounding of their entries taken for exact ones."""
        remainders = self.remainders
        if remainders is None or not remainders.is_rounding.any():
            return self.literal
        return self._in_basis(remainders.rounding_as_exact())

    def null_objective(self) -> float:
        """Squares about the best constant, or about 0 without an intercept, scaled: at most, after all roundings."""
        gram, d = self.gram, self.gram.n_columns
        error = MATRIX_ERROR if gram.low is None else 32 * twofold_unit(gram.n_rows)

        def entry(i: int, j: int) -> tuple[float, float]:  # of (1, y - y_shift); no shift without an intercept
            low = 0.0 if gram.low is None else float(gram.low[d + i, d + j])
            return float(gram.sums[d + i, d + j]), low

        squares = entry(1, 1)
        if not self.fit_intercept:
            return squares[0] * (1 - error)
        total = entry(0, 1)
        mean = total[0] / gram.sum_weight
        # squares - mean (2 total - mean W), less what the mean being off by a rounding costs
        left = dd.add(total, dd.multiply(entry(0, 0), (-mean, 0.0)))
        about = dd.add(squares, dd.multiply((-mean, 0.0), dd.add(total, left)))
        off = left[0] * left[0] / gram.sum_weight
        return max(about[0] - 2 * off - 4 * error * squares[0], 0.0)

    def in_own_units(self, squares: float, system: LiteralSystem) -> float:
        """Squares in the units of a system as squares in the units of this task: powers of two apart."""
        units, system_units = self.gram.scaling, system.gram.scaling
        return squares * (units.y_scale / system_units.y_scale) ** 2 * (units.weight_scale / system_units.weight_scale)

    def _in_basis(self, remainders: Remainders) -> LiteralSystem | None:
        return LiteralSystem.of(self.source, remainders, self.alpha, self.fit_intercept, self.spreads)

    def gradient(self, at: Residual) -> Array:
        """Minus the gradient of the scaled objective in the system's unknowns."""
        return at.gradient if self.fit_intercept else at.gradient[1:]
