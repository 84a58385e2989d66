"""What networks of numbers and of classes share: layers, steps, states that can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array, dense_rows
from certifit.data.source import Block, Source
from certifit.data.user_input import UserRows, UserTarget, predict_rows
from certifit.maps import UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.row_pass import RowOrder
from certifit.minimise.steps import NAN, time_is_up
from certifit.models.certificate import OUT_OF_TIME
from certifit.models.estimator import TaskEstimator
from certifit.models.learner import Told
from certifit.models.network.about import SIZES
from certifit.models.network.certificate import NetworkCertificate, best_constant, certify, objective, seen_once
from certifit.models.network.formulas import Propagation, backward, forward
from certifit.models.network.layout import Layout
from certifit.models.network.losses import NetworkLoss
from certifit.models.network.polish import polished
from certifit.models.network.solver import DIVERGED, LEFT, TOO_HIGH, Rules, Walk, epoch, solve
from certifit.models.network.task import ROWS_OF_DEFAULT, ROWS_OF_EARLY_STOPPING, NetworkState, NetworkTask, Units


class Network(TaskEstimator[NetworkTask, NetworkState]):
    """A network. parameters_: all weights and biases end to end; layer_weights_, layer_biases_: of every layer."""

    certificate_: NetworkCertificate
    parameters_: Array
    starts_: Array
    objective_: float
    polished_: str
    diverged_: str = ""
    layer_sizes_: tuple[int, ...]
    mean_: Array
    scale_: Array
    level_: float
    size_: float
    _moments: tuple[Array, Array, int, int]  # of Adam or the velocity, steps and passes, between calls of partial_fit

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (100,),
        *,
        activation: str = "relu",
        leak: float = 0.01,
        biases: bool = True,
        output_bias: bool = True,
        solver: str = "adam",
        alpha: float | None = None,
        batch_size: int | None = None,
        learning_rate: float = 1e-3,
        schedule: str = "constant",
        decay: float | None = None,
        momentum: float = 0.0,
        max_iter: int = 200,
        max_time: float | None = None,
        least_fall: float = 1e-4,
        n_iter_no_change: int = 10,
        early_stopping: bool | str = False,
        validation_fraction: float = 0.1,
        n_starts: int = 1,
        polish: bool = False,
        standardize: bool = True,
        shuffle: bool = True,
        dtype: str = "float32",
        random_state: int = 0,
        start: Sequence[object] | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.leak = leak
        self.biases = biases
        self.output_bias = output_bias
        self.solver = solver
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.decay = decay
        self.momentum = momentum
        self.max_iter = max_iter
        self.max_time = max_time
        self.least_fall = least_fall
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_starts = n_starts
        self.polish = polish
        self.standardize = standardize
        self.shuffle = shuffle
        self.dtype = dtype
        self.random_state = random_state
        self.start = start
        self.encoder = encoder

    def _loss(self) -> NetworkLoss:
        raise NotImplementedError

    def _n_outputs(self) -> int:
        raise NotImplementedError

    def _layout(self, n_features: int) -> Layout:
        sizes = (n_features, *(int(size) for size in self.hidden_layer_sizes), self._n_outputs())
        return Layout(sizes, self.activation, float(self.leak), bool(self.biases), bool(self.output_bias))

    def _task(self, source: Source, is_fitted: bool = False) -> NetworkTask:
        held = (float(self.validation_fraction), int(self.random_state)) if self.early_stopping else None
        alpha = None if self.alpha is None else float(self.alpha)
        return NetworkTask(
            source,
            self._layout(source.n_features),
            self._loss(),
            self.dtype,
            alpha=self.alpha_ if is_fitted else alpha,
            units=self._units() if is_fitted else None,
            standardize=bool(self.standardize),
            held=None if is_fitted else held,
            least_rows=ROWS_OF_EARLY_STOPPING if self.early_stopping == "auto" else 0,
        )

    def _units(self) -> Units:
        return Units(self.mean_, self.scale_, self.level_, self.size_)

    def _rules(self, task: NetworkTask) -> Rules:
        n = max(int(min(task.sum_weight, 1e9)), 1)
        batch = min(ROWS_OF_DEFAULT, n) if self.batch_size is None else int(self.batch_size)
        return Rules(
            self.solver,
            float(self.learning_rate),
            self.schedule,
            batch / n if self.decay is None else float(self.decay),
            float(self.momentum),
            batch,
            int(self.max_iter),
            float(self.least_fall),
            int(self.n_iter_no_change),
            bool(self.shuffle),
            int(self.random_state),
        )

    def _start(self, task: NetworkTask, rules: Rules, number: int) -> Array:
        """Where a walk begins: where the user says, or the draw of that number."""
        if self.start is not None:
            return task.layout.joined(self.start)
        parameters = task.layout.drawn(rules.seed, number)
        if task.is_level:
            W, b = task.layout.split(parameters)[-1]
            W[:] = 0.0
            if b is not None:
                b[:] = 0.0
        return parameters

    def _solve(self, task: NetworkTask) -> Run[NetworkState]:
        self.__dict__.pop("_moments", None)  # those of rows that came in parts
        rules = self._rules(task)
        starts = [self._start(task, rules, k).astype(self.dtype) for k in range(int(self.n_starts))]
        walks = [solve(task, rules, start.copy()) for start in starts]
        is_over = time_is_up()  # then the last row of the history is all that is known of the end
        ends = [walk.steps.rows[-1]["objective"] if is_over else objective(task, walk.parameters)[0] for walk in walks]
        best = int(np.argmin(ends))
        walk, self.starts_ = walks[best], np.array(ends)
        parameters, self.polished_, self.diverged_ = walk.parameters, "", ""
        if is_over:
            return Run(NetworkState(parameters, task.units, task.alpha, ends[best]), walk.steps.rows, walk.reason)
        if self.polish:
            parameters, self.polished_ = polished(task, walk.parameters)
        end = objective(task, parameters)[0]
        if not end <= objective(task, starts[best])[0] + rules.tol:
            self.diverged_ = DIVERGED.format("the loss ended above its start")
        elif not end <= best_constant(task) + rules.tol:
            self.diverged_ = TOO_HIGH
        if self.diverged_:
            self.polished_ = ""
            points = [point for point in (walk.parameters, walk.best, starts[best]) if point is not None]
            parameters = min(points, key=lambda point: objective(task, point)[0])
            end = objective(task, parameters)[0]
        state = NetworkState(parameters, task.units, task.alpha, end)
        return Run(state, walk.steps.rows, walk.reason)

    def _keep(self, task: NetworkTask, run: Run[NetworkState]) -> None:
        state = run.state
        self.parameters_, self.alpha_, self.objective_ = state.parameters, state.alpha, state.objective
        self.mean_, self.scale_ = state.units.mean, state.units.scale
        self.level_, self.size_ = state.units.level, state.units.size
        self.layer_sizes_ = task.layout.sizes
        self.history_, self.n_iter_ = run.history, max(len(run.history), 1)

    def _state(self) -> NetworkState:
        return NetworkState(self.parameters_, self._units(), float(self.alpha_ or 0.0), self.objective_)

    def _stated(self) -> dict[str, object]:
        return {"objective": self.objective_}

    def _certified(self, task: NetworkTask, state: NetworkState) -> NetworkCertificate:
        stated: NetworkCertificate | None = getattr(self, "certificate_", None)
        if stated is not None and stated.theorem == OUT_OF_TIME:  # the objective at the end was not known
            state = replace(state, objective=objective(task, state.parameters)[0])
        return certify(task, state, self.polished_, self.diverged_, float(self.least_fall))

    def _warnings(self, task: NetworkTask, run: Run[NetworkState]) -> list[str]:
        return [*super()._warnings(task, run), *([run.reason] if run.reason and self.certificate_.holds else [])]

    def _add(self, source: Source) -> None:
        """One pass over more rows, from the weights so far. The first rows settle units and the default alpha."""
        if self.solver not in ("adam", "sgd"):
            raise ValueError(f"partial_fit needs solver='adam' or 'sgd'. Got {self.solver!r}.")
        if (self.early_stopping and self.early_stopping != "auto") or self.polish or int(self.n_starts) > 1:
            raise ValueError("partial_fit goes with early_stopping=False, polish=False and n_starts=1: it sees parts.")
        is_first = not hasattr(self, "parameters_")
        task = self._task(source, is_fitted=not is_first)
        rules = self._rules(task)
        begin = self._start(task, rules, 0) if is_first else self.parameters_
        walk = Walk.of(begin, self.dtype)
        if "_moments" in vars(self):
            walk.first, walk.second, walk.n_steps, walk.n_passes = self._moments
        value = epoch(task, rules, walk, RowOrder(rules.shuffle, rules.seed))
        if not np.isfinite(walk.parameters).all():
            raise ValueError(DIVERGED.format(LEFT))
        rows = [] if is_first else [dict(row) for row in self.history_]
        walk.steps.add(value, held_out=NAN, iteration=len(rows) + 1)
        end, facts = objective(task, walk.parameters)[0], task.facts()
        before = dict.fromkeys(("n_rows", "sum_weight"), 0.0) if is_first else self.data_
        self.polished_, self.diverged_, self.starts_ = "", "", np.array([end])
        state = NetworkState(walk.parameters, task.units, task.alpha, end)
        self._keep(task, Run(state, [*rows, *walk.steps.rows]))
        self._moments = walk.first, walk.second, walk.n_steps, walk.n_passes
        self.data_ = facts | {key: before[key] + facts[key] for key in ("n_rows", "sum_weight")}
        self.certificate_ = seen_once(end)

    # What can be looked at

    def _fitted_layout(self) -> Layout:
        check_is_fitted(self)
        return Layout(self.layer_sizes_, self.activation, float(self.leak), bool(self.biases), bool(self.output_bias))

    @property
    def layer_weights_(self) -> list[Array]:
        """W of every layer, outputs x inputs; of standardised columns where the model standardises."""
        return [W for W, _ in self._fitted_layout().split(self.parameters_)]

    @property
    def layer_biases_(self) -> list[Array | None]:
        """b of every layer; None of a layer without."""
        return [b for _, b in self._fitted_layout().split(self.parameters_)]

    def _seen(self, block: Block) -> Array:
        X = dense_rows(self.columns_of(block))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((X - self.mean_) / self.scale_)

    def _outputs(self, block: Block) -> Array:
        """z of the rows of a block, rows x outputs, in the units of the network."""
        from certifit.models.network.scores import scores

        columns = Block(self.columns_of(block), None, None)
        return scores(self._fitted_layout(), self.parameters_, self._units(), columns, self.dtype)

    def forward(self, X: UserRows) -> list[Array]:
        """Every state x_0 ... x_T of rows: the inputs, the hidden units after their activation, the scores."""
        check_is_fitted(self)
        seen = self._seen(predict_rows(self, X))
        return forward(self._fitted_layout(), np.asarray(self.parameters_, dtype=np.float64), seen)

    def backward(self, X: UserRows, y: UserTarget) -> Propagation:
        """States, costates p_t (derivatives of the mean loss of these rows by x_t) and gradients by W_t and b_t."""
        check_is_fitted(self)
        layout, point = self._fitted_layout(), np.asarray(self.parameters_, dtype=np.float64)
        states, loss = self.forward(X), self._loss()
        target, level = self._units().seen(loss, self._targets(y), None)
        scores = states[-1] if level is None else states[-1] + level[:, None]
        slopes = loss.slopes(target, scores) / len(target)
        costates, gradients = backward(layout, point, states, slopes)
        return Propagation(states, costates, gradients, float(loss.values(target, scores).mean()))

    def _targets(self, y: UserTarget) -> Array:
        return np.asarray(y, dtype=np.float64).ravel()

    def _told(self) -> Told:
        return Told(self.get_params(deep=False), self.alpha_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        SIZES.check("hidden_layer_sizes", self.hidden_layer_sizes)
        start = self.start
        if start is not None and (not isinstance(start, tuple | list) or int(self.n_starts) > 1):
            raise ValueError("start must be a list with the weights of every layer, or None; it goes with n_starts=1.")
