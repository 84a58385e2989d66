"""Where the steps of a linear model begin: what a user may ask for, and the weights that this means.

`solver="auto"` of models that are solved directly takes no steps and needs nothing of those that do.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from certifit.data.columns import Array

AUTO = "auto"  # the solver of a user who names none
ZERO = "zero"
Start = str | int | ArrayLike | None
_LEGAL = "None, 'zero', a whole number >= 0 (the seed of a random start) or an array of numbers"


def check_start(start: Start) -> None:
    """Refuse what is no start."""
    if start is None or (isinstance(start, str) and start == ZERO) or is_seed(start):
        return
    try:
        numbers = np.asarray(start)
    except ValueError:  # rows of unlike lengths
        numbers = np.array(None)
    if numbers.dtype.kind not in "iuf" or numbers.ndim == 0:
        raise ValueError(f"start must be {_LEGAL}. Got {start!r}.")
    if not np.isfinite(numbers).all():
        raise ValueError("start must be finite numbers. Got NaN or infinity.")


def is_seed(start: Start) -> bool:
    """Whether a start is the seed of a random one."""
    return isinstance(start, Integral) and not isinstance(start, bool) and int(start) >= 0


def start_weights(start: Start, n_scores: int, n_columns: int, fit_intercept: bool) -> tuple[Array, Array]:
    """Weights, scores x columns, and an intercept per score. A seed draws standard normal numbers."""
    size = n_columns + int(fit_intercept)
    if isinstance(start, str):
        numbers = np.zeros((n_scores, size))
    elif is_seed(start):
        numbers = np.random.default_rng(int(np.asarray(start))).standard_normal((n_scores, size))
    else:
        numbers = np.array(start, dtype=np.float64)
        legal = (n_scores, size) if n_scores > 1 else (size,)
        if numbers.shape not in (legal, (n_scores, size)):
            columns = f"{n_columns} columns" + (", then the intercept" if fit_intercept else "")
            raise ValueError(f"start must have the shape {legal}: {columns}. Got {numbers.shape}.")
        numbers = numbers.reshape(n_scores, size)
    intercepts = numbers[:, -1].copy() if fit_intercept else np.zeros(n_scores)
    return np.ascontiguousarray(numbers[:, :n_columns]), intercepts
