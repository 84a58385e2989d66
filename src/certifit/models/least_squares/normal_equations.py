"""The normal equations of least squares with an optional ridge penalty: what a Gram matrix alone determines.

minimise  sum_i w_i (y_i - b - x_i'w)^2 / (2 sum_i w_i) + alpha/2 sum_j s_j^2 w_j^2

s_j is 1, or the standard deviation of a column (without an intercept, its root mean square).

The system's columns are (1, x - shift) with an intercept and x without; its unknowns are the intercept of shifted
columns, first, then the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.runtime import core
from certifit.statistics import double_double as dd
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor
from certifit.statistics.gram import NO_SPREAD, Gram, Scaling
from certifit.statistics.moments import refuse_small_spreads
from certifit.statistics.remainders import related_factor, screened
from certifit.statistics.residual import MATRIX_ERROR, UNIT

LARGEST_PENALTY = 1e200  # largest penalty on a column of size 1
ALMOST_LARGEST = 2.0**-20  # of its root: columns whose scale in another system may make their penalty the largest


@dataclass(frozen=True)
class Weights:
    """A state: one weight per column and the intercept, in the user's units."""

    coef: Array
    intercept: float

    def is_same(self, other: Weights) -> bool:
        """Whether both are the state of one fit: the very array of weights."""
        return self.coef is other.coef and self.intercept == other.intercept


class GramUnits:
    """A Gram statistic and the scales between the user's units and those of its sums."""

    def __init__(self, gram: Gram, fit_intercept: bool, names: Sequence[str]) -> None:
        self.gram = gram
        self.fit_intercept = fit_intercept
        self.names = names

    def to_scaled(self, state: Weights) -> tuple[Array, float]:
        """Weights and intercept for scaled columns and target. Powers of two: exact short of underflow."""
        return self.gram.scaling.of_state(state.coef, state.intercept)

    def from_solution(self, solution: Array, low: Array | None = None) -> Weights:
        """The state nearest to a solution of the system, solution + low."""
        s = self.gram.scaling
        units = (s.scale, s.shift, s.y_scale, s.y_shift)
        coef, intercept = core.state_of_solution(solution, low, bool(self.fit_intercept), *units)
        crushed = self._is_crushed()
        if crushed is not None:
            coef[crushed] = 0.0
        self._refuse_overflow(coef)
        return Weights(coef, intercept)

    def to_solution(self, state: Weights) -> Array:
        """Inverse of `from_solution`."""
        s = self.gram.scaling
        units = (s.scale, s.shift, s.y_scale, s.y_shift)
        solution: Array = core.solution_of_state(state.coef, state.intercept, bool(self.fit_intercept), *units)
        return solution

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean, about = self.gram.target_moments()
        return data_facts(self.gram.n_rows, self.gram.sum_weight, self.gram.scaling, mean, about)

    def _order(self) -> Array:
        """The system's columns as places in the Gram statistic."""
        return _order(self.gram.n_columns, bool(self.fit_intercept))

    def _is_crushed(self) -> Array | None:
        """Columns whose penalty leaves no weight to speak of; None where there is no penalty."""
        return None

    def _refuse_overflow(self, coef: Array) -> None:
        refuse_overflow(coef, self.gram.scaling.scale, self.names)


@lru_cache(maxsize=8)
def _order(n_columns: int, fit_intercept: bool) -> Array:
    """Places of a system's columns in a Gram statistic: the constant first, if there is one."""
    order = np.arange(n_columns) if not fit_intercept else np.arange(-1, n_columns) % (n_columns + 1)
    order.flags.writeable = False
    return order


def refuse_overflow(coef: Array, scale: Array, names: Sequence[str]) -> None:
    """Raise where a coefficient is beyond float64."""
    if np.isfinite(coef).all():
        return
    j = int(np.flatnonzero(~np.isfinite(coef))[0])
    raise ValueError(
        f"The coefficient of feature {names[j]!r} exceeds the largest float64: its values are "
        f"about {1.0 / scale[j]:.0e}. Multiply the column by 1e200 or so, or leave it out."
    )


