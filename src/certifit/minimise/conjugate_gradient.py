"""Conjugate gradient for any smooth function; on a quadratic of d unknowns it ends in at most d steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from certifit.data.columns import Array
from certifit.minimise.gradient_descent import decrement_along
from certifit.minimise.line_search import first_length, search
from certifit.minimise.problem import Minimised, Problem, Record, Stop, norm
from certifit.minimise.walk import Walk

FLATTER = 0.1  # a search that is nearly exact: directions stay conjugate
LEAST = 0.01  # factor of the bound on how negative beta may be


@dataclass(frozen=True)
class ConjugateGradient:
    """d_(k+1) = -g_(k+1) + beta d_k, with the beta of Hager and Zhang; every direction points downhill.

    beta = (y - 2 d |y|^2 / (d'y))' g_(k+1) / (d'y),   y = g_(k+1) - g_k

    On a quadratic this is the linear method: each line search ends at the exact minimum along its direction.
    record="weights" keeps the weights of every step.
    """

    record: Record = None
    needs: ClassVar[frozenset[str]] = frozenset({"gradient"})

    def minimise(self, problem: Problem, start: Array, stop: Stop) -> Minimised:
        """Walk from `start` until `stop` says so."""
        walk = Walk(problem, start, stop, trusts_model=False, record=self.record)
        direction, is_steepest = -walk.at.gradient, True
        t = first_length(walk.at) if not walk.is_over else 0.0
        while not walk.is_over:
            step = search(walk.evaluate, walk.at, direction, t, FLATTER, is_exact=True)
            if step.ended == "unbounded":
                walk.fall(direction, step.t * norm(direction), step.point.value)
            elif step.ended == "none":
                if is_steepest:
                    walk.stand_still(walk.decrement)
                direction, is_steepest = -walk.at.gradient, True
            else:
                before = walk.at
                slope = float(before.gradient @ direction)
                walk.move(step.point, decrement_along(before, step.point), step.t / walk.unit)
                direction = _next(direction, before.gradient, walk.at.gradient)
                is_steepest = False
                now = float(walk.at.gradient @ direction)
                t = step.t * min(slope / now, 10.0) if now < 0 else step.t
        return walk.result()


def _next(direction: Array, before: Array, after: Array) -> Array:
    y = after - before
    along = float(direction @ y)
    if not along > 0:
        return -after
    beta = float((y - direction * (2 * float(y @ y) / along)) @ after) / along
    lowest = -1 / (norm(direction) * min(LEAST * norm(before), norm(before)) or np.inf)
    return -after + max(beta, lowest) * direction
