"""Pages at the widths of a phone and of a tablet: what goes on beyond an edge is marked there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from fits import FILES

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.page import render

ROOT = Path(__file__).resolve().parents[2]
# Of every box that its table overflows: how its four backgrounds move. Paper moves with the table, shadows stay.
CUT = """[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth)
    .map(box => getComputedStyle(box).backgroundAttachment)"""
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="module")
def browser():
    sys.path.insert(0, str(ROOT))
    from docs.site import chromium

    if chromium.program() is None:
        pytest.skip("Chromium is not installed")
    one = chromium.Browser()
    yield one
    one.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 820])
def test_a_table_that_is_cut_has_a_shadow_at_its_edge(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    names = [f"a column with quite a long name, number {k}" for k in range(3)]
    source = Memory(X, X[:, 0] + rng.normal(size=60), names=names)
    page = tmp_path / "report.html"
    page.write_text(render(build(cf.LinearRegression().fit(source), source, FILES)))
    browser.open(page.as_uri(), width)
    browser.value(OPEN)
    cut = browser.value(CUT)
    assert cut and set(cut) == {"local, local, scroll, scroll"}
    assert browser.value(BEYOND) == 0
