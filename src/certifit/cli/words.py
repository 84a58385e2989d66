"""The result of a fit as plain lines for a terminal."""

import shlex
import textwrap
from pathlib import Path
from typing import Any

from certifit.report import folder, text
from certifit.report.tables import parameter, shown_groups, shown_rows

# A longer table of coefficients is left to the report.
MOST_COEFFICIENTS = 20
NAME_WIDTH = 28
MOST_STEPS = 16
WIDTH = 100

# Checks of the data that are worth a line here, and their short names. What warns has its own lines.
SAID = {
    "Missing values": "missing",
    "Constant columns": "constant",
    "Repeated columns": "repeated",
    "Identifiers, free text, too many levels": "to note",
    "Reference levels": "reference",
}


def lines(context: dict[str, Any], out: str, replaced: list[str]) -> list[str]:
    """What was fitted, how good it is, whether it is proven, warnings, and where the files are."""
    blocks = [_leaderboard(context), _steps(context), _sentences(context), _result(context), _data(context)]
    blocks += [*_warnings(context), _coefficients(context), _files(context, out, replaced)]
    return [text.visible(line) for block in blocks if block for line in [*block, ""]][:-1]


def _leaderboard(context: dict[str, Any]) -> list[str]:
    """Models by their error on rows they did not see; a star marks the one that is used."""
    validation = context["validation"]
    if validation is None or not validation["rows"]:
        return []
    cells = []
    for row in validation["rows"]:
        params = ", ".join(f"{name} {parameter(value)}" for name, value in row["params"].items())
        mark = "* " if row["is_chosen"] else "  "
        error, plus_minus = text.measured(row["error"], row["standard_error"])
        cells.append([mark + text.visible(row["name"], NAME_WIDTH), error, plus_minus, text.share(row["r2"]), params])
    group = validation["group"]
    kept = f", rows with the same {text.visible(group, 40)} kept together" if group else ""
    target = text.visible(context["model"]["target"], 60)
    title = f"Error of {target} on new rows, {validation['n_splits']} folds{kept}"
    return [title, "", *_table([["", "error", "+-", "R2", ""], *cells])]


def _steps(context: dict[str, Any]) -> list[str]:
    """The steps of a selection up to the chosen one, or the first and the last of them."""
    selection = context["selection"]
    if selection is None:
        return []
    steps = [(step, k == selection["chosen"]) for k, step in enumerate(selection["steps"])]
    steps = steps[: selection["chosen"] + 2]
    is_forward = selection["direction"] == "forward"
    start = "fixed columns" if is_forward else "all columns"
    cells = []
    for step, is_chosen in steps:
        name = text.visible(step["change"], NAME_WIDTH) if step["change"] is not None else start
        numbers = text.measured(step["error"], step["standard_error"])
        cells.append([("* " if is_chosen else "  ") + name, text.count(step["n_features"]), *numbers])
    if len(cells) > MOST_STEPS:
        cells = [*cells[: MOST_STEPS - 4], ["  ...", "", "", ""], *cells[-3:]]
    head = ["  added" if is_forward else "  dropped", "columns", "error", "+-"]
    chosen = text.plural(len(selection["features"]), "column")
    names = _wrapped(f"{chosen} chosen: {text.joined(selection['features'], 30)}.")
    redundant = [line for sentence in selection["redundant"][:3] for line in _wrapped(sentence)]
    return [*_table([head, *cells]), "", *names, *redundant]


def _sentences(context: dict[str, Any]) -> list[str]:
    validation = context["validation"]
    sentences = [] if validation is None else validation["sentences"]
    return [line for sentence in sentences for line in _wrapped(sentence.replace("±", "+-"))]


def _table(cells: list[list[str]]) -> list[str]:
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    return [_row(row, widths, indent="") for row in cells]


def _result(context: dict[str, Any]) -> list[str]:
    model, data, quality, certificate = (context[key] for key in ("model", "data", "quality", "certificate"))
    what = model["basis"] or text.plural(model["n_features"], "column")
    types = next(check["text"] for check in context["checks"] if check["name"] == "Types")
    target = text.visible(model["target"], 60)
    rows = [
        f"{target} from {what}, {model['words']}, {text.plural(data['n_rows'], 'row')}",
        "",
    ]
    rows.append(f"  columns        {types[:1].lower()}{types[1:-1]}")
    adjusted = quality["adjusted_r2"]
    detail = f"   adjusted {text.share(adjusted)}" if adjusted is not None else ""
    rows.append(f"  R2             {text.share(quality['r2'])}{detail}")
    spread = text.number(data["target"]["sd"])
    rows.append(f"  typical error  {text.number(quality['sigma'])}   spread of the target {spread}")
    value, tolerance = text.power(certificate["value"]), text.power(certificate["tolerance"])
    size = model["minimised"]
    if certificate["holds"]:
        rows.append(f"  converged      yes, proven: no coefficients can lower the {size} by more than {value} of it")
    else:
        rows.append(f"  converged      NO: the {size} may be {value} above the best, {tolerance} was asked for")
    return rows + _chosen(context) + _held_back(context)


