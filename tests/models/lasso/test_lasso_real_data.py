"""Lasso on real data: scikit-learn's answer to 1e-8, dense and sparse, more rows and more columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Lasso as PeerLasso

import certifit as cf


def standardised(X: Any) -> Any:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def expression(folder: Any, name: str) -> tuple[Any, Any]:
    """A table of gene expressions: fewer rows than columns."""
    table = pd.read_parquet(folder / name / f"{name}.parquet")
    return standardised(table.drop(columns="y").to_numpy(float)), table["y"].to_numpy(float)


def houses(folder: Any) -> tuple[Any, Any]:
    """Categories as columns of 0 and 1, without those that never vary."""
    table = pd.read_parquet(folder / "ames_housing" / "ames_housing.parquet")
    X = pd.get_dummies(table.drop(columns="Sale_Price")).to_numpy(float)
    return standardised(X[:, X.std(axis=0) > 0]), table["Sale_Price"].to_numpy(float)


def sentences(folder: Any) -> tuple[Any, Any]:
    """Which of 20,000 words a sentence holds."""
    table = pd.read_parquet(folder / "subjectivity" / "subjectivity.parquet")
    words = CountVectorizer(binary=True).fit_transform(table["text"])
    return sp.csr_array(words, dtype=np.float64), pd.factorize(table["label"])[0].astype(float)


DATA: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "colon": lambda folder: expression(folder, "colon"),
    "leukemia": lambda folder: expression(folder, "leukemia"),
    "ames_housing": houses,
    "subjectivity": sentences,
}


@pytest.mark.parametrize("name", DATA)
def test_the_answer_is_that_of_scikit_learn(shared_data, name):
    X, y = DATA[name](shared_data)
    largest = cf.Lasso().path(X, y, n_alphas=2).alphas[0]
    for share in (0.3, 0.05):
        model = cf.Lasso(share * largest).fit(X, y)
        peer = PeerLasso(share * largest, tol=1e-14, max_iter=100_000).fit(X, y)
        assert np.array_equal(model.coef_ != 0, peer.coef_ != 0)
        assert model.coef_ == pytest.approx(peer.coef_, rel=1e-8, abs=1e-8 * np.abs(peer.coef_).max())
        assert model.predict(X) == pytest.approx(peer.predict(X), rel=1e-8, abs=1e-8 * y.std())
        assert model.certificate_.value < 1e-10


def test_where_columns_repeat_each_other_the_predictions_are_those_of_scikit_learn(shared_data):
    X, y = houses(shared_data)
    alpha = 0.01 * cf.Lasso().path(X, y, n_alphas=2).alphas[0]
    model = cf.Lasso(alpha).fit(X, y)
    peer = PeerLasso(alpha, tol=1e-14, max_iter=100_000).fit(X, y)
    assert model.predict(X) == pytest.approx(peer.predict(X), rel=1e-8, abs=1e-8 * y.std())
    assert np.abs(model.coef_).sum() == pytest.approx(np.abs(peer.coef_).sum(), rel=1e-8)
    assert model.certificate_.value < 1e-10


@pytest.mark.parametrize("name", ["colon", "leukemia"])
def test_a_whole_path_with_folds_on_more_columns_than_rows(shared_data, name):
    X, y = DATA[name](shared_data)
    path = cf.Lasso().path(X, y)
    assert path.gaps.max() < 1e-8
    tuned = cf.CrossValidated(cf.Lasso(), cv=5).fit(X, y)
    assert tuned.route_ == "statistics"
    alpha = tuned.best_params_["alpha"]
    at = [candidate["alpha"] for candidate in tuned.cv_results_["params"]].index(alpha)
    for k, (train, test) in enumerate(cf.Folds(5).split(X, y)):
        peer = PeerLasso(alpha, tol=1e-14, max_iter=100_000).fit(X[train], y[train])
        expected = peer.score(X[test], y[test])
        assert tuned.cv_results_[f"split{k}_test_score"][at] == pytest.approx(expected, rel=1e-8, abs=1e-8)
