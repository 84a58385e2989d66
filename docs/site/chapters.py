"""Python blocks of the pages: what they are, how they run, and the pictures that they make.

A block that starts with ```python picture=NAME leaves a figure; the build saves it as pictures/NAME.png.
"""

from __future__ import annotations

import doctest
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)(?: picture=([\w-]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """Python code of a page: the line before it, the code, and the name of the picture that it leaves ("" for none)."""

    line: int
    code: str
    picture: str


def blocks(page: Path) -> list[Block]:
    """The python blocks of a page."""
    text = page.read_text()
    fences = [match for match in FENCE.finditer(text) if match[1] == "python"]
    return [Block(text[: match.start(3)].count("\n"), match[3], match[2] or "") for match in fences]


def run(page: Path, drawn: Callable[[str], None]) -> None:
    """Run the blocks of a page in one namespace; `drawn` is called with the name of every picture when it is there."""
    names: dict[str, object] = {}
    for block in blocks(page):
        names = _run_block(page, block, names)
        if block.picture:
            drawn(block.picture)


def _run_block(page: Path, block: Block, names: dict[str, object]) -> dict[str, object]:
    if ">>>" not in block.code:
        exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
        return names
    test = doctest.DocTestParser().get_doctest(block.code, names, page.name, str(page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner.run(test, out=report.append, clear_globs=False)
    if runner.failures:
        raise AssertionError("".join(report))
    return test.globs
