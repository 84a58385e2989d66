"""The report of every kind of model: which sections it has, and that their numbers are right."""

import json
import re
import warnings

import numpy as np
import pytest
from fits import FILES, MAKERS, fitted, rows
from test_report_page import Page

import certifit as cf
from certifit.cli import words
from certifit.data.privacy import Rule
from certifit.data.source import Memory
from certifit.report import context as report_context
from certifit.report import svg, text
from certifit.report.context import VERSION, build
from certifit.report.facts import Fit
from certifit.report.model import certificate_facts
from certifit.report.notices import find_notices
from certifit.report.page import render
from certifit.report.sections import drawings

ALWAYS = ["data", "coefficients", "fit", "residuals", "proof", "steps", "use", "words"]
OWN = {
    "plain": {"influence"},
    "ridge": set(),
    "dependent": set(),
    "lasso": {"path"},
    "wide_lasso": {"path"},
    "elastic_net": {"path"},
    "huber": {"outliers"},
}


def context_of(name, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, source = fitted(name)
        return model, source, build(model, source, FILES, **options)


@pytest.mark.parametrize(("name", "own"), OWN.items(), ids=OWN)
def test_every_kind_of_model_has_its_sections_and_no_others(name, own):
    _, _, context = context_of(name)
    found = [section["name"] for section in context["sections"] if section["name"] != "warnings"]
    assert set(found) == {*ALWAYS, *own}
    page = Page(render(context))
    ids = [value for tag, key, value in page.attributes if tag == "section" and key == "id"]
    assert ids == ["answer", *(section["name"] for section in context["sections"])]
    links = [value[1:] for tag, key, value in page.attributes if tag == "a" and key == "href"]
    assert links[: len(ids) - 1] == ids[1:]


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_every_key_of_the_context_is_documented(name):
    _, _, context = context_of(name)
    said = report_context.__doc__
    assert context["version"] == VERSION and f"list of keys, {VERSION}" in said
    for key, value in context.items():
        assert re.search(rf"\b{key}\b", said), key
        for inner in value if isinstance(value, dict) and key != "files" else []:
            assert re.search(rf"\b{inner}\b", said), (key, inner)


@pytest.mark.parametrize("name", ["lasso", "elastic_net", "huber", "ridge"])
def test_models_without_p_values_say_why_in_one_sentence_and_what_to_do(name):
    _, _, context = context_of(name)
    table = context["coefficients"]
    assert not table["has_inference"] and table["robust"] is None
    assert table["reason"].startswith("There are no p-values or intervals: ") and table["reason"].count(". ") == 1
    page = render(context)
    assert table["reason"].split("'")[0] in page
    assert "Std. error" not in page and "% interval</th>" not in page
    assert all(row[key] is None for row in table["rows"] for key in ("error", "p", "low", "robust_error"))


@pytest.mark.parametrize("name", ["lasso", "wide_lasso", "elastic_net", "lasso_without_weights"])
def test_kept_and_dropped_columns_are_those_with_and_without_a_weight(name):
    model, _, context = context_of(name)
    chosen = context["coefficients"]["chosen"]
    names = np.array(model.column_names_)
    assert chosen["kept"] == names[model.coef_ != 0].tolist()
    assert chosen["dropped"] == names[model.coef_ == 0].tolist()
    assert context["model"]["n_nonzero"] == chosen["n_nonzero"] == np.count_nonzero(model.coef_)
    page = render(context)
    assert f"{text.plural(len(chosen['dropped']), 'column')} dropped" in page
    assert "repeat what others say" not in page  # a dropped column is not a redundant one


def test_a_category_is_dropped_only_when_all_its_levels_are():
    import pyarrow as pa
    from test_report_tables import rows as table_rows
    from test_report_tables import source_of

    columns = table_rows()
    model = cf.Lasso(alpha=0.25)
    source = source_of({name: columns[name] for name in ("x", "city", "flag", "y")})
    context = build(model.fit(source), source, FILES)
    weights = {row["name"]: row["estimate"] for row in context["coefficients"]["rows"]}
    cities = [value for name, value in weights.items() if name.startswith("city=")]
    assert 0 < np.count_nonzero(cities) < len(cities)
    assert "city" in context["coefficients"]["chosen"]["kept"]
    page = render(context)
    zero = next(name for name, value in weights.items() if name.startswith("city=") and value == 0)
    assert f'<th scope="row">{zero.removeprefix("city=")}</th>' not in page
    assert pa.table(columns).num_rows == context["data"]["n_rows"]


def test_the_path_is_that_of_fits_one_by_one():
    model, source, context = context_of("lasso")
    path = context["path"]
    assert path["alphas"] == sorted(path["alphas"], reverse=True) and path["chosen"] in path["alphas"]
    sd = source.block.X.std(axis=0)
    for k in (3, 25, len(path["alphas"]) - 1):
        again = cf.Lasso(alpha=path["alphas"][k]).fit(source)
        assert path["n_nonzero"][k] == np.count_nonzero(again.coef_)
        for line in path["lines"]:
            j = list(model.column_names_).index(line["name"])
            assert line["weights"][k] == pytest.approx(again.coef_[j], abs=1e-8)
            assert line["effects"][k] == pytest.approx(again.coef_[j] * sd[j], abs=1e-8)
    at = path["alphas"].index(path["chosen"])
    assert path["n_nonzero"][at] == np.count_nonzero(model.coef_)
    assert f"{np.count_nonzero(model.coef_)} of 8 coefficients are not zero" in path["sentences"][0]


def test_a_path_goes_on_to_an_alpha_below_its_grid():
    _, _, context = context_of("lasso_of_weak_penalty")
    alphas = np.array(context["path"]["alphas"])
    assert alphas[-1] == context["path"]["chosen"] == 1e-6
    assert np.diff(np.log(alphas)).min() > np.log(alphas[-1] / alphas[0]) / 20
    assert 'class="line-chosen"' in render(context)


def test_robust_errors_are_those_of_the_summary():
    model, source, context = context_of("plain")
    expected = model.summary(source, covariance="HC3").to_dict()["coefficients"]
    keys = {"robust_error": "standard_error", "robust_p": "p", "robust_low": "lower", "robust_high": "upper"}
    for row, found in zip(context["coefficients"]["rows"], expected, strict=True):
        assert {key: row[key] for key in keys} == {key: found[name] for key, name in keys.items()}
    assert context["coefficients"]["robust"]["holds"] and "Robust error" in render(context)


def test_a_p_value_that_crosses_five_per_cent_with_robust_errors_is_named():
    # Noise of +-x^2 in turn: large where x is, and none of it along x.
    x = np.repeat(np.linspace(-2, 2, 200), 2)
    y = 0.2 * x + np.tile([1.0, -1.0], 200) * x**2
    source = Memory(x[:, None], y, names=["noisy"])
    table = build(cf.LinearRegression().fit(source), source, FILES)["coefficients"]
    row = table["rows"][1]
    assert (row["p"] <= 0.05) != (row["robust_p"] <= 0.05)
    assert "noisy crosses the 5 % mark" in table["robust"]["sentences"][-1]


def test_a_row_of_leverage_one_leaves_no_robust_errors_and_says_so():
    X, y = rows(30, 1)
    X = np.column_stack([X, np.arange(30) == 7]).astype(float)
    source = Memory(X, y, names=["x", "alone"])
    context = build(cf.LinearRegression().fit(source), source, FILES)
    robust = context["coefficients"]["robust"]
    assert not robust["holds"] and robust["sentences"][0].startswith("No robust standard errors: HC3")
    assert "Robust error" not in render(context)


def test_influence_is_that_of_the_hat_matrix():
    _, source, context = context_of("plain", rule=Rule(shows=True))
    X = np.column_stack([np.ones(300), source.block.X])
    hat = X @ np.linalg.solve(X.T @ X, X.T)
    h, residual = np.diagonal(hat), source.block.y - hat @ source.block.y
    s2 = residual @ residual / 296
    cook = residual**2 * h / (4 * s2 * (1 - h) ** 2)
    found = context["influence"]
    assert [row["row"] for row in found["rows"]] == np.argsort(-cook)[:10].tolist()
    for row in found["rows"]:
        assert row["leverage"] == pytest.approx(h[row["row"]]) and row["residual"] == pytest.approx(
            residual[row["row"]]
        )
        assert row["cooks_distance"] == pytest.approx(cook[row["row"]])
    assert found["high_leverage"] == np.sum(h > 2 * 4 / 300)
    drawn = sum(mass for _, _, mass in found["grid"]["cells"]) + found["grid"]["outside"]
    assert drawn == 300
    _, _, rounded = context_of("plain")
    for row, exact in zip(rounded["influence"]["rows"], found["rows"], strict=True):
        shown, kept = ({key: value for key, value in one.items() if key != "place"} for one in (row, exact))
        assert row["place"] == exact["place"] and shown == pytest.approx(kept, rel=0.006)


def test_the_move_of_predictions_without_the_first_row_is_that_of_a_fit_without_it():
    model, source, context = context_of("plain")
    row = context["influence"]["rows"][0]["row"]
    X, y = source.block.X, source.block.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without = cf.LinearRegression().fit(np.delete(X, row, axis=0), np.delete(y, row))
        moved = np.sqrt(np.mean((without.predict(X) - model.predict(X)) ** 2))
    assert f"row {row}: without it, predictions of y would move by {text.number(moved, 2)} " in " ".join(
        context["influence"]["sentences"]
    )


def test_rows_held_back_are_those_beyond_delta_scales():
    model, source, context = context_of("huber")
    residual = source.block.y - model.predict(source)
    found = context["outliers"]
    assert found["limit"] == pytest.approx(1.35 * model.scale_)
    assert found["n_beyond"] == np.sum(np.abs(residual) > found["limit"])
    assert [row["row"] for row in found["rows"]] == np.argsort(-np.abs(residual), kind="stable")[:10].tolist()
    assert {row["row"] % 20 for row in found["rows"]} == {0}
    assert context["quality"]["sigma"] < 2 < context["quality"]["rmse"]  # a few far rows do not change it


@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.Ridge(alpha=0.3), cf.Lasso(alpha=0.4)], ids=str)
@pytest.mark.parametrize("off", [1e-9, 1e-4, 0.3])
def test_predictions_are_never_further_from_the_best_than_is_said(model, off):
    X, y = rows(200, 4)
    source = Memory(X, y, names=list("abcd"))
    best = model.fit(source).predict(source)
    model.coef_ = model.coef_ + off * np.array([1.0, -1.0, 0.5, 0.0])
    model.certificate_ = model.certify(source)
    fit = Fit.of(model, source, FILES, 0.95, None, None)
    facts = certificate_facts(fit)
    moved = np.sqrt(np.mean((model.predict(source) - best) ** 2))
    assert 0 < moved <= facts["prediction_moves"]
    assert model.alpha_ == 0.4 or facts["prediction_moves"] <= 50 * moved  # the gap of a lasso is not quadratic
    assert text.power(facts["prediction_moves"]) in facts["words"][1]
    assert ("Better coefficients may" in facts["words"][0]) == (not facts["holds"])


