"""Paths on the command line as scans: the format is told by the end of the name and by the first bytes.

Standard input (-) and sheets of Excel workbooks are copied to files first: rows are read more than once.
"""

import csv
import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from certifit.cli.errors import readable_file
from certifit.data.roles import repeated_names
from certifit.report.text import visible

PARQUET = (".parquet", ".pq")
# scan -> what its files are called, the ends of their names, and their first bytes
FORMATS: dict[str, tuple[str, tuple[str, ...], bytes]] = {
    "scan_parquet": ("Parquet", PARQUET, b"PAR1"),
    "scan_arrow": ("Feather or Arrow", (".feather", ".arrow", ".ipc"), b"ARROW1"),
    "scan_json": ("JSON lines", (".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst"), b"{"),
    "scan_excel": ("an Excel workbook", (".xlsx", ".xlsm"), b"PK\x03\x04"),
    "scan_csv": ("CSV", (".csv", ".tsv", ".csv.gz", ".csv.zst", ".tsv.gz", ".tsv.zst"), b""),
}
ENDINGS = tuple(ending for _, endings, _ in FORMATS.values() for ending in endings)
A_FILE = "a CSV, Parquet, Feather, JSON lines or Excel file, or a folder of them"

# What the scan of a CSV file should read a kind of column as, so that new rows are read as those of the fit.
CSV_TYPES = {"number": "number", "flag": "flag", "level": "text", "text": "text"}

# A reading by one notation -> the one by any.
_LOOSER = {"decimal-comma": "number", "day-first": "date", "month-first": "date", "month": "date"}

