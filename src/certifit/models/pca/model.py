"""Principal component analysis."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_array, check_is_fitted

from certifit.data.along import Sums
from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import OutPath, Predictions, UserRows, refuse_nonfinite
from certifit.maps import Basis, UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.steps import time_is_up
from certifit.models.estimator import Transformer, joined
from certifit.models.pca.certificate import PCACertificate, certify, unproven_directions
from certifit.models.pca.row_variance import ProductVariance, RowVariance
from certifit.models.pca.solver import solve
from certifit.models.pca.task import ColumnVariance, Directions, VarianceTask, few_rows, turned
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.gram import GramSums

COUNT_ABOVE = 256  # with fewer columns their matrix is cheap, and a stream is not read just to count its rows
EXACT_UP_TO = 4096  # size of a matrix up to which "auto" makes it
PIECE = 4096  # rows that are made dense at a time
ROUTES = {ColumnVariance: "columns", RowVariance: "rows", ProductVariance: "products"}


class PCA(ClassNamePrefixFeaturesOutMixin, Transformer[VarianceTask, Directions]):
    """Principal component analysis: the orthonormal directions along which the rows vary most.

    maximise over V'V = I:   trace V'AV,   A = sum_i weight_i z_i z_i' / sum_i weight_i,   z = (x - mean) / scale

    scores: z'V (over the root of the variance with whiten);  inverse: mean + scale (V scores)
    mean of |z - VV'z|^2 over the rows = sum of the dropped eigenvalues of A

    A is d x d; with fewer rows than columns the N x N matrix of products of rows takes its place. Variances too small
    for float64 sums come from twofold ones. The largest entry of every direction is positive, of equal ones the first.
    certificate:  |Av - lambda v|, orthonormality, what the best directions could explain beyond these

    Parameters
    ----------
    n_components : None, int in [1, d], share in (0, 1] or "mle", default None
        None keeps all directions in which the rows vary (their rank), a share the fewest that explain it, "mle" the
        number of largest evidence (Minka). More than the rank are filled up with directions of variance 0.
    center : bool, default True
        Subtract the mean of every column.
    standardize : bool, default False
        Divide every column by its standard deviation (1 / sum of weights); constant columns are left as they are.
    whiten : bool, default False
        Scores of unit variance; those along a direction of variance 0 are 0.
    solver : {"auto", "exact", "columns", "rows", "randomized"}, default "auto"
        "columns" makes the d x d matrix A, "rows" the N x N matrix of products of rows (in memory), "exact" the smaller
        of both. "randomized" needs only products with A, one pass over the rows each, and continues until the residual
        is below tol. "auto" takes it where rows and columns are more than 4096 and n_components is a tenth at most.
    ddof : float in [0, 1], default 1
        Variances are sums of squares over the sum of weights less this. 1 is scikit-learn's N - 1; 0 is A itself.
    basis, encoder : as for LinearRegression
        With a basis the components are those of its functions.
    tol : float >= 0, default 1e-8
        Largest value of the certificate that counts as converged.
    max_iter : int >= 1, default 100
        Steps of the randomized solver.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.
    random_state : int >= 0, default 0
        Where it starts.

    Attributes
    ----------
    components_ : (n_components_, d) directions, the largest variance first
    explained_variance_, explained_variance_ratio_, singular_values_ : (n_components_,)
    spectrum_ : variances of all directions, those dropped too; with solver="randomized" of those kept
    total_variance_ : of all directions
    noise_variance_ : mean of the dropped variances
    projection_error_ : mean of |z - VV'z|^2 over the rows
    mean_, scale_ : (d,) what rows are centred and divided by
    route_ : "columns" (d x d), "rows" (N x N) or "products"
    certificate_, history_, n_iter_ : the proof, one row per step, and the number of steps

    >>> import numpy as np
    >>> import certifit as cf
    >>> X = np.array([[1, 1], [-1, -1], [0.1, -0.1], [-0.1, 0.1]])
    >>> model = cf.PCA(ddof=0).fit(X)
    >>> model.explained_variance_.round(12)
    array([1.  , 0.01])
    >>> model.transform(X)[:, 0].round(6) + 0.0
    array([ 1.414214, -1.414214,  0.      ,  0.      ])
    """

    certificate_: PCACertificate

    def __init__(
        self,
        n_components: float | str | None = None,
        *,
        center: bool = True,
        standardize: bool = False,
        whiten: bool = False,
        solver: Literal["auto", "exact", "columns", "rows", "randomized"] = "auto",
        ddof: float = 1,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
        tol: float = 1e-8,
        max_iter: int = 100,
        max_time: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.center = center
        self.standardize = standardize
        self.whiten = whiten
        self.solver = solver
        self.ddof = ddof
        self.basis = basis
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

    def inverse_transform(self, X: UserRows) -> Array:
        """The rows that have these scores and lie in the plane of the components: the nearest to those scored.

        With a basis or an encoder these are rows of its columns.
        """
        check_is_fitted(self)
        scores = check_array(X, dtype=np.float64, input_name="X")
        if scores.shape[1] != self.n_components_:
            raise ValueError(f"X has {scores.shape[1]} columns, but there are {self.n_components_} components.")
        if self.whiten:
            scores = scores * np.sqrt(self.explained_variance_)
        rows = scores @ (self.components_ * self.scale_)
        rows += self.mean_
        return np.asarray(rows)

    def projection_error(self, X: UserRows) -> Array:
        """|z - VV'z|^2 of every row: its squared distance from the plane of the components, in units of z."""
        distances: Array = joined(self._each(X, self._distances), np.zeros(0))
        return distances

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    def _first_sums(self) -> Sums | None:
        is_of_columns = self.basis is None and self.solver not in ("rows", "randomized")
        return GramSums(bool(self.center)) if is_of_columns else None

    def _task(self, source: Source, is_fitted: bool = False) -> VarianceTask:
        if not is_fitted:
            return self._variances(source, self._wanted(source))
        wanted = self.n_components_ if isinstance(self.n_components, Integral) else None  # the route of the fit
        task = self._variances(source, wanted)
        if wanted is None or (self.explained_variance_ == 0).any():
            task.refine_for(_smallest(task))  # as the fit did to tell them from 0
        return task

    def _solve(self, task: VarianceTask) -> Run[Directions]:
        max_iter, seed = int(self.max_iter), int(self.random_state)
        return solve(task, self._wanted(task.source), tolerance=float(self.tol), max_iter=max_iter, seed=seed)

    def _state(self) -> Directions:
        return Directions(self.components_, self.explained_variance_, self.mean_, self.scale_)

    def _certified(self, task: VarianceTask, state: Directions) -> PCACertificate:
        return certify(task, state, float(self.tol), turned(state))

    def _variances(self, source: Source, wanted: float | str | None) -> VarianceTask:
        arguments = (bool(self.center), bool(self.standardize), float(self.ddof))
        d = source.n_features
        if self.solver == "randomized":
            return ProductVariance(source, *arguments)
        few, n_rows = few_rows(source, COUNT_ABOVE)
        smaller = d if n_rows is None else min(d, n_rows)
        if self.solver == "auto" and smaller > EXACT_UP_TO and isinstance(wanted, int) and 10 * wanted <= smaller:
            return ProductVariance(source, *arguments)
        by_rows = self.solver == "rows" or (few and self.solver != "columns")
        if wanted == "mle" and (by_rows or few):
            raise ValueError(
                "n_components='mle' needs the matrix of columns, and as many rows as columns. Got "
                f"solver={self.solver!r}" + (f", {n_rows} rows" if few else "") + f", {d} columns."
            )
        return RowVariance(source, *arguments) if by_rows else ColumnVariance(source, *arguments)

    def _wanted(self, source: Source) -> float | str | None:
        wanted = self.n_components
        if not isinstance(wanted, Integral):
            return wanted if wanted is None or isinstance(wanted, str) else float(wanted)
        if int(wanted) > source.n_features:
            raise ValueError(
                f"n_components must be at most the number of columns, {source.n_features}. Got {int(wanted)}."
            )
        return int(wanted)

    def _keep(self, task: VarianceTask, run: Run[Directions]) -> None:
        state = run.state
        self.components_, self.explained_variance_ = state.components, state.variances
        self.mean_, self.scale_ = state.mean, state.scale
        self.spectrum_ = _spectrum(task, state.variances)
        self.total_variance_ = task.total * task.factor
        self.route_ = ROUTES[type(task)]

    def _stated(self) -> dict[str, object]:
        share = 1 - float(self.ddof) / self.data_["sum_weight"]  # the certificate divides by the sum of weights
        kept, total = share * self.explained_variance_, share * self.total_variance_
        return unproven_directions(kept, total, len(self.column_names_))

    def _prove(self, task: VarianceTask, run: Run[Directions]) -> None:
        super()._prove(task, run)
        self.derive()

    def derive(self) -> None:
        """What follows from the directions, their variances and the total."""
        self.n_components_, self.n_iter_ = len(self.components_), len(self.history_)
        whole = max(self.total_variance_, np.finfo(float).tiny)
        self.explained_variance_ratio_ = self.explained_variance_ / whole
        freedom = self.data_["sum_weight"] - float(self.ddof)
        with np.errstate(over="ignore"):
            self.singular_values_ = np.sqrt(self.explained_variance_) * math.sqrt(freedom)
        left = len(self.column_names_) - self.n_components_
        dropped = max(self.total_variance_ - float(self.explained_variance_.sum()), 0.0)
        self.noise_variance_ = dropped / left if left else 0.0
        self.projection_error_ = self.certificate_.projection_error

    def _scores(self, block: Block) -> Array:
        if block.X.shape[0] == 0:
            return np.zeros((0, self.n_components_))
        columns = Block(self.columns_of(block), None, None, block.first_row)
        power = np.ldexp(1.0, -np.frexp(self.scale_)[1]) if self.standardize else np.ones(len(self.scale_))
        directions = (self.components_ / (self.scale_ * power)).T
        if self.whiten:
            sd = np.sqrt(self.explained_variance_)
            directions = directions * np.where(sd > 0, 1.0 / np.where(sd > 0, sd, 1.0), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Array = core.project(
                columns.rows, power, self.mean_ * power, np.ascontiguousarray(directions), n_threads()
            )
        if not np.isfinite(scores).all():
            refuse_nonfinite(Memory(columns.X, None, names=self.column_names_))
            raise ValueError("Scores of X exceed the largest float64. Divide X by a power of ten, or standardize.")
        return scores

    @one_blas_thread
    def _distances(self, block: Block) -> Array:
        X = self.columns_of(block)
        pieces = [self._distance(X, begin) for begin in range(0, X.shape[0], PIECE)]
        distances = np.concatenate(pieces) if pieces else np.zeros(0)
        if not np.isfinite(distances).all():
            refuse_nonfinite(Memory(X, None, names=self.column_names_))
            raise ValueError("Squared distances of X exceed the largest float64. Divide X by a power of ten.")
        return distances

    def _distance(self, X: Any, begin: int) -> Array:
        part = X.part(begin, begin + PIECE) if isinstance(X, Columns) else X[begin : begin + PIECE]
        rows = part.toarray() if isinstance(part, Columns) or sp.issparse(part) else part
        with np.errstate(over="ignore", invalid="ignore"):
            z = (np.asarray(rows, dtype=np.float64) - self.mean_) / self.scale_
            z -= (z @ self.components_.T) @ self.components_
            return np.asarray(np.einsum("ij,ij->i", z, z))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver == "randomized" and not isinstance(self.n_components, Integral):
            raise ValueError(f"solver='randomized' needs n_components as a number. Got {self.n_components!r}.")


def _spectrum(task: VarianceTask, kept: Array) -> Array:
    """The variances kept, then the others where a matrix has them and there is time."""
    values = None if time_is_up() else task.eigenvalues()
    dropped = np.zeros(0) if values is None else np.maximum(values[len(kept) : task.n_columns], 0.0) * task.factor
    return np.concatenate([kept, np.minimum(dropped, kept[-1])])


def _smallest(task: VarianceTask) -> float:
    values = task.eigenvalues()
    return 0.0 if values is None else max(float(values[-1]), 0.0)
