"""Forward and backward selection: against refits, scikit-learn and mlxtend; what always holds; what is refused."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier, is_regressor
from sklearn.datasets import dump_svmlight_file, make_classification
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_sweeps import rows

import certifit as cf
from certifit.selection.features.features import SelectionPathDisplay
from certifit.selection.features.wrappers import BackwardSelection, ForwardSelection
from certifit.selection.folds.splits import Folds

BOTH = [ForwardSelection, BackwardSelection]
DIRECTIONS = {ForwardSelection: "forward", BackwardSelection: "backward"}
MODELS = [cf.LinearRegression(), cf.LinearRegression(fit_intercept=False), cf.Ridge(0.05), cf.Ridge()]


@pytest.mark.parametrize("chain", [0.0, 3.0], ids=["random", "correlated"])
@pytest.mark.parametrize("selection", BOTH)
@pytest.mark.slow
def test_subset_and_scores_are_those_of_scikit_learn(rng, selection, chain):
    X, y = rows(rng, n=150, d=12, chain=chain)
    cv = KFold(5, shuffle=True, random_state=1)
    for n in (1, 4, 9):
        ours = selection(cf.LinearRegression(), n, cv=cv).fit(X, y)
        theirs = SequentialFeatureSelector(
            LinearRegression(tol=1e-15), n_features_to_select=n, direction=DIRECTIONS[selection], cv=cv
        ).fit(X, y)
        np.testing.assert_array_equal(ours.support_, theirs.support_)
        assert ours.n_features_ == n == ours.estimator_.n_features_in_
        np.testing.assert_allclose(
            ours.steps_[-1].fold_scores, cross_val_score(LinearRegression(), X[:, ours.support_], y, cv=cv), rtol=1e-8
        )


@pytest.mark.parametrize("selection", BOTH)
def test_the_path_is_that_of_mlxtend(rng, selection):
    mlxtend = pytest.importorskip("mlxtend.feature_selection")
    X, y = rows(rng, n=120, d=10)
    cv = KFold(6)
    ours = selection(cf.LinearRegression(), (2, 8), cv=cv, scoring="neg_mean_squared_error", fixed=[3]).fit(X, y)
    theirs = mlxtend.SequentialFeatureSelector(
        LinearRegression(), k_features=(2, 8), forward=selection is ForwardSelection, cv=cv,
        scoring="neg_mean_squared_error", fixed_features=(3,),
    ).fit(X, y)  # fmt: skip
    assert {step.n_features for step in ours.steps_} == set(theirs.subsets_)
    for step in ours.steps_:
        subset = theirs.subsets_[step.n_features]
        assert [int(name[1:]) for name in step.features] == sorted(subset["feature_idx"])
        np.testing.assert_allclose(step.fold_scores, subset["cv_scores"], rtol=1e-8)
    assert np.flatnonzero(ours.support_).tolist() == sorted(theirs.k_feature_idx_)


@pytest.mark.parametrize("scoring", [None, "r2", "neg_mean_squared_error", "neg_root_mean_squared_error"])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("selection", BOTH)
@pytest.mark.slow
def test_the_table_of_sums_is_the_table_of_refits(rng, selection, model, scoring):
    X, y = rows(rng, n=80, d=6)
    weight = rng.integers(0, 4, 80) * 0.37
    cv = list(KFold(4, shuffle=True, random_state=0).split(X))
    options: dict[str, Any] = {"cv": cv, "groups": {"pair": [1, "x4"]}, "fixed": ["x5"], "scoring": scoring}
    sums = selection(model, **options).fit(X, y, weight)
    refits = selection(Refitted(model), **options).fit(X, y, weight)
    assert sums.selected_features_ == refits.selected_features_
    for ours, theirs in zip(sums.steps_, refits.steps_, strict=True):
        assert ours.features == theirs.features and ours.change == theirs.change
        np.testing.assert_allclose(ours.fold_scores, theirs.fold_scores, rtol=1e-8, atol=1e-10)
        assert ours.train_score == pytest.approx(theirs.train_score, rel=1e-8, abs=1e-10)
        assert ours.standard_error == pytest.approx(np.std(theirs.fold_scores, ddof=1) / 2, rel=1e-6)


class Refitted(RegressorMixin, BaseEstimator):
    """A certifit model that offers nothing but fit, predict and score."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X, y, sample_weight=None):
        self.model_ = clone(self.model).fit(X, y, sample_weight)
        return self

    def predict(self, X):
        return self.model_.predict(X)


