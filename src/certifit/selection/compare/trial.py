"""One model of a leaderboard on all splits: within the refits that are allowed, and no further than may decide.

The race: a model that needs refits is tried on two splits, then on two more, then on four, and is stopped after any of
these where it can hardly be chosen any more: where on their rows each of its candidates is behind the best candidate
of a model before it that is at least as simple, and three standard errors of the mean difference, row by row (a group
counts as one), do not lift it to the lead that it needs. That is none, and one standard error over a simpler model,
which is chosen if it is within that. Models from sums over rows are never stopped: all splits cost them little more
than two do. A candidate is stopped there too, where three standard errors do not lift it to the best one of its model,
which is the one that would be taken; candidates that share their work with one that goes on go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.models.adapter import learner_of
from certifit.models.folds import Candidate, RowFolds, shared_work
from certifit.selection.compare.rules import Preference, plain, units_of
from certifit.selection.folds.engine import evaluate, has_sums, offered_scores
from certifit.selection.folds.fold_scores import FoldScores, NoFit, refuse_faulty
from certifit.selection.folds.metrics import Scoring, UserGrid, of_mean
from certifit.selection.folds.rows import Rows

FEWEST_CANDIDATES = 5  # fewer do not show where the best lies
HEATS = (2, 4, 8)  # splits after which a model may be stopped
CLEARLY = 3.0  # standard errors

Scores = Callable[[Sequence[Splits], Sequence[Candidate]], FoldScores | None]


@dataclass(frozen=True)
class Job:
    """A model to tune. grid None: its own candidates, where it is tuned or has a parameter to choose."""

    name: str
    estimator: BaseEstimator
    grid: UserGrid
    rule: str
    n_jobs: int | None = None
    is_tuned: bool = False


@dataclass(frozen=True)
class Tried:
    """A model that was scored, its rows, its candidates and what they scored."""

    job: Job
    rows: Rows
    candidates: Sequence[Candidate]
    scores: FoldScores

    @property
    def best_mean(self) -> float:
        """Over the splits, of the best candidate."""
        return float(np.nanmax(self.scores.validation.mean(axis=1)))

    @property
    def best(self) -> int:
        """The place of the best candidate."""
        return int(np.nanargmax(self.scores.validation.mean(axis=1)))

    def without_hopeless(self) -> Tried:
        """The same without candidates that can hardly be the best ones of the model any more."""
        if self.job.rule != "min" or not self.scores.held_out:
            return self  # another rule may take one that is behind, and without scores of rows nobody knows
        leader = _RowScores.of(self, self.best)
        leads = [leader.led_by(_RowScores.of(self, place).values) for place in range(len(self.candidates))]
        is_behind = [lead.mean + CLEARLY * lead.standard_error < 0 for lead in leads]
        shares = self.job.estimator.shares if learner_of(self.job.estimator).is_ours else ()
        groups = [places for _, places in shared_work(self.candidates, shares)]
        kept = sorted(place for places in groups if not all(is_behind[k] for k in places) for place in places)
        if len(kept) == len(self.candidates):
            return self
        return Tried(self.job, self.rows, [self.candidates[k] for k in kept], self.scores.of_candidates(kept))


class Behind(ValueError):
    """A model is clearly behind another one on some splits."""


@dataclass(frozen=True)
class Trial:
    """What models are scored on. most_refits: of one model, None for any number.

    preference: of simpler models, in a race; None where no model is to be stopped.
    """

    rounds: Sequence[Splits]
    scoring: Scoring
    most_refits: int | None = None
    preference: Preference | None = None

    @property
    def n_splits(self) -> int:
        """Of all rounds."""
        return sum(splits.n_splits for splits in self.rounds)

    def scored(
        self,
        job: Job,
        rows: Rows,
        candidates: Sequence[Candidate],
        before: Sequence[Tried],
        notes: list[str],
        with_rows: bool,
    ) -> Tried | None:
        """Its candidates and their scores; None where it is left out or stopped, and a note says why.

        before: the models that were scored already.
        """
        if self.most_refits is not None and self._needs_refits(job.estimator, rows):
            notes.append(_note_on_refits(job.name, 0, 1, self.n_splits))
            return None
        asked: dict[str, Any] = {"scoring": self.scoring, "with_rows": with_rows}
        try:
            if self.most_refits is not None:
                if self._shares_folds(job.estimator, rows):
                    offered = partial(offered_scores, job.estimator, rows, **asked)
                    tried = self._raced(job, rows, candidates, before, notes, offered)
                    if tried is not None:
                        return tried
                candidates, n_candidates = _thinned(candidates, self.most_refits // self.n_splits), len(candidates)
                if len(candidates) < n_candidates:
                    notes.append(_note_on_refits(job.name, len(candidates), n_candidates, self.n_splits))
                if not candidates:
                    return None
            asked |= {"n_jobs": job.n_jobs, "label": job.name}
            return self._raced(job, rows, candidates, before, notes, partial(evaluate, job.estimator, rows, **asked))
        except NoFit as error:
            notes.append(f"{_capital(job.name)} is left out. {error}")
        except Behind as error:
            notes.append(str(error))
        return None

    def _needs_refits(self, estimator: BaseEstimator, rows: Rows) -> bool:
        """Whether a classifier needs more passes over training rows than allowed; all its candidates share them."""
        is_many = rows.classes is not None and self.n_splits > (self.most_refits or 0)
        return is_many and learner_of(estimator).is_ours and not has_sums(estimator, rows.source, rows.classes)

    def _shares_folds(self, estimator: BaseEstimator, rows: Rows) -> bool:
        n_classes = 0 if rows.classes is None else len(rows.classes)
        return not learner_of(estimator).is_ours or estimator.shares_folds(rows.source, n_classes)

    def _raced(
        self,
        job: Job,
        rows: Rows,
        candidates: Sequence[Candidate],
        before: Sequence[Tried],
        notes: list[str],
        score: Scores,
    ) -> Tried | None:
        """What `score` finds of the candidates on all rounds; those that were stopped are left out, and a note says so.

        Raises Behind where some splits are enough to stop all of them.
        """
        rivals = sorted((one for one in before if not self._is_simpler(job, one.job)), key=lambda one: -one.best_mean)
        heats = self._heats(job, rows)
        racing, stopped = None, []
        for heat in heats:
            scores = score(heat, candidates)
            if scores is None:
                return None
            racing = Tried(job, rows, candidates, scores if racing is None else _joined(racing.scores, scores))
            if heat is heats[-1]:
                break
            for other in rivals:
                self._refuse_behind(racing, other)
            racing = racing.without_hopeless()
            if n_stopped := len(candidates) - len(racing.candidates):
                stopped.append(f"{racing.scores.validation.shape[1]} folds ({n_stopped})")
            candidates = racing.candidates
        if stopped:
            behind = "candidates clearly behind the best one were stopped after"
            notes.append(f"{_capital(job.name)}: {behind} {' and '.join(stopped)} of {self.n_splits}.")
        return racing

    def _heats(self, job: Job, rows: Rows) -> list[Sequence[Splits]]:
        """The splits, cut where a model may be stopped."""
        is_summed = learner_of(job.estimator).is_ours and has_sums(job.estimator, rows.source, rows.classes)
        if self.preference is None or is_summed:
            return [self.rounds]
        first, *others = self.rounds
        ends = [0, *(end for end in HEATS if end < first.n_splits), first.n_splits]
        heats = [[_part(first, slice(begin, end))] for begin, end in pairwise(ends)]
        return [*heats[:-1], [*heats[-1], *others]]

    def _refuse_behind(self, racing: Tried, other: Tried) -> None:
        """Raise where no candidate can be expected to get as far ahead of another model as it must to be chosen."""
        job, scores = racing.job, racing.scores
        if not (scores.held_out and other.scores.held_out):
            return  # the score is no mean over rows, or there are too many to keep
        rival = _RowScores.of(other, other.best)
        n_rows = sum(len(split.weight) for split in scores.held_out)
        ours = np.concatenate([split.values["score"] for split in scores.held_out], axis=1)
        ours = ours[~np.isnan(ours).any(axis=1)]
        needed = rival.standard_error if self._is_simpler(other.job, job) else 0.0
        same_rows = rival.first(n_rows)
        leads = [same_rows.led_by(candidate) for candidate in ours]
        if not leads or any(lead.mean >= 0 or lead.mean + CLEARLY * lead.standard_error >= needed for lead in leads):
            return
        weight = same_rows.weight
        means = [float(of_mean(self.scoring, one @ weight / weight.sum())) for one in (*ours, same_rows.values)]
        told = [plain(abs(value)) for value in (max(means[:-1]), means[-1])]
        word = "error" if max(means) <= 0 else "score"
        raise Behind(
            f"{_capital(job.name)} was stopped after {len(scores.held_out)} of {self.n_splits} folds: on their "
            f"{n_rows:,} rows its {word} is {told[0]}, that of {other.job.name} {told[1]}"
            f"{', the simpler one' if needed else ''}."
        )

    def _is_simpler(self, one: Job, other: Job) -> bool:
        """Whether a model is preferred to another one within a standard error."""
        return self.preference is not None and self.preference.rank(one.name) < self.preference.rank(other.name)


@dataclass(frozen=True)
class _RowScores:
    """A number per row, and what counts as one: the row, or its group."""

    values: Array
    weight: Array
    units: Array

    @staticmethod
    def of(tried: Tried, candidate: int) -> _RowScores:
        """The scores of all validation rows by one candidate, split by split."""
        held_out = tried.scores.held_out
        numbers = np.concatenate([split.numbers for split in held_out])
        values = np.concatenate([split.values["score"][candidate] for split in held_out])
        weight = np.concatenate([split.weight for split in held_out])
        return _RowScores(values, weight, units_of(numbers, tried.rows.source))

    def first(self, n_rows: int) -> _RowScores:
        """The first so many rows."""
        return _RowScores(self.values[:n_rows], self.weight[:n_rows], self.units[:n_rows])

    def led_by(self, values: Array) -> _RowScores:
        """How far other scores of the same rows are ahead."""
        return replace(self, values=values - self.values)

    @property
    def mean(self) -> float:
        """By weight."""
        return float(self.weight @ self.values) / float(self.weight.sum())

    @property
    def standard_error(self) -> float:
        """Of the mean; infinite of one unit."""
        sums = np.bincount(self.units, weights=self.weight * (self.values - self.mean))
        n_units = len(np.unique(self.units))
        spread = n_units / (n_units - 1) * float(sums @ sums) if n_units > 1 else np.inf
        return float(np.sqrt(spread)) / float(self.weight.sum())


def _part(splits: Splits, places: slice) -> Splits:
    """Some of the splits."""
    return Splits(splits.cells, splits.train[places], splits.validation[places])


def _joined(first: FoldScores, rest: FoldScores) -> FoldScores:
    """The scores of consecutive splits."""
    faults = {**rest.faults, **first.faults}
    refuse_faulty(faults, len(first.validation))
    train = None if first.train is None or rest.train is None else np.hstack([first.train, rest.train])
    held_out = [*first.held_out, *rest.held_out] if first.held_out and rest.held_out else []
    return FoldScores(
        train,
        np.hstack([first.validation, rest.validation]),
        np.concatenate([first.weight, rest.weight]),
        first.route,
        faults,
        held_out,
        states=_joined_states(first.states, rest.states, faults),
    )


def _joined_states(first: RowFolds | None, rest: RowFolds | None, faults: Mapping[int, str]) -> RowFolds | None:
    if first is None or rest is None:
        return None
    return replace(first, rounds=[*first.rounds, *rest.rounds], states=[*first.states, *rest.states], faults=faults)


def _thinned(candidates: Sequence[Candidate], most: int) -> Sequence[Candidate]:
    """At most so many, evenly spaced, both ends among them."""
    if len(candidates) <= most:
        return candidates
    if most < FEWEST_CANDIDATES:
        return []
    places = np.rint(np.linspace(0, len(candidates) - 1, most)).astype(int)
    return [candidates[place] for place in places]


def _note_on_refits(name: str, n_tried: int, n_candidates: int, n_splits: int) -> str:
    n_refits = f"{n_candidates * n_splits:,} refits"
    each = "candidate and fold" if n_candidates > 1 else "fold"
    why = f"{_capital(name)} needs a refit for every {each} here ({n_refits})"
    return f"{why}: left out." if not n_tried else f"{why}: {n_tried} of {n_candidates} candidates were tried."


def _capital(name: str) -> str:
    return f"{name[:1].upper()}{name[1:]}"
