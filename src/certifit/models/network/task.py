"""A network on the rows of a source: standardised rows in stretches, the loss, and sums over all of them.

    minimise:   sum_i weight_i l(y_i, z(x_i)) / sum_i weight_i  +  alpha/2 sum of squared weights

Rows are read in stretches of a size that the number of columns decides: the same steps in memory and from files.
Converted rows are kept where they fit into the memory that is allowed, and read again where not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.gate import refuse_nonfinite
from certifit.data.source import Block, Source
from certifit.minimise.row_pass import wide_stretches
from certifit.models.network.layout import Layout
from certifit.models.network.losses import NetworkLoss
from certifit.runtime import core, memory_limit, n_threads
from certifit.statistics.gram import refuse_no_weight

KINDS = {"float32": np.float32, "float64": np.float64}
ROWS_OF_DEFAULT = 200  # rows of a batch
ALPHA_OF_DEFAULT = 1e-4  # per row of a batch


@cache
def gemm(dtype: str) -> object:
    """The product of matrices of SciPy's BLAS."""
    from scipy.linalg import cython_blas

    capsules: dict[str, object] = cython_blas.__pyx_capi__
    return capsules["sgemm" if dtype == "float32" else "dgemm"]


@dataclass(frozen=True)
class Units:
    """What the network sees: (x - mean) / scale, (y - level) / size."""

    mean: Array
    scale: Array
    level: float = 0.0
    size: float = 1.0


@dataclass(frozen=True)
class NetworkState:
    """Parameters of a network, end to end, the units of its rows, and the objective that the fit ended at."""

    parameters: Array
    units: Units
    alpha: float
    objective: float


@dataclass(frozen=True)
class Part:
    """A stretch as the core takes it. held: rows that early stopping looks at and no step does."""

    number: int
    block: Block
    X: Array
    y: Array
    weight: Array | None
    held: Array | None

    def of(self, is_held: bool) -> tuple[Array, Array, Array]:
        """Rows, targets and weights of one side."""
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        if self.held is None:
            none = slice(0, 0) if is_held else slice(None)
            return self.X[none], self.y[none], weight[none]
        chosen = self.held if is_held else ~self.held
        return np.ascontiguousarray(self.X[chosen]), self.y[chosen], weight[chosen]


