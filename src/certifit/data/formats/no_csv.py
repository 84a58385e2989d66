"""Files that are given as CSV and are something else, told by their first bytes."""

from __future__ import annotations

_PICKLE = "a pickle of Python, which could run code: it is not read. Save the table as CSV or Parquet."
_WEB = "a web page, whatever its name says. Open it in a spreadsheet and save the table as CSV or .xlsx."
# First bytes of files that are no CSV, those of markup in small letters -> what they are, and what to do.
_NO_CSV = {
    b"PAR1": "a Parquet file. Use scan_parquet.",
    b"PK\x03\x04": "a zip archive or an Excel workbook, not CSV. Use scan_excel for a workbook, or unpack it.",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook, not CSV. Save it as .xlsx or CSV.",
    b"\x1f\x8b": "compressed (gzip), and its name hides it. Rename it to end in .csv.gz, or unpack it.",
    b"\x28\xb5\x2f\xfd": "compressed (zstd), and its name hides it. Rename it to end in .csv.zst, or unpack it.",
    b"BZh91AY&SY": "compressed (bzip2), and its name hides it. Rename it to end in .csv.bz2, or unpack it.",
    b"\xfd7zXZ\0": "compressed (xz). Unpack it.",
    b"ARROW1\0": "an Arrow or Feather file, not CSV. Use scan_arrow.",
    b"%PDF-": "a PDF document, not CSV.",
    b"SQLite format 3\0": "an SQLite database, not CSV. Export a table as CSV.",
    b"<stata_dta>": "a Stata file, not CSV. Save it as CSV: export delimited in Stata.",
    b"$FL2": "an SPSS file, not CSV. Save it as CSV.",
    b"\0" * 12 + b"\xc2\xea\x81\x60": "a SAS table, not CSV. Export it as CSV.",
    b"\x89HDF\r\n": "an HDF5 file, not CSV. Save the table as CSV or Parquet.",
    b"\x93NUMPY": "a NumPy array, not CSV. Save it as CSV: numpy.savetxt(FILE, array, delimiter=',').",
    b"\x80\x04\x95": _PICKLE,
    b"\x80\x05\x95": _PICKLE,
    b"<!doctype html": _WEB,
    b"<html": _WEB,
    b"<table": _WEB,
    b"<?xml": "XML, not CSV. Save the table as CSV.",
}


def refuse_no_csv(path: str, start: bytes) -> None:
    """Raise where the first bytes of a file are those of another format; say what to do."""
    for signature, advice in _NO_CSV.items():
        if start.startswith(signature) or start.lstrip().lower().startswith(signature):
            raise ValueError(f"{path!r} is {advice}")
