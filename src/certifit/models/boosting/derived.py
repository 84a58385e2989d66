"""Rounds of boosting derived again from the rows: sums over the leaves of every tree, the loss before and after it.

Scores before a round give slopes and curvatures; the trees lead the rows, and what the leaves are said to add gives the
scores after it. One pass of the core makes many rounds, a tile of rows at a time; rounds of several trees, draws of
rows and losses that the core has not go round by round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array
from certifit.models.boosting.losses import Pinball
from certifit.models.boosting.rounds import Rounds
from certifit.models.boosting.state import BoostingState

MOST_NODES = 1 << 13  # of the trees of a pass


@dataclass(frozen=True)
class Derived:
    """table: of every node, sums of slopes, curvatures, |slopes| and weights over its rows.

    steps: of the leaves of the pinball loss, which are no Newton steps. losses: mean ones, before every round and after
    the last, of the rows trained on and of those held out.
    """

    table: Array
    steps: Array | None
    losses: Array


def derived_rounds(rounds: Rounds, state: BoostingState) -> Derived:
    """All rounds of a state."""
    unit = rounds.task.unit
    first = rounds.begin(state.start / unit)
    loss = rounds.row_loss
    if loss is not None and loss.code is not None and rounds.settings.subsample == 1:
        table, sums = _in_passes(rounds, state)
        return Derived(_of_all_nodes(table, state), None, sums / rounds.masses)
    tables, all_steps, losses = [], [], [first]
    for number in range(state.n_rounds):
        rounds.draw(number)
        values = []
        for tree in range(number * state.width, (number + 1) * state.width):
            k = tree % state.width
            tables.append(rounds.walk(k, tree))
            values.append(state.value[int(state.ends[tree]) : int(state.ends[tree + 1])] / unit)
            if isinstance(loss, Pinball):
                all_steps.append(rounds.leaf_values(k, len(values[-1]), (tables[-1][:, 0], tables[-1][:, 1])))
        losses.append(rounds.advance(values))
    table = np.concatenate(tables) if tables else np.zeros((0, 4))
    steps = np.concatenate(all_steps) if all_steps else None
    return Derived(_of_all_nodes(table, state), steps, np.array(losses))


def _in_passes(rounds: Rounds, state: BoostingState) -> tuple[Array, Array]:
    """Sums over leaves, and sums of losses."""
    tables, losses = [], []
    first, ends = 0, state.ends
    while True:
        last = max(first + 1, int(np.searchsorted(ends, ends[first] + MOST_NODES, side="right")) - 1)
        last = min(last, len(ends) - 1)
        sums = rounds.derive(rounds.asked.rounds(first, last, rounds.task.unit))
        n_sums = 4 * int(ends[last] - ends[first])
        tables.append(sums[:n_sums].reshape(-1, 4))
        losses.append(sums[n_sums:].reshape(-1, 2)[: None if last == len(ends) - 1 else -1])
        first = last
        if last == len(ends) - 1:
            return np.concatenate(tables), np.concatenate(losses)


def _of_all_nodes(table: Array, state: BoostingState) -> Array:
    """Sums over leaves with those of the nodes above them, level by level from below."""
    left = state.left + np.repeat(state.ends[:-1], np.diff(state.ends)) * (state.left > 0)
    level = state.ends[:-1]
    levels = []
    while len(level):
        inner = level[left[level] > 0]
        levels.append(inner)
        level = np.concatenate([left[inner], left[inner] + 1])
    for inner in reversed(levels):
        table[inner] = table[left[inner]] + table[left[inner] + 1]
    return table
