"""The way of a perceptron: the length of its weights, epoch by epoch, under what its updates allow."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array
from certifit.evaluation.pictures import new_axes


class UpdatesDisplay:
    """|(w, b)| against the number k of updates so far, a mark per epoch.

    Where the classes are separated it stays under sqrt(|w_0|^2 + k (R^2 + 2 delta)). Where they are not, the largest
    length that was seen is drawn, and the two epochs that end with the same weights where there are such.

    Parameters
    ----------
    mistakes, norm : one number per epoch; norms that a model file did not keep are NaN
    growth : R^2 + 2 delta; NaN where the classes were not separated
    first_norm : |w_0|
    cycle : (first, last) epoch with the same weights; empty where none was seen. Epoch 0 is the start
    caption : what the certificate says

    Attributes after `plot`: `ax_`, `figure_`, `line_`, `bound_line_`, `mark_` (of a cycle, else None), `caption_`.
    """

    def __init__(
        self,
        mistakes: ArrayLike,
        norm: ArrayLike,
        *,
        growth: float = np.nan,
        first_norm: float = 0.0,
        cycle: tuple[int, ...] = (),
        caption: str = "",
    ) -> None:
        self.updates: Array = np.append(0.0, np.cumsum(np.asarray(mistakes, dtype=np.float64)))
        self.norm: Array = np.append(first_norm, np.asarray(norm, dtype=np.float64))
        self.growth, self.first_norm, self.cycle, self.caption = float(growth), float(first_norm), cycle, caption

    @classmethod
    def of(cls, model: Any) -> UpdatesDisplay:
        """The data of a fitted perceptron."""
        proof = model.certificate_
        first = 0.0 if model.start is None else float(np.linalg.norm(np.asarray(model.start, dtype=np.float64)))
        growth = proof.radius**2 + 2 * float(model.delta) if proof.holds else np.nan
        parts = ([row[key] for row in model.history_] for key in ("mistakes", "norm"))
        return cls(*parts, growth=growth, first_norm=first, cycle=proof.cycle, caption=proof.sentences()[0])

    @property
    def bound(self) -> Array:
        """The most that the length can be after as many updates; NaN where the classes were not separated."""
        return np.sqrt(self.first_norm**2 + self.updates * self.growth)

    def plot(self, ax: Any = None) -> UpdatesDisplay:
        """Draw on `ax`, or on a new figure."""
        ax = new_axes(ax, "UpdatesDisplay")
        (self.line_,) = ax.plot(self.updates, self.norm, "o-", color="C0", markersize=4, label="|(w, b)|")
        if np.isnan(self.growth):
            most = float(np.nanmax(self.norm))
            self.bound_line_ = ax.axhline(most, color="0.4", ls="--", lw=1, label=f"largest seen: {most:.4g}")
        else:
            (self.bound_line_,) = ax.plot(
                self.updates, self.bound, "--", color="0.4", lw=1, label="most after k updates: sqrt(k (R² + 2 delta))"
            )
        self.mark_ = None
        if self.cycle:
            ends = list(self.cycle)
            label = f"epochs {ends[0]} and {ends[1]} end alike"
            (self.mark_,) = ax.plot(self.updates[ends], self.norm[ends], "s", color="C3", label=label)
        ax.set(xlabel="updates", ylabel="length of the weights")
        ax.legend(fontsize="small")
        self.caption_ = ax.set_title("\n".join(textwrap.wrap(self.caption, 78)), fontsize="small", loc="left")
        self.ax_, self.figure_ = ax, ax.figure
        return self
