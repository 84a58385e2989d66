"""What is added or dropped as one: a column, or a group of columns that go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from certifit.data.roles import refuse_unknown
from certifit.data.user_types import UserLabels


@dataclass(frozen=True)
class Feature:
    """Columns of X that go together. columns: their places in X."""

    name: str
    columns: tuple[int, ...]


def features_of(names: Sequence[str], groups: UserLabels) -> list[Feature]:
    """One feature a group, one a column that is in no group, in the order of their first columns."""
    found = []
    owner: dict[int, str] = {}
    for name, given in _groups(names, groups):
        columns = sorted({place_of(one, names) for one in given})
        if not columns:
            raise ValueError(f"Group {name!r} has no columns.")
        for column in columns:
            if column in owner:
                raise ValueError(f"Column {names[column]!r} is in two groups, {owner[column]!r} and {name!r}.")
            owner[column] = name
        found.append(Feature(name, tuple(columns)))
    found += [Feature(name, (column,)) for column, name in enumerate(names) if column not in owner]
    found.sort(key=lambda feature: feature.columns)
    if repeated := sorted(name for name, count in Counter(one.name for one in found).items() if count > 1):
        raise ValueError(f"Groups and columns need names of their own. {repeated} stand for more than one.")
    return found


def fixed_of(features: Sequence[Feature], names: Sequence[str], fixed: Any) -> list[int]:
    """Places among the features of those that are always in; a column of a group stands for the group."""
    if isinstance(fixed, str) or not isinstance(fixed, Sequence | set | frozenset | np.ndarray):
        raise TypeError(f"fixed must be a list of names or places of columns. Got {fixed!r}.")
    by_name = {feature.name: at for at, feature in enumerate(features)}
    by_column = {column: at for at, feature in enumerate(features) for column in feature.columns}
    return sorted({by_name[one] if one in by_name else by_column[place_of(one, names)] for one in fixed})


def place_of(one: Any, names: Sequence[str]) -> int:
    """The place of a column given by its name or by its place."""
    if isinstance(one, Integral) and not isinstance(one, bool):
        if not 0 <= int(one) < len(names):
            raise ValueError(f"X has columns 0 to {len(names) - 1}. Got {one}.")
        return int(one)
    if not isinstance(one, str):
        raise TypeError(f"A column is given by its name or its place, a whole number. Got {one!r}.")
    refuse_unknown(one, list(names), "X")
    return list(names).index(one)


def _groups(names: Sequence[str], groups: UserLabels) -> list[tuple[str, list[Any]]]:
    """(name, columns as given); a group without a name is called by its columns."""
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return [(str(name), _members(given)) for name, given in groups.items()]
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise TypeError(
            f"groups must be a dict {{name: columns}} or a list of lists of columns. Got {type(groups).__name__}."
        )
    members = [_members(given) for given in groups]
    return [(" + ".join(names[place_of(one, names)] for one in given), given) for given in members]


def _members(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | Integral) else list(given)
