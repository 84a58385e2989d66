"""The outcome of a hunt as tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.hunt.judge import KINDS

COLUMNS = (
    "cases", "states", "held", "false certificates", "understated", "false digits", "right", "refused", "share",
    "nudges", "passed", "crashes", "input refused", "unknown",
)  # fmt: skip
EXACT_COLUMNS = ("exact", "exact refuted", "exact undecided", "exact proven")  # of runs with --exact
MOST_SHOWN = 30


def counts_of(records: list[dict[str, Any]]) -> dict[str, float]:
    """The counts of a table's row. A case with several false certificates counts once per state."""
    right = sum(record["is_right"] for record in records)
    refused = sum(record["is_refused"] for record in records)
    return {
        "cases": len(records),
        "states": sum(record["states"] for record in records),
        "held": sum(record["held"] for record in records),
        "false certificates": sum(len(record["false_certificates"]) for record in records),
        "understated": sum(len(record["understated"]) for record in records),
        "false digits": sum(len(record["false_digits"]) for record in records),
        "right": right,
        "refused": refused,
        "share": refused / right if right else 0.0,
        "nudges": sum(record["nudges"] for record in records),
        "passed": sum(len(record["nudges_passed"]) for record in records),
        "crashes": sum(len(record["crashes"]) for record in records),
        "input refused": sum(bool(record["refused_input"]) for record in records),
        "unknown": sum(record["unknown"] for record in records),
        "exact": sum(bool(record["exact"]) for record in records),
        "exact refuted": sum(len(record["exact_refuted"]) for record in records),
        "exact undecided": sum(record["exact"] == "undecided" for record in records),
        "exact proven": sum(record["exact"] == "proven" for record in records),
    }


def table_of(console: Console, records: list[dict[str, Any]], seed: int) -> None:
    """Print counts per estimator, reasons of refusals, and how to see the findings again."""
    table = Table(title="refused: right, but not certified. understated: a value too small where it does not hold.")
    table.add_column("estimator", no_wrap=True)
    columns = COLUMNS + (EXACT_COLUMNS if any(record["exact"] for record in records) else ())
    for name in columns:
        table.add_column(name.replace(" ", "\n"), justify="right")
    names = list(dict.fromkeys(record["estimator"] for record in records))
    for name in sorted(names):
        _add(table, name, [record for record in records if record["estimator"] == name], columns)
    _add(table, "all", records, columns)
    console.print(table)
    reasons = Counter((record["estimator"], record["reason"]) for record in records if record["is_refused"])
    if reasons:
        shown = "; ".join(f"{name}, {reason}: {count}" for (name, reason), count in reasons.most_common(12))
        console.print(f"Refused though right, by what the data had: {shown}")
    bad = [record for record in records if any(record[kind] for kind in KINDS)]
    for record in sorted(bad, key=lambda record: record["case"])[:MOST_SHOWN]:
        kinds = ", ".join(kind.replace("_", " ") for kind in KINDS if record[kind])
        console.print(f"{record['estimator']}: {kinds}: python -m tests.hunt --seed {seed} --case {record['case']}")
    if len(bad) > MOST_SHOWN:
        console.print(f"... and {len(bad) - MOST_SHOWN} cases more: in the file.")


def _add(table: Table, name: str, records: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    counts = counts_of(records)
    cells = [f"{counts[column]:.1%}" if column == "share" else f"{counts[column]:,.0f}" for column in columns]
    table.add_row(name, *cells)
