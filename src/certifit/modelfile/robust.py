"""Huber regression in a file: the scale of the residuals that its certificate speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certifit.modelfile.schema import Check, Spec, refuse_any

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
