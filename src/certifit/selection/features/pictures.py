"""The path of a selection: score against the number of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit.evaluation.pictures import Band, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED = 25  # steps whose features fit below the axis
_LONGEST = 18  # letters of a name


class SelectionPathDisplay:
    """Mean score with a band of one standard error against the number of features; the chosen number is marked.

    Parameters
    ----------
    n_features, mean_score, standard_error, train_score : one number per step
    changes : the feature added or dropped at each step; None for the subset at the start
    chosen : the number of features that was chosen
    change : "added" or "dropped"
    score_name : what the score is called

    Attributes after `plot`: `ax_`, `figure_`, `line_`, `band_`, `train_line_`, `chosen_` (the mark).
    """

    def __init__(
        self,
        n_features: Any,
        mean_score: Any,
        standard_error: Any,
        train_score: Any,
        changes: list[str | None],
        chosen: int,
        *,
        change: str = "added",
        score_name: str = "score",
    ) -> None:
        self.n_features = np.asarray(n_features)
        self.mean_score = np.asarray(mean_score, dtype=np.float64)
        self.standard_error = np.asarray(standard_error, dtype=np.float64)
        self.train_score = np.asarray(train_score, dtype=np.float64)
        self.changes = list(changes)
        self.chosen = int(chosen)
        self.change = change
        self.score_name = score_name

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, ax: Axes | None = None) -> SelectionPathDisplay:
        """Draw the path of a fitted ForwardSelection or BackwardSelection."""
        if not hasattr(estimator, "steps_frame"):
            raise TypeError(f"A fitted ForwardSelection or BackwardSelection is needed. Got {estimator!r}.")
        if not hasattr(estimator, "steps_"):
            raise ValueError(f"{type(estimator).__name__} is not fitted, so it has no path. Call fit first.")
        steps = estimator.steps_
        return cls(
            [step.n_features for step in steps],
            [step.mean_score for step in steps],
            [step.standard_error for step in steps],
            [step.train_score for step in steps],
            [step.change for step in steps],
            estimator.n_features_,
            change=estimator.change,
            score_name=estimator.scoring if isinstance(estimator.scoring, str) else "score",
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> SelectionPathDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "SelectionPathDisplay")
        n, mean, error = self.n_features, self.mean_score, self.standard_error
        self.line_ = ax.plot(n, mean, "o-", color="C0", markersize=4, label="validation rows, mean over folds")[0]
        band = Band.of(n, mean, error)
        self.band_ = ax.fill_between(
            band.x, band.low, band.high, color="C0", alpha=0.2, lw=0, label="one standard error"
        )
        self.train_line_ = ax.plot(n, self.train_score, "--", color="C1", lw=1, label="training rows")[0]
        at = int(np.flatnonzero(n == self.chosen)[0])
        best = int(mean.argmax())
        ax.axhline(mean[best] - error[best], color="0.5", ls=":", lw=1, label="one standard error below the best")
        self.chosen_ = ax.plot(
            n[at], mean[at], "o", color="C3", markersize=9, zorder=3, label=f"chosen: {self.chosen}"
        )[0]
        self._name_steps(ax)
        ax.set(ylabel=f"{self.score_name} (higher is better)")
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _name_steps(self, ax: Axes) -> None:
        """Numbers below the axis, with the features where they are few."""
        from matplotlib.ticker import MaxNLocator

        if len(self.n_features) > _NAMED:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.set_xlabel("number of features")
            return
        sign = {"added": "+", "dropped": "\N{MINUS SIGN}"}[self.change]
        names = ["" if name is None else f"{sign} {_short(name)}" for name in self.changes]
        is_upright = max(map(len, names)) > 8 or len(names) > 12
        form = "{1}  {0}" if is_upright else "{0}\n{1}"
        labels = [form.format(n, name) for n, name in zip(self.n_features, names, strict=True)]
        ax.set_xticks(self.n_features, labels, rotation=90 if is_upright else 0)
        ax.set_xlabel(f"number of features, and the one {self.change} to get there")


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
