"""Forward and backward paths of generalised linear models without refits of every candidate.

At the fits of the chosen features, one pass gives the gradients of all columns on the validation rows of all folds
and one the Hessians. To second order the weights move, with a feature B added or dropped, by

    added (Rao's step):      S d_B = -g_B, S = H_BB - H_BA H_AA^-1 H_AB;   d_A = -H_AA^-1 H_AB d_B
    dropped (Wald's step):   d_A = -(H_AA^-1)_AB ((H_AA^-1)_BB)^-1 w_B

and the mean loss of the validation rows by g_v'd + d'H_v d / 2. The most promising few go on towards their fits on
every fold. Where the score is the model's loss, one that what is left of its way cannot make the best goes no further,
and the last one wins; else all are fitted, and the best score on validation rows decides. The subset that wins is
fitted to the end: the scores of the path are those of its fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.models.adapter import learner_of
from certifit.models.folds import Subsets
from certifit.models.glm.fold_solver import FoldsNear
from certifit.models.glm.folds import ScoreSubsets
from certifit.models.glm.subset_fits import SubsetFits
from certifit.runtime import one_blas_thread
from certifit.selection.features.features import Feature
from certifit.selection.features.search import Scores
from certifit.selection.folds.fold_scores import state_scores
from certifit.selection.folds.metrics import Scoring, own_scoring, row_metric
from certifit.selection.folds.rows import Rows, reading_new_levels
from certifit.statistics.factor import Curvature

FEW = 5  # most candidates of a step that are fitted
DOUBT = 0.25  # share of the terms of a gain that its third order may be: who cannot be best so is not fitted
ROUGH = 1e-14  # relative decrement of fits that are compared
EQUAL = 1e-12  # relative difference of mean scores that counts as none


def score_search(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    scoring: Scoring,
    features: Sequence[Feature],
    names: list[str],
) -> ScoreSearch | None:
    """The search for an estimator that offers it and a score that rows have; None where subsets are refitted."""
    scoring = own_scoring(estimator, scoring)
    if not learner_of(estimator).is_ours or row_metric(scoring, rows.classes is not None) is None:
        return None
    model = reading_new_levels(estimator, rows.source)
    subsets = model.folds(rows.source, rounds, Subsets(rows.classes), rows.shared)
    if not isinstance(subsets, ScoreSubsets):
        return None
    places = {name: place for place, name in enumerate(subsets.task.source.names)}
    groups = subsets.groups or {name: [made] for name, made in zip(names, places, strict=False)}
    blocks = [[places[made] for c in feature.columns for made in groups.get(names[c], [])] for feature in features]
    is_loss = scoring == ("neg_log_loss" if rows.classes is not None else estimator.default_scoring)
    return ScoreSearch(subsets, [feature.name for feature in features], blocks, (scoring, rows.classes), is_loss)


class ScoreSearch:
    """A path from the fits of subsets on all folds. blocks: the columns that each feature stands for.

    is_loss: whether the score is the loss that the model minimises.
    """

    def __init__(
        self,
        subsets: ScoreSubsets,
        names: list[str],
        blocks: list[list[int]],
        scored_by: tuple[Scoring, Array | None],
        is_loss: bool,
    ) -> None:
        self.names, self.blocks = names, blocks
        self.notes: list[str] = []
        self._subsets, self._rounds, self._scored_by = subsets, subsets.rounds, scored_by
        self._size, self._is_loss = subsets.task.size, is_loss
        self._points: dict[tuple[int, ...], list[Array]] = {}  # of every round: splits x (columns + 1)
        self._last: dict[tuple[int, ...], list[Array]] = {}  # training slopes at the points made last
        self._rough: dict[tuple[int, ...], list[SubsetFits]] = {}  # fits on their way

    @one_blas_thread
    def scores(self, subsets: Sequence[Sequence[int]]) -> list[Scores]:
        """Scores of the subsets of a path, all of them at once."""
        keys = [tuple(subset) for subset in subsets]
        for key in keys:
            self._fit(key)
        train, validation = self._scored([self._points[key] for key in keys], with_training=True)
        if train is None:
            raise ValueError("Training scores were not found.")
        return list(zip(train, validation, strict=True))

    @one_blas_thread
    def best_added(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The best feature to add."""
        starts = self._moved(tuple(chosen), moves, _added)
        return self._best(moves, [tuple(sorted([*chosen, at])) for at in moves], starts)

    @one_blas_thread
    def best_dropped(self, chosen: Sequence[int], moves: Sequence[int]) -> int:
        """The best feature to drop."""
        starts = self._moved(tuple(chosen), moves, _dropped)
        return self._best(moves, [tuple(other for other in chosen if other != at) for at in moves], starts)

    def redundant(self, fixed: Sequence[int]) -> Iterator[int]:
        """None: without a penalty redundant columns are refitted, with one they are not redundant."""
        return iter(())

    def _best(self, moves: Sequence[int], subsets: list[tuple[int, ...]], starts: _Moves) -> int:
        few = np.argsort(-starts.gain, kind="stable")[:FEW]
        least = starts.gain[few[0]] - DOUBT * starts.terms[few[0]]
        few = np.sort(few[starts.gain[few] + DOUBT * starts.terms[few] >= least])
        kept = np.array([self._kept(subsets[i]) for i in few])
        fits = [
            SubsetFits(of_round.folds, of_round.l2, points[few], kept, near.hessians, ways[few])
            for of_round, points, near, ways in zip(self._rounds, starts.points, starts.near, starts.ways, strict=True)
        ]
        left = np.arange(len(few))
        if len(fits) == 1 and len(few) > 1 and self._is_loss:
            race = _Race(fits[0], starts)
            fits[0].settle(ROUGH, is_over=race.is_over)
            left = np.flatnonzero(race.is_left)
        elif len(few) > 1:
            for of_round in fits:
                of_round.settle(ROUGH)
        best = int(left[0]) if len(left) == 1 else self._best_scored(left, [of_round.points() for of_round in fits])
        self._rough = {subsets[few[best]]: [of_round.only(best) for of_round in fits]}
        return moves[int(few[best])]

    def _best_scored(self, left: Array, points: list[Array]) -> int:
        """The subset of the best mean score."""
        means = self._scored([[of_round[i] for of_round in points] for i in left])[1].mean(axis=1)
        if np.isnan(means).all():
            raise ValueError("No subset of the columns has a score: all are NaN.")
        top = np.nanmax(means)
        return int(left[np.flatnonzero(means >= top - EQUAL * abs(top))[0]])

    def _fit(self, subset: tuple[int, ...]) -> list[Array]:
        """The fits of a subset on all splits of every round; the next step starts from the last that were asked for."""
        if subset not in self._points:
            rough = self._rough.get(subset) or self._starts(subset)
            for of_round in rough:
                of_round.settle(is_fresh=True)
            self._points[subset] = [of_round.points()[0] for of_round in rough]
            self._last = {subset: [of_round.slopes()[0] for of_round in rough]}
            self._rough = {}
        return self._points[subset]

    def _starts(self, subset: tuple[int, ...]) -> list[SubsetFits]:
        """Fits that start at no weights."""
        kept, starts = self._kept(subset)[None, :], []
        for of_round in self._rounds:
            point = of_round.folds.task.start()
            hessians = np.zeros((of_round.folds.n_splits, len(point), len(point)))  # those there are made first
            points = np.tile(point, (1, of_round.folds.n_splits, 1))
            starts.append(SubsetFits(of_round.folds, of_round.l2, points, kept, hessians))
        return starts

    def _moved(self, chosen: tuple[int, ...], moves: Sequence[int], rule: _Step) -> _Moves:
        """Gains of all moves on validation rows, summed over the folds, and where each leads, to second order."""
        gain, terms = np.zeros(len(moves)), np.zeros(len(moves))
        kept, blocks = np.flatnonzero(self._kept(chosen)), [np.array(self.blocks[move]) for move in moves]
        base, moved = self._fit(chosen), _Moves(gain, terms, [], [], [], [], [])
        for of_round, points, slopes in zip(self._rounds, base, self._last[chosen], strict=True):
            folds = of_round.folds
            held_out = folds.validation_slopes(points), folds.validation_hessians(folds.near)
            ends, ways = np.empty((len(moves), *points.shape)), np.empty((len(moves), len(points)))
            for s, point in enumerate(points):
                matrix = folds.near.hessians[s] + np.diag(of_round.l2[s])
                gradient = slopes[s] + of_round.l2[s] * point
                ends[:, s] = rule(Curvature(matrix[np.ix_(kept, kept)]), matrix, gradient, point, kept, blocks)
                steps = ends[:, s] - point
                ways[:, s] = np.einsum("mi,mi->m", steps, steps @ matrix)
                first, second = steps @ held_out[0][s], np.einsum("mi,mi->m", steps, steps @ held_out[1][s]) / 2
                gain -= first + second
                terms += np.abs(first) + second
            moved.base.append(points)
            moved.points.append(ends)
            moved.ways.append(ways)
            moved.near.append(folds.near)
            moved.held_out.append(held_out)
        return moved

    def _scored(self, subsets: Sequence[list[Array]], with_training: bool = False) -> tuple[Array | None, Array]:
        """Scores of subsets, given by the points of every round."""
        scoring, classes = self._scored_by
        states = self._subsets.states_at(subsets)
        scores = state_scores(states, classes, len(subsets), scoring, with_training)
        return scores.train, scores.validation

    def _kept(self, subset: Sequence[int]) -> Array:
        kept = np.zeros(self._size, dtype=bool)
        kept[[column for at in subset for column in self.blocks[at]]] = True
        kept[-1] = True
        return kept


