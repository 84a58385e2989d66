"""Scores of rows by the compiled core."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block
from certifit.models.network.layout import Layout
from certifit.models.network.task import KINDS, Units, gemm
from certifit.runtime import core, n_threads, one_blas_thread

PIECE_NUMBERS = 1 << 18  # converted at a time: they stay near the processor
TILE = 128  # rows that the core multiplies at once: a BLAS sums fewer in another order


@one_blas_thread
def scores(layout: Layout, parameters: Array, units: Units, columns: Block, dtype: str) -> Array:
    """z of mapped rows in the units of the network, rows x outputs.

    Rows are rounded as those of the fit; sums are in float64, of whole tiles, filled up with zeros: a row alone has the
    bits that it has among others.
    """
    name = "relu" if layout.activation == "leaky-relu" else layout.activation
    leak = layout.leak if layout.activation == "leaky-relu" else 0.0
    shape = gemm("float64"), np.array(layout.sizes, dtype=np.int64), layout.biases, layout.output_bias, name, leak
    point = np.ascontiguousarray(parameters, dtype=np.float64)
    z = np.empty((columns.n_rows, layout.sizes[-1]))
    n_piece = TILE * max(PIECE_NUMBERS // (TILE * max(layout.sizes[0], 1)), 1)
    for begin in range(0, columns.n_rows, n_piece):
        some = slice(begin, min(begin + n_piece, columns.n_rows))
        with np.errstate(over="ignore", invalid="ignore"):
            seen = np.subtract(dense_rows(columns.part(some.start, some.stop).X), units.mean)
            rounded = np.divide(seen, units.scale, out=seen).astype(KINDS[dtype], copy=False)
        rows = np.zeros((-(-len(rounded) // TILE) * TILE, layout.sizes[0]))
        rows[: len(rounded)] = rounded
        all_scores = core.network_scores(*shape, rows, point, n_threads()).reshape(-1, layout.sizes[-1])
        z[some] = all_scores[: len(rounded)]
    return z
