"""Classifiers on real tables, end to end: the same bits from arrays, CSV, Parquet and Dask, scikit-learn's answer, and
what they predict on rows they did not see.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.discriminant_analysis as peers
import sklearn.naive_bayes as naive_peers
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA as PeerPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import certifit as cf
from tests.models.class_places import assert_same_bits, places, plain

ADULT_MODELS = {
    "one covariance": cf.GaussianDiscriminant,
    "variances": lambda: cf.GaussianDiscriminant("diagonal", shrinkage=0.01),
    "a covariance per class": lambda: cf.GaussianDiscriminant("class", shrinkage=0.01),
    "gaussian": cf.GaussianNB,
    "bernoulli": cf.BernoulliNB,
    "multinomial": cf.MultinomialNB,
}


@pytest.fixture(scope="module")
def skin(shared_data):
    return pd.read_parquet(shared_data / "skin_segmentation" / "skin_segmentation.parquet")


@pytest.fixture(scope="module")
def adult(shared_data):
    table = pd.read_parquet(shared_data / "adult" / "adult.parquet").drop(columns="split")
    return plain(table).iloc[::4].reset_index(drop=True)


@pytest.fixture(scope="module")
def digits(shared_data):
    table = pd.read_parquet(shared_data / "mnist_5k" / "mnist_5k.parquet")
    return table.drop(columns="label").to_numpy(float), table["label"].to_numpy()


def arrays(table: pd.DataFrame, target: str) -> tuple[Any, Any]:
    return table.drop(columns=target).to_numpy(float), table[target].to_numpy()


# ---- skin_segmentation ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["class", "shared"])
def test_skin_has_the_same_bits_everywhere_and_the_answer_of_scikit_learn(kind, skin, tmp_path):
    X, y = arrays(skin, "y")
    model = cf.GaussianDiscriminant(kind).fit(X, y)
    quadratic, linear = peers.QuadraticDiscriminantAnalysis(), peers.LinearDiscriminantAnalysis(solver="lsqr")
    peer = (quadratic if kind == "class" else linear).fit(X, y)
    assert np.abs(model.predict_proba(X) - peer.predict_proba(X)).max() < 1e-11
    named = cf.GaussianDiscriminant(kind).fit(cf.from_arrow(skin, target="y"))
    assert np.array_equal(named.means_, model.means_) and np.array_equal(named.roots_, model.roots_)
    for place, source in places(skin, "y", tmp_path):
        found = cf.GaussianDiscriminant(kind).fit(source)
        assert_same_bits(found, named, place)
        assert found.score(source) == pytest.approx(model.score(X, y), rel=1e-14)


def test_a_covariance_a_class_tells_skin_in_98_of_100_colours_it_did_not_see(skin):
    """Equal colours stay in one fold: 245,057 rows have 51,433 colours."""
    X, y = arrays(skin, "y")
    colour = X @ [1, 256, 65536]
    tuned = {
        kind: cf.CrossValidated(cf.GaussianDiscriminant(kind), {"shrinkage": [0.0]}, cv=cf.Folds(10)).fit(
            X, y, groups=colour
        )
        for kind in ("class", "shared")
    }
    assert tuned["class"].route_ == "statistics"
    assert tuned["class"].best_score_ > 0.98
    assert tuned["shared"].best_score_ < 0.94


# ---- adult ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADULT_MODELS)
def test_a_table_with_gaps_and_categories_has_the_same_bits_everywhere(name, adult, tmp_path):
    known = ADULT_MODELS[name]().fit(cf.from_arrow(adult, target="income"))
    assert known.certificate_.holds and known.classes_.tolist() == ["<=50K", ">50K"]
    for place, source in places(adult, "income", tmp_path):
        found = ADULT_MODELS[name]().fit(source)
        assert_same_bits(found, known, place)
        assert np.array_equal(found.predict(source), known.predict(adult.drop(columns="income")))
        assert found.certify(source).holds


def expanded(adult: pd.DataFrame) -> tuple[Any, Any]:
    """The columns that the encoder makes, made by scikit-learn: a gap is a level, the first level is left out."""
    frame = adult.drop(columns="income")
    texts = list(frame.select_dtypes(exclude="number"))
    first = [sorted(frame[name].dropna())[0] for name in texts]
    frame[texts] = frame[texts].astype(object).where(frame[texts].notna(), "a gap")
    expand = make_column_transformer((OneHotEncoder(drop=first, sparse_output=False), texts), remainder="passthrough")
    return expand.fit_transform(frame).astype(float), adult["income"].to_numpy(str)


def test_naive_bayes_of_a_table_is_that_of_scikit_learn_on_its_expansion(adult):
    X, y = expanded(adult)
    source = cf.from_arrow(adult, target="income")
    rows = adult.drop(columns="income")
    pairs = [
        (cf.BernoulliNB(0.5), naive_peers.BernoulliNB(alpha=0.5)),
        (cf.MultinomialNB(), naive_peers.MultinomialNB()),
        (cf.GaussianNB(), naive_peers.GaussianNB()),
    ]
    for model, peer in pairs:
        ours, theirs = model.fit(source).predict_joint_log_proba(rows), peer.fit(X, y).predict_joint_log_proba(X)
        assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9), type(model).__name__


def test_one_covariance_of_a_table_is_that_of_scikit_learn_on_its_expansion(adult):
    """Columns that repeat others are left out by us and met with a pseudo-inverse there: the same posterior."""
    X, y = expanded(adult)
    model = cf.GaussianDiscriminant().fit(cf.from_arrow(adult, target="income"))
    assert "education_num" in model.certificate_.dependent
    spread = X.std(axis=0)
    peer = peers.LinearDiscriminantAnalysis(solver="svd").fit(X[:, spread > 0] / spread[spread > 0], y)
    ours = model.predict_proba(adult.drop(columns="income"))
    theirs = peer.predict_proba(X[:, spread > 0] / spread[spread > 0])
    # Its covariance is divided by n - 2, ours by n: log-odds differ by that much.
    assert np.abs(ours - theirs).max() < 1e-3
    assert (
        np.mean(model.predict(adult.drop(columns="income")) == peer.predict(X[:, spread > 0] / spread[spread > 0]))
        > 0.999
    )


def test_on_new_rows_one_covariance_tells_incomes_as_well_as_a_linear_model_can(adult):
    """10 stratified folds. Most people earn less, which is right in 76 of 100."""
    tuned = cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.0]}).fit(
        cf.from_arrow(adult, target="income")
    )
    assert tuned.route_ == "statistics"
    assert tuned.best_score_ > 0.835
    assert np.mean(adult["income"] == "<=50K") < 0.77


# ---- mnist_5k -------------------------------------------------------------------------------------------------------


def test_components_then_a_covariance_a_class_read_digits(digits):
    """5 stratified folds, components of the training rows alone: 0.960. On other folds scikit-learn's SVC has 0.958."""
    X, y = digits
    folds = list(cf.Folds(5, stratify=True).split(X, y))
    model = make_pipeline(cf.PCA(30), cf.GaussianDiscriminant("class"))
    assert cross_val_score(model, X, y, cv=folds).mean() > 0.955


