"""BLAS and LAPACK have one thread inside a fit, and as many as before after it."""

from __future__ import annotations

from threadpoolctl import ThreadpoolController

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
