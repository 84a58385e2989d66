"""Linear support vector classification."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from sklearn.base import clone

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget
from certifit.maps import Basis, UserEncoder
from certifit.minimise.problem import Run
from certifit.models.classifier import ClassWeight, WeightedClasses
from certifit.models.folds import EachRow, Grid, Rounds, RowFolds, Subsets, shared_work
from certifit.models.learner import Told
from certifit.models.linear_svm.certificate import certify
from certifit.models.linear_svm.folds import LinearPart, are_few, linear_folds
from certifit.models.linear_svm.solver import AUTO, NEWTON, SGD, SOLVERS, Limits, solve
from certifit.models.linear_svm.task import LinearState, LinearTask
from certifit.models.svm.certificate import MarginCertificate
from certifit.models.svm.slack import SLACKS
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import Store
from certifit.statistics.moments import target_sums


class LinearSVC(WeightedClasses[LinearTask, LinearState]):
    """Two classes with a wide margin between them, in the space of the columns; of more each against the rest.

    minimise over w, b:   sum_i weight_i max(0, 1 - y_i (b + x_i'w))^p / sum_i weight_i  +  alpha/2 |w|^2,   y_i -1 or 1

    loss "hinge": p = 1;  "squared_hinge": p = 2.  C = 1 / (alpha N), N the sum of weights; b is not penalised
    certificate:  the duality gap, relative to the objective; `verify` of a hinge solves its dual again

    The model is its weights: it keeps no rows. There are no probabilities of margins; Calibrated(LinearSVC()) has them.

    Parameters
    ----------
    alpha : float > 0 or None, default None
        Strength of the penalty; None is 1 / sum of weights, scikit-learn's C=1. Its LinearSVC penalises b too.
    loss : {"hinge", "squared_hinge"}, default "squared_hinge"
    fit_intercept : bool, default True
    standardize : bool, default False
        Penalise s_j w_j, s_j the standard deviation of a column (without an intercept, the root mean square).
    class_weight : dict {label: weight}, "balanced" or None, default None
        Factors of the rows' weights by class; "balanced" gives every class the same sum.
    solver : {"auto", "newton", "interior-point", "coordinate", "sgd"}, default "auto"
        "newton" is for squared_hinge, "interior-point" and "sgd" for hinge, "coordinate", of one multiplier at a time,
        for both. "auto": Newton's method up to 1,500 columns, then coordinate descent; of the hinge an interior point
        method where rows or columns are few, or where coordinate descent does not end soon. "sgd" is the textbook's:
        rows are drawn in proportion to their weight, w_t = theta / (alpha t), the mean of all w_t is returned; b is not
        stepped but the best one for that mean.
    basis, encoder : as for LinearRegression
    tol : float >= 0, default 1e-4
        Largest gap, relative to the objective, that counts as converged.
    max_iter : int >= 1, default 1000
        Most steps; of "coordinate" and "sgd" passes of as many steps as there are rows. "sgd" takes them all.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.
    random_state : int >= 0, default 0
        The seed of the draws of "sgd".

    Attributes
    ----------
    classes_ : the labels, sorted
    coef_, intercept_ : of shape (1, columns) and (1,) for two classes, (classes, columns) and (classes,) for more
    alpha_ : as used; certificate_ : the proof; n_iter_ : rows of history_
    history_ : machine, objective, dual and seconds of every step; dual <= objective in each

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> model = cf.LinearSVC(alpha=0.01, loss="hinge").fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict([[1.5], [2.5]]), (model.coef_.round(6) + 0.0).tolist(), model.certificate_.holds
    (array(['no', 'yes'], dtype='<U3'), [[1.0]], True)
    """

    has_margins = True
    certificate_: MarginCertificate
    coef_: Array
    intercept_: Array

    def __init__(
        self,
        alpha: float | None = None,
        loss: Literal["hinge", "squared_hinge"] = "squared_hinge",
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: ClassWeight = None,
        solver: Literal["auto", "newton", "interior-point", "coordinate", "sgd"] = "auto",
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.basis = basis
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def decision_function(self, X: UserRows) -> Array:
        """b + x'w of two classes, above 0 for the second; of more a score per class, the largest is predicted."""
        scores = self._whole(X, self.scores)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def slack(self, X: UserRows, y: UserTarget) -> Array:
        """xi_i = max(0, 1 - y_i (b + x_i'w)) of every row; of more than two classes a column for each."""
        z = self.decision_function(X).reshape(len(np.asarray(y)), -1)
        labels = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        signs = np.where(np.asarray(y)[:, None] == labels[None, :], 1.0, -1.0)
        slack = np.maximum(1 - signs * z, 0.0)
        return np.asarray(slack[:, 0] if len(self.classes_) == 2 else slack)

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of every class for rows that are mapped already."""
        parts = zip(self.coef_, self.intercept_, strict=True)
        z = [core.scores(columns.rows, np.ascontiguousarray(w), float(b), n_threads()) for w, b in parts]
        return np.column_stack([-z[0], z[0]] if len(self.classes_) == 2 else z)

    def candidates(self, source: Source) -> list[dict[str, float]]:
        """Five values of alpha where the user names none: C |x|^2 from 0.1 to 1000 of a row, |x|^2 of the mean row."""
        mapped = clone(self).fit_maps(source)
        squares = core.row_squares(mapped.first_block().rows, n_threads())
        size = float(mapped.n_features) if self.standardize else float(np.mean(squares))
        size = size if 0 < size < np.inf else 1.0
        total = target_sums(source).weight
        return [{"alpha": size * 10.0**power / total} for power in (1, 0, -1, -2, -3)]

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> RowFolds | None:
        """Fits to all training sets and alphas together where rows are few beside the columns; None: refits."""
        if isinstance(grid, Subsets) or isinstance(rounds, EachRow) or grid.classes is None or not are_few(source):
            return None
        parts = []
        for others, places in shared_work(grid.settings, ("alpha",)):
            models = [clone(self).set_params(**(others | dict(grid.settings[place]))) for place in places]
            for model in models:
                model._check_parameters()
            first = models[0]
            is_newton = first.loss == "squared_hinge" and first.solver in (AUTO, NEWTON)
            if not is_newton or first.basis is not None or first.class_weight is not None or first.max_time is not None:
                return None
            alphas = [None if model.alpha is None else float(model.alpha) for model in models]
            flags = bool(first.fit_intercept), bool(first.standardize)
            parts.append(LinearPart(places, alphas, *flags, float(first.tol), int(first.max_iter)))
        return linear_folds(parts, source, rounds, len(grid.classes))

    def _task(self, source: Source, is_fitted: bool = False) -> LinearTask:
        return LinearTask(
            source,
            len(self.classes_),
            self.alpha_ if is_fitted else self.alpha,
            SLACKS[self.loss],
            has_intercept=bool(self.fit_intercept),
            standardize=bool(self.standardize),
            is_centred=self.solver != SGD,
        )

    def _solve(self, task: LinearTask) -> Run[LinearState]:
        return solve(task, self.solver, Limits(float(self.tol), int(self.max_iter), int(self.random_state)))

    def _keep(self, task: LinearTask, run: Run[LinearState]) -> None:
        self.coef_, self.intercept_ = run.state.coef, run.state.intercepts
        self.alpha_ = task.alpha
        self.n_iter_ = len(self.history_)

    def _state(self) -> LinearState:
        return LinearState(self.coef_, self.intercept_)

    def _certified(self, task: LinearTask, state: LinearState) -> MarginCertificate:
        return certify(task, state, float(self.tol))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver not in SOLVERS[self.loss]:
            raise ValueError(
                f"solver={self.solver!r} does not solve loss={self.loss!r}. Use one of {', '.join(SOLVERS[self.loss])}."
            )

    def _told(self) -> Told:
        return replace(super()._told(), n_classes=len(getattr(self, "classes_", (0, 1))))
