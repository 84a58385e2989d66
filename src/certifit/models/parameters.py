"""Parameters of models: checks of single values, and the ones that mean the same in several families.

What is not legal is refused with what was got and what is legal.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from numbers import Real
from typing import Any

from certifit.models.learner import Option, count, flag, number

# Parameters of the same models in other libraries -> how the same is said here.
ELSEWHERE: Mapping[str, str] = {
    "C": "The strength of a penalty is alpha, per row: cf.alpha_from_C(C, n) = 1 / (C n) for n rows.",
    "lambda_": "The strength of a penalty is alpha, the factor of the penalty beside the mean loss.",
    "penalty": "An L2 penalty is the default, penalty='l1' is l1_ratio=1, penalty=None is alpha=0; one of your own is "
    "GLM(family, penalty=cf.Penalty(...)).",
    "normalize": "Columns are put on one scale by standardize=True.",
    "positive": "Coefficients >= 0 are asked for by bounds=(0, np.inf).",
    "epsilon": "Where a loss turns from a square to a line is delta.",
    "n_jobs": "The number of threads is set once for all models: with cf.threads(n).",
    "multi_class": "Many classes are fitted by softmax; one model per class: cf.OneVsRestClassifier(model).",
    "cv": "Parameters are chosen on held-out rows by cf.CrossValidated(model, param_grid, cv=cv).",
    "random_state": "Nothing is drawn at random in its fit: the same rows give the same model.",
    "verbose": "Progress is shown by certifit.progress, or by history_ after the fit.",
    "probability": "Probabilities of a model of margins: cf.Calibrated(model).",
}


def refuse_elsewhere(cls: type, names: Iterable[str]) -> None:
    """Refuse parameters that a model does not have, with what to write in their place or those that it has."""
    legal = _parameters_of(cls)
    if legal is None:
        return
    for name in names:
        if name not in legal:
            said = ELSEWHERE.get(name, f"It has {', '.join(sorted(legal))}.")
            near = [] if name in ELSEWHERE else get_close_matches(name, legal, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise TypeError(f"{cls.__name__} has no parameter {name!r}. {hint}{said}")


@cache
def _parameters_of(cls: type) -> tuple[str, ...] | None:
    """Names of what a class is made with, found once: that takes a tenth of a small fit. None: any name."""
    parameters = inspect.signature(cls).parameters
    is_open = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if is_open else tuple(parameters)


def checked_range(estimator: object, param_name: str, param_range: object) -> list[object]:
    """The values of a parameter of an estimator that a curve is drawn along."""
    if not hasattr(estimator, "get_params"):
        raise TypeError(f"estimator must have get_params, as scikit-learn's have. Got {estimator!r}.")
    legal = estimator.get_params()
    if param_name not in legal:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter {param_name!r}. It has {', '.join(sorted(legal))}."
        )
    if isinstance(param_range, str) or not isinstance(param_range, Iterable):
        raise TypeError(f"param_range must be a list of values. Got {param_range!r}.")
    values = param_range.tolist() if hasattr(param_range, "tolist") else list(param_range)
    if not values:
        raise ValueError("param_range is empty. Give one value at least.")
    return values


def check_number(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number >= 0. Got {value!r}.")
    if not (math.isfinite(float(value)) and float(value) >= 0):
        raise ValueError(f"{name} must be a finite number >= 0. Got {value}.")


def check_choice(name: str, value: Any, legal: tuple[str, ...]) -> None:
    """Refuse what is not one of the legal words."""
    if not isinstance(value, str) or value not in legal:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, legal))}. Got {value!r}.")


MAPS = ("basis", "encoder")
PENALTY = ("penalty_factors", "bounds")
INTERCEPT, STANDARDIZE, TOL = flag(True), flag(False), number(1e-8)
MAX_TIME = replace(number(None, is_above=True, or_none=True), legal="a number of seconds above 0", is_left_out=True)
ALPHA = Option(
    "alpha",
    "A",
    "Strength of the penalty, on standardised columns. Default: the folds choose; for huber and quantile 0.",
    "alpha",
)
# Of models that a solver of the user's choice may fit; files of versions without them stay readable.
STEPS = {"max_iter": replace(count(1000), is_left_out=True), "max_time": MAX_TIME}
OFFSETS = ("offset", "exposure")
# Margins among models of probabilities: a map of them to chances, fitted to rows held out.
CALIBRATED: tuple[str, Mapping[str, object]] = ("calibrated", {"cv": 3})
NO_INFERENCE = "There are no p-values or intervals: "
SHRUNK = (
    f"{NO_INFERENCE}the penalty pulls coefficients towards zero on purpose, so the usual standard errors would be "
    "wrong. Fit with "
)
CLASS_SUMS = ("sums of the columns per class, of rare classes too",)  # what its file stores
LINEAR = "fit with --model linear"
