"""Claims about exact signs: they are those of rational arithmetic, on any storage."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.source import Block


def rational_signs(X, w, b):
    sums = [Fraction(b) + sum(Fraction(v) * Fraction(c) for v, c in zip(row, w, strict=True)) for row in X.tolist()]
    return np.array([(s > 0) - (s < 0) for s in sums])


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.slow
def test_signs_are_exact_where_sums_cancel(core, rng, is_sparse):
    n, d = 400, 40
    X = rng.normal(size=(n, d)) * np.exp(5 * rng.normal(size=(n, d)))
    w = rng.normal(size=d)
    b = 0.7
    X[:, 0] = -(X[:, 1:] @ w[1:] + b) / w[0]  # zero to a few roundings
    X[0], X[1, 2:], b_zero = 0.0, 0.0, 0.0
    X[1, :2] = w[1], -w[0]
    for intercept in (b, b_zero):
        rows = Block(sp.csr_array(X) if is_sparse else X, None, None).rows
        signs, ratio = core.exact_signs(rows, w, intercept, 2)
        expected = rational_signs(X, w, intercept)
        assert np.array_equal(signs, expected)
        assert ({-1, 1} if intercept else {0}) <= set(expected)
        assert (np.abs(ratio) <= 1).all()


def test_ratios_are_scores_relative_to_the_size_of_their_terms(core, rng):
    X, w = rng.normal(size=(50, 3)), rng.normal(size=3)
    _, ratio = core.exact_signs([("dense", X)], w, 0.5, 1)
    np.testing.assert_allclose(ratio, (0.5 + X @ w) / (0.5 + np.abs(X) @ np.abs(w)), rtol=1e-12)


def test_products_outside_the_range_of_float64_leave_a_sign_open(core):
    X = np.array([[1e-200, 1e-200], [1e200, -1e200], [1.0, 1.0]])
    signs, _ = core.exact_signs([("dense", X)], np.array([1e-200, -1e-200]), 0.0, 1)
    assert signs.tolist() == [2, 1, 0]
    far, _ = core.exact_signs([("dense", X)], np.array([1e200, 1e200]), 0.0, 1)
    assert far[1] == 2
