"""The margin game by linear programming: the vote over stumps whose smallest margin is the largest.

    maximise rho  subject to  y_i sum_j a_j f_j(x_i) >= rho for every row i,  a_j >= 0,  sum_j a_j = 1

Stumps are added as they are missed: the multipliers of the rows are weights, and a stump whose edge under them is above
rho would raise it. Where no stump would, rho is the best margin of all votes. The certificate does not believe this: it
measures the margins of the vote that is returned, and the largest edge of any stump under the weights.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from certifit.data.columns import Array
from certifit.models.adaboost.certificate import DenseColumns
from certifit.models.adaboost.state import BoostTask, PolishedVote, Stump, StumpVote
from certifit.runtime import check_memory

GAP = 1e-9  # between the margin of the vote and the largest edge
MOST_PROGRAMS = 500
MOST_NEW = 16  # stumps per program, of as many columns
BYTES_PER_ENTRY = 32  # of a program: its matrix, and what the solver makes of it


def polished(task: BoostTask, state: StumpVote) -> PolishedVote:
    """A vote whose smallest margin is as large as any, and the weights of rows that no vote does better under.

    state: a vote whose stumps the first program has. What is left after MOST_PROGRAMS, or where one is not solved, is
    a vote and weights like any others, further apart.
    """
    columns, codes = DenseColumns(task), task.scaled()[0]
    stumps = list(dict.fromkeys(state.stumps()))
    shares, weights = np.ones(len(stumps)), np.ones(len(codes))
    games, least_edge = np.column_stack([_game(columns, codes, stump) for stump in stumps]), np.inf
    for _ in range(MOST_PROGRAMS):
        solution = _solution(games)
        if solution is None:
            break
        shares, multipliers = solution
        margin = float((games @ shares).min())
        best = columns.best_stumps(multipliers, 2 * codes - 1)
        if best[0][0] < least_edge:
            least_edge, weights = best[0][0], multipliers
        known = set(stumps)
        missed = [stump for edge, stump in best if edge > margin + GAP and stump not in known][:MOST_NEW]
        if least_edge <= margin + GAP or not missed:
            break
        stumps += missed
        games = np.column_stack([games, *(_game(columns, codes, stump) for stump in missed)])
    return PolishedVote(tuple(stumps[: len(shares)]), shares, weights)


def _game(columns: DenseColumns, codes: Array, stump: Stump) -> Array:
    """1 for every row that a stump calls right, -1 for the others."""
    return np.where(columns.called(stump) == codes, 1, -1).astype(np.int8)


def _solution(games: Array) -> tuple[Array, Array] | None:
    """Shares of the stumps, and weights of the rows. Rows that all stumps treat alike are one, and share its weight."""
    distinct, place, count = np.unique(games, axis=0, return_inverse=True, return_counts=True)
    n, m = distinct.shape
    check_memory(
        float(n) * m * BYTES_PER_ENTRY, f"A linear program of {n:,} rows and {m:,} stumps", "Leave out polish=True."
    )
    solved = linprog(
        np.append(np.zeros(m), -1.0),
        A_ub=np.column_stack([-distinct.astype(np.float64), np.ones(n)]),
        b_ub=np.zeros(n),
        A_eq=np.append(np.ones(m), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    if solved.status != 0:
        return None
    shares, multipliers = np.maximum(solved.x[:m], 0.0), np.maximum(-solved.ineqlin.marginals, 0.0)
    if not shares.sum() > 0 or not multipliers.sum() > 0:
        return None
    return shares / shares.sum(), (multipliers / multipliers.sum() / count)[place.ravel()]
