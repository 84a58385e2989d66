"""Cross-validation of classifiers from sums by fold and class: what refits give, on arrays and on scans."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import certifit as cf

CASES = {
    "multinomial": (cf.MultinomialNB(), [{"alpha": 0.01}, {"alpha": 10.0}, {"alpha": 1.0, "fit_prior": False}]),
    "bernoulli": (cf.BernoulliNB(), [{"alpha": 0.01}, {"binarize": 1.0}, {"alpha": 5.0}]),
    "gaussian": (cf.GaussianNB(), [{"var_smoothing": 1e-9}, {"var_smoothing": 0.1}]),
    "shared": (cf.GaussianDiscriminant(), [{"shrinkage": 0.0}, {"shrinkage": 0.5}]),
    "kinds": (
        cf.GaussianDiscriminant(),
        [{"covariance": "diagonal"}, {"shrinkage": 0.1}, {"covariance": "class", "shrinkage": 0.2}],
    ),
}


def rows(rng, n=600):
    y = rng.integers(0, 3, n)
    X = rng.poisson(np.exp(0.5 * rng.normal(size=(3, 10)))[y]).astype(float)
    return X, np.array(["a", "b", "c"])[y]


def grid(candidates):
    return [{name: [value] for name, value in candidate.items()} for candidate in candidates]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_scores_from_sums_are_those_of_refits(case, scoring, rng):
    model, candidates = CASES[case]
    X, y = rows(rng)
    cv = cf.Folds(4, stratify=True)
    found = cf.CrossValidated(model, grid(candidates), cv=cv, scoring=scoring).fit(X, y)
    assert found.route_ == "statistics"
    for i, candidate in enumerate(found.cv_results_["params"]):
        refit = clone(model).set_params(**candidate)
        expected = cross_val_score(refit, X, y, cv=list(cv.split(X, y)), scoring=scoring)
        got = [found.cv_results_[f"split{k}_test_score"][i] for k in range(4)]
        np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("case", ["multinomial", "bernoulli", "gaussian"])
def test_sparse_rows_and_weights_too(case, rng):
    model, candidates = CASES[case]
    X, y = rows(rng)
    w = rng.integers(1, 3, len(X)).astype(float)
    cv = cf.Folds(4, stratify=True)
    dense = cf.CrossValidated(model, grid(candidates), cv=cv).fit(X, y, sample_weight=w)
    sparse = cf.CrossValidated(model, grid(candidates), cv=cv).fit(sp.csr_array(X), y, sample_weight=w)
    np.testing.assert_allclose(sparse.cv_results_["mean_test_score"], dense.cv_results_["mean_test_score"], rtol=1e-9)
    fold = next(iter(cv.split(X, y)))
    refit = clone(model).set_params(**dense.cv_results_["params"][0]).fit(X[fold[0]], y[fold[0]], w[fold[0]])
    expected = refit.score(X[fold[1]], y[fold[1]], w[fold[1]])
    np.testing.assert_allclose(dense.cv_results_["split0_test_score"][0], expected, rtol=1e-12)


def test_a_scan_is_cross_validated_with_stratified_folds_and_the_same_scores(rng):
    X, y = rows(rng)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y)
    scan = cf.CrossValidated(cf.GaussianDiscriminant(), cv=5).fit(cf.from_arrow(frame, target="label"))
    memory = cf.CrossValidated(cf.GaussianDiscriminant(), cv=5).fit(X, y)
    assert scan.route_ == memory.route_ == "statistics" and scan.best_params_ == memory.best_params_
    assert np.array_equal(scan.cv_results_["mean_test_score"], memory.cv_results_["mean_test_score"])
    assert np.array_equal(scan.predict(cf.from_arrow(frame, target="label")), memory.predict(X))


def test_what_sums_do_not_determine_is_refitted(rng):
    X, y = rows(rng, 200)
    bent = cf.GaussianDiscriminant(basis=cf.Polynomial(1))
    assert cf.CrossValidated(bent, {"shrinkage": [0.1]}, cv=3).fit(X, y).route_ == "refits"
    other = cf.CrossValidated(cf.GaussianNB(), cv=3, scoring="f1_macro").fit(X, y)
    assert other.route_ == "refits" and 0 < other.best_score_ <= 1
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y)
    with pytest.raises(ValueError, match="from sums"):
        cf.CrossValidated(cf.GaussianNB(), cv=3, scoring="f1_macro").fit(cf.from_arrow(frame, target="label"))
