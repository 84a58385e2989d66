"""Calibration: the model of models, and the map of scores that only it is made of."""

from __future__ import annotations

from certifit.models.learner import (
    DERIVED,
    Answer,
    Learner,
    Param,
    Params,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    either,
    is_whole,
)
from certifit.models.parameters import TOL

# Splits are checked with the rows that they number; a model file stores a number only.
_SPLITS = Param(
    "a list of (train, test) row numbers, or a splitter of scikit-learn",
    None,
    lambda value: isinstance(value, (list, tuple)) or (hasattr(value, "split") and not isinstance(value, str)),
    lambda value: hasattr(value, "split") or len(value) >= 1,
)
CV = either(
    f"a whole number from 2 to 1000, {_SPLITS.legal}",
    5,
    count(5, least=2, most=1000),
    _SPLITS,
)


def _calibrated(told: Told) -> str:
    cv = told.params["cv"]
    folds = f"{cv} folds" if is_whole(cv) else "splits of the user"
    return f"fitted: an estimator, and a map of its out-of-fold scores to chances ({told.params['method']}, {folds})"


def _sections(params: Params) -> tuple[str, ...]:
    """Log-odds are a sum over the columns where a sigmoid maps scores that are one."""
    is_linear = type(params.get("estimator")).__name__ == "LinearSVC"
    return ("mapped odds",) if is_linear and params["method"] == "sigmoid" else ()


def _isotonic(told: Told) -> str:
    return "minimised over f that never falls: sum_i weight_i (y_i - f(x_i))^2 / 2"


ROWS = (
    Learner(
        "calibrated",
        "models.calibrated.model:Calibrated",
        _calibrated,
        Words("calibrated probabilities", goal=DERIVED),
        {"method": choice("sigmoid", "sigmoid", "isotonic"), "cv": CV},
        ("estimator",),
        always(Answer.CLASSES),
        verb=always(Verb.GATHER),
        sections=_sections,
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
