"""Kernel principal component analysis."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import OutPath, Predictions, UserRows
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.models.estimator import Transformer, joined
from certifit.models.kernel.base import KernelModel, UserKernel
from certifit.models.kernel.components import KernelVariance, solve
from certifit.models.kernel.task import apart
from certifit.models.pca.certificate import PCACertificate, certify, unproven_directions
from certifit.models.pca.task import Directions, turned


class KernelPCA(
    ClassNamePrefixFeaturesOutMixin, KernelModel[KernelVariance, Directions], Transformer[KernelVariance, Directions]
):
    """Principal components in the feature space of a kernel, centred there.

    maximise over orthonormal v_1 .. v_k:   sum_j v_j'Av_j,   A = sum_i s_i (phi(x_i) - m)(phi(x_i) - m)'

    s = weight / sum of weights, m = sum_i s_i phi(x_i); v_j = sum_i c_ij phi(x_i), the score of x is v_j'(phi(x) - m)
    certificate:  that of PCA, on the centred matrix of the kernel

    The fitted model keeps all its rows. The largest entry of every direction is positive, of equal ones the first.

    Parameters
    ----------
    n_components : int >= 1 or None, default None
        None keeps all directions in which the rows vary.
    kernel : None, a kernel, a function or "precomputed", default None
        As for KernelRidge; a kernel that the rows show not to be Mercer is refused.
    standardize : bool, default False
        The kernel sees (x - mean) / standard deviation of every column.
    encoder : as for LinearRegression
    tol : float >= 0, default 1e-8
        Largest value of the certificate that counts as converged.
    max_iter : int >= 1, default 100
        Steps of the search where few directions of more than 1,000 rows are wanted.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.
    random_state : int >= 0, default 0
        Where it starts.

    Attributes
    ----------
    explained_variance_ : (n_components_,) eigenvalues of A, the largest first
    explained_variance_ratio_ : their shares of total_variance_
    eigenvalues_ : those of the centred matrix of the kernel: explained_variance_ times the sum of weights
    eigenvectors_ : (rows kept, n_components_) of that matrix
    X_fit_, dual_coef_ : the rows that are kept and c
    kernel_, certificate_, history_, n_iter_ : as for KernelRidge

    >>> import numpy as np
    >>> import certifit as cf
    >>> angle = np.linspace(0, 6, 40)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.repeat([1.0, 3.0], 20)[:, None]
    >>> model = cf.KernelPCA(2, kernel=cf.kernels.Gaussian(1.0)).fit(X)
    >>> model.transform(X).shape, model.certificate_.holds
    ((40, 2), True)
    """

    certificate_: PCACertificate

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: UserKernel = None,
        standardize: bool = False,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 100,
        max_time: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.standardize = standardize
        self.encoder = encoder
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state

    def transform(self, X: UserRows, out: OutPath = None) -> Predictions:
        """Scores of every row of an array, a frame or a scan, one column per component.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.get_feature_names_out()]
        return joined(self._each(X, self._scores), np.zeros((0, self.n_components_)), out, names=names)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _task(self, source: Source, is_fitted: bool = False) -> KernelVariance:
        return KernelVariance(self._kernel_rows(source, is_fitted))

    def _solve(self, task: KernelVariance) -> Run[Directions]:
        self._refuse_refuted(task.rows)
        wanted = None if self.n_components is None else int(self.n_components)
        if wanted is not None and wanted > task.n_columns:
            raise ValueError(f"n_components must be at most the number of rows of X, {task.n_columns}. Got {wanted}.")
        return solve(task, wanted, tolerance=float(self.tol), max_iter=int(self.max_iter), seed=int(self.random_state))

    def _keep(self, task: KernelVariance, run: Run[Directions]) -> None:
        rows, state = task.rows, run.state
        self._keep_rows(rows)
        self.eigenvectors_: Array = np.ascontiguousarray(state.components.T)
        self.explained_variance_: Array = state.variances
        self.total_variance_ = task.total
        self.X_fit_, self.dual_coef_, self.offsets_, _ = self._map(task, state)

    def _map(self, task: KernelVariance, state: Directions) -> tuple[Array, Array, Array, Array]:
        """What scores are made of: rows, coefficients, the scores of the mean; and the sizes of what these add."""
        c = task.coefficients(state.components, state.variances)
        return task.rows.kept(), task.rows.on_every_row(c), task.means @ c, np.abs(task.means) @ np.abs(c)

    def _state(self) -> Directions:
        n = len(self.eigenvectors_)
        components = np.ascontiguousarray(self.eigenvectors_.T)
        return Directions(components, self.explained_variance_, np.zeros(n), np.ones(n))

    def _certified(self, task: KernelVariance, state: Directions) -> PCACertificate:
        if state.components.shape[1] != task.n_columns:
            raise ValueError(f"The model keeps {state.components.shape[1]} rows, and the data has {task.n_columns}.")
        points, dual, offsets, sizes = self._map(task, state)
        moved = apart(np.stack([self.offsets_, sizes]), np.stack([offsets, sizes]))
        placed = max(apart(self.X_fit_, points), apart(self.dual_coef_, dual), moved, turned(state))
        return certify(task, state, float(self.tol), placed)

    def _stated(self) -> dict[str, object]:
        return unproven_directions(self.explained_variance_, self.total_variance_, len(self.eigenvectors_))

    def _prove(self, task: KernelVariance, run: Run[Directions]) -> None:
        super()._prove(task, run)
        self.derive()

    def derive(self) -> None:
        """What follows from the directions, their variances and the total."""
        self.n_components_, self.n_iter_ = len(self.explained_variance_), len(self.history_)
        whole = max(self.total_variance_, np.finfo(float).tiny)
        self.explained_variance_ratio_ = self.explained_variance_ / whole
        with np.errstate(over="ignore"):  # infinite where weights take them out of float64
            self.eigenvalues_ = self.explained_variance_ * self.data_["sum_weight"]

    def _scores(self, block: Block) -> Array:
        return np.asarray(self._sums(block) - self.offsets_)
