"""Each class against the rest."""

from __future__ import annotations

from certifit.models.learner import Answer, Learner, Param, Told, Words, always, is_whole


def _objective(told: Told) -> str:
    return f"fitted: an estimator for each of {told.n_classes} classes against the rest, on its own"


ROWS = (
    Learner(
        "one_vs_rest_classifier",
        "models.one_vs_rest:OneVsRestClassifier",
        _objective,
        Words("one class against the rest"),
        {"n_jobs": Param("a whole number other than 0", None, is_whole, lambda value: value != 0, or_none=True)},
        ("estimator",),
        always(Answer.MARGINS),
        record="models.ensembles.state:RECORD",
    ),
)
