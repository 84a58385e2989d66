"""Models of models: each class against the rest, and bagging."""

from __future__ import annotations

from certifit.models.learner import (
    DERIVED,
    Answer,
    Learner,
    Param,
    Told,
    Words,
    always,
    choice,
    count,
    either,
    flag,
    is_whole,
)
from certifit.models.parameters import MAX_TIME


def _objective(told: Told) -> str:
    return f"fitted: an estimator for each of {told.n_classes} classes against the rest, on its own"


def _bagged(told: Told) -> str:
    return f"fitted: {told.params['n_estimators']} copies of an estimator, each to its own sample of the rows"


_MOST_JOBS = 10_000
_JOBS = Param(
    f"a whole number from -{_MOST_JOBS} to {_MOST_JOBS}, not 0",
    None,
    is_whole,
    lambda value: 0 < abs(value) <= _MOST_JOBS,
    or_none=True,
)
_SHARE = Param(
    "a share above 0 and at most 1",
    1.0,
    lambda value: isinstance(value, float),
    lambda value: 0 < value <= 1,
)
_BAGGING = {
    "n_estimators": count(10, most=10_000),
    "max_samples": either("a share above 0 and at most 1, or a whole number >= 1", 1.0, _SHARE, count(1, most=2**40)),
    "bootstrap": flag(True),
    "random_state": count(0, least=0, most=2**32 - 1),
    "max_time": MAX_TIME,
    "n_jobs": _JOBS,
}
ROWS = (
    Learner(
        "one_vs_rest_classifier",
        "models.composite:OneVsRestClassifier",
        _objective,
        Words("one class against the rest"),
        {"n_jobs": _JOBS},
        ("estimator",),
        always(Answer.MARGINS),
        record="models.ensembles.modelfile:RECORD",
    ),
    Learner(
        "bagging_classifier",
        "models.ensembles.bagging:BaggingClassifier",
        _bagged,
        Words("bagging", goal=DERIVED),
        {**_BAGGING, "voting": choice("soft", "soft", "hard")},
        ("estimator",),
        always(Answer.CLASSES),
        record="models.ensembles.modelfile:BAGGING_CLASSIFIER",
    ),
    Learner(
        "bagging_regressor",
        "models.ensembles.bagging:BaggingRegressor",
        _bagged,
        Words("bagging", goal=DERIVED),
        _BAGGING,
        ("estimator",),
        record="models.ensembles.modelfile:BAGGING_REGRESSOR",
    ),
)
