"""Linear models of a number by a solver that the user chose: the objective as a generalised linear model.

Least squares is the squared loss of a score, Huber regression at a fixed scale that of `HuberScore`: every solver of
smooth functions and every one that learns row by row then takes them. The certificate stays that of the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Source
from certifit.mathematics.losses.scores import ScoreLoss
from certifit.minimise.minimum import SOLVERS, solver_of
from certifit.minimise.problem import Run, Solver
from certifit.models.glm.solver import solve
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.start import AUTO, Start, check_start, start_weights


@dataclass(frozen=True)
class Asked:
    """How a user wants the steps taken."""

    solver: str | Solver
    start: Start
    tol: float
    max_iter: int


@dataclass(frozen=True)
class Objective:
    """mean of loss(y, b + x'w) + alpha/2 |w|^2 on the rows of a source."""

    source: Source
    loss: ScoreLoss
    alpha: float
    fit_intercept: bool
    standardize: bool


def check_asked(solver: str | Solver, start: Start) -> None:
    """Refuse what is no solver of a smooth objective, and a start that nothing would read."""
    if isinstance(solver, str) and solver not in (AUTO, *SOLVERS):
        names = ", ".join(map(repr, (AUTO, *SOLVERS)))
        raise ValueError(f"solver must be one of {names}, or an instance of a solver. Got {solver!r}.")
    if not isinstance(solver, str):
        solver_of(solver)
    check_start(start)
    if isinstance(solver, str) and solver == AUTO and start is not None:
        raise ValueError("start needs a solver that takes steps: solver='auto' solves directly. Give solver= too.")


def by_steps(objective: Objective, asked: Asked) -> Run[Weights]:
    """The minimiser by the solver asked for, with its steps."""
    d, source = objective.source.n_features, objective.source
    strengths = Strengths(objective.alpha, 0.0, np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))
    task = GlmTask(source, objective.loss, strengths, objective.fit_intercept, objective.standardize)
    start = None
    if asked.start is not None:
        weights, intercepts = start_weights(asked.start, 1, d, objective.fit_intercept)
        start = Weights(weights[0], float(intercepts[0]))
    return solve(task, asked.solver, asked.tol, asked.max_iter, 0.0, start)


@dataclass(frozen=True)
class HuberScore(ScoreLoss):
    """l = r^2 / 2 for |r| <= edge, edge |r| - edge^2 / 2 beyond, r = y - z; edge = delta times the scale."""

    edge: float
    name = "Huber's loss"
    legal = "a finite number"

    @property
    def steepest(self) -> HuberScore:
        """The same with all rows within the edge: as curved as it is anywhere."""
        return HuberScore(float(np.finfo(float).max))

    def value(self, y: Array, z: Array) -> Array:
        """l."""
        size = np.abs(z - y)
        near = np.minimum(size, self.edge)
        return np.asarray(near * near / 2 + self.edge * (size - near))

    def slope(self, y: Array, z: Array) -> Array:
        """z - y, cut to the edge."""
        return np.asarray(np.clip(z - y, -self.edge, self.edge))

    def curvature(self, y: Array, z: Array) -> Array:
        """1 within the edge, 0 beyond."""
        return np.asarray((np.abs(z - y) <= self.edge).astype(np.float64))

    def mean(self, z: Array) -> Array:
        """z."""
        return np.asarray(z)

    def score(self, mean: float) -> float:
        """The mean."""
        return float(mean)

    def is_legal(self, y: Array) -> Array:
        """Any finite number."""
        return np.asarray(np.isfinite(y))
