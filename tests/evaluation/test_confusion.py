"""Confusion counts and their scores: mathematics, then scikit-learn to 1e-12."""

from __future__ import annotations

import math
import pickle
import warnings
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from certifit.evaluation.metrics.confusion import (
    ConfusionMatrix,
    accuracy_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    fbeta_score,
    precision_score,
    recall_score,
)

CLASSES = {
    "two numbers": [0, 1],
    "two texts": ["no", "yes"],
    "bools": [False, True],
    "signs": [-1, 1],
    "four texts": ["ant", "bee", "cat", "dog"],
    "floats": [0.5, 1.5, 2.5],
}
SCORES = {
    "precision": (precision_score, metrics.precision_score),
    "recall": (recall_score, metrics.recall_score),
    "f1": (f1_score, metrics.f1_score),
    "f0": (lambda *a, **k: fbeta_score(*a, beta=0, **k), lambda *a, **k: metrics.fbeta_score(*a, beta=0, **k)),
    "f2": (lambda *a, **k: fbeta_score(*a, beta=2, **k), lambda *a, **k: metrics.fbeta_score(*a, beta=2, **k)),
    "f_inf": (
        lambda *a, **k: fbeta_score(*a, beta=math.inf, **k),
        lambda *a, **k: metrics.fbeta_score(*a, beta=math.inf, **k),
    ),
}
close = {"rel": 1e-12, "abs": 1e-15, "nan_ok": True}


def drawn(rng, labels, n=200):
    y_true = np.array(labels)[rng.integers(0, len(labels), n)]
    right = rng.random(n) < 0.7
    return y_true, np.where(right, y_true, np.array(labels)[rng.integers(0, len(labels), n)])


# ---- counts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CLASSES)
def test_counts_are_those_of_a_loop(rng, name, weighted):
    y_true, y_pred = drawn(rng, CLASSES[name])
    weight = rng.integers(0, 4, len(y_true)) / 2 if weighted else np.ones(len(y_true))
    matrix = ConfusionMatrix.of(y_true, y_pred, weight if weighted else None)
    assert matrix.labels == tuple(CLASSES[name])
    for i, truth in enumerate(matrix.labels):
        for j, prediction in enumerate(matrix.labels):
            assert matrix.counts[i, j] == weight[(y_true == truth) & (y_pred == prediction)].sum()


@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [n for n in CLASSES if n != "floats"])  # scikit-learn refuses those
def test_the_array_is_that_of_scikit_learn(rng, name, weighted, normalize):
    y_true, y_pred = drawn(rng, CLASSES[name])
    options = {"sample_weight": rng.random(len(y_true)) if weighted else None, "normalize": normalize}
    ours, theirs = confusion_matrix(y_true, y_pred, **options), metrics.confusion_matrix(y_true, y_pred, **options)
    assert ours == pytest.approx(theirs, **close)
    assert ours.dtype == theirs.dtype


def test_labels_give_the_order_and_the_classes_without_rows():
    ours = confusion_matrix(["a", "b"], ["b", "b"], labels=["c", "b", "a"], normalize="true")
    theirs = metrics.confusion_matrix(["a", "b"], ["b", "b"], labels=["c", "b", "a"], normalize="true")
    assert (ours == theirs).all()


@pytest.mark.parametrize("cuts", [[50], [1, 2, 150], [10, 20, 30, 199]])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_add_to_the_whole(rng, cuts, weighted):
    y_true, y_pred = drawn(rng, CLASSES["four texts"])
    y_pred[0] = "zebra"  # a label that one block alone has
    weight = rng.random(len(y_true)) if weighted else None
    parts = [
        ConfusionMatrix.of(y_true[rows], y_pred[rows], None if weight is None else weight[rows])
        for rows in np.split(np.arange(len(y_true)), cuts)
    ]
    whole = ConfusionMatrix.of(y_true, y_pred, weight)
    for merged in (sum(parts), reduce(add, reversed(parts)), sum(pickle.loads(pickle.dumps(parts)))):
        assert merged.labels == whole.labels
        assert merged.counts == pytest.approx(whole.counts, rel=1e-14)
        assert merged.weighted == weighted
    if not weighted:
        assert (sum(parts).counts == whole.counts).all()


