"""Sums by cell against the formulas, for rows of every storage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.cells import ByLabel
from certifit.data.columns import Codes, Columns, Dense
from certifit.data.source import Memory
from certifit.statistics.cell_sums import cell_counts, cell_moments
from certifit.statistics.class_moments import class_scatter


def wide_csr(kind, index):
    """A maker of CSR with more columns than are read as dense ones, of a type of values and one of indices."""

    def made(X):
        rows = sp.csr_array(np.hstack([X, np.zeros((len(X), 40))]))
        return sp.csr_array(
            (rows.data.astype(kind), rows.indices.astype(index), rows.indptr.astype(index)), shape=rows.shape
        )

    return made


LAYOUTS = {
    "rows": lambda X: X,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: X.astype(np.int16),
    "sparse": sp.csr_array,
} | {
    f"wide sparse, {kind}, {index}": wide_csr(kind, index)
    for kind in ("float64", "float32", "int64", "int32")
    for index in ("int32", "int64")
}


def problem(rng, n=3000, d=7, k=3):
    X = np.round(rng.poisson(1.0, size=(n, d)) + 3 * rng.normal(size=d)).astype(float)
    return X, rng.integers(0, k, n).astype(float), rng.integers(0, 3, n).astype(float)


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_are_those_of_the_formulas(layout, rng):
    X, y, w = problem(rng)
    X = LAYOUTS[layout](X)
    moments = cell_moments(Memory(X, y, w), ByLabel(3))
    for k in range(3):
        own, weight = dense(X)[y == k], w[y == k]
        mean = weight @ own / weight.sum()
        assert moments.weights[k] == weight.sum()
        np.testing.assert_allclose(moments.means[k], mean, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(moments.variances[k], weight @ (own - mean) ** 2 / weight.sum(), rtol=1e-12)
    mean = w @ dense(X) / w.sum()
    np.testing.assert_allclose(moments.total_variances(), w @ (dense(X) - mean) ** 2 / w.sum(), rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("threshold", [None, 0.0, 1.5])
def test_counts_are_exact(layout, threshold, rng):
    X, y, w = problem(rng)
    X = LAYOUTS[layout](X)
    counts = cell_counts(Memory(X, y, w), ByLabel(3), threshold)
    held = dense(X) if threshold is None else dense(X) > threshold
    expected = np.array([w[y == k] @ held[y == k] for k in range(3)])
    assert np.array_equal(counts.counts, expected)
    assert np.array_equal(counts.weight, np.bincount(y.astype(int), weights=w))
    if threshold is None:
        assert counts.lowest == min(0.0, dense(X)[w > 0].min())


def test_coded_categories_are_counted_without_expansion(rng):
    n = 2000
    codes = rng.integers(0, 4, n).astype(np.int32)
    columns = Columns([Dense(rng.normal(size=(n, 2))), Codes(codes, np.arange(-1, 3, dtype=np.int32), 3)], n)
    y = rng.integers(0, 2, n).astype(float)
    source = Memory(columns, y, names=list("abcde"))
    expanded = columns.toarray()
    expected = np.array([(expanded[y == k] > 0).sum(axis=0) for k in range(2)])
    assert np.array_equal(cell_counts(source, ByLabel(2), 0.0).counts, expected)
    moments = cell_moments(source, ByLabel(2))
    for k in range(2):
        np.testing.assert_allclose(moments.variances[k], expanded[y == k].var(axis=0), rtol=1e-12)


def test_classes_far_apart_keep_their_variances(rng):
    """Means 1e8 standard deviations apart: sums of squares about one shift would lose every digit."""
    y = rng.integers(0, 2, 5000).astype(float)
    X = rng.normal(size=(5000, 3)) + 1e8 * y[:, None]
    variances = cell_moments(Memory(X, y), ByLabel(2)).variances
    full = class_scatter(Memory(X, y), ByLabel(2), twofold=True)
    for k in range(2):
        own = X[y == k] - 1e8 * k
        np.testing.assert_allclose(variances[k], own.var(axis=0), rtol=1e-6)
        scatter = full.scatter[k] / full.weight[k] / full.scaling.scale**2
        np.testing.assert_allclose(scatter, np.cov(own.T, bias=True), rtol=1e-6, atol=1e-8)


def test_parts_merge_to_the_whole(rng):
    X, y, w = problem(rng)
    whole = cell_moments(Memory(X, y, w), ByLabel(3))
    first = cell_moments(Memory(X[:100], y[:100], w[:100]), ByLabel(3))
    rest = cell_moments(Memory(X[100:], y[100:], w[100:]), ByLabel(3), first.scaling)
    both = first.merged(rest)
    np.testing.assert_allclose(both.means, whole.means, rtol=1e-13)
    np.testing.assert_allclose(both.variances, whole.variances, rtol=1e-12)
    assert np.array_equal(both.weights, whole.weights)


@pytest.mark.parametrize("twofold", [False, True])
def test_class_scatter_is_that_of_the_formulas(twofold, rng):
    X, y, w = problem(rng)
    found = class_scatter(Memory(X, y, w), ByLabel(3), twofold)
    scale = found.scaling.scale
    for k in range(3):
        own, weight = X[y == k], w[y == k]
        mean = weight @ own / weight.sum()
        expected = (own - mean).T * weight @ (own - mean)
        np.testing.assert_allclose(found.means[k], mean, rtol=1e-13, atol=1e-14)
        scatter = found.scatter[k] / scale / scale[:, None] / found.scaling.weight_scale
        np.testing.assert_allclose(scatter, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())


def test_a_value_that_is_not_finite_is_named(rng):
    X, y, _ = problem(rng)
    X[17, 2] = np.nan
    for call in (lambda s: cell_moments(s, ByLabel(3)), lambda s: cell_counts(s, ByLabel(3), 0.0)):
        with pytest.raises(ValueError, match="row 17, column 'x2'"):
            call(Memory(X, y))
