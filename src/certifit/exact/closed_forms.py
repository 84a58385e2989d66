"""The exact certificates of naive Bayes over counts: the closed form in rationals, the state as it is stored.

    nats    sum_k p^_k log(p^_k / p_k) + sum_k p^_k c_k sum_j p^_jk log(p^_jk / p_jk), c_k trials per row of class k
    error   |p / p^ - 1|, the largest of all chances

The value is the larger. Every sum of p^ log(p^ / p) is the divergence, plus by how much stored chances miss the sum 1.

The exact certificates of Gaussian classes: the moments of the rows in balls, and how far the state is from them.

    nats    sum_k p^_k log(p^_k / p_k) + max_k [ trace M_k - d - log det M_k + |T_k (m^_k - m_k)|^2 ] / 2,  M = T S^ T'
    error   |p_k / p^_k - 1|,  |m_kj - m^_kj| by the larger of |m^_kj| and sqrt(S^_jj),
            |S_ij - S^_ij| / (s_i s_j), s_j = sqrt(S^_jj) or four roundings of the mean where that is larger

The value is the larger. T are the roots that predict, S the covariance that is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.data.columns import Array
from certifit.exact import balls
from certifit.exact.balls import Ball, Matrix, ball
from certifit.exact.proof import PLAIN, Asked, Bounds, ExactProof, ExactRows, refined

COUNTS_THEOREM = "the closed form in balls, and the divergence of the state from it"
COUNTS_FAULT = "a stored chance is 0 where the rows have one."


class CountFit:
    """A stored state of BernoulliNB or MultinomialNB, and its rows."""

    def __init__(self, rows: ExactRows, model: Any) -> None:
        self.rows, self.alpha = rows, float(model.alpha)
        self.log_priors, self.log_p = np.asarray(model.class_log_prior_), np.asarray(model.feature_log_prob_)
        n_classes = len(self.log_priors)
        self.priors = model.class_prior if model.class_prior is not None else None
        if self.priors is None and not model.fit_prior:
            self.priors = np.full(n_classes, 1.0 / n_classes)
        params = model.get_params(deep=False)
        self.is_bernoulli = "binarize" in params
        X = rows.X
        if params.get("binarize") is not None:
            X = (float(params["binarize"]) < rows.dense().X).astype(np.float64)
        self.X = sp.csr_array(X)

    def proof(self) -> ExactProof:
        """The shortfall of the mean log-likelihood, enclosed."""
        return refined(self.bounds, COUNTS_THEOREM, COUNTS_FAULT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        weights = [balls.balls(self.rows.weight[self.rows.y == k].tolist()) for k in range(len(self.log_priors))]
        sums = [balls.total(priors) for priors in weights]
        whole = balls.total(sums)
        best = [s / whole for s in sums] if self.priors is None else balls.balls([float(p) for p in self.priors])
        priors = [p.exp() if p.is_finite() else ball(0) for p in balls.balls(self.log_priors.tolist())]
        value, error = shortfall(best, priors), largest_error(best, priors)
        for k, share in enumerate(best):
            if share.is_zero() and sums[k].is_zero():
                continue
            counts = self._counts(k, weights[k])
            stored = [p.exp() for p in balls.balls(self.log_p[k].tolist())]
            times, right, wrong = (self._present if self.is_bernoulli else self._words)(counts, sums[k], stored)
            value += share * times * shortfall(right, wrong)
            error = error.max(largest_error(right, wrong))
        value = value.max(error)
        return None if not value.is_finite() else Bounds(value, value)

    def _counts(self, k: int, weights: list[Ball]) -> list[Ball]:
        """sum_i weight_i x_ij over the rows of a class."""
        class_rows = self.X[self.rows.y == k]
        counts = [ball(0)] * class_rows.shape[1]
        for i, weight in enumerate(weights):
            part = slice(class_rows.indptr[i], class_rows.indptr[i + 1])
            for j, value in zip(class_rows.indices[part].tolist(), class_rows.data[part].tolist(), strict=True):
                counts[j] += weight * ball(value)
        return counts

    def _present(self, counts: list[Ball], weight: Ball, stored: list[Ball]) -> tuple[Ball, list[Ball], list[Ball]]:
        """Trials per row, best and stored chances: every column is a trial of its own, there or not."""
        alpha, half = ball(self.alpha), ball(1) / 2
        best = [half if weight.is_zero() else (n + alpha) / (weight + 2 * alpha) for n in counts]
        return ball(1), [*best, *[1 - p for p in best]], [*stored, *[1 - p for p in stored]]

    def _words(self, counts: list[Ball], weight: Ball, stored: list[Ball]) -> tuple[Ball, list[Ball], list[Ball]]:
        """The same: every word of a row is a trial."""
        if weight.is_zero():
            return ball(0), [], []
        alpha = ball(self.alpha)
        smoothed = [n + alpha for n in counts]
        whole = balls.total(smoothed)
        return balls.total(counts) / weight, [n / whole for n in smoothed], stored


def largest_error(right: Sequence[Ball], wrong: Sequence[Ball]) -> Ball:
    """max_j |p_j / p^_j - 1|."""
    return balls.largest(abs(p / q - 1) for p, q in zip(wrong, right, strict=True) if not q.is_zero())


def shortfall(right: Sequence[Ball], wrong: Sequence[Ball]) -> Ball:
    """sum_j p^_j log(p^_j / p_j) + p_j - p^_j, each term >= 0, plus by how much the p_j fall short of the sum."""
    terms, apart = [], []
    for best, stated in zip(right, wrong, strict=True):
        apart.append(best - stated)
        if best.is_zero():
            terms.append(stated)
        elif not stated > 0:
            return ball(1).pos_inf()
        else:
            terms.append(best * (best / stated).log() + stated - best)
    return balls.total(terms) + balls.positive_part(balls.total(apart))


GAUSSIAN_THEOREM = "the moments of the rows in balls, and the divergence of the state from them"
GAUSSIAN_FAULT = "a covariance of the rows or of the model is singular."
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
        return refined(self.bounds, GAUSSIAN_THEOREM, GAUSSIAN_FAULT)

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
