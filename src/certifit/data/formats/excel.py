"""A sheet of an Excel workbook as a CSV file: its cells are looked at as those of any CSV file are."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Iterator


def sheet_to_csv(path: str, sheet: str | int, out: str) -> None:
    """Write one sheet; line k of the file is row k of the sheet. sheet: its name, or its place from 0."""
    with open(out, "w", encoding="utf8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        for cells in _rows(path, sheet):
            writer.writerow([_text(cell) for cell in cells])


def _rows(path: str, sheet: str | int) -> Iterator[tuple[object, ...]]:
    try:
        import openpyxl
    except ImportError:
        raise ImportError(
            f"{path!r} is an Excel workbook, and openpyxl, which reads it, is not installed. "
            "Install it (pip install 'certifit[excel]'), or save the sheet as CSV."
        ) from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # zip files of any kind raise what they like
        raise ValueError(f"{path!r} is cut, corrupt or no Excel workbook: {error}.") from error
    names = book.sheetnames
    if isinstance(sheet, int) and not 0 <= sheet < len(names):
        raise ValueError(f"{path!r} has {len(names)} sheets, counted from 0. Got sheet={sheet}.")
    name = names[sheet] if isinstance(sheet, int) else sheet
    if name not in names:
        raise ValueError(f"{path!r} has no sheet {name!r}. Its sheets are {', '.join(map(repr, names))}.")
    try:
        yield from book[name].iter_rows(values_only=True)
    finally:
        book.close()


def _text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime.datetime):
        is_day = (cell.hour, cell.minute, cell.second, cell.microsecond) == (0, 0, 0, 0)
        return cell.date().isoformat() if is_day else cell.isoformat(sep=" ")
    return repr(cell) if isinstance(cell, float) else str(cell)
