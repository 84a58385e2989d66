"""The closed table of estimators: the only classes a model file can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.schema import FLAG, SETTING_FROM_0, OrNull, Spec, brief


@dataclass(frozen=True)
class Entry:
    """How a class is reached, and the legal values of its parameters (basis and encoder are stored apart)."""

    load_class: Callable[[], type[Any]]
    parameters: Mapping[str, Spec]


def _linear_regression() -> type[Any]:
    from certifit.models.linear import LinearRegression

    return LinearRegression


def _ridge() -> type[Any]:
    from certifit.models.linear import Ridge

    return Ridge


REGISTRY: Mapping[str, Entry] = {
    "linear_regression": Entry(_linear_regression, {"fit_intercept": FLAG, "tol": SETTING_FROM_0}),
    "ridge": Entry(_ridge, {"alpha": OrNull(SETTING_FROM_0), "fit_intercept": FLAG, "tol": SETTING_FROM_0}),
}


def entry_of(model: Any) -> tuple[str, Entry]:
    """The id and entry of a model's class; a subclass is another class."""
    for key, entry in REGISTRY.items():
        if type(model) is entry.load_class():
            return key, entry
    for inner in ("best_estimator_", "estimator_"):
        if hasattr(model, inner):
            raise ModelFileError(f"Save the model inside {type(model).__name__}: save(model.{inner}, path).")
    legal = ", ".join(entry.load_class().__name__ for entry in REGISTRY.values())
    raise ModelFileError(f"A model file holds one of {legal}. Got {brief(type(model).__qualname__)}.")


def entry_named(key: str) -> Entry:
    """The entry of an id read from a file."""
    if key not in REGISTRY:
        raise ModelFileError(
            f"it holds the estimator {brief(key)}, and this version knows {', '.join(REGISTRY)}. "
            "A newer certifit may read it."
        )
    return REGISTRY[key]
