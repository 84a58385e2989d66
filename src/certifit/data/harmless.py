"""Text from data made safe to show: on a terminal, and in a CSV file that a spreadsheet opens.

Names and labels come from data files and are never trusted: control characters, terminal escapes and bidirectional
overrides are spelt out, and what a spreadsheet would run as a formula is marked as text.
"""

import re

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
