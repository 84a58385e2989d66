"""The exact certificates of naive Bayes over counts: the closed form in rationals, the state as it is stored.

    nats    sum_k p^_k log(p^_k / p_k) + sum_k p^_k c_k sum_j p^_jk log(p^_jk / p_jk), c_k trials per row of class k
    error   |p / p^ - 1|, the largest of all chances

The value is the larger. Every sum of p^ log(p^ / p) is the divergence, plus by how much stored chances miss the sum 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit.exact import balls
from certifit.exact.balls import Ball, ball
from certifit.exact.proof import Bounds, ExactProof, refined
from certifit.exact.rows import ExactRows

THEOREM = "the closed form in balls, and the divergence of the state from it"
FAULT = "a stored chance is 0 where the rows have one."


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
        return refined(self.bounds, THEOREM, FAULT)

    def bounds(self) -> Bounds | None:
        """What the precision that is set proves."""
        weights = [balls.balls(self.rows.weight[self.rows.y == k].tolist()) for k in range(len(self.log_priors))]
        sums = [balls.total(own) for own in weights]
        whole = balls.total(sums)
        best = [s / whole for s in sums] if self.priors is None else balls.balls([float(p) for p in self.priors])
        own = [p.exp() if p.is_finite() else ball(0) for p in balls.balls(self.log_priors.tolist())]
        value, error = shortfall(best, own), largest_error(best, own)
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
