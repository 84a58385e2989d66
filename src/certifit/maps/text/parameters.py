"""Legal parameters of the map from texts to columns."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

_RULES = {"invalid": ("error", "replace"), "missing": ("error", "empty")}
_LARGEST = (1 << 31) - 1
_INTEGERS = {"min_length": _LARGEST, "max_features": _LARGEST, "n_hash": _LARGEST + 1}  # largest legal


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse what is not legal, by name."""
    for name in ("binary", "lowercase", "signed"):
        if not isinstance(given[name], bool | np.bool_):
            raise TypeError(f"{name} must be True or False. Got {given[name]!r}.")
    for name, legal in _RULES.items():
        if given[name] not in legal:
            raise ValueError(f"{name} must be {' or '.join(map(repr, legal))}. Got {given[name]!r}.")
    for name, largest in _INTEGERS.items():
        value = given[name]
        is_legal = _is_integer(value) and 1 <= value <= largest
        if not is_legal and not (value is None and name != "min_length"):
            raise ValueError(f"{name} must be an integer from 1 to {largest:,}. Got {value!r}.")
    _check_words(given["ngram_range"])
    for name in ("min_df", "max_df"):
        _check_limit(name, given[name])
    _check_hashing(given)


def _check_words(pair: Any) -> None:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(map(_is_integer, pair)):
        raise TypeError(f"ngram_range must be two integers. Got {pair!r}.")
    if not 1 <= pair[0] <= pair[1] < 1 << 16:
        raise ValueError(f"ngram_range must be 1 <= least <= most. Got {pair!r}.")


def _check_limit(name: str, value: Any) -> None:
    is_share = isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1
    if not is_share and not (_is_integer(value) and value >= 1):
        raise ValueError(f"{name} must be an integer >= 1 or a float in [0, 1]. Got {value!r}.")


def _check_hashing(given: Mapping[str, Any]) -> None:
    if given["n_hash"] is None:
        if given["signed"]:
            raise ValueError("signed=True needs n_hash: the columns of a vocabulary hold one term each.")
        return
    if given["signed"] and given["binary"]:
        raise ValueError("signed=True needs binary=False: whether a term occurs has no sign.")
    limits = (given["min_df"], given["max_df"], given["max_features"])
    if limits != (1, 1.0, None) or not _is_integer(given["min_df"]) or _is_integer(given["max_df"]):
        raise ValueError("min_df, max_df and max_features need a vocabulary, and n_hash learns none. Leave them out.")


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
