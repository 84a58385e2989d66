"""What every model shares, each method once.

    fit:          check -> gate -> maps -> task -> solve -> keep -> prove
    partial_fit:  check -> gate -> maps (of the first rows) -> add
    certify:      gate -> maps -> task -> prove
    predict:      gate -> maps -> scores

A fitted model holds no rows. A fit that fails leaves the one before it whole. Every concrete class writes its own
one-line `fit`, whose arguments scikit-learn reads.

What a fit works on, in types: a task (rows and the mathematics of a model) and the state that solves it.
"""

from __future__ import annotations

import html
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
from sklearn import get_config
from sklearn.base import RegressorMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.along import Sums
from certifit.data.columns import Array
from certifit.data.source import Block, RowError, Source
from certifit.data.user_input import (
    OutPath,
    Predictions,
    UserRows,
    UserTarget,
    UserWeights,
    fit_source,
    predict_rows,
    predict_source,
    refuse_nonfinite,
    refuse_targets,
    unchanged_on_error,
    unlabelled_source,
)
from certifit.data.view import Target
from certifit.data.writing import write_predictions
from certifit.maps import Basis, Polynomial, TableEncoder, UserEncoder, encoder_key, encoder_of
from certifit.maps.table.along import encoded_table
from certifit.minimise.problem import Run
from certifit.minimise.steps import closed_form_row, time_is_up
from certifit.models.adapter import learner_of
from certifit.models.callbacks import CallbackSupport, fit_watch
from certifit.models.certificate import Certificate
from certifit.models.folds import FoldStates, Grid, Rounds
from certifit.models.learner import Learner, Told
from certifit.models.metric import Metric
from certifit.models.named_parameters import NamedParameters
from certifit.models.parameters import refuse_elsewhere
from certifit.runtime import one_blas_thread
from certifit.statistics.cell_sums import Store
from certifit.statistics.gram import ColumnRange
from certifit.statistics.moments import target_sums


class Task(Protocol):
    """What is optimised on mapped rows. Its solver and its certificate know it by its own type."""

    def facts(self) -> dict[str, float]:
        """What a fit remembers of its rows: n_rows and sum_weight; of a number as target its mean and spread too."""
        ...


TaskT = TypeVar("TaskT", bound=Task)
StateT = TypeVar("StateT")  # frozen arrays: all that a fit finds, without rows


RowsT = TypeVar("RowsT")  # what the gate of an estimator lets through
DEFAULT_TOL = 1e-8
FRAMES_TO_USER = 6  # from a warning of `_settle` up to the line that called fit


