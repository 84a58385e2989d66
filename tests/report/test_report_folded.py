"""What is in order is folded away; what is not is on the page at once."""

import re

import pytest
from fits import FILES, fitted

from certifit.report.context import build
from certifit.report.page import render


def page_of(name):
    model, source = fitted(name)
    context = build(model, source, FILES | {"selection": None})
    return context, render(context)


def unfolded(page):
    """The page without what is folded."""
    return re.sub(r"<details(?! [^>]*open)[^>]*>.*?</details>", "", page, flags=re.DOTALL)


def test_ticks_are_folded_and_warnings_are_not():
    context, page = page_of("dependent")
    assert {check["level"] for check in context["checks"]} >= {"ok"}
    assert 'class="ok"' in page and 'class="ok"' not in unfolded(page)
    n_loud = sum(check["level"] != "ok" for check in context["checks"])
    assert len(re.findall(r'<tr class="(?:note|warn)">', unfolded(page))) == n_loud


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "is_folded"), [("plain", True), ("not_certified", False)])
def test_the_certificate_is_folded_where_it_holds(name, is_folded):
    _, page = page_of(name)
    assert ("By what theorem" not in unfolded(page)) is is_folded
