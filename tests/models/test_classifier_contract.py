"""Classifiers: the same bits wherever their rows live, labels in files, fits and parts that fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import certifit as cf

MODELS = [
    cf.GaussianDiscriminant(),
    cf.GaussianDiscriminant("class"),
    cf.GaussianNB(),
    cf.BernoulliNB(),
    cf.MultinomialNB(),
]


def rows(n: int = 500, d: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    X = np.abs(rng.normal(size=(n, d)) + y[:, None] * np.arange(d)) + 1
    return X, np.array(["no", "yes", "a, b"])[y], rng.integers(0, 3, n).astype(float)


def sources(folder) -> dict[str, cf.scan_csv]:
    """The same rows in every place they can live, in pieces that fit no block."""
    import dask.array as da
    import dask.dataframe as dd

    X, y, w = rows(3_000)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y, w=w)
    frame.to_csv(folder / "rows.csv", index=False)
    pq.write_table(pa.Table.from_pandas(frame), folder / "rows.parquet", row_group_size=777)
    named = {"target": "label", "weight": "w"}
    arrays = (da.from_array(X, chunks=(333, 4)), da.from_array(y, chunks=500), da.from_array(w, chunks=444))
    return {
        "csv": cf.scan_csv(folder / "rows.csv", **named),
        "parquet": cf.scan_parquet(folder / "rows.parquet", **named),
        "arrow": cf.from_arrow(frame, **named),
        "categories": cf.from_arrow(frame.assign(label=frame["label"].astype("category")), **named),
        "dask frame": cf.from_dask(dd.from_pandas(frame, npartitions=7), **named),
        "dask arrays": cf.from_dask(*arrays),
    }


def state(model) -> list[np.ndarray]:
    names = ("priors_", "means_", "covariance_", "theta_", "var_", "feature_log_prob_", "class_log_prior_")
    return [getattr(model, name) for name in names if hasattr(model, name)]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.slow
def test_the_same_bits_on_files_and_dask(model, tmp_path):
    X, y, w = rows(3_000)
    expected = clone(model).fit(X, y, w)
    predictions, score = expected.predict(X), expected.score(X, y, w)
    for place, source in sources(tmp_path).items():
        fitted = clone(model).fit(source)
        assert fitted.classes_.tolist() == expected.classes_.tolist(), place
        for found, known in zip(state(fitted), state(expected), strict=True):
            assert np.array_equal(found, known), place
        assert np.array_equal(fitted.predict(source), predictions), place
        np.testing.assert_allclose(fitted.score(source), score, rtol=1e-12)
        assert fitted.certify(source).holds
        total = expected.joint_log_likelihood(X, y, w)
        np.testing.assert_allclose(fitted.joint_log_likelihood(source), total, rtol=1e-11)


def test_predictions_go_to_files_as_labels(tmp_path):
    source = sources(tmp_path)["parquet"]
    model = cf.GaussianNB().fit(source)
    expected = model.predict(source)
    for name in ("p.csv", "p.parquet"):
        assert model.predict(source, out=tmp_path / name) is None
    assert np.array_equal(pd.read_csv(tmp_path / "p.csv")["prediction"], expected)
    assert np.array_equal(pd.read_parquet(tmp_path / "p.parquet")["prediction"], expected)


def test_rows_come_in_parts_from_files(tmp_path):
    everywhere = sources(tmp_path)
    model = cf.BernoulliNB().partial_fit(everywhere["csv"], classes=["a, b", "no", "yes"])
    model.partial_fit(everywhere["parquet"])
    once = cf.BernoulliNB().fit(everywhere["csv"])
    assert np.array_equal(model.feature_count_, 2 * once.feature_count_)


def test_a_table_needs_a_model_that_was_fitted_to_one(tmp_path):
    X, y, w = rows(3_000)
    with pytest.raises(TypeError, match="table of named columns"):
        cf.GaussianNB().fit(X, y, w).predict(sources(tmp_path)["csv"])


def test_a_basis_bends_the_boundary():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = (X**2).sum(axis=1) > 1.4
    flat = cf.GaussianDiscriminant().fit(X, y).score(X, y)
    bent = cf.GaussianDiscriminant(basis=cf.Polynomial(2)).fit(X, y).score(X, y)
    assert flat < 0.6 and bent > 0.85


@pytest.mark.parametrize("model", [cf.GaussianDiscriminant(), cf.GaussianNB(), cf.MultinomialNB(), cf.PCA(1)])
def test_a_fit_that_fails_leaves_the_model_as_it_was(model):
    """New classes with old parameters would predict in silence."""
    X = np.array([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 7.0]])
    model.fit(X, ["a", "a", "b", "b"])
    before = {name: repr(value) for name, value in vars(model).items()}
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X == 9, np.nan, X), ["c", "c", "d", "d"])
    assert {name: repr(value) for name, value in vars(model).items()} == before


@pytest.mark.parametrize("model", [cf.GaussianNB(), cf.BernoulliNB(), cf.MultinomialNB()])
def test_a_first_part_that_fails_can_be_given_again(model):
    X, y = np.array([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 7.0]]), [0, 0, 1, 1]
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.where(X == 9, np.nan, X), y, classes=[0, 1])
    again = model.partial_fit(X, y, classes=[0, 1]).predict_proba(X)
    np.testing.assert_array_equal(again, type(model)().fit(X, y).predict_proba(X))
