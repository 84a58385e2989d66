"""Functions with known minima, for every smooth solver: value, gradient and Hessian in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import rosen, rosen_der, rosen_hess

from certifit.minimise.problem import Problem

Array = np.ndarray[Any, Any]


class Function(Problem):
    """A problem from three functions; counts how often it is asked."""

    def __init__(
        self,
        value: Callable[[Array], Any],
        gradient: Callable[[Array], Any],
        hessian: Callable[[Array], Any] | None,
        start: Any,
        minimum: Any,
    ) -> None:
        self.value, self.gradient, self.own_hessian = value, gradient, hessian
        self.start, self.minimum = np.asarray(start, float), np.asarray(minimum, float)
        self.size, self.evaluations = len(self.start), 0

    def value_gradient(self, x):
        self.evaluations += 1
        with np.errstate(all="ignore"):
            return float(self.value(x)), np.asarray(self.gradient(x), float)

    def hessian(self, x):
        if self.own_hessian is None:
            raise NotImplementedError
        return np.asarray(self.own_hessian(x), float)

    def without_hessian(self):
        return Function(self.value, self.gradient, None, self.start, self.minimum)


def quadratic(d: int, condition: float, seed: int = 0, scale: float = 1.0) -> Function:
    """x'Ax / 2 - b'x with eigenvalues from scale to scale * condition; the minimum is drawn, and b follows."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    A = (Q * np.geomspace(scale, scale * condition, d)) @ Q.T
    A = (A + A.T) / 2
    x = rng.normal(size=d)
    b = A @ x
    return Function(lambda x: x @ A @ x / 2 - b @ x, lambda x: A @ x - b, lambda x: A, np.zeros(d), x)


def rosenbrock(d: int = 2) -> Function:
    return Function(rosen, rosen_der, rosen_hess, np.tile([-1.2, 1.0], d // 2), np.ones(d))


@dataclass(frozen=True)
class Logistic:
    """mean log(1 + e^z) - y z + alpha |w|^2 / 2, z = Xw, in the notes' formulas."""

    X: Array
    y: Array
    alpha: float

    def value(self, w):
        z = self.X @ w
        return np.mean(np.logaddexp(0, z) - self.y * z) + self.alpha * (w @ w) / 2

    def gradient(self, w):
        return self.X.T @ (self.mean(w) - self.y) / len(self.y) + self.alpha * w

    def hessian(self, w):
        p = self.mean(w)
        return self.X.T @ ((p * (1 - p))[:, None] * self.X) / len(self.y) + self.alpha * np.eye(self.X.shape[1])

    def mean(self, w):
        return 1 / (1 + np.exp(-self.X @ w))


def logistic(n: int = 300, d: int = 8, alpha: float = 0.01, seed: int = 0) -> Function:
    """The minimum by plain Newton steps to the end."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (rng.uniform(size=n) < 1 / (1 + np.exp(-X @ rng.normal(size=d)))).astype(float)
    loss, w = Logistic(X, y, alpha), np.zeros(d)
    for _ in range(50):
        w = w - np.linalg.solve(loss.hessian(w), loss.gradient(w))
    return Function(loss.value, loss.gradient, loss.hessian, np.zeros(d), w)


def barrier(start: float = 1e-8) -> Function:
    """x - log x: defined for x > 0 alone."""
    return Function(lambda x: x[0] - np.log(x[0]), lambda x: 1 - 1 / x, lambda x: [[1 / x[0] ** 2]], [start], [1.0])


def scalar() -> Function:
    """cosh(x - 2), one unknown."""
    return Function(
        lambda x: np.cosh(x[0] - 2), lambda x: np.sinh(x - 2), lambda x: [[np.cosh(x[0] - 2)]], [-3.0], [2.0]
    )


def double_well() -> Function:
    """x^2 - y^2 + y^4: a saddle at 0 between two minima; the start is on the ridge."""
    return Function(
        lambda x: x[0] ** 2 - x[1] ** 2 + x[1] ** 4,
        lambda x: [2 * x[0], -2 * x[1] + 4 * x[1] ** 3],
        lambda x: np.diag([2.0, -2 + 12 * x[1] ** 2]),
        [1.0, 0.0],
        [0.0, np.sqrt(0.5)],
    )


FUNCTIONS = {
    "quadratic": lambda: quadratic(10, 100),
    "rosenbrock": rosenbrock,
    "logistic": logistic,
    "barrier": lambda: barrier(0.1),
    "scalar": scalar,
}


def complex_gradient(f: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """Im f(x + i h e_j) / h: the gradient of an analytic function without cancellation."""
    h = 1e-200

    def gradient(x):
        return np.array([np.imag(f(x + 1j * h * e)) / h for e in np.eye(len(x))])

    return gradient
