"""A leaderboard of classifiers: scores of refits, the shares of the classes, metrics side by side, clear words."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.svm import LinearSVC

import certifit as cf
from certifit.selection.compare.leaderboard import TooManyRefits, folds_for, leaderboard
from certifit.selection.compare.leaderboard_table import CLASS_SCORE, SHARES
from certifit.selection.folds.fold_scores import NoFit

MODELS = {
    "shared": cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.0, 0.1, 0.5]}),
    "gaussian": cf.GaussianNB(),
}
NAMES = ["p", "q", "r"]


def rows(rng, n=240, n_classes=3):
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + 0.8 * codes[:, None], np.array(["a", "b", "c"])[codes]


def frame(X, y, **more):
    return pd.DataFrame(X, columns=NAMES).assign(label=y, **more)


def folds(X, y, n_splits=10):
    return list(cf.Folds(n_splits, stratify=True).split(X, y))


@pytest.mark.parametrize("scoring", [None, "accuracy", "f1_macro", "roc_auc_ovr"])
@pytest.mark.slow
def test_scores_are_those_of_refits_on_stratified_folds(scoring, rng):
    X, y = rows(rng)
    board = leaderboard(MODELS, X, y, scoring=scoring)
    name = CLASS_SCORE if scoring is None else scoring
    assert board.scoring == name and board.n_splits == 10
    for entry in board.entries[:-1]:
        assert entry.route == "statistics" and entry.fold_train_scores is None and entry.train_score is None
        expected = cross_val_score(entry.model, X, y, cv=folds(X, y), scoring=name)
        np.testing.assert_allclose(entry.fold_scores, expected, rtol=1e-9)
    dummy = cross_val_score(DummyClassifier(strategy="prior"), X, y, cv=folds(X, y), scoring=name)
    np.testing.assert_allclose(board.baseline.fold_scores, dummy, rtol=1e-12)


def test_the_baseline_is_the_shares_of_the_training_rows_with_weights_too(rng):
    X, y = rows(rng)
    weight = rng.integers(1, 4, len(y)).astype(float)
    board = leaderboard(MODELS, X, y, sample_weight=weight, cv=4)
    assert board.baseline.name == SHARES and board.baseline.model is None
    expected = []
    for train, validation in folds(X, y, 4):
        share = {label: weight[train][y[train] == label].sum() / weight[train].sum() for label in "abc"}
        logs = np.log([share[label] for label in y[validation]])
        expected.append(np.average(logs, weights=weight[validation]))
    assert board.baseline.fold_scores == pytest.approx(expected, rel=1e-12)


def test_a_board_shows_accuracy_log_loss_auc_and_f1_side_by_side(rng):
    X, y = rows(rng)
    board = leaderboard(MODELS, X, y)
    table = board.to_frame()
    assert {"accuracy", "log_loss", "auc", "f1", "balanced_accuracy"} <= set(table.columns)
    assert not {"r2", "train_score"} & set(table.columns) and not table.isna().any().any()
    for entry in board.entries:
        assert entry.classes.n_rows == len(y) and entry.metrics["accuracy"] == entry.classes.matrix.accuracy()
        assert entry.metrics["log_loss"] == pytest.approx(-entry.score, rel=1e-9)  # folds of equal size
    shares = board.baseline.metrics
    assert shares["auc"] == 0.5 and shares["accuracy"] == pytest.approx(pd.Series(y).value_counts(normalize=True).max())
    text = str(board)
    assert text.splitlines()[0].split()[-5:] == ["log", "loss", "AUC", "F1", "parameters"]
    assert (
        "nan" not in text and "% right (95 % interval" in text and "the most frequent class for every row has" in text
    )


@pytest.mark.slow
def test_memory_csv_parquet_and_dask_give_the_same_board(rng, tmp_path):
    X, y = rows(rng)
    table = frame(X, y, w=rng.integers(1, 3, len(y)).astype(float))
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    roles = {"target": "label", "weight": "w"}
    scans = [
        cf.scan_csv(tmp_path / "a.csv", **roles),
        cf.scan_parquet(tmp_path / "a.parquet", **roles),
        cf.from_dask(dd.from_pandas(table, npartitions=3), **roles),
    ]
    memory = leaderboard(MODELS, X, y, sample_weight=table["w"].to_numpy(), cv=5)
    for scan in scans:
        board = leaderboard(MODELS, scan, cv=5)
        assert [entry.name for entry in board.entries] == [entry.name for entry in memory.entries]
        for entry in memory.entries:
            same = board[entry.name]
            np.testing.assert_allclose(same.fold_scores, entry.fold_scores, rtol=1e-12)
            for name, value in entry.metrics.items():
                assert same.metrics[name] == pytest.approx(value, rel=1e-12)


def test_a_scan_with_gaps_is_refitted_and_groups_stay_together(rng):
    X, y = rows(rng)
    X[rng.random(X.shape) < 0.05] = np.nan
    group = rng.integers(0, 25, len(y))
    scan = cf.from_arrow(frame(X, y, g=group), target="label", group="g")
    board = leaderboard({"gaussian": cf.GaussianNB(var_smoothing=1e-2)}, scan, cv=4)
    entry = board["gaussian"]
    assert entry.route == "refits" and entry.train_score is None
    model = cf.GaussianNB(var_smoothing=1e-2, encoder=cf.TableEncoder(unseen="reference"))
    splits = list(cf.Folds(4).split(X, y, group))
    expected = cross_val_score(model, frame(X, y)[NAMES], y, cv=splits, scoring=CLASS_SCORE)
    np.testing.assert_allclose(entry.fold_scores, expected, rtol=1e-9)
    assert entry.metrics["log_loss"] == pytest.approx(-np.average(expected, weights=board.weight), rel=1e-9)


def test_refits_that_nobody_asked_for_are_counted_by_split(rng):
    X, y = rows(rng)
    X[0, 0] = np.nan
    scan = cf.from_arrow(frame(X, y), target="label")
    models = {"shared": cf.CrossValidated(cf.GaussianDiscriminant(), {"shrinkage": [0.1, 0.5, 0.9]})}
    assert leaderboard(models, scan, cv=4, most_refits=4)["shared"].route == "refits"
    with pytest.raises(TooManyRefits, match=r"Shared needs a refit for every fold here \(4 refits\): left out."):
        leaderboard(models, scan, cv=4, most_refits=3)


def test_models_of_another_library_take_part(rng):
    X, y = rows(rng, n_classes=2)
    models = {"ours": cf.GaussianDiscriminant(), "theirs": LogisticRegression()}
    board = leaderboard(models, X, y, cv=5)
    expected = cross_val_score(LogisticRegression(), X, y, cv=folds(X, y, 5), scoring=CLASS_SCORE)
    np.testing.assert_allclose(board["theirs"].fold_scores, expected, rtol=1e-12)
    assert board["theirs"].metrics["log_loss"] == pytest.approx(-np.average(expected, weights=board.weight), rel=1e-9)
    hard = leaderboard({"margin": LinearSVC(), **models}, X, y, cv=5, scoring="accuracy")
    assert hard["margin"].classes is None and hard["margin"].metrics == {} and "nan" not in str(hard)


def test_a_model_without_a_fit_is_left_out_with_the_reason(rng):
    X, y = rows(rng, 40)
    wide = np.hstack([X, rng.normal(size=(40, 20))])
    quadratic = cf.GaussianDiscriminant("class", singular="raise")
    models = {"quadratic": quadratic, "gaussian": cf.GaussianNB()}
    for most_refits in (None, 100):
        board = leaderboard(models, wide, y, cv=4, most_refits=most_refits)
        assert [entry.name for entry in board.entries if entry.model is not None] == ["gaussian"]
        assert board.notes[0].startswith("Quadratic is left out. The covariance is singular within class")
        assert board.notes[0] in board.sentences()
    with pytest.raises(NoFit, match="Quadratic is left out"):
        leaderboard({"quadratic": quadratic}, wide, y, cv=4)


def test_classifiers_and_regressors_are_not_compared(rng):
    X, y = rows(rng)
    with pytest.raises(TypeError, match="'gaussian' is a classifier and 'ridge' is none"):
        leaderboard({"ridge": cf.Ridge(), "gaussian": cf.GaussianNB()}, X, y)
    with pytest.raises(ValueError, match="'class shares' is that of the baseline"):
        leaderboard({SHARES: cf.GaussianNB()}, X, y)


def test_columns_that_say_nothing_are_told(rng):
    y = np.repeat(["a", "b"], 100)
    board = leaderboard({"quadratic": cf.GaussianDiscriminant("class")}, rng.normal(size=(200, 12)), y)
    assert any(sentence.startswith("No better than the class shares") for sentence in board.sentences())


def scan_of(labels, **more):
    return cf.from_arrow(pd.DataFrame({"x": np.arange(len(labels)), "label": labels, **more}), target="label", **(
        {"group": "g"} if more else {}
    ))  # fmt: skip


def test_folds_keep_the_shares_of_the_classes_where_rows_allow():
    folds, sentence = folds_for(scan_of(["a", "b"] * 20), is_classes=True)
    assert (folds.n_splits, folds.stratify, sentence) == (10, True, None)
    folds, sentence = folds_for(scan_of(["a", "b"] * 3), is_classes=True)
    assert folds.n_splits == 3 and folds.stratify and sentence.startswith("3 folds instead of 10")
    folds, sentence = folds_for(scan_of(["a", "b"] * 20 + ["c"]), is_classes=True)
    assert folds.stratify and sentence.startswith("Class 'c' has 1 row") and "counts as wrong" in sentence
    folds, sentence = folds_for(scan_of(["a"] * 20 + ["b"]), is_classes=True)
    assert (
        folds is None and sentence == "Folds need two classes of 2 rows at least. Of the rows, 'a' has 20, 'b' has 1."
    )
    folds, sentence = folds_for(scan_of(["a", "b"] * 20, g=np.arange(40) % 12), is_classes=True)
    assert (folds.n_splits, folds.stratify, sentence) == (10, False, None)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.filterwarnings("ignore:The loss still fell")
def test_a_refitted_model_is_fitted_once_per_fold_and_its_rows_are_those_of_class_validation(
    is_weighted, rng, monkeypatch
):
    X, y = rows(rng, 60)
    weight = rng.integers(0, 3, 60).astype(float) if is_weighted else None
    model = cf.MLPClassifier((3,), max_iter=4, random_state=0)
    expected = cf.class_validation(model, X, y, cv=4, sample_weight=weight)
    fits = []
    fit_codes = cf.MLPClassifier.fit_codes
    monkeypatch.setattr(cf.MLPClassifier, "fit_codes", lambda self, *rows: fits.append(1) or fit_codes(self, *rows))
    board = leaderboard({"network": model}, X, y, cv=4, sample_weight=weight)
    entry = next(entry for entry in board.entries if entry.name == "network")
    assert entry.route == "refits" and len(fits) == 4 and entry.predicted is None
    assert entry.classes.matrix.counts.tolist() == expected.matrix.counts.tolist()
    assert entry.classes.n_rows == expected.n_rows and (entry.classes.fold == expected.fold).all()
    np.testing.assert_allclose(entry.classes.log_proba, expected.log_proba, rtol=1e-12)
    np.testing.assert_allclose(float(entry.classes.loss.mean), float(expected.loss.mean), rtol=1e-12)
    if is_weighted:
        np.testing.assert_array_equal(entry.classes.weight, expected.weight)