def test_weight_two_is_the_row_twice(rng):
    y_true, y_pred = drawn(rng, [0, 1, 2])
    weight = rng.integers(0, 3, len(y_true))
    twice = ConfusionMatrix.of(np.repeat(y_true, weight), np.repeat(y_pred, weight), labels=[0, 1, 2])
    once = ConfusionMatrix.of(y_true, y_pred, weight)
    assert (once.counts == twice.counts).all()
    assert float(once.f_beta(average="macro")) == float(twice.f_beta(average="macro"))


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series, lambda v: pd.Series(v, dtype="category")])
def test_every_kind_of_column_is_counted(kind):
    matrix = ConfusionMatrix.of(kind(["a", "b", "b"]), kind(["a", "b", "a"]))
    assert matrix.counts.tolist() == [[1, 0], [1, 1]]


def test_the_repr_is_the_table():
    text = repr(ConfusionMatrix.of(["cat", "dog"], ["cat", "cat"]))
    assert text.splitlines()[1:] == ["     cat  dog", "cat    1    0", "dog    1    0"]


# ---- rates ----------------------------------------------------------------------------------------------------------


def test_rates_are_the_formulas_of_the_course():
    tp, fn, fp, tn = 30, 10, 5, 55
    matrix = ConfusionMatrix((0, 1), np.array([[tn, fp], [fn, tp]]))
    precision, recall = tp / (tp + fp), tp / (tp + fn)
    assert float(matrix.tpr()) == float(matrix.recall()) == recall
    assert float(matrix.fpr()) == fp / (fp + tn)
    assert float(matrix.precision()) == precision
    assert float(matrix.accuracy()) == 0.85 and float(matrix.error()) == 0.15
    assert float(matrix.balanced_accuracy()) == pytest.approx((recall + tn / (tn + fp)) / 2, rel=1e-15)
    for beta in (0.5, 1, 2):
        expected = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
        assert float(matrix.f_beta(beta)) == pytest.approx(expected, rel=1e-15)
    assert float(matrix.tpr(0)) == tn / (tn + fp) == 1 - float(matrix.fpr(1))


@pytest.mark.parametrize(
    "score, count, n",
    [("error", 15, 100), ("accuracy", 85, 100), ("tpr", 30, 40), ("fpr", 5, 60), ("precision", 30, 35)],
)
def test_shares_of_rows_carry_their_exact_interval(score, count, n):
    matrix = ConfusionMatrix((0, 1), np.array([[55, 5], [10, 30]]))
    estimate = getattr(matrix, score)(level=0.9)
    exact = stats.binomtest(count, n).proportion_ci(0.9, method="exact")
    assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high), rel=1e-10)
    assert estimate.method == "Clopper-Pearson" and estimate.level == 0.9
    assert "independent" in estimate.sentence and "90 %" in estimate.sentence


def test_micro_averages_are_shares_and_others_are_not():
    matrix = ConfusionMatrix(("a", "b", "c"), np.array([[5, 1, 0], [2, 6, 1], [0, 0, 9]]))
    assert matrix.precision(average="micro").low == pytest.approx(matrix.accuracy().low, rel=1e-15)
    for estimate in (matrix.precision(average="macro"), matrix.f_beta(1, "a"), matrix.balanced_accuracy()):
        assert estimate.low is None and "ConfusionMatrix.bootstrap" in estimate.sentence


