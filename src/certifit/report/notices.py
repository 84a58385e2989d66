"""What a reader must know before using the numbers: worst first, each with what to do."""

from typing import Any

from certifit.report import text
from certifit.report.checks import suspects

Table = dict[str, Any]
Notice = dict[str, str]


def find_notices(context: Table) -> list[Notice]:
    """Every check of CHECKS that has something to say."""
    return [found for check in CHECKS if (found := check(context)) is not None]


def _not_certified(context: Table) -> Notice | None:
    certificate = context["certificate"]
    if certificate["holds"]:
        return None
    value, tolerance = certificate["value"], certificate["tolerance"]
    return _notice(
        "bad",
        "The fit did not converge: it is not proven to be the best",
        f"The {context['model']['minimised']} may exceed the smallest possible by {text.power(value)} of its size, "
        f"and {text.power(tolerance)} was asked for. Coefficients, p-values and predictions may be wrong.",
        "Look for columns of very different size or nearly repeated columns, or ask for less (--tol).",
    )


def _knows_the_answer(context: Table) -> Notice | None:
    found = suspects(context)
    if not found:
        return None
    target = text.visible(context["model"]["target"], 40)
    shares = [f"{text.visible(column['name'], 40)} {text.percent(column['alone'])}" for column in found[:5]]
    return _notice(
        "warn",
        f"Suspect: {text.joined([column['name'] for column in found], 5)} may know the answer",
        f"Alone, of the variance of {target}: {', '.join(shares)}. Such a column is often made from the target, or "
        "known only after it.",
        "Is it known when a prediction is needed? If not, the fit is worth nothing: leave it out (--columns).",
    )


def _skipped_rows(context: Table) -> Notice | None:
    skipped = context["data"]["skipped"]
    if not skipped:
        return None
    said = [line for line in context["data"]["file_notes"] if "skipped" in line]
    return _notice(
        "note",
        f"{text.plural(skipped, 'bad row')} left out",
        " ".join(text.visible(line, 600) for line in said),
        "See that they are not rows of one kind: the fit knows nothing of them.",
    )


def _dependent(context: Table) -> Notice | None:
    certificate = context["certificate"]
    missing = certificate["n_columns"] - certificate["rank"]
    if missing <= 0 or context["model"]["is_sparse"]:
        return None
    found = certificate["dependent"]
    relations = "; ".join(text.visible(relation, 200) for relation in found[:10])
    more = len(found) - 10
    relations += f"; and {more} more" if more > 0 else ""
    constant = " A constant column repeats the intercept." if any(map(_is_constant, found)) else ""
    verb = "repeats" if missing == 1 else "repeat"
    return _notice(
        "warn",
        f"{text.plural(missing, 'column')} of {text.count(certificate['n_columns'])} {verb} what others say",
        f"{relations}.{constant}" if relations else "The relation could not be written in small numbers.",
        "Predictions are not affected. The coefficients of these columns are one choice among many (the "
        "smallest). "
        "To read them one by one, leave out one column of each relation.",
    )


def _is_constant(relation: str) -> bool:
    """Whether a relation is 'name = number'."""
    try:
        float(relation.rpartition(" = ")[2])
    except ValueError:
        return False
    return True


def _few_digits(context: Table) -> Notice | None:
    # A coefficient that is zero but for rounding has no digits, and needs none.
    least = 1e-9 * (context["data"]["target"]["sd"] or 0)
    rows = [row for row in context["coefficients"]["rows"] if row["digits"] is not None and row["digits"] < 3]
    weak = [row["name"] for row in rows if abs(row["effect"] or row["estimate"]) > least]
    if not weak or context["certificate"]["rank"] < context["certificate"]["n_columns"]:
        return None
    return _notice(
        "warn",
        f"{text.plural(len(weak), 'coefficient')} known to fewer than 3 digits",
        f"The rounding of the data alone moves {text.joined(weak)}.",
        "Columns are nearly repeated, or far from zero compared with their spread. "
        "Subtract a typical value from such columns, or leave one out.",
    )


def _after_selection(context: Table) -> Notice | None:
    if context["selection"] is None or not context["coefficients"]["has_inference"]:
        return None
    return _notice(
        "note",
        "The same rows chose the columns",
        "The p-values and intervals take the columns as given from the start. Columns that were chosen because they "
        "fit these rows look surer than they are.",
        "For p-values that can be relied on, fit the chosen columns to rows that took no part in the choice.",
    )


def _end_of_grid(context: Table) -> Notice | None:
    """The best alpha is the first or the last that was tried, so a better one may lie beyond."""
    validation = context["validation"]
    curve = None if validation is None else validation["curve"]
    if curve is None or curve["model"] != validation["chosen"] or curve["best"] != curve["chosen"]:
        return None
    values = curve["values"]
    ends = {max(values): ("strongest", "stronger"), min(values): ("weakest", "weaker")}
    if values[curve["chosen"]] not in ends:
        return None
    word, beyond = ends[values[curve["chosen"]]]
    advice = "Give it with --alpha" + (", or fit with --model linear." if word == "weakest" else ".")
    return _notice(
        "note",
        f"The best penalty is the {word} that was tried",
        f"The error on new rows may get smaller with a {beyond} one than alpha = "
        f"{text.number(values[curve['chosen']])}.",
        advice,
    )


def _unequal_spread(context: Table) -> Notice | None:
    ratio = context["quality"]["spread_ratio"]
    if ratio is None or ratio < 3 or context["quality"]["exact"] or not context["coefficients"]["has_inference"]:
        return None
    return _notice(
        "note",
        "Errors are not equally large everywhere",
        f"The middle half of the residuals is {text.number(ratio, 2)} times wider at some "
        "predictions than at others. "
        "Standard errors, p-values and intervals assume equal width.",
        "Use the robust errors beside them. A transformed target (its logarithm, say) often helps.",
    )


def _heavy_tails(context: Table) -> Notice | None:
    quality = context["quality"]
    largest = quality["largest"]
    if largest is None or largest < 6 or quality["exact"] or not context["coefficients"]["has_inference"]:
        return None
    return _notice(
        "note",
        "A few rows are far from the fit",
        f"The largest residual is {text.number(largest, 2)} times the typical error; normal noise would "
        "hardly pass 5. Prediction intervals are then too narrow for the extremes, and such rows pull the "
        "coefficients.",
        "Look at those rows first: a typing error, another unit, or cases of another kind.",
    )


def _notice(level: str, title: str, words: str, action: str) -> Notice:
    return {"level": level, "title": title, "text": words, "action": action}


CHECKS = (
    _not_certified,
    _knows_the_answer,
    _skipped_rows,
    _dependent,
    _few_digits,
    _after_selection,
    _end_of_grid,
    _unequal_spread,
    _heavy_tails,
)
