"""What models of kernels share: the kernel, the rows that they keep, and sums of the kernel over those."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from sklearn.utils import Tags

from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.mathematics.kernels import Function, Gaussian, Kernel
from certifit.mathematics.kernels.tiles import multiply
from certifit.models.estimator import StateT, TaskEstimator, TaskT
from certifit.models.folds import Candidate
from certifit.models.kernel.folds import OpenColumns
from certifit.models.kernel.task import PRECOMPUTED, KernelRows, Standard, dense_rows
from certifit.models.learner import Told

UserKernel = Kernel | Callable[[Array, Array], Array] | str | None


def kernel_of(kernel: UserKernel) -> Kernel | None:
    """The kernel that a parameter means; None is a precomputed one."""
    if kernel is None:
        return Gaussian("scale")
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        if kernel != PRECOMPUTED:
            raise ValueError(
                f"kernel must be None, a kernel such as certifit.kernels.Gaussian(sigma), a function or 'precomputed'. "
                f"Got {kernel!r}."
            )
        return None
    if not callable(kernel):
        raise TypeError(
            f"kernel must be a kernel of certifit.kernels, a function, 'precomputed' or None. Got {kernel!r}."
        )
    return Function(kernel)


class KernelModel(TaskEstimator[TaskT, StateT]):
    """A model with a kernel that keeps rows: X_fit_ as the kernel sees them, and their coefficients dual_coef_."""

    alpha: float | None
    kernel: UserKernel
    standardize: bool
    kernel_: Kernel | None
    X_fit_: Array
    dual_coef_: Array
    mean_: Array | None
    scale_: Array | None

    def _kernel_rows(self, source: Source, is_fitted: bool) -> KernelRows:
        """Rows as the kernel sees them; is_fitted: as it saw those of the fit."""
        if not is_fitted:
            return KernelRows(source, kernel_of(self.kernel), bool(self.standardize))
        return KernelRows(source, self.kernel_, self._standard())

    def _standard(self) -> Standard | None:
        return None if self.mean_ is None or self.scale_ is None else Standard(self.mean_, self.scale_)

    def _keep_rows(self, rows: KernelRows) -> None:
        self.kernel_ = rows.kernel
        self.mean_ = None if rows.standard is None else rows.standard.mean
        self.scale_ = None if rows.standard is None else rows.standard.scale

    def _sums(self, block: Block) -> Array:
        """sum_j c_j k(x_j, x) of the rows of a block, one column per column of coefficients."""
        return self._mapped_sums(dense_rows(self.columns_of(block)))

    def _mapped_sums(self, X: Array) -> Array:
        """The same of rows that are mapped already."""
        columns = self.dual_coef_ if self.dual_coef_.ndim == 2 else self.dual_coef_[:, None]
        if not np.isfinite(X).all():
            refuse_nonfinite(Memory(X, None, names=self.column_names_))
        if len(X) == 0 or len(columns) == 0:  # a machine may have no support vectors: its score is its intercept
            return np.zeros((len(X), columns.shape[1]))
        standard = self._standard()
        with np.errstate(over="ignore", invalid="ignore"):
            if self.kernel_ is None:
                sums = multiply(X, columns)
            else:
                sums = self.kernel_.times(X if standard is None else standard(X), self.X_fit_, columns)
        if not np.isfinite(sums).all():
            raise ValueError(
                "The kernel of rows so far from those of the fit is beyond the largest float64. Predict rows that are "
                "nearer."
            )
        return sums

    def _fold_columns(self, source: Source) -> tuple[Source, OpenColumns | None]:
        """The encoded columns, and the same with every gap marked, where there are any."""
        if not source.is_table:
            return source, None
        encoder = self._fitted_encoder(source)
        opened, gaps, kept = encoder.opened()
        return source.through(encoder), OpenColumns(source.through(opened), gaps, kept) if gaps else None

    def _strength_of(self, candidate: Candidate) -> float | None:
        model = copy(self)
        model.alpha = candidate.get("alpha", self.alpha)
        model._check_parameters()
        return None if model.alpha is None else float(model.alpha)

    def _refuse_refuted(self, rows: KernelRows, allowed: bool = False) -> None:
        """Refuse a kernel that the rows show not to be Mercer, with what shows it."""
        if rows.is_proven or rows.tested:
            return
        if rows.tested.pair is not None or not allowed:
            more = (
                "" if not hasattr(self, "indefinite") else " indefinite='allow' fits a stationary point, without proof."
            )
            raise ValueError(f"{rows.tested}{more}")

    def _told(self) -> Told:
        kernel = vars(self).get("kernel_", kernel_of(self.kernel))
        words = "the matrix given" if kernel is None else str(kernel)
        return Told(self.get_params(deep=False), self.alpha_, kernel=words)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if kernel_of(self.kernel) is None and self.standardize:
            raise ValueError("standardize=True needs rows, and kernel='precomputed' has the matrix of a kernel.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == PRECOMPUTED
        return tags
