"""A dozen functions of the literature (Moré, Garbow and Hillstrom, and others), analytic, with a usual start."""

from __future__ import annotations

import numpy as np


def beale(x):
    return (
        (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2 + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2
    )


def booth(x):
    return (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2


def matyas(x):
    return 0.26 * (x[0] ** 2 + x[1] ** 2) - 0.48 * x[0] * x[1]


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def wood(x):
    a, b, c, d = x
    return (
        100 * (b - a**2) ** 2
        + (1 - a) ** 2
        + 90 * (d - c**2) ** 2
        + (1 - c) ** 2
        + 10 * (b + d - 2) ** 2
        + 0.1 * (b - d) ** 2
    )


def powell_singular(x):
    a, b, c, d = x
    return (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - d) ** 4


def brown(x):
    """Badly scaled: the minimum is at (1e6, 2e-6)."""
    return (x[0] - 1e6) ** 2 + (x[1] - 2e-6) ** 2 + (x[0] * x[1] - 2) ** 2


def box(x):
    t = 0.1 * np.arange(1, 11)
    return np.sum((np.exp(-t * x[0]) - np.exp(-t * x[1]) - x[2] * (np.exp(-t) - np.exp(-10 * t))) ** 2)


def dixon_price(x):
    i = np.arange(2, len(x) + 1)
    return (x[0] - 1) ** 2 + np.sum(i * (2 * x[1:] ** 2 - x[:-1]) ** 2)


def trid(x):
    return np.sum((x - 1) ** 2) - np.sum(x[1:] * x[:-1])


def styblinski_tang(x):
    return np.sum(x**4 - 16 * x**2 + 5 * x) / 2


def log_sum_exp(x):
    A = np.random.default_rng(0).normal(size=(20, len(x)))
    return np.log(np.sum(np.exp(A @ x))) + np.sum(x**2) / 20


def analytic_center(x):
    """-sum log(1 - a'x) - sum log(1 - x^2): finite inside a polytope alone."""
    A = np.random.default_rng(1).normal(size=(8, len(x)))
    return -np.sum(np.log(1 - A @ x)) - np.sum(np.log(1 - x**2))


CLASSICS = {
    "beale": (beale, [1.0, 1.0]),
    "booth": (booth, [0.0, 0.0]),
    "matyas": (matyas, [4.0, -3.0]),
    "himmelblau": (himmelblau, [0.0, 0.0]),
    "wood": (wood, [-3.0, -1.0, -3.0, -1.0]),
    "powell_singular": (powell_singular, [3.0, -1.0, 0.0, 1.0]),
    "brown": (brown, [1.0, 1.0]),
    "box": (box, [0.0, 10.0, 20.0]),
    "dixon_price": (dixon_price, [2.0, 2.0, 2.0, 2.0]),
    "trid": (trid, [0.0] * 6),
    "styblinski_tang": (styblinski_tang, [-1.0, -2.0, -4.0]),
    "log_sum_exp": (log_sum_exp, [1.0, -1.0, 2.0, 0.5]),
    "analytic_center": (analytic_center, [0.05, -0.1, 0.02]),
}
