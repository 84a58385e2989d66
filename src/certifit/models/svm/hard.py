"""The hard-margin support vector machine."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget
from certifit.maps import UserEncoder
from certifit.mathematics.kernels import Kernel, Linear
from certifit.minimise.problem import Run
from certifit.models.classifier import Classifier, codes_of
from certifit.models.estimator import FRAMES_TO_USER
from certifit.models.glm.separation import class_sides
from certifit.models.glm.separation_certificate import separation
from certifit.models.kernel.base import UserKernel, kernel_of
from certifit.models.kernel.task import KernelRows, dense_rows
from certifit.models.svm.base import MarginModel
from certifit.models.svm.hard_certificate import (
    HardMarginCertificate,
    NotSeparableError,
    certify_hard,
    certify_soft,
    contradiction,
)
from certifit.models.svm.task import MarginRun, MarginState, MarginTask, of_classes

SOFT = 1e3  # C of a row times the mean of k(x, x), of the soft margin that is fitted where there is no hard one


class HardMarginSVC(MarginModel, Classifier[MarginTask, MarginState]):
    """Two classes with the widest margin between them, in the feature space of a kernel; every row on its side.

    minimise over f, b:   |f|^2 / 2    subject to    y_i (b + f(x_i)) >= 1  for all rows,   y_i -1 or 1

    f = sum_i y_i a_i k(x_i, .),   a_i >= 0,   sum_i y_i a_i = 0;   b = -(max_{y=-1} f + min_{y=1} f) / 2
    certificate:  the margin 1 / |f| relative to the largest that any separator can have

    Classes that cannot be separated are refused with the proof: a few rows whose multiples cancel (linear kernel), or
    two rows with the same numbers and different classes.

    Parameters
    ----------
    kernel : None, a kernel, a function or "precomputed", default None
        As for SVC; None is the linear kernel x'z here.
    fit_intercept : bool, default True
    standardize : bool, default False
    not_separable : {"raise", "warn"}, default "raise"
        "warn" fits the soft margin instead, at C = 1000 / mean of k(x, x), which alpha_ and a warning state.
    cache_size, encoder, tol, max_iter, max_time : as for SVC
        tol is relative to the objective: a margin within half of it.

    Takes no sample_weight: a row is there or not.

    Attributes
    ----------
    classes_ : the two labels, sorted; the second is y = 1
    margin_ : the distance of the nearest row to the boundary
    coef_ : w of the linear kernel, scaled so that the nearest row has y (b + x'w) = 1
    support_vectors_, dual_coef_, support_, intercept_, kernel_ : as of SVC
    alpha_ : None; of a soft margin its strength
    certificate_ : see above, with the bound on the error of a distribution that has this margin

    >>> import numpy as np
    >>> import certifit as cf
    >>> model = cf.HardMarginSVC().fit([[0.0, 0.0], [2.0, 0.0], [2.0, 3.0]], ["left", "right", "right"])
    >>> model.margin_.round(6), model.coef_.round(6), model.intercept_.round(6)
    (np.float64(1.0), array([[1., 0.]]), array([-1.]))
    """

    has_margins = True
    certificate_: HardMarginCertificate

    def __init__(
        self,
        kernel: UserKernel = None,
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        not_separable: Literal["raise", "warn"] = "raise",
        cache_size: float = 200.0,
        encoder: UserEncoder = None,
        tol: float = 1e-4,
        max_iter: int = 10_000_000,
        max_time: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.not_separable = not_separable
        self.cache_size = cache_size
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time

    def fit(self, X: UserRows, y: UserTarget = None) -> Self:  # type: ignore[override]  # takes no weights
        """Fit to rows X and two labels y of any type, or to a scan that carries its target."""
        return self._fit(X, y)

    def decision_function(self, X: UserRows) -> Array:
        """b + f(x), above 0 for the second class."""
        return self._whole(X, self.scores)[:, 1]

    @property
    def intercept_(self) -> Array:
        """b."""
        check_is_fitted(self)
        return self.intercepts_

    @property
    def coef_(self) -> Array:
        """w of the linear kernel, in the units of the columns that the kernel sees."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is there for the linear kernel only.")
        return np.asarray(self.dual_coef_.T @ self.X_fit_)

    def mapped_scores(self, columns: Block) -> Array:
        """Scores of both classes for rows that are mapped already."""
        z = self._mapped_sums(dense_rows(columns.X))[:, 0] + self.intercepts_[0]
        return np.column_stack([-z, z])

    def _begin(self, source: Source) -> None:
        if len(self.classes_) != 2:
            raise ValueError(
                f"Only binary classification is supported. y has {len(self.classes_)} classes. Use "
                "OneVsRestClassifier(HardMarginSVC()) or SVC."
            )
        first = next(source.stretches(), None)
        if first is not None and first.weight is not None:
            raise ValueError("HardMarginSVC takes no weights: a row is there or not. Leave weight= out of the scan.")

    def _task(self, source: Source, is_fitted: bool = False) -> MarginTask:
        rows = self._kernel_rows(source, is_fitted)
        return self._hard_task(rows, self.alpha_ if is_fitted else None, source)

    def _hard_task(self, rows: KernelRows, alpha: float | None, source: Source | None) -> MarginTask:
        y = np.where(codes_of(rows.block) == 1, 1.0, -1.0)
        bound = np.full(len(y), np.inf) if alpha is None else rows.share / alpha
        machine = of_classes(y, np.arange(len(y)), bound, bool(self.fit_intercept))
        return MarginTask(rows, [machine], alpha, source, in_float64=True)

    def _kernel_rows(self, source: Source, is_fitted: bool) -> KernelRows:
        if is_fitted:
            return KernelRows(source, self.kernel_, self._standard())
        return KernelRows(source, self._kernel(), bool(self.standardize))

    def _kernel(self) -> Kernel | None:
        return Linear() if self.kernel is None else kernel_of(self.kernel)

    def _settle(self, task: MarginTask) -> None:
        try:
            super()._settle(task)
        except NotSeparableError as error:
            if self.not_separable == "raise":
                raise
            rows = task.rows
            alpha = float(rows.share @ np.square(task.sizes)) / (SOFT * rows.n_points) or 1.0 / rows.n_points
            warnings.warn(
                f"{error} Fitted instead: the soft margin of SVC(alpha={alpha:.6g}).",
                ConvergenceWarning,
                stacklevel=FRAMES_TO_USER,
            )
            super()._settle(self._hard_task(rows, alpha, None))

    def _solve(self, task: MarginTask) -> Run[MarginState]:
        if task.alpha is None:
            self._refuse_proven(task)
        run = super()._solve(task)
        return run if task.alpha is not None else self._normalised(task, run)

    def _refuse_proven(self, task: MarginTask) -> None:
        """Refuse classes that are proven not to be separable."""
        pair = contradiction(task)
        if pair is not None:
            first, second = (int(row) for row in np.flatnonzero(task.rows.seen)[list(pair)])
            raise NotSeparableError(
                f"The classes cannot be separated: rows {first} and {second} have the same numbers and different "
                "classes. Use SVC, or not_separable='warn'."
            )
        if isinstance(task.rows.kernel, Linear) and task.source is not None and not self.standardize:
            proof = separation(task.source, class_sides, bool(self.fit_intercept), complete=True)
            if proof.kind == "none":
                raise NotSeparableError(
                    f"The classes cannot be separated. {proof.sentence()} Use SVC, or not_separable='warn'.", proof
                )

    def _normalised(self, task: MarginTask, run: Run[MarginState]) -> Run[MarginState]:
        """The separator with the nearest rows of both classes at y (b + f) = 1."""
        (machine,), state = task.machines, run.state
        f = task.values(state.points, state.dual)[:, 0]
        highest, lowest = float(f[machine.sign < 0].max()), float(f[machine.sign > 0].min())
        b = -(highest + lowest) / 2 if machine.has_intercept else 0.0
        least = min(lowest + b, -(highest + b))
        if not least > 0:
            raise NotSeparableError(
                "No separator of the classes was found: whether there is one is undecided within rounding. "
                f"{run.reason} Use SVC, or not_separable='warn'."
            )
        return replace(run, state=MarginState(state.points, state.dual / least, np.array([b / least])))

    def _keep(self, task: MarginTask, run: Run[MarginState]) -> None:
        super()._keep(task, run)
        f = task.values(run.state.points, run.state.dual)[:, 0] + self.intercepts_[0]
        size = float(np.sqrt(max(float(task.rows.seen_of(run.state.dual)[:, 0] @ _own(task, run, f)), 0.0)))
        (machine,) = task.machines
        with np.errstate(divide="ignore", invalid="ignore"):
            self.margin_ = np.float64(np.min(machine.sign * f) / size) if size > 0 else np.float64(0.0)

    def _stated(self) -> dict[str, object]:
        return {"is_soft": self.alpha_ is not None}

    def _certified(self, task: MarginTask, state: MarginState) -> HardMarginCertificate:
        return (certify_hard if task.alpha is None else certify_soft)(task, state, float(self.tol))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _own(task: MarginTask, run: Run[MarginState], scores: Array) -> Array:
    """f at the points of a state."""
    assert isinstance(run, MarginRun)
    f = scores - run.state.intercepts[0]
    return np.asarray(f if task.rows.kernel is None else f[run.support])
