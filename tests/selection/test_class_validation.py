"""Rows predicted out of fold: what refits give, from every source; every row once; the metrics read off them."""

from __future__ import annotations

import math

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score, log_loss
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB

import certifit as cf
from certifit.evaluation.metrics.ranking import SHARED_ROWS
from certifit.selection.folds import class_validation as module
from certifit.selection.folds.class_validation import class_training, class_validation
from certifit.selection.folds.metrics import METRICS, OUT_OF_FOLD

LABELS = np.array(["ham", "junk", "spam"])
MODELS = {
    "shared": (cf.GaussianDiscriminant(), LinearDiscriminantAnalysis(solver="lsqr")),
    "class": (cf.GaussianDiscriminant("class"), None),
    "gaussian": (cf.GaussianNB(), GaussianNB()),
    "bernoulli": (cf.BernoulliNB(), BernoulliNB()),
    "multinomial": (cf.MultinomialNB(), MultinomialNB()),
}
NAMES = [f"c{j}" for j in range(6)]


def rows(rng, n=240, n_classes=3):
    codes = rng.integers(0, n_classes, n)
    X = rng.poisson(np.exp(0.5 * rng.normal(size=(n_classes, 6)))[codes]).astype(float)
    return X, LABELS[codes]


def frame(X, y, **more):
    return pd.DataFrame(X, columns=NAMES).assign(label=y, **more)


def out_of_fold(model, X, y, folds, weight=None):
    """log p(k | x) of every row by a refit to the rows of the other folds."""
    classes = np.unique(y)
    found = np.full((len(y), len(classes)), -np.inf)
    for train, validation in folds:
        options = {} if weight is None else {"sample_weight": weight[train]}
        fitted = clone(model).fit(X[train], y[train], **options)
        found[np.ix_(validation, np.searchsorted(classes, fitted.classes_))] = fitted.predict_log_proba(X[validation])
    return found


@pytest.mark.parametrize(
    ("name", "kind"),
    [*((name, np.asarray) for name in MODELS), *((name, sp.csr_array) for name in ("bernoulli", "multinomial"))],
)
def test_every_row_is_predicted_by_a_model_that_did_not_see_it(name, kind, rng):
    X, y = rows(rng)
    ours, theirs = MODELS[name]
    folds = list(cf.Folds(5, stratify=True).split(X, y))
    found = class_validation(ours, kind(X), y, cv=5)
    np.testing.assert_allclose(found.log_proba, out_of_fold(ours, X, y, folds), rtol=1e-12, atol=1e-12)
    assert np.array_equal(found.classes[found.codes], y) and found.n_rows == len(y) and not found.is_sample
    if theirs is not None:
        expected = cross_val_predict(theirs, X, y, cv=folds, method="predict_proba")
        np.testing.assert_allclose(found.proba(), expected, rtol=1e-8, atol=1e-12)


def test_quadratic_discriminants_are_those_of_scikit_learn_but_for_the_divisor(rng):
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) * (1 + y[:, None]) + y[:, None]
    found = class_validation(cf.GaussianDiscriminant("class"), X, y, cv=5)
    folds = list(cf.Folds(5, stratify=True).split(X, y))
    expected = cross_val_predict(QuadraticDiscriminantAnalysis(), X, y, cv=folds, method="predict_proba")
    np.testing.assert_allclose(found.proba(), expected, atol=0.02)  # they divide by n - 1


@pytest.mark.parametrize("name", ["class", "gaussian", "multinomial"])
def test_memory_csv_parquet_and_dask_give_the_same(name, rng, tmp_path):
    X, y = rows(rng)
    table = frame(X, y)
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    scans = {
        "csv": cf.scan_csv(tmp_path / "a.csv", target="label"),
        "parquet": cf.scan_parquet(tmp_path / "a.parquet", target="label"),
        "dask": cf.from_dask(dd.from_pandas(table, npartitions=3), target="label"),
    }
    model = MODELS[name][0]
    memory = class_validation(model, X, y, cv=4)
    for scan in scans.values():
        found = class_validation(model, scan, cv=4)
        np.testing.assert_allclose(found.log_proba, memory.log_proba, rtol=1e-12, atol=1e-12)
        assert np.array_equal(found.codes, memory.codes) and np.array_equal(found.matrix.counts, memory.matrix.counts)
        assert found.classes.tolist() == memory.classes.tolist()


