"""What inference for a generalised linear model sums over the rows of its fit: one pass.

information   sum w W (x, 1)(x, 1)',   W = E l'' = h'^2 / V: what Fisher scoring (IRLS) weighs rows by
deviance      2 sum w l(y, z),         Pearson's sum of w (y - mu)^2 / V = w l'^2 / W
saturated     log-likelihood of means equal to the targets, at dispersion 1
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source, tree_sum
from certifit.statistics.gram import Scaling
from certifit.statistics.loss_sums import RowLoss, curvature_of, derivatives_of, hessians_of, scores_of, sums_of

Likelihood = Callable[[Array, Array, Array | None], float]  # of targets, means and weights


@dataclass(frozen=True)
class FitSums:
    """Sums over rows of positive weight, in the units of the weights. half: half the deviance, of the fit and null."""

    information: Array
    half: float
    null_half: float
    pearson: float
    saturated: float
    n_rows: int

    def __add__(self, other: FitSums) -> FitSums:
        return FitSums(
            self.information + other.information,
            self.half + other.half,
            self.null_half + other.null_half,
            self.pearson + other.pearson,
            self.saturated + other.saturated,
            self.n_rows + other.n_rows,
        )


@dataclass(frozen=True)
class Fit:
    """A fitted point: loss, scaling, weights of scaled, shifted columns and their intercept."""

    loss: RowLoss
    scaling: Scaling
    weights: Array
    intercept: float

    def scores(self, stretch: Block) -> Array:
        """offset + b + x'w of the rows."""
        return scores_of(stretch, self.scaling, self.weights, self.intercept)


def expected_curvature(loss: RowLoss, y: Array, z: Array) -> Array:
    """E l'' over targets of the mean of a score; where l'' is linear in y, l'' at that mean."""
    curvature = loss.expected(y, z) if loss.code is None and hasattr(loss, "link") else loss.curvature(loss.mean(z), z)
    return np.asarray(curvature)


def fit_sums(source: Source, fit: Fit, null: float, saturated: Likelihood | None) -> FitSums:
    """All sums. null: the score, but for the offset, of the model without columns."""
    f = partial(_of_stretch, fit=fit, null=null, saturated=saturated, block_rows=source.block_rows)
    total: FitSums = source.reduce(f)
    return replace(total, information=total.information / fit.scaling.weight_scale)


def _of_stretch(stretch: Block, fit: Fit, null: float, saturated: Likelihood | None, block_rows: int) -> FitSums:
    z = fit.scores(stretch)
    losses = derivatives_of(stretch, fit.loss, z, hessian=False, curved=False)
    y = np.asarray(stretch.y)
    with np.errstate(all="ignore"):
        weights = np.where(np.isfinite(losses.values), expected_curvature(fit.loss, y, z), 0.0)
        pearson = np.where(losses.slopes == 0, 0.0, np.square(losses.slopes) / weights)
        alone = np.full(stretch.n_rows, null) if stretch.offset is None else null + stretch.offset
        null_values = derivatives_of(stretch, fit.loss, alone, hessian=False, curved=False).values
    information = sums_of(stretch, fit.scaling, losses.slopes, weights, block_rows, (None, 1))[1]
    assert information is not None

    def of_block(begin: int) -> FitSums:
        part = slice(begin, begin + block_rows)
        w = None if stretch.weight is None else stretch.weight[part]
        half, null_half, chi2 = (_total(rows[part], w) for rows in (losses.values, null_values, pearson))
        counted = slice(None) if w is None else w > 0
        target = y[part][counted]
        with np.errstate(all="ignore"):
            full = np.nan if saturated is None else saturated(target, target, None if w is None else w[counted])
        return FitSums(np.zeros(0), half, null_half, chi2, full, len(target))

    block_sums = tree_sum(map(of_block, range(0, max(stretch.n_rows, 1), block_rows)))
    return replace(block_sums, information=information[0])


@np.errstate(over="ignore")  # a deviance beyond the range of float64 is infinite
def _total(rows: Array, weight: Array | None) -> float:
    return float(rows.sum() if weight is None else (np.where(weight > 0, rows, 0.0) * weight).sum())


def likelihood_sum(source: Source, fit: Fit, likelihood: Likelihood) -> float:
    """Log-likelihood of the rows at the fitted means: one pass."""
    return float(source.reduce(partial(_likelihood_of_stretch, fit=fit, f=likelihood, block_rows=source.block_rows)))


