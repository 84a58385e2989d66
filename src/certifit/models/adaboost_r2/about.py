"""AdaBoost of regression trees."""

from __future__ import annotations

from certifit.models.learner import DERIVED, Command, Learner, Option, Told, Verb, Words, always, choice, count, number
from certifit.models.parameters import MAX_TIME


def _rounds(told: Told) -> str:
    """What a round does; no objective is descended."""
    return (
        f"played: rounds of trees of the least weighted squared error, and more weight where the {told.params['loss']} "
        "loss is large; predicted is the weighted median"
    )


_ROUNDS = Option("rounds", "N", "boosted-median: most rounds. Default: 50.", "n_estimators", int)
ROWS = (
    Learner(
        "ada_boost_regressor",
        "models.adaboost_r2.model:AdaBoostRegressor",
        _rounds,
        Words("AdaBoost of regression trees", "relative loss", goal=DERIVED, is_robust=True),
        {
            "n_estimators": count(50, most=100_000),
            "learning_rate": number(1.0, most=1e6, is_above=True),
            "loss": choice("linear", "linear", "square", "exponential"),
            "max_depth": count(3, most=2**31 - 1),
            "min_samples_leaf": count(1),
            "max_time": MAX_TIME,
        },
        ("encoder",),
        verb=always(Verb.GATHER),
        commands=(
            Command(
                "boosted-median", "AdaBoost", "the weighted median of regression trees, boosted", options=(_ROUNDS,)
            ),
        ),
        record="models.adaboost_r2.modelfile:RECORD",
    ),
)
