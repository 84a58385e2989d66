"""Gaussian discriminant analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.cells import Cells, Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows
from certifit.maps import Basis, UserEncoder
from certifit.models.discriminant.certificate import certify_gaussian
from certifit.models.discriminant.closed_form import GenerativeClassifier, checked_priors
from certifit.models.discriminant.likelihood import LikelihoodCertificate
from certifit.models.discriminant.task import DiagonalCovariance, FullCovariance, GaussianState, GaussianTask, Shrinkage
from certifit.models.discriminant.wide import wide_folds
from certifit.models.folds import Candidate, RowFolds
from certifit.models.gathered import is_wide
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import CellMoments, cell_moments
from certifit.statistics.class_moments import ClassScatter, class_grams, class_scatter
from certifit.statistics.gram import CellGrams

FAR = 1e3  # standard deviations from the mean of all: linear scores of classes beyond cancel ten digits and more


Moments: TypeAlias = CellMoments | ClassScatter


class GaussianDiscriminant(GenerativeClassifier[GaussianTask, GaussianState, Moments]):
    """Classes that are Gaussian: p(x, k) = prior_k N(x; mean_k, covariance_k).

    maximise over priors, means, covariances:   sum_i weight_i log p(x_i, y_i)

    The maximum is a closed form of class moments, found in one pass. One covariance for all classes makes the
    boundaries linear. A column that is constant, or a combination of others, over all rows is named in `certificate_`
    and left out; within classes alone it leaves no maximum (see `singular`).
    certificate:  shortfall of the mean log-likelihood, in nats per row, and error of every stored number, relative

    Parameters
    ----------
    covariance : "shared", "class" or "diagonal", default "shared"
        One covariance, one per class, or variances alone, of every class. "shared" is scikit-learn's
        LinearDiscriminantAnalysis(solver="lsqr"), "class" its QuadraticDiscriminantAnalysis.
    shrinkage : float in [0, 1], default 0.0
        S becomes (1 - shrinkage) S + shrinkage (trace S / d) I.
    standardize : bool, default False
        Shrink in units of the columns' standard deviations over all rows, so that units do not matter; scikit-learn's
        shrinkage after a StandardScaler. Without shrinkage it changes nothing.
    priors : None or one number per class, default None
        None is the classes' shares of the rows. Given ones weigh the classes in a shared covariance too.
    singular : "warn" or "raise", default "warn"
        What to do where a covariance is singular within classes, so that the likelihood has no maximum. "warn" names
        the columns and adds to every variance a millionth of the column's variance over all rows: the certificate is
        about the maximum of that. "raise" refuses, naming the columns.
    basis, encoder : as for LinearRegression
    tol : float >= 0, default 1e-8
        Largest shortfall, in nats per row, and largest relative error of a stored number that count as the maximum.

    Attributes
    ----------
    classes_, priors_, means_ : of every class
    covariance_ : d x d (shared), classes x d x d (class) or classes x d (diagonal); sums over rows are divided by their
        weight, not by that less 1
    roots_ : lower triangles T with covariance^-1 = T'T, which predict: where columns nearly repeat others they have
        digits that no float64 covariance has
    coef_, intercept_ : of the linear boundaries, for covariance="shared"; of two classes, one row: log-odds
    class_count_ : weight of the rows of every class
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[-2.0], [-1.0], [0.0], [2.0], [3.0], [4.0]])
    >>> model = cf.GaussianDiscriminant().fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> model.means_.ravel(), model.covariance_.round(4)
    (array([-1.,  3.]), array([[0.6667]]))
    >>> model.predict([[0.9], [1.1]])
    array(['a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        covariance: Literal["shared", "class", "diagonal"] = "shared",
        *,
        shrinkage: float = 0.0,
        standardize: bool = False,
        priors: ArrayLike | None = None,
        singular: Literal["raise", "warn"] = "warn",
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.standardize = standardize
        self.priors = priors
        self.singular = singular
        self.basis = basis
        self.encoder = encoder
        self.tol = tol

    def decision_function(self, X: UserRows) -> Array:
        """Scores whose largest is the prediction, rows x classes; of two classes their difference, log-odds."""
        scores = self._whole(X, self.scores)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def statistic(self, source: Source, cells: Cells) -> Moments:
        """Sums of the mapped rows by cell; variances need no products of columns."""
        return COVARIANCES[self.covariance].statistic(source, cells)

    def fold_parts(self, source: Source, cells: Cells) -> Any:
        """The statistic of unions of cells; twofold sums are made once, if ever."""
        if COVARIANCES[self.covariance].has_products:
            return FoldScatter(source, cells)
        return super().fold_parts(source, cells)

    def sums_key(self) -> Any:
        """Variances and products of columns are other sums."""
        return COVARIANCES[self.covariance].has_products

    def statistic_bytes(self, n_cells: int, n_columns: int) -> int:
        """Size of the statistic of so many cells."""
        n_numbers = n_columns + 2 if COVARIANCES[self.covariance].has_products else 1
        return super().statistic_bytes(n_cells, n_columns) * n_numbers

    def row_folds(self, mapped: Source, rounds: Sequence[Splits], candidates: Sequence[Candidate]) -> RowFolds | None:
        """Through products of rows, where there are fewer of them than columns."""
        has_products = COVARIANCES[self.covariance].has_products
        return wide_folds(self, mapped, rounds, candidates) if has_products and is_wide(mapped) else None

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Shrinkages from none to all."""
        return [{"shrinkage": s} for s in (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)]

    def _task_of(self, statistic: Moments, source: Source) -> GaussianTask:
        priors = checked_priors("priors", self.priors, self.classes_)
        shrinkage = Shrinkage(float(self.shrinkage), bool(self.standardize))
        others = (shrinkage, priors, list(source.names), self.classes_, self.singular == "warn")
        return COVARIANCES[self.covariance].task(statistic, *others)

    def _store(self, task: GaussianTask, state: GaussianState) -> None:
        self.class_count_ = task.moments.weights
        self.priors_, self.means_, self.covariance_ = state.priors, state.means, state.covariance
        self.roots_, self.redundant_ = state.roots, state.redundant
        for name in ("coef_", "intercept_"):
            self.__dict__.pop(name, None)
        if COVARIANCES[self.covariance].is_linear:
            self.coef_, self.intercept_ = state.boundary()

    def _state(self) -> GaussianState:
        return GaussianState(self.priors_, self.means_, self.covariance_, self.roots_, self.redundant_)

    def _certified(self, task: GaussianTask, state: GaussianState) -> LikelihoodCertificate:
        certificate = certify_gaussian(task, state, float(self.tol))
        if not COVARIANCES[self.covariance].is_linear or state.has_boundary(self.coef_, self.intercept_):
            return certificate
        fault = "coef_ and intercept_ are not those of the priors, means and covariance."
        return replace(certificate, value=np.inf, fault=fault)

    def _log_joint(self, columns: Block) -> Array:
        state = self._state()
        joint: Array = core.quadratic_scores(
            columns.rows, self.means_, state.class_roots(), state.constants(), n_threads()
        )
        return joint

    def mapped_scores(self, columns: Block) -> Array:
        """log p(k | x) of mapped rows, but for what is equal for all classes of a row."""
        if not hasattr(self, "coef_") or self._is_far():
            return self._log_joint(columns)
        scores: Array = core.linear_scores(columns.rows, self.coef_, self.intercept_, n_threads())
        if scores.shape[1] > 1:
            return scores
        return np.asarray(np.minimum(np.hstack([-scores, scores]), 0.0))  # log-odds may be infinite: a prior of 0

    def _is_far(self) -> bool:
        """Whether some of three classes or more are so far apart that linear scores of the others cancel."""
        away = self.means_ - self.priors_ @ self.means_
        return len(self.classes_) > 2 and bool((np.einsum("kj,kj->k", self.coef_, away) > FAR**2).any())


class FoldScatter:
    """Class scatter of unions of cells, from sums of every cell."""

    def __init__(self, source: Source, cells: Cells) -> None:
        self.source, self.cells = source, cells
        self.grams = class_grams(source, cells)
        self._twofold: CellGrams | None = None

    def __call__(self, times: Array) -> ClassScatter:
        """Class k holds cell c times[k, c] times."""
        return ClassScatter.of(self.grams, times, partial(self._resummed, times))

    def _resummed(self, times: Array) -> ClassScatter:
        if self._twofold is None:
            self._twofold = class_grams(self.source, self.cells, twofold=True)
        return ClassScatter.of(self._twofold, times)


@dataclass(frozen=True)
class Covariance:
    """What a choice of the parameter means. task: of a statistic, and what all choices share.

    has_products: its sums are products of columns. is_linear: boundaries are linear.
    """

    statistic: Callable[[Source, Cells], Moments]
    task: Callable[..., GaussianTask]
    has_products: bool = True
    is_linear: bool = False


COVARIANCES = {
    "shared": Covariance(class_scatter, partial(FullCovariance, is_shared=True), is_linear=True),
    "class": Covariance(class_scatter, partial(FullCovariance, is_shared=False)),
    "diagonal": Covariance(cell_moments, DiagonalCovariance, has_products=False),
}
