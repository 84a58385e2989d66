"""What Lasso and ElasticNet have beside the others: penalty factors and bounds, and a history with gaps.

Factors and bounds are one number a column of the fit, or none at all.

A model may name them by column; a file has them as arrays, which the models accept just as well.

    penalty.factors   f_j >= 0, finite
    penalty.lower     l_j <= 0, -infinity where there is no bound
    penalty.upper     u_j >= 0, infinity where there is no bound
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.schema import FLAG, Array, Check, Spec, refuse_any

ITERATIONS = Check(
    "a list of integers from 0 on, each above the one before",
    lambda value: (
        isinstance(value, list)
        and all(type(number) is int for number in value)
        and all(low < high for low, high in zip([-1, *value], value, strict=False))
    ),
)
PENALTY: Mapping[str, Spec] = {"has_bounds": FLAG, "has_factors": FLAG, "iterations": ITERATIONS}
FACTORS = {"penalty.factors": Array(("p",))}
BOUNDS = {
    "penalty.lower": Array(("p",), may_be_infinite=True),
    "penalty.upper": Array(("p",), may_be_infinite=True),
}

Arrays = dict[str, NDArray[Any]]
Record = dict[str, Any]


def settings(model: Any) -> dict[str, Any]:
    """Factors and bounds as arrays over the columns of the fit, None where there are none; {} for other models."""
    if not hasattr(model, "penalty_factors"):
        return {}
    names = model.column_names_
    try:
        return {
            "penalty_factors": None if model.penalty_factors is None else model._factors(names),
            "bounds": None if model.bounds is None else model._bounds(names),
        }
    except (TypeError, ValueError) as error:  # changed after the fit: the model says what is legal
        raise ModelFileError(str(error)) from None


def dump_penalty(model: Any) -> tuple[Record | None, Arrays]:
    """Record and arrays; no record for a model that has no such parameters."""
    found = settings(model)
    if not found:
        return None, {}
    factors, bounds = found["penalty_factors"], found["bounds"]
    arrays = {} if factors is None else {"penalty.factors": factors}
    if bounds is not None:
        arrays |= {"penalty.lower": bounds[0], "penalty.upper": bounds[1]}
    record = {
        "has_bounds": bounds is not None,
        "has_factors": factors is not None,
        "iterations": [int(row["iteration"]) for row in model.history_],
    }
    return record, arrays


def penalty_arrays(record: Record | None) -> dict[str, Array]:
    """The arrays that a checked record announces."""
    if record is None:
        return {}
    return {**(FACTORS if record["has_factors"] else {}), **(BOUNDS if record["has_bounds"] else {})}


def check_penalty(arrays: Arrays) -> None:
    """Refuse a negative factor, bounds without 0 between them, a coefficient outside its bounds."""
    coef = arrays["coef"]
    factors = arrays.get("penalty.factors", np.zeros(0))
    lower, upper = arrays.get("penalty.lower", -np.inf), arrays.get("penalty.upper", np.inf)
    problems = {
        "a penalty factor below 0": (factors < 0).any(),
        "bounds without 0 between them": (np.greater(lower, 0) | np.less(upper, 0)).any(),
        "a coefficient outside its bounds": ((coef < lower) | (coef > upper)).any(),
    }
    refuse_any(problems)


def build_penalty(record: Record | None, arrays: Arrays) -> dict[str, Any]:
    """The parameters `penalty_factors` and `bounds`; {} for a model that has none."""
    if record is None:
        return {}
    ends = (arrays.get("penalty.lower"), arrays.get("penalty.upper"))
    return {"penalty_factors": arrays.get("penalty.factors"), "bounds": ends if record["has_bounds"] else None}


def describe_penalty(arrays: Arrays) -> dict[str, int]:
    """How many columns have a factor of their own, and how many have bounds."""
    factors, none = arrays.get("penalty.factors", np.ones(1)), np.zeros(1)
    ends = (arrays.get("penalty.lower", none - np.inf), arrays.get("penalty.upper", none + np.inf))
    is_bounded = np.isfinite(ends[0]) | np.isfinite(ends[1])
    return {"n_factors": int((factors != 1).sum()), "n_bounded": int(is_bounded.sum())}
