"""The report on tables: kinds of columns, checks of the data, categories."""

import json
import math
import warnings

import numpy as np
import pyarrow as pa
import pytest
from fits import FILES
from scipy import special

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.data.privacy import Rule
from certifit.data.source import Memory
from certifit.maps import TableEncoder
from certifit.report.checks import find_checks
from certifit.report.context import build
from certifit.report.folder import coefficient_table
from certifit.report.page import render
from certifit.report.passes import HIDES
from certifit.report.tables import coefficient_items, main_items


def source_of(columns, target="y", weight=None, size=100):
    table = pa.table(columns)
    return ArrowSource(lambda: table.to_batches(size), table.schema, target, weight, n_rows=table.num_rows)


def rows(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(["Bern", "Oslo", "Rome", "Ulm"], n_rows, p=[0.1, 0.2, 0.3, 0.4])
    x, flag = rng.normal(size=n_rows), rng.random(n_rows) < 0.3
    effect = {"Bern": 0.0, "Oslo": 1.0, "Rome": -2.0, "Ulm": 0.5}
    y = 3 * x + [effect[name] for name in city] + flag + rng.normal(size=n_rows)
    gaps = [None if k % 50 == 7 else value for k, value in enumerate(rng.normal(5, 1, n_rows).tolist())]
    days = np.datetime64("2020-01-01") + rng.integers(0, 1000, n_rows)
    return {
        "x": x,
        "city": city,
        "flag": flag,
        "gaps": gaps,
        "day": days.astype("datetime64[D]"),
        "year": np.full(n_rows, 2020),
        "twin": x.copy(),
        "name": [f"n{k}" for k in range(n_rows)],
        "position": np.arange(n_rows),
        "y": y,
    }


SHOWS = Rule(shows=True)


def context_of(columns, model=None, rule=HIDES, **options):
    source = source_of(columns, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = (model or cf.LinearRegression()).fit(source)
    return model, source, build(model, source, FILES, rule=rule)


def check(context, name):
    return next(one for one in context["checks"] if one["name"].startswith(name))


def test_every_kind_of_column_is_in_the_table_of_the_data():
    _, _, context = context_of(rows())
    kinds = {column["name"]: column["kind"] for column in context["data"]["columns"]}
    assert kinds == {
        **{"x": "number", "city": "levels", "flag": "flag", "gaps": "number", "day": "date", "position": "number"},
        **dict.fromkeys(("year", "twin", "name"), "set aside"),
    }
    facts = {column["name"]: column for column in context["data"]["columns"]}
    assert facts["gaps"]["missing"] == 8
    assert facts["city"]["distinct"] == 4 and facts["city"]["levels"][0][0] == "Ulm"
    assert facts["city"]["reference"] == "Bern"
    assert facts["day"]["first"].startswith("202")
    assert "constant" in facts["year"]["reason"]
    assert json.loads(json.dumps(context, allow_nan=False)) == context


def test_checks_say_what_was_found():
    _, _, context = context_of(rows())
    assert check(context, "Types")["text"] == "3 numbers, 1 flag, 1 category, 1 date, 3 left out."
    assert check(context, "Missing")["text"] == "8 values of gaps: filled and marked."
    assert check(context, "Constant")["text"].startswith("year")
    assert "'x'" in check(context, "Repeated")["details"][0]
    found = check(context, "Identifiers")
    assert any("name: it looks like an identifier" in line for line in found["details"])
    assert any("'position' looks like an identifier" in line for line in found["details"])
    assert check(context, "Leakage")["level"] == "ok"
    assert "strongest alone is x" in check(context, "Leakage")["text"]


def test_sound_data_pass_every_check():
    columns = rows()
    _, _, context = context_of({name: columns[name] for name in ("x", "city", "flag", "y")})
    assert {one["level"] for one in context["checks"]} == {"ok"}


def test_the_data_are_the_first_section_after_the_headline():
    page = render(context_of(rows())[2])
    order = [page.index(f'<section id="{name}">') for name in ("answer", "data", "coefficients", "fit", "proof")]
    assert order == sorted(order)


def test_what_a_column_says_alone_is_the_r_squared_of_its_own_fit():
    columns = rows()
    _, _, context = context_of(columns)
    y = columns["y"]
    for name in ("x", "city", "flag"):
        model = cf.LinearRegression(encoder=TableEncoder()).fit(pa.table({name: columns[name]}), y)
        found = next(column for column in context["data"]["columns"] if column["name"] == name)
        assert found["alone"] == pytest.approx(model.inference_.adjusted_r_squared, rel=1e-9)


@pytest.mark.parametrize("kind", ["number", "levels"])
def test_a_column_made_from_the_target_is_a_suspect(kind):
    columns = rows()
    y = np.round(columns["y"])
    made = 2 * y + 1 if kind == "number" else [f"grade {value:g}" for value in y]
    _, _, context = context_of({"x": columns["x"], "made": made, "y": y})
    assert check(context, "Leakage")["level"] == "warn"
    assert "made: suspect, knows the answer" in check(context, "Leakage")["details"][0]
    assert context["warnings"][0]["title"] == "Suspect: made may know the answer"
    assert "knows the answer" in render(context)


def test_many_levels_of_few_rows_are_no_suspects():
    rng = np.random.default_rng(1)
    codes = [f"c{k // 2}" for k in range(400)]
    _, _, context = context_of({"code": codes, "x": rng.normal(size=400), "y": rng.normal(size=400)})
    assert check(context, "Leakage")["level"] == "ok"
    assert next(column["alone"] for column in context["data"]["columns"]) < 0.3


def test_a_line_through_one_column_is_no_suspect():
    x = np.arange(50.0)
    assert context_of({"x": x, "y": 2 * x + 1})[2]["warnings"] == []


def test_levels_stand_under_their_column_with_the_reference_named():
    _, _, context = context_of(rows())
    items = coefficient_items(context)
    head = next(k for k, item in enumerate(items) if item["role"] == "head")
    assert (items[head]["column"], items[head]["reference"]) == ("city", "Bern")
    assert [item["label"] for item in items[head + 1 : head + 4]] == ["Oslo", "Rome", "Ulm"]
    page = render(context)
    assert "reference Bern" in page and "all 4 levels together" in page
    table = coefficient_table(context).splitlines()
    assert table[0].endswith(",column,level")
    assert any(line.startswith("city=Oslo,") and line.endswith(",city,Oslo") for line in table)


def test_a_category_of_two_levels_needs_no_head():
    columns = rows()
    city = np.where(columns["city"] == "Ulm", "Ulm", "Bern")
    _, _, context = context_of({"x": columns["x"], "city": city, "y": columns["y"]})
    items = coefficient_items(context)
    assert [item["role"] for item in items] == ["row", "row", "row"]
    assert items[2]["reference"] == "Bern"


def test_the_test_of_all_levels_is_that_of_the_fit_without_them():
    columns = rows()
    _, _, context = context_of({name: columns[name] for name in ("x", "city", "y")})
    tables = [pa.table({name: columns[name] for name in names}) for names in (("x", "city"), ("x",))]
    models = [cf.LinearRegression(encoder=TableEncoder()).fit(table, columns["y"]) for table in tables]
    with_city, without = (model.inference_ for model in models)
    f = (without.rss - with_city.rss) / 3 / (with_city.rss / with_city.df_resid)
    group = context["coefficients"]["groups"][0]
    assert group["f"] == pytest.approx(f, rel=1e-9)
    assert group["p"] == pytest.approx(special.fdtrc(3, with_city.df_resid, f), rel=1e-9)


def test_the_effect_of_a_category_is_the_spread_of_its_part_of_the_prediction():
    columns = rows()
    model, source, context = context_of({name: columns[name] for name in ("x", "city", "y")})
    part = model.predict(source) - model.intercept_ - model.coef_[0] * columns["x"]
    assert context["coefficients"]["groups"][0]["effect"] == pytest.approx(part.std(), rel=1e-9)
    assert context["coefficients"]["groups"][0]["reference_rows"] == np.sum(columns["city"] == "Bern")


def test_a_rare_reference_is_noted():
    columns = rows()
    city = columns["city"].copy()
    city[:3] = "Aare"
    for rule, name in ((SHOWS, "Aare"), (HIDES, "(not shown)")):
        _, _, context = context_of({"x": columns["x"], "city": city, "y": columns["y"]}, rule=rule)
        assert f"compared with {name}, which has 3 rows" in check(context, "Reference")["details"][0]
    model = cf.LinearRegression(encoder=TableEncoder(reference="most frequent"))
    _, _, context = context_of({"x": columns["x"], "city": city, "y": columns["y"]}, model)
    assert check(context, "Reference")["level"] == "ok"


MODELS = (cf.LinearRegression(), cf.Ridge(alpha=0.1), cf.LinearRegression(fit_intercept=False))


@pytest.mark.parametrize("model", MODELS)
def test_pages_of_tables_render(model):
    _, _, context = context_of(rows(), model)
    page = render(json.loads(json.dumps(context)))
    assert not [bad for bad in (">nan<", ">None<", ">inf<") if bad in page]


def test_five_hundred_levels_stay_below_one_megabyte_and_are_cut_with_a_count():
    rng = np.random.default_rng(2)
    n_rows = 5_000
    levels = np.array([f"a level with a long name, number {k}" for k in range(500)])
    columns = {f"c{j}": levels[rng.integers(0, 500, n_rows)] for j in range(2)}
    _, _, context = context_of(
        columns | {"x": rng.normal(size=n_rows), "y": rng.normal(size=n_rows)}, rule=SHOWS, size=5000
    )
    page = render(context)
    assert len(page.encode()) < 1_000_000
    assert len(context["coefficients"]["rows"]) == 2 + 2 * 499
    assert page.count("… and 484 levels more") == 2
    assert len(coefficient_table(context).splitlines()) == 3 + 2 * 499
    assert sum(item["role"] == "level" for item in coefficient_items(context)) == 30
    assert [item["role"] for item in main_items(context)].count("head") == 2


def test_weight_two_is_the_row_twice():
    columns = {name: rows()[name] for name in ("x", "city", "flag", "y")}
    weight = np.tile([1.0, 2.0], 200)
    twice = {name: np.repeat(np.asarray(values), weight.astype(int)) for name, values in columns.items()}
    _, _, first = context_of(columns | {"w": weight}, weight="w")
    _, _, second = context_of(twice)
    for key in ("r2", "sigma", "rmse"):
        assert first["quality"][key] == pytest.approx(second["quality"][key], rel=1e-9)
    for a, b in zip(first["coefficients"]["groups"], second["coefficients"]["groups"], strict=True):
        assert math.isclose(a["effect"], b["effect"], rel_tol=1e-9)
        assert a["reference_rows"] == pytest.approx(b["reference_rows"])


def test_how_rows_are_cut_changes_nothing_that_is_shown():
    first, second = (context_of(rows(), size=size)[2] for size in (7, 400))
    assert render(first) == render(second)


def test_the_curve_of_one_number_with_gaps():
    columns = rows()
    model, _, context = context_of({"gaps": columns["gaps"], "y": columns["y"]})
    curve = context["pictures"]["curve"]
    table = pa.table({"gaps": curve["x"]})
    assert curve["y"] == pytest.approx(model.predict(table))
    assert context_of({"city": columns["city"], "y": columns["y"]})[2]["pictures"]["curve"] is None


def test_skipped_rows_and_missing_checksums_are_said():
    _, _, context = context_of({name: rows()[name] for name in ("x", "city", "y")})
    context["data"] |= {"skipped": 2, "file_notes": ["2 bad rows were skipped. Line 7."], "checksummed": False}
    context["files"]["scan"] = "scan_parquet"
    found = {one["name"]: one for one in find_checks(context)}
    assert found["Bad rows"]["text"] == "2 rows skipped." and found["Bad rows"]["details"]
    assert found["Checksums"]["level"] == "note"


HOSTILE = ["<script>alert(1)</script>", "a\x1b[31m\x00\u202eb", "</style>", "{{ 7 * 7 }}", "=cmd|'!A0"]


def test_hostile_names_and_levels_are_harmless():
    rng = np.random.default_rng(3)
    columns = {name: rng.choice(HOSTILE, 300).tolist() for name in HOSTILE}
    _, _, context = context_of(columns | {"y": rng.normal(size=300)})
    page = render(context)
    assert "<script" not in page and "\x1b" not in page and "\u202e" not in page
    assert "\x1b" not in coefficient_table(context)


@pytest.mark.parametrize("encoder", [TableEncoder(), None])
def test_relations_spell_out_what_is_invisible_and_few_rows_are_not_told(encoder):
    """The mean of a column that is 0 in all but one row was its cell, divided by the rows."""
    rng = np.random.default_rng(3)
    x, rare = rng.normal(size=60), np.where(np.arange(60) == 7, 12345.0, 0.0)
    columns = {HOSTILE[1]: x, HOSTILE[1] + "2": 2 * x, "rare": rare, "five": np.where(np.arange(60) < 5, rare + 1, 0)}
    y = x + rng.normal(size=60)
    if encoder is None:
        source = Memory(np.column_stack(list(columns.values())), y, names=list(columns))
    else:
        source = source_of(columns | {"y": y})
    model = cf.LinearRegression(encoder=encoder).fit(source)
    context = build(model, source, FILES)
    said = [*context["coefficients"]["notes"], *context["certificate"]["sentences"], *model.certificate_.sentences()]
    assert "\x1b" not in "".join(said) and "\u202e" not in "".join(said) and r"a\x1b[31m" in "".join(said)
    told = [column for column in context["data"]["columns"] if column["mean"] is not None]
    assert [column["sd"] for column in told] and [column["name"] for column in told] == [*list(columns)[:2], "five"]
    assert [context["data"]["columns"][2][fact] for fact in ("sd", "low", "high")] == [None] * 3
    told = build(model, source, FILES, rule=Rule(shows=True))["data"]["columns"][2]
    assert (told["mean"], told["high"]) == (pytest.approx(12345 / 60), 12345)