class Estimator(CallbackSupport, NamedParameters, ABC, Generic[RowsT]):
    """What is fitted to rows: one task (`TaskEstimator`), or some estimators (`Composite`)."""

    # What some fits leave, and others do not.
    target_name_: str | None = None
    offset_name_: str | None = None
    exposure_name_: str | None = None
    alpha_: float | None = None
    inference_: Any = None
    history_: Sequence[Mapping[str, Any]] = ()

    def __new__(cls, *args: Any, **params: Any) -> Self:
        """A new model; a parameter of another library is refused with what to write in its place."""
        if params:
            refuse_elsewhere(cls, params)
        model: Self = super().__new__(cls)
        return model

    @property
    def objective(self) -> str:
        """What is optimised, in one line."""
        return learner_of(self).objective(self._told())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What a notebook shows: scikit-learn's diagram, what is optimised and, after a fit, the certificate."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            certificate = getattr(self, "certificate_", None)
            lines = [self.objective, *([] if certificate is None else [str(certificate)])]
            bundle["text/html"] += "".join(f"<p><small>{html.escape(line)}</small></p>" for line in lines)
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        """The same for readers that know no bundles; absent where scikit-learn's display is text."""
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is there when scikit-learn's display is 'diagram'.")
        return lambda: self._repr_mimebundle_()["text/html"]

    def _told(self) -> Told:
        """What the objective says of this model."""
        return Told(self.get_params(deep=False), self.alpha_)

    def _fit(self, X: UserRows, y: UserTarget = None, **roles: UserWeights) -> Self:
        """The fit of every model. roles: what else there is per row, as sample_weight."""
        self._check_parameters()
        with unchanged_on_error(self), fit_watch(self, X, y, roles):
            self._learn(self._gate(X, y, **roles))
        return self

    @abstractmethod
    def _gate(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> RowsT:
        """The checked rows of a fit. Sets what the fit keeps of their form."""

    @abstractmethod
    def _learn(self, source: RowsT) -> None:
        """Fit to checked rows."""

    def _check_parameters(self) -> None:
        """Refuse values that are not legal, alone (by the table of models) or together."""
        for name, param in learner_of(self).params.items():
            param.check(name, getattr(self, name))

    # Folds

    shares: ClassVar[tuple[str, ...]] = ()  # parameters whose values share the work of folds

    def shares_folds(self, source: Source, n_classes: int) -> bool:
        """Whether `folds` of all candidates together cost less than refits of some. n_classes: 0 for numbers."""
        return True

    def folds(self, source: Source, rounds: Rounds, grid: Grid, shared: Store) -> FoldStates | None:
        """Fits to the training rows of all splits at once (`models/folds.py`); None: each is to be refitted.

        source: checked rows, of classes with codes for y.
        """
        return None

    def candidates(self, source: Source) -> list[dict[str, Any]]:
        """Values of the parameters worth trying where the user names none."""
        return [{}]

    def fold_candidates(self, source: Source, rounds: Rounds, shared: Store) -> list[dict[str, Any]]:
        """The same for splits that are known: a model may find them in statistics that its folds need too."""
        return self.candidates(source)

    @property
    def default_scoring(self) -> str | Metric | None:
        """What the model is scored by where the user names nothing; None is its own score."""
        return learner_of(self).metric(self.get_params(deep=False))


class TaskEstimator(Estimator[Source], Generic[TaskT, StateT]):
    """A model with an encoder and a basis, and their fitted copies encoder_ and basis_.

    A model writes `_gate` and `_gate_again` (how rows are checked), `_task`, `_solve`, `_keep`, `_state` and
    `_certified`.
    """

    basis: Basis | None = None
    encoder: UserEncoder
    encoder_: TableEncoder | None
    basis_: Basis | None
    certificate_: Certificate
    column_names_: list[str]
    data_: dict[str, float]

    # Fit

    @one_blas_thread
    def _learn(self, source: Source) -> None:
        """Fit the maps and the model to checked rows."""
        self._begin(source)
        mapped = self.fit_maps(self._weighted(source))
        self.column_names_ = list(mapped.names)
        self._settle(self._task(mapped))

    def _settle(self, task: TaskT) -> None:
        """Solve a task, keep what was found, and prove what is kept."""
        started = time.perf_counter()
        run = self._solve(task)
        self.history_ = run.history or [closed_form_row(time.perf_counter() - started)]
        self.__dict__.pop("weights_", None)  # those of an earlier fit
        if run.weights is not None:
            self.weights_ = run.weights
        self.data_ = task.facts()
        self._keep(task, run)
        self._prove(task, run)
        for sentence in self._warnings(task, run):
            warnings.warn(sentence, ConvergenceWarning, stacklevel=FRAMES_TO_USER)

    def _prove(self, task: TaskT, run: Run[StateT]) -> None:
        """The certificate of what is kept, and what follows from both."""
        self.certificate_ = self._out_of_time() if time_is_up() else self._certified(task, self._state())

    def _out_of_time(self) -> Certificate:
        """The certificate of a fit whose time was up before its proof was begun."""
        learner = learner_of(self)
        assert isinstance(learner, Learner)
        module, _, name = learner.load_record().objects["certificate_"].place.partition(":")
        kind: type[Certificate] = getattr(import_module(f"certifit.{module}"), name)
        tol = getattr(self, "tol", 1.0)
        return kind.out_of_time(DEFAULT_TOL if tol is None else float(tol), **self._stated())

    def _stated(self) -> dict[str, object]:
        """What the certificate of a fit without a proof says of the model all the same; a model file compares it."""
        return {}

    def _warnings(self, task: TaskT, run: Run[StateT]) -> list[str]:
        """What the user has to know at once."""
        if self.certificate_.holds:
            return []
        return [f"{self.certificate_.sentences()[0]} {run.reason}".rstrip()]

    @one_blas_thread
    def _certify(self, X: UserRows, y: UserTarget = None, **roles: UserWeights) -> Certificate:
        """The certificate of this model on rows; no solver takes part."""
        check_is_fitted(self)
        return self.certify_source(self._gate_again(X, y, **roles))

    @one_blas_thread
    def certify_source(self, source: Source) -> Certificate:
        """The certificate of this model on checked rows, those of `_gate_again`."""
        return self._certified(self._task(self.mapped_again(source), is_fitted=True), self._state())

    def _task_on(self, X: UserRows, y: UserTarget = None, **roles: UserWeights) -> TaskT:
        """The task of rows, seen through the fitted maps."""
        return self._task(self.mapped_again(self._gate_again(X, y, **roles)), is_fitted=True)

    def mapped_again(self, source: Source) -> Source:
        """Checked rows as the fitted maps make them, with the weights that the model gives them."""
        return self._mapped(self._weighted(source))

    @one_blas_thread
    def _partial_fit(self, X: UserRows, y: UserTarget = None, **roles: UserWeights) -> Self:
        """One pass over more rows, from what is kept of those before."""
        self._check_parameters()
        with unchanged_on_error(self):
            if hasattr(self, "column_names_"):
                mapped = self._mapped(self._gate_again(X, y, **roles))
            else:
                source = self._gate(X, y, **roles)
                self._begin(source)
                mapped = self.fit_maps(source)
                self.column_names_ = list(mapped.names)
            self._add(self._weighted(mapped))
        return self

    def _add(self, source: Source) -> None:
        """Learn from mapped rows in addition to those before."""
        raise NotImplementedError

    def _begin(self, source: Source) -> None:
        """Settle what checked rows have to tell before they are mapped, or refuse them."""

    def _weighted(self, source: Source) -> Source:
        """The rows with the weights that the model gives them."""
        return source

    @abstractmethod
    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Source:
        """Checked rows with a target, of the form of those of the fit."""

    @abstractmethod
    def _task(self, source: Source, is_fitted: bool = False) -> TaskT:
        """What is optimised on mapped rows. is_fitted: with the parameters that the fit settled, not those asked."""

    @abstractmethod
    def _solve(self, task: TaskT) -> Run[StateT]:
        """The optimum of a task."""

    @abstractmethod
    def _keep(self, task: TaskT, run: Run[StateT]) -> None:
        """Set the attributes of a solution."""

    @abstractmethod
    def _state(self) -> StateT:
        """The solution that the attributes hold."""

    @abstractmethod
    def _certified(self, task: TaskT, state: StateT) -> Certificate:
        """The proof of a solution."""

    # Rows of a prediction

    _piece_rows: int | None = None  # rows in memory that are scored at a time; None is all

    def _each(self, X: UserRows, f: Callable[[Block], Array], **roles: UserWeights) -> Iterable[Array]:
        """f of every run of a scan, or of pieces of rows in memory."""
        check_is_fitted(self)
        if isinstance(X, Source):
            return predict_source(self, X, **roles).reading(Target.NONE).map(f)
        return self._pieces(predict_rows(self, X, **roles), f)

    def _pieces(self, block: Block, f: Callable[[Block], Array]) -> Iterator[Array]:
        n_rows = int(block.X.shape[0])
        piece = max(n_rows, 1) if self._piece_rows is None else self._piece_rows
        for begin in range(0, max(n_rows, 1), piece):
            yield f(block) if piece >= n_rows else f(block.part(begin, begin + piece))

    # Maps

    def fit_maps(self, source: Source) -> Source:
        """Fit the encoder and the basis; the mapped source."""
        self.encoder_, encoded = self._encoded_once(source) if source.is_table else (None, source)
        if self.basis is None:
            self.basis_ = None
            return encoded
        self.basis_ = fitted_basis(self.basis, encoded)
        return encoded.through(self.basis_)

    def _encoded_once(self, source: Source) -> tuple[TableEncoder, Source]:
        """The fitted encoder and the encoded rows; of a shared source those that a fit before has made."""

        if not source.is_shared:
            return encoded_table(source, self._fitted_encoder, self._first_sums())
        question = encoder_key(self.encoder)
        return source.remembered(("encoded", question), partial(encoded_table, source, self._fitted_encoder, None))

    def _first_sums(self) -> Sums | None:
        """What the task sums first over encoded rows; None where it needs something of them before."""
        return None

    def _mapped(self, source: Source) -> Source:
        source = self._encoded(source)
        return source if self.basis_ is None else source.through(self.basis_)

    def _encoded(self, source: Source) -> Source:
        return source if self.encoder_ is None else source.through(self.encoder_)

    def columns_of(self, block: Block) -> Any:
        """The columns that the fitted encoder and basis make of the rows of a block."""
        X = block.X
        try:
            for row_map in (self.encoder_, self.basis_):
                X = X if row_map is None else row_map.apply(X)
        except RowError as error:
            raise error.moved(block.first_row) from None
        return X

    def reader(self) -> Self:
        """A copy that reads rows as this model was fitted to them; the gate may set its attributes."""
        probe: Self = clone(self)
        if self.encoder_ is not None and probe.encoder is None:
            probe.encoder = self.encoder_  # a frame is then read as the table that the model was fitted to
        return probe

    @property
    def _takes_levels(self) -> bool:
        """Whether a category of a table is one column of codes for this model, not a column per level."""
        return False

    def _fitted_encoder(self, source: Source) -> TableEncoder:
        asked = encoder_of(self.encoder)
        encoder = TableEncoder() if asked is None else clone(asked)
        if self._takes_levels and encoder.levels == "auto":
            encoder.set_params(levels="codes")
        fitted: TableEncoder = source.surveyed(("encoder", encoder_key(encoder)), partial(encoder.fit_source, source))
        return fitted

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise TypeError(f"basis must be None, Polynomial(degree) or Functions([...]). Got {self.basis!r}.")
        if self.encoder not in (None, "auto") and not isinstance(self.encoder, TableEncoder):
            raise TypeError(f"encoder must be None, 'auto' or TableEncoder(...). Got {self.encoder!r}.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags


class Regressor(RegressorMixin, TaskEstimator[TaskT, StateT]):
    """A model of a number per row. It writes `scores`: what it predicts for the rows of a block."""

    def fit(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Self:
        """Fit to rows X and target y (arrays, sparse matrices, data frames), or to a scan that carries its target.

        sample_weight: one number per row; weight 2 is the row twice.
        """
        return self._fit(X, y, sample_weight=sample_weight)

    def predict(self, X: UserRows, out: OutPath = None) -> Predictions:
        """The prediction for every row of an array, a frame or a scan.

        out: a .parquet or .csv file to write them to, in constant memory for a scan; then nothing is returned.
        """
        return self._predict(X, out)

    def score(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> float:
        """R^2 = 1 - squared errors / those of the mean of y; of a scan with its own target too."""
        if not isinstance(X, Source):
            if y is None:
                raise ValueError("score needs the targets y of these rows, or a scan that carries its target.")
            refuse_targets(y)
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        source = self._gate_again(X, y, sample_weight=sample_weight)
        squares, total = source.reduce(partial(self._squares, mean=target_sums(source).mean))
        return float(1 - squares / total) if total > 0 else float(squares == 0)

    def _squares(self, block: Block, mean: float) -> Array:
        """Of the errors of the model, and of those of the mean."""
        y, weight = np.asarray(block.y), np.ones(block.n_rows) if block.weight is None else block.weight
        return np.array([weight @ np.square(y - self.scores(block)), weight @ np.square(y - mean)])

    def certify(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, y, sample_weight=sample_weight)

    def _gate(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Source:
        source = fit_source(self, X, y, **roles)
        self.target_name_ = name_of_target(X, y)
        return source

    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Source:
        predict_source(self, X) if isinstance(X, Source) else predict_rows(self, X)
        return fit_source(self.reader(), X, y, **roles)

    def _predict(self, X: UserRows, out: OutPath, **roles: UserWeights) -> Predictions:
        return joined(self._each(X, self.scores, **roles), np.zeros(0), out)

    @abstractmethod
    def scores(self, block: Block) -> Array:
        """Predictions of the rows of a block of the source that the model was fitted to."""


class Transformer(TransformerMixin, TaskEstimator[TaskT, StateT]):
    """A model that gives every row new columns, without a target."""

    def fit(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Self:
        """Fit to rows X (arrays, sparse matrices, data frames) or to a scan; y is not looked at.

        sample_weight: one number per row; weight 2 is the row twice.
        """
        return self._fit(X, sample_weight=sample_weight)

    def certify(self, X: UserRows, y: UserTarget = None, sample_weight: UserWeights = None) -> Certificate:
        """The certificate of this model recomputed on data; no solver takes part."""
        return self._certify(X, sample_weight=sample_weight)

    def _gate(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Source:
        return unlabelled_source(self, X, **roles)

    def _gate_again(self, X: UserRows, y: UserTarget, **roles: UserWeights) -> Source:
        source = unlabelled_source(self.reader(), X, **roles)
        predict_source(self, source)
        return source


def name_of_target(X: UserRows, y: UserTarget) -> str:
    """What a scan or a named series calls its target; else y."""
    return X.target if isinstance(X, Source) else str(getattr(y, "name", None) or "y")


def joined(parts: Iterable[Array], empty: Array, out: OutPath = None, **columns: Any) -> Predictions:
    """The parts as one array, or written to a file part by part; then nothing is returned."""
    if out is not None:
        write_predictions(parts, out, **columns)
        return None
    whole = list(parts)
    return np.concatenate(whole) if whole else empty


def fitted_basis(basis: Basis, source: Source) -> Basis:
    """A fitted copy of the basis; a polynomial needs only the range of each column, one pass."""
    basis = clone(basis)
    names = source.names if source.named else None
    if isinstance(basis, Polynomial):
        span = source.reduce(ColumnRange.of)
        if not (np.isfinite(span.lower).all() and np.isfinite(span.upper).all()):
            refuse_nonfinite(source)
        return basis.fit_range(span.lower, span.upper, names=names)
    return basis.fit(source.first_block().X)
