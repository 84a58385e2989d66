"""The exponential family: p(y; eta) = b(y) exp(eta'T(y) - a(eta)).

eta is the natural parameter, T the sufficient statistic, a the log partition, b the base measure (all b here are with
respect to counting or to length). a is convex, and its derivatives are moments:

    a'(eta) = E T(y)        a''(eta) = Cov T(y)

so that the likelihood of rows is highest where a'(eta) is the mean of their T: that is what `fit` solves.

An object is one distribution, or many: parameters may be arrays, and then every result has their shape in front. A
natural parameter of several numbers has them in its last axis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array, Numbers

Family = TypeVar("Family", bound="ExponentialFamily")

_NEAR = 1e-10  # nats per row: Newton's full steps from here on
_MOST_STEPS = 500  # of Newton's method; fewer than ten do for all but the strangest rows


class ExponentialFamily(ABC):
    """p(y; eta) = b(y) exp(eta'T(y) - a(eta)). Made from usual parameters, or by from_natural, from_weights, fit."""

    usual: ClassVar[tuple[str, ...]]  # names of the usual parameters, which are attributes
    is_scalar: ClassVar[bool] = True  # eta is one number
    is_discrete: ClassVar[bool] = False
    support: ClassVar[str]  # legal y, in words
    eta: Numbers

    # ---- what a family writes ----------------------------------------------------------------------------------------

    @abstractmethod
    def statistic(self, y: ArrayLike) -> Array:
        """T(y)."""

    @abstractmethod
    def log_base(self, y: ArrayLike) -> Array:
        """log b(y); -inf where y is not possible."""

    @property
    @abstractmethod
    def log_partition(self) -> Numbers:
        """a(eta)."""

    @property
    @abstractmethod
    def statistic_mean(self) -> Numbers:
        """E T = a'(eta)."""

    @property
    @abstractmethod
    def statistic_covariance(self) -> Numbers:
        """Cov T = a''(eta); the variance where T is one number."""

    @classmethod
    @abstractmethod
    def _from_natural(cls, eta: Array) -> dict[str, Array]:
        """The usual parameters of a natural one that is legal."""

    @classmethod
    @abstractmethod
    def _is_natural(cls, eta: Array) -> Array | np.bool_ | bool:
        """Which natural parameters are legal."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        """n draws of each distribution."""

    # ---- what all have -----------------------------------------------------------------------------------------------

    @classmethod
    def from_natural(cls, eta: ArrayLike) -> Self:
        """The distribution of a natural parameter."""
        eta = np.asarray(eta, dtype=np.float64)
        if not cls.is_scalar and eta.ndim == 0:
            raise ValueError(f"eta of {cls.__name__} has its numbers along the last axis. Got {eta:g}.")
        if not (np.isfinite(eta).all() and np.all(cls._is_natural(eta))):
            raise ValueError(f"This eta is not a natural parameter of {cls.__name__}: {eta.tolist()}.")
        new = cls.__new__(cls)
        new._set(eta, **cls._from_natural(eta))
        return new

    @classmethod
    def from_weights(cls, weights: ArrayLike, X: ArrayLike, intercept: ArrayLike = 0.0) -> Self:
        """The distributions at rows X of a generalised linear model with the canonical link: eta = X w + b.

        weights: one per feature; where eta has k numbers, k rows of them, and k intercepts.
        """
        return cls.from_natural(scores(weights, X, intercept))

    @classmethod
    def fit(cls, y: ArrayLike, weight: Array | Sequence[float] | None = None) -> Self:
        """The distribution under which the rows are likeliest: a'(eta) is the (weighted) mean of T(y)."""
        y, model = cls._read(y)
        target = np.average(model.statistic(y), axis=0, weights=weight)
        try:
            return model._matching(target)
        except ValueError as error:
            raise ValueError(f"The likelihood of these rows has no maximum in {cls.__name__}. {error}") from error

    @classmethod
    def _read(cls, y: ArrayLike) -> tuple[Array, Self]:
        """Rows that are possible, and a distribution with their T and b."""
        rows = np.asarray(y)
        if rows.ndim == 0 or len(rows) == 0:
            raise ValueError(f"{cls.__name__} needs at least one row of y.")
        model = cls._any(rows)
        possible = np.isfinite(rows.reshape(len(rows), -1)).all(axis=1) & np.isfinite(model.log_base(rows))
        if not possible.all():
            row = int(np.argmin(possible))
            raise ValueError(f"{cls.__name__} needs y {cls.support}. Row {row} is {rows[row].tolist()}.")
        return rows, model

    @classmethod
    def _any(cls, y: Array) -> Self:
        """Some distribution whose T and b are those of the rows."""
        return cls.from_natural(np.zeros(()))

    def _matching(self, target: Array) -> Self:
        """The distribution with E T = target: Newton's method on the convex a(eta) - eta'target."""
        here, last = self, np.inf
        for _ in range(_MOST_STEPS):
            apart = target - here.statistic_mean
            step = np.linalg.solve(here.statistic_covariance, apart)
            gain = float(step @ apart)  # twice what is to be gained
            if gain > _NEAR:
                here = _lower(here, step, target)
            elif gain < last / 4:  # a itself no longer tells; the gain falls by its square until it is rounding
                here, last = type(here).from_natural(here.eta + step), gain
            else:
                return here
        raise ValueError(f"No mean of T is as that of the rows after {_MOST_STEPS} steps: they are too much alike.")

    @property
    def mean(self) -> Numbers:
        """E y."""
        return self.statistic_mean  # where T(y) = y

    @property
    def variance(self) -> Numbers:
        """Var y, of every coordinate."""
        return self.statistic_covariance

    def density(self, y: ArrayLike) -> Numbers:
        """p(y): a density, or for counts a chance."""
        return plain(np.exp(self.log_density(y)))

    def log_density(self, y: ArrayLike) -> Numbers:
        """eta'T(y) - a(eta) + log b(y); -inf where y is not possible."""
        base = self.log_base(y)
        with np.errstate(all="ignore"):
            product = self.eta * self.statistic(y)
            inside = (product if self.is_scalar else product.sum(axis=-1)) - self.log_partition + base
        return plain(np.where(np.isneginf(base), -np.inf, inside))

    def sample(self, n: int, seed: int = 0) -> Array:
        """n draws; the same seed draws the same ones."""
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 0:
            raise ValueError(f"n must be a whole number >= 0. Got {n!r}.")
        return self._draw(np.random.default_rng(seed), int(n))

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={_shown(getattr(self, name))}" for name in self.usual)
        return f"{type(self).__name__}({parts})"

    def _set(self, eta: Array, **usual: ArrayLike) -> None:
        self.eta = plain(eta)
        for name, value in usual.items():
            setattr(self, name, plain(value))

    @property
    def _shape(self) -> tuple[int, ...]:
        """Of the parameters: () for one distribution."""
        return np.shape(self.eta) if self.is_scalar else np.shape(self.eta)[:-1]


def scores(weights: ArrayLike, X: ArrayLike, intercept: ArrayLike) -> Array:
    """X w + b; for several rows of weights one score each, in the last axis."""
    w, rows, b = (np.asarray(part, dtype=np.float64) for part in (weights, X, intercept))
    if w.ndim not in (1, 2) or rows.ndim not in (1, 2) or rows.shape[-1] != w.shape[-1]:
        raise ValueError(
            f"weights must have one number per feature. Got shapes {w.shape} of weights and {rows.shape} of X."
        )
    return np.asarray(rows @ w.T + b)


def legal(name: str, value: ArrayLike, low: float, high: float = np.inf) -> Array:
    """A parameter that lies strictly between low and high."""
    numbers = np.asarray(value, dtype=np.float64)
    good = (numbers > low) & (numbers < high) & np.isfinite(numbers)
    if not good.all():
        words = {(-np.inf, np.inf): "a finite number", (low, np.inf): f"> {low:g}"}
        between = words.get((low, high), f"between {low:g} and {high:g}, both excluded")
        raise ValueError(f"{name} must be {between}. Got {numbers.reshape(-1)[np.argmin(good)]:g}.")
    return numbers


def zero_where(possible: ArrayLike) -> Array:
    """log b of a base measure that is 1 on its support."""
    return np.where(possible, 0.0, -np.inf)


def has(eta: Array, k: int) -> bool:
    """Whether the last axis has k numbers."""
    return bool(eta.shape[-1] == k)


def _lower(here: Family, step: Array, target: Array) -> Family:
    """The distribution after the step, halved until a(eta) - eta'target falls."""
    value = here.log_partition - here.eta @ target
    for _ in range(60):
        eta = here.eta + step
        if np.all(here._is_natural(eta)):
            there = type(here).from_natural(eta)
            if there.log_partition - eta @ target < value:
                return there
        step = step / 2
    raise ValueError("No mean of T is as that of the rows, up to rounding: they are too much alike.")


def plain(value: ArrayLike) -> Numbers:
    """A number for one distribution, an array for many."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def _shown(value: Numbers) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, separator=", ", threshold=20)
    return f"{value:.6g}"
