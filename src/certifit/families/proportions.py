"""Distributions of proportions: Beta of one, Dirichlet of k that sum to 1. Notation: exponential.py."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, polygamma, psi

from certifit.data.columns import Array, Numbers
from certifit.families.exponential import ExponentialFamily, has, legal, plain, zero_where

_SUM = 1e-9  # proportions may miss 1 by so much


class _Concentrations(ExponentialFamily):
    """eta = alpha - 1,  a = sum of log Gamma(alpha_i) - log Gamma(s),  s the sum of alpha."""

    is_scalar = False

    @property
    def _alpha(self) -> Array:
        return np.asarray(self.eta) + 1

    @property
    def log_partition(self) -> Numbers:
        """log B(alpha) = sum of log Gamma(alpha_i) - log Gamma(s)."""
        return plain(gammaln(self._alpha).sum(axis=-1) - gammaln(self._alpha.sum(axis=-1)))

    @property
    def statistic_mean(self) -> Numbers:
        """psi(alpha_i) - psi(s)."""
        return np.asarray(psi(self._alpha) - psi(self._alpha.sum(axis=-1, keepdims=True)))

    @property
    def statistic_covariance(self) -> Numbers:
        """diag(psi'(alpha)) - psi'(s)."""
        own, all_of_them = polygamma(1, self._alpha), polygamma(1, self._alpha.sum(axis=-1))
        return np.asarray(own[..., None] * np.eye(own.shape[-1]) - np.asarray(all_of_them)[..., None, None])

    def _matching(self, target: Array) -> Self:
        if not np.logaddexp.reduce(target) < -1e-12:  # log of the sum of geometric means: 0 where rows do not differ
            raise ValueError("All y are the same.")
        return super()._matching(target)


class Beta(_Concentrations):
    """y between 0 and 1: y^(alpha-1) (1-y)^(beta-1) / B(alpha, beta).

    eta = (alpha - 1, beta - 1),  T = (log y, log(1-y)),  a = log B(alpha, beta),  b = 1
    a' = (psi(alpha) - psi(s), psi(beta) - psi(s)),  a'' = diag(psi'(alpha), psi'(beta)) - psi'(s),  s = alpha + beta

    >>> Beta(2.0, 6.0).mean
    0.25
    """

    usual = ("alpha", "beta")
    support = "between 0 and 1, both excluded"
    alpha: Numbers
    beta: Numbers

    def __init__(self, alpha: ArrayLike, beta: ArrayLike) -> None:
        first, second = np.broadcast_arrays(legal("alpha", alpha, 0), legal("beta", beta, 0))
        self._set(np.stack([first - 1, second - 1], axis=-1), alpha=first, beta=second)

    def statistic(self, y: ArrayLike) -> Array:
        """(log y, log(1 - y))."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(y), np.log1p(-y)], axis=-1)

    def log_base(self, y: ArrayLike) -> Array:
        """0."""
        return zero_where((np.asarray(y) > 0) & (np.asarray(y) < 1))

    @property
    def mean(self) -> Numbers:
        """alpha / s."""
        return plain(np.asarray(self.alpha) / (np.asarray(self.alpha) + self.beta))

    @property
    def variance(self) -> Numbers:
        """alpha beta / (s^2 (s + 1))."""
        s = np.asarray(self.alpha) + self.beta
        return plain((self.alpha / s) * (self.beta / s) / (s + 1))

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"alpha": eta[..., 0] + 1, "beta": eta[..., 1] + 1}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return has(eta, 2) & (eta > -1).all(axis=-1)

    @classmethod
    def _any(cls, y: Array) -> Self:
        return cls(1.0, 1.0)

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.beta(self.alpha, self.beta, (n, *self._shape)))


class Dirichlet(_Concentrations):
    """y_1, ..., y_k > 0 that sum to 1: y_1^(alpha_1 - 1) ... y_k^(alpha_k - 1) / B(alpha).

    eta = alpha - 1,  T = log y,  a = log B(alpha) = sum of log Gamma(alpha_i) - log Gamma(s),  b = 1,  s = sum alpha_i
    a' = psi(alpha) - psi(s),  a'' = diag(psi'(alpha)) - psi'(s)

    >>> Dirichlet([1.0, 2.0, 5.0]).mean
    array([0.125, 0.25 , 0.625])
    """

    usual = ("alpha",)
    support = "as numbers > 0 that sum to 1"
    alpha: Array

    def __init__(self, alpha: ArrayLike) -> None:
        numbers = legal("Every alpha", alpha, 0)
        if numbers.ndim == 0 or numbers.shape[-1] < 2:
            raise ValueError(f"alpha must be at least two numbers. Got {numbers.tolist()}.")
        self._set(numbers - 1, alpha=numbers)

    def statistic(self, y: ArrayLike) -> Array:
        """log y."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(np.asarray(y, dtype=np.float64))

    def log_base(self, y: ArrayLike) -> Array:
        """0."""
        y = np.asarray(y, dtype=np.float64)
        return zero_where((y > 0).all(axis=-1) & (np.abs(y.sum(axis=-1) - 1) <= _SUM))

    @property
    def mean(self) -> Numbers:
        """alpha / s."""
        return np.asarray(self.alpha / self.alpha.sum(axis=-1, keepdims=True))

    @property
    def variance(self) -> Numbers:
        """m (1 - m) / (s + 1), m the mean."""
        return np.asarray(self.mean * (1 - self.mean) / (self.alpha.sum(axis=-1, keepdims=True) + 1))

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"alpha": eta + 1}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return np.asarray((eta > -1).all(axis=-1) & (eta.shape[-1] >= 2))

    @classmethod
    def _any(cls, y: Array) -> Self:
        if y.ndim != 2:
            raise ValueError(f"Dirichlet needs rows of proportions, one column a part. Got shape {y.shape}.")
        return cls(np.ones(y.shape[1]))

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        drawn = rng.standard_gamma(self.alpha, (n, *np.shape(self.alpha)))
        return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))
