"""Pictures of an evaluation: what is drawn, prepared once, and Matplotlib's pen.

A file has the data of its picture (plain numbers, no Matplotlib) and a display with scikit-learn's three parts:
attributes, `plot`, `from_...`. The pens of the report, `draw_...` in its sections, draw the same data as SVG.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from certifit.data.columns import Array


@dataclass(frozen=True)
class Band:
    """A line of means, and how far a standard error reaches above and below it."""

    x: Array
    mean: Array
    error: Array

    @classmethod
    def of(cls, x: Any, mean: Any, error: Any) -> Band:
        """From one number per point each; points where one of them is missing are left out."""
        parts = [np.asarray(part, dtype=np.float64) for part in (x, mean, error)]
        known = np.all([np.isfinite(part) for part in parts], axis=0)
        return cls(*(part[known] for part in parts))

    @property
    def low(self) -> Array:
        """The lower edge."""
        return self.mean - self.error

    @property
    def high(self) -> Array:
        """The upper edge."""
        return self.mean + self.error


def new_axes(ax: Any, name: str) -> Any:
    """The axes given, or those of a new figure. Matplotlib is imported here and nowhere above."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'certifit[plot]'.") from error
    return plt.subplots(layout="constrained")[1]


def visible(name: str, longest: int = 18) -> str:
    """A name as a picture can show it: on one line, not too long, dollar signs no formula."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in name)
    short = plain if len(plain) <= longest else f"{plain[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"
    return short.replace("$", r"\$")


def spread(places: Any, least: float) -> list[float]:
    """Numbers moved apart so that neighbours differ by `least` or more, as near to where they were as pairs allow."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    moved = [float(place) for place in places]
    for _ in range(100):
        is_still = True
        for low, high in pairwise(order):
            lack = least - (moved[high] - moved[low])
            if lack > 1e-9 * least:
                moved[low], moved[high], is_still = moved[low] - lack / 2, moved[high] + lack / 2, False
        if is_still:
            break
    return moved
