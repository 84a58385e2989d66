"""The tables of the page as cells of text, numbers aligned at the decimal point.

The tables of a model of classes as cells of text, numbers aligned at the decimal point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from certifit.report import text
from certifit.report.text import Table
from certifit.report.what_decides import spoken

Cell = tuple[str, str]

# Rows of a table on the page; the rest stands in the JSON and CSV files.
MOST_ROWS = 600
# A longer table of coefficients is folded, with its most important rows before it.
LONG, MAIN_ROWS = 40, 20
# A category with more levels is cut to those that stand out most.
MOST_LEVELS, MAIN_LEVELS = 30, 15
LAST_STEPS = 12


def main_items(context: Table) -> list[Table]:
    """Nothing when the whole table is short; else what stands out most, a category as one head.

    The order is that of |t|; of the effect where there is no inference, or where categories are compared with numbers.
    """
    table = context["coefficients"]
    if table is None or len(shown_rows(table)) <= LONG:
        return []
    if not table["groups"]:
        return coefficient_rows(ranked(table, shown_rows(table))[:MAIN_ROWS])
    merged = {group["column"]: group for group in shown_groups(table) if group["n_levels"] > 2}
    rows = [row for row in shown_rows(table) if row["column"] not in merged and row["effect"] is not None]
    first = sorted([*rows, *merged.values()], key=lambda row: -abs(row["effect"] or 0))[:MAIN_ROWS]
    cells = iter(coefficient_rows([row for row in first if "estimate" in row]))
    return [next(cells) if "estimate" in row else {"role": "head"} | row for row in first]


def ranked(table: Table, rows: list[Table]) -> list[Table]:
    """Rows by |t|, or by the effect where there is no inference; those without are left out."""
    key = "t" if table["has_inference"] else "effect"
    return sorted((row for row in rows if row[key] is not None), key=lambda row: -abs(row[key]))


def interval_level(context: Table) -> str:
    """Of all intervals, in percent; of a model without coefficients and classes there are none."""
    table = context["coefficients"] or context["classes"]
    return "" if table is None else text.number(100 * table["level"])


def coefficient_items(context: Table) -> list[Table]:
    """Rows of the table of coefficients, each category under a head that names its reference level.

    An item has a `role`: row, level (a row under a head), head, or more (how many levels are not shown).
    """
    table = context["coefficients"]
    if table is None:
        return []
    groups = {group["column"]: group for group in table["groups"]}
    items: list[Table] = []
    for column_rows in _by_column(shown_rows(table)):
        group = groups.get(column_rows[0]["column"])
        if group is None or len(column_rows) == 1:
            reference = None if group is None else group["reference"]
            items += [{"role": "row", "label": row["name"], "reference": reference, "of": row} for row in column_rows]
            continue
        shown = _cut(table, column_rows)
        items.append({"role": "head"} | group)
        levels = [(row, row["level"] or "(missing)") for row in shown]
        items += [{"role": "level", "label": level, "reference": None, "of": row} for row, level in levels]
        if len(shown) < len(column_rows):
            items.append({"role": "more", "n": len(column_rows) - len(shown)})
    items = items[:MOST_ROWS]
    cells = iter(coefficient_rows([item["of"] for item in items if "of" in item]))
    return [next(cells) | item if "of" in item else item for item in items]


def shown_rows(table: Table) -> list[Table]:
    """All rows; those that are not zero, where columns were chosen."""
    return [row for row in table["rows"] if table["chosen"] is None or row["estimate"] != 0]


def shown_groups(table: Table) -> list[Table]:
    """All categories; those that kept a level, where columns were chosen."""
    return [group for group in table["groups"] if table["chosen"] is None or group["column"] in table["chosen"]["kept"]]


def _by_column(rows: list[Table]) -> list[list[Table]]:
    """Runs of rows that belong to one column."""
    runs: list[list[Table]] = []
    for row in rows:
        if runs and row["column"] is not None and runs[-1][-1]["column"] == row["column"]:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def _cut(table: Table, rows: list[Table]) -> list[Table]:
    """All levels of a short category; of a long one those that stand out most, in their order."""
    if len(rows) <= MOST_LEVELS:
        return rows
    kept = {id(row) for row in ranked(table, rows)[:MAIN_LEVELS]}
    return [row for row in rows if id(row) in kept]


def coefficient_rows(rows: list[Table]) -> list[Table]:
    """Cells of rows of coefficients."""
    decimals = [text.decimals_for(row["error"], row["estimate"]) for row in rows]
    columns = {
        key: aligned([text.fixed(row[key], d) for row, d in zip(rows, decimals, strict=True)])
        for key in ("estimate", "error", "low", "high", "robust_error")
    }
    columns["t"] = aligned([text.number(row["t"], 3) if row["t"] is None else f"{row['t']:.2f}" for row in rows])
    columns |= {key: aligned([text.p_value(row[key]) for row in rows]) for key in ("p", "robust_p")}
    for key in ("ratio", "step_ratio"):
        columns[key] = aligned([text.factor(row[key]) for row in rows])
    columns["digits"] = [("–" if row["digits"] is None else f"{int(row['digits'])}", "") for row in rows]
    return [
        {"name": row["name"], "role": "row", "label": row["name"], "reference": None}
        | {"weak": row["p"] is not None and row["p"] > 0.05}
        | {key: cells[k] for key, cells in columns.items()}
        for k, row in enumerate(rows)
    ]


def has_step_ratios(context: Table) -> bool:
    """Whether some column has a ratio per standard deviation."""
    table = context["coefficients"]
    return table is not None and any(row["step_ratio"] is not None for row in table["rows"])


def validation_rows(context: Table) -> list[Table]:
    """Cells of the leaderboard; R2 is of all validation rows together. Empty for models of classes."""
    validation = context["validation"]
    rows = [] if validation is None else validation["rows"]
    rows = [] if any(row["scores"] for row in rows) else rows
    errors = [text.measured(row["error"], row["standard_error"]) for row in rows]
    columns = {
        "error": aligned([error for error, _ in errors]),
        "plus_minus": aligned([f"± {plus_minus}" for _, plus_minus in errors]),
        "train": aligned([text.measured(row["train_error"], row["standard_error"])[0] for row in rows]),
        "r2": aligned([text.share(row["r2"]) for row in rows]),
        "difference": [(_difference(row), "") for row in rows],
    }
    return [leader_names(row) | {key: cells[k] for key, cells in columns.items()} for k, row in enumerate(rows)]


def leader_names(row: Table) -> Table:
    """The words of a row of a leaderboard."""
    return {"params": parameters(row["params"])} | {key: row[key] for key in ("name", "is_baseline", "is_chosen")}


# Parameters of models that folds choose -> the word of the options of the command line.
_SHORT = {"n_estimators": "rounds", "max_depth": "depth"}


def parameters(chosen: Mapping[str, Any]) -> str:
    """Parameters of a model in words, numbers to three digits.

    >>> parameters({"n_estimators": 25})
    'rounds 25'
    """
    named = {name.rpartition("__")[2]: value for name, value in chosen.items()}  # of an estimator inside another too
    return ", ".join(f"{_SHORT.get(name, name)} {_shown(value)}" for name, value in named.items())


def _shown(value: Any) -> str:
    return text.number(float(value), 3) if isinstance(value, int | float) else text.visible(value, 40)


def _difference(row: Table) -> str:
    if row["is_best"]:
        return "best"
    return " ± ".join(text.measured(row["difference"], row["difference_error"]))


def step_rows(context: Table) -> list[Table]:
    """Cells of the path of a selection, as it went."""
    selection = context["selection"]
    steps = [] if selection is None else selection["steps"][:MOST_ROWS]
    errors = [text.measured(step["error"], step["standard_error"]) for step in steps]
    columns = {
        "error": aligned([error for error, _ in errors]),
        "plus_minus": aligned([f"± {plus_minus}" for _, plus_minus in errors]),
        "train": aligned([text.measured(step["train_error"], step["standard_error"])[0] for step in steps]),
    }
    return [
        {"n_features": step["n_features"], "change": step["change"], "is_chosen": k == selection["chosen"]}
        | {key: cells[k] for key, cells in columns.items()}
        for k, step in enumerate(steps)
    ]


def collinear_rows(context: Table) -> list[Table]:
    """Cells of the columns of strong variance inflation."""
    table = context["coefficients"]
    rows = [] if table is None else table["collinear"]
    cells, correlations = (
        _number_rows(rows, "column", {"vif": 3}),
        aligned([text.share(row["correlation"]) for row in rows]),
    )
    others = zip(rows, correlations, strict=True)
    return [cell | {"like": row["like"], "correlation": one} for cell, (row, one) in zip(cells, others, strict=True)]


def influence_rows(context: Table) -> list[Table]:
    """Cells of the rows that matter most."""
    rows = [] if context["influence"] is None else context["influence"]["rows"]
    return _number_rows(rows, "place", {"leverage": 3, "studentised": 3, "cooks_distance": 3})


def outlier_rows(context: Table) -> list[Table]:
    """Cells of the rows furthest out."""
    rows = [] if context["outliers"] is None else context["outliers"]["rows"]
    return _number_rows(rows, "place", {"residual": 4, "scales": 3, "pull": 2})


def history_rows(context: Table) -> list[Table]:
    """Cells of the last steps of the solver."""
    rows = [] if context["history"] is None else context["history"]["rows"][-LAST_STEPS:]
    return _number_rows(rows, "iteration", {"objective": 8, "gap": 2})


def _number_rows(rows: list[Table], name: str, digits: dict[str, int]) -> list[Table]:
    """Numbers of so many digits, aligned at the point."""
    columns = {key: aligned([text.number(row[key], n) for row in rows]) for key, n in digits.items()}
    return [{name: row[name]} | {key: cells[k] for key, cells in columns.items()} for k, row in enumerate(rows)]


def column_rows(context: Table) -> list[Table]:
    """Cells of the table of the data: the target, then the columns."""
    data = context["data"]
    target = data["target"] | {"kind": "number", "levels": []}
    if target["classes"] is not None:
        most = sorted(target["classes"], key=lambda one: -one["share"])
        shares = [[one["label"], one["share"]] for one in most]
        target |= {"kind": "classes", "levels": shares}
    target |= {"missing": 0, "alone": None, "reason": None}
    target |= {"distinct": None if target["classes"] is None else len(target["classes"])}
    rows = [target, *data["columns"][:MOST_ROWS]]
    columns = {key: [(_short(row[key]), "") for row in rows] for key in ("mean", "sd")}
    missing = aligned([f"{text.count(row['missing'])}" if row["missing"] else "–" for row in rows])
    alone = aligned([_share(row["alone"]) for row in rows])
    return [
        {
            "name": row["name"],
            "is_target": k == 0,
            "kind": row["kind"],
            "reason": row["reason"],
            "missing": missing[k],
            "missing_share": text.percent(row["missing"] / data["n_rows"]) if row["missing"] else "",
            "distinct": (text.count(row["distinct"]) if row["distinct"] is not None else "–", ""),
            "content": _content(row),
            "alone": alone[k],
        }
        | {key: cells[k] for key, cells in columns.items()}
        for k, row in enumerate(rows)
    ]


def _content(row: Table) -> str:
    """The range of numbers and dates, the share of true, or the most frequent level."""
    if row["kind"] == "flag":
        return f"true in {text.percent(row['mean'])}"
    if row.get("levels"):
        level, share = row["levels"][0]
        return f"{text.visible(level, 24)} ({text.percent(share)})"
    if row.get("first"):
        return f"{row['first']} to {row['last']}"
    if row["low"] is None:
        return "–"
    return f"{text.number(row['low'])} to {text.number(row['high'])}"


def _short(value: float | None) -> str:
    return "–" if value is None else text.number(value)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def aligned(cells: list[str]) -> list[Cell]:
    """(text, invisible digits after it), so that decimal points of right-aligned cells stand in one line."""
    lengths = [_after_point(cell) for cell in cells]
    longest = min(max(lengths, default=0), 9)
    return [
        (
            cell,
            "" if length >= longest or "e" in cell or not cell[-1:].isdigit() else _filler(cell, longest, length),
        )
        for cell, length in zip(cells, lengths, strict=True)
    ]


def _filler(cell: str, longest: int, length: int) -> str:
    return ("" if "." in cell else ".") + "0" * (longest - length)


def _after_point(cell: str) -> int:
    return len(cell.split(".")[1]) if "." in cell and "e" not in cell else 0


# Classes that stand side by side in a table; classes with a list of their own; rows of such a list and of a table.
SIDE_BY_SIDE, MOST_LISTS, LIST_ROWS, GRID_ROWS = 6, 20, 12, 30
SCORES = ("accuracy", "log_loss", "auc", "f1")
UNKNOWN: Table = {"value": None, "low": None, "high": None}


def leader_rows(context: Table) -> list[Table]:
    """Cells of the leaderboard of models of classes; empty for models of a quantity."""
    rows = [] if context["validation"] is None else context["validation"]["rows"]
    if not any(row["scores"] for row in rows):
        return []
    scores = [row["scores"] or {name: UNKNOWN for name in SCORES} for row in rows]
    columns: dict[str, list[Cell]] = {}
    for name in SCORES:
        shown = loss_decimals if name == "log_loss" else decimals
        columns[name] = aligned([shown(one[name]["value"]) for one in scores])
        columns[f"{name}_interval"] = [(_interval(one[name]), "") for one in scores]
    return _joined([leader_names(row) for row in rows], columns)


def class_rows(context: Table) -> list[Table]:
    """Cells of the table of classes."""
    classes = context["classes"]
    rows = [] if classes is None else classes["rows"][:MOST_ROWS]
    columns = {key: aligned([text.count(row[key]) for row in rows]) for key in ("rows", "predicted")}
    columns["share"] = aligned([text.percent(row["share"]) for row in rows])
    for name in ("precision", "recall", "f1", "auc"):
        known = [row[name] or UNKNOWN for row in rows]
        columns[name] = aligned([decimals(one["value"]) for one in known])
        columns[f"{name}_interval"] = [(_interval(one), "") for one in known]
    columns["average_precision"] = aligned([decimals(row["average_precision"]) for row in rows])
    names = [{"label": row["label"], "is_positive": k == classes["positive"]} for k, row in enumerate(rows)]
    return _joined(names, columns)


def cut_rows(context: Table) -> list[Table]:
    """Cells of what other thresholds do."""
    rows = [] if context["classes"] is None else context["classes"]["cuts"]
    keys = ("called", "precision", "recall", "accuracy")
    columns = {key: aligned([text.percent(row[key]) for row in rows]) for key in keys}
    return _joined([{"cut": text.number(row["cut"])} for row in rows], columns)


def _joined(names: list[Table], columns: dict[str, list[Cell]]) -> list[Table]:
    """Rows of words and cells."""
    return [name | {key: cells[k] for key, cells in columns.items()} for k, name in enumerate(names)]


def deciding_lists(context: Table) -> list[Table]:
    """For each class what speaks for it; empty where all classes stand side by side in one table."""
    deciding = context["deciding"]
    if deciding is None or _stands_side_by_side(deciding):
        return []
    sizes = {one["label"]: one["rows"] for one in context["data"]["target"]["classes"]}
    order = sorted(range(len(deciding["labels"])), key=lambda k: -sizes.get(deciding["labels"][k], 0))
    return [one for k in sorted(order[:MOST_LISTS]) if (one := _list(deciding, k))["rows"]]


def _list(deciding: Table, k: int) -> Table:
    rows = spoken(deciding, k, LIST_ROWS)
    columns: dict[str, list[Cell]] = {}
    if deciding["what"] == "words":
        columns["times"] = aligned([_times(row["log_odds"][k]) for row in rows])
        columns["here"] = aligned([text.count(row["count"][k]) for row in rows])
        columns["elsewhere"] = aligned(
            [text.count(sum(n or 0 for n in row["count"]) - row["count"][k]) for row in rows]
        )
    else:
        columns["change"] = aligned([_signed(row["evidence"][k]) for row in rows])
        columns["ratio"] = aligned([_ratio(row["evidence"][k]) for row in rows])
    return {"label": deciding["labels"][k], "rows": _joined([{"name": row["name"]} for row in rows], columns)}


def deciding_grid(context: Table) -> list[Table]:
    """Columns with a cell for every class; empty for words, and for many classes."""
    deciding = context["deciding"]
    if deciding is None or not _stands_side_by_side(deciding):
        return []
    rows = deciding["rows"][:GRID_ROWS]
    places = range(len(deciding["labels"]))
    evidence = [aligned([_evidence(deciding, row, k) for row in rows]) for k in places]
    means = [[_mean(row, k) for row in rows] for k in places]
    ratios = [aligned([_ratio(row["evidence"][k]) for row in rows]) for k in places]
    return [
        {"name": row["name"], "evidence": [column[i] for column in evidence], "means": [column[i] for column in means]}
        | {"ratios": [column[i] for column in ratios]}
        for i, row in enumerate(rows)
    ]


def grid_labels(context: Table) -> list[str]:
    """Classes with a weight of their own: of two, the positive one."""
    deciding, classes = context["deciding"], context["classes"]
    if deciding is None or classes is None or not _stands_side_by_side(deciding):
        return []
    return list(deciding["labels"])


def weighed(context: Table) -> list[int]:
    """Places of the classes whose weights are shown: of two, one tells the other."""
    deciding, classes = context["deciding"], context["classes"]
    if deciding is None or classes is None:
        return []
    if deciding["what"] == "spreads":
        return [0]
    return list(range(len(deciding["labels"]))) if classes["positive"] is None else [classes["positive"]]


def _stands_side_by_side(deciding: Table) -> bool:
    return deciding["what"] != "words" and len(deciding["labels"]) <= SIDE_BY_SIDE


def _mean(row: Table, k: int) -> Cell:
    """Mean and spread in a class; of a column of 0 and 1 the share."""
    if row["is_share"]:
        return text.percent(row["mean"][k]), ""
    return text.number(row["mean"][k], 3), f"± {text.number(row['sd'][k], 2)}"


def _evidence(deciding: Table, row: Table, k: int) -> str:
    value = row["evidence"][k]
    return text.percent(value) if deciding["what"] == "spreads" else _signed(value)


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}".replace("-", "−")


def _ratio(log_odds: float | None) -> str:
    """What the odds are multiplied by."""
    return "–" if log_odds is None else text.number(math.exp(min(log_odds, 600.0)), 3)


def _times(log_odds: float | None) -> str:
    """How many times as often: 1.4, 23, 1,400."""
    if log_odds is None:
        return "always"
    times = math.exp(min(log_odds, 600.0))
    return f"{times:,.0f}" if 9.5 < times < 1e6 else text.number(times, 2)


def decimals(value: float | None) -> str:
    """A rate or a loss with three decimals; more of a rate that is nearly 1."""
    if value is None or not math.isfinite(value):
        return "–"
    if 0.9995 <= value < 1:
        return text.share(value)
    return f"{value:.3f}"


def loss_decimals(value: float | None) -> str:
    """A log loss with three decimals; as a power of ten where these would all be 0."""
    if value is None or not math.isfinite(value) or value >= 0.0005:
        return decimals(value)
    return text.small_loss(value)


def _interval(estimate: Table) -> str:
    return "" if estimate["low"] is None else f"{decimals(estimate['low'])} to {decimals(estimate['high'])}"
