"""A Hessian in units of near-unit diagonal, and what is done with its inverse.

Directions whose curvature rounding cannot tell from zero are left out: there is no step along them, and `n_flat` says
how many there are.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from certifit.data.columns import Array
from certifit.runtime import one_blas_thread

FLAT = 1e-12  # of the largest eigenvalue, in units of near-unit diagonal: below it curvature is rounding


class Curvature:
    """The inverse of a symmetric matrix >= 0 on the directions that curve."""

    _eigen: tuple[Array, Array] | None

    @one_blas_thread
    def __init__(self, matrix: Array) -> None:
        diagonal = np.diagonal(matrix)
        with np.errstate(all="ignore"):
            self._units = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
            scaled = matrix * self._units * self._units[:, None]
        if not len(matrix) or not np.isfinite(scaled).all():  # beyond float64 no direction is known to curve
            self._units, self._eigen = np.ones(len(matrix)), (np.zeros(0), np.zeros((len(matrix), 0)))
            self.n_flat, self.condition = len(matrix), np.inf if len(matrix) else 1.0
            return
        self._eigen = None
        self._upper, failed = lapack.dpotrf(scaled, lower=0, clean=1)
        norm = np.abs(scaled).sum(axis=0).max(initial=0.0)
        reciprocal = 0.0 if failed else float(lapack.dpocon(self._upper, norm, uplo="U")[0])
        self.n_flat = 0
        if not reciprocal > FLAT:
            values, vectors = np.linalg.eigh(scaled)
            curved = values > FLAT * values[-1] if len(values) else values > 0
            self._eigen = (values[curved], vectors[:, curved])
            self.n_flat = int(len(values) - curved.sum())
            reciprocal = float(values[curved][0] / values[-1]) if curved.any() else 1.0
        self.condition = float(np.sqrt(1.0 / reciprocal))

    @one_blas_thread
    def solve(self, right: Array) -> Array:
        """The matrix's inverse times a vector, or columns of a matrix."""
        scaled = (right.T * self._units).T
        if self._eigen is None:
            solution = lapack.dpotrs(self._upper, scaled, lower=0)[0] if len(scaled) else scaled
        else:
            values, vectors = self._eigen
            solution = vectors @ ((vectors.T @ scaled).T / values).T
        return np.asarray((solution.T * self._units).T)

    @cached_property
    def inverse(self) -> Array:
        """The inverse, symmetric."""
        whole = self.solve(np.eye(len(self._units)))
        return np.asarray((whole + whole.T) / 2)
