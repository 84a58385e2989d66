"""Scores of every candidate on every split: from what a model offers for all of them together, else by refits.

A bar on the terminal for work that takes long: nothing is drawn in the first second, nor into a file.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.adapter import learner_of
from certifit.models.discriminant.folds import trained_classes
from certifit.models.folds import Candidate, Candidates, RowFolds
from certifit.models.learner import Answer
from certifit.runtime import one_blas_thread
from certifit.selection.folds.class_validation import RefittedClasses, Result
from certifit.selection.folds.fold_scores import (
    FoldScores,
    Predicted,
    held_out_scores,
    path_scores,
    refuse_faulty,
    state_scores,
)
from certifit.selection.folds.metrics import (
    PREDICTED,
    PredictedScores,
    Scorer,
    Scoring,
    accuracies,
    own_scoring,
    predicted_scores,
    row_metric,
    row_scores,
    sufficient,
)
from certifit.selection.folds.rows import Rows, Shared, picked, reading_new_levels, times_of
from certifit.selection.folds.scorers import refuse_unknown_score, scorer_of
from certifit.selection.folds.splits import row_count, targets
from certifit.statistics.loss_sums import HeldOut

_PATIENCE = 1.0  # seconds
MOST_PREDICTIONS = 4_000_000  # probabilities of refitted models that are kept: 32 MB a model


class Bar:
    """Counts steps of work. `with Bar("cross-validation", 50) as bar: bar.advance()`."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, total, 0
        self._started = time.monotonic()
        self._bar: Any = None
        self._is_on = total > 1 and sys.stderr is not None and sys.stderr.isatty()

    def advance(self) -> None:
        """One more is done."""
        self.done += 1
        if not self._is_on:
            return
        if self._bar is None and time.monotonic() - self._started > _PATIENCE:
            self._draw()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self.done)

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.add_task(self.label, total=self.total)
        self._bar.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def evaluate(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Scoring = None,
    *,
    n_jobs: int | None = None,
    label: str = "cross-validation",
    with_training: bool = False,
    with_rows: bool = False,
) -> FoldScores:
    """Scores of every candidate on every split.

    with_training: training scores of classifiers and of models of means too, which cost as many passes over a row as
    there are splits; other models have them for nothing. with_rows: scores of single validation rows too
    (`held_out`), where the score is made of means over rows; models from sums take one more pass for them.
    """
    scoring = own_scoring(estimator, scoring)
    scores = offered_scores(estimator, rows, rounds, candidates, scoring, with_training, with_rows)
    if scores is not None:
        return scores
    return _refitted(estimator, rows, rounds, candidates, scoring, n_jobs, label, with_rows)


def offered_scores(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Scoring,
    with_training: bool = False,
    with_rows: bool = False,
) -> FoldScores | None:
    """Scores that a model offers for all candidates and splits together; None where each needs a refit."""
    refuse_unknown_score(scoring)
    learner = learner_of(estimator)
    if not learner.is_ours:
        return None
    answer = learner.answers(estimator.get_params(deep=False))
    if answer is Answer.MARGINS and row_metric(own_scoring(estimator, scoring), is_classes=True) is not accuracies:
        return None  # margins rank rows and are no probabilities: what else is scored is left to the scorer
    if answer is Answer.NUMBER:
        scores = _from_squares(estimator, rows, rounds, candidates, scoring, with_rows)
        if scores is not None or not (scoring is None or isinstance(scoring, str)):
            return scores
        scoring = scoring or "r2"
    return _from_rows(estimator, rows, rounds, candidates, scoring, with_training, with_rows)


def _from_squares(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Scoring,
    with_rows: bool,
) -> FoldScores | None:
    """Scores of squared errors, which sums over rows tell."""
    score = sufficient(scoring)
    if score is None:
        return None
    states = estimator.folds(rows.source, rounds, Candidates(candidates), rows.shared)
    path = None if states is None else states.squares(with_rows)
    if path is None:
        return None
    refuse_units(path.in_units, scoring)
    scores = path_scores(path, path.train, path.validation, score)
    return replace(scores, held_out=[_of_residuals(split, scoring) for split in path.held_out])


