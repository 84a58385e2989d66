"""Claims about models that learn row by row: the contract, weights that repeat rows, the same bits anywhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import certifit as cf

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SOLVERS = ["sgd", "mini-batch", "averaged-sgd"]


def rows(rng, n=3000):
    X = rng.normal(size=(n, 4))
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ [1.0, 2.0, 0.0, -1.0]))).astype(int)
    return X, y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.slow
def test_every_place_where_rows_live_gives_the_same_bits(rng, tmp_path, solver):
    import dask.dataframe as dd

    X, y = rows(rng)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path, row_group_size=777)
    expected = cf.LogisticRegression(solver=solver, max_iter=3).fit(X, y)
    for source in (
        cf.scan_parquet(str(path), target="y"),
        cf.from_dask(dd.from_pandas(frame, npartitions=5), target="y"),
    ):
        model = cf.LogisticRegression(solver=solver, max_iter=3).fit(source)
        assert np.array_equal(model.coef_, expected.coef_)
        assert model.intercept_ == expected.intercept_
    with cf.threads(1):
        assert np.array_equal(cf.LogisticRegression(solver=solver, max_iter=3).fit(X, y).coef_, expected.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_certificate_of_a_thousandth_is_reached_and_the_trace_shows_the_way(rng, solver):
    X, y = rows(rng)
    best = cf.LogisticRegression().fit(X, y)
    model = cf.LogisticRegression(solver=solver).fit(X, y)
    assert model.certificate_.holds
    assert model.certificate_.tolerance == 1e-3
    objective = [row["objective"] for row in model.history_]
    assert best.history_[-1]["objective"] <= objective[-1] <= best.history_[-1]["objective"] * (1 + 1e-3)
    assert objective[0] > objective[-1]


def test_a_seed_is_a_run_and_another_is_another(rng):
    X, y = rows(rng)
    one, two, other = (
        cf.LogisticRegression(solver=cf.SGD(random_state=seed), max_iter=2).fit(X, y).coef_ for seed in (1, 1, 2)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
