"""Redundant columns in the table and in influence; refusals with the way out; names that do harm."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import certifit as cf
from certifit.inference.summary import Dropped

sm = pytest.importorskip("statsmodels.api")
outliers = pytest.importorskip("statsmodels.stats.outliers_influence")

KEPT = [0, 1, 3]  # of the columns: the third is the first minus twice the second, the fifth a shift of the fourth


def repeated(rng: np.random.Generator, n_rows: int = 60) -> tuple[Any, Any, Any]:
    base = rng.normal(size=(n_rows, 3)) + 2
    a, b, c = base.T
    X = np.column_stack([a, b, a - 2 * b, c, c + 3])
    return X, base @ [1.0, -2.0, 0.5] + rng.normal(size=n_rows) * np.abs(b), rng.uniform(0.3, 2, n_rows)


@pytest.mark.parametrize("covariance", ["nonrobust", "HC0", "HC1", "HC2", "HC3"])
def test_dropped_columns_leave_the_table_of_a_fit_without_them(rng, covariance):
    X, y, weight = repeated(rng)
    model = cf.LinearRegression().fit(X, y, weight)
    law = "t" if covariance == "nonrobust" else "z"  # statsmodels'
    table = model.summary(X, y, weight, weights="variance", covariance=covariance, law=law, redundant="drop")
    theirs = sm.WLS(y, sm.add_constant(X[:, KEPT]), weights=weight).fit(cov_type=covariance)
    fit = table.inference
    assert fit.names == ("intercept", "x0", "x1", "x3")
    for ours, name in {"estimate": "params", "standard_errors": "bse", "p_values": "pvalues", "aic": "aic"}.items():
        np.testing.assert_allclose(getattr(fit, ours), getattr(theirs, name), rtol=1e-8, err_msg=ours)
    np.testing.assert_allclose(fit.f_statistic, theirs.fvalue, rtol=1e-8)
    assert (fit.df_resid, fit.df_model) == (56, 3)
    assert "digits proven" in str(table) and "No digit is proven" not in str(table)  # of the columns that are shown


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_table_shows_dropped_columns_in_their_places_and_says_why(rng, fit_intercept):
    X, y, _ = repeated(rng)
    table = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y).summary(X, y, redundant="drop")
    relations = ["x2 = x0 - 2 x1"] + (["x4 = x3 + 3"] if fit_intercept else [])
    names = ["intercept"] * fit_intercept + [f"x{j}" for j in range(5)]
    assert [column.relation for column in table.dropped] == relations
    lines = [line.split() for line in str(table).splitlines()]
    shown = [line for line in lines if line and line[0] in names]
    assert [line[0] for line in shown] == names
    assert [line[0] for line in shown if line[1:] == ["dropped"]] == ["x2", "x4"][: len(relations)]
    assert f"Left out as redundant: {'; '.join(relations)}." in " ".join(str(table).split())
    frame = table.to_frame()
    assert list(frame.index) == names and frame.loc["x2"].isna().all() and not frame.loc["x3"].isna().any()
    rows = json.loads(json.dumps(table.to_dict(), allow_nan=False))["coefficients"]
    assert [row["name"] for row in rows] == names
    assert {row["name"]: row["dropped"] for row in rows if "dropped" in row} == {r.split(" ")[0]: r for r in relations}
    assert rows[names.index("x2")]["estimate"] is None and rows[names.index("x3")]["p"] is not None
    assert table.to_html().count("<td>dropped</td>") == len(relations)


def test_columns_that_are_not_redundant_are_never_dropped(rng):
    X, y, _ = repeated(rng)
    X = X[:, KEPT]
    model = cf.LinearRegression().fit(X, y)
    assert str(model.summary(redundant="drop")) == str(model.summary())
    assert str(model.summary(X, y, redundant="drop")) == str(model.summary(X, y))


def test_any_source_drops_the_same_columns(rng, tmp_path):
    X, y, weight = repeated(rng)
    X[:, 1] = np.where(X[:, 1] > 2, X[:, 1], 0)
    X[:, 2] = X[:, 0] - 2 * X[:, 1]
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame.assign(y=y, w=weight).to_csv(tmp_path / "rows.csv", index=False)
    scan = cf.scan_csv(str(tmp_path / "rows.csv"), target="y", weight="w")
    expected = None
    for rows in ((frame, y, weight), (scan,), (sp.csr_array(X), y, weight)):
        table = cf.LinearRegression().fit(*rows).summary(*rows, covariance="HC3", redundant="drop")
        expected = table.inference.standard_errors if expected is None else expected
        np.testing.assert_allclose(table.inference.standard_errors, expected, rtol=1e-9)
        assert [column.place for column in table.dropped] == [3, 5]


def test_dropped_levels_and_powers_are_those_that_the_model_weighs(rng):
    kind = rng.choice(["a", "b", "c"], 80)
    frame = pd.DataFrame({"kind": kind, "is_b": (kind == "b").astype(float), "x": rng.normal(size=80)})
    y = rng.normal(size=80) + frame["x"]
    model = cf.LinearRegression(encoder=cf.TableEncoder()).fit(frame, y)
    table = model.summary(frame, y, redundant="drop")
    assert [column.name for column in table.dropped] == ["is_b"]
    others = frame.drop(columns="is_b")
    alone = cf.LinearRegression(encoder=cf.TableEncoder()).fit(others, y).summary().inference
    np.testing.assert_allclose(table.inference.standard_errors, alone.standard_errors, rtol=1e-10)


@pytest.mark.parametrize("weights", ["frequency", "variance"])
def test_influence_is_that_without_the_redundant_columns(rng, weights):
    X, y, weight = repeated(rng)
    weight = np.ones(len(y)) if weights == "frequency" else weight
    found = cf.LinearRegression().fit(X, y, weight).influence(X, y, weight, weights=weights)
    root = np.sqrt(weight)
    theirs = outliers.OLSInfluence(sm.OLS(y * root, sm.add_constant(X[:, KEPT]) * root[:, None]).fit())
    np.testing.assert_allclose(found.leverage, theirs.hat_matrix_diag, rtol=1e-8)
    np.testing.assert_allclose(found.cooks_distance, theirs.cooks_distance[0], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.studentised, theirs.resid_studentized_external, rtol=1e-8, atol=1e-11)


def test_a_refusal_names_the_relations_and_the_way_out(rng):
    X, y, _ = repeated(rng)
    model = cf.LinearRegression().fit(X, y)
    words = r"redundant.*x2 = x0 - 2 x1; x4 = x3 \+ 3\. Drop a column of each.*summary\(X, y, redundant='drop'\)"
    for call in (
        lambda: model.summary(redundant="refuse"),
        model.variance_inflation,
        lambda: model.predict_interval(X),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    for redundant in ("mark", "drop"):
        with pytest.raises(ValueError, match=r"redundant \(x2 = x0 - 2 x1; x4 = x3 \+ 3\).*Pass the rows"):
            model.summary(redundant=redundant)
    with pytest.raises(ValueError, match=r"redundant must be one of 'mark', 'drop', 'refuse'. Got 'NA'"):
        model.summary(X, y, redundant="NA")
    many = np.column_stack([X[:, [0]]] * 9)
    with pytest.raises(ValueError, match="x5 = x0; and 3 more"):
        cf.LinearRegression().fit(many, y).summary()


def test_few_rows_are_the_reason_where_they_are(rng):
    X, y, _ = repeated(rng, 4)
    for weights in ("frequency", "variance"):
        with pytest.raises(ValueError, match="4 observations leave no residual degree of freedom"):
            cf.LinearRegression().fit(X, y).summary(X, y, weights=weights, redundant="drop")


PENALISED = {
    "Ridge": (lambda: cf.Ridge(0.1), r"towards 0 on purpose.*Use LinearRegression.*Bootstrap.*CrossValidated"),
    "Lasso": (lambda: cf.Lasso(0.1), r"these rows chose the columns.*LinearRegression.*OTHER rows.*Bootstrap"),
    "ElasticNet": (lambda: cf.ElasticNet(0.1), r"these rows chose the columns.*LinearRegression.*OTHER rows"),
    "Lasso without a penalty": (lambda: cf.Lasso(0.0, bounds=(0.0, np.inf)), r"at bounds.*Use LinearRegression"),
    "Huber": (cf.HuberRegressor, r"do not hold for Huber's loss.*Bootstrap"),
}


@pytest.mark.parametrize("name", PENALISED)
def test_inference_is_refused_with_the_reason_and_the_way_out(rng, name):
    make, words = PENALISED[name]
    X, y, _ = repeated(rng)
    model = make().fit(X[:, KEPT], y)
    rows = (X[:, KEPT], y)
    calls: list[Any] = [
        model.summary,
        lambda: model.summary(*rows, covariance="HC3"),
        lambda: model.summary(*rows, weights="variance"),
        lambda: model.summary(*rows, redundant="drop"),
        lambda: model.influence(*rows),
        model.variance_inflation,
        lambda: model.predict_interval(X[:, KEPT]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=rf"^No [a-z ]+: .*{words}"):
            call()


HOSTILE = ["\x1b[31mred\x07", "a\nb\u202e", "<script>alert(1)</script>", "", "intercept", "x" * 300]


def test_hostile_names_stay_whole_in_data_and_harmless_in_print(rng):
    X = rng.normal(size=(50, 6))
    X[:, 2] = X[:, 0] + X[:, 1]
    frame = pd.DataFrame(X, columns=HOSTILE)
    y = pd.Series(X @ np.arange(6) + rng.normal(size=50), name="\x1b]0;title\x07<b>")
    model = cf.LinearRegression().fit(frame, y)
    table = model.summary(frame, y, redundant="drop")
    text, page = str(table), table.to_html()
    for output in (text, page):
        assert all(c.isprintable() or c == "\n" for c in output)
    assert "<script>" not in page and "<b>" not in page
    assert max(map(len, text.splitlines())) <= 110
    assert list(table.to_frame().index) == ["intercept", *HOSTILE]  # a column may be called intercept
    assert [row["name"] for row in table.to_dict()["coefficients"]] == ["intercept", *HOSTILE]
    with pytest.raises(ValueError, match="redundant"):
        model.summary()
    assert list(cf.LinearRegression().fit(frame.drop(columns=HOSTILE[2]), y).variance_inflation()) == [
        name for name in HOSTILE if name != HOSTILE[2]
    ]


def test_a_long_list_of_dropped_columns_is_cut_in_the_note_only(rng):
    x = rng.normal(size=(40, 1))
    X = np.hstack([x, x * np.arange(2, 32)])
    y = x[:, 0] + rng.normal(size=40)
    table = cf.LinearRegression().fit(X, y).summary(X, y, redundant="drop")
    assert len(table.dropped) == 30 and table.dropped[0] == Dropped(2, "x1", "x1 = 2 x0")
    assert "and 20 more" in table.notes[0] and str(table).count(" dropped") == 30
