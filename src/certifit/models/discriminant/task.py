"""Gaussian classes: the closed form of maximum likelihood from class moments.

p(x, k) = pi_k N(x; m_k, S_k). The likelihood is largest at pi_k = W_k / W, m_k the mean and S_k the mean of
(x - m_k)(x - m_k)' over the rows of class k; with one S for all classes at the mean of those over all rows. Given
priors weigh the classes as if they had those shares. shrinkage s: (1 - s) S + s t U, U the identity, or the diagonal of
the variances over all rows; t is the mean over columns of S_jj / U_jj.

Where S is singular within classes the likelihood has no maximum. Less e_j (S^-1)_jj / 2 per row and column it has one,
at the covariance with e_j added to S_jj: e_j is a millionth of the column's variance over all rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.models.discriminant.closed_form import ClosedForm
from certifit.runtime import one_blas_thread
from certifit.statistics import double_double as dd
from certifit.statistics.cell_sums import CellMoments
from certifit.statistics.class_moments import ClassScatter, about_mean
from certifit.statistics.factor import Factor, System, plain_factor, twofold_factor
from certifit.statistics.residual import MATRIX_ERROR, UNIT

MENDED = 1e-6  # share of a column's variance over all rows that is added to its variances
_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class GaussianState:
    """Priors, means and covariances: one matrix (shared), one per class, or one row of variances per class.

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
        """(coef, intercept) of the linear scores of every class; of two classes, the second's less the first's."""
        return _of_two(*self.linear_scores())

    def linear_scores(self) -> tuple[Array, Array]:
        """(coef, intercept) of the scores coef_k x + intercept_k that classes of one covariance imply.

        Scores are log pi_k N(x; m_k, S) less what is equal in all classes: about the mean m of all,
        coef_k = S^-1 (m_k - m), intercept_k = log pi_k - coef_k (m_k + m) / 2.
        """
        centre = self.priors @ self.means
        coef = (self.means - centre) @ self.roots[0].T @ self.roots[0]
        with np.errstate(divide="ignore"):
            return coef, np.log(self.priors) - np.einsum("kj,kj->k", coef, self.means + centre) / 2

    def has_boundary(self, coef: Array, intercept: Array, rounding: float | None = None) -> bool:
        """Whether these are the numbers of `boundary`, but for roundings of its products.

        rounding: of a term, relative; None is what float64 adds up to at most.
        """
        with np.errstate(invalid="ignore"):  # of equal infinities: a prior of 0
            pairs = zip((coef, intercept), self.boundary(), self._sizes(), strict=True)
            size = self._most_rounding() if rounding is None else rounding
            agree = [
                (computed == stated) | (np.abs(computed - stated) <= size * terms) for computed, stated, terms in pairs
            ]
        return all(bool(part.all()) for part in agree)

    def _most_rounding(self) -> float:
        return 4 * UNIT * float(self.means.shape[1] + len(self.priors))

    def _sizes(self) -> tuple[Array, Array]:
        """Sums of the sizes of the terms of `boundary`."""
        centre, root = self.priors @ self.means, np.abs(self.roots[0])
        coef = np.abs(self.means - centre) @ root.T @ root
        with np.errstate(divide="ignore"):
            logs = np.abs(np.log(self.priors))
        terms = (coef * (np.abs(self.means) + np.abs(centre))).sum(axis=1)
        intercept = np.where(np.isfinite(logs), logs, 0.0) + terms
        return (coef, intercept) if len(coef) > 2 else (coef.sum(axis=0, keepdims=True), intercept.sum(keepdims=True))


def _of_two(coef: Array, intercept: Array) -> tuple[Array, Array]:
    return (coef, intercept) if len(coef) > 2 else (coef[1:] - coef[:1], intercept[1:] - intercept[:1])


@dataclass(frozen=True)
class Shrinkage:
    """share s; in_variances: towards variances in the ratio of the columns' own, not towards equal ones."""

    share: float = 0.0
    in_variances: bool = False


