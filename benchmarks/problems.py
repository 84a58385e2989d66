"""The problems: a table of data makers, and what is minimised on them.

Every problem here minimises, over w and b,

    1/(2n) sum_i (y_i - x_i'w - b)^2  +  alpha/2 |w|^2          (alpha = 0: ordinary least squares)

Data are made from a seed, so every rival's process makes the same rows; a checksum of them proves it.
A new problem is a new row of PROBLEMS. `kind` says which solver of a rival is asked.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Matrix = Any  # a NumPy array or a SciPy CSR array
Vector = NDArray[np.floating[Any]]
Maker = Callable[[int, int, np.random.Generator], tuple[Matrix, Vector]]


@dataclass(frozen=True)
class Data:
    """One problem's rows; alpha in units of the mean loss."""

    X: Matrix
    y: Vector
    alpha: float = 0.0
    fit_intercept: bool = True

    def head(self, n_rows: int) -> "Data":
        return Data(self.X[:n_rows], self.y[:n_rows], self.alpha, self.fit_intercept)

    def n_bytes(self) -> int:
        """Bytes of X as it is stored."""
        if scipy.sparse.issparse(self.X):
            return int(self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes)
        return int(self.X.nbytes)

    def storage(self) -> str:
        if scipy.sparse.issparse(self.X):
            return str(self.X.format)
        return "C" if self.X.flags.c_contiguous else "F"

    def checksum(self) -> int:
        """CRC-32 of the stored numbers."""
        stored = [self.X.data, self.X.indices] if scipy.sparse.issparse(self.X) else [self.X.ravel(order="K")]
        crc = 0
        for part in [*stored, self.y]:
            crc = zlib.crc32(part.data, crc)
        return crc


@dataclass(frozen=True)
class Problem:
    name: str
    kind: str  # ols, ridge, ridge_wide, ridge_sparse: the row of a rival's table of solvers
    make: Maker
    full: tuple[int, int]
    quick: tuple[int, int]
    penalty: float = 0.0  # alpha = penalty / n_rows: scikit-learn's Ridge(alpha=penalty)
    calls: int = 1  # fits per timing; the time of one is reported
    seed: int = 0

    @property
    def about(self) -> str:
        """The first line of the maker's docstring."""
        return (self.make.__doc__ or "").partition("\n")[0].rstrip(".")

    def data(self, quick: bool = False) -> Data:
        n_rows, n_features = self.quick if quick else self.full
        X, y = self.make(n_rows, n_features, np.random.default_rng(self.seed))
        return Data(X, y, self.penalty / n_rows)


def objective(coef: Vector, intercept: float, data: Data) -> float:
    """1/(2n) sum (y - Xw - b)^2 + alpha/2 |w|^2 in float64, whatever the type of X."""
    w = np.asarray(coef, dtype=np.float64)
    n_rows, total, step = len(data.y), 0.0, 1 << 16
    for first in range(0, n_rows, step):
        rows = slice(first, first + step)
        residual = data.y[rows].astype(np.float64) - data.X[rows].astype(np.float64) @ w - intercept
        total += float(residual @ residual)
    penalty: float = data.alpha / 2 * float(w @ w)
    return total / (2 * n_rows) + penalty


def target(X: Matrix, random: np.random.Generator, noise: float = 1.0) -> Vector:
    """y = 2 + Xw + noise * e with standard normal e; every column has an effect of size 1."""
    w = random.standard_normal(X.shape[1]) / X.std(axis=0)
    # einsum adds in a fixed order; a threaded BLAS need not.
    score = np.einsum("ij,j->i", X, w.astype(X.dtype))
    y: Vector = (2 + score + noise * random.standard_normal(X.shape[0])).astype(X.dtype)
    return y


def plain(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """Independent columns with scales from 0.1 to 10 and means of a few scales."""
    scale = 10 ** random.uniform(-1, 1, n_features)
    X = random.standard_normal((n_rows, n_features))
    X += 3 * random.standard_normal(n_features)
    X *= scale
    return X, target(X, random)


def plain_float32(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """Independent columns of float32."""
    X = random.standard_normal((n_rows, n_features), dtype=np.float32)
    X += 3 * random.standard_normal(n_features, dtype=np.float32)
    return X, target(X, random)


def plain_by_column(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """Independent columns, stored one after the other as data frames store them."""
    X, y = plain(n_rows, n_features, random)
    return np.asfortranarray(X), y


def correlated(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """One common factor: any two columns have a correlation of 0.99."""
    X = np.sqrt(0.01) * random.standard_normal((n_rows, n_features))
    X += np.sqrt(0.99) * random.standard_normal((n_rows, 1))
    return X, target(X, random)


def powers(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """Ill conditioned: x, x^2, ..., x^d with x uniform on [0, 1].

    The Gram matrix is nearly Hilbert's; all weights are 1.
    """
    X = np.vander(random.uniform(size=n_rows), n_features + 1, increasing=True)[:, 1:]
    return np.ascontiguousarray(X), 1 + X.sum(axis=1) + 1e-3 * random.standard_normal(n_rows)


def few_rows(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """So few rows that the cost of a call is all."""
    return plain(n_rows, n_features, random)


def wide(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """More columns than rows."""
    X = random.standard_normal((n_rows, n_features))
    return X, target(X, random) / np.sqrt(n_features)


def sparse(n_rows: int, n_features: int, random: np.random.Generator) -> tuple[Matrix, Vector]:
    """2 % of the entries are uniform on [0, 1], the others 0."""
    X = scipy.sparse.random_array((n_rows, n_features), density=0.02, format="csr", rng=random)
    w = random.standard_normal(n_features)
    return X, 2 + X @ w + 0.1 * random.standard_normal(n_rows)


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("ols_1e6x50", "ols", plain, (1_000_000, 50), (4_000, 50)),
        Problem("ridge_1e6x50", "ridge", plain, (1_000_000, 50), (4_000, 50), penalty=1.0),
        Problem("ols_1e6x50_float32", "ols", plain_float32, (1_000_000, 50), (4_000, 50)),
        Problem("ols_1e6x50_by_column", "ols", plain_by_column, (1_000_000, 50), (4_000, 50)),
        Problem("ols_2e5x20_correlated", "ols", correlated, (200_000, 20), (2_000, 20)),
        Problem("ols_1e5x12_powers", "ols", powers, (100_000, 12), (2_000, 12)),
        Problem("ridge_500x20000", "ridge_wide", wide, (500, 20_000), (50, 400), penalty=1.0),
        Problem("ridge_1e5x300_sparse", "ridge_sparse", sparse, (100_000, 300), (2_000, 60), penalty=1.0),
        Problem("ols_150x4", "ols", few_rows, (150, 4), (150, 4), calls=100),
    )
}
