"""Claims about one class against the rest: any classifier of two classes, its scores, its certificates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.multiclass import OneVsRestClassifier as Theirs

import certifit as cf

IRIS = load_iris(return_X_y=True)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_the_class_of_the_largest_score_is_predicted():
    X, y = IRIS
    model = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(X, y)
    scores = np.column_stack([cf.LogisticRegression(alpha=0.01).fit(X, y == k).decision_function(X) for k in range(3)])
    assert np.array_equal(model.decision_function(X), scores)
    assert np.array_equal(model.predict(X), scores.argmax(axis=1))
    theirs = Theirs(cf.LogisticRegression(alpha=0.01)).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), rtol=1e-12)


def test_classifiers_of_other_libraries_do_as_well():
    X, y = IRIS
    labels = np.array(["setosa", "versicolor", "virginica"])[y]
    ours, theirs = cf.OneVsRestClassifier(TheirLogistic()).fit(X, labels), Theirs(TheirLogistic()).fit(X, labels)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(AttributeError, match="has no certificates"):
        _ = ours.certificate_


def test_scores_are_probabilities_where_there_is_no_decision_function():
    X, y = IRIS
    model = cf.OneVsRestClassifier(cf.GaussianNB()).fit(X, y)
    assert not hasattr(model, "decision_function")
    assert np.array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    two = cf.OneVsRestClassifier(cf.GaussianNB()).fit(X[:100], y[:100])
    assert np.array_equal(two.predict(X), cf.GaussianNB().fit(X[:100], y[:100]).predict(X))
    assert len(two.estimators_) == 1


def test_certificates_are_forwarded_and_the_one_that_says_least_stands_for_all():
    X, y = IRIS
    model = cf.OneVsRestClassifier(cf.Perceptron(max_iter=200)).fit(X, y)
    holds = [certificate.holds for certificate in model.certificates_]
    assert holds == [True, False, False]  # only the first class can be separated from the rest by a plane
    assert not model.certificate_.holds
    assert "no weights separate the classes" in str(model.certificates_[1])
    assert not hasattr(model, "predict_proba")


def test_weights_are_handed_on_with_and_without_routing(rng):
    X, y = IRIS
    weight = rng.integers(0, 3, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(X, y, sample_weight=weight)
    twice = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), twice.decision_function(X), rtol=1e-8)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = cf.LogisticRegression(alpha=0.01).set_fit_request(sample_weight=True)
        routed = cf.OneVsRestClassifier(inner).fit(X, y, sample_weight=weight)
    assert np.array_equal(routed.decision_function(X), weighted.decision_function(X))


def test_scans_frames_and_sparse_rows_give_the_models_of_arrays(tmp_path):
    X, y = IRIS
    labels = np.array(["a", "b", "c"])[y]
    frame = pd.DataFrame(X, columns=list("pqrs"))
    path = tmp_path / "iris.parquet"
    frame.assign(kind=labels).to_parquet(path)
    estimator = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01))
    scan = cf.scan_parquet(str(path), target="kind")
    of_array = estimator.fit(X, labels)
    expected = of_array.decision_function(X)
    of_scan = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(scan)
    assert np.array_equal(of_scan.decision_function(scan), expected)
    assert of_scan.score(scan) == of_array.score(X, labels)
    assert of_scan.classes_.tolist() == ["a", "b", "c"]
    of_frame = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(frame, labels)
    assert np.array_equal(of_frame.decision_function(frame), expected)
    assert of_frame.feature_names_in_.tolist() == list("pqrs")
    of_sparse = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(sp.csr_array(X), labels)
    np.testing.assert_allclose(of_sparse.decision_function(sp.csr_array(X)), expected, rtol=1e-6)
    with pytest.raises(TypeError, match="A scan needs a classifier of certifit"):
        cf.OneVsRestClassifier(TheirLogistic()).fit(scan)


def test_jobs_fit_the_same_models():
    X, y = IRIS
    one, two = (cf.OneVsRestClassifier(cf.LogisticRegression(), n_jobs=n).fit(X, y) for n in (None, 2))
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_the_joint_certificate_is_recomputed_on_rows_and_scans(tmp_path):
    X, y = IRIS
    labels = np.array(["a", "b", "c"])[y]
    path = tmp_path / "iris.parquet"
    pd.DataFrame(X, columns=list("pqrs")).assign(kind=labels).to_parquet(path)
    scan = cf.scan_parquet(str(path), target="kind")
    model = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(X, labels)
    assert model.certify(X, labels) == model.certificate_
    of_scan = cf.OneVsRestClassifier(cf.LogisticRegression(alpha=0.01)).fit(scan)
    assert of_scan.certify(scan) == of_scan.certificate_
    model.estimators_[1].coef_ = model.estimators_[1].coef_ * (1 + 1e-4)
    assert not model.certify(X, labels).holds
    with pytest.raises(AttributeError, match="has no certificates"):
        cf.OneVsRestClassifier(TheirLogistic()).fit(X, labels).certify(X, labels)


def test_a_refit_that_fails_leaves_the_old_one_whole():
    X, y = IRIS
    model = cf.OneVsRestClassifier(cf.LogisticRegression()).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 6, np.nan, X), np.where(y == 0, "zero", "one"))
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
