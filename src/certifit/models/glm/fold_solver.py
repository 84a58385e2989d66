"""A generalised linear model on the training rows of every split: sums by cell, and sums of all splits at once.

minimise for every split s   sum_c train[s, c] sum_(i in c) w_i l(y_i, z_i) / W_s + sum_j l1_sj |w_j| + l2_sj/2 w_j^2
Where columns are standardised, l2_sj has their variances over the training rows of the split, l1_sj their roots.

The Hessian of a training set is a sum of those of the cells: one pass gives those of all splits at a common point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.mathematics.penalties import ElasticPenalty, Kinks, minimiser, without_still
from certifit.minimise.steps import Steps
from certifit.models.glm import newton
from certifit.models.glm.l1_solver import LEARNT, ProxNewton, WorkingSet, sampled_start
from certifit.models.glm.l1_solver import solve as solve_kinked
from certifit.models.glm.newton import ARMIJO, FLOOR, SURE, Chord, corrected
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import LARGEST_PENALTY, Weights
from certifit.runtime import one_blas_thread
from certifit.statistics.cell_sums import cell_moments
from certifit.statistics.factor import Curvature
from certifit.statistics.loss_sums import CellTargets, FoldsAt, cell_targets, fold_oracle

MOST_BYTES = 256 << 20  # of the Hessians of all cells and splits


@dataclass(frozen=True)
class FoldsNear:
    """Losses of all training sets at a common point, their gradients and Hessians; and the Hessians of the cells."""

    point: Array
    losses: Array
    slopes: Array
    hessians: Array
    by_cell: Array


class FoldLosses:
    """Smooth parts of the objectives of all splits; points are those of the task of all rows."""

    near: FoldsNear  # the last that was made

    def __init__(self, task: GlmTask, splits: Splits) -> None:
        self.task, self.splits = task, splits

    @property
    def n_splits(self) -> int:
        """Number of training sets."""
        return self.splits.n_splits

    @cached_property
    def _targets(self) -> CellTargets:
        return cell_targets(self.task.source, self.splits.cells)

    @cached_property
    def train_weight(self) -> Array:
        """Sum of weights of every training set."""
        weight = np.asarray(self.splits.train @ self._targets.weight)
        if not (weight > 0).all():
            raise ValueError("A split has no rows of positive weight. Use fewer folds.")
        return weight

    @cached_property
    def has_start(self) -> Array:
        """Whether an intercept alone has a finite best value on a training set."""
        means = self.splits.train @ self._targets.first / self.train_weight
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.array([np.isfinite(self.task.loss.score(float(mean))) for mean in means])

    @cached_property
    def _unit(self) -> Array:
        """What makes a mean of a scaled sum."""
        return 1.0 / (self.train_weight * self.task.scaling.weight_scale)

    def at(self, point: Array) -> FoldsNear:
        """Losses of all training sets at one point, their gradients and Hessians: one pass."""
        by_cell = self.task.sums(point, hessian=True, cells=self.splits.cells)
        if by_cell.hessian is None:
            raise ValueError("The pass gave no Hessian.")
        train = self.splits.train * self._unit[:, None]
        slopes = train @ by_cell.gradient
        if not self.task.fit_intercept:
            slopes[:, -1] = 0.0
        hessians = self._combined(train, by_cell.hessian)
        self.near = FoldsNear(point, train @ by_cell.value, slopes, hessians, by_cell.hessian)
        return self.near

    def validation_slopes(self, points: Array) -> Array:
        """Gradients of the mean losses of the validation rows, each split at its own point: one pass."""
        every = Splits(self.splits.cells, self.splits.validation, self.splits.validation)
        sums = fold_oracle(self.task.source, FoldsAt(self.task.loss, self.task.scaling, every, points))
        return np.asarray((sums.gradient / np.where(sums.weight > 0, sums.weight, 1.0)).T)

    def validation_hessians(self, near: FoldsNear) -> Array:
        """Hessians of the mean losses of the validation rows."""
        weight = self.splits.validation @ self._targets.weight * self.task.scaling.weight_scale
        times = self.splits.validation / np.where(weight > 0, weight, 1.0)[:, None]
        return self._combined(times, near.by_cell)

    def _combined(self, times: Array, by_cell: Array) -> Array:
        held = np.einsum("sc,cij->sij", times, by_cell)
        if not self.task.fit_intercept:
            held[:, -1], held[:, :, -1] = 0.0, 0.0
            held[:, -1, -1] = 1.0  # no step along it, and no flat direction either
        return np.asarray(held)

    def held(self, hessian: Array, has_kinks: bool) -> Array:
        """A Hessian as steps take it: an L1 penalty leaves out columns that vary by rounding alone."""
        return without_still(hessian, self.task.scaling.shift) if has_kinks else hessian

    def evaluate(self, places: Array, points: Array) -> tuple[Array, Array, Array]:
        """Losses and their gradients of some training sets, each at its own point, and mean losses of validation rows.

        One pass.
        """
        task, every = self.task, self.splits
        splits = Splits(every.cells, every.train[places], every.validation[places])
        sums = fold_oracle(task.source, FoldsAt(task.loss, task.scaling, splits, points))
        with np.errstate(over="ignore", invalid="ignore"):
            gradient = sums.gradient.T * self._unit[places, None]
            if not task.fit_intercept:
                gradient[:, -1] = 0.0
            held_out = sums.validation / np.where(sums.weight > 0, sums.weight, 1.0)
            return sums.train * self._unit[places], gradient, held_out

    def l2(self, alphas: Array) -> Array:
        """Strengths of the squares of scaled weights for an alpha per split: splits x (columns + 1)."""
        strengths = self.task.strengths
        with np.errstate(over="ignore", under="ignore"):
            per_column = alphas[:, None] * (1 - strengths.l1_ratio) * strengths.factors
            strength = np.minimum(per_column * (self.task.scaling.scale * self._spreads) ** 2, LARGEST_PENALTY)
        return np.column_stack([np.where(per_column > 0, strength, 0.0), np.zeros(len(alphas))])

    def kinks(self, alphas: Array) -> list[Kinks]:
        """L1 strengths and bounds of scaled weights for an alpha per split."""
        s, scale = self.task.strengths, self.task.scaling.scale
        with np.errstate(over="ignore", under="ignore"):
            per_column = alphas[:, None] * s.l1_ratio * s.factors
            l1 = np.minimum(per_column * scale * self._spreads, LARGEST_PENALTY)
            lower, upper = s.lower / scale, s.upper / scale
        return [Kinks.of(ElasticPenalty(of_split, np.zeros_like(scale), lower, upper)) for of_split in l1]

    @cached_property
    def _spreads(self) -> Array:
        """What weights are multiplied by in the penalty: splits x columns."""
        if not self.task.standardize:
            return np.ones((self.n_splits, 1))
        by_cell = cell_moments(self.task.source, self.splits.cells)
        return by_cell.combined(self.splits.train).spreads(self.task.fit_intercept)

    def alone(self, split: int, alpha: float) -> GlmTask:
        """The same training set as a task of its own."""
        return task_of(self.task, self.splits.trained(self.task.source, split), alpha)


def task_of(task: GlmTask, source: Source, alpha: float) -> GlmTask:
    """The same model on other rows with another alpha."""
    s = task.strengths
    strengths = Strengths(alpha, s.l1_ratio, s.factors, s.lower, s.upper)
    return GlmTask(source, task.loss, strengths, task.fit_intercept, task.standardize)


def fits_in_memory(loss: ScoreLoss, n_columns: int, splits: Splits) -> bool:
    """Whether the loss is compiled and convex, and Hessians of all cells and splits are not too large."""
    size = 8 * (splits.cells.n_cells + 2 * splits.n_splits) * (n_columns + 1) ** 2
    return loss.code is not None and loss.is_convex and size <= MOST_BYTES


# Paths of penalties on all training sets at once, at the price of few fits.
#
# One pass sums the Hessians of all cells at the mean of the current points; that of a training set is a sum of those.
# Then chord steps for all sets together, one pass each, which needs gradients alone:
#
#     point_s -= H_s^-1 gradient_s,   H_s = data part + l2 of the current alpha
#
# The data part stays while the decrements shrink fast, over several alphas where weights move little. A set whose fit
# does not come to rest, whose Hessian is singular, or whose decrement is no less at a renewal than at the one before,
# is fitted by itself: weak penalties on separable classes send sets far apart, and a Hessian at their mean fits none.
#
# With an L1 penalty or bounds a step goes to where the quadratic model of the data with that penalty is least; what the
# passes tell of the curvature corrects the model (BFGS). The columns with a weight are then those of the alpha before,
# but for the few that come or go.

ENOUGH = 1e-18  # decrement relative to the objective that a fit may end with: coefficients to some 1e-9 of their scale
SLOW = 0.003  # a decrement (a square) that shrinks by less renews the Hessians
STALE = 3e-5  # the same where that pass costs no more than one of steps, which has two products per set and column
CALM = 1e-17  # relative to the objective: a decrement that shrinks slowly is rounding
APART = 0.1  # of the distance of sets from their mean: a mean that moved by less asks for no new Hessians
MOST_PASSES = 40  # for one alpha; a set that needs more is fitted by itself
SMALL = 1e-9  # relative to the objective: steps of this decrement see no change of the curvature
LEAST_RATE, LEAST_KINKED = 1e-6, 1e-3  # that the next step is trusted to have; columns that come or go spoil rates
SHORTEST = 2.0**-12  # of a step
START = 1e-6  # relative decrement of the fit to all rows that the first alpha starts from


class FoldFit:
    """One training set on its way: the point, loss and gradient of the data there, and where to look next."""

    def __init__(
        self, split: int, point: Array, loss: float, slope: Array, matrix: Array, kept: Array | None = None
    ) -> None:
        self.split, self.point, self.kept = split, point, kept
        self.loss, self.slope, self.matrix = loss, slope, matrix
        self.l2, self.enough = np.zeros_like(point), ENOUGH
        self.kinks: Kinks | None = None
        self.step, self.length, self.decrement, self.last = np.zeros_like(point), 1.0, np.inf, np.inf
        self.trial, self.held_out = (
            point,
            np.inf,
        )  # the mean loss of the validation rows at the last point that was seen
        self.is_done = self.is_lost = self.is_slow = False
        self.rate, self.is_first = 1.0, True
        self.stale, self.at_renewal = SLOW, np.inf  # the decrement at the last renewal for this penalty
        self._pairs: list[tuple[Array, Array]] = []
        self._chord: Chord | None = None

    def begin(self, l2: Array, enough: float = ENOUGH, kinks: Kinks | None = None) -> None:
        """A new penalty: the loss stays, the step is as long as the penalty's change asks for."""
        self.l2, self.enough, self.last, self.decrement = l2, enough, np.inf, np.inf
        self.kinks = kinks
        self.is_done = self.is_lost = self.is_slow = False
        self.is_first, self._chord, self.at_renewal = True, None, np.inf
        self.trial = self.point
        if np.isfinite(self.loss):
            self.aim()

    def renew(self, matrix: Array) -> None:
        """Another data part of the Hessian."""
        if self.kinks is None and not self.is_done:
            self.is_lost |= self.at_renewal <= self.decrement < np.inf
        self.at_renewal = self.decrement
        self.matrix, self._pairs, self._chord, self.is_slow = matrix, [], None, False
        self.rate, self.last = 1.0, np.inf

    def value(self, loss: float, point: Array) -> float:
        """The objective."""
        smooth = loss + float((self.l2 * point) @ point) / 2
        return smooth if self.kinks is None else smooth + self.kinks.size(point)

    def receive(self, loss: float, slope: Array, held_out: float) -> bool:
        """What the data say at the trial: step there, or look half as far. Whether it stepped."""
        is_first = not np.isfinite(self.loss)
        before, after = self.value(self.loss, self.point), self.value(loss, self.trial)
        wanted = before - ARMIJO * self.length * self.decrement + SURE * abs(before)
        if not (is_first and np.isfinite(after)) and not after <= wanted:
            self.length /= 2
            self.trial = self.point - self.length * self.step
            self.is_lost = self.length < SHORTEST
            return False
        if not is_first:
            self._learn(self.trial - self.point, slope - self.slope)
        self.last = self.decrement
        self.point, self.loss, self.slope, self.held_out = self.trial, loss, slope, held_out
        return True

    def aim(self) -> None:
        """The step from here; at the end of the way the point that it leads to."""
        gradient = self.slope + self.l2 * self.point
        if self.kept is not None:
            gradient = np.where(self.kept, gradient, 0.0)
        here = abs(self.value(self.loss, self.point))
        if self.kinks is None:
            self.step = self._solver().solve(gradient)
            self.decrement = max(float(gradient @ self.step), 0.0)
        else:
            matrix = self._held()
            self.step = self.point - minimiser(matrix, gradient, self.point, here, self.kinks)
            self.decrement = max(float(self.step @ matrix @ self.step), 0.0)
        self.length = 1.0
        if 0 < self.last < np.inf:
            # What is left of the fit of the alpha before spoils the first rate where the penalty hardly changed.
            is_spoilt = self.is_first and self.last <= SMALL * here
            least = LEAST_RATE if self.kinks is None else LEAST_KINKED
            self.rate = max(min(self.decrement / self.last, self.rate if is_spoilt else 1.0), least)
            self.is_first = False
        self.is_done = self.decrement * self.rate <= self.enough * here
        self.is_slow = (
            self.rate > self.stale and self.last < np.inf and self.decrement * self.rate**2 > self.enough * here
        )
        self.is_done |= self.rate > SLOW and self.decrement <= CALM * here
        self.trial = self.point - self.step
        if self.is_done:
            # What the loss and its gradient are there, to the accuracy of the fit: the gradient of the whole is 0.
            self.loss -= float(self.slope @ self.step) - float(self.step @ self.matrix @ self.step) / 2
            self.point, self.slope = self.trial, self.slope - self.matrix @ self.step
            if self.kept is None and self.kinks is None:
                self.slope = -self.l2 * self.trial

    def _held(self) -> Array:
        """The Hessian of loss and l2 penalty."""
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += self.l2
        return matrix

    def _solver(self) -> Chord:
        if self._chord is None:
            matrix = self._held()
            if self.kept is not None:  # no step along the others
                matrix[~self.kept], matrix[:, ~self.kept] = 0.0, 0.0
                matrix[~self.kept, ~self.kept] = 1.0
            curvature = Curvature(matrix)
            self.is_lost |= curvature.n_flat > 0
            self._chord = Chord(curvature.solve)
            for move, change in self._pairs:
                self._chord.learn(move, change + self.l2 * move)
        return self._chord

    def _learn(self, move: Array, change: Array) -> None:
        if self.kinks is not None:
            if self.decrement > LEARNT * abs(self.value(self.loss, self.point)):
                self.matrix = corrected(self.matrix, move, change)
            return
        if self.kept is not None:
            change = np.where(self.kept, change, 0.0)
        self._pairs.append((move, change))
        if self._chord is not None:
            self._chord.learn(move, change + self.l2 * move)


