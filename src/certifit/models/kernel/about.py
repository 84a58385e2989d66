"""Models of kernels."""

from __future__ import annotations

from certifit.data.roles import QUANTITY
from certifit.models.learner import (
    DERIVED,
    LARGEST,
    MEAN,
    ROWS_KEPT,
    Answer,
    Command,
    Keeps,
    Learner,
    Param,
    Simplicity,
    Told,
    Verb,
    Words,
    always,
    choice,
    count,
    is_whole,
    number,
)
from certifit.models.parameters import ALPHA, INTERCEPT, MAX_TIME, NO_INFERENCE, STANDARDIZE, TOL


def _kernel_ridge(told: Told) -> str:
    """Squares and the norm of a function."""
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    strength = "alpha" if alpha is None else f"{alpha:g}"
    of = f", k(x, z) = {told.kernel}" if told.kernel else ""
    columns = " of standardised columns" if told.params.get("standardize") else ""
    return f"minimised: {MEAN} (y_i - b - f(x_i))^2 / (2 {MEAN}) + {strength}/2 |f|^2{told.end}{of}{columns}"


def _kernel_lms(told: Told) -> str:
    """Steps on the sum of squares."""
    of = f", k(x, z) = {told.kernel}" if told.kernel else ""
    columns = " of standardised columns" if told.params.get("standardize") else ""
    how = "all rows at once" if told.params["updates"] == "batch" else "one row at a time"
    return f"stopped early: sum_i (y_i - f(x_i))^2 / 2 by steps of {how}{of}{columns}"


def _kernel_pca(told: Told) -> str:
    """Directions of largest variance in the feature space."""
    of = f", phi(x)'phi(z) = {told.kernel}" if told.kernel else ""
    columns = " of standardised columns" if told.params.get("standardize") else ""
    return f"maximised: trace V'AV over V'V = I, A = mean of (phi(x) - m)(phi(x) - m)'{of}{columns}"


_SOME = Param("a whole number >= 1", None, is_whole, lambda value: value >= 1, or_none=True)
_STORES = (ROWS_KEPT,)
_KERNEL = ("kernel", "encoder")
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
            stores=_STORES,
        ),
        {
            "alpha": number(None, most=1e100, is_above=True, or_none=True),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "n_landmarks": _SOME,
            "indefinite": choice("refuse", "refuse", "allow"),
            "tol": TOL,
            "max_iter": count(1000),
            "max_time": MAX_TIME,
            "random_state": count(0, least=0),
        },
        (*_KERNEL, "start"),
        verb=always(Verb.GATHER),
        keeps=Keeps.ALL_ROWS,
        sections=always(("similarity",)),
        commands=(
            Command(
                "kernel-ridge",
                "kernel ridge",
                "ridge regression in the space of a Gaussian kernel; the model keeps its rows",
                options=(ALPHA,),
                compared_for=(QUANTITY,),
                fixed={"standardize": True},
                tunes="alpha",
                simplicity=Simplicity.HOLDS_ROWS,
                work=lambda n_rows, n_columns: 1.0 * n_rows**3 + n_rows**2 * n_columns,
            ),
        ),
        record="models.kernel.modelfile:KERNEL_RIDGE",
    ),
    Learner(
        "kernel_lms",
        "models.kernel.lms:KernelLMS",
        _kernel_lms,
        Words(
            "kernel LMS",
            "squared error",
            f"{NO_INFERENCE}the model has no coefficients of columns.",
            is_squared=True,
            goal=DERIVED,
            stores=_STORES,
        ),
        {
            "step": number(None, most=1e100, is_above=True, or_none=True),
            "updates": choice("batch", "batch", "rows"),
            "standardize": STANDARDIZE,
            "max_iter": count(100),
            "max_time": MAX_TIME,
        },
        _KERNEL,
        verb=always(Verb.GATHER),
        keeps=Keeps.ALL_ROWS,
        sections=always(("similarity",)),
        record="models.kernel.modelfile:KERNEL_LMS",
    ),
    Learner(
        "kernel_pca",
        "models.kernel.pca:KernelPCA",
        _kernel_pca,
        Words("kernel principal components", "variance", goal=LARGEST, stores=_STORES),
        {
            "n_components": _SOME,
            "standardize": STANDARDIZE,
            "tol": TOL,
            "max_iter": count(100),
            "max_time": MAX_TIME,
            "random_state": count(0, least=0),
        },
        _KERNEL,
        always(Answer.NONE),
        verb=always(Verb.GATHER),
        keeps=Keeps.ALL_ROWS,
        record="models.kernel.modelfile:KERNEL_PCA",
    ),
)
