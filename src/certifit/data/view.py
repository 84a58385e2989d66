"""What is read of a row beside its features: the target, in one of four ways, and the columns that have a role.

`Roles` say which column of a table plays which part.

Offsets: what is added to the score b + x'w of a row, before any weight is fitted.

An exposure e > 0 (time at risk, people asked) adds log e: with a log link the mean is e exp(b + x'w), and y stays a
count. Offset and exposure add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from enum import Enum
from itertools import combinations
from numbers import Number
from typing import Any

import numpy as np

from certifit.data.columns import Array, plain_numbers
from certifit.data.labels import is_missing
from certifit.data.privacy import are_names, cell


@dataclass(frozen=True)
class Roles:
    """Columns that are no features: the name of each, None where there is none."""

    target: str | None = None
    weight: str | None = None
    group: str | None = None
    offset: str | None = None
    exposure: str | None = None

    def named(self) -> dict[str, Any]:
        """Those that there are."""
        return {role: name for role, name in asdict(self).items() if name is not None}

    def columns(self) -> list[str]:
        """Their names."""
        return list(self.named().values())


def features(names: Sequence[str], roles: Roles, columns: Sequence[str] | None, where: str) -> list[str]:
    """The feature columns, in order: the given ones, or all without another role. Every name is checked."""
    if repeated := repeated_names(names):
        raise ValueError(f"{where} has more than one column named {repeated}. Rename them.")
    taken, known = roles.columns(), set(names)
    chosen = [name for name in names if name not in taken] if columns is None else list(columns)
    for name in [*taken, *chosen]:
        if name not in known:
            refuse_unknown(name, names, where)
    for role, name in roles.named().items():
        if name in chosen:
            raise ValueError(f"{name!r} cannot be a feature and the {role} at once.")
    for (a, name), (b, other) in combinations(roles.named().items(), 2):
        if name == other:
            raise ValueError(f"{name!r} cannot be the {a} and the {b} at once.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns names a column twice: {chosen}.")
    if not chosen:
        raise ValueError(f"{where} has no feature columns beside {taken}.")
    return chosen


def repeated_names(names: Sequence[str]) -> list[str]:
    """Names that occur more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def refuse_unknown(name: str, names: Sequence[str], where: str) -> None:
    """Raise unless `name` is one of `names`."""
    if name in names:
        return
    same = [other for other in names if other.lower() == str(name).lower()]
    near = same or get_close_matches(str(name), list(names) if are_names(names) else [], n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"{where} has no column {name!r}.{hint} {listed(names)}")


def listed(names: Sequence[str]) -> str:
    """Which columns there are, in a message; not where they may be cells of a row, and cells are not shown."""
    if not are_names(names):
        n_columns = f"{len(names)} column{'' if len(names) == 1 else 's'}"
        return f"It has {n_columns}, and its first line may be a row instead of names: --show-values prints it."
    return f"Its columns are {', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}."


NO_CLASS = -1.0  # the code of a label that no class has


class Target(Enum):
    """How the target is read."""

    NUMBER = "number"  # y is float64
    CODES = "codes"  # y is the place of a row's label among the sorted classes
    RAW = "raw"  # as it is stored, of any type; rows of a table then have no other column, and no offset
    NONE = "none"  # not at all


@dataclass(frozen=True, eq=False)
class View:
    """Which target a fit reads, and the names of target, weight, group, offset and exposure; None where there is none.

    classes: the sorted labels of Target.CODES.
    """

    roles: Roles
    target: Target
    classes: Array | None = None

    @staticmethod
    def of(roles: Roles) -> View:
        """A target that is read as a number, where the rows have one."""
        return View(roles, Target.NONE if roles.target is None else Target.NUMBER)

    @property
    def has_target(self) -> bool:
        """Whether blocks have a y."""
        return self.target in (Target.NUMBER, Target.CODES)

    @property
    def has_offset(self) -> bool:
        """Whether blocks have an offset."""
        return self.roles.offset is not None or self.roles.exposure is not None

    @property
    def beside(self) -> Roles:
        """The columns that are read beside the features."""
        return self.roles if self.has_target else replace(self.roles, target=None)

    def reading(self, target: Target, classes: Array | None = None) -> View:
        """The same rows with their target read in another way; rows without a target stay without one."""
        if self.roles.target is None and target is Target.RAW:
            raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
        if self.roles.target is None:
            return self
        roles = replace(self.roles, offset=None, exposure=None) if target is Target.RAW else self.roles
        return View(roles, target, classes)


def code_places(numbers: Array, classes: Array) -> Array:
    """The place of every number among the sorted classes as float64, NO_CLASS where it is none of them."""
    classes = classes.astype(np.float64)
    places = np.searchsorted(classes, numbers).clip(max=len(classes) - 1)
    return np.where(classes[places] == numbers, places, NO_CLASS)


def checked_offset(offset: Any, exposure: Any, n_rows: int) -> Array | None:
    """offset + log exposure of rows in memory, one number per row each; None where neither is given."""
    row_offset = None if offset is None else _numbers(offset, "offset", n_rows)
    times = None if exposure is None else _numbers(exposure, "exposure", n_rows)
    if times is not None:
        refuse_no_exposure(times, "exposure", "row {}".format)
    return added(row_offset, times)


def added(offset: Array | None, exposure: Array | None) -> Array | None:
    """offset + log exposure; either may be None."""
    if exposure is None:
        return offset
    return np.log(exposure) if offset is None else offset + np.log(exposure)


def refuse_no_exposure(exposure: Array, name: str, place: Callable[[int], str]) -> None:
    """Refuse a row whose exposure is not above 0, saying where it stands."""
    if (exposure > 0).all():
        return
    at = int(np.flatnonzero(~(exposure > 0))[0])
    raise ValueError(f"{name} must be > 0. It is {cell(exposure[at])} at {place(at)}. Remove rows without exposure.")


def _numbers(values: Any, name: str, n_rows: int) -> Array:
    """One finite number per row as float64."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost. Drop the masked rows.")
    numbers = np.full(n_rows, values) if isinstance(values, Number) else np.asarray(values)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one number per row. Got {numbers.ndim} dimensions.")
    if len(numbers) != n_rows:
        raise ValueError(f"{name} has {len(numbers)} entries but X has {n_rows} rows.")
    if numbers.dtype.kind == "O":
        numbers = _of_objects(numbers, name)
    if numbers.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers. Got dtype {numbers.dtype}.")
    numbers = plain_numbers(numbers)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"{name} must be finite. It is {numbers[row]:g} at row {row}. Remove such rows.")
    return numbers


def _of_objects(values: Array, name: str) -> Array:
    """Python numbers as an array of numbers; what is missing becomes NaN."""
    items = values.tolist()
    for row, item in enumerate(items):
        if not is_missing(item) and (not isinstance(item, Number) or isinstance(item, complex)):
            raise TypeError(f"{name} must be numbers. It is {cell(repr(item))} at row {row}.")
    return np.array([np.nan if is_missing(item) else float(item) for item in items])
