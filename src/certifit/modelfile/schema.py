"""What a model file may say: checks of single values, closed records of them, arrays with symbolic shapes.

A record lists every legal key and none is optional; a value that may be missing is null.
The tables of the estimators are in `registry` and `linear`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.modelfile.canonical import INTEGER_BOUND
from certifit.modelfile.disk import ModelFileError
from certifit.models.learner import Param


@dataclass(frozen=True)
class Check:
    """One value: `legal` completes the sentence "x must be ..."."""

    legal: str
    accepts: Callable[[Any], bool]


@dataclass(frozen=True)
class OrNull:
    """Null, or what `spec` says."""

    spec: Spec


Spec = Check | OrNull | Mapping[str, "Spec"]


@dataclass(frozen=True)
class Array:
    """An array whose sizes have names, such as ("p", "d"); never NaN, and finite unless said otherwise."""

    shape: tuple[str, ...]
    dtype: type[np.generic] = np.float64
    may_be_infinite: bool = False


def _is_float(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _is_setting(value: Any) -> bool:
    return type(value) is int or _is_float(value)


FLAG = Check("true or false", lambda value: type(value) is bool)
INTEGER = Check("an integer", lambda value: type(value) is int)
COUNT = Check("an integer >= 0", lambda value: type(value) is int and value >= 0)
COUNT_FROM_1 = Check("an integer >= 1", lambda value: type(value) is int and value >= 1)
NUMBER = Check("a finite float", _is_float)
NUMBER_FROM_0 = Check("a finite float >= 0", lambda value: _is_float(value) and value >= 0)
# The condition of a singular matrix is infinite, and so may be a sum of squares far from 1.
MAGNITUDE = Check("a float >= 0, or infinity", lambda value: type(value) is float and value >= 0)
SETTING_FROM_0 = Check("a finite number >= 0", lambda value: _is_setting(value) and value >= 0)
SHARE = Check("a number above 0 and at most 1", lambda value: _is_setting(value) and 0 < value <= 1)
TEXT = Check("a text", lambda value: isinstance(value, str))
VERSION = Check(
    "a version such as '0.1.0'",
    lambda value: isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", value) is not None,
)
TEXTS = Check(
    "a list of texts",
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
)


def stored(param: Param) -> Spec:
    """The legal values of a parameter as a file has them: flags, integers, floats and texts."""
    check = Check(param.legal, lambda value: type(value) in (bool, int, float, str) and param.is_legal(value))
    return OrNull(check) if param.or_none else check


def one_of(*values: str) -> Check:
    """A text out of a closed list."""
    return Check("one of " + ", ".join(map(repr, values)), lambda value: isinstance(value, str) and value in values)


def with_literal(spec: Mapping[str, Spec], metadata: Mapping[str, Any]) -> dict[str, Spec]:
    """The spec of a certificate, with `literal` where the file has it: only fits that treat columns as exact do."""
    stored = metadata.get("certificate")
    return {**spec, "literal": MAGNITUDE} if isinstance(stored, dict) and "literal" in stored else dict(spec)


def dump_literal(literal: float | None) -> dict[str, float]:
    """The key that `with_literal` reads, where there is something to say."""
    return {} if literal is None else {"literal": float(literal)}


def check(spec: Spec, value: Any, where: str) -> None:
    """Refuse a value that its spec does not allow."""
    if isinstance(spec, OrNull):
        if value is not None:
            check(spec.spec, value, where)
    elif isinstance(spec, Check):
        if not spec.accepts(value):
            raise ModelFileError(f"{where} must be {spec.legal}. Got {brief(value)}.")
    else:
        check_keys(spec, value, where)
        for key, part in spec.items():
            check(part, value[key], f"{where}.{key}")


def check_keys(spec: Mapping[str, Any], value: Any, where: str) -> None:
    """Refuse anything but an object with exactly the keys of `spec`."""
    if not isinstance(value, dict):
        raise ModelFileError(f"{where} must be an object. Got {brief(value)}.")
    for key in sorted(spec.keys() ^ value.keys()):
        raise ModelFileError(
            f"{where} has no {key!a}." if key in spec else f"{where} has the unknown key {brief(key)}."
        )


def check_arrays(specs: Mapping[str, Array], sizes: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse anything but exactly these arrays, of these shapes, with numbers that a model can have."""
    for name in sorted(specs.keys() ^ arrays.keys()):
        raise ModelFileError(
            f"the array '{name}' is missing." if name in specs else f"'{name}' is no array of this model."
        )
    for name, spec in specs.items():
        array = arrays[name]
        shape = tuple(sizes[symbol] for symbol in spec.shape)
        if array.dtype != spec.dtype or array.shape != shape:
            raise ModelFileError(
                f"the array '{name}' must be {np.dtype(spec.dtype)} of shape {shape}. "
                f"Got {array.dtype} of shape {array.shape}."
            )
        sound = ~np.isnan(array) if spec.may_be_infinite else np.isfinite(array)
        if not sound.all():
            raise ModelFileError(f"the array '{name}' holds NaN or infinity. The numbers of a model are finite.")


def refuse_any(problems: Mapping[str, Any]) -> None:
    """Refuse content that contradicts itself: problems that are so."""
    for problem, is_so in problems.items():
        if is_so:
            raise ModelFileError(f"its content does not fit together: {problem}.")


def plain(value: Any) -> Any:
    """A flag or a number as a plain Python value; anything else as it is."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral) and abs(int(value)) < INTEGER_BOUND:
        return int(value)
    return float(value) if isinstance(value, Real) else value


def brief(value: Any) -> str:
    """A short, printable form of any value."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
