"""What the cells of a text column are, decided once from all of them, and how their text becomes values.

A column is whole numbers, numbers, flags, dates or times if all its filled cells are; if more than 9 in 10 are, it is
that too and the others are bad cells; times of day if all are; else it is text. `KINDS` has the
ways to write them, the plain ones first:

    plain             12    1.5e3    true    2026-01-31    2026-01-31 10:30    what the parser reads by itself
    number            48,213.50    $4,217.30    45.3%    1 234.5    (1,200.00)    12.5 kg    80 kg/ha
    decimal-comma     48.213,50    4217,30 €    45,3 %     1,5E+06
    day-first         31.01.2026   31/1/26      31-01-2026 10:30    31/1/26 9:05 PM
    month-first       01/31/2026
    date              2026/01/31   31 Jan 2026  January 31, 2026    31-JAN-26    20260131
    month             2026-01      01/2026      Jan 2026            the first day of the month
    time              14:35    9:05:30    2:05 pm
    lower-case        Cured    cured    "CURED "    all of them read as cured; only where it is asked for

`word` is what types= and --types call a reading. Where two readings suit every cell, `Look.decide` takes one and its
note says how to get the other. Whole numbers of which one begins with a 0 are codes: they stay text. Whole numbers
such as 20260131 are dates where all are, of the years 1900 to 2099, and 10 or more differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MOST = 0.9
_COUNTED_AT_ONCE = 4 << 20  # bytes
_FIRST = 64  # cells


@dataclass(frozen=True)
class CellType:
    """A kind of cell: its Arrow type, the pattern of its text, its names in a sentence, how its text is made plain.

    steps: (pattern, replacement) in order, after which Arrow reads the text; none where the parser reads it as it is.
    """

    type: pa.DataType
    pattern: str
    article: str
    plural: str
    word: str = ""
    steps: tuple[tuple[str, str], ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the parser reads it by itself."""
        return not self.steps

    def matches(self, column: pa.Array) -> pa.Array:
        """One flag per cell; null where it is missing."""
        return pc.match_substring_regex(column, rf"^\s*(?:{self.pattern})\s*$")

    def mismatches(self, column: pa.Array) -> list[int]:
        """Rows whose cell is there and is not of this kind."""
        rows: list[int] = pc.indices_nonzero(pc.invert(self.matches(column)).fill_null(False)).to_pylist()
        return rows

    def converted(self, column: pa.Array) -> pa.Array:
        """The cells as values; equal cells are read once."""
        if self.is_plain:
            return pc.cast(pc.utf8_trim_whitespace(column), self.type)
        codes = pc.dictionary_encode(column)
        text = pc.utf8_trim_whitespace(codes.dictionary)
        for pattern, plain in self.steps:
            text = pc.replace_substring_regex(text, pattern, plain)
        if pa.types.is_time(self.type):  # Arrow reads no text as a time of day
            text = pc.cast(text, pa.timestamp("us"))
        if pa.types.is_string(self.type):
            text = pc.utf8_lower(text)
        return pc.take(pc.cast(text, self.type), codes.indices)


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:inf|infinity)"
_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?"

_UNIT = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
_GAP = r"[ '’\x{a0}\x{202f}]"  # between thousands, in either notation
_NOT_IN_UNITS = r"[-+−()\d.,'’\s\x{a0}\x{202f}]"
_MEASURE = r"[A-Za-zµ°]{1,3}[²³]?"  # behind numbers, the same in every cell
_EXPONENT = r"(?:[eE][+-]?\d+)"
_LONGEST_UNIT = 9  # letters, those of what it is divided by among them


def _written(point: str, comma: str) -> str:
    """Numbers with a unit before or after them, or thousands set apart. point: parts decimals; comma: thousands."""
    whole = rf"\d+|\d{{1,3}}(?:(?:{comma}\d{{3}})+|(?:{_GAP}\d{{3}})+)"
    decimal = rf"\d+(?:{point}\d*)?|{point}\d+"
    body = rf"(?:{whole})(?:{point}\d*)?|{point}\d+|(?:{decimal}){_EXPONENT}"
    after = rf"\s*(?:%|(?:{_UNIT}|{_MEASURE})(?:/{_MEASURE})?)?"
    return rf"[-+−]?\s*{_UNIT}?\s*[-+−]?(?:{body}){after}|{_UNIT}?\s*\({_UNIT}?\s*(?:{body}){after}\){after}"