@pytest.mark.slow
def test_any_estimator_is_selected_for_by_refits(rng):
    X, y = rows(rng, n=70, d=5)
    ours = ForwardSelection(KNeighborsRegressor(3), 3, cv=KFold(4)).fit(X, y)
    theirs = SequentialFeatureSelector(KNeighborsRegressor(3), n_features_to_select=3, cv=KFold(4)).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(
        ours.predict(X), clone(ours.estimator).fit(X[:, ours.support_], y).predict(X[:, ours.support_])
    )
    parallel = ForwardSelection(KNeighborsRegressor(3), 3, cv=KFold(4), n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(parallel.steps_[-1].fold_scores, ours.steps_[-1].fold_scores)
    piped = BackwardSelection(make_pipeline(StandardScaler(), LinearRegression()), 3, cv=KFold(4)).fit(X, y)
    np.testing.assert_array_equal(
        piped.support_, BackwardSelection(LinearRegression(), 3, cv=KFold(4)).fit(X, y).support_
    )


@pytest.mark.slow
def test_a_classifier_keeps_its_face(seed):
    X, y = make_classification(120, 6, n_informative=3, n_redundant=0, random_state=seed)
    labels = np.array(["no", "yes"])[y]
    cv = StratifiedKFold(4)
    ours = ForwardSelection(LogisticRegression(), 2, cv=cv, scoring="neg_log_loss").fit(X, labels)
    theirs = SequentialFeatureSelector(LogisticRegression(), n_features_to_select=2, cv=cv, scoring="neg_log_loss")
    np.testing.assert_array_equal(ours.support_, theirs.fit(X, labels).support_)
    assert is_classifier(ours) and not is_regressor(ours) and is_regressor(ForwardSelection(cf.Ridge()))
    assert list(ours.classes_) == ["no", "yes"] and ours.predict_proba(X).shape == (120, 2)
    assert set(ours.predict(X)) <= {"no", "yes"} and 0 <= ours.score(X, labels) <= 1
    assert not hasattr(ours, "certificate_") and not hasattr(ForwardSelection(cf.Ridge()), "predict_proba")


# What always holds.


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), data=st.data())
@pytest.mark.slow
def test_paths_are_nested_groups_are_whole_and_fixed_features_are_in(seed, data):
    rng = np.random.default_rng(seed)
    X, y = rows(rng, n=60, d=7)
    parts = data.draw(st.lists(st.integers(0, 4), min_size=7, max_size=7))
    groups = {f"g{p}": [j for j in range(7) if parts[j] == p] for p in set(parts) if parts.count(p) > 1}
    fixed = data.draw(st.lists(st.integers(0, 6), max_size=2))
    wish = data.draw(st.sampled_from(["best", "parsimonious"]))
    for selection in BOTH:
        fitted = selection(cf.Ridge(0.01), wish, cv=4, groups=groups, fixed=fixed).fit(X, y)
        sets = [set(step.features) for step in fitted.steps_]
        if selection is BackwardSelection:
            sets.reverse()
        assert all(small < large for small, large in pairwise(sets))
        assert all(fitted.support_[columns].all() or not fitted.support_[columns].any() for columns in groups.values())
        assert fitted.support_[fixed].all()
        own = [{name for name, columns in groups.items() if j in columns} or {f"x{j}"} for j in fixed]
        assert all(name <= features for features in sets for name in own)
        assert fitted.n_features_ == len(fitted.selected_features_)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
@pytest.mark.slow
def test_best_is_the_best_seen_and_parsimonious_has_no_more_features(seed):
    X, y = rows(np.random.default_rng(seed), n=50, d=6)
    for selection in BOTH:
        best, thrifty = (selection(cf.LinearRegression(), rule, cv=5).fit(X, y) for rule in ("best", "parsimonious"))
        scores = {step.n_features: step for step in best.steps_}
        chosen = scores[best.n_features_]
        assert chosen.mean_score >= max(step.mean_score for step in best.steps_) - 1e-8
        assert thrifty.n_features_ <= best.n_features_
        limit = chosen.mean_score - chosen.standard_error
        assert scores[thrifty.n_features_].mean_score >= limit
        assert all(scores[n].mean_score < limit for n in range(1, thrifty.n_features_))


