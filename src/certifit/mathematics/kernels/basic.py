"""The kernels that others are made of: linear, polynomial, Gaussian, of a matrix, of a map, of a user's function."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite, lgamma, sqrt
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.mathematics.kernels.algebra import UNIT, Kernel, RowFunction, Tree
from certifit.mathematics.kernels.rules import mapped_rows, power_error
from certifit.mathematics.kernels.short import short_share, short_sums
from certifit.mathematics.kernels.tiles import dense, form_matrix, form_times, gaussian_sums

MOST_DEGREE = 1000
TINY_ROW = 1e-140
PIECE = 4096  # rows at a time
FARTHEST = 1e150  # in widths from the centre: squares of more are beyond float64
MOST_TERMS = 100_000  # of a truncated map
FEW_COLUMNS = 64  # up to which sums in float32 are faster than a BLAS
UNDERFLOW = 1e-320  # more than a product of tiny entries can lose
ROUNDED = 1e-12  # of its eigenvalues: a matrix of a kernel may miss 0 by as much
Form = tuple[str, float, int]


class Formed(Kernel):
    """A kernel whose large matrices the compiled core makes: of the inner products of prepared rows."""

    def prepared(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """The rows whose inner products the kernel is made of; the same array twice where X is Z."""
        rows = dense(X)
        return rows, rows if Z is X else dense(Z)

    @property
    @abstractmethod
    def form(self) -> Form:
        """The kernel as the core knows it: its kind, a constant and a degree."""

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """k(x_i, z_j) of all points; symmetric where Z is not given."""
        return form_matrix(self.form, *self.prepared(X, X if Z is None else Z))

    def short_matrix(self, X: Array, scale: float = 1.0) -> Array:
        """scale k(x_i, x_j) of all points in float32."""
        return (
            form_matrix(self.form, *self.prepared(X, X), is_short=True)
            if scale == 1
            else super().short_matrix(X, scale)
        )

    def times(self, X: Array, Z: Array, V: Array) -> Array:
        """The matrix times the columns V; the matrix is not held."""
        return form_times(self.form, *self.prepared(X, Z), V)

    def times_of_rows(self, X: Array, Z: Array, places: Array, V: Array, wanted: Array) -> Array:
        """The same at the wanted rows, a flag per row, for Z = X[places]: half of the matrix among the wanted is made.

        Faster where most of the wanted rows are among the places.
        """
        every, rest = np.zeros((len(X), V.shape[1])), ~wanted[places]
        every[places] = V
        rows = self._beside(X[wanted], Z)
        f = form_times(self.form, rows, rows, every[wanted])
        return f + form_times(self.form, rows, self._beside(Z[rest], Z), V[rest]) if rest.any() else f

    def _beside(self, X: Array, Z: Array) -> Array:
        """Rows as they are prepared beside others."""
        return self.prepared(X, Z)[0]

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return self.of_products(*self.prepared(X, Z))

    def of_products(self, X: Array, Z: Array) -> Array:
        """The kernel of few prepared rows."""
        return np.asarray(X @ Z.T)


def _norms(X: Array) -> Array:
    """Bounds on |x| from above; squares of entries below 1e-150 underflow, so rows of those are scaled first."""
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    is_tiny = norms < TINY_ROW
    if is_tiny.any():
        some = np.asarray(X[is_tiny], dtype=np.float64)
        largest = np.abs(some).max(axis=1, initial=0.0)
        some = some / np.where(largest > 0, largest, 1.0)[:, None]
        norms[is_tiny] = largest * np.sqrt(np.einsum("ij,ij->i", some, some))
    return np.asarray(norms * (1 + (X.shape[1] + 4) * UNIT))


def _underflow(X: Array, Z: Array, v: Array) -> Array:
    """What products of tiny entries of rows that are not 0 can lose, sum_j over z_j times v_j, for every x_i."""
    lost = (X.shape[1] + 6) * max(UNDERFLOW * float(v[Z.any(axis=1)].sum()), 5e-324 * bool(v.any()))
    return np.where(X.any(axis=1), lost, 0.0)


@dataclass(frozen=True)
class Linear(Formed):
    """k(x, z) = x'z."""

    @property
    def form(self) -> Form:
        """The kernel as the core knows it."""
        return "linear", 0.0, 1

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        return self(X, Z), (X.shape[1] + 4) * UNIT * np.outer(_norms(X), _norms(Z))

    def error_times(self, X: Array, Z: Array, v: Array) -> Array:
        """A bound on sum_j |error of k(x_i, z_j)| v_j for every i, v >= 0."""
        share = (X.shape[1] + 4) * UNIT * float(_norms(Z) @ v) * (1 + len(v) * UNIT)
        return np.asarray(share * _norms(X) + _underflow(X, Z, v))

    def diagonal(self, X: Array) -> Array:
        """k(x_i, x_i)."""
        return np.asarray(np.einsum("ij,ij->i", X, X))

    def __str__(self) -> str:
        return "x'z"

    rule = "x'z is the product of the points themselves"

    def _tree(self) -> Tree:
        return {"kind": "linear"}


