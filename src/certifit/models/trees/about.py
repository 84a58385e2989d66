"""Decision trees."""

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
    Params,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    number,
)

_IMPURITIES = {
    "gini": "1 - sum_k p_k^2",
    "entropy": "-sum_k p_k log2 p_k",
    "squared_error": "mean of (y - mean)^2",
    "poisson": "mean of y log(y / mean)",
}
_OF_NUMBERS = ("squared_error", "poisson")


def _objective(told: Told) -> str:
    """What every split decreases, or what is minimised over all trees."""
    if told.params["search"] == "optimal":
        loss = "mean of (y - mean of the leaf)^2" if told.params["criterion"] in _OF_NUMBERS else "share of wrong rows"
        return f"minimised over all trees of depth {told.params['max_depth']} on a grid of thresholds: {loss}"
    impurity = _IMPURITIES[str(told.params["criterion"])]
    alpha = float(told.params["ccp_alpha"])
    cost = f"; then minimised over subtrees: impurity + {alpha:g} leaves" if alpha else ""
    return f"decreased by every split, greedily: sum over leaves of share x ({impurity}){cost}"


def _verb(params: Params) -> Verb:
    """A tree that tries all thresholds needs all values."""
    return Verb.GATHER if params["max_bins"] is None else Verb.PARTS


def _work(n_rows: int, n_columns: int) -> float:
    """Every column is sorted, and visited once per level."""
    return 13.0 * n_rows * n_columns * math.log2(n_rows + 2)


LEAVES = ("thresholds between values of rows, and the targets of leaves, of single rows too",)  # what its file stores
_STOPS = {
    "max_depth": replace(count(1), default=None, or_none=True),
    "min_samples_split": count(2, least=2),
    "min_samples_leaf": count(1),
    "min_impurity_decrease": number(0.0),
    "max_leaf_nodes": replace(count(2, least=2), default=None, or_none=True),
    "ccp_alpha": number(0.0),
    "search": choice("greedy", "greedy", "optimal"),
    "n_thresholds": count(32, 1, 254),
    "max_nodes": count(5000),
    "max_bins": replace(count(255, least=2, most=255), default=None, or_none=True),
}
_DEPTH = Option("max_depth", "N", "tree, regression-tree: most splits between root and leaf.", "max_depth", int)
_BINS = Option(
    "bins", "N", "tree, regression-tree: try thresholds between so many bins of a column, 2 to 255.", "max_bins", int
)
_LEAF = Option("min_leaf", "N", "tree, regression-tree: fewest different rows of a leaf.", "min_samples_leaf", int)
ROWS = (
    Learner(
        "decision_tree_classifier",
        "models.trees.model:DecisionTreeClassifier",
        _objective,
        Words("a decision tree ({criterion})", "impurity", goal=DERIVED, stores=LEAVES),
        {"criterion": choice("gini", "gini", "entropy"), **_STOPS},
        ("monotonic_cst", "categorical_features", "encoder"),
        always(Answer.CLASSES),
        _verb,
        sections=always(("splits", "tree")),
        commands=(
            Command(
                "tree",
                "decision tree",
                "a tree of questions about columns",
                goal=CLASSES,
                compared_for=(CLASSES,),
                options=(_DEPTH, _LEAF, _BINS),
                simplicity=Simplicity.ONE_TREE,
                work=_work,
            ),
        ),
        record="models.trees.modelfile:CLASSIFIER",
    ),
    Learner(
        "decision_tree_regressor",
        "models.trees.model:DecisionTreeRegressor",
        _objective,
        Words("a regression tree ({criterion})", "impurity", goal=DERIVED, stores=LEAVES, is_squared=False),
        {"criterion": choice("squared_error", "squared_error", "poisson"), **_STOPS},
        ("monotonic_cst", "categorical_features", "encoder"),
        verb=_verb,
        sections=always(("splits", "tree")),
        commands=(
            Command(
                "regression-tree",
                "regression tree",
                "a tree of questions about columns",
                compared_for=(QUANTITY,),
                options=(_DEPTH, _LEAF, _BINS),
                simplicity=Simplicity.ONE_TREE,
                work=_work,
            ),
        ),
        record="models.trees.modelfile:REGRESSOR",
    ),
)
