"""The picture of the mutual-information filter, in scikit-learn's three parts: data, `from_...`, `plot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.columns import Array
from certifit.maps.rows import input_names
from certifit.selection.information.filter import MutualInformationFilter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {True: "#1f6f8b", False: "#c9ced3"}
_LABELS = {True: "selected", False: "not selected"}


class MutualInformationDisplay:
    """A bar a feature, the best on top.

    Parameters
    ----------
    scores : array of shape (n_features,)
        Mutual information in nats.
    feature_names : list of str
    selected : array of bool of shape (n_features,)

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure, after `plot`
    bars_ : the bars, the best first
    """

    def __init__(self, *, scores: Any, feature_names: Sequence[str], selected: Any) -> None:
        self.scores: Array = np.asarray(scores, dtype=np.float64)
        self.feature_names = [str(name) for name in feature_names]
        self.selected: Array = np.asarray(selected, dtype=bool)
        sizes = {self.scores.shape, (len(self.feature_names),), self.selected.shape}
        if len(sizes) > 1:
            raise ValueError(f"scores, feature_names and selected need one entry per feature. Got {sorted(sizes)}.")

    @classmethod
    def from_estimator(
        cls, estimator: MutualInformationFilter, *, ax: Axes | None = None, max_features: int = 30
    ) -> Self:
        """The picture of a fitted filter."""
        check_is_fitted(estimator)
        display = cls(
            scores=estimator.scores_, feature_names=input_names(estimator, None), selected=estimator.get_support()
        )
        return display.plot(ax, max_features=max_features)

    @classmethod
    def from_data(
        cls, X: Any, y: Any = None, *, ax: Axes | None = None, max_features: int = 30, **parameters: Any
    ) -> Self:
        """Fit a filter with these parameters to X and y (or to a scan) and show it."""
        return cls.from_estimator(MutualInformationFilter(**parameters).fit(X, y), ax=ax, max_features=max_features)

    def plot(self, ax: Axes | None = None, *, max_features: int = 30) -> Self:
        """Draw the best `max_features` features; the title says how many there are beside."""
        if not isinstance(max_features, int) or isinstance(max_features, bool) or max_features < 1:
            raise ValueError(f"max_features must be an integer >= 1. Got {max_features!r}.")
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("MutualInformationDisplay needs matplotlib: pip install 'certifit[plot]'.") from error
        order = np.argsort(-self.scores, kind="stable")[:max_features]
        if ax is None:
            _, ax = plt.subplots(figsize=(7, 1.2 + 0.27 * len(order)), layout="constrained")
        places = np.arange(len(order))
        self.bars_ = ax.barh(places, self.scores[order], color=[_COLOURS[bool(s)] for s in self.selected[order]])
        ax.set_yticks(places, [self.feature_names[j] for j in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.bar_label(self.bars_, fmt="%.3f", padding=3, fontsize="small")
        ax.margins(x=0.12)
        ax.set_xlim(left=0)
        ax.set_xlabel("mutual information with the target (nats)")
        n_features = len(self.scores)
        beside = f", best {len(order)} of {n_features:,} features" if len(order) < n_features else ""
        ax.set_title(f"What each feature alone tells about the target{beside}", fontsize="medium", loc="left")
        self._legend(ax, order)
        ax.spines[["top", "right"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _legend(self, ax: Axes, order: Array) -> None:
        from matplotlib.patches import Patch

        shown = [kind for kind in (True, False) if (self.selected[order] == kind).any()]
        if len(shown) == 2:
            ax.legend(
                handles=[Patch(color=_COLOURS[kind], label=_LABELS[kind]) for kind in shown],
                loc="lower right",
                frameon=False,
            )
