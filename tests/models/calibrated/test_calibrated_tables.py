"""Calibration of tables: scans and frames give the same model, encoded once; folds score it beside other models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as TheirLogistic

import certifit as cf
from certifit.models.adapter import answer_of, learner_of
from certifit.models.ensembles.draws import distinct_rows
from certifit.models.learner import Answer, Keeps


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A level of one row, a gap, weights and copies of rows."""
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(rng.normal(size=(n, 2)).round(3), columns=["a", "b"])
    frame["g"] = np.array(["u", "v", "w"])[rng.integers(0, 3, n)]
    frame.loc[0, "g"], frame.loc[3, "a"] = "rare", np.nan
    score = frame["a"].fillna(0) ** 2 + frame["b"] + (frame["g"] == "u") + 0.3 * rng.normal(size=n)
    frame = frame.assign(y=np.where(score > 0.5, "in", "out"), w=rng.integers(1, 3, n))
    frame = pd.concat([frame, frame[:9]], ignore_index=True)
    path = tmp_path_factory.mktemp("table") / "rows.csv"
    frame.to_csv(path, index=False)
    return frame, lambda: cf.scan_csv(path, target="y", weight="w")


@pytest.mark.parametrize("estimator", [cf.SVC(standardize=True), cf.LinearSVC()], ids=["kernel", "linear"])
def test_a_scan_is_the_frame_it_holds_and_the_model_is_saved_and_verified(estimator, table, tmp_path):
    frame, scan = table
    X, y, weight = frame[["a", "b", "g"]], frame["y"], frame["w"]
    model = cf.Calibrated(estimator, cv=3).fit(scan())
    reading = cf.Calibrated(type(estimator)(**estimator.get_params() | {"encoder": "auto"}), cv=3)
    chances = model.predict_proba(scan())
    assert np.array_equal(reading.fit(X, y, weight).predict_proba(X), chances)
    assert np.array_equal(model.predict_proba(X), chances)
    assert {tuple(copy.column_names_) for copy in model.estimators_[:4]} == {tuple(model.final_.column_names_)}
    assert model.certify(scan()).holds
    cf.save(model, tmp_path / "m.certifit")
    loaded = cf.load(tmp_path / "m.certifit")
    assert np.array_equal(loaded.predict_proba(X), chances)
    assert cf.verify(loaded, scan()).holds
    assert cf.verify(loaded, X, y, sample_weight=weight).holds
    assert not cf.verify(loaded, X.assign(a=X["a"] * 1.1), y, sample_weight=weight).holds


def test_no_copy_sees_a_row_that_it_scores(table):
    frame, scan = table
    model = cf.Calibrated(cf.LinearSVC(0.1), cv=3).fit(scan())
    X = model.encoder_.transform(frame[["a", "b", "g"]]).toarray()
    codes = np.searchsorted(model.classes_, frame["y"])
    distinct = distinct_rows(X, codes, frame["w"].to_numpy(dtype=float))
    order = np.argsort(codes[distinct.numbers], kind="stable")
    for k in range(3):
        kept = np.sort(np.delete(order, slice(k, None, 3)))
        rows = distinct.numbers[kept]
        by_hand = cf.LinearSVC(0.1).fit(X[rows], codes[rows], distinct.weight[kept])
        assert np.allclose(model.estimators_[k].coef_, by_hand.coef_, rtol=1e-6, atol=1e-9)


def test_folds_score_a_calibrated_machine_as_fits_by_hand_do():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] ** 2 + X[:, 1] + 0.3 * rng.normal(size=80) > 0.5).astype(int)
    folds = [(np.flatnonzero(np.arange(80) % 3 != k), np.flatnonzero(np.arange(80) % 3 == k)) for k in range(3)]
    machine, chances = cf.Calibrated(cf.SVC(0.02, kernel=cf.kernels.Gaussian(1.0), tol=1e-10), cv=3), np.zeros(80)
    for train, test in folds:
        chances[test] = machine.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    board = cf.leaderboard({"machine": machine, "line": cf.LogisticRegression(0.1)}, X, y, cv=folds)
    entry = next(entry for entry in board.entries if entry.name == "machine")
    assert board.scoring == "neg_log_loss" and entry.classes is not None
    assert np.allclose(entry.classes.proba()[:, 1], chances, atol=1e-6)


def test_candidates_are_those_of_the_estimator_and_the_row_of_the_table_says_what_is_kept(table):
    _, scan = table
    machine = cf.Calibrated(cf.SVC(standardize=True))
    board = cf.leaderboard({"machine": cf.CrossValidated(machine)}, scan(), cv=2)
    assert list(board.best.params) == ["estimator__alpha"] and len(board.best.candidates["params"]) == 5
    learner = learner_of(machine)
    assert learner.is_ours and learner.keeps is Keeps.SUPPORT_VECTORS and answer_of(machine) is Answer.CLASSES
    assert "support vector machine" in learner.words.name and "support vectors" in learner.words.stores[0]
    assert not learner_of(cf.Calibrated(TheirLogistic())).is_ours


def test_words_stay_sparse(monkeypatch):
    rng = np.random.default_rng(2)
    words = np.array([f"word{k}" for k in range(40)])
    texts = [" ".join(words[(rng.integers(0, 20, 12) + 20 * (k % 2)) % 40]) for k in range(60)]
    frame = pd.DataFrame({"text": texts})
    encoder = cf.TableEncoder(texts=cf.TextBinarizer())
    seen = []
    fit_codes = cf.LinearSVC.fit_codes
    monkeypatch.setattr(
        cf.LinearSVC, "fit_codes", lambda self, rows, classes: seen.append(rows) or fit_codes(self, rows, classes)
    )
    model = cf.Calibrated(cf.LinearSVC(0.1, encoder=encoder), cv=3).fit(frame, np.arange(60) % 2)
    assert len(seen) == 4 and all(sp.issparse(rows.block.X) for rows in seen)
    assert (model.predict(frame) == np.arange(60) % 2).all()


@pytest.mark.parametrize("estimator", [TheirLogistic(), cf.Perceptron()])
def test_a_scan_for_what_takes_no_checked_rows_is_refused(estimator, table):
    _, scan = table
    with pytest.raises(TypeError, match="it takes rows in memory"):
        cf.Calibrated(estimator).fit(scan())
