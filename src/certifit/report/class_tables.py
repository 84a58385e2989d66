"""The tables of a model of classes as cells of text, numbers aligned at the decimal point."""

import math

from certifit.report import text
from certifit.report.deciding import spoken
from certifit.report.facts import Table
from certifit.report.tables import MOST_ROWS, Cell, aligned, leader_names

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
    found = context["classes"]
    rows = [] if found is None else found["rows"][:MOST_ROWS]
    columns = {key: aligned([text.count(row[key]) for row in rows]) for key in ("rows", "predicted")}
    columns["share"] = aligned([text.percent(row["share"]) for row in rows])
    for name in ("precision", "recall", "f1", "auc"):
        known = [row[name] or UNKNOWN for row in rows]
        columns[name] = aligned([decimals(one["value"]) for one in known])
        columns[f"{name}_interval"] = [(_interval(one), "") for one in known]
    columns["average_precision"] = aligned([decimals(row["average_precision"]) for row in rows])
    names = [{"label": row["label"], "is_positive": k == found["positive"]} for k, row in enumerate(rows)]
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
    deciding, found = context["deciding"], context["classes"]
    if deciding is None or found is None or not _stands_side_by_side(deciding):
        return []
    return list(deciding["labels"])


def weighed(context: Table) -> list[int]:
    """Places of the classes whose weights are shown: of two, one tells the other."""
    deciding, found = context["deciding"], context["classes"]
    if deciding is None or found is None:
        return []
    if deciding["what"] == "spreads":
        return [0]
    return list(range(len(deciding["labels"]))) if found["positive"] is None else [found["positive"]]


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


def _interval(found: Table) -> str:
    return "" if found["low"] is None else f"{decimals(found['low'])} to {decimals(found['high'])}"
