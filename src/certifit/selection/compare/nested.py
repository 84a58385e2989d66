"""Nested cross-validation: the whole choice repeated on the training rows of every split.

The inner folds of a split are its other folds, so inner training sets are sums of the same cells: models whose folds
come from sums take no further pass for them. With k folds the inner choice has k - 1.

What a choice among candidates means for the score of the winner, in sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.labels import with_codes
from certifit.data.source import Block, Source
from certifit.data.source_wrappers import Picked
from certifit.data.view import Target
from certifit.evaluation.metrics import errors
from certifit.evaluation.metrics.intervals import WEIGHTED, Estimate, share
from certifit.models.adapter import learner_of
from certifit.models.folds import ClassState
from certifit.models.metric import Metric
from certifit.selection.compare.rules import BBC, Correction, Evidence, plain
from certifit.selection.folds.fold_scores import FoldScores
from certifit.selection.folds.metrics import Scoring, log_scores, of_mean, own_scoring
from certifit.selection.folds.splits import HoldOut, targets


@dataclass(frozen=True)
class Nested:
    """What the choice scores on rows that had no part in it.

    score : of all rows together
    fold_scores : one per split
    picks : of every split, (place of the model, place of its candidate)
    accuracy : the share of right classes; None for numbers, or where single rows were too many to keep
    n_refits : fits that were made for the inner choices
    """

    score: Estimate
    fold_scores: Array
    picks: list[tuple[int, int]]
    accuracy: Estimate | None = None
    n_refits: int = 0

    @property
    def standard_error(self) -> float:
        """sd over the splits / sqrt(number of splits)."""
        return float(self.fold_scores.std(ddof=1) / np.sqrt(len(self.fold_scores)))


def inner_rounds(rounds: Sequence[Splits]) -> list[Splits]:
    """Of every round of folds the splits that validate each other fold t of the training rows of fold s, s-major."""
    inner = []
    for splits in rounds:
        n = splits.n_splits
        is_folds = n >= 3 and splits.train.shape[1] == n and np.array_equal(splits.validation, np.eye(n))
        if not is_folds or not np.array_equal(splits.train, 1.0 - np.eye(n)):
            raise ValueError(
                "Nested cross-validation needs 3 folds or more in which every row validates once: a number of folds, "
                "Folds(k) or a splitter of that kind."
            )
        one = np.eye(n)
        pairs = [(s, t) for s in range(n) for t in range(n) if t != s]
        train = np.array([1.0 - one[s] - one[t] for s, t in pairs])
        inner.append(Splits(splits.cells, train, np.array([one[t] for _, t in pairs])))
    return inner


def nested_choice(
    evidence: Evidence, rounds: Sequence[Splits], scored: Sequence[Callable[[Sequence[Splits]], FoldScores | None]]
) -> Nested:
    """scored: of every model, FoldScores of its candidates on other splits (None where it has no fit there)."""
    inner = inner_rounds(rounds)
    n_inner = sum(splits.n_splits for splits in inner)
    tables, n_refits = [], 0
    for size, of_model in zip(evidence.choosing.sizes, scored, strict=True):
        scores = of_model(inner)
        tables.append(np.full((size, n_inner), np.nan) if scores is None else scores.validation)
        n_refits += size * n_inner if scores is not None and scores.route == "refits" else 0
    picks = evidence.choosing.chosen(_by_split(np.concatenate(tables), rounds))
    if (picks < 0).any():
        raise ValueError("No model has a fit to the training rows of every inner fold. Use fewer folds.")
    at = np.arange(len(picks))
    fold_scores = evidence.fold_scores[picks, at]
    accuracies = _fold_accuracies(evidence, picks)
    return Nested(
        _together(fold_scores, evidence.weight, evidence.scoring),
        fold_scores,
        [evidence.choosing.place(int(pick)) for pick in picks],
        None if accuracies is None else _together(accuracies, evidence.weight, "accuracy"),
        n_refits,
    )


def _by_split(table: Array, rounds: Sequence[Splits]) -> Array:
    """Inner scores of every split: splits x candidates x inner folds, NaN where a round has fewer."""
    most = max(splits.n_splits for splits in rounds) - 1
    by_split, at = [], 0
    for splits in rounds:
        n = splits.n_splits
        for _ in range(n):
            padded = np.full((len(table), most), np.nan)
            padded[:, : n - 1] = table[:, at : at + n - 1]
            by_split.append(padded)
            at += n - 1
    return np.array(by_split)


def _fold_accuracies(evidence: Evidence, picks: Array) -> Array | None:
    if evidence.held_out is None or "accuracy" not in evidence.held_out[0].values:
        return None
    pairs = zip(picks, evidence.held_out, strict=True)
    return np.array([np.average(split.values["accuracy"][pick], weights=split.weight) for pick, split in pairs])


def _together(fold_scores: Array, weight: Array, scoring: Scoring) -> Estimate:
    """The score of all rows together; no interval, for the fits share training rows."""
    is_root = of_mean(scoring, -4.0) != -4.0
    means = -(fold_scores**2) if is_root else fold_scores
    value = float(of_mean(scoring, np.average(means, weights=weight)))
    error = float(fold_scores.std(ddof=1) / np.sqrt(len(fold_scores)))
    sentence = f"Nested: every split was scored by what the others chose. Standard error over splits {error:.2g}."
    return Estimate(value, method="nested cross-validation", sentence=sentence)


# Rows that are set aside before anything is looked at, and the one score of the final model on them.

N_RESAMPLES = 1000


@dataclass(frozen=True)
class HeldOutScore:
    """What a fitted model scores on rows that nothing before had seen.

    name : of the figure; value : with its interval; baseline : the same without any column
    n_rows : of them; others : further figures, by name
    """

    name: str
    value: Estimate
    baseline: float
    n_rows: int
    others: dict[str, float]
    constant: str = "always their mean"  # what the baseline is of


def set_aside(source: Source, test_size: float, *, is_classes: bool, random_state: int = 0) -> tuple[Picked, Picked]:
    """(rows to work with, rows set aside). Classes keep their shares, unless there are groups, which stay whole."""
    lean = source.reading(Target.RAW)
    is_grouped = lean.first_block().group is not None
    labels = targets(with_codes(source)[0].narrow()) if is_classes and not is_grouped else None
    holdout = HoldOut(test_size, stratify=labels is not None, random_state=random_state)
    (splits,) = holdout.rounds(lean, labels)
    flags = np.concatenate(list(lean.map(partial(_is_out, splits.cells))))
    return Picked(source, ~flags), Picked(source, flags)


def rows_of_fit(model: BaseEstimator, source: Source) -> Source:
    """The rows of a table that a model was fitted to: those that its fit did not set aside."""
    if "held_out" not in model.data_:
        return source
    rule = model.data_["held_out"]
    if (group := rule["group"]) is not None and source.reading(Target.RAW).first_block().group is None:
        raise ValueError(f"The fit set groups of column {group!r} aside. Give the scan group={group!r}.")
    return set_aside(source, rule["share"], is_classes=rule["is_stratified"], random_state=rule["random_state"])[0]


def held_out_score(model: BaseEstimator, source: Source, level: float = 0.95) -> HeldOutScore:
    """The score of a fitted model on rows that were set aside; a level that the fit did not see is the reference."""
    encoder = model.encoder_ if learner_of(model).is_ours else None
    if encoder is not None:
        model = copy(model)
        model.encoder_ = copy(encoder)
        model.encoder_.columns_ = [replace(kind, is_lenient=True) for kind in encoder.columns_]
    return _of_classes(model, source, level) if hasattr(model, "classes_") else _of_numbers(model, source, level)


def _of_classes(model: BaseEstimator, source: Source, level: float) -> HeldOutScore:
    n_classes = len(model.classes_)
    fitted = ClassState(model, np.arange(n_classes), n_classes, model)
    parts = list(source.reading(Target.CODES, model.classes_).map(partial(_posteriors, fitted)))
    codes, log_proba = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    weight = _joined([part[2] for part in parts], len(codes))
    is_right = log_proba.argmax(axis=1) == codes
    reason = "" if weight is None else WEIGHTED
    mass = np.ones(len(codes)) if weight is None else weight
    value = share(float(mass @ is_right), float(mass.sum()), level, reason=reason)
    shares = np.bincount(codes[codes >= 0], mass[codes >= 0], n_classes) / mass.sum()
    loss = -float(np.average(log_scores(codes, log_proba), weights=mass))
    return HeldOutScore(
        "accuracy",
        value,
        float(shares.max()),
        len(codes),
        {"log loss": loss},
        "always the most frequent class",
    )


def _of_numbers(model: BaseEstimator, source: Source, level: float) -> HeldOutScore:
    y = targets(source)
    weight = _joined([stretch.weight for stretch in source.stretches()], len(y))
    predicted = np.asarray(model.predict(source))
    seen = np.ones(len(y), dtype=bool) if weight is None else weight > 0
    y, predicted, weight = y[seen], predicted[seen], None if weight is None else weight[seen]
    metric = own_scoring(model, None)
    if isinstance(metric, Metric):
        return _of_metric(metric, y, predicted, weight, level)
    value = errors.root_mean_squared_error(y, predicted, sample_weight=weight, level=level, n_resamples=N_RESAMPLES)
    centre = float(np.average(y, weights=weight))
    baseline = float(np.sqrt(np.average((y - centre) ** 2, weights=weight)))
    return HeldOutScore("root mean squared error", value, baseline, len(y), {})


def _of_metric(metric: Metric, y: Array, predicted: Array, weight: Array | None, level: float) -> HeldOutScore:
    row_errors = metric.errors(y, predicted)
    value = errors.scored(lambda e, w: errors.MeanLoss.of(e, w).mean, (row_errors,), weight, N_RESAMPLES, level, 0)
    baseline = metric.mean(y, np.full(len(y), metric.constant(y, weight)), weight)
    return HeldOutScore(metric.name, value, baseline, len(y), {}, f"always the {metric.baseline}")


def _posteriors(fitted: ClassState, run: Block) -> tuple[Array, Array, Array | None]:
    if run.y is None:
        raise ValueError("The rows carry no labels.")
    return run.y.astype(np.int64), fitted.predicted(run), run.weight


def _joined(parts: Sequence[Array | None], n_rows: int) -> Array | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present and n_rows else None


def _is_out(cells: Cells, run: Block) -> Array:
    return np.asarray(cells.of(run) == 1)


Shown = Callable[[float], str]
RIGHT = "accuracy"
# scoring -> what is told of it, and the number that is told; other scores are told as they are
WORDS: dict[object, tuple[str, Callable[[float], float]]] = {
    "neg_root_mean_squared_error": ("root mean squared error", np.negative),
    "neg_mean_squared_error": ("mean squared error", np.negative),
    "neg_mean_absolute_error": ("mean absolute error", np.negative),
    "neg_log_loss": ("log loss", np.negative),
    "neg_mean_poisson_deviance": ("mean Poisson deviance", np.negative),
    "neg_mean_gamma_deviance": ("mean Gamma deviance", np.negative),
    "accuracy": (RIGHT, float),
}
MEANING = (
    "The same folds chose the model and scored it, so the first figure is too good; the corrected one removes most of "
    "that, not all."
)
NESTED_MEANING = "For the nested figure, no row had a part in the choice that it scored."


def choice_sentences(correction: Correction | None, nested: Nested | None, scoring: Scoring) -> list[str]:
    """The winner's figure, the corrected and the nested one, and what they mean; nothing of one candidate."""
    if correction is None or correction.n_candidates < 2:
        return []
    words, told = WORDS.get(scoring, ("score", float))
    if isinstance(scoring, Metric):
        words, told = scoring.name, np.negative
    nested_score = None if nested is None else nested.score
    said = [_figures(words, correction.winner, correction.score, nested_score, told)]
    if correction.winner_accuracy is not None and words != RIGHT:
        accuracy = None if nested is None else nested.accuracy
        said.append(_figures(RIGHT, correction.winner_accuracy, correction.accuracy, accuracy, float))
    first = f"Chosen among {correction.n_candidates:,} candidates: {'; '.join(said)}."
    meaning = MEANING if nested is None else f"{MEANING} {NESTED_MEANING}"
    how = [] if correction.method == BBC else [correction.score.sentence]
    refits = [f"The nested choice took {nested.n_refits:,} refits."] if nested is not None and nested.n_refits else []
    return [f"{first} {meaning}", *how, *refits]


def _figures(
    words: str, winner: float, corrected: Estimate | None, nested: Estimate | None, told: Callable[[float], float]
) -> str:
    parts = [f"{words} {plain(told(winner))} on the rows that chose it, all together"]
    if corrected is not None:
        ends = sorted(told(end) for end in (corrected.low, corrected.high) if end is not None)
        between = f" (95 % interval {plain(ends[0])} to {plain(ends[1])})" if ends else ""
        parts.append(f"{plain(told(float(corrected)))} corrected for the choice{between}")
    if nested is not None:
        parts.append(f"{plain(told(float(nested)))} nested")
    return ", ".join(parts)
