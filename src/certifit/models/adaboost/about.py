"""AdaBoost of stumps."""

from __future__ import annotations

from certifit.data.roles import CLASSES
from certifit.models.learner import (
    DERIVED,
    Answer,
    Command,
    Learner,
    Option,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    count,
    number,
)
from certifit.models.parameters import MAX_TIME


def _exponential(told: Told) -> str:
    """What boosting descends, one stump at a time."""
    if told.n_classes > 2:
        return "decreased stump by stump: sum_i weight_i exp(-(vote for y_i) / K), of votes that add up to 0 (SAMME)"
    return "decreased stump by stump: sum_i weight_i exp(-y_i F(x_i)), F = sum_j (alpha_j / 2) f_j, y_i = -1 or 1"


ROUNDS = (10, 25, 50, 100, 200, 400)  # that folds choose from
FOR_FEW_ROWS = 50  # that folds try at least, however few rows there are


def rounds_tried(n_rows: int | None) -> tuple[int, ...]:
    """The numbers of rounds that folds choose from: none above that of the rows. n_rows: None where not known."""
    most = max(n_rows or ROUNDS[-1], FOR_FEW_ROWS)
    return tuple(n_rounds for n_rounds in ROUNDS if n_rounds <= most)


_ROUNDS = Option("rounds", "N", "adaboost: most rounds. Default: folds choose.", "n_estimators", int)
ROWS = (
    Learner(
        "ada_boost_classifier",
        "models.adaboost.model:AdaBoostClassifier",
        _exponential,
        Words("AdaBoost of stumps", "exponential loss", goal=DERIVED),
        {
            "n_estimators": count(50, most=1_000_000),
            "learning_rate": number(1.0, most=1e6, is_above=True),
            "max_time": MAX_TIME,
        },
        ("encoder",),
        always(Answer.CLASSES),
        always(Verb.GATHER),
        sections=always(("splits", "rounds")),
        commands=(
            Command(
                "adaboost",
                "AdaBoost",
                "a weighted vote of trees with one split",
                goal=CLASSES,
                compared_for=(CLASSES,),
                options=(_ROUNDS,),
                tunes="rounds",
                simplicity=Simplicity.MANY_PARTS,
                work=lambda n_rows, n_columns: 10.0 * n_rows * n_columns * rounds_tried(n_rows)[-1],
            ),
        ),
        record="models.adaboost.modelfile:RECORD",
    ),
)
