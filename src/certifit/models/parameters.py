"""Checks of single parameters. What is not legal is refused with what was got and what is legal."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

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
    "probability": "Probabilities of a model of margins: cf.Calibrated(model).",
}


def refuse_elsewhere(cls: type, names: Iterable[str]) -> None:
    """Refuse parameters that other libraries have for the same models, with what to write in their place."""
    for name in names:
        if name in ELSEWHERE and name not in inspect.signature(cls).parameters:
            raise TypeError(f"{cls.__name__} has no parameter {name!r}. {ELSEWHERE[name]}")


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
