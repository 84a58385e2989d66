"""Lasso problems with their Gram matrices; the optimum of small ones by looking at every face."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Problem:
    """minimise |y - Xw|^2 / (2n) + alpha sum_j f_j (ratio |w_j| + (1 - ratio)/2 w_j^2) within the bounds."""

    X: Any
    y: Any
    ratio: float
    factors: Any
    lower: Any
    upper: Any

    @staticmethod
    def of(X: Any, y: Any, ratio: float = 1.0, **columns: Any) -> Problem:
        d = X.shape[1]
        usual = {"factors": np.ones(d), "lower": np.full(d, -np.inf), "upper": np.full(d, np.inf)}
        return Problem(X - X.mean(axis=0), y - y.mean(), ratio, **{**usual, **columns})

    def system(self) -> tuple[Any, Any, Any]:
        n = len(self.y)
        G = self.X.T @ self.X / n
        return ((G + G.T) / 2)[None], (self.X.T @ self.y / n)[None], np.array([self.y @ self.y / n])

    def strengths(self, alpha: float) -> tuple[Any, Any]:
        return alpha * self.ratio * self.factors, alpha * (1 - self.ratio) * self.factors

    def objective(self, alpha: float, w: Any) -> float:
        l1, l2 = self.strengths(alpha)
        return float(np.mean((self.y - self.X @ w) ** 2) / 2 + l1 @ np.abs(w) + l2 @ w**2 / 2)

    def path(self, core: Any, alphas: Any, tol: float = 1e-13, max_iter: int = 1000, threads: int = 1) -> Any:
        rest = self.ratio, self.factors, self.lower, self.upper
        return core.gram_lasso_path(*self.system(), np.asarray(alphas, dtype=float), *rest, tol, max_iter, threads)

    def weights(self, core: Any, alphas: Any) -> Any:
        return self.path(core, alphas)[0][0]

    def gaps(self, core: Any, alpha: float, states: Any) -> tuple[Any, Any]:
        alphas = np.full(len(states), float(alpha))
        rest = self.ratio, self.factors, self.lower, self.upper
        gaps, objectives = core.gram_lasso_gaps(*self.system(), states[None], alphas, *rest, 1)
        return gaps[0], objectives[0]

    def alpha_max(self, core: Any) -> float:
        (value,) = core.gram_alpha_max(*self.system(), self.ratio, self.factors, self.lower, self.upper, 1000, 1)
        return float(value)

    def violations(self, alpha: float, w: Any) -> Any:
        """How fast the objective falls if a weight moves the better way; 0 at the optimum."""
        l1, l2 = self.strengths(alpha)
        slope = self.X.T @ (self.y - self.X @ w) / len(self.y) - l2 * w
        up = np.where(w < self.upper, slope - np.where(w >= 0, l1, -l1), 0)
        down = np.where(w > self.lower, -slope - np.where(w <= 0, l1, -l1), 0)
        return np.maximum(0, np.maximum(up, down))

    def lowest(self, alpha: float) -> float:
        """The lowest objective over all faces: each weight at 0, at a bound, or free with a sign."""
        (G,), (c,), _ = self.system()
        l1, l2 = self.strengths(alpha)
        best = np.inf
        for face in product(*map(self._states, range(len(c)))):
            w = np.array([0.0 if sign else end for sign, end in face])
            free = np.array([sign != 0 for sign, _ in face])
            if free.any():
                signs = np.array([sign for sign, _ in face])[free]
                right = c[free] - l1[free] * signs - G[free] @ w
                w[free] = np.linalg.lstsq(G[np.ix_(free, free)] + np.diag(l2[free]), right, rcond=1e-11)[0]
                if ((l1[free] > 0) & (w[free] * signs < 0)).any() or (w > self.upper).any() or (w < self.lower).any():
                    continue
            best = min(best, self.objective(alpha, w))
        return best

    def _states(self, j: int) -> list[tuple[int, float]]:
        ends = [(0, end) for end in {0.0, self.lower[j], self.upper[j]} if np.isfinite(end)]
        signs = [(1, 0.0)] if self.upper[j] > 0 else []
        return ends + signs + ([(-1, 0.0)] if self.lower[j] < 0 else [])


def small(rng: np.random.Generator) -> tuple[Problem, Any]:
    """A random problem of at most 4 columns, often degenerate, and four strengths in any order."""
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[:, rng.integers(d)] = X[:, rng.integers(d)] * rng.choice([1, -1, 2])
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = 0
    if rng.random() < 0.2 and d > 2:
        X[:, 2] = X[:, 0] + X[:, 1]
    if rng.random() < 0.2:
        X = np.round(X)
    y = X @ rng.normal(size=d) if rng.random() < 0.1 else X[:, 0] + rng.normal(size=n)
    bounded = rng.random((2, d)) < 0.25
    ends = rng.choice([0, 0.05, 0.3, 5], size=(2, d))
    problem = Problem.of(
        X,
        y,
        float(rng.choice([1, 1, 0.5, 0.01, 0])),
        factors=rng.choice([0, 1, 1, 1, 0.3, 2], size=d),
        lower=np.where(bounded[0], -ends[0], -np.inf),
        upper=np.where(bounded[1], ends[1], np.inf),
    )
    return problem, np.abs(problem.system()[1]).max() * rng.choice([2, 1, 0.5, 0.3, 0.1, 0.01, 1e-6, 0], size=4)


def autoregressive(rng: np.random.Generator, n: int = 400, d: int = 60, rho: float = 0.95) -> tuple[Any, Any]:
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    w = np.where(rng.random(d) < 0.3, rng.normal(size=d), 0)
    return X, X @ w + 2 * rng.normal(size=n)


def grid(problem: Problem, n: int = 30, least: float = 1e-3) -> Any:
    top = np.abs(problem.system()[1]).max() / max(problem.ratio, 0.01)
    return top * np.geomspace(1, least, n)
