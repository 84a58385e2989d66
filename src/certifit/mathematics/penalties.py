"""Penalties on weights, and their conjugates, which a duality gap needs: the elastic net, and one of the user's own.

A penalty is a sum over columns; strengths and bounds are data, one per column.

The quadratic model of a smooth function at a point, with an L1 penalty and bounds: where it is least.

    g'(x - point) + (x - point)'H(x - point)/2 + sum_j l1_j |x_j|,   lower_j <= x_j <= upper_j

Solved on the active columns with their signs held, so the answer is exact to rounding.

`Penalty` is made of Python functions of the weights, which are checked before they are trusted.
At random points value must be a finite number; a gradient must be that of differences; with p = prox(v, t) the slope
s = (v - p) / t must support the penalty at p: C(w) >= C(p) + s'(w - p); and a conjugate must be above q'w - C(w)
everywhere and equal to it at (p, s). None of that proves that the penalty is convex: a dent that is seen refutes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.runtime import core, n_threads


@dataclass(frozen=True)
class ElasticPenalty:
    """h(w) = sum_j l1_j |w_j| + l2_j/2 w_j^2   on lower_j <= w_j <= upper_j, with lower_j <= 0 <= upper_j."""

    l1: Array
    l2: Array
    lower: Array
    upper: Array

    def value(self, w: Array) -> float:
        """h(w), bounds left aside."""
        return float(self.l1 @ np.abs(w) + (self.l2 * w) @ w / 2)

    def gap(self, w: Array, q: Array, error: Array) -> tuple[float, float]:
        """sum_j h_j(w_j) + h*_j(q_j) - q_j w_j, every term >= 0, and what errors of q and roundings may add.

        h*_j(q_j) = sup_w q_j w - h_j(w) is convex: an error costs at most so much of the furthest w within it that
        attains the supremum.
        """
        columns = (np.ascontiguousarray(part) for part in (w, q, error))
        brackets, rounding = core.elastic_gap(*self._columns, *columns)
        return brackets, rounding

    def finite_share(self, q: Array, error: Array) -> float:
        """The largest multiple of q, at most 1, at which every h*_j is finite, whatever the error."""
        share: float = core.finite_share(*self._columns, np.ascontiguousarray(q), np.ascontiguousarray(error))
        return share

    @property
    def _columns(self) -> tuple[Array, Array, Array, Array]:
        return self.l1, self.l2, self.lower, self.upper


MOST_ROUNDS = 1000
NO_CURVATURE = 1e-26  # of a column's squares before its shift was taken off: curvature below it is rounding


@dataclass(frozen=True)
class Kinks:
    """l1 and bounds of the entries of a point: those of the weights, none of the intercepts."""

    l1: Array
    lower: Array
    upper: Array

    @staticmethod
    def of(penalty: ElasticPenalty, n_scores: int = 1) -> Kinks:
        """Of weights and then an intercept per score."""
        free = np.full(n_scores, np.inf)
        lower, upper = np.concatenate([penalty.lower, -free]), np.concatenate([penalty.upper, free])
        return Kinks(np.append(penalty.l1, np.zeros(n_scores)), lower, upper)

    def size(self, point: Array) -> float:
        """sum_j l1_j |x_j|."""
        return float(self.l1 @ np.abs(point))

    def signs(self, point: Array, target: Array) -> Array:
        """What (|target| - |point|) / (target - point) is, entry by entry, without cancelling where no sign changes."""
        step = target - point
        crosses = point * target < 0
        with np.errstate(divide="ignore", invalid="ignore"):
            across = np.where(crosses, (np.abs(target) - np.abs(point)) / step, 0.0)
        return np.where(crosses, across, np.sign(point + target))

    def fall(self, gradient: Array, point: Array, target: Array) -> float:
        """-(g'(target - point) + the change of the penalty): what the first order tells of the way to a target."""
        return -float((gradient + self.l1 * self.signs(point, target)) @ (target - point))


def minimiser(matrix: Array, gradient: Array, point: Array, value: float, kinks: Kinks) -> Array:
    """Where the model is least. Entries without curvature become 0; value: what rounding is relative to."""
    curved = np.diagonal(matrix) > 0
    start = np.where(curved, point, 0.0)
    weights, _, _ = core.gram_lasso_step(
        np.ascontiguousarray(matrix),
        np.ascontiguousarray(gradient),
        start,
        2 * max(value, 0.0),
        kinks.l1,
        kinks.lower,
        kinks.upper,
        MOST_ROUNDS,
        n_threads(),
    )
    return np.asarray(np.minimum(np.maximum(weights, kinks.lower), kinks.upper))


def without_still(matrix: Array, shift: Array, n_scores: int = 1) -> Array:
    """A Hessian whose columns that do not vary, but for rounding, have no entries."""
    curved = np.diagonal(matrix).reshape(-1, n_scores).sum(axis=1)
    still = np.flatnonzero(np.repeat(curved[:-1] <= NO_CURVATURE * curved[-1] * shift**2, n_scores))
    if len(still):
        matrix = matrix.copy()
        matrix[still], matrix[:, still] = 0.0, 0.0
    return matrix


Value = Callable[[Array], float]
Gradient = Callable[[Array], ArrayLike]
Prox = Callable[[Array, float], ArrayLike]

_POINTS = 6  # random points of each size
_SIZES = (0.01, 1.0, 100.0)
_AGREE = 1e-6  # relative difference that counts as none
_SHRUNK = (1.0, 1 - 1e-12, 1 - 1e-9)  # a slope at the edge of a conjugate's domain may be outside by rounding


class Penalty:
    """A penalty C(w) on all weights at once, given by Python functions of an array. The intercept has none.

    minimise   mean loss + alpha C(w)            GLM("poisson", alpha=0.1, penalty=cf.Penalty(value, prox=...))

    Functions are checked at random points before a fit. That C is convex can be refuted on points, not proven.

    Parameters
    ----------
    value : C(w), a number, finite for all weights
    prox : prox(v, t), the w that minimises C(w) + |w - v|^2 / (2 t); for penalties with kinks, as norms are
    gradient : of C, an array; for smooth penalties. One of prox and gradient is needed
    conjugate : C*(q) = sup_w q'w - C(w), a number or infinity. With it a fit has a duality gap, without it an estimate
    name : what messages call it

    >>> import numpy as np
    >>> import certifit as cf
    >>> length = cf.Penalty(
    ...     value=np.linalg.norm,
    ...     prox=lambda v, t: v * max(1 - t / max(np.linalg.norm(v), 1e-300), 0),
    ...     conjugate=lambda q: 0.0 if np.linalg.norm(q) <= 1 else np.inf,
    ...     name="length",
    ... )
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = cf.GLM(alpha=0.1, penalty=length).fit(X, X @ [1.0, 2.0, 0.0])
    >>> model.certificate_.holds, model.certificate_.is_local
    (True, False)
    """

    def __init__(
        self,
        value: Value,
        prox: Prox | None = None,
        gradient: Gradient | None = None,
        conjugate: Value | None = None,
        name: str | None = None,
    ) -> None:
        for part, function in {"value": value, "prox": prox, "gradient": gradient, "conjugate": conjugate}.items():
            if not callable(function) and (part == "value" or function is not None):
                raise TypeError(f"{part} must be a function. Got {function!r}.")
        if prox is None and gradient is None:
            raise TypeError("A penalty needs prox or gradient beside its value: prox(v, t) or gradient(w).")
        self.name = "the penalty" if name is None else f"the penalty {name!r}"
        self.refutation = ""  # where it was seen not to be convex
        self._value, self._prox, self._gradient, self._conjugate = value, prox, gradient, conjugate
        self._name = name

    @property
    def has_prox(self) -> bool:
        """Whether it is given by its prox."""
        return self._prox is not None

    @property
    def has_conjugate(self) -> bool:
        """Whether a fit has a duality gap."""
        return self._conjugate is not None

    @property
    def is_convex(self) -> bool:
        """Not refuted on the points that were tried."""
        return not self.refutation

    def value(self, w: Array) -> float:
        """C(w)."""
        return _number("value", self._value, self.name, w)

    def gradient(self, w: Array) -> Array:
        """The gradient of C."""
        assert self._gradient is not None
        return _vector("gradient", self._gradient(w.copy()), self.name, w)

    def prox(self, v: Array, t: float) -> Array:
        """The minimiser of C(w) + |w - v|^2 / (2 t)."""
        assert self._prox is not None
        return _vector("prox", self._prox(v.copy(), t), self.name, v)

    def conjugate(self, q: Array) -> float:
        """C*(q)."""
        assert self._conjugate is not None
        return _number("conjugate", self._conjugate, self.name, q)

    def checked(self, n_weights: int) -> Penalty:
        """The same penalty, checked at random weights; says where it is not convex."""
        random = np.random.default_rng(0)
        points = [size * random.standard_normal(n_weights) for size in _SIZES for _ in range(_POINTS)]
        points.append(np.zeros(n_weights))
        values = [self._finite(w) for w in points]
        if self._gradient is not None:
            for w in points[:-1]:  # at 0 many penalties have a kink
                self._check_gradient(w)
        supports = [self._support(w, t) for w in points for t in (0.1, 1.0)] if self.has_prox else []
        supports += [] if self._gradient is None else [(w, self.gradient(w)) for w in points[:-1]]
        new = Penalty(self._value, self._prox, self._gradient, self._conjugate, self._name)
        new.refutation = self._dent(points, values, supports)
        if self.has_conjugate and not new.refutation:
            self._check_conjugate(points, values, supports)
        return new

    def __repr__(self) -> str:
        return f"Penalty(name={self._name!r})"

    def _finite(self, w: Array) -> float:
        value = self.value(w)
        if not np.isfinite(value):
            raise ValueError(f"value of {self.name} must be finite for all weights. It is {value:g} at {_shown(w)}.")
        return value

    def _check_gradient(self, w: Array) -> None:
        gradient, direction = self.gradient(w), np.sign(w)
        step = 1e-6 * max(float(np.abs(w).max(initial=0.0)), 1e-3)
        ahead, behind = self._finite(w + step * direction), self._finite(w - step * direction)
        difference, stated = (ahead - behind) / (2 * step), float(gradient @ direction)
        slack = 1e-4 * (np.abs(gradient).sum() + abs(difference)) + 1e-9 * (abs(ahead) + abs(behind)) / step
        if not abs(difference - stated) <= slack:
            raise ValueError(
                f"gradient of {self.name} is not the derivative of value: at {_shown(w)} it says {stated:g} along the "
                f"signs of the weights, and value says {difference:g}."
            )

    def _support(self, v: Array, t: float) -> tuple[Array, Array]:
        """A point and a slope there, from the prox."""
        p = self.prox(v, t)
        self._finite(p)
        return p, (v - p) / t

    def _dent(self, points: list[Array], values: list[float], supports: list[tuple[Array, Array]]) -> str:
        """Where the penalty lies below a slope that should support it, or above a chord."""
        for p, s in supports:
            base = self.value(p)
            for w, value in zip(points, values, strict=True):
                rise = float(s @ (w - p))
                if value < base + rise - _AGREE * (abs(base) + abs(rise) + abs(value)):
                    if self.has_prox:
                        raise ValueError(
                            f"prox of {self.name} is no minimiser: at {_shown(p)} its slope {_shown(s)} puts the "
                            f"penalty above {base + rise:g} at {_shown(w)}, and value says {value:g}. Is it the prox "
                            "of t C, and C convex?"
                        )
                    return self._dented(p, w)
        for (first, low), (second, high) in pairwise(zip(points, values, strict=True)):
            middle = self.value((first + second) / 2)
            if middle > (low + high) / 2 + _AGREE * (abs(low) + abs(high)):
                return self._dented(first, second)
        return ""

    def _dented(self, first: Array, second: Array) -> str:
        return f"{self.name} is not convex between {_shown(first)} and {_shown(second)}. A fit is a local claim."

    def _check_conjugate(self, points: list[Array], values: list[float], supports: list[tuple[Array, Array]]) -> None:
        for p, s in supports:
            here, product = self.value(p), float(p @ s)
            apart = min((self.conjugate(share * s) + here - share * product for share in _SHRUNK), key=abs)
            slack = _AGREE * (abs(here) + abs(product) + float(np.linalg.norm(p) * np.linalg.norm(s)) + 1e-12)
            if not abs(apart) <= slack:
                raise ValueError(
                    f"conjugate of {self.name} is not sup_w q'w - C(w): at q = {_shown(s)}, where {_shown(p)} attains "
                    f"it, it should be {product - here:g} and is {self.conjugate(s):g}."
                )
        for q, (w, value) in zip(points, zip(points[::-1], values[::-1], strict=True), strict=True):
            if self.conjugate(q) < float(q @ w) - value - _AGREE * (abs(value) + abs(float(q @ w)) + 1e-12):
                raise ValueError(
                    f"conjugate of {self.name} is below q'w - C(w) at q = {_shown(q)}, w = {_shown(w)}: no bound."
                )


def _number(part: str, function: Value, name: str, w: Array) -> float:
    with np.errstate(all="ignore"):
        value = np.asarray(function(w.copy()), dtype=np.float64)
    if value.ndim or np.isnan(value):
        raise ValueError(f"{part} of {name} must be a number for an array of weights. Got {value!r}.")
    return float(value)


def _vector(part: str, value: ArrayLike, name: str, w: Array) -> Array:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != w.shape or not np.isfinite(numbers).all():
        raise ValueError(f"{part} of {name} must be {len(w)} finite numbers, one per weight. Got {value!r:.80}.")
    return np.ascontiguousarray(numbers)


def _shown(w: Array) -> str:
    return "[" + ", ".join(f"{number:.3g}" for number in w[:3]) + (", ...]" if len(w) > 3 else "]")
