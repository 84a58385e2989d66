"""Least squares, alone and with an L2 penalty."""

from __future__ import annotations

from certifit.models.about.shared import INTERCEPT, MAPS, STANDARDIZE, TOL
from certifit.models.learner import Learner, number
from certifit.models.objectives import SQUARES, Told


def _least_squares(told: Told) -> str:
    """Squares alone."""
    return f"{SQUARES}{told.end}"


def _ridge(told: Told) -> str:
    """Squares and an L2 penalty."""
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    return f"{SQUARES} + {strength}/2 {told.factor('sd^2')}|w|^2{told.end}"


ROWS = (
    Learner(
        "linear_regression",
        "models.linear:LinearRegression",
        _least_squares,
        {"fit_intercept": INTERCEPT, "tol": TOL},
        MAPS,
    ),
    Learner(
        "ridge",
        "models.linear:Ridge",
        _ridge,
        {"alpha": number(None, or_none=True), "fit_intercept": INTERCEPT, "standardize": STANDARDIZE, "tol": TOL},
        MAPS,
    ),
)
