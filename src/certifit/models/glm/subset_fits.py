"""Fits of subsets of the columns to the training rows of all splits, which may be left on their way."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np

from certifit.data.columns import Array
from certifit.models.glm.fold_solver import ENOUGH, FoldFit, FoldLosses, renew_hessians, settle
from certifit.runtime import one_blas_thread

FAST = 0.1  # a decrement that shrinks to less tells by its step what the rest of the way changes


class SubsetFits:
    """Minimisers of subsets of columns on every training set, on their way.

    starts: points to look at first, subsets x splits x (columns + 1). kept: subsets x (columns + 1), the intercept
    among them. hessians: of the training sets, near the starts. ways: decrements of the steps that led to the starts.
    """

    def __init__(
        self, folds: FoldLosses, l2: Array, starts: Array, kept: Array, hessians: Array, ways: Array | None = None
    ) -> None:
        self.folds, self._l2 = folds, l2
        self._ways = np.zeros(starts.shape[:2]) if ways is None else ways
        self._fits = [
            [FoldFit(s, point, np.inf, np.zeros_like(point), hessians[s], columns) for s, point in enumerate(points)]
            for columns, points in zip(kept, starts, strict=True)
        ]

    def only(self, subset: int) -> SubsetFits:
        """One of the subsets."""
        one = copy(self)
        one._fits, one._ways = [self._fits[subset]], self._ways[[subset]]
        for fit in one._fits[0]:
            fit.loss = np.inf if fit.is_done else fit.loss  # of a model that is too rough to go on with
        return one

    def points(self) -> Array:
        """Where the fits are: subsets x splits x (columns + 1)."""
        return np.array([[fit.point for fit in fits] for fits in self._fits])

    def slopes(self) -> Array:
        """Gradients of the training losses there, of the same shape."""
        return np.array([[fit.slope for fit in fits] for fits in self._fits])

    @one_blas_thread
    def settle(
        self, enough: float = ENOUGH, is_fresh: bool = False, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Go on to the minima, is_fresh: with new Hessians; Unsettled where a subset is to be fitted by itself."""
        fits = [fit for of_subset in self._fits for fit in of_subset]
        if is_fresh:
            renew_hessians(self.folds, fits, np.mean([fit.point for fit in fits], axis=0))
        l2 = np.tile(self._l2, (len(self._fits), 1))
        if settle(self.folds, fits, l2, enough, is_over=is_over).any():
            raise Unsettled

    def leave_out(self, subset: int) -> None:
        """Go no further with a subset."""
        for fit in self._fits[subset]:
            fit.is_done = True

    def expected(self, base: Array, slopes: Array, hessians: Array) -> tuple[Array, Array]:
        """Mean losses of the validation rows that each subset will end with, and the sizes of what is still to come.

        base: splits x (columns + 1), points where the validation losses have these slopes and Hessians. The sizes are
        infinite where steps do not shrink fast: what they lead to is not known.
        """
        losses, doubts = [], []
        for fits, ways in zip(self._fits, self._ways, strict=True):
            loss = doubt = 0.0
            for fit, point, slope, hessian, way in zip(fits, base, slopes, hessians, ways, strict=True):
                seen = fit.point + fit.step if fit.is_done else fit.point
                first = float((slope + hessian @ (seen - point)) @ fit.step)
                second = float(fit.step @ hessian @ fit.step) / 2
                loss += fit.held_out - first + second
                before = fit.last if fit.last < np.inf else way
                is_sure = fit.length == 1.0 and fit.decrement <= FAST * before
                doubt += abs(first) + second if is_sure else np.inf
            losses.append(loss / len(fits))
            doubts.append(doubt / len(fits))
        return np.array(losses), np.array(doubts)


class Unsettled(Exception):
    """A fit that chord steps of all sets together do not find."""