@one_blas_thread
def common_start(task: GlmTask, alphas: Array, max_iter: int) -> Array:
    """A rough fit of the largest alpha to all rows, where the paths of all rounds start."""
    whole = task_of(task, task.source, float(alphas.mean(axis=1).max()))
    whole.scaling = task.scaling
    if whole.is_smooth:
        start = newton.descend(whole, newton.sampled_start(whole, max_iter), max_iter, Steps(), enough=START)
    else:
        steps = ProxNewton(sampled_start(whole, max_iter))
        steps.descend(whole, max_iter, Steps(), enough=START)
        start = steps.point
    task.scaling = whole.scaling  # another where the first rows had misled
    return start


@one_blas_thread
def fold_fits(folds: FoldLosses, alphas: Array, start: Array, max_iter: int) -> list[list[Weights]]:
    """The fit of every row of alphas (candidates x splits) to every training set, largest alpha first."""
    order = np.argsort(-alphas.mean(axis=1), kind="stable")
    task, near = folds.task, folds.at(start)
    has_kinks = not task.at_strength(float(alphas.max())).is_smooth
    fits = [
        FoldFit(s, start, float(near.losses[s]), near.slopes[s], folds.held(near.hessians[s], has_kinks))
        for s in range(folds.n_splits)
    ]
    if not has_kinks and task.size <= 4 * folds.n_splits:
        for fit in fits:
            fit.stale = STALE
    weights_by_place: list[list[Weights]] = [[] for _ in order]
    by_itself: dict[int, GlmTask] = {}  # largest alpha first: its units do for the others
    for at in order:
        lost = settle(folds, fits, folds.l2(alphas[at]), ENOUGH, folds.kinks(alphas[at]) if has_kinks else None)
        weights_by_place[at] = [task.strengths.within(task.to_state(fit.point)) for fit in fits]
        for s in np.flatnonzero(lost).tolist():
            alpha = float(alphas[at, s])
            by_itself[s] = by_itself[s].at_strength(alpha) if s in by_itself else folds.alone(s, alpha)
            weights_by_place[at][s] = _alone(by_itself[s], weights_by_place[at][s], max_iter)
            fits[s].point, fits[s].loss = task.to_point(weights_by_place[at][s]), np.inf  # seen by the next pass
    return weights_by_place


