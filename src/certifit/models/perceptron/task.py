"""The perceptron: weights that separate two classes with a functional margin above delta.

Examples are augmented and signed: a_i = y_i (x_i, 1), y_i = -1 or 1, without the 1 where there is no intercept. An
example is a mistake of w where w'a_i <= delta, and is then added: w += a_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from certifit.data.columns import Array
from certifit.data.source import Block, Source
from certifit.data.user_input import refuse_nonfinite
from certifit.models.least_squares.normal_equations import Weights
from certifit.runtime import core, n_threads
from certifit.statistics.residual import UNIT


@dataclass(frozen=True)
class PerceptronTask:
    """Rows whose y are 0 or 1, the threshold, and where the weights start."""

    source: Source
    delta: float
    fit_intercept: bool
    start: Weights

    def facts(self) -> dict[str, float]:
        """What is remembered of the data."""
        n_rows = sum(self.source.map(_rows_of))
        return {"n_rows": n_rows, "sum_weight": float(n_rows)}

    def margins(self, state: Weights) -> Margins:
        """How far every example is from being a mistake: one pass. Rows that are not finite numbers are refused."""
        f = partial(_margins, state=state, fit_intercept=self.fit_intercept, delta=self.delta)
        margins = self.source.reduce(f)
        if not np.isfinite(margins.square):
            refuse_nonfinite(self.source)
        return margins


@dataclass(frozen=True)
class Margins:
    """least: a lower bound on every w'a_i; n_wrong: examples with w'a_i <= 0, exactly; n_mistakes: surely <= delta.

    square: the largest |a_i|^2; n_unknown: examples whose sign leaves the range of float64.
    """

    least: float
    n_wrong: int
    n_mistakes: int
    n_unknown: int
    square: float
    n_rows: int

    def __add__(self, other: Margins) -> Margins:
        return Margins(
            min(self.least, other.least),
            self.n_wrong + other.n_wrong,
            self.n_mistakes + other.n_mistakes,
            self.n_unknown + other.n_unknown,
            max(self.square, other.square),
            self.n_rows + other.n_rows,
        )


def signs_of(stretch: Block) -> Array:
    """-1 or 1 for the codes 0 and 1."""
    if stretch.y is None:
        raise ValueError("The rows carry no labels.")
    return np.asarray(2.0 * stretch.y - 1.0)


def _margins(stretch: Block, state: Weights, fit_intercept: bool, delta: float) -> Margins:
    y = signs_of(stretch)
    sign, ratio = core.exact_signs(stretch.rows, state.coef, state.intercept, n_threads())
    z = core.scores(stretch.rows, state.coef, state.intercept, n_threads())
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where(ratio != 0, np.abs(z / ratio), 0.0)  # |b| + |x|'|w|
    error = 2 * (stretch.X.shape[1] + 4) * UNIT * size
    squares = core.row_squares(stretch.rows, n_threads()) + float(fit_intercept)
    margins = y * z
    return Margins(
        float(np.min(margins - error, initial=np.inf)),
        int(np.count_nonzero((sign * y <= 0) & (np.abs(sign) < 2))),
        int(np.count_nonzero(margins + error <= delta)),
        int(np.count_nonzero(np.abs(sign) == 2)),
        float(squares.max(initial=0.0)),
        stretch.n_rows,
    )


def _rows_of(stretch: Block) -> int:
    return stretch.n_rows
