"""Self-concordance near the scores of the rows, for convex losses that have no M for all scores.

Let |l'''| <= M l'' for scores no further than `room` from those of the rows at the state, R = M max_i |(x_i, 1)|_{H^-1}
and q = R lambda < 1, as in generalised.py. On the way to a point at the distance s from the state, in the norm of H,
every score moves by at most R s / M. The slope along any such way is at least -lambda + (1 - e^(-R s)) / R, which is
>= 0 from s = -log(1 - q) / R on. So the minimum lies within that distance, and the bound with this M holds, if scores
move by no more than room on it:

    -log(1 - q) / M <= room
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block
from certifit.statistics.oracle import At
from certifit.statistics.row_losses import scores_of
from certifit.tasks.generalised import GeneralisedLinear

ROOMS = (0.5, 0.05, 0.005)  # the first whose scores are all legal; then half of what is left to the nearest end


@dataclass(frozen=True)
class NearScores:
    """M for scores within `room` of those of the rows."""

    concordance: float
    room: float

    def covers(self, q: float) -> bool:
        """Whether a proof with this M stays where it holds."""
        is_near = math.isinf(self.room) or (q < 1 and -math.log1p(-q) <= self.concordance * self.room)
        return bool(0 <= q < 1) and is_near


def near_scores(task: GeneralisedLinear, point: Array) -> NearScores | None:
    """M near the rows at a point: one pass over the scores. None where the loss has none, or is not convex."""
    loss = task.loss
    if not loss.is_convex:
        return None
    if loss.concordance is not None:
        return NearScores(loss.concordance, math.inf)
    ends = [run for run in task.source.map(partial(_ends, at=task.at(point))) if run is not None]
    if not ends:
        return None
    low, high = min(first for first, _ in ends), max(last for _, last in ends)
    least, most = getattr(loss, "scores", (-math.inf, math.inf))
    for room in (*ROOMS, min(low - least, most - high) / 2):
        if not room > 0:
            continue
        found = loss.concordance_on(low - room, high + room)
        if found is None:
            return None
        if found < math.inf:
            return NearScores(max(found, 1e-300), room)
    return None


def _ends(run: Block, at: At) -> tuple[float, float] | None:
    """The least and the largest score of the rows that count."""
    z = scores_of(run, at.scaling, at.weights, at.intercept)
    z = z if run.weight is None else z[run.weight > 0]
    return (float(np.min(z)), float(np.max(z))) if len(z) else None
