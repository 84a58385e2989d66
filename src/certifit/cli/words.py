"""The result of a fit as plain lines for a terminal."""

import shlex
import textwrap
from pathlib import Path
from typing import Any

from certifit.report import folder, text
from certifit.report.checks import ABSENT
from certifit.report.coefficients import CHOSEN
from certifit.report.tables import SCORES, class_rows, leader_rows, parameters, shown_groups, shown_rows
from certifit.report.what_decides import spoken

# A longer table of coefficients is left to the report.
MOST_COEFFICIENTS = 20
NAME_WIDTH = 30  # the longest name of a model has 29
MOST_STEPS = 16
MOST_CLASSES = 10
MOST_DECIDING = 8
WIDTH = 100

# Checks of the data that are worth a line here, and their short names. What warns has its own lines.
SAID = {
    "Rows of each class": "rare",
    "Missing values": "missing",
    "Levels": "levels",
    "Constant columns": "constant",
    "Repeated columns": "repeated",
    "Identifiers, free text, too many levels": "to note",
    "Reference levels": "reference",
}


def lines(context: dict[str, Any], out: str, replaced: list[str]) -> list[str]:
    """What was fitted, how good it is, whether it is proven, warnings, and where the files are."""
    blocks = [*_warnings(context, ["bad"]), _leaderboard(context), _class_leaderboard(context), _steps(context)]
    blocks += [_sentences(context), _result(context), _data(context), *_warnings(context, ["warn", "note"])]
    blocks += [_classes(context), _deciding(context)]
    blocks += [_coefficients(context), _files(context, out, replaced)]
    return [text.visible(line) for block in blocks if block for line in [*block, ""]][:-1]


def _leaderboard(context: dict[str, Any]) -> list[str]:
    """Models by their error on rows they did not see; a star marks the one that is used."""
    validation = context["validation"]
    if context["classes"] is not None or validation is None or not validation["rows"]:
        return []
    cells, has_share = [], any(row["r2"] is not None for row in validation["rows"])
    for row in validation["rows"]:
        mark, params = _mark(row), _params(row)
        error, plus_minus = text.measured(row["error"], row["standard_error"])
        explained = [text.share(row["r2"])] if has_share else []
        cells.append([mark + _model_name(row), error, plus_minus, *explained, params])
    target = text.visible(context["model"]["target"], 60)
    is_squared = has_share and validation["share"] == "R²"
    error, share = ("Error", "R2") if is_squared else (_capital(validation["measure"]), "explained")
    title = f"{error} of {target} on new rows, {_folds(validation)}"
    unit = "deviance" if validation["measure"].endswith("deviance") else "error"
    return [title, "", *_table([["", unit, "+-", *([share] if has_share else []), ""], *cells])]


def _model_name(row: dict[str, Any]) -> str:
    return f"{text.visible(row['name'], NAME_WIDTH)}{' (baseline)' if row['is_baseline'] else ''}"


def _class_leaderboard(context: dict[str, Any]) -> list[str]:
    """Models of classes by how they do on rows they did not see."""
    rows = leader_rows(context)
    if not rows:
        return []
    head = ["", "accuracy", "log loss", "AUC", "F1", ""]
    cells = [[_mark(row) + _model_name(row), *(row[name][0] for name in SCORES), row["params"]] for row in rows]
    target = text.visible(context["model"]["target"], 60)
    one_class = [row["name"] for row in rows if row["f1"][0] == "–" and row["accuracy"][0] != "–"]
    always = f"No F1 of {text.joined(one_class, 5)}: every row is put in the same class." if one_class else ""
    notes = ["", *_wrapped(always)] if always else []
    return [f"{target} on new rows, {_folds(context['validation'])}", "", *_table([head, *cells]), *notes]


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _mark(row: dict[str, Any]) -> str:
    return "* " if row["is_chosen"] else "  "


def _params(row: dict[str, Any]) -> str:
    return parameters(row["params"])


