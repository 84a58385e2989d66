"""The exact certificate of principal components: the worst of four claims, each in balls.

With A = sum_i w_i z_i z_i' / sum_i w_i of the rows as they are, V the stored directions and l their variances in A:

    orthonormality   max |V'V - I|
    residual         max_i |A v_i - l_i v_i| / max_i v_i'A v_i
    missed variance  (sum of the k largest eigenvalues of A - trace V'AV) / trace A
    centre, scale    |mean - the rows' own| / root of trace A, beyond the rounding of the numbers; scales likewise

Eigenvalues: for approximate eigenvectors Q with |Q'Q - I| <= e < 1, those of A lie between those of Q'AQ over 1 + e and
over 1 - e (Ostrowski), and the sorted diagonal of Q'AQ is off by the norm of the rest at most (Weyl).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball
from certifit.exact.proof import PLAIN, Asked, Bounds, ExactProof, ExactRows, refined

THEOREM = "Ky Fan, with eigenvalues enclosed in balls"
FAULT = "the eigenvalues of the rows could not be enclosed."
UNIT = 2.0**-53
ENTRY = 4 * UNIT  # rounding of the entries, relative to their size about zero


class ComponentsFit:
    """A stored state of PCA, and its rows."""

    def __init__(self, rows: ExactRows, model: Any, asked: Asked = PLAIN) -> None:
        self.rows, self.is_still = rows, asked.is_still
        self.components, self.variances = np.asarray(model.components_), np.asarray(model.explained_variance_)
        self.mean, self.scale = np.asarray(model.mean_), np.asarray(model.scale_)
        self.center, self.standardize, self.ddof = bool(model.center), bool(model.standardize), float(model.ddof)

    def proof(self) -> ExactProof:
        """The worst of the four claims, enclosed."""
        return refined(self.bounds, THEOREM, FAULT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        Z, mean, scale, whole = self._moments()
        shares = [ball(w) / whole for w in self.rows.weight.tolist()]
        V = balls.matrix(self.components).transpose()
        AV, inner = Z.transpose() * balls.scaled_rows(shares, Z * V), V.transpose() * V
        k, d = V.ncols(), V.nrows()
        stated = [ball(v) * (whole - ball(self.ddof)) / whole for v in self.variances.tolist()]
        variances = [balls.dot([V[i, j] for i in range(d)], [AV[i, j] for i in range(d)]) for j in range(k)]
        off = balls.largest(abs(inner[i, j] - int(i == j)) for i in range(k) for j in range(k))
        top, trace = balls.largest(variances), _trace(Z, shares)
        if not trace > 0:
            return Bounds(off, off) if all(z.is_zero() for z in Z.entries()) else None
        entries = self._entries(scale, whole)
        is_rounding = not self.standardize and trace <= (ball(ENTRY) ** 2) * entries
        if self.is_still and is_rounding:  # variances of 0 are right to rounding
            value = off.max(self._misplaced(mean, scale, entries))
            return Bounds(value, value)
        best = _largest_sum(_smaller(Z, shares), k)
        if best is None or not top > 0:
            return None
        residual = balls.largest(balls.norm([AV[i, j] - stated[j] * V[i, j] for i in range(d)]) for j in range(k)) / top
        missed = balls.positive_part(best - balls.total(variances)) / trace
        value = residual.max(off).max(missed).max(self._misplaced(mean, scale, trace))
        return Bounds(value, value)

    def _moments(self) -> tuple[Matrix, list[Ball], list[Ball], Ball]:
        """The rows z, and mean, scale and weight of the rows as they are."""
        weight = balls.balls(self.rows.weight.tolist())
        whole, constant = balls.total(weight), (self.rows.X[:1] == self.rows.X).all(axis=0).tolist()
        columns, means, scales = [], [], []
        for column, is_constant in zip(self.rows.X.T.tolist(), constant, strict=True):
            entries = balls.balls(column)
            mean = entries[0] if is_constant else balls.dot(weight, entries) / whole
            about = [x - mean for x in entries]
            scale = ball(1)
            if self.standardize and not is_constant:
                scale = (balls.dot(weight, [a * a for a in about]) / whole).sqrt()
            columns.append([a / scale for a in (about if self.center else entries)])
            means.append(mean if self.center else ball(0))
            scales.append(scale)
        n, d = self.rows.X.shape
        Z = balls.flint().arb_mat(n, d, [column[i] for i in range(n) for column in columns])
        return Z, means, scales, whole

    def _entries(self, scale: list[Ball], whole: Ball) -> Ball:
        """The mean square of the scaled rows about 0: what their rounding is relative to."""
        weight = balls.balls(self.rows.weight.tolist())
        columns = [balls.balls(column) for column in self.rows.X.T.tolist()]
        squares = [
            balls.dot(weight, [x * x for x in column]) / (s * s) for column, s in zip(columns, scale, strict=True)
        ]
        return balls.total(squares) / whole

    def _misplaced(self, mean: list[Ball], scale: list[Ball], trace: Ball) -> Ball:
        """How far the stored centre and scales are from the rows' own."""
        steps, stretched = [], ball(0)
        for stated, right, stored, s in zip(self.mean.tolist(), mean, self.scale.tolist(), scale, strict=True):
            slack = 64 * ball(UNIT) * abs(ball(stated)).max(abs(right))
            steps.append(balls.positive_part(abs(ball(stated) - right) - slack) / s)
            stretched = stretched.max(abs(ball(stored) / s - 1))
        return (balls.norm(steps) / trace.sqrt()).max(stretched)