class NetworkTask:
    """Rows, layers, a loss and a penalty. units, alpha: those of a fit, where it is known."""

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
    ) -> None:
        self.source, self.layout, self.loss, self.dtype = wide_stretches(source), layout, loss, dtype
        self.names, self.held = source.names, held
        self._kept: list[Part] = []
        self._is_kept = False
        self._sums(standardize)
        if units is not None:
            self.units = units
        self._kept, self._is_kept = [], False
        batch = min(ROWS_OF_DEFAULT, max(self.sum_weight, 1.0))
        self.alpha = ALPHA_OF_DEFAULT / batch if alpha is None else alpha

    def _sums(self, standardize: bool) -> None:
        """Rows, weights, means and spreads, in two passes."""
        d = self.source.n_features
        self.units = Units(np.zeros(d), np.ones(d))
        self.n_rows, weight, sums = 0, 0.0, np.zeros(d + 1)
        for X, y, w in self._raw():
            self.n_rows += len(y)
            weight += float(w.sum())
            sums += np.append(w @ X, w @ y)
        refuse_no_weight(weight)
        means = sums / weight
        squares = np.zeros(d + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            for X, y, w in self._raw():
                squares += np.append(w @ np.square(X - means[:-1]), w @ np.square(y - means[-1]))
            spreads = np.sqrt(squares / weight)
        self.sum_weight, self.target = weight, (float(means[-1]), float(spreads[-1]))
        if not standardize:
            return
        is_constant = ~(spreads > 1e-13 * np.abs(means)) | ~np.isfinite(spreads)
        scale = np.where(is_constant, 1.0, spreads)
        level, size = (means[-1], scale[-1]) if self.loss.is_squared else (0.0, 1.0)
        self.units = Units(means[:-1], scale[:-1], float(level), float(size))

    def _raw(self) -> Iterator[tuple[Array, Array, Array]]:
        for block in self.source.stretches():
            X = dense_rows(block.X)
            if block.y is None:
                raise ValueError("A network needs a target.")
            y = np.asarray(block.y, dtype=np.float64)
            weight = np.ones(len(y)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
            if not np.isfinite(X).all():
                refuse_nonfinite(self.source)
            yield X, y, weight

    def parts(self) -> Iterator[Part]:
        """All stretches, converted."""
        if self._is_kept:
            yield from self._kept
            return
        limit, size = memory_limit() // 2, 0
        kept: list[Part] = []
        for number, block in enumerate(self.source.stretches()):
            part = self._part(number, block)
            size += part.X.nbytes
            if size <= limit:
                kept.append(part)
            yield part
        if size <= limit:
            self._kept, self._is_kept = kept, True

    def _part(self, number: int, block: Block) -> Part:
        X = dense_rows(block.X)
        y = np.asarray(block.y, dtype=np.float64)
        weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        wrong = self.loss.illegal(y if weight is None else y[weight > 0])
        if wrong:
            raise ValueError(wrong)
        with np.errstate(over="ignore", invalid="ignore"):
            seen = np.ascontiguousarray((X - self.units.mean) / self.units.scale, dtype=KINDS[self.dtype])
        if not np.isfinite(seen).all():
            if not np.isfinite(X).all():
                refuse_nonfinite(self.source)
            raise ValueError(f"Some values are beyond {self.dtype}. Use standardize=True, or divide the columns.")
        y = (y - self.units.level) / self.units.size
        return Part(number, block, seen, np.ascontiguousarray(y), weight, self._held_rows(block))

    def _held_rows(self, block: Block) -> Array | None:
        """Rows whose hash is below a share of all hashes: equal rows go together, wherever they stand."""
        if self.held is None:
            return None
        share, seed = self.held
        hashes = np.asarray(core.row_hashes(block.rows, block.y, block.offset, n_threads())).view(np.uint64)
        mixed = (hashes ^ np.uint64(seed * 2654435761 % (1 << 32))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < share)

    def shape(self) -> tuple[object, ...]:
        """The layers as the core takes them."""
        layout = self.layout
        name = "relu" if layout.activation == "leaky-relu" else layout.activation
        leak = layout.leak if layout.activation == "leaky-relu" else 0.0
        sizes = np.array(layout.sizes, dtype=np.int64)
        return gemm(self.dtype), sizes, layout.biases, layout.output_bias, name, leak

    def penalty(self, parameters: Array) -> float:
        """alpha/2 sum of squared weights."""
        weights = np.asarray(parameters, dtype=np.float64)[self.layout.is_weight()]
        return self.alpha / 2 * float(weights @ weights)

    def value_gradient(self, parameters: Array) -> tuple[float, Array]:
        """The objective on the rows that are not held out, and its gradient, by the core."""
        call = core.network_gradient_short if self.dtype == "float32" else core.network_gradient
        point = np.ascontiguousarray(parameters, dtype=KINDS[self.dtype])
        value, gradient, total = 0.0, np.zeros(self.layout.n_parameters), 0.0
        for part in self.parts():
            X, y, weight = part.of(False)
            some, slope = call(*self.shape(), *self.loss.compiled, X, y, None, weight, point, n_threads())
            value, gradient, total = value + some, gradient + slope, total + float(weight.sum())
        weights = np.where(self.layout.is_weight(), np.asarray(point, dtype=np.float64), 0.0)
        return value / total + self.penalty(point), gradient / total + self.alpha * weights

    def held_loss(self, parameters: Array) -> float:
        """Mean loss of the rows that are held out; NaN where there are none."""
        value, total = 0.0, 0.0
        for part in self.parts():
            X, y, weight = part.of(True)
            if len(y):
                z = self.scores(parameters, X)
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
