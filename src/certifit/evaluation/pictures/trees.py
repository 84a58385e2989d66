"""Trees and boosting: where the boxes of a tree stand and what they say, the rounds of boosting, margins of rows.

Rounds: AdaBoost's error under its bound, losses on rows held out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.data.user_input import predict_rows
from certifit.evaluation.pictures import new_axes, visible
from certifit.models.adapter import learner_of, sections_of
from certifit.models.trees.words import Codes, level_words

MOST_DEPTH = 4  # levels that are readable side by side
LONGEST = 16  # characters of a name
SHORTEST = 10  # characters of the levels of a category beside a long name


@dataclass(frozen=True)
class TreeBox:
    """x: its place across, in leaves from the left. depth: its row from above. question: of a node that is split.

    share: of all weight. parts: shares of the classes, or where the mean lies between the smallest and the largest.
    is_cut: whether the tree goes on below it.
    """

    node: int
    x: float
    depth: int
    parent: int  # place in the list of boxes, -1 of the root
    is_left: bool
    question: str
    answer: str
    share: float
    parts: tuple[float, ...]
    is_cut: bool


def tree_boxes(
    tree: Any,
    names: list[str],
    answers: list[str],
    max_depth: int = MOST_DEPTH,
    longest: int = LONGEST,
    codes: Codes | None = None,
) -> list[TreeBox]:
    """The nodes of a tree down to a depth, each over the middle of its children.

    longest: characters of a name. codes: what the codes of categories stand for, by the names of their columns.
    """
    order, parents, depth = [0], [-1], {0: 0}
    for place, node in enumerate(order):
        if tree.left[node] and depth[node] < max_depth:
            for child in (int(tree.left[node]), int(tree.left[node]) + 1):
                depth[child] = depth[node] + 1
                order.append(child)
                parents.append(place)
    places = _places(tree, depth, max_depth)
    low, high = float(np.min(tree.values)), float(np.max(tree.values))
    boxes = []
    for node, parent in zip(order, parents, strict=True):
        is_inner = bool(tree.left[node]) and depth[node] < max_depth
        boxes.append(
            TreeBox(
                node,
                places[node],
                depth[node],
                parent,
                parent < 0 or node == int(tree.left[order[parent]]),
                question(tree, node, names, longest, codes or {}) if is_inner else "",
                answers[node],
                float(tree.weight[node] / tree.weight[0]),
                _parts(tree, node, low, high),
                bool(tree.left[node]) and not is_inner,
            )
        )
    return boxes


def _places(tree: Any, depth: dict[int, int], max_depth: int) -> dict[int, float]:
    """Ends side by side, parents over the middle of their children."""
    places: dict[int, float] = {}
    n_ends = 0
    open_nodes = [0]
    while open_nodes:  # ends from left to right
        node = open_nodes.pop()
        if tree.left[node] and depth[node] < max_depth:
            open_nodes += [int(tree.left[node]) + 1, int(tree.left[node])]
        else:
            places[node] = float(n_ends)
            n_ends += 1
    for node in sorted(depth, reverse=True):
        if node not in places:
            places[node] = (places[int(tree.left[node])] + places[int(tree.left[node]) + 1]) / 2
    return places


def question(tree: Any, node: int, names: list[str], longest: int, codes: Codes) -> str:
    """What a node asks; rows that say yes go left."""
    column = names[int(tree.feature[node])]
    name = visible(column, longest)
    if tree.is_of_levels[node]:
        levels = level_words(tree.levels_left(node), codes.get(column))
        return f"{name} in {{{visible(levels, max(longest - len(name), SHORTEST))}}}"
    threshold = float(tree.threshold[node])
    return f"{name} is known" if np.isinf(threshold) else f"{name} \N{LESS-THAN OR EQUAL TO} {threshold:.4g}"


def reached_by(boxes: list[TreeBox], place: int) -> str:
    """What is true of the rows that a split sends to a box; nothing of the root."""
    box = boxes[place]
    if box.parent < 0:
        return ""
    asked = boxes[box.parent].question
    if box.is_left:
        return asked
    for yes, no in ((" \N{LESS-THAN OR EQUAL TO} ", " > "), (" in {", " not in {"), (" is known", " is missing")):
        if yes in asked:
            return no.join(asked.rsplit(yes, 1))
    return f"not {asked}"


def reading_order(boxes: list[TreeBox]) -> list[int]:
    """Places of the boxes as a person reads a tree: a box, what is left below it, what is right below it."""
    below: dict[int, list[int]] = {}
    for place, box in enumerate(boxes):
        below.setdefault(box.parent, []).append(place)
    order, waiting = [], [0]
    while waiting:
        place = waiting.pop()
        order.append(place)
        waiting += below.get(place, [])[::-1]
    return order


def _parts(tree: Any, node: int, low: float, high: float) -> tuple[float, ...]:
    if tree.values.ndim == 2:
        return tuple(float(share) for share in tree.values[node] / tree.weight[node])
    return ((float(tree.values[node]) - low) / (high - low) if high > low else 0.5,)


def node_answers(model: Any) -> list[str]:
    """What each node would say: the class of most weight, or the mean."""
    tree = model.tree_
    if tree.values.ndim == 2:
        return [visible(str(label), LONGEST) for label in model.classes_[tree.values.argmax(axis=1)]]
    return [f"{mean:.4g}" for mean in tree.values]


class TreeDisplay:
    """The nodes of a tree as boxes: the question, the share of all rows, and the classes or the mean.

    Rows that say yes go left. A strip in each box shows the shares of the classes, or where the mean lies between the
    least and the largest of the tree.

    Parameters
    ----------
    boxes : what `tree_boxes` returns
    classes : labels, for the legend; None of numbers

    Attributes after `plot`: `ax_`, `figure_`, `texts_` (one for each box).
    """

    def __init__(self, boxes: list[TreeBox], classes: Any = None) -> None:
        self.boxes, self.classes = boxes, classes

    @classmethod
    def from_estimator(cls, model: Any, *, max_depth: int = MOST_DEPTH, ax: Any = None) -> TreeDisplay:
        """Draw a fitted decision tree down to max_depth levels of splits."""
        check_is_fitted(model)
        if not learner_of(model).is_ours or not learner_of(model).name.startswith("DecisionTree"):
            raise TypeError(f"{type(model).__name__} is no decision tree of certifit.")
        if not isinstance(max_depth, int | np.integer) or max_depth < 1:
            raise ValueError(f"max_depth must be a whole number >= 1. Got {max_depth!r}.")
        codes = {} if model.encoder_ is None else model.encoder_.coded_
        boxes = tree_boxes(model.tree_, list(model.column_names_), node_answers(model), int(max_depth), codes=codes)
        return cls(boxes, getattr(model, "classes_", None)).plot(ax)

    def plot(self, ax: Any = None) -> TreeDisplay:
        """Draw on `ax`, or on a new figure that is as wide as the tree."""
        n_ends = 1 + max(box.x for box in self.boxes)
        depth = max(box.depth for box in self.boxes)
        is_new = ax is None
        ax = new_axes(ax, "TreeDisplay")
        if is_new:
            ax.figure.set_size_inches(max(4.0, 1.8 * n_ends), 1.3 + 1.15 * (depth + 1))
        self.texts_: list[Any] = []
        for box in self.boxes:
            if box.parent >= 0:
                self._draw_edge(ax, box)
        for box in self.boxes:
            self._draw_box(ax, box)
        ax.set(xlim=(-0.6, n_ends - 0.4), ylim=(-depth - 0.5, 0.5))
        ax.axis("off")
        if self.classes is not None:
            self._draw_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_edge(self, ax: Any, box: TreeBox) -> None:
        parent = self.boxes[box.parent]
        ax.plot([parent.x, box.x], [-parent.depth - 0.2, -box.depth + 0.3], color="0.6", lw=1, zorder=1)
        if box.parent == 0:
            middle = ((parent.x + box.x) / 2, -box.depth + 0.62)
            ax.text(*middle, "yes" if box.is_left else "no", fontsize=8, color="0.35", ha="center")

    def _draw_box(self, ax: Any, box: TreeBox) -> None:
        from matplotlib.patches import Rectangle

        ax.add_patch(Rectangle((box.x - 0.47, -box.depth - 0.3), 0.94, 0.6, fc="white", ec="0.45", zorder=2))
        left = box.x - 0.47
        for k, part in enumerate(box.parts if self.classes is not None else box.parts[:1]):
            ax.add_patch(Rectangle((left, -box.depth - 0.3), 0.94 * part, 0.09, fc=f"C{k % 10}", ec="none", zorder=3))
            left += 0.94 * part
        lines = [
            box.question,
            box.answer,
            f"{100 * box.share:.3g} %" + (" \N{HORIZONTAL ELLIPSIS}" if box.is_cut else ""),
        ]
        text = "\n".join(line for line in lines if line)
        self.texts_.append(ax.text(box.x, -box.depth + 0.05, text, fontsize=7, ha="center", va="center", zorder=4))

    def _draw_legend(self, ax: Any) -> None:
        from matplotlib.patches import Patch

        labels = [visible(str(label), LONGEST) for label in self.classes][:10]
        handles = [Patch(color=f"C{k}", label=label) for k, label in enumerate(labels)]
        ax.legend(handles=handles, fontsize="small", ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 0.02))


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
    codes = np.searchsorted(model.classes_, np.asarray(y))
    rows = np.arange(len(codes))
    others = votes.copy()
    others[rows, codes] = -np.inf
    return np.asarray((votes[rows, codes] - others.max(axis=1)) / vote.alpha.sum())


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
