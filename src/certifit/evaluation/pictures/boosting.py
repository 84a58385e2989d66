"""The rounds of boosting: AdaBoost's error under its bound, losses on rows held out; and the margins of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.user_input import predict_rows
from certifit.evaluation.pictures import new_axes
from certifit.models.adapter import learner_of, sections_of

ROUNDS = {  # columns of a history that are drawn, and their names; the first one that is there names the axis
    "training_error": "training error",
    "bound": "bound on it",
    "loss": "loss on the rows of the fit",
    "held_out_loss": "loss on rows held out",
}


def drawn_rounds(history: Any) -> dict[str, list[float]]:
    """Lines over the rounds of boosting, by name; of more than two classes AdaBoost has no bound."""
    rows = list(history)
    lines = {name: [float(row.get(key, np.nan)) for row in rows] for key, name in ROUNDS.items()}
    return {name: values for name, values in lines.items() if rows and np.isfinite(values).all()}


class BoostingDisplay:
    """What boosting reached after every round: AdaBoost's training error under its bound, or losses.

    Parameters
    ----------
    error, bound : per round; bound is None where there is none
    test_error : per round on rows that the fit did not see, or None
    what : error is, for the axis

    Attributes after `plot`: `ax_`, `figure_`, `lines_` (by name).
    """

    def __init__(
        self, error: Any, bound: Any = None, test_error: Any = None, what: str = "share of wrong rows"
    ) -> None:
        self.what = what
        self.error = np.asarray(error, dtype=np.float64)
        self.bound = None if bound is None else np.asarray(bound, dtype=np.float64)
        self.test_error = None if test_error is None else np.asarray(test_error, dtype=np.float64)

    @classmethod
    def from_estimator(cls, model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> BoostingDisplay:
        """Draw the rounds of a fitted AdaBoostClassifier or GradientBoosting*.

        X and y, rows that AdaBoost did not see, add their error; gradient boosting has the loss of the rows that it
        held out itself (early_stopping=True).
        """
        check_is_fitted(model)
        lines = drawn_rounds(model.history_)
        if "training error" in lines:
            test = None if X is None else [np.mean(said != np.asarray(y)) for said in model.staged_predict(X)]
            return cls(lines["training error"], lines.get("bound on it"), test).plot(ax)
        if "rounds" not in sections_of(model) or X is not None:
            _refuse_other(model)
        return cls(lines[ROUNDS["loss"]], None, lines.get(ROUNDS["held_out_loss"]), "mean loss").plot(ax)

    def plot(self, ax: Any = None) -> BoostingDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "BoostingDisplay")
        rounds = np.arange(1, len(self.error) + 1)
        is_error = self.what == "share of wrong rows"
        names = ("training error", "error on other rows") if is_error else (ROUNDS["loss"], ROUNDS["held_out_loss"])
        self.lines_ = {"error": ax.step(rounds, self.error, where="mid", label=names[0], color="C0")[0]}
        if self.bound is not None:
            self.lines_["bound"] = ax.plot(rounds, self.bound, label="bound on it", color="0.4", ls="--")[0]
        if self.test_error is not None:
            self.lines_["test"] = ax.plot(rounds, self.test_error, label=names[1], color="C1")[0]
        ax.set(xlabel="round", ylabel=self.what, ylim=(0, None) if is_error else (None, None))
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _refuse_other(model: Any) -> None:
    check_is_fitted(model)
    if learner_of(model).name != "AdaBoostClassifier" or not learner_of(model).is_ours:
        raise TypeError(f"{type(model).__name__} is no AdaBoostClassifier of certifit.")


def vote_margins(model: Any, X: Any, y: Any, n_rounds: int | None = None) -> Array:
    """(vote for the class of the row - best other vote) / all votes, after some rounds: from -1 to 1."""
    check_is_fitted(model)
    vote = model.vote_ if n_rounds is None else model.vote_.part(0, int(n_rounds))
    block = predict_rows(model, X)
    votes = vote.votes(replace(block, X=model.columns_of(block), y=None, weight=None), len(model.classes_))[0]
    own = np.searchsorted(model.classes_, np.asarray(y))
    rows = np.arange(len(own))
    others = votes.copy()
    others[rows, own] = -np.inf
    return np.asarray((votes[rows, own] - others.max(axis=1)) / vote.alpha.sum())


class MarginDisplay:
    """The share of rows whose margin is at most x, after some numbers of rounds.

    Parameters
    ----------
    margins : {rounds: margins of the rows}
    best_margin : above which no vote over stumps has its smallest margin, or None

    Attributes after `plot`: `ax_`, `figure_`, `lines_` (by number of rounds).
    """

    def __init__(self, margins: dict[int, Array], best_margin: float | None = None) -> None:
        self.margins, self.best_margin = margins, best_margin

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, rounds: tuple[int, ...] = (), ax: Any = None
    ) -> MarginDisplay:
        """Draw the margins of rows after all rounds of a fitted AdaBoostClassifier, and after those named."""
        _refuse_other(model)
        numbers = sorted({*rounds, model.vote_.n_rounds})
        margins = {n: vote_margins(model, X, y, n) for n in numbers}
        return cls(margins, model.certificate_.best_margin).plot(ax)

    def plot(self, ax: Any = None) -> MarginDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "MarginDisplay")
        self.lines_ = {}
        for n, margins in self.margins.items():
            values = np.sort(margins)
            shares = np.arange(1, len(values) + 1) / len(values)
            label = f"{n} round" if n == 1 else f"{n} rounds"
            self.lines_[n] = ax.step(values, shares, where="post", label=label)[0]
        if self.best_margin is not None:
            label = "no vote has all margins above"
            ax.axvline(self.best_margin, color="0.4", ls=":", label=label)
        ax.axvline(0.0, color="0.8", lw=1, zorder=0)
        ax.set(xlabel="margin of a row", ylabel="share of rows with at most this margin", xlim=(-1.02, 1.02))
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self
