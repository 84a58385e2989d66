"""Margins of linear classifiers: how far the examples are from the boundary, on the right side of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array, dense_rows
from certifit.data.labels import coded, read_labels
from certifit.data.user_input import UserRows, UserTarget
from certifit.models.adapter import boundary_weights


@dataclass(frozen=True)
class Margins:
    """functional: s_i, one number per example; geometric: the distance to the boundary, in the unit of the columns.

    Both are negative for an example on the wrong side. Of the set: the least of all examples. is_separated: whether
    every example is on its right side.
    """

    functional: Array
    geometric: Array

    @property
    def functional_of_set(self) -> float:
        """The least functional margin."""
        return float(self.functional.min())

    @property
    def geometric_of_set(self) -> float:
        """The least geometric margin."""
        return float(self.geometric.min())

    @property
    def is_separated(self) -> bool:
        """Whether every margin is above 0."""
        return bool((self.functional > 0).all())

    def __str__(self) -> str:
        wrong = int(np.count_nonzero(self.functional <= 0))
        sides = (
            "Every example is on its right side" if wrong == 0 else f"{wrong} examples are on the wrong side or on it"
        )
        return f"{sides}: the geometric margin of the set is {self.geometric_of_set:.3g}."


def margins(model: BaseEstimator, X: UserRows, y: UserTarget) -> Margins:
    """Functional and geometric margins of examples under a fitted linear classifier, ours or of any library.

    Two classes, y = -1, +1:  functional y (w'x + b),  geometric y (w'x + b) / |w|
    More classes:             functional the least of s_y - s_k over other classes k, s_k = w_k'x + b_k;
                              geometric the least of (s_y - s_k) / |w_y - w_k|

    The geometric margin is the same for (w, b) and (c w, c b), c > 0; the functional margin is c times as large.

    >>> import certifit as cf
    >>> model = cf.Perceptron().fit([[0.0], [2.0]], [-1, 1])
    >>> cf.margins(model, [[0.0], [3.0]], [-1, 1]).geometric
    array([0.5, 2.5])
    """
    check_is_fitted(model)
    W, b = boundary_weights(model)
    rows = dense_rows(X)
    if not np.isfinite(rows).all():
        raise ValueError(f"Row {int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])} of X is not finite.")
    if rows.shape[1] != W.shape[1]:
        raise ValueError(f"X has {rows.shape[1]} columns, and the model has weights of {W.shape[1]}.")
    codes = coded(np.asarray(read_labels(y)), known=np.asarray(model.classes_))[1].astype(np.int64)
    if len(codes) != len(rows):
        raise ValueError(f"y has {len(codes)} rows but X has {len(rows)}.")
    power = np.ldexp(1.0, -int(np.frexp(np.abs(W).max(initial=0.0))[1]))  # no norm overflows
    scores = rows @ (W * power).T + b * power
    if len(W) == 1:
        signs = np.where(codes == 1, 1.0, -1.0)
        signed, lengths = (signs * scores[:, 0])[:, None], np.full((len(rows), 1), np.linalg.norm(W * power))
    else:
        signed, lengths = _against_others(scores, W * power, codes)
    _refuse_no_direction(lengths)
    return Margins((signed / power).min(axis=1), (signed / lengths).min(axis=1))


def _against_others(scores: Array, W: Array, codes: Array) -> tuple[Array, Array]:
    """s_y - s_k and |w_y - w_k| of every example and every other class."""
    n, K = scores.shape
    others = np.array([[k for k in range(K) if k != code] for code in range(K)])[codes]
    right = scores[np.arange(n), codes][:, None]
    between = np.linalg.norm(W[:, None] - W, axis=2)
    return right - np.take_along_axis(scores, others, axis=1), np.take_along_axis(between[codes], others, axis=1)


def _refuse_no_direction(lengths: Array) -> None:
    if (lengths == 0).any():
        raise ValueError("The weights of two classes are the same: there is no boundary between them.")
