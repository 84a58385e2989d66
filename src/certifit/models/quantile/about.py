"""The pinball loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from certifit.models.learner import (
    MEAN,
    RESIDUAL,
    Command,
    Learner,
    Option,
    Param,
    Params,
    Told,
    Verb,
    Words,
    always,
    as_float,
    count,
    is_number,
    number,
)
from certifit.models.parameters import ALPHA, INTERCEPT, MAPS, MAX_TIME, NO_INFERENCE, STANDARDIZE, TOL

if TYPE_CHECKING:
    from certifit.models.metric import Metric


def _pinball(told: Told) -> str:
    """The loss of a quantile and an L1 penalty."""
    alpha, q = told.params["alpha"], float(told.params["quantile"])
    penalty = f" + {alpha:g} {told.factor('sd')}|w|_1" if alpha else ""
    loss = f"rho(r) = {q:g} r if r >= 0 else {q - 1:g} r"
    return f"minimised: {MEAN} rho({RESIDUAL}) / {MEAN}{penalty}{told.end}, {loss}"


def _pinball_loss(params: Params) -> Metric:
    from certifit.models.quantile.metric import PinballLoss

    return PinballLoss(float(params["quantile"]))


_QUANTILE = Option(
    "quantile", "Q", "quantile: the share of targets below it, above 0 and below 1. Default: 0.5.", "quantile"
)
ROWS = (
    Learner(
        "quantile_regressor",
        "models.quantile.model:QuantileRegressor",
        _pinball,
        Words(
            "quantile regression (quantile = {quantile})",
            "pinball loss",
            f"{NO_INFERENCE}standard errors of a quantile need the density of the noise at it. Refit on resampled rows "
            "(certifit.Bootstrap) to see how much a coefficient varies.",
            is_robust=True,
        ),
        {
            "quantile": Param("a number above 0 and below 1", 0.5, is_number, lambda value: 0 < as_float(value) < 1),
            "alpha": number(0.0),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "tol": TOL,
            "max_iter": count(200, most=1_000_000),
            "max_time": MAX_TIME,
        },
        ("start", *MAPS),
        verb=always(Verb.GATHER),
        sections=always(("coefficients",)),
        metric=_pinball_loss,
        commands=(
            Command(
                "quantile",
                "quantile",
                "the value that a share of the targets stays below",
                options=(ALPHA, _QUANTILE),
                fixed={"standardize": True},
            ),
        ),
        record="models.least_squares.modelfile:QUANTILE",
    ),
)