def test_weights_and_groups_of_a_scan_are_those_of_arrays(rng):
    X, y = rows(rng)
    weight, group = rng.integers(0, 3, len(y)).astype(float), rng.integers(0, 30, len(y))
    scan = cf.from_arrow(frame(X, y, w=weight, g=group), target="label", weight="w", group="g")
    found = class_validation(cf.GaussianNB(), scan, cv=5)
    memory = class_validation(cf.GaussianNB(), X, y, cv=5, sample_weight=weight, groups=group)
    np.testing.assert_allclose(found.log_proba, memory.log_proba, rtol=1e-12, atol=1e-12)
    counted = weight > 0
    folds = list(cf.Folds(5).split(X, y, group))
    expected = out_of_fold(cf.GaussianNB(), X, y, folds, weight)[counted]
    np.testing.assert_allclose(found.log_proba, expected, rtol=1e-10, atol=1e-12)
    guess = LABELS[expected.argmax(axis=1)]
    assert np.array_equal(found.weight, weight[counted]) and found.n_rows == counted.sum()
    assert np.array_equal(found.matrix.counts, confusion_matrix(y[counted], guess, sample_weight=weight[counted]))
    assert all(value.low is None for value in found.metrics().values())


@pytest.mark.parametrize("is_scan", [False, True], ids=["arrays", "scan"])
def test_what_sums_do_not_determine_is_refitted(is_scan, rng):
    X, y = rows(rng)
    bent = cf.GaussianDiscriminant(shrinkage=0.1, basis=cf.Polynomial(2))
    data = (cf.from_arrow(frame(X, y), target="label"),) if is_scan else (X, y)
    found = class_validation(bent, *data, cv=4)
    expected = out_of_fold(bent, X, y, list(cf.Folds(4, stratify=True).split(X, y)))
    np.testing.assert_allclose(found.log_proba, expected, rtol=1e-8, atol=1e-9)


def test_gaps_are_filled_from_the_training_rows_alone(rng):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    table = frame(X, y)
    model = cf.GaussianNB(var_smoothing=1e-3, encoder=cf.TableEncoder(unseen="reference"))
    found = class_validation(model, cf.from_arrow(table, target="label"), cv=4)
    for train, validation in cf.Folds(4, stratify=True).split(X, y):
        refit = clone(model).fit(table[NAMES].iloc[train], y[train])
        expected = refit.predict_log_proba(table[NAMES].iloc[validation])
        np.testing.assert_allclose(found.log_proba[validation], expected, rtol=1e-9, atol=1e-9)


def test_an_estimator_of_another_library_is_refitted_on_the_same_folds(rng):
    X, y = rows(rng)
    ours, theirs = (class_validation(model, X, y, cv=5) for model in (cf.GaussianNB(), GaussianNB()))
    np.testing.assert_allclose(theirs.log_proba, ours.log_proba, rtol=1e-8, atol=1e-10)
    assert np.array_equal(theirs.matrix.counts, ours.matrix.counts)


@pytest.mark.parametrize("cv", [cf.Folds(4, stratify=True, repeats=3), cf.Bootstrap(12), cf.Folds(70)], ids=repr)
def test_every_row_counts_once_by_the_first_split_that_it_validates(cv, rng):
    X, y = rows(rng, 120)
    found = class_validation(cf.GaussianNB(), X, y, cv=cv)
    classes = np.unique(y)
    expected = np.full((len(y), 3), np.nan)
    for train, validation in cv.split(X, y):
        new = [row for row in validation if np.isnan(expected[row, 0])]
        if new:
            fitted = GaussianNB().fit(X[train], y[train])
            expected[np.ix_(new, np.searchsorted(classes, fitted.classes_))] = fitted.predict_log_proba(X[new])
    seen = ~np.isnan(expected[:, 0])
    np.testing.assert_allclose(found.log_proba, expected[seen], rtol=1e-7, atol=1e-9)
    assert found.n_rows == seen.sum() == found.matrix.n