@dataclass(frozen=True)
class _Moves:
    """Of every move its gain and the sizes of its terms; of every round where they begin, where each leads, and there

    the Hessians, and the slopes and Hessians of the validation losses.
    """

    gain: Array
    terms: Array
    base: list[Array]
    points: list[Array]
    ways: list[Array]  # decrements of the steps that lead there
    near: list[FoldsNear]
    held_out: list[tuple[Array, Array]]


class _Race:
    """Moves on their way to their fits: who cannot be best any more is left where it is.

    The validation loss that a fit will end with is known to the size of what its next step changes of it.
    """

    def __init__(self, fits: SubsetFits, starts: _Moves) -> None:
        self._fits, self._base, self._held_out = fits, starts.base[0], starts.held_out[0]
        self.is_left = np.ones(len(fits.points()), dtype=bool)

    def is_over(self) -> bool:
        """Whether one is left, after a pass."""
        losses, doubts = self._fits.expected(self._base, *self._held_out)
        least = np.min((losses + doubts)[self.is_left])
        behind = self.is_left & (losses - doubts > least + EQUAL * abs(least))
        for subset in np.flatnonzero(behind).tolist():
            self._fits.leave_out(subset)
        self.is_left &= ~behind
        return int(self.is_left.sum()) == 1


_Step = Callable[[Curvature, Array, Array, Array, Array, list[Array]], Array]


