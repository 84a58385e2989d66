"""Products of few columns over many rows."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
import certifit.statistics.inner_products as module
from certifit.statistics.inner_products import BLOCK, inner_products


@pytest.mark.parametrize("most_own", [0, 1024])
@pytest.mark.parametrize("n_rows", [1, BLOCK, BLOCK + 1000, 3 * BLOCK + 5, 7 * BLOCK])
def test_any_layout_and_any_number_of_threads_give_the_same_bits(rng, monkeypatch, n_rows, most_own):
    monkeypatch.setattr(module, "MOST_OWN", most_own)
    A = rng.normal(size=(n_rows, 6)).astype(np.float32).astype(np.float64)
    with cf.threads(1):
        first = inner_products(A)
    np.testing.assert_allclose(first, A.T @ A, rtol=1e-12, atol=1e-9)
    for other in (A, np.asfortranarray(A), A.astype(np.float32), np.repeat(A, 2, axis=1)[:, ::2]):
        assert (inner_products(other) == first).all()