def _trace(Z: Matrix, shares: list[Ball]) -> Ball:
    """Of A: no entry of it but those on its diagonal is made."""
    d, entries = Z.ncols(), Z.entries()
    sums = [balls.total([z * z for z in entries[i * d : (i + 1) * d]]) for i in range(Z.nrows())]
    return balls.dot(shares, sums)


def _smaller(Z: Matrix, shares: list[Ball]) -> Matrix:
    """A, or of fewer rows than columns the products of the rows: the same eigenvalues but zeros."""
    if Z.nrows() >= Z.ncols():
        return Z.transpose() * balls.scaled_rows(shares, Z)
    rooted = balls.scaled_rows([share.sqrt() for share in shares], Z)
    return rooted * rooted.transpose()


def _largest_sum(A: Matrix, k: int) -> Ball | None:
    """The sum of the k largest eigenvalues; where there are no more than k, of all."""
    d = A.nrows()
    if k >= d:
        return A.trace()
    vectors = _approximate_vectors(A)
    if vectors is None:
        return None
    inner, turned = vectors.transpose() * vectors, vectors.transpose() * A * vectors
    off = balls.norm([inner[i, j] - int(i == j) for i in range(d) for j in range(d)])
    off_diagonal = balls.norm([turned[i, j] for i in range(d) for j in range(d) if i != j])
    if not off < ball(1) / 2:
        return None
    largest = sorted((turned[i, i] for i in range(d)), key=lambda value: value.mid(), reverse=True)[:k]
    whole = balls.total(largest)
    # Weyl moves each by `off_diagonal` at most, Ostrowski by a factor within 1 / (1 -+ off).
    low = (whole - k * balls.up_to(off_diagonal)) / (1 + off)
    high = (whole + k * balls.up_to(off_diagonal)) / (1 - off)
    return low.union(high)


def _approximate_vectors(A: Matrix) -> Matrix | None:
    """Eigenvectors of the midpoints, made orthonormal; no claim is made of them."""
    try:
        _, right = balls.flint().acb_mat(A.mid()).eig(right=True, algorithm="approx")
    except (ValueError, ZeroDivisionError):
        return None
    d = A.nrows()
    columns: list[list[Ball]] = []
    for j in range(d):
        v = [right[i, j].real.mid() for i in range(d)]
        for _ in range(2):  # what one pass leaves the second removes
            for u in columns:
                along = balls.dot(u, v).mid()
                v = [(a - along * b).mid() for a, b in zip(v, u, strict=True)]
        size = balls.norm(v).mid()
        if not size > 0:
            return None
        columns.append([(a / size).mid() for a in v])
    return balls.flint().arb_mat(d, d, [columns[j][i] for i in range(d) for j in range(d)])
