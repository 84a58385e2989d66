"""What `certifit fit` chooses with the race of models, beside what it chooses with all models on all folds.

    python -m benchmarks.race [TABLE ...] [--data ../shared/data]

Each table is fitted twice as it comes, without and with `--cv 10`: the folds are the same. A line of the table: the
chosen model and its error on rows it did not see, both ways; the models that were stopped; the best error of all models
on all folds, its standard error, and CPU seconds. A choice is as good where its error is within one standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE = 3000  # rows of the larger tables


@dataclass(frozen=True)
class Table:
    """A file of the data and what is asked of it."""

    file: str
    target: str
    options: tuple[str, ...] = ()
    is_sampled: bool = False


TABLES = {
    "german_credit": Table("german_credit/german_credit.parquet", "class"),
    "wine_quality": Table("wine_quality/wine_quality.parquet", "quality", is_sampled=True),
    "ames_housing": Table("ames_housing/ames_housing.parquet", "Sale_Price"),
    "bike_sharing": Table(
        "bike_sharing/bike_sharing.parquet", "cnt", ("--drop", "instant,dteday,casual,registered"), is_sampled=True
    ),
    "adult": Table("adult/adult.parquet", "income", ("--drop", "split"), is_sampled=True),
    "quine": Table("classics_small/quine.csv", "Days"),
    "medpar": Table("classics_small/medpar.csv", "los", ("--drop", "provnum")),
}


@dataclass(frozen=True)
class Way:
    """What one command chose and what it compared, by the report."""

    chosen: str
    errors: dict[str, tuple[float, float]]
    stopped: list[str]
    cpu: float

    @property
    def error(self) -> float:
        """Of the model that was chosen."""
        return self.errors[self.chosen][0]


def fitted(path: Path, table: Table, *options: str) -> Way:
    """`certifit fit` of a table."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "certifit", "fit", str(path), "-t", table.target, "-o", out, *table.options]
        child = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}.")
        validation = json.loads((Path(out) / "report.json").read_text())["validation"]
    return Way(*read(validation), usage.ru_utime + usage.ru_stime)


def read(validation: dict[str, Any]) -> tuple[str, dict[str, tuple[float, float]], list[str]]:
    """The chosen model, errors and standard errors by model, and who was stopped."""
    stopped = [
        note.partition(" was stopped after ")[0] for note in validation["notes"] if " was stopped after " in note
    ]
    rows = {row["name"]: row for row in validation["rows"]}
    chosen = next(name for name, row in rows.items() if row["is_chosen"])
    errors = {name: (row["error"], row["standard_error"]) for name, row in rows.items() if not row["is_baseline"]}
    return chosen, errors, stopped


def sampled(path: Path, folder: Path) -> Path:
    """Some rows of a table, drawn by a fixed seed."""
    import pandas as pd

    out = folder / "sample.parquet"
    pd.read_parquet(path).sample(SAMPLE, random_state=0).to_parquet(out, index=False)
    return out


def line(name: str, race: Way, every: Way) -> str:
    """A line of the table."""
    best = min(every.errors, key=lambda model: every.errors[model][0])
    error, standard_error = every.errors[best]
    # The errors of all models are those without the race: the folds are the same.
    lost = (every.errors[race.chosen][0] - every.error) / standard_error
    words = "the same" if race.chosen == every.chosen else f"{lost:+.2f} standard errors"
    stopped = ", ".join(race.stopped) or "none"
    return (
        f"| {name} | {race.chosen}, {race.error:.4g} | {every.chosen}, {every.error:.4g} | {words} | "
        f"{best}, {error:.4g} ± {standard_error:.2g} | {stopped} | {race.cpu:.1f} | {every.cpu:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"some of {', '.join(TABLES)}")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    options = parser.parse_args()
    for name in options.tables or TABLES:
        table = TABLES[name]
        with tempfile.TemporaryDirectory() as folder:
            path = options.data / table.file
            path = sampled(path, Path(folder)) if table.is_sampled else path
            print(line(name, fitted(path, table), fitted(path, table, "--cv", "10")), flush=True)


if __name__ == "__main__":
    main()
