"""Least squares with an L1 penalty, alone and mixed with an L2 penalty."""

from __future__ import annotations

from certifit.models.about.shared import INTERCEPT, MAPS, PENALTY, STANDARDIZE, TOL
from certifit.models.learner import Learner, count, number
from certifit.models.objectives import SQUARES, Told


def _lasso(told: Told) -> str:
    """Squares and an L1 penalty."""
    return f"{SQUARES} + {told.params['alpha']:g} {told.factor('sd')}|w|_1{told.end}"


def _elastic_net(told: Told) -> str:
    """Squares and both penalties."""
    ratio = float(told.params["l1_ratio"])
    mixed = f"({ratio:g} {told.factor('sd')}|w|_1 + {1 - ratio:g}/2 {told.factor('sd^2/sd_y')}|w|^2)"
    return f"{SQUARES} + {told.params['alpha']:g} {mixed}{told.end}"


_PARAMS = {
    "alpha": number(1.0),
    "fit_intercept": INTERCEPT,
    "standardize": STANDARDIZE,
    "tol": TOL,
    "max_iter": count(10_000),
}
ROWS = (
    Learner("lasso", "models.sparse:Lasso", _lasso, _PARAMS, (*PENALTY, *MAPS)),
    Learner(
        "elastic_net",
        "models.sparse:ElasticNet",
        _elastic_net,
        {**_PARAMS, "l1_ratio": number(0.5, most=1.0, is_above=True, advice="For 0 use Ridge.")},
        (*PENALTY, *MAPS),
    ),
)
