"""Checks of what a model file says: single values, closed records of them, arrays with symbolic shapes.

The vocabulary is in `models/record.py`. A record lists every legal key; a value that may be missing is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real

import numpy as np

from certifit.modelfile.canonical import INTEGER_BOUND
from certifit.modelfile.container import ModelFileError
from certifit.models.learner import Param
from certifit.models.record import COUNT, FLAG, TEXT, Array, Arrays, Check, Json, Metadata, OrNull, Problems, Spec

_SHARE = Check("a share above 0 and below 1", lambda value: type(value) is float and 0 < value < 1)
# Which rows of the table the fit set aside; only the file of such a fit has it.
HELD_OUT: Spec = {"share": _SHARE, "is_stratified": FLAG, "group": OrNull(TEXT), "random_state": COUNT}


def stored_spec(param: Param) -> Spec:
    """The legal values of a parameter as a file has them: flags, integers, floats and texts."""
    check = Check(param.legal, lambda value: type(value) in (bool, int, float, str) and param.is_legal(value))
    return OrNull(check) if param.or_none else check


def check(spec: Spec, value: Json, where: str) -> None:
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


def check_keys(spec: Mapping[str, Spec], value: Json, where: str) -> None:
    """Refuse anything but an object with exactly the keys of `spec`."""
    if not isinstance(value, dict):
        raise ModelFileError(f"{where} must be an object. Got {brief(value)}.")
    for key in sorted(spec.keys() ^ value.keys()):
        raise ModelFileError(
            f"{where} has no {key!a}." if key in spec else f"{where} has the unknown key {brief(key)}."
        )


def check_arrays(
    specs: Mapping[str, Array], sizes: Mapping[str, int], arrays: Arrays, metadata: Metadata | None = None
) -> None:
    """Refuse anything but exactly these arrays, of these shapes, with numbers that a model can have.

    metadata: what shapes that are functions read.
    """
    for name in sorted(specs.keys() ^ arrays.keys()):
        raise ModelFileError(
            f"the array '{name}' is missing." if name in specs else f"'{name}' is no array of this model."
        )
    known = dict(sizes)
    for name, spec in specs.items():
        array, symbols = arrays[name], spec.shape(metadata or {}) if callable(spec.shape) else spec.shape
        if array.ndim == len(symbols):
            known = dict(zip(symbols, array.shape, strict=True)) | known
        shape = tuple(int(symbol) if symbol.isdigit() else known.get(symbol, 0) for symbol in symbols)
        if array.dtype != spec.dtype or array.shape != shape:
            raise ModelFileError(
                f"the array '{name}' must be {spec.dtype} of shape {shape}. Got {array.dtype} of shape {array.shape}."
            )
        sound = ~np.isnan(array) if spec.may_be_infinite else np.isfinite(array)
        if not sound.all():
            raise ModelFileError(f"the array '{name}' holds NaN or infinity. The numbers of a model are finite.")


def refuse_any(problems: Problems) -> None:
    """Refuse content that contradicts itself: problems that are so."""
    for problem, is_so in problems.items():
        if is_so:
            raise ModelFileError(f"its content does not fit together: {problem}.")


def plain(value: object) -> Json:
    """A flag or a number as a plain Python value; anything else as it is."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral) and abs(int(value)) < INTEGER_BOUND:
        return int(value)
    return float(value) if isinstance(value, Real) else value


def brief(value: object) -> str:
    """A short, printable form of any value."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
