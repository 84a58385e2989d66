"""Losses l(y, z) of a row's score z: half a deviance, so that the least over z is 0.

Value, slope and curvature are l and its first two derivatives by z; the compiled core has the same formulas in
cpp/losses.hpp, at the place `code`. mean(z) is E y of the model that the loss is the likelihood of.

Losses of a residual, and their conjugates: what a solver and a duality gap need.

Losses of support vector machines: hinge, squared hinge, and errors beyond epsilon.

The hinge and errors beyond epsilon have kinks, where smooth solvers stall, and a bound from slopes is not tight where
rows lie on one. LinearSVC, SVC and SVR minimise the same losses and prove it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from certifit.data.columns import Array
from certifit.data.privacy import cell
from certifit.mathematics.families.deviances import shares


class ScoreLoss(ABC):
    """A loss of a score. parameter: of the compiled formula, where it has one."""

    name: str
    code: int | None = None  # place among the compiled losses; None: a run at a time, in Python
    is_convex: bool = True
    concordance: float | None = None  # M with |l'''| <= M l'' everywhere; None: no such number is known
    leaves_entropy: bool = False  # the compiled formula is the loss and the entropy of the target
    has_curvature: bool = True
    has_conjugate: bool = False
    is_piecewise: bool = False  # its curvature jumps: nothing follows from it, a proof is the duality gap
    legal: str  # what a target may be, in words

    @property
    def parameter(self) -> float:
        """Of the compiled formula."""
        return 0.0

    @abstractmethod
    def value(self, y: Array, z: Array) -> Array:
        """l(y, z)."""

    @abstractmethod
    def slope(self, y: Array, z: Array) -> Array:
        """dl/dz."""

    @abstractmethod
    def curvature(self, y: Array, z: Array) -> Array:
        """d^2 l/dz^2."""

    def derivatives(self, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """l, l' and l'' at once."""
        return self.value(y, z), self.slope(y, z), self.curvature(y, z)

    @abstractmethod
    def mean(self, z: Array) -> Array:
        """E y at a score."""

    @abstractmethod
    def score(self, mean: float) -> float:
        """The score of a mean: where a fit starts."""

    def cancelled(self, mean: float) -> float:
        """The size of what cancels in slopes, for targets of this mean; rounding is relative to it."""
        return 1 + abs(mean)

    def cancelled_in_value(self, mean: float) -> float:
        """The same of the compiled formula of l, but for what it has as often as a score is large."""
        return self.cancelled(mean)

    def expected(self, y: Array, z: Array) -> Array:
        """A curvature >= 0 to step by: l'' itself where the loss is convex."""
        return self.curvature(y, z)

    def concordance_on(self, low: float, high: float) -> float | None:
        """M with |l'''| <= M l'' for scores from low to high; inf where they are not legal, None: none is known."""
        return self.concordance

    def conjugate(self, y: Array, u: Array) -> Array:
        """sup over z of u z - l(y, z); infinite where there is none."""
        raise NotImplementedError(f"{self.name} has no conjugate here.")

    @abstractmethod
    def is_legal(self, y: Array) -> Array:
        """Which targets are."""

    def check_target(self, y: Array, first_row: int = 0, name: str = "y") -> None:
        """Refuse a target that the loss does not know, naming the row."""
        bad = np.flatnonzero(~self.is_legal(y))
        if len(bad):
            row = int(bad[0])
            raise ValueError(f"{name} must be {self.legal} for {self.name}. Row {row + first_row} is {cell(y[row])}.")


@dataclass(frozen=True)
class Logistic(ScoreLoss):
    """l = log(1 + e^z) - y z, less what y alone decides: y is 0, 1 or a share between."""

    name = "the logistic loss"
    code = 0
    leaves_entropy = True
    concordance = 1.0  # l''' = l'' (1 - 2p)
    has_conjugate = True
    legal = "between 0 and 1"

    def value(self, y: Array, z: Array) -> Array:
        """max(z, 0) - y z without cancelling, and log(1 + e^-|z|); for shares relative to the entropy of y."""
        line = np.where(z > 0, (1 - y) * z, -y * z)
        plain = np.asarray(line + np.log1p(np.exp(-np.abs(z))))
        between = (y > 0) & (y < 1)
        if not np.any(between):
            return plain
        inside = np.where(between, y, 0.5)
        return np.where(between, shares(inside, 1 - inside, z - (np.log(inside) - np.log1p(-inside))), plain)

    def slope(self, y: Array, z: Array) -> Array:
        """p - y."""
        return np.asarray((1 - y) * expit(z) - y * expit(-z))

    def curvature(self, y: Array, z: Array) -> Array:
        """p (1 - p)."""
        return np.asarray(expit(z) * expit(-z))

    def mean(self, z: Array) -> Array:
        """p = 1 / (1 + e^-z)."""
        return np.asarray(expit(z))

    def score(self, mean: float) -> float:
        """log(p / (1 - p))."""
        return float(np.log(mean) - np.log1p(-mean))

    def conjugate(self, y: Array, u: Array) -> Array:
        """p log p + (1 - p) log(1 - p) at p = y + u, less the same of y; p must be in [0, 1]."""
        p, q = y + u, (1 - y) - u
        with np.errstate(invalid="ignore"):
            inside = xlogy(p, p) + xlogy(q, q) - xlogy(y, y) - xlogy(1 - y, 1 - y)
        return np.where((p >= 0) & (q >= 0), inside, np.inf)

    def is_legal(self, y: Array) -> Array:
        """0 <= y <= 1."""
        return np.asarray((y >= 0) & (y <= 1))


