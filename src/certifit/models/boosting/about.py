"""Gradient boosting."""

from __future__ import annotations

from dataclasses import replace

from certifit.data.roles import CLASSES, COUNTS, POSITIVE, QUANTITY
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
    choice,
    count,
    flag,
    number,
)
from certifit.models.parameters import MAX_TIME
from certifit.models.trees.about import LEAVES

_LOSSES = {
    "gaussian": "(y_i - z_i)^2 / 2",
    "poisson": "e^z_i - y_i z_i",
    "gamma": "y_i e^-z_i + z_i",
    "tweedie": "half the Tweedie deviance of y_i and e^z_i",
    "huber": "Huber's loss of y_i - z_i",
    "quantile": "pinball loss of y_i - z_i",
}


def _rounds(told: Told) -> str:
    """What every round lowers."""
    loss = _LOSSES.get(str(told.params.get("family")), "log loss of z_i")
    trees = f"{told.params['n_estimators']} rounds of trees, greedily"
    return f"lowered by {trees}: mean of {loss}, z_i = start + {told.params['learning_rate']:g} x sum of Newton leaves"


_GROWTH = {
    "n_estimators": count(100, most=100_000),
    "learning_rate": number(0.1, 0.0, 10.0, is_above=True),
    "growth": choice("leaf", "leaf", "depth"),
    "max_depth": replace(count(1), default=None, or_none=True),
    "max_leaf_nodes": replace(count(31, least=2), or_none=True),
    "min_samples_leaf": count(20),
    "l2": number(0.0),
    "max_bins": count(255, least=2, most=255),
    "subsample": number(1.0, 0.0, 1.0, is_above=True),
    "max_features": number(1.0, 0.0, 1.0, is_above=True),
    "early_stopping": flag(False),
    "validation_fraction": number(0.1, 0.0, 0.9, is_above=True),
    "n_iter_no_change": count(10),
    "warm_start": flag(False),
    "random_state": count(0, least=0, most=2**63 - 1),
    "max_time": MAX_TIME,
}
_N_ROUNDS = Option("rounds", "N", "boosting: number of rounds. Default: folds choose.", "n_estimators", int)
RATE = 0.05  # of the command line: 200 rounds of it lose 0.4 % less on held-out rows of adult than 100 of 0.1
_RATE = Option("learning_rate", "R", f"boosting: shrinks every step. Default: {RATE:g}.", "learning_rate", float)


ROUNDS = (10, 25, 50, 100, 200, 400)  # that folds choose from
FEWEST_ROUNDS = 200  # that folds try at least, however long a round takes
FOR_FEW_ROWS = 50  # that folds try at least, however few rows there are
SOME_ROWS = 620  # as few as fill all leaves of a tree, 31 of 20 rows
QUICK = 2.5e9  # nanoseconds of a fit, within which folds try more rounds
MOST_WORK = 8e9  # of a fit that auto makes ten times unasked: where a model of many trees is worth its minute


def _round(n_rows: int, n_columns: int) -> float:
    """Nanoseconds of a round: histograms of the rows and of the leaves, slopes and curvatures."""
    n_bins, n_leaves = min(255, n_rows), min(31.0, 1 + n_rows / 20)
    return n_columns * (3.0 * n_rows + 7.6 * n_bins * n_leaves) + 30.0 * n_rows


def rounds_tried(n_rows: int | None, n_columns: int, n_trees: int = 1) -> tuple[int, ...]:
    """The numbers of rounds that folds choose from: fewer where a round takes long, and none above that of the rows.

    n_rows: None where it is not known. n_trees: of a round.
    """
    n_rows = n_rows or SOME_ROWS
    most = min(max(FEWEST_ROUNDS, QUICK / (n_trees * _round(n_rows, n_columns))), max(n_rows, FOR_FEW_ROWS))
    return tuple(n_rounds for n_rounds in ROUNDS if n_rounds <= most)


def _work(n_rows: int, n_columns: int, n_trees: int = 1) -> float:
    """As many rounds as folds try, each of so many trees: one per class of more than two."""
    return rounds_tried(n_rows, n_columns, n_trees)[-1] * n_trees * _round(n_rows, n_columns)


def _command(name: str, goal: str, words: str = "", **fixed: str) -> Command:
    return Command(
        name,
        "gradient boosting",
        f"trees added round by round{words}",
        goal=goal,
        compared_for=(goal,),
        options=(_N_ROUNDS, _RATE),
        fixed={"learning_rate": RATE, **fixed},
        roles=("offset", "exposure") if fixed else (),
        tunes="rounds",
        simplicity=Simplicity.MANY_PARTS,
        work=_work,
        most_work=MOST_WORK,
        class_work=_work if goal == CLASSES else None,
    )


ROWS = (
    Learner(
        "gradient_boosting_classifier",
        "models.boosting.model:GradientBoostingClassifier",
        _rounds,
        Words("gradient boosting of {n_estimators} rounds", "log loss", goal=DERIVED, stores=LEAVES),
        _GROWTH,
        ("monotonic_cst", "categorical_features", "encoder"),
        always(Answer.CLASSES),
        always(Verb.PARTS),
        sections=always(("splits", "rounds")),
        commands=(_command("boosting", CLASSES),),
        record="models.boosting.modelfile:CLASSIFIER",
    ),
    Learner(
        "gradient_boosting_regressor",
        "models.boosting.model:GradientBoostingRegressor",
        _rounds,
        Words("gradient boosting of {n_estimators} rounds ({family})", "loss", goal=DERIVED, stores=LEAVES),
        {
            "family": choice("gaussian", *_LOSSES),
            "quantile": number(0.5, 0.0, 1.0, is_above=True),
            "delta": number(1.35, 0.0, is_above=True),
            "power": number(1.5, 1.0, 2.0, is_above=True),
            **_GROWTH,
        },
        ("monotonic_cst", "categorical_features", "encoder"),
        verb=always(Verb.PARTS),
        sections=always(("splits", "rounds")),
        commands=(
            _command("regression-boosting", QUANTITY),
            _command("poisson-boosting", COUNTS, " for counts", family="poisson"),
            _command("gamma-boosting", POSITIVE, " for positive quantities", family="gamma"),
        ),
        record="models.boosting.modelfile:REGRESSOR",
    ),
)