def test_no_bound_on_predictions_is_claimed_for_hubers_loss():
    _, _, context = context_of("huber")
    assert context["certificate"]["prediction_moves"] is None
    assert "no bound" in context["certificate"]["words"][1]


def test_steps_are_those_of_the_history():
    model, _, context = context_of("huber")
    found = context["history"]
    assert [row["gap"] for row in found["rows"]] == [row["gap"] for row in model.history_]
    assert f"took {model.history_[-1]['iteration']} steps" in found["sentences"][0]
    assert any(figure["name"] == "gaps" for figure in context["figures"])
    assert "seconds" not in json.dumps(found)


def test_two_reports_of_one_fit_are_the_same():
    for name in ("plain", "lasso", "huber"):
        assert render(context_of(name)[2]) == render(context_of(name)[2])


def test_five_hundred_columns_of_a_lasso_stay_below_one_megabyte():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 500))
    names = [f"a_column_with_a_long_name_{j}" for j in range(500)]
    source = Memory(X, X @ rng.normal(size=500) + rng.normal(size=700), names=names)
    context = build(cf.Lasso(alpha=0.3).fit(source), source, FILES)
    page = render(context)
    assert len(page.encode()) < 1_000_000
    assert len(context["path"]["lines"]) == 12 and context["path"]["n_other"] > 300