@pytest.mark.parametrize("model", [cf.LinearRegression(), LinearRegression()], ids=["sums", "refits"])
@pytest.mark.parametrize("selection", BOTH)
@pytest.mark.slow
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(rng, selection, model):
    X, y = rows(rng, n=60, d=5)
    weight = rng.integers(0, 3, 60)
    numbers = np.repeat(np.arange(60), weight)
    fold = rng.integers(0, 4, 60)
    splits = [[(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(4)] for f in (fold, fold[numbers])]
    weighted = selection(model, cv=splits[0]).fit(X, y, weight)
    repeated = selection(model, cv=iter(splits[1])).fit(X[numbers], y[numbers])
    assert weighted.selected_features_ == repeated.selected_features_
    for one, other in zip(weighted.steps_, repeated.steps_, strict=True):
        assert one.features == other.features
        np.testing.assert_allclose(one.fold_scores, other.fold_scores, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)


# Redundant features.


@pytest.mark.parametrize("selection", BOTH)
def test_redundant_features_are_named_and_not_selected(rng, selection):
    X, y = rows(rng, n=80, d=6)
    X[:, 3] = 2.5
    X[:, 5] = X[:, 0] - 3 * X[:, 2]
    y = y + 3 * X[:, 0] - 2 * X[:, 2]
    fitted = selection(cf.LinearRegression(), cv=4).fit(X, y)
    assert not fitted.support_[3]
    notes = " ".join(fitted.redundant_)
    assert "'x3' is constant" in notes
    assert "'x5' is to 5 digits a combination of 'x0', 'x2'" in notes or "'x2' is to 5 digits" in notes
    full = cross_val_score(cf.LinearRegression(), X[:, [0, 1, 2, 4]], y, cv=Folds(4))
    same = [step.fold_scores for step in fitted.steps_ if {"x0", "x1", "x2", "x4"} <= set(step.features)]
    assert len(same) == 3 or selection is ForwardSelection
    np.testing.assert_allclose(same, [full] * len(same), rtol=1e-8)


def test_of_equal_columns_the_first_is_taken(rng):
    X, y = rows(rng, n=60, d=4)
    y = y + 3 * X.sum(axis=1)
    X = np.column_stack([X, X])
    for selection in BOTH:
        fitted = selection(cf.LinearRegression(), 3, cv=4).fit(X, y)
        assert np.flatnonzero(fitted.support_).max() < 4
    tied = ForwardSelection(LinearRegression(), 2, cv=4).fit(X, y)
    assert np.flatnonzero(tied.support_).max() < 4


def test_a_fixed_feature_outlives_the_one_that_repeats_it(rng):
    X, y = rows(rng, n=60, d=4)
    X[:, 3] = X[:, 0]
    fitted = BackwardSelection(cf.LinearRegression(), 2, cv=4, fixed=[3]).fit(X, y)
    assert fitted.support_[3] and not fitted.support_[0]
    assert fitted.steps_[1].change == "x0"


@pytest.mark.parametrize("selection", BOTH)
def test_more_columns_than_training_rows_are_scored_as_refits(rng, selection):
    X, y = rng.normal(size=(24, 22)), rng.normal(size=24)  # 18 rows train
    y += 9 * X[:, 7] - 9 * X[:, 20]
    fitted = selection(cf.LinearRegression(), (1, 20), cv=KFold(4)).fit(X, y)
    assert fitted.support_[[7, 20]].all() or selection is BackwardSelection
    for step in (fitted.steps_[0], fitted.steps_[9], fitted.steps_[-1]):
        columns = [int(name[1:]) for name in step.features]
        scores = cross_val_score(cf.LinearRegression(), X[:, columns], y, cv=KFold(4))
        np.testing.assert_allclose(step.fold_scores, scores, rtol=1e-7, atol=1e-9)


# Kinds of rows.


@pytest.mark.slow
def test_arrays_frames_and_sparse_arrays_choose_the_same(rng):
    X, y = rows(rng, n=60, d=5)
    names = list("abcde")
    frame = pd.DataFrame(X, columns=names)
    plain = ForwardSelection(cf.LinearRegression(), 3, cv=4).fit(X, y)
    kinds = [frame, pl.DataFrame(frame), pa.Table.from_pandas(frame), sp.csr_array(X), X.tolist()]
    for model in (cf.LinearRegression(), LinearRegression()):
        for kind in kinds:
            fitted = ForwardSelection(model, 3, cv=4).fit(kind, y)
            np.testing.assert_array_equal(fitted.support_, plain.support_)
            np.testing.assert_allclose(fitted.predict(kind), plain.predict(X), rtol=1e-8)
            assert fitted.score(kind, y) == pytest.approx(plain.score(X, y), rel=1e-8)
    fitted = ForwardSelection(cf.LinearRegression(), 3, cv=4).fit(frame, y)
    assert list(fitted.get_feature_names_out()) == [names[j] for j in np.flatnonzero(plain.support_)]
    assert list(fitted.estimator_.feature_names_in_) == fitted.selected_features_
    assert list(fitted.set_output(transform="pandas").transform(frame).columns) == fitted.selected_features_


@pytest.fixture
def table(rng):
    n = 240
    city = rng.choice(["Bonn", "Kyoto", "Lima", "Oslo"], n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(80, 20, n),
            "city": city,
            "noise": rng.choice(["p", "q", "r"], n),
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(30, 5, n)),
            "kind": "house",
        }
    )
    effect = {"Bonn": 0.0, "Kyoto": 4.0, "Lima": -3.0, "Oslo": 1.0}
    price = 0.1 * frame["size"] + frame["city"].map(effect) - 0.2 * frame["age"].fillna(25) + rng.normal(size=n)
    return frame, price.rename("price")


