"""Least squares, alone and with an L2 penalty."""

from __future__ import annotations

from certifit.data.roles import QUANTITY
from certifit.models.learner import SQUARES, Command, Learner, Simplicity, Told, Words, always, number
from certifit.models.parameters import ALPHA, INTERCEPT, LINEAR, MAPS, SHRUNK, STANDARDIZE, STEPS, TOL


def _least_squares(told: Told) -> str:
    """Squares alone."""
    return f"{SQUARES}{told.end}"


def _ridge(told: Told) -> str:
    """Squares and an L2 penalty."""
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    return f"{SQUARES} + {strength}/2 {told.factor('sd^2')}|w|^2{told.end}"


_LEAST_SQUARES = Words("least squares", "squared error", is_squared=True)
_SECTIONS = always(("coefficients", "influence"))
ROWS = (
    Learner(
        "linear_regression",
        "models.least_squares.model:LinearRegression",
        _least_squares,
        _LEAST_SQUARES,
        {"fit_intercept": INTERCEPT, "tol": TOL, **STEPS},
        ("solver", "start", *MAPS),
        sections=_SECTIONS,
        exact="least_squares",
        commands=(
            Command(
                "linear",
                "least squares",
                "least squares, with p-values",
                compared_for=(QUANTITY,),
                simplicity=Simplicity.P_VALUES,
                selects=True,
            ),
        ),
        record="models.least_squares.modelfile:LEAST_SQUARES",
    ),
    Learner(
        "ridge",
        "models.least_squares.model:Ridge",
        _ridge,
        Words(
            "ridge regression (alpha = {alpha})",
            "penalised squared error",
            f"{SHRUNK}--model linear to have them.",
            is_squared=True,
            without_penalty=_LEAST_SQUARES,
            weaker=LINEAR,
        ),
        {
            "alpha": number(None, or_none=True),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "tol": TOL,
            **STEPS,
        },
        ("solver", "start", *MAPS),
        sections=_SECTIONS,
        exact="least_squares",
        commands=(
            Command(
                "ridge",
                "ridge",
                "with an L2 penalty, without p-values",
                compared_for=(QUANTITY,),
                options=(ALPHA,),
                fixed={"standardize": True},
                tunes="alpha",
                selects=True,
            ),
        ),
        record="models.least_squares.modelfile:RIDGE",
    ),
)
