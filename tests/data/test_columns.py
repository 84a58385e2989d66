"""Columns of a block in the storage they came in."""

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Codes, Columns, Csr, Dense, Number


def test_some_columns_are_those_of_all():
    random = np.random.default_rng(3)
    words = sp.csr_array(random.random((6, 4)) * (random.random((6, 4)) < 0.4))
    codes = Codes(np.array([0, 1, 2, 1, 0, 2]), np.array([-1, 0, 1], dtype=np.int32), 2)
    columns = Columns([Number(random.random(6)), Csr(words), codes, Dense(random.random((6, 2)))], 6)
    every = columns.toarray()
    for places in ([], [0], [1, 3], [2, 5, 6, 8], list(range(9))):
        np.testing.assert_array_equal(columns.some(np.array(places, dtype=np.int64)), every[:, places])