@pytest.mark.parametrize("selection", BOTH)
@pytest.mark.slow
def test_levels_of_a_category_go_together(selection, table):
    frame, price = table
    model = cf.LinearRegression(encoder=cf.TableEncoder())
    fitted = selection(model, 3, cv=5).fit(frame, price)
    assert fitted.selected_features_ == ["size", "city", "age"]
    assert fitted.support_.tolist() == [True, True, False, True, False]
    assert fitted.steps_[-1].n_features == 3
    assert {"city=Kyoto", "age missing"} <= set(fitted.estimator_.column_names_)
    np.testing.assert_allclose(fitted.predict(frame), fitted.estimator_.predict(frame[["size", "city", "age"]]))
    refits = selection(model, 3, cv=5, scoring=make_scorer(mean_absolute_error, greater_is_better=False))
    assert refits.fit(frame, price).selected_features_ == fitted.selected_features_
    with pytest.raises(ValueError, match=r"fixed names .'kind'., which the encoder sets aside"):
        selection(model, cv=5, fixed=["kind"]).fit(frame, price)


@pytest.mark.parametrize("selection", BOTH)
@pytest.mark.slow
def test_a_scan_chooses_what_its_rows_in_memory_choose(tmp_path, selection, table):
    frame, price = table
    path = tmp_path / "rows.csv"
    frame.assign(price=price).to_csv(path, index=False)
    scan = cf.scan_csv(path, target="price")
    fitted = selection(cf.LinearRegression(), "parsimonious", cv=5).fit(scan)
    memory = selection(cf.LinearRegression(encoder=cf.TableEncoder()), "parsimonious", cv=5).fit(frame, price)
    assert fitted.selected_features_ == memory.selected_features_
    np.testing.assert_allclose(fitted.steps_[0].fold_scores, memory.steps_[0].fold_scores, rtol=1e-9)
    np.testing.assert_allclose(fitted.predict(scan), memory.predict(frame), rtol=1e-9)
    assert fitted.transform(scan).names == fitted.selected_features_
    absolute = selection(cf.LinearRegression(), 2, cv=3, scoring="neg_mean_absolute_error", fixed=["size"]).fit(scan)
    assert absolute.selected_features_ == ["size", "city"]


def test_other_sources_choose_what_arrays_choose(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(150, 4)), columns=list("abcd"))
    frame["y"] = frame["a"] - 2 * frame["d"] + rng.normal(size=150)
    plain = ForwardSelection(cf.LinearRegression(), "parsimonious", cv=4).fit(frame[list("abcd")], frame["y"])
    dask = pytest.importorskip("dask.dataframe")
    parts = cf.from_dask(dask.from_pandas(frame, npartitions=3), target="y")
    fitted = ForwardSelection(cf.LinearRegression(), "parsimonious", cv=4).fit(parts)
    assert fitted.selected_features_ == plain.selected_features_
    np.testing.assert_allclose(fitted.predict(parts), plain.predict(frame[list("abcd")]), rtol=1e-9)
    path = tmp_path / "rows.svm"
    dump_svmlight_file(frame[list("abcd")].to_numpy(), frame["y"].to_numpy(), str(path), zero_based=False)
    sparse = ForwardSelection(cf.LinearRegression(), "parsimonious", cv=4).fit(cf.scan_svmlight(path))
    np.testing.assert_array_equal(sparse.support_, plain.support_)
    np.testing.assert_allclose(sparse.predict(cf.scan_svmlight(path)), plain.predict(frame[list("abcd")]), rtol=1e-9)


