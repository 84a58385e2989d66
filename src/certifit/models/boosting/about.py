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
_RATE = Option("learning_rate", "R", "boosting: shrinks every step.", "learning_rate", float)


def _work(n_rows: int, n_columns: int) -> float:
    """400 rounds, each with histograms of the rows and of the leaves."""
    return 400.0 * (n_columns * (6.0 * n_rows + 60_000.0) + 60.0 * n_rows)


def _command(name: str, goal: str, words: str = "", **fixed: str) -> Command:
    return Command(
        name,
        "gradient boosting",
        f"trees added round by round{words}",
        goal=goal,
        compared_for=(goal,),
        options=(_N_ROUNDS, _RATE),
        fixed=fixed,
        roles=("offset", "exposure") if fixed else (),
        tunes="rounds",
        simplicity=Simplicity.MANY_PARTS,
        work=_work,
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
        always(Verb.BINS),
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
        verb=always(Verb.BINS),
        sections=always(("splits", "rounds")),
        commands=(
            _command("regression-boosting", QUANTITY),
            _command("poisson-boosting", COUNTS, " for counts", family="poisson"),
            _command("gamma-boosting", POSITIVE, " for positive quantities", family="gamma"),
        ),
        record="models.boosting.modelfile:REGRESSOR",
    ),
)
