"""What the rules make of kernels: sums, products, powers, polynomials, exp, and kernels of other points.

Every kernel here is Mercer where its parts are, and bounds its rounding error by theirs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from numbers import Integral

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import UNIT, Kernel, RowFunction, Tree, checked_factor

MOST_POWER = 1000


@dataclass(frozen=True)
class Constant(Kernel):
    """k(x, z) = c, c >= 0."""

    c: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", checked_factor(self.c))

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return np.full((len(X), len(Z)), self.c)

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K = self(X, Z)
        return K, np.zeros_like(K)

    def __str__(self) -> str:
        return f"{self.c:g}"

    rule = "a constant c >= 0 is the product of the maps sqrt(c)"

    def _tree(self) -> Tree:
        return {"kind": "constant", "c": self.c}


@dataclass(frozen=True)
class Many(Kernel):
    """A kernel of several."""

    kernels: tuple[Kernel, ...]

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""
        return self.kernels

    def resolved(self, X: Array, weight: Array | None = None) -> Kernel:
        """The kernel with every width as a number."""
        return type(self)(tuple(part.resolved(X, weight) for part in self.kernels))


class Sum(Many):
    """k1 + k2 + ..."""

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return np.asarray(sum(part(X, Z) for part in self.kernels))

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K, E = self.kernels[0]._bounded(X, Z)
        for part in self.kernels[1:]:
            more, error = part._bounded(X, Z)
            K = K + more
            E = E + error + UNIT * np.abs(K)
        return K, E

    def __str__(self) -> str:
        return " + ".join(str(part) for part in self.kernels)

    rule = "a sum of Mercer kernels is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "sum", "kernels": [part.tree() for part in self.kernels]}


class Product(Many):
    """k1 k2 ..."""

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return np.asarray(prod(part(X, Z) for part in self.kernels))

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K, E = self.kernels[0]._bounded(X, Z)
        for part in self.kernels[1:]:
            more, error = part._bounded(X, Z)
            E = np.abs(K) * error + np.abs(more) * E + E * error
            K = K * more
            E = E + UNIT * np.abs(K)
        return K, E

    def __str__(self) -> str:
        return " ".join(f"({part})" for part in self.kernels)

    rule = "a product of Mercer kernels is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "product", "kernels": [part.tree() for part in self.kernels]}


@dataclass(frozen=True)
class Made(Kernel):
    """A kernel made of one other, of the same points or of points made of them (`inner`)."""

    kernel: Kernel

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""
        return (self.kernel,)

    def inner(self, X: Array) -> Array:
        """The points that the other kernel takes."""
        return X

    def resolved(self, X: Array, weight: Array | None = None) -> Kernel:
        """The kernel with every width as a number."""
        return replace(self, kernel=self.kernel.resolved(self.inner(X), weight))

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return self.kernel(self.inner(X), self.inner(Z))

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        return self.kernel._bounded(self.inner(X), self.inner(Z))


@dataclass(frozen=True)
class Scaled(Made):
    """a k, a >= 0."""

    factor: float

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return self.factor * self.kernel(X, Z)

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K, E = self.kernel._bounded(X, Z)
        return self.factor * K, self.factor * (E + UNIT * np.abs(K))

    def __str__(self) -> str:
        return f"{self.factor:g} ({self.kernel})"

    rule = "a multiple >= 0 of a Mercer kernel is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "scaled", "factor": self.factor, "kernel": self.kernel.tree()}


@dataclass(frozen=True)
class PolynomialOf(Made):
    """a0 + a1 k + a2 k^2 + ..., every a >= 0."""

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.coefficients:
            raise ValueError("A polynomial of a kernel needs at least one coefficient, the constant term first.")
        object.__setattr__(self, "coefficients", tuple(checked_factor(a) for a in self.coefficients))

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        K = self.kernel(X, Z)
        return np.asarray(np.polynomial.polynomial.polyval(K, np.asarray(self.coefficients)))

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        inner, error = self.kernel._bounded(X, Z)
        value = np.polynomial.polynomial.polyval
        a, size = np.asarray(self.coefficients), np.abs(inner)
        moved = value(size + error, a) - value(size, a)  # coefficients >= 0: no change of |k| by `error` adds more
        return value(inner, a), np.maximum(moved, 0.0) + 4 * len(a) * UNIT * value(size + error, a)

    def __str__(self) -> str:
        terms = [f"{a:g}" + f" ({self.kernel})^{i}" * (i > 0) for i, a in enumerate(self.coefficients) if a]
        return " + ".join(terms) or "0"

    rule = "a polynomial with coefficients >= 0 of a Mercer kernel is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "polynomial_of", "coefficients": list(self.coefficients), "kernel": self.kernel.tree()}


@dataclass(frozen=True)
class Power(Made):
    """k^p, p a whole number >= 0."""

    power: int

    def __post_init__(self) -> None:
        if not isinstance(self.power, Integral) or isinstance(self.power, bool):
            raise ValueError(
                f"A kernel to the power {self.power!r} need not be Mercer: only whole powers >= 0 are. Use k ** 2."
            )
        if not 0 <= self.power <= MOST_POWER:
            raise ValueError(f"The power of a kernel must be a whole number from 0 to {MOST_POWER}. Got {self.power}.")

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return self.kernel(X, Z) ** int(self.power)

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K, E = self.kernel._bounded(X, Z)
        return K ** int(self.power), power_error(np.abs(K), E, int(self.power))

    def __str__(self) -> str:
        return f"({self.kernel})^{self.power}"

    rule = "a whole power >= 0 of a Mercer kernel is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "power", "power": int(self.power), "kernel": self.kernel.tree()}


def power_error(size: Array, error: Array, power: int) -> Array:
    """What an error of k makes of k^p, with the rounding of the power itself; p (|k| + e)^(p-1) e at most."""
    most = size + error
    return power * (most ** max(power - 1, 0)) * error * (power > 0) + 4 * (power + 1) * UNIT * most**power


@dataclass(frozen=True)
class Exponential(Made):
    """exp(k)."""

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return np.exp(self.kernel(X, Z))

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K, E = self.kernel._bounded(X, Z)
        value = np.exp(K)
        return value, value * (np.expm1(E) + 4 * UNIT)

    def __str__(self) -> str:
        return f"exp({self.kernel})"

    rule = "exp of a Mercer kernel is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "exp", "kernel": self.kernel.tree()}


@dataclass(frozen=True)
class Weighted(Made):
    """f(x) k(x, z) f(z)."""

    f: RowFunction

    def _factors(self, X: Array) -> Array:
        return one_number_per_row(self.f(X), len(X), "f of kernel.weighted(f)")

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return self._factors(X)[:, None] * self.kernel(X, Z) * self._factors(Z)

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K, E = self.kernel._bounded(X, Z)
        by_row, by_column = self._factors(X)[:, None], self._factors(Z)
        K = by_row * K * by_column
        return K, np.abs(by_row) * E * np.abs(by_column) * (1 + 4 * UNIT) + 4 * UNIT * np.abs(K)

    def __str__(self) -> str:
        return f"f(x) ({self.kernel}) f(z)"

    rule = "f(x) k(x, z) f(z) of a Mercer kernel is Mercer"


@dataclass(frozen=True)
class Composed(Made):
    """k(phi(x), phi(z))."""

    phi: RowFunction

    def inner(self, X: Array) -> Array:
        """The points that the other kernel takes."""
        return mapped_rows(self.phi, X, "phi of kernel.of(phi)")

    def __str__(self) -> str:
        return f"{self.kernel} of phi(x), phi(z)"

    rule = "k(phi(x), phi(z)) of a Mercer kernel is Mercer"


def mapped_rows(phi: RowFunction, X: Array, what: str) -> Array:
    """The rows that a user's function gives, or a refusal."""
    rows = np.ascontiguousarray(phi(X), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(X):
        raise ValueError(f"{what} must give one row per row: shape ({len(X)}, m). Got shape {rows.shape}.")
    return rows


@dataclass(frozen=True)
class OnColumns(Made):
    """k of some features."""

    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.columns or min(self.columns) < 0:
            raise ValueError(f"kernel.on(columns) needs numbers of columns >= 0, at least one. Got {self.columns}.")

    def inner(self, X: Array) -> Array:
        """The points that the other kernel takes."""
        if max(self.columns) >= X.shape[1]:
            raise ValueError(f"kernel.on(columns) names column {max(self.columns)}, and X has {X.shape[1]} columns.")
        return np.ascontiguousarray(X[:, list(self.columns)])

    def __str__(self) -> str:
        return f"{self.kernel} of columns {', '.join(map(str, self.columns))}"

    rule = "a Mercer kernel of some features is Mercer"

    def _tree(self) -> Tree:
        return {"kind": "on", "columns": list(self.columns), "kernel": self.kernel.tree()}


def one_number_per_row(values: object, n_rows: int, what: str) -> Array:
    """The values of a user's function, or a refusal."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (n_rows,):
        raise ValueError(f"{what} must give one number per row: shape ({n_rows},). Got shape {numbers.shape}.")
    return numbers
