"""Nested cross-validation: the whole choice repeated on the training rows of every split.

The inner folds of a split are its other folds, so inner training sets are sums of the same cells: models whose folds
come from sums take no further pass for them. With k folds the inner choice has k - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.evaluation.intervals import Estimate
from certifit.selection.choice import Evidence
from certifit.selection.fold_scores import FoldScores
from certifit.selection.scoring import Scoring, of_mean


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
    found = []
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
        found.append(Splits(splits.cells, train, np.array([one[t] for _, t in pairs])))
    return found


def nested(
    evidence: Evidence, rounds: Sequence[Splits], scored: Sequence[Callable[[Sequence[Splits]], FoldScores | None]]
) -> Nested:
    """scored: of every model, FoldScores of its candidates on other splits (None where it has no fit there)."""
    inner = inner_rounds(rounds)
    n_inner = sum(splits.n_splits for splits in inner)
    tables, n_refits = [], 0
    for size, of_model in zip(evidence.choosing.sizes, scored, strict=True):
        found = of_model(inner)
        tables.append(np.full((size, n_inner), np.nan) if found is None else found.validation)
        n_refits += size * n_inner if found is not None and found.route == "refits" else 0
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
    found, at = [], 0
    for splits in rounds:
        n = splits.n_splits
        for _ in range(n):
            own = np.full((len(table), most), np.nan)
            own[:, : n - 1] = table[:, at : at + n - 1]
            found.append(own)
            at += n - 1
    return np.array(found)


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
