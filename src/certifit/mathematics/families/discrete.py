"""Distributions of classes and counts, one class each. Notation: exponential.py."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, gammaln, log_expit, log_softmax, logit, logsumexp

from certifit.data.columns import Array, Numbers
from certifit.mathematics.families.exponential import ExponentialFamily, legal, plain, zero_where


class Bernoulli(ExponentialFamily):
    """y is 1 with chance p, else 0: p^y (1-p)^(1-y).

    eta = log(p / (1-p)),  T = y,  a = log(1 + e^eta) = -log(1-p),  b = 1;  a' = p,  a'' = p (1-p)

    >>> Bernoulli(0.8).statistic_mean, Bernoulli.from_natural(0.0)
    (0.8, Bernoulli(p=0.5))
    """

    usual = ("p",)
    is_discrete = True
    support = "0 or 1"
    p: Numbers

    def __init__(self, p: ArrayLike) -> None:
        chance = legal("p", p, 0, 1)
        self._set(logit(chance), p=chance)

    def statistic(self, y: ArrayLike) -> Array:
        """y."""
        return np.asarray(y, dtype=np.float64)

    def log_base(self, y: ArrayLike) -> Array:
        """0."""
        return zero_where((np.asarray(y) == 0) | (np.asarray(y) == 1))

    @property
    def log_partition(self) -> Numbers:
        """log(1 + e^eta)."""
        return plain(-log_expit(-np.asarray(self.eta)))

    @property
    def statistic_mean(self) -> Numbers:
        """p."""
        return self.p

    @property
    def statistic_covariance(self) -> Numbers:
        """p (1 - p)."""
        return plain(expit(self.eta) * expit(-np.asarray(self.eta)))

    def log_density(self, y: ArrayLike) -> Numbers:
        """log p at 1, log(1 - p) at 0: -log(1 + e^-eta) and -log(1 + e^eta), so that nothing cancels."""
        sign = 2 * self.statistic(y) - 1
        return plain(log_expit(sign * self.eta) + self.log_base(y))

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"p": expit(eta)}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return np.isfinite(eta)

    def _matching(self, target: Array) -> Self:
        return type(self)(target)

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.random((n, *self._shape)) < self.p, dtype=np.int64)


class Poisson(ExponentialFamily):
    """y counts what happens at a rate r: e^-r r^y / y!.

    eta = log r,  T = y,  a = e^eta,  b = 1 / y!;  a' = a'' = r

    >>> Poisson(3.0).variance
    3.0
    """

    usual = ("rate",)
    is_discrete = True
    support = "0, 1, 2, ..."
    rate: Numbers

    def __init__(self, rate: ArrayLike) -> None:
        r = legal("rate", rate, 0)
        self._set(np.log(r), rate=r)

    def statistic(self, y: ArrayLike) -> Array:
        """y."""
        return np.asarray(y, dtype=np.float64)

    def log_base(self, y: ArrayLike) -> Array:
        """-log y!."""
        y = np.asarray(y, dtype=np.float64)
        possible = (y >= 0) & (np.floor(y) == y) & np.isfinite(y)
        return np.where(possible, -gammaln(np.where(possible, y, 0.0) + 1), -np.inf)

    @property
    def log_partition(self) -> Numbers:
        """r."""
        return self.rate

    @property
    def statistic_mean(self) -> Numbers:
        """r."""
        return self.rate

    @property
    def statistic_covariance(self) -> Numbers:
        """r."""
        return self.rate

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"rate": np.exp(eta)}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return np.abs(eta) < 708.0  # e^eta is a float64

    def _matching(self, target: Array) -> Self:
        return type(self)(target)

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.poisson(self.rate, (n, *self._shape)))


class _Classes(ExponentialFamily):
    """Chances of k classes by k - 1 numbers: eta_i = log(phi_i / phi_k), phi = softmax(eta, 0)."""

    is_scalar = False
    is_discrete = True
    probabilities: Array
    trials: int = 1

    def _put(self, probabilities: ArrayLike) -> None:
        phi = legal("Every probability", probabilities, 0, 1)
        if phi.ndim == 0 or (np.abs(phi.sum(axis=-1) - 1) > 1e-9).any():
            raise ValueError(f"probabilities must be those of k classes and sum to 1. Got {phi.tolist()}.")
        self._set(np.log(phi[..., :-1]) - np.log(phi[..., -1:]), probabilities=phi)

    @property
    def log_partition(self) -> Numbers:
        """n log(1 + sum of e^eta_i)."""
        return plain(self.trials * logsumexp(_with_last(np.asarray(self.eta)), axis=-1))

    @property
    def statistic_mean(self) -> Numbers:
        """n (phi_1, ..., phi_(k-1))."""
        return np.asarray(self.trials * self.probabilities[..., :-1])

    @property
    def statistic_covariance(self) -> Numbers:
        """n (diag(phi) - phi phi') without the last class."""
        phi = self.probabilities[..., :-1]
        return np.asarray(self.trials * (phi[..., None] * np.eye(phi.shape[-1]) - phi[..., None] * phi[..., None, :]))

    @property
    def mean(self) -> Numbers:
        """n phi: the number expected in every class."""
        return np.asarray(self.trials * self.probabilities)

    @property
    def variance(self) -> Numbers:
        """n phi (1 - phi)."""
        return np.asarray(self.trials * self.probabilities * (1 - self.probabilities))

    @classmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        return {"probabilities": np.exp(log_softmax(_with_last(eta), axis=-1))}

    @classmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        return np.isfinite(eta).all(axis=-1)


class Categorical(_Classes):
    """y is a class 0, ..., k-1 with chances phi_1, ..., phi_k.

    eta_i = log(phi_i / phi_k), i < k,  T = the indicators of the first k-1 classes,  a = log(1 + sum e^eta_i),  b = 1
    a' = (phi_1, ..., phi_(k-1)),  a'' = diag(phi) - phi phi' without the last

    Softmax regression has k weight vectors, of which only differences matter; these are its differences to the last.

    >>> Categorical([0.2, 0.3, 0.5]).eta
    array([-0.91629073, -0.51082562])
    """

    usual = ("probabilities",)
    support = "a class 0, ..., k-1"

    def __init__(self, probabilities: ArrayLike) -> None:
        self._put(probabilities)

    def statistic(self, y: ArrayLike) -> Array:
        """Indicators of the classes but the last."""
        return np.asarray(np.asarray(y)[..., None] == np.arange(self.probabilities.shape[-1] - 1), dtype=np.float64)

    def log_base(self, y: ArrayLike) -> Array:
        """0."""
        return zero_where((np.asarray(y)[..., None] == np.arange(self.probabilities.shape[-1])).any(axis=-1))

    @classmethod
    def _any(cls, y: Array) -> Self:
        k = int(np.nanmax(y)) + 1 if y.ndim == 1 and np.isfinite(y).all() else 1
        return cls.from_natural(np.zeros(max(k - 1, 0)))

    def _matching(self, target: Array) -> Self:
        return type(self)(np.append(target, 1 - target.sum()))

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        below = rng.random((n, *self._shape))[..., None] >= np.cumsum(self.probabilities, axis=-1)[..., :-1]
        return np.asarray(below.sum(axis=-1))


class Multinomial(_Classes):
    """y counts n trials in k classes of chances phi: n! / (y_1! ... y_k!) phi_1^y_1 ... phi_k^y_k.

    eta_i = log(phi_i / phi_k), i < k,  T = (y_1, ..., y_(k-1)),  a = n log(1 + sum e^eta_i),  b = n! / (y_1! ... y_k!)

    >>> Multinomial([0.2, 0.3, 0.5], trials=10).mean
    array([2., 3., 5.])
    """

    usual = ("probabilities", "trials")
    support = "as whole numbers >= 0 that sum to the trials"

    def __init__(self, probabilities: ArrayLike, trials: int = 1) -> None:
        self._put(probabilities)
        self.trials = _whole(trials)

    @classmethod
    def from_natural(cls, eta: ArrayLike, trials: int = 1) -> Self:
        """The distribution of a natural parameter and a number of trials."""
        new = super().from_natural(eta)
        new.trials = _whole(trials)
        return new

    def statistic(self, y: ArrayLike) -> Array:
        """The counts but the last."""
        return np.asarray(y, dtype=np.float64)[..., :-1]

    def log_base(self, y: ArrayLike) -> Array:
        """log n! - sum of log y_i!."""
        y = np.asarray(y, dtype=np.float64)
        whole = ((y >= 0) & (np.floor(y) == y)).all(axis=-1)
        possible = whole & (y.sum(axis=-1) == self.trials) & (y.shape[-1] == self.probabilities.shape[-1])
        ways = gammaln(self.trials + 1) - gammaln(np.maximum(y, 0.0) + 1).sum(axis=-1)
        return np.where(possible, ways, -np.inf)

    @classmethod
    def _any(cls, y: Array) -> Self:
        if y.ndim != 2:
            raise ValueError(f"Multinomial needs rows of counts, one column per class. Got shape {y.shape}.")
        return cls.from_natural(np.zeros(y.shape[1] - 1), trials=int(y[0].sum()))

    def _matching(self, target: Array) -> Self:
        shares = target / self.trials
        return type(self)(np.append(shares, 1 - shares.sum()), self.trials)

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        return np.asarray(rng.multinomial(self.trials, self.probabilities, (n, *self._shape)))


def _with_last(eta: Array) -> Array:
    """(eta, 0): the last class is what the others are compared to."""
    return np.concatenate([eta, np.zeros((*eta.shape[:-1], 1))], axis=-1)


def _whole(trials: ArrayLike) -> int:
    if not isinstance(trials, int | np.integer) or isinstance(trials, bool) or trials < 1:
        raise ValueError(f"trials must be a whole number >= 1. Got {trials!r}.")
    return int(trials)
