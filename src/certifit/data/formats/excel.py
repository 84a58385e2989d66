"""A sheet of an Excel workbook as a CSV file: its cells are looked at as those of any CSV file are."""

from __future__ import annotations

import csv
import datetime
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from certifit.data.formats.paths import ShownAs

if TYPE_CHECKING:
    from openpyxl import Workbook
    from openpyxl.worksheet.worksheet import Worksheet


def copied_sheet(path: str, sheet: str | int | None, folder: str) -> ShownAs:
    """A CSV file of one sheet in a folder; its line k is row k of the sheet.

    sheet: its name, or its place from 0; None for the first that holds a table: two columns and two rows at least. Of
    several sheets a note then names the others.
    """
    place = str(Path(folder) / "sheet.csv")
    with open(path, "rb") as file, open(place, "w", encoding="utf8", newline="") as out:
        book = _opened(path, file)
        name = _chosen(path, book, sheet)
        writer = csv.writer(out, lineterminator="\n")
        n_filled: Counter[int] = Counter()
        for cells in book[name].iter_rows(values_only=True):
            writer.writerow([_text(cell) for cell in cells])
            n_filled.update(j for j, cell in enumerate(cells) if cell is not None)
        bare = [j for j in n_filled if n_filled[j] == 1]  # a name and no value
        notes = _formulas(path, _opened(path, file, values=False)[name], bare) if bare else []
    others, more = [other for other in book.sheetnames if other != name], ""
    if sheet is None and others:
        way = f"sheet= takes another: {', '.join(map(repr, others))}"
        notes.append(f"{path!r} has {len(others) + 1} sheets, and {name!r} was read; {way}.")
        more = f" (sheet {name!r}; {way})"
    return ShownAs(place, path, more, " ".join(notes))


def _formulas(path: str, sheet: Worksheet, columns: Sequence[int]) -> list[str]:
    """A note on formulas in columns without a value: programs that compute nothing write no results."""
    for cells in sheet.iter_rows():
        for cell in cells:
            if cell.data_type == "f" and cell.column - 1 in columns:
                return [
                    f"Cell {cell.coordinate} of {path!r} holds a formula without its result, as other cells may: "
                    "these are read as missing. Open the file in a spreadsheet, save it, and it holds the results."
                ]
    return []


def _opened(path: str, file: BinaryIO, values: bool = True) -> Workbook:
    """The workbook: results of formulas, or with values=False the formulas."""
    try:
        import openpyxl
    except ImportError:
        raise ImportError(
            f"{path!r} is an Excel workbook, and openpyxl, which reads it, is not installed. "
            "Install it (pip install 'certifit[excel]'), or save the sheet as CSV."
        ) from None
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            parts = archive.namelist()
        if "mimetype" in parts:
            raise ValueError(f"{path!r} is an OpenDocument file. Save it as .xlsx or CSV.")
        if not any(part.startswith("xl/") for part in parts):
            raise ValueError(f"{path!r} is a zip archive. Unpack it, and give the file that is in it.")
    try:
        return openpyxl.load_workbook(file, read_only=True, data_only=values)
    except Exception as error:  # zip files of any kind raise what they like
        raise ValueError(f"{path!r} is cut, corrupt or no Excel workbook: {error}.") from error


def _chosen(path: str, book: Workbook, sheet: str | int | None) -> str:
    """The name of the sheet to read."""
    names: list[str] = book.sheetnames
    if sheet is None:
        return next((name for name in names if _is_table(book[name])), names[0])
    if isinstance(sheet, int) and not 0 <= sheet < len(names):
        raise ValueError(f"{path!r} has {len(names)} sheets, counted from 0. Got sheet={sheet}.")
    name = names[sheet] if isinstance(sheet, int) else sheet
    if name not in names:
        raise ValueError(f"{path!r} has no sheet {name!r}. Its sheets are {', '.join(map(repr, names))}.")
    return name


def _is_table(sheet: Worksheet) -> bool:
    """Whether two of the first rows have two filled cells each."""
    if not hasattr(sheet, "iter_rows"):  # a sheet of one chart
        return False
    rows = sheet.iter_rows(max_row=_FIRST_ROWS, values_only=True)
    return sum(sum(cell is not None for cell in cells) > 1 for cells in rows) > 1


_FIRST_ROWS = 100  # that may be a title and remarks


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime.datetime):
        is_day = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
        return cell.date().isoformat() if is_day else cell.isoformat(sep=" ")
    return repr(cell) if isinstance(cell, float) else str(cell)
