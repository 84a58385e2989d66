"""Kernel LMS: gradient descent on the squared error in the feature space of a kernel, with the step on the sum.

    batch:          beta <- beta + step (y - G beta)
    one at a time:  beta_i <- beta_i + step (y_i - sum_j beta_j k(x_j, x_i)),  row after row

With theta = sum_j beta_j phi(x_j) these are the steps of LMS on phi. Errors shrink where step < 2 / lambda_max(G), and
where step k(x_i, x_i) < 2 for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit.data.columns import Array
from certifit.mathematics.kernels.tiles import multiply
from certifit.minimise.problem import Run
from certifit.minimise.steps import Steps
from certifit.models.certificate import OUT_OF_TIME, Certificate
from certifit.models.kernel.task import KernelRows, apart
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import TINY, UNIT

MOST_FACTORED = 2500  # rows whose largest eigenvalue is proven by a Cholesky factor
POWERS = 30  # products by which the largest eigenvalue is found
SQUARED = (1e-140, 1e150)  # sizes of targets whose squares are normal numbers
SAME = 1e-9  # of the target's mean square: how nearly the objective of a state is the one it states


@dataclass(frozen=True)
class LmsState:
    """Coefficients of the rows that are kept, the step, and the mean of squared errors / 2 that the fit ended at."""

    points: Array
    dual: Array
    step: float
    objective: float


@dataclass(frozen=True)
class LmsCertificate(Certificate):
    """What is proven of LMS: the step is stable, and the training objective is the one stated.

    It stops early on purpose: no claim is made of how near it is to a minimum. largest_step: steps below it are stable.
    """

    largest_step: float = 0.0
    objective: float = 0.0
    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        head = "Stable" if self.holds else "NOT proven"
        if self.theorem == OUT_OF_TIME:
            return [self._first_sentence()]
        first = f"{head}: the step is {self.value:.3g} of the largest stable one, {self.largest_step:.3g}."
        error = f"The mean of squared errors / 2 over the rows of the fit is {self.objective:.6g}."
        return [
            first,
            error,
            *([self.fault] if self.fault else []),
            "LMS is stopped before a minimum: none is claimed.",
        ]


class LmsTask:
    """Rows, a kernel, and how steps are made. step None is half of the largest stable one."""

    def __init__(self, rows: KernelRows, step: float | None, is_batch: bool) -> None:
        if rows.block.y is None:
            raise ValueError("KernelLMS needs a target.")
        if rows.block.weight is not None:
            raise ValueError("KernelLMS takes no weights: its steps are those of the rows in their order.")
        self.rows, self.is_batch = rows, is_batch
        self.y: Array = np.asarray(rows.block.y, dtype=np.float64)
        least, most = SQUARED
        if self.y.any() and not least <= float(np.abs(self.y).max()) <= most:
            raise ValueError(
                "Squares of y are beyond what float64 holds well. Multiply y by a power of ten, so that the largest "
                f"entry is between {least:g} and {most:g}."
            )
        self.step = 0.5 * self.largest_step if step is None else step

    @cached_property
    def largest_step(self) -> float:
        """Every step below it is stable; proven."""
        if not self.is_batch:
            return 2.0 / max(float(np.diagonal(self.rows.matrix).max()) * (1 + 8 * UNIT) + TINY, TINY)
        return 2.0 / max(largest_eigenvalue(self.rows), TINY)

    def objective(self, dual: Array) -> float:
        """Mean of squared errors / 2."""
        with np.errstate(over="ignore"):
            return float(np.mean(np.square(self.y - multiply(self.rows.matrix, dual)))) / 2

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        mean, sd = float(np.mean(self.y)), float(np.std(self.y))
        n = float(self.rows.n_rows)
        return {"n_rows": self.rows.n_rows, "sum_weight": n, "target_mean": mean, "target_sd": sd}


@one_blas_thread
def largest_eigenvalue(rows: KernelRows) -> float:
    """A bound from above on the largest eigenvalue of G, the rounding of G included.

    It is at most the trace, and the largest (|G| x)_i / x_i for any x > 0 (Collatz and Wielandt); of few rows a
    Cholesky factor of t I - G proves that it is below t.
    """
    G, n = rows.matrix, rows.n_points
    error = float(rows.error_times(rows.points, np.ones(n)).max()) + 4 * n * UNIT * float(np.abs(np.diagonal(G)).sum())
    x = np.ones(n)
    for _ in range(POWERS):
        image = multiply(np.abs(G), x) if (G < 0).any() else multiply(G, x)
        x = np.maximum(image / max(float(image.max()), TINY), 1e-100)
    bound = min(float(np.diagonal(G).sum()), float((multiply(np.abs(G), x) / x).max()))
    if n <= MOST_FACTORED and bound > 0:
        value = float(np.linalg.eigvalsh(G)[-1])  # LAPACK's search for one alone fails where entries underflow
        tried = value * (1 + 1e-9) + 4 * n * UNIT * bound
        if tried < bound and _is_below(G, tried):
            bound = tried
    return bound * (1 + n * 4 * UNIT) + error


def _is_below(G: Array, t: float) -> bool:
    """Whether t I - G has a Cholesky factor: no eigenvalue of G is above t but for the rounding of the factor."""
    shifted = -G
    shifted.flat[:: len(G) + 1] += t
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        return False
    return True


@one_blas_thread
def solve(task: LmsTask, max_iter: int) -> Run[LmsState]:
    """So many epochs from 0, with the objective after each."""
    if not task.step < task.largest_step:
        rule = "2 / the largest eigenvalue of the matrix of the kernel" if task.is_batch else "2 / the largest k(x, x)"
        raise ValueError(
            f"step must be below {task.largest_step:.6g}, {rule}, or errors grow without end. Got {task.step:g}."
        )
    steps = Steps(first=1)
    G, y, step = task.rows.matrix, task.y, task.step
    dual = np.zeros(len(y))
    for _ in range(max_iter):
        with np.errstate(over="ignore", invalid="ignore"):
            if task.is_batch:
                dual = dual + step * (y - multiply(G, dual))
            else:
                for i in range(len(y)):
                    dual[i] += step * (y[i] - G[i] @ dual)
            objective = task.objective(dual)
        if not (np.isfinite(dual).all() and np.isfinite(objective)):
            raise ValueError(
                "Coefficients exceed the largest float64: the kernel of these rows is too small for this target. Use "
                "standardize=True, or multiply the columns by a power of ten."
            )
        steps.add(objective, step_size=step)
        if steps.is_over:
            break
    return Run(LmsState(task.rows.kept(), dual.copy(), step, objective), steps.rows, steps.reason)


@one_blas_thread
def certify(task: LmsTask, state: LmsState) -> LmsCertificate:
    """Whether the step is stable on these rows, and the objective that of the state."""
    objective = task.objective(state.dual)
    size = float(np.mean(np.square(task.y))) / 2 + state.objective
    fault = ""
    if apart(state.points, task.rows.kept()) > SAME:
        fault = "The rows that the model keeps are not those of the data."
    elif size < TINY / SAME and (task.y.any() or state.dual.any()):
        fault = "Squares of the errors are below what float64 can state. Multiply y by a power of ten."
    elif not abs(objective - state.objective) <= SAME * size + TINY:
        fault = f"The state ends at {objective:.6g}, and states {state.objective:.6g}."
    elif not (rounding := _rounding(task, state.dual)) <= SAME * size + TINY:
        fault = f"Rounding of the kernel's sums may change the mean of squared errors / 2 by {rounding:.3g}."
    share = state.step / task.largest_step
    return LmsCertificate(
        claim="step as a share of the largest stable one",
        theorem="errors of gradient descent on a quadratic shrink where step < 2 / its largest curvature",
        value=np.inf if fault else share + TINY,
        tolerance=1.0,
        rounding=2 * n_units(len(state.dual)),
        largest_step=task.largest_step,
        objective=objective,
        fault=fault,
    )


def _rounding(task: LmsTask, dual: Array) -> float:
    """What rounding of G, of G beta and of the errors may change the mean of squared errors / 2 by."""
    G, sizes = task.rows.matrix, np.abs(dual)
    with np.errstate(over="ignore", invalid="ignore"):
        scores = multiply(G, dual)
        terms = multiply(np.abs(G), sizes)
        error = task.rows.error_times(task.rows.points, sizes) + 2 * n_units(len(dual)) * (terms + np.abs(task.y))
        return float(np.mean(error * (2 * np.abs(task.y - scores) + error))) / 2


def n_units(n: int) -> float:
    """Rounding of a sum of n terms, relative."""
    return (n + 4) * UNIT
