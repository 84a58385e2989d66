"""The support vector machine in slow, obvious NumPy: objectives, and the optimum by a method of its own."""

from __future__ import annotations

import numpy as np


def gaussian(X, Z, sigma):
    return np.exp(-((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2) / (2 * sigma**2))


def primal(K, c, b, sign, target, bound, row):
    """|f|^2 / 2 + sum of C xi, f = Kc."""
    f = K @ c
    return c @ f / 2 + bound @ np.maximum(-sign * (f[row] + b - target), 0)


def dual(K, a, sign, target, row):
    c = np.zeros(len(K))
    np.add.at(c, row, sign * a)
    return (sign * target) @ a - c @ K @ c / 2


def optimum(K, sign, target, bound, row, steps=20_000):
    """The best dual value by projected gradient with acceleration on the box and the plane; a lower bound."""
    Q = (sign[:, None] * sign) * K[np.ix_(row, row)]
    rate = 1 / np.linalg.eigvalsh(Q)[-1]
    linear = sign * target

    def project(v):
        # a = clip(v - m sign, 0, C) with sum sign a = 0: the sum falls in m
        low, high = -1e6, 1e6
        for _ in range(100):
            m = (low + high) / 2
            low, high = (m, high) if sign @ np.clip(v - m * sign, 0, bound) > 0 else (low, m)
        return np.clip(v - (low + high) / 2 * sign, 0, bound)

    a = project(np.zeros(len(sign)))
    ahead, t = a, 1.0
    for _ in range(steps):
        new = project(ahead + rate * (linear - Q @ ahead))
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        ahead, a, t = new + (t - 1) / t_new * (new - a), new, t_new
    return a
