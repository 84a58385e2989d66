"""CSR is checked in one pass: columns that exist, in order, each once, and offsets that rise to the last entry."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.user_input import canonical


def good(rng, index, n_rows=9000, n_columns=50):
    X = sp.random_array((n_rows, n_columns), density=0.1, format="csr", random_state=rng)
    X.sum_duplicates()
    return X.data, X.indices.astype(index), X.indptr.astype(index)


def is_canonical(core, indices, indptr, n_columns=50):
    found = {core.is_canonical_csr(indices, indptr, n_columns, threads) for threads in (1, 2)}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_what_scipy_calls_canonical_is(core, rng, index):
    _, indices, indptr = good(rng, index)
    assert is_canonical(core, indices, indptr)
    assert is_canonical(core, indices[:0], indptr[:1])
    assert is_canonical(core, indices[:0], np.zeros(7, dtype=index), 0)


FAULTS = {
    "a negative column": lambda indices, indptr, at: indices.__setitem__(at, -1),
    "a column that is not there": lambda indices, indptr, at: indices.__setitem__(at, 50),
    "columns out of order": lambda indices, indptr, at: indices.__setitem__(
        slice(at, at + 2), indices[at : at + 2][::-1]
    ),
    "a column twice": lambda indices, indptr, at: indices.__setitem__(at + 1, indices[at]),
    "offsets that fall": lambda indices, indptr, at: indptr.__setitem__(5000, indptr[5003]),
    "a negative offset": lambda indices, indptr, at: indptr.__setitem__(5000, -3),
    "an offset beyond the entries": lambda indices, indptr, at: indptr.__setitem__(5000, 10**6),
    "a first offset that is not 0": lambda indices, indptr, at: indptr.__setitem__(0, 1),
    "a last offset that leaves entries out": lambda indices, indptr, at: indptr.__setitem__(-1, indptr[-1] - 1),
}


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_anywhere_is_found(core, rng, index, fault):
    _, indices, indptr = good(rng, index)
    row = int(np.flatnonzero(np.diff(indptr) >= 4)[-1])  # in the last block of rows
    FAULTS[fault](indices, indptr, int(indptr[row]))
    assert not is_canonical(core, indices, indptr)


def test_arrays_that_cannot_be_csr_are_refused(core):
    short = np.zeros(2, dtype=np.int32)
    for indices, indptr in ((short, short.astype(np.int64)), (short.astype(float), short), (short, short[:0])):
        with pytest.raises(ValueError, match="CSR"):
            core.is_canonical_csr(indices, indptr, 3, 1)
    with pytest.raises(ValueError, match="contiguous"):
        core.is_canonical_csr(np.zeros(4, dtype=np.int32)[::2], short, 3, 1)


def test_the_gate_copies_only_what_is_out_of_order(rng):
    data, indices, indptr = good(rng, "int32")
    X = sp.csr_array((data, indices, indptr), shape=(9000, 50))
    assert canonical(X) is X
    turned = sp.csr_array((data, indices.copy(), indptr), shape=(9000, 50))
    row = int(np.flatnonzero(np.diff(indptr) >= 2)[0])
    turned.indices[indptr[row] : indptr[row] + 2] = turned.indices[indptr[row] : indptr[row] + 2][::-1].copy()
    sorted_again = canonical(turned)
    assert sorted_again is not turned
    assert (sorted_again != turned).nnz == 0
