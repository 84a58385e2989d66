"""Claims: folds of every classifier have the scores that scikit-learn gives fits to their training rows."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from learners import ROWS
from repetitions import IS_SOAK
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, get_scorer
from sklearn.model_selection import GroupKFold

import certifit as cf

SCORES = ("roc_auc", "average_precision", "f1", "neg_log_loss", "accuracy", "balanced_accuracy", "neg_brier_score")
LABELS = (np.array([0, 1]), np.array([-1, 1]), np.array([1, 2]), np.array(["no", "yes"], dtype=object))
PLACES = tuple(product((False, True), ("none", "groups", "weights")))  # (a frame, what comes along)
OF_PROBABILITIES = ("neg_log_loss", "neg_brier_score")
# Of a kernel whose width is a number: folds have that of all rows.
SETTINGS = {"svc": cf.SVC(kernel=cf.kernels.Gaussian(1.2))}
CLASSIFIERS = {name: row for name, row in ROWS.items() if row.kind == "clf"}
GROUPS = np.arange(40) // 2 % 10
FOLDS = list(GroupKFold(2).split(GROUPS, groups=GROUPS))


def truths(row, X, codes, weight):
    """Fits to the training rows of every fold: of codes 0 and 1, by weights or none."""
    for train, validation in FOLDS:
        options = {} if weight is None else {"sample_weight": weight[train]}
        model = clone(row.model).fit(X[train], codes[train], **options)
        kept = {} if weight is None else {"sample_weight": weight[validation]}
        yield {
            name: get_scorer(name)(model, X[validation], codes[validation], **kept)
            for name in SCORES
            if hasattr(model, "predict_proba") or name not in OF_PROBABILITIES
        }


@pytest.mark.parametrize("at, name", list(enumerate(CLASSIFIERS)))
def test_scores_are_those_of_fits_to_the_training_rows(at, name):
    """Every score and labels, in some of the places; in all of them where time does not count."""
    row = CLASSIFIERS[name]
    row = replace(row, model=SETTINGS.get(name, row.model))
    X, y = row.rows(40, 3)
    codes, weight = np.asarray(y == "yes", dtype=int), np.arange(40) % 3 + 1.0
    X = X.round(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        by_weight = {False: list(truths(row, X, codes, None))}
        by_weight[True] = list(truths(row, X, codes, weight)) if row.takes_weights else []
        for (s, score), (k, labels) in product(enumerate(by_weight[False][0]), enumerate(LABELS)):
            for is_frame, beside in PLACES if IS_SOAK else [PLACES[(at + s + k) % len(PLACES)]]:
                is_weighted = beside == "weights" and row.takes_weights
                options = {"sample_weight": weight} if is_weighted else {"groups": GROUPS} if beside == "groups" else {}
                rows = pd.DataFrame(X, columns=list("abc")) if is_frame else X
                cv = GroupKFold(2) if beside == "groups" else FOLDS
                scores = cf.cross_validate(row.model, rows, labels[codes], cv=cv, scoring=score, **options).validation
                expected = [of_split[score] for of_split in by_weight[is_weighted]]
                assert scores == pytest.approx(expected, rel=1e-6, abs=1e-9), (score, labels, is_frame, beside)


@pytest.mark.parametrize("model", [cf.DecisionTreeClassifier(max_depth=2), LogisticRegression()])
def test_the_second_class_is_the_positive_one_wherever_scores_are_named(model):
    X, y = ROWS["logistic_regression"].rows(60)
    search = cf.CrossValidated(model, {}, cv=3, scoring="f1").fit(X, y)
    assert search.score(X, y) == f1_score(y, search.predict(X), pos_label="yes")
    board = cf.leaderboard({"one": model, "two": cf.RandomForestClassifier(3)}, X, y, cv=3, scoring="average_precision")
    assert all(0 <= entry.score <= 1 for entry in board.entries)
    assert np.isfinite(cf.learning_curve(model, X, y, cv=3, scoring="roc_auc").validation).all()
    cf.ForwardSelection(model, n_features_to_select=1, cv=3, scoring="f1").fit(X, y)