_BARE = (  # (1,200) is -1,200, as accountants write it
    (rf"/{_MEASURE}(\)?)$", r"\1"), (_UNIT, ""), (rf"{_MEASURE}(\)?)$", r"\1"), (r"[%\s'’\x{a0}\x{202f}]", ""),
    ("−", "-"), (r"^\+", ""), (r"^\((.*)\)$", r"-\1"),
)  # fmt: skip
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:\d{4}|\d\d)"
_CLOCK = r"(?:[ T]\d?\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?: ?[AaPp][Mm])?)?"
_HALF_DAYS = (  # 09:05 PM -> 21:05
    *((rf"([ T]){hour:02}(:[\d:.]+) ?[Pp][Mm]$", rf"\g<1>{hour + 12}\2") for hour in range(1, 12)),
    (r"([ T])12(:[\d:.]+) ?[Aa][Mm]$", r"\g<1>00\2"),
    (r" ?[AaPp][Mm]$", ""),
)
_PADDED = (  # 1/2/24 9:05 -> 01.02.2024 09:05; years 69 to 99 are of the last century, as in POSIX
    (r"^(\d)[./-]", r"0\1."),
    (r"^(\d\d)[./-](\d)[./-]", r"\1.0\2."),
    (r"^(\d\d)[./-](\d\d)[./-]", r"\1.\2."),
    (r"^(\d\d\.\d\d\.)([0-6]\d)(\D|$)", r"\g<1>20\2\3"),
    (r"^(\d\d\.\d\d\.)([7-9]\d|69)(\D|$)", r"\g<1>19\2\3"),
    (r"([ T])(\d:)", r"\g<1>0\2"),
    *_HALF_DAYS,
)


