"""A stranger's first hour: ten real tables and the awkward files, fitted as somebody would who has read one line.

    python -m benchmarks.first_hour --data ../shared/data --out docs/first-hour.md

One process per command, forked from one that has imported what a fit needs (some 1 CPU second, which do not count).
CPU seconds and peak memory are those of the process. What came: the notes, the first line of
the leaderboard, the exit code.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import openpyxl  # noqa: F401
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet  # noqa: F401
import scipy.sparse.linalg  # noqa: F401
import sklearn.model_selection  # noqa: F401

import certifit.cli.fit
import certifit.models.least_squares.model
import certifit.report.folder
import certifit.selection.compare.leaderboard  # noqa: F401
from benchmarks.awkward import FILES
from certifit import cli

TABLES = {  # what is typed -> the file under the folder of tables, and what is in it
    "stackloss.csv --target stack.loss": ("classics_small/stackloss.csv", "21 rows of a plant"),
    "quine.csv --target Days": ("classics_small/quine.csv", "days absent from school"),
    "medpar.csv --target los": ("classics_small/medpar.csv", "days in hospital"),
    "visits.csv --target visits": ("classics_small/DoctorVisits.csv", "visits to a doctor"),
    "credit.parquet --target class": ("german_credit/german_credit.parquet", "good and bad credits"),
    "sms.parquet --target label": ("sms_spam/sms_spam.parquet", "short messages, free text"),
    "wine.parquet --target quality": ("wine_quality/wine_quality.parquet", "grades of wines"),
    "california.parquet --target median_house_value": (
        "california_housing/california_housing.parquet", "values of houses by district",
    ),
    "ames.parquet --target Sale_Price": ("ames_housing/ames_housing.parquet", "prices of houses, 80 columns"),
    "bike.parquet --target cnt": ("bike_sharing/bike_sharing.parquet", "bicycles lent per hour"),
}  # fmt: skip


@dataclass(frozen=True)
class Played:
    """One command and what came of it."""

    typed: str
    about: str
    code: int
    said: list[str]
    cpu: float
    megabytes: float


def play(typed: str, about: str, folder: Path) -> Played:
    """Run `certifit fit` in a folder; its processor time and memory are those of the child alone."""
    command, _, source = typed.partition(" < ")
    out = folder / "said.txt"
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        target = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.dup2(os.open(source or os.devnull, os.O_RDONLY), 0)
        _run(["fit", *shlex.split(command)])
    _, status, usage = os.wait4(child, 0)
    lines = out.read_text().splitlines()
    return Played(
        typed, about, os.waitstatus_to_exitcode(status), lines, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    )


def _run(arguments: list[str]) -> None:
    """The command in a child that has its modules already; ends the child."""
    code = 3
    try:
        cli.main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def came(played: Played) -> str:
    """Notes, what is said of columns, and the best model with its score; an error as it was printed."""
    notes = [line.removeprefix("Note: ") for line in played.said if line.startswith("Note: ")]
    best = [re.sub(r"\s{2,}", " ", line[2:]) for line in played.said if line.startswith("* ")]
    heads = [line for line in played.said if re.match(r"\s+(error|accuracy|deviance|log loss)\s", line)]
    columns = next((re.sub(r"\s{2,}", " ", line.strip()) for line in heads), "")
    told = re.findall(r"^  (?:to note|missing)   +(.+(?:\n {8,}\S.*)*)", "\n".join(played.said), re.MULTILINE)
    notes += [re.sub(r"\s+", " ", words) for words in told]
    said = [*notes, *(f"{best[0]} ({columns})" for _ in best[:1])]
    if played.code > 1:
        said = played.said[-1:]
    return "; ".join(said).replace("|", "\\|")


def page(rows: list[Played]) -> str:
    """The table in Markdown."""
    head = """# A first hour

The files that people have and ten real tables, each fitted by a short command; made by `python -m
benchmarks.first_hour`. The awkward files are those of `benchmarks/awkward.py`: one table of 240 flats, written in
other ways (docs/tables.md, "Files as people have them"). Every command begins with `certifit fit`; `--model linear`
makes least squares alone, without it all models are compared. What came: the notes, then the model that was taken,
with its error on new rows. CPU seconds (without the import of modules, some 1) and peak memory are those of
the process, on a machine that did other work too.

| typed | the file | what came | exit code | CPU s | peak MB |
|---|---|---|---|---|---|
"""
    lines = [
        f"| `{row.typed}` | {row.about} | {came(row)} | {row.code} | {row.cpu:.1f} | {row.megabytes:.0f} |\n"
        for row in rows
    ]
    return head + "".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("docs/first-hour.md"))
    options = parser.parse_args()
    rows: list[Played] = []

    def add(typed: str, about: str, folder: Path) -> None:
        rows.append(play(typed, about, folder))
        print(typed, rows[-1].code, f"{rows[-1].cpu:.1f} s", flush=True)
        options.out.write_text(page(rows))

    with tempfile.TemporaryDirectory() as name:
        for k, file in enumerate(FILES):
            folder = Path(name) / str(k)
            folder.mkdir()
            file.write(folder / file.name)
            add(file.typed.replace("FILE", file.name), file.about, folder)
        for typed, (place, about) in TABLES.items():
            folder = Path(name) / typed.split()[0]
            folder.mkdir()
            if not (options.data / place).exists():
                print(f"{place} is not there: left out")
                continue
            (folder / typed.split()[0]).symlink_to((options.data / place).resolve())
            add(typed, about, folder)


if __name__ == "__main__":
    main()