def _folds(validation: dict[str, Any]) -> str:
    group = validation["group"]
    kept = f", rows with the same {text.visible(group, 40)} kept together" if group else ""
    return f"{validation['n_splits']} folds{kept}"


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
    sentences = [sentence for sentence in sentences if not any(words in sentence for words in text.BY_NOTICES)]
    return [line for sentence in sentences for line in _wrapped(sentence.replace("±", "+-"))]


def _table(cells: list[list[str]]) -> list[str]:
    widths = [max(len(row[j]) for row in cells) for j in range(len(cells[0]))]
    return [_row(row, widths, indent="") for row in cells]


def _result(context: dict[str, Any]) -> list[str]:
    model, data = context["model"], context["data"]
    what = model["basis"] or text.plural(model["n_features"], "column")
    types = next(check["text"] for check in context["checks"] if check["name"] == "Types")
    target = text.visible(model["target"], 60)
    rows = [*_wrapped(f"{target} from {what}, {model['words']}, {text.plural(data['n_rows'], 'row')}", ""), ""]
    rows.append(f"  columns        {types[:1].lower()}{types[1:-1]}")
    return (
        rows
        + _quality(context)
        + _deviance(context)
        + _rates(context)
        + _proof(context)
        + _chosen(context)
        + _held_back(context)
    )


def _quality(context: dict[str, Any]) -> list[str]:
    quality = context["quality"]
    if quality is None:
        return []
    adjusted, metric = quality["adjusted_r2"], quality["metric"]
    detail = f"   adjusted {text.share(adjusted)}" if adjusted is not None else ""
    detail = "   on the rows of the fit" if quality["flexible"] else detail
    of_fit = ", on the rows of the fit" if quality["flexible"] else ""
    spread = text.amount(context["data"]["target"]["sd"])
    first = f"  R2             {text.share(quality['r2'])}{detail}"
    if metric is not None:
        first = f"  error          {text.number(metric['value'])}   {metric['name']}, {text.less_than(metric)}"
    return [
        first,
        f"  typical error  {text.amount(quality['sigma'])}{of_fit}   spread of the target {spread}",
    ]


def _deviance(context: dict[str, Any]) -> list[str]:
    """What a generalised linear model explains, and how its target spreads."""
    deviance = context["deviance"]
    if deviance is None:
        return []
    lines = []
    if deviance["explained"] is not None:
        aic = "" if deviance["aic"] is None else f"   AIC {text.number(deviance['aic'], 7)}"
        lines.append(f"  deviance       {text.percent(deviance['explained'])} explained{aic}")
    if deviance["spread"] is not None:
        lines.append(f"  dispersion     {text.number(deviance['spread'], 3)}   1 is the {deviance['family']} family's")
    elif deviance["is_estimated"]:
        lines.append(f"  dispersion     {text.number(deviance['dispersion'], 3)}   estimated")
    return lines


def _rates(context: dict[str, Any]) -> list[str]:
    """Shares of right rows and the like, on rows that were not seen."""
    classes = context["classes"]
    if classes is None:
        return []
    scores, base = classes["metrics"], classes["baseline"]
    where = "" if classes["is_new"] else "   on the rows of the fit: new rows do worse"
    label = f"   always {text.visible(base['label'], 30)}: {text.percent(base['accuracy'])}"
    shares = ", ".join(
        f"{text.visible(one['label'], 30)} {text.percent(one['share'])}" for one in _largest(context, MOST_CLASSES)
    )
    more = len(context["data"]["target"]["classes"]) - MOST_CLASSES
    lines = _wrapped(shares + (f" and {more} more" if more > 0 else ""), "  classes        ")
    lines.append(f"  accuracy       {text.percent(scores['accuracy']['value'])}{label}{where}")
    of = "" if classes["positive"] is None else f" of {text.visible(classes['labels'][classes['positive']], 30)}"
    called = [row["label"] for row in classes["rows"] if row["predicted"]]
    f1 = f"   F1{of} {text.number(scores['f1']['value'], 3)}"
    if len(called) == 1:
        f1 = f"   no F1: every row is predicted {text.visible(called[0], 30)}"
    lines.append(f"  AUC            {text.number(scores['auc']['value'], 4)}{f1}")
    loss = scores["log_loss"]["value"]
    shown = text.small_loss(loss) if loss < text.LEAST_LOSS else text.number(loss, 4)
    losses = f"{shown}   baseline, class shares alone: {text.number(base['log_loss'], 4)}"
    lines += [f"  log loss       {losses}", f"  probabilities  {classes['calibration']['verdict']['words']}"]
    return [*lines, *_costs(classes)]


