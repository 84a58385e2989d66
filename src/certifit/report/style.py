"""The style sheets: variables on the page, plain colours in a picture of its own, which other programs read too."""

import re
from functools import cache
from pathlib import Path

TEMPLATES = Path(__file__).with_name("templates")
DARK = "@media screen and (prefers-color-scheme: dark)"


def _sheet(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


@cache
def page_style() -> str:
    """Colours, pictures, page."""
    return _sheet("colours.css") + _sheet("picture.css") + _sheet("report.css")


@cache
def picture_style() -> str:
    """The style of one picture, in light colours and, where the reader asks for them, dark ones."""
    light, dark = (dict(re.findall(r"(--[\w-]+): (#\w+)", part)) for part in _sheet("colours.css").split(DARK))
    rules = _sheet("picture.css")
    return f"\n{_coloured(rules, light)}{DARK} {{\n{_coloured(rules, light | dark)}}}\n"


def _coloured(rules: str, colours: dict[str, str]) -> str:
    return re.sub(r"var\((--[\w-]+)\)", lambda found: colours[found[1]], rules)
