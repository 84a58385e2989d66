"""What models of a row's score z = offset + b + x'w share: logistic regression and every generalised linear model.

Models of scores that learn from rows which come in parts: `partial_fit`, for the solvers that learn row by row.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.data.source import Block, Memory, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.minimise.gradient_descent import rounded_down
from certifit.minimise.minimum import solver_of
from certifit.minimise.problem import Run, Solver
from certifit.minimise.row_pass import RowOrder, one_pass, row_facts, wide_stretches
from certifit.minimise.row_pass import RowState as PassState
from certifit.minimise.steps import full_row, time_is_up
from certifit.minimise.stochastic import SGD
from certifit.models.folds import EachRow, FoldStates, FoldWeights, Grid, MeanState, Rounds, RowState
from certifit.models.gathered import row_count
from certifit.models.glm.certificate import CLAIM, GlmCertificate, certify
from certifit.models.glm.folds import default_alphas, score_folds
from certifit.models.glm.inference import GlmInferenceMethods, solved
from certifit.models.glm.l1_solver import alpha_max, solve_path
from certifit.models.glm.near_copies import solved_by_remainders
from certifit.models.glm.softmax_task import GlmOrSoftmaxTask, GlmState
from certifit.models.glm.solver import check_solver, is_stochastic
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.solver import LassoPath
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.solver import smallest_norm
from certifit.models.linear import PenaltyParameters, alpha_count, unproven_columns
from certifit.models.start import AUTO, Start, check_start, start_weights
from certifit.runtime import core, n_threads
from certifit.statistics.cell_sums import Store

SEEN_ONCE = "rows were seen once, part by part. certify(X, y) looks at all of them."


def learns_by_rows(model: Any) -> bool:
    """Whether a model has partial_fit; an AttributeError that says why not."""
    if is_stochastic(model.solver):
        return True
    raise AttributeError(
        f"partial_fit needs a solver that learns row by row: solver='sgd', 'mini-batch' or 'averaged-sgd'. "
        f"Got {model.solver!r}."
    )


@np.errstate(over="ignore")  # of the length of a step
def learn(model: Any, source: Source) -> None:
    """One pass over mapped rows from the state so far, stored with what is known of it."""
    started = time.perf_counter()
    if model.alpha is None:
        raise ValueError("alpha=None is 1 / sum of weights, which rows in parts do not tell. Give a number.")
    if model.standardize:
        raise ValueError(
            "standardize=True needs the standard deviations of all rows, which rows in parts do not tell. Use fit, or "
            "divide the columns by numbers that you know and set standardize=False."
        )
    task: GlmOrSoftmaxTask = model._task_of(source, model.alpha)
    if not task.is_smooth:
        raise ValueError("partial_fit takes no L1 penalty and no bounds.")
    model._check_target(task)
    solver, history = solver_of(model.solver), model.history_
    assert isinstance(solver, SGD)  # `learns_by_rows` let nothing else through
    if solver.record is not None:
        raise ValueError("record='weights' keeps the steps of a fit. partial_fit keeps none: set record=None.")
    passes = int(history[-1]["iteration"]) + 1 if history else 0
    state = _pass(task, solver, _begun(model, task, solver), passes)
    coef, intercept = state.averaged()
    if not (state.is_finite and np.isfinite(coef).all()):
        nothing = np.zeros_like(state.weights), 0.0 if task.n_scores == 1 else np.zeros(task.n_scores)
        largest = 2 / row_facts(task.source, task.loss, task.fit_intercept, *nothing).curvature
        raise ValueError(
            "The steps diverged: the weights left the numbers. Steps must be below 2 / (largest curvature of a row's "
            f"loss) = {rounded_down(largest, 6):.6g} to be stable for every row. Take at most half of that."
        )
    kept = model._state() if hasattr(model, "coef_") else None
    model._row_state = state
    learnt = model._state_of(np.atleast_2d(np.asarray(coef).T), np.atleast_1d(intercept))
    model._keep_weights(learnt)
    row = full_row(
        passes,
        objective=task.evaluate(task.to_point(learnt)).value,
        gap=np.inf,
        step=float(np.linalg.norm(_numbers(learnt) - (0.0 if kept is None else _numbers(kept)))),
        seconds=time.perf_counter() - started,
    )
    model.history_ = [*history, row]
    model.column_names_, model.alpha_, model.inference_ = list(source.names), float(model.alpha), None
    model.certificate_ = _seen_once(model, task)
    model.rank_, model.condition_ = model.certificate_.rank, model.certificate_.condition
    seen = getattr(model, "data_", {"n_rows": 0, "sum_weight": 0.0})
    facts = task.facts()
    model.data_ = facts | {key: seen[key] + facts[key] for key in ("n_rows", "sum_weight")}


def _numbers(state: GlmState) -> Array:
    """Weights and intercepts."""
    return np.append(state.coef, state.intercept)


def _begun(model: Any, task: GlmOrSoftmaxTask, solver: SGD) -> PassState:
    """The state of the last pass; of a model without one, its weights with the pace of a start."""
    kept: PassState | None = getattr(model, "_row_state", None)
    if kept is not None:
        return kept
    first = model._state() if hasattr(model, "coef_") else model.start_of(task)
    weights = np.zeros((task.source.n_features, task.n_scores)) if first is None else np.atleast_2d(first.coef).T
    weights = np.array(weights, dtype=np.float64, order="C")
    intercept = np.zeros(task.n_scores) if first is None else np.array(np.atleast_1d(first.intercept), dtype=np.float64)
    rows, is_one = wide_stretches(task.source), task.n_scores == 1
    begun: PassState = solver.start(
        rows,
        task.loss,
        task.fit_intercept,
        weights[:, 0].copy() if is_one else weights,
        float(intercept[0]) if is_one else intercept,
    )
    return begun.summing() if solver.average else begun


def _pass(task: GlmOrSoftmaxTask, solver: SGD, state: PassState, n_pass: int) -> PassState:
    order, strengths = RowOrder(solver.shuffle, int(solver.random_state)), task.l2_strengths

    def step(state: PassState, number: int, run: Block) -> PassState:
        visits = order.visits(run, n_pass + 1, number)
        return one_pass(run, task.loss, strengths, task.fit_intercept, state, visits)

    return wide_stretches(task.source).visit(step, state)


def _seen_once(model: Any, task: GlmOrSoftmaxTask) -> GlmCertificate:
    return GlmCertificate(
        claim=CLAIM,
        theorem="none",
        value=np.inf,
        tolerance=model._tolerance(),
        rounding=0.0,
        rank=task.source.n_features,
        n_columns=task.source.n_features,
        condition=np.inf,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        fault=SEEN_ONCE,
    )


TOL = 1e-8
LEAST_SHARE = 1e-3  # of the largest alpha of a path
MOST_SHARED_COLUMNS = 200  # beyond, fits of folds share their passes up to a number of products
MOST_SHARED_PRODUCTS = 2e10
FACTORS = 100  # of a Hessian, in all folds together: each costs as much as its products of as many rows as columns
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
    is_of_classes = False

    def shares_folds(self, source: Source, n_classes: int) -> bool:
        """Whether all candidates together cost less than refits of some: a Hessian per split, not of many columns."""
        d = float(source.n_features)
        return d <= MOST_SHARED_COLUMNS or (row_count(source) + FACTORS * d) * d**2 <= MOST_SHARED_PRODUCTS

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> FoldStates | None:
        """Fits of all candidates to the training rows of all splits, a path for all of them at once."""
        return None if isinstance(rounds, EachRow) else score_folds(self, source, rounds, grid)

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Fifty values of alpha where the user names none, of a ridge penalty on many cells fifteen."""
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
        self.__dict__.pop("_row_state", None)  # a fit begins anew
        self._check_target(task)
        stop = (self._tolerance(), int(self.max_iter), float(self.step_tol))
        return solved(task, self.solver, *stop, self.start_of(task))

    def start_of(self, task: GlmOrSoftmaxTask) -> GlmState | None:
        """Where the steps begin; None leaves it to the solver."""
        if self.start is None:
            return None
        return self._state_of(*start_weights(self.start, task.n_scores, task.source.n_features, task.fit_intercept))

    def _state_of(self, coef: Array, intercept: Array) -> GlmState:
        """Weights, scores x columns, and an intercept per score as a state."""
        return Weights(coef[0], float(intercept[0]))

    def _keep(self, task: GlmOrSoftmaxTask, run: Run[GlmState]) -> None:
        self._keep_weights(run.state)
        self.alpha_ = float(task.strengths.alpha)

    def _keep_weights(self, state: GlmState) -> None:
        self.coef_, self.intercept_ = state.coef, state.intercept

    def _certified(self, task: GlmOrSoftmaxTask, state: GlmState) -> GlmCertificate:
        return certify(task, state, self._tolerance())

    def _stated(self) -> dict[str, object]:
        return unproven_columns(self.column_names_, bool(self.fit_intercept))

    def _prove(self, task: GlmOrSoftmaxTask, run: Run[GlmState]) -> None:
        super()._prove(task, run)
        if (
            not self.certificate_.holds
            and self.solver == AUTO
            and self._is_free()
            and not time_is_up()
            and not self.certificate_.is_separated
        ):
            state = solved_by_remainders(task, self._state(), int(self.max_iter))
            if state is not None:
                self._keep_weights(state)
                super()._prove(task, run)
        is_free = isinstance(task, GlmTask) and task.strengths.alpha == 0
        proven = self.certificate_
        if proven.dependent and is_free:  # many weights are best: the smallest are taken, unless they blur the scores
            with np.errstate(over="ignore", invalid="ignore"):  # scores in units of the target may leave float64
                smallest = smallest_norm(task.columns, self._weights())
            if np.isfinite(smallest.coef).all() and np.isfinite(smallest.intercept):
                self._keep_weights(smallest)
                super()._prove(task, run)
                if proven.holds and not self.certificate_.holds:
                    self._keep_weights(run.state)
                    self.certificate_ = proven
        self.rank_, self.condition_ = self.certificate_.rank, self.certificate_.condition
        self.inference_ = None if time_is_up() else self._inferred(task, self._state())

    def _tolerance(self) -> float:
        """tol, or what suits the solver."""
        if self.tol is not None:
            return float(self.tol)
        return STOCHASTIC_TOL if is_stochastic(self.solver) else TOL

    def _task(self, source: Source, is_fitted: bool = False) -> GlmOrSoftmaxTask:
        return self._task_of(source, self.alpha_ if is_fitted else self.alpha)

    def _task_of(self, source: Source, alpha: float | None) -> GlmOrSoftmaxTask:
        """What is minimised on mapped rows at an alpha."""
        return self._score_task(source, alpha)

    def _score_task(self, source: Source, alpha: float | None) -> GlmTask:
        """What is minimised on mapped rows; alpha None is 1 / sum of weights."""
        free = self._strengths(source.names, 0.0)
        task = GlmTask(source, self._loss(), free, bool(self.fit_intercept), bool(self.standardize))
        strength = 1.0 / task.targets.weight if alpha is None else float(alpha)
        task.penalise(self._strengths(source.names, strength))
        return task

    def _path_of(self, source: Source, alphas: Array | None, n_alphas: int) -> LassoPath:
        task = self._task_of(source, 1.0)
        self._check_target(task)
        if alphas is None:
            largest = alpha_max(task)
            if np.isinf(largest):
                raise ValueError("alphas must be given for l1_ratio=0: no alpha leaves all weights out.")
            alphas = (largest or 1.0) * np.geomspace(1.0, LEAST_SHARE, alpha_count(n_alphas))
        return solve_path(task, alphas, self._tolerance(), int(self.max_iter))

    def _check_target(self, task: GlmOrSoftmaxTask) -> None:
        if not isinstance(task, GlmTask):
            return
        ends = np.array([task.targets.low, task.targets.high])
        if not task.loss.is_legal(ends).all():
            for stretch in task.source.stretches():
                y = np.asarray(stretch.y)
                targets = y if stretch.weight is None else np.where(stretch.weight > 0, y, task.targets.high)
                task.loss.check_target(targets, stretch.first_row, self.target_name_)
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
