"""Least squares with an L1 penalty, alone and mixed with an L2 penalty."""

from __future__ import annotations

from dataclasses import replace

from certifit.data.roles import QUANTITY
from certifit.models.learner import SQUARES, Command, Learner, Option, Told, Words, always, count, number
from certifit.models.parameters import ALPHA, INTERCEPT, LINEAR, MAPS, MAX_TIME, NO_INFERENCE, PENALTY, STANDARDIZE, TOL


def _lasso(told: Told) -> str:
    """Squares and an L1 penalty."""
    return f"{SQUARES} + {told.params['alpha']:g} {told.factor('sd')}|w|_1{told.end}"


def _elastic_net(told: Told) -> str:
    """Squares and both penalties."""
    ratio = float(told.params["l1_ratio"])
    mixed = f"({ratio:g} {told.factor('sd')}|w|_1 + {1 - ratio:g}/2 {told.factor('sd^2')}|w|^2)"
    return f"{SQUARES} + {told.params['alpha']:g} {mixed}{told.end}"


_PARAMS = {
    "alpha": number(1.0),
    "fit_intercept": INTERCEPT,
    "standardize": STANDARDIZE,
    "tol": TOL,
    "max_iter": count(10_000),
    "max_time": MAX_TIME,
}
_CHOSEN = (
    f"{NO_INFERENCE}the penalty chose the columns and pulls their coefficients towards zero on purpose, so the usual "
    "standard errors would be wrong. Fit with --model linear to have them."
)
_WORDS = Words(
    "the lasso (alpha = {alpha})",
    "penalised squared error",
    _CHOSEN,
    is_squared=True,
    is_sparse=True,
    weaker=LINEAR,
)
_FOR = "lasso, elastic-net: "
_COLUMNS = (
    Option("increasing", "A,B", f"{_FOR}columns whose weight may not be negative."),
    Option("decreasing", "A,B", f"{_FOR}columns whose weight may not be positive."),
    Option("unpenalised", "A,B", f"{_FOR}columns that the penalty spares."),
)
_L1_RATIO = Option("l1_ratio", "R", "elastic-net: share of the L1 penalty, above 0 to 1. Default: 0.5.", "l1_ratio")
_SECTIONS = always(("coefficients", "influence", "path"))
ROWS = (
    Learner(
        "lasso",
        "models.lasso.model:Lasso",
        _lasso,
        _WORDS,
        _PARAMS,
        (*PENALTY, "solver", "start", *MAPS),
        sections=_SECTIONS,
        exact="sparse",
        commands=(
            Command(
                "lasso",
                "lasso",
                "with an L1 penalty, which leaves columns out; without p-values",
                compared_for=(QUANTITY,),
                options=(ALPHA, *_COLUMNS),
                fixed={"standardize": True},
                tunes="alpha",
                needs_folds=True,
            ),
        ),
        record="models.lasso.modelfile:RECORD",
    ),
    Learner(
        "elastic_net",
        "models.lasso.model:ElasticNet",
        _elastic_net,
        replace(_WORDS, name="the elastic net (alpha = {alpha}, l1_ratio = {l1_ratio})"),
        {**_PARAMS, "l1_ratio": number(0.5, most=1.0, is_above=True, advice="For 0 use Ridge.")},
        (*PENALTY, "solver", "start", *MAPS),
        sections=_SECTIONS,
        exact="sparse",
        commands=(
            Command(
                "elastic-net",
                "elastic net",
                "with both penalties",
                options=(_L1_RATIO, ALPHA, *_COLUMNS),
                fixed={"standardize": True},
                tunes="alpha",
                needs_folds=True,
            ),
        ),
        record="models.lasso.modelfile:RECORD",
    ),
)
