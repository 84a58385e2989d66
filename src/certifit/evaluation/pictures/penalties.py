"""What a penalty does with two weights: ellipses of the loss, and the ball that the solution lies on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.evaluation.pictures.descent import contour_levels
from certifit.models.adapter import learner_of


@dataclass(frozen=True)
class BallAndEllipse:
    """The quadratic loss of two weights about its minimum, the penalised solution, and the ball through it."""

    gram: Array
    best: Array
    solution: Array
    ball: Array
    l1_ratio: float


def ball(solution: Array, l1_ratio: float, n_points: int = 361) -> Array:
    """Weights with the penalty of `solution`: l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2 is constant, n_points x 2."""
    level = l1_ratio * np.abs(solution).sum() + (1 - l1_ratio) * solution @ solution / 2
    angle = np.linspace(0, 2 * np.pi, n_points)
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    a, b = (1 - l1_ratio) / 2, l1_ratio * np.abs(unit).sum(axis=1)
    radius = level / b if a == 0 else (np.sqrt(b * b + 4 * a * level) - b) / (2 * a)
    return np.asarray(unit * radius[:, None])


class PenaltyDisplay:
    """Ellipses of equal mean squared error of two weights, and the ball of the penalty that they touch.

    Attributes after `plot`: `ax_`, `figure_`, `contours_`, `ball_`, `marks_`.
    """

    def __init__(self, parts: BallAndEllipse, name: str = "penalised") -> None:
        self.parts, self.name = parts, name

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, *, ax: Any = None) -> PenaltyDisplay:
        """Draw a fitted Ridge, Lasso or ElasticNet of two columns, with an intercept."""
        x = np.asarray(X, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != 2:
            raise ValueError(f"A ball is drawn of two weights. Got rows of shape {x.shape}.")
        ratios = {"Ridge": 0.0, "Lasso": 1.0, "ElasticNet": model.get_params().get("l1_ratio", 0.0)}
        name = learner_of(model).name
        if name not in ratios:
            raise TypeError(f"A ball is drawn of Ridge, Lasso or ElasticNet. Got {name}.")
        ratio = float(ratios[name])
        centred, target = x - x.mean(axis=0), np.asarray(y, dtype=np.float64) - np.mean(y)
        gram = centred.T @ centred / len(x)
        best = np.linalg.solve(gram, centred.T @ target / len(x))
        solution = np.asarray(model.coef_, dtype=np.float64).reshape(2)
        parts = BallAndEllipse(gram, best, solution, ball(solution, ratio), ratio)
        return cls(parts, name).plot(ax)

    def plot(self, ax: Any = None) -> PenaltyDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "PenaltyDisplay")
        parts = self.parts
        reach = 1.3 * max(np.abs(parts.ball).max(), np.abs(parts.best).max())
        places = np.linspace(-reach, reach, 161)
        shift = np.stack(np.meshgrid(places, places), axis=-1) - parts.best
        loss = np.einsum("...i,ij,...j->...", shift, parts.gram, shift) / 2
        at = parts.solution - parts.best
        levels = np.unique(np.append(contour_levels(loss, 9), at @ parts.gram @ at / 2))
        self.contours_ = ax.contour(places, places, loss, levels, colors="0.75", linewidths=0.8)
        (self.ball_,) = ax.fill(*parts.ball.T, color="C0", alpha=0.2, label="ball of the penalty")
        ax.axhline(0.0, color="0.6", lw=0.6)
        ax.axvline(0.0, color="0.6", lw=0.6)
        self.marks_ = [
            ax.plot(*parts.best, "x", color="C3", label="least squares")[0],
            ax.plot(*parts.solution, "o", color="C0", label=self.name)[0],
        ]
        ax.set(xlabel="weight of x0", ylabel="weight of x1", aspect="equal")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