def test_the_pipeline_predicts_as_that_of_scikit_learn(digits):
    X, y = digits
    train, test = np.arange(5000) % 2 == 0, np.arange(5000) % 2 == 1
    ours = make_pipeline(cf.PCA(30), cf.GaussianDiscriminant("class")).fit(X[train], y[train])
    theirs = make_pipeline(PeerPCA(30, svd_solver="covariance_eigh"), peers.QuadraticDiscriminantAnalysis()).fit(
        X[train], y[train]
    )
    assert np.array_equal(ours.predict(X[test]), theirs.predict(X[test]))
    assert np.allclose(ours.predict_proba(X[test]), theirs.predict_proba(X[test]), atol=1e-8)


def test_shrinkage_is_chosen_from_sums_by_fold_as_refits_choose(digits):
    X, y = digits
    scores = cf.PCA(40).fit_transform(X)
    tuned = cf.CrossValidated(cf.GaussianDiscriminant("class"), cv=5).fit(scores, y)
    assert tuned.route_ == "statistics" and tuned.best_params_["shrinkage"] > 0
    folds = list(cf.Folds(5, stratify=True).split(scores, y))
    refit = cross_val_score(tuned.best_estimator_, scores, y, cv=folds)
    assert tuned.best_score_ == pytest.approx(refit.mean(), rel=1e-12)
    assert tuned.best_score_ > 0.96


def test_pixels_that_say_nothing_are_named(digits):
    X, y = digits[0][:, ::3], digits[1]
    model = cf.GaussianDiscriminant().fit(X, y)
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    assert {f"x{j}" for j in constant} <= set(model.certificate_.dependent)
    used = [j for j in range(X.shape[1]) if f"x{j}" not in model.certificate_.dependent]
    assert np.linalg.matrix_rank(X[:, used] - X[:, used].mean(axis=0)) == len(used)
    peer = peers.LinearDiscriminantAnalysis(solver="lsqr").fit(X[:, used], y)
    assert np.allclose(model.predict_proba(X), peer.predict_proba(X[:, used]), atol=1e-7)


# ---- colon, leukemia ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "least"), [("colon", 0.8), ("leukemia", 0.95)])
def test_genes_are_told_by_components_of_rows_then_one_covariance(name, least, shared_data):
    """Ten folds of 62 rows x 2,000 columns, and of 38 x 3,051; components of the training rows alone."""
    X, y = arrays(pd.read_parquet(shared_data / name / f"{name}.parquet"), "y")
    model = make_pipeline(cf.PCA(10), cf.GaussianDiscriminant())
    folds = list(cf.Folds(10, stratify=True).split(X, y))
    found = cross_val_predict(model, X, y, cv=folds)
    peer = make_pipeline(PeerPCA(10, svd_solver="full"), peers.LinearDiscriminantAnalysis(solver="lsqr"))
    assert np.array_equal(found, cross_val_predict(peer, X, y, cv=folds))
    assert np.mean(found == y) > least
    assert model.fit(X, y)[0].route_ == "rows"


def test_more_columns_than_rows_are_shrunk_as_scikit_learn_does(shared_data):
    X, y = arrays(pd.read_parquet(shared_data / "colon" / "colon.parquet"), "y")
    X = X[:, ::4]
    model = cf.GaussianDiscriminant(shrinkage=0.5).fit(X, y)
    peer = peers.LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5).fit(X, y)
    assert np.allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-8)
    with pytest.raises(ValueError, match=r"62 rows for 500 columns.*shrinkage"):
        cf.GaussianDiscriminant(singular="raise").fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"62 rows for 500 columns.*shrinkage"):
        cf.GaussianDiscriminant().fit(X, y)
