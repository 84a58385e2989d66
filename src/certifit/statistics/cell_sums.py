"""Sums and squares of every column by cell: class moments of a diagonal model, and counts.

weight_c = sum_i w_i,  sums_cj = sum_i w_i z_ij,  squares_cj = sum_i w_i z_ij^2  over the rows i of cell c,
z = x scale - shift_c with scales that are powers of two; for counts z = x, or 1 where x > threshold and else 0.
`JointCounts` are counts of pairs of a discrete column and a discrete target.

`Store`: where statistics that several models need are asked for, and made once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from certifit.data.cells import Cells
from certifit.data.columns import Array, Codes, Columns, dense_rows
from certifit.data.source import Block, Source, is_sparse
from certifit.data.user_input import refuse_nonfinite
from certifit.runtime import check_memory, core, n_threads
from certifit.statistics.gram import Scaling, summed

MOST_CANCELLED = 1e4  # a mean square this many times the variance costs the variance four digits
_UNIT = 2.0**-53
_SUM_ERROR = 128 * _UNIT  # relative error of a sum
_DENSE_COLUMNS = 32  # sparse rows of so few columns are read as dense ones


@dataclass(frozen=True)
class CellMoments:
    """Weights, sums and squares of every cell about its shift, in scaled units."""

    weight: Array  # cells, in units of 1 / weight_scale
    sums: Array  # cells x columns
    squares: Array
    shift: Array  # cells x columns, in scaled units
    scaling: Scaling
    n_rows: Array

    def __add__(self, other: CellMoments) -> CellMoments:
        sums, squares = self.sums + other.sums, self.squares + other.squares
        return replace(
            self, weight=self.weight + other.weight, sums=sums, squares=squares, n_rows=self.n_rows + other.n_rows
        )

    def merged(self, other: CellMoments) -> CellMoments:
        """Of the rows of both, which may have other shifts: Chan's formula, about the means of both.

        Means are rounded, as a model file holds them: what those of a constant column then differ by is no variance.
        """
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
        first, second = self._away() + self.shift, other._away() + other.shift
        step = np.where(other.weight[:, None] > 0, second - first, 0.0)
        shift = np.where(self.weight[:, None] > 0, first + share * step, second)
        squares = self.scatter() + other.scatter() + step * step * share * self.weight[:, None]
        squares = np.where(squares > weight[:, None] * (16 * _UNIT * np.abs(shift)) ** 2, squares, 0.0)
        return CellMoments(weight, np.zeros_like(shift), squares, shift, self.scaling, self.n_rows + other.n_rows)

    def combined(self, times: Array) -> CellMoments:
        """Moments of unions of cells, about their means: union u holds cell c times[u, c] times. Nothing cancels."""
        held = times * self.weight
        weight = held.sum(axis=1)
        start = self.shift[np.argmax(held, axis=1)]  # of the heaviest cell of each union
        scatter, away, squares = self.scatter(), np.zeros_like(start), np.zeros_like(start)
        for u, cell_weights in enumerate(held):
            centres = self._centres(start[u])
            away[u] = cell_weights @ centres / (weight[u] if weight[u] > 0 else 1.0)
            squares[u] = times[u] @ scatter + cell_weights @ (centres - away[u]) ** 2
        return self._about(start, away, weight, squares, (times > 0) @ self.n_rows)

    def _about(self, start: Array, away: Array, weight: Array, scatter: Array, n_rows: Array) -> CellMoments:
        """Of scatter about the means start + away: the shift is the mean, the sums are what its rounding leaves."""
        shift = start + away
        left = away - (shift - start)
        return CellMoments(
            weight, weight[:, None] * left, scatter + weight[:, None] * left * left, shift, self.scaling, n_rows
        )

    def _centres(self, start: Array) -> Array:
        """Means of the cells less `start`: an offset that all shifts share costs no digits."""
        return np.asarray((self.shift - start) + self._away())

    @property
    def means(self) -> Array:
        """Mean of every cell in the user's units."""
        return (self._away() + self.shift) / self.scaling.scale

    @property
    def variances(self) -> Array:
        """Mean square about the mean, in the user's units; what is within rounding of 0 is 0."""
        with np.errstate(over="ignore", under="ignore"):
            return self.scatter() / self._divisor() / self.scaling.scale / self.scaling.scale

    def spreads(self, centred: bool) -> Array:
        """Standard deviations of every cell, root mean squares where not centred; 1 for what does not vary."""
        scatter = self.scatter()
        if not centred:
            scatter = scatter + self._divisor() * (self._away() + self.shift) ** 2
        return np.asarray(np.where(scatter > 0, np.sqrt(scatter / self._divisor()) / self.scaling.scale, 1.0))

    def varies(self) -> Array:
        """Whether a column varies within a cell, beyond rounding."""
        return np.asarray(self.scatter() > 0)

    @property
    def weights(self) -> Array:
        """Sum of weights of every cell in the user's units."""
        return self.weight / self.scaling.weight_scale

    def total_variances(self) -> Array:
        """Of every column over all cells, in the user's units."""
        total = self.weight.sum()
        share = (self.weight / total)[:, None]
        centres = self._centres(self.shift[np.argmax(self.weight)])
        spread = (share * (centres - (share * centres).sum(axis=0)) ** 2).sum(axis=0)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray((self.scatter().sum(axis=0) / total + spread) / self.scaling.scale / self.scaling.scale)

    def cancelled(self) -> Array:
        """Columns whose shifts lie so far from means that variances lose more than four digits."""
        return np.asarray(self.lost().any(axis=0))

    def lost(self) -> Array:
        """The same by cell."""
        return np.asarray(self._divisor() * self._away() ** 2 > MOST_CANCELLED * self.scatter())

    def _divisor(self) -> Array:
        return np.where(self.weight > 0, self.weight, 1.0)[:, None]

    def _away(self) -> Array:
        return np.asarray(self.sums / self._divisor())

    def scatter(self) -> Array:
        """Sums of w (z - mean of the cell)^2; what is within rounding of 0 is 0."""
        scatter = self.squares - self.sums * self._away()
        return np.where(scatter > _SUM_ERROR * self.squares, scatter, 0.0)


