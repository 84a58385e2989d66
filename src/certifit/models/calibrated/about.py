"""Calibration: the model of models, and the map of scores that only it is made of."""

from __future__ import annotations

from certifit.models.about import TOL
from certifit.models.learner import Answer, Learner, Told, Verb, Words, always, choice, count


def _calibrated(told: Told) -> str:
    return (
        f"fitted: an estimator, and a map of its out-of-fold scores to chances ({told.params['method']}, "
        f"{told.params['cv']} folds)"
    )


def _isotonic(told: Told) -> str:
    return "minimised over f that never falls: sum_i weight_i (y_i - f(x_i))^2 / 2"


ROWS = (
    Learner(
        "calibrated",
        "models.calibrated.model:Calibrated",
        _calibrated,
        Words("calibrated probabilities"),
        {"method": choice("sigmoid", "sigmoid", "isotonic"), "cv": count(5, least=2, most=1000)},
        ("estimator",),
        always(Answer.CLASSES),
        verb=always(Verb.GATHER),
        record="models.calibrated.modelfile:CALIBRATED",
    ),
)
PARTS = (
    Learner(
        "isotonic_map",
        "models.calibrated.isotonic:IsotonicMap",
        _isotonic,
        Words("isotonic regression"),
        {"tol": TOL},
        ("encoder",),
        verb=always(Verb.GATHER),
        record="models.calibrated.modelfile:ISOTONIC",
    ),
)
