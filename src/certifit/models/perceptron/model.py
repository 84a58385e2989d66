"""The perceptron."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import UserLabels, UserRows, UserTarget, refuse_nonfinite
from certifit.maps import Basis, UserEncoder
from certifit.minimise.problem import Run
from certifit.minimise.steps import full_row, time_is_up, unreported
from certifit.models.certificate import Certificate
from certifit.models.classifier import Classifier
from certifit.models.file_checks import agree
from certifit.models.glm.separation_certificate import Separation
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.perceptron.certificate import PerceptronCertificate, certify, inseparability, seen_once
from certifit.models.perceptron.solver import MOST_NUMBERS, Epochs, PerceptronRun, augmented_norm, one_pass, widest
from certifit.models.perceptron.task import PerceptronTask
from certifit.runtime import core, n_threads

SAME_MARGIN = 1e-9  # relative: sums of other machines differ by less


class Perceptron(Classifier[PerceptronTask, Weights]):
    """Two classes separated by a hyperplane: add y (x, 1) to (w, b) wherever y (b + x'w) <= delta, y = -1 or 1.

    It ends iff the classes are separable, after at most (R^2 + 2 delta) / gamma^2 updates from zero, R and gamma of the
    augmented examples y_i (x_i, 1). Where they cannot, `certificate_` proves it by a few rows; epochs end once that is
    known (it is asked after 100), at a cycle of the weights, or after max_iter.
    certificate:  updates against that bound, gamma of the widest margin of the augmented examples, of large data of the
    weights that were found; or the proof of inseparability

    Parameters
    ----------
    delta : float >= 0, default 0.0
        The functional margin above which an example is left alone.
    start : None or array of numbers, default None
        The weights to start from, of all columns, then the intercept where there is one. None is zero.
    order : "given", "shuffled" or array of row numbers, default "given"
        The order of the examples in every epoch; "shuffled" again in each, within stretches of the rows.
    max_iter : int >= 1, default 1000
        Most epochs.
    max_time : float > 0 or None, default None
        Seconds after which no further step and no proof begins: what is reached is kept, and `certify` proves it.
    random_state : int >= 0, default 0
        Seed of order="shuffled".
    fit_intercept : bool, default True
    basis, encoder : as for LinearRegression

    Takes no sample_weight: the order of the rows is what defines the fit.

    Attributes
    ----------
    classes_ : the two labels, sorted; the second is y = 1
    coef_, intercept_ : of shape (1, columns) and (1,)
    n_updates_ : mistakes made, each with an update
    history_ : iteration, mistakes, norm |(w, b)| at the end and seconds of every epoch; a file keeps the last norm
    certificate_ : see above

    >>> import numpy as np
    >>> import certifit as cf
    >>> model = cf.Perceptron().fit(np.array([[0.1], [0.05]]), ["up", "down"])
    >>> model.n_updates_, model.certificate_.holds
    (405, True)
    >>> model.predict([[0.2], [0.0]])
    array(['up', 'down'], dtype='<U4')
    """

    has_margins = True
    certificate_: PerceptronCertificate

    def __init__(
        self,
        delta: float = 0.0,
        *,
        start: ArrayLike | None = None,
        order: str | ArrayLike = "given",
        max_iter: int = 1000,
        max_time: float | None = None,
        random_state: int = 0,
        fit_intercept: bool = True,
        basis: Basis | None = None,
        encoder: UserEncoder = None,
    ) -> None:
        self.delta = delta
        self.start = start
        self.order = order
        self.max_iter = max_iter
        self.max_time = max_time
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.basis = basis
        self.encoder = encoder

    def fit(self, X: UserRows, y: UserTarget = None) -> Self:  # type: ignore[override]  # takes no weights
        """Fit to rows X and two labels y of any type, or to a scan that carries its target."""
        return self._fit(X, y)

    def partial_fit(self, X: UserRows, y: UserTarget = None, classes: UserLabels = None) -> Self:
        """One pass over more rows, in the order of the rows; it continues from the weights so far.

        classes: both labels, in the first call. Nothing is certified: `certify(X, y)` looks at all rows.
        """
        return self._partial_fit(X, y, classes=classes)

    def _solve(self, task: PerceptronTask) -> PerceptronRun:
        known: list[Separation] = []

        def is_hopeless() -> bool:
            known.append(inseparability(task))
            return known[-1].kind == "none"

        with _numbers_named(task):
            run = Epochs(task, self._order(), int(self.random_state)).run(int(self.max_iter), is_hopeless)
        return replace(run, separation=known[-1] if known else None)

    def _keep(self, task: PerceptronTask, run: Run[Weights]) -> None:
        assert isinstance(run, PerceptronRun)
        self._keep_weights(run.state)
        self.n_updates_, self.cycle_ = run.n_updates, run.cycle

    def _stated(self) -> dict[str, object]:
        return {"n_updates": self.n_updates_, "cycle": self.cycle_ or ()}

    def _prove(self, task: PerceptronTask, run: Run[Weights]) -> None:
        assert isinstance(run, PerceptronRun)
        if time_is_up():
            unproven = self._out_of_time()
            assert isinstance(unproven, PerceptronCertificate)
            self.certificate_ = unproven
            return
        witness = self._witness(task, None)
        self.certificate_ = certify(task, self._state(), self.n_updates_, self.cycle_, run.separation, witness)

    def _add(self, source: Source) -> None:
        task = self._task(source)
        if hasattr(self, "coef_"):
            state = self._state()
        else:
            self.history_, self.n_updates_, self.cycle_, state = [], 0, None, task.start
            self.data_ = {"n_rows": 0, "sum_weight": 0.0}

        def step(so_far: tuple[Weights, int, int], number: int, stretch: Block) -> tuple[Weights, int, int]:
            weights, mistakes = one_pass(stretch, task.delta, task.fit_intercept, so_far[:2], None)
            return weights, mistakes, so_far[2] + stretch.n_rows

        started = time.perf_counter()
        with _numbers_named(task):
            state, mistakes, n_rows = task.source.visit(step, (state, 0, int(self.data_["n_rows"])))
        task.margins(state)
        self.n_updates_ += mistakes
        seconds, length = time.perf_counter() - started, augmented_norm(state)
        row = full_row(len(self.history_) + 1, mistakes=mistakes, norm=length, seconds=seconds)
        self.history_ = [*self.history_, row]
        self._keep_weights(state)
        self.data_ = {"n_rows": n_rows, "sum_weight": float(n_rows)}
        self.certificate_ = seen_once(self.n_updates_)

    def decision_function(self, X: UserRows) -> Array:
        """b + x'w of every row: above 0 is the second class."""
        return self._whole(X, self.scores)[:, 1]

    def mapped_scores(self, columns: Block) -> Array:
        """(-z, z) of rows that are mapped already, z = b + x'w."""
        state = self._state()
        z = core.scores(columns.rows, state.coef, state.intercept, n_threads())
        return np.column_stack([-z, z])

    @property
    def n_iter_(self) -> int:
        """Epochs."""
        check_is_fitted(self)
        return len(self.history_)

    def _begin(self, source: Source) -> None:
        if len(self.classes_) > 2:
            raise ValueError(
                f"Only binary classification is supported. y has {len(self.classes_)} classes. Use "
                "OneVsRestClassifier(Perceptron())."
            )
        first = next(source.stretches(), None)
        if first is not None and first.weight is not None:
            raise ValueError(
                "Perceptron takes no weights: the order of rows defines it. Leave weight= out of the scan."
            )

    def _task(self, source: Source, is_fitted: bool = False) -> PerceptronTask:
        return PerceptronTask(source, float(self.delta), bool(self.fit_intercept), self._start(source))

    def _start(self, source: Source) -> Weights:
        if self.start is None:
            return Weights(np.zeros(source.n_features), 0.0)
        start = np.array(self.start, dtype=np.float64)
        size = source.n_features + int(self.fit_intercept)
        if start.shape != (size,) or not np.isfinite(start).all():
            last = " and the intercept" if self.fit_intercept else ""
            raise ValueError(
                f"start must be {size} finite numbers, the weights of {source.n_features} columns{last}. Got {start}."
            )
        return Weights(start[:-1].copy(), float(start[-1])) if self.fit_intercept else Weights(start, 0.0)

    def _keep_weights(self, state: Weights) -> None:
        self.coef_, self.intercept_ = state.coef[None, :], np.array([state.intercept])

    def _state(self) -> Weights:
        return Weights(np.ascontiguousarray(self.coef_[0]), float(self.intercept_[0]))

    def _certified(self, task: PerceptronTask, state: Weights) -> Certificate:
        """By the margin that the fit states: a file of before the widest one states that of its weights."""
        certificate = certify(task, state, self.n_updates_, self.cycle_)
        stated = getattr(self.certificate_, "margin", 0.0)
        if not certificate.fault and not self._are_made_again(task, state):
            fault = f"{len(self.history_):,} epochs of {self.n_updates_:,} updates do not lead to these weights."
            return replace(certificate, value=math.inf, fault=fault)
        if math.isclose(certificate.margin, stated, rel_tol=SAME_MARGIN):
            return certificate
        return certify(task, state, self.n_updates_, self.cycle_, certificate.separation, self._witness(task, None))

    def _are_made_again(self, task: PerceptronTask, state: Weights) -> bool:
        """Whether the epochs of the fit end at these weights, which any others that separate pass for."""
        with unreported(), _numbers_named(task):
            run = Epochs(task, self._order(), int(self.random_state)).run(len(self.history_), lambda: False)
        made = np.append(run.state.coef, run.state.intercept)
        return run.n_updates == self.n_updates_ and agree(made, np.append(state.coef, state.intercept))

    def certify(  # type: ignore[override]  # takes no weights
        self, X: UserRows, y: UserTarget = None, *, tight: bool | None = None
    ) -> Certificate:
        """The certificate of this model recomputed on data; no epoch takes part.

        tight: whether the bound is that of the widest margin of the augmented examples, which takes all rows into
        memory. None: up to 100,000 numbers. Else, and from a start that is not 0, it is that of the weights found.
        """
        check_is_fitted(self)
        task = self._task_on(X, y)
        return certify(task, self._state(), self.n_updates_, self.cycle_, witness=self._witness(task, tight))

    def _witness(self, task: PerceptronTask, tight: bool | None) -> Weights | None:
        """A separator of wide margin; None where the bound is to be that of the weights found."""
        if tight is None:
            tight = task.facts()["n_rows"] * max(task.source.n_features, 1) <= MOST_NUMBERS
        return widest(task) if tight and self.start is None else None

    def _order(self) -> str | Array:
        return self.order if isinstance(self.order, str) else np.ascontiguousarray(self.order, dtype=np.int64)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_order()

    def _check_order(self) -> None:
        if isinstance(self.order, str):
            if self.order not in ("given", "shuffled"):
                raise ValueError(f"order must be 'given', 'shuffled' or row numbers. Got {self.order!r}.")
            return
        rows = np.asarray(self.order)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows) or rows.min() < 0:
            raise ValueError(f"order must be 'given', 'shuffled' or row numbers >= 0. Got {self.order!r}.")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@contextmanager
def _numbers_named(task: PerceptronTask) -> Iterator[None]:
    """Where weights leave the numbers, a row that is none is named; else that they grew too large."""
    try:
        yield
    except OverflowError as error:
        refuse_nonfinite(task.source)
        raise ValueError(str(error)) from None
