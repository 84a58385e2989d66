"""The tables, in Markdown, from result lines.

    python -m benchmarks.table FILE [--summary]

A ratio is the rival's time over certifit's: above 1, certifit is faster. Rivals whose objective exceeds the
best by more than EQUAL solved the problem less well; the summary names the fastest with and without them.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from . import record
from .record import Record

OURS = "certifit"
EQUAL = 1e-8  # relative excess of the objective, certifit's default tol

Cell = Callable[[Record, Record | None], str]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description="Make the tables.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--summary", action="store_true", help="one row a problem, against the fastest peer")
    options = parser.parse_args()
    records = record.read(options.file)
    print(summary(records) if options.summary else markdown(records))


def markdown(records: list[Record]) -> str:
    """A table a problem, then the summary."""
    parts = [section(name, lines) for name, lines in by_problem(records).items()]
    return "\n\n".join([*parts, "## Summary", summary(records), footnote(records)])


def section(name: str, lines: list[Record]) -> str:
    problem = lines[0]["problem"]
    ours = fastest(line for line in lines if line["rival"] == OURS and line["status"] == "ok")
    heading = (
        f"## {name}\n\n{problem['about']}; {problem['rows']:,} x {problem['columns']:,}, {problem['dtype']}, "
        f"storage {problem['storage']}, {problem['bytes'] / 1e6:,.3g} MB, alpha {problem['alpha']:g}, "
        f"objective {lines[0]['best_objective']:.12g}\n\n"
    )
    ranked = sorted(lines, key=lambda line: (line["wall"] is None, line["wall"]))
    return heading + grid(list(COLUMNS), [[cell(line, ours) for cell in COLUMNS.values()] for line in ranked])


def summary(records: list[Record]) -> str:
    """One row a problem: certifit against the fastest peer of equal, and of any, quality."""
    head = ["problem", "certifit", "extra memory, of X", "fastest peer of equal quality", "its time", "ratio"]
    head += ["CPU ratio", "fastest peer of any quality", "ratio", "its excess objective"]
    rows = []
    for name, lines in by_problem(records).items():
        solved = [line for line in lines if line["status"] == "ok"]
        ours = fastest(line for line in solved if line["rival"] == OURS)
        peers = [line for line in solved if line["rival"] != OURS]
        equal = fastest(line for line in peers if line["excess"] <= EQUAL)
        row = [name, seconds(ours["wall"]) if ours else "-", memory(ours) if ours else "-"]
        row += show(equal, ours, SUMMARY_EQUAL) + show(fastest(peers), ours, SUMMARY_ANY)
        rows.append(row)
    return grid(head, rows)


def show(line: Record | None, ours: Record | None, cells: tuple[Cell, ...]) -> list[str]:
    return ["-" if line is None else cell(line, ours) for cell in cells]


def footnote(records: list[Record]) -> str:
    if not records:
        return "No results."
    versions: dict[str, str] = {}
    for line in records:
        versions |= line["versions"]
    first = records[0]
    text = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"{first['machine']}; threads: {first['threads']}; {first['when'][:10]}; {text}."


def by_problem(records: list[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for line in records:
        groups.setdefault(line["problem"]["name"], []).append(line)
    return groups


def fastest(lines: Iterable[Record]) -> Record | None:
    return min(lines, key=lambda line: line["wall"], default=None)


def seconds(value: float | None) -> str:
    if value is None:
        return "failed"
    return f"{value:.3f} s" if value >= 0.1 else f"{value * 1e3:.3g} ms"


def memory(line: Record) -> str:
    """Percent of X; beside less than 1 MB of rows the granularity of pages says nothing."""
    share = line["peak_memory_of_X"]
    return "-" if share is None or line["problem"]["bytes"] < 1e6 else f"{share:.0%}"


def error(value: float | None) -> str:
    return "-" if value is None else f"{value:.0e}" if value else "0"


def ratio(measure: str) -> Cell:
    def cell(line: Record, ours: Record | None) -> str:
        if ours is None or line[measure] is None or not ours[measure]:
            return "-"
        return f"{line[measure] / ours[measure]:.2f}"

    return cell


COLUMNS: dict[str, Cell] = {
    "rival": lambda line, _: line["rival"],
    "variant": lambda line, _: line["variant"].replace("|", "\\|"),
    "wall": lambda line, _: seconds(line["wall"]),
    "ratio": ratio("wall"),
    "CPU": lambda line, _: seconds(line["cpu"]),
    "CPU ratio": ratio("cpu"),
    "runs": lambda line, _: str(line["runs"]),
    "extra memory, of X": lambda line, _: memory(line),
    "excess objective": lambda line, _: error(line["excess"]),
    "weights differ by": lambda line, _: error(line["coef_difference"]),
    "certificate": lambda line, _: {None: "none", True: "holds", False: "does not hold"}[line["certified"]],
}


def title(line: Record, _: Record | None) -> str:
    return f"{line['rival']} {line['variant']}"


SUMMARY_EQUAL: tuple[Cell, ...] = (title, COLUMNS["wall"], ratio("wall"), ratio("cpu"))
SUMMARY_ANY: tuple[Cell, ...] = (title, ratio("wall"), COLUMNS["excess objective"])


def grid(head: list[str], rows: list[list[str]]) -> str:
    marks = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, marks, *rows])


if __name__ == "__main__":
    main()
