"""What a tree is told of its columns: which hold codes of levels, and along which its answers may not fall or rise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block
from certifit.models.learner import brief

MOST_LEVELS = 255  # codes 0 to 254

Categories = Sequence[int | str] | None
Directions = Sequence[int] | Mapping[str, int] | None


@dataclass(frozen=True)
class ColumnRules:
    """direction: per column 1 (never falls), -1 (never rises) or 0. n_levels: of a category; 0 where it is none."""

    direction: Array | None = None
    n_levels: Array | None = None

    @property
    def has_directions(self) -> bool:
        """Whether any column has a direction."""
        return self.direction is not None and bool(self.direction.any())


NO_RULES = ColumnRules()


class TableModel(Protocol):
    """A model of trees; encoder_ is there once it is fitted to a table."""

    categorical_features: Categories


def categories_of(model: TableModel) -> Categories:
    """The columns that a model splits by their levels: those it was told, and those that its encoder coded."""
    encoder = getattr(model, "encoder_", None)
    coded = [] if encoder is None else list(encoder.coded_)
    return [*(model.categorical_features or []), *coded] if coded else model.categorical_features


def column_rules(directions: Directions, categories: Categories, names: list[str]) -> ColumnRules:
    """What the user says of the columns, by their places."""
    direction = None if directions is None else _directions(directions, names)
    n_levels = None if categories is None else _categories(categories, names)
    if direction is not None and n_levels is not None:
        both = np.flatnonzero((direction != 0) & (n_levels != 0))
        if len(both):
            raise ValueError(
                f"Column {names[both[0]]!r} is a category and has a direction in monotonic_cst. Levels have no order: "
                "take it out of one of the two."
            )
    return ColumnRules(direction, n_levels)


def _directions(directions: Directions, names: list[str]) -> Array:
    legal = f"one of -1, 0, 1 for each of the {len(names)} columns"
    if isinstance(directions, Mapping):
        unknown = [name for name in directions if name not in names]
        if unknown:
            raise ValueError(f"monotonic_cst names {brief(unknown[0])}, which is no column.")
        directions = [directions.get(name, 0) for name in names]
    try:
        values = np.asarray(directions, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"monotonic_cst must be {legal}. Got {brief(directions)}.") from None
    if values.shape != (len(names),) or not np.isin(values, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must be {legal}. Got {brief(directions)}.")
    return values.astype(np.int8)


def _categories(categories: Categories, names: list[str]) -> Array:
    if isinstance(categories, str) or not isinstance(categories, Iterable):
        raise TypeError(f"categorical_features must list names or numbers of columns. Got {brief(categories)}.")
    n_levels = np.zeros(len(names), dtype=np.uint8)
    for column in categories:
        is_number = isinstance(column, int | np.integer) and not isinstance(column, bool | np.bool_)
        place = int(column) if is_number else names.index(column) if column in names else -1
        if not 0 <= place < len(names):
            raise ValueError(
                f"categorical_features names {brief(column)}, which is no column. Columns are {brief(names)}, by name "
                f"or by number from 0 to {len(names) - 1}."
            )
        n_levels[place] = 1
    return n_levels


def counted_levels(block: Block, rules: ColumnRules, names: list[str]) -> ColumnRules:
    """The rules with the number of levels of every category. A value that is no code is refused; a gap is legal."""
    if rules.n_levels is None:
        return rules
    n_levels = rules.n_levels.copy()
    for j in np.flatnonzero(n_levels):
        x = column_of(block, int(j))
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(~(np.isnan(x) | ((x >= 0) & (x < MOST_LEVELS) & (x == np.floor(x)))))
        if len(wrong):
            raise ValueError(
                f"Column {names[j]!r} is a category and must hold codes, whole numbers from 0 to {MOST_LEVELS - 1}. "
                f"Row {block.first_row + wrong[0]} does not. Number its levels from 0, and pool rare ones."
            )
        n_levels[j] = 1 + int(np.nanmax(x, initial=0.0))
    return ColumnRules(rules.direction, n_levels)


def column_of(block: Block, j: int) -> Array:
    """One column of a block as float64."""
    X = block.X
    return np.asarray((X if isinstance(X, np.ndarray) else dense_rows(X))[:, j], dtype=np.float64)


def levels_of(words: Array) -> list[int]:
    """The codes in a set of four words."""
    return [code for code in range(MOST_LEVELS) if int(words[code >> 6]) >> (code & 63) & 1]
