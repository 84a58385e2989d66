"""Huber's loss."""

from __future__ import annotations

from certifit.models.learner import (
    MEAN,
    RESIDUAL,
    Command,
    Learner,
    Option,
    Told,
    Words,
    always,
    choice,
    count,
    either,
    number,
)
from certifit.models.parameters import ALPHA, INTERCEPT, MAPS, MAX_TIME, NO_INFERENCE, STANDARDIZE, TOL


def _huber(told: Told) -> str:
    """Huber's loss, at a scale or with it."""
    alpha, delta, rule = told.params["alpha"], float(told.params["delta"]), told.params["scale"]
    penalty = f" + {alpha:g}/2 {told.factor('sd^2')}|w|^2" if alpha else ""
    loss = f"h(z) = z^2/2 if |z| <= {delta:g} else {delta:g} |z| - {delta * delta / 2:g}"
    if rule == "joint":
        joint = f"{MEAN} s h({RESIDUAL} / s) / {MEAN} + s/2{penalty} over w, b and s > 0"
        return f"minimised: {joint}{told.end}, {loss}"
    scale = str(rule) if told.scale is None else f"{told.scale:g}"
    return f"minimised: {MEAN} s^2 h({RESIDUAL} / s) / {MEAN}{penalty} at s = {scale}{told.end}, {loss}"


_DELTA = Option("delta", "D", "huber: residuals beyond so many scales are outliers. Default: 1.35.", "delta")
ROWS = (
    Learner(
        "huber_regressor",
        "models.huber.model:HuberRegressor",
        _huber,
        Words(
            "Huber regression (delta = {delta})",
            "Huber loss",
            f"{NO_INFERENCE}the usual standard errors hold for least squares, not for Huber's loss. Refit on resampled "
            "rows (certifit.Bootstrap) to see how much a coefficient varies.",
            is_robust=True,
        ),
        {
            "delta": number(1.35, least=1e-6, advice="Below it use a smaller scale."),
            "alpha": number(0.0),
            "scale": either(
                "'joint', 'mad' or a number from 1e-300 to 1e300",
                "joint",
                choice("joint", "joint", "mad"),
                number(None, 1e-300, 1e300),
            ),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "tol": TOL,
            "max_iter": count(100, most=1_000_000),
            "max_time": MAX_TIME,
        },
        ("solver", "start", *MAPS),
        sections=always(("coefficients", "influence", "outliers")),
        exact="huber",
        commands=(
            Command(
                "huber",
                "huber",
                "a large residual pulls no harder than one of delta scales",
                options=(ALPHA, _DELTA),
                fixed={"standardize": True},
            ),
        ),
        record="models.huber.modelfile:RECORD",
    ),
)
