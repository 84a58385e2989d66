"""Forward and backward paths of generalised linear models without refits of every candidate.

At the fits of the chosen features, two passes give the gradients of all columns on the training and the validation
rows of all folds, and one the Hessians. To second order the weights move, with a feature B added or dropped, by

    added (Rao's step):      S d_B = -g_B, S = H_BB - H_BA H_AA^-1 H_AB;   d_A = -H_AA^-1 H_AB d_B
    dropped (Wald's step):   d_A = -(H_AA^-1)_AB ((H_AA^-1)_BB)^-1 w_B

and the mean loss of the validation rows by g_v'd + d'H_v d / 2. The most promising few are fitted exactly on every
fold, and the best score on validation rows decides among them.
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
from certifit.models.glm.fold_solver import subset_points
from certifit.models.glm.folds import ScoreSubsets
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
    return ScoreSearch(subsets, [feature.name for feature in features], blocks, (scoring, rows.classes))


class ScoreSearch:
    """A path from the fits of subsets on all folds. blocks: the columns that each feature stands for."""

    def __init__(
        self,
        subsets: ScoreSubsets,
        names: list[str],
        blocks: list[list[int]],
        scored_by: tuple[Scoring, Array | None],
    ) -> None:
        self.names, self.blocks = names, blocks
        self.notes: list[str] = []
        self._subsets, self._rounds, self._scored_by = subsets, subsets.rounds, scored_by
        self._size = subsets.task.size
        self._points: dict[tuple[int, ...], list[Array]] = {}  # of every round: splits x (columns + 1)
        self._rough: dict[tuple[int, ...], list[tuple[Array, Array]]] = {}  # points nearly there, Hessians near them

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
        for r, round_ in enumerate(self._rounds):
            kept = np.array([self._kept(subsets[i]) for i in few])
            points = subset_points(round_.folds, round_.l2, starts.points[r][few], kept, starts.hessians[r], ROUGH)
            for i, point in zip(few, points, strict=True):
                self._rough.setdefault(subsets[i], []).append((point, starts.hessians[r]))
        compared = [[point for point, _ in self._rough[subsets[i]]] for i in few]
        means = self._scored(compared)[1].mean(axis=1)
        if np.isnan(means).all():
            raise ValueError(f"No subset of {len(subsets[0])} features has a score: all are NaN.")
        top = np.nanmax(means)
        return moves[int(few[np.flatnonzero(means >= top - EQUAL * abs(top))[0]])]

    def _fit(self, subset: tuple[int, ...]) -> list[Array]:
        """The fits of a subset on all splits of every round."""
        if subset not in self._points:
            points, kept = [], self._kept(subset)[None, :]
            for of_round, (start, hessians) in zip(
                self._rounds, self._rough.get(subset) or self._starts(), strict=True
            ):
                points.append(subset_points(of_round.folds, of_round.l2, start[None], kept, hessians)[0])
            self._points[subset] = points
            self._rough.clear()
        return self._points[subset]

    def _starts(self) -> list[tuple[Array, Array]]:
        """No weights, and the Hessians there."""
        points = [of_round.folds.task.start() for of_round in self._rounds]
        return [
            (np.tile(point, (of_round.folds.n_splits, 1)), of_round.folds.at(point).hessians)
            for of_round, point in zip(self._rounds, points, strict=True)
        ]

    def _moved(self, chosen: tuple[int, ...], moves: Sequence[int], rule: _Step) -> _Moves:
        """Gains of all moves on validation rows, summed over the folds, and where each leads, to second order."""
        gain, terms, starts, near = np.zeros(len(moves)), np.zeros(len(moves)), [], []
        kept = np.flatnonzero(self._kept(chosen))
        for of_round, points in zip(self._rounds, self._fit(chosen), strict=True):
            slopes = of_round.folds.evaluate(np.arange(of_round.folds.n_splits), points)[1]
            near_here = of_round.folds.at(points.mean(axis=0))
            held_out = of_round.folds.validation_slopes(points), of_round.folds.validation_hessians(near_here)
            held = np.repeat(points[None], len(moves), axis=0)
            for s, point in enumerate(points):
                matrix = near_here.hessians[s] + np.diag(of_round.l2[s])
                gradient = slopes[s] + of_round.l2[s] * point
                solver = Curvature(matrix[np.ix_(kept, kept)])
                for i, move in enumerate(moves):
                    held[i, s] = rule(solver, matrix, gradient, point, kept, np.array(self.blocks[move]))
                moved = held[:, s] - point
                first, second = moved @ held_out[0][s], np.einsum("mi,mi->m", moved, moved @ held_out[1][s]) / 2
                gain -= first + second
                terms += np.abs(first) + second
            starts.append(held)
            near.append(near_here.hessians)
        return _Moves(gain, terms, starts, near)

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
    """Of every move its gain and the sizes of its terms; of every round where it leads, and the Hessians near there."""

    gain: Array
    terms: Array
    points: list[Array]
    hessians: list[Array]


_Step = Callable[[Curvature, Array, Array, Array, Array, Array], Array]


def _added(solver: Curvature, matrix: Array, gradient: Array, point: Array, kept: Array, block: Array) -> Array:
    """Where a feature leads that is added."""
    across = solver.solve(matrix[np.ix_(kept, block)])
    remaining = matrix[np.ix_(block, block)] - matrix[np.ix_(block, kept)] @ across
    step = Curvature((remaining + remaining.T) / 2).solve(gradient[block])
    moved = point.copy()
    moved[block] -= step
    moved[kept] += across @ step
    return moved


def _dropped(solver: Curvature, matrix: Array, gradient: Array, point: Array, kept: Array, block: Array) -> Array:
    """Where dropping a feature leads."""
    dropped = np.flatnonzero(np.isin(kept, block))
    inverse = solver.inverse[:, dropped]
    moved = point.copy()
    moved[kept] -= inverse @ Curvature(inverse[dropped]).solve(point[kept[dropped]])
    moved[block] = 0.0
    return moved
