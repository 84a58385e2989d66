"""Kernels: their formulas, the rules that make new ones, Mercer's condition and its converse, error bounds."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import certifit as cf
from certifit import kernels as ks
from certifit.mathematics.kernels.mercer import matrix_test
from certifit.mathematics.kernels.tiles import multiply, narrow_times, symmetric_times

RNG = np.random.default_rng(20)
X, Z = RNG.normal(size=(300, 3)), RNG.normal(size=(270, 3))
WEIGHTS = ks.Matrix([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 0.5]])


def bump(points):
    return np.exp(-np.abs(points[:, 0]))


BUILT = {
    "constant": ks.Constant(2.0),
    "linear": ks.Linear(),
    "polynomial": ks.Polynomial(3, 0.5),
    "gaussian": ks.Gaussian(1.3),
    "matrix": WEIGHTS,
    "feature map": ks.FeatureMap(ks.powers),
    "sum": ks.Gaussian(0.7) + ks.Linear() + 1,
    "product": ks.Gaussian(2.0) * ks.Polynomial(2),
    "scaled": np.float64(0.3) * ks.Linear(),
    "power": ks.Linear() ** 3,
    "polynomial of": ks.Gaussian(1.0).polynomial((1.0, 0.0, 2.0)),
    "exp": (0.2 * ks.Linear()).exp(),
    "weighted": ks.Linear().weighted(bump),
    "composed": ks.Gaussian(1.0).of(np.tanh),
    "on columns": ks.Linear().on([0, 2]) * ks.Gaussian(1.0).on([1]),
}
FORMULAS = {
    "linear": lambda x, z: x @ z,
    "polynomial": lambda x, z: (0.5 + x @ z) ** 3,
    "gaussian": lambda x, z: np.exp(-np.sum((x - z) ** 2) / (2 * 1.3**2)),
    "sum": lambda x, z: np.exp(-np.sum((x - z) ** 2) / (2 * 0.7**2)) + x @ z + 1,
    "product": lambda x, z: np.exp(-np.sum((x - z) ** 2) / 8) * (1 + x @ z) ** 2,
    "polynomial of": lambda x, z: 1 + 2 * np.exp(-np.sum((x - z) ** 2)),
    "weighted": lambda x, z: np.exp(-abs(x[0]) - abs(z[0])) * (x @ z),
    "on columns": lambda x, z: (x[0] * z[0] + x[2] * z[2]) * np.exp(-((x[1] - z[1]) ** 2) / 2),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_kernel_is_its_formula(name):
    expected = [[FORMULAS[name](x, z) for z in Z[:7]] for x in X[:5]]
    np.testing.assert_allclose(BUILT[name](X[:5], Z[:7]), expected, rtol=1e-12)


@pytest.mark.parametrize("name", BUILT)
def test_tiles_give_the_matrix_and_its_products(name):
    kernel = BUILT[name]
    K = kernel(X, Z)
    V = RNG.normal(size=(len(Z), 2))
    np.testing.assert_allclose(kernel.matrix(X, Z), K, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel.times(X, Z, V), K @ V, rtol=1e-9, atol=1e-11)
    square = kernel.matrix(X)
    assert np.array_equal(square, square.T)
    np.testing.assert_allclose(np.diagonal(square), kernel.diagonal(X), rtol=1e-12)


@pytest.mark.parametrize("name", BUILT)
def test_a_kernel_made_by_the_rules_is_proven_and_never_refuted(name):
    kernel = BUILT[name]
    assert kernel.is_proven and kernel.proof().startswith("Mercer by construction")
    test = ks.is_mercer(kernel, X[:80])
    assert test and "Not refuted on these 80 points" in str(test)
    assert test.smallest >= -1e-10 * test.largest


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["gaussian", "polynomial", "product"])
def test_any_number_of_threads_gives_the_same_bits(name, threads):
    with cf.threads(1):
        expected = BUILT[name].matrix(X), BUILT[name].times(X, Z, Z), multiply(X, Z.T.copy())
    with cf.threads(threads):
        found = BUILT[name].matrix(X), BUILT[name].times(X, Z, Z), multiply(X, Z.T.copy())
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


@pytest.mark.parametrize("k", [1, 3, 20, 150])
@pytest.mark.parametrize("n", [40, 300])
def test_products_of_a_symmetric_matrix_are_those_of_numpy_and_have_the_same_bits_for_any_threads(n, k):
    G, V = ks.Gaussian(1.0).matrix(RNG.normal(size=(n, 3))), RNG.normal(size=(n, k))
    product = symmetric_times(G, V)
    np.testing.assert_allclose(product, G @ V, atol=1e-11)
    with cf.threads(3):
        assert np.array_equal(symmetric_times(G, V), product)


@pytest.mark.parametrize("shape", [(1, 1, 1), (300, 1100, 3), (129, 2, 600)])
def test_products_of_matrices_are_those_of_numpy(shape):
    n, terms, k = shape
    A, B = RNG.normal(size=(n, terms)), RNG.normal(size=(terms, k))
    np.testing.assert_allclose(multiply(A, B), A @ B, atol=1e-11)
    np.testing.assert_allclose(multiply(A, A[:, 0], transposed=True), A.T @ A[:, 0], atol=1e-10)


def test_bounds_hold_the_rounding_of_exact_sums_and_powers():
    rows = RNG.normal(size=(12, 4)) * np.array([1e6, 1.0, 1e-3, 1e6])
    exact = [[sum(Fraction(a) * Fraction(b) for a, b in zip(x, z, strict=True)) for z in rows] for x in rows]
    for kernel, power, c in ((ks.Linear(), 1, 0), (ks.Polynomial(3, 1.0), 3, 1), (ks.Linear() ** 2, 2, 0)):
        K, bound = kernel._bounded(rows, rows)
        error = [[float(abs(Fraction(K[i, j]) - (c + exact[i][j]) ** power)) for j in range(12)] for i in range(12)]
        assert (np.array(error) <= bound).all()
        weights = np.abs(RNG.normal(size=12))
        assert (np.array(error) @ weights <= kernel.error_times(rows, rows, weights)).all()


@pytest.mark.parametrize("offset, spread", [(0.0, 1.0), (1e8, 1.0), (1e3, 1e-2), (0.0, 1e6)])
def test_bounds_hold_the_rounding_of_gaussians_far_from_0(offset, spread):
    rows = offset + spread * RNG.normal(size=(8, 2))
    kernel = ks.Gaussian(1.5 * spread)
    K, bound = kernel._bounded(rows, rows)
    with localcontext(prec=60):
        width = Decimal(1.5 * spread)
        for i, x in enumerate(rows.tolist()):
            for j, z in enumerate(rows.tolist()):
                square = sum((Decimal(a) - Decimal(b)) ** 2 for a, b in zip(x, z, strict=True))
                assert abs(Decimal(float(K[i, j])) - (-square / (2 * width**2)).exp()) <= Decimal(float(bound[i, j]))
    assert bound.max() < 1e-10


def test_what_is_not_mercer_is_refused_with_the_reason():
    k = ks.Linear()
    for make in (lambda: -1 * k, lambda: -k, lambda: k + (-2.0), lambda: k.polynomial((1.0, -1.0))):
        with pytest.raises(ValueError, match="c'Gc would change its sign"):
            make()
    for make in (lambda: k - 1, lambda: 1 - k, lambda: k - ks.Gaussian(1.0)):
        with pytest.raises(ValueError, match="c'Gc could be below 0"):
            make()
    with pytest.raises(ValueError, match="only whole powers"):
        k**0.5
    with pytest.raises(ValueError, match="finite number >= 0"):
        ks.Polynomial(2, -1.0)
    with pytest.raises(ValueError, match="c'Ac = -1 for c ="):
        ks.Matrix([[1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(ValueError, match="symmetric"):
        ks.Matrix([[1.0, 2.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match="sigma must be"):
        ks.Gaussian(0.0)
    with pytest.raises(TypeError, match="kernels and numbers"):
        k * "2"


def test_a_users_function_is_refuted_by_a_vector_or_a_pair():
    distance = ks.Function(lambda A, B: np.abs(A[:, :1] - B[:, :1].T))
    assert not distance.is_proven and "Not known to be Mercer" in distance.proof()
    test = ks.is_mercer(distance, X[:20])
    assert not test and test.vector @ distance(X[:20], X[:20]) @ test.vector < 0
    assert "c'Gc = " in str(test)
    lopsided = ks.is_mercer(ks.Function(lambda A, B: A[:, :1] + 0 * B[:, :1].T), X[:5])
    assert not lopsided and lopsided.pair is not None and "not symmetric" in str(lopsided)
    assert ks.is_mercer(ks.Function(lambda A, B: A @ B.T), X[:50])


def test_the_map_of_a_matrix_gives_the_kernel_back():
    kernel = ks.Gaussian(1.0) + ks.Linear()
    phi = kernel.map(X[:60])
    features = phi(X[:60])
    np.testing.assert_allclose(features @ features.T, kernel(X[:60], X[:60]), atol=1e-8)
    assert ks.Linear().map(X[:60])(Z).shape == (len(Z), 3)  # as many features as the kernel needs
    with pytest.raises(ValueError, match="c'Gc = "):
        ks.Function(lambda A, B: np.abs(A[:, :1] - B[:, :1].T)).map(X[:20])


def test_maps_of_the_notes_are_their_kernels():
    squares = ks.products(X)
    np.testing.assert_allclose(squares @ ks.products(Z).T, ks.Polynomial(2, 0.0)(X, Z), atol=1e-12)
    x = np.array([[2.0]])
    assert ks.powers(x).tolist() == [[2.0, 4.0, 8.0]]


def test_truncations_of_the_gaussian_map_converge_to_it():
    kernel = ks.Gaussian(1.5)
    K = kernel(X[:30], Z[:30])
    errors = [
        np.abs(kernel.truncated_map(X[:30], p) @ kernel.truncated_map(Z[:30], p).T - K).max() for p in (2, 6, 12, 25)
    ]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 1e-6


def test_scale_is_the_width_of_scikit_learns_gamma():
    width = ks.Gaussian("scale").resolved(X).sigma
    assert 1 / (2 * width**2) == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-12)
    twice = ks.Gaussian().resolved(np.vstack([X, X[:50]])).sigma
    weight = np.r_[np.full(50, 2.0), np.ones(250)]
    assert ks.Gaussian().resolved(X, weight).sigma == pytest.approx(twice, rel=1e-12)
    assert ks.Gaussian().resolved(np.full((4, 2), 1e300)).sigma == pytest.approx(np.sqrt(0.5))
    assert np.isfinite(ks.Gaussian().resolved(X * 1e300).sigma)
    with pytest.raises(ValueError, match="resolved"):
        ks.Gaussian()(X, X)


def test_a_plain_function_is_tested_as_a_kernel_is():
    points = np.array([[0.0], [1.0], [3.0]])
    refuted = ks.is_mercer(lambda X, Z: -((X - Z.T) ** 2), points)  # its matrix has a zero diagonal
    assert not refuted and refuted.vector is not None
    G = -((points - points.T) ** 2)
    assert refuted.vector @ G @ refuted.vector < 0
    assert ks.is_mercer(lambda X, Z: X @ Z.T, points)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_columns", [1, 7, 8, 12, 25, 60])
def test_narrow_products_are_those_of_numpy_for_any_width_and_any_threads(dtype, n_columns):
    rng = np.random.default_rng(n_columns)
    A, V = rng.normal(size=(1301, 1301)).astype(dtype), rng.normal(size=(1301, n_columns)).astype(dtype)
    products = []
    for threads in (1, 3):
        with cf.threads(threads):
            products.append(narrow_times(A, V))
    assert np.array_equal(*products)
    exact = A.astype(np.float64) @ V.astype(np.float64)
    assert np.abs(products[0] - exact).max() <= 1e3 * np.finfo(dtype).eps * np.sqrt(len(A))
    few = narrow_times(np.ascontiguousarray(A[:37]), V)
    assert np.abs(few - exact[:37]).max() <= 1e3 * np.finfo(dtype).eps * np.sqrt(len(A))


def test_narrow_products_leave_out_blocks_of_rows_that_a_column_does_not_have():
    rng = np.random.default_rng(0)
    sizes, column_sets = np.array([130, 1, 1100, 70]), np.repeat([0, 1, 2], [3, 11, 5])
    is_in = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=np.uint8)
    is_on = np.repeat(is_in[:, column_sets], sizes, axis=0)
    G = rng.normal(size=(1301, 1301))
    V = rng.normal(size=(1301, 19)) * is_on
    product = narrow_times(G, V, np.append(0, np.cumsum(sizes)), is_in[:, column_sets])
    assert np.allclose(product * is_on, (G @ V) * is_on, rtol=0, atol=1e-11)


def test_rounding_of_small_values_is_no_asymmetry():
    """exp(-|x - z|^2 / 2) far out has the relative error of |x|^2 |z|^2, not of itself; a real difference is found."""
    K = np.eye(3)
    K[0, 1], K[1, 0] = 1.0e-16, 1.1e-16
    assert matrix_test(K)
    K[0, 1] = 1e-3
    assert matrix_test(K).pair == (0, 1)


def test_a_gaussian_is_the_exponential_to_two_units_in_the_last_place_and_zero_far_away():
    x = np.arange(2400.0) / 64  # half the square has no rounding
    K = ks.Gaussian(1.0).times(x[:, None], np.zeros((1, 1)), np.ones((1, 1)))[:, 0]
    exact = np.exp(-(np.longdouble(x) ** 2) / 2)
    assert np.all(np.abs(K - exact) <= 2 * np.spacing(exact.astype(np.float64)))
    assert ks.Gaussian(1.0).times(np.array([[38.0]]), np.zeros((1, 1)), np.ones((1, 1)))[0, 0] == 0.0


@pytest.mark.parametrize("name", ["linear", "gaussian", "polynomial"])
@pytest.mark.parametrize("n", [100, 700])
def test_products_with_some_of_the_rows_are_the_same_bits_for_any_threads(name, n):
    rng, kernel = np.random.default_rng(n), BUILT[name]
    points, places = rng.normal(size=(n, X.shape[1])), np.flatnonzero(rng.random(n) < 0.8)
    V = rng.normal(size=(len(places), 2))
    for wanted in (np.ones(n, dtype=bool), rng.random(n) < 0.5):
        found = []
        for n_threads in (1, 2, 8):
            with cf.threads(n_threads):
                found.append(kernel.times_of_rows(points, points[places], places, V, wanted))
        assert all(np.array_equal(found[0], other) for other in found)
        np.testing.assert_allclose(found[0], kernel(points[wanted], points[places]) @ V, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("d", "width", "scale"), [(1, 1.0, 1.0), (20, 3.0, 1e30), (64, 0.5, 1e-300), (5, 0.3, 1.0)])
def test_sums_in_float32_are_off_by_no_more_than_their_bound_for_any_threads(d, width, scale):
    rng = np.random.default_rng(d)
    points, others = rng.normal(size=(403, d)) + 7.0, rng.normal(size=(311, d)) + 7.0
    v = rng.normal(size=311) * np.exp(rng.normal(size=311) * 3) * scale
    kernel = ks.Gaussian(width)
    sums = []
    for n in (1, 2, 8):
        with cf.threads(n):
            sums.append(kernel.short_times(points, others, v))
    (short, off), exact = sums[0], kernel.times(points, others, np.column_stack([v, np.abs(v)]))
    assert all(np.array_equal(short, other[0]) and np.array_equal(off, other[1]) for other in sums)
    assert (np.abs(short - exact[:, 0]) <= off).all()
    assert (off <= 1e-3 * exact[:, 1] + 1e-30 * scale).all()


def test_sums_in_float32_are_left_out_where_they_say_little_or_cost_more():
    points = np.random.default_rng(0).normal(size=(30, 3))
    v = np.ones(30)
    assert ks.Gaussian(1.0).short_times(points, points, v) is not None
    assert ks.Gaussian(1e-3).short_times(points, points, v) is None  # exponents of a million
    assert ks.Gaussian(1.0).short_times(points, points, 0 * v) is None
    assert ks.Gaussian(9.0).short_times(np.ones((4, 65)), np.ones((4, 65)), np.ones(4)) is None
    assert ks.Linear().short_times(points, points, v) is None
