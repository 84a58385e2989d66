"""The sigmoid maps of scores: Platt's targets, and what all maps together say of a row."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

from certifit.data.columns import Array

MOST_STEPS = 100  # of Newton's method
MOST_HALVES = 50  # of a step
ENOUGH = 1e-12  # a step that moves no map by more is the last, scores in units of their spread


def platt_targets(is_class: Array, weight: Array) -> Array:
    """(N+ + 1) / (N+ + 2) for rows of the class and 1 / (N- + 2) for others, N+ and N- sums of weights."""
    inside, outside = float(weight[is_class].sum()), float(weight[~is_class].sum())
    return np.where(is_class, (inside + 1) / (inside + 2), 1 / (outside + 2))


def joint_chances(chances: Array) -> Array:
    """p(k | x) of what the maps say of the second of two classes, or of every class."""
    if chances.shape[1] == 1:
        return np.hstack([1 - chances, chances])
    total = chances.sum(axis=1, keepdims=True)
    return np.where(total > 0, chances / np.where(total > 0, total, 1.0), 1 / chances.shape[1])


def sigmoid_maps(scores: Array, targets: Array, weight: Array) -> tuple[Array, Array]:
    """a >= 0 and b of every row of scores: the least sum_i w_i (log(1 + e^z_i) - t_i z_i), z = a s + b, 0 < t < 1."""
    total = weight.sum()
    centre = (scores @ weight) / total
    apart = scores - centre[:, None]
    spread = np.sqrt(np.square(apart) @ weight / total)
    spread = np.where(spread > 0, spread, 1.0)
    u, start = apart / spread[:, None], logit(targets @ weight / total)
    a, b = np.zeros(len(scores)), start

    def costs(a: Array, b: Array) -> Array:
        z = a[:, None] * u + b[:, None]
        return np.asarray((np.logaddexp(0.0, z) - targets * z) @ weight)

    least = costs(a, b)
    for _ in range(MOST_STEPS):
        p = expit(a[:, None] * u + b[:, None])
        slope, curvature = (p - targets) * weight, p * (1 - p) * weight
        of_a, of_b = (slope * u).sum(axis=1), slope.sum(axis=1)
        aa, ab, bb = ((curvature * power).sum(axis=1) for power in (u * u, u, 1.0))
        area = aa * bb - ab * ab
        area = np.where(area > 0, area, np.inf)
        step_a, step_b = (bb * of_a - ab * of_b) / area, (aa * of_b - ab * of_a) / area
        size = np.ones(len(scores))
        for _ in range(MOST_HALVES):
            new = costs(a - size * step_a, b - size * step_b)
            if (is_lower := new <= least).all():
                break
            size = np.where(is_lower, size, size / 2)
        size = np.where(is_lower, size, 0.0)
        a, b, least = a - size * step_a, b - size * step_b, np.where(is_lower, new, least)
        if max(np.abs(size * step_a).max(), np.abs(size * step_b).max()) <= ENOUGH:
            break
    a, b = np.where(a > 0, a, 0.0), np.where(a > 0, b, start)  # convex: a bound that is left is the best point
    return a / spread, b - a * centre / spread
