"""Claims about the compiled passes of softmax regression: losses, gradients, products and Hessians are the formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.source import Block

N, D = 1003, 7


class Rows:
    """Some rows, their classes and a state."""

    def __init__(self, rng, n_classes, is_sparse=False):
        self.X = rng.normal(size=(N, D))
        if is_sparse:
            self.X = np.hstack([self.X * (rng.random(self.X.shape) < 0.3)] * 6)
        self.n_classes, d = n_classes, self.X.shape[1]
        self.rows = sp.csr_array(self.X) if is_sparse else self.X
        self.y = rng.integers(0, n_classes, N).astype(float)
        self.weight = rng.integers(0, 3, N).astype(float)
        self.coef, self.intercept = rng.normal(size=(d, n_classes)), rng.normal(size=n_classes)
        self.scale, self.shift, self.block_rows, self.threads = np.ones(d), np.zeros(d), 256, 2

    @property
    def ones(self):
        return np.column_stack([self.X * self.scale - self.shift, np.ones(N)])

    @property
    def state(self):
        return np.vstack([self.coef, self.intercept])

    def chances(self, lift=0.0):
        z = self.ones @ self.state + lift
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def call(self, f, *more, with_y=True):
        y = (self.y,) if with_y else ()
        given = (Block(self.rows, None, None).rows, *y, self.weight, self.scale, self.shift, 1.0)
        return f(*given, self.coef, self.intercept, *more, self.block_rows, self.threads)


CASES = pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
CLASSES = pytest.mark.parametrize("n_classes", [2, 3, 8, 10, 17])


@CLASSES
@CASES
def test_cross_entropy_and_its_gradient_are_the_formulas(core, rng, n_classes, is_sparse):
    rows = Rows(rng, n_classes, is_sparse)
    p = rows.chances()
    own = np.eye(n_classes)[rows.y.astype(int)]
    value, gradient = rows.call(core.softmax_oracle)
    np.testing.assert_allclose(value, -(rows.weight * np.log((p * own).sum(axis=1))).sum(), rtol=1e-12)
    expected = rows.ones.T @ (rows.weight[:, None] * (p - own))
    np.testing.assert_allclose(gradient, expected, rtol=1e-11, atol=1e-10)


@CASES
def test_the_pairs_are_the_parts_of_the_hessian(core, rng, is_sparse):
    rows = Rows(rng, 4, is_sparse)
    p, found = rows.chances(), rows.call(core.softmax_pairs, with_y=False)
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    for (a, b), own in zip(pairs, found, strict=True):
        expected = (rows.ones * (rows.weight * p[:, a] * p[:, b])[:, None]).T @ rows.ones
        np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-11)


@CLASSES
@CASES
def test_a_product_is_that_of_the_hessian_and_a_direction(core, rng, n_classes, is_sparse):
    rows = Rows(rng, n_classes, is_sparse)
    ways, levels = rng.normal(size=rows.coef.shape), rng.normal(size=n_classes)
    p, q = rows.chances(), rows.ones @ np.vstack([ways, levels])
    slopes = rows.weight[:, None] * p * (q - (p * q).sum(axis=1, keepdims=True))
    found = rows.call(core.softmax_product, ways, levels, with_y=False)
    np.testing.assert_allclose(found, rows.ones.T @ slopes, rtol=1e-10, atol=1e-10)


@CASES
def test_a_dual_point_has_the_divergence_and_moments_of_its_mixture(core, rng, is_sparse):
    rows = Rows(rng, 5, is_sparse)
    lift, mix, share = rng.normal(size=5) / 10, rng.dirichlet(np.ones(5)), 0.03
    p, lifted = rows.chances(), rows.chances(lift)
    q = (1 - share) * lifted + share * mix
    divergence, moments, curvature = rows.call(core.softmax_dual, lift, mix, share)
    np.testing.assert_allclose(divergence, (rows.weight[:, None] * q * np.log(q / p)).sum(), rtol=1e-10)
    expected = rows.ones.T @ (rows.weight[:, None] * (q - np.eye(5)[rows.y.astype(int)]))
    np.testing.assert_allclose(moments, expected, rtol=1e-11, atol=1e-10)
    weighted = rows.weight[:, None] * lifted
    np.testing.assert_allclose(curvature, np.diag(weighted.sum(axis=0)) - weighted.T @ lifted, rtol=1e-11, atol=1e-11)


def test_a_dual_point_at_the_state_is_at_no_distance(core, rng):
    rows = Rows(rng, 5)
    divergence, moments, _ = rows.call(core.softmax_dual, np.zeros(5), np.full(5, 0.2), 0.0)
    assert 0 <= divergence < 1e-25
    np.testing.assert_allclose(moments, rows.call(core.softmax_oracle)[1], rtol=1e-13, atol=1e-12)
    near, *_ = rows.call(core.softmax_dual, np.array([1e-6, 0, 0, 0, 0]), np.full(5, 0.2), 0.0)
    p = rows.chances()[:, 0]
    np.testing.assert_allclose(near, (rows.weight * p * (1 - p)).sum() * 1e-12 / 2, rtol=1e-5)


def test_scaled_and_shifted_rows_are_rows(core, rng):
    rows = Rows(rng, 10)
    plain = rows.call(core.softmax_oracle)
    rows.scale, rows.shift = 2.0 ** rng.integers(-3, 3, D), rng.normal(size=D)
    rows.rows = np.asfortranarray((rows.X + rows.shift) / rows.scale)
    found = rows.call(core.softmax_oracle)
    np.testing.assert_allclose(found[0], plain[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], plain[1], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_columns_of_any_type_give_the_bits_of_float64(core, rng, dtype):
    rows = Rows(rng, 10)
    rows.rows = rng.integers(0, 255, (N, D)).astype(np.float64)
    wide = rows.call(core.softmax_oracle)
    rows.rows = rows.rows.astype(dtype)
    narrow = rows.call(core.softmax_oracle)
    assert wide[0] == narrow[0] and wide[1].tobytes() == narrow[1].tobytes()


@CASES
def test_any_number_of_threads_gives_the_same_bits(core, rng, is_sparse):
    rows = Rows(rng, 10, is_sparse)
    lift = rng.normal(size=10)
    calls = [
        lambda: rows.call(core.softmax_oracle)[1],
        lambda: rows.call(core.softmax_pairs, with_y=False),
        lambda: rows.call(core.softmax_product, rows.coef, lift, with_y=False),
        lambda: rows.call(core.softmax_dual, lift, np.full(10, 0.1), 0.1)[1],
    ]
    one = [f().tobytes() for f in calls]
    rows.threads = 7
    assert one == [f().tobytes() for f in calls]


def test_rows_of_weight_0_may_hold_anything(core, rng):
    rows = Rows(rng, 3)
    rows.weight[5] = 0.0
    before = rows.call(core.softmax_oracle)
    rows.X[5], rows.y[5] = np.nan, np.inf
    after = rows.call(core.softmax_oracle)
    assert before[0] == after[0] and before[1].tobytes() == after[1].tobytes()


@pytest.mark.parametrize("z", [-800.0, -40.0, -1e-300, 0.0, 40.0, 800.0])
def test_a_loss_keeps_its_digits_far_out(core, z):
    one = np.zeros(1)
    given = (Block(np.zeros((4, 1)), None, None).rows, np.ones(4), None, np.ones(1), one, 1.0)
    value, gradient = core.softmax_oracle(*given, np.zeros((1, 2)), np.array([0.0, z]), 256, 1)
    with np.errstate(over="ignore"):
        expected = 4 * np.logaddexp(0, -z), -4 * np.exp(-np.logaddexp(0, z))
    np.testing.assert_allclose([value, gradient[1, 1]], expected, rtol=1e-14)


@pytest.mark.parametrize("code", [-1.0, 3.0, 0.5, np.nan])
def test_what_is_no_class_is_refused(core, rng, code):
    rows = Rows(rng, 3)
    rows.weight[7], rows.y[7] = 1.0, code
    with pytest.raises(ValueError, match="a class is not a whole number below the number of classes"):
        rows.call(core.softmax_oracle)
