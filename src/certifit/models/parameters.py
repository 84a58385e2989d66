"""Checks of single parameters. What is not legal is refused with what was got and what is legal."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any


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
