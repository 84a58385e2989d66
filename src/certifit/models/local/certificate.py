"""The certificate of local regression: at every training point the normal equations of its local fit, summed again.

    | sum_i w_i phi_j(x_i) (y_i - theta'phi(x_i)) |  <=  value * |phi_j| (|y| + sum_k |theta_k| |phi_k|),   all j

with weighted norms |.|; the coefficients theta are those that the model keeps. The condition of the columns says how
far the coefficients can be from the solution: about condition^2 times the value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.certificate import Certificate
from certifit.models.local.task import LocalRows, LocalState, LocalTask, points_of
from certifit.runtime import core, n_threads, one_blas_thread
from certifit.statistics.residual import TINY, UNIT

POINTS_AT_ONCE = 256
SINGULAR = 1e-7  # of the largest singular value: a smaller one is hardly known from sums of squares


@dataclass(frozen=True)
class LocalCertificate(Certificate):
    """What is proven of local fits.

    n_points: training points that were checked, of n_kept distinct rows. n_singular: those whose rows hardly determine
    their coefficients. condition: the worst one of the others. fault: why the state is not one of these rows.
    """

    n_points: int = 0
    n_kept: int = 0
    n_singular: int = 0
    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        head = "Solved" if self.holds else "NOT certified"
        if self.fault:
            return [f"{head}: {self.fault}"]
        which = "every one" if self.n_points == self.n_kept else f"{self.n_points:,}"
        points = f"{self.n_kept:,} training points" if self.n_kept != 1 else "1 training point"
        first = (
            f"{head}: at {which} of {points} the local equations are met to {self.value:.1e} of their size; asked "
            f"was {self.tolerance:.0e}."
        )
        worst = "" if self.condition is None else f"The worst condition of a local system is {self.condition:.1e}."
        some = (
            f"At {self.n_singular:,} of them the rows near it hardly determine the coefficients (condition beyond "
            "1e+07); where they do not at all, the smallest slopes that solve the equations were taken."
        )
        return [first, *([worst] if worst else []), *([some] if self.n_singular else [])]


@np.errstate(all="ignore")  # what is infinite or not a number proves nothing
@one_blas_thread
def certify(task: LocalTask, state: LocalState, tolerance: float) -> LocalCertificate:
    """Whether the coefficients of a state solve the local equations of these rows."""
    fault = _difference(task, state)
    value, condition, n_singular = (np.inf, None, 0) if fault else _worst(LocalRows(state, task.form), state)
    n, rounding = len(state.coefficients), 4 * (len(state.y) + 8) * UNIT
    return LocalCertificate(
        claim="relative residual of the local normal equations, worst over the training points",
        theorem="a state that meets the normal equations is a least squares fit",
        value=value + rounding,
        tolerance=tolerance,
        rounding=rounding,
        condition=condition,
        n_points=n,
        n_kept=len(state.y),
        n_singular=n_singular,
        fault=fault,
    )


def _difference(task: LocalTask, state: LocalState) -> str:
    """Why a state is not that of a fit to the rows of a task."""
    if state.rows.shape != task.X.shape or not np.array_equal(state.rows, task.X):
        return "the rows that the model keeps are not these rows."
    if not np.array_equal(state.y, task.y) or not np.allclose(state.weight, task.weight, rtol=1e-12, atol=0):
        return "the targets or weights that the model keeps are not those of these rows."
    return ""


def _worst(rows: LocalRows, state: LocalState) -> tuple[float, float | None, int]:
    """The largest relative residual, the worst condition of the regular systems, and the number of singular ones."""
    residual, sizes = _systems(rows, state)
    finite = sizes[np.isfinite(sizes)]
    worst = max(TINY, float(residual.max(initial=0.0))) if not np.isnan(residual).any() else np.inf
    return worst, float(finite.max()) if len(finite) else None, len(sizes) - len(finite)


@np.errstate(all="ignore")
@one_blas_thread
def conditions(rows: LocalRows, state: LocalState) -> Array:
    """The condition of the local system at every training point that is checked; infinite where it is singular."""
    return _systems(rows, state)[1]


def _systems(rows: LocalRows, state: LocalState) -> tuple[Array, Array]:
    """Relative residuals of the local equations at the training points, and the conditions of their columns."""
    coefficients = np.ascontiguousarray(state.coefficients * rows.y_scale)
    residuals, sizes, places = [np.zeros(0)], [np.zeros(0)], points_of(len(rows.points))
    for begin in range(0, len(places), POINTS_AT_ONCE):
        queries = rows.points[places[begin : begin + POINTS_AT_ONCE]]
        for some, K in rows.pieces(queries, state.tau):
            part = slice(begin + some.start, begin + min(some.stop, len(queries)))
            residual, matrix = core.local_systems(
                rows.points,
                rows.y,
                rows.weight,
                rows.columns,
                rows.form.degree,
                np.ascontiguousarray(queries[some]),
                None if rows.columns is None else np.ascontiguousarray(rows.columns[places[part]]),
                K,
                rows.form.kind,
                state.tau,
                np.ascontiguousarray(coefficients[part]),
                n_threads(),
            )
            values = np.sqrt(np.maximum(np.linalg.eigvalsh(matrix), 0.0))
            residuals.append(residual)
            is_regular = values[:, 0] > SINGULAR * values[:, -1]
            sizes.append(np.where(is_regular, values[:, -1] / values[:, 0], np.inf))
    return np.concatenate(residuals), np.concatenate(sizes)