def _costs(classes: dict[str, Any]) -> list[str]:
    """What decisions by cost save, and how to make them."""
    costs = classes["costs"]
    if costs is None:
        return []
    how = shlex.quote(",".join(f"{text.visible(one['label'])}={one['cost']:g}" for one in costs["by_label"]))
    figures = [text.number(costs[key]["value"], 3) for key in ("decided", "most_probable", "constant")]
    always = text.visible(costs["constant_label"], 30)
    words = (
        f"{figures[0]} per row by least expected cost, {figures[1]} by the most probable class, {figures[2]} by always "
        f"{always}. To predict so: certifit predict --costs {how}"
    )
    return _wrapped(words, "  cost           ")


def _largest(context: dict[str, Any], most: int) -> list[dict[str, Any]]:
    return sorted(context["data"]["target"]["classes"], key=lambda one: -one["rows"])[:most]


def _proof(context: dict[str, Any]) -> list[str]:
    certificate, size = context["certificate"], context["model"]["minimised"]
    goal = certificate["goal"]
    is_smaller = goal["better"] == "smaller"
    value, tolerance = text.power(certificate["value"]), text.power(certificate["tolerance"])
    if goal["is_derived"]:
        words = f"yes: {goal['agreed']}" if certificate["holds"] else "NO: see above"
        return [f"  {goal['done'].lower()}  {words}"]
    label = "converged" if is_smaller else "best fit"
    if certificate["holds"]:
        most = text.bound(certificate["value"])
        bound = f"{most} of it" if is_smaller else f"{most} {goal['unit']}"
        none = f"no {goal['chosen']} can {goal['lower']}" if is_smaller else f"nothing {goal['lower']}s"
        sure = "by an estimate, no proof" if certificate["is_local"] else "proven"
        words = f"yes, {sure}: {none} the {size} by more than {bound}"
    elif certificate["fault"] is not None:
        words = "NO: not proven, see above"
    else:
        side = "above" if is_smaller else f"{goal['unit']} below"
        words = f"NO: the {size} may be {value} {side} the best, {tolerance} was asked for"
    return [f"  {label.ljust(13)}  {words}"]


def _chosen(context: dict[str, Any]) -> list[str]:
    """What a penalty that drops columns kept."""
    chosen = None if context["coefficients"] is None else context["coefficients"]["chosen"]
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
    rows = ", ".join(row["place"] for row in outliers["rows"][:5])
    named = f", furthest out: {rows}" if rows else ""
    return [f"  held back      {text.plural(outliers['n_beyond'], 'row')}{named}"]


MOST_DETAILS = 2  # sentences of a check that are printed one by one


def _data(context: dict[str, Any]) -> list[str]:
    """What became of the columns, where there is something to say."""
    shown_checks = [check for check in context["checks"] if check["level"] != "ok" and check["name"] in SAID]
    width = max((len(SAID[check["name"]]) for check in shown_checks), default=0)
    lines = []
    for check in shown_checks:
        details = check["details"]
        if len(details) > MOST_DETAILS:  # numbers that were read as no value are named among others too
            absent = [sentence for sentence in details if ABSENT in sentence]
            more = [f"{text.count(len(absent) - MOST_DETAILS)} more columns: see the report."]
            details = [check["text"], *absent[:MOST_DETAILS], *(more if len(absent) > MOST_DETAILS else [])]
        words = " ".join(details) if details else check["text"]
        lines += _wrapped(words, f"  {SAID[check['name']].ljust(width)}   ")
    return lines


