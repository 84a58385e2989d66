"""Spelling of the pages: words of the text, outside of code and formulas, against a dictionary and our own list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

OWN = Path(__file__).with_name("words.txt")
_CODE = re.compile(r"^```.*?^```$|^(?: {4}|\t).*$|`[^`\n]+`|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)]*\)|<[^>]*>", re.M | re.S)
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")
_PART = re.compile(r"\S*[\d_^=/\\.]\S*\w|\w*[A-Z]\w*[A-Z]\w*")  # x_1, a/b, 1e-8, GLM: no words of a dictionary


def words(text: str) -> set[str]:
    """Words of a page, small letters, without their 's."""
    text = _PART.sub(" ", _CODE.sub(" ", text))
    return {re.sub(r"['’]s?$", "", word.lower()) for word in _WORD.findall(text) if len(word) > 2}


def unknown_words(text: str) -> set[str]:
    """Words that neither the dictionary nor our list has."""
    return {word for word in words(text) - _own() if word not in _dictionary()}


def unknown(pages: Iterable[Path]) -> dict[str, set[str]]:
    """The unknown words of every page that has some."""
    wrong = {page.name: unknown_words(page.read_text()) for page in pages}
    return {name: faults for name, faults in wrong.items() if faults}


@cache
def _own() -> set[str]:
    return set(OWN.read_text().split())


@cache
def _dictionary() -> Any:
    from spellchecker import SpellChecker

    return SpellChecker()


if __name__ == "__main__":
    for name, faults in unknown(sorted(Path(__file__).parents[1].rglob("*.md"))).items():
        print(f"{name}: {' '.join(sorted(faults))}")