@dataclass(frozen=True)
class Polynomial(Formed):
    """k(x, z) = (c + x'z)^degree, degree a whole number >= 0 and c >= 0.

    Its map has all products of at most `degree` features; for c = 0 of exactly as many.
    """

    degree: int = 2
    c: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.degree, Integral) or isinstance(self.degree, bool):
            raise ValueError(
                f"Polynomial(degree) needs a whole number: other powers need not be Mercer. Got {self.degree!r}."
            )
        if not 0 <= self.degree <= MOST_DEGREE:
            raise ValueError(f"degree must be a whole number from 0 to {MOST_DEGREE}. Got {self.degree}.")
        if not isinstance(self.c, Real) or not (isfinite(self.c) and self.c >= 0):
            raise ValueError(f"c must be a finite number >= 0, or (c + x'z)^p is not Mercer. Got {self.c!r}.")

    @property
    def form(self) -> Form:
        """The kernel as the core knows it."""
        return "polynomial", float(self.c), int(self.degree)

    def of_products(self, X: Array, Z: Array) -> Array:
        """The kernel of few prepared rows."""
        return (float(self.c) + X @ Z.T) ** int(self.degree)

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        size = np.outer(_norms(X), _norms(Z)) + float(self.c)
        return self(X, Z), power_error(size, (X.shape[1] + 6) * UNIT * size, int(self.degree))

    def error_times(self, X: Array, Z: Array, v: Array) -> Array:
        """A bound on sum_j |error of k(x_i, z_j)| v_j for every i, v >= 0."""
        # The bounds are a multiple of (c + |x| |z|)^p, which is the same kernel of the norms.
        p, of_x, of_z = int(self.degree), _norms(X)[:, None], _norms(Z)[:, None]
        share = (p * (X.shape[1] + 6) + 4 * (p + 1)) * UNIT * (1 + (X.shape[1] + 6) * UNIT) ** p
        rounded = share * (1 + 16 * (p + 1) * UNIT) * self.times(of_x, of_z, v[:, None])[:, 0]
        return np.asarray(rounded + (0.0 if self.c else _underflow(X, Z, v)))

    def diagonal(self, X: Array) -> Array:
        """k(x_i, x_i)."""
        return np.asarray((float(self.c) + np.einsum("ij,ij->i", X, X)) ** int(self.degree))

    def __str__(self) -> str:
        return f"({self.c:g} + x'z)^{self.degree}" if self.c else f"(x'z)^{self.degree}"

    rule = "(c + x'z)^p is a polynomial of x'z with coefficients >= 0"

    def _tree(self) -> Tree:
        return {"kind": "polynomial", "degree": int(self.degree), "c": float(self.c)}


