"""Models side by side: each tuned and scored on the same splits, beside the mean of y.

Scores are scikit-learn's: higher is better, and errors are negative.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import ParameterGrid

from certifit.data.cells import GroupSizes, Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.selection.baseline import MeanOfTarget
from certifit.selection.cross_validated import CrossValidated, results_table
from certifit.selection.curve_scores import CAUTION
from certifit.selection.engine import FoldScores, Rows, evaluate
from certifit.selection.rules import RULES, choose
from certifit.selection.scoring import sufficient
from certifit.selection.splits import Folds, counted_rows, rounds_of

BASELINE = "mean of y"
RMSE = "neg_root_mean_squared_error"
FEWEST_ROWS = 4  # two folds of two rows

# scoring -> mean squared error from a score, so that R2 of all validation rows together can be told
_SQUARES = {RMSE: np.square, "neg_mean_squared_error": np.negative}


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    model : the estimator with its best parameters, not fitted; None for the baseline
    params : the parameters that were chosen
    fold_scores, fold_train_scores : one a split, on the validation and on the training rows
    route : "statistics" or "refits"
    seconds : what tuning and scoring took
    candidates : the table of all candidates, as `cv_results_` of CrossValidated
    """

    name: str
    model: Any
    params: dict[str, Any]
    fold_scores: Array
    fold_train_scores: Array
    route: str
    seconds: float = 0.0
    candidates: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """Mean over the splits."""
        return float(self.fold_scores.mean())

    @property
    def standard_error(self) -> float:
        """sd over the splits / sqrt(number of splits)."""
        return _standard_error(self.fold_scores)

    @property
    def train_score(self) -> float:
        """Mean over the splits of the scores on training rows."""
        return float(self.fold_train_scores.mean())


