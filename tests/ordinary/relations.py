"""Which columns are combinations of others but for rounding, best fits without them, and separation.

Singular values in float64 find candidates; their coefficients are solved in many bits. A relation c is one of rounding
where max_i |sum_k c_k x_ik| / sum_k |c_k x_ik| is at most 8 roundings of its columns' type (Oettli, Prager 1964).
"""

from __future__ import annotations

import numpy as np
from flint import arb_mat, ctx
from scipy.linalg import qr, svd
from scipy.optimize import linprog

from tests.ordinary.columns import Array
from tests.ordinary.problems import Ordinary

SMALL = 1e-5  # a singular value of columns of length 1 below which a relation is looked at
VISIBLE = 1e-10  # of columns of length 1: what a column adds to others is told from rounding
PART = 1e-12  # of the column that a relation gives: terms below are no part of it, in float64
COARSE = 2.0**29  # how much coarser float32 rounds


def with_ones(problem: Ordinary, columns: list[int] | None = None) -> Array:
    """A column of ones and columns of X, in the rows of positive weight."""
    rows = problem.rows if problem.weights is None else problem.rows[problem.weights > 0]
    return np.column_stack([np.ones(len(rows)), rows if columns is None else rows[:, columns]])


def independent(problem: Ordinary) -> tuple[list[int], bool]:
    """Places of the columns left when every relation of rounding has lost one; whether others are nearly dependent."""
    A = with_ones(problem)
    places = np.flatnonzero(A.any(axis=0))
    A, is_single = A[:, places], np.append(False, problem.is_single)[places]
    _, values, right = svd(A / np.linalg.norm(A, axis=0), full_matrices=True)
    small = right[np.append(values, np.zeros(len(places) - len(values))) < SMALL]
    small[:, 0] = 0.0  # the column of ones stays
    last = qr(small, pivoting=True)[2][: len(small)] if len(small) else np.zeros(0, dtype=int)
    kept = np.setdiff1d(np.arange(len(places)), last)
    aside = {places[j] for j in last if is_rounding(A, int(j), kept, is_single)}
    return [int(j) - 1 for j in places[1:] if j not in aside], len(aside) < len(last)


def is_rounding(A: Array, j: int, kept: Array, is_single: Array) -> bool:
    """Whether column j is a combination of the columns kept but for rounding."""
    with ctx.workprec(400):
        for _ in range(2):  # the second time without columns that are no part of it
            if not len(kept):
                return False
            B, x = arb_mat(A[:, kept].tolist()), arb_mat(A[:, [j]].tolist())
            c = (B.transpose() * B).solve(B.transpose() * x).mid()
            left = np.array([float(v) for v in (B * c - x).entries()])
            terms = np.abs(A[:, kept] * np.array([float(v) for v in c.entries()]))
            sizes = np.linalg.norm(terms, axis=0) / np.linalg.norm(A[:, j])
            is_coarse = is_single[j] or (is_single[kept] & (sizes > COARSE * PART)).any()
            kept = kept[sizes > (COARSE * PART if is_coarse else PART)]
    whole = terms.sum(axis=1) + np.abs(A[:, j])
    share = np.max(np.abs(left[whole > 0]) / whole[whole > 0], initial=0.0)
    return bool(share <= 8 * (2.0**-24 if is_single[[j, *kept]].any() else 2.0**-53))


def basis(A: Array) -> Array:
    """Orthonormal columns that span those of A, as far as float64 tells."""
    Q, R, _ = qr(A / np.linalg.norm(A, axis=0), mode="economic", pivoting=True)
    return np.asarray(Q[:, np.abs(np.diag(R)) > VISIBLE])


def projection(problem: Ordinary, columns: list[int]) -> Array:
    """Fitted values of least squares on columns of X and an intercept, for the rows of positive weight."""
    weights = np.ones(len(problem.rows)) if problem.weights is None else problem.weights
    X, root = with_ones(problem, columns), np.sqrt(weights[weights > 0])[:, None]
    X[:, 1:] -= X[:, 1:].mean(axis=0)
    Q = basis(root * X[:, X.any(axis=0)])
    return np.asarray(Q @ (Q.T @ (root[:, 0] * problem.y[weights > 0])) / root[:, 0])


def is_separated(problem: Ordinary, columns: list[int]) -> bool:
    """Whether the likelihood of classes or counts has no finite maximum: a linear programme in an orthonormal basis."""
    if problem.target not in ("two", "classes", "count"):
        return False
    Q = basis(with_ones(problem, columns)) * len(problem.rows) ** 0.5
    y = problem.y if problem.weights is None else problem.y[problem.weights > 0]
    if problem.target == "count":
        rows, still = -Q[y == 0], Q[y > 0]
    else:  # the score of every row's class less that of each other; the first class has the score 0
        sides = np.eye(len(np.unique(y)))[:, 1:]
        own, n_others = sides[np.unique(y, return_inverse=True)[1]], sides.shape[1]
        rows = np.vstack([np.kron(own - side, np.ones(Q.shape[1])) * np.tile(Q, n_others) for side in sides])
        still = np.zeros((0, Q.shape[1] * n_others))
    ends = {"A_ub": np.vstack([rows, -rows]), "b_ub": np.repeat([1.0, 0.0], len(rows))}
    found = linprog(-rows.sum(axis=0), **ends, A_eq=still, b_eq=np.zeros(len(still)), bounds=(None, None))
    return bool(found.status == 3 or -(found.fun or 0.0) > 0.5)
