"""Models of scores that learn from rows which come in parts: `partial_fit`, for the solvers that learn row by row."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from certifit.data.source import Block, Source
from certifit.minimise.minimum import solver_of
from certifit.minimise.row_pass import RowOrder, RowState, one_pass, wide_stretches
from certifit.minimise.steps import full_row
from certifit.minimise.stochastic import SGD
from certifit.models.glm.certificate import CLAIM, GlmCertificate
from certifit.models.glm.solver import is_stochastic
from certifit.models.glm.task import GlmTask
from certifit.models.least_squares.normal_equations import Weights

SEEN_ONCE = "rows were seen once, part by part. certify(X, y) looks at all of them."


def learns_by_rows(model: Any) -> bool:
    """Whether a model has partial_fit; an AttributeError that says why not."""
    if is_stochastic(model.solver):
        return True
    raise AttributeError(
        f"partial_fit needs a solver that learns row by row: solver='sgd', 'mini-batch' or 'averaged-sgd'. "
        f"Got {model.solver!r}."
    )


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
    task: GlmTask = model._score_task(source, model.alpha)
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
        raise ValueError("The steps diverged: the weights left the numbers. Take a smaller step, or step=None.")
    before = np.append(getattr(model, "coef_", 0.0 * coef), getattr(model, "intercept_", 0.0))
    model._row_state = state
    model.coef_, model.intercept_ = np.asarray(coef), float(intercept)
    row = full_row(
        passes,
        objective=task.evaluate(task.to_point(Weights(model.coef_, model.intercept_))).value,
        gap=np.inf,
        step=float(np.linalg.norm(np.append(model.coef_, model.intercept_) - before)),
        seconds=time.perf_counter() - started,
    )
    model.history_ = [*history, row]
    model.column_names_, model.alpha_, model.inference_ = list(source.names), float(model.alpha), None
    model.certificate_ = _seen_once(model, task)
    model.rank_, model.condition_ = model.certificate_.rank, model.certificate_.condition
    seen = getattr(model, "data_", {"n_rows": 0, "sum_weight": 0.0})
    facts = task.facts()
    model.data_ = facts | {key: seen[key] + facts[key] for key in ("n_rows", "sum_weight")}


def _begun(model: Any, task: GlmTask, solver: SGD) -> RowState:
    """The state of the last pass; of a model without one, its weights with the pace of a start."""
    kept: RowState | None = getattr(model, "_row_state", None)
    if kept is not None:
        return kept
    if hasattr(model, "coef_"):
        first = Weights(np.array(model.coef_, dtype=np.float64), float(model.intercept_))
    else:
        first = model.start_of(task) or Weights(np.zeros(task.size - 1), 0.0)
    rows = wide_stretches(task.source)
    begun: RowState = solver.start(rows, task.loss, task.fit_intercept, first.coef, first.intercept)
    return begun.summing() if solver.average else begun


def _pass(task: GlmTask, solver: SGD, state: RowState, n_pass: int) -> RowState:
    order, strengths = RowOrder(solver.shuffle, int(solver.random_state)), task.l2_strengths

    def step(state: RowState, number: int, run: Block) -> RowState:
        visits = order.visits(run, n_pass + 1, number)
        return one_pass(run, task.loss, strengths, task.fit_intercept, state, visits)

    return wide_stretches(task.source).visit(step, state)


def _seen_once(model: Any, task: GlmTask) -> GlmCertificate:
    return GlmCertificate(
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
