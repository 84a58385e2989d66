"""The table of a leaderboard: models and their baseline by their scores on the same splits.

Scores are scikit-learn's: higher is better, and errors are negative.

The baseline of every comparison: the mean of the training rows for every row, or the shares of their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _num_samples

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source, join
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.evaluation.metrics.intervals import Estimate
from certifit.models.discriminant.folds import trained_classes
from certifit.models.folds import ClassState, RowFolds
from certifit.models.metric import Metric
from certifit.selection.compare.curves import CAUTION
from certifit.selection.compare.decomposition import Decomposition
from certifit.selection.compare.nested import Nested, choice_sentences
from certifit.selection.compare.rules import (
    NO_PREFERENCE,
    Correction,
    Evidence,
    Preference,
    choose_models,
    corrected,
    plain,
)
from certifit.selection.folds.class_validation import ClassValidation, validated_by
from certifit.selection.folds.fold_scores import CellMoments, FoldScores, state_scores
from certifit.selection.folds.metrics import METRICS as CLASS_METRICS
from certifit.selection.folds.metrics import Scoring
from certifit.selection.folds.rows import Rows

if TYPE_CHECKING:
    from pandas import DataFrame


BASELINE = "mean of y"
SHARES = "class shares"
RATE = "constant rate"
RMSE = "neg_root_mean_squared_error"
CLASS_SCORE = "neg_log_loss"
METRICS = {
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "auc": "AUC",
    "f1": "F1",
}  # shown of classes, and their titles

# scoring -> mean loss of a row from a score, so that the share explained of all validation rows together can be told
_LOSSES: dict[Scoring, Callable[[Array], Array]] = {
    RMSE: np.square,
    "neg_mean_squared_error": np.negative,
    "neg_mean_poisson_deviance": np.negative,
    "neg_mean_gamma_deviance": np.negative,
}


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    model : the estimator with its best parameters, not fitted; None for the baseline
    params : the parameters that were chosen
    fold_scores, fold_train_scores : one per split, on the validation and on the training rows; of classifiers from sums
        the latter is None, for it would cost a pass over every row for every split
    route : "statistics" or "refits"
    seconds : what tuning and scoring took
    candidates : the table of all candidates, as `cv_results_` of CrossValidated
    classes : of a classifier, every row predicted by a model that did not see it; None for regressors
    predicted : of a regressor, one number per row by a model that did not see it (NaN: none); None where not kept
    """

    name: str
    model: BaseEstimator
    params: dict[str, Any]
    fold_scores: Array
    fold_train_scores: Array | None
    route: str
    seconds: float = 0.0
    candidates: Mapping[str, Any] = field(default_factory=dict)
    classes: ClassValidation | None = None
    predicted: Array | None = None

    @cached_property
    def metrics(self) -> dict[str, Estimate]:
        """Of a classifier: accuracy, log_loss, auc, f1, balanced_accuracy with their 95 % intervals; else none."""
        return {} if self.classes is None else self.classes.metrics()

    @property
    def score(self) -> float:
        """Mean over the splits."""
        return float(self.fold_scores.mean())

    @property
    def standard_error(self) -> float:
        """sd over the splits / sqrt(number of splits)."""
        return _standard_error(self.fold_scores)

    @property
    def train_score(self) -> float | None:
        """Mean over the splits of the scores on training rows."""
        return None if self.fold_train_scores is None else float(self.fold_train_scores.mean())