def test_a_model_with_a_basis_is_selected_by_its_columns(rng):
    X = rng.normal(size=(80, 4))
    y = X[:, 2] ** 2 + 0.1 * rng.normal(size=80)
    fitted = ForwardSelection(cf.LinearRegression(basis=cf.Polynomial(2)), 1, cv=4).fit(X, y)
    assert fitted.selected_features_ == ["x2"] and fitted.score(X, y) > 0.9
    assert ForwardSelection(cf.LinearRegression(), cv=4).fit(X, y).score(X, y) < 0.9


# The face of a selector.


def test_the_table_of_steps_is_a_frame(rng):
    X, y = rows(rng, n=60, d=4)
    fitted = ForwardSelection(cf.LinearRegression(), cv=3).fit(X, y)
    frame = fitted.steps_frame()
    assert list(frame["n_features"]) == [1, 2, 3, 4] and frame["added"].is_unique
    np.testing.assert_allclose(frame[["fold 0", "fold 1", "fold 2"]].mean(axis=1), frame["mean_score"])
    assert "dropped" in BackwardSelection(cf.LinearRegression(), cv=3).fit(X, y).steps_frame()
    assert fitted.certificate_.holds and fitted.estimator_.n_features_in_ == fitted.n_features_


def test_it_works_in_a_pipeline_and_in_cross_validation(rng):
    X, y = rows(rng, n=80, d=6)
    scores = cross_val_score(make_pipeline(StandardScaler(), ForwardSelection(cf.Ridge(), cv=3)), X, y, cv=3)
    assert np.isfinite(scores).all()
    piped = make_pipeline(ForwardSelection(cf.LinearRegression(), 2, cv=3), KNeighborsRegressor()).fit(X, y)
    assert piped[-1].n_features_in_ == 2


@pytest.mark.parametrize("selection, sign", [(ForwardSelection, "+"), (BackwardSelection, "\N{MINUS SIGN}")])
def test_the_picture_shows_the_table_and_marks_the_choice(rng, selection, sign):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    X, y = rows(rng, n=60, d=5)
    fitted = selection(cf.LinearRegression(), "parsimonious", cv=4).fit(X, y)
    display = SelectionPathDisplay.from_estimator(fitted)
    np.testing.assert_array_equal(display.line_.get_ydata(), [step.mean_score for step in fitted.steps_])
    np.testing.assert_array_equal(display.train_line_.get_ydata(), [step.train_score for step in fitted.steps_])
    assert display.chosen_.get_xdata() == [fitted.n_features_]
    labels = {label.get_text() for label in display.ax_.get_xticklabels()}
    change = fitted.steps_[2].change
    assert f"{fitted.steps_[2].n_features}\n{sign} {change}" in labels
    _, ax = plt.subplots()
    assert display.plot(ax).ax_ is ax and display.figure_ is ax.figure
    plt.close("all")
    with pytest.raises(ValueError, match="not fitted"):
        SelectionPathDisplay.from_estimator(selection(cf.LinearRegression()))
    with pytest.raises(TypeError, match="ForwardSelection or BackwardSelection"):
        SelectionPathDisplay.from_estimator(cf.LinearRegression())


# What is refused.

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n_features_to_select": 9}, "n_features_to_select=9, but there are 4 features"),
    ({"n_features_to_select": 0}, "must be an integer >= 1"),
    ({"n_features_to_select": 2.5}, "must be an integer >= 1"),
    ({"n_features_to_select": True}, "must be an integer >= 1"),
    ({"n_features_to_select": (3, 2)}, "must be an integer >= 1, a pair"),
    ({"n_features_to_select": "most"}, "'best' or 'parsimonious'. Got 'most'"),
    ({"n_features_to_select": 1, "fixed": [0, 1]}, "n_features_to_select=1, but 2 features are fixed"),
    ({"fixed": ["agee"]}, "X has no column 'agee'. Did you mean 'age'"),
    ({"fixed": "age"}, "fixed must be a list"),
    ({"fixed": [7]}, "X has columns 0 to 3. Got 7"),
    ({"fixed": [1.5]}, "name or its place"),
    ({"groups": {"g": ["age", "size"], "h": ["size", "rooms"]}}, "'size' is in two groups, 'g' and 'h'"),
    ({"groups": [["age", 9]]}, "X has columns 0 to 3. Got 9"),
    ({"groups": {"age": ["size", "rooms"]}}, "stand for more than one"),
    ({"groups": {"g": []}}, "Group 'g' has no columns"),
    ({"groups": 3}, "groups must be a dict"),
    ({"cv": 1}, ">= 2"),
    ({"cv": [(np.arange(20), np.arange(20, 30))]}, "at least 2. cv gives 1"),
    ({"cv": []}, "no split"),
    ({"cv": "five"}, "cv must be"),
    ({"scoring": "r2d2"}, "scoring"),
]


