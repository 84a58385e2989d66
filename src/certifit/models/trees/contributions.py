"""How much each column of a row moves what trees say of it.

    score(x) = base + sum_j contribution_j(x)

contribution_j is the Shapley value of column j in the game whose players are columns: v(S) is what the tree says of x
where columns outside S are not known, so that their nodes send x down both sides, by the shares of the weight of the
training rows that went there (the path-dependent form). base = v(no column) is the mean of the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.data.user_input import UserRows
from certifit.models.estimator import TaskEstimator
from certifit.runtime import core, n_threads


@dataclass(frozen=True)
class Contributions:
    """What columns add to the scores of rows: base + values.sum(axis=1) is the score.

    names: of the columns. values: rows x columns, or rows x columns x classes where a row has several scores. base: the
    score of the average training row, a number or one per class. what: the score is.
    """

    names: tuple[str, ...]
    values: Array
    base: float | Array
    what: str

    def of_row(self, row: int, most: int = 10) -> str:
        """One row in words: the columns that move its score most, largest first. Of rows with one score."""
        if self.values.ndim != 2:
            raise ValueError("of_row needs one score per row. Choose a class: values[:, :, k].")
        values = self.values[row]
        order = [int(j) for j in np.argsort(-np.abs(values), kind="stable") if values[j]]
        lines = [f"{self.what} {float(self.base) + values.sum():.4g} = {float(self.base):.4g} on average"]
        lines += [f"  {values[j]:+.4g}  {self.names[j]}" for j in order[:most]]
        if len(order) > most:
            lines.append(f"  {values[order[most:]].sum():+.4g}  {len(order) - most} other columns")
        return "\n".join(lines)


@dataclass(frozen=True)
class WeightedTrees:
    """Trees end to end, with the weight of every node and what it says: one number, or one per class."""

    ends: Array
    feature: Array
    left: Array
    threshold: Array
    is_missing_left: Array
    n_levels: Array | None
    sets: Array | None
    weight: Array
    values: Array
    width: int

    def of_columns(self, columns: Block) -> tuple[Array, Array]:
        """Contributions, rows x columns x scores; and what the trees say on average."""
        parts = (self.ends, self.feature, self.left, self.threshold, self.is_missing_left, self.n_levels, self.sets)
        contributions, mean = core.tree_contributions(
            columns.rows, *parts, self.weight, self.values, self.width, n_threads()
        )
        return np.asarray(contributions), np.asarray(mean)


def contributions_of(
    model: TaskEstimator[Any, Any], trees: WeightedTrees, X: UserRows, start: float | Array, what: str
) -> Contributions:
    """What the columns of a fitted model add to the scores of rows. start: a score that trees are added to."""
    check_is_fitted(model)
    names = tuple(model.column_names_)

    def of_block(block: Block) -> Array:
        columns = replace(block, X=model.columns_of(block), y=None, weight=None)
        return trees.of_columns(columns)[0]

    mean = trees.of_columns(Block(np.zeros((0, len(names))), None, None))[1] + start
    values = np.concatenate([np.zeros((0, len(names), trees.width)), *model._each(X, of_block)])
    if not np.isfinite(values).all():
        raise ValueError("A contribution leaves the range of float64.")
    return (
        Contributions(names, values[:, :, 0], float(mean[0]), what)
        if trees.width == 1
        else Contributions(names, values, mean, what)
    )
