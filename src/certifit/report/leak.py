"""Whether the target is made from the columns: a relation that every row obeys, or predictions too good to be true."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from certifit.data.columns import Array, Columns
from certifit.data.source import Block, Source
from certifit.models.least_squares.certificate import combination
from certifit.models.least_squares.solver import solve
from certifit.models.least_squares.task import LeastSquares
from certifit.report import text
from certifit.report.facts import Fit, Table

# A share of the target explained on new rows, or an area under the ROC curve, that models of real targets hardly reach.
TOO_GOOD = 0.999
# A relation is looked for among so many columns at most, and where so many more rows than columns obey it.
MOST_COLUMNS, SPARE_ROWS = 500, 10
# A coefficient is a fraction of at most this denominator, and is it to so many of its size; a term whose spread is
# below this share of the target's is none.
LARGEST_DENOMINATOR, NEAR, NO_TERM = 100, 1e-6, 1e-9
ROUNDING = 64 * np.finfo(float).eps
PIECE_ROWS = 4096


def relation_facts(fit: Fit) -> Table | None:
    """The relation of the target to columns that every row obeys; None where none is found.

    formula, n_rows, largest (difference from it in any row), is_exact (that is rounding).
    """
    if fit.by_class is not None or not _is_worth_a_look(fit):
        return None
    encoder = fit.model.encoder_
    rows = fit.source if encoder is None else fit.source.through(encoder)
    sd = np.asarray(fit.seen.columns.sd, dtype=np.float64)
    if len(sd) > MOST_COLUMNS or fit.seen.n_rows < len(sd) + SPARE_ROWS:
        return None
    state = solve(LeastSquares(rows, 0.0, fit_intercept=True)).state
    if not np.isfinite(state.coef).all():
        return None
    spread = float(fit.model.data_["target_sd"])
    coef = np.where(np.abs(state.coef) * sd > NO_TERM * spread, state.coef, 0.0)
    size = abs(float(fit.model.data_["target_mean"])) + spread
    intercept = state.intercept if abs(state.intercept) > NO_TERM * size else 0.0
    plain, constant = np.array([_fraction(weight) for weight in coef]), _fraction(intercept)
    if _n_involved(encoder, rows.names, np.flatnonzero(plain)) < 2:  # one column alone is the suspect of another check
        return None
    largest, is_exact = _largest_difference(rows, plain, constant)
    if not is_exact:
        return None
    terms = [(fit.printed.mask(rows.names[j]), plain[j]) for j in np.flatnonzero(plain)]
    terms += [("", constant)] if constant else []
    target = text.visible(fit.model.target_name_, 60)
    formula = f"{target} = {text.visible(combination(terms), 300)}"
    return {"formula": formula, "n_rows": fit.seen.n_rows, "largest": largest}


def _n_involved(encoder: Any, names: list[str], places: Array) -> int:
    """Columns of the table that the places of coded columns belong to."""
    if encoder is None:
        return len(places)
    made = {name: column for column, columns in encoder.groups_ for name in columns}
    return len({made[names[place]] for place in places})


def _is_worth_a_look(fit: Fit) -> bool:
    """A sum of columns shows in least squares; a generalised linear model of another link may miss it."""
    if fit.errors is None:
        return True
    seen = fit.errors.seen
    return seen.total > 0 and 1 - seen.squares / seen.total > TOO_GOOD


def _fraction(value: float) -> float:
    """A small fraction where the value is near one, else the value."""
    near = float(Fraction(float(value)).limit_denominator(LARGEST_DENOMINATOR))
    return near if abs(near - value) <= NEAR * abs(value) else float(value)


def _largest_difference(rows: Source, coef: Array, intercept: float) -> tuple[float, bool]:
    """Of target and relation in any row, and whether all of them are rounding."""
    places, largest, is_exact = np.flatnonzero(coef), 0.0, True
    for block in rows.stretches():
        for part in _pieces(block):
            X = part.X.toarray() if isinstance(part.X, Columns) or hasattr(part.X, "toarray") else np.asarray(part.X)
            terms, y = X[:, places].astype(np.float64) * coef[places], np.asarray(part.y, dtype=np.float64)
            is_used = np.ones(len(y), dtype=bool) if part.weight is None else part.weight > 0
            differences = np.abs(y - terms.sum(axis=1) - intercept)[is_used]
            sizes = (np.abs(y) + np.abs(terms).sum(axis=1) + abs(intercept))[is_used]
            largest = max(largest, float(differences.max(initial=0.0)))
            is_exact = is_exact and bool((differences <= ROUNDING * sizes).all())
        if not is_exact:
            break
    return largest, is_exact


def _pieces(block: Block) -> Iterator[Block]:
    for begin in range(0, block.n_rows, PIECE_ROWS):
        yield block.part(begin, begin + PIECE_ROWS)


def too_good(context: Table) -> str | None:
    """The held-out figure that is too good to be true, in words; None where there is none."""
    validation, classes = context["validation"], context["classes"]
    if classes is not None:
        auc = classes["metrics"]["auc"]["value"]
        is_found = classes["is_new"] and auc is not None and auc > TOO_GOOD
        return f"the area under the ROC curve is {text.share(auc)}" if is_found else None
    row = next((row for row in (validation or {}).get("rows", []) if row["is_chosen"]), None)
    if row is None or row["r2"] is None or not row["r2"] > TOO_GOOD:
        return None
    what = "R²" if validation["share"] == "R²" else "the share of the deviance explained"
    return f"{what} is {text.share(row['r2'])}"
