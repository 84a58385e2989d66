import json
import warnings

import numpy as np
import pytest
from fits import FILES, MAKERS, fitted, rows

import certifit as cf
from certifit.data.source import Memory
from certifit.report.context import build
from certifit.report.page import render


@pytest.fixture(params=sorted(MAKERS))
def name(request):
    return request.param


def context_of(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, source = fitted(name)
        return model, source, build(model, source, FILES)


def test_the_context_of_every_fit_is_strict_json_and_renders(name):
    _, _, context = context_of(name)
    again = json.loads(json.dumps(context, allow_nan=False))
    assert again == context
    page = render(again)
    assert page.startswith("<!DOCTYPE html>")
    assert not [bad for bad in (">nan<", ">None<", ">inf<", '"nan', "NaN") if bad in page]


def test_the_table_is_that_of_the_summary():
    model, _, context = context_of("plain")
    for row, expected in zip(context["coefficients"]["rows"], model.summary().to_dict()["coefficients"], strict=True):
        assert [row[k] for k in ("name", "estimate", "error", "t", "p", "low", "high")] == list(expected.values())


@pytest.mark.parametrize("name", ["plain", "ridge", "dependent", "heavy_tails", "polynomial"])
def test_r_squared_is_that_of_score(name):
    model, source, context = context_of(name)
    block = next(source.stretches())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert context["quality"]["r2"] == pytest.approx(model.score(block.X, block.y), rel=1e-9)


def test_errors_are_those_of_numpy():
    model, source, context = context_of("plain")
    residual = next(source.stretches()).y - model.predict(source)
    quality = context["quality"]
    assert quality["rmse"] == pytest.approx(np.sqrt(np.mean(residual**2)))
    assert quality["mean_error"] == pytest.approx(np.mean(np.abs(residual)))
    assert quality["quartiles"] == pytest.approx(np.quantile(residual, [0.05, 0.25, 0.5, 0.75, 0.95]), abs=0.03)


def test_dependent_columns_keep_the_degrees_of_freedom_of_their_rank():
    _, _, with_copy = context_of("dependent")
    _, _, without = context_of("plain")
    for key in ("sigma", "adjusted_r2", "df"):
        assert with_copy["quality"][key] == pytest.approx(without["quality"][key], rel=1e-9)


def test_weight_two_is_the_row_twice():
    X, y = rows(120)
    weight = np.tile([1.0, 2.0], 60)
    repeat = weight.astype(int)
    weighted = Memory(X, y, weight, ["a", "b", "c"])
    repeated = Memory(np.repeat(X, repeat, axis=0), np.repeat(y, repeat), names=["a", "b", "c"])
    first, second = (build(cf.LinearRegression().fit(s), s, FILES) for s in (weighted, repeated))
    for key in ("r2", "adjusted_r2", "sigma", "rmse", "mean_error", "df"):
        assert first["quality"][key] == pytest.approx(second["quality"][key], rel=1e-9)
    assert first["pictures"]["quantiles"]["found"] == pytest.approx(second["pictures"]["quantiles"]["found"], rel=1e-6)


@pytest.mark.parametrize(("name", "words"), [("ridge", "penalty"), ("two_rows", "no more rows")])
def test_missing_p_values_have_a_reason(name, words):
    _, _, context = context_of(name)
    assert not context["coefficients"]["has_inference"]
    assert words in context["coefficients"]["reason"]
    assert all(row["p"] is None for row in context["coefficients"]["rows"])


def test_redundant_columns_are_marked_and_the_others_have_p_values():
    model, source, context = context_of("dependent")
    table, shown = context["coefficients"], model.summary(source).to_dict()["coefficients"]
    assert table["has_inference"] and not table["has_intervals"] and "repeat each other" in table["reason"]
    assert [row["determined"] for row in table["rows"]] == [row.get("determined", True) for row in shown]
    assert all((row["p"] is not None) == row["determined"] for row in table["rows"])


def test_dependent_columns_are_named_with_what_to_do():
    _, _, context = context_of("dependent")
    warning = context["warnings"][0]
    assert warning["level"] == "warn"
    assert "1 column of 4" in warning["title"]
    assert all(name in warning["text"] for name in "abd")
    assert "leave out" in warning["action"]


def test_a_constant_column_is_said_to_repeat_the_intercept():
    X, y = rows()
    source = Memory(np.column_stack([X, np.full(300, 7.0)]), y, names=["a", "b", "c", "seven"])
    warning = build(cf.LinearRegression().fit(source), source, FILES)["warnings"][0]
    assert "seven = 7. A constant column repeats the intercept." in warning["text"]


def test_a_fit_that_is_not_certified_is_the_first_warning():
    _, _, context = context_of("not_certified")
    assert not context["certificate"]["holds"]
    assert context["warnings"][0]["level"] == "bad"
    assert "did not converge" in context["warnings"][0]["title"]


def test_far_rows_are_noted_and_sound_fits_have_no_warning():
    assert "far from the fit" in context_of("heavy_tails")[2]["warnings"][-1]["title"]
    assert context_of("plain")[2]["warnings"] == []
    assert [warning["title"] for warning in context_of("exact")[2]["warnings"]] == ["Suspect: a may know the answer"]


def test_the_curve_of_one_column_is_the_prediction_with_its_intervals():
    model, _, context = context_of("one_column")
    curve = context["pictures"]["curve"]
    x = np.array(curve["x"])[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert curve["y"] == pytest.approx(model.predict(x))
        assert np.array(curve["prediction"]) == pytest.approx(model.predict_interval(x))
    assert context_of("plain")[2]["pictures"]["curve"] is None


def test_no_row_of_the_data_is_in_the_context():
    _, source, context = context_of("heavy_tails")
    text = json.dumps(context)
    block = next(source.stretches())
    # Extremes are facts of the report; other rows must not be found digit by digit.
    middle = np.argsort(block.y)[100:-100]
    assert not any(repr(float(value)) in text for value in block.y[middle])
