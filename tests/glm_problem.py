"""Rows, targets and tasks of generalised linear models, for tests of solvers and certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.source import Memory
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog, TweedieLog
from certifit.mathematics.losses.scores import Logistic, Squared
from certifit.models.glm.task import GlmTask
from certifit.models.lasso.task import Strengths

LOSSES = {
    "logistic": Logistic(),
    "poisson": PoissonLog(),
    "gamma": GammaLog(),
    "squared": Squared(),
    "tweedie": TweedieLog(1.5),
}


@dataclass(frozen=True)
class Rows:
    """What a model is fitted to."""

    X: Any
    y: Any
    weight: Any
    offset: Any


def drawn(name: str, rng: np.random.Generator, n: int = 400, d: int = 4) -> Rows:
    """Rows whose target follows the law that the loss belongs to; columns of unlike size and place."""
    X = rng.normal(size=(n, d)) * np.geomspace(0.1, 10, d) + np.linspace(-1, 5, d)
    offset = rng.normal(size=n) / 4
    z = offset + (X - X.mean(axis=0)) @ (rng.normal(size=d) / np.geomspace(0.1, 10, d) / 2) - 0.3
    mu = np.exp(z)
    targets = {
        "logistic": lambda: (rng.random(n) < 1 / (1 + np.exp(-z))).astype(float),
        "poisson": lambda: rng.poisson(mu).astype(float),
        "gamma": lambda: rng.gamma(2.0, mu / 2),
        "squared": lambda: z + rng.normal(size=n),
        "tweedie": lambda: np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2.0, mu / 2)),
    }
    return Rows(X, targets[name](), rng.integers(1, 4, n).astype(float), offset)


def task_of(name: str, rows: Rows, alpha: float = 0.0, fit_intercept: bool = True) -> GlmTask:
    """The task of these rows with a ridge penalty."""
    d = rows.X.shape[1]
    strengths = Strengths(alpha, 0.0, np.ones(d), np.full(d, -np.inf), np.full(d, np.inf))
    source = Memory(rows.X, rows.y, rows.weight, offset=rows.offset)
    return GlmTask(source, LOSSES[name], strengths, fit_intercept)
