"""Support vector machines."""

from __future__ import annotations

from dataclasses import replace

from certifit.data.roles import CLASSES
from certifit.models.learner import (
    MEAN,
    SUPPORT_KEPT,
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
    number,
)
from certifit.models.parameters import ALPHA, CALIBRATED, INTERCEPT, MAX_TIME, NO_INFERENCE, STANDARDIZE

_NO_COEFFICIENTS = f"{NO_INFERENCE}the model has no coefficients of columns."
ALPHAS = number(None, 1e-100, 1e100, or_none=True)
TOL = number(1e-4)
STEPS = count(10_000_000)
CACHE = number(200.0, is_above=True, most=1e9)
MULTI_CLASS = choice("one-vs-one", "one-vs-one", "one-vs-rest")


def _strength(told: Told) -> str:
    alpha = told.params["alpha"] if told.alpha is None else told.alpha
    return "alpha" if alpha is None else f"{alpha:g}"


def _kernel(told: Told) -> str:
    of = f", k(x, z) = {told.kernel}" if told.kernel else ""
    return of + (" of standardised columns" if told.params.get("standardize") else "")


def _svc(told: Told) -> str:
    """The hinge loss and the norm of a function."""
    how = str(told.params["multi_class"]).replace("-", " ")
    several = "" if told.n_classes == 2 else f"; classes {how}"
    return (
        f"minimised: {MEAN} max(0, 1 - y_i (b + f(x_i))) / {MEAN} + {_strength(told)}/2 |f|^2"
        f"{told.end}{_kernel(told)}{several}"
    )


def _svr(told: Told) -> str:
    """Errors beyond epsilon and the norm of a function."""
    epsilon = told.params["epsilon"]
    return (
        f"minimised: {MEAN} max(0, |y_i - b - f(x_i)| - {epsilon:g}) / {MEAN} + {_strength(told)}/2 |f|^2"
        f"{told.end}{_kernel(told)}"
    )


def _hard(told: Told) -> str:
    """The widest margin."""
    if told.alpha is not None:
        return _svc(replace(told, params={**told.params, "alpha": None, "multi_class": "one-vs-one"}))
    return f"minimised: |f|^2 / 2 subject to y_i (b + f(x_i)) >= 1{told.end}{_kernel(told)}"


def _work(n_rows: int, n_columns: int) -> float:
    """Of calibrated fits with all alphas: passes of Python, then rows of the kernel."""
    return 1.5e8 + 3e5 * n_rows + (60.0 + 5.0 * n_columns) * n_rows**2


_KERNEL: tuple[str, ...] = ("kernel", "encoder")
_SOLVED: dict[str, Param] = {"cache_size": CACHE, "tol": TOL, "max_iter": STEPS, "max_time": MAX_TIME}
ROWS = (
    Learner(
        "svc",
        "models.svm.model:SVC",
        _svc,
        Words(
            "a support vector machine (alpha = {alpha})",
            "penalised hinge loss",
            _NO_COEFFICIENTS,
            stores=(SUPPORT_KEPT,),
        ),
        {
            "alpha": ALPHAS,
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "multi_class": MULTI_CLASS,
            "solver": choice("working-set", "working-set", "smo"),
            **_SOLVED,
        },
        ("class_weight", *_KERNEL),
        always(Answer.MARGINS),
        always(Verb.GATHER),
        Keeps.SUPPORT_VECTORS,
        commands=(
            Command(
                "svm",
                "support vector machine",
                "a wide margin in the space of a Gaussian kernel; no probabilities, it is scored by the share of right "
                "rows; keeps support vectors",
                goal=CLASSES,
                compared_for=(CLASSES,),
                options=(ALPHA,),
                fixed={"standardize": True},
                tunes="alpha",
                simplicity=Simplicity.HOLDS_ROWS,
                work=_work,
                most_work=1e9,
                compared_in=CALIBRATED,
            ),
        ),
        record="models.svm.modelfile:SVC",
    ),
    Learner(
        "svr",
        "models.svm.regression:SVR",
        _svr,
        Words(
            "support vector regression (alpha = {alpha}, epsilon = {epsilon})",
            "penalised error beyond epsilon",
            _NO_COEFFICIENTS,
            is_robust=True,
            stores=(SUPPORT_KEPT,),
        ),
        {
            "alpha": ALPHAS,
            "epsilon": number(0.1),
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            **_SOLVED,
        },
        _KERNEL,
        verb=always(Verb.GATHER),
        keeps=Keeps.SUPPORT_VECTORS,
        commands=(
            Command(
                "svr",
                "support vector regression",
                "a function within epsilon of the target, in the space of a Gaussian kernel; keeps support vectors",
                options=(ALPHA,),
                fixed={"standardize": True},
                tunes="alpha",
            ),
        ),
        record="models.svm.modelfile:SVR",
    ),
    Learner(
        "hard_margin_svc",
        "models.svm.hard:HardMarginSVC",
        _hard,
        Words(
            "a hard-margin support vector machine",
            "|f|^2 / 2",
            _NO_COEFFICIENTS,
            stores=(SUPPORT_KEPT,),
        ),
        {
            "fit_intercept": INTERCEPT,
            "standardize": STANDARDIZE,
            "not_separable": choice("raise", "raise", "warn"),
            **_SOLVED,
        },
        _KERNEL,
        always(Answer.MARGINS),
        always(Verb.GATHER),
        Keeps.SUPPORT_VECTORS,
        record="models.svm.modelfile:HARD_MARGIN",
    ),
)
