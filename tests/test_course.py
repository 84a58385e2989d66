"""The course: every part has a section with code and a test, every chapter all it needs, every picture its name."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs.site import api, chapters, coverage

TESTS = Path(__file__).parent
COURSE = TESTS.parent / "docs" / "course"
CHAPTERS = sorted(page for page in COURSE.glob("*.md") if page.name != "index.md")
# The parts that the course must teach, by the first letter of their numbers.
COUNTS = {"R": 12, "C": 16, "K": 3, "U": 3, "E": 6, "O": 6, "T": 17, "W": 9}
FEWEST_PICTURES = 60


def slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


@cache
def sections(page: Path) -> dict[str, str]:
    """Text of every section by its anchor; that of the title ends at the first heading below it."""
    text = re.sub(r"^(#+) ", r"\n\1 ", page.read_text(), flags=re.MULTILINE)
    parts = re.split(r"\n(?=#{1,2} [A-Z0-9])", text)
    return {slug(part.split("\n")[0].lstrip("# ")): part for part in parts if part.startswith("#")}


@cache
def functions(file: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse((TESTS / file).read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("part", coverage.parts(), ids=lambda part: part.number)
def test_a_part_has_a_section_with_code_and_a_test(part):
    page = COURSE / f"{part.chapter}.md"
    places = sections(page)
    assert part.heading in places, f"{part.heading} is none of {list(places)}"
    assert "```python" in places[part.heading]
    assert part.test in functions(part.test_file)


def test_no_part_is_left_out():
    numbers = [part.number for part in coverage.parts()]
    assert numbers == [f"{letter}{i}" for letter, count in COUNTS.items() for i in range(1, count + 1)]


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_has_formula_code_picture_check_exercise_and_answer(page):
    text = page.read_text()
    assert "$" in text and "\n>>> " in text and "\n## Exercise\n" in text and "**Answer.**" in text
    made = [block.picture for block in chapters.blocks(page) if block.picture]
    assert len(made) >= 2 and len(made) == len(set(made))
    assert made == re.findall(r"\]\(pictures/([\w-]+)\.png\)", text), "a picture stands after the code that draws it"
    assert f"]({page.name})" in (COURSE / "index.md").read_text()


def test_there_are_pictures_enough_and_none_takes_anothers_name():
    names = [block.picture for page in CHAPTERS for block in chapters.blocks(page) if block.picture]
    assert len(set(names)) == len(names) >= FEWEST_PICTURES


def test_the_reference_has_every_public_name():
    assert not api.left_out()
