"""A loss of the user's own: Python functions of targets and scores, checked before they are trusted.

At points of the data's range the functions must take arrays, treat each row by itself and give numbers; slope and
curvature must be derivatives. At a kink any number between the two one-sided derivatives will do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.mathematics.losses.scores import ScoreLoss

Function = Callable[[Array, Array], ArrayLike]

_STEP = 1e-5  # step of finite differences, relative to the score where that is > 1
_AGREE = 1e-5  # relative difference of a derivative and the finite one that counts as none
_SCORES = (-10.0, -3.0, -1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0, 3.0, 10.0)
_MOST_TARGETS = 9  # most targets at which a user's functions are tried


class Loss(ScoreLoss):
    """A loss l(y, z) of a target y and a score z, given by Python functions of two arrays.

    Its derivatives are checked on the data of every fit. That it is convex can be refuted on points, not proven: claims
    on a fit say "if the loss is convex", or are local where it was seen not to be.

    Parameters
    ----------
    value : l(y, z) of each row; inf where the loss does not allow the score
    slope : dl/dz
    curvature : d^2 l/dz^2; None: solvers that need a curvature refuse the loss
    mean : the prediction at a score z; None: the score itself
    name : what messages call it

    >>> import certifit as cf
    >>> loss = cf.Loss(lambda y, z: np.log(np.cosh(z - y)), lambda y, z: np.tanh(z - y), name="log cosh")
    >>> loss.checked(np.array([0.0, 1.0, 5.0])).is_convex
    True
    >>> cf.Loss(lambda y, z: (z - y) ** 2, lambda y, z: z - y).checked(np.array([0.0, 1.0]))
    Traceback (most recent call last):
    ...
    ValueError: slope of the loss is not the derivative of value: at y = 0, z = -10 it is -10, and value says -20.
    """

    legal = "a finite number"

    def __init__(
        self,
        value: Function,
        slope: Function,
        curvature: Function | None = None,
        mean: Callable[[Array], ArrayLike] | None = None,
        name: str | None = None,
    ) -> None:
        for part, function in {"value": value, "slope": slope, "curvature": curvature, "mean": mean}.items():
            if not callable(function) and (part in ("value", "slope") or function is not None):
                raise TypeError(f"{part} must be a function. Got {function!r}.")
        self.name = "the loss" if name is None else f"the loss {name!r}"
        self.refutation = ""  # where it was seen not to be convex
        self.is_nonnegative = True  # until a value below 0 was seen; duality gaps count on it
        self._value, self._slope, self._curvature, self._mean = value, slope, curvature, mean
        self._name = name

    @property
    def has_curvature(self) -> bool:  # type: ignore[override]  # a constant in other losses
        """Whether solvers may ask for one."""
        return self._curvature is not None

    @property
    def is_convex(self) -> bool:  # type: ignore[override]  # a constant in other losses
        """Not refuted on the points that were tried."""
        return not self.refutation

    def value(self, y: Array, z: Array) -> Array:
        """l(y, z)."""
        return _called(self._value, y, z)

    def slope(self, y: Array, z: Array) -> Array:
        """dl/dz."""
        return _called(self._slope, y, z)

    def curvature(self, y: Array, z: Array) -> Array:
        """d^2 l/dz^2."""
        if self._curvature is None:
            raise NotImplementedError(
                f"{self.name} has no curvature. Give one, curvature=..., or use a solver that needs none, as 'lbfgs'."
            )
        return _called(self._curvature, y, z)

    def mean(self, z: Array) -> Array:
        """The prediction at a score."""
        if self._mean is None:
            return np.asarray(z)
        with np.errstate(all="ignore"):
            return np.asarray(self._mean(z), dtype=np.float64)

    def score(self, mean: float) -> float:
        """Where a fit starts: at the mean target if that is a score, else at 0."""
        return float(mean) if self._mean is None else 0.0

    def is_legal(self, y: Array) -> Array:
        """Any finite number."""
        return np.isfinite(y)

    def checked(self, targets: Array) -> Loss:
        """The same loss, checked at targets as these and scores around them; says where it is not convex."""
        y, z = _points(targets)
        parts = {"value": self._value, "slope": self._slope}
        parts |= {} if self._curvature is None else {"curvature": self._curvature}
        values = {part: _rows(part, function, self.name, y, z) for part, function in parts.items()}
        allowed = np.isfinite(values["value"])
        for part, numbers in values.items():
            bad = np.isnan(numbers) | (np.isinf(numbers) & (allowed if part != "value" else numbers < 0))
            _refuse(bad, y, z, f"{part} of {self.name} is {{0:g}} at {{point}}.", numbers)
        self._check_derivative("slope", "value", y, z, allowed)
        if self._curvature is not None:
            self._check_derivative("curvature", "slope", y, z, allowed)
        new = Loss(self._value, self._slope, self._curvature, self._mean, self._name)
        new.refutation = _dent(y[allowed], z[allowed], values["slope"][allowed], self.name)
        new.is_nonnegative = bool((values["value"] >= 0).all())
        return new

    def __repr__(self) -> str:
        return f"Loss(name={self._name!r})"

    def _check_derivative(self, part: str, of: str, y: Array, z: Array, allowed: Array) -> None:
        """Between the differences to the left and to the right, up to rounding; steps wide or narrow."""
        derivative, function = getattr(self, part)(y, z), getattr(self, of)
        outside, central = allowed.copy(), np.zeros_like(z)
        for step in (_STEP * np.maximum(np.abs(z), 1.0), np.maximum(_STEP, 1e-12 * np.abs(z))):
            above, below = z + step, z - step
            lower, here, upper = function(y, below), function(y, z), function(y, above)
            with np.errstate(all="ignore"):
                right, left = (upper - here) / (above - z), (here - lower) / (z - below)
                central = (upper - lower) / (above - below)
                size = np.maximum(np.abs(upper), np.abs(lower))
                slack = _AGREE * (np.abs(derivative) + np.abs(right - left)) + 8 * np.finfo(float).eps * size / step
                slack += 1e-10 * np.maximum(1.0, np.maximum(np.abs(y), np.abs(z)))
                far = (derivative < np.minimum(left, right) - slack) | (derivative > np.maximum(left, right) + slack)
            outside &= far & np.isfinite(right) & np.isfinite(left)
        sentence = (
            f"{part} of {self.name} is not the derivative of {of}: at {{point}} it is {{0:g}}, and {of} says {{1:g}}."
        )
        _refuse(outside, y, z, sentence, derivative, central)


def _called(function: Function, y: Array, z: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(function(y, z), dtype=np.float64)


def _points(targets: Array) -> tuple[Array, Array]:
    """Pairs of a target and a score: targets from the least to the largest, scores about 0 and about the targets."""
    distinct = np.unique(np.asarray(targets, dtype=np.float64))
    picked = distinct[np.unique(np.linspace(0, len(distinct) - 1, _MOST_TARGETS).astype(int))]
    between = (picked[1:] + picked[:-1]) / 2
    scores = np.unique(np.concatenate([_SCORES, picked, between]))
    return np.repeat(picked, len(scores)), np.tile(scores, len(picked))


def _rows(part: str, function: Function, name: str, y: Array, z: Array) -> Array:
    """The function's numbers; refused if it does not take arrays, or mixes rows."""
    try:
        values = _called(function, y, z)
        some = _called(function, y[1:4].copy(), z[1:4].copy())
    except Exception as error:
        raise TypeError(
            f"{part} of {name} must take an array of targets and an array of scores. It raised {error!r}. "
            "Write it with NumPy functions, np.where in place of if."
        ) from error
    if values.shape != y.shape:
        raise ValueError(f"{part} of {name} must give a number per row: shape {y.shape}. Got {values.shape}.")
    if not np.allclose(values[1:4], some, rtol=1e-9, atol=0, equal_nan=True):
        raise ValueError(
            f"{part} of {name} must treat each row by itself: rows 1 to 3 alone give {some.tolist()}, "
            f"among others {values[1:4].tolist()}."
        )
    return values


def _refuse(bad: Array, y: Array, z: Array, sentence: str, *numbers: Array) -> None:
    """Raise the sentence for the first bad point: {point}, and the numbers there."""
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(sentence.format(*(column[at] for column in numbers), point=f"y = {y[at]:g}, z = {z[at]:g}"))


def _dent(y: Array, z: Array, slope: Array, name: str) -> str:
    """Where the slope falls from one score to the next; "" if nowhere. Points are in the order of y, then z."""
    falls = (y[1:] == y[:-1]) & (slope[1:] < slope[:-1] - 1e-9 * (np.abs(slope[1:]) + np.abs(slope[:-1])))
    if not falls.any():
        return ""
    at = int(np.argmax(falls))
    return (
        f"{name} is not convex: at y = {y[at]:g} its slope falls from {slope[at]:g} at z = {z[at]:g} to "
        f"{slope[at + 1]:g} at z = {z[at + 1]:g}. A fit is a local claim."
    )
