"""The certificate of boosting: every leaf and every loss derived again from the rows, by code that no search touches.

Rows are led through every tree by its thresholds. From the scores before a round follow slopes and curvatures of the
rows drawn for it, their sums over a leaf give the Newton step -G / (H + l2), kept within the bounds of directions,
times the learning rate; and the scores after it give its loss. Which split a node has is the choice of a greedy search:
nothing is claimed about other trees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from certifit.data.columns import Array
from certifit.models.boosting.derived import Derived, derived_rounds
from certifit.models.boosting.rounds import Rounds, TooManyThresholds, rounds_asked
from certifit.models.boosting.state import BoostingState
from certifit.models.boosting.task import BoostingTask
from certifit.models.certificate import Certificate, unfinished
from certifit.statistics.residual import UNIT

CLAIM = "largest deviation of a leaf or a loss from the one derived again, as a share of what rounding allows"
THEOREM = "a leaf is -G / (H + l2) of the slopes and curvatures of its rows; the search for splits is greedy"


@dataclass(frozen=True)
class GradientBoostingCertificate(Certificate):
    """The proof that goes with boosted trees. loss: of the training rows; held_out: of those held out, or None."""

    n_trees: int = 0
    deviation: float = 0.0
    loss: float = 0.0
    null_loss: float = 0.0
    held_out: float | None = None
    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.fault:
            return [f"NOT certified: {self.fault}"]
        if not self.holds:
            return [
                f"NOT certified: a leaf or a loss is off by {self.deviation:.1e} from what its rows give, more than "
                "rounding allows. The trees were changed, or these are not their rows."
            ]
        held = "" if self.held_out is None else f", {self.held_out:.6g} on the rows held out"
        return [
            f"Derived again from the rows: every leaf of the {self.n_trees:,} trees is its Newton step, and every "
            f"round's loss is right, to {self.deviation:.1e}, within rounding.",
            f"Mean loss {self.loss:.6g} after {self.null_loss:.6g} of the best constant{held}. The search for splits "
            "is greedy: other trees may fit better.",
        ]


def certify(task: BoostingTask, state: BoostingState) -> GradientBoostingCertificate:
    """Every round of boosting beside what the rows give."""
    try:
        rounds = rounds_asked(task, state)
    except TooManyThresholds:
        return GradientBoostingCertificate(
            claim=CLAIM, theorem=THEOREM, value=math.inf, tolerance=1.0, rounding=1.0, n_trees=len(state.ends) - 1,
            deviation=math.inf, fault="a column has more thresholds than there are bins. The trees were changed.",
        )  # fmt: skip
    derived = derived_rounds(rounds, state)
    start, losses = float(derived.losses[0, 0]), derived.losses[1:]
    deviations = [np.abs(rounds.start() - state.start / task.unit), _leaves_apart(rounds, state, derived)]
    stated = [state.loss, *([state.held_out[: state.n_rounds]] if task.settings.early_stopping else [])]
    for again, said in zip(losses.T, stated, strict=False):
        size = np.abs(again) + abs(start)
        deviations.append(np.abs(again - said / task.loss_unit) / np.where(size > 0, size, 1.0))
    deviation = float(np.max(np.concatenate(deviations)))
    held_loss = float(losses[-1, 1]) if task.settings.early_stopping else None
    allowed = 64 * (rounds.n_rows + state.n_rounds + 16) * UNIT
    if not np.isfinite(deviation):
        deviation = np.inf
    value = (deviation + UNIT) / allowed
    fault = unfinished(state.n_rounds, task.settings.n_estimators) if _is_unfinished(task, state) else ""
    return GradientBoostingCertificate(
        claim=CLAIM, theorem=THEOREM, value=math.inf if fault and value <= 1 else value, tolerance=1.0, rounding=1.0,
        n_trees=len(state.ends) - 1, deviation=deviation + UNIT, loss=float(state.loss[-1]),
        null_loss=start * task.loss_unit,
        held_out=None if held_loss is None else held_loss * task.loss_unit, fault=fault if value <= 1 else "",
    )  # fmt: skip


def _is_unfinished(task: BoostingTask, state: BoostingState) -> bool:
    """Whether rounds are missing: neither as many as asked for, nor enough without a lower loss of held-out rows."""
    settings = task.settings
    n_made = len(state.held_out) if settings.early_stopping else state.n_rounds
    return n_made < settings.n_estimators and not (
        settings.early_stopping and n_made - state.n_rounds >= settings.n_iter_no_change
    )


def _leaves_apart(rounds: Rounds, state: BoostingState, derived: Derived) -> Array:
    """Deviations of leaves, relative to the largest step of their tree, and of weights of nodes."""
    task, left, ends = rounds.task, state.left, state.ends
    slope, mass, sizes, weight = derived.table.T
    mass = mass + task.settings.l2
    has_mass = mass > 0
    mass = np.where(has_mass, mass, 1.0)
    steps = np.where(has_mass, -slope / mass, 0.0) if derived.steps is None else derived.steps
    if task.settings.directions is not None:
        trees = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        parts = [_within_directions(steps[t], left[t], state.feature[t], task.settings.directions) for t in trees]
        steps = np.concatenate(parts)
    rate, n_nodes = task.settings.learning_rate, np.diff(ends)
    largest = np.repeat(np.maximum.reduceat(np.abs(steps), ends[:-1]), n_nodes)
    size = np.where(has_mass, sizes / mass, 0.0) + np.abs(steps)
    scale = rate * np.maximum(size, largest) + np.finfo(float).tiny
    apart = (np.abs(state.value / task.unit - rate * steps) / scale)[left == 0]
    heavy = np.abs(state.weight / task.weight_unit - weight) / np.repeat(weight[ends[:-1]], n_nodes)
    return np.concatenate([apart, heavy])


def _within_directions(steps: Array, left: Array, feature: Array, directions: tuple[int, ...]) -> Array:
    """Steps of nodes within the bounds that splits in a direction above them set: halfway between the sides."""
    n = len(steps)
    low, high, values = np.full(n, -np.inf), np.full(n, np.inf), steps.copy()
    for node in range(n):
        values[node] = np.clip(steps[node], low[node], high[node])
        if not left[node]:
            continue
        first, second = int(left[node]), int(left[node]) + 1
        low[[first, second]], high[[first, second]] = low[node], high[node]
        if directions[int(feature[node])]:
            sides = [np.clip(steps[child], low[node], high[node]) for child in (first, second)]
            middle = sides[0] / 2 + sides[1] / 2
            upper, lower = (second, first) if directions[int(feature[node])] > 0 else (first, second)
            low[upper], high[lower] = max(low[node], middle), min(high[node], middle)
    return values
