"""Pictures of an evaluation, each with scikit-learn's three parts: attributes, `plot`, `from_...`."""

from __future__ import annotations

from typing import Any


def new_axes(ax: Any, name: str) -> Any:
    """The axes given, or those of a new figure. Matplotlib is imported here and nowhere above."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{name} needs matplotlib: pip install 'certifit[plot]'.") from error
    return plt.subplots(layout="constrained")[1]
