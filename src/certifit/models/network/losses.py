"""Losses of a network's scores: names, the compiled formula, and the same in float64."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from certifit.data.columns import Array
from certifit.mathematics.losses.poisson_gamma_tweedie import GammaLog, PoissonLog
from certifit.mathematics.losses.scores import Logistic, ScoreLoss, Squared

FORMULAS: dict[str, ScoreLoss] = {
    "squared": Squared(),
    "full-squared": Squared(),
    "poisson": PoissonLog(),
    "gamma": GammaLog(),
    "logistic": Logistic(),
}


@dataclass(frozen=True)
class NetworkLoss:
    """A loss by name. delta: of Huber's."""

    name: str
    delta: float = 1.35

    @property
    def scale(self) -> float:
        """The squared loss without its half is twice the formula."""
        return 2.0 if self.name == "full-squared" else 1.0

    @property
    def compiled(self) -> tuple[str, int, float, float]:
        """Kind, formula, parameter and scale, as the core takes them."""
        if self.name in ("softmax", "huber"):
            return self.name, 0, self.delta, self.scale
        code = FORMULAS[self.name].code
        assert code is not None
        return "score", code, 0.0, self.scale

    @property
    def is_squared(self) -> bool:
        """Whether targets may be centred and scaled: the loss is one of y - z."""
        return self.name in ("squared", "full-squared", "huber")

    def values(self, y: Array, z: Array) -> Array:
        """The loss of every row; z rows x outputs."""
        if self.name == "softmax":
            return np.asarray(logsumexp(z, axis=1) - z[np.arange(len(z)), y.astype(np.int64)])
        if self.name == "huber":
            r = np.abs(z[:, 0] - y)
            return np.asarray(np.where(r <= self.delta, r * r / 2, self.delta * r - self.delta**2 / 2))
        return np.asarray(self.scale * FORMULAS[self.name].value(y, z[:, 0]))

    def slopes(self, y: Array, z: Array) -> Array:
        """Derivatives by the scores, rows x outputs."""
        if self.name == "softmax":
            p = np.asarray(softmax(z, axis=1))
            p[np.arange(len(z)), y.astype(np.int64)] -= 1.0
            return p
        if self.name == "huber":
            return np.asarray(np.clip(z - y[:, None], -self.delta, self.delta))
        return np.asarray(self.scale * FORMULAS[self.name].slope(y, z[:, 0]))[:, None]

    def illegal(self, y: Array) -> str:
        """What is wrong with targets, or nothing."""
        if self.name not in ("poisson", "gamma"):
            return ""
        formula = FORMULAS[self.name]
        bad = np.flatnonzero(~formula.is_legal(y))
        return f"loss={self.name!r} needs {formula.legal}. Row {int(bad[0])} is not." if len(bad) else ""
