"""Paths on the command line as scans: CSV or Parquet, told by the end of the name and by the first bytes."""

import csv
import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from certifit.cli.errors import readable_file
from certifit.report.text import visible

CSV = (".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst")
PARQUET = (".parquet", ".pq")

# What the scan of a CSV file should read a kind of column as, so that new rows are read as those of the fit.
CSV_TYPES = {"number": "number", "flag": "flag", "level": "text", "text": "text"}

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Data:
    """Files of one format, in order. `shown`: the paths as they were typed; `reading`: options of the scan."""

    shown: tuple[str, ...]
    files: tuple[str, ...]
    scan: str
    reading: dict[str, Any] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Names of all columns, from the header or the footer of the first file."""
        if self.scan == "scan_parquet":
            return list(self._scanned(self.files[:1]).schema.names)
        from certifit.data.formats.csv import Text

        options = self.reading
        return list(Text.of(self.files[0], options.get("delimiter"), options.get("encoding", "utf8"), ()).header)

    def open(self, types: dict[str, str] | None = None, labels: bool = False, **roles: Any) -> Any:
        """The scan; roles: target, weight, columns, ... `types` are wishes for CSV: those of the user come first.

        labels: the target may be text; else it is numbers.
        """
        wished = {name: kind for name, kind in (types or {}).items() if name in self.names()}
        source = self._scanned(self.files, wished, **roles)
        numbers = ("weight", "offset", "exposure") if labels else ("target", "weight", "offset", "exposure")
        for name in map(roles.get, numbers):
            if name is not None and self.scan == "scan_csv" and str(source.schema.field(name).type) == "string":
                return self._of_numbers(name, wished, **roles)
        return source

    def _of_numbers(self, name: str, wished: dict[str, str], **roles: Any) -> Any:
        """The scan with a column of text read as numbers, which names the first line that holds none."""
        try:
            return self._scanned(self.files, wished | {name: "number"}, **roles)
        except ValueError as error:
            # Read as text it would be refused all the same.
            said = (
                str(error).replace(f", or pass types={{{name!r}: 'text'}}.", ".").replace("file, name", "file, or name")
            )
            classes = " If it holds classes, fit it with --task classes." if name == roles.get("target") else ""
            raise ValueError(said + classes) from error

    def _scanned(self, files: Sequence[str], types: dict[str, str] | None = None, **roles: Any) -> Any:
        from certifit.data import files as scans

        if self.scan == "scan_parquet":
            return scans.scan_parquet(list(files), **roles)
        reading = dict(self.reading)
        reading["types"] = (types or {}) | reading.get("types", {})
        return scans.scan_csv(list(files), **roles, **reading)


def find_data(paths: Sequence[str], **reading: Any) -> Data:
    """The files that paths, globs and folders name. Refuses a mixture of formats."""
    files = [file for path in paths for file in _files_of(path)]
    formats = {file: _format_of(file) for file in files}
    kinds = sorted(set(formats.values()))
    if len(kinds) > 1:
        some = [next(file for file in files if formats[file] == kind) for kind in kinds]
        raise ValueError(f"'{visible(some[0])}' is CSV and '{visible(some[1])}' is Parquet. Give files of one format.")
    options = {name: value for name, value in reading.items() if value}
    return Data(tuple(Path(path).name or str(path) for path in paths), tuple(files), kinds[0], options)


def _files_of(path: str) -> list[str]:
    is_pattern = glob.has_magic(path) and not Path(path).exists()
    if not (is_pattern or Path(path).is_dir()):
        return [str(readable_file(path, "a CSV or Parquet file, or a folder of them"))]
    from certifit.data.formats.paths import listed

    return [str(readable_file(file, "files with rows")) for file in listed(path, (*CSV, *PARQUET))]


def _format_of(file: str) -> str:
    with open(file, "rb") as opened:
        is_parquet = opened.read(4) == b"PAR1"
    return "scan_parquet" if is_parquet or file.lower().endswith(PARQUET) else "scan_csv"


def refuse_inside(out: str, paths: Sequence[str]) -> None:
    """Refuse an output in a folder that is read: the next scan of the folder would read it too."""
    place = Path(os.path.realpath(out))  # Path.resolve raises on a link to itself
    for path in paths:
        folder = Path(os.path.realpath(path))
        if folder.is_dir() and (folder == place or folder in place.parents):
            raise ValueError(f"--out '{visible(out)}' lies in '{visible(path)}', which is read. Choose another place.")


def reading_options(command: Command) -> Command:
    """The options of every command that reads files."""
    for option in reversed(
        (
            click.option(
                "--bad-rows", type=click.IntRange(min=0), default=0, show_default=True, metavar="N",
                help="Skip at most N bad rows of CSV, and count them.",
            ),
            click.option("--na", multiple=True, metavar="TEXT", help="CSV: a cell that means no value. Repeatable."),
            click.option(
                "--types", metavar="A=text,B=date", help="CSV: read columns as number, text, date or flag.",
            ),
            click.option("--delimiter", metavar="C", help="CSV: what parts the cells. Default: found in the header."),
            click.option("--encoding", default="utf8", show_default=True, metavar="NAME", help="CSV: of the text."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def reading(
    bad_rows: int, na: tuple[str, ...], types: str | None, delimiter: str | None, encoding: str
) -> dict[str, Any]:
    """The options as `scan_csv` takes them."""
    pairs = [pair.rpartition("=") for pair in listed_names(types) or []]
    if any(not name for name, _, _ in pairs):
        raise click.UsageError(f"--types is written COLUMN=KIND,COLUMN=KIND. Got {types!r}.")
    return {
        "bad_rows": bad_rows,
        "missing": na,
        "types": {name: kind for name, _, kind in pairs},
        "delimiter": "\t" if delimiter == "\\t" else delimiter,
        "encoding": encoding,
    }


def listed_names(text: str | None) -> list[str] | None:
    """'A,"b,c"' -> ['A', 'b,c']."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])
