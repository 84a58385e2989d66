"""BLAS and LAPACK have one thread inside a fit, and as many as before after it."""

from __future__ import annotations

import warnings
from threading import Thread
from typing import Any

import numpy as np
import pytest
from learners import LEARNERS, Row
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

import certifit as cf
from certifit.runtime import one_blas_thread


def counts() -> list[int]:
    return [library.get_num_threads() for library in ThreadpoolController().select(user_api="blas").lib_controllers]


@one_blas_thread
def inner() -> list[int]:
    return counts()


@one_blas_thread
def outer() -> tuple[list[int], list[int]]:
    return inner(), counts()


def test_blas_has_one_thread_inside_and_as_many_as_before_after():
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        before = counts()
        assert all(set(inside) == {1} for inside in outer())
        assert counts() == before


def in_a_thread(make: Any) -> Any:
    """What a call returns in another thread, while the main thread has set BLAS's number and may set it again."""
    made: list[Any] = []
    thread = Thread(target=lambda: made.append(make()))
    thread.start()
    thread.join()
    return made[0]


def test_blas_has_one_thread_inside_in_any_thread() -> None:
    """threadpoolctl 3.8 sets nothing from a thread that is not the first to have set a number."""
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        before = counts()
        assert all(set(inside) == {1} for inside in in_a_thread(outer))
        assert counts() == before


@pytest.mark.parametrize("key", LEARNERS)
def test_a_fit_in_a_thread_has_the_bits_of_the_main_thread(key: str) -> None:
    row = LEARNERS[key]
    X, y = row.rows(*((60, 8) if key == "locally_weighted_regression" else (150, 60)))

    def answers() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return row.answers(clone(row.model).fit(*((X,) if y is None else (X, y))), X[:20])

    with ThreadpoolController().limit(limits=2, user_api="blas"):
        np.testing.assert_array_equal(in_a_thread(answers), answers())


@pytest.mark.parametrize("units", [(100,), (17, 9)])
def test_a_row_that_a_network_predicts_alone_has_the_bits_that_it_has_among_others(units: tuple[int, ...]) -> None:
    X, y = Row(None, "clf").rows(203, 33)
    model = cf.MLPClassifier(units, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    together = model.predict_proba(X)
    np.testing.assert_array_equal(np.concatenate([model.predict_proba(row[None]) for row in X]), together)
    np.testing.assert_array_equal(
        np.concatenate([model.predict_proba(X[i : i + 7]) for i in range(0, 203, 7)]), together
    )