def _classes(context: dict[str, Any]) -> list[str]:
    """Precision and recall of each class, where there are a few."""
    rows = class_rows(context)
    if not rows:
        return []
    if len(rows) > MOST_CLASSES:
        return [f"  {text.count(len(rows))} classes: see the report"]
    head = ["class", "rows", "predicted", "precision", "recall", "F1"]
    cells = [
        [text.visible(row["label"], NAME_WIDTH), *(row[key][0] for key in ("rows", *head[2:5], "f1"))] for row in rows
    ]
    widths = [max(len(row[j]) for row in [head, *cells]) for j in range(len(head))]
    return [_row(row, widths) for row in [head, *cells]]


def _deciding(context: dict[str, Any]) -> list[str]:
    """What speaks for each class: the first few words or columns."""
    deciding = context["deciding"]
    if deciding is None:
        return []
    if deciding["what"] == "spreads":
        first = [row["name"] for row in deciding["rows"][:MOST_DECIDING]]
        return _wrapped(text.joined(first, MOST_DECIDING), "  decides most   ")
    labels = [one["label"] for one in _largest(context, MOST_CLASSES)]
    lines = []
    for k, label in enumerate(deciding["labels"]):
        names = [row["name"] for row in spoken(deciding, k, MOST_DECIDING)]
        if label in labels and names:
            lines += _wrapped(text.joined(names, MOST_DECIDING), f"  for {text.visible(label, 20).ljust(10)} ")
    return lines


def _coefficients(context: dict[str, Any]) -> list[str]:
    table = context["coefficients"]
    if table is None:
        return []
    cells = _merged(table)
    if len(cells) > MOST_COEFFICIENTS:
        return [f"  {text.count(len(table['rows']))} coefficients: see the report"]
    level = text.number(100 * table["level"])
    head = ["column", "coefficient", "std. error", "p-value", f"{level} % interval", ""]
    if not table["has_inference"]:
        head, cells = head[:2], [row[:2] for row in cells]
    widths = [max(len(row[j]) for row in [head, *cells]) for j in range(len(head))]
    shown = [_row(row, widths) for row in [head, *cells]]
    said = [f"{one['column']}: {one['words']}." for one in table["pooled"]]
    said += [note for note in table["notes"] if CHOSEN in note] + ([] if table["reason"] is None else [table["reason"]])
    return shown + [line for sentence in said for line in ("", *_wrapped(sentence))]


def _merged(table: dict[str, Any]) -> list[list[str]]:
    """A row per coefficient, but a category of more than two levels is one row, with the test of all of them."""
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


def _warnings(context: dict[str, Any], levels: list[str]) -> list[list[str]]:
    return [
        [
            f"{'Note' if notice['level'] == 'note' else 'Warning'}: {notice['title']}.",
            *_wrapped(notice["text"]),
            *_wrapped(notice["action"]),
        ]
        for notice in context["warnings"]
        if notice["level"] in levels
    ]


def _wrapped(words: str, label: str = "  ") -> list[str]:
    return textwrap.wrap(
        text.visible(words), WIDTH, break_on_hyphens=False, initial_indent=label, subsequent_indent=" " * len(label)
    )


def _files(context: dict[str, Any], out: str, replaced: list[str]) -> list[str]:
    place = Path(out)
    tables = [name for name, (key, _) in folder.TABLES.items() if context[key] is not None]
    names = [folder.REPORT, folder.MODEL, folder.CARD, *tables[:1], folder.CONTEXT, *tables[1:]]
    names.append(f"{folder.PICTURES}/ ({text.plural(len(context['figures']), 'picture')})")
    verb = "Replaced the earlier fit in" if replaced else "Wrote to"
    return [
        f"{verb} {place}: {', '.join(names)}",
        f"  open     {place / folder.REPORT}",
        f"  predict  certifit predict {shlex.quote(str(place / folder.MODEL))} NEW --out predictions.csv",
    ]
