"""Models of scores that learn from rows which come in parts: `partial_fit`, for the solvers that learn row by row."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from certifit.certificates.generalised import CLAIM, ScoreCertificate
from certifit.data.gate import class_source, fit_source, predict_rows, predict_source, unchanged_on_error
from certifit.data.labels import coded, read_labels
from certifit.data.source import Source
from certifit.runtime import one_blas_thread
from certifit.solvers.generalised import is_stochastic
from certifit.solvers.row_order import RowOrder, wide_runs
from certifit.solvers.row_pass import RowState, one_pass
from certifit.solvers.table import solver_of
from certifit.tasks.generalised import GeneralisedLinear
from certifit.tasks.normal_equations import Weights

SEEN_ONCE = "rows were seen once, part by part. certify(X, y) looks at all of them."


def _learns_by_rows(model: Any) -> bool:
    if is_stochastic(model.solver):
        return True
    raise AttributeError(
        f"partial_fit needs a solver that learns row by row: solver='sgd', 'mini-batch' or 'averaged-sgd'. "
        f"Got {model.solver!r}."
    )


class QuantityByRows:
    """partial_fit of a quantity."""

    @available_if(_learns_by_rows)
    @one_blas_thread
    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
    ) -> Self:
        """One pass over more rows; it goes on from the weights so far. Nothing is certified: `certify` does."""
        model: Any = self
        model._check_parameters()
        with unchanged_on_error(self):
            if not hasattr(self, "coef_"):
                source = fit_source(model, X, y, sample_weight, offset, exposure)
                model.target_name_ = source.target if isinstance(X, Source) else str(getattr(y, "name", None) or "y")
                mapped = model.fit_maps(source)
            else:
                predict_source(model, X) if isinstance(X, Source) else predict_rows(model, X)
                mapped = model._mapped(fit_source(model.reader(), X, y, sample_weight, offset, exposure))
            learn(model, mapped)
        return self


class ClassesByRows:
    """partial_fit of two classes."""

    @available_if(_learns_by_rows)
    @one_blas_thread
    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> Self:
        """One pass over more rows; it goes on from the weights so far. Nothing is certified: `certify` does.

        classes: both labels, in the first call.
        """
        model: Any = self
        model._check_parameters()
        if model.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once. Give the weights: {label: weight}.")
        is_first = not hasattr(self, "classes_")
        if is_first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit: both labels that y will hold.")
        known = model.classes_ if classes is None else coded(np.asarray(read_labels(classes)))[0]
        if not is_first and not np.array_equal(known, model.classes_):
            raise ValueError(f"classes={list(classes)} is not the same as on the last call: {model.classes_.tolist()}.")
        if len(known) != 2:
            raise ValueError(f"partial_fit learns two classes. Got {len(known)}: use OneVsRestClassifier or fit.")
        with unchanged_on_error(self):
            if is_first:
                source = class_source(model, X, y, sample_weight, known, offset)[0]
                model.classes_, model.target_name_ = known, source.target
                model.class_weight_ = None if model.class_weight is None else model._factors_of(np.ones(2))
                mapped = model.fit_maps(source)
            else:
                model.coef_, model.intercept_ = model.coef_[0], float(model.intercept_[0])
                mapped = model._mapped(model.labelled(X, y, sample_weight, offset))
            learn(model, model._weighted(mapped))
            model.coef_, model.intercept_ = model.coef_[None, :], np.array([model.intercept_])
        return self


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
    task: GeneralisedLinear = model._score_task(source, model.alpha)
    if not task.is_smooth:
        raise ValueError("partial_fit takes no L1 penalty and no bounds.")
    model._check_target(task)
    solver, history = solver_of(model.solver), getattr(model, "history_", [])
    passes = int(history[-1]["iteration"]) + 1 if history else 0
    state = _pass(task, solver, _begun(model, task, solver), passes)
    coef, intercept = state.averaged()
    if not (state.is_finite and np.isfinite(coef).all()):
        raise ValueError("The steps diverged: the weights left the numbers. Take a smaller step, or step=None.")
    before = np.append(getattr(model, "coef_", 0.0 * coef), getattr(model, "intercept_", 0.0))
    model._row_state = state
    model.coef_, model.intercept_ = np.asarray(coef), float(intercept)
    row = {
        "iteration": passes,
        "objective": task.evaluate(task.to_point(Weights(model.coef_, model.intercept_))).value,
        "gap": np.inf,
        "step": float(np.linalg.norm(np.append(model.coef_, model.intercept_) - before)),
        "seconds": time.perf_counter() - started,
    }
    model.history_ = [*history, row]
    model.column_names_, model.alpha_, model.inference_ = list(source.names), float(model.alpha), None
    model.certificate_ = _seen_once(model, task)
    model.rank_, model.condition_ = model.certificate_.rank, model.certificate_.condition
    seen = getattr(model, "data_", {"n_rows": 0, "sum_weight": 0.0})
    facts = task.facts()
    model.data_ = facts | {key: seen[key] + facts[key] for key in ("n_rows", "sum_weight")}


def _begun(model: Any, task: GeneralisedLinear, solver: Any) -> RowState:
    """The state of the last pass; of a model without one, its weights with the pace of a start."""
    kept: RowState | None = getattr(model, "_row_state", None)
    if kept is not None:
        return kept
    weights = np.array(getattr(model, "coef_", np.zeros(task.size - 1)), dtype=np.float64)
    begun: RowState = solver.start(
        wide_runs(task.source), task.loss, task.fit_intercept, weights, float(getattr(model, "intercept_", 0.0))
    )
    return begun.summing() if solver.average else begun


def _pass(task: GeneralisedLinear, solver: Any, state: RowState, n_pass: int) -> RowState:
    order, strengths = RowOrder(solver.shuffle, int(solver.random_state)), task.l2_strengths
    for n_run, run in enumerate(wide_runs(task.source).runs()):
        visits = order.visits(run, n_pass + 1, n_run)
        state = one_pass(run, task.loss, strengths, task.fit_intercept, state, visits)
    return state


def _seen_once(model: Any, task: GeneralisedLinear) -> ScoreCertificate:
    return ScoreCertificate(
        claim=CLAIM,
        theorem="none",
        value=np.inf,
        tolerance=model._tolerance(),
        rounding=0.0,
        rank=task.size - 1,
        n_columns=task.size - 1,
        condition=np.inf,
        names=tuple(["intercept"] * int(task.fit_intercept) + list(task.source.names)),
        fault=SEEN_ONCE,
    )