@pytest.mark.parametrize("selection", BOTH)
@pytest.mark.parametrize("options, words", REFUSED, ids=[words for _, words in REFUSED])
def test_bad_parameters_are_refused_in_words(rng, selection, options, words):
    X, y = rows(rng, n=30, d=4)
    frame = pd.DataFrame(X, columns=["age", "size", "rooms", "floor"])
    with pytest.raises((ValueError, TypeError)) as error:
        selection(cf.LinearRegression(), **{"cv": 3, **options}).fit(frame, y)
    assert words in str(error.value)


@pytest.mark.parametrize("model", [cf.LinearRegression(), LinearRegression()], ids=["sums", "refits"])
@pytest.mark.parametrize("selection", BOTH)
def test_bad_rows_are_refused_in_words(rng, selection, model):
    X, y = rows(rng, n=30, d=4)
    selector = selection(model, cv=3)
    with pytest.raises(ValueError, match="y is constant"):
        selector.fit(X, np.full(30, 3.0))
    with pytest.raises(ValueError, match=r"NaN.* row 17, column 'x2'"):
        bad = X.copy()
        bad[17, 2] = np.nan
        selector.fit(bad, y)
    with pytest.raises(ValueError, match=r"NaN.* row 17, column 'c'"):
        selector.fit(pd.DataFrame(bad, columns=list("abcd")), y)
    with pytest.raises(ValueError, match=r"NaN.* row 17, column 'x2'"):
        selector.fit(X, y).predict(bad)
    with pytest.raises(ValueError, match="requires y to be passed"):
        selector.fit(X)
    with pytest.raises(ValueError, match=r"inconsistent|29"):
        selector.fit(X, y[:29])
    with pytest.raises(ValueError, match=r"y contains NaN: row 3\. Remove such rows"):
        selector.fit(X, np.where(np.arange(30) == 3, np.nan, y))
    with pytest.raises((ValueError, TypeError), match=r"folds need|n_splits|greater than"):
        selection(model, cv=31).fit(X, y)


def test_a_scan_with_a_constant_target_is_refused(rng):
    table = pa.table({"a": rng.normal(size=30), "y": np.full(30, 0.1)})
    with pytest.raises(ValueError, match="y is constant"):
        ForwardSelection(cf.LinearRegression(), cv=3).fit(cf.from_arrow(table, target="y"))


def test_what_cannot_be_weighted_says_so(rng):
    X, y = rows(rng, n=30, d=3)
    with pytest.raises(ValueError, match="KNeighborsRegressor takes no sample_weight"):
        ForwardSelection(KNeighborsRegressor(), cv=3).fit(X, y, np.ones(30))
    with pytest.raises(ValueError, match="scoring takes no sample_weight"):
        ForwardSelection(LinearRegression(), cv=3, scoring=lambda m, X, y: m.score(X, y)).fit(X, y, np.ones(30))
    with pytest.raises(TypeError, match="estimator must have a method fit"):
        ForwardSelection(3).fit(X, y)
    with pytest.raises(ValueError, match="carries its target"):
        ForwardSelection(cf.Ridge()).fit(cf.from_arrow(pa.table({"a": [1.0], "y": [2.0]}), target="y"), y)


def test_a_score_that_is_not_a_number_is_refused(rng):
    X, y = rows(rng, n=30, d=3)
    with pytest.raises(ValueError, match="score"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ForwardSelection(LinearRegression(), 2, cv=3, scoring=lambda m, X, y: np.nan).fit(X, y)


def test_what_an_encoder_is_told_of_columns_that_are_not_chosen_is_forgotten(rng):
    n = 200
    code, city = rng.integers(0, 3, size=n), rng.choice(["x", "y"], n)
    frame = pd.DataFrame({"a": rng.normal(size=n), "code": code, "city": city})
    y = 3 * frame["a"] + rng.normal(size=n)
    encoder = cf.TableEncoder(categories=["code"], reference={"city": "y"})
    chosen = ForwardSelection(cf.LinearRegression(encoder=encoder), 1, cv=3).fit(frame, y)
    assert chosen.selected_features_ == ["a"] and chosen.estimator_.encoder.categories == []
