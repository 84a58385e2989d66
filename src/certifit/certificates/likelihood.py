"""The certificate of closed-form maximum likelihood: how far the state is from the best, in nats a row.

In an exponential family the mean log-likelihood at a state falls short of its maximum by exactly the divergence of
the state from the distribution whose moments are those of the rows (smoothed, shrunk as the parameters say):

    priors    sum_k p^_k log(p^_k / p_k)
    Gaussian  sum_k p^_k [ trace(M_k) - log det(I + M_k) + |T_k (m^_k - m_k)|^2 ] / 2,  M = T S^ T' - I,  S^-1 = T'T
    counts    sum_k c_k sum_j p^_jk log(p^_jk / p_jk)  over the outcomes j of a trial, c_k trials a row of class k

It vanishes where the score equations hold, and every term is >= 0 and computed so that nothing cancels. M is that of
the roots T, which predict, and that of the covariance: S^ = (T^'T^)^-1 gives M = LL' - I, L = T T^^-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from certifit.certificates.certificate import Certificate
from certifit.data.columns import Array
from certifit.runtime import one_blas_thread
from certifit.statistics.residual import MATRIX_ERROR, TINY, TWOFOLD_UNIT, UNIT
from certifit.tasks.counts import CountState, CountTask
from certifit.tasks.gaussian_classes import DiagonalCovariance, GaussianState, GaussianTask

CLAIM = "shortfall of the mean log-likelihood, in nats a row"
THEOREM = "a log-likelihood falls short of its maximum by the divergence of the state from the moments of the rows"


@dataclass(frozen=True)
class LikelihoodCertificate(Certificate):
    """The proof that goes with a closed form. kind: "likelihood", or "smoothed likelihood".

    fault: why there is no proof: the likelihood has no maximum, or the parts of the state contradict each other.
    """

    kind: str = "likelihood"
    fault: str = ""

    def sentences(self) -> list[str]:
        """The certificate in words."""
        if self.holds:
            first = f"Closed form: the {self.kind} is proven to be within {self.value:.1e} nats a row of its maximum."
        elif self.fault:
            first = f"NOT certified: {self.fault}"
        else:
            first = (
                f"NOT certified: the {self.kind} can be up to {self.value:.1e} nats a row below its maximum; "
                f"asked was {self.tolerance:.0e}."
            )
        return [first, *self._redundant_sentences()]

    def _redundant_sentences(self) -> list[str]:
        if not self.dependent:
            return []
        noun = "column is" if len(self.dependent) == 1 else "columns are"
        shown = ", ".join(map(repr, self.dependent[:10])) + (", ..." if len(self.dependent) > 10 else "")
        return [
            f"{len(self.dependent)} {noun} constant or a combination of the columns before it: {shown}. "
            "They say nothing more about the class and are left out."
        ]


@one_blas_thread
def certify_gaussian(task: GaussianTask, state: GaussianState, tolerance: float) -> LikelihoodCertificate:
    """How far the state of Gaussian classes is from the best."""
    best = task.solve()
    value = shortfall(best.priors, state.priors)
    for share, right, wrong, root in zip(best.priors, best.means, state.means, state.class_roots(), strict=True):
        away = root[0] * (right - wrong) if len(root) == 1 else root @ (right - wrong)
        value += share * float(away @ away) / 2
    is_one = len(best.roots) == 1
    shares = [1.0] if is_one else best.priors
    pairs = zip(*([s.covariance] if is_one else s.covariance for s in (best, state)), strict=True)
    for share, right, wrong, (S, stated) in zip(shares, best.roots, state.roots, pairs, strict=True):
        value += share * max(_root_divergence(right, wrong), _covariance_divergence(wrong, S - stated))
    fault = task.unbounded and f"{task.unbounded} A small number was added to every variance."
    if best.redundant != state.redundant:
        fault = fault or "Other columns are left out than those that say nothing more."
    moved = _rounding(task, state)  # a square, as the value is: their roots add
    with np.errstate(divide="ignore"):
        rounding = moved + _chance_rounding(np.log(best.priors)) + TINY
    return LikelihoodCertificate(
        claim=CLAIM,
        theorem=THEOREM,
        value=np.inf if fault else value + 2 * (value * moved) ** 0.5 + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=len(task.names) - len(state.redundant),
        n_columns=len(task.names),
        condition=task.condition,
        dependent=tuple(task.names[j] for j in state.redundant),
        kind="likelihood" if task.shrinkage == 0 else "likelihood, its covariance shrunk,",
        fault=fault,
    )


def certify_counts(task: CountTask, state: CountState, tolerance: float) -> LikelihoodCertificate:
    """How far the state of a model of counts is from the best."""
    best = task.solve()
    value = shortfall(np.exp(best.log_priors), np.exp(state.log_priors))
    rounding = _chance_rounding(best.log_priors) + TINY
    for k, share in enumerate(np.exp(best.log_priors)):
        right, wrong = (np.concatenate(parts) for parts in zip(*task.outcomes(best, state, k), strict=True))
        value += share * task.trials(k) * shortfall(np.exp(right), np.exp(wrong))
        rounding += share * task.trials(k) * _chance_rounding(right)
    return LikelihoodCertificate(
        claim=CLAIM,
        theorem=THEOREM,
        value=value + rounding,
        tolerance=tolerance,
        rounding=rounding,
        rank=len(task.names),
        n_columns=len(task.names),
        condition=1.0,
        kind="smoothed likelihood" if task.alpha > 0 else "likelihood",
    )


def shortfall(right: Array, wrong: Array) -> float:
    """sum_j p^_j log(p^_j / p_j) at most: the divergence, and how far the sums of both are apart."""
    with np.errstate(invalid="ignore"):
        return divergence(right, wrong) + abs(float((right - wrong).sum()))


def divergence(right: Array, wrong: Array) -> float:
    """sum_j p^_j log(p^_j / p_j) + p_j - p^_j = sum_j p_j h(t_j), t = (p^ - p) / p, h(t) = (1 + t) log(1 + t) - t."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(right == wrong, 0.0, (right - wrong) / wrong)
        small = np.abs(t) < 1e-4  # the series: t^2/2 - t^3/6 + t^4/12
        near = t * t * (0.5 - t / 6 + t * t / 12)
        far = np.where(t > -1, (1 + t) * np.log1p(t) - t, 1.0)
        terms = np.where(wrong > 0, wrong * np.where(small, near, far), np.where(right > 0, np.inf, 0.0))
    return float(terms.sum())


