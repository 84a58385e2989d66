"""Balls of python-flint: making them, reading them, and the linear algebra of all exact certificates.

A ball is a midpoint and a radius; every operation gives a ball that holds all results of numbers in its operands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from certifit.data.columns import Array

Ball = Any  # flint.arb
Matrix = Any  # flint.arb_mat

PRIMES = ((1 << 61) - 1, (1 << 62) - 57, (1 << 63) - 25)
NEEDED = (0, 6)  # the oldest python-flint that has all of this


class MissingExtra(ImportError, ValueError):
    """The library of balls is not installed, or too old."""


@cache
def flint() -> Any:
    """The library, or what to do where it is missing."""
    try:
        library = import_module("flint")
    except ImportError:
        raise MissingExtra(
            "An exact proof needs python-flint, which is not installed. Install it: pip install 'certifit[exact]'."
        ) from None
    version = tuple(int(part) for part in library.__version__.split(".")[:2])
    if version < NEEDED:
        raise MissingExtra(
            f"An exact proof needs python-flint 0.6 or later. Got {library.__version__}. "
            "Install it: pip install -U 'certifit[exact]'."
        )
    return library


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls with midpoints of so many bits."""
    context = flint().ctx
    before, context.prec = context.prec, bits
    try:
        yield
    finally:
        context.prec = before


def ball(value: Any) -> Ball:
    """A float64 or a whole number, exactly."""
    return flint().arb(value.item() if isinstance(value, np.generic) else value)


def balls(values: Iterable[float]) -> list[Ball]:
    """Float64 numbers, exactly."""
    arb = flint().arb
    return [arb(value) for value in values]


def column(entries: Sequence[Ball]) -> Matrix:
    """A matrix of one column."""
    return flint().arb_mat(len(entries), 1, list(entries))


def matrix(values: Array) -> Matrix:
    """A float64 matrix, exactly."""
    return flint().arb_mat(*values.shape, balls(np.asarray(values, dtype=np.float64).ravel().tolist()))


def diagonal(entries: Sequence[Ball]) -> Matrix:
    """A diagonal matrix."""
    size = len(entries)
    matrix = flint().arb_mat(size, size)
    for j, entry in enumerate(entries):
        matrix[j, j] = entry
    return matrix


def scaled_rows(factors: Sequence[Ball], wide: Matrix) -> Matrix:
    """diag(factors) times a matrix."""
    n_columns, entries = wide.ncols(), wide.entries()
    made = [f * v for i, f in enumerate(factors) for v in entries[i * n_columns : (i + 1) * n_columns]]
    return flint().arb_mat(wide.nrows(), n_columns, made)


def dot(first: Sequence[Ball], second: Sequence[Ball]) -> Ball:
    """sum_i first_i second_i."""
    if not len(first):
        return ball(0)
    return (flint().arb_mat(1, len(first), list(first)) * column(second))[0, 0]


def total(entries: Sequence[Ball]) -> Ball:
    """sum_i entries_i."""
    return dot(entries, [ball(1)] * len(entries))


def solved(square: Matrix, right: Matrix) -> Matrix | None:
    """The solutions for all matrices in the ball; None where one of them may be singular."""
    try:
        solution = square.solve(right)
    except ZeroDivisionError:
        return None
    return solution if is_finite(solution.entries()) else None


def is_finite(entries: Iterable[Ball]) -> bool:
    """Whether no ball is without bounds."""
    return all(entry.is_finite() for entry in entries)


def largest(entries: Iterable[Ball]) -> Ball:
    """A ball of the largest of some numbers; 0 where there are none."""
    most = ball(0)
    for entry in entries:
        most = most.max(entry)
    return most


def positive_part(value: Ball) -> Ball:
    """max(value, 0)."""
    return value.max(ball(0))


def above(value: Ball) -> float:
    """A float64 that no number of the ball exceeds."""
    end = value.upper()
    return math.inf if end.is_nan() or not end.is_finite() else math.nextafter(float(end), math.inf)


def below(value: Ball) -> float:
    """A float64 that no number of the ball falls short of."""
    end = value.lower()
    return -math.inf if end.is_nan() or not end.is_finite() else math.nextafter(float(end), -math.inf)


def about(value: Ball) -> float:
    """The midpoint, rounded."""
    return float(value.mid())


def independent_columns(columns: Array) -> Array:
    """Places of columns that are linearly independent and span all of them, decided in whole numbers.

    A column times a power of two is one of whole numbers. The rank of these columns is that of their Gram matrix G;
    pivots of G modulo a prime are independent, and they span where they are as many as the rank.
    """
    library = flint()
    whole = library.fmpz_mat(*columns.shape, _whole_numbers(columns))
    products = whole.transpose() * whole
    rank = products.rank()
    for prime in PRIMES:
        reduced, computed_rank = library.nmod_mat(products, prime).rref()
        if computed_rank == rank:
            return _pivots(reduced, computed_rank)
    raise ArithmeticError("No prime shows the rank of the columns.")  # pragma: no cover


def _whole_numbers(columns: Array) -> list[Any]:
    """The columns, each times a power of two that makes its entries whole, row by row."""
    parts = []
    for values in columns.T:
        mantissas, exponents = np.frexp(values)
        whole = (mantissas * 2.0**53).astype(np.int64).tolist()
        moves = exponents - np.min(exponents[values != 0], initial=1 << 20)
        parts.append([0 if m == 0 else m << int(move) for m, move in zip(whole, moves.tolist(), strict=True)])
    return [entry for row in zip(*parts, strict=True) for entry in row]


def _pivots(reduced: Any, rank: int) -> Array:
    """The pivot columns of a matrix in reduced row echelon form."""
    places, n_columns = [], reduced.ncols()
    j = 0
    for i in range(rank):
        while j < n_columns and int(reduced[i, j]) == 0:
            j += 1
        places.append(j)
        j += 1
    return np.array(places, dtype=np.intp)


def around(middle: Ball, radius: Ball) -> Ball:
    """The ball of all numbers no further than radius from the middle."""
    return middle + flint().arb(0, radius.abs_upper())


def up_to(value: Ball) -> Ball:
    """The ball from 0 to the largest size that the value can have."""
    half = value.abs_upper() / 2
    return around(half, half)


def root(value: Ball) -> Ball:
    """The square root of a number that is known to be >= 0, though its ball may reach below."""
    low, high = value.lower(), value.upper()
    return (low.sqrt() if low > 0 else ball(0)).union(high.sqrt())


def norm(entries: Sequence[Ball]) -> Ball:
    """sqrt(sum_i entries_i^2)."""
    return root(dot(entries, entries))
