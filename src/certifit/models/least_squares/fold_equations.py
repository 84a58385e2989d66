"""Normal equations of every training set and Gram statistics of every validation set, from one pass over the rows.

A column with gaps is read with the mean of all rows in them, and 1 where one is: x + mean m. What a fit to the
training rows would fill in is x + (mean + delta) m, delta from the same sums: nothing leaks from validation rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.models.least_squares.normal_equations import NormalEquations
from certifit.statistics.cell_sums import Store
from certifit.statistics.gram import CellGrams, Gram, cell_grams, refuse_no_weight


@dataclass(frozen=True)
class Gaps:
    """Columns with gaps, the columns that mark them, what was filled in, and the columns that a model keeps."""

    columns: Array
    indicators: Array
    fills: Array
    kept: Array


class FoldEquations:
    """The systems of a list of splits. `names` are those of the columns that the model keeps.

    standardize: a penalty is one of weights times the spreads of their columns on the training rows of the split.
    shared: where the sums by cell are found that another model of the same columns has made.
    """

    def __init__(
        self,
        source: Source,
        rounds: Sequence[Splits],
        fit_intercept: bool,
        gaps: Gaps | None = None,
        standardize: bool = False,
        shared: Store | None = None,
    ) -> None:
        self.source, self._shared = source, shared
        self.standardize = standardize
        self.fit_intercept = fit_intercept
        self.gaps = gaps
        self.names = source.names if gaps is None else [source.names[j] for j in gaps.kept]
        self.rounds = list(rounds)
        self._places = [(r, s) for r, splits in enumerate(self.rounds) for s in range(splits.n_splits)]
        self._columns: Array | None = None
        self._kept: tuple[int, bool, tuple[Gram, Gram]] | None = None
        self._sums: dict[tuple[int, bool], CellGrams] = {}

    @property
    def n_splits(self) -> int:
        """Number of splits, all rounds."""
        return len(self._places)

    def pair(self, split: int, twofold: bool = False) -> tuple[Gram, Gram]:
        """Statistics of the training and the validation rows of a split; the last one is kept."""
        if self._kept is None or self._kept[:2] != (split, twofold):
            self._kept = (split, twofold, self._pair(split, twofold))
        return self._kept[2]

    def _pair(self, split: int, twofold: bool) -> tuple[Gram, Gram]:
        number, s = self._places[split]
        splits, cells = self.rounds[number], self._cells(number, twofold)
        train, validation = cells.combined(splits.train[s]), cells.combined(splits.validation[s])
        refuse_no_weight(train.sum_weight, f"The training rows of split {split + 1}")
        refuse_no_weight(validation.sum_weight, f"The validation rows of split {split + 1}")
        pair = (train, validation) if self.gaps is None else self._refilled(train, validation, self.gaps)
        return pair if self._columns is None else (pair[0].taken(self._columns), pair[1].taken(self._columns))

    def total(self) -> Gram:
        """The statistic of all rows of the first round, gaps filled with means of all rows."""
        cells = self._cells(0, False)
        total = cells.combined(np.ones(len(cells.sums)))
        return total if self.gaps is None else total.taken(self.gaps.kept)

    def least_rows(self) -> int:
        """Rows of the smallest training set, repeated ones counted once."""
        counts = [
            self._cells(r, False).n_rows[splits.train[s] > 0].sum()
            for r, splits in enumerate(self.rounds)
            for s in range(splits.n_splits)
        ]
        return int(min(counts))

    def taken(self, columns: Array, splits: Sequence[int] | None = None) -> FoldEquations:
        """The systems of some of the columns, and of some of the splits, from the same sums."""
        other = copy(self)
        if splits is not None:
            other._places = [self._places[split] for split in splits]
        other.names = [self.names[j] for j in columns]
        other._columns, other._kept = columns, None
        return other

    def equations(self, split: int, alpha: float | None, train: Gram | None = None) -> NormalEquations:
        """The system of the training rows of a split. alpha None means 1 / sum of their weights."""
        train = self.pair(split)[0] if train is None else train
        return NormalEquations(
            train, alpha, self.fit_intercept, lambda: self.pair(split, True)[0], self.names, self.standardize
        )

    def _cells(self, number: int, twofold: bool) -> CellGrams:
        """The sums of a round, made when first asked for."""
        key = (number, twofold)
        if key not in self._sums:
            cells = self.rounds[number].cells
            make = partial(cell_grams, self.source, cells, self.fit_intercept, twofold)
            n_bytes = 8 * (1 + twofold) * cells.n_cells * (self.source.n_features + 2) ** 2
            of_cells = ("cell Grams", self.fit_intercept, twofold)
            self._sums[key] = (
                make() if self._shared is None else self._shared.once((self.source, cells), of_cells, make, n_bytes)
            )
        return self._sums[key]

    def _refilled(self, train: Gram, validation: Gram, gaps: Gaps) -> tuple[Gram, Gram]:
        """Both statistics with gaps filled by means of the training rows."""
        delta = self._deltas(train, gaps)
        pair = (gram.sheared(gaps.columns, gaps.indicators, delta).taken(gaps.kept) for gram in (train, validation))
        return next(pair), next(pair)

    def fills(self, split: int) -> Array:
        """What a fit to the training rows of a split fills in, gap by gap."""
        if self.gaps is None:
            return np.zeros(0)
        number, s = self._places[split]
        train = self._cells(number, False).combined(self.rounds[number].train[s])
        return np.asarray(self.gaps.fills + self._deltas(train, self.gaps))

    def opened(self, split: int, coef: Array) -> Array:
        """Coefficients of the columns of `source` that predict as those of the model's columns, fits x columns, do.

        w_j (x_j + delta_j m_j) = w_j x_j + (w_j delta_j) m_j
        """
        if self.gaps is None:
            return coef
        every = np.zeros((len(coef), self.source.n_features))
        every[:, self.gaps.kept] = coef
        delta = self.fills(split) - self.gaps.fills
        np.add.at(every.T, self.gaps.indicators, (every[:, self.gaps.columns] * delta).T)  # columns may share one
        return every

    def _deltas(self, train: Gram, gaps: Gaps) -> Array:
        """Means of the training rows less what was filled in."""
        d, s, total = train.n_columns, train.scaling, train.sum_weight
        sums = train.sums[:d, d]
        marked = (sums[gaps.indicators] + s.shift[gaps.indicators] * total) / s.scale[gaps.indicators]
        present = total - marked
        # sum of (x - fill) over the rows, of which those with a gap give nothing
        above = (sums[gaps.columns] + s.shift[gaps.columns] * total) / s.scale[gaps.columns] - gaps.fills * total
        return np.divide(above, present, out=np.zeros(len(present)), where=present > 1e-12 * total)
