"""Influence of rows: refits without the row, statsmodels, weights, sources, edges."""

from __future__ import annotations

import sys
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from chunks import batches, random_cuts

import certifit as cf
from certifit.data.source import Batches, Block
from certifit.models.least_squares.inference import seen_once
from certifit.models.least_squares.influence import Influence

sm = pytest.importorskip("statsmodels.api")
outliers = pytest.importorskip("statsmodels.stats.outliers_influence")

TOLERANCE = 1e-8
NAMES = [field.name for field in fields(Influence)]


def sample(rng: np.random.Generator, n_rows: int = 50) -> tuple[Any, Any, Any]:
    X = rng.normal(size=(n_rows, 3)) + 2
    X[:, 2] += X[:, 0]
    return X, X @ [1.0, -2.0, 0.5] + 1 + rng.standard_t(3, size=n_rows), rng.uniform(0.3, 2, n_rows)


def design(X: Any, fit_intercept: bool) -> Any:
    return sm.add_constant(X, has_constant="add") if fit_intercept else X


def exact_inverse(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """Inverse of Z'Z by Gauss and Jordan without rounding."""
    p = len(rows[0])
    table = [
        [sum(r[i] * r[j] for r in rows) for j in range(p)] + [Fraction(i == j) for j in range(p)] for i in range(p)
    ]
    for i in range(p):
        table[i] = [value / table[i][i] for value in table[i]]
        for j in set(range(p)) - {i}:
            table[j] = [a - table[j][i] * b for a, b in zip(table[j], table[i], strict=True)]
    return [row[p:] for row in table]


def assert_agrees(found: Influence, theirs: Any, rows: Any = slice(None)) -> None:
    pairs = {
        "leverage": theirs.hat_matrix_diag,
        "standardised": theirs.resid_studentized_internal,
        "studentised": theirs.resid_studentized_external,
        "cooks_distance": theirs.cooks_distance[0],
        "dffits": theirs.dffits[0],
    }
    for name, expected in pairs.items():
        np.testing.assert_allclose(getattr(found, name)[rows], expected, rtol=TOLERANCE, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_influence_is_what_a_refit_without_the_row_shows(rng, fit_intercept):
    X, y, _ = sample(rng, 12)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    found = model.influence(X, y)
    Z, sigma2, p = design(X, fit_intercept), model.inference_.sigma2, X.shape[1] + fit_intercept
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        refit = cf.LinearRegression(fit_intercept=fit_intercept).fit(X[others], y[others])
        moved = model.predict(X) - refit.predict(X)
        error = y[i] - refit.predict(X[[i]])[0]
        assert found.residual[i] == pytest.approx(error * (1 - found.leverage[i]), rel=1e-9)
        assert found.cooks_distance[i] == pytest.approx(moved @ moved / (p * sigma2), rel=1e-9)
        spread = refit.inference_.sigma
        assert found.dffits[i] == pytest.approx(moved[i] / (spread * np.sqrt(found.leverage[i])), rel=1e-9)
        new = np.linalg.inv(Z[others].T @ Z[others])
        assert found.studentised[i] == pytest.approx(error / (spread * np.sqrt(1 + Z[i] @ new @ Z[i])), rel=1e-9)
    assert found.leverage.sum() == pytest.approx(p, rel=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_influence_agrees_with_statsmodels(rng, fit_intercept):
    X, y, _ = sample(rng)
    found = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y).influence(X, y)
    assert_agrees(found, outliers.OLSInfluence(sm.OLS(y, design(X, fit_intercept)).fit()))
    np.testing.assert_array_equal(found.row, np.arange(len(y)))


CLASSICS = {"stackloss": "stack.loss", "hbk": "Y", "cars": "dist", "Animals": "brain", "phones": "calls"}


@pytest.mark.parametrize("name", CLASSICS)
def test_classic_data_agree_with_statsmodels(shared_data, name):
    path = shared_data / "classics_small" / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"shared/data/classics_small has no {name}.csv")
    frame = pd.read_csv(path).astype(float)
    X, y = frame.drop(columns=CLASSICS[name]), frame[CLASSICS[name]]
    model = cf.LinearRegression().fit(X, y)
    Z = design(X, True)
    assert_agrees(model.influence(X, y), outliers.OLSInfluence(sm.OLS(y, Z).fit()))
    inflation = [outliers.variance_inflation_factor(Z.to_numpy(), j) for j in range(1, Z.shape[1])]
    np.testing.assert_allclose(list(model.variance_inflation().values()), inflation, rtol=TOLERANCE)
    assert list(model.variance_inflation()) == list(X.columns)


@pytest.mark.parametrize("name", ["Longley", "Norris", "Pontius"])
def test_nist_data_agree_with_statsmodels(nist, name):
    X, y, _ = nist(name)
    model = cf.LinearRegression().fit(X, y)
    unit = X / np.abs(X).max(axis=0)  # influence has no unit; statsmodels keeps more digits near 1
    assert_agrees(model.influence(X, y), outliers.OLSInfluence(sm.OLS(y, design(unit, True)).fit()))


@pytest.mark.filterwarnings("ignore:The design matrix is poorly conditioned")
def test_variance_inflation_of_longley_is_that_of_statsmodels(nist):
    X, y, _ = nist("Longley")
    found = list(cf.LinearRegression().fit(X, y).variance_inflation().values())
    theirs = [outliers.variance_inflation_factor(design(X, True), j) for j in range(1, 7)]
    np.testing.assert_allclose(found, theirs, rtol=TOLERANCE)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_variance_inflation_from_the_rows_is_that_of_the_stored_inverse(rng, fit_intercept):
    X, y, weight = sample(rng)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight)
    assert model.variance_inflation(X, y, weight) == pytest.approx(model.variance_inflation(), rel=1e-12)