class GaussianTask(ClosedForm[GaussianState]):
    """What classes with covariances of any kind share.

    is_mended: where the likelihood has no maximum, a millionth of every column's variance over all rows is added to its
    variances (`added`) and `unbounded` says why; otherwise that is refused.
    relations: (columns, others, times) of the redundant columns, x_c = constant + times x_others, in the user's units.
    """

    relations: tuple[Array, Array, Array] | None = None

    def __init__(
        self, moments: Any, shrinkage: Shrinkage, priors: Array | None, names: Sequence[str], classes: Array,
        is_mended: bool, added: float | Array,
    ) -> None:  # fmt: skip
        self.moments, self.names, self.classes = moments, names, classes
        self.shrinkage, self.in_variances = shrinkage.share, shrinkage.in_variances
        self.priors = moments.weight / moments.weight.sum() if priors is None else priors
        self.is_mended, self.added = is_mended, added
        self.unbounded = ""
        self.condition = 1.0
        self._best: GaussianState | None = None

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        return {"n_rows": int(self.moments.n_rows.sum()), "sum_weight": float(self.moments.weights.sum())}

    def solve(self) -> GaussianState:
        """The state of largest likelihood."""
        if self._best is None:
            self._best = self._solved()
        return self._best

    @abstractmethod
    def _solved(self) -> GaussianState:
        """The closed form."""

    @abstractmethod
    def _spreads(self) -> Array:
        """Standard deviations over all rows, in scaled units."""

    def ridge_error(self) -> float:
        """How far the ridge can be off, relative: as far as variances over all rows are, where it is made of them."""
        uses_total = (self.shrinkage > 0 and self.in_variances) or bool(np.any(self.added))
        return self._total_error() if uses_total else 4 * MATRIX_ERROR

    @abstractmethod
    def _total_error(self) -> float:
        """Largest relative error of a variance over all rows."""

    def ridge(self, variances: Array) -> Array:
        """What shrinkage puts on the diagonal of a covariance of these variances, and what is added; scaled units."""
        if not self.shrinkage and not np.any(self.added):
            return np.zeros(len(variances))
        scale = self.moments.scaling.scale
        units = self._spreads() if self.in_variances else scale
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            size = np.max(1.0 / units)  # the largest column counts most; relative to it nothing overflows
            trace = np.sum(variances * (1.0 / units / size) ** 2)
            ridge = self.shrinkage * trace / len(scale) * (size * units) ** 2 + self.added * scale * scale
        _refuse_range(self.names, ridge)
        return np.asarray(ridge)

    @property
    def kind(self) -> str:
        """What is maximised, in words."""
        shrunk = ", its covariance shrunk," if self.shrinkage else ""
        if not self.unbounded:
            return f"likelihood{shrunk}"
        reason = self.unbounded[0].lower() + self.unbounded[1:]
        return (
            f"likelihood{shrunk} with a millionth of every column's variance over all rows added to its variances "
            f"(it has no maximum without: {reason})"
        )

    @property
    def mended(self) -> str:
        """What was done where the likelihood has no maximum, and what to do; nothing where it has one."""
        if not self.unbounded:
            return ""
        return (
            f"{self.unbounded}: the likelihood has no maximum. A millionth of every column's variance over all rows "
            f"was added to its variances, and the fit is the maximum of that. {self._advice}"
        )

    def _mend(self, reason: str, advice: str, variances: Array) -> None:
        """Refuse, or add to the variances; `variances` are those of all rows, in the user's units."""
        if not self.is_mended:
            raise ValueError(f"{reason}: the likelihood has no maximum. {advice}")
        self.unbounded, self._advice = reason, advice
        self.added = self.added + MENDED * variances


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
        redundant, *fault = self._redundant(factors)
        if fault:
            self._mend(fault[0], fault[1], np.diagonal(self.moments.total_covariance()))
            factors = self._factors()
            redundant = self._constant(factors)
        if any(not np.array_equal(factor.dependent, redundant) for factor in factors):
            # Densities of classes compare only over the same columns: what one class lacks is left out of all.
            factors = self._factors(redundant)
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
        out[np.diag_indices(len(out))] += self.ridge(np.diagonal(matrix))
        return out

    def _total_error(self) -> float:
        total = self.moments.total
        d = len(self.names)
        scatter = np.diagonal(about_mean(total)[2])
        used = scatter > 0
        return float((4 * MATRIX_ERROR * np.diagonal(total.sums)[:d][used] / scatter[used]).max(initial=MATRIX_ERROR))

    def _spreads(self) -> Array:
        """Standard deviations over all rows, in scaled units; for a constant column what is 1 in the user's."""
        spreads = np.sqrt(np.diagonal(about_mean(self.moments.total)[2]) / self.moments.weight.sum())
        return np.asarray(np.where(spreads > 0, spreads, self.moments.scaling.scale))

    def _factors(self, without: Sequence[int] = ()) -> list[Factor]:
        plain = [] if self.moments.low is not None else self._plain_factors()
        if plain:
            return plain
        self._resum()
        return [twofold_factor(self._system(shares, without)) for shares in self._shares()]

    def _plain_factors(self) -> list[Factor]:
        factors = []
        for shares in self._shares():
            factor = plain_factor(self._system(shares))
            if factor is None:
                return []
            factors.append(factor)
        return factors

    def _system(self, shares: Array, without: Sequence[int] = ()) -> System:
        matrix, low = self.moments.mean_of(shares)
        less, ridge = 1 - self.shrinkage, self.ridge(np.diagonal(matrix))
        if low is not None and self.shrinkage:
            matrix, low = dd.multiply((matrix, low), (np.asarray(less), np.zeros(())))
        elif self.shrinkage:
            matrix = matrix * less
        # What is added to the variances is far above the rounding of any column that varies.
        norms = np.sqrt(less) * (self._spreads() if self.unbounded else self.moments.norms)
        norms[list(without)] = np.inf  # nothing of these columns is beyond their rounding
        return System.of(matrix, low, ridge, norms)

    def _redundant(self, factors: list[Factor]) -> tuple[Any, ...]:
        """Columns that are combinations of others over all rows; a fault and advice where some are within classes."""
        if not any(len(factor.dependent) for factor in factors):
            return ((),)
        d, scale = len(self.names), self.moments.scaling.scale
        total = self.moments.total
        _, _, scatter, low = about_mean(total)
        everywhere = twofold_factor(System.of(scatter, low, np.zeros(d), total.norms))
        for k, factor in enumerate(factors):
            of_class = np.setdiff1d(factor.dependent, everywhere.dependent)
            if len(of_class):
                return (), *self._singular(of_class, None if self.is_shared else k)
        kept, dependent = everywhere.kept, everywhere.dependent
        with np.errstate(over="ignore", under="ignore"):
            times = everywhere.relations * scale[kept] / scale[dependent][:, None]
        self.relations = dependent, kept, times
        return (tuple(int(j) for j in dependent),)

    def _constant(self, factors: list[Factor]) -> tuple[int, ...]:
        """Columns without a variance over all rows: nothing was added to theirs, and a class may have none of them."""
        dependent = np.unique(np.concatenate([factor.dependent for factor in factors]))
        others = np.setdiff1d(np.arange(len(self.names)), dependent)
        self.relations = dependent, others, np.zeros((len(dependent), len(others)))
        return tuple(int(j) for j in dependent)

    def _singular(self, columns: Array, k: int | None) -> tuple[str, str]:
        where = "within the classes" if k is None else f"within class {self.classes.tolist()[k]!r}"
        less = "" if k is None else ", covariance='shared'"
        n_rows = int(self.moments.n_rows.sum() if k is None else self.moments.n_rows[k])
        if n_rows - (len(self.classes) if k is None else 1) < len(self.names):
            return too_few_rows(self.classes, k, n_rows, len(self.names))
        shown = ", ".join(repr(self.names[j]) for j in columns[:10]) + (", ..." if len(columns) > 10 else "")
        noun, verb = ("column", "is") if len(columns) == 1 else ("columns", "are")
        return (
            f"The covariance is singular {where}, where {len(columns)} {noun} {verb} constant or a combination of "
            f"others ({shown})",
            f"Use shrinkage=0.1 or so{less}, or drop the {noun}.",
        )


