"""A network on the rows of a source: standardised rows in stretches, the loss, and sums over all of them.

    minimise:   sum_i weight_i l(y_i, z(x_i)) / sum_i weight_i  +  alpha/2 sum of squared weights

Rows are shuffled within parts of a size that the number of columns decides: the same steps in memory and from files.
Converted rows are kept where they fit into half of the memory that is allowed. Where they do not, every pass reads them
again, few at a time, and no more than one part is there: 16 million numbers, 64 MB in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby

import numpy as np

from certifit.data.cells import ByRow
from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.minimise.row_pass import by_hash, hashes_of, wide_stretches
from certifit.models.network.layout import Layout
from certifit.models.network.losses import OF_CLASSES, NetworkLoss
from certifit.runtime import core, memory_limit, n_threads
from certifit.statistics.cell_sums import cell_moments
from certifit.statistics.gram import refuse_no_weight
from certifit.statistics.moments import MOST_ABOUT, sharp_spreads, sharp_target_spread, target_sums
from certifit.statistics.residual import TINY

KINDS = {"float32": np.float32, "float64": np.float64}
ROWS_OF_DEFAULT = 200  # rows of a batch
ROWS_OF_EARLY_STOPPING = 10_000  # rows from which early_stopping="auto" holds some out
ALPHA_OF_DEFAULT = 1e-4  # per row of a batch
SHARP_FROM = 1e3  # a mean of the target this many times its spread: squares about 0 cost the spread its digits
PIECE_NUMBERS = 1 << 16  # converted at a time: they stay near the processor
READ_NUMBERS = 1 << 20  # read from a file at a time: 8 MB


@cache
def gemm(dtype: str) -> object:
    """The product of matrices of SciPy's BLAS."""
    from scipy.linalg import cython_blas

    capsules: dict[str, object] = cython_blas.__pyx_capi__
    return capsules["sgemm" if dtype == "float32" else "dgemm"]


@dataclass(frozen=True)
class Units:
    """What the network sees: (x - mean) / scale. z: level + size times its output; size is 1 for scores of a link."""

    mean: Array
    scale: Array
    level: float = 0.0
    size: float = 1.0

    def seen(self, loss: NetworkLoss, y: Array, offset: Array | None) -> tuple[Array, Array | None]:
        """Targets and offsets in the unit of the network's output."""
        if loss.is_squared:
            return (y - self.level) / self.size, None if offset is None else offset / self.size
        if self.level == 0 or not loss.is_of_mean:
            return y, offset
        return y, np.full(len(y), self.level) if offset is None else self.level + offset


@dataclass(frozen=True)
class NetworkState:
    """Parameters of a network, end to end, the units of its rows, and the objective that the fit ended at."""

    parameters: Array
    units: Units
    alpha: float
    objective: float


@dataclass(frozen=True)
class Hashed:
    """What the hashes of the rows of a part say. held: rows that early stopping looks at and no step does."""

    order: Array
    held: Array | None