def test_weighted_and_pooled_errors_get_a_sentence_and_no_interval():
    y = [0, 1, 1, 0]
    weighted = ConfusionMatrix.of(y, y, [1.0, 2.0, 1.0, 1.0])
    pooled = sum([ConfusionMatrix.of(y, y, pooled=True), ConfusionMatrix.of(y, y, pooled=True)])
    for matrix, word in ((weighted, "weights"), (pooled, "not independent")):
        for estimate in (matrix.error(), matrix.tpr(), matrix.bootstrap(lambda m: m.f_beta(1))):
            assert estimate.low is None and estimate.method == "none"
            assert estimate.sentence.startswith("No interval") and word in estimate.sentence


def test_the_bootstrap_of_counts_is_the_bootstrap_of_rows(rng):
    """The two draw differently from the same law: their ends agree up to chance."""
    y_true, y_pred = drawn(rng, [0, 1], 400)
    matrix = ConfusionMatrix.of(y_true, y_pred)
    ours = matrix.bootstrap(lambda m: m.f_beta(1), n_resamples=2000)
    rows = rng.integers(0, 400, (2000, 400))
    hits, claims = (y_true * y_pred)[rows].sum(axis=1), (y_true + y_pred)[rows].sum(axis=1)
    plain = np.quantile(2 * hits / claims, [0.025, 0.975])  # F1 = 2 TP / (2 TP + FN + FP)
    assert (ours.low, ours.high) == pytest.approx(tuple(plain), abs=0.01)
    assert float(ours) == float(matrix.f_beta(1))


def test_zero_over_zero_is_nan_and_said():
    never = ConfusionMatrix((0, 1), np.array([[5, 0], [5, 0]]))
    assert math.isnan(never.precision()) and "no row was predicted" in never.precision().sentence
    assert float(never.f_beta()) == 0.0  # 2 TP / (2 TP + FN + FP) = 0 / 5
    absent = ConfusionMatrix((0, 1), np.array([[5, 0], [0, 0]]))
    assert math.isnan(absent.recall()) and math.isnan(absent.f_beta())
    assert float(absent.precision(average="macro")) == 1.0
    assert "precision of 1 is 0 / 0" in absent.precision(average="macro").sentence
    assert "Left out, having no rows: 1" in absent.balanced_accuracy().sentence


def test_the_table_of_classes_has_a_row_a_class():
    matrix = ConfusionMatrix.of(list("aabbc"), list("abbbc"))
    table = matrix.classes()
    assert [row["label"] for row in table] == ["a", "b", "c"] and [row["rows"] for row in table] == [2, 2, 1]
    for row in table:
        assert float(row["precision"]) == float(matrix.precision(row["label"]))
        assert float(row["F_beta"]) == float(matrix.f_beta(1, row["label"]))


# ---- scikit-learn's names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("name", ["two numbers", "two texts", "bools", "signs"])
def test_binary_scores_are_those_of_scikit_learn(rng, name, score, weighted):
    y_true, y_pred = drawn(rng, CLASSES[name])
    ours, theirs = SCORES[score]
    for label in CLASSES[name]:
        options = {"pos_label": label, "sample_weight": rng.random(len(y_true)) if weighted else None}
        assert float(ours(y_true, y_pred, **options)) == pytest.approx(theirs(y_true, y_pred, **options), **close)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("average", [None, "micro", "macro", "weighted"])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.slow
def test_averages_are_those_of_scikit_learn(rng, score, average, weighted):
    y_true, y_pred = drawn(rng, CLASSES["four texts"])
    y_pred[y_pred == "dog"] = "eel"  # a class never predicted, a prediction that never happens
    ours, theirs = SCORES[score]
    for labels in (None, ["bee"], ["dog", "ant", "bee"], ["ant", "fox"]):
        for zero in (0, 1, math.nan):
            options = {"average": average, "labels": labels, "zero_division": zero}
            options["sample_weight"] = rng.random(len(y_true)) if weighted else None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # theirs, of an empty mean
                expected = theirs(y_true, y_pred, **options)
            assert np.asarray(ours(y_true, y_pred, **options)) == pytest.approx(np.asarray(expected), **close)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [n for n in CLASSES if n != "floats"])
