"""Free text beside other columns of a table: it stays sparse in every classifier."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.data.columns import Csr

TEXTS = ["free cash, call now", "call me tonight, my dear", "dinner tonight at nine", "free cash and more prizes now"]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    picks = rng.integers(0, 4, 200)
    text = [f"{TEXTS[k]} number {i} {'again ' * (i % 3)}" for i, k in enumerate(picks)]
    paid = np.where(rng.random(200) < 0.1, np.nan, rng.random(200))
    label = np.where(picks % 3 == 0, "spam", "ham")
    return pd.DataFrame({"text": text, "paid": paid, "day": list("abcd") * 50, "label": label})


def encoder():
    return cf.TableEncoder(texts=cf.TextBinarizer(binary=False, min_df=2))


MODELS = {
    "bernoulli": lambda: cf.BernoulliNB(binarize=0.5, encoder=encoder()),
    "multinomial": lambda: cf.MultinomialNB(encoder=encoder()),
    "gaussian": lambda: cf.GaussianNB(encoder=encoder()),
    "one covariance": lambda: cf.GaussianDiscriminant(shrinkage=0.1, encoder=encoder()),
    "a covariance per class": lambda: cf.GaussianDiscriminant("class", shrinkage=0.1, encoder=encoder()),
    "variances": lambda: cf.GaussianDiscriminant("diagonal", shrinkage=0.1, encoder=encoder()),
}


@pytest.mark.parametrize("name", MODELS)
def test_words_beside_numbers_and_categories_are_the_columns_of_a_matrix(name, table):
    model = MODELS[name]().fit(cf.from_arrow(table, target="label"))
    rows = table.drop(columns="label")
    X = model.encoder_.transform(rows)
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)
    assert X.shape[1] == len(model.column_names_) and X[:, :-1].max() >= 2  # words that a text holds twice
    plain = MODELS[name]().set_params(encoder=None).fit(X, table["label"])
    expected = plain.predict_joint_log_proba(X)
    assert np.allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-11, atol=1e-11)
    assert np.array_equal(model.predict(cf.from_arrow(rows)), plain.predict(X))


@pytest.mark.parametrize("name", ["bernoulli", "multinomial"])
def test_no_pass_over_counts_makes_words_dense(name, table, monkeypatch):
    """Ten thousand texts of twenty thousand words would be two thousand million numbers."""

    def refuse(self, n_rows):
        raise AssertionError("words were made dense")

    monkeypatch.setattr(Csr, "dense", refuse)
    source = cf.from_arrow(table, target="label")
    model = MODELS[name]().fit(source)
    assert model.score(source) > 0.9 and model.certify(source).holds
    assert len(model.predict_proba(table.drop(columns="label"))) == len(table)
    whole = cf.from_arrow(table.drop(columns="paid"), target="label")
    assert cf.CrossValidated(MODELS[name](), {"alpha": [0.1, 1.0]}, cv=3).fit(whole).best_score_ > 0.9


def test_a_threshold_below_zero_is_refused_where_zeros_are_not_stored(table):
    model = MODELS["bernoulli"]().set_params(binarize=-0.5)
    with pytest.raises(ValueError, match="binarize must be >= 0 for sparse X"):
        model.fit(cf.from_arrow(table, target="label"))
