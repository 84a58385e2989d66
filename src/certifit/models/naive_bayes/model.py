"""Naive Bayes: columns that are independent within a class. Gaussian columns, columns of 0 and 1, and counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from certifit.data.cells import ByLabel, Cells
from certifit.data.columns import Array, Codes, Columns, Csr, Dense, Segment
from certifit.data.privacy import cell
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import UserLabels, UserRows, UserTarget, UserWeights, refuse_nonfinite
from certifit.maps import Basis, UserEncoder
from certifit.minimise.problem import Run
from certifit.models.certificate import Certificate
from certifit.models.classifier import pieces_of
from certifit.models.discriminant.certificate import certify_gaussian
from certifit.models.discriminant.closed_form import ClosedT, GenerativeClassifier, SumsT, checked_priors
from certifit.models.discriminant.likelihood import certify_counts
from certifit.models.discriminant.task import DiagonalCovariance, GaussianState, Shrinkage
from certifit.models.estimator import StateT
from certifit.models.naive_bayes.task import BernoulliTask, CountState, CountTask, MultinomialTask, log_not
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import CellCounts, CellMoments, cell_counts, cell_moments


class NaiveBayes(GenerativeClassifier[ClosedT, StateT, SumsT]):
    """A classifier whose statistic adds, so that rows can come in parts."""

    def partial_fit(
        self, X: UserRows, y: UserTarget = None, classes: UserLabels = None, sample_weight: UserWeights = None
    ) -> Self:
        """Add rows to those seen so far: the model is then that of one fit to all of them.

        classes: all labels there will be, in the first call. Columns of a table are read as in the first call.
        """
        return self._partial_fit(X, y, classes=classes, sample_weight=sample_weight)

    def _add(self, source: Source) -> None:
        sums = self._sums if hasattr(self, "certificate_") else None
        self._settle(self._task_from(self._added(source, sums), source))

    @abstractmethod
    def _added(self, source: Source, sums: SumsT | None) -> SumsT:
        """The statistic of these rows and those before."""

    def _keep(self, task: ClosedT, run: Run[StateT]) -> None:
        super()._keep(task, run)
        self._sums = self._sums_of(task)

    @abstractmethod
    def _sums_of(self, task: ClosedT) -> SumsT:
        """The statistic that a task is of."""


class GaussianNB(NaiveBayes[DiagonalCovariance, GaussianState, CellMoments]):
    """Naive Bayes with Gaussian columns: p(x, k) = prior_k prod_j N(x_j; theta_kj, var_kj).

    maximise over priors, theta, var:   sum_i weight_i log p(x_i, y_i);  then var += epsilon

    certificate:  shortfall of the mean log-likelihood, in nats per row, of the variances before epsilon is added

    Parameters
    ----------
    priors : None or one number per class, default None
        None is the classes' shares of the rows.
    var_smoothing : float >= 0, default 1e-9
        epsilon is this share of the largest variance of any column over all rows: weighted ones, and all rows that
        partial_fit has seen, where scikit-learn takes those of the last call, unweighted.
    basis, encoder : as for LinearRegression
    tol : float >= 0, default 1e-8

    Attributes
    ----------
    classes_, class_prior_, class_count_ : of every class
    theta_, var_ : means and variances, classes x columns
    epsilon_ : what was added to every variance
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> cf.GaussianNB().fit(X, [0, 0, 1, 1]).predict_proba([[0.0]]).round(6)
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        *,
        priors: ArrayLike | None = None,
        var_smoothing: float = 1e-9,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
    ) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing
        self.basis = basis
        self.encoder = encoder
        self.tol = tol

    def statistic(self, source: Source, cells: Cells) -> CellMoments:
        """Means and squares about them, by cell."""
        return cell_moments(source, cells)

    def _added(self, source: Source, sums: CellMoments | None) -> CellMoments:
        scaling = None if sums is None else sums.scaling
        new = cell_moments(source, ByLabel(len(self.classes_)), scaling)
        return new if sums is None else sums.merged(new)

    def _sums_of(self, task: DiagonalCovariance) -> CellMoments:
        return task.moments

    def _task_of(self, statistic: CellMoments, source: Source) -> DiagonalCovariance:
        priors = checked_priors("priors", self.priors, self.classes_)
        added = float(self.var_smoothing) * float(statistic.total_variances().max(initial=0.0))
        return DiagonalCovariance(statistic, Shrinkage(), priors, list(source.names), self.classes_, added=added)

    def _store(self, task: DiagonalCovariance, state: GaussianState) -> None:
        self.class_count_, self.class_prior_ = task.moments.weights, state.priors
        self.theta_, self.var_, self.epsilon_ = state.means, state.covariance, task.added
        self.redundant_ = state.redundant

    def _state(self) -> GaussianState:
        with np.errstate(divide="ignore"):
            roots = 1.0 / np.sqrt(self.var_)
        roots[:, list(self.redundant_)] = 0.0
        return GaussianState(self.class_prior_, self.theta_, self.var_, roots[:, None, :], self.redundant_)

    def _certified(self, task: DiagonalCovariance, state: GaussianState) -> Certificate:
        return certify_gaussian(task, state, float(self.tol))

    def _log_joint(self, columns: Block) -> Array:
        state = self._state()
        joint: Array = core.quadratic_scores(columns.rows, self.theta_, state.roots, state.constants(), n_threads())
        return joint


