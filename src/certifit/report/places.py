"""Where rows stand as a person sees them: lines of a text file or a sheet, the header counted, else rows from 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MOST_ROWS = 100_000  # of a text file whose lines are counted; a line is found by reading up to it
OF_LINES = "Lines of the file, its header included."
OF_ROWS = "Rows of the data, from 1, the header not counted."
OF_ARRAY = "Rows are counted from 0, as Python does."
_OF_FILE = re.compile(r" of (?P<path>'.*'|\".*\")$")
_ROWS = re.compile(r"\brows? (\d+(?:, \d+)*)\b")


def row_places(source: Any, rows: Sequence[int]) -> list[str]:
    """Where each row stands, such as "line 17"; "line 17 of 'b.csv'" where there are several files."""
    place = getattr(source, "place", None)
    if place is None:
        return [f"row {row}" for row in rows]
    if (getattr(source, "n_rows", None) or 0) > MOST_ROWS:
        return [f"row {row + 1}" for row in rows]
    words = [str(place(row)) for row in rows]
    files = getattr(getattr(source, "files", None), "paths", None)
    is_alone = files is not None and len(files) == 1
    return [_OF_FILE.sub("", one) for one in words] if is_alone else words


def counted_how(source: Any, places: Sequence[str]) -> str:
    """The sentence that says what the numbers of the places are."""
    if getattr(source, "place", None) is None:
        return OF_ARRAY
    return OF_LINES if any(place.startswith("line") for place in places) else OF_ROWS


def place_number(place: str) -> int:
    """The number of a place.

    >>> place_number("line 17 of 'b.csv'")
    17
    """
    number = re.search(r"\d+", place)
    assert number is not None, place
    return int(number[0])


def with_places(source: Any, sentence: str) -> str:
    """The sentence with rows that the library counts from 0 named as in the file."""

    def named(rows: re.Match[str]) -> str:
        places = row_places(source, [int(row) for row in rows[1].split(", ")])
        return ", ".join(places)

    return _ROWS.sub(named, sentence)
