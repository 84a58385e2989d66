"""Cross-validation of classifiers from sums by fold and class: what refits give, on arrays and on scans."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import LeaveOneOut, cross_val_score, cross_validate

import certifit as cf
from certifit.models.discriminant import folds as closed_forms

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
@pytest.mark.slow
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


OTHER_SCORES = ["f1_macro", "balanced_accuracy", "roc_auc_ovr", "neg_brier_score", "matthews_corrcoef"]


@pytest.mark.parametrize("scoring", OTHER_SCORES)
@pytest.mark.parametrize("model", [cf.GaussianNB(), cf.GaussianNB(basis=cf.Polynomial(1))], ids=["sums", "refits"])
@pytest.mark.slow
def test_any_score_of_predictions_or_probabilities_is_that_of_refits_on_arrays_and_scans(scoring, model, rng):
    X, y = rows(rng, 200)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y)
    cv = cf.Folds(3, stratify=True)
    expected = cross_val_score(model, X, y, cv=list(cv.split(X, y)), scoring=scoring)
    for data in ((X, y), (cf.from_arrow(frame, target="label"),)):
        found = cf.CrossValidated(model, cv=3, scoring=scoring).fit(*data)
        assert found.route_ == ("statistics" if model.basis is None else "refits")
        got = [found.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_candidates_that_change_the_columns_have_the_scores_of_refits(rng):
    X, y = rows(rng, 200)
    cv = cf.Folds(3, stratify=True)
    for model, grid in (
        (cf.GaussianNB(), [{"basis": [None, cf.Polynomial(2)]}, {"var_smoothing": [0.1]}]),
        (cf.GaussianNB(basis=cf.Polynomial(1)), {"basis__degree": [1, 2], "var_smoothing": [1e-9, 0.1]}),
    ):
        found = cf.CrossValidated(model, grid, cv=cv).fit(X, y)
        assert found.route_ == "refits"
        for i, candidate in enumerate(found.cv_results_["params"]):
            refit = clone(model).set_params(**candidate)
            expected = cross_val_score(refit, X, y, cv=list(cv.split(X, y)))
            np.testing.assert_allclose([found.cv_results_[f"split{k}_test_score"][i] for k in range(3)], expected)


def test_words_that_a_candidate_leaves_out_are_left_out_of_its_folds(rng):
    words = np.array(["win", "cash", "now", "meet", "lunch", "home", "rare"])
    y = rng.integers(0, 2, 120)
    texts = [" ".join(rng.choice(words[[0, 1, 2, 3]] if k else words[2:], 4)) for k in y]
    frame = pd.DataFrame({"text": texts, "label": np.array(["ham", "spam"])[y]})
    encoder = cf.TableEncoder(texts=cf.TextBinarizer(), unseen="reference")
    grid = {"encoder__texts__stop_words": [None, ["win", "cash", "now"]]}
    cv = cf.Folds(3, stratify=True)
    found = cf.CrossValidated(cf.BernoulliNB(encoder=encoder), grid, cv=cv).fit(cf.from_arrow(frame, target="label"))
    for i, candidate in enumerate(found.cv_results_["params"]):
        refit = cf.BernoulliNB(encoder=encoder).set_params(**candidate)
        labels = frame["label"].to_numpy()
        expected = cross_val_score(refit, frame[["text"]], labels, cv=list(cv.split(frame, labels)))
        np.testing.assert_allclose([found.cv_results_[f"split{k}_test_score"][i] for k in range(3)], expected)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "f1_macro"])
def test_models_too_large_to_be_held_together_have_the_same_scores(scoring, rng, monkeypatch):
    X, y = rows(rng, 200)
    scan = cf.from_arrow(pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y), target="label")
    held = cf.leaderboard({"shared": cf.GaussianDiscriminant()}, scan, cv=3, scoring=scoring)["shared"]
    monkeypatch.setattr(closed_forms, "MOST_BYTES", 0)
    for data in ((scan,), (X, y)):
        apart = cf.leaderboard({"shared": cf.GaussianDiscriminant()}, *data, cv=3, scoring=scoring)["shared"]
        assert (held.route, apart.route) == ("statistics", "refits")
        np.testing.assert_allclose(apart.fold_scores, held.fold_scores, rtol=1e-9)
        np.testing.assert_allclose(apart.classes.log_proba, held.classes.log_proba, rtol=1e-9, atol=1e-12)


def test_leaving_out_one_row_is_the_share_of_rows_predicted_by_the_others(rng):
    X, y = rows(rng, 40)
    found = cf.CrossValidated(cf.GaussianNB(var_smoothing=0.1), cv="loo").fit(X, y)
    expected = cross_val_score(cf.GaussianNB(var_smoothing=0.1), X, y, cv=LeaveOneOut())
    assert found.best_score_ == pytest.approx(expected.mean()) and found.n_splits_ == 40
    assert np.array_equal(np.exp(found.predict_log_proba(X)), found.predict_proba(X))


def test_what_a_classifier_cannot_do_is_told(rng):
    X, y = rows(rng, 60)
    with pytest.raises(ValueError, match="intervals=True is for numbers"):
        cf.CrossValidated(cf.GaussianNB(), intervals=True).fit(X, y)
    weight = np.ones(60)
    weight[:20] = 0
    with pytest.raises(ValueError, match="no rows of positive weight"):
        cf.CrossValidated(cf.GaussianNB(), cv=[(np.arange(20, 60), np.arange(20))]).fit(X, y, sample_weight=weight)


def test_groups_stay_together_and_win_over_strata(rng):
    X, y = rows(rng, 200)
    group = rng.integers(0, 20, 200)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y, g=group)
    memory = cf.CrossValidated(cf.GaussianNB(), cv=4).fit(X, y, groups=group)
    scan = cf.CrossValidated(cf.GaussianNB(), cv=4).fit(cf.from_arrow(frame, target="label", group="g"))
    expected = cross_val_score(cf.GaussianNB(), X, y, cv=list(cf.Folds(4).split(X, y, group)))
    for found in (memory, scan):
        got = [found.cv_results_[f"split{k}_test_score"][0] for k in range(4)]
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_a_candidate_without_a_fit_has_no_score_and_the_others_are_chosen_from(rng):
    X, y = rows(rng, 60)
    wide = np.hstack([X, rng.normal(size=(60, 30))])  # more columns than rows of a class
    quadratic = cf.GaussianDiscriminant("class", singular="raise")
    model = cf.CrossValidated(quadratic, {"shrinkage": [0.0, 0.1, 0.5]}, cv=3)
    with pytest.warns(FitFailedWarning, match="'shrinkage': 0.0} has no score. The covariance is singular"):
        model.fit(wide, y)
    mean, rank = model.cv_results_["mean_test_score"], model.cv_results_["rank_test_score"]
    assert np.isnan(mean[0]) and rank[0] == 3 and model.best_params_["shrinkage"] > 0
    with pytest.raises(ValueError, match="training rows of split 0"):
        cf.CrossValidated(quadratic, {"shrinkage": [0.0]}, cv=3).fit(wide, y)


def test_training_scores_of_a_curve_are_those_of_refits_and_a_search_leaves_them_out(rng):
    X, y = rows(rng, 200)
    cv = cf.Folds(3, stratify=True)
    for scoring in ("neg_log_loss", "f1_macro"):
        curve = cf.validation_curve(
            cf.GaussianNB(), X, y, param_name="var_smoothing", param_range=[1e-9, 0.1], cv=cv, scoring=scoring
        )
        refits = cross_validate(
            cf.GaussianNB(var_smoothing=0.1), X, y, cv=list(cv.split(X, y)), scoring=scoring, return_train_score=True
        )
        np.testing.assert_allclose(curve.train[1], refits["train_score"], rtol=1e-9)
        np.testing.assert_allclose(curve.validation[1], refits["test_score"], rtol=1e-9)
    table = cf.CrossValidated(cf.GaussianNB(), cv=cv).fit(X, y).cv_results_
    assert not any("train" in name for name in table)


@pytest.mark.parametrize("l1_ratio, max_iter", [(0.0, 100), (1.0, 100), (1.0, 99)])
def test_rows_on_the_boundary_are_of_the_first_class_in_folds_too(l1_ratio, max_iter):
    """As `predict` has it: accuracies of folds were those of the other class."""
    X, y = np.zeros((12, 2)), np.array([0, 1] * 3 + [0] * 6)
    X[:6, 0] = np.arange(6) - 2.5
    folds = [(np.arange(6), np.arange(6, 12)), (np.arange(6, 12)[::-1], np.arange(6))][:1]
    model = cf.LogisticRegression(l1_ratio=l1_ratio, fit_intercept=False, max_iter=max_iter)
    for estimator in (model, clone(model).set_params(solver="newton" if l1_ratio == 0 else "auto")):
        search = cf.CrossValidated(estimator, {"alpha": [0.5]}, cv=folds, scoring="accuracy").fit(X, y)
        refit = clone(estimator).set_params(alpha=0.5).fit(X[:6], y[:6])
        assert (refit.decision_function(X[6:]) == 0).all()
        assert search.cv_results_["split0_test_score"][0] == refit.score(X[6:], y[6:]) == 1
