"""Support vector machines: the street between two classes, what alpha does to it, and the steps of SMO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes
from certifit.evaluation.pictures.boundary import BoundaryDisplay

EDGES = (-1.0, 1.0)  # of the street: b + f(x) there


class SupportVectorDisplay(BoundaryDisplay):
    """The street of a support vector machine over two columns: b + f(x) = -1, 0 and 1, support vectors ringed.

    Rows between the edges have slack. Drawn over all columns of the fit where it has two; else the others are held, and
    support vectors may lie off the street that is drawn.

    Parameters
    ----------
    as for BoundaryDisplay; support : places of the support vectors among the points, None rings none

    Attributes after `plot`: those of BoundaryDisplay; `edges_`, the contours at -1 and 1; `rings_`.
    """

    def __init__(self, *parts: Any, support: Any = None, **more: Any) -> None:
        super().__init__(*parts, **more)
        self.support = None if support is None else np.asarray(support, dtype=np.int64)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        columns: tuple[Any, Any] = (0, 1),
        grid_points: int = 200,
        ax: Any = None,
    ) -> SupportVectorDisplay:
        """Score a grid over two columns of X and draw; y, the labels of the rows of the fit, adds them and their rings.

        estimator: a fitted SVC or HardMarginSVC of two classes, ours or scikit-learn's.
        """
        check_is_fitted(estimator)
        try:
            support, classes = np.asarray(estimator.support_), estimator.classes_
        except AttributeError:
            support, classes = np.empty(0, dtype=np.int64), ()
        if len(classes) != 2:
            raise TypeError(
                f"SupportVectorDisplay draws a support vector machine of two classes. Got {type(estimator).__name__}."
            )
        if y is not None and len(np.asarray(y)) <= support.max(initial=-1):
            raise ValueError("X and y must be the rows of the fit: a support vector lies beyond their last row.")
        display = super().from_estimator(estimator, X, y, columns=columns, grid_points=grid_points, ax=ax)
        assert isinstance(display, SupportVectorDisplay)
        display.support = None if y is None else support
        display._ring()
        return display

    def plot(self, ax: Any = None) -> SupportVectorDisplay:
        """Draw on `ax`, or on a new figure."""
        super().plot(new_axes(ax, "SupportVectorDisplay"))
        lead = self.margins[1]
        levels = [edge for edge in EDGES if lead.min() < edge < lead.max()]
        style = {"colors": "0.2", "linewidths": 0.9, "linestyles": "dashed"}
        self.edges_ = self.ax_.contour(self.across, self.up, lead, levels, **style) if levels else None
        self._ring()
        return self

    def _ring(self) -> None:
        if self.support is None or self.points is None:
            return
        ringed = self.points[self.support]
        style = {"s": 80, "facecolor": "none", "edgecolor": "0.1", "linewidth": 0.9, "label": "support vectors"}
        self.rings_ = self.ax_.scatter(ringed[:, 0], ringed[:, 1], **style)
        self.ax_.legend(fontsize="small")


@dataclass(frozen=True)
class MarginPath:
    """By alpha, ascending: 1 / |f|, half the width of the street; the share of rows that are support vectors; the share
    of rows that a fit to others puts into the wrong class."""

    alphas: Array
    widths: Array
    support: Array
    errors: Array


def margin_path(search: Any, X: Any, y: Any) -> MarginPath:
    """From a fitted search over the alphas of an SVC, each fitted once more to all rows."""
    check_is_fitted(search)
    params = list(search.cv_results_["params"])
    if not params or any(set(one) != {"alpha"} or one["alpha"] is None for one in params):
        raise ValueError('The search must be over "alpha" alone, numbers: CrossValidated(SVC(), {"alpha": [...]}).')
    order = np.argsort([float(one["alpha"]) for one in params], kind="stable")
    widths, support = [], []
    for place in order:
        model = clone(search.estimator).set_params(**params[place]).fit(X, y)
        if len(model.classes_) != 2:
            raise ValueError(f"The street is that of two classes, and y has {len(model.classes_)}.")
        square = float(model.dual_coef_[:, 0] @ (model.decision_function(X)[model.support_] - model.intercept_[0]))
        widths.append(1 / np.sqrt(square) if square > 0 else np.inf)
        support.append(len(model.support_) / len(np.asarray(y)))
    alphas = np.array([float(params[place]["alpha"]) for place in order])
    errors = 1 - np.asarray(search.cv_results_["mean_test_score"], dtype=np.float64)[order]
    return MarginPath(alphas, np.array(widths), np.array(support), errors)


class AlphaMarginDisplay:
    """What alpha does to a support vector machine: a larger one widens the street and puts more rows into it.

    Parameters
    ----------
    path : what `margin_path` returns

    Attributes after `plot`: `ax_`, `figure_`, `width_` (of the street, on an axis of its own), `lines_` by name.
    """

    def __init__(self, path: MarginPath) -> None:
        self.path = path

    @classmethod
    def from_search(cls, search: Any, X: Any, y: Any, *, ax: Any = None) -> AlphaMarginDisplay:
        """A fitted CrossValidated(SVC(), {"alpha": [...]}), scored by the share of right rows, and its rows."""
        if getattr(search, "scoring", None) not in (None, "accuracy"):
            raise ValueError(f"The search must be scored by accuracy. Got {search.scoring!r}.")
        return cls(margin_path(search, X, y)).plot(ax)

    def plot(self, ax: Any = None) -> AlphaMarginDisplay:
        """Draw on `ax`, or on a new figure."""
        ax, path = new_axes(ax, "AlphaMarginDisplay"), self.path
        shares = {"wrong, of rows left out": path.errors, "support vectors": path.support}
        self.lines_ = {
            name: ax.plot(path.alphas, share, "o-", ms=4, color=f"C{k}", label=name)[0]
            for k, (name, share) in enumerate(shares.items())
        }
        beside = ax.twinx()
        self.width_ = beside.plot(path.alphas, path.widths, "s--", ms=4, color="C2", label="half width 1 / |f|")[0]
        ax.set(xscale="log", xlabel="alpha", ylabel="share of the rows", ylim=(0, None))
        beside.set(yscale="log", ylabel="half width of the street")
        ax.legend(handles=[*self.lines_.values(), self.width_], fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(frozen=True)
class PairSteps:
    """The steps of SMO: objective and dual, which never falls and never passes it, and the worst violation."""

    objective: Array
    dual: Array
    violation: Array


def pair_steps(model: Any) -> PairSteps:
    """From the history of a fitted SVC(solver="smo") of two classes."""
    check_is_fitted(model)
    try:
        history = model.history_
    except AttributeError:
        history = []
    if not any("first" in row for row in history) or {row["machine"] for row in history} != {1}:
        raise ValueError('SmoDisplay draws the history of SVC(solver="smo") of two classes.')
    return PairSteps(*(np.array([row[name] for row in history]) for name in ("objective", "dual", "violation")))


class SmoDisplay:
    """Two multipliers at a time: the dual rises, the objective comes down to it, and the worst violation shrinks.

    Parameters
    ----------
    steps : what `pair_steps` returns

    Attributes after `plot`: `ax_`, `figure_`, `lines_` by name.
    """

    def __init__(self, steps: PairSteps) -> None:
        self.steps = steps

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None) -> SmoDisplay:
        """A fitted SVC(solver="smo") of two classes."""
        return cls(pair_steps(model)).plot(ax)

    def plot(self, ax: Any = None) -> SmoDisplay:
        """Draw on `ax`, or on a new figure."""
        ax, steps = new_axes(ax, "SmoDisplay"), self.steps
        places = np.arange(len(steps.dual))
        beside = ax.twinx()
        drawn = {
            "objective": ax.plot(places, steps.objective, color="C0", label="objective")[0],
            "dual": ax.plot(places, steps.dual, color="C1", label="dual")[0],
            "violation": beside.plot(places, steps.violation, color="0.6", lw=0.9, label="worst violation")[0],
        }
        ax.set(xlabel="pairs of multipliers", ylabel="value")
        beside.set(yscale="log", ylabel="worst violation")
        ax.legend(handles=list(drawn.values()), fontsize="small")
        self.lines_, self.ax_, self.figure_ = drawn, ax, ax.figure
        return self
