"""The pages in docs/: every python block runs and gives what it shows, links lead somewhere, cases have all parts."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pandas as pd
import pytest

import certifit as cf
from docs.site import chapters, spelling

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CASES = sorted((DOCS / "what-others-say").glob("*.md"))
NEEDS = PROJECT / "tests" / "models" / "test_needs.py"
PARTS = ["What was tried", "They say", "certifit says", "Why", "Run it", "Test"]


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.filterwarnings("ignore")  # peers warn, and certifit does where a page shows that it does
@pytest.mark.slow
def test_code_on_pages_runs_and_gives_what_it_shows(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    chapters.run(page, drawn=lambda name: None)
    pytest.importorskip("matplotlib.pyplot").close("all")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_says_what_it_holds(page):
    kinds = {match[1] for match in chapters.FENCE.finditer(page.read_text())}
    assert kinds <= {"python", "text", "sh"}, "code without a word for its kind is not run"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page):
    made = {f"pictures/{block.picture}.png" for block in chapters.blocks(page) if block.picture}
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert target in made or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_a_heading_lead_to_one(page):
    for target, heading in re.findall(r"\]\(([^)#]*)#([^)]*)\)", page.read_text()):
        if not target.startswith("http"):
            other = page.parent / target if target else page
            assert heading in headings(other), f"{target}#{heading}"


def headings(page: Path) -> set[str]:
    """Anchors of a page, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_words_on_all_pages_are_spelt_right():
    """A word that is right and not in the dictionary belongs into docs/site/words.txt."""
    assert not spelling.unknown(PAGES)


def test_the_list_of_words_is_sorted_and_catches_what_is_wrong():
    words = spelling.OWN.read_text().split()
    assert words == sorted(set(words))
    wrong = "recieve teh seperate Huberr convergance"
    assert spelling.unknown_words(wrong) == {"recieve", "teh", "seperate", "huberr", "convergance"}


@pytest.mark.parametrize(
    "name, target, column", [("phones", "calls", 0), ("stackloss", "stack.loss", 1), ("starsCYG", "log.light", 0)]
)
def test_the_figures_of_the_classics_are_those_of_the_data(shared_data, name, target, column):
    rows = pd.read_csv(shared_data / "classics_small" / f"{name}.csv").astype(float)
    y = rows.pop(target)
    line = next(line for line in (DOCS / "robust.md").read_text().splitlines() if line.startswith(f"| {name}: "))
    models = cf.LinearRegression(), cf.HuberRegressor(), cf.HuberRegressor(scale="mad")
    for model, shown in zip(models, line.split("|")[2:5], strict=True):
        assert f"{model.fit(rows, y).coef_[column]:.2f}" == shown.strip()


def test_the_index_links_every_case():
    index = (DOCS / "what-others-say.md").read_text()
    assert len(CASES) >= 8
    for page in CASES:
        assert f"](what-others-say/{page.name})" in index


@pytest.mark.parametrize("page", CASES, ids=name_of)
def test_a_case_has_all_parts_and_names_tests_that_exist(page):
    text = page.read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == PARTS
    assert "](../what-others-say.md)" in text and chapters.blocks(page)
    known = {node.name for node in ast.parse(NEEDS.read_text()).body if isinstance(node, ast.FunctionDef)}
    named = set(re.findall(r"`(test_\w+)`", text.split("\n## Test\n")[1]))
    assert named and named <= known


def test_every_test_of_a_case_is_named_on_a_page():
    known = {node.name for node in ast.parse(NEEDS.read_text()).body if isinstance(node, ast.FunctionDef)}
    tests = {name for name in known if name.startswith("test_")}
    named = {name for page in CASES for name in re.findall(r"`(test_\w+)`", page.read_text())}
    assert tests == named
