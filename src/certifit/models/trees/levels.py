"""Categories of trees in a file: how many levels each has, and the set of levels that each of its splits sends left.

room: what the names of the arrays of the trees begin with.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.file_checks import Floats
from certifit.models.record import Content, Model, Problems, Setting
from certifit.models.trees.columns import categories_of, column_rules, levels_of


def stored_levels(content: Content, room: str) -> dict[str, Floats]:
    """Levels and sets as a state takes them; nothing where no column is a category."""
    if f"{room}.n_levels" not in content.arrays:
        return {}
    return {"n_levels": content.arrays[f"{room}.n_levels"], "sets": content.arrays[f"{room}.sets"].view(np.uint64)}


def set_problems(content: Content, room: str) -> Iterator[Problems]:
    """Sets of levels of which some belong to no node, or hold codes that the category has not."""
    arrays, levels = content.arrays, stored_levels(content, room)
    if not levels:
        return
    n_levels, sets = levels["n_levels"], levels["sets"]
    inner = np.flatnonzero(arrays[f"{room}.left"])
    nodes = inner[n_levels[arrays[f"{room}.feature"][inner]] > 0]
    numbers = arrays[f"{room}.threshold"][nodes]
    yield {"sets of levels that are not those of its nodes": not np.array_equal(np.sort(numbers), np.arange(len(sets)))}
    most = n_levels[arrays[f"{room}.feature"][nodes]].astype(np.int64)
    used = sets[numbers.astype(np.int64)]
    yield {
        "a set with a level that its category has not": any(
            max(levels_of(words), default=0) >= count for words, count in zip(used, most, strict=True)
        )
    }


def asked_categories(model: Model) -> object:
    """The places of the columns that are categories; None where none is asked for."""
    n_levels = column_rules(None, categories_of(model), list(model.column_names_)).n_levels
    return None if n_levels is None else [int(place) for place in np.flatnonzero(n_levels)]


def categories_setting(room: str) -> Setting:
    """categorical_features in a file: the columns that have levels."""

    def stored(content: Content) -> object:
        levels = content.arrays.get(f"{room}.n_levels")
        return None if levels is None else [int(place) for place in np.flatnonzero(levels)]

    return Setting(asked_categories, stored)