def _added(solver: Curvature, matrix: Array, gradient: Array, point: Array, kept: Array, blocks: list[Array]) -> Array:
    """Where each feature leads that is added, to second order: features x (columns + 1)."""
    ends = np.tile(point, (len(blocks), 1))
    if all(len(block) == 1 for block in blocks):
        columns = np.concatenate(blocks)
        across = solver.solve(matrix[np.ix_(kept, columns)])
        curved = matrix[columns, columns] - np.einsum("kj,kj->j", matrix[np.ix_(kept, columns)], across)
        steps = np.divide(gradient[columns], curved, out=np.zeros(len(columns)), where=curved > 0)
        ends[:, kept] += (across * steps).T
        ends[np.arange(len(columns)), columns] -= steps
        return ends
    for end, block in zip(ends, blocks, strict=True):
        across = solver.solve(matrix[np.ix_(kept, block)])
        curved = matrix[np.ix_(block, block)] - matrix[np.ix_(block, kept)] @ across
        step = Curvature((curved + curved.T) / 2).solve(gradient[block])
        end[block] -= step
        end[kept] += across @ step
    return ends


def _dropped(
    solver: Curvature, matrix: Array, gradient: Array, point: Array, kept: Array, blocks: list[Array]
) -> Array:
    """Where dropping each feature leads."""
    ends = np.tile(point, (len(blocks), 1))
    for end, block in zip(ends, blocks, strict=True):
        dropped = np.flatnonzero(np.isin(kept, block))
        inverse = solver.inverse[:, dropped]
        end[kept] -= inverse @ Curvature(inverse[dropped]).solve(point[kept[dropped]])
        end[block] = 0.0
    return ends
