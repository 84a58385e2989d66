"""One context: the page, the JSON file, the model card and the pictures say the same, and each is safe to open."""

import html
import json
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from fits import FILES, MAKERS, fitted
from markdown_it import MarkdownIt
from test_report_page import HOSTILE, Page

import certifit as cf
from certifit.data.source import Memory
from certifit.report import folder, svg, text
from certifit.report import page as cards
from certifit.report.context import build
from certifit.report.page import render
from certifit.report.sections import PICTURES, drawings
from certifit.report.svg import picture_style

NASTY = [
    *HOSTILE,
    *("a|b", "`code`", "**bold**", "# title", "- item", "1. first", "[x](http://evil)", "<b>&amp;</b>", "~~gone~~"),
    *("http://evil.example", "www.evil.example", "$x$", "@you", "![x](y)", "\\|", "a\nb", "| --- |", "```", "---"),
]
KINDS = ("plain", "lasso", "elastic_net", "huber", "ridge")


def context_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, source = fitted(name)
        return model, source, build(model, source, FILES)


def shown(markdown):
    """The card as HTML, as a reader of Markdown makes it (tags in the text count as tags)."""
    body = markdown.split("---\n", 2)[2]
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(body)


def nasty_context(model=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, len(NASTY)))
    source = Memory(X, X @ np.arange(1, len(NASTY) + 1) + rng.normal(size=300), names=NASTY)
    source.target = "<script>alert(1)</script> a|b `c`"
    model = (cf.LinearRegression() if model is None else model).fit(source)
    return build(model, source, FILES | {"data": "a|b<i>.csv"})


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_fit_has_a_card_whose_tables_hold_together(name):
    _, _, context = context_of(name)
    made = cards.card(context)
    assert made.startswith("---\nlibrary_name: certifit\n")
    assert not re.search(r"\b(nan|None|inf)\b", made.replace("None.", "").replace("None suspected", ""))
    page = Page(shown(made))
    assert page.tags.count("h1") == 1 and {"table", "h2", "pre"} <= set(page.tags)
    assert not re.search(r"\n{4}", made)


@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.Lasso(alpha=4.0), cf.HuberRegressor()], ids=str)
def test_no_name_is_markup_in_the_card(model):
    context = nasty_context(model)
    made = cards.card(context)
    page = Page(shown(made))
    assert not {"script", "img", "a", "b", "i", "em", "s", "del"} & set(page.tags)
    outside = "".join(re.split(r"^(`{3,})$.*?^\1$", made, flags=re.DOTALL | re.MULTILINE)[::2])
    assert "<script" not in outside and not re.search(r"https?://|www\.", outside)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", made)
    assert page.tags.count("h1") == 1
    seen = "".join(page.text)
    kept = [row["name"] for row in context["coefficients"]["rows"] if row["estimate"] != 0]
    assert len(kept) > 10 and all(text.visible(name, 60) in seen for name in kept)


def test_every_row_of_a_table_has_the_cells_of_its_head():
    page = shown(cards.card(nasty_context()))
    for table in re.findall(r"<table>.*?</table>", page, re.DOTALL):
        rows = [len(re.findall(r"<t[hd]", row)) for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)]
        assert len(set(rows)) == 1
    names = re.findall(r"<tr>\n<td>(.*?)</td>", page[page.index("Coefficients</h2>") :])
    assert "a|b" in names and "&lt;script&gt;alert(1)&lt;/script&gt;" in names


@pytest.mark.parametrize("name", NASTY)
def test_an_escaped_name_is_read_as_itself(name):
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    table = reader.render(f"| h |\n|---|\n| {cards.escaped(name)} |\n")
    assert html.unescape(re.search(r"<td>(.*?)</td>", table)[1]) == text.visible(name).strip()
    line = reader.render(cards.escaped(name))
    assert html.unescape(re.fullmatch(r"<p>(.*?)</p>\n", line, re.DOTALL)[1]) == text.visible(name).strip()


def test_a_block_of_code_cannot_be_closed_by_what_it_holds():
    made = cards.code(["x = '````'", "y"])
    assert MarkdownIt().render(made).count("<pre>") == 1 and made.startswith("`````\n")


@pytest.mark.parametrize("name", KINDS)
def test_page_card_and_json_tell_the_same_numbers(name):
    model, _, context = context_of(name)
    again = json.loads(json.dumps(context, allow_nan=False))
    page, card = (html.unescape(made(again)) for made in (render, cards.card))
    said = "".join(Page(render(again)).text)
    for sentence in (*again["answer"], *again["certificate"]["words"]):
        assert sentence in said and cards.escaped(sentence) in cards.card(again)
    numbers = [text.share(again["quality"]["r2"]), text.number(again["quality"]["sigma"])]
    numbers += [text.number(again["quality"]["rmse"]), text.power(again["certificate"]["value"])]
    rows = [row for row in again["coefficients"]["rows"] if row["estimate"] != 0]
    for row in rows:
        decimals = text.decimals_for(row["error"], row["estimate"])
        numbers += [text.fixed(row[key], decimals) for key in ("estimate", "error") if row[key] is not None]
    assert all(number in page and number in card for number in numbers)
    assert [row["estimate"] for row in again["coefficients"]["rows"]][-len(model.coef_) :] == model.coef_.tolist()


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_picture_is_a_file_of_its_own_that_needs_nothing_else(name):
    _, _, context = context_of(name)
    drawn = drawings(context)
    assert [figure["name"] for figure in context["figures"]] == list(drawn)
    for figure in context["figures"]:
        made = svg.standalone(drawn[figure["name"]], picture_style())
        root = ElementTree.fromstring(made.encode())
        assert root.attrib["width"] and root.attrib["height"]
        assert "var(" not in made and "prefers-color-scheme: dark" in made
        assert re.findall(r"https?://[^\"\s]+", made) == ["http://www.w3.org/2000/svg"]
        assert "url(" not in made.replace("url(#", "") and "@import" not in made
        assert len(re.findall('class="label"', made)) >= 1
        assert figure["title"] and figure["caption"].endswith(".") and figure["description"]


def test_picture_files_lie_where_the_context_says(tmp_path):
    model, source = fitted("plain")
    context = folder.write(tmp_path / "out", model, source, "data.csv")
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out" / "pictures").iterdir()}
    assert written == {figure["file"] for figure in context["figures"]}
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == context
    assert (tmp_path / "out" / "report.html").read_text() == render(context)
    assert (tmp_path / "out" / "MODEL_CARD.md").read_text() == cards.card(context)


def test_names_in_picture_files_are_escaped():
    context = nasty_context(cf.Lasso(alpha=4.0))
    for drawing in drawings(context).values():
        made = svg.standalone(drawing, picture_style())
        ElementTree.fromstring(made.encode())
        assert "<script" not in made and "<b>" not in made and not re.search("[\x00-\x08\x0b-\x1f\u202e]", made)


def test_the_names_of_pictures_are_their_own():
    names = [picture.name for picture in PICTURES]
    assert len(names) == len(set(names)) and all(re.fullmatch("[a-z]+", name) for name in names)


def test_a_page_of_nasty_names_is_safe_for_every_kind_of_model():
    for model in (cf.LinearRegression(), cf.Lasso(alpha=4.0), cf.HuberRegressor()):
        made = render(nasty_context(model))
        page = Page(made)
        assert not {"script", "img"} & set(page.tags) and "<script" not in made
        assert not [key for _, key, _ in page.attributes if key.startswith("on")]