def test_variance_inflation_of_filip_needs_the_rows_and_keeps_its_digits(nist):
    X, y, _ = nist("Filip")
    model = cf.LinearRegression().fit(X, y)
    with pytest.raises(
        ValueError, match=r"too close to dependent.*pass the rows of the fit: variance_inflation\(X, y\)"
    ):
        model.variance_inflation()
    with pytest.raises(ValueError, match="too close to dependent"):
        model.predict_interval(X[:1])  # the stored inverse has no digit left for it
    inverse = exact_inverse([[Fraction(1), *map(Fraction, row)] for row in X.tolist()])
    for j, found in enumerate(model.variance_inflation(X, y).values()):
        column = list(map(Fraction, X[:, j].tolist()))
        mean = sum(column, Fraction(0)) / len(column)
        exact = float(inverse[j + 1][j + 1] * sum((value - mean) ** 2 for value in column))
        assert found == pytest.approx(exact, rel=1e-9)


def test_variance_inflation_is_refused_where_it_has_no_value(rng):
    X, y, _ = sample(rng)
    with pytest.raises(ValueError, match=r"No variance inflation: .*penalty"):
        cf.Ridge(1.0).fit(X, y).variance_inflation()
    with pytest.raises(ValueError, match="No variance inflation: the columns are redundant"):
        cf.LinearRegression().fit(np.column_stack([X, X[:, 0]]), y).variance_inflation()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_frequency_weights_give_the_numbers_of_one_of_the_equal_rows(rng, fit_intercept):
    X, y, _ = sample(rng)
    weight = rng.integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    found = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y, weight).influence(X, y, weight)
    assert_agrees(found, outliers.OLSInfluence(sm.OLS(y[again], design(X[again], fit_intercept)).fit()), again)
    for name in NAMES[1:]:
        np.testing.assert_array_equal(np.isnan(getattr(found, name)), weight == 0)


def test_variance_weights_give_the_numbers_of_the_weighted_row(rng):
    X, y, weight = sample(rng)
    root = np.sqrt(weight)
    for unit in (1.0, 1e-3):  # at 1e-3 the weights sum to less than the coefficients
        model = cf.LinearRegression().fit(X, y, weight * unit)
        found = model.influence(X, y, weight * unit, weights="variance")
        theirs = sm.OLS(y * root, design(X, True) * root[:, None]).fit()
        assert_agrees(found, outliers.OLSInfluence(theirs))
        np.testing.assert_allclose(found.residual, y - model.predict(X), rtol=1e-12)


def test_any_source_gives_the_same_numbers(rng, tmp_path: Path):
    X, y, weight = sample(rng, 400)
    X[:, 1] = np.where(X[:, 1] > 2, X[:, 1], 0)
    expected = cf.LinearRegression().fit(X, y, weight).influence(X, y, weight)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    path = tmp_path / "rows.csv"
    frame.assign(y=y, w=weight).to_csv(path, index=False)
    cuts = random_cuts(rng, len(y))
    sources: list[tuple[Any, ...]] = [
        (sp.csr_array(X), y, weight),
        (frame, y, weight),
        (cf.scan_csv(str(path), target="y", weight="w"),),
        (batches(X, y, weight, block_rows=16, cuts=cuts),),
    ]
    for rows in sources:
        found = cf.LinearRegression().fit(*rows).influence(*rows)
        for name in NAMES:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-11)


