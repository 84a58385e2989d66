"""Checks of single parameters. What is not legal is refused with what was got and what is legal."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number >= 0. Got {value!r}.")
    if not (math.isfinite(float(value)) and float(value) >= 0):
        raise ValueError(f"{name} must be a finite number >= 0. Got {value}.")


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False. Got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Refuse what is not a whole number, or one below the least."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number >= {least}. Got {value!r}.")


def check_choice(name: str, value: Any, legal: tuple[str, ...]) -> None:
    """Refuse what is not one of the legal words."""
    if not isinstance(value, str) or value not in legal:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, legal))}. Got {value!r}.")
