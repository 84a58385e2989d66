"""The layers of a network and where their parameters lie: end to end, W_1 (outputs x inputs), b_1, W_2, ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certifit.data.columns import Array


@dataclass(frozen=True)
class Layout:
    """sizes: of the states, the inputs first. leak: the slope of ReLU below 0, and at 0."""

    sizes: tuple[int, ...]
    activation: str
    leak: float
    biases: bool
    output_bias: bool

    @property
    def n_layers(self) -> int:
        """Matrices of weights."""
        return len(self.sizes) - 1

    def has_bias(self, layer: int) -> bool:
        """Whether a layer has biases."""
        return self.output_bias if layer == self.n_layers - 1 else self.biases

    @property
    def n_parameters(self) -> int:
        """Weights and biases of all layers."""
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        return sum(a * b + (b if self.has_bias(t) else 0) for t, (a, b) in enumerate(pairs))

    def split(self, parameters: Array) -> list[tuple[Array, Array | None]]:
        """W (outputs x inputs) and b of every layer, as views."""
        parts, at = [], 0
        for t in range(self.n_layers):
            a, b = self.sizes[t], self.sizes[t + 1]
            W = parameters[at : at + a * b].reshape(b, a)
            at += a * b
            bias = parameters[at : at + b] if self.has_bias(t) else None
            at += b if bias is not None else 0
            parts.append((W, bias))
        return parts

    def is_weight(self) -> Array:
        """Which parameters are weights, which are penalised; biases are not."""
        mask = np.ones(self.n_parameters, dtype=bool)
        for _, bias in self.split(mask):
            if bias is not None:
                bias[:] = False
        return mask

    def drawn(self, seed: int, number: int) -> Array:
        """Uniform parameters within sqrt(6 / (inputs + outputs)), a third of the variance for sigmoids."""
        random = np.random.Generator(np.random.Philox(key=[seed, number]))
        parameters = np.zeros(self.n_parameters)
        factor = 2.0 if self.activation == "sigmoid" else 6.0
        for t, (W, bias) in enumerate(self.split(parameters)):
            bound = np.sqrt(factor / (self.sizes[t] + self.sizes[t + 1]))
            W[:] = random.uniform(-bound, bound, size=W.shape)
            if bias is not None:
                bias[:] = random.uniform(-bound, bound, size=bias.shape)
        return parameters

    def joined(self, start: Sequence[object]) -> Array:
        """Parameters of matrices that a user gives, W or (W, b) per layer, W outputs x inputs."""
        parameters = np.zeros(self.n_parameters)
        if len(start) != self.n_layers:
            raise ValueError(f"start needs one entry per layer, {self.n_layers}. Got {len(start)}.")
        for t, ((W, bias), layer) in enumerate(zip(self.split(parameters), start, strict=True)):
            matrix, vector = (
                layer
                if isinstance(layer, tuple | list)
                and len(layer) == 2
                and np.ndim(layer[1]) == 1
                and np.ndim(layer[0]) == 2
                else (layer, None)
            )
            values = np.asarray(matrix, dtype=np.float64)
            if values.shape != W.shape or not np.isfinite(values).all():
                raise ValueError(
                    f"start[{t}] must be {W.shape[0]} x {W.shape[1]} finite weights. Got shape {values.shape}."
                )
            W[:] = values
            if vector is not None:
                numbers = np.asarray(vector, dtype=np.float64)
                if bias is None or numbers.shape != bias.shape:
                    raise ValueError(f"start[{t}] has biases that the layer does not have.")
                bias[:] = numbers
        return parameters
