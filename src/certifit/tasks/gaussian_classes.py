"""Gaussian classes: the closed form of maximum likelihood from class moments.

p(x, k) = pi_k N(x; m_k, S_k). The likelihood is largest at pi_k = W_k / W, m_k the mean and S_k the mean of
(x - m_k)(x - m_k)' over the rows of class k; with one S for all classes at the mean of those over all rows. Given
priors weigh the classes as if they had those shares. shrinkage s: (1 - s) S + s t U, U the identity, or the diagonal of
the variances over all rows; t is the mean over columns of S_jj / U_jj.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.statistics import twofold as tf
from certifit.statistics.cell_sums import CellMoments
from certifit.statistics.class_scatter import ClassScatter, about_mean
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor

MENDED = 1e-6  # of the mean variance of all rows
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
        coef = (self.means - centre) @ self.roots[0].T @ self.roots[0]
        with np.errstate(divide="ignore"):
            return coef, np.log(self.priors) - np.einsum("kj,kj->k", coef, self.means + centre) / 2


@dataclass(frozen=True)
class Shrinkage:
    """share s; in_variances: towards variances in the ratio of the columns' own, not towards equal ones."""

    share: float = 0.0
    in_variances: bool = False


class GaussianTask(ABC):
    """What classes with covariances of any kind share.

    is_mended: where the likelihood has no maximum, a small number is added to every variance (`added`) and `unbounded`
    says why; otherwise that is refused.
    """

    def __init__(
        self, moments: Any, shrinkage: Shrinkage, priors: Array | None, names: Sequence[str], classes: Array,
        is_mended: bool, added: float,
    ) -> None:  # fmt: skip
        self.moments, self.names, self.classes = moments, names, classes
        self.shrinkage, self.in_variances = shrinkage.share, shrinkage.in_variances
        self.priors = moments.weight / moments.weight.sum() if priors is None else priors
        self.is_mended, self.added = is_mended, added
        self.unbounded = ""
        self.condition = 1.0
        self._best: GaussianState | None = None

    def solve(self) -> GaussianState:
        """The state of largest likelihood."""
        if self._best is None:
            self._best = self._solved()
        return self._best

    @abstractmethod
    def _solved(self) -> GaussianState:
        """The closed form."""

    def _mend(self, fault: str, variances: Array) -> None:
        """Refuse, or add to the variances; `variances` are those of all rows, in the user's units."""
        if not self.is_mended:
            raise ValueError(fault)
        self.unbounded = fault
        self.added += MENDED * float(np.mean(variances))


class FullCovariance(GaussianTask):
    """Classes with covariance matrices: one for all, or one each."""

    def __init__(
        self, moments: ClassScatter, shrinkage: Shrinkage, priors: Array | None, names: Sequence[str], classes: Array,
        is_mended: bool = False, *, is_shared: bool,
    ) -> None:  # fmt: skip
        super().__init__(moments, shrinkage, priors, names, classes, is_mended, 0.0)
        self.is_shared = is_shared
        if self.moments.is_cancelled():
            self._resum()

    def _resum(self) -> None:
        """Twofold sums, if these are none."""
        if self.moments.resum is not None:
            self.moments = self.moments.resum()

    def _covariance(self) -> Array:
        """The best covariances, in the user's units."""
        s = self.moments.scaling
        with np.errstate(over="ignore", under="ignore"):
            parts = [
                self._shrunk(self.moments.mean_of(shares)[0]) / s.scale / s.scale[:, None] for shares in self._shares()
            ]
        return parts[0] if self.is_shared else np.array(parts)

    @one_blas_thread
    def _solved(self) -> GaussianState:
        factors = self._factors()
        redundant, fault = self._redundant(factors)
        if fault:
            self._mend(fault, np.diagonal(self.moments.total_covariance()))
            factors, redundant = self._factors(), ()
        self.condition = max(factor.condition for factor in factors)
        d, scale = len(self.names), self.moments.scaling.scale
        roots = np.zeros((len(factors), d, d))
        with np.errstate(over="ignore", under="ignore"):
            for root, factor in zip(roots, factors, strict=True):
                root[factor.kept] = (factor.inverse_root() * scale[:, None]).T
        covariance = self._covariance()
        _refuse_range(self.names, covariance, roots)
        used = np.diagonal(roots, axis1=1, axis2=2) != 0
        _refuse_small(self.names, np.diagonal(covariance.reshape(-1, d, d), axis1=1, axis2=2), used)
        return GaussianState(self.priors, self.moments.means, covariance, roots, redundant)

    def _shares(self) -> Array:
        """Shares of the classes in every covariance."""
        return self.priors[None, :] if self.is_shared else np.eye(len(self.priors))

    def _shrunk(self, matrix: Array) -> Array:
        out = matrix * (1 - self.shrinkage)
        out[np.diag_indices(len(out))] += self._ridge(matrix)
        return out

    def _ridge(self, matrix: Array) -> Array:
        """What shrinkage puts on the diagonal, and what is added, in scaled units."""
        if not self.shrinkage and not self.added:
            return np.zeros(len(matrix))
        scale = self.moments.scaling.scale
        units = self._spreads() if self.in_variances else scale
        with np.errstate(over="ignore", under="ignore"):
            size = np.max(1.0 / units)  # the largest column counts most; relative to it nothing overflows
            trace = np.sum(np.diagonal(matrix) * (1.0 / units / size) ** 2)
            ridge = self.shrinkage * trace / len(scale) * (size * units) ** 2 + self.added * scale * scale
        _refuse_range(self.names, ridge)
        return np.asarray(ridge)

    def _spreads(self) -> Array:
        """Standard deviations over all rows, in scaled units; 1 for a constant column."""
        spreads = np.sqrt(np.diagonal(about_mean(self.moments.total)[2]) / self.moments.weight.sum())
        return np.where(spreads > 0, spreads, 1.0)

    def _factors(self) -> list[Factor]:
        plain = [] if self.moments.low is not None else self._plain_factors()
        if plain:
            return plain
        self._resum()
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
        less, ridge = 1 - self.shrinkage, self._ridge(matrix)
        if low is not None and self.shrinkage:
            matrix, low = tf.multiply((matrix, low), (np.asarray(less), np.zeros(())))
        elif self.shrinkage:
            matrix = matrix * less
        return System.of(matrix, low, ridge, np.sqrt(less) * self.moments.norms)

    def _redundant(self, factors: list[Factor]) -> tuple[tuple[int, ...], str]:
        """Columns that are combinations of others over all rows, and what to say where some are so within classes."""
        if not any(len(factor.dependent) for factor in factors):
            return (), ""
        d = len(self.names)
        total = self.moments.total
        _, _, scatter, low = about_mean(total)
        everywhere = twofold_factor(System.of(scatter, low, np.zeros(d), total.norms))
        for k, factor in enumerate(factors):
            own = np.setdiff1d(factor.dependent, everywhere.dependent)
            if len(own):
                return (), self._singular(own, None if self.is_shared else k)
        return tuple(int(j) for j in everywhere.dependent), ""

    def _singular(self, columns: Array, k: int | None) -> str:
        where = "within the classes" if k is None else f"within class {self.classes.tolist()[k]!r}"
        less = "" if k is None else ", covariance='shared'"
        n_rows = int(self.moments.n_rows.sum() if k is None else self.moments.n_rows[k])
        if n_rows - (len(self.classes) if k is None else 1) < len(self.names):
            return (
                f"The covariance is singular {where}, which {'have' if k is None else 'has'} {n_rows} rows for "
                f"{len(self.names)} columns: the likelihood has no maximum. Use shrinkage=0.1 or so{less}, "
                "covariance='diagonal', or fewer columns (PCA)."
            )
        shown = ", ".join(repr(self.names[j]) for j in columns[:10]) + (", ..." if len(columns) > 10 else "")
        noun, verb = ("column", "is") if len(columns) == 1 else ("columns", "are")
        return (
            f"The covariance is singular {where}: {len(columns)} {noun} {verb} constant there, or a combination of "
            f"others: {shown}. The likelihood has no maximum. Use shrinkage=0.1 or so{less}, or drop the {noun}."
        )


