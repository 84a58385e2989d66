"""Claims about the compiled oracle: losses of scores, their gradients and Hessians are the formulas, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.source import Block

N, D = 1003, 7
LOGISTIC, POISSON, GAMMA, SQUARED, TWEEDIE, NEGATIVE_BINOMIAL = range(6)
POWER = 1.5  # of Tweedie, and the negative binomial's alpha


def formulas(loss, y, z):
    """(value, slope, curvature) of half the deviance, in plain NumPy."""
    mu = np.exp(z)
    if loss == LOGISTIC:
        p = 1 / (1 + np.exp(-z))
        return np.logaddexp(0, z) - y * z, p - y, p * (1 - p)
    if loss == POISSON:
        return mu - y - y * (z - np.log(np.where(y > 0, y, 1))), mu - y, mu
    if loss == GAMMA:
        return y / mu - 1 - np.log(y / mu), 1 - y / mu, y / mu
    if loss == SQUARED:
        return (y - z) ** 2 / 2, z - y, np.ones_like(z)
    if loss == NEGATIVE_BINOMIAL:
        own, other = 1 + POWER * y, 1 + POWER * mu
        value = y * np.log(np.where(y > 0, y, 1) / np.where(y > 0, mu, 1)) - (y + 1 / POWER) * np.log(own / other)
        return value, (mu - y) / other, own * mu / other**2
    a, b = 2 - POWER, POWER - 1
    value = mu**a / a + y * mu**-b / b - y**a / (a * b)
    return value, mu**a - y * mu**-b, a * mu**a + b * y * mu**-b


def targets(loss, z, rng):
    mu = np.exp(z)
    drawn = {
        LOGISTIC: lambda: (rng.random(N) < 1 / (1 + np.exp(-z))).astype(float),
        POISSON: lambda: rng.poisson(mu).astype(float),
        GAMMA: lambda: rng.gamma(2.0, mu / 2),
        SQUARED: lambda: z + rng.normal(size=N),
        NEGATIVE_BINOMIAL: lambda: rng.poisson(mu * rng.gamma(1.0, 1.0, N)).astype(float),
        TWEEDIE: lambda: np.where(rng.random(N) < 0.3, 0.0, rng.gamma(2.0, mu / 2)),
    }
    return drawn[loss]()


def called(core, X, y, weight, offset, beta, b, loss, **options):
    d = X.shape[1]
    given = {"with_hessian": True, "block_rows": 256, "threads": 2} | options
    scale, shift = given.pop("scale", np.ones(d)), given.pop("shift", np.zeros(d))
    return core.oracle(Block(X, None, None).rows, y, weight, offset, scale, shift, 1.0, beta, b, loss, POWER, **given)


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(N, D))
    return X, rng.normal(size=D) / 3, 0.3, rng.integers(0, 3, N).astype(float), rng.normal(size=N) / 10


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", range(6))
def test_sums_are_the_formulas(core, problem, rng, loss, is_sparse):
    X, beta, b, weight, offset = problem
    if is_sparse:
        X = np.hstack([X * (rng.random(X.shape) < 0.3)] * 6)  # wide enough to be read entry by entry
        beta = np.tile(beta, 6) / 6
    z = X @ beta + b + offset
    y = targets(loss, z, rng)
    value, slope, curvature = (weight * part for part in formulas(loss, y, z))
    rows = sp.csr_array(X) if is_sparse else X
    ones = np.column_stack([X, np.ones(N)])
    found = called(core, rows, y, weight, offset, beta, b, loss)
    np.testing.assert_allclose(found[0], [value.sum()], rtol=1e-13)
    np.testing.assert_allclose(found[1][0], ones.T @ slope, rtol=1e-11, atol=1e-11 * np.abs(slope).sum())
    np.testing.assert_allclose(found[2][0], (ones * curvature[:, None]).T @ ones, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found[3], np.append(np.abs(X[weight > 0]).max(axis=0), 1.0), rtol=1e-15)
    np.testing.assert_allclose(found[4], np.abs(slope).sum(), rtol=1e-12)
    alone = called(core, rows, y, weight, offset, beta, b, loss, with_hessian=False)
    np.testing.assert_allclose(alone[1], found[1], rtol=1e-11, atol=1e-12 * np.abs(slope).sum())
    assert alone[2] is None


def test_cells_add_up_and_scaled_rows_are_rows(core, problem, rng):
    X, beta, b, weight, offset = problem
    z = X @ beta + b + offset
    y, cells = targets(LOGISTIC, z, rng), rng.integers(-1, 4, N).astype(np.int32)
    whole = called(core, X, y, weight * (cells >= 0), offset, beta, b, LOGISTIC)
    parts = called(core, X, y, weight, offset, beta, b, LOGISTIC, cells=cells, n_cells=4)
    for own, of_all in zip(parts[:3], whole[:3], strict=True):
        np.testing.assert_allclose(own.sum(axis=0), of_all[0], rtol=1e-12, atol=1e-11)
    scale, shift = 2.0 ** rng.integers(-3, 3, D), rng.normal(size=D)
    for with_hessian in (True, False):
        found = called(
            core, (X + shift) / scale, y, weight, offset, beta, b, LOGISTIC,
            scale=scale, shift=shift, with_hessian=with_hessian,
        )  # fmt: skip
        plain = called(core, X, y, weight, offset, beta, b, LOGISTIC)
        np.testing.assert_allclose(found[1], plain[1], rtol=1e-10, atol=1e-10)


def test_any_number_of_threads_gives_the_same_bits(core, problem, rng):
    X, beta, b, weight, offset = problem
    y = targets(POISSON, X @ beta, rng)
    for with_hessian in (True, False):
        one, many = (
            called(core, X, y, weight, offset, beta, b, POISSON, threads=n, with_hessian=with_hessian) for n in (1, 7)
        )
        assert one[1].tobytes() == many[1].tobytes() and one[0].tobytes() == many[0].tobytes()


@pytest.mark.parametrize("with_hessian", [True, False])
def test_rows_of_weight_0_may_hold_anything(core, problem, rng, with_hessian):
    X, beta, b, weight, offset = problem
    y = targets(LOGISTIC, X @ beta, rng)
    weight[5] = 0.0
    before = called(core, X, y, weight, offset, beta, b, LOGISTIC, with_hessian=with_hessian)
    X[5], y[5] = np.nan, np.inf
    after = called(core, X, y, weight, offset, beta, b, LOGISTIC, with_hessian=with_hessian)
    assert before[1].tobytes() == after[1].tobytes() and before[0] == after[0]


@pytest.mark.parametrize("z", [-800.0, -40.0, -1e-300, 0.0, 40.0, 800.0])
def test_a_logistic_loss_keeps_its_digits_far_out(core, z):
    X = np.zeros((4, 1))
    value, gradient, hessian, *_ = called(core, X, np.ones(4), None, np.full(4, z), np.zeros(1), 0.0, LOGISTIC)
    with np.errstate(over="ignore"):
        expected = 4 * np.logaddexp(0, -z), -4 * np.exp(-np.logaddexp(0, z))
    np.testing.assert_allclose([value[0], gradient[0, 1]], expected, rtol=1e-14)
    np.testing.assert_allclose(hessian[0, 1, 1], 4 * np.exp(-np.logaddexp(0, z) - np.logaddexp(0, -z)), rtol=1e-13)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_derivatives_given_by_row_are_summed(core, rng, is_sparse):
    X = np.hstack([rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.3)] * 6)
    slopes, curvatures, weight = rng.normal(size=N), rng.random(N), rng.integers(0, 3, N).astype(float)
    scale, shift = 2.0 ** rng.integers(-3, 3, 6 * D), np.zeros(6 * D) if is_sparse else rng.normal(size=6 * D)
    rows = Block(sp.csr_array(X) if is_sparse else X, None, None).rows
    ones = np.column_stack([X * scale - shift, np.ones(N)])
    for given in (curvatures, None):
        gradient, hessian, _, _ = core.weighted_sums(rows, slopes, given, weight, scale, shift, 1.0, 256, 2)
        np.testing.assert_allclose(gradient[0], ones.T @ (weight * slopes), rtol=1e-11, atol=1e-10)
        if given is None:
            assert hessian is None
        else:
            np.testing.assert_allclose(hessian[0], (ones.T * (weight * given)) @ ones, rtol=1e-11, atol=1e-10)
    with pytest.raises(ValueError, match="a curvature is not >= 0"):
        core.weighted_sums(rows, slopes, -np.ones(N), weight, scale, shift, 1.0, 256, 2)