# ---- counts: columns that are there or not, and words that are counted -----------------------------------------------


class CountNB(NaiveBayes[CountTask, CountState, CellCounts]):
    """Naive Bayes over counts, smoothed by alpha."""

    alpha: float
    fit_prior: bool
    class_prior: ArrayLike | None
    task_type: type[CountTask]

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Smoothings from next to none to strong."""
        return [{"alpha": float(10.0**power)} for power in np.arange(-3.0, 2.01, 0.5)]

    def _added(self, source: Source, sums: CellCounts | None) -> CellCounts:
        counts = self.statistic(source, ByLabel(len(self.classes_)))
        return counts if sums is None else sums + counts

    def _sums_of(self, task: CountTask) -> CellCounts:
        return task.counts

    def _task_of(self, statistic: CellCounts, source: Source) -> CountTask:
        priors = checked_priors("class_prior", self.class_prior, self.classes_)
        if priors is None and not self.fit_prior:
            priors = np.full(len(self.classes_), 1.0 / len(self.classes_))
        return self.task_type(statistic, float(self.alpha), priors, list(source.names))

    def _store(self, task: CountTask, state: CountState) -> None:
        self.class_count_, self.feature_count_ = task.counts.weight, task.counts.counts
        self.class_log_prior_, self.feature_log_prob_ = state.log_priors, state.log_p
        self._refuse_impossible(task.names)

    def _refuse_impossible(self, names: Sequence[str]) -> None:
        """Chances of 0 make a row impossible in every class, and leave it without a prediction."""
        for k, j in np.argwhere(~np.isfinite(self._finite_part()))[:1]:
            advice = "Use alpha > 0." if self.alpha == 0 else "It leaves the range of float64: use alpha near 1."
            raise ValueError(
                f"alpha={self.alpha:g} gives column {names[j]!r} a chance of 0 or 1 in class "
                f"{self.classes_.tolist()[k]!r}: rows that say otherwise would be impossible. {advice}"
            )

    def _finite_part(self) -> Array:
        return self.feature_log_prob_

    def _state(self) -> CountState:
        return CountState(self.class_log_prior_, self.feature_log_prob_)

    def _certified(self, task: CountTask, state: CountState) -> Certificate:
        return certify_counts(task, state, float(self.tol))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class BernoulliNB(CountNB):
    """Naive Bayes with columns that are there or not: p(x, k) = prior_k prod_j p_jk^x_j (1 - p_jk)^(1 - x_j).

    p_jk = (n_jk + alpha) / (n_k + 2 alpha), n_jk the weight of the rows of class k that have column j

    certificate:  shortfall of the mean (smoothed) log-likelihood, in nats per row

    Parameters
    ----------
    alpha : float >= 0, default 1.0
        Laplace smoothing. With 0 a chance of 0 or 1 is refused.
    binarize : float or None, default 0.0
        x_j is 1 where the entry is larger than this. None: X holds 0 and 1 already.
    fit_prior : bool, default True
        Priors are the classes' shares of the rows, or else equal.
    class_prior : None or one number per class, default None
    encoder : as for LinearRegression
    tol : float >= 0, default 1e-8

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : of every class
    feature_count_, feature_log_prob_ : n_jk and log p_jk, classes x columns
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1, 0], [1, 1], [0, 1], [0, 1]])
    >>> np.exp(cf.BernoulliNB().fit(X, ["ham", "ham", "spam", "spam"]).feature_log_prob_).round(4)
    array([[0.75, 0.5 ],
           [0.25, 0.75]])
    """

    task_type = BernoulliTask

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.encoder = encoder
        self.tol = tol

    def sums_key(self) -> Any:
        """The threshold decides what is counted."""
        return self.binarize

    def statistic(self, source: Source, cells: Cells) -> CellCounts:
        """Weight of the rows that have each column, by cell."""
        counts = cell_counts(source, cells, None if self.binarize is None else float(self.binarize))
        most = counts.weight[:, None] * (1 + 1e-9)  # weights are not added in the same order
        if self.binarize is None and (counts.lowest < 0 or (counts.counts > most).any()):
            raise ValueError("binarize=None needs X of 0 and 1. Use binarize=0.0, or another threshold.")
        return counts

    def _task_of(self, statistic: CellCounts, source: Source) -> CountTask:
        task = super()._task_of(statistic, source)
        assert isinstance(task, BernoulliTask)
        task.threshold = None if self.binarize is None else float(self.binarize)
        return task

    def _finite_part(self) -> Array:
        return self.feature_log_prob_ + log_not(self.feature_log_prob_)

    def _log_joint(self, columns: Block) -> Array:
        no = log_not(self.feature_log_prob_)
        weights = np.ascontiguousarray(np.where(np.isfinite(no), self.feature_log_prob_ - no, 0.0))
        constants = self.class_log_prior_ + no.sum(axis=1)
        if self.binarize is None:
            scores: Array = core.linear_scores(columns.rows, weights, constants, n_threads())
            return scores
        names = self.column_names_

        def of_rows(X: Any) -> Array:
            block = Block(binarized(X, float(self.binarize or 0.0), names), None, None)
            part: Array = core.linear_scores(block.rows, weights, constants, n_threads())
            return part

        return pieces_of(columns.X, of_rows)


class MultinomialNB(CountNB):
    """Naive Bayes over counts of words: p(x, k) = prior_k prod_j p_jk^x_j, but for a factor without k.

    p_jk = (n_jk + alpha) / (sum_j n_jk + alpha V), n_jk how often the rows of class k have word j, V words

    certificate:  shortfall of the mean (smoothed) log-likelihood, in nats per row

    Parameters
    ----------
    alpha : float >= 0, default 1.0
        Laplace smoothing. With 0 a chance of 0 is refused.
    fit_prior, class_prior, encoder, tol : as for BernoulliNB

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : of every class
    feature_count_, feature_log_prob_ : n_jk and log p_jk, classes x columns
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[2, 0], [1, 0], [0, 2]])
    >>> np.exp(cf.MultinomialNB().fit(X, [0, 0, 1]).feature_log_prob_).round(4)
    array([[0.8 , 0.2 ],
           [0.25, 0.75]])
    """

    task_type = MultinomialTask

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_prior: bool = True,
        class_prior: ArrayLike | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.encoder = encoder
        self.tol = tol

    def statistic(self, source: Source, cells: Cells) -> CellCounts:
        """How often the rows have each word, by cell."""
        counts = cell_counts(source, cells)
        if counts.lowest < 0:
            raise ValueError(
                f"Negative values in data passed to MultinomialNB (input X): {cell(counts.lowest)}. Counts are >= 0."
            )
        return counts

    def _log_joint(self, columns: Block) -> Array:
        weights = np.ascontiguousarray(self.feature_log_prob_)
        scores: Array = core.linear_scores(columns.rows, weights, self.class_log_prior_, n_threads())
        return scores

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def binarized(X: Any, threshold: float, names: Sequence[str]) -> Any:
    """1 where an entry is larger than the threshold, else 0; a category stays coded, its entries being 1."""
    if isinstance(X, Columns):
        return Columns([_binarized_part(part, X.shape[0], threshold, names) for part in X.segments], X.shape[0])
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        refuse_nonfinite(Memory(X, None, names=list(names)))
    if not sp.issparse(X):
        return (threshold < X).view(np.uint8)
    return sp.csr_array(((values > threshold).astype(np.float64), X.indices, X.indptr), shape=X.shape)


def _binarized_part(part: Segment, n_rows: int, threshold: float, names: Sequence[str]) -> Segment:
    if isinstance(part, Codes):
        return part if threshold < 1 else Csr(sp.csr_array((n_rows, part.n_columns)))
    if isinstance(part, Csr):
        return Csr(binarized(part.rows, threshold, names))
    return Dense(binarized(part.dense(n_rows), threshold, names))