@dataclass(frozen=True)
class Gaussian(Formed):
    """k(x, z) = exp(-|x - z|^2 / (2 sigma^2)), sigma > 0.

    sigma="scale": sigma^2 = d v / 2, v the variance of all entries of the rows of the fit: scikit-learn's
    gamma="scale". It is found once, from the features of all rows, never from a target.
    """

    sigma: float | str = "scale"

    def __post_init__(self) -> None:
        is_width = isinstance(self.sigma, Real) and not isinstance(self.sigma, bool) and 0 < self.sigma < inf
        if not is_width and not (isinstance(self.sigma, str) and self.sigma == "scale"):
            raise ValueError(f"sigma must be a finite number > 0, or 'scale'. Got {self.sigma!r}.")

    def resolved(self, X: Array, weight: Array | None = None) -> Kernel:
        """The kernel with every width as a number."""
        return replace(self, sigma=scale_width(X, weight)) if isinstance(self.sigma, str) else self

    @property
    def is_resolved(self) -> bool:
        """Whether the width is a number."""
        return not isinstance(self.sigma, str)

    @property
    def width(self) -> float:
        """sigma as a number."""
        if isinstance(self.sigma, str):
            raise ValueError("sigma='scale' is a number only for rows: use kernel.resolved(X).")
        return float(self.sigma)

    @property
    def form(self) -> Form:
        """The kernel as the core knows it."""
        return "gaussian", 0.0, 1

    def prepared(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """Points in widths from a common centre: distances are the same, and less is lost to rounding."""
        centre = self._centre(Z)
        rows = self._moved(X, centre)
        return rows, rows if Z is X else self._moved(Z, centre)

    def _centre(self, Z: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.mean(Z, axis=0) if len(Z) else np.zeros(Z.shape[1])
        return np.where(np.isfinite(centre), centre, 0.0)

    def _beside(self, X: Array, Z: Array) -> Array:
        return self._moved(X, self._centre(Z))

    def _moved(self, X: Array, centre: Array) -> Array:
        """Points in widths from a centre; no second array of their size is made."""
        with np.errstate(over="ignore", invalid="ignore"):
            rows = dense(X - centre)
            rows /= self.width
        return np.clip(rows, -FARTHEST, FARTHEST, out=rows)

    def _squares(self, X: Array, centre: Array) -> Array:
        """|x|^2 of prepared rows, some at a time: the rows are not held."""
        squares = np.empty(len(X))
        for begin in range(0, len(X), PIECE):
            rows = self._moved(X[begin : begin + PIECE], centre)
            squares[begin : begin + PIECE] = (rows**2).sum(axis=1)
        return squares

    def of_squares(self, squares: Array) -> Array:
        """The kernel of squared distances."""
        with np.errstate(over="ignore", under="ignore"):
            exponents = squares / self.width
            exponents /= -2 * self.width  # not by the square of a width, which may leave float64
            return np.asarray(np.exp(exponents, out=exponents))

    def of_products(self, X: Array, Z: Array) -> Array:
        """The kernel of few prepared rows."""
        squares = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2 * (X @ Z.T)
        return np.asarray(np.exp(-0.5 * np.maximum(squares, 0.0)))

    def _shares(self, X: Array, Z: Array) -> tuple[Array, Array]:
        """The error of the exponent is at most the sum of these of both points.

        Products of d terms, two roundings of every coordinate and four of the sums, each relative to |x|^2 + |z|^2.
        """
        centre, unit = self._centre(Z), (X.shape[1] + 12) * UNIT
        return unit * self._squares(X, centre), unit * self._squares(Z, centre)

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K = self(X, Z)
        of_x, of_z = self._shares(X, Z)
        with np.errstate(over="ignore"):
            # An entry that is 0 may be one that is too small for float64, times e to its share.
            most = np.maximum(K, 1e-307)
            return K, np.minimum(most * (np.expm1(of_x[:, None] + of_z) + 8 * UNIT) + 1e-300, 1.0)

    def error_times(self, X: Array, Z: Array, v: Array) -> Array:
        """A bound on sum_j |error of k(x_i, z_j)| v_j for every i, v >= 0."""
        return self.error_times_by(lambda V: self.times(X, Z, V), X, Z, v)

    def error_times_by(self, times: Callable[[Array], Array], X: Array, Z: Array, v: Array) -> Array:
        """The same where products of the matrix are at hand."""
        of_x, of_z = self._shares(X, Z)
        if of_x.max(initial=0.0) + of_z.max(initial=0.0) > 0.01:
            return super().error_times(X, Z, v)
        sums = times(np.column_stack([v, of_z * v]))  # expm1(t) <= 1.01 t up to 0.01
        return np.asarray(1.02 * ((of_x + 8 * UNIT) * sums[:, 0] + sums[:, 1]) + 1e-300 * v.sum())

    def short_times(self, X: Array, Z: Array, v: Array) -> tuple[Array, Array] | None:
        """The matrix times v in float32, and a bound on how far each is off; None where that is not faster, or far off.

        `cpp/margin/gaussian_sums.hpp` says what is lost.
        """
        if X.shape[1] > FEW_COLUMNS:
            return None
        rows, others = self.prepared(X, Z)
        share = short_share((rows**2).sum(axis=1), float((others**2).sum(axis=1).max(initial=0.0)), X.shape[1], len(v))
        return None if share is None else short_sums(v, share, lambda at, c: gaussian_sums(rows, others[at], c))

    def largest_error(self, X: Array) -> float:
        """A bound on the rounding error of every k(x_i, x_j)."""
        of_x, _ = self._shares(X, X)
        return min(float(np.expm1(min(2 * of_x.max(initial=0.0), 1.0))) + 8 * UNIT, 1.0)

    def entry_error(self, X: Array, Z: Array) -> float:
        """A bound on the rounding error of every k(x_i, z_j)."""
        of_x, of_z = self._shares(X, Z)
        exponent = of_x.max(initial=0.0) + of_z.max(initial=0.0)
        return min(float(np.expm1(min(exponent, 1.0))) + 8 * UNIT, 1.0)

    def less_one(self, X: Array) -> tuple[Array, float]:
        """k(x_i, x_j) - 1, which keeps its digits for points close to each other, and a bound on its rounding error."""
        rows, _ = self.prepared(X, X)
        squares = (rows**2).sum(axis=1)
        apart = np.expm1(-0.5 * np.maximum(squares[:, None] + squares - 2 * (rows @ rows.T), 0.0))
        return apart, 2 * float(self._shares(X, X)[0].max(initial=0.0)) - 8 * UNIT * float(apart.min(initial=0.0))

    def diagonal(self, X: Array) -> Array:
        """k(x_i, x_i)."""
        return np.ones(len(X))

    def truncated_map(self, X: ArrayLike, degree: int) -> Array:
        """The terms up to a degree of the infinite map of the kernel; their products converge to the kernel.

        exp(-|x|^2 / (2 sigma^2)) prod_j x_j^a_j / (sigma^|a| sqrt(a_1! ... a_d!)),   |a| = a_1 + ... + a_d <= degree
        """
        rows = np.atleast_2d(np.asarray(X, dtype=np.float64)) / self.width
        powers = _exponents(rows.shape[1], degree)
        scale = np.array([-0.5 * sum(lgamma(a + 1) for a in term) for term in powers.tolist()])
        factor = np.exp(-0.5 * (rows**2).sum(axis=1))
        terms = np.prod(rows[:, None, :] ** powers[None], axis=2)
        return np.asarray(factor[:, None] * terms * np.exp(scale))

    def __str__(self) -> str:
        sigma = "sigma" if isinstance(self.sigma, str) else f"{self.sigma:.6g}"
        return f"exp(-|x - z|^2 / (2 {sigma}^2))"

    rule = "the Gaussian is f(x) exp(x'z / sigma^2) f(z), f(x) = exp(-|x|^2 / (2 sigma^2))"

    def _tree(self) -> Tree:
        return {"kind": "gaussian", "sigma": self.sigma if isinstance(self.sigma, str) else float(self.sigma)}


def _exponents(n_features: int, degree: int) -> Array:
    """All (a_1, ..., a_d) with a sum of at most the degree."""
    if not isinstance(degree, Integral) or degree < 0:
        raise ValueError(f"degree must be a whole number >= 0. Got {degree!r}.")
    terms: list[tuple[int, ...]] = [()]
    for _ in range(n_features):
        terms = [(*term, a) for term in terms for a in range(degree - sum(term) + 1)]
        if len(terms) > MOST_TERMS:
            raise ValueError(f"A map of degree {degree} in {n_features} features has more than {MOST_TERMS} terms.")
    return np.array(terms, dtype=np.int64).reshape(len(terms), n_features)


def squared_distances(X: Array) -> Array | None:
    """|x_i - x_j|^2 of all points, which Gaussian kernels of any width are made of; None where they leave float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = dense(X - np.mean(X, axis=0))
        squares = (rows**2).sum(axis=1)
        if not squares.max(initial=0.0) < FARTHEST:
            return None
    products = form_matrix(("linear", 0.0, 1), rows, rows)
    products *= -2.0
    products += squares[:, None]
    products += squares
    np.fill_diagonal(products, 0.0)
    return np.asarray(np.maximum(products, 0.0, out=products))


def scale_width(X: Array, weight: Array | None = None) -> float:
    """sigma of sigma="scale": the root of d v / 2, v the variance of all entries; 1 / sqrt(2) where it is 0."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power = np.ldexp(1.0, int(np.frexp(np.abs(X).max(initial=0.0))[1]))
        share = np.full(len(X), 1.0 / max(len(X), 1)) if weight is None else weight / weight.sum()
        scaled = X / power
        mean = float(share @ scaled.mean(axis=1))
        variance = float(share @ np.square(scaled - mean).mean(axis=1))
        width = float(power) * sqrt(X.shape[1] * variance / 2)
    return width if 0 < width < inf else sqrt(0.5)


@dataclass(frozen=True)
class Matrix(Kernel):
    """k(x, z) = x'Az, A symmetric with no eigenvalue below 0."""

    A: Sequence[Sequence[float]]

    def __post_init__(self) -> None:
        A = np.asarray(self.A, dtype=np.float64)
        if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.isfinite(A).all():
            raise ValueError(f"A must be a square matrix of finite numbers. Got shape {A.shape}.")
        if not np.array_equal(A, A.T):
            i, j = (int(places[0]) for places in np.nonzero(A != A.T))
            raise ValueError(f"A must be symmetric. A[{i}, {j}] is {A[i, j]:g} and A[{j}, {i}] is {A[j, i]:g}.")
        values, vectors = np.linalg.eigh(A)
        if values[0] < -ROUNDED * abs(values[-1]):
            c = np.array2string(vectors[:, 0], precision=3, threshold=10)
            raise ValueError(
                f"x'Az is not Mercer: c'Ac = {values[0]:.3g} for c = {c}. A may have no eigenvalue below 0."
            )
        object.__setattr__(self, "A", tuple(tuple(row) for row in A.tolist()))

    @cached_property
    def _matrix(self) -> Array:
        return np.asarray(self.A, dtype=np.float64)

    def _checked(self, X: Array) -> Array:
        if X.shape[1] != len(self.A):
            raise ValueError(f"A has {len(self.A)} rows, and X has {X.shape[1]} columns.")
        return X

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return (self._checked(X) @ self._matrix) @ Z.T

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        size = np.outer(_norms(X), _norms(Z)) * float(np.linalg.norm(self._matrix))
        return self(X, Z), 2 * (X.shape[1] + 4) * UNIT * size

    def __str__(self) -> str:
        return "x'Az"

    rule = "x'Az with A >= 0 is the product of the points times the root of A"

    def _tree(self) -> Tree:
        return {"kind": "matrix", "A": [list(row) for row in self.A]}


@dataclass(frozen=True)
class FeatureMap(Kernel):
    """k(x, z) = phi(x)'phi(z); phi gives one row of features per row of an array."""

    phi: RowFunction

    def _mapped(self, X: Array) -> Array:
        return mapped_rows(self.phi, X, "phi of FeatureMap(phi)")

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        return self._mapped(X) @ self._mapped(Z).T

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        rows, others = self._mapped(X), self._mapped(Z)
        return rows @ others.T, (rows.shape[1] + 4) * UNIT * np.outer(_norms(rows), _norms(others))

    def __str__(self) -> str:
        return "phi(x)'phi(z)"

    rule = "phi(x)'phi(z) is the product of a map"


@dataclass(frozen=True)
class Function(Kernel):
    """A user's function of two arrays of points: f(X, Z)[i, j] = k(x_i, z_j). Its values are taken as they are."""

    f: Callable[[Array, Array], ArrayLike]

    @property
    def open_question(self) -> str:
        """What has to be known before the kernel is proven to be Mercer."""
        return "it holds a function that may be any"

    def __call__(self, X: Array, Z: Array) -> Array:
        """k(x_i, z_j) of few points."""
        K = np.asarray(self.f(X, Z), dtype=np.float64)
        if K.shape != (len(X), len(Z)):
            raise ValueError(
                f"The kernel must give one number per pair of rows: shape {(len(X), len(Z))}. Got shape {K.shape}."
            )
        return K

    def _bounded(self, X: Array, Z: Array) -> tuple[Array, Array]:
        K = self(X, Z)
        return K, np.zeros_like(K)

    def __str__(self) -> str:
        return f"{getattr(self.f, '__name__', 'f')}(x, z)"