@dataclass(frozen=True)
class Leaderboard:
    """Models and the mean of y, best first.

    entries : list of Entry
    best : the model with the best mean score
    chosen : `best`; or the preferred model, where it is within one standard error of the best; or the one named by
        `joined(..., is_chosen=True)`
    baseline : the mean of y
    weight : of the validation rows of every split
    notes : sentences on what was left out
    """

    entries: list[Entry]
    scoring: Any
    rule: str
    weight: Array
    prefer: str | None = None
    because: str = "it is preferred"
    notes: list[str] = field(default_factory=list)
    named: str | None = None

    @staticmethod
    def of(entries: Sequence[Entry], **facts: Any) -> Leaderboard:
        """Entries sorted by their scores."""
        return Leaderboard(sorted(entries, key=lambda entry: -entry.score), **facts)

    @property
    def n_splits(self) -> int:
        """Number of splits."""
        return len(self.weight)

    @cached_property
    def best(self) -> Entry:
        """The model with the best mean score; the baseline is no model."""
        return next(entry for entry in self.entries if entry.model is not None)

    @cached_property
    def chosen(self) -> Entry:
        """The one that was named; else the best, unless the preferred one is within one standard error of it."""
        if self.named is not None:
            return self[self.named]
        if self.prefer is None or self.prefer not in [entry.name for entry in self.entries]:
            return self.best
        wanted = self[self.prefer]
        return wanted if wanted.score >= self.best.score - self.best.standard_error else self.best

    @property
    def baseline(self) -> Entry:
        """The mean of y."""
        return self[BASELINE]

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"no entry {name!r}. There are {[entry.name for entry in self.entries]}.")

    def joined(self, entry: Entry, is_chosen: bool = False) -> Leaderboard:
        """The same with one entry more, scored on the same splits; chosen whatever the others score, if wanted."""
        entries = sorted([*self.entries, entry], key=lambda one: -one.score)
        return replace(self, entries=entries, named=entry.name if is_chosen else self.named)

    def difference(self, entry: Entry) -> tuple[float, float]:
        """Mean over the splits of score - score of the best, and its standard error: folds are compared in pairs."""
        steps = entry.fold_scores - self.best.fold_scores
        return float(steps.mean()), 0.0 if entry is self.best else _standard_error(steps)

    def r2(self, entry: Entry) -> float | None:
        """1 - squares / squares of the mean of y, of all validation rows together; None where scores do not tell."""
        squares = _SQUARES.get(self.scoring) if isinstance(self.scoring, str) else None
        if squares is None:
            return None
        own, null = (float(self.weight @ squares(one.fold_scores)) for one in (entry, self.baseline))
        return 1.0 - own / null if null > 0 else None

    def to_frame(self) -> Any:
        """The table as a pandas frame, one row an entry."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'certifit[pandas]'.") from error
        rows = []
        for entry in self.entries:
            difference, error_of_it = self.difference(entry)
            rows.append(
                {
                    "name": entry.name,
                    "params": entry.params,
                    "score": entry.score,
                    "standard_error": entry.standard_error,
                    "train_score": entry.train_score,
                    "r2": self.r2(entry),
                    "difference": difference,
                    "difference_error": error_of_it,
                    "route": entry.route,
                    "seconds": entry.seconds,
                    "chosen": entry is self.chosen,
                }
            )
        return pd.DataFrame(rows)

    def sentences(self) -> list[str]:
        """What the table says, in words."""
        return [self._how_good(), *self._why_chosen(), *self._against_baseline(), *self.notes, CAUTION]

    def _how_good(self) -> str:
        size, error = abs(self.chosen.score), self.chosen.standard_error
        if self.scoring == RMSE:
            return (
                f"On rows it did not see, predictions of {self.chosen.name!r} are off by {size:.4g} on average "
                f"(root mean squared error; +- {error:.2g})."
            )
        return f"On rows it did not see, {self.chosen.name!r} scores {self.chosen.score:.4g} (+- {error:.2g})."

    def _why_chosen(self) -> list[str]:
        models = [entry for entry in self.entries if entry.model is not None]
        if len(models) < 2:
            return []
        if self.chosen is self.best:
            return [f"{self.chosen.name!r} is chosen: it has the best mean score of {len(models)}."]
        return [
            f"{self.chosen.name!r} is chosen: it is within one standard error of the best, {self.best.name!r}, "
            f"and {self.because}."
        ]

    def _against_baseline(self) -> list[str]:
        if self.chosen.score > self.baseline.score:
            return []
        return [f"No better than the {BASELINE}: the columns say nothing about y that these models can use."]

    def __str__(self) -> str:
        head = ["", "score", "+-", "train", "difference", "+-", "R2", "parameters"]
        cells = [head, *(self._cells(entry) for entry in self.entries)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
        lines = [
            "  ".join(
                [
                    row[0].ljust(widths[0]),
                    *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)),
                ]
            )
            + f"  {row[-1]}"
            for row in cells
        ]
        return "\n".join([*(line.rstrip() for line in lines), "", *self.sentences()])

    def _cells(self, entry: Entry) -> list[str]:
        mark = "* " if entry is self.chosen else "  "
        difference, error = self.difference(entry)
        r2 = self.r2(entry)
        params = ", ".join(f"{name}={_short(value)}" for name, value in entry.params.items())
        numbers = [
            f"{entry.score:.5g}", f"{entry.standard_error:.2g}", f"{entry.train_score:.5g}",
            f"{difference:.3g}", f"{error:.2g}", "" if r2 is None else f"{r2:.4f}",
        ]  # fmt: skip
        return [mark + entry.name, *numbers, params]


def leaderboard(
    models: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    cv: Any = 10,
    scoring: Any = RMSE,
    rule: str = "min",
    sample_weight: Any = None,
    groups: Any = None,
    prefer: str | None = None,
    because: str = "it is preferred",
    most_refits: int | None = None,
) -> Leaderboard:
    """Tune and score models on the same splits of the rows, beside the mean of y.

    Parameters
    ----------
    models : dict {name: regressor}
        A Ridge whose alpha is None is tuned over its own candidates, as in CrossValidated; one with an alpha is scored
        as it is. CrossValidated(model, param_grid, rule=...) brings its candidates and its rule; its cv and scoring
        give way to those here.
    X, y, sample_weight, groups : as for CrossValidated: arrays, frames, or a scan that carries its target
    cv : as for CrossValidated, but no "loo", default 10
    scoring : name or callable, default "neg_root_mean_squared_error"
    rule : {"min", "1se"}, default "min"
        Which candidate of a model is taken.
    prefer, because : name of the model that is chosen where it is within one standard error of the best; and why
    most_refits : int or None, default None
        A model that sums over rows do not determine is tried on fewer candidates, evenly taken, until it needs at most
        so many refits; it is left out where one candidate needs more. `notes` says so.

    Returns
    -------
    Leaderboard: entries, best, chosen, baseline, to_frame(), sentences()

    >>> import numpy as np
    >>> import certifit as cf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=60)
    >>> board = leaderboard({"least squares": cf.LinearRegression(), "ridge": cf.Ridge()}, X, y)
    >>> [entry.name for entry in board.entries][-1], sorted(board.best.params)
    ('mean of y', ['alpha'])
    """
    jobs = _jobs(models, rule, prefer)
    if isinstance(cv, str):
        raise ValueError(f"A leaderboard needs splits: a number of folds, Folds(...) or a splitter. Got cv={cv!r}.")
    first = Rows.of(jobs[0].estimator, X, y, sample_weight, groups)
    rounds = rounds_of(cv, first.source, first.labels, first.groups)
    entries: list[Entry] = []
    notes: list[str] = []
    weight, path = np.zeros(0), None
    for job in jobs:
        started = time.perf_counter()
        rows = first if job is jobs[0] else Rows.of(job.estimator, X, y, sample_weight, groups)
        found = _scored(job, rows, rounds, scoring, most_refits, notes)
        if found is None:
            continue
        candidates, scores = found
        weight = scores.weight
        if path is None and getattr(job.estimator, "fit_intercept", False):
            path = scores.detail
        entries.append(_entry(job, candidates, scores, time.perf_counter() - started))
    if not entries:
        raise ValueError(" ".join(notes))
    entries.append(_baseline(first, rounds, scoring, path))
    return Leaderboard.of(
        entries, scoring=scoring, rule=rule, weight=weight, prefer=prefer, because=because, notes=notes
    )


def folds_for(source: Source, n_splits: int = 10) -> tuple[Folds | None, str | None]:
    """Folds that the rows (or groups) of a scan allow, and a sentence where they are not `n_splits`.

    Fewer rows than folds: half as many folds as rows, so that a fold has two rows. None below 4 rows or 2 groups.
    """
    if source.first_block().group is not None:
        n_groups = len(source.reduce(GroupSizes.of).keys)
        if n_groups >= n_splits:
            return Folds(n_splits), None
        if n_groups < 2:
            return None, "Not cross-validated: all rows are of one group, and a group stays in one fold."
        return Folds(n_groups), f"{n_groups} folds instead of {n_splits}: there are only {n_groups} groups."
    n_rows = counted_rows(source)
    if n_rows >= n_splits:
        return Folds(n_splits), None
    if n_rows < FEWEST_ROWS:
        return None, f"Not cross-validated: {n_rows} rows are too few. It needs {FEWEST_ROWS} at least."
    return Folds(n_rows // 2), f"{n_rows // 2} folds instead of {n_splits}: there are only {n_rows} rows."


@dataclass(frozen=True)
class _Job:
    """A model to tune. grid None: its own candidates where it has a parameter to choose."""

    name: str
    estimator: Any
    grid: Any
    rule: str
    n_jobs: int | None = None


def _jobs(models: Mapping[str, Any], rule: str, prefer: str | None) -> list[_Job]:
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict {{name: model}} with at least one model. Got {models!r}.")
    if BASELINE in models:
        raise ValueError(f"The name {BASELINE!r} is that of the baseline. Choose another.")
    if prefer is not None and prefer not in models:
        raise ValueError(f"prefer={prefer!r} is none of the models: {list(models)}.")
    jobs = []
    for name, model in models.items():
        job = _Job(name, model, None, rule)
        if isinstance(model, CrossValidated):
            job = _Job(name, model.estimator, model.param_grid, model.rule, model.n_jobs)
        if job.rule not in RULES:
            raise ValueError(f"rule must be one of {', '.join(map(repr, RULES))}. Got {job.rule!r}.")
        if is_classifier(job.estimator):
            raise TypeError(f"{name!r} is a classifier. A leaderboard compares regressors with the {BASELINE}.")
        jobs.append(job)
    return jobs


def _candidates(job: _Job, rows: Rows) -> list[dict[str, Any]]:
    if job.grid is not None:
        return list(ParameterGrid(job.grid))
    own = getattr(job.estimator, "candidates", None)
    candidates: list[dict[str, Any]] = [{}] if own is None else list(own(rows.source))
    given = job.estimator.get_params(deep=False)
    # What the user has set is not chosen again.
    is_open = all(given.get(name) is None for candidate in candidates for name in candidate)
    return candidates if is_open else [{}]


def _scored(
    job: _Job, rows: Rows, rounds: Sequence[Splits], scoring: Any, most_refits: int | None, notes: list[str]
) -> tuple[list[dict[str, Any]], FoldScores] | None:
    """Candidates and their scores; None where they would need too many refits."""
    candidates = _candidates(job, rows)
    if most_refits is not None:
        scores = _from_sums(job.estimator, rows, rounds, candidates, scoring)
        if scores is not None:
            return candidates, scores
        n_splits = sum(splits.n_splits for splits in rounds)
        thinned = _thinned(candidates, most_refits // n_splits)
        if len(thinned) < len(candidates):
            notes.append(_note_on_refits(job.name, len(thinned), len(candidates), n_splits))
        if not thinned:
            return None
        candidates = thinned
    return candidates, evaluate(job.estimator, rows, rounds, candidates, scoring, n_jobs=job.n_jobs, label=job.name)


def _from_sums(
    estimator: Any, rows: Rows, rounds: Sequence[Splits], candidates: Sequence[Mapping[str, Any]], scoring: Any
) -> FoldScores | None:
    score = sufficient(scoring)
    if score is None or not hasattr(estimator, "fold_path"):
        return None
    path = estimator.fold_path(rows.source, rounds, candidates)
    return None if path is None else _path_scores(path, path.train, path.validation, score)


def _path_scores(path: Any, train: Array, validation: Array, score: Any) -> FoldScores:
    return FoldScores(
        score(train, path.train_total, path.train_weight),
        score(validation, path.validation_total, path.validation_weight),
        path.validation_weight,
        "statistics",
        path,
    )


def _thinned(candidates: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """At most so many, evenly taken, both ends among them."""
    if len(candidates) <= most:
        return candidates
    places = np.unique(np.rint(np.linspace(0, len(candidates) - 1, max(most, 0))).astype(int))
    return [candidates[place] for place in places]


def _note_on_refits(name: str, n_tried: int, n_candidates: int, n_splits: int) -> str:
    why = f"{name} needs a refit for every candidate and fold here ({n_candidates * n_splits:,} refits)"
    return f"{why}: left out." if not n_tried else f"{why}: {n_tried} of {n_candidates} candidates were tried."


def _entry(job: _Job, candidates: list[dict[str, Any]], scores: FoldScores, seconds: float) -> Entry:
    table = results_table(candidates, scores.validation, scores.train)
    best = choose(table["mean_test_score"], table["standard_error"], candidates, job.rule)
    params = dict(candidates[best])
    model = clone(job.estimator).set_params(**params)
    return Entry(job.name, model, params, scores.validation[best], scores.train[best], scores.route, seconds, table)


def _baseline(rows: Rows, rounds: Sequence[Splits], scoring: Any, path: Any) -> Entry:
    """The mean of y: from the sums of a model with an intercept where there are some, else from the targets."""
    started = time.perf_counter()
    score = sufficient(scoring)
    if path is not None and score is not None:
        scores = _path_scores(path, path.train_total[None, :], path.validation_null[None, :], score)
    else:
        model = MeanOfTarget() if rows.X is None else DummyRegressor()
        scores = evaluate(model, rows, rounds, [{}], scoring, label=BASELINE)
    seconds = time.perf_counter() - started
    return Entry(BASELINE, None, {}, scores.validation[0], scores.train[0], scores.route, seconds)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