@dataclass(frozen=True)
class Leaderboard:
    """Models and their baseline, best first.

    entries : list of Entry
    best : the model with the best mean score
    chosen : `best`; or a preferred model, where it is within one standard error of the best; or the one named by
        `joined(..., is_chosen=True)`
    baseline : the mean of y, or the shares of the classes
    weight : of the validation rows of every split
    notes : sentences on what was left out
    evidence : what every candidate scored, which `corrected` is made from; nested : the choice repeated in every fold
    decomposition : bias and variance along the candidates of a model, where they were asked for
    """

    entries: list[Entry]
    scoring: Scoring
    rule: str
    weight: Array
    preference: Preference = NO_PREFERENCE
    notes: list[str] = field(default_factory=list)
    named: str | None = None
    evidence: Evidence | None = None
    nested: Nested | None = None
    decomposition: Decomposition | None = None

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
        """The one that was named; else the best, unless a preferred one is within one standard error of it."""
        if self.named is not None:
            return self[self.named]
        models = [entry for entry in self.entries if entry.model is not None]
        scores = np.nan_to_num([[entry.score for entry in models]], nan=-np.inf)
        ranks = self.preference.ranks([entry.name for entry in models])
        return models[int(choose_models(scores, np.array([self.best.standard_error]), ranks)[0])]

    @property
    def baseline(self) -> Entry:
        """The mean of y, or the shares of the classes."""
        return next(entry for entry in self.entries if entry.model is None)

    @cached_property
    def correction(self) -> Correction | None:
        """The winner's score with the choice among all candidates accounted for; None where the choice was not ours."""
        if self.evidence is None or self.named is not None:
            return None
        params = list(self.chosen.candidates["params"])
        place = self.evidence.choosing.first(self.chosen.name) + params.index(self.chosen.params)
        return corrected(self.evidence.preferring(self.preference), place)

    @property
    def corrected(self) -> Estimate | None:
        """The score of the chosen model, corrected for the choice among all models and parameters, with an interval.

        Of all rows together, in the units of `scoring`. Its sentence says how it was found.
        """
        return None if self.correction is None else self.correction.score

    @property
    def nested_score(self) -> Estimate | None:
        """The score of the choice, repeated on the training rows of every fold; None unless nested=True."""
        return None if self.nested is None else self.nested.score

    @property
    def is_of_classes(self) -> bool:
        """Whether the models are classifiers."""
        return self.baseline.name == SHARES

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"no entry {name!r}. There are {[entry.name for entry in self.entries]}.")

    def joined(self, entry: Entry, is_chosen: bool = False) -> Leaderboard:
        """The same with one entry more, scored on the same splits; chosen whatever the others score, if wanted."""
        entries = sorted([*self.entries, entry], key=lambda one: -one.score)
        evidence = None if is_chosen else self.evidence
        return replace(self, entries=entries, named=entry.name if is_chosen else self.named, evidence=evidence)

    def difference(self, entry: Entry) -> tuple[float, float]:
        """Mean over the splits of score - score of the best, and its standard error: folds are compared in pairs."""
        steps = entry.fold_scores - self.best.fold_scores
        return float(steps.mean()), 0.0 if entry is self.best else _standard_error(steps)

    def r2(self, entry: Entry) -> float | None:
        """1 - squares / squares of the mean of y, of all validation rows together; None where scores do not tell.

        Of other errors, those in place of squares.
        """
        losses = np.negative if isinstance(self.scoring, Metric) else _LOSSES.get(self.scoring)
        if losses is None:
            return None
        loss, null = (float(self.weight @ losses(one.fold_scores)) for one in (entry, self.baseline))
        return 1.0 - loss / null if null > 0 else None

    def to_frame(self) -> DataFrame:
        """The table as a pandas frame, one row per entry."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install 'certifit[pandas]'.") from error
        rows = []
        for entry in self.entries:
            difference, error_of_it = self.difference(entry)
            row = {"name": entry.name, "params": entry.params, "score": entry.score}
            row["standard_error"] = entry.standard_error
            if self.is_of_classes:
                row |= {name: _value(entry.metrics.get(name)) for name in CLASS_METRICS}
            else:
                row |= {"train_score": entry.train_score, "r2": self.r2(entry)}
            row |= {"difference": difference, "difference_error": error_of_it}
            rows.append(row | {"route": entry.route, "seconds": entry.seconds, "chosen": entry is self.chosen})
        return pd.DataFrame(rows)

    def sentences(self) -> list[str]:
        """What the table says, in words."""
        said = [self._how_good(), *self._why_chosen(), *choice_sentences(self.correction, self.nested, self.scoring)]
        return [*said, *self._against_baseline(), *self.notes, CAUTION]

    def _how_good(self) -> str:
        size, error = abs(self.chosen.score), self.chosen.standard_error
        if self.chosen.metrics:
            return self._how_good_at_classes()
        if self.scoring == RMSE:
            return (
                f"On rows it did not see, predictions of {self.chosen.name!r} are off by {plain(size)} on average "
                f"(root mean squared error; +- {plain(float(f'{error:.2g}'))})."
            )
        if isinstance(self.scoring, Metric):
            loss = f"a {self.scoring.name} of {size:.4g} (+- {error:.2g})"
            return f"On rows it did not see, {self.chosen.name!r} has {loss}."
        return f"On rows it did not see, {self.chosen.name!r} scores {self.chosen.score:.4g} (+- {error:.2g})."

    def _how_good_at_classes(self) -> str:
        accuracy, null = self.chosen.metrics["accuracy"], self.baseline.metrics["accuracy"]
        between = (
            ""
            if accuracy.low is None
            else f" (95 % interval {100 * accuracy.low:.1f} to {100 * (accuracy.high or 0):.1f} %)"
        )
        return (
            f"On rows it did not see, {self.chosen.name!r} has {100 * accuracy:.1f} % right{between}; "
            f"the most frequent class for every row has {100 * null:.1f} %."
        )

    def _why_chosen(self) -> list[str]:
        models = [entry for entry in self.entries if entry.model is not None]
        if len(models) < 2:
            return []
        if self.chosen is self.best:
            return [f"{self.chosen.name!r} is chosen: it has the best mean score of {len(models)}."]
        return [
            f"{self.chosen.name!r} is chosen: it is within one standard error of the best, {self.best.name!r}, "
            f"and {self.preference.reason(self.chosen.name)}."
        ]

    def _against_baseline(self) -> list[str]:
        if self.chosen.score > self.baseline.score:
            return []
        null = self.baseline.name
        return [f"No better than the {null}: the columns say nothing about the target that these models can use."]

    def __str__(self) -> str:
        explained = "explained" if isinstance(self.scoring, Metric) else "R2"
        last = list(METRICS.values()) if self.is_of_classes else [explained]
        train = [] if self.is_of_classes else ["train"]
        head = ["", "score", "+-", *train, "difference", "+-", *last, "parameters"]
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
        if self.is_of_classes:
            train, last = [], [_shown(entry.metrics.get(name), ".4f") for name in METRICS]
        else:
            train, last = [_shown(entry.train_score, ".5g")], [_shown(self.r2(entry), ".4f")]
        params = ", ".join(f"{name}={_short(value)}" for name, value in entry.params.items())
        numbers = [
            f"{entry.score:.5g}",
            f"{entry.standard_error:.2g}",
            *train,
            f"{difference:.3g}",
            f"{error:.2g}",
            *last,
        ]
        return [mark + entry.name, *numbers, params]


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(float(value), form)


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else float(estimate)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class MeanOfTarget(RegressorMixin, BaseEstimator):
    """The mean of y, for rows of a scan."""

    def fit(self, X: Source, y: None = None) -> Self:
        """The mean of the targets of a scan."""
        self.mean_ = float(X.reduce(_one_cell).mean[0])
        return self

    def predict(self, X: Source) -> Array:
        """The mean, once per row."""
        return np.concatenate(list(X.map(partial(_repeated, self.mean_))))


class BestConstant(RegressorMixin, BaseEstimator):
    """The number that is best by a metric, for rows in memory or of a scan."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def fit(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Self:
        """The constant of the targets; a scan carries them."""
        if isinstance(X, Source):
            parts = [(run.y, np.ones(run.n_rows) if run.weight is None else run.weight) for run in X.stretches()]
            y, sample_weight = (np.concatenate(column) for column in zip(*parts, strict=True))
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.constant_ = self.metric.constant(np.asarray(y, dtype=np.float64), weight)
        return self

    def predict(self, X: UserRows) -> Array:
        """The constant, once per row."""
        if isinstance(X, Source):
            return np.concatenate(list(X.map(partial(_repeated, self.constant_))))
        return np.full(_num_samples(X), self.constant_)


