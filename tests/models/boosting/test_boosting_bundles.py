"""Columns of few bins share a byte per row: histograms, and so trees, are those of the columns alone, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.models.boosting.bundles import bundled_codes, bundles_of
from certifit.runtime import core

N_BINS = np.array([255, 3, 40, 11, 2, 5, 1, 200, 12], dtype=np.uint8)
N_LEVELS = np.array([0, 3, 0, 11, 0, 0, 0, 0, 0], dtype=np.uint8)


def grown(n: int, threads: int, rows: np.ndarray | None = None, is_bundled: bool = False) -> dict[str, bytes]:
    """A tree on random codes, missing values among them."""
    rng = np.random.default_rng(n)
    codes = rng.integers(0, N_BINS.astype(int) + 1, size=(n, len(N_BINS))).astype(np.uint8)
    slope = codes[:, 1] * (codes[:, 3] % 3) + codes[:, 2] / 40 * (codes[:, 4] - 1.0) + rng.normal(size=n)
    bundle_of = bundles_of(N_BINS) if is_bundled else None
    bundled = None if bundle_of is None else bundled_codes(codes, N_BINS, bundle_of)
    tree = core.grow_newton(
        codes, np.ascontiguousarray(codes.T), N_BINS, N_LEVELS, slope - slope.mean(), rng.uniform(0.5, 1.5, size=n),
        np.ones(n), rows, np.arange(len(N_BINS), dtype=np.uint32), 30, 31, 20, 0.1, True, None,
        np.empty(3 * n, dtype=np.uint64), bundled, bundle_of, None, None, threads,
    )  # fmt: skip
    assert len(tree["left"]) == 61
    return {name: array.tobytes() for name, array in tree.items()}


@pytest.mark.parametrize("n", [3000, 60_000])
def test_bundles_and_threads_change_no_bit(n: int) -> None:
    expected = grown(n, 1)
    assert grown(n, 1, is_bundled=True) == expected
    assert grown(n, 2, is_bundled=True) == expected
    assert grown(n, 3, np.arange(n, dtype=np.uint32)) == expected


def test_bundles_fit_a_byte_and_tell_the_codes_of_their_columns() -> None:
    bundle_of = bundles_of(N_BINS)
    assert bundle_of.max() + 1 < len(N_BINS)
    codes = np.random.default_rng(0).integers(0, N_BINS.astype(int) + 1, size=(500, len(N_BINS))).astype(np.uint8)
    bundled = bundled_codes(codes, N_BINS, bundle_of).astype(int)
    for bundle in range(bundle_of.max() + 1):
        columns = np.flatnonzero(bundle_of == bundle)
        sizes = N_BINS[columns].astype(int) + 1
        assert sizes.prod() <= 256
        digits = np.stack(np.unravel_index(bundled[:, bundle], sizes, order="F"), axis=1)
        assert (digits == codes[:, columns]).all()
