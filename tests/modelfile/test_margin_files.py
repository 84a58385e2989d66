"""Support vector machines in files: row numbers and counts that are not those of the machine are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from forge import refuse, with_number

import certifit as cf
from certifit.modelfile.files import from_bytes, to_bytes


@cache
def file_of(kind: str) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    if kind == "classes":
        return to_bytes(cf.SVC().fit(X, np.digitize(X[:, 0] + rng.normal(size=40), [-0.5, 0.5])))
    return to_bytes(cf.SVR().fit(X, X[:, 0] + rng.normal(size=40)))


KINDS = pytest.mark.parametrize("kind", ["classes", "numbers"])


@KINDS
@pytest.mark.parametrize("number", [-1, 40, 2**62, -(2**63)])
def test_support_vectors_of_rows_that_are_not_there_are_refused(kind, number):
    refuse(with_number(file_of(kind), "state.support", 0, number))


@KINDS
def test_support_vectors_out_of_order_are_refused(kind):
    second = int(from_bytes(file_of(kind)).support_[1])
    refuse(with_number(file_of(kind), "state.support", 0, second))


@pytest.mark.parametrize("number", [-1, 0, 2**62])
def test_counts_that_do_not_add_up_to_the_support_vectors_are_refused(number):
    refuse(with_number(file_of("classes"), "n_support", 0, number))


@KINDS
@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_multipliers_beyond_every_bound_are_refused(kind, number):
    refuse(with_number(file_of(kind), "state.dual", (0, 0), number))
