"""The limiting model of separated fits: its rows by a linear program over all, its numbers by statsmodels on those."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import certifit as cf

sm = pytest.importorskip("statsmodels.api")
pytestmark = pytest.mark.filterwarnings("ignore")


def credits(folder: Any, seed: int, n_rows: int, n_columns: int, drop_first: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Some rows and columns of German loans, levels as 0 and 1, and whether they were paid back."""
    table = pd.read_parquet(folder / "german_credit" / "german_credit.parquet")
    y = (table.pop("class") == 1).to_numpy(float)
    X = pd.get_dummies(table, drop_first=drop_first).astype(float)
    rng = np.random.default_rng(seed)
    rows, columns = rng.choice(len(X), n_rows, replace=False), rng.choice(X.shape[1], n_columns, replace=False)
    X = X.iloc[rows, np.sort(columns)]
    return X.loc[:, X.std() > 0], y[rows]


def moved_rows(A: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Rows that some receding direction moves: maximise sum t over side a'v >= t, 0 <= t <= 1, a'v = 0 for side 0."""
    moving, (n, p) = side != 0, A.shape
    k = int(moving.sum())
    upper = sp.hstack([sp.csr_array(-side[moving, None] * A[moving]), sp.eye_array(k)])
    held = sp.hstack([sp.csr_array(A[~moving]), sp.csr_array((n - k, k))])
    cost, limits = np.r_[np.zeros(p), -np.ones(k)], [(None, None)] * p + [(0, 1)] * k
    out = np.zeros(n, dtype=bool)
    out[moving] = linprog(cost, upper, np.zeros(k), held, np.zeros(n - k), limits).x[p:] > 0.5
    return out


def end(A: np.ndarray, side: np.ndarray, place: int) -> float:
    """Where a coefficient goes along all receding directions; nan where these disagree."""
    cost, moving = np.eye(A.shape[1])[place], side != 0
    cone = (-side[moving, None] * A[moving], np.zeros(moving.sum()), A[~moving], np.zeros((~moving).sum()))
    low, high = (sign * linprog(sign * cost, *cone, [(-1, 1)] * len(cost)).fun for sign in (1, -1))
    return np.inf if low > -1e-7 else (-np.inf if high < 1e-7 else np.nan)


@pytest.mark.parametrize(
    "family, draw, n_rows, n_columns, drop_first, has_weights",
    [
        ("bernoulli", 3, 150, 15, True, False),
        ("bernoulli", 9, 120, 30, False, True),
        ("poisson", 1, 200, 25, False, False),
    ],
)
def test_the_lines_are_those_of_the_rows_that_stay(
    shared_data, family, draw, n_rows, n_columns, drop_first, has_weights
):
    X, y = credits(shared_data, draw, n_rows, n_columns, drop_first)
    rng = np.random.default_rng(draw)
    y = rng.poisson(0.4 * y).astype(float) if family == "poisson" else y
    weight = rng.integers(1, 4, len(y)).astype(float) if has_weights else np.ones(len(y))
    model = cf.GLM(family).fit(X, y, weight)
    assert "No finite maximum" in model.certificate_.fault
    table = model.summary(X, y, weight)
    fit, numbers = table.inference, table.to_frame().to_numpy()

    A = np.column_stack([np.ones(len(X)), X])
    scaled, side = A / np.abs(A).max(axis=0), np.where(y == 0, -1.0, 1.0 if family == "bernoulli" else 0.0)
    moved = moved_rows(scaled, side)
    assert 0 < moved.sum() == fit.moved[0] and moved.sum() < len(y)
    _, sizes, vt = np.linalg.svd(scaled[~moved], full_matrices=False)
    span = vt[sizes > 1e-9 * sizes[0]]
    known = np.abs(np.eye(A.shape[1]) - span.T @ span).max(axis=0) < 1e-7  # e_j in the row space of the rows that stay
    assert set(table.undetermined) == set(np.flatnonzero(~known))
    of = {"bernoulli": sm.families.Binomial, "poisson": sm.families.Poisson}[family]()
    peer = sm.GLM(y[~moved], A[~moved], family=of, freq_weights=weight[~moved]).fit(tol=1e-12, maxiter=100)
    np.testing.assert_allclose(numbers[known, 0], peer.params[known], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(numbers[known, 1], peer.bse[known], rtol=1e-5)
    ours = [fit.deviance, fit.log_likelihood, fit.df_resid, fit.aic]
    aic = 2 * np.linalg.matrix_rank(scaled) - 2 * peer.llf
    np.testing.assert_allclose(ours, [peer.deviance, peer.llf, weight[~moved].sum() - len(span), aic], rtol=1e-9)
    null = sm.GLM(y, np.ones(len(y)), family=of, freq_weights=weight).fit(tol=1e-12)
    np.testing.assert_allclose([fit.null_deviance, fit.n_obs], [null.deviance, weight.sum()], rtol=1e-9)
    for place in table.undetermined:
        np.testing.assert_equal(table.infinite.get(place, np.nan), end(scaled, side, place))
    said = " ".join(table.notes)
    assert f"the {(~moved).sum()} rows that stay" in said and "proven to be within" in said and "One-sided" in said


def test_a_loaded_model_has_the_table_too_and_what_has_none_says_why(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    rare = np.arange(60) < 4
    y = np.where(rare, 1, rng.random(60) < 0.5).astype(int)
    X = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "rare": rare * 1.0})
    model = cf.LogisticRegression(alpha=0).fit(X, y)
    with pytest.raises(ValueError, match=r"rows are? separated|a direction separates rows.*summary\(X, y\)"):
        model.summary()
    cf.save(model, tmp_path / "m.certifit")
    table = cf.load(tmp_path / "m.certifit").summary(X, y)
    alone = cf.LogisticRegression(alpha=0).fit(X[["a", "b"]][~rare], y[~rare]).summary()
    np.testing.assert_allclose(table.to_frame().iloc[:3], alone.to_frame(), rtol=1e-6)
    assert table.to_dict()["coefficients"][3]["estimate"] == np.inf and "+inf" in str(table)
    robust = model.summary(X, y, covariance="HC1")
    without = cf.LogisticRegression(alpha=0).fit(X[["a", "b"]][~rare], y[~rare])
    other = without.summary(X[["a", "b"]][~rare], y[~rare], covariance="HC1")
    np.testing.assert_allclose(robust.to_frame().iloc[:3], other.to_frame(), rtol=1e-6)

    twice = X.assign(copy=X["a"])
    copied = cf.LogisticRegression(alpha=0).fit(twice, y)
    assert set(copied.summary(twice, y).undetermined) == {1, 3, 4}
    with pytest.raises(ValueError, match="redundant='drop'"):
        copied.summary(twice, y, redundant="drop")
    apart = cf.LogisticRegression(alpha=0).fit(X, X["a"] > 0)
    with pytest.raises(ValueError, match="all rows are fitted perfectly"):
        apart.summary(X, X["a"] > 0)


def test_rows_are_asked_again_until_no_direction_moves_any():
    """Counts: where u = 1 all are 0; of the others those with v = 1 and w < 0 are 0 besides."""
    rng = np.random.default_rng(3)
    u, v, w = np.arange(90) % 3 == 0, np.arange(90) % 3 == 1, rng.normal(size=90).round(1)
    X = np.column_stack([u, v, w]).astype(float)
    y = np.where(u | v, 0.0, rng.poisson(np.exp(w)) + (np.arange(90) == 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = cf.GLM("poisson").fit(X, y).summary(X, y)
    assert table.inference.moved[0] == 60 and dict(table.infinite) == {1: -np.inf, 2: -np.inf}
    alone = cf.GLM("poisson").fit(X[~(u | v), 2:], y[~(u | v)]).summary()
    np.testing.assert_allclose(table.to_frame().iloc[[0, 3]], alone.to_frame(), rtol=1e-6)


def test_separation_beside_a_column_in_two_units_is_found(rng):
    """°C and °F differ by rounding: nothing is proven of all weights, and first it is seen that none are the best."""
    celsius, z, rare = rng.normal(15, 8, 150).round(1), rng.normal(size=150), np.arange(150) < 5
    y = np.where(rare, 1, rng.random(150) < 1 / (1 + np.exp(-z))).astype(int)
    X = np.column_stack([celsius, 1.8 * celsius + 32, z, rare])
    model = cf.LogisticRegression(alpha=0).fit(X, y)
    assert "the direction +1 x3 moves 5 rows" in model.certificate_.fault
    table = model.summary(X, y)
    assert dict(table.infinite) == {4: np.inf} and set(table.undetermined) == {0, 1, 2, 4}
    alone = cf.LogisticRegression(alpha=0).fit(X[~rare][:, [0, 2]], y[~rare]).summary()
    np.testing.assert_allclose(table.to_frame().iloc[3], alone.to_frame().iloc[2], rtol=1e-6)
