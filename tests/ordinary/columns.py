"""Columns that people add to a table. Each function takes columns of numbers and gives others, tagged with its name."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import SplineTransformer

Array = np.ndarray
Random = np.random.Generator
FIRST_DAY = 15_706  # 1 January 2013, in days since 1970


def identifier(rng: Random, base: list[Array]) -> list[Array]:
    """Numbers of rows, from 1 or from 1,000,001, in order or drawn."""
    n, start = len(base[0]), int(rng.choice([1, 1_000_001, 10**9 + 1]))
    return [start + (np.arange(n) if rng.random() < 0.5 else rng.permutation(20 * n)[:n])]


def date(rng: Random, base: list[Array]) -> list[Array]:
    """Days, nanoseconds or seconds since 1970, or yyyymmdd; sometimes two of them."""
    days = FIRST_DAY + np.sort(rng.integers(int(rng.choice([30, 365, 3650])), size=len(base[0])))
    stamps = days.astype("datetime64[D]").astype(object)
    written = np.array([stamp.year * 10_000 + stamp.month * 100 + stamp.day for stamp in stamps])
    kinds = [days, days * 86_400 * 10**9, days * 86_400, written]
    return [kinds[k] for k in rng.permutation(4)[: 1 + (rng.random() < 0.25)]]


def cents(rng: Random, base: list[Array]) -> list[Array]:
    """An amount to two places, and the same in cents."""
    amount = np.round(picked(rng, base), 2)
    return [amount, np.round(amount * 100)]


def copied(rng: Random, base: list[Array]) -> list[Array]:
    """A column again, in another unit or not."""
    return [picked(rng, base) * float(rng.choice([1.0, 1.0, 1000.0, 0.3048, 2.54]))]


def rounded(rng: Random, base: list[Array]) -> list[Array]:
    """A column to one to four digits of its spread."""
    column = picked(rng, base)
    unit = 10.0 ** (np.floor(np.log10(np.std(column))) - int(rng.integers(5)))
    return [np.round(column / unit) * unit]


def nearly(rng: Random, base: list[Array]) -> list[Array]:
    """A second measurement that differs by 1e-6 of the spread, or by 1e-9 to 1e-3."""
    column = picked(rng, base)
    return [column + np.std(column) * float(rng.choice([1e-6, 1e-9, 1e-4, 1e-3])) * rng.normal(size=len(column))]


def temperatures(rng: Random, base: list[Array]) -> list[Array]:
    """Degrees Celsius to a tenth or in full, and the same in Fahrenheit."""
    celsius = 12 + 9 * rng.normal(size=len(base[0]))
    celsius = np.round(celsius, 1) if rng.random() < 0.7 else celsius
    return [celsius, celsius * 9 / 5 + 32 if rng.random() < 0.5 else 1.8 * celsius + 32]


def shares(rng: Random, base: list[Array]) -> list[Array]:
    """Three or four amounts as shares of their sum, sometimes one of them tiny, sometimes in percent to two places."""
    amounts = rng.gamma(2.0, size=(len(base[0]), int(rng.integers(3, 5))))
    if rng.random() < 0.4:
        amounts[:, 0] *= 10.0 ** -float(rng.integers(2, 7))
    parts = amounts / amounts.sum(axis=1, keepdims=True)
    return list((np.round(100 * parts, 2) if rng.random() < 0.2 else parts).T)


def rare(rng: Random, base: list[Array]) -> list[Array]:
    """A flag of one to five rows."""
    flag = np.zeros(len(base[0]))
    flag[rng.permutation(len(flag))[: rng.integers(1, 6)]] = 1.0
    return [flag]


def splines(rng: Random, base: list[Array]) -> list[Array]:
    """The B-splines of a column, by scikit-learn's defaults."""
    return list(SplineTransformer().fit_transform(picked(rng, base)[:, None]).T)


def groups(rng: Random, base: list[Array]) -> list[Array]:
    """Quantile classes of a column as dummies, one of them dropped or not."""
    column = picked(rng, base)
    edges = np.unique(np.quantile(column, np.linspace(0, 1, int(rng.integers(3, 7)))[1:-1]))
    codes = np.digitize(column, edges)
    return [(codes == k).astype(float) for k in np.unique(codes)[int(rng.random() < 0.5) :]]


def filled(rng: Random, base: list[Array]) -> list[Array]:
    """A column with gaps filled by the mean of the others, and a flag of the gaps."""
    column, gaps = picked(rng, base).copy(), rng.random(len(base[0])) < rng.choice([0.02, 0.1, 0.3])
    gaps[0], gaps[-1] = True, False
    column[gaps] = column[~gaps].mean()
    return [column, gaps.astype(float)]


def total(rng: Random, base: list[Array]) -> list[Array]:
    """The sum of two columns, or their difference or product."""
    one, other = picked(rng, base), picked(rng, base)
    return [(one + other, one - other, one * other)[rng.integers(3)]]


def squared(rng: Random, base: list[Array]) -> list[Array]:
    """Square and cube of a column, as they stand."""
    column = picked(rng, base)
    return [column**2, column**3]


def logarithm(rng: Random, base: list[Array]) -> list[Array]:
    """log(1 + |x|)."""
    return [np.log1p(np.abs(picked(rng, base)))]


def picked(rng: Random, base: list[Array]) -> Array:
    """One of the columns."""
    return base[rng.integers(len(base))]


ADDED = (
    identifier, date, cents, copied, rounded, nearly, temperatures, shares, rare, splines, groups, filled, total,
    squared, logarithm,
)  # fmt: skip
