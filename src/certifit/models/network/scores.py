"""Scores of rows by the compiled core."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.models.network.layout import Layout
from certifit.models.network.task import KINDS, gemm
from certifit.runtime import core, n_threads, one_blas_thread


@one_blas_thread
def scores(layout: Layout, parameters: Array, X: Array, dtype: str) -> Array:
    """z of rows in the units of the network, rows x outputs.

    Rows are rounded as those of the fit; sums are in float64, so that a row's score does not hang on its neighbours.
    """
    name = "relu" if layout.activation == "leaky-relu" else layout.activation
    leak = layout.leak if layout.activation == "leaky-relu" else 0.0
    sizes, point = np.array(layout.sizes, dtype=np.int64), np.ascontiguousarray(parameters, dtype=np.float64)
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(np.asarray(X, dtype=KINDS[dtype]), dtype=np.float64)
    z = core.network_scores(
        gemm("float64"), sizes, layout.biases, layout.output_bias, name, leak, rows, point, n_threads()
    )
    return np.asarray(z, dtype=np.float64).reshape(len(X), layout.sizes[-1])
