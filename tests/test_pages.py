"""The pages in docs/: every python block runs and gives what it shows, links lead somewhere, cases have all parts."""

from __future__ import annotations

import ast
import doctest
import re
import warnings
from pathlib import Path

import pandas as pd
import pytest

import certifit as cf

PROJECT = Path(__file__).resolve().parents[1]
DOCS = PROJECT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CASES = sorted((DOCS / "what-others-say").glob("*.md"))
NEEDS = PROJECT / "tests" / "models" / "test_needs.py"
PARTS = ["What was tried", "They say", "certifit says", "Why", "Run it", "Test"]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line, code) of the python blocks of a page."""
    text = page.read_text()
    return [(text[: m.start(2)].count("\n"), m[2]) for m in FENCE.finditer(text) if m[1] == "python"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.filterwarnings("ignore")  # peers warn, and certifit does where a page shows that it does
@pytest.mark.slow
def test_code_on_pages_runs_and_gives_what_it_shows(page, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for line, code in blocks(page):
        if ">>>" not in code:
            exec(compile("\n" * line + code, str(page), "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(code, names, name_of(page), str(page), line)
        report: list[str] = []
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            runner.run(test, out=report.append, clear_globs=False)
        assert not runner.failures, "".join(report)
        names = test.globs


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_fence_says_what_it_holds(page):
    kinds = {match[1] for match in FENCE.finditer(page.read_text())}
    assert kinds <= {"python", "text", "sh"}, "code without a word for its kind is not run"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


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
    assert "](../what-others-say.md)" in text and blocks(page)
    known = {node.name for node in ast.parse(NEEDS.read_text()).body if isinstance(node, ast.FunctionDef)}
    named = set(re.findall(r"`(test_\w+)`", text.split("\n## Test\n")[1]))
    assert named and named <= known


def test_every_test_of_a_case_is_named_on_a_page():
    known = {node.name for node in ast.parse(NEEDS.read_text()).body if isinstance(node, ast.FunctionDef)}
    tests = {name for name in known if name.startswith("test_")}
    named = {name for page in CASES for name in re.findall(r"`(test_\w+)`", page.read_text())}
    assert tests == named
