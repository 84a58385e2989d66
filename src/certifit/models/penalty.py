"""Parameters of a penalty on weights: its strength, factors of single columns, and bounds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from certifit.data.columns import Array
from certifit.data.roles import refuse_unknown
from certifit.data.source import Source
from certifit.data.user_input import UserRows, UserTarget, UserWeights
from certifit.models.estimator import StateT, TaskEstimator, TaskT
from certifit.models.lasso.solver import LassoPath
from certifit.models.lasso.task import Strengths
from certifit.models.learner import Told
from certifit.models.parameters import check_number
from certifit.runtime import one_blas_thread

PenaltyFactors: TypeAlias = Mapping[str, float] | ArrayLike | None
Bound: TypeAlias = Literal["increasing", "decreasing"] | tuple[float | None, float | None]
Bounds: TypeAlias = Mapping[str, Bound] | tuple[ArrayLike, ArrayLike] | None
DIRECTIONS = {"increasing": (0.0, np.inf), "decreasing": (-np.inf, 0.0)}


class PenaltyParameters(TaskEstimator[TaskT, StateT]):
    """A model with penalty_factors and bounds, given by column or by the name of one."""

    penalty_factors: PenaltyFactors
    bounds: Bounds

    @one_blas_thread
    def _path(
        self, X: UserRows, y: UserTarget, alphas: ArrayLike | None, n_alphas: int, **roles: UserWeights
    ) -> LassoPath:
        """Solutions along alphas of a copy of this model, which is not kept."""
        model = clone(self)
        model._check_parameters()
        source = model._gate(X, y, **roles)
        model._begin(source)
        chosen = None if alphas is None else checked_alphas(alphas)
        path: LassoPath = model._path_of(model.fit_maps(model._weighted(source)), chosen, n_alphas)
        return path

    @abstractmethod
    def _path_of(self, source: Source, alphas: Array | None, n_alphas: int) -> LassoPath:
        """Solutions on mapped rows along alphas; None is as many as are asked for, from the least without a weight."""

    def _told(self) -> Told:
        has_factors, has_bounds = self.penalty_factors is not None, self.bounds is not None
        return replace(super()._told(), has_factors=has_factors, has_bounds=has_bounds)

    def _strengths(self, names: Sequence[str], alpha: float) -> Strengths:
        lower, upper = self._bounds(names)
        factors = self._factors(names)
        if factors.max(initial=0.0) > np.finfo(float).max / max(float(alpha), 1.0):
            raise ValueError(
                f"alpha times the largest of penalty_factors exceeds float64: {alpha:g} times {factors.max():g}."
            )
        return Strengths(float(alpha), self._l1_ratio(), factors, lower, upper)

    def _l1_ratio(self) -> float:
        raise NotImplementedError

    def _factors(self, names: Sequence[str]) -> Array:
        chosen = self.penalty_factors
        if chosen is None:
            return np.ones(len(names))
        if isinstance(chosen, Mapping):
            factors = np.ones(len(names))
            for name, factor in chosen.items():
                check_number(f"penalty_factors[{name!r}]", factor)
                factors[self._places(name, names, "penalty_factors")] = float(factor)
            return factors
        factors = np.asarray(chosen, dtype=np.float64)
        if factors.shape != (len(names),) or not (np.isfinite(factors) & (factors >= 0)).all():
            raise ValueError(f"penalty_factors must be {len(names)} finite numbers >= 0, one per column, or a dict.")
        return factors

    def _bounds(self, names: Sequence[str]) -> tuple[Array, Array]:
        lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
        if isinstance(self.bounds, Mapping):
            for name, bound in self.bounds.items():
                places = self._places(name, names, "bounds")
                lower[places], upper[places] = _pair(name, bound)
        elif self.bounds is not None:
            lower, upper = _bound_pair(self.bounds, len(names))
        if not (lower <= 0).all() or not (upper >= 0).all():  # NaN fails too
            j = int(np.flatnonzero(~((lower <= 0) & (upper >= 0)))[0])
            raise ValueError(
                f"The bounds of {names[j]!r} must have 0 between them: a penalty pulls weights to 0. "
                f"Got {lower[j]:g} to {upper[j]:g}."
            )
        return lower, upper

    def _places(self, name: str, names: Sequence[str], what: str) -> list[int]:
        """Places of the columns that a name means: one of them, or all that a table's column became."""
        if name in names:
            return [list(names).index(name)]
        encoder = getattr(self, "encoder_", None)
        groups = {} if encoder is None else dict(encoder.groups_)
        if name in groups:
            return [list(names).index(made) for made in groups[name] if made in names]
        refuse_unknown(name, list(groups) or list(names), f"{what} names a column that is not there: the data")
        raise ValueError(f"{what} names {name!r}, and no column was made of it.")


def _bound_pair(bounds: tuple[ArrayLike, ArrayLike], d: int) -> tuple[Array, Array]:
    """The lower and the upper bounds of d columns."""
    try:
        lower, upper = (np.array(np.broadcast_to(np.asarray(end, float), d)) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds must be a dict {{column: (low, high)}} or a pair (low, high) of numbers or of arrays with "
            f"{d} entries. Got {bounds!r}."
        ) from None
    return lower, upper


def _pair(name: str, bound: Bound) -> tuple[float, float]:
    """(low, high) of what a user gave for a column; None is no bound."""
    try:
        low, high = DIRECTIONS[bound] if isinstance(bound, str) else bound
        return -np.inf if low is None else float(low), np.inf if high is None else float(high)
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"bounds[{name!r}] must be (low, high), 'increasing' or 'decreasing'. Got {bound!r}."
        ) from None


def alpha_count(n_alphas: int) -> int:
    """How many alphas a path has, checked."""
    if not isinstance(n_alphas, int | np.integer) or isinstance(n_alphas, bool) or n_alphas < 1:
        raise ValueError(f"n_alphas must be a whole number >= 1. Got {n_alphas!r}.")
    return int(n_alphas)


def checked_alphas(alphas: ArrayLike | None) -> Array:
    """The alphas of a path, checked."""
    try:
        chosen = np.array(alphas, dtype=np.float64, ndmin=1)
    except (TypeError, ValueError):
        raise ValueError(f"alphas must be numbers >= 0, in one row. Got {alphas!r}.") from None
    if chosen.ndim != 1 or not len(chosen):
        raise ValueError(f"alphas must be numbers >= 0, in one row, one at least. Got the shape {chosen.shape}.")
    for alpha in chosen:
        check_number("alphas", float(alpha))
    return chosen


def alpha_from_C(C: float, n: float) -> float:
    """The alpha of scikit-learn's C: 1 / (C n), n the number of rows or the sum of their weights.

    LogisticRegression and the SVMs there minimise C times the *sum* of the losses plus half the squared weights; here
    the *mean* loss plus alpha times that. With `class_weight` or `sample_weight` n is the sum of all weights.

    >>> import certifit as cf
    >>> cf.alpha_from_C(C=0.1, n=1000)
    0.01
    """
    for name, value in (("C", C), ("n", n)):
        check_number(name, value)
        if not float(value) > 0:
            raise ValueError(f"{name} must be a number > 0. Got {value!r}.")
    return 1.0 / (float(C) * float(n))
