"""Models of kernels."""

from __future__ import annotations

from certifit.models.about import ALPHA, INTERCEPT, NO_INFERENCE, STANDARDIZE, TOL
from certifit.models.learner import (
    MEAN,
    Command,
    Keeps,
    Learner,
    Param,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    is_whole,
    number,
)


def _kernel_ridge(told: Told) -> str:
    """Squares and the norm of a function."""
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    of = f", k(x, z) = {told.kernel}" if told.kernel else ""
    columns = " of standardised columns" if told.params.get("standardize") else ""
    return f"minimised: {MEAN} (y_i - b - f(x_i))^2 / (2 {MEAN}) + {strength}/2 |f|^2{told.end}{of}{columns}"


_LANDMARKS = Param("a whole number >= 1", None, is_whole, lambda value: value >= 1, or_none=True)
ROWS = (
    Learner(
        "kernel_ridge",
        "models.kernel.model:KernelRidge",
        _kernel_ridge,
        Words(
            "kernel ridge regression (alpha = {alpha})",
            "penalised squared error",
            f"{NO_INFERENCE}the model has no coefficients of columns.",
            is_squared=True,
            stores=("the rows of the fit, which predictions are made of",),
        ),
        {
            "alpha": number(None, most=1e100, is_above=True, or_none=True),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "n_landmarks": _LANDMARKS,
            "indefinite": choice("refuse", "refuse", "allow"),
            "tol": TOL,
            "max_iter": count(1000),
            "random_state": count(0, least=0),
        },
        ("kernel", "encoder"),
        verb=always(Verb.GATHER),
        keeps=Keeps.ALL_ROWS,
        commands=(
            Command(
                "kernel-ridge",
                "kernel ridge",
                "ridge regression in the space of a Gaussian kernel; the model keeps its rows",
                options=(ALPHA,),
                fixed={"standardize": True},
                tunes="alpha",
            ),
        ),
        record="models.kernel.state:KERNEL_RIDGE",
    ),
)