def test_a_class_that_the_training_rows_lack_has_probability_zero(rng):
    X, y = rows(rng)
    y = y.astype(object)
    y[7] = "odd"
    for data in ((X, y), (cf.from_arrow(frame(X, y), target="label"),)):
        for model in (cf.GaussianNB(), cf.GaussianNB(basis=cf.Polynomial(1))):
            found = class_validation(model, *data, cv=4)
            odd = found.classes.tolist().index("odd")
            assert found.log_proba[7, odd] == -np.inf and found.matrix.counts[odd, odd] == 0
            assert np.isfinite(np.delete(found.log_proba[7], odd)).all()
            assert np.isfinite(found.metrics()["log_loss"])


def test_training_rows_of_one_class_are_refused_in_words(rng):
    X = rng.normal(size=(20, 2))
    y = np.repeat(["a", "b"], 10)
    with pytest.raises(ValueError, match=r"training rows of split 0 are all of class 'a'.*Folds\(k, stratify=True\)"):
        class_validation(cf.GaussianNB(), X, y, cv=[(np.arange(10), np.arange(10, 20))])
    with pytest.raises(TypeError, match="needs a classifier"):
        class_validation(cf.Ridge(), X, np.arange(20.0))


def test_a_sample_is_kept_of_many_rows_and_the_matrix_is_of_all(rng, monkeypatch):
    X, y = rows(rng, 2000)
    whole = class_validation(cf.GaussianNB(), X, y, cv=5)
    monkeypatch.setattr(module, "MOST_NUMBERS", 1500)
    memory = class_validation(cf.GaussianNB(), X, y, cv=5)
    scan = class_validation(cf.GaussianNB(), cf.from_arrow(frame(X, y), target="label"), cv=5)
    assert memory.is_sample and memory.n_rows == 2000 and 400 < len(memory.codes) < 600
    assert np.array_equal(memory.matrix.counts, whole.matrix.counts)
    assert np.array_equal(memory.codes, scan.codes)
    np.testing.assert_allclose(memory.log_proba, scan.log_proba, rtol=1e-12)
    assert memory.metrics()["log_loss"] == pytest.approx(whole.metrics()["log_loss"], rel=1e-12)


def test_rows_that_the_model_saw_have_no_interval(rng):
    X, y = rows(rng)
    model = cf.GaussianNB().fit(X, y)
    found = class_training(model, X, y)
    np.testing.assert_allclose(found.log_proba, model.predict_log_proba(X), rtol=1e-12)
    assert found.metrics()["accuracy"] == model.score(X, y)
    assert all(value.low is None for value in found.metrics().values())


@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_are_those_of_scikit_learn(n_classes, rng):
    X, y = rows(rng, 300, n_classes)
    found = class_validation(cf.GaussianNB(var_smoothing=0.1), X, y, cv=5)
    truth, guess = y, found.classes[found.log_proba.argmax(axis=1)]
    average = {"pos_label": "junk"} if n_classes == 2 else {"average": "macro"}
    p = found.proba()
    areas = [pairs_of_one_fold(truth == label, found.log_odds(k), found.fold) for k, label in enumerate(found.classes)]
    expected = {
        "accuracy": np.mean(truth == guess),
        "log_loss": log_loss(truth, p),
        "auc": np.mean(areas),
        "f1": f1_score(truth, guess, **average),
        "balanced_accuracy": balanced_accuracy_score(truth, guess),
    }
    metrics = found.metrics()
    assert list(metrics) == list(METRICS)
    for name, value in expected.items():
        assert metrics[name] == pytest.approx(value, rel=1e-12)
        assert metrics[name].low < value < metrics[name].high and OUT_OF_FOLD in metrics[name].sentence