class MeanRate(RegressorMixin, BaseEstimator):
    """The mean of y for each unit of exposure: rate exp(offset) for every row of a scan.

    rate = sum of w y / sum of w exp(offset)
    """

    def fit(self, X: Source, y: None = None) -> Self:
        """The rate of a scan with an offset."""
        total, exposure = X.reduce(_of_exposure)
        if not (exposure > 0 and np.isfinite(exposure)):
            raise ValueError(f"The exposures, exp(offset), sum up to {exposure:g}, so there is no mean rate.")
        self.rate_ = float(total / exposure)
        return self

    def predict(self, X: Source) -> Array:
        """rate exp(offset) of every row."""
        return self.rate_ * np.concatenate(list(X.map(_exposures)))


def _exposures(block: Block) -> Array:
    if block.offset is None:
        raise ValueError("The mean rate needs an offset or exposure.")
    return np.exp(block.offset)


def _of_exposure(block: Block) -> Array:
    if block.y is None:
        raise ValueError("The mean rate needs a target.")
    weight = np.ones(block.n_rows) if block.weight is None else block.weight
    return np.array([weight @ block.y, weight @ _exposures(block)])


@dataclass(frozen=True)
class ClassShares:
    """The shares of the classes among some rows, as the probabilities of every row."""

    log_shares: Array

    def mapped_scores(self, block: Block) -> Array:
        """The logarithms of the shares, once per row."""
        return np.tile(self.log_shares, (block.n_rows, 1))


def class_shares(rows: Rows, rounds: Sequence[Splits], scoring: Scoring) -> tuple[FoldScores, ClassValidation]:
    """Scores of the training shares on the validation rows of every split, and every row predicted by them."""
    if rows.classes is None:
        raise ValueError("Shares of classes need labels y.")
    lean = replace(rows, source=without_columns(rows.source))
    n_classes = len(rows.classes)
    states = []
    for splits in rounds:
        with np.errstate(divide="ignore"):
            trained = trained_classes(lean.source, n_classes, splits)
            logs = np.log(trained / trained.sum(axis=1, keepdims=True))
        states.append([[ClassState(ClassShares(shares), np.arange(n_classes), n_classes) for shares in logs]])
    folds = RowFolds(lean.source, rounds, states, {}, is_coded=True)
    scores = state_scores(folds, rows.classes, 1, scoring)
    return scores, replace(validated_by(lean, folds), is_constant=True)


def without_columns(source: Source) -> Memory:
    """Targets, weights, groups and offsets of all rows, in memory: a pass that reads no more columns than it must."""
    return Memory.of(join(list(source.narrow().map(_without_columns))))


def _without_columns(block: Block) -> Block:
    return replace(block, X=np.zeros((block.n_rows, 1), dtype=np.uint8))


@dataclass(frozen=True)
class _One:
    """All rows in one cell."""

    n_cells: int = 1

    def of(self, block: Block) -> Array:
        return np.zeros(block.n_rows, dtype=np.int32)


def _one_cell(block: Block) -> CellMoments:
    return CellMoments.of(block, _One())


def _repeated(mean: float, block: Block) -> Array:
    return np.full(block.n_rows, mean)
