"""The checks of the data, in the order of reading: each with a result, and sentences where it found something.

A check is {name, level: ok | note | warn, text, details: sentences}.

Whether the target is made from the columns: a relation that every row obeys, or predictions too good to be true.
"""

from __future__ import annotations

from collections import Counter
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
from certifit.report.facts import Fit
from certifit.report.text import Table

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
    encoder = None if fit.model.encoder_ is None else fit.model.encoder_.uncoded()
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


# A column that alone explains more than this of the target is suspected to be made from it: of the variance of a
# quantity, of the uncertainty about a class.
KNOWS, KNOWS_CLASS = 0.999, 0.95
FEW_ROWS = 10

_WORDS = {
    "number": "number",
    "flag": "flag",
    "levels": "category",
    "date": "date",
    "text": "text",
    "set aside": "set aside",
}


def find_checks(context: Table) -> list[Table]:
    """Every check that applies to these data."""
    return [result for check in CHECKS if (result := check(context)) is not None]


def suspects(context: Table) -> list[Table]:
    """Columns that alone explain nearly everything, unless there is only one."""
    data = context["data"]
    used = [column for column in data["columns"] if column["kind"] != "set aside"]
    if len(used) < 2 or data["n_rows"] < FEW_ROWS:
        return []
    least = KNOWS if data["target"]["classes"] is None else KNOWS_CLASS
    return [column for column in used if (column["alone"] or 0) > least]


def told(context: Table) -> str:
    """What a column that knows the answer would tell."""
    what = "variance of" if context["data"]["target"]["classes"] is None else "uncertainty about"
    return f"{what} {text.visible(context['model']['target'], 40)}"


def _types(context: Table) -> Table:
    counts = Counter(column["kind"] for column in context["data"]["columns"])
    words = [_counted(n, kind) for kind in _WORDS if (n := counts.get(kind, 0))]
    details = _notes(context, "became", "holds dates as text", "rare levels were grouped")
    worth = any("dates as text" in line for line in details)
    return _check("Types", "note" if worth else "ok", _sentence(", ".join(words)), details)


def _levels(context: Table) -> Table | None:
    notes = _notes(context, "capitals or spaces alone", "named as sums are", "too few rows for each")
    return _check("Levels", "note", "Some may not be what they seem.", notes) if notes else None


ABSENT = "far from its other numbers"  # in the note on -999 and the like


def _missing(context: Table) -> Table:
    data = context["data"]
    gaps = [column for column in data["columns"] if column["missing"]]
    used = [column for column in gaps if column["kind"] != "set aside"]
    absent = _notes(context, ABSENT)
    if not gaps:
        return _check("Missing values", "note" if absent else "ok", "None.", absent)
    total = sum(column["missing"] for column in gaps)
    where = text.joined([column["name"] for column in gaps], 3)
    kinds = {column["kind"] == "levels" for column in used}
    done = [{False: "filled and marked", True: "a level of its own"}[kind] for kind in sorted(kinds)]
    words = f"{text.plural(total, 'value')} of {where}{': ' if done else ''}{', in categories '.join(done)}."
    return _check("Missing values", "note", words, [*absent, *_notes(context, "is missing in")])


def _constant(context: Table) -> Table:
    constant = [column["name"] for column in context["data"]["columns"] if _is_constant(column)]
    empty = [column["name"] for column in context["data"]["columns"] if _is_empty(column)]
    filled = [name for name in constant if name not in empty]
    words = f"{text.joined(filled, 10)}: left out." if filled else "None."
    if empty:
        words = (f"{words} " if filled else "") + f"{text.joined(empty, 10)}: no value in any row, left out."
    if constant and not context["data"]["is_table"]:
        words = f"{text.joined(constant, 10)}: {'it repeats' if len(constant) == 1 else 'they repeat'} the intercept."
    return _check("Constant columns", "note" if constant else "ok", words)


def _is_empty(column: Table) -> bool:
    return column["reason"] is not None and str(column["reason"]).startswith("it holds no value")


def _is_constant(column: Table) -> bool:
    if column["reason"] is not None:
        return str(column["reason"]).startswith(("it is constant", "it holds no value"))
    return bool(column["constant"])


def _repeated(context: Table) -> Table | None:
    if not context["data"]["is_table"]:
        return None
    set_aside = _set_aside(context, lambda reason: reason.startswith("it repeats column"))
    words = f"{text.joined([c['name'] for c in set_aside], 10)}: left out." if set_aside else "None."
    return _check("Repeated columns", "note" if set_aside else "ok", words, [_because(column) for column in set_aside])


def _left_out(context: Table) -> Table | None:
    if not context["data"]["is_table"]:
        return None
    plain = ("it repeats column", "it is constant", "it holds no value")
    set_aside = _set_aside(context, lambda reason: not reason.startswith(plain))
    kept = _notes(context, "looks like an identifier: whole numbers")
    if not (set_aside or kept):
        return _check("Identifiers, free text, too many levels", "ok", "None.")
    words = [f"{text.joined([c['name'] for c in set_aside], 10)}: left out."] if set_aside else []
    words += [f"{text.plural(len(kept), 'column')} kept that may only number the rows."] if kept else []
    details = [*(_because(column) for column in set_aside), *kept]
    return _check("Identifiers, free text, too many levels", "note", " ".join(words), details)