def pairs_of_one_fold(positive, scores, folds):
    """Share of the pairs of one fold in the right order, by Mann and Whitney's sums of ranks."""
    right = pairs = 0
    for fold in np.unique(folds):
        own, rank = positive[folds == fold], rankdata(scores[folds == fold])
        n = own.sum()
        right += rank[own].sum() - n * (n + 1) / 2
        pairs += n * (len(own) - n)
    return right / pairs


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.slow
def test_intervals_are_those_of_resampled_rows(n_classes, rng):
    X, y = rows(rng, 600, n_classes)
    found = class_validation(cf.GaussianNB(var_smoothing=0.1), X, y, cv=5)
    guess = found.log_proba.argmax(axis=1)
    odds = [found.log_odds(k) for k in range(n_classes)]
    draws = []
    for _ in range(400):
        drawn = rng.integers(0, 600, 600)
        own = found.codes[drawn]
        areas = [pairs_of_one_fold(own == k, odds[k][drawn], found.fold[drawn]) for k in range(n_classes)]
        table = np.bincount(n_classes * own + guess[drawn], minlength=n_classes**2).reshape(n_classes, n_classes)
        right, actual, claimed = table.diagonal(), table.sum(axis=1), table.sum(axis=0)
        f1 = 2 * right / (actual + claimed)
        draws.append([np.mean(areas), f1[1] if n_classes == 2 else f1.mean(), np.mean(right / actual)])
    spreads = np.std(draws, axis=0) * [math.sqrt(SHARED_ROWS), 1, 1]  # fold models share training rows
    for name, spread in zip(["auc", "f1", "balanced_accuracy"], spreads, strict=True):
        value = found.metrics()[name]
        assert (value.high - value.low) / (2 * 1.96) == pytest.approx(spread, rel=0.15)


def test_leave_one_out_has_no_area_and_says_why(rng):
    X, y = rows(rng, 40, 2)
    area = class_validation(cf.GaussianNB(var_smoothing=0.1), X, y, cv=LeaveOneOut()).metrics()["auc"]
    assert math.isnan(area) and area.low is None and "leave-one-out has one row in every fold" in area.sentence


def test_models_of_other_libraries_know_their_folds_too(rng):
    X, y = rows(rng, 60, 2)
    found = class_validation(GaussianNB(), X, y, cv=5)
    assert np.bincount(found.fold).tolist() == [12] * 5
    expected = pairs_of_one_fold(y == found.classes[1], found.log_odds(1), found.fold)
    assert found.metrics()["auc"] == pytest.approx(expected, rel=1e-12)


def test_log_odds_rank_rows_whose_probabilities_round_to_one(rng):
    X, y = rows(rng, 300, 2)
    found = class_validation(cf.MultinomialNB(), 50 * X, y, cv=5)
    assert len(np.unique(found.proba()[:, 1])) < len(np.unique(found.log_odds(1)))
    assert np.isfinite(found.log_odds(0)).all()


def test_every_class_has_its_row(rng):
    X, y = rows(rng)
    found = class_validation(cf.GaussianNB(), X, y, cv=5)
    table = found.per_class()
    assert [row["label"] for row in table] == found.classes.tolist()
    recall = table[1]["recall"]
    assert recall == found.matrix.recall("junk") and recall.low < recall < recall.high
    assert OUT_OF_FOLD in recall.sentence and found.matrix.recall("junk").low is None


def test_it_shows_its_rates_and_its_matrix_and_not_its_rows(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(3000) % 2
    found = class_validation(cf.GaussianNB(), rng.normal(size=(3000, 2)) + 2 * y[:, None], y)
    shown = repr(found)
    assert shown.startswith("ClassValidation of 3,000 rows predicted by models that did not see them: accuracy 0.")
    assert f"{float(found.metrics()['log_loss']):.4g}" in shown and repr(found.matrix) in shown
    assert len(shown) < 400
