"""Scores of rows by the compiled core."""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array
from certifit.models.network.layout import Layout
from certifit.models.network.task import KINDS, gemm
from certifit.runtime import core, n_threads, one_blas_thread


@one_blas_thread
def scores(layout: Layout, parameters: Array, X: Array, dtype: str) -> Array:
    """z of rows in the units of the network, rows x outputs."""
    call = core.network_scores_short if dtype == "float32" else core.network_scores
    name = "relu" if layout.activation == "leaky-relu" else layout.activation
    leak = layout.leak if layout.activation == "leaky-relu" else 0.0
    sizes, kind = np.array(layout.sizes, dtype=np.int64), KINDS[dtype]
    with np.errstate(over="ignore"):
        rows, point = np.ascontiguousarray(X, dtype=kind), np.ascontiguousarray(parameters, dtype=kind)
    z = call(gemm(dtype), sizes, layout.biases, layout.output_bias, name, leak, rows, point, n_threads())
    return np.asarray(z, dtype=np.float64).reshape(len(X), layout.sizes[-1])
