"""Forward and backward through a network in float64, a line per formula: what the certificate and students look at.

    x_0 = x,   x_t = act(W_t x_(t-1) + b_t),   the last one without activation: z = x_T
    p_T = dl/dz,   p_(t-1) = W_t'(p_t * act'),   dW_t = (p_t * act') x_(t-1)',   db_t = p_t * act'

relu'(0) = leak, 0 for ReLU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from certifit.data.columns import Array
from certifit.models.network.layout import Layout


@dataclass(frozen=True)
class Propagation:
    """states: x_0 ... x_T, rows x units. costates: p_0 ... p_T, derivatives of the mean loss by them.

    gradients: by W and b of every layer.
    """

    states: list[Array]
    costates: list[Array]
    gradients: list[tuple[Array, Array | None]]
    loss: float


def activated(layout: Layout, z: Array) -> Array:
    """act(z)."""
    if layout.activation in ("relu", "leaky-relu"):
        return np.where(z > 0, z, _leak(layout) * z)
    if layout.activation == "tanh":
        return np.tanh(z)
    return np.asarray(expit(z)) if layout.activation == "sigmoid" else z


def slope_of(layout: Layout, x: Array) -> Array:
    """act' as a function of the state act(z)."""
    if layout.activation in ("relu", "leaky-relu"):
        return np.where(x > 0, 1.0, _leak(layout))
    if layout.activation == "tanh":
        return 1 - np.square(x)
    return x * (1 - x) if layout.activation == "sigmoid" else np.ones_like(x)


def _leak(layout: Layout) -> float:
    return layout.leak if layout.activation == "leaky-relu" else 0.0


def forward(layout: Layout, parameters: Array, X: Array) -> list[Array]:
    """All states."""
    states = [X]
    for t, (W, b) in enumerate(layout.split(parameters)):
        z = states[-1] @ W.T + (0.0 if b is None else b)
        states.append(z if t == layout.n_layers - 1 else activated(layout, z))
    return states


def backward(
    layout: Layout, parameters: Array, states: list[Array], slopes: Array
) -> tuple[list[Array], list[tuple[Array, Array | None]]]:
    """Costates and gradients. slopes: p_T, derivatives of the sum by the scores."""
    costates, gradients = [slopes], []
    layers = layout.split(parameters)
    for t in reversed(range(layout.n_layers)):
        W, b = layers[t]
        inner = costates[-1] if t == layout.n_layers - 1 else costates[-1] * slope_of(layout, states[t + 1])
        gradients.append((inner.T @ states[t], None if b is None else inner.sum(axis=0)))
        costates.append(inner @ W)
    return costates[::-1], gradients[::-1]


def flat(gradients: list[tuple[Array, Array | None]]) -> Array:
    """Gradients in the order of the parameters."""
    return np.concatenate([part.ravel() for pair in gradients for part in pair if part is not None])