KEEP = "keep"

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Data:
    """Files of one format, in order. `shown`: the paths as they were typed; `reading`: options of a scan of CSV.

    paths: what the scan is given, folders as they are: their names may hold columns.
    """

    shown: tuple[str, ...]
    files: tuple[str, ...]
    paths: tuple[str, ...]
    scan: str
    reading: dict[str, Any] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Names of all columns, from the first file and the names of its folders."""
        from certifit.data.files import csv_header

        if self.scan != "scan_csv":
            return list(self._schema().names)
        written = {name: self.reading[name] for name in ("delimiter", "encoding", "has_header") if name in self.reading}
        return csv_header(list(self.paths), **written)

    def open(self, types: dict[str, str] | None = None, labels: bool = False, **roles: Any) -> Any:
        """The scan; roles: target, weight, columns, ... `types` are wishes for CSV: those of the user come first.

        labels: the target may be text; else it is numbers. Rows without a target are left out, with a note.
        """
        there = set(self.names()) if types else set()
        wished = {name: kind for name, kind in (types or {}).items() if name in there}
        source = self._read_as(wished, **roles)
        numbers = ("weight", "offset", "exposure") if labels else ("target", "weight", "offset", "exposure")
        for name in map(roles.get, numbers):
            if name is not None and self.scan == "scan_csv" and str(source.schema.field(name).type) == "string":
                return self._of_numbers(name, wished, **roles)
        return source

    def _read_as(self, wished: dict[str, str], **roles: Any) -> Any:
        """The scan as wished, or numbers and dates in the notation that their cells have where that is another one."""
        looser = {name: _LOOSER.get(kind, kind) for name, kind in wished.items()}
        try:
            return self._scanned(wished, **roles)
        except ValueError:
            if self.scan != "scan_csv" or looser == wished:
                raise
            try:
                return self._scanned(looser, **roles)
            except ValueError:
                pass  # the first error is about the notation of the fit
            raise

    def _of_numbers(self, name: str, wished: dict[str, str], **roles: Any) -> Any:
        """The scan with a column of text read as numbers, which names the first line that holds none."""
        try:
            return self._scanned(wished | {name: "number"}, **roles)
        except ValueError as error:
            # Read as text it would be refused all the same.
            said = (
                str(error).replace(f", or pass types={{{name!r}: 'text'}}.", ".").replace("file, name", "file, or name")
            )
            classes = " If it holds classes, fit it with --task classes." if name == roles.get("target") else ""
            raise ValueError(said + classes) from error

    def _scanned(self, types: dict[str, str], **roles: Any) -> Any:
        from certifit.data import files as scans

        scan = getattr(scans, self.scan)
        if self.scan != "scan_csv":
            typed = self._texts_of(types) | self.reading.get("types", {})
            return scan(list(self.paths), **roles, types=typed, texts="recognise", missing_target="drop")
        reading = dict(self.reading)
        reading["types"] = types | reading.get("types", {})
        reading.setdefault("encoding", None)
        return scan(list(self.paths), **roles, **reading, missing_target="drop")

    def _texts_of(self, types: dict[str, str]) -> dict[str, str]:
        """Wishes for columns that files with types hold as text; how the others are read is theirs to say."""
        if not types:
            return {}
        held = {field.name: str(field.type) for field in self._schema()}
        whole = ("int32", "int64")
        return {
            name: kind
            for name, kind in types.items()
            if "string" in held.get(name, "") or (held.get(name) in whole and kind in ("date", "number"))
        }

    def _schema(self) -> Any:
        """Names and types of the columns of files that carry them, as they are stored."""
        from certifit.data import files as scans

        paths = list(self.paths)
        return scans.parquet_header(paths) if self.scan == "scan_parquet" else getattr(scans, self.scan)(paths).schema


def find_data(paths: Sequence[str], sheet: str | None = None, **reading: Any) -> Data:
    """The files that paths, globs and folders name; - is standard input. Refuses a mixture of formats."""
    typed = [_standard_input() if path == "-" else path for path in paths]
    files = [file for path in typed for file in _files_of(path)]
    _refuse_names_that_are_no_text(files)
    formats = {file: _format_of(file) for file in files}
    kinds = sorted(set(formats.values()))
    if len(kinds) > 1:
        some = [next(file for file in files if formats[file] == kind) for kind in kinds[:2]]
        what = [f"{file!r} is {FORMATS[formats[file]][0]}" for file in some]
        raise ValueError(f"{visible(' and '.join(what))}. Give files of one format.")
    scan = kinds[0]
    if scan == "scan_excel":
        typed = files = [_sheet(file, sheet) for file in files]
        scan = "scan_csv"
    elif sheet is not None:
        raise click.UsageError(f"--sheet is for an Excel workbook, and {files[0]!r} is {FORMATS[scan][0]}.")
    options = {name: value for name, value in reading.items() if value or name == "has_header"}
    shown = tuple("standard input" if path == "-" else Path(path).name or str(path) for path in paths)
    if scan != "scan_csv":
        _refuse_for_csv(options, files[0], FORMATS[scan][0])
    return Data(shown, tuple(files), tuple(typed), scan, options)


def _refuse_names_that_are_no_text(files: Sequence[str]) -> None:
    """Arrow opens files by names in UTF-8 alone."""
    for file in files:
        printed = file.encode("utf8", "backslashreplace").decode()
        if printed.encode() != file.encode("utf8", "surrogateescape"):
            raise ValueError(f"The name of the file '{printed}' is not UTF-8 text. Rename it.")


def _refuse_for_csv(options: dict[str, Any], file: str, what: str) -> None:
    """Files that carry their types take --types alone."""
    flags = {"bad_rows": "--bad-rows", "missing": "--na", "delimiter": "--delimiter", "encoding": "--encoding"}
    for name, flag in flags.items():
        if name in options:
            raise click.UsageError(f"{flag} is for CSV, and '{visible(file)}' is {what}. Leave it out.")
    if not options.pop("has_header", True):
        raise click.UsageError(f"--no-header is for CSV, and '{visible(file)}' is {what}. Leave it out.")


def _folder() -> str:
    """A folder that is gone when the command ends."""
    folder = tempfile.TemporaryDirectory(prefix="certifit-")
    click.get_current_context().call_on_close(folder.cleanup)
    return folder.name


def _standard_input() -> str:
    from certifit.data.formats.paths import ShownAs

    if sys.stdin is None:
        raise ValueError("standard input is closed. Give - only where another program writes rows to it.")
    place = Path(_folder()) / "rows"
    with open(place, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    if not place.stat().st_size:
        raise ValueError("standard input is empty. Give - only where another program writes rows to it.")
    return ShownAs(str(place), "standard input")


def _sheet(file: str, sheet: str | None) -> str:
    from certifit.data.formats.excel import copied_sheet

    try:
        return copied_sheet(file, sheet, _folder())
    except ImportError as error:
        raise ValueError(str(error)) from None


def _files_of(path: str) -> list[str]:
    is_pattern = glob.has_magic(path) and not Path(path).exists()
    if not (is_pattern or Path(path).is_dir()):
        readable_file(path, A_FILE)
        return [path]
    from certifit.data.formats.paths import listed

    return [str(readable_file(file, "files with rows")) for file in listed(path, ENDINGS)]


def _format_of(file: str) -> str:
    with open(file, "rb") as opened:
        first = opened.read(8)
    by_name = next((scan for scan, (_, endings, _) in FORMATS.items() if file.lower().endswith(endings)), None)
    if by_name is not None and by_name != "scan_csv":
        return by_name
    if first.lstrip().startswith(b"[") and (by_name is None or file.lower().endswith(".json")):
        raise ValueError(
            f"'{visible(file)}' is one JSON array. Give JSON lines, one object per line: "
            "jq -c '.[]' FILE > rows.jsonl makes them."
        )
    begins = (scan for scan, (_, _, start) in FORMATS.items() if start and first.startswith(start))
    by_bytes = next(begins, "scan_csv")
    # A brace may begin the first name of a CSV file, and any archive begins like a workbook.
    return by_bytes if by_name is None or by_bytes in ("scan_parquet", "scan_arrow") else "scan_csv"


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
            click.option(
                "--na", multiple=True, metavar="TEXT",
                help="CSV: a cell that means no value. Repeatable. `keep`: -999 and the like stay numbers.",
            ),
            click.option(
                "--types", metavar="A=text,B=date",
                help="Read columns as number, text, lower-case (Cured and CURED are one), date, flag, decimal-comma, "
                "day-first, month-first, month or time.",
            ),
            click.option("--delimiter", metavar="C", help="CSV: what separates the cells. Default: as in the header."),
            click.option(
                "--encoding", metavar="NAME",
                help="CSV: of the text. Default: UTF-8, what its mark says, or else Windows-1252 with a note.",
            ),
            click.option("--no-header", is_flag=True, help="CSV: the first line is a row; columns are column1, ..."),
            click.option("--sheet", metavar="NAME", help="Excel: the sheet to read. Default: the first with a table."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def reading(
    bad_rows: int,
    na: tuple[str, ...],
    types: str | None,
    delimiter: str | None,
    encoding: str | None,
    no_header: bool,
    sheet: str | None,
) -> dict[str, Any]:
    """The options as `find_data` takes them."""
    pairs = [pair.rpartition("=") for pair in listed_names(types) or []]
    if any(not name for name, _, _ in pairs):
        raise click.UsageError(f"--types is written COLUMN=KIND,COLUMN=KIND. Got {types!r}.")
    if twice := repeated_names([name for name, _, _ in pairs]):
        raise click.UsageError(f"--types names {twice[0]!r} more than once.")
    return {
        "bad_rows": bad_rows,
        "missing": tuple(text for text in na if text != KEEP),
        "types": {name: kind for name, _, kind in pairs},
        "delimiter": "\t" if delimiter == "\\t" else delimiter,
        "encoding": encoding,
        "has_header": not no_header,
        "sheet": sheet,
    }


def listed_names(text: str | None) -> list[str] | None:
    """'A,"b,c"' -> ['A', 'b,c']."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])
