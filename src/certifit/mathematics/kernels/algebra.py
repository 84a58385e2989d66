"""Kernels and the rules by which new ones are made of them.

A kernel k(x, z) is Mercer where it is the inner product of phi(x) and phi(z) for some map phi; equally, where it is
symmetric and the matrix of any points has no eigenvalue below 0. A kernel here states that it is Mercer, and by which
rules, or what prevents it.

    k1 + k2, k1 * k2, a * k, k + a, k ** p, k.polynomial((a0, a1, ...)), k.exp()     with a >= 0 and whole p >= 0
    k.weighted(f):  f(x) k(x, z) f(z)    k.of(phi):  k(phi(x), phi(z))       k.on(columns):  of some features alone

X and Z are float64 arrays with one point per row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from numbers import Real
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.kernels.tiles import tiled

if TYPE_CHECKING:
    from certifit.mathematics.kernels.mercer import GramMap

UNIT = 2.0**-53
RowFunction = Callable[[Array], Array]
Tree = Mapping[str, object]  # a kernel as a model file has it


class Kernel(ABC):
    """k(x, z). A concrete kernel writes `__call__`, `_bounded`, `__str__`, `_tree` and its `rule`."""

    __array_ufunc__: ClassVar[None] = None  # a number of NumPy's leaves products with a kernel to the kernel

    rule: ClassVar[str] = ""  # by which the kernel is Mercer where its parts are

    @abstractmethod
    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""

    @abstractmethod
    def __str__(self) -> str:
        """The kernel in one line."""

    @abstractmethod
    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """k(x_i, z_j), and bounds on the rounding error of each."""

    def tree(self) -> Tree:
        """The kernel as plain data. Code is never stored."""
        return self._tree()

    def _tree(self) -> Tree:
        raise ValueError(f"The kernel {self} holds a function, and a model file holds no code.")

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The kernels that this one is made of."""
        return ()

    @property
    def open_question(self) -> str:
        """What has to be known before the kernel is proven to be Mercer; nothing where it is."""
        return next((part.open_question for part in self.parts if part.open_question), "")

    @property
    def is_proven(self) -> bool:
        """Whether the kernel is Mercer by construction."""
        return not self.open_question

    @property
    def is_resolved(self) -> bool:
        """Whether every width is a number."""
        return all(part.is_resolved for part in self.parts)

    def proof(self) -> str:
        """Why the kernel is Mercer, or what is not known."""
        if not self.is_proven:
            return f"Not known to be Mercer: {self.open_question}. is_mercer(kernel, X) can refute it."
        rules = dict.fromkeys(kernel.rule for kernel in (*self._all_parts(), self))
        return "Mercer by construction: " + "; ".join(rules) + "."

    def _all_parts(self) -> list[Kernel]:
        return [inner for part in self.parts for inner in (*part._all_parts(), part)]

    def resolved(self, X: Array, weight: Array | None = None) -> Kernel:
        """The kernel with every width that depends on the data as a number: that of these rows."""
        return self

    # Large matrices

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """k(x_i, z_j) of all points; symmetric where Z is not given."""
        if Z is not None:
            return tiled(lambda place: self(X[place], Z), len(X), len(Z))
        K = tiled(lambda place: self(X[place], X), len(X), len(X))
        K += K.T.copy()
        K *= 0.5
        return K

    def short_matrix(self, X: Array, scale: float = 1.0) -> Array:
        """scale k(x_i, x_j) of all points in float32."""
        return (self.matrix(X) * scale).astype(np.float32)

    def times(self, X: Array, Z: Array, V: Array) -> Array:
        """The matrix times the columns V; the matrix is not held."""
        return tiled(lambda place: self(X[place], Z) @ V, len(X), V.shape[1])

    def short_times(self, X: Array, Z: Array, v: Array) -> tuple[Array, Array] | None:
        """The matrix times v in float32, and a bound on how far each is off; None where that is not faster."""
        return None

    def error_times(self, X: Array, Z: Array, v: Array) -> Array:
        """A bound on sum_j |error of k(x_i, z_j)| v_j for every i, v >= 0."""
        return tiled(lambda place: (self._bounded(X[place], Z)[1] @ v)[:, None], len(X), 1)[:, 0]

    def error_times_by(self, times: Callable[[Array], Array], X: Array, Z: Array, v: Array) -> Array:
        """The same where products of the matrix are at hand; kernels that have no use for them evaluate it anew."""
        return self.error_times(X, Z, v)

    def largest_error(self, X: Array) -> float:
        """A bound on the rounding error of every k(x_i, x_j)."""
        return float(self.error_times(X, X, np.ones(len(X))).max(initial=0.0))

    def entry_error(self, X: Array, Z: Array) -> float:
        """A bound on the rounding error of every k(x_i, z_j) that costs little; infinite where there is none."""
        return inf

    def diagonal(self, X: Array) -> Array:
        """k(x_i, x_i)."""
        return np.array([float(self(x[None], x[None])[0, 0]) for x in X])

    # Rules

    def __add__(self, other: Kernel | float) -> Kernel:
        from certifit.mathematics.kernels.rules import Constant, Sum

        return Sum((self, other if isinstance(other, Kernel) else Constant(checked_factor(other))))

    __radd__ = __add__

    def __mul__(self, other: Kernel | float) -> Kernel:
        from certifit.mathematics.kernels.rules import Product, Scaled

        return Product((self, other)) if isinstance(other, Kernel) else Scaled(self, checked_factor(other))

    __rmul__ = __mul__

    def __sub__(self, other: Kernel | float) -> NoReturn:
        raise ValueError(f"{self} - {other} need not be Mercer: c'Gc could be below 0. Add kernels and numbers >= 0.")

    def __rsub__(self, other: Kernel | float) -> NoReturn:
        raise ValueError(f"{other} - {self} need not be Mercer: c'Gc could be below 0. Add kernels and numbers >= 0.")

    def __neg__(self) -> Kernel:
        return self * -1.0

    def __pow__(self, power: int) -> Kernel:
        from certifit.mathematics.kernels.rules import Power

        return Power(self, power)

    def polynomial(self, coefficients: Sequence[float]) -> Kernel:
        """a0 + a1 k + a2 k^2 + ..., no coefficient below 0."""
        from certifit.mathematics.kernels.rules import PolynomialOf

        return PolynomialOf(self, tuple(coefficients))

    def exp(self) -> Kernel:
        """exp(k)."""
        from certifit.mathematics.kernels.rules import Exponential

        return Exponential(self)

    def weighted(self, f: RowFunction) -> Kernel:
        """f(x) k(x, z) f(z); f gives one number per row of an array."""
        from certifit.mathematics.kernels.rules import Weighted

        return Weighted(self, f)

    def of(self, phi: RowFunction) -> Kernel:
        """k(phi(x), phi(z)); phi gives one row per row of an array."""
        from certifit.mathematics.kernels.rules import Composed

        return Composed(self, phi)

    def on(self, columns: Sequence[int]) -> Kernel:
        """k of some features alone, by their numbers."""
        from certifit.mathematics.kernels.rules import OnColumns

        return OnColumns(self, tuple(int(j) for j in columns))

    def map(self, X: Array) -> GramMap:
        """phi with phi(x)'phi(z) = k(x, z) on the points X; a ValueError with the vector where they refute k."""
        from certifit.mathematics.kernels.mercer import GramMap

        return GramMap(self, X)


def checked_factor(value: float) -> float:
    """A number >= 0 that a kernel may be multiplied by."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"A kernel is combined with kernels and numbers. Got {value!r}.")
    if not (isfinite(value) and value >= 0):
        raise ValueError(
            f"A kernel times {value:g} is not Mercer: c'Gc would change its sign. Use a finite number >= 0."
        )
    return float(value)
