"""Parts of records that several families have: the data of the fit, the history, a penalty, what is shown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from certifit.models.state import (
    COUNT_FROM_1,
    FLAG,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    TEXT,
    Array,
    Content,
    Field,
    Metadata,
    Model,
    Problems,
    Record,
    Setting,
    Shown,
    Spec,
    fields_at,
)

CLAIM: Mapping[str, Spec] = {
    "claim": TEXT,
    "rounding": MAGNITUDE,
    "theorem": TEXT,
    "tolerance": NUMBER_FROM_0,
    "value": MAGNITUDE,
}
# Only fits that treat columns as exact combinations of others have it.
LITERAL = {"literal": Field(MAGNITUDE, "certificate_.literal", is_left_out=True)}
ROWS = fields_at("data_.*", {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE})
TARGET = {"data": {**ROWS, **fields_at("data_.*", {"target_mean": NUMBER, "target_sd": MAGNITUDE})}}
HISTORY = ("objective", "gap", "step")


def history_array(model: Model) -> NDArray[np.float64]:
    """The history without its seconds, so that the same fit gives the same bytes."""
    rows = [[float(row[key]) for key in HISTORY] for row in model.history_]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(HISTORY))


def history_rows(
    array: NDArray[np.float64], numbers: list[int] | None = None, keys: tuple[str, ...] = HISTORY
) -> list[dict[str, float]]:
    """The history of a model: a row each, numbered from 1 where no numbers are stored."""
    numbers = list(range(1, len(array) + 1)) if numbers is None else numbers
    rows = array.reshape(len(array), len(keys)).tolist()
    return [
        {"iteration": i, **dict(zip(keys, row, strict=True)), "seconds": math.nan}
        for i, row in zip(numbers, rows, strict=True)
    ]


def fault_problems(content: Content) -> Iterator[Problems]:
    """A certificate that holds has no fault."""
    stored = content.metadata["certificate"]
    yield {"a fault and a proof": stored["fault"] and stored["value"] <= stored["tolerance"]}


def show_coefficients(content: Content) -> Shown:
    """The coefficients of one row of weights."""
    arrays, metadata = content.arrays, content.metadata
    facts = {**metadata["certificate"], **metadata.get("solution", {})}
    if arrays["coef"].ndim > 1 and len(arrays["coef"]) > 1:
        return {}
    weights = arrays["coef"].ravel()
    intercept = float(arrays["intercept"][0]) if "intercept" in arrays else facts.get("intercept", 0.0)
    shown = {
        "count": len(weights),
        "n_nonzero": int(np.count_nonzero(weights)),
        "intercept": intercept if content.parameters["fit_intercept"] else None,
        "rank": facts.get("rank", len(weights)),
        "condition": facts.get("condition"),
        "names": content.columns,
        "values": weights.tolist(),
    }
    return {"coefficients": shown}


def show_penalised(content: Content) -> Shown:
    """The strength of a penalty, and whether there are standard errors."""
    metadata = content.metadata
    has_errors = metadata.get("inference") is not None
    return {"model": {"alpha": metadata["solution"]["alpha"], "has_standard_errors": has_errors}}


def show_labels(content: Content) -> Shown:
    """The labels of the classes."""
    labels = [] if content.labels is None else content.labels.tolist()
    return {"classes": {"labels": labels, "dtype": content.metadata["labels"]["dtype"]}}


# Penalty factors and bounds: a number per column of the fit, or none at all. A model may name them by column; a file
# has them as arrays, which the models accept just as well.


def _factors(model: Model) -> NDArray[np.float64] | None:
    return None if model.penalty_factors is None else model._factors(model.column_names_)


def _bounds(model: Model) -> tuple[NDArray[np.float64], ...]:
    """Two arrays; none where there are no bounds."""
    return () if model.bounds is None else model._bounds(model.column_names_)


def _has_factors(metadata: Metadata) -> bool:
    return bool(metadata["penalty"]["has_factors"])


def _has_bounds(metadata: Metadata) -> bool:
    return bool(metadata["penalty"]["has_bounds"])


def _stored_bounds(content: Content) -> tuple[NDArray[np.float64], ...] | None:
    return (
        tuple(content.arrays[f"penalty.{end}"] for end in ("lower", "upper")) if _has_bounds(content.metadata) else None
    )


def _penalty_problems(content: Content) -> Iterator[Problems]:
    arrays = content.arrays
    coef, factors = arrays["coef"], arrays.get("penalty.factors", np.zeros(0))
    lower, upper = arrays.get("penalty.lower", -np.inf), arrays.get("penalty.upper", np.inf)
    yield {
        "a penalty factor below 0": (factors < 0).any(),
        "bounds without 0 between them": (np.greater(lower, 0) | np.less(upper, 0)).any(),
        "a coefficient outside its bounds": ((coef < lower) | (coef > upper)).any(),
    }


def _show_penalty(content: Content) -> Shown:
    """How many columns have a factor of their own, and how many have bounds."""
    arrays, none = content.arrays, np.zeros(1)
    factors = arrays.get("penalty.factors", np.ones(1))
    ends = (arrays.get("penalty.lower", none - np.inf), arrays.get("penalty.upper", none + np.inf))
    is_bounded = np.isfinite(ends[0]) | np.isfinite(ends[1])
    return {"model": {"n_factors": int((factors != 1).sum()), "n_bounded": int(is_bounded.sum())}}


def _bound_array(place: int) -> Array:
    """Infinite where there is no bound."""
    return Array(("p",), may_be_infinite=True, get=lambda model: _bounds(model)[place], when=_has_bounds)


PENALTY = Record(
    fields={
        "penalty": {
            "has_bounds": Field(FLAG, get=lambda model: model.bounds is not None),
            "has_factors": Field(FLAG, get=lambda model: model.penalty_factors is not None),
        }
    },
    arrays={
        "penalty.factors": Array(("p",), get=_factors, when=_has_factors),
        "penalty.lower": _bound_array(0),
        "penalty.upper": _bound_array(1),
    },
    settings={
        "penalty_factors": Setting(_factors, lambda content: content.arrays.get("penalty.factors")),
        "bounds": Setting(_bounds, _stored_bounds),
    },
    checks=(_penalty_problems,),
    shown=(_show_penalty,),
    told=(lambda metadata: {key: metadata["penalty"][key] for key in ("has_factors", "has_bounds")},),
)
PENALISED = Record(told=(lambda metadata: {"alpha": metadata["solution"]["alpha"]},), shown=(show_penalised,))
LABELLED = Record(
    has_labels=True, told=(lambda metadata: {"n_classes": metadata["labels"]["count"]},), shown=(show_labels,)
)
TARGET_NAME = {"target": Field(TEXT, "target_name_")}
LENGTH_OF_HISTORY = Field(COUNT_FROM_1, get=lambda model: len(model.history_))
ITERATIONS = Array(("m",), "int64", get=lambda model: [int(row["iteration"]) for row in model.history_])