@one_blas_thread
def _from_rows(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Scoring,
    with_training: bool,
    with_rows: bool,
) -> FoldScores | None:
    """Scores of what states of all candidates and splits predict for the rows."""
    is_classes = rows.classes is not None
    scoring = own_scoring(estimator, scoring)
    is_told = scoring is None or isinstance(scoring, str) if is_classes else scoring is not None
    if not is_told or (with_training and row_metric(scoring, is_classes) is None):
        return None
    model = reading_new_levels(estimator, rows.source)
    states = model.folds(rows.source, rounds, Candidates(candidates, rows.classes), rows.shared)
    if not isinstance(states, RowFolds):
        return None
    scores = state_scores(states, rows.classes, len(candidates), scoring, with_training)
    return replace(scores, held_out=held_out_scores(states, is_classes, scoring)) if with_rows else scores


def has_sums(estimator: BaseEstimator, source: Source, classes: Array | None = None) -> bool:
    """Whether splits need no refits, as far as can be told without a pass over the rows."""
    states = estimator.folds(source, [], Candidates([{}], classes), Shared())
    return states is not None and states.route == "statistics"


def _of_residuals(split: HeldOut, scoring: Scoring) -> HeldOut:
    residuals = split.values["residual"]
    scores = row_scores(scoring, np.square(residuals), split.y, split.weight)
    return replace(split, values={"score": scores, PREDICTED: split.y - residuals})


def refuse_units(in_units: bool, scoring: Scoring) -> None:
    """Raise where squares of y leave float64's range and the score is not a ratio of them."""
    if not in_units and scoring not in (None, "r2"):
        squares = "The squares of y, or their sum by weight, leave the range of float64"
        raise ValueError(f"{squares}, so {scoring!r} has no value. Rescale y or the weights.")


