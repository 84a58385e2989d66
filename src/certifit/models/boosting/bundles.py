"""Columns of few bins share a byte per row: histograms of trees are then made with fewer additions, and are the same.

The code of a bundle counts through the codes of its columns, the first one moving fastest (cpp/tree/bundles.hpp).
"""

from __future__ import annotations

import numpy as np

from certifit.data.columns import Array

CODES = 256  # of a byte


def bundles_of(n_bins: Array) -> Array:
    """The bundle of every column: of the largest columns first, each goes where it fits most tightly."""
    n_codes = n_bins.astype(np.int64) + 1  # with that of missing values
    open_bundles: list[list[int]] = [[] for _ in range(CODES + 1)]  # by the most codes that another column may have
    bundle_of = np.zeros(len(n_codes), dtype=np.uint32)
    n_bundles = 0
    for column in np.argsort(-n_codes, kind="stable").tolist():
        codes = int(n_codes[column])
        room = next((room for room in range(codes, CODES + 1) if open_bundles[room]), CODES)
        if open_bundles[room]:
            bundle = open_bundles[room].pop()
        else:
            bundle, n_bundles = n_bundles, n_bundles + 1
        bundle_of[column] = bundle
        open_bundles[room // codes].append(bundle)
    return bundle_of


def bundled_codes(codes: Array, n_bins: Array, bundle_of: Array) -> Array:
    """The codes of the bundles, row after row."""
    bundled = np.zeros((len(codes), int(bundle_of.max()) + 1), dtype=np.uint8)
    for bundle in range(bundled.shape[1]):
        times = 1
        for column in np.flatnonzero(bundle_of == bundle):
            bundled[:, bundle] += codes[:, column] * np.uint8(times)
            times *= int(n_bins[column]) + 1
    return bundled
