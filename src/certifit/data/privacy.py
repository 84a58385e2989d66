"""What may be printed of the data: no cell value that fewer than FEWEST rows hold.

The report, its JSON, the card, the tables and the terminal ask a `Rule`:

    levels, labels, words   printed where at least FEWEST rows hold them, else pooled and counted
    a range                 from the mean of the FEWEST values about the 5 % quantile to that about the 95 % quantile,
                            rounded to about a fiftieth of the range
    a picture of rows       counts on a grid whose edges are round numbers, never the smallest or largest value
    a figure of one row     its number, and residuals and the like to three digits
    a cell in a message     its row and column; the value only where values are shown

`Rule(shows=True)` prints everything. Messages are made in all layers, so their rule belongs to the process: the command
line hides values (`hiding`) until --show-values is given (`show`); in Python messages show them.

Text from data made safe to show: on a terminal, and in a CSV file that a spreadsheet opens.

Names and labels come from data files and are never trusted: control characters, terminal escapes and bidirectional
overrides are spelt out, and what a spreadsheet would run as a formula is marked as text.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certifit.data.columns import Array


FEWEST = 5  # rows that must hold a cell value before it is printed
MOST_WEIGHT = 0.99  # share of all weight that fewer than FEWEST rows may have: means are else those of these rows
TAIL = 0.05  # share of the rows below the printed range, and share above it
ROW_DIGITS = 3  # significant digits of a residual or another figure of a single row
STEPS = 50  # a window is widened to multiples of a power of ten that is at most its width / STEPS
MOST = sys.float_info.max
NOT_SHOWN = "(not shown)"
IN_MESSAGE = "(not shown; --show-values shows it)"


@dataclass(frozen=True)
class Rule:
    """Whether values are shown, and what is printed where they are not."""

    shows: bool = False

    def may_print(self, n_rows: float) -> bool:
        """Whether a value that so many rows hold may be printed."""
        return self.shows or n_rows >= FEWEST

    def ends(self, values: Array, low: float, high: float) -> tuple[float | None, float | None]:
        """The range of a column, of the values of some rows: see above. low, high: of all rows, printed where shown.

        None where the two ends would not be means of FEWEST values each.
        """
        if self.shows:
            return _finite(low), _finite(high)
        import numpy as np

        ordered = np.sort(values[np.isfinite(values)])
        if len(ordered) < 2 * FEWEST:
            return None, None
        half, last = FEWEST // 2, len(ordered) - FEWEST
        places = [round(share * (len(ordered) - 1)) - half for share in (TAIL, 1 - TAIL)]
        first, second = (_mean(ordered[at : at + FEWEST]) for at in np.clip(places, 0, last))
        # The mean of evenly spaced values is one of them, so the ends are rounded, too.
        exponent = _exponent(second / 2 - first / 2)
        ends = (first, second) if exponent is None else (_multiple(end, exponent, round) for end in (first, second))
        below, above = ends
        return _finite(below), _finite(above)

    def of_row(self, value: float) -> float:
        """A figure of a single row, such as its residual: to ROW_DIGITS digits."""
        return float(value) if self.shows or not math.isfinite(value) else float(f"{value:.{ROW_DIGITS - 1}e}")

    def window(self, low: float, high: float) -> tuple[float, float]:
        """A window of a picture that holds low to high, with round ends; as it is where values are shown."""
        width = high / 2 - low / 2
        exponent = _exponent(width)
        if self.shows or exponent is None:
            return low, high
        below, above = (_multiple(end, exponent, round_to) for end, round_to in ((low, math.floor), (high, math.ceil)))
        is_wider = math.isfinite(below) and math.isfinite(above) and below <= low and high <= above
        margin = 2 * (width / STEPS)
        return (below, above) if is_wider else (max(low - margin, -MOST), min(high + margin, MOST))


def _exponent(half_width: float) -> int | None:
    """Of the power of ten that the ends of a range are rounded to; None where there is no range."""
    if not (math.isfinite(half_width) and half_width > 0):
        return None
    return math.floor(math.log10(2 * (half_width / STEPS))) if half_width > 1e-300 else -300


def _mean(values: Array) -> float:
    return float(values[0]) if values[0] == values[-1] else float((values / len(values)).sum())


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _multiple(value: float, exponent: int, rounded: Any) -> float:
    """The multiple of 10^exponent next to a value; the value where it is no number that a decimal can round."""
    if not -290 < exponent < 290 or abs(value) > 1e15 * 10.0**exponent:
        return value
    return float(f"{rounded(value / 10.0**exponent)}e{exponent}")


@dataclass
class Mask:
    """Names that hold a cell value, and what is printed in their place; `public`: names that may hold one as a part."""

    secrets: dict[str, str] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)

    def hide(self, secrets: Mapping[str, str], public: Any = ()) -> None:
        """Learn more names; as a message quotes them, too."""
        for name, printed in secrets.items():
            self.secrets |= {name: printed, repr(name)[1:-1]: printed}
        self.public |= set(public)
        self.__dict__.pop("_names", None)

    def __call__(self, text: str) -> str:
        """The text without secret names. Of names within names the longest counts."""
        if not self.secrets:
            return text
        names, lengths = self._names
        out, at, taken = [], 0, 0  # text[:taken] is written
        while names and at < len(text):
            # Names that begin with the next two characters, the longest first; then one of one character.
            sizes = (*lengths.get(text[at : at + 2], ()), 1)
            name = next((text[at : at + size] for size in sizes if text[at : at + size] in names), "")
            if name and name in self.secrets:
                out += [text[taken:at], self.secrets[name]]
                taken = at + len(name)
            at += max(len(name), 1)
        return "".join([*out, text[taken:]])

    @cached_property
    def _names(self) -> tuple[set[str], dict[str, list[int]]]:
        """All names, what is printed already too: it stays as it is. And their lengths by the first two characters."""
        names = {*self.secrets, *self.public, *self.secrets.values()} - {""}
        lengths: dict[str, set[int]] = {}
        for name in names:
            lengths.setdefault(name[:2], set()).add(len(name))
        return names, {start: sorted(sizes, reverse=True) for start, sizes in lengths.items()}

    def deep(self, value: Any) -> Any:
        """Every text in lists and dictionaries."""
        if not self.secrets:
            return value
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {key: self.deep(item) for key, item in value.items()}
        return [self.deep(item) for item in value] if isinstance(value, list | tuple) else value


def quoted_labels(rows: Mapping[Any, float]) -> dict[str, str]:
    """Labels of fewer than FEWEST rows as messages quote them, and what is printed instead. rows: by label, sorted."""
    masked: dict[str, str] = {}
    for place, (label, n_rows) in enumerate(rows.items(), 1):
        if n_rows < FEWEST:
            quotes = (f"class {label!r}", repr(label)) if isinstance(label, str) else (f"class {label!r}",)
            masked |= dict.fromkeys(quotes, rare_label(place, len(rows)))
    return masked


def rare_label(place: int, n_classes: int, why: str = "(rare)") -> str:
    """The printed name of a class that fewer than FEWEST rows are of; place: from 1."""
    return f"class {place} of {n_classes} {why}"


# ---- messages -------------------------------------------------------------------------------------------------------


@dataclass
class _Messages:
    """Of the process. hidden: names that messages do not show; None where messages show values.

    doubtful: first lines of files that may be rows instead of names.
    """

    hidden: Mask | None = None
    doubtful: set[tuple[str, ...]] = field(default_factory=set)


_messages = _Messages()


@contextlib.contextmanager
def hiding() -> Iterator[None]:
    """Messages show no cell values until the block ends, or `show` is called."""
    before, _messages.hidden = _messages.hidden, Mask()
    try:
        yield
    finally:
        _messages.hidden = before
        _messages.doubtful.clear()


def show() -> None:
    """Messages show cell values from here on."""
    _messages.hidden = None


def rule() -> Rule:
    """The rule of messages."""
    return Rule(shows=_messages.hidden is None)


def printed_labels(rows: Mapping[Any, float]) -> dict[Any, str]:
    """What a message says for each label, quoted where it is shown. rows: by label, sorted."""
    return {
        label: repr(label) if rule().may_print(n_rows) else rare_label(place, len(rows))
        for place, (label, n_rows) in enumerate(rows.items(), 1)
    }


def cell(value: str | float) -> str:
    """A cell in a message: a number, or a text that is quoted already."""
    if _messages.hidden is not None:
        return IN_MESSAGE
    return value if isinstance(value, str) else f"{value:g}"


def conceal(secrets: Mapping[str, str], public: Any = ()) -> None:
    """Names that `masked` takes out of messages, where values are hidden."""
    if _messages.hidden is not None:
        _messages.hidden.hide(secrets, public)


def doubt(header: Sequence[str]) -> None:
    """The first line of a file may be one of its rows: messages do not list its names, where values are hidden."""
    if _messages.hidden is not None:
        _messages.doubtful.add(tuple(header))


def are_names(header: Sequence[str]) -> bool:
    """Whether a message may list the names of columns; not where some of them may be cells of a first row."""
    return not any(set(header) & set(line) for line in _messages.doubtful)


def masked(message: str) -> str:
    """A message without the names that were concealed."""
    return message if _messages.hidden is None else _messages.hidden(message)


def masked_deep(value: Any) -> Any:
    """Every text in lists and dictionaries, masked."""
    return value if _messages.hidden is None else _messages.hidden.deep(value)


# What begins a formula; the wide forms do so where a keyboard writes them.
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def visible(text: object, limit: int | None = None) -> str:
    """The text with every invisible character spelt out, cut in the middle beyond `limit` characters.

    >>> visible("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    >>> visible("a_rather_long_name", 11)
    'a_rat…_name'
    """
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))
    if limit is None or len(shown) <= limit:
        return shown
    tail = (limit - 1) // 2
    return shown[: limit - 1 - tail] + "…" + shown[len(shown) - tail :]


def harmless(text: str) -> str:
    """A name that a spreadsheet shows and does not run: one that begins like a formula gets an apostrophe.

    >>> harmless("=1+1"), harmless("-1"), harmless("plain")
    ("'=1+1", "'-1", 'plain')
    """
    shown = visible(text)
    return "'" + shown if shown.lstrip().startswith(FORMULA) else shown


def harmless_label(label: str) -> str:
    """The same of a label, but one that is a number stays that number.

    >>> harmless_label("=1+1"), harmless_label("-1")
    ("'=1+1", '-1')
    """
    return label if NUMBER.fullmatch(label) else harmless(label)
