"""Contours of a function of two variables: the ways of several solvers on them, and the ball of a penalty.

Of a function of one variable, the tangents of Newton's method.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.minimise.function import derivatives
from certifit.minimise.minimum import minimize
from certifit.models.adapter import learner_of

Function = Callable[[Array], float]
_LEVELS = 14
_MOST_STEPS = 20


def steps_of(f: Function, start: Any, method: Any, max_iter: int, **known: Any) -> Array:
    """Every point of a run of `minimize`, the start first."""
    points = [np.asarray(start, dtype=np.float64)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a picture of few steps is meant to stop early
        minimize(f, points[0], method, max_iter=max_iter, callback=lambda row, x: points.append(np.array(x)), **known)
    return _visible_steps(np.array(points))


def _visible_steps(points: Array) -> Array:
    """Without the steps at the end that are too short to be seen, and without a start that comes twice."""
    far = np.abs(points - points[-1]).max(axis=1) > 1e-6 * np.ptp(points, axis=0).max()
    last = int(np.flatnonzero(far)[-1]) + 2 if far.any() else 1
    return points[1 if len(points) > 1 and (points[0] == points[1]).all() else 0 : last]


def contour_values(f: Function, across: Array, up: Array) -> Array:
    """f on the grid, up x across."""
    return np.array([[float(f(np.array([a, b]))) for a in across] for b in up])


def contour_levels(values: Array, count: int = _LEVELS) -> Array:
    """Levels that grow like squares above the lowest value: rings of about equal width round a minimum."""
    finite = values[np.isfinite(values)]
    low, high = finite.min(), finite.max()
    return np.asarray(low + (high - low) * (np.arange(1, count + 1) / (count + 1)) ** 2)


class DescentDisplay:
    """The ways of solvers over the contours of a function of two unknowns.

    Parameters
    ----------
    across, up : places of the grid
    values : of the function, of shape (up, across)
    ways : {name: points}, an array of shape (steps, 2) per solver, the start first
    names : of the two unknowns

    Attributes after `plot`: `ax_`, `figure_`, `contours_`, `lines_`.
    """

    def __init__(
        self, across: Any, up: Any, values: Any, ways: Mapping[str, Any], names: tuple[str, str] = ("w0", "w1")
    ) -> None:
        self.across, self.up, self.values = (np.asarray(part, dtype=np.float64) for part in (across, up, values))
        self.ways = {name: np.asarray(points, dtype=np.float64) for name, points in ways.items()}
        self.names = names

    @classmethod
    def from_function(
        cls,
        f: Function,
        start: Any,
        methods: Mapping[str, Any],
        *,
        gradient: Any = None,
        hessian: Any = None,
        max_iter: int = 30,
        grid_points: int = 80,
        ax: Any = None,
    ) -> DescentDisplay:
        """Run `cf.minimize` by each method (a name or an instance such as `GradientDescent(step=0.1)`) and draw."""
        known = {"gradient": gradient, "hessian": hessian}
        ways = {name: steps_of(f, start, method, max_iter, **known) for name, method in methods.items()}
        return cls.from_ways(f, ways, grid_points=grid_points, ax=ax)

    @classmethod
    def from_ways(
        cls,
        f: Function,
        ways: Mapping[str, Any],
        *,
        names: tuple[str, str] = ("w0", "w1"),
        grid_points: int = 80,
        ax: Any = None,
    ) -> DescentDisplay:
        """Draw points that are known, such as `weights_` of models whose solver has `record="weights"`."""
        points = np.vstack([np.asarray(way, dtype=np.float64) for way in ways.values()])
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(f"A way is drawn over two unknowns. Got points of {points.shape[-1]} numbers.")
        points = points[np.isfinite(points).all(axis=1)]
        low, high = points.min(axis=0), points.max(axis=0)
        room = 0.25 * np.maximum(high - low, 1e-9)
        across, up = (np.linspace(low[j] - room[j], high[j] + room[j], grid_points) for j in range(2))
        return cls(across, up, contour_values(f, across, up), ways, names).plot(ax)

    def plot(self, ax: Any = None) -> DescentDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "DescentDisplay")
        levels = np.unique(contour_levels(self.values))
        self.contours_ = ax.contour(self.across, self.up, self.values, levels, colors="0.75", linewidths=0.8)
        self.lines_ = []
        for name, points in self.ways.items():
            self.lines_ += ax.plot(
                points[:, 0], points[:, 1], "o-", ms=3, lw=1.2, label=f"{name}: {len(points) - 1} steps"
            )
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.set(xlim=(self.across[0], self.across[-1]), ylim=(self.up[0], self.up[-1]))
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class NewtonDisplay:
    """Newton's method for f(x) = 0 in one unknown: each tangent leads to the next point.

    Parameters
    ----------
    x, f : the curve
    points, values : every step and f there, the start first

    Attributes after `plot`: `ax_`, `figure_`, `curve_`, `tangents_`, `marks_`.
    """

    def __init__(self, x: Any, f: Any, points: Any, values: Any) -> None:
        self.x, self.f, self.points, self.values = (
            np.asarray(part, dtype=np.float64) for part in (x, f, points, values)
        )

    @classmethod
    def from_function(
        cls, f: Callable[[Any], Any], x0: float, jacobian: Any = None, *, ax: Any = None
    ) -> NewtonDisplay:
        """Draw plain steps x - f(x) / f'(x) from x0, at most 20; `cf.find_zero` shortens steps that go astray."""
        slope = jacobian or (lambda x: float(np.asarray(derivatives(f, x).gradient, dtype=np.float64)))
        steps = [float(x0)]
        while len(steps) <= _MOST_STEPS and abs(float(f(steps[-1]))) > 0:
            after = steps[-1] - float(f(steps[-1])) / float(slope(steps[-1]))
            if not np.isfinite(after) or abs(after - steps[-1]) <= 1e-12 * max(1.0, abs(after)):
                break
            steps.append(after)
        room = 0.15 * (max(steps) - min(steps) or 1.0)
        x = np.linspace(min(steps) - room, max(steps) + room, 200)
        values = [float(f(place)) for place in x]
        return cls(x, values, steps, [float(f(point)) for point in steps]).plot(ax)

    def plot(self, ax: Any = None) -> NewtonDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "NewtonDisplay")
        (self.curve_,) = ax.plot(self.x, self.f, color="C0", lw=1.8, label="f")
        ax.axhline(0.0, color="0.4", lw=0.8)
        self.tangents_ = []
        for point, value, after in zip(self.points, self.values, self.points[1:], strict=False):
            self.tangents_ += ax.plot([point, after], [value, 0.0], color="C1", lw=1.1)
            ax.plot([point, point], [0.0, value], color="0.6", lw=0.8, ls=":")
        self.marks_ = ax.scatter(self.points, np.zeros_like(self.points), s=18, color="C1", zorder=3, label="steps")
        for k, point in enumerate(self.points[:4]):
            ax.annotate(
                f"x{k}", (point, 0.0), xytext=(0, -12), textcoords="offset points", fontsize="small", ha="center"
            )
        ax.set(xlabel="x", ylabel="f(x)")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
