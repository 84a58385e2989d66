"""Distributions as objects. So far the multivariate Gaussian."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from certifit.data.columns import Array
from certifit.runtime import one_blas_thread

_SYMMETRIC = 1e-10  # entries of S and S' may differ so much, relative to the roots of their variances


class Gaussian:
    """The multivariate Gaussian N(mean, covariance).

    density:  det(2 pi S)^(-1/2) exp(-(x - m)' S^-1 (x - m) / 2),  x in R^d

    Parameters
    ----------
    mean : d numbers
    covariance : d x d, symmetric and positive definite
    names : names of the coordinates; default x0, x1, ...

    >>> import certifit as cf
    >>> p = cf.Gaussian([1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]])
    >>> p.marginal([1]).covariance
    array([[3.]])
    >>> p.condition({1: 5.0}).mean
    array([2.])
    """

    @one_blas_thread
    def __init__(self, mean: ArrayLike, covariance: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.mean = np.atleast_1d(np.array(mean, dtype=np.float64))  # copies: the factor must stay theirs
        self.covariance = np.atleast_2d(np.array(covariance, dtype=np.float64))
        d = len(self.mean)
        if self.mean.ndim != 1 or self.covariance.shape != (d, d):
            raise ValueError(
                f"mean needs d numbers and covariance d x d. Got shapes {self.mean.shape} and {self.covariance.shape}."
            )
        self.names = [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]
        if len(self.names) != d or len(set(self.names)) != d:
            raise ValueError(f"names must be {d} different names. Got {self.names}.")
        self._lower = self._factored()

    @property
    def precision(self) -> Array:
        """S^-1."""
        inverse = solve_triangular(self._lower, np.eye(len(self.mean)), lower=True)
        return np.asarray(inverse.T @ inverse)

    @property
    def log_determinant(self) -> float:
        """log det S."""
        return 2 * float(np.log(np.diagonal(self._lower)).sum())

    @property
    def entropy(self) -> float:
        """-E log density, in nats: (d log(2 pi e) + log det S) / 2."""
        return float(len(self.mean) * (1 + np.log(2 * np.pi)) + self.log_determinant) / 2

    @one_blas_thread
    def mahalanobis(self, X: ArrayLike) -> Array:
        """sqrt((x - m)' S^-1 (x - m)) of every row."""
        away = self._rows(X) - self.mean
        return np.asarray(np.sqrt((solve_triangular(self._lower, away.T, lower=True) ** 2).sum(axis=0)))

    def log_density(self, X: ArrayLike) -> Array:
        """Logarithm of the density at every row."""
        constant = len(self.mean) * np.log(2 * np.pi) + self.log_determinant
        return np.asarray(-(self.mahalanobis(X) ** 2 + constant) / 2)

    @one_blas_thread
    def sample(self, n: int, seed: int = 0) -> Array:
        """n rows drawn: m + L z with S = L L' and z standard normal. The same seed draws the same rows."""
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
            raise ValueError(f"n must be a whole number >= 0. Got {n!r}.")
        z = np.random.default_rng(seed).standard_normal((int(n), len(self.mean)))
        return np.asarray(self.mean + z @ self._lower.T)

    def marginal(self, which: Sequence[int | str]) -> Gaussian:
        """The distribution of some coordinates, by place or name."""
        at = self._places(which)
        return Gaussian(self.mean[at], self.covariance[np.ix_(at, at)], [self.names[j] for j in at])

    @one_blas_thread
    def condition(self, given: dict[int | str, float]) -> Gaussian:
        """The distribution of the other coordinates where those of `given` (place or name: value) are known.

        m_a + S_ab S_bb^-1 (x_b - m_b)  and  S_aa - S_ab S_bb^-1 S_ba
        """
        known = self._places(list(given))
        values = np.array([float(value) for value in given.values()])
        if not np.isfinite(values).all():
            raise ValueError(f"Values that are given must be finite. Got {given}.")
        others = [j for j in range(len(self.mean)) if j not in known]
        if not others:
            raise ValueError("All coordinates are given: nothing is left to be distributed.")
        part = Gaussian(self.mean[known], self.covariance[np.ix_(known, known)])
        # With S_bb = L L': S_ab S_bb^-1 = (L^-1 S_ba)' L^-1
        cross = solve_triangular(part._lower, self.covariance[np.ix_(known, others)], lower=True)
        step = solve_triangular(part._lower, values - part.mean, lower=True)
        covariance = self.covariance[np.ix_(others, others)] - cross.T @ cross
        return Gaussian(self.mean[others] + cross.T @ step, covariance, [self.names[j] for j in others])

    def __repr__(self) -> str:
        return f"Gaussian(mean={self.mean.tolist()}, covariance={self.covariance.tolist()})"

    def _factored(self) -> Array:
        S = self.covariance
        if not (np.isfinite(self.mean).all() and np.isfinite(S).all()):
            raise ValueError("mean and covariance must be finite numbers.")
        variances = np.diagonal(S)
        if (variances <= 0).any():
            j = int(np.flatnonzero(variances <= 0)[0])
            raise ValueError(f"covariance has a variance of {variances[j]:g} at {self.names[j]!r}. It must be > 0.")
        roots = np.sqrt(variances)
        if (np.abs(S - S.T) > _SYMMETRIC * roots[:, None] * roots).any():
            raise ValueError("covariance is not symmetric.")
        try:
            lower = np.linalg.cholesky(S / roots[:, None] / roots)  # correlations: units do not matter
        except np.linalg.LinAlgError:
            least = np.linalg.eigvalsh(S / roots[:, None] / roots)[0]
            raise ValueError(
                f"covariance is not positive definite: its correlations have an eigenvalue of {least:.1e}. "
                "A coordinate is a combination of others: leave it out, or add to the diagonal."
            ) from None
        return np.asarray(lower * roots[:, None])

    def _rows(self, X: ArrayLike) -> Array:
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim < 2:
            rows = rows.reshape(1, -1) if len(self.mean) > 1 else rows.reshape(-1, 1)
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ValueError(f"X must be rows of {len(self.mean)} coordinates. Got shape {rows.shape}.")
        return rows

    def _places(self, which: Sequence[int | str]) -> list[int]:
        places = []
        for coordinate in which:
            if isinstance(coordinate, str):
                if coordinate not in self.names:
                    raise ValueError(f"There is no coordinate {coordinate!r}. They are {self.names}.")
                places.append(self.names.index(coordinate))
            elif not isinstance(coordinate, int | np.integer) or isinstance(coordinate, bool):
                raise TypeError(f"A coordinate is a place or a name. Got {coordinate!r}.")
            elif not -len(self.mean) <= coordinate < len(self.mean):
                raise ValueError(f"There is no coordinate {coordinate}: there are {len(self.mean)}.")
            else:
                places.append(int(coordinate) % len(self.mean))
        if not places or len(set(places)) < len(places):
            raise ValueError(f"Name at least one coordinate, each once. Got {list(which)}.")
        return places