class DiagonalCovariance(GaussianTask):
    """Classes with variances only. added: what is added to every variance, in the user's units."""

    moments: CellMoments

    def __init__(
        self, moments: CellMoments, shrinkage: Shrinkage, priors: Array | None, names: Sequence[str], classes: Array,
        is_mended: bool = False, added: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(moments, shrinkage, priors, names, classes, is_mended, added)

    def _covariance(self) -> Array:
        """The best variances, shrunk, in the user's units."""
        variances = self.moments.variances
        if self.shrinkage:
            units = self.moments.total_variances() if self.in_variances else np.ones(variances.shape[1])
            units = np.where(units > 0, units, 1.0)
            target = (variances / units).mean(axis=1, keepdims=True) * units
            variances = (1 - self.shrinkage) * variances + self.shrinkage * target
        return np.where(self._has_rows()[:, None], variances + self.added, 1.0)  # a class without rows has no chance

    def _solved(self) -> GaussianState:
        variances, means = self._covariance(), self.moments.means
        seen = self._has_rows()
        _refuse_small(self.names, variances, self.moments.varies() & seen[:, None])
        is_constant = (variances[seen] <= 0).all(axis=0) & _is_equal(means[seen])
        flat = np.argwhere((variances <= 0) & ~is_constant)
        if len(flat):
            self._mend(self._singular(*flat[0]), self.moments.total_variances())
            variances, is_constant = self._covariance(), np.zeros(len(self.names), dtype=bool)
        with np.errstate(divide="ignore", over="ignore"):
            roots = np.where(is_constant, 0.0, 1.0 / np.sqrt(np.where(is_constant, 1.0, variances)))[:, None, :]
        _refuse_range(self.names, variances, roots)
        redundant = tuple(int(j) for j in np.flatnonzero(is_constant))
        return GaussianState(self.priors, means, variances, roots, redundant)

    def _has_rows(self) -> Array:
        return np.asarray(self.moments.weight > 0)

    def _singular(self, k: int, j: int) -> str:
        return (
            f"Column {self.names[j]!r} is constant within class {self.classes.tolist()[k]!r}: the likelihood has no "
            "maximum. Drop the column, or add to the variances (shrinkage=0.1 or so, var_smoothing=1e-9)."
        )


def _is_equal(means: Array) -> Array:
    return np.asarray(np.ptp(means, axis=0) <= 1e-13 * np.abs(means).max(axis=0, initial=0.0))


def _refuse_range(names: Sequence[str], *values: Array) -> None:
    """Refuse what is not finite; the last axis goes by the columns."""
    for each in values:
        bad = ~np.isfinite(each).reshape(-1, len(names)).all(axis=0)
        if bad.any():
            raise ValueError(
                f"The variance of feature {names[int(np.argmax(bad))]!r} leaves the range of float64. {_RESCALE}"
            )


def _refuse_small(names: Sequence[str], variances: Array, used: Array) -> None:
    """Refuse variances with no digits left: below the smallest normal number."""
    bad = (used & (variances < np.finfo(np.float64).tiny)).any(axis=0)
    if bad.any():
        raise ValueError(f"The variance of feature {names[int(np.argmax(bad))]!r} is too small for float64. {_RESCALE}")


_RESCALE = "Multiply the column by a number that brings its values near 1, or leave it out."