def test_names_at_the_ends_of_the_lines_of_a_path_do_not_cover_each_other():
    _, _, context = context_of("wide_lasso")
    drawing = drawings(context)["penalty"]
    heights = sorted(float(y) for y in re.findall(r'class="key c\d[^"]*" x="[\d.]+" y="([\d.]+)"', drawing))
    assert len(heights) == 12 and np.diff(heights).min() > 12
    assert heights[0] > 0 and heights[-1] < svg.HEIGHT


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (-2.31, -0.9, ["0.005", "0.01", "0.02", "0.05", "0.1"]),
        (-8.0, 2.0, ["1e−8", "1e−6", "1e−4", "0.01", "1", "100"]),
        (3.0, 5.0, ["1,000", "1e4", "1e5"]),
        (0.1, 0.2, ["1.3", "1.4", "1.5"]),
    ],
)
def test_ticks_of_a_log_axis_are_round(low, high, labels):
    found = svg.log_ticks(low, high, room=330)
    assert [label for _, label in found] == labels == [label for _, label in svg.log_ticks(high, low, room=330)]
    assert all(low - 1e-9 <= at <= high + 1e-9 for at, _ in found)


@pytest.mark.parametrize(("at", "word"), [(0, "weakest"), (2, None), (4, "strongest")])
def test_the_best_penalty_at_the_end_of_its_grid_is_noted(at, word):
    _, _, context = context_of("ridge")
    curve = {"model": "ridge", "label": "penalty alpha", "values": [0.01, 0.1, 1.0, 10.0, 100.0]}
    curve |= {"best": at, "chosen": at}
    facts = {"curve": curve, "notes": [], "rows": []}
    found = find_notices(context | {"validation": facts | {"chosen": "ridge"}})
    titles = [notice["title"] for notice in found]
    assert titles == ([] if word is None else [f"The best penalty is the {word} that was tried"])
    other = find_notices(context | {"validation": facts | {"chosen": "least squares"}})
    assert other == []


def test_the_terminal_says_what_was_kept_and_which_rows_are_held_back():
    _, _, context = context_of("lasso")
    said = "\n".join(words.lines(context, "out", []))
    chosen = context["coefficients"]["chosen"]
    assert f"  kept           {text.joined(chosen['kept'])}" in said
    assert f"  dropped        {text.joined(chosen['dropped'])}" in said
    assert "penalised squared error" in said and "MODEL_CARD.md" in said and "pictures/" in said
    assert not [name for name in chosen["dropped"] if re.search(rf"^  {name}  ", said, re.MULTILINE)]
    _, _, context = context_of("huber")
    said = "\n".join(words.lines(context, "out", []))
    first = ", ".join(row["place"] for row in context["outliers"]["rows"][:5])
    assert f"held back      {context['outliers']['n_beyond']} rows, furthest out: {first}" in said
    assert "Huber loss" in said
