"""What a model offers for folds without refits, asked as selection asks it."""

from __future__ import annotations

from typing import Any

from certifit.models.folds import EACH_ROW, Candidates
from certifit.selection.folds.rows import Shared


def offered(model: Any, source: Any, rounds: Any, candidates: Any = ({},), classes: Any = None) -> Any:
    """Fits to all training sets, or None."""
    return model.folds(source, rounds, Candidates(list(candidates), classes), Shared())


def fold_squares(model: Any, source: Any, rounds: Any, candidates: Any) -> Any:
    """Squared errors from sums, or None."""
    states = offered(model, source, rounds, candidates)
    return None if states is None else states.squares()


def left_out(model: Any, source: Any) -> Any:
    """Errors of every row by the fit to all others."""
    return offered(model, source, EACH_ROW).left_out()
