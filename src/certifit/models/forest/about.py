"""Random forests."""

from __future__ import annotations

import math
from dataclasses import replace

from certifit.data.roles import CLASSES, QUANTITY
from certifit.models.learner import (
    DERIVED,
    Answer,
    Command,
    Learner,
    Option,
    Param,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    either,
    number,
)
from certifit.models.parameters import MAX_TIME
from certifit.models.trees.about import LEAVES


def _mean_of_trees(told: Told) -> str:
    """What each tree of the forest decreases."""
    return f"mean of {told.params['n_estimators']} trees on rows drawn with replacement, each grown greedily"


def _features(default: str | float) -> Param:
    legal = "'sqrt', 'log2', a whole number >= 1, or a share above 0 and at most 1"
    return either(
        legal,
        default,
        choice("sqrt", "sqrt", "log2"),
        count(1),
        number(1.0, most=1.0, is_above=True),
        or_none=True,
    )


def _work(n_rows: int, n_columns: float) -> float:
    """100 trees down to single rows; n_columns: that a split looks at."""
    return 800.0 * n_rows * n_columns * math.log2(n_rows + 2)


_GROWTH = {
    "max_depth": replace(count(1), default=None, or_none=True),
    "min_samples_split": count(2, least=2),
    "min_samples_leaf": count(1),
    "max_bins": count(255, least=2, most=255),
    "random_state": count(0, least=0, most=2**63 - 1),
    "max_time": MAX_TIME,
}
_TREES = Option("trees", "N", "forest, regression-forest: number of trees. Default: 100.", "n_estimators", int)
ROWS = (
    Learner(
        "random_forest_classifier",
        "models.forest.model:RandomForestClassifier",
        _mean_of_trees,
        Words("a random forest of {n_estimators} trees", "impurity", goal=DERIVED, stores=LEAVES),
        {"n_estimators": count(100, most=100_000), "max_features": _features("sqrt"), **_GROWTH},
        ("categorical_features", "encoder"),
        always(Answer.CLASSES),
        always(Verb.PARTS),
        sections=always(("splits", "forest")),
        commands=(
            Command(
                "forest",
                "random forest",
                "the mean of trees on drawn rows",
                goal=CLASSES,
                compared_for=(CLASSES,),
                options=(_TREES,),
                simplicity=Simplicity.MANY_PARTS,
                work=lambda n_rows, n_columns: _work(n_rows, math.sqrt(n_columns)),
            ),
        ),
        record="models.forest.modelfile:CLASSIFIER",
    ),
    Learner(
        "random_forest_regressor",
        "models.forest.model:RandomForestRegressor",
        _mean_of_trees,
        Words("a random forest of {n_estimators} trees", "squared error", goal=DERIVED, stores=LEAVES),
        {"n_estimators": count(100, most=100_000), "max_features": _features(1.0), **_GROWTH},
        ("categorical_features", "encoder"),
        verb=always(Verb.PARTS),
        sections=always(("splits", "forest")),
        commands=(
            Command(
                "regression-forest",
                "random forest",
                "the mean of trees on drawn rows",
                compared_for=(QUANTITY,),
                options=(_TREES,),
                simplicity=Simplicity.MANY_PARTS,
                work=_work,
            ),
        ),
        record="models.forest.modelfile:REGRESSOR",
    ),
)
