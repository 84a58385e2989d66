"""The perceptron."""

from __future__ import annotations

from certifit.models.learner import DERIVED, Answer, Learner, Told, Verb, Words, always, count, number
from certifit.models.parameters import INTERCEPT, MAPS, MAX_TIME


def _perceptron(told: Told) -> str:
    """A hyperplane with all rows on their side."""
    return f"looked for: w, b with y_i (b + x_i'w) > {told.params['delta']:g} for all rows{told.end}"


ROWS = (
    Learner(
        "perceptron",
        "models.perceptron.model:Perceptron",
        _perceptron,
        Words("the perceptron", "sum of the errors", goal=DERIVED),
        {
            "delta": number(0.0),
            "max_iter": count(1000),
            "max_time": MAX_TIME,
            "random_state": count(0, least=0),
            "fit_intercept": INTERCEPT,
        },
        ("start", "order", *MAPS),
        always(Answer.MARGINS),
        always(Verb.VISIT),
        sections=always(("odds",)),
        record="models.perceptron.modelfile:RECORD",
    ),
)
