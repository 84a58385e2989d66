"""What models of a row's score z = offset + b + x'w share: logistic regression and every generalised linear model."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.gate import refuse_nonfinite
from certifit.data.source import Block, Memory, Source
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.minimise.problem import Run, Solver
from certifit.models.folds import EachRow, FoldStates, FoldWeights, Grid, MeanState, Rounds, RowState
from certifit.models.glm.certificate import GlmCertificate, certify
from certifit.models.glm.folds import default_alphas, score_folds
from certifit.models.glm.inference import GlmInferenceMethods, GlmOrSoftmaxTask, GlmState
from certifit.models.glm.l1_solver import alpha_max, solve_path
from certifit.models.glm.solver import check_solver, is_stochastic, solve
from certifit.models.glm.start import Start, check_start, start_weights
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.solver import LassoPath
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.solver import smallest_norm
from certifit.models.penalty import PenaltyParameters, alpha_count
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import Store

TOL = 1e-8
LEAST_SHARE = 1e-3  # of the largest alpha of a path
STOCHASTIC_TOL = 1e-3  # steps after single rows end near the minimum, not at it


class GlmModel(PenaltyParameters[GlmOrSoftmaxTask, GlmState], GlmInferenceMethods):
    """Parameters and the fit of a loss of scores."""

    alpha: float | None
    l1_ratio: float
    fit_intercept: bool
    standardize: bool
    solver: Solver | str
    start: Start
    tol: float | None
    step_tol: float
    max_iter: int
    coef_: Array
    intercept_: Any  # a number; an array in a classifier
    certificate_: GlmCertificate

    @abstractmethod
    def _loss(self) -> ScoreLoss:
        """The loss of a score."""

    shares = ("alpha",)
    most_shared_columns = 200
    is_of_classes = False

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> FoldStates | None:
        """Fits of all candidates to the training rows of all splits, a path for all of them at once."""
        return None if isinstance(rounds, EachRow) else score_folds(self, source, rounds, grid)

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Fifty values of alpha where the user names none."""
        return default_alphas(self, source)

    def fold_state(self, weights: FoldWeights) -> RowState:
        """The fit to one training set."""
        return MeanState(weights, self._loss())

    def training_splits(self, source: Source, splits: Splits) -> Splits:
        """The splits with the weights that the model gives to the rows of every training set."""
        return splits

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver."""
        check_is_fitted(self)
        return max(int(self.history_[-1]["iteration"]), 1)

    def _solve(self, task: GlmOrSoftmaxTask) -> Run[GlmState]:
        assert isinstance(task, GlmTask)
        self.__dict__.pop("_row_state", None)  # a fit begins anew
        self._check_target(task)
        stop = (self._tolerance(), int(self.max_iter), float(self.step_tol))
        return solve(task, self.solver, *stop, self.start_of(task))

    def start_of(self, task: GlmTask) -> Weights | None:
        """Where the steps begin; None leaves it to the solver."""
        if self.start is None:
            return None
        weights, intercepts = start_weights(self.start, 1, task.source.n_features, task.fit_intercept)
        return Weights(weights[0], float(intercepts[0]))

    def _keep(self, task: GlmOrSoftmaxTask, run: Run[GlmState]) -> None:
        assert isinstance(task, GlmTask) and isinstance(run.state, Weights)
        self._keep_weights(run.state)
        self.alpha_ = float(task.strengths.alpha)

    def _keep_weights(self, state: Weights) -> None:
        self.coef_, self.intercept_ = state.coef, state.intercept

    def _certified(self, task: GlmOrSoftmaxTask, state: GlmState) -> GlmCertificate:
        assert isinstance(task, GlmTask) and isinstance(state, Weights)
        return certify(task, state, self._tolerance())

    def _prove(self, task: GlmOrSoftmaxTask, run: Run[GlmState]) -> None:
        assert isinstance(task, GlmTask)
        super()._prove(task, run)
        if self.certificate_.dependent and task.strengths.alpha == 0:  # many weights are best: the smallest are taken
            self._keep_weights(smallest_norm(task.columns, self._weights()))
            super()._prove(task, run)
        self.rank_, self.condition_ = self.certificate_.rank, self.certificate_.condition
        self.inference_ = self._inferred(task, self._weights())

    def _tolerance(self) -> float:
        """tol, or what suits the solver."""
        if self.tol is not None:
            return float(self.tol)
        return STOCHASTIC_TOL if is_stochastic(self.solver) else TOL

    def _task(self, source: Source, is_fitted: bool = False) -> GlmOrSoftmaxTask:
        return self._score_task(source, self.alpha_ if is_fitted else self.alpha)

    def _score_task(self, source: Source, alpha: float | None) -> GlmTask:
        """What is minimised on mapped rows; alpha None is 1 / sum of weights."""
        free = self._strengths(source.names, 0.0)
        task = GlmTask(source, self._loss(), free, bool(self.fit_intercept), bool(self.standardize))
        strength = 1.0 / task.targets.weight if alpha is None else float(alpha)
        task.penalise(self._strengths(source.names, strength))
        return task

    def _path_of(self, source: Source, alphas: Array | None, n_alphas: int) -> LassoPath:
        task = self._score_task(source, 1.0)
        self._check_target(task)
        if alphas is None:
            largest = alpha_max(task)
            if np.isinf(largest):
                raise ValueError("alphas must be given for l1_ratio=0: no alpha leaves all weights out.")
            alphas = (largest or 1.0) * np.geomspace(1.0, LEAST_SHARE, alpha_count(n_alphas))
        return solve_path(task, alphas, self._tolerance(), int(self.max_iter))

    def _check_target(self, task: GlmTask) -> None:
        ends = np.array([task.targets.low, task.targets.high])
        if not task.loss.is_legal(ends).all():
            for stretch in task.source.stretches():
                y = np.asarray(stretch.y)
                own = y if stretch.weight is None else np.where(stretch.weight > 0, y, task.targets.high)
                task.loss.check_target(own, stretch.first_row, self.target_name_)
        if not np.isfinite(task.targets.first):
            raise ValueError(
                f"The sum of {self.target_name_} times the weights exceeds the largest float64. Divide the weights, or "
                f"{self.target_name_}, by a power of ten."
            )
        with np.errstate(divide="ignore"):
            start = task.loss.score(task.targets.mean)
        if self.fit_intercept and not np.isfinite(start):
            raise ValueError(
                f"{self.target_name_} is {task.targets.mean:g} in every row: the intercept that suits {task.loss.name} "
                "best is infinite. Use rows with other targets too, or fit_intercept=False."
            )

    def _state(self) -> GlmState:
        return self._weights()

    def _weights(self) -> Weights:
        return Weights(self.coef_, float(self.intercept_))

    def _column_scores(self, columns: Block) -> Array:
        """offset + b + x'w of mapped rows."""
        state = self._weights()
        z: Array = core.scores(columns.rows, state.coef, state.intercept, n_threads())
        return z if columns.offset is None else z + columns.offset

    def _row_scores(self, block: Block) -> Array:
        """offset + b + x'w of the rows of a block of the source that the model was fitted to."""
        if block.X.shape[0] == 0:
            return np.zeros(0)
        columns = Block(self.columns_of(block), None, None, block.first_row, offset=block.offset)
        z = self._column_scores(columns)
        if not np.isfinite(z).all():
            refuse_nonfinite(Memory(columns.X, None, names=self.column_names_))
        return z

    def _l1_ratio(self) -> float:
        return float(self.l1_ratio)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_solver(self.solver)
        check_start(self.start)