def test_runs_come_one_by_one_and_the_most_influential_are_kept(rng):
    X, y, _ = sample(rng, 700)
    source = batches(X, y, block_rows=16, cuts=random_cuts(rng, len(y)))
    model = cf.LinearRegression().fit(source)
    parts = list(model.influence_iter(source))
    assert len(parts) > 1 and sum(map(len, parts)) == 700
    whole = model.influence(source)
    for name in NAMES:
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))
    order = np.argsort(-whole.cooks_distance)[:7]
    for found in (model.influence(source, most=7), whole.most(7)):
        np.testing.assert_array_equal(found.row, order)
        np.testing.assert_array_equal(found.dffits, whole.dffits[order])


def test_an_outlier_is_found(rng):
    X, y, _ = sample(rng, 300)
    X[123], y[123] = X[123] + 6, y[123] - 60
    assert cf.LinearRegression().fit(X, y).influence(X, y, most=1).row.tolist() == [123]


def test_what_has_no_value_is_nan(rng):
    X, y, _ = sample(rng)
    X[:, 1] = 0
    X[17, 1] = 1.0  # only this row tells its coefficient
    found = cf.LinearRegression().fit(X, y).influence(X, y)
    assert found.leverage[17] == pytest.approx(1, rel=1e-12)
    for name in ("standardised", "studentised", "cooks_distance", "dffits"):
        np.testing.assert_array_equal(np.isnan(getattr(found, name)), np.arange(len(y)) == 17)
    assert 17 not in found.most(49).row
    x = np.arange(6.0)[:, None]
    exact = cf.LinearRegression().fit(x, 2 * x[:, 0] + 1).influence(x, 2 * x[:, 0] + 1)
    assert np.isnan(exact.cooks_distance).all() and exact.leverage.sum() == pytest.approx(2)
    three = cf.LinearRegression().fit(x[:3], [0.0, 1.0, 0.0]).influence(x[:3], [0.0, 1.0, 0.0])
    assert np.isnan(three.studentised).all() and not np.isnan(three.standardised).any()


def test_a_row_beside_an_exact_line_is_infinitely_far() -> None:
    x, y = np.arange(6.0)[:, None], np.arange(6.0)
    y[2] = 9.0
    found = cf.LinearRegression().fit(x, y).influence(x, y)
    assert found.studentised[2] == np.inf and found.dffits[2] == np.inf
    assert np.isfinite(found.cooks_distance).all() and found.most(1).row.tolist() == [2]


def test_it_becomes_a_frame_or_names_the_extra(rng, monkeypatch: pytest.MonkeyPatch):
    X, y, _ = sample(rng)
    found = cf.LinearRegression().fit(X, y).influence(X, y, most=4)
    frame = found.to_frame()
    assert list(frame.columns) == NAMES[1:] and frame.index.tolist() == found.row.tolist()
    np.testing.assert_array_equal(frame["dffits"], found.dffits)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"certifit\[pandas\]"):
        found.to_frame()


def test_wrong_calls_are_refused(rng):
    X, y, weight = sample(rng)
    model = cf.LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"most must be None or at least 1. Got 0"):
        model.influence(X, y, most=0)
    with pytest.raises(ValueError, match="weights must be one of"):
        model.influence(X, y, weights="count")
    with pytest.raises(ValueError, match="not those of the fit"):
        model.influence(X, y, weight)
    with pytest.raises(ValueError, match=r"No influence: .*penalty"):
        cf.Ridge(1.0).fit(X, y).influence(X, y)
    with pytest.raises(ValueError, match="k must be at least 1"):
        model.influence(X, y).most(0)


def test_a_report_sees_a_fit_on_its_rows_once(rng: np.random.Generator) -> None:
    X, y, _ = sample(rng)
    passes = []

    def opened() -> Any:
        passes.append(1)
        return [Block(X[begin : begin + 20], y[begin : begin + 20], None) for begin in range(0, len(y), 20)]

    def told(model: Any) -> tuple[Any, Any, int]:
        passes.clear()
        errors = model.summary(source, covariance="HC3").to_dict()
        rows = model.influence(source)
        return errors, [getattr(rows, name).tobytes() for name in NAMES], len(passes)

    source = Batches(opened, ["a", "b", "c"])
    models = [cf.LinearRegression(fit_intercept=has).fit(source) for has in (True, False)]
    apart = [told(model) for model in models]
    with seen_once():
        together = [told(model) for model in models]
    assert [one[:2] for one in together] == [one[:2] for one in apart]
    for seen_before, seen_anew in zip(together, apart, strict=True):
        assert seen_before[2] <= seen_anew[2] - 2  # the matrix of the rows, and the residual
    assert told(models[0]) == apart[0]  # nothing is remembered outside
