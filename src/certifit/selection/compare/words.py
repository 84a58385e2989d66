"""What a choice among candidates means for the score of the winner, in sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certifit.evaluation.metrics.intervals import Estimate
from certifit.models.metric import Metric
from certifit.selection.compare.choice import BBC, Correction
from certifit.selection.compare.nested import Nested
from certifit.selection.folds.metrics import Scoring

Shown = Callable[[float], str]
RIGHT = "share of right classes"
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
    parts = [f"{words} {told(winner):.4g} on the rows that chose it"]
    if corrected is not None:
        ends = sorted(told(end) for end in (corrected.low, corrected.high) if end is not None)
        between = f" (95 % interval {ends[0]:.4g} to {ends[1]:.4g})" if ends else ""
        parts.append(f"{told(float(corrected)):.4g} corrected for the choice{between}")
    if nested is not None:
        parts.append(f"{told(float(nested)):.4g} nested")
    return ", ".join(parts)
