"""Sparse matrices by columns: their rows are made when they are first asked for, and are the same."""

from __future__ import annotations

import pickle
from copy import copy

import numpy as np
import pytest
import scipy.sparse as sp

import certifit as cf
from certifit.data.by_column import RowsByColumn
from certifit.data.user_input import canonical


@pytest.fixture
def columns(rng):
    return sp.random(40, 25, 0.2, format="csc", random_state=rng)


def test_the_rows_are_those_of_the_columns(columns):
    rows = canonical(columns)
    assert isinstance(rows, RowsByColumn) and rows.by_column is columns and not rows.has_rows
    assert rows.shape == columns.shape and rows.dtype == columns.dtype and rows.format == "csr" and not rows.has_rows
    assert (rows.toarray() == columns.toarray()).all() and rows.has_rows
    assert (rows[3:9].toarray() == columns.toarray()[3:9]).all()
    assert (rows.T.toarray() == columns.toarray().T).all()


@pytest.mark.parametrize("is_made", [False, True])
def test_copies_are_the_same_matrix(columns, is_made):
    rows = canonical(columns)
    if is_made:
        assert rows.nnz == columns.nnz
    for other in (pickle.loads(pickle.dumps(rows)), copy(rows), rows.copy()):
        assert (other.toarray() == columns.toarray()).all() and other.dtype == columns.dtype


def test_columns_that_are_not_canonical_become_rows_at_once(columns):
    columns.indices[:2] = columns.indices[:2][::-1].copy()
    assert columns.indptr[1] > 1
    assert not isinstance(canonical(columns), RowsByColumn)


FAULTS = {
    "a short array of entries": lambda X: setattr(X, "data", X.data[:-4]),
    "offsets beyond the entries": lambda X: X.indptr.__setitem__(-1, X.nnz + 5),
    "offsets that fall": lambda X: X.indptr.__setitem__(3, 10**6),
    "a row that is not there": lambda X: X.indices.__setitem__(0, X.shape[0]),
    "a negative row": lambda X: X.indices.__setitem__(0, -1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_corrupt_columns_are_refused_in_words(columns, fault):
    FAULTS[fault](columns)
    with pytest.raises(ValueError, match="X is a corrupt sparse csc array"):
        canonical(columns)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_lasso_of_columns_has_the_bits_of_one_of_rows_and_makes_none(rng, weighted, monkeypatch):
    X = sp.random(60, 400, 0.1, format="csc", random_state=rng)
    y, weight = rng.normal(size=60), rng.integers(1, 4, size=60) if weighted else None
    by_row = cf.Lasso(alpha=0.01).fit(X.tocsr(), y, weight)
    monkeypatch.setattr(RowsByColumn, "tocsr", None)
    monkeypatch.setattr(type(X), "tocsr", None)
    by_column = cf.Lasso(alpha=0.01).fit(X, y, weight)
    assert (by_column.coef_ == by_row.coef_).all() and by_column.intercept_ == by_row.intercept_
    assert by_column.certificate_.value == by_row.certificate_.value and by_column.certificate_.holds
    assert np.count_nonzero(by_column.coef_)


def unaligned(part):
    moved = np.empty(part.nbytes + 1, np.uint8)[1:].view(part.dtype)
    moved[:] = part
    return moved


LAYOUTS = {
    "strided": lambda part: np.repeat(part, 2)[::2],
    "backwards": lambda part: part[::-1].copy()[::-1],
    "unaligned": unaligned,
    "wide": lambda part: part if part.dtype.kind == "f" else part.astype(np.int64),  # beside another of 32 bits
}


@pytest.mark.parametrize("model", [cf.Lasso(alpha=0.01), cf.Ridge()])
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_entries_and_indices_may_lie_anyhow(rng, model, kind, part, layout):
    X, y = sp.random(60, 400, 0.1, format=kind, random_state=rng), rng.normal(size=60)
    expected = model.fit(X.copy(), y).coef_
    setattr(X, part, LAYOUTS[layout](getattr(X, part)))
    assert (model.fit(X, y).coef_ == expected).all()
