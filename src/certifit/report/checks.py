"""The checks of the data, in the order of reading: each with a result, and sentences where it found something.

A check is {name, level: ok | note | warn, text, details: sentences}.
"""

from collections import Counter
from typing import Any

from certifit.report import text
from certifit.report.leak import too_good

Table = dict[str, Any]

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
    return [found for check in CHECKS if (found := check(context)) is not None]


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


def _missing(context: Table) -> Table:
    data = context["data"]
    gaps = [column for column in data["columns"] if column["missing"]]
    used = [column for column in gaps if column["kind"] != "set aside"]
    if not gaps:
        return _check("Missing values", "ok", "None.")
    total = sum(column["missing"] for column in gaps)
    where = text.joined([column["name"] for column in gaps], 3)
    kinds = {column["kind"] == "levels" for column in used}
    done = [{False: "filled and marked", True: "a level of its own"}[kind] for kind in sorted(kinds)]
    words = f"{text.plural(total, 'value')} of {where}{': ' if done else ''}{', in categories '.join(done)}."
    return _check("Missing values", "note", words, _notes(context, "is missing in"))


def _constant(context: Table) -> Table:
    found = [column["name"] for column in context["data"]["columns"] if _is_constant(column)]
    words = f"{text.joined(found, 10)}: left out." if found else "None."
    if found and not context["data"]["is_table"]:
        words = f"{text.joined(found, 10)}: {'it repeats' if len(found) == 1 else 'they repeat'} the intercept."
    return _check("Constant columns", "note" if found else "ok", words)


def _is_constant(column: Table) -> bool:
    if column["reason"] is not None:
        return str(column["reason"]).startswith(("it is constant", "it holds no value"))
    return bool(column["constant"])


def _repeated(context: Table) -> Table | None:
    if not context["data"]["is_table"]:
        return None
    found = _set_aside(context, lambda reason: reason.startswith("it repeats column"))
    words = f"{text.joined([c['name'] for c in found], 10)}: left out." if found else "None."
    return _check("Repeated columns", "note" if found else "ok", words, [_because(column) for column in found])


def _left_out(context: Table) -> Table | None:
    if not context["data"]["is_table"]:
        return None
    plain = ("it repeats column", "it is constant", "it holds no value")
    found = _set_aside(context, lambda reason: not reason.startswith(plain))
    kept = _notes(context, "looks like an identifier: whole numbers")
    if not (found or kept):
        return _check("Identifiers, free text, too many levels", "ok", "None.")
    words = [f"{text.joined([c['name'] for c in found], 10)}: left out."] if found else []
    words += [f"{text.plural(len(kept), 'column')} kept that may only number the rows."] if kept else []
    details = [*(_because(column) for column in found), *kept]
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
    found = suspects(context)
    if found:
        verb = "explains" if context["data"]["target"]["classes"] is None else "removes"
        details = [
            f"{text.visible(column['name'], 60)}: suspect, knows the answer. Alone it {verb} "
            f"{text.percent(column['alone'])} of the {told(context)}."
            for column in found
        ]
        names = text.joined([column["name"] for column in found], 10)
        return _check("Columns that know the answer", "warn", f"Suspect: {names}.", details)
    known = [column for column in context["data"]["columns"] if column["alone"] is not None]
    if context["relation"] is not None:
        formula = context["relation"]["formula"]
        return _check("Columns that know the answer", "warn", f"Together: {formula}, in every row.")
    score = too_good(context)
    if len(known) < 2:
        return None
    best = max(known, key=lambda column: column["alone"])
    strongest = f"The strongest alone is {text.visible(best['name'], 60)}, {text.percent(best['alone'])}."
    if score is not None:
        return _check("Columns that know the answer", "warn", f"Some may: on new rows {score}. {strongest}")
    words = f"None suspected. {strongest}"
    return _check("Columns that know the answer", "ok", words)


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


CHECKS = (_types, _class_sizes, _missing, _constant, _repeated, _left_out, _references, _knows, _bad_rows, _checksums)


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
