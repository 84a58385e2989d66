"""Each class against the rest."""

from __future__ import annotations

from certifit.models.learner import Answer, Learner, Param, Told, Words, always, is_whole


def _objective(told: Told) -> str:
    return f"fitted: an estimator for each of {told.n_classes} classes against the rest, on its own"


_MOST_JOBS = 10_000
_JOBS = Param(
    f"a whole number from -{_MOST_JOBS} to {_MOST_JOBS}, not 0",
    None,
    is_whole,
    lambda value: 0 < abs(value) <= _MOST_JOBS,
    or_none=True,
)
ROWS = (
    Learner(
        "one_vs_rest_classifier",
        "models.one_vs_rest:OneVsRestClassifier",
        _objective,
        Words("one class against the rest"),
        {"n_jobs": _JOBS},
        ("estimator",),
        always(Answer.MARGINS),
        record="models.ensembles.modelfile:RECORD",
    ),
)
