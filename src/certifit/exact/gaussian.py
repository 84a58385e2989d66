"""The exact certificates of Gaussian classes: the moments of the rows in balls, and how far the state is from them.

    nats    sum_k p^_k log(p^_k / p_k) + max_k [ trace M_k - d - log det M_k + |T_k (m^_k - m_k)|^2 ] / 2,  M = T S^ T'
    error   |p_k / p^_k - 1|,  |m_kj - m^_kj| by the larger of |m^_kj| and sqrt(S^_jj),
            |S_ij - S^_ij| / (s_i s_j), s_j = sqrt(S^_jj) or four roundings of the mean where that is larger

The value is the larger. T are the roots that predict, S the covariance that is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball
from certifit.exact.counts import shortfall
from certifit.exact.proof import Bounds, ExactProof, refined
from certifit.exact.rows import PLAIN, Asked, ExactRows

THEOREM = "the moments of the rows in balls, and the divergence of the state from them"
FAULT = "a covariance of the rows or of the model is singular."
UNIT = 2.0**-53
MENDED = 1e-6  # of a column's variance over all rows, added where a class has none


@dataclass(frozen=True)
class Moments:
    """Weight, means and covariance of some rows; of rows that are none, 0 and nothing."""

    weight: Ball
    means: list[Ball]
    covariance: Matrix | None

    @staticmethod
    def of(rows: ExactRows, of_class: Array) -> Moments:
        """Of the rows whose flag is set."""
        weight = balls.balls(rows.weight[of_class].tolist())
        if not weight:
            return Moments(ball(0), [], None)
        whole, X = balls.total(weight), balls.matrix(rows.X[of_class])
        down = X.transpose()
        means = [s / whole for s in (down * balls.column(weight)).entries()]
        squares = down * balls.scaled_rows(weight, X) * (1 / whole)
        level = balls.column(means)
        return Moments(whole, means, squares - level * level.transpose())

    def variances(self) -> list[Ball]:
        """The diagonal of the covariance."""
        assert self.covariance is not None
        return [self.covariance[j, j] for j in range(len(self.means))]


class GaussianFit:
    """A stored state of GaussianDiscriminant or GaussianNB, and its rows."""

    def __init__(self, rows: ExactRows, model: Any, asked: Asked = PLAIN) -> None:
        self.rows, self.state = rows, model._state()
        self.given = model.priors
        params = model.get_params(deep=False)
        self.smoothing = float(params.get("var_smoothing", 0.0))
        self.shrinkage = float(params.get("shrinkage", 0.0))
        self.in_variances = bool(params.get("standardize", False))
        self.kind = params.get("covariance", "diagonal")
        self.is_mended = asked.is_mended
        self.used = [j for j in range(rows.n_columns) if j not in self.state.redundant]
        self.is_constant = (rows.X[:1] == rows.X).all(axis=0)

    def proof(self) -> ExactProof:
        """The larger of the shortfall and of the error, enclosed."""
        return refined(self.bounds, THEOREM, FAULT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        parts = [Moments.of(self.rows, self.rows.y == k) for k in range(len(self.state.priors))]
        present = [k for k, part in enumerate(parts) if not part.weight.is_zero()]
        whole = balls.total([part.weight for part in parts])
        priors = [part.weight / whole for part in parts]
        if self.given is not None:
            priors = balls.balls([float(p) for p in self.given])
        best = self._covariances(parts, priors, present)
        stored = balls.balls(self.state.priors.tolist())
        error = balls.largest(abs(p / q - 1) for p, q in zip(stored, priors, strict=True) if not q.is_zero())
        nats, roots = ball(0), self.state.class_roots()
        for k in present:
            stretched = self._divergence(best[k], roots[k])
            if stretched is None:
                return None
            nats = nats.max(stretched + self._displaced(parts[k].means, self.state.means[k], roots[k]) / 2)
            error = error.max(self._mean_error(parts[k].means, k, best[k])).max(self._entry_error(best[k], parts, k))
        value = (shortfall(priors, stored) + nats).max(error)
        return Bounds(value, value) if value.is_finite() else None

    def _covariances(self, parts: list[Moments], priors: list[Ball], present: list[int]) -> dict[int, Matrix]:
        """The best covariance of every class that has rows."""
        every = Moments.of(self.rows, np.ones(self.rows.n_rows, dtype=bool)).variances()
        if self.kind != "shared":
            return {k: self._shrunk(parts[k].covariance, every) for k in present}
        mixed = parts[present[0]].covariance * priors[present[0]]
        for k in present[1:]:
            mixed += parts[k].covariance * priors[k]
        shared = self._shrunk(mixed, every)
        return dict.fromkeys(present, shared)

    def _shrunk(self, S: Any, every: list[Ball]) -> Matrix:
        """(1 - s) S + s t U with what is added to the variances; every: the variances of all rows."""
        d = S.nrows()
        if self.kind == "diagonal":
            S = balls.diagonal([S[j, j] for j in range(d)])
        if self.shrinkage:
            units = [ball(1)] * d
            if self.in_variances:
                units = [ball(1) if still else v for v, still in zip(every, self.is_constant, strict=True)]
            s, level = ball(self.shrinkage), balls.total([S[j, j] / units[j] for j in range(d)]) / d
            S = S * (1 - s) + balls.diagonal([s * level * unit for unit in units])
        if self.smoothing:
            S = S + balls.diagonal([ball(self.smoothing) * balls.largest(every)] * d)
        return S + balls.diagonal([ball(MENDED) * v for v in every]) if self.is_mended else S

    def _displaced(self, best: list[Ball], stored: Array, root: Array) -> Ball:
        """|T (m^ - m)|^2."""
        apart = [b - ball(s) for b, s in zip(best, stored.tolist(), strict=True)]
        if len(root) == 1:
            away = [ball(t) * a for t, a in zip(root[0].tolist(), apart, strict=True)]
        else:
            away = (balls.matrix(root) * balls.column(apart)).entries()
        return balls.dot(away, away)

    def _divergence(self, best: Matrix, root: Array) -> Ball | None:
        """[trace M - d - log det M] / 2, M = T S^ T', of the columns that are not left out."""
        if len(root) == 1:
            ratios = [ball(t) * ball(t) * best[j, j] for j, t in enumerate(root[0].tolist()) if j in self.used]
            return balls.total([r - 1 - r.log() for r in ratios]) / 2 if all(r > 0 for r in ratios) else None
        size = len(self.used)
        S = balls.flint().arb_mat(size, size, [best[i, j] for i in self.used for j in self.used])
        T = balls.matrix(root[np.ix_(self.used, self.used)])
        M = T * S * T.transpose()
        volume = M.det()
        return (M.trace() - size - volume.log()) / 2 if volume > 0 else None

    def _mean_error(self, means: list[Ball], k: int, best: Matrix) -> Ball:
        """Of the means, by the larger of their size and the standard deviation."""
        errors = []
        for j, (right, stated) in enumerate(zip(means, self.state.means[k].tolist(), strict=True)):
            apart = abs(ball(stated) - right)
            size = abs(right).max(balls.root(best[j, j]))
            errors.append(ball(0) if apart.is_zero() or self._is_still(j, k, stated) else apart / size)
        return balls.largest(errors)

    def _is_still(self, j: int, k: int, stored: float) -> bool:
        """Whether a column is one number in a class, and its mean stored as that."""
        return bool((self.rows.X[self.rows.y == k, j] == stored).all())

    def _entry_error(self, best: Matrix, parts: list[Moments], k: int) -> Ball:
        """|S_ij - S^_ij| / (s_i s_j), largest."""
        d, is_diagonal = best.nrows(), self.kind == "diagonal"
        stated = self.state.covariance if self.kind == "shared" else self.state.covariance[k]
        classes = [part for part in parts if part.means] if self.kind == "shared" else [parts[k]]
        sizes = []
        for j in range(d):
            rounding = 4 * ball(UNIT) * balls.largest(abs(part.means[j]) for part in classes)
            sizes.append(balls.root(best[j, j]).max(rounding))
        errors = []
        for i in range(d):
            for j in (i,) if is_diagonal else range(i + 1):
                stored = float(stated[i]) if is_diagonal else float(stated[i, j])
                if stored == 0 and self.is_constant[[i, j]].any():  # of a column that does not vary
                    continue
                errors.append(abs(ball(stored) - best[i, j]) / (sizes[i] * sizes[j]))
        return balls.largest(errors)
