"""Support vector classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.classifier import ClassWeight, WeightedClasses, codes_of
from certifit.models.estimator import joined
from certifit.models.folds import EachRow, Grid, Rounds, RowFolds, Subsets, shared_work
from certifit.models.kernel.base import UserKernel, kernel_of
from certifit.models.kernel.folds import KernelPart
from certifit.models.kernel.task import dense_rows
from certifit.models.learner import Told
from certifit.models.svm.base import MEGABYTE, MarginModel, class_scores
from certifit.models.svm.folds import Limits, MarginPart, margin_folds
from certifit.models.svm.smo import solve_by_pairs
from certifit.models.svm.task import (
    ONE_VS_ONE,
    MarginRun,
    MarginState,
    MarginTask,
    class_machines,
    default_alpha,
    pairs_of,
)
from certifit.statistics.cell_sums import Store


class SVC(MarginModel, WeightedClasses[MarginTask, MarginState]):
    """Two classes with a wide margin between them, in the feature space of a kernel; more by several such machines.

    minimise over f, b:   sum_i weight_i max(0, 1 - y_i (b + f(x_i))) / sum_i weight_i  +  alpha/2 |f|^2,   y_i -1 or 1

    f = sum_i y_i a_i k(x_i, .),   0 <= a_i <= C_i = weight_i / (alpha sum of weights),   sum_i y_i a_i = 0
    certificate:  the duality gap, relative to the objective, with the worst violation of the conditions of the optimum

    Rows with a_i > 0 are the support vectors; the fitted model keeps them. There are no probabilities of margins: put
    the model into a calibrated one for these.

    Parameters
    ----------
    alpha : float > 0 or None, default None
        Strength of the penalty, on the scale of a mean. None is 1 / sum of weights: scikit-learn's SVC(C=1).
        `alpha_from_C(C, n)` converts.
    kernel : None, a kernel, a function or "precomputed", default None
        As for KernelRidge. None is Gaussian("scale"), scikit-learn's gamma="scale" where the rows have no weights; with
        weights of rows or classes the variance is the weighted one.
    fit_intercept : bool, default True
    standardize : bool, default False
        The kernel sees (x - mean) / standard deviation of every column.
    multi_class : {"one-vs-one", "one-vs-rest"}, default "one-vs-one"
        More than two classes: a machine for every two, whose votes decide, or for every class against the rest. Each
        has the C of all rows.
    class_weight : dict {label: weight}, "balanced" or None, default None
    solver : {"working-set", "smo"}, default "working-set"
        "smo" is the textbook method of two multipliers at a time, one step per row of `history_`: first and second, the
        rows of the pair; their multipliers before and after; the dual objective, which never falls. For small data.
    cache_size : float > 0, default 200
        Most megabytes of rows of the kernel that are kept during the fit, or during all fits of cross-validation.
        Points of 64 columns or fewer need none in one fit: their rows are made again as fast.
    encoder : as for LinearRegression
    tol : float >= 0, default 1e-4
        Largest gap, relative to the objective, that counts as converged.
    max_iter : int >= 1, default 10_000_000
        Most steps of two multipliers, of each machine.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.

    Attributes
    ----------
    classes_ : the labels, sorted
    support_vectors_ : the rows that are kept, as the kernel sees them; dual_coef_ : their y_i a_i, a column per machine
    support_ : their places among the rows of the fit; n_support_ : how many there are of every class; support_share_ :
        their share of the rows
    intercept_ : b of every machine; kernel_, alpha_ : as used
    certificate_ : the proof; n_free, n_bound: support vectors on the margin, and beyond it
    history_ : machine, objective, dual, violation and seconds of every round; dual <= objective in each

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> model = cf.SVC(alpha=0.01).fit(X, ["even", "even", "odd", "odd"])
    >>> model.predict([[0.1, 0.1], [0.9, 0.1]]), model.certificate_.holds
    (array(['even', 'odd'], dtype='<U4'), True)
    """

    has_margins = True
    shares = ("alpha",)

    def __init__(
        self,
        alpha: float | None = None,
        *,
        kernel: UserKernel = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        multi_class: Literal["one-vs-one", "one-vs-rest"] = "one-vs-one",
        class_weight: ClassWeight = None,
        solver: Literal["working-set", "smo"] = "working-set",
        cache_size: float = 200.0,
        encoder: UserEncoder = None,
        tol: float = 1e-4,
        max_iter: int = 10_000_000,
        max_time: float | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.multi_class = multi_class
        self.class_weight = class_weight
        self.solver = solver
        self.cache_size = cache_size
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def decision_function(self, X: UserRows) -> Array:
        """b + f(x) of two classes, above 0 for the second; of more a score per class, the largest is predicted."""
        scores = self._whole(X, self.scores)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def slack(self, X: UserRows, y: UserTarget) -> Array:
        """xi_i = max(0, 1 - y_i (b + f(x_i))) of every row; of more than two classes a column per machine.

        A machine of two of several classes has no slack of rows of the others: NaN.
        """
        n = len(self.classes_)
        z = joined(self._each(X, lambda block: self._sums(block) + self.intercepts_), np.zeros((0, 1)))
        is_of = np.asarray(y)[:, None] == self.classes_[None, :]
        if n > 2 and self.multi_class == ONE_VS_ONE:
            first, second = np.array(pairs_of(n)).T
            signs = np.where(is_of[:, second], 1.0, np.where(is_of[:, first], -1.0, np.nan))
        else:
            signs = np.where(is_of[:, -z.shape[1] :], 1.0, -1.0)
        slack = np.maximum(1 - signs * z, 0.0)
        return np.asarray(slack[:, 0] if n == 2 else slack)

    @property
    def intercept_(self) -> Array:
        """b of every machine."""
        check_is_fitted(self)
        return self.intercepts_

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of every class for rows that are mapped already."""
        z = self._mapped_sums(dense_rows(columns.X)) + self.intercepts_
        return class_scores(z, len(self.classes_), self.multi_class)

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """Fits to all training sets and alphas from one pool of rows of the kernel; None where each needs a refit.

        A width "scale" is that of all rows; gaps are filled and columns standardised by the rows of each training set.
        """
        if isinstance(grid, Subsets) or isinstance(rounds, EachRow) or grid.classes is None:
            return None
        parts = []
        for others, places in shared_work(grid.settings, self.shares):
            model = clone(self).set_params(**others)
            model._check_parameters()
            kernel = kernel_of(model.kernel)
            is_refitted = model.class_weight is not None or model.max_time is not None or model.solver == "smo"
            if is_refitted or kernel is None or not kernel.is_proven:
                return None
            alphas = [model._strength_of(grid.settings[place]) for place in places]
            columns, opened = model._fold_columns(source)
            part = KernelPart(
                columns, opened, kernel, places, alphas, bool(model.fit_intercept), bool(model.standardize)
            )
            limits = Limits(float(model.tol), int(model.max_iter), float(model.cache_size) * MEGABYTE)
            parts.append(MarginPart(part, limits, model.multi_class, len(grid.classes)))
        return margin_folds(parts, rounds)

    def _task(self, source: Source, is_fitted: bool = False) -> MarginTask:
        rows = self._kernel_rows(source, is_fitted)
        alpha = self.alpha_ if is_fitted else default_alpha(rows, self.alpha)
        assert alpha is not None
        codes = codes_of(rows.block)
        machines = class_machines(
            codes, rows.share / alpha, len(self.classes_), self.multi_class, bool(self.fit_intercept)
        )
        return MarginTask(rows, machines, alpha, in_float64=is_fitted)

    def _solve(self, task: MarginTask) -> Run[MarginState]:
        if self.solver == "smo":
            self._refuse_refuted(task.rows)
            return solve_by_pairs(task, float(self.tol), int(self.max_iter))
        return super()._solve(task)

    def _keep(self, task: MarginTask, run: Run[MarginState]) -> None:
        super()._keep(task, run)
        assert isinstance(run, MarginRun)
        self.n_support_ = np.bincount(codes_of(task.rows.block)[run.support], minlength=len(self.classes_))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver == "smo" and not self.fit_intercept:
            raise ValueError(
                "solver='smo' steps along pairs of multipliers, whose sum the intercept keeps at 0. Use "
                "solver='working-set' for fit_intercept=False."
            )

    def _told(self) -> Told:
        return replace(super()._told(), n_classes=len(getattr(self, "classes_", (0, 1))))
