"""Huber regression of fewer rows than columns, on the matrix of the rows.

With an L2 penalty the weights of a minimum are combinations of the (centred) rows, w = sum_i c_i z_i, and only their
products count. With C = ZZ' = Q L Q' the rows of Q L^(1/2) have the same products and minima, and no more columns than
rows: that problem is solved. What is proven is proven on the rows as they are: any multipliers u of the rows give a
lower bound, those of the rotated rows a near one.

Without a penalty rows that are no combinations of each other are met by the weights of least squares, exactly but for
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source
from certifit.mathematics.losses import Huber
from certifit.models.huber.task import HuberSums, HuberTask, HuberWeights, Point, Rows, Rule
from certifit.models.least_squares.dual import DualLeastSquares, has_fewer_rows
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.gram import Scaling
from certifit.statistics.remainders import Remainders

REFINEMENTS = 4
NORM_ERROR = 1e-6  # of the lengths of columns, which bound roundings


def huber_task(
    source: Source, loss: Huber, strength: float, rule: Rule, fit_intercept: bool, standardize: bool = False
) -> HuberTask:
    """The task on columns, or on rows where these are fewer and have a penalty or are met exactly."""
    if has_fewer_rows(source):
        wide = WideHuberTask(source, loss, strength, rule, fit_intercept, standardize)
        if strength > 0 or wide.is_met:
            return wide
    return HuberTask(source, loss, strength, rule, fit_intercept, standardize)


@dataclass(frozen=True)
class WideSums:
    """What is known of columns and target without a matrix of columns x columns: sums in scaled units."""

    scaling: Scaling
    norms: Array
    sum_weight: float
    n_rows: int
    target: tuple[float, float]  # its mean, and its squares about it

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.norms)

    def target_moments(self) -> tuple[float, float]:
        """The mean of the target, and the sum of squares about it."""
        return self.target


@dataclass(frozen=True)
class Rotated:
    """The task of rows X with the same products. to_rows: makes weights multipliers of the rows as they are."""

    task: HuberTask
    X: Array
    to_rows: Array


class WideHuberTask(HuberTask):
    """The task; `dual` is least squares of the same rows. All rows of a weight are gathered."""

    def __init__(
        self, source: Source, loss: Huber, strength: float, rule: Rule, fit_intercept: bool, standardize: bool
    ) -> None:
        self.loss, self.strength, self.rule = loss, strength, rule
        self.fit_intercept, self.standardize, self.names = fit_intercept, standardize, source.names
        dual = self.dual = DualLeastSquares(source, strength, fit_intercept, standardize)
        self.source = Memory(dual.block.X, dual.y, dual.block.weight, source.names)
        self.factor = dual.factor
        y = dual.y * dual.scaling.y_scale
        mean = float(dual.weight @ y) / dual.sum_weight
        s = Scaling(dual.scaling.scale, dual.mean, dual.scaling.y_scale, 0.0, dual.scaling.weight_scale)
        norms = dual.spreads_of(dual.weight) * (np.sqrt(dual.sum_weight) * (1 + NORM_ERROR))
        about = float(dual.weight @ np.square(y - mean))
        self.gram = WideSums(s, norms, dual.sum_weight, dual.n_rows, (mean, about))  # type: ignore[assignment]
        self._column_error = np.zeros(len(norms))

    @property
    def is_met(self) -> bool:
        """Whether some weights meet every row: no row is a combination of others, but for the mean of all."""
        return len(self.dual.factor.kept) >= len(self.dual.y) - int(self.fit_intercept)

    @property
    def penalty_units(self) -> Array:
        """scale_j s_j: what makes a scaled weight one that the penalty counts."""
        return self.gram.scaling.scale if self.dual.units is None else self.dual.units

    @property
    def rank(self) -> int:
        """As of ridge: of the rows."""
        return self.dual.rank

    @cached_property
    def remainders(self) -> Remainders | None:
        """Relations among more columns than rows are not looked for."""
        return None

    def null_space(self) -> tuple[Array | None, Array]:
        """A basis of the directions that no row sees, while it is small enough to keep."""
        return self.dual.null_space()

    def sums_at(self, at: Point, step: Array | None = None, with_near: bool = False) -> HuberSums:
        """The sums at a state, always without a matrix of the columns: one pass."""
        assert step is None
        sums: HuberSums = self.source.reduce(partial(_sums_of_stretch, rows=self.rows(), at=at))
        return sums

    @cached_property
    @one_blas_thread
    def rotated(self) -> Rotated:
        """Rows with the same products. Directions that rounding cannot tell from none are left out."""
        dual = self.dual
        values, vectors = np.linalg.eigh(dual.products())
        seen = values > len(values) * np.finfo(np.float64).eps * values[-1]
        roots, vectors = np.sqrt(values[seen]), vectors[:, seen]
        unit = 1.0 if self.standardize else float(dual.scaling.scale[0])
        X = np.ascontiguousarray(vectors * roots)
        rows = Memory(X, dual.y, dual.block.weight)
        task = HuberTask(rows, self.loss, self.strength * unit * unit, self.rule, self.fit_intercept)
        return Rotated(task, X, vectors / roots / dual.roots[:, None])

    def from_rotated(self, state: HuberWeights) -> HuberWeights:
        """The state of these rows whose residuals are those of a state of the rotated rows, but for roundings."""
        dual, small, s = self.dual, self.rotated.task, self.gram.scaling
        stretch, rows = next(iter(small.source.stretches())), small.rows()
        wanted = rows.residuals(stretch, small.point(state)) / small.gram.scaling.y_scale
        weights, intercept = dual.combine(self.rotated.to_rows @ (state.coef * s.y_scale)), 0.0
        states = []
        for _ in range(REFINEMENTS):
            coef = dual.from_scaled(weights).coef
            off = dual.residuals(Weights(coef, intercept)) - wanted * s.y_scale
            level = float(dual.weight @ off) / dual.sum_weight if self.fit_intercept else 0.0
            intercept += level / s.y_scale
            states.append(HuberWeights(coef, intercept, state.scale))
            weights = weights + dual.combine(self.rotated.to_rows @ self._coordinates(off - level))
        return min(states, key=self._objective_at)  # a strong penalty asks for small weights, not for these residuals

    def _objective_at(self, state: HuberWeights) -> float:
        at = self.point(state)
        return self.objective(at, self.sums_at(at), self.is_joint)

    def _coordinates(self, scores: Array) -> Array:
        """The weights of the rotated rows that make scores about their mean."""
        return np.asarray((self.rotated.to_rows * self.dual.roots[:, None]).T @ scores)

    def to_rotated(self, state: HuberWeights) -> HuberWeights:
        """The state of the rotated rows that predicts what a state does, but for roundings."""
        dual, y_scale = self.dual, self.gram.scaling.y_scale
        scores = dual.y - dual.residuals(state) / y_scale
        level = float(dual.weight @ scores) / dual.sum_weight if self.fit_intercept else 0.0
        return HuberWeights(self._coordinates(scores - level), level, state.scale)


def _sums_of_stretch(stretch: Block, rows: Rows, at: Point) -> HuberSums:
    loss, weight = rows.loss, rows.weights(stretch)
    r = rows.residuals(stretch, at)
    slopes = rows.slopes(stretch, loss.slope(r, at.scale))
    nothing = (np.zeros(0), np.zeros(0))
    return HuberSums(float(weight @ loss.value(r, at.scale)), float(weight @ np.square(r)), slopes, nothing)