def _refitted(
    estimator: BaseEstimator,
    rows: Rows,
    rounds: Sequence[Splits],
    candidates: Sequence[Candidate],
    scoring: Scoring,
    n_jobs: int | None,
    label: str,
    with_rows: bool = False,
) -> FoldScores:
    """Every (candidate, split) fitted anew, some at a time."""
    from joblib import Parallel, delayed, effective_n_jobs

    estimator = reading_new_levels(estimator, rows.source)
    scorer = scorer_of(estimator, scoring)
    takes_gaps = get_tags(estimator).input_tags.allow_nan
    if learner_of(estimator).is_ours and not rows.source.is_table and not takes_gaps:
        refuse_nonfinite(rows.source)  # a refit would name the row by its number within a split
    works = [(_work(estimator, rows, splits, scoring, with_rows, len(candidates)), splits) for splits in rounds]
    places = [(work, splits, s) for work, splits in works for s in range(splits.n_splits)]
    # One process fits all candidates to a split, whose rows are then encoded once; several share the candidates too.
    is_alone = effective_n_jobs(n_jobs) == 1
    together = len(candidates) if is_alone else 1
    groups = [candidates[begin : begin + together] for begin in range(0, len(candidates), together)]
    jobs = [
        partial(_of_split, work, [clone(estimator).set_params(**one) for one in group], rows, splits, s, scorer)
        for group in groups
        for work, splits, s in places
    ]
    several = (job() for job in jobs) if is_alone else Parallel(n_jobs, return_as="generator")(map(delayed(_all), jobs))
    by_place: list[list[Result]] = [[] for _ in places]
    with Bar(label, len(candidates) * len(places)) as bar:
        for at, scored in enumerate(several):
            for result in scored:
                by_place[at % len(places)].append(result)
                bar.advance()
    results = [of_place[c] for c in range(len(candidates)) for of_place in by_place]
    table = np.array([result[0] for result in results]).reshape(len(candidates), len(places), 3)
    faults: dict[int, str] = {}
    for at, (_, fault, _) in enumerate(results):
        if fault:
            faults.setdefault(at // len(places), fault)
    refuse_faulty(faults, len(candidates))
    weight = np.nan_to_num(table[:, :, 2]).max(axis=0)
    held_out = _joined([result[2] for result in results], len(candidates)) if with_rows else []
    return FoldScores(table[:, :, 0], table[:, :, 1], weight, "refits", faults=faults, held_out=held_out)


def _of_split(
    work: Callable[..., Result], models: Sequence[BaseEstimator], rows: Rows, splits: Splits, s: int, scorer: Scorer
) -> Iterator[Result]:
    """The scores of some candidates on one split, one after the other."""
    shared = splits.sharing()
    return (work(model, rows, shared, s, scorer) for model in models)


def _all(job: Callable[[], Iterator[Result]]) -> list[Result]:
    """The scores that a worker sends back."""
    return list(job())


def _joined(parts: Sequence[HeldOut | None], n_candidates: int) -> list[HeldOut]:
    """The rows of every split, all candidates together, NaN for one without a fit; nothing where rows tell nothing."""
    n_splits = len(parts) // n_candidates
    joined = []
    for s in range(n_splits):
        of_split = parts[s::n_splits]
        like = next((part for part in of_split if part is not None), None)
        if like is None:
            return []
        values = {
            name: np.concatenate(
                [np.full_like(first_values, np.nan) if part is None else part.values[name] for part in of_split]
            )
            for name, first_values in like.values.items()
        }
        joined.append(replace(like, values=values))
    return joined


def _work(
    estimator: BaseEstimator, rows: Rows, splits: Splits, scoring: Scoring, with_rows: bool, n_candidates: int
) -> Callable[..., Result]:
    """What fits and scores a candidate on one of the splits."""
    learner = learner_of(estimator)
    answer = learner.answers(estimator.get_params(deep=False))
    has_probabilities = answer is Answer.CLASSES
    is_read = rows.X is None or (has_probabilities and (scoring is None or isinstance(scoring, str)))
    if learner.is_ours and answer.is_class and rows.classes is not None and is_read:
        trained = trained_classes(rows.source, len(rows.classes), splits)
        is_kept = with_rows and has_probabilities
        is_kept = is_kept and n_candidates * row_count(rows.source) * len(rows.classes) <= MOST_PREDICTIONS
        return RefittedClasses(trained, scoring, has_probabilities, with_rows, is_kept)
    row_score = predicted_scores(estimator, scoring) if with_rows else None
    return partial(_in_memory if rows.X is not None else _on_source, row_score=row_score)


def _in_memory(
    model: BaseEstimator,
    rows: Rows,
    splits: Splits,
    split: int,
    scorer: Scorer,
    row_score: PredictedScores | None = None,
) -> Result:
    """The scores of a fit to rows picked from arrays."""
    train, validation = times_of(rows, splits, split)
    parts = [picked(rows, times) for times in (train, validation)]
    model = parts[0].fitted(model)
    scores = [part.scored(model, scorer) for part in parts]
    weight = validation if rows.weight is None else validation * rows.weight
    held_out = None
    if row_score is not None:
        numbers = np.flatnonzero(weight > 0)
        part = picked(rows, (weight > 0).astype(np.float64))
        values = row_score(part.seen_by(model), part.X, part.y, weight[numbers])
        held_out = HeldOut(numbers, weight[numbers], np.asarray(part.y), values)
    return (scores[0], scores[1], float(weight.sum())), "", held_out


def _on_source(
    model: BaseEstimator,
    rows: Rows,
    splits: Splits,
    split: int,
    scorer: Scorer,
    row_score: PredictedScores | None = None,
) -> Result:
    """The same for a scan: rows of the other sets have weight 0."""
    model.fit(splits.trained(rows.source, split))
    y = targets(rows.source)
    predictions = np.asarray(model.predict(rows.source))
    scores, weight, counts = [], np.ones(0), np.ones(0, dtype=bool)
    for times in (splits.train[split], splits.validation[split]):
        weight = np.concatenate(list(rows.source.map(partial(_weights, splits.cells, times))))
        counts = weight > 0
        scores.append(
            scorer(Predicted(predictions[counts]), np.zeros((counts.sum(), 1)), y[counts], sample_weight=weight[counts])
        )
    held_out = None
    if row_score is not None:
        values = row_score(Predicted(predictions[counts]), np.zeros((counts.sum(), 1)), y[counts], weight[counts])
        held_out = HeldOut(np.flatnonzero(counts), weight[counts], y[counts], values)
    return (float(scores[0]), float(scores[1]), float(weight.sum())), "", held_out


def _weights(cells: Cells, times: Array, block: Block) -> Array:
    times_of_row = np.append(times, 0.0)[cells.of(block)]
    return np.asarray(times_of_row if block.weight is None else times_of_row * block.weight)
