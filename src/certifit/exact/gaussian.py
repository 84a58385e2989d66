"""The exact certificates of Gaussian classes: the moments of the rows in balls, and the divergence of the state.

value = sum_k p^_k log(p^_k / p_k) + sum_k p^_k |T_k (m^_k - m_k)|^2 / 2
        + sum_k p^_k max over S = (T_k'T_k)^-1 and S = S_k of [trace S^-1 S^_k - d - log det S^-1 S^_k] / 2

in nats per row: T are the roots that predict, S_k the covariance that is stored. One covariance counts once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball
from certifit.exact.counts import shortfall
from certifit.exact.proof import Bounds, ExactProof, refined
from certifit.exact.rows import ExactRows

THEOREM = "the moments of the rows in balls, and the divergence of the state from them"
FAULT = "a covariance of the rows or of the model is singular."


class GaussianFit:
    """A stored state of GaussianDiscriminant or GaussianNB, and its rows."""

    def __init__(self, rows: ExactRows, model: Any) -> None:
        self.rows, self.state = rows, model._state()
        self.given = model.priors
        self.smoothing = float(getattr(model, "var_smoothing", 0.0))
        self.shrinkage = float(getattr(model, "shrinkage", 0.0))
        self.in_variances = bool(getattr(model, "standardize", False))
        self.kind = getattr(model, "covariance", "diagonal")
        self.used = [j for j in range(rows.n_columns) if j not in self.state.redundant]

    def proof(self) -> ExactProof:
        """The shortfall of the mean log-likelihood, enclosed."""
        return refined(self.bounds, THEOREM, FAULT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        n_classes = len(self.state.priors)
        parts = [_moments(self.rows, self.rows.y == k) for k in range(n_classes)]
        whole = balls.total([part[0] for part in parts])
        shares = [part[0] / whole for part in parts]
        if self.given is not None:
            shares = balls.balls([float(p) for p in self.given])
        value = shortfall(shares, balls.balls(self.state.priors.tolist()))
        seen = [k for k in range(n_classes) if not parts[k][0].is_zero()]
        roots = self.state.class_roots()
        for k in seen:
            value += shares[k] * self._displaced(parts[k][1], self.state.means[k], roots[k]) / 2
        covariance = self._stretched_diagonal if self.kind == "diagonal" else self._stretched
        spread = covariance(parts, shares, seen)
        if spread is None:
            return None
        value += spread
        return Bounds(value, value) if value.is_finite() else None

    def _displaced(self, best: list[Ball], stored: Array, root: Array) -> Ball:
        """|T (m^ - m)|^2."""
        apart = [b - ball(s) for b, s in zip(best, stored.tolist(), strict=True)]
        if len(root) == 1:
            away = [ball(t) * a for t, a in zip(root[0].tolist(), apart, strict=True)]
        else:
            away = (balls.matrix(root) * balls.column(apart)).entries()
        return balls.dot(away, away)

    def _stretched(self, parts: list[Any], shares: list[Ball], seen: list[int]) -> Ball | None:
        """The divergences of covariance matrices: of the shared one, or of every class by its share."""
        matrices = [parts[k][2] for k in seen]
        if self.kind == "shared":
            mixed = matrices[0] * shares[seen[0]]
            for k, one in zip(seen[1:], matrices[1:], strict=True):
                mixed += one * shares[k]
            cases = [(ball(1), mixed, self.state.roots[0], self.state.covariance)]
        else:
            stored = zip(seen, matrices, strict=True)
            cases = [(shares[k], S, self.state.roots[k], self.state.covariance[k]) for k, S in stored]
        value = ball(0)
        for share, S, root, own in cases:
            best = self._part(self._shrunk(S))
            T = balls.matrix(root[np.ix_(self.used, self.used)])
            by_root = _divergence(T * best * T.transpose())
            ratio = balls.solved(balls.matrix(own[np.ix_(self.used, self.used)]), best)
            by_covariance = None if ratio is None else _divergence(ratio)
            if by_root is None or by_covariance is None:
                return None
            value += share * by_root.max(by_covariance)
        return value

    def _part(self, matrix: Matrix) -> Matrix:
        """The columns that are not left out."""
        size = len(self.used)
        return balls.flint().arb_mat(size, size, [matrix[i, j] for i in self.used for j in self.used])

    def _shrunk(self, S: Matrix) -> Matrix:
        if not self.shrinkage:
            return S
        d, s = S.nrows(), ball(self.shrinkage)
        units = self._units()
        level = balls.total([S[j, j] / units[j] for j in range(d)]) / d
        return S * (1 - s) + balls.diagonal([s * level * unit for unit in units])

    def _units(self) -> list[Ball]:
        """Variances over all rows, 1 where there is none; or ones."""
        d = self.rows.n_columns
        if not self.in_variances:
            return [ball(1)] * d
        variances = _variances(self.rows, np.ones(self.rows.n_rows, dtype=bool))
        is_constant = (self.rows.X[:1] == self.rows.X).all(axis=0)
        return [ball(1) if constant else v for v, constant in zip(variances, is_constant, strict=True)]

    def _stretched_diagonal(self, parts: list[Any], shares: list[Ball], seen: list[int]) -> Ball | None:
        """The divergences of variances, class by class."""
        added = ball(0)
        if self.smoothing:
            every = _variances(self.rows, np.ones(self.rows.n_rows, dtype=bool))
            added = ball(self.smoothing) * balls.largest(every)
        value, units, s = ball(0), self._units(), ball(self.shrinkage)
        for k in seen:
            variances = _variances(self.rows, self.rows.y == k)
            level = balls.total([v / u for v, u in zip(variances, units, strict=True)]) / len(units)
            best = [(1 - s) * v + s * level * u + added for v, u in zip(variances, units, strict=True)]
            by_root, by_covariance = ball(0), ball(0)
            for j in self.used:
                t, own = ball(float(self.state.roots[k, 0, j])), ball(float(self.state.covariance[k, j]))
                if not (t != 0 and own > 0 and best[j] > 0):
                    return None
                by_root += _of_ratio(t * t * best[j])
                by_covariance += _of_ratio(best[j] / own)
            value += shares[k] * by_root.max(by_covariance)
        return value


def _divergence(ratio: Matrix) -> Ball | None:
    """[trace R - d - log det R] / 2."""
    size = ratio.det()
    return (ratio.trace() - ratio.nrows() - size.log()) / 2 if size > 0 else None


def _of_ratio(ratio: Ball) -> Ball:
    return (ratio - 1 - ratio.log()) / 2


def _moments(rows: ExactRows, own: Array) -> tuple[Ball, list[Ball], Matrix | None]:
    """Weight, means and covariance of some rows."""
    weight = balls.balls(rows.weight[own].tolist())
    if not weight:
        return ball(0), [], None
    whole, X = balls.total(weight), balls.matrix(rows.X[own])
    down = X.transpose()
    means = [s / whole for s in (down * balls.column(weight)).entries()]
    squares = down * balls.scaled_rows(weight, X) * (1 / whole)
    level = balls.column(means)
    return whole, means, squares - level * level.transpose()


def _variances(rows: ExactRows, own: Array) -> list[Ball]:
    """Variances of the columns over some rows."""
    weight = balls.balls(rows.weight[own].tolist())
    whole, found = balls.total(weight), []
    for values in rows.X[own].T:
        entries = balls.balls(values.tolist())
        mean = balls.dot(weight, entries) / whole
        found.append(balls.dot(weight, [(v - mean) * (v - mean) for v in entries]) / whole)
    return found
