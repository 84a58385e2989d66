import re
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from fits import FILES, MAKERS, fitted

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.model import python_lines, shell_lines
from certifit.report.page import render
from certifit.report.svg import ticks

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(2)</script>",
    "</title>{{ 7 * 7 }}{% raw %}",
    "' onmouseover='alert(3)",
    "a\x1b[31m\x00\u202eb",
    "javascript:alert(4)",
    "long_" * 200,
    "&lt;already&gt;",
    "=cmd|' /C calc'!A0",
]
VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """Collects tags, attributes and ids, and checks that tags nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.open, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, source = fitted(name)
        return render(build(model, source, FILES))


def hostile_page(target="y"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, len(HOSTILE)))
    source = Memory(X, X[:, 0] + rng.normal(size=200), names=HOSTILE)
    source.target = target
    model = cf.LinearRegression().fit(source)
    return render(build(model, source, FILES | {"data": target + ".csv"}))


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_page_is_well_formed_and_loads_nothing(name):
    text = page_of(name)
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "object", "embed", "video", "form", "base"} & set(page.tags)
    outside = [m for m in re.findall(r"(?:https?:)?//[a-z][^\s\"'<]*", text) if m != "http://www.w3.org/2000/svg"]
    assert outside == []
    assert "url(" not in text.replace("url(#", "") and "@import" not in text
    targets = [value for tag, key, value in page.attributes if key == "href"]
    ids = [value for _, key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert all(target.startswith("#") and target[1:] in ids for target in targets)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_picture_is_sound_xml_with_a_title_and_finite_coordinates(name):
    pictures = re.findall(r"<svg.*?</svg>", page_of(name), re.DOTALL)
    assert len(pictures) >= 4
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert [child.tag.split("}")[1] for child in root][:2] == ["title", "desc"]
        assert root[0].text and root[1].text
        assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<(title|desc|text)[^>]*>[^<]*<", "<", picture))


@pytest.mark.parametrize("target", HOSTILE[:7])
def test_no_name_becomes_a_tag_or_an_attribute(target):
    text = hostile_page(target)
    page = Page(text)
    assert not {"script", "img"} & set(page.tags)
    assert not [key for _, key, _ in page.attributes if key.startswith("on")]
    assert "<script" not in text and "<img" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert any("<script>alert(1)</script>" in part for part in page.text)
    assert any("{{ 7 * 7 }}{% raw %}" in part for part in page.text)


def test_a_policy_forbids_scripts_and_network():
    page = Page(page_of("plain"))
    policy = [
        value for tag, key, value in page.attributes if tag == "meta" and key == "content" and "default-src" in value
    ]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_five_hundred_columns_stay_below_one_megabyte():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 500))
    source = Memory(
        X,
        X @ rng.normal(size=500) + rng.normal(size=3000),
        names=[f"a_column_with_a_long_name_{j}" for j in range(500)],
    )
    text = render(build(cf.LinearRegression().fit(source), source, FILES))
    assert len(text.encode()) < 1_000_000
    assert text.count("<tr") > 1000
    assert "All 501 coefficients" in text


def test_the_page_does_not_grow_with_the_rows():
    sizes = []
    for n_rows in (4000, 40000):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, 4))
        source = Memory(X, X[:, 0] + rng.normal(size=n_rows))
        sizes.append(len(render(build(cf.LinearRegression().fit(source), source, FILES))))
    assert sizes[1] < 1.6 * sizes[0] < 200_000


def test_a_certificate_that_does_not_hold_is_a_banner_before_anything_else():
    text = page_of("not_certified")
    body = text[text.index("<main>") :]
    assert body.index('class="banner" role="alert"') < body.index("<section")
    assert "did not converge" in body[: body.index("<section")]
    assert "Yes, proven" not in body
    assert 'class="banner"' not in page_of("plain")
    assert "Yes, proven" in page_of("plain")


def test_the_page_leads_with_the_words_people_look_for():
    text = page_of("plain")
    first = text[text.index('class="lead"') :][:600]
    assert "explains" in first and "converged" in first and "proven" in first
    assert text.index("p-values</h2>") < text.index("Did it converge? The proof")


def test_the_python_lines_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + rng.normal(size=50)
    lines = ["a,b c,unused,w,y"]
    lines += [f"{p!r},{q!r},7,2,{t!r}" for (p, q), t in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    (tmp_path / "new.csv").write_text("\n".join(lines))
    source = cf.scan_csv("data.csv", target="y", weight="w", columns=["a", "b c"])
    model = cf.LinearRegression().fit(source)
    cf.save(model, "model.certifit")
    context = build(model, source, FILES | {"weight": "w"})
    result: dict = {}
    program = (
        "\n".join(python_lines(context))
        .replace("print(cf.verify", "checked = (cf.verify")
        .replace("print(", "text = str(")
    )
    exec(program, result)
    assert result["checked"].holds
    assert result["predictions"] == pytest.approx(model.predict(source))
    assert "P>|t|" in result["text"]
    assert shell_lines(context)[1] == "certifit verify model.certifit data.csv --weight w"


@pytest.mark.parametrize("low", [-1e300, -7.3, 0.0, 1e-9, 12345.6, 1e15])
@pytest.mark.parametrize("width", [1e-6, 1.0, 37.0, 1e6, 1e300])
def test_ticks_are_few_round_increasing_and_inside(low, width):
    found = ticks(low, low + width)
    values = [value for value, _ in found]
    assert len(found) <= 7
    assert values == sorted(set(values))
    assert all(low - 1e-9 * width <= value <= low + width + 1e-9 * width for value in values)
    if width > 1e-9 * abs(low):
        assert len(found) >= 2
    assert len({label for _, label in found}) == len(found)


def test_the_first_screen_answers_what_a_reader_asks():
    text = page_of("plain")
    first = text[text.index('class="asked"') : text.index('class="sentences"')]
    asked = ["How good is it", "Which model, and why?", "Can I trust the fit?", "What should I worry about?"]
    places = [first.index(question) for question in asked]
    assert places == sorted(places)
    assert "Yes, proven" in first and first.count('class="picture"') <= 1
    no = page_of("not_certified")
    assert "<dd>No</dd>" in no[no.index('class="asked"') : no.index('class="sentences"')]
