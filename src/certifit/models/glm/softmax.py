"""Softmax regression as part of LogisticRegression: what more than two classes need beside what two have."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.minimise.problem import Run, Solver, Stop
from certifit.models.glm.softmax_solver import minimise, solve
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.models.glm.solver import AUTO, COORDINATE
from certifit.runtime import core, n_threads


def softmax_task(model: Any, source: Source, alpha: float | None) -> SoftmaxTask:
    """What is minimised on mapped rows of more than two classes."""
    refused = {"l1_ratio": model.l1_ratio != 0, "penalty_factors": model.penalty_factors is not None}
    for name, is_given in (refused | {"bounds": model.bounds is not None}).items():
        if is_given:
            raise ValueError(
                f"{name} is for two classes. With {len(model.classes_)} classes take an L2 penalty, or "
                "OneVsRestClassifier(LogisticRegression(...))."
            )
    given = None if alpha is None else float(alpha)
    return SoftmaxTask(source, len(model.classes_), given, bool(model.fit_intercept), bool(model.standardize))


def solve_softmax(
    task: SoftmaxTask, solver: Solver | str, tol: float, max_iter: int, step_tol: float, start: SoftmaxWeights | None
) -> Run[SoftmaxWeights]:
    """The minimiser by a solver, or by the one that suits the task."""
    if solver == AUTO and step_tol == 0 and start is None:
        return solve(task, tol, max_iter)
    if solver == COORDINATE:
        raise ValueError(f"solver={solver!r} is for two classes. With {task.n_classes} classes take another solver.")
    return minimise(task, "lbfgs" if solver == AUTO else solver, Stop(tol, step_tol, max_iter), start)


def class_scores(columns: Block, coef: Array, intercept: Array) -> Array:
    """b_k + x'w_k of mapped rows, a column per class."""
    parts = [
        core.scores(columns.rows, np.ascontiguousarray(w), float(b), n_threads())
        for w, b in zip(coef, intercept, strict=True)
    ]
    return np.column_stack(parts)
