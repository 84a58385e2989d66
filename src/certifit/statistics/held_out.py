"""Validation rows of a split, one by one: what fits of several candidates made of rows that they did not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block


@dataclass(frozen=True)
class HeldOut:
    """The validation rows of one split, in the order of their numbers.

    numbers : global numbers of the rows
    weight : weight of each row times how often it validates
    y : target of each row, or the place of its class
    values : name -> candidates x rows
    """

    numbers: Array
    weight: Array
    y: Array
    values: Mapping[str, Array]

    @staticmethod
    def joined(parts: Sequence[HeldOut]) -> HeldOut:
        """The rows of consecutive runs."""
        numbers, weight, y = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("numbers", "weight", "y")
        )
        values = {name: np.concatenate([part.values[name] for part in parts], axis=1) for name in parts[0].values}
        return HeldOut(numbers, weight, y, values)


def validating(run: Block, splits: Splits, split: int) -> tuple[Array, Array]:
    """(flags of the rows of a run that validate a split, their weights times how often they do)."""
    times = splits.validated(run, split)
    weight = times if run.weight is None else times * run.weight
    return weight > 0, weight[weight > 0]


def numbers_where(run: Block, seen: Array) -> Array:
    """Global numbers of the flagged rows of a run."""
    return run.first_row + np.flatnonzero(seen)


def joined_candidates(parts: Sequence[HeldOut], order: Array) -> HeldOut:
    """The same rows of groups of candidates, one after the other in this order."""
    values = {name: np.concatenate([part.values[name] for part in parts])[order] for name in parts[0].values}
    return replace(parts[0], values=values)


def joined_by_split(parts: Sequence[Sequence[HeldOut]]) -> list[HeldOut]:
    """One entry per split, from lists of them run by run."""
    return [HeldOut.joined(of_split) for of_split in zip(*parts, strict=True)]