def _chosen(context: dict[str, Any]) -> list[str]:
    """What a penalty that drops columns kept."""
    chosen = context["coefficients"]["chosen"]
    if chosen is None:
        return []
    kept, dropped = chosen["kept"], chosen["dropped"]
    lines = _wrapped(text.joined(kept, 12) if kept else "no column", "  kept           ")
    return lines + (_wrapped(text.joined(dropped, 12), "  dropped        ") if dropped else [])


def _held_back(context: dict[str, Any]) -> list[str]:
    """Rows that a robust fit does not follow."""
    outliers = context["outliers"]
    if outliers is None:
        return []
    rows = ", ".join(str(row["row"]) for row in outliers["rows"][:5])
    named = f", furthest out: {rows} (counted from 0)" if rows else ""
    return [f"  held back      {text.plural(outliers['n_beyond'], 'row')}{named}"]


def _data(context: dict[str, Any]) -> list[str]:
    """What became of the columns, where there is something to say."""
    found = [check for check in context["checks"] if check["level"] != "ok" and check["name"] in SAID]
    width = max((len(SAID[check["name"]]) for check in found), default=0)
    lines = []
    for check in found:
        words = check["details"][0] if len(check["details"]) == 1 else check["text"]
        lines += _wrapped(words, f"  {SAID[check['name']].ljust(width)}   ")
    return lines


def _coefficients(context: dict[str, Any]) -> list[str]:
    table = context["coefficients"]
    cells = _merged(table)
    if len(cells) > MOST_COEFFICIENTS:
        return [f"  {text.count(len(table['rows']))} coefficients: see the report"]
    level = text.number(100 * table["level"])
    head = ["column", "coefficient", "std. error", "p-value", f"{level} % interval", ""]
    if not table["has_inference"]:
        head, cells = head[:2], [row[:2] for row in cells]
    widths = [max(len(row[j]) for row in [head, *cells]) for j in range(len(head))]
    shown = [_row(row, widths) for row in [head, *cells]]
    return shown + ([] if table["has_inference"] else ["", *_wrapped(table["reason"])])


def _merged(table: dict[str, Any]) -> list[list[str]]:
    """A row a coefficient, but a category of more than two levels is one row, with the test of all of them."""
    groups = {group["column"]: group for group in shown_groups(table) if group["n_levels"] > 2}
    cells = [_cells(row) for row in shown_rows(table) if row["column"] not in groups]
    for group in groups.values():
        name = text.visible(group["column"], NAME_WIDTH - 12)
        cells.append([f"{name}, {group['n_levels']} levels", "", "", text.p_value(group["p"]), "", ""])
    return cells


def _cells(row: dict[str, Any]) -> list[str]:
    decimals = text.decimals_for(row["error"], row["estimate"])
    numbers = [text.fixed(row[key], decimals) if row[key] is not None else "" for key in ("estimate", "error")]
    bounds = [text.fixed(row[key], decimals) if row[key] is not None else "" for key in ("low", "high")]
    return [text.visible(row["name"], NAME_WIDTH), *numbers, text.p_value(row["p"]), *bounds]


def _row(cells: list[str], widths: list[int], indent: str = "  ") -> str:
    rest = "   ".join(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return f"{indent}{cells[0].ljust(widths[0])}   {rest}".rstrip()


def _warnings(context: dict[str, Any]) -> list[list[str]]:
    return [
        [
            f"{'Note' if notice['level'] == 'note' else 'Warning'}: {notice['title']}.",
            *_wrapped(notice["text"]),
            *_wrapped(notice["action"]),
        ]
        for notice in context["warnings"]
    ]


def _wrapped(words: str, label: str = "  ") -> list[str]:
    return textwrap.wrap(text.visible(words), WIDTH, initial_indent=label, subsequent_indent=" " * len(label))


def _files(context: dict[str, Any], out: str, replaced: list[str]) -> list[str]:
    place = Path(out)
    names = [folder.REPORT, folder.MODEL, folder.CARD, folder.COEFFICIENTS, folder.CONTEXT]
    names += [] if context["selection"] is None else [folder.SELECTION]
    names.append(f"{folder.PICTURES}/ ({text.plural(len(context['figures']), 'picture')})")
    verb = "Replaced the earlier fit in" if replaced else "Wrote to"
    return [
        f"{verb} {place}: {', '.join(names)}",
        f"  open     {place / folder.REPORT}",
        f"  predict  certifit predict {shlex.quote(str(place / folder.MODEL))} NEW --out predictions.csv",
    ]