def cell_moments(source: Source, cells: Cells, scaling: Scaling | None = None) -> CellMoments:
    """Moments of every cell: one pass, a second one about the cells' means where the first cancels too much.

    A third one is about the heaviest row of each cell, where columns vary by less than their means are rounded, or not
    at all: the latter have squares of exactly 0.
    """
    _check_table(source, cells, 3)
    if scaling is None:
        moments: CellMoments = summed(source, True, False, partial(_of_stretch, cells=cells))
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            moments = source.reduce(
                partial(_of_stretch, cells=cells, scaling=scaling, twofold=False, block_rows=source.block_rows)
            )
        refuse_overflow(source, moments.sums, moments.squares)
    is_shifted = ~_thin_columns(source.first_block())
    if not moments.cancelled()[is_shifted].any():
        return moments
    again = partial(_of_stretch, cells=cells, scaling=moments.scaling, twofold=False, block_rows=source.block_rows)
    shift = np.where(is_shifted, moments.means * moments.scaling.scale, 0.0)
    about: CellMoments = source.reduce(partial(again, shift=shift))
    if not about.cancelled()[is_shifted].any():
        return about
    heaviest: _Heaviest = source.reduce(partial(_Heaviest.of, cells=cells))
    lost = about.lost() & is_shifted & (heaviest.weight > 0)[:, None]
    return source.reduce(partial(again, shift=np.where(lost, heaviest.rows * moments.scaling.scale, shift)))


def _check_table(source: Source, cells: Cells, n_tables: int) -> None:
    """Refuse sums of cells x columns that are beyond the limit of memory: a table per thread, and the result."""
    k, d = cells.n_cells, source.n_features
    n_bytes = 8.0 * n_tables * k * d * (n_threads() + 1)
    check_memory(n_bytes, f"A table of {k:,} classes x {d:,} columns", "Use fewer classes or fewer columns.")


@dataclass(frozen=True)
class _Heaviest:
    """The heaviest row of every cell, the first of equals."""

    weight: Array  # cells; 0 for one without rows
    rows: Array  # cells x columns

    @staticmethod
    def of(stretch: Block, cells: Cells) -> _Heaviest:
        weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight
        numbers = cells.of(stretch)
        most, rows = np.zeros(cells.n_cells), np.zeros((cells.n_cells, stretch.X.shape[1]))
        for c in range(cells.n_cells):
            members = np.flatnonzero(numbers == c)
            if len(members):
                i = int(members[np.argmax(weight[members])])
                most[c], rows[c] = weight[i], dense_rows(stretch.part(i, i + 1).X)[0]
        return _Heaviest(most, rows)

    def __add__(self, other: _Heaviest) -> _Heaviest:
        is_less = self.weight < other.weight
        return _Heaviest(
            np.where(is_less, other.weight, self.weight), np.where(is_less[:, None], other.rows, self.rows)
        )


def _of_stretch(
    stretch: Block, cells: Cells, scaling: Scaling, twofold: bool, block_rows: int, shift: Array | None = None
) -> CellMoments:
    about = np.tile(scaling.shift, (cells.n_cells, 1)) if shift is None else shift
    numbers = cells.of(stretch)
    arguments = (stretch.rows, stretch.weight, numbers, scaling.scale, about, scaling.weight_scale, True, None)
    weight, sums, squares, _, _ = core.cell_sums(*arguments, block_rows, n_threads())
    n_rows = np.bincount(numbers[numbers >= 0], minlength=cells.n_cells)
    return CellMoments(weight, sums, squares, about, scaling, n_rows)