def too_few_rows(classes: Array, k: int | None, n_rows: int, n_columns: int) -> tuple[str, str]:
    """Why a covariance of few rows is singular, and what to do. k: its class; None is all of them."""
    where = "within the classes, which have" if k is None else f"within class {classes.tolist()[k]!r}, which has"
    less = "" if k is None else ", covariance='shared'"
    return (
        f"The covariance is singular {where} {n_rows} rows for {n_columns} columns",
        f"Use shrinkage=0.1 or so{less}, covariance='diagonal', or fewer columns (PCA).",
    )


class DiagonalCovariance(GaussianTask):
    """Classes with variances only. added: what is added to every variance, in the user's units."""

    moments: CellMoments

    def __init__(
        self, moments: CellMoments, shrinkage: Shrinkage, priors: Array | None, names: Sequence[str], classes: Array,
        is_mended: bool = False, added: float | Array = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(moments, shrinkage, priors, names, classes, is_mended, added)

    def _covariance(self) -> Array:
        """The best variances, shrunk, in the user's units."""
        variances = self.moments.variances
        if self.shrinkage:
            units = self.moments.total_variances() if self.in_variances else np.ones(variances.shape[1])
            units = np.where(units > 0, units, 1.0)
            with np.errstate(invalid="ignore"):  # what leaves the range is refused in `_solved`
                target = (variances / units).mean(axis=1, keepdims=True) * units
            variances = (1 - self.shrinkage) * variances + self.shrinkage * target
        return np.where(self._has_rows()[:, None], variances + self.added, 1.0)  # a class without rows has no chance

    def _solved(self) -> GaussianState:
        variances, means = self._covariance(), self.moments.means
        has_rows = self._has_rows()
        _refuse_small(self.names, variances, self.moments.varies() & has_rows[:, None])
        is_constant = (variances[has_rows] <= 0).all(axis=0) & _is_equal(means[has_rows])
        flat = np.argwhere((variances <= 0) & ~is_constant)
        if len(flat):
            self._mend(*self._singular(*flat[0]), self.moments.total_variances())
            variances = self._covariance()
            # Shrinkage may add to the variances of some classes.
            is_constant = np.asarray((variances[has_rows] <= 0).any(axis=0))
        with np.errstate(divide="ignore", over="ignore"):
            roots = np.where(is_constant, 0.0, 1.0 / np.sqrt(np.where(is_constant, 1.0, variances)))[:, None, :]
        _refuse_range(self.names, variances, roots)
        constant, others = np.flatnonzero(is_constant), np.flatnonzero(~is_constant)
        self.relations = constant, others, np.zeros((len(constant), len(others)))
        return GaussianState(self.priors, means, variances, roots, tuple(int(j) for j in constant))

    def _spreads(self) -> Array:
        variances = self.moments.total_variances()
        return np.asarray(np.sqrt(np.where(variances > 0, variances, 1.0)) * self.moments.scaling.scale)

    def _total_error(self) -> float:
        # Sums of squares about shifts; a number added to all is a share of the largest variance.
        moments, variances, spreads = self.moments, self.moments.total_variances(), self._spreads()
        used = variances > 0
        if not self.in_variances and np.ndim(self.added) == 0:
            used &= variances == variances.max(initial=0.0)
        squares = np.sqrt(moments.squares.sum(axis=0) / moments.weight.sum())[used] / spreads[used]
        error = 4 * MATRIX_ERROR * (1 + float(squares.max(initial=0.0)) ** 2)
        if self.rows is None:  # of rows that came in parts: their means are rounded
            rounded = UNIT * np.abs(moments.means * moments.scaling.scale).max(axis=0)
            error += 8 * float((rounded[used] / spreads[used]).max(initial=0.0))
        return error

    def _has_rows(self) -> Array:
        return np.asarray(self.moments.weight > 0)

    def _singular(self, k: int, j: int) -> tuple[str, str]:
        return (
            f"Column {self.names[j]!r} is constant within class {self.classes.tolist()[k]!r}",
            "Drop the column, or add to the variances (shrinkage=0.1 or so, var_smoothing=1e-9).",
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
