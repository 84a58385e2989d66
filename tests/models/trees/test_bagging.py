"""Bagging beside what it says: draws, means, votes, out-of-bag errors, certificates and files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor as TheirTree

import certifit as cf
from certifit.models.ensembles.draws import counts_of, distinct_rows
from certifit.models.forest.out_of_bag import OutOfBag, out_of_bag


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).round(2)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n), rng.integers(1, 4, n).astype(float)


def test_equal_rows_are_one_row_in_an_order_of_their_own():
    X, y, weight = rows(60)
    order = np.random.default_rng(1).permutation(60)
    first, second = distinct_rows(X, y, weight), distinct_rows(X[order], y[order], weight[order])
    copies = np.repeat(np.arange(60), weight.astype(int))
    third = distinct_rows(X[copies], y[copies], None)
    for other, own in ((second, X[order]), (third, X[copies])):
        assert np.array_equal(X[first.numbers], own[other.numbers])
        assert np.array_equal(first.weight, other.weight)
    assert np.array_equal(X[first.numbers][first.kind], X)
    zero = distinct_rows(np.array([[0.0], [-0.0], [np.nan], [np.nan]]), np.zeros(4), None)
    assert sorted(zero.weight) == [2, 2]


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("with_replacement", [True, False])
def test_draws_are_in_proportion_to_weights(is_whole, with_replacement):
    X, y, weight = rows(40)
    weight = weight if is_whole else weight + 0.25
    distinct = distinct_rows(X, y, weight)
    share = 1.0 if with_replacement else 0.4
    counts = np.array([counts_of(distinct, share, with_replacement, 7, k) for k in range(2000)])
    assert (counts.sum(axis=1) == round(share * 40)).all()
    if with_replacement:
        expected = 40 * distinct.weight / distinct.weight.sum()
        assert (np.abs(counts.mean(axis=0) - expected) < 6 * np.sqrt(expected / 2000)).all()
    else:
        assert (counts <= 1).all()
        assert np.corrcoef(counts.mean(axis=0), distinct.weight)[0, 1] > 0.95


def test_predictions_are_means_and_votes():
    X, y, _ = rows()
    model = cf.BaggingRegressor(cf.DecisionTreeRegressor(max_depth=3), 5).fit(X, y)
    assert np.allclose(model.predict(X), np.mean([tree.predict(X) for tree in model.estimators_], axis=0))
    classes = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.8])]
    soft = cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=3), 5).fit(X, classes)
    shares = np.mean([tree.predict_proba(X) for tree in soft.estimators_], axis=0)
    assert np.allclose(soft.predict_proba(X), shares)
    assert np.array_equal(soft.predict(X), soft.classes_[shares.argmax(axis=1)])
    hard = cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=3), 5, voting="hard").fit(X, classes)
    votes = np.array([tree.predict(X) for tree in hard.estimators_])
    mode = [np.bincount(votes[:, i], minlength=3).argmax() for i in range(len(X))]
    assert np.array_equal(hard.predict(X), hard.classes_[mode])
    assert not hasattr(hard, "predict_proba")


def test_the_out_of_bag_error_is_that_of_models_that_did_not_draw_a_row():
    X, y, _ = rows()
    model = cf.BaggingRegressor(KNeighborsRegressor(3), 40, max_samples=0.5, bootstrap=False).fit(X, y)
    distinct = distinct_rows(X, y, None)
    drawn = np.array([counts_of(distinct, 0.5, False, 0, k) for k in range(40)])
    said = np.array([own.predict(X[distinct.numbers]) for own in model.estimators_])
    is_out = (drawn == 0).sum(axis=0) >= 10
    means = np.nanmean(np.where(drawn == 0, said, np.nan)[:, is_out], axis=0)
    residuals = means - y[distinct.numbers][is_out]
    assert np.isclose(model.oob_error_, np.mean(residuals**2))
    assert model.oob_interval_[0] < model.oob_error_ < model.oob_interval_[1]
    assert cf.BaggingRegressor(KNeighborsRegressor(3), 2, bootstrap=False).fit(X, y).oob_error_ is None


def covers(truth, residuals, weight, n_classes):
    means = np.column_stack([1.0 - residuals, residuals]) if n_classes else residuals
    zeros = np.zeros(len(weight))
    low, high = out_of_bag(OutOfBag(), means, zeros + 10, zeros, weight, n_classes).error(n_classes > 0)[1:]
    return low <= truth <= high


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(0)
    hits = squares = 0
    for _ in range(400):
        hits += covers(0.2, rng.random((100, 1)) < 0.2, np.ones(100), 2)
        squares += covers(1.0, rng.normal(size=(300, 1)), rng.integers(1, 4, 300) ** 2.0, 0)
    assert hits > 360
    assert squares > 355


def test_weights_are_copies_whatever_the_estimator_takes():
    X, y, weight = rows(80)
    copies = np.repeat(np.arange(80), weight.astype(int))
    for estimator in (cf.DecisionTreeRegressor(max_depth=3), KNeighborsRegressor(2), TheirTree(max_depth=3)):
        one = cf.BaggingRegressor(estimator, 40, max_samples=0.4).fit(X, y, weight)
        other = cf.BaggingRegressor(estimator, 40, max_samples=0.4).fit(X[copies], y[copies])
        assert np.allclose(one.predict(X), other.predict(X), rtol=1e-9)
        assert np.isclose(one.oob_error_, other.oob_error_)
        assert np.array_equal(one.fit(X, y, 10 * weight).predict(X), one.predict(X))
        assert np.array_equal(one.fit(X, y, np.full(80, 10.0)).predict(X), other.fit(X, y).predict(X))


def test_certificates_are_those_of_the_copies_and_refuse_a_changed_one():
    X, y, weight = rows()
    model = cf.BaggingRegressor(cf.Ridge(0.1), 4).fit(X, y, weight)
    assert model.certificate_.holds
    assert model.certify(X, y, weight).holds
    assert cf.verify(model, X, y, sample_weight=weight).holds
    model.estimators_[2].coef_ = model.estimators_[2].coef_ + 1e-3
    assert not cf.verify(model, X, y, sample_weight=weight).holds
    foreign = cf.BaggingRegressor(KNeighborsRegressor(), 2).fit(X, y)
    with pytest.raises(AttributeError, match="KNeighborsRegressor has no certificates"):
        foreign.certify(X, y)


def test_files_nest_ours_and_refuse_others_by_name(tmp_path):
    X, y, _ = rows()
    model = cf.BaggingRegressor(cf.DecisionTreeRegressor(max_depth=3), 3).fit(X, y)
    path = tmp_path / "bagging.model"
    cf.save(model, path)
    again = cf.load(path)
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.oob_interval_ == model.oob_interval_
    assert cf.verify(path, X, y).holds
    classes = np.where(y > 1.2, "high", "low")
    few = cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=2), 3, voting="hard").fit(X, classes)
    cf.save(few, tmp_path / "few.model")
    assert np.array_equal(cf.load(tmp_path / "few.model").predict(X), few.predict(X))
    foreign = cf.BaggingClassifier(KNeighborsClassifier(), 2).fit(X, classes)
    with pytest.raises(ValueError, match="KNeighborsClassifier"):
        cf.save(foreign, tmp_path / "foreign.model")


def test_a_sample_of_one_class_is_drawn_again():
    X = np.arange(40.0)[:, None]
    y = np.where(np.arange(40) == 39, "rare", "common")
    model = cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=1), 8, max_samples=5).fit(X, y)
    assert all(len(own.classes_) == 2 for own in model.estimators_)
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)


def test_frames_with_texts_go_through_an_encoder_inside():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=90), "kind": rng.choice(["a", "b", "c"], 90)})
    y = frame["x"] + (frame["kind"] == "b") + 0.1 * rng.normal(size=90)
    model = cf.BaggingRegressor(cf.Ridge(0.01, encoder=cf.TableEncoder()), 3).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert list(model.feature_names_in_) == ["x", "kind"]


@pytest.mark.parametrize("estimator", [cf.DecisionTreeRegressor(encoder="auto"), cf.Ridge(0.1, encoder="auto")])
def test_samples_know_the_levels_of_the_whole_table(estimator, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60), "kind": ["rare", *rng.choice(["a", "b", "c"], 59)]})
    y = frame["x"] + (frame["kind"] == "b")
    model = cf.BaggingRegressor(estimator, 6).fit(frame, y)
    assert model.score(frame, y) > 0.5
    cf.save(model, tmp_path / "model")
    assert (cf.load(tmp_path / "model").predict(frame) == model.predict(frame)).all()
    assert cf.verify(tmp_path / "model", frame, y).holds
    with pytest.raises(ValueError, match="level 'new'"):
        model.predict(frame.replace({"kind": {"rare": "new"}}))


@pytest.mark.parametrize("jobs", [None, 2])
def test_jobs_change_nothing(jobs):
    X, y, _ = rows(60)
    model = cf.BaggingRegressor(TheirTree(), 4, n_jobs=jobs).fit(X, y)
    assert np.array_equal(model.predict(X), cf.BaggingRegressor(TheirTree(), 4).fit(X, y).predict(X))


def test_what_is_not_legal_is_refused():
    X, y, _ = rows(30)
    for parameters in ({"n_estimators": 0}, {"max_samples": 0.0}, {"max_samples": 1.5}, {"bootstrap": "yes"}):
        with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
            cf.BaggingRegressor(cf.Ridge(), **parameters).fit(X, y)
    with pytest.raises(ValueError, match="without replacement there are 30 distinct rows"):
        cf.BaggingRegressor(cf.Ridge(), max_samples=31, bootstrap=False).fit(X, y)
    with pytest.raises(TypeError, match="Perceptron has none"):
        cf.BaggingClassifier(cf.Perceptron()).fit(X, y > 0)
    assert cf.BaggingClassifier(TheirLogistic(), 2).fit(X, y > 0).score(X, y > 0) > 0.7
