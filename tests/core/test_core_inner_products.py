"""Products of few columns over many rows by the BLAS: against exact sums, symmetric, the same bits for any threads."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.linalg import cython_blas

DSYRK = cython_blas.__pyx_capi__["dsyrk"]


def test_products_are_those_of_the_rows_and_symmetric(core, rng):
    A = rng.integers(-1000, 1000, size=(1031, 17)).astype(np.float64)
    for block_rows in (1, 100, 1031, 5000):
        assert (core.inner_products(DSYRK, A, block_rows, 2) == A.T @ A).all()
    A = rng.normal(size=(701, 33))
    products = core.inner_products(DSYRK, A, 64, 2)
    assert (products == products.T).all()
    assert np.abs(products - A.T @ A).max() <= 1e-14 * (np.abs(A).T @ np.abs(A)).max()


def test_any_number_of_threads_gives_the_same_bits(core, rng):
    A = rng.normal(size=(3000, 40))
    first = core.inner_products(DSYRK, A, 256, 1)
    assert all((core.inner_products(DSYRK, A, 256, threads) == first).all() for threads in (2, 8))


def test_another_function_of_the_blas_is_refused(core):
    for name in ("dgemm", "ssyrk", "dsyr2k", "zherk", "dsymv"):
        with pytest.raises(ValueError, match=re.escape("dsyrk")):
            core.inner_products(cython_blas.__pyx_capi__[name], np.ones((3, 2)), 2, 1)


def test_no_rows_give_zeros(core):
    assert (core.inner_products(DSYRK, np.zeros((0, 3)), 4, 1) == np.zeros((3, 3))).all()


def test_blocks_of_many_columns_are_multiplied_in_parts(core, rng):
    A = rng.integers(-9, 9, size=(300, 4000)).astype(np.float64)
    assert (core.inner_products(DSYRK, A, 5000, 1) == A.T @ A).all()