@dataclass(frozen=True)
class ExponentialLoss(ScoreLoss):
    """l = e^(-s z), s = 1 for y = 1 and -1 for y = 0: the loss that AdaBoost lowers. Its chances are 1 / (1 + e^(-2z)).

    Take it as a family, `GLM(ExponentialLoss())`. A row on the wrong side costs far more than with the logistic loss.
    """

    name = "the exponential loss"
    concordance = 1.0  # the third derivative is -s times the second
    has_conjugate = True
    legal = "0 or 1"

    def value(self, y: Array, z: Array) -> Array:
        """e^(-s z)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp((1 - 2 * y) * z))

    def slope(self, y: Array, z: Array) -> Array:
        """-s e^(-s z)."""
        return np.asarray((1 - 2 * y) * self.value(y, z))

    def curvature(self, y: Array, z: Array) -> Array:
        """e^(-s z)."""
        return self.value(y, z)

    def mean(self, z: Array) -> Array:
        """The chance of y = 1 at which z is the best score: 1 / (1 + e^(-2z))."""
        return np.asarray(expit(2 * z))

    def score(self, mean: float) -> float:
        """log(p / (1 - p)) / 2."""
        return float(np.log(mean) - np.log1p(-mean)) / 2

    def conjugate(self, y: Array, u: Array) -> Array:
        """v log v - v at v = -s u >= 0."""
        v = (1 - 2 * y) * u
        with np.errstate(invalid="ignore"):
            return np.where(v >= 0, xlogy(v, v) - v, np.inf)

    def is_legal(self, y: Array) -> Array:
        """0 or 1."""
        return np.asarray((y == 0) | (y == 1))


@dataclass(frozen=True)
class Squared(ScoreLoss):
    """l = (y - z)^2 / 2."""

    name = "the squared loss"
    code = 3
    concordance = 0.0  # l''' = 0
    has_conjugate = True
    legal = "a finite number"

    def value(self, y: Array, z: Array) -> Array:
        """(z - y)^2 / 2."""
        return np.asarray(np.square(z - y) / 2)

    def slope(self, y: Array, z: Array) -> Array:
        """z - y."""
        return np.asarray(z - y)

    def curvature(self, y: Array, z: Array) -> Array:
        """1."""
        return np.ones_like(z)

    def mean(self, z: Array) -> Array:
        """z."""
        return np.asarray(z)

    def score(self, mean: float) -> float:
        """The mean."""
        return float(mean)

    def conjugate(self, y: Array, u: Array) -> Array:
        """u y + u^2 / 2."""
        return np.asarray(u * y + np.square(u) / 2)

    def is_legal(self, y: Array) -> Array:
        """Any finite number."""
        return np.isfinite(y)


@dataclass(frozen=True)
class Huber:
    """h(r) = r^2 / 2 for |r| <= delta, delta |r| - delta^2 / 2 beyond.

    With a scale s > 0 the loss is s h(r / s) = sup over |u| <= delta of u r - s u^2 / 2: convex in r and s together.
    """

    delta: float

    def value(self, r: Array, scale: float = 1.0) -> Array:
        """s h(r / s)."""
        size, edge = np.abs(r), self.delta * scale
        near = np.minimum(size, edge)
        return np.asarray(near * (near / scale) / 2 + self.delta * (size - near))

    def slope(self, r: Array, scale: float = 1.0) -> Array:
        """The derivative by r: r / s cut to [-delta, delta]."""
        with np.errstate(over="ignore"):
            return np.clip(r / scale, -self.delta, self.delta)

    def conjugate(self, u: Array, scale: float = 1.0) -> Array:
        """sup over r of u r - s h(r / s): s u^2 / 2 for |u| <= delta, infinite beyond."""
        return np.where(np.abs(u) <= self.delta, scale * np.square(u) / 2, np.inf)

    def is_near(self, r: Array, scale: float = 1.0) -> Array:
        """Rows where the loss is quadratic."""
        return np.asarray(np.abs(r) <= self.delta * scale)

    def excess(self, r: Array, u: Array, scale: float = 1.0) -> Array:
        """s h(r / s) + conjugate(u) - u r >= 0 for |u| <= delta, written so that nothing cancels.

        (r - s u)^2 / (2 s) inside; (delta - u) (r - s (delta + u) / 2) beyond, for r > 0.
        """
        sign = np.where(r < 0, -1.0, 1.0)
        size, side = np.abs(r), u * sign
        apart = size - scale * side
        inside = apart * (apart / scale) / 2
        outside = (self.delta - side) * np.maximum(size - scale * (self.delta + side) / 2, 0.0)
        return np.where(self.is_near(r, scale), inside, np.maximum(outside, 0.0))


class _Margin(ScoreLoss):
    """A loss of 1 - s z, s = 1 for y = 1 and -1 for y = 0."""

    has_conjugate = True
    is_piecewise = True
    legal = "0 or 1"

    def mean(self, z: Array) -> Array:
        """The chance of y = 1, were z the best score of a squared hinge: (1 + z) / 2, from 0 to 1."""
        return np.clip((1 + z) / 2, 0.0, 1.0)

    def score(self, mean: float) -> float:
        """2p - 1."""
        return 2 * float(mean) - 1

    def is_legal(self, y: Array) -> Array:
        """0 or 1."""
        return np.asarray((y == 0) | (y == 1))

    @staticmethod
    def _slack(y: Array, z: Array) -> Array:
        return np.asarray(np.maximum(1 - (2 * y - 1) * z, 0.0))


@dataclass(frozen=True)
class HingeLoss(_Margin):
    """l = max(0, 1 - s z), s = 1 for y = 1 and -1 for y = 0: rows on their side of the margin cost nothing.

    `GLM(HingeLoss(), alpha=0.1, solver=SGD())` steps along it; LinearSVC(0.1, "hinge") has its minimum and the proof.
    """

    name = "the hinge loss"
    has_curvature = False

    def value(self, y: Array, z: Array) -> Array:
        """max(0, 1 - s z)."""
        return self._slack(y, z)

    def slope(self, y: Array, z: Array) -> Array:
        """-s where s z < 1, else 0."""
        return np.where(self._slack(y, z) > 0, 1 - 2 * y, 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        """There is none."""
        raise NotImplementedError(
            f"{self.name} has no curvature. Use a solver that needs none, as SGD(), or LinearSVC."
        )

    def conjugate(self, y: Array, u: Array) -> Array:
        """-v at v = -s u from 0 to 1."""
        v = (1 - 2 * y) * u
        return np.where((v >= 0) & (v <= 1), -v, np.inf)


@dataclass(frozen=True)
class SquaredHingeLoss(_Margin):
    """l = max(0, 1 - s z)^2, s = 1 for y = 1 and -1 for y = 0.

    `GLM(SquaredHingeLoss(), alpha=alpha)` has the weights of LinearSVC(alpha), C = 1 / (alpha n), as a model of shares.
    """

    name = "the squared hinge loss"

    def value(self, y: Array, z: Array) -> Array:
        """max(0, 1 - s z)^2."""
        return np.asarray(np.square(self._slack(y, z)))

    def slope(self, y: Array, z: Array) -> Array:
        """-2 s max(0, 1 - s z)."""
        return np.asarray((2 - 4 * y) * self._slack(y, z))

    def curvature(self, y: Array, z: Array) -> Array:
        """2 where s z < 1, else 0."""
        return np.where(self._slack(y, z) > 0, 2.0, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        """v^2 / 4 - v at v = -s u >= 0."""
        v = (1 - 2 * y) * u
        return np.where(v >= 0, np.square(v) / 4 - v, np.inf)


@dataclass(frozen=True)
class EpsilonInsensitiveLoss(ScoreLoss):
    """l = max(0, |y - z| - epsilon): errors up to epsilon cost nothing. SVR has its minimum and the proof."""

    epsilon: float = 0.1
    name = "the epsilon-insensitive loss"
    has_conjugate = True
    is_piecewise = True
    has_curvature = False
    legal = "a finite number"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a finite number >= 0. Got {self.epsilon!r}.")

    def value(self, y: Array, z: Array) -> Array:
        """max(0, |y - z| - epsilon)."""
        return np.asarray(np.maximum(np.abs(y - z) - self.epsilon, 0.0))

    def slope(self, y: Array, z: Array) -> Array:
        """The sign of z - y where that is beyond epsilon, else 0."""
        return np.where(np.abs(z - y) > self.epsilon, np.sign(z - y), 0.0)

    def curvature(self, y: Array, z: Array) -> Array:
        """There is none."""
        raise NotImplementedError(f"{self.name} has no curvature. Use SVR, or SGD().")

    def mean(self, z: Array) -> Array:
        """The score itself."""
        return np.asarray(z)

    def score(self, mean: float) -> float:
        """The mean itself."""
        return float(mean)

    def conjugate(self, y: Array, u: Array) -> Array:
        """u y + epsilon |u| at |u| <= 1."""
        return np.where(np.abs(u) <= 1, u * y + self.epsilon * np.abs(u), np.inf)

    def is_legal(self, y: Array) -> Array:
        """Every finite number."""
        return np.isfinite(y)