def _covariance_divergence(root: Array, difference: Array) -> float:
    """[trace M - log det(I + M)] / 2 for M = T difference T'."""
    if not difference.any():
        return 0.0
    if difference.ndim == 1:
        mu = difference * root[0] ** 2
    else:
        used = np.diagonal(root) != 0
        whole = root[used] @ difference @ root[used].T
        if not np.isfinite(whole).all():
            return np.inf
        mu = np.linalg.eigvalsh((whole + whole.T) / 2)
    return _of_eigenvalues(mu)


def _root_divergence(right: Array, wrong: Array) -> float:
    """The same for M = LL' - I, L = T T^^-1: from the difference of the roots, which loses nothing to the condition."""
    if np.array_equal(right, wrong):
        return 0.0
    if len(right) == 1:
        used = right[0] != 0
        step = (wrong[0] - right[0])[used] / right[0][used]
        return _of_eigenvalues(step * (2 + step)) if not wrong[0][~used].any() else np.inf
    used = np.diagonal(right) != 0
    inside = np.ix_(used, used)
    if wrong[~used].any() or wrong[:, ~used].any() or not np.isfinite(wrong).all():
        return np.inf
    step = solve_triangular(right[inside], (wrong - right)[inside].T, lower=True, trans="T").T  # L - I
    return _of_eigenvalues(np.linalg.eigvalsh(step + step.T + step @ step.T))


def _of_eigenvalues(mu: Array) -> float:
    """[trace M - log det(I + M)] / 2 from the eigenvalues of M."""
    if not (mu > -1).all():
        return np.inf
    small = np.abs(mu) < 1e-4
    return float(np.where(small, mu * mu * (0.5 - mu / 3 + mu * mu / 4), mu - np.log1p(mu)).sum()) / 2


def _chance_rounding(log_p: Array) -> float:
    """What roundings add: chances that add up to 1 do so but for some units, and count in full, not squared."""
    p = np.exp(log_p)
    entropy = -float(p[p > 0] @ log_p[p > 0])
    return float(UNIT * (p.sum() * (4 + np.log2(len(p))) + 2 * entropy))


def _rounding(task: GaussianTask, state: GaussianState) -> float:
    """What the roundings of sums and of the state itself can add.

    Roundings of sums count with the square of the condition; of a factor of twofold sums, with the condition.
    """
    is_plain = isinstance(task, DiagonalCovariance) or task.moments.low is None
    sums = 16 * (MATRIX_ERROR if is_plain else TWOFOLD_UNIT)
    factor = 4 * UNIT * task.condition ** (2 if is_plain else 1)
    spread = min(sums * task.condition**2 + factor, 1.0)
    sizes = np.sqrt((state.roots**2).sum(axis=1)) * np.abs(state.means).max(axis=0)  # |mean| in standard deviations
    with np.errstate(over="ignore"):
        moved = (16 * MATRIX_ERROR * sizes).max(axis=0)
        return float(len(task.names) * spread**2 + moved @ moved)
