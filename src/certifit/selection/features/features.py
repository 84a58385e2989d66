"""Features and steps of a selection: what is added or dropped at once, and the table of subsets that were visited.

A feature is a column, or a group of columns that go together.

The path of a selection: score against the number of features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit.data.columns import Array
from certifit.data.roles import refuse_unknown
from certifit.data.user_input import UserLabels
from certifit.evaluation.pictures import Band, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame


@dataclass(frozen=True)
class Feature:
    """Columns of X that go together. columns: their places in X."""

    name: str
    columns: tuple[int, ...]


def features_of(names: Sequence[str], groups: UserLabels) -> list[Feature]:
    """One feature per group, one per column that is in no group, in the order of their first columns."""
    features = []
    owner: dict[int, str] = {}
    for name, members in _groups(names, groups):
        columns = sorted({place_of(member, names) for member in members})
        if not columns:
            raise ValueError(f"Group {name!r} has no columns.")
        for column in columns:
            if column in owner:
                raise ValueError(f"Column {names[column]!r} is in two groups, {owner[column]!r} and {name!r}.")
            owner[column] = name
        features.append(Feature(name, tuple(columns)))
    features += [Feature(name, (column,)) for column, name in enumerate(names) if column not in owner]
    features.sort(key=lambda feature: feature.columns)
    if repeated := sorted(name for name, count in Counter(member.name for member in features).items() if count > 1):
        raise ValueError(f"Groups and columns need names of their own. {repeated} stand for more than one.")
    return features


def fixed_of(features: Sequence[Feature], names: Sequence[str], fixed: Any) -> list[int]:
    """Places among the features of those that are always in; a column of a group stands for the group."""
    if isinstance(fixed, str) or not isinstance(fixed, Sequence | set | frozenset | np.ndarray):
        raise TypeError(f"fixed must be a list of names or places of columns. Got {fixed!r}.")
    by_name = {feature.name: at for at, feature in enumerate(features)}
    by_column = {column: at for at, feature in enumerate(features) for column in feature.columns}
    return sorted({by_name[wanted] if wanted in by_name else by_column[place_of(wanted, names)] for wanted in fixed})


def place_of(column: Any, names: Sequence[str]) -> int:
    """The place of a column given by its name or by its place."""
    if isinstance(column, Integral) and not isinstance(column, bool):
        if not 0 <= int(column) < len(names):
            raise ValueError(f"X has columns 0 to {len(names) - 1}. Got {column}.")
        return int(column)
    if not isinstance(column, str):
        raise TypeError(f"A column is given by its name or its place, a whole number. Got {column!r}.")
    refuse_unknown(column, list(names), "X")
    return list(names).index(column)


def _groups(names: Sequence[str], groups: UserLabels) -> list[tuple[str, list[Any]]]:
    """(name, its columns as the user wrote them); a group without a name is called by its columns."""
    if groups is None:
        return []
    if isinstance(groups, Mapping):
        return [(str(name), _members(group)) for name, group in groups.items()]
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise TypeError(
            f"groups must be a dict {{name: columns}} or a list of lists of columns. Got {type(groups).__name__}."
        )
    members = [_members(group) for group in groups]
    return [(" + ".join(names[place_of(column, names)] for column in group), group) for group in members]


def _members(group: Any) -> list[Any]:
    return [group] if isinstance(group, str | Integral) else list(group)


# ---- the table of visited subsets, and which of them is chosen -------------------------------------------------------

_TIE = 1e-9  # scores closer than this share count as equal: the smaller subset is better


@dataclass(frozen=True)
class Step:
    """A subset of features and how well it did.

    change : the feature added or dropped to come here; None for the subset at the start
    mean_score, standard_error : of the scores on the validation rows of the folds; sd / sqrt(folds)
    train_score : mean over the folds of the score on the training rows
    """

    n_features: int
    change: str | None
    features: tuple[str, ...]
    mean_score: float
    standard_error: float
    fold_scores: Array
    train_score: float

    @staticmethod
    def of(change: str | None, features: Sequence[str], train: Array, validation: Array) -> Step:
        """From the scores of the folds."""
        error = float(validation.std(ddof=1) / np.sqrt(len(validation)))
        return Step(
            len(features), change, tuple(features), float(validation.mean()), error, validation, float(train.mean())
        )


@dataclass(frozen=True)
class Wish:
    """How many features are wanted: fewest, most, and whether one standard error is given away for fewer."""

    fewest: int
    most: int
    is_parsimonious: bool = False

    @staticmethod
    def of(wish: Any, n_features: int, n_fixed: int) -> Wish:
        """From `n_features_to_select`."""
        if isinstance(wish, str):
            if wish not in ("best", "parsimonious"):
                raise ValueError(f"{_LEGAL} Got {wish!r}.")
            return Wish(max(1, n_fixed), n_features, wish == "parsimonious")
        both = (wish, wish) if _is_count(wish) else wish
        if not isinstance(both, tuple | list) or len(both) != 2 or not all(map(_is_count, both)):
            raise TypeError(f"{_LEGAL} Got {wish!r}.")
        fewest, most = int(both[0]), int(both[1])
        if not 1 <= fewest <= most:
            raise ValueError(f"{_LEGAL} Got {wish!r}.")
        if most > n_features:
            raise ValueError(f"n_features_to_select={wish!r}, but there are {n_features} features to choose from.")
        if most < n_fixed:
            raise ValueError(f"n_features_to_select={wish!r}, but {n_fixed} features are fixed.")
        return Wish(max(fewest, n_fixed), most)

    def choose(self, steps: Sequence[Step]) -> Step:
        """The best mean score; the fewest features among equals, or among those within one standard error of it."""
        open_steps = [step for step in steps if self.fewest <= step.n_features <= self.most]
        best = max(open_steps, key=lambda step: step.mean_score)
        spare = _TIE * (abs(best.mean_score) + best.standard_error)
        if self.is_parsimonious:
            spare = max(spare, best.standard_error)
        good = [step for step in open_steps if step.mean_score >= best.mean_score - spare]
        return min(good, key=lambda step: (step.n_features, -step.mean_score))


_LEGAL = "n_features_to_select must be an integer >= 1, a pair (fewest, most), 'best' or 'parsimonious'."


def _is_count(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def frame_of(steps: Sequence[Step], change: str) -> DataFrame:
    """The table as a pandas frame; `change` names the column of the feature added or dropped."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("steps_frame needs pandas: pip install 'certifit[pandas]'.") from error
    columns = {
        "n_features": [step.n_features for step in steps],
        change: [step.change for step in steps],
        "mean_score": [step.mean_score for step in steps],
        "standard_error": [step.standard_error for step in steps],
        "train_score": [step.train_score for step in steps],
        "features": [list(step.features) for step in steps],
    }
    folds = np.array([step.fold_scores for step in steps])
    return pd.DataFrame(columns | {f"fold {k}": folds[:, k] for k in range(folds.shape[1])})


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
