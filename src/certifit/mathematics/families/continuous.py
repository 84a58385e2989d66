"""Distributions of a quantity and of proportions, one class each. Notation: exponential.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, polygamma, psi

from certifit.data.columns import Array, Numbers
from certifit.mathematics.families.exponential import ExponentialFamily, has, legal, plain, scores, zero_where

_LOG_2PI = float(np.log(2 * np.pi))


class Normal(ExponentialFamily):
    """N(location, scale2): (2 pi s)^(-1/2) exp(-(y - m)^2 / (2 s)), s the variance.

    eta = (m / s, -1 / (2 s)),  T = (y, y^2),  a = -eta_1^2 / (4 eta_2) - log(-2 eta_2) / 2,  b = (2 pi)^(-1/2)
    a' = (m, m^2 + s),  a'' = [[s, 2 m s], [2 m s, 4 m^2 s + 2 s^2]]

    Its mean and variance are its usual parameters. The multivariate one is cf.Gaussian.

    >>> Normal(3.0, 4.0).eta
    array([ 0.75 , -0.125])
    >>> Normal.from_natural([0.75, -0.125])
    Normal(mean=3, variance=4)
    """

    usual = ("mean", "variance")
    is_scalar = False
    support = "a finite number"
    _mean: Numbers
    _variance: Numbers

    def __init__(self, mean: ArrayLike, variance: ArrayLike) -> None:
        m, s = np.broadcast_arrays(legal("mean", mean, -np.inf), legal("variance", variance, 0))
        self._set(np.stack([m / s, -0.5 / s], axis=-1), _mean=m, _variance=s)

    @property
    def mean(self) -> Numbers:
        """m."""
        return self._mean

    @property
    def variance(self) -> Numbers:
        """s."""
        return self._variance

    def statistic(self, y: ArrayLike) -> Array:
        """(y, y^2)."""
        y = np.asarray(y, dtype=np.float64)
        return np.stack([y, np.square(y)], axis=-1)

    def log_base(self, y: ArrayLike) -> Array:
        """-log(2 pi) / 2."""
        return np.where(np.isfinite(y), -_LOG_2PI / 2, -np.inf)

    @property
    def log_partition(self) -> Numbers:
        """m^2 / (2 s) + log(s) / 2."""
        return plain(np.square(self.mean) / (2 * np.asarray(self.variance)) + np.log(self.variance) / 2)

    @property
    def statistic_mean(self) -> Numbers:
        """(m, m^2 + s)."""
        return np.stack([self.mean, np.square(self.mean) + self.variance], axis=-1)

    @property
    def statistic_covariance(self) -> Numbers:
        """[[s, 2 m s], [2 m s, 4 m^2 s + 2 s^2]]."""
        m, s = np.asarray(self.mean), np.asarray(self.variance)
        rows = [np.stack([s, 2 * m * s], axis=-1), np.stack([2 * m * s, 4 * m * m * s + 2 * s * s], axis=-1)]
        return np.stack(rows, axis=-2)

    def log_density(self, y: ArrayLike) -> Numbers:
        """-(y - m)^2 / (2 s) - log(2 pi s) / 2: nothing cancels far from 0."""
        apart = np.square(np.asarray(y, dtype=np.float64) - self.mean) / self.variance
        return plain(-(apart + np.log(self.variance) + _LOG_2PI) / 2)

    @classmethod
    def from_weights(
        cls, weights: ArrayLike, X: ArrayLike, intercept: ArrayLike = 0.0, variance: ArrayLike = 1.0
    ) -> Self:
        """Means X w + b and a known variance: eta = ((X w + b) / s, -1 / (2 s))."""
        return cls(scores(weights, X, intercept), variance)

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        s = -0.5 / eta[..., 1]
        return {"_mean": eta[..., 0] * s, "_variance": s}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return has(eta, 2) & (eta[..., -1] < 0)

    @classmethod
    def fit(cls, y: ArrayLike, weight: Array | Sequence[float] | None = None) -> Self:
        """The mean of the rows and their variance about it, divided by N."""
        rows, _ = cls._read(y)
        mean = np.average(rows, weights=weight)
        spread = np.average(np.square(rows - mean), weights=weight)  # about the mean: mean y^2 - m^2 cancels
        if not spread > 0:
            raise ValueError("The likelihood of these rows has no maximum in Normal. All y are the same.")
        return cls(mean, spread)

    @classmethod
    def _any(cls, y: Array) -> Self:
        return cls(0.0, 1.0)

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.normal(self.mean, np.sqrt(self.variance), (n, *self._shape)))


class Exponential(ExponentialFamily):
    """y >= 0 is the waiting time at a rate r: r e^(-r y).

    eta = -r,  T = y,  a = -log(-eta),  b = 1;  a' = 1 / r,  a'' = 1 / r^2

    >>> Exponential(4.0).mean
    0.25
    """

    usual = ("rate",)
    support = ">= 0"
    rate: Numbers

    def __init__(self, rate: ArrayLike) -> None:
        r = legal("rate", rate, 0)
        self._set(-r, rate=r)

    def statistic(self, y: ArrayLike) -> Array:
        """y."""
        return np.asarray(y, dtype=np.float64)

    def log_base(self, y: ArrayLike) -> Array:
        """0."""
        return zero_where((np.asarray(y) >= 0) & np.isfinite(y))

    @property
    def log_partition(self) -> Numbers:
        """-log r."""
        return plain(-np.log(self.rate))

    @property
    def statistic_mean(self) -> Numbers:
        """1 / r."""
        return plain(1 / np.asarray(self.rate))

    @property
    def statistic_covariance(self) -> Numbers:
        """1 / r^2."""
        return plain(1 / np.square(self.rate))

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"rate": -eta}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return np.asarray(eta < 0)

    @classmethod
    def _any(cls, y: Array) -> Self:
        return cls(1.0)

    def _matching(self, target: Array) -> Self:
        return type(self)(1 / legal("The mean of y", target, 0))

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.exponential(1 / np.asarray(self.rate), (n, *self._shape)))


class Gamma(ExponentialFamily):
    """y > 0: r^k y^(k-1) e^(-r y) / Gamma(k), the shape k and the rate r.

    eta = (k - 1, -r),  T = (log y, y),  a = log Gamma(eta_1 + 1) - (eta_1 + 1) log(-eta_2),  b = 1
    a' = (psi(k) - log r, k / r),  a'' = [[psi'(k), 1/r], [1/r, k / r^2]]

    As a response with mean mu and dispersion phi: k = 1 / phi, r = 1 / (phi mu).

    >>> Gamma(2.0, 4.0).mean
    0.5
    """

    usual = ("shape", "rate")
    is_scalar = False
    support = "> 0"
    shape: Numbers
    rate: Numbers

    def __init__(self, shape: ArrayLike, rate: ArrayLike) -> None:
        k, r = np.broadcast_arrays(legal("shape", shape, 0), legal("rate", rate, 0))
        self._set(np.stack([k - 1, -r], axis=-1), shape=k, rate=r)

    def statistic(self, y: ArrayLike) -> Array:
        """(log y, y)."""
        y = np.asarray(y, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(y), y], axis=-1)

    def log_base(self, y: ArrayLike) -> Array:
        """0."""
        return zero_where((np.asarray(y) > 0) & np.isfinite(y))

    @property
    def log_partition(self) -> Numbers:
        """log Gamma(k) - k log r."""
        return plain(gammaln(self.shape) - self.shape * np.log(self.rate))

    @property
    def statistic_mean(self) -> Numbers:
        """(psi(k) - log r, k / r)."""
        return np.stack([psi(self.shape) - np.log(self.rate), self.shape / np.asarray(self.rate)], axis=-1)

    @property
    def statistic_covariance(self) -> Numbers:
        """[[psi'(k), 1/r], [1/r, k / r^2]]."""
        k, r = np.asarray(self.shape), np.asarray(self.rate)
        return np.stack([np.stack([polygamma(1, k), 1 / r], -1), np.stack([1 / r, k / r**2], -1)], axis=-2)

    @property
    def mean(self) -> Numbers:
        """k / r."""
        return plain(np.asarray(self.shape) / self.rate)

    @property
    def variance(self) -> Numbers:
        """k / r^2."""
        return plain(np.asarray(self.shape) / np.square(self.rate))

    @classmethod
    def from_weights(cls, weights: ArrayLike, X: ArrayLike, intercept: ArrayLike = 0.0, shape: ArrayLike = 1.0) -> Self:
        """A known shape k and the inverse link, 1 / mean = X w + b: eta = (k - 1, -k (X w + b))."""
        return cls(shape, np.asarray(shape) * scores(weights, X, intercept))

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"shape": eta[..., 0] + 1, "rate": -eta[..., 1]}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return has(eta, 2) & (eta[..., 0] > -1) & (eta[..., -1] < 0)

    @classmethod
    def _any(cls, y: Array) -> Self:
        return cls(1.0, 1.0)

    def _matching(self, target: Array) -> Self:
        """psi(k) - log k = mean log y - log mean y. Started from log k - psi(k) ~ (1/2 + 1/(12 k + 2)) / k."""
        short = np.log(target[1]) - target[0]
        if not short > 1e-12:
            raise ValueError("All y are the same.")
        k = (3 - short + np.sqrt((short - 3) ** 2 + 24 * short)) / (12 * short)
        return ExponentialFamily._matching(type(self)(k, k / target[1]), target)

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.gamma(self.shape, 1 / np.asarray(self.rate), (n, *self._shape)))


# ---- proportions: Beta of one, Dirichlet of k that sum to 1 ----------------------------------------------------------

_SUM = 1e-9  # largest difference between a sum of proportions and 1


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
        each, all_of_them = polygamma(1, self._alpha), polygamma(1, self._alpha.sum(axis=-1))
        return np.asarray(each[..., None] * np.eye(each.shape[-1]) - np.asarray(all_of_them)[..., None, None])

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
            raise ValueError(f"Dirichlet needs rows of proportions, one column per part. Got shape {y.shape}.")
        return cls(np.ones(y.shape[1]))

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        drawn = rng.standard_gamma(self.alpha, (n, *np.shape(self.alpha)))
        return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))