def _re2(steps: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Arrow's regular expressions write groups as \\1 alone."""
    return tuple((pattern, re.sub(r"\\g<(\d)>", r"\\\1", plain)) for pattern, plain in steps)


POINT = CellType(
    pa.float64(), _written(r"\.", ","), "a number", "numbers", "number", (*_BARE, (",", ""))
)  # fmt: skip
COMMA = CellType(
    pa.float64(), _written(",", r"\."), "a number with a decimal comma", "numbers", "decimal-comma",
    (*_BARE, (r"\.", ""), (",", ".")),
)  # fmt: skip
DAY_FIRST = CellType(
    pa.timestamp("us"), rf"{_DAY}[./-]{_MONTH}[./-]{_YEAR}{_CLOCK}", "a date such as 31.01.2026", "dates",
    "day-first", _re2((*_PADDED, (r"^(\d\d)\.(\d\d)\.(\d{4})", r"\3-\2-\1"))),
)  # fmt: skip
MONTH_FIRST = CellType(
    pa.timestamp("us"), rf"{_MONTH}[/-]{_DAY}[/-]{_YEAR}{_CLOCK}", "a date such as 01/31/2026", "dates",
    "month-first", _re2((*_PADDED, (r"^(\d\d)\.(\d\d)\.(\d{4})", r"\3-\1-\2"))),
)  # fmt: skip
YEAR_FIRST = CellType(
    pa.timestamp("us"), rf"\d{{4}}[./-]{_MONTH}[./-]{_DAY}{_CLOCK}", "a date such as 2026/01/31", "dates", "date",
    _re2(((r"^(\d{4})[./-](\d)[./-]", r"\1-0\2-"), (r"^(\d{4})[./-](\d\d)[./-]", r"\1-\2-"),
          (r"^(\d{4}-\d\d-)(\d)(\D|$)", r"\g<1>0\2\3"), (r"([ T])(\d:)", r"\g<1>0\2"), *_HALF_DAYS)),
)  # fmt: skip
_MONTH_NAMES = ("jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?",
                "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?")  # fmt: skip
_MONTH_NAME = rf"(?i:{'|'.join(_MONTH_NAMES)})\.?"
NAMED_MONTH = CellType(
    pa.timestamp("us"),
    rf"(?:{_DAY}(?:[. -]{{0,2}}){_MONTH_NAME}[, -]{{0,2}}|{_MONTH_NAME} {_DAY},? ){_YEAR}{_CLOCK}",
    "a date such as 31 Jan 2026", "dates", "date",
    _re2((
        (rf"^({_MONTH_NAME}) ({_DAY}),? ", r"\2 \1 "),
        *((rf"^(\d\d?)[. -]*(?i:{name})\.?[, -]*", rf"\g<1>.{k:02}.") for k, name in enumerate(_MONTH_NAMES, 1)),
        *_PADDED, (r"^(\d\d)\.(\d\d)\.(\d{4})", r"\3-\2-\1"),
    )),
)  # fmt: skip
TIME = CellType(
    pa.time64("us"),
    r"(?:(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?|(?:0?[1-9]|1[0-2])(?::[0-5]\d){1,2} ?[AaPp][Mm])",
    "a time of day such as 14:35", "times of day", "time",
    _re2(((r"^", "1970-01-01 "), (r" (\d:)", r" 0\1"), *_HALF_DAYS)),
)  # fmt: skip

_FULL_YEAR = r"(?:19|20)\d\d"
MONTH = CellType(
    pa.timestamp("us"), rf"{_FULL_YEAR}[-/]{_MONTH}|{_MONTH}[-/]{_FULL_YEAR}|{_MONTH_NAME}[ -]{_FULL_YEAR}",
    "a month such as 2026-01", "dates", "month",
    _re2((
        *((rf"^(?i:{name})\.?[ -]", f"{k:02}-") for k, name in enumerate(_MONTH_NAMES, 1)),
        (r"^(\d\d?)[-/](\d{4})$", r"\2-\1"), (r"^(\d{4})[-/](\d)$", r"\1-0\2"), (r"^(\d{4})[-/](\d\d)$", r"\1-\2-01"),
    )),
)  # fmt: skip
DIGITS = CellType(
    pa.timestamp("us"), rf"{_FULL_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])", "a date such as 20260131", "dates",
    "date", ((r"^(\d{4})(\d\d)(\d\d)$", r"\1-\2-\3"),),
)  # fmt: skip
_FIRST_DAY, _LAST_DAY = 19000101, 20991231  # of whole numbers that may be dates
_FEWEST_DAYS = 10  # different ones that make a column of whole numbers one of dates

LOWER = CellType(pa.string(), r"(?s:.*)", "text", "text in lower case", "lower-case", ((r"\s+", " "),))

# Every kind stands before the kinds that hold it.
KINDS = (
    CellType(pa.int64(), r"[+-]?\d{1,18}", "a whole number", "whole numbers"),
    CellType(pa.float64(), _NUMBER, "a number", "numbers"),
    CellType(pa.bool_(), r"true|True|TRUE|false|False|FALSE", "true or false", "true or false"),
    CellType(pa.date32(), _DATE, "a date", "dates"),
    CellType(pa.timestamp("us"), _DATE + _TIME, "a date and time", "dates"),
    CellType(pa.timestamp("us", "UTC"), _DATE + _TIME + "(?:Z|[+-]\\d\\d:?\\d\\d)", "a date and time", "dates"),
    POINT, COMMA, DAY_FIRST, MONTH_FIRST, YEAR_FIRST, NAMED_MONTH, TIME, MONTH, DIGITS,
)  # fmt: skip
_WHOLE, _FLOAT, _DAYS, _MOMENTS = 0, 1, 3, 4
_HINT = r"\d|(?i:inf|true|false)"  # in every cell of every kind

_NAMED: dict[str, CellType | pa.DataType] = {
    "number": pa.float64(),
    "text": pa.string(),
    "date": pa.timestamp("us"),
    "flag": pa.bool_(),
    **{kind.word: kind for kind in (COMMA, DAY_FIRST, MONTH_FIRST, TIME, MONTH, LOWER)},
}
# Readings of cells that the parser does not read as the type that a word means, the first of equals taken.
OTHERWISE = {
    pa.float64(): (POINT, COMMA),
    pa.timestamp("us"): (YEAR_FIRST, DAY_FIRST, MONTH_FIRST, NAMED_MONTH, DIGITS, MONTH),
}


def named_type(column: str, kind: str | pa.DataType) -> CellType | pa.DataType:
    """What a user's word means: an Arrow type that the parser reads, or a kind of cell."""
    if isinstance(kind, pa.DataType):
        return kind
    if kind not in _NAMED:
        raise ValueError(f"types[{column!r}] must be one of {', '.join(map(repr, _NAMED))}. Got {kind!r}.")
    return _NAMED[kind]


def inferred(kind: pa.DataType) -> pa.DataType:
    """The type to read a column as whose first cells look like `kind`."""
    # Bytes that are not text are read as text, which fails with their line, and so are times of day, for `TIME` to
    # read. Whole numbers are read as text once, for a 0 in front of one of them makes them codes.
    is_text = pa.types.is_binary(kind) or pa.types.is_time(kind) or pa.types.is_integer(kind)
    return pa.string() if is_text else kind


def kind_of(type_: pa.DataType) -> CellType | None:
    """The kind of cells that a type reads; None where any text will do."""
    return next((kind for kind in KINDS if kind.type == type_), None)


def article(kind: pa.DataType | None) -> str:
    """A type in a sentence."""
    if kind is not None and kind == pa.null():
        return "empty like the cells before it"
    known = {column_type.type: column_type.article for column_type in reversed(KINDS)}
    if kind is not None and pa.types.is_temporal(kind) and not pa.types.is_time(kind):
        return "a date such as 2026-01-31"
    return known.get(kind, f"of type {kind}")


EMPTY = CellType(pa.null(), "", "empty", "empty")


@dataclass(frozen=True)
class Decision:
    """How a column is read: its kind (None: text), how many cells are not of it, and what a report should say.

    note: the end of a sentence that begins with the column, COLUMN its name; empty where cells are plain.
    rival: another kind that every cell suits.
    """

    kind: CellType | None
    bad_cells: int = 0
    note: str = ""
    rival: CellType | None = None


@dataclass
class Look:
    """How many filled cells of a column are of each kind; units: what stands beside numbers; zeros: cells like 007.

    in_doubt: the file has decimal commas, so the point of 1.234 may part thousands.
    """

    in_doubt: bool = False
    waiting: list[pa.Array] = field(default_factory=list)  # cells that are not counted yet: patterns cost time per call
    n_cells: int = 0
    of_kind: list[int] = field(default_factory=lambda: [0] * len(KINDS))
    units: dict[str, int] = field(default_factory=dict)
    zeros: int = 0
    in_either: int = 0  # cells that are numbers with a decimal point or with a decimal comma
    has_separator: bool = False  # a cell of numbers with a point or a comma
    has_comma: bool = False
    has_gap: bool = False  # a space or an apostrophe between digits
    has_parentheses: bool = False
    has_months: bool = False  # a month that is no season such as 2001-02
    days: set[int] | None = field(default_factory=set)  # some of the dates such as 20260131; None: a cell is no date

    def add(self, column: pa.Array) -> None:
        """Take the cells of a batch. They are counted when there are many, or by `count`."""
        self.waiting.append(column)
        if sum(cells.nbytes for cells in self.waiting) > _COUNTED_AT_ONCE:
            self.count()

    def count(self) -> None:
        """Count the cells that wait for it."""
        column = pa.chunked_array(self.waiting, pa.string()).combine_chunks()
        self.waiting = []
        filled = len(column) - column.null_count
        self.n_cells += filled
        if filled == 0 or self._are_whole(column, filled):
            return
        counted = pc.value_counts(column.drop_null())
        values, counts = counted.field(0), counted.field(1)
        if not pc.any(pc.match_substring_regex(values, _HINT)).as_py():  # a pattern is compiled at each of its calls
            return
        for k, kind in enumerate(KINDS):
            hits = pc.sum(pc.if_else(kind.matches(values), counts, 0)).as_py() or 0
            self.of_kind[k] += hits
            if hits == filled and kind.is_plain and not (self.in_doubt and k == _FLOAT):
                self._hold(k, filled)
                self.in_either += filled if k in (_WHOLE, _FLOAT) else 0
                self.zeros += 0 if k else _zeros(values, counts)
                return
        if self.of_kind[KINDS.index(MONTH)]:
            self.has_months |= not all(map(_is_season, values.to_pylist()))
        is_number = pc.or_(POINT.matches(values), COMMA.matches(values))
        values, counts = values.filter(is_number), counts.filter(is_number)
        self.in_either += pc.sum(counts).as_py() or 0
        if len(values):
            self._count_units(values, counts)
            self.has_comma |= bool(pc.any(pc.match_substring(values, ",")).as_py())
            self.has_gap |= bool(pc.any(pc.match_substring_regex(values, rf"\d{_GAP}\d")).as_py())
            self.has_parentheses |= bool(pc.any(pc.match_substring(values, "(")).as_py())
            self.has_separator |= self.has_comma or bool(pc.any(pc.match_substring(values, ".")).as_py())

    def _are_whole(self, column: pa.Array, filled: int) -> bool:
        """Count a batch of whole numbers, the most common one, without looking at each text."""
        try:
            pc.cast(column[:_FIRST], pa.int64())  # Arrow words an error for every cell
            numbers = pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            self.days = None
            return False
        self.of_kind[_WHOLE] += filled
        self.in_either += filled
        self._hold(_WHOLE, filled)
        self.zeros += _zeros(column, None)
        if self.days is not None:
            new_days = _days(numbers)
            self.days = None if new_days is None else set([*self.days, *new_days][:_FEWEST_DAYS])
            self.of_kind[KINDS.index(DIGITS)] += 0 if new_days is None else filled
        return True

    def _hold(self, k: int, n: int) -> None:
        """Whole numbers are numbers in either notation, dates are times."""
        held = {_WHOLE: (_FLOAT, KINDS.index(POINT), KINDS.index(COMMA)), _FLOAT: (KINDS.index(POINT),),
                _DAYS: (_MOMENTS,)}  # fmt: skip
        for holder in held.get(k, ()):
            self.of_kind[holder] += n

    def _count_units(self, values: pa.Array, counts: pa.Array) -> None:
        bare = pc.replace_substring_regex(values, rf"(\d){_EXPONENT}", r"\1")
        units = pc.replace_substring_regex(bare, _NOT_IN_UNITS, "")
        for unit, n in zip(units.to_pylist(), counts.to_pylist(), strict=True):
            if len(unit) <= _LONGEST_UNIT and (unit in self.units or len(self.units) < 8):
                self.units[unit] = self.units.get(unit, 0) + n

    def decide(self, must_be_number: bool = False, prefers_comma: bool = False, may_be_month: bool = True) -> Decision:
        """How to read the column.

        prefers_comma: the rest of the file speaks for a decimal comma. may_be_month: months and whole numbers that all
        are dates are read as dates.
        """
        self.count()
        if self.n_cells == 0:
            return Decision(EMPTY)
        fitting = [k for k in range(len(KINDS)) if self._suits(k) and self._is_one_unit(k)]
        best = max(fitting, key=lambda k: self.of_kind[k], default=None)  # the first of equals: the narrowest
        if best is None:
            if must_be_number:
                return Decision(KINDS[_FLOAT], self.n_cells - self.of_kind[_FLOAT])
            return Decision(None, note=self._mixed_note())
        if (other := self._otherwise(best, may_be_month and not must_be_number)) is not None:
            return other
        equal = [KINDS[k] for k in fitting if self.of_kind[k] == self.of_kind[best]]
        kind, rival = self._taken(KINDS[best], equal, prefers_comma)
        return Decision(kind, self.n_cells - self.of_kind[best], self._note(kind, rival), rival)

    def _otherwise(self, best: int, may_be_month: bool) -> Decision | None:
        """Codes, dates and seasons that look like whole numbers and months."""
        if best == _WHOLE and self.zeros:
            return Decision(None, note=_CODES)
        if best == _WHOLE and may_be_month and len(self.days or ()) >= _FEWEST_DAYS:
            return Decision(DIGITS, note=_AS_DIGITS)
        if KINDS[best] is MONTH and not (may_be_month and self.has_months):
            return Decision(None, note=_SEASONS if may_be_month else "")
        return None

    def _suits(self, k: int) -> bool:
        """More than 9 in 10 cells are of the kind; times of day all, for 23:10 beside 25:40 are minutes and seconds."""
        takes_all = KINDS[k] in (TIME, MONTH, DIGITS)
        return self.of_kind[k] == self.n_cells if takes_all else self.of_kind[k] > _MOST * self.n_cells

    def _is_one_unit(self, k: int) -> bool:
        """Amounts of two units, or of per cents or kilograms beside bare numbers, are no numbers of one column."""
        if KINDS[k] not in (POINT, COMMA):
            return True
        units = set(self.units) - {""}
        return len(units) <= 1 and ("" not in self.units or all(re.fullmatch(_UNIT, unit) for unit in units))

    def _mixed_note(self) -> str:
        """For a column that is text because of some cells among many numbers."""
        n_numbers = max(self.of_kind[KINDS.index(kind)] for kind in (KINDS[_FLOAT], POINT, COMMA))
        if not (self._is_one_unit(KINDS.index(POINT)) or 2 * n_numbers < self.n_cells):
            return "has numbers of more than one unit, or with and without one, and was read as text"
        if self.in_either > _MOST * self.n_cells >= n_numbers:
            return _BOTH
        if 2 * n_numbers < self.n_cells or self.n_cells == n_numbers:
            return ""
        return _MIXED.format(n_numbers=n_numbers, n_cells=self.n_cells)

    def _taken(
        self, kind: CellType, equal: Sequence[CellType], prefers_comma: bool
    ) -> tuple[CellType, CellType | None]:
        """Of two readings that suit every cell the likelier one, and the other."""
        if (kind is POINT or self.in_doubt) and COMMA in equal and self.has_separator:
            return (COMMA, POINT) if prefers_comma else (POINT, COMMA)
        if kind is DAY_FIRST and MONTH_FIRST in equal:
            return DAY_FIRST, MONTH_FIRST
        return kind, None

    def _note(self, kind: CellType, rival: CellType | None) -> str:
        if kind.is_plain:
            return ""
        unit = next((unit for unit in self.units if unit), "")
        if kind is TIME:
            return "was read as times of day, in hours. To keep it as text: types={COLUMN: 'text'}"
        if kind is MONTH:
            return "holds months, read as their first day. To keep it as text: types={COLUMN: 'text'}"
        if kind.plural == "dates":
            said = f"was read as dates, {_ORDER[kind.article]}"
        else:
            marks = ["a comma parts thousands"] * (self.has_comma and kind is not COMMA)
            marks += ["a space or an apostrophe parts thousands"] * self.has_gap
            marks += ["below 0 in parentheses"] * self.has_parentheses
            said = "was read as numbers" + " with a decimal comma" * (kind is COMMA)
            said += f" ({'; '.join(marks)})" if marks else ""
            said += ", in per cent" if unit == "%" else f", in {unit}" if unit else ""
        if rival is None:
            return said
        return f"{said}. Its cells could be read otherwise too: types={{COLUMN: {rival.word!r}}} does"


_MIXED = (
    "has numbers in {n_numbers:,} of {n_cells:,} cells and was read as text because of the others. "
    "If these mean no value, name each of them in missing="
)
_BOTH = (
    "has numbers with a decimal point and numbers with a decimal comma, so that neither reading suits, and was read as "
    "text. Write them in one way"
)
_ORDER = {
    DAY_FIRST.article: "the day first",
    MONTH_FIRST.article: "the month first",
    YEAR_FIRST.article: "the year first",
    NAMED_MONTH.article: "with names of months",
}
_AS_DIGITS = (
    "holds dates such as 20260131, and was read as dates. If they are numbers or codes: types={COLUMN: 'number'}"
)
_SEASONS = "may hold months or seasons (2001-02), and was read as text. To read it as months: types={COLUMN: 'month'}"
_CODES = "has whole numbers with a 0 in front, kept as codes. To read them as numbers: types={COLUMN: 'number'}"


def _zeros(values: pa.Array, counts: pa.Array | None) -> int:
    """Cells of whole numbers with a 0 in front of other digits."""
    is_code = pc.and_(pc.starts_with(values, "0"), pc.greater(pc.binary_length(values), 1))
    return pc.sum(is_code if counts is None else pc.if_else(is_code, counts, 0)).as_py() or 0


def _is_season(cell: str) -> bool:
    """Whether a cell may be two years that follow each other: 2001-02."""
    years = re.fullmatch(r"\s*\d\d(\d\d)-(\d\d)\s*", cell)
    return years is not None and (int(years[1]) + 1) % 100 == int(years[2])


def _days(numbers: pa.Array) -> list[int] | None:
    """Some of the different numbers, if each is a date such as 20260131; else None."""
    bounds = pc.min_max(numbers).as_py()
    if not _FIRST_DAY <= bounds["min"] <= bounds["max"] <= _LAST_DAY:
        return None
    values = pc.unique(numbers.drop_null()).to_numpy()
    months = (values // 10_000 - 1970) * 12 + values // 100 % 100 - 1
    day, starts = values % 100, months.astype("datetime64[M]")
    lengths = ((starts + 1).astype("datetime64[D]") - starts.astype("datetime64[D]")).astype(np.int64)
    are_days = (values // 100 % 100 >= 1) & (values // 100 % 100 <= 12) & (day >= 1) & (day <= lengths)
    return values[:_FEWEST_DAYS].tolist() if are_days.all() else None
