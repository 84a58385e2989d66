"""Columns of a block in the storage they came in."""

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Bits, Codes, Columns, Csr, Dense, Missing, Number


def test_some_columns_are_those_of_all():
    random = np.random.default_rng(3)
    words = sp.csr_array(random.random((6, 4)) * (random.random((6, 4)) < 0.4))
    codes = Codes(np.array([0, 1, 2, 1, 0, 2]), np.array([-1, 0, 1], dtype=np.int32), 2)
    columns = Columns([Number(random.random(6)), Csr(words), codes, Dense(random.random((6, 2)))], 6)
    every = columns.toarray()
    for places in ([], [0], [1, 3], [2, 5, 6, 8], list(range(9))):
        np.testing.assert_array_equal(columns.some(np.array(places, dtype=np.int64)), every[:, places])


def test_some_rows_are_those_of_all():
    random = np.random.default_rng(4)
    flags, valid = (Bits(random.integers(0, 256, 3, dtype=np.uint8), offset=5) for _ in range(2))
    codes = Codes(random.integers(0, 3, 16), np.array([-1, 0, 1], dtype=np.int32), 3, valid, null_column=2)
    words = Csr(sp.csr_array(random.random((16, 4)) * (random.random((16, 4)) < 0.4)))
    numbers = [Number(random.random(16)), Number(flags), Number(random.integers(0, 9, 16), valid, 0.5), Missing(valid)]
    columns = Columns([*numbers, words, codes, Dense(random.random((16, 2)))], 16)
    for rows in (np.ones(16, dtype=bool), np.zeros(16, dtype=bool), random.random(16) < 0.5):
        some = columns.taken(rows)
        assert some.shape == (rows.sum(), columns.shape[1])
        np.testing.assert_array_equal(some.toarray(), columns.toarray()[rows])
    places = np.array([9, 2, 2, 15])
    np.testing.assert_array_equal(columns.taken(places).toarray(), columns.toarray()[places])
