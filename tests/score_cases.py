"""Rows for losses of scores, and their objective and slopes in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.source import Memory
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, ScoreLoss, Squared
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths
from certifit.models.least_squares.normal_equations import Weights

LOSSES = [Logistic(), PoissonLog(), GammaLog(), Squared(), TweedieLog(1.5)]


@dataclass
class Case:
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    offset: np.ndarray
    loss: ScoreLoss
    strengths: Strengths
    fit_intercept: bool

    def task(self) -> GlmTask:
        source = Memory(self.X, self.y, self.weight, None, self.offset)
        return GlmTask(source, self.loss, self.strengths, self.fit_intercept)

    def scores(self, state: Weights) -> np.ndarray:
        return self.offset + state.intercept + self.X @ state.coef

    def objective(self, state: Weights) -> float:
        s, w = self.strengths, state.coef
        loss = self.weight @ self.loss.value(self.y, self.scores(state)) / self.weight.sum()
        return float(loss + s.alpha * s.factors @ (s.l1_ratio * np.abs(w) + (1 - s.l1_ratio) / 2 * w**2))

    def slopes(self, state: Weights) -> tuple[np.ndarray, float]:
        """Derivatives of the loss and the l2 penalty by the coefficients, and by the intercept."""
        s, each = self.strengths, self.weight * self.loss.slope(self.y, self.scores(state)) / self.weight.sum()
        return self.X.T @ each + s.alpha * (1 - s.l1_ratio) * s.factors * state.coef, float(each.sum())

    def broken(self, state: Weights) -> float:
        """The largest violation of the conditions of a minimum."""
        s, w = self.strengths, state.coef
        assert ((w >= s.lower) & (w <= s.upper)).all()
        slope, level = self.slopes(state)
        l1 = s.alpha * s.l1_ratio * s.factors
        up = np.where(w < s.upper, -slope - np.where(w >= 0, l1, -l1), -np.inf)
        down = np.where(w > s.lower, slope - np.where(w <= 0, l1, -l1), -np.inf)
        worst = max(float(np.max(up)), float(np.max(down)), 0.0)
        return max(worst, abs(level)) if self.fit_intercept else worst


def case(
    loss: ScoreLoss,
    seed: int,
    n: int = 300,
    d: int = 12,
    alpha: float = 0.05,
    l1_ratio: float = 1.0,
    bounds: bool = False,
    free: int = 0,
    plain: bool = False,
    fit_intercept: bool = True,
) -> Case:
    """Rows whose first columns matter; free: columns at the end without a penalty; plain: no weights and offsets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d) * 0.5) + rng.normal(size=d)
    w = np.where(np.arange(d) < 4, rng.normal(size=d), 0.0) * 0.4
    weight = np.ones(n) if plain else rng.integers(0, 4, size=n) * rng.uniform(0.5, 1.0, size=n)
    offset = np.zeros(n) if plain else rng.normal(size=n) * 0.3
    z = offset + (X - X.mean(axis=0)) @ w + 0.3
    mean = np.exp(np.clip(z, -4, 4))
    y = {
        Logistic: lambda: (rng.uniform(size=n) < 1 / (1 + np.exp(-z))).astype(float),
        PoissonLog: lambda: rng.poisson(mean).astype(float),
        GammaLog: lambda: rng.gamma(2.0, mean / 2) + 1e-3,
        Squared: lambda: z + rng.normal(size=n),
        TweedieLog: lambda: rng.poisson(mean) * rng.gamma(2.0, 0.5, size=n),
    }[type(loss)]()
    factors = rng.uniform(0.5, 2.0, size=d)
    factors[d - free :] = 0.0
    lower, upper = np.full(d, -np.inf), np.full(d, np.inf)
    if bounds:
        lower[:d:3], upper[1:d:3], lower[2:d:3], upper[2:d:3] = 0.0, 0.1, -0.05, 0.05
    return Case(X, y, weight, offset, loss, Strengths(alpha, l1_ratio, factors, lower, upper), fit_intercept)