def _likelihood_of_stretch(stretch: Block, fit: Fit, f: Likelihood, block_rows: int) -> Array:
    mu, y = fit.loss.mean(fit.scores(stretch)), np.asarray(stretch.y)

    def of_block(begin: int) -> Array:
        part = slice(begin, begin + block_rows)
        w = None if stretch.weight is None else stretch.weight[part]
        counted = slice(None) if w is None else w > 0
        return np.array(f(y[part][counted], mu[part][counted], None if w is None else w[counted]))

    return tree_sum(map(of_block, range(0, max(stretch.n_rows, 1), block_rows)))


def sandwich_sums(source: Source, fit: Fit, is_frequency: bool) -> tuple[Array, Array]:
    """sum w l'' (x, 1)(x, 1)' and sum w l'^2 (x, 1)(x, 1)', of inverse variances sum w^2 l'^2: one pass."""
    f = partial(_sandwich_of_stretch, fit=fit, is_frequency=is_frequency, block_rows=source.block_rows)
    bread, meat = source.reduce(f).matrices
    return bread / fit.scaling.weight_scale, meat / fit.scaling.weight_scale


@dataclass(frozen=True)
class _Pair:
    matrices: Array

    def __add__(self, other: _Pair) -> _Pair:
        return _Pair(self.matrices + other.matrices)


def _sandwich_of_stretch(stretch: Block, fit: Fit, is_frequency: bool, block_rows: int) -> _Pair:
    z, y = fit.scores(stretch), np.asarray(stretch.y)
    slopes = derivatives_of(stretch, fit.loss, z, hessian=False, curved=False).slopes
    with np.errstate(all="ignore"):
        curvatures = curvature_of(fit.loss, y, z)
    squares = np.square(slopes) * (1.0 if is_frequency or stretch.weight is None else stretch.weight)
    both = hessians_of(stretch, fit.scaling, (curvatures, squares), block_rows, (None, 1))
    return _Pair(np.stack([pair[0] for pair in both]))


def null_score(source: Source, loss: RowLoss, start: float) -> float:
    """The b that minimises sum w l(y, offset + b): Newton's method on one number, each step a pass over the targets.

    The slope has opposite signs at `low` and `high`. Steps that do not shrink by half are doubled while an end is
    open, else the middle is next: offsets of many sizes make the expected curvature far from the true one.
    """
    b, at, last = start, _null_sums(source, loss, start), np.inf
    low, high = -np.inf, np.inf
    for _ in range(MOST_STEPS):
        low, high = (low, b) if at[1] > 0 else (b, high)
        step = _null_step(b, at, last, low, high)
        trial = _null_sums(source, loss, b - step)
        while abs(step) > NULL_STEP * max(abs(b), 1.0) and not np.isfinite(trial[:2]).all():
            step /= 2
            trial = _null_sums(source, loss, b - step)
        if not abs(step) > NULL_STEP * max(abs(b), 1.0):
            break
        b, at, last = b - step, trial, abs(step)
    return float(b)


def _null_step(b: float, at: Array, last: float, low: float, high: float) -> float:
    with np.errstate(invalid="ignore", over="ignore"):  # sums beyond float64 tell no step: there it ends
        step = at[1] / at[2] if at[2] > 0 else 0.0
    if np.isinf(step):  # next to no curvature tells the way and not how far
        step = np.copysign(max(abs(b), 1.0), step)
    if 2 * abs(step) <= last and low < b - step < high:
        return float(step)
    if np.isfinite(low) and np.isfinite(high):
        return b - (low + high) / 2
    return float(step if np.isinf(last) else np.copysign(2 * last, at[1]))


NULL_STEP = 1e-10
MOST_STEPS = 100


def _null_sums(source: Source, loss: RowLoss, b: float) -> Array:
    sums: Array = source.reduce(partial(_null_of_stretch, loss=loss, b=b, block_rows=source.block_rows))
    return sums


def _null_of_stretch(stretch: Block, loss: RowLoss, b: float, block_rows: int) -> Array:
    z = np.full(stretch.n_rows, b) if stretch.offset is None else b + stretch.offset
    losses = derivatives_of(stretch, loss, z, hessian=False, curved=False)
    with np.errstate(all="ignore"):
        curved = expected_curvature(loss, np.asarray(stretch.y), z)

    def of_block(begin: int) -> Array:
        part = slice(begin, begin + block_rows)
        w = None if stretch.weight is None else stretch.weight[part]
        return np.array([_total(rows[part], w) for rows in (losses.values, losses.slopes, curved)])

    return tree_sum(map(of_block, range(0, max(stretch.n_rows, 1), block_rows)))