@dataclass(frozen=True)
class Part:
    """Rows as the core takes them. order: by hash, where steps visit them. held: as in `Hashed`.

    is_own: whether X is a copy, and not the rows of the user as they are stored.
    """

    number: int
    X: Array
    y: Array
    offset: Array | None
    weight: Array | None
    order: Array | None
    held: Array | None
    is_own: bool

    def of(self, is_held: bool) -> tuple[Array, Array, Array, Array | None]:
        """Rows, targets, weights and offsets of one side."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        chosen: slice[int | None, int | None, None] | Array = slice(0, 0) if is_held else slice(None)
        if self.held is not None:
            chosen = self.held if is_held else ~self.held
        offset = None if self.offset is None else self.offset[chosen]
        return np.ascontiguousarray(self.X[chosen]), self.y[chosen], weight[chosen], offset


class NetworkTask:
    """Rows, layers, a loss and a penalty. units, alpha: those of a fit, where it is known.

    held: the share of the rows that early stopping looks at, and a seed; none of fewer rows than least_rows.
    """

    def __init__(
        self,
        source: Source,
        layout: Layout,
        loss: NetworkLoss,
        dtype: str,
        *,
        alpha: float | None,
        units: Units | None,
        standardize: bool,
        held: tuple[float, int] | None = None,
        least_rows: int = 0,
    ) -> None:
        if not (source.in_memory or source.is_shared):  # rows that several fits read are kept for all of them
            source = source.unkept()
        self.layout, self.loss, self.dtype = layout, loss, dtype
        self.source, self._part_rows = _read_apart(source)
        self.names, self._is_weight = source.names, layout.is_weight()
        self.last: tuple[bytes, tuple[float, Array]] | None = None  # what was looked at last: `certificate.objective`
        self._kept: list[Part] = []
        self._is_kept = self._is_ordered = False
        self._hashed: dict[int, Hashed] = {}
        sums = target_sums(source)
        refuse_no_weight(sums.weight)
        self.n_rows, self.sum_weight, self.target = sums.n_rows, sums.weight, (sums.mean, sums.deviation)
        self.held = held if sums.n_rows >= least_rows else None
        if units is None:
            d = source.n_features
            units = self._moments(source) if standardize else Units(np.zeros(d), np.ones(d))
        self.units = units
        is_level = sums.low == sums.high == units.level
        self.is_level = loss.is_squared and is_level and not self._has_offset()  # scores of 0 are the answer
        batch = min(ROWS_OF_DEFAULT, max(self.sum_weight, 1.0))
        self.alpha = ALPHA_OF_DEFAULT / batch if alpha is None else alpha

    def _moments(self, source: Source) -> Units:
        """Means and standard deviations of columns, and of targets that may be centred; 1 for what does not vary."""
        d = source.n_features
        moments = cell_moments(source, ByRow(1, 0))
        rough = np.flatnonzero(moments.squares[0] > MOST_ABOUT * moments.scatter()[0])
        scale = np.asarray(moments.spreads(True)[0])
        scale[rough] = sharp_spreads(source, rough)
        scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
        mean = np.asarray(moments.means[0]).reshape(d)
        if self.loss.is_of_mean:
            return Units(mean, scale, self._best_constant())
        if not self.loss.is_squared:
            return Units(mean, scale)
        if self._has_offset():
            return Units(mean, scale, *self._residual_moments())
        level, size = self.target
        size = sharp_target_spread(source) if abs(level) > SHARP_FROM * size else size
        return Units(mean, scale, level, size if 0 < size < np.inf else 1.0)

    def _has_offset(self) -> bool:
        return next(iter(self.source.stretches())).offset is not None

    def _residual_moments(self) -> tuple[float, float]:
        """Mean and standard deviation of y less the offset; 1 where it does not vary."""
        total, level, squares = 0.0, 0.0, 0.0
        for y, weight, offset in self._columns():
            r, n = y - offset, float(weight.sum())
            if n > 0:
                mean = float(weight @ r) / n
                away, total = mean - level, total + n
                squares += float(weight @ np.square(r - mean)) + away * away * n * (total - n) / total
                level += away * n / total
        size = float(np.sqrt(squares / total))
        return level, size if 0 < size < np.inf else 1.0

    def _best_constant(self) -> float:
        """The score of all rows whose means have the mean of the targets: log(sum y / sum exposure) of a log link."""
        loss, total, exposure = self.loss, 0.0, 0.0
        for y, weight, offset in self._columns():
            with np.errstate(over="ignore"):
                total, exposure = total + float(weight @ y), exposure + float(weight @ np.exp(offset))
        mean = total / (self.sum_weight if loss.link == "logit" else exposure)
        with np.errstate(divide="ignore"):
            level = loss.formula.score(mean) if mean > 0 else 0.0
        return level if np.isfinite(level) else 0.0

    def constant(self) -> Array:
        """The outputs of a network without weights that suit the targets: those of their mean, or of their shares."""
        if self.loss.name in OF_CLASSES:
            shares = np.zeros(max(self.layout.sizes[-1], 2))
            for part in self.parts():
                shares += np.bincount(np.maximum(part.y, 0).astype(np.int64), part.weight, len(shares))
            z = np.log(np.maximum(shares, TINY))
            return np.asarray(z if self.loss.name == "softmax" else z[1:] - z[:1])
        residual = self._residual_moments if self._has_offset() else lambda: self.target
        level = self._best_constant() if self.loss.is_of_mean else residual()[0]
        return np.array([(level - self.units.level) / self.units.size])

    def _columns(self) -> Iterator[tuple[Array, ...]]:
        """Targets, weights and offsets of every part: sums over these have the same bits in memory and from files."""
        for _, blocks in self._by_part():
            columns = []
            for block in blocks:
                columns.append(_columns(block))
                self._check_target(block, *columns[-1][:2])
            yield tuple(np.concatenate(values) for values in zip(*columns, strict=True))

    def _by_part(self) -> Iterator[tuple[int, Iterator[Block]]]:
        return groupby(self.source.stretches(), lambda block: block.first_row // self._part_rows)

    def parts(self, ordered: bool = False) -> Iterator[Part]:
        """All rows, converted. The rows of a part are overwritten by those of the next where they cannot all be kept.

        ordered: whether their order by hash is needed.
        """
        if self._is_kept and (self._is_ordered or not ordered):
            yield from self._kept
            return
        limit, itemsize = memory_limit() // 2, np.dtype(KINDS[self.dtype]).itemsize
        fits = self.n_rows * self.source.n_features * itemsize <= limit
        buffer = None if fits else np.empty((self._part_rows, self.source.n_features), dtype=KINDS[self.dtype])
        kept: list[Part] = []
        n_parts, size = 0, 0
        for number, (_, blocks) in enumerate(self._by_part()):
            part = self._part(number, blocks, ordered, buffer)
            n_parts, size = number + 1, size + part.X.nbytes * part.is_own
            if (fits or not part.is_own) and size <= limit:
                kept.append(part)
            yield part
        if len(kept) == n_parts:
            self._kept, self._is_kept, self._is_ordered = kept, True, ordered

    def _part(self, number: int, blocks: Iterator[Block], ordered: bool, buffer: Array | None) -> Part:
        """The rows of consecutive blocks. buffer: where they are written; None: where no others are."""
        first = next(blocks)
        X = self._stored(first)
        is_own, n = X is None, 0
        if X is None:
            is_last = self.source.in_memory or first.n_rows < self.source.rows_of_stretch()
            n_most = first.n_rows if is_last else self._part_rows
            X = np.empty((n_most, self.source.n_features), dtype=KINDS[self.dtype]) if buffer is None else buffer
        known = self._hashed.get(number)
        needs_hashes = known is None and (ordered or self.held is not None)
        columns, hashes = [], []
        for block in chain([first], blocks):
            columns.append(self._beside(block))
            if needs_hashes:
                hashes.append(hashes_of(block))
            self._convert(block, X[n : n + block.n_rows], is_own)
            n += block.n_rows
        y, offset, weight = (_joined(values) for values in zip(*columns, strict=True))
        if needs_hashes:
            known = self._remember(number, np.concatenate(hashes))
        order, held = (None, None) if known is None else (known.order, known.held)
        X = X[:n].copy() if buffer is None and n < len(X) else X[:n]
        assert y is not None
        return Part(number, X, y, offset, weight, order, held, is_own)

    def _beside(self, block: Block) -> tuple[Array, Array | None, Array | None]:
        """Targets and offsets as the network sees them, and weights."""
        if block.y is None:
            raise ValueError("A network needs a target.")
        y = np.asarray(block.y, dtype=np.float64)
        weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        self._check_target(block, y, weight)
        offset = None if block.offset is None else np.asarray(block.offset, dtype=np.float64)
        return *self.units.seen(self.loss, y, offset), weight

    def _remember(self, number: int, hashes: Array) -> Hashed:
        """What the hashes of a part say, kept from one pass to the next within an eighth of the memory allowed."""
        hashed = Hashed(by_hash(hashes), self._held_rows(hashes))
        if sum(other.order.nbytes for other in self._hashed.values()) + hashed.order.nbytes <= memory_limit() // 8:
            self._hashed[number] = hashed
        return hashed

    def _check_target(self, block: Block, y: Array, weight: Array | None) -> None:
        """Refuse targets that the loss does not know; rows of weight 0 are none."""
        legal = y if weight is None else np.where(weight > 0, y, 0.5)  # 0.5 is legal in every family
        self.loss.check_target(legal, block.first_row)

    def _stored(self, block: Block) -> Array | None:
        """The rows of a block in memory where they are stored as the network sees them."""
        X, is_plain = block.X, not self.units.mean.any() and bool((self.units.scale == 1).all())
        is_array = self.source.in_memory and isinstance(X, np.ndarray) and X.flags.c_contiguous
        return X if is_plain and is_array and X.dtype == KINDS[self.dtype] else None

    def _convert(self, block: Block, seen: Array, is_own: bool) -> None:
        """Write the rows as the network sees them, some at a time: no copy of all in float64.

        Rows that are seen as they are stored (not is_own) are only looked at.
        """
        mean, scale = self.units.mean, self.units.scale
        n_piece = max(PIECE_NUMBERS // max(self.source.n_features, 1), 1)
        wide = np.empty((min(n_piece, block.n_rows), self.source.n_features))
        for begin in range(0, block.n_rows, n_piece):
            rows = slice(begin, min(begin + n_piece, block.n_rows))
            if is_own:
                some, piece = dense_rows(block.part(rows.start, rows.stop).X), wide[: rows.stop - rows.start]
                with np.errstate(over="ignore", invalid="ignore"):
                    seen[rows] = np.divide(np.subtract(some, mean, out=piece), scale, out=piece)
            if not np.isfinite(seen[rows]).all():
                refuse_nonfinite(self.source)
                raise ValueError(f"Some values are beyond {self.dtype}. Use standardize=True, or divide the columns.")

    def _held_rows(self, hashes: Array) -> Array | None:
        """Rows whose hash is below a share of all hashes: equal rows go together, wherever they stand."""
        if self.held is None:
            return None
        share, seed = self.held
        mixed = (hashes.view(np.uint64) ^ np.uint64(seed * 2654435761 % (1 << 32))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < share)

    def shape(self, dtype: str | None = None) -> tuple[object, ...]:
        """The layers as the core takes them, for numbers of one kind; None: those of the fit."""
        layout = self.layout
        name = "relu" if layout.activation == "leaky-relu" else layout.activation
        leak = layout.leak if layout.activation == "leaky-relu" else 0.0
        sizes = np.array(layout.sizes, dtype=np.int64)
        return gemm(dtype or self.dtype), sizes, layout.biases, layout.output_bias, name, leak

    def penalty(self, parameters: Array) -> float:
        """alpha/2 sum of squared weights."""
        weights = np.asarray(parameters, dtype=np.float64)[self._is_weight]
        return self.alpha / 2 * float(weights @ weights)

    def value_gradient(self, parameters: Array) -> tuple[float, Array]:
        """The objective on the rows that are not held out, and its gradient, by the core."""
        call = core.network_gradient_short if self.dtype == "float32" else core.network_gradient
        point = np.ascontiguousarray(parameters, dtype=KINDS[self.dtype])
        value, gradient, total = 0.0, np.zeros(self.layout.n_parameters), 0.0
        for part in self.parts():
            X, y, weight, offset = part.of(False)
            some, slope = call(*self.shape(), *self.loss.compiled, X, y, offset, weight, point, n_threads())
            value, gradient, total = value + some, gradient + slope, total + float(weight.sum())
        weights = np.where(self.layout.is_weight(), np.asarray(point, dtype=np.float64), 0.0)
        return value / total + self.penalty(point), gradient / total + self.alpha * weights

    def held_loss(self, parameters: Array) -> float:
        """Mean loss of the rows that are held out; NaN where there are none."""
        value, total = 0.0, 0.0
        for part in self.parts():
            X, y, weight, offset = part.of(True)
            if len(y):
                z = self.scores(parameters, X) + (0.0 if offset is None else offset[:, None])
                value, total = value + float(weight @ self.loss.values(y, z)), total + float(weight.sum())
        return value / total if total > 0 else float("nan")

    def scores(self, parameters: Array, X: Array) -> Array:
        """z of converted rows, rows x outputs."""
        call = core.network_scores_short if self.dtype == "float32" else core.network_scores
        point = np.ascontiguousarray(parameters, dtype=KINDS[self.dtype])
        z = call(*self.shape(), np.ascontiguousarray(X, dtype=KINDS[self.dtype]), point, n_threads())
        return np.asarray(z, dtype=np.float64).reshape(len(X), self.layout.sizes[-1])

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean, sd = self.target
        return {"n_rows": self.n_rows, "sum_weight": self.sum_weight, "target_mean": mean, "target_sd": sd}


def _read_apart(source: Source) -> tuple[Source, int]:
    """The same rows as they are read, and how many of them are a part.

    Rows in memory are read a part at a time, which copies none; those of files few at a time.
    """
    wide = wide_stretches(source)
    if source.in_memory:
        return wide, wide.rows_of_stretch()
    few = min(1 << (max(READ_NUMBERS // max(source.n_features, 1), 1).bit_length() - 1), wide.rows_of_stretch())
    return source.resized(few, few), wide.rows_of_stretch()


def _joined(columns: Sequence[Array | None]) -> Array | None:
    """A column of several blocks; None where they have none. One of a single block is not copied."""
    present = [column for column in columns if column is not None]
    if len(present) == 1:
        return np.ascontiguousarray(present[0])
    return np.concatenate(present) if present else None


def _columns(block: Block) -> tuple[Array, Array, Array]:
    """Targets, weights and offsets of rows."""
    y = np.asarray(block.y, dtype=np.float64)
    offset = np.zeros(len(y)) if block.offset is None else np.asarray(block.offset, dtype=np.float64)
    weight = np.ones(len(y)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    return y, weight, offset