def test_accuracies_are_those_of_scikit_learn(rng, name, weighted):
    y_true, y_pred = drawn(rng, CLASSES[name])
    options = {"sample_weight": rng.random(len(y_true)) if weighted else None}
    for normalize in (True, False):
        theirs = metrics.accuracy_score(y_true, y_pred, normalize=normalize, **options)
        assert float(accuracy_score(y_true, y_pred, normalize=normalize, **options)) == pytest.approx(theirs, **close)
    for adjusted in (True, False):
        theirs = metrics.balanced_accuracy_score(y_true, y_pred, adjusted=adjusted, **options)
        ours = balanced_accuracy_score(y_true, y_pred, adjusted=adjusted, **options)
        assert float(ours) == pytest.approx(theirs, **close)


@pytest.mark.parametrize("score", [precision_score, recall_score, f1_score])
def test_an_undefined_score_is_0_with_a_warning_unless_it_is_chosen(score):
    with pytest.warns(UndefinedMetricWarning, match=r"0 / 0.*zero_division chooses"):
        estimate = score([0, 0], [0, 0])
    assert float(estimate) == 0.0 and estimate.low is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(score([0, 0], [0, 0], zero_division=1)) == 1.0


def test_a_scorer_of_scikit_learn_takes_them(rng):
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    for ours, theirs in ((accuracy_score, "accuracy"), (f1_score, "f1")):
        tree = DecisionTreeClassifier(max_depth=1, random_state=0)
        assert (
            cross_val_score(tree, X, y, scoring=make_scorer(ours)) == cross_val_score(tree, X, y, scoring=theirs)
        ).all()


# ---- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: confusion_matrix([1, 2], [1]), ValueError, "y_pred has 1 rows but y_true has 2"),
        (lambda: confusion_matrix([], []), ValueError, "y_true is empty"),
        (lambda: confusion_matrix([1, math.nan], [1, 2]), ValueError, "y_true has no value in row 1"),
        (lambda: confusion_matrix([1, 2], [1, 3], labels=[1, 2]), ValueError, "Row 1 of y_pred is 3"),
        (lambda: confusion_matrix([1, 2], ["1", "2"]), TypeError, "types int, str"),
        (lambda: confusion_matrix([1], [1], normalize="rows"), ValueError, "normalize must be"),
        (lambda: confusion_matrix(np.arange(6000) * 0.5, np.arange(6000) * 0.5), ValueError, "6000 distinct labels"),
        (lambda: confusion_matrix([[0, 1], [1, 0]], [[0, 1], [1, 0]]), ValueError, "1-D"),
        (lambda: precision_score([0, 1, 2], [0, 1, 2]), ValueError, "Got 3 classes. average='binary' needs two"),
        (lambda: precision_score(["a", "b"], ["a", "b"]), ValueError, "pos_label=1 is not one of the classes"),
        (lambda: precision_score([0, 1], [0, 1], labels=[1]), ValueError, "use pos_label"),
        (lambda: precision_score([0, 1], [0, 1], average="macro", pos_label=0), ValueError, "pos_label is for"),
        (lambda: precision_score([0, 1], [0, 1], average="samples"), ValueError, "average must be"),
        (lambda: precision_score([0, 1], [0, 1], zero_division=0.5), ValueError, "zero_division must be"),
        (lambda: fbeta_score([0, 1], [0, 1], beta=-1), ValueError, "beta must be >= 0"),
        (lambda: accuracy_score([0, 1], [0, 1], level=2), ValueError, "level must be"),
        (lambda: ConfusionMatrix.of([0, 1, 2], [0, 1, 2]).tpr(), ValueError, r"Name a positive class of \[0, 1, 2\]"),
        (lambda: ConfusionMatrix.of([0, 1], [0, 1]).tpr("x"), ValueError, "positive='x'"),
    ],
)  # fmt: skip
def test_what_cannot_be_counted_is_refused_with_a_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()