@dataclass(frozen=True)
class CellCounts:
    """Weight of every cell, and what its rows hold of every column."""

    weight: Array
    counts: Array  # cells x columns
    lowest: float  # smallest entry where some are negative, else 0
    is_finite: bool
    n_rows: Array

    def __add__(self, other: CellCounts) -> CellCounts:
        return CellCounts(
            self.weight + other.weight,
            self.counts + other.counts,
            min(self.lowest, other.lowest),
            self.is_finite and other.is_finite,
            self.n_rows + other.n_rows,
        )

    def combined(self, times: Array) -> CellCounts:
        """Counts of unions of cells: union u holds cell c times[u, c] times."""
        n_rows = (times > 0) @ self.n_rows
        return CellCounts(times @ self.weight, times @ self.counts, self.lowest, self.is_finite, n_rows)


def cell_counts(source: Source, cells: Cells, threshold: float | None = None) -> CellCounts:
    """Sums of x, or of (x > threshold), by cell: one pass."""
    _check_table(source, cells, 1)
    first = source.first_block()
    if threshold is not None and threshold < 0 and is_sparse(first.X):
        raise ValueError(f"binarize must be >= 0 for sparse X, or all that is not stored counts. Got {threshold}.")
    if sp.issparse(first.X):
        # A block's sums are cells x columns, however few entries its rows have: blocks of more rows for more sums.
        n_rows = max(source.block_rows, 1 << min(17, (cells.n_cells * source.n_features // 4).bit_length()))
        source = source.blocked(n_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        total = source.reduce(partial(_counts, cells=cells, threshold=threshold, block_rows=source.block_rows))
    if not total.is_finite:
        refuse_nonfinite(source)
    refuse_overflow(source, total.counts)
    return total


def absent_weights(source: Source, cells: Cells, threshold: float | None) -> Array:
    """Weight of the rows of every cell that have 0, or no more than the threshold, in every column; cells x columns.

    Weights are cut into slices of so few bits that sums of them are exact: sums of all rows less those of the rows that
    have the column lose nothing, slice by slice. As many passes as the weights need slices.
    """
    weights = source.reduce(_Weights.of)
    bits = 52 - max(int(weights.n_rows).bit_length(), 1)
    total = np.zeros((cells.n_cells, source.n_features))
    top = int(np.frexp(weights.largest)[1])
    while weights.smallest > 0 and top > np.frexp(weights.smallest)[1] - 54:
        part = source.reduce(
            partial(_counts, cells=cells, threshold=threshold, block_rows=source.block_rows, bits=(top, top - bits))
        )
        total += part.weight[:, None] - part.counts
        top -= bits
    return total


@dataclass(frozen=True)
class _Weights:
    """Rows, and their largest and smallest weight above 0."""

    n_rows: int
    largest: float
    smallest: float

    @staticmethod
    def of(stretch: Block) -> _Weights:
        weight = np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight[stretch.weight > 0]
        return _Weights(stretch.n_rows, float(weight.max(initial=0.0)), float(weight.min(initial=np.inf)))

    def __add__(self, other: _Weights) -> _Weights:
        most, least = max(self.largest, other.largest), min(self.smallest, other.smallest)
        return _Weights(self.n_rows + other.n_rows, most, least)


def _slice(weight: Array, top: int, bottom: int) -> Array:
    """The bits of the weights from 2^top down to 2^bottom."""

    def above(power: int) -> Array:
        cut = np.ldexp(1.0, min(max(power, -1074), 1023))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(weight / cut >= 2.0**53, weight, np.floor(weight / cut) * cut)

    return above(bottom) - above(top)


def _counts(
    stretch: Block, cells: Cells, threshold: float | None, block_rows: int, bits: tuple[int, int] | None = None
) -> CellCounts:
    if bits is not None:
        stretch = replace(
            stretch, weight=_slice(np.ones(stretch.n_rows) if stretch.weight is None else stretch.weight, *bits)
        )
    d = stretch.X.shape[1]
    scales = (np.ones(d), np.zeros((cells.n_cells, d)), 1.0)
    numbers = cells.of(stretch)
    arguments = (stretch.rows, stretch.weight, numbers, *scales, False, threshold)
    weight, sums, _, lowest, is_finite = core.cell_sums(*arguments, block_rows, n_threads())
    n_rows = np.bincount(numbers[numbers >= 0], minlength=cells.n_cells)
    return CellCounts(weight, sums, lowest, is_finite, n_rows)


def refuse_overflow(source: Source, *sums: Array) -> None:
    """Raise where sums are not finite, naming the entry, or that X is too large."""
    if all(np.isfinite(total).all() for total in sums):
        return
    refuse_nonfinite(source)
    raise ValueError("Sums of X leave the range of float64. Divide X by a large number.")


def _thin_columns(block: Block) -> Array:
    """Columns that are stored thinly: they are not shifted."""
    X = block.X
    if isinstance(X, Columns):
        thin = [np.full(part.n_columns, isinstance(part, Codes)) for part in X.segments]
        return np.concatenate(thin) if thin else np.zeros(0, dtype=bool)
    return np.full(X.shape[1], bool(sp.issparse(X) and X.shape[1] > _DENSE_COLUMNS))


# ---- joint counts of a discrete column and a discrete target ---------------------------------------------------------
# I = sum over pairs (x, y) that occur of p(x, y) log(p(x, y) / (p(x) p(y))), in nats, p = weight / weight of all
# rows. Missing is a level of its own. Weight 2 is the row twice.

_COLUMNS = ["level", "target", "weight"]


@dataclass(frozen=True)
class JointCounts:
    """The weight of every pair (level, target) that occurs: an Arrow table with these columns. Null is missing."""

    pairs: pa.Table

    @staticmethod
    def of(levels: pa.Array, target: Array, weight: Array | None = None) -> JointCounts:
        """Of some rows. Levels are of any type that Arrow can hash; targets are numbers."""
        encoded = pc.dictionary_encode(levels, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        values, places = np.unique(target, return_inverse=True)
        first, second, weights = counted_pairs(codes, places, weight)
        columns = [encoded.dictionary.take(pa.array(first)), pa.array(values[second]), pa.array(weights)]
        return JointCounts(pa.table(columns, names=_COLUMNS))

    def __add__(self, other: JointCounts) -> JointCounts:
        both = pa.concat_tables([self.pairs, other.pairs])
        added = both.group_by(_COLUMNS[:2], use_threads=False).aggregate([("weight", "sum")])
        return JointCounts(added.rename_columns(_COLUMNS))

    @property
    def n_pairs(self) -> int:
        """Number of pairs that occur."""
        return int(self.pairs.num_rows)

    @property
    def levels(self) -> pa.Array:
        """The levels, each once; null for missing."""
        return pc.unique(self.pairs.column("level").combine_chunks())

    def information(self) -> float:
        """Mutual information of the two, in nats."""
        encoded = pc.dictionary_encode(self.pairs.column("level").combine_chunks(), null_encoding="encode")
        target = np.unique(self.pairs.column("target").to_numpy(), return_inverse=True)[1]
        weight = self.pairs.column("weight").to_numpy()
        return pairs_information(encoded.indices.to_numpy(zero_copy_only=False), target, weight)


def counted_pairs(first: Array, second: Array, weight: Array | None = None) -> tuple[Array, Array, Array]:
    """(a, b, weight) of every pair of codes that occurs; the weight is the number of rows unless one is given."""
    width = int(second.max(initial=-1)) + 1
    keys = first.astype(np.int64) * max(width, 1) + second
    size = int(keys.max(initial=-1)) + 1
    if size <= 4 * len(keys) + 1024:
        rows = np.bincount(keys, minlength=size)
        used = np.flatnonzero(rows)
        weights = rows[used] if weight is None else np.bincount(keys, weights=weight, minlength=size)[used]
    else:
        used, inverse, rows = np.unique(keys, return_inverse=True, return_counts=True)
        weights = rows if weight is None else np.bincount(inverse, weights=weight)
    return used // max(width, 1), used % max(width, 1), weights


def pairs_information(first: Array, second: Array, weight: Array) -> float:
    """Mutual information in nats of pairs of codes with their weights, each pair once; 0 without rows."""
    w = np.asarray(weight, dtype=np.float64)
    total = float(w.sum())
    if not total > 0:
        return 0.0
    w = np.ldexp(w, -math.frexp(total)[1])  # a power of two: whole numbers stay exact
    a, b = np.bincount(first, weights=w), np.bincount(second, weights=w)
    total = float(w.sum())
    occurs = w > 0
    w, first, second = w[occurs], first[occurs], second[occurs]
    terms = w / total * np.log(w * total / (a[first] * b[second]))
    return max(0.0, math.fsum(terms))


Made = TypeVar("Made")


class Store(Protocol):
    """Statistics that are made when first asked for. It belongs to who compares models, never to a model."""

    def once(self, made_of: Sequence[object], key: Hashable, make: Callable[[], Made], n_bytes: int = 0) -> Made:
        """What `make` returns, or has returned before for the same objects and an equal key.

        n_bytes: memory that it takes, of statistics that may be forgotten and made again.
        """