def _references(context: Table) -> Table | None:
    """A reference level of few rows makes every coefficient of its category uncertain."""
    groups = [] if context["coefficients"] is None else context["coefficients"]["groups"]
    rare = [group for group in groups if group["reference_rows"] < FEW_ROWS and group["n_levels"] > 2]
    if not groups:
        return None
    if not rare:
        return _check("Reference levels", "ok", f"Each has {FEW_ROWS} rows or more.")
    names = text.joined([group["column"] for group in rare], 10)
    details = [
        f"{text.visible(group['column'], 60)}: the other levels are compared with "
        f"{text.visible(group['reference'], 60)}, which has {text.plural(round(group['reference_rows'], 2), 'row')}."
        for group in rare
    ]
    words = f"Rare in {names}, so their coefficients are uncertain. Choose others (--reference most-frequent)."
    return _check("Reference levels", "note", words, details)


def _knows(context: Table) -> Table | None:
    suspected = suspects(context)
    if suspected:
        verb = "explains" if context["data"]["target"]["classes"] is None else "removes"
        details = [
            f"{text.visible(column['name'], 60)}: suspect, knows the answer. Alone it {verb} "
            f"{text.percent(column['alone'])} of the {told(context)}."
            for column in suspected
        ]
        names = text.joined([column["name"] for column in suspected], 10)
        return _check("Leakage: columns that know the answer", "warn", f"Suspect: {names}.", details)
    known = [column for column in context["data"]["columns"] if column["alone"] is not None]
    if context["relation"] is not None:
        formula = context["relation"]["formula"]
        return _check("Leakage: columns that know the answer", "warn", f"Together: {formula}, in every row.")
    score = too_good(context)
    if len(known) < 2:
        return None
    best = max(known, key=lambda column: column["alone"])
    strongest = f"The strongest alone is {text.visible(best['name'], 60)}, {text.percent(best['alone'])}."
    if score is not None:
        return _check("Leakage: columns that know the answer", "warn", f"Some may: on new rows {score}. {strongest}")
    words = f"None suspected. {strongest}"
    return _check("Leakage: columns that know the answer", "ok", words)


def _class_sizes(context: Table) -> Table | None:
    """Classes of few rows cannot be learnt, and their rates are uncertain."""
    classes = context["data"]["target"]["classes"]
    if classes is None:
        return None
    few = [one for one in classes if one["rows"] < FEW_ROWS]
    largest, smallest = (pick(classes, key=lambda one: one["rows"]) for pick in (max, min))
    if few:
        names = text.joined([one["label"] for one in few], 10)
        details = [f"{text.visible(one['label'], 60)}: {text.plural(one['rows'], 'row')}." for one in few]
        words = f"{names}: fewer than {FEW_ROWS} rows, too few to learn from or to measure."
        return _check("Rows of each class", "warn", words, details)
    if largest["rows"] == smallest["rows"]:
        return _check("Rows of each class", "ok", f"{text.plural(largest['rows'], 'row')} in every class.")
    words = f"{text.visible(smallest['label'], 40)} has {text.plural(smallest['rows'], 'row')}, the fewest"
    share = f"{text.visible(largest['label'], 40)} {text.percent(largest['share'])} of all"
    return _check("Rows of each class", "ok", f"{words}; {share}.")


def _bad_rows(context: Table) -> Table | None:
    data = context["data"]
    if data["skipped"] is None:
        return None
    details = [line for line in data["file_notes"] if "checksum" not in line]
    words = f"{text.plural(data['skipped'], 'row')} skipped." if data["skipped"] else "None."
    if not data["skipped"] and details:
        words = "None skipped."
    return _check("Bad rows", "note" if details else "ok", words, details)


def _checksums(context: Table) -> Table | None:
    data = context["data"]
    if data["checksummed"] is None:
        return None
    if data["checksummed"]:
        return _check("Checksums", "ok", "Verified on every pass.")
    if context["files"]["scan"] == "scan_csv":
        return _check("Checksums", "ok", "A CSV file has none.")
    return _check("Checksums", "note", "The files carry none, so a damaged byte can go unnoticed.")


CHECKS = (
    _types,
    _levels,
    _class_sizes,
    _missing,
    _constant,
    _repeated,
    _left_out,
    _references,
    _knows,
    _bad_rows,
    _checksums,
)


def _check(name: str, level: str, words: str, details: list[str] | None = None) -> Table:
    return {"name": name, "level": level, "text": words, "details": details or []}


def _set_aside(context: Table, belongs: Any) -> list[Table]:
    columns = context["data"]["columns"]
    return [column for column in columns if column["kind"] == "set aside" and belongs(column["reason"])]


def _because(column: Table) -> str:
    return f"{text.visible(column['name'], 60)}: {text.visible(column['reason'], 300)}."


def _notes(context: Table, *phrases: str) -> list[str]:
    return [note for note in context["data"]["notes"] if any(phrase in note for phrase in phrases)]


def _counted(n: int, kind: str) -> str:
    if kind == "set aside":
        return f"{text.count(n)} left out"
    return f"{text.count(n)} categories" if kind == "levels" and n > 1 else text.plural(n, _WORDS[kind])


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
