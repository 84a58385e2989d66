"""Huber regression in a file: its parameters, and the scale of the residuals that its certificate speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certifit.modelfile.schema import FLAG, SETTING_FROM_0, Check, Spec, refuse_any

LEAST_DELTA = 1e-6
SCALES = (1e-300, 1e300)
MOST_STEPS = 1_000_000


def _is_number(value: Any, low: float, high: float) -> bool:
    return type(value) in (int, float) and low <= value <= high


PARAMETERS: Mapping[str, Spec] = {
    "alpha": SETTING_FROM_0,
    "delta": Check("a finite number >= 1e-6", lambda value: SETTING_FROM_0.accepts(value) and value >= LEAST_DELTA),
    "fit_intercept": FLAG,
    "max_iter": Check(
        f"an integer from 1 to {MOST_STEPS}", lambda value: type(value) is int and 1 <= value <= MOST_STEPS
    ),
    "scale": Check(
        "'joint', 'mad' or a number from 1e-300 to 1e300",
        lambda value: value in ("joint", "mad") if isinstance(value, str) else _is_number(value, *SCALES),
    ),
    "tol": SETTING_FROM_0,
}
ROBUST: Mapping[str, Spec] = {
    "scale": Check("a finite float > 0", lambda value: type(value) is float and 0 < value < float("inf"))
}
Record = dict[str, Any]


def dump_robust(model: Any) -> Record | None:
    """The record of a model with a scale; None for others."""
    return {"scale": float(model.scale_)} if hasattr(model, "scale_") else None


def check_robust(metadata: Record) -> None:
    """Refuse a scale that is not the one asked for, a delta without a joint scale, standard errors."""
    asked, delta = metadata["parameters"]["scale"], metadata["parameters"]["delta"]
    found = metadata["robust"]["scale"]
    problems = {
        f"scale {asked!r} asked and {found!r} used": not isinstance(asked, str) and float(asked) != found,
        f"delta {delta!r} with a joint scale": asked == "joint" and not delta > 1,
        "standard errors under Huber's loss": metadata["inference"] is not None,
    }
    refuse_any(problems)
