"""Gaussian classes: the closed form of maximum likelihood from class moments.

p(x, k) = pi_k N(x; m_k, S_k). The likelihood is largest at pi_k = W_k / W, m_k the mean and S_k the mean of
(x - m_k)(x - m_k)' over the rows of class k; with one S for all classes at the mean of those over all rows. Given
priors weigh the classes as if they had those shares. shrinkage s: (1 - s) S + s (trace S / d) I.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.statistics.cell_sums import CellMoments
from certifit.statistics.class_scatter import ClassScatter, about_mean
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor

_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class GaussianState:
    """Priors, means and covariances: one matrix (shared), one a class, or one row of variances a class.

    roots: lower triangles T_k with S_k^-1 = T_k'T_k (1 x d rows for variances). A column that is a combination of the
    columns before it over all rows says nothing more: its row of T_k is 0.
    """

    priors: Array
    means: Array
    covariance: Array
    roots: Array  # (1 or classes) x (1 or columns) x columns
    redundant: tuple[int, ...] = ()

    def class_roots(self) -> Array:
        """Roots of every class."""
        return np.ascontiguousarray(np.broadcast_to(self.roots, (len(self.priors), *self.roots.shape[1:])))

    def constants(self) -> Array:
        """log pi_k - log det(2 pi S_k) / 2."""
        sizes = self.roots[:, 0] if self.roots.shape[1] == 1 else np.diagonal(self.roots, axis1=1, axis2=2)
        used = sizes != 0
        logs = np.log(np.where(used, sizes, 1.0)).sum(axis=1) - used.sum(axis=1) * _LOG_2PI / 2
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.priors) + logs)

    def boundary(self) -> tuple[Array, Array]:
        """(coef, intercept) of the scores coef_k x + intercept_k that classes of one covariance imply.

        Scores are log pi_k N(x; m_k, S) less what is equal in all classes: about the mean m of all,
        coef_k = S^-1 (m_k - m), intercept_k = log pi_k - coef_k (m_k + m) / 2.
        """
        centre = self.priors @ self.means
        away = self.means - centre
        root = self.roots[0] if self.roots.shape[1] > 1 else np.diag(self.roots[0, 0])
        coef = away @ root.T @ root
        with np.errstate(divide="ignore"):
            return coef, np.log(self.priors) - np.einsum("kj,kj->k", coef, self.means + centre) / 2


Resum = Callable[[], ClassScatter]


class FullCovariance:
    """Classes with covariance matrices: one for all, or one each. resum: the same moments in twofold sums."""

    def __init__(
        self, moments: ClassScatter, resum: Resum, is_shared: bool, shrinkage: float, priors: Array | None,
        names: Sequence[str], classes: Array,
    ) -> None:  # fmt: skip
        self.moments = moments
        self.is_shared, self.shrinkage, self.names, self.classes = is_shared, shrinkage, names, classes
        self.priors = moments.weight / moments.weight.sum() if priors is None else priors
        self.given = priors
        self._resum = resum
        if moments.is_cancelled():
            self.moments = resum()
        self.condition = 1.0

    def covariance(self) -> Array:
        """The best covariances, in the user's units."""
        s = self.moments.scaling
        with np.errstate(over="ignore", under="ignore"):
            parts = [
                self._shrunk(self.moments.mean_of(shares)[0]) / s.scale / s.scale[:, None] for shares in self._shares()
            ]
        return parts[0] if self.is_shared else np.array(parts)

    @one_blas_thread
    def solve(self) -> GaussianState:
        """The state of largest likelihood."""
        factors = self._factors()
        redundant = self._redundant(factors)
        self.condition = max(factor.condition for factor in factors)
        d, scale = len(self.names), self.moments.scaling.scale
        roots = np.zeros((len(factors), d, d))
        with np.errstate(over="ignore", under="ignore"):
            for root, factor in zip(roots, factors, strict=True):
                root[factor.kept] = (factor.inverse_root() * scale[:, None]).T
        covariance = self.covariance()
        _refuse_range(self.names, covariance, roots)
        return GaussianState(self.priors, self.moments.means, covariance, roots, redundant)

    def _shares(self) -> Array:
        """Shares of the classes in every covariance."""
        return self.priors[None, :] if self.is_shared else np.eye(len(self.priors))

    def _shrunk(self, matrix: Array) -> Array:
        if self.shrinkage == 0:
            return matrix
        out = matrix * (1 - self.shrinkage)
        out[np.diag_indices(len(out))] += self._ridge(matrix)
        return out

    def _ridge(self, matrix: Array) -> Array:
        """shrinkage (trace S / d), in scaled units."""
        scale = self.moments.scaling.scale
        with np.errstate(over="ignore", under="ignore"):
            size = np.max(1.0 / scale)  # the largest column counts most; relative to it nothing overflows
            trace = np.sum(np.diagonal(matrix) * (1.0 / scale / size) ** 2)
            return np.asarray(self.shrinkage * trace / len(scale) * (size * scale) ** 2)

    def _factors(self) -> list[Factor]:
        plain = [] if self.moments.low is not None else self._plain_factors()
        if plain:
            return plain
        if self.moments.low is None:
            self.moments = self._resum()
        return [twofold_factor(self._system(shares)) for shares in self._shares()]

    def _plain_factors(self) -> list[Factor]:
        found = []
        for shares in self._shares():
            factor = plain_factor(self._system(shares))
            if factor is None:
                return []
            found.append(factor)
        return found

    def _system(self, shares: Array) -> System:
        matrix, low = self.moments.mean_of(shares)
        if self.shrinkage == 0:
            return System.of(matrix, low, np.zeros(len(matrix)), self.moments.norms)
        ridge = self._ridge(matrix)
        less = 1 - self.shrinkage
        return System.of(matrix * less, None if low is None else low * less, ridge, np.sqrt(less) * self.moments.norms)

    def _redundant(self, factors: list[Factor]) -> tuple[int, ...]:
        """Columns that are combinations of others over all rows. Refuses those that are so only within classes."""
        if not any(len(factor.dependent) for factor in factors):
            return ()
        d = len(self.names)
        total = self.moments.total
        _, _, scatter, low = about_mean(total)
        everywhere = twofold_factor(System.of(scatter, low, np.zeros(d), total.norms))
        for k, factor in enumerate(factors):
            own = np.setdiff1d(factor.dependent, everywhere.dependent)
            if len(own):
                raise ValueError(self._singular(own, None if self.is_shared else k))
        return tuple(int(j) for j in everywhere.dependent)

    def _singular(self, columns: Array, k: int | None) -> str:
        shown = ", ".join(repr(self.names[j]) for j in columns[:10]) + (", ..." if len(columns) > 10 else "")
        noun = "column is" if len(columns) == 1 else "columns are"
        where = "within every class" if k is None else f"within class {self.classes.tolist()[k]!r}"
        rows = ""
        if k is not None and self.moments.n_rows[k] <= len(self.names):
            rows = f", which has {int(self.moments.n_rows[k])} rows for {len(self.names)} columns"
        return (
            f"The covariance is singular {where}{rows}: {len(columns)} {noun} constant there, or a combination of "
            f"others: {shown}. The likelihood has no maximum. Use shrinkage=0.1 or so, drop the {noun.split(maxsplit=1)[0]}"
            + (" (or covariance='shared')." if k is not None else ".")
        )