class NormalEquations(GramUnits):
    """The system of one Gram statistic. alpha None means 1 / sum of weights.

    resum: the same statistic in twofold sums, asked for where float64 ones cannot bear the condition.
    standardize: the penalty is one of weights times the spreads of their columns.
    rows: those of the statistic, which are read where columns may be combinations of others but for rounding.
    """

    def __init__(
        self,
        gram: Gram,
        alpha: float | None,
        fit_intercept: bool,
        resum: Callable[[], Gram],
        names: Sequence[str],
        standardize: bool = False,
        rows: Callable[[], Source] | None = None,
    ) -> None:
        super().__init__(gram, fit_intercept, names)
        self._alpha, self._rows = alpha, rows
        self.standardize = standardize
        self._resum = resum
        self.factor: Factor = self._factored()

    @property
    def alpha(self) -> float:
        """Strength of the penalty on the mean scale."""
        if self._alpha is not None:
            return self._alpha
        return self.gram.scaling.weight_scale / self.gram.sum_weight

    @cached_property
    def penalty(self) -> Array:
        """What the penalty adds to the diagonal, in scaled units: sum_w alpha (scale_j s_j)^2, kept finite."""
        return self._penalty_of(self.alpha)

    @property
    def penalty_units(self) -> Array:
        """scale_j s_j: what makes a scaled weight one that the penalty counts."""
        return penalty_units(self.gram, self.fit_intercept, self.standardize)

    @property
    def spreads(self) -> Array:
        """s_j, in the user's units."""
        spreads = np.asarray(self.penalty_units / self.gram.scaling.scale)
        refuse_small_spreads(spreads, self.names)
        return spreads

    @property
    def penalty_error(self) -> Array:
        """Rounding of the penalty, relative, beyond a unit: of the sum of weights, or of what spreads are made of.

        Whole weights have an exact sum.
        """
        gram, d = self.gram, self.gram.n_columns
        sums = np.full(d, min((gram.n_rows + 2) * UNIT, MATRIX_ERROR))
        if not self.standardize:
            total = float(gram.sum_weight / gram.scaling.weight_scale)
            return np.zeros(d) if total < 1 / UNIT and total.is_integer() else sums
        if self.fit_intercept and gram.low is None:  # squares - sums^2 / W
            squares, of_means = np.diagonal(gram.sums)[:d], np.square(gram.sums[d, :d]) / gram.sum_weight
            about = np.maximum(squares - of_means, NO_SPREAD * squares)
            sums = sums * np.where(squares > 0, (squares + 3 * of_means) / np.where(squares > 0, about, 1.0), 1.0)
        return np.asarray(sums + 8 * UNIT)

    def _is_crushed(self) -> Array | None:
        if self.alpha == 0:
            return None
        return np.asarray(self.penalty >= LARGEST_PENALTY)  # within 1 / LARGEST_PENALTY of the minimum, relative

    def _penalty_of(self, alpha: float) -> Array:
        strength = alpha * self.gram.sum_weight
        if strength == 0:
            return np.zeros(self.gram.n_columns)
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(strength * self.penalty_units**2, LARGEST_PENALTY)

    def penalty_of(self, state: Weights, weights: Array) -> tuple[float, float]:
        """sum_j penalty_j w_j^2, and at most what the penalty is above that for columns where it was kept finite.

        weights: those of the state, scaled. Roots are taken first: the squares of small weights underflow.
        """
        if self.alpha == 0:
            return 0.0, 0.0
        kept = float(np.sum((np.sqrt(self.penalty) * weights) ** 2))
        return kept, self._beyond(np.sqrt(self.alpha) * np.sqrt(self.gram.sum_weight), state)

    def _beyond(self, root: float, state: Weights) -> float:
        """sum_j (root s_j w_j)^2 over the columns whose (root scale_j s_j)^2 may be cut to LARGEST_PENALTY."""
        with np.errstate(over="ignore"):
            is_cut = root * self.penalty_units > ALMOST_LARGEST * np.sqrt(LARGEST_PENALTY)
            counted = (state.coef * self.spreads)[is_cut] * self.gram.scaling.y_scale
            return float(min(np.sum((root * counted) ** 2), LARGEST_PENALTY))

    @property
    def rank(self) -> int:
        """Number of columns that are not combinations of the others (and of the intercept)."""
        return len(self.factor.kept) - int(self.fit_intercept)

    def right_hand_side(self) -> Array:
        """sum_i w_i a_i (y_i - y_shift) for the system's columns a."""
        return np.asarray(self.gram.sums[self._order(), self.gram.n_columns + 1])

    def right_hand_pair(self) -> dd.Pair:
        """The same as hi + lo; lo is zero in float64."""
        hi, low = self.right_hand_side(), self.gram.low
        return hi, np.zeros_like(hi) if low is None else np.asarray(low[self._order(), self.gram.n_columns + 1])

    def unpenalised(self) -> Array:
        """The system's matrix without a penalty, in float64."""
        order = self._order()
        return np.asarray(self.gram.sums[order[:, None], order])

    def diagonal(self, alpha: float) -> Array:
        """What a penalty adds to the diagonal of the system's matrix, for any alpha."""
        return np.concatenate([np.zeros(int(self.fit_intercept)), self._penalty_of(alpha)])

    def directions(self) -> Array:
        """Null vectors of the system, one a dependent column: its relation to the kept ones, -1 for itself."""
        factor = self.factor
        out = np.zeros((len(factor.kept) + len(factor.dependent), len(factor.dependent)))
        out[factor.dependent, np.arange(len(factor.dependent))] = -1.0
        out[factor.kept] = factor.relations.T
        return out

    def null_space(self) -> tuple[Array | None, Array]:
        """Directions of the weights, largest entry 1, and of the intercept, that change no prediction."""
        s, offset = self.gram.scaling, int(self.fit_intercept)
        if not len(self.factor.dependent):
            return np.zeros((self.gram.n_columns, 0)), np.zeros(0)
        moves = self.directions()
        with np.errstate(over="ignore", under="ignore"):
            weights = moves[offset:] * s.scale[:, None]
            intercept = moves[0] - s.shift @ moves[1:] if offset else np.zeros(moves.shape[1])
        largest = np.abs(weights).max(axis=0, initial=0.0)
        unit = np.where(largest > 0, largest, 1.0)
        return np.asarray(weights / unit), np.asarray(intercept / unit)

    def _factored(self) -> Factor:
        """Factor of the system's matrix; from twofold sums where float64 ones cannot bear its condition.

        A penalty of weights times spreads is as exact as the spreads are: these need twofold sums where they are rough.
        """
        is_rough = self.standardize and self.alpha > 0 and self.fit_intercept and self.gram.has_rough_spreads()
        plain = plain_factor(self._system()) if self.gram.low is None and not is_rough else None
        if plain is not None:
            return plain
        if self.gram.low is None:
            self.gram = self._resum()
            self.forget()
        return self._twofold_factor()

    def _twofold_factor(self) -> Factor:
        system = self._system()
        if self._rows is None:
            return twofold_factor(system)
        rows = self._rows()
        factor, aside = screened(rows, system, self.fit_intercept)
        return related_factor(rows, system, self.gram.scaling, self.fit_intercept)[0] if aside else factor

    def forget(self) -> None:
        """Drop what was made of other sums or rows."""
        for name in [name for name in vars(self) if isinstance(getattr(type(self), name, None), cached_property)]:
            del self.__dict__[name]

    def _system(self) -> System:
        order = self._order()
        places = (order[:, None], order)
        low = None if self.gram.low is None else self.gram.low[places]
        norms, penalty = self.gram.norms, self.penalty
        if self.fit_intercept:
            norms = np.concatenate([[np.sqrt(self.gram.sum_weight)], norms])
            penalty = np.concatenate([[0.0], penalty])
        return System.of(self.gram.sums[places], low, penalty, norms)


def penalty_units(gram: Gram, fit_intercept: bool, standardize: bool) -> Array:
    """scale_j s_j of the columns of a statistic; s_j is 1 for a column that does not vary."""
    if not standardize:
        return gram.scaling.scale
    spreads = gram.spreads(fit_intercept)
    return np.where(spreads > 0, spreads, gram.scaling.scale)


def data_facts(n_rows: int, sum_weight: float, s: Scaling, mean: float, about: float) -> dict[str, float]:
    """Number of rows, sum of weights, mean and standard deviation of the target, in the user's units."""
    return {
        "n_rows": n_rows,
        "sum_weight": sum_weight / s.weight_scale,
        "target_mean": mean / s.y_scale,
        "target_sd": float(np.sqrt(about / sum_weight)) / s.y_scale,
    }
