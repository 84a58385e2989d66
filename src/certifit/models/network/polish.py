"""The output layer refitted given the hidden features: a convex problem, whose optimum is proven."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.models.network.formulas import forward
from certifit.models.network.task import NetworkTask


def _model(task: NetworkTask) -> Any:
    """The model whose objective is that of the output layer."""
    from certifit.models.glm.logistic import LogisticRegression
    from certifit.models.glm.model import GLM
    from certifit.models.huber.model import HuberRegressor
    from certifit.models.least_squares.model import Ridge

    name, alpha, has_bias = task.loss.name, task.alpha, task.layout.output_bias
    if name in ("squared", "full-squared"):
        return Ridge(alpha / task.loss.scale, fit_intercept=has_bias)
    if name == "huber":
        return HuberRegressor(task.loss.delta, alpha, scale=1.0, fit_intercept=has_bias)
    if task.loss.is_of_mean:
        return GLM(task.loss.family, task.loss.link, alpha=alpha, fit_intercept=has_bias)
    return LogisticRegression(alpha, fit_intercept=has_bias)


def polished(task: NetworkTask, parameters: Array) -> tuple[Array, str]:
    """Parameters with the best output layer for the hidden features, and what is known of it in words."""
    point = np.asarray(parameters, dtype=np.float64).copy()
    H, y, w, offset = (np.concatenate(part) for part in zip(*(_side(task, point, False)), strict=True))
    before, held_before = _loss(task, point, False), _loss(task, point, True)
    if task.loss.is_of_mean:
        model = _model(task).fit(H, y, sample_weight=w, offset=offset)
    else:
        model = _model(task).fit(H, y - offset, sample_weight=w)  # classes have no offset
    W, b = task.layout.split(point)[-1]
    coefficients = np.atleast_2d(model.coef_)
    if len(W) > 1 and len(coefficients) != len(W):
        raise ValueError("The rows that are not held out miss a class: the output layer cannot be refitted.")
    W[:] = coefficients
    if b is not None:
        b[:] = np.atleast_1d(model.intercept_)
    after, held_after = _loss(task, point, False), _loss(task, point, True)
    held = "" if np.isnan(held_before) else f", of the rows held out from {held_before:.6g} to {held_after:.6g}"
    words = (
        f"Output layer refitted given the hidden features: the mean training loss went from {before:.6g} to {after:.6g}"
        f"{held}. {model.certificate_.sentences()[0]}"
    )
    return point.astype(parameters.dtype), words


def _side(task: NetworkTask, point: Array, is_held: bool) -> list[tuple[Array, Array, Array, Array]]:
    """Hidden features, targets, weights and offsets of the rows of one side, per stretch."""
    sides = []
    for part in task.parts():
        X, y, weight, offset = part.of(is_held)
        H = forward(task.layout, point, np.asarray(X, dtype=np.float64))[-2]
        sides.append((H, y, weight, np.zeros(len(y)) if offset is None else offset))
    return sides


def _loss(task: NetworkTask, point: Array, is_held: bool) -> float:
    """Mean loss of one side; NaN where it has no rows."""
    W, b = task.layout.split(point)[-1]
    value, total = 0.0, 0.0
    for H, y, weight, offset in _side(task, point, is_held):
        if len(y):
            z = H @ W.T + (0.0 if b is None else b) + offset[:, None]
            value += float(weight @ task.loss.values(y, z))
            total += float(weight.sum())
    return value / total if total > 0 else float("nan")
