"""Which columns are combinations of others but for the rounding of their entries.

Singular values in float64 find candidates; their coefficients are solved in many bits. A relation c is one of rounding
where max_i |sum_k c_k x_ik| / sum_k |c_k x_ik| is at most some roundings of its columns' type (Oettli, Prager 1964).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from scipy.linalg import qr, svd
from scipy.optimize import linprog

from tests.ordinary.columns import Array
from tests.ordinary.problems import Ordinary

SMALL = 1e-5  # a singular value of columns of length 1 below which a relation is looked at
ROUNDINGS = 8
PART = 1e-12  # of the largest term of a relation: what is below is no part of it


def used_columns(problem: Ordinary, fit_intercept: bool) -> Array:
    """Columns of the rows of positive weight, a column of ones first."""
    rows = problem.rows if problem.weights is None else problem.rows[problem.weights > 0]
    return np.column_stack([np.ones((len(rows), int(fit_intercept))), rows])


def independent(problem: Ordinary, fit_intercept: bool) -> tuple[list[int], bool]:
    """Places of the columns left when every relation of rounding has lost one; whether others are nearly dependent."""
    ones = int(fit_intercept)
    A = used_columns(problem, fit_intercept)
    sizes = np.linalg.norm(A, axis=0)
    places = np.flatnonzero(sizes > 0)
    A, is_single = A[:, places], np.append(np.zeros(ones, dtype=bool), problem.is_single)[places]
    _, values, right = svd(A / sizes[places], full_matrices=True)
    small = right[np.append(values, np.zeros(len(places) - len(values))) < SMALL]
    small[:, :ones] = 0.0  # the column of ones stays
    last = qr(small, pivoting=True)[2][: len(small)] if len(small) else np.zeros(0, dtype=int)
    kept = np.setdiff1d(np.arange(len(places)), last)
    aside = {places[j] for j in last if is_rounding(A, int(j), kept, is_single)}
    return [int(j) - ones for j in places[ones:] if j not in aside], len(aside) < len(last)


def is_rounding(A: Array, j: int, kept: Array, is_single: Array) -> bool:
    """Whether column j is a combination of the columns kept but for rounding."""
    with ctx.workprec(400):
        for _ in range(2):  # the second time without columns that are no part of it
            if not len(kept):
                return False
            B = arb_mat([[arb(float(v)) for v in row] for row in A[:, kept]])
            x = arb_mat([[arb(float(v))] for v in A[:, j]])
            c = (B.transpose() * B).solve(B.transpose() * x).mid()
            left = np.array([float(v) for v in (B * c - x).entries()])
            terms = np.abs(A[:, kept] * np.array([float(v) for v in c.entries()]))
            sizes = np.linalg.norm(terms, axis=0)
            kept = kept[sizes > PART * np.linalg.norm(A[:, j])]
    whole = terms.sum(axis=1) + np.abs(A[:, j])
    share = np.max(np.abs(left[whole > 0]) / whole[whole > 0], initial=0.0)
    return bool(share <= ROUNDINGS * (2.0**-24 if is_single[[j, *kept]].any() else 2.0**-53))


def projection(problem: Ordinary, columns: list[int], fit_intercept: bool) -> Array:
    """Fitted values of least squares on independent columns, for the rows of positive weight."""
    used = slice(None) if problem.weights is None else problem.weights > 0
    root = np.ones((len(problem.rows), 1)) if problem.weights is None else np.sqrt(problem.weights[used])[:, None]
    X = used_columns(problem, False)[:, columns]
    if fit_intercept:
        X = np.column_stack([np.ones(len(X)), X - np.average(X, axis=0, weights=root[:, 0] ** 2)])
    Q = qr(root * X / np.linalg.norm(X, axis=0), mode="economic")[0]
    y = np.asarray(problem.y, dtype=np.float64)[used, None]
    return np.asarray(Q @ (Q.T @ (root * y)) / root)[:, 0]


def is_separated(problem: Ordinary, model: Any, columns: list[int]) -> bool:
    """Whether the likelihood of classes or counts has no finite maximum: a linear programme in an orthonormal basis."""
    X = used_columns(problem, bool(model.fit_intercept))[
        :, [*range(int(model.fit_intercept)), *(j + int(model.fit_intercept) for j in columns)]
    ]
    y = problem.y if problem.weights is None else problem.y[problem.weights > 0]
    Q = qr(X / np.linalg.norm(X, axis=0), mode="economic")[0] * len(X) ** 0.5
    if hasattr(model, "classes_") or getattr(model, "family", "") == "bernoulli":
        classes, codes = np.unique(y, return_inverse=True)
        own = np.eye(len(classes))[codes]
        ahead = [
            np.kron(own[:, 1:] - np.eye(len(classes))[k, 1:], np.ones(Q.shape[1])) * np.tile(Q, len(classes) - 1)
            for k in range(len(classes))
        ]
        rows, still = (
            np.vstack([part[codes != k] for k, part in enumerate(ahead)]),
            np.zeros((0, Q.shape[1] * (len(classes) - 1))),
        )
    else:
        rows, still = -Q[y == 0], Q[y > 0]
    if not len(rows):
        return False
    bounds = {"A_ub": np.vstack([rows, -rows]), "b_ub": np.repeat([1.0, 0.0], len(rows))}
    found = linprog(-rows.sum(axis=0), **bounds, A_eq=still, b_eq=np.zeros(len(still)), bounds=(None, None))
    return bool(found.status == 3 or -(found.fun or 0.0) > 0.5)