class DiagonalCovariance:
    """Classes with variances only. added: what is added to every variance, in the user's units."""

    def __init__(
        self, moments: CellMoments, shrinkage: float, priors: Array | None, names: Sequence[str], classes: Array,
        added: float = 0.0,
    ) -> None:  # fmt: skip
        self.moments, self.shrinkage, self.names, self.classes, self.added = moments, shrinkage, names, classes, added
        self.priors = moments.weight / moments.weight.sum() if priors is None else priors
        self.given = priors
        self.condition = 1.0

    def covariance(self) -> Array:
        """The best variances, shrunk, in the user's units."""
        variances = self.moments.variances
        if self.shrinkage:
            variances = (1 - self.shrinkage) * variances + self.shrinkage * variances.mean(axis=1, keepdims=True)
        return variances + self.added

    def solve(self) -> GaussianState:
        """The state of largest likelihood."""
        variances, means = self.covariance(), self.moments.means
        is_flat = (variances <= 0) & (self.moments.weight > 0)[:, None]
        variances = np.where(self.moments.weight[:, None] > 0, variances, 1.0)  # a class without rows has no chance
        is_constant = is_flat[self.moments.weight > 0].all(axis=0) & _is_equal(means[self.moments.weight > 0])
        for k, j in np.argwhere(is_flat & ~is_constant)[:1]:
            raise ValueError(
                f"Column {self.names[j]!r} is constant within class {self.classes.tolist()[k]!r}: the likelihood has no maximum. "
                "Drop the column, or add to the variances (shrinkage=0.1 or so, var_smoothing=1e-9)."
            )
        with np.errstate(divide="ignore", over="ignore"):
            roots = np.where(is_constant, 0.0, 1.0 / np.sqrt(np.where(is_constant, 1.0, variances)))[:, None, :]
        _refuse_range(self.names, variances, roots)
        redundant = tuple(int(j) for j in np.flatnonzero(is_constant))
        return GaussianState(self.priors, means, variances, roots, redundant)


def _is_equal(means: Array) -> Array:
    return np.asarray(np.ptp(means, axis=0) <= 1e-13 * np.abs(means).max(axis=0, initial=0.0))


GaussianTask = FullCovariance | DiagonalCovariance


def _refuse_range(names: Sequence[str], covariance: Array, roots: Array) -> None:
    if np.isfinite(covariance).all() and np.isfinite(roots).all():
        return
    sizes = np.abs(covariance).reshape(-1, len(names)).max(axis=0)
    bad = ~np.isfinite(sizes) | ~np.isfinite(roots.reshape(-1, len(names))).all(axis=0)
    j = int(np.flatnonzero(bad)[0]) if bad.any() else 0
    raise ValueError(
        f"The variance of feature {names[j]!r} leaves the range of float64. Multiply the column by a number that "
        "brings its values near 1, or leave it out."
    )
