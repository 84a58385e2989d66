"""What a model offers for cross-validation without refits, and the words in which it is asked.

    estimator.folds(source, rounds, grid, shared) -> FoldStates, or None: every split is to be refitted

rounds: lists of splits, or EACH_ROW, which leaves out one row at a time. grid: candidates, or subsets of the columns.
shared: statistics that several models need, made once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certifit.data.cells import Splits
from certifit.data.columns import Array
from certifit.models.least_squares.fold_path import FoldPath
from certifit.models.least_squares.leave_one_out import LeftOut, LeftOutFits
from certifit.models.least_squares.normal_equations import Weights

Candidate = Mapping[str, Any]  # values of parameters, by name
RowMetric = Callable[[Array, Array], Array]  # (y or codes, E y or log p(k | x)) -> a number per row
Validated = tuple[Array, Array, Array | None]  # y or codes, what was predicted, weight (None: all 1)


class EachRow:
    """Splits that validate one row each."""


EACH_ROW = EachRow()
Rounds = Sequence[Splits] | EachRow


@dataclass(frozen=True)
class Candidates:
    """Values of parameters to be tried. classes: those that the y of the rows are codes of."""

    settings: Sequence[Candidate]
    classes: Array | None = None


@dataclass(frozen=True)
class Subsets:
    """Any subsets of the columns, with the parameters that the model has."""

    classes: Array | None = None


Grid = Candidates | Subsets


class FoldStates:
    """Fits to all training sets of a grid. What a kind of model does not have is None: then splits are refitted.

    route: whether "statistics" by cell gave the fits, or every split had a pass of its own, "refits".
    """

    route: str = "statistics"
    n_summed: int = 0  # columns whose products are summed by cell

    def squares(self, with_rows: bool = False) -> FoldPath | None:
        """Squared errors from sums over rows; with_rows: residuals of the validation rows too, at one more pass."""
        return None

    def weights(self, candidate: int) -> list[Weights] | None:
        """The fit of a linear model to every training set."""
        return None

    def models(self, candidate: int) -> list[Any] | None:
        """A model for every training set, to predict with."""
        return None

    def left_out(self) -> LeftOut | None:
        """Errors of every row by the fit to all others."""
        return None

    def left_out_fits(self) -> LeftOutFits | None:
        """The fits that leave out one row, for rows in memory."""
        return None


def shared_work(candidates: Sequence[Candidate], shares: Sequence[str]) -> list[tuple[dict[str, Any], list[int]]]:
    """Candidates grouped by all parameters but those in `shares`: the parameters of each group, and its members."""
    groups: list[tuple[dict[str, Any], list[int]]] = []
    for place, candidate in enumerate(candidates):
        others = {name: value for name, value in candidate.items() if name not in shares}
        members = next((members for known, members in groups if known == others), None)
        groups.append((others, [place])) if members is None else members.append(place)
    return groups


def candidates_of(grid: Grid) -> Sequence[Candidate]:
    """The candidates of a grid; subsets of columns have one, the model as it is."""
    return grid.settings if isinstance(grid, Candidates) else [{}]
