"""Lasso and elastic net problems with more columns than rows, and what the compiled core says about them.

minimise  sum_i w_i (y_i - b - x_i'v)^2 / (2 W) + alpha sum_j f_j (ratio |v_j| + (1 - ratio)/2 v_j^2)
over v, b with lower <= v <= upper
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet

TOL = 1e-11


@dataclass
class Problem:
    X: Any
    y: Any
    weight: Any = None
    fit_intercept: bool = True
    ratio: float = 1.0
    factor: Any = None
    lower: Any = None
    upper: Any = None

    @property
    def n_columns(self) -> int:
        return self.X.shape[1]

    @property
    def columns(self) -> tuple[Any, ...]:
        if not sp.issparse(self.X):
            return ("dense", np.asfortranarray(self.X, dtype=np.float64))
        X = sp.csc_array(self.X)
        X.sum_duplicates()
        return ("csc", X.data.astype(np.float64), X.indices, X.indptr, X.shape[0])

    @property
    def omega(self) -> Any:
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return weight / weight.sum()

    def penalties(self, alpha: float) -> tuple[Any, Any]:
        factor = np.ones(self.n_columns) if self.factor is None else self.factor
        return alpha * self.ratio * factor, alpha * (1 - self.ratio) * factor

    def bounds(self) -> tuple[Any, Any]:
        none = np.full(self.n_columns, np.inf)
        return (-none if self.lower is None else self.lower), (none if self.upper is None else self.upper)

    def residual(self, weights: Any, intercept: float) -> Any:
        return self.y - intercept - self.X @ weights

    def objective(self, alpha: float, weights: Any, intercept: float) -> float:
        l1, l2 = self.penalties(alpha)
        r = self.residual(weights, intercept)
        return float(0.5 * self.omega @ r**2 + l1 @ np.abs(weights) + 0.5 * l2 @ weights**2)

    def violation(self, alpha: float, weights: Any, intercept: float) -> float:
        """The farthest that a slope is from the subdifferential of its penalty, relative to |x_j| |y|."""
        l1, l2 = self.penalties(alpha)
        lower, upper = self.bounds()
        assert (weights >= lower).all() and (weights <= upper).all()
        r, X = self.residual(weights, intercept), self.X.toarray() if sp.issparse(self.X) else self.X
        slope = X.T @ (self.omega * r) - l2 * weights
        low = np.where(weights > 0, l1, -l1)  # of the subdifferential
        high = np.where(weights < 0, -l1, l1)
        short, beyond = np.maximum(low - slope, 0), np.maximum(slope - high, 0)
        short, beyond = np.where(weights == lower, 0, short), np.where(weights == upper, 0, beyond)
        size = np.sqrt(self.omega @ X**2 * (self.omega @ self.y**2)) + 1e-300
        rows = abs(self.omega @ r) / np.sqrt(self.omega @ self.y**2) if self.fit_intercept else 0.0
        return float(max((np.maximum(short, beyond) / size).max(), rows))

    def options(self) -> tuple[Any, ...]:
        return self.columns, self.y, self.weight, self.fit_intercept

    def limits(self) -> tuple[Any, ...]:
        return self.ratio, self.factor, self.lower, self.upper

    def path(self, core: Any, alphas: Any, tol: float = TOL, max_iter: int = 100_000, threads: int = 2) -> Any:
        alphas = np.asarray(alphas, dtype=np.float64)
        return core.wide_lasso_path(*self.options(), alphas, *self.limits(), tol, max_iter, threads)

    def solve(self, core: Any, alpha: float, tol: float = TOL) -> tuple[Any, float, Any]:
        found = self.path(core, [alpha], tol)
        return weights_of(found, 0, self.n_columns), found["intercepts"][0], found

    def alpha_max(self, core: Any) -> float:
        return core.wide_alpha_max(*self.options(), *self.limits(), 2)

    def gap(self, core: Any, alpha: float, weights: Any, intercept: float) -> tuple[float, float, float]:
        [columns] = np.nonzero(weights)
        return core.wide_lasso_gap(*self.options(), alpha, *self.limits(), columns, weights[columns], intercept, 1)


def weights_of(found: Any, number: int, n_columns: int) -> Any:
    place = slice(*found["offsets"][number : number + 2])
    weights = np.zeros(n_columns)
    weights[found["columns"][place]] = found["weights"][place]
    return weights


def made(rng: np.random.Generator, n_rows: int = 40, n_columns: int = 150, density: float = 1.0) -> Problem:
    X = rng.normal(size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    X[:, 1:] += 0.5 * X[:, :-1]
    truth = np.where(np.arange(n_columns) % 15 == 0, 2.0, 0.0)
    return Problem(X + (0.3 if density == 1 else 0), X @ truth + rng.normal(size=n_rows) + 1.5)


def _factors(rng: np.random.Generator, problem: Problem) -> Problem:
    factor = rng.random(problem.n_columns) + 0.2
    factor[[3, 30, 77]] = 0.0
    return replace(problem, factor=factor)


def _bounds(rng: np.random.Generator, problem: Problem) -> Problem:
    lower, upper = -rng.random(problem.n_columns), rng.random(problem.n_columns)
    lower[::3], upper[1::3] = 0.0, np.inf
    return replace(problem, lower=lower, upper=upper)


VARIANTS = {
    "lasso": lambda rng, p: p,
    "no intercept": lambda rng, p: replace(p, fit_intercept=False),
    "weighted": lambda rng, p: replace(p, weight=rng.random(len(p.y)) * (rng.random(len(p.y)) < 0.9)),
    "elastic net": lambda rng, p: replace(p, ratio=0.5),
    "nearly ridge": lambda rng, p: replace(p, ratio=0.02),
    "factors": _factors,
    "factors and ridge": lambda rng, p: replace(_factors(rng, p), ratio=0.7),
    "bounds": _bounds,
    "bounds and ridge": lambda rng, p: replace(_bounds(rng, p), ratio=0.7),
    "not negative": lambda rng, p: replace(p, lower=np.zeros(p.n_columns)),
    "free within bounds": lambda rng, p: _bounds(rng, _factors(rng, p)),
    "sparse": lambda rng, p: replace(p, X=sp.csc_array(p.X * (rng.random(p.X.shape) < 0.2))),
    "sparse and weighted": lambda rng, p: replace(
        p, X=sp.csc_array(p.X * (rng.random(p.X.shape) < 0.2)), weight=rng.random(len(p.y))
    ),
    "duplicates": lambda rng, p: replace(p, X=p.X[:, rng.integers(0, 50, size=p.n_columns)]),
    "far from zero": lambda rng, p: replace(p, X=p.X + 1e4, y=p.y - 1e4),
}


def scikit_learn(problem: Problem, alpha: float) -> tuple[Any, float]:
    model = ElasticNet(
        alpha=alpha, l1_ratio=problem.ratio, fit_intercept=problem.fit_intercept, tol=1e-14, max_iter=1_000_000
    )
    model.fit(problem.X, problem.y, sample_weight=problem.weight)
    return model.coef_, model.intercept_
