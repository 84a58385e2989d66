"""Support vector machines on real tables: at least as right as the peers on new rows, each fit proven."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import LinearSVC as TheirLinearSVC

import certifit as cf
from certifit import kernels

LABELS = {"skin_segmentation": "y", "higgs_sample": "y", "mnist_5k": "label"}
ROWS = 1200


def table(shared_data, name):
    """Standardised rows to fit to and rows that are not seen."""
    frame = pd.read_parquet(shared_data / name / f"{name}.parquet").drop(columns="split", errors="ignore")
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[: 2 * ROWS]]
    y, X = frame[LABELS[name]].to_numpy(), frame.drop(columns=LABELS[name]).to_numpy(dtype=float)
    spread = X[:ROWS].std(axis=0)
    X = (X - X[:ROWS].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X[:ROWS], y[:ROWS], X[ROWS:], y[ROWS:]


@pytest.mark.parametrize("name", [*list(LABELS)[:2], pytest.param("mnist_5k", marks=pytest.mark.slow)])
def test_accuracy_is_at_least_that_of_the_peers(shared_data, name):
    X, y, new, labels = table(shared_data, name)
    pairs = [(cf.SVC(1 / ROWS), TheirSVC())]
    if name != "mnist_5k":  # ten machines of 784 columns: a benchmark
        pairs.append((cf.LinearSVC(1 / ROWS), TheirLinearSVC()))
    for ours, theirs in pairs:
        share = ours.fit(X, y).score(new, labels)
        assert ours.certificate_.holds
        assert share >= theirs.fit(X, y).score(new, labels) - np.sqrt(0.25 / len(labels))


def test_leukemia_is_separable_and_has_its_margin(shared_data):
    frame = pd.read_parquet(shared_data / "leukemia" / "leukemia.parquet")
    y, X = frame["y"].to_numpy(), frame.drop(columns="y").to_numpy(dtype=float)
    model = cf.HardMarginSVC(kernel=kernels.Linear()).fit(X, y)
    assert model.certificate_.holds
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    weights = model.dual_coef_[:, 0] @ model.support_vectors_
    assert np.isclose(margins.min() / np.linalg.norm(weights), model.margin_, rtol=1e-6)
    flat = cf.LinearSVC(1e-8, "hinge").fit(X, y)  # C so large that no slack is left
    assert np.isclose(1 / np.linalg.norm(flat.coef_), model.margin_, rtol=1e-3)


def test_spam_is_told_by_words_as_well_as_by_a_peer(shared_data):
    frame = pd.read_parquet(shared_data / "sms_spam" / "sms_spam.parquet")
    X = CountVectorizer(binary=True).fit_transform(frame["text"]).astype(float)
    y, half = frame["label"].to_numpy(), len(frame) // 2
    for loss in ("hinge", "squared_hinge"):
        model = cf.LinearSVC(1 / half, loss).fit(X[:half], y[:half])
        theirs = TheirLinearSVC(loss=loss).fit(X[:half], y[:half])
        assert model.certificate_.holds
        assert model.score(X[half:], y[half:]) >= theirs.score(X[half:], y[half:]) - 0.005