def path_of_each(folds: FoldLosses, alphas: Array, max_iter: int) -> list[list[Weights]]:
    """As `fold_fits` for L1 penalties on many columns: a path of working sets on every training set by itself."""
    order = np.argsort(-alphas.mean(axis=1), kind="stable")
    weights_by_place: list[list[Weights]] = [[] for _ in order]
    for s in range(folds.n_splits):
        task = folds.alone(s, float(alphas[order[0], s]))
        columns = WorkingSet(task, task.start())
        for at in order:
            strong = task.at_strength(float(alphas[at, s]))
            weights_by_place[at].append(strong.to_state(columns.descend(strong, max_iter, Steps(), FLOOR)))
    return weights_by_place


def _alone(task: GlmTask, state: Weights, max_iter: int) -> Weights:
    """The fit of one training set by itself, from where the common steps left it.

    Without a penalty there may be no minimum: then it ends where a model's own fit does.
    """
    if not task.is_smooth:
        return solve_kinked(task, max_iter).state
    if task.strengths.alpha == 0:
        return newton.solve(task, max_iter).state
    return task.to_state(newton.descend(task, task.to_point(state), max_iter, Steps()))


def settle(
    folds: FoldLosses,
    fits: Sequence[FoldFit],
    l2: Array,
    enough: float = ENOUGH,
    kinks: Sequence[Kinks] | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Array:
    """Fit all training sets with a penalty each; which of them are to be fitted by themselves.

    is_over: asked after every pass whether the rest of the way is of no interest.
    """
    for fit, strengths, of_fit in zip(fits, l2, [None] * len(fits) if kinks is None else kinks, strict=True):
        fit.begin(strengths, enough, of_fit)
        fit.is_lost |= not folds.has_start[fit.split]
    for _ in range(MOST_PASSES):
        live = [fit for fit in fits if not (fit.is_done or fit.is_lost)]
        if not live:
            break
        places, trials = np.array([fit.split for fit in live]), np.array([fit.trial for fit in live])
        moved = []
        for fit, loss, slope, held_out in zip(live, *folds.evaluate(places, trials), strict=True):
            if fit.receive(float(loss), slope, float(held_out)):
                fit.aim()
                moved.append(fit)
        if is_over():
            return np.array([fit.is_lost for fit in fits])
        if any(fit.is_slow and not fit.is_done for fit in moved) and _has_moved(folds, moved):
            renew_hessians(folds, fits, np.mean([fit.point for fit in moved], axis=0))
            for fit in moved:
                if not fit.is_done:
                    fit.aim()
    return np.array([fit.is_lost or not fit.is_done for fit in fits])


def _has_moved(folds: FoldLosses, fits: Sequence[FoldFit]) -> bool:
    """Whether the mean point is far from that of the last Hessians, beside how far the sets are from each other.

    Else new Hessians would be the same: what the passes told of each set's own is worth more.
    """
    points = np.array([fit.point for fit in fits])
    mean = points.mean(axis=0)
    return bool(np.linalg.norm(mean - folds.near.point) > APART * np.linalg.norm(points - mean, axis=1).max())


def renew_hessians(folds: FoldLosses, fits: Sequence[FoldFit], point: Array) -> None:
    """Make the Hessians of all training sets anew, at a common point: one pass."""
    matrices = folds.at(point).hessians
    for fit in fits:
        fit.renew(folds.held(matrices[fit.split], fit.kinks is not None))
