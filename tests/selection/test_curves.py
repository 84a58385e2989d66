"""Scores by fold, learning curves and validation curves against plain refits on the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import linear_model, model_selection
from sklearn.metrics import make_scorer, r2_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, RepeatedKFold, ShuffleSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import certifit as cf
from certifit.data.cells import ByRow, Splits
from certifit.data.source import Batches, Block, Memory
from certifit.selection.compare import curves
from certifit.selection.compare.curves import CrossValidationScores, cross_validate, learning_curve, validation_curve
from certifit.selection.folds import stages
from certifit.selection.folds.splits import Bootstrap, Folds, rounds_of
from certifit.selection.folds.stages import growing

REFITS = make_scorer(r2_score)  # R2 that only rows give
SIZES = [0.05, 0.3, 1.0]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(300, 5)) * [1.0, 10.0, 0.1, 3.0, 1.0] + [0.0, 100.0, 0.0, -5.0, 1.0]
    return X, X @ [1.0, 0.2, 3.0, 0.0, -1.0] + rng.normal(size=300)


def r2(X, y, train, validation, alpha=0.0):
    """Training and validation R2 of a ridge fit with an intercept, by lstsq of centred rows."""
    mean, centre = X[train].mean(axis=0), y[train].mean()
    penalty = np.sqrt(alpha * len(train)) * np.eye(X.shape[1])
    A = np.vstack([X[train] - mean, penalty]) if alpha else X[train] - mean
    b = np.concatenate([y[train] - centre, np.zeros(len(penalty))]) if alpha else y[train] - centre
    w = np.linalg.lstsq(A, b, rcond=1e-12)[0]
    return [
        1 - np.sum((y[at] - centre - (X[at] - mean) @ w) ** 2) / np.sum((y[at] - y[at].mean()) ** 2)
        for at in (train, validation)
    ]


def row_sets(splits, source):
    """Training and validation rows of every split, repeats included."""
    cells = splits.cells.of(source.block)
    for s in range(splits.n_splits):
        times = [np.append(part[s], 0)[cells].astype(int) for part in (splits.train, splits.validation)]
        yield tuple(np.repeat(np.arange(len(cells)), t) for t in times)


# ---- cross_validate ----


def test_fold_scores_are_those_of_refits(rows):
    X, y = rows
    result = cross_validate(cf.LinearRegression(), X, y, cv=Folds(7))
    expected = np.array([r2(X, y, *split) for split in Folds(7).split(X)])
    assert result.route == "statistics"
    np.testing.assert_allclose(result.train, expected[:, 0], atol=1e-10)
    np.testing.assert_allclose(result.validation, expected[:, 1], atol=1e-10)
    assert result.mean == pytest.approx(expected[:, 1].mean(), abs=1e-10)
    assert result.standard_error == pytest.approx(expected[:, 1].std(ddof=1) / np.sqrt(7), abs=1e-10)
    assert result.weight.sum() == 300


def test_weight_two_is_the_row_twice(rows, rng):
    X, y = rows
    times = rng.integers(1, 3, 300)
    twice = np.repeat(np.arange(300), times)
    folds = list(KFold(4).split(X))
    apart = [tuple(np.flatnonzero(np.isin(twice, part)) for part in split) for split in folds]
    for scoring in (None, REFITS):
        weighted = cross_validate(cf.Ridge(alpha=0.1), X, y, cv=folds, sample_weight=times, scoring=scoring)
        repeated = cross_validate(cf.Ridge(alpha=0.1), X[twice], y[twice], cv=apart, scoring=scoring)
        np.testing.assert_allclose(weighted.validation, repeated.validation, atol=1e-10)
        np.testing.assert_allclose(weighted.weight, repeated.weight)


@pytest.mark.parametrize("cv", [KFold(5), ShuffleSplit(3, random_state=0), RepeatedKFold(n_splits=3, n_repeats=2)])
def test_any_estimator_scores_as_in_scikit_learn(rows, cv):
    X, y = rows
    cv = list(cv.split(X))
    model = make_pipeline(StandardScaler(), KNeighborsRegressor())
    theirs = model_selection.cross_validate(model, X, y, cv=cv, return_train_score=True)
    ours = cross_validate(model, X, y, cv=cv)
    assert ours.route == "refits"
    np.testing.assert_allclose(ours.validation, theirs["test_score"], rtol=1e-12)
    np.testing.assert_allclose(ours.train, theirs["train_score"], rtol=1e-12)


def test_a_classifier_scores_as_in_scikit_learn(rows):
    X, y = rows
    model, cv = DecisionTreeClassifier(random_state=0), StratifiedKFold(4)
    theirs = model_selection.cross_val_score(model, X, y > 0, cv=cv)
    ours = cross_validate(model, X, y > 0, cv=cv)
    np.testing.assert_allclose(ours.validation, theirs, rtol=1e-12)
    assert ours.score_name == "accuracy"


def test_the_standard_error_is_said_to_be_no_interval(rows):
    result = cross_validate(cf.LinearRegression(), *rows)
    assert "no confidence interval" in result.sentence
    assert "too small for a test" in result.sentence


def test_one_split_has_no_standard_error(rows):
    result = cross_validate(cf.LinearRegression(), *rows, cv=[(np.arange(200), np.arange(200, 300))])
    assert np.isnan(result.standard_error)
    assert "1 split," in repr(result)


# ---- learning curves ----


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("cv", [Folds(5), KFold(4, shuffle=True, random_state=0), Bootstrap(3)])
def test_learning_curve_is_that_of_refits_on_the_same_rows(rows, alpha, cv, seed):
    X, y = rows
    model = cf.Ridge(alpha=alpha) if alpha else cf.LinearRegression()
    curve = learning_curve(model, X, y, train_sizes=SIZES, cv=cv, random_state=seed)
    source = Memory(X, y)
    expected = []
    for base in rounds_of(cv, source):
        (growth,) = growing(base, SIZES, 300, 5, seed)
        scores = [r2(X, y, *sets, alpha) for sets in row_sets(growth.splits, source)]
        expected.append(np.array(scores).reshape(3, base.n_splits, 2))
    expected = np.concatenate(expected, axis=1)
    assert curve.route == "statistics"
    np.testing.assert_allclose(curve.train, expected[:, :, 0], atol=1e-8)
    np.testing.assert_allclose(curve.validation, expected[:, :, 1], atol=1e-8)
    np.testing.assert_allclose(curve.validation_mean, expected[:, :, 1].mean(axis=1), atol=1e-8)


def test_learning_curve_holds_where_rows_are_fewer_than_columns(rng):
    X = rng.normal(size=(200, 25))
    y = X @ rng.normal(size=25) + rng.normal(size=200)
    sizes = [9, 18, 26, 27, 60, 180]
    by_sums, by_refits = (
        learning_curve(cf.LinearRegression(), X, y, train_sizes=sizes, scoring=scoring) for scoring in (None, REFITS)
    )
    assert (by_sums.route, by_refits.route) == ("statistics", "refits")
    assert by_sums.n_rows[0].max() < 25 < by_sums.n_rows[-1].min()
    np.testing.assert_allclose(by_sums.validation, by_refits.validation, atol=1e-8)
    np.testing.assert_allclose(by_sums.train, by_refits.train, atol=1e-8)


def test_learning_curve_of_a_polynomial_is_that_of_refits(rng):
    x = rng.uniform(-1, 1, (100, 1))
    y = np.sin(5 * x[:, 0]) + 0.1 * rng.normal(size=100)
    model = cf.LinearRegression(basis=cf.Polynomial(5))
    by_sums, by_refits = (
        learning_curve(model, x, y, train_sizes=[0.2, 0.6, 1.0], scoring=scoring) for scoring in (None, REFITS)
    )
    assert (by_sums.route, by_refits.route) == ("statistics", "refits")
    np.testing.assert_allclose(by_sums.validation, by_refits.validation, rtol=1e-8, atol=1e-8)


def test_more_columns_than_rows_take_sums_too(rng):
    X = rng.normal(size=(60, 80))
    y = X @ rng.normal(size=80) + rng.normal(size=60)
    by_sums, by_refits = (
        learning_curve(cf.Ridge(), X, y, train_sizes=[0.2, 1.0], cv=4, scoring=scoring) for scoring in (None, REFITS)
    )
    np.testing.assert_allclose(by_sums.validation, by_refits.validation, atol=1e-8)


def test_the_largest_size_is_cross_validation(rows):
    curve, scores = learning_curve(cf.Ridge(), *rows), cross_validate(cf.Ridge(), *rows)
    np.testing.assert_allclose(curve.validation[-1], scores.validation, atol=1e-12)
    assert curve.sizes[-1] == 270


def test_whole_numbers_are_numbers_of_rows(rows):
    curve = learning_curve(cf.LinearRegression(), *rows, train_sizes=[10, 50, 123, 270])
    assert np.abs(curve.n_rows - np.array([[10], [50], [123], [270]])).max() < 2
    np.testing.assert_allclose(curve.sizes, [10, 50, 123, 270], atol=0.5)


def test_another_random_state_is_another_set_of_rows(rows):
    first, again, other = (
        learning_curve(cf.LinearRegression(), *rows, train_sizes=[0.1, 1.0], random_state=s) for s in (0, 0, 1)
    )
    assert (first.validation == again.validation).all()
    assert (first.validation[0] != other.validation[0]).any()
    np.testing.assert_allclose(first.validation[1], other.validation[1], atol=1e-12)


def test_all_sizes_and_folds_come_from_one_pass(rows):
    X, y = rows
    finished = []

    def batches():
        for begin in range(0, 300, 70):
            yield Block(X[begin : begin + 70], y[begin : begin + 70], None)
        finished.append(1)

    source = Batches(batches, [f"x{j}" for j in range(5)])
    source.n_rows, source.block_rows, source.stretch_rows = 300, 64, 64  # a look at block 0 is no pass
    curve = learning_curve(cf.LinearRegression(), source)
    assert curve.validation.shape == (10, 10)
    assert len(finished) == 1
    np.testing.assert_allclose(curve.validation, learning_curve(cf.LinearRegression(), X, y).validation, atol=1e-12)


def test_several_passes_are_the_same_curve(rows, monkeypatch):
    one = learning_curve(cf.LinearRegression(), *rows)
    monkeypatch.setattr(stages, "MOST_BYTES", 10 * 8 * 7**2 * 4)
    assert len(growing(Splits.folds(ByRow(10, 0)), curves.TRAIN_SIZES, 300, 5, 0)) == 4
    several = learning_curve(cf.LinearRegression(), *rows)
    assert (several.n_rows == one.n_rows).all()
    np.testing.assert_allclose(several.validation, one.validation, atol=1e-12)


@pytest.mark.slow
def test_every_engine_gives_the_same_curve(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["u", "v", "w"], 400, p=[0.5, 0.3, 0.2])
    frame.loc[rng.random(400) < 0.2, "a"] = np.nan
    y = frame["b"].to_numpy() + (frame["kind"] == "v") + rng.normal(size=400)
    table = frame.assign(y=y)
    table.to_csv(tmp_path / "rows.csv", index=False, float_format="%.17g")
    import dask.dataframe as dd

    sizes = [0.2, 0.5, 1.0]  # every set holds gaps and all levels: a refit would refuse what it has not seen
    encoded = cf.LinearRegression(encoder=cf.TableEncoder())
    results = [
        *(learning_curve(encoded, X, y, train_sizes=sizes) for X in (frame, pl.from_pandas(frame), pa.table(frame))),
        learning_curve(cf.LinearRegression(), cf.scan_csv(tmp_path / "rows.csv", target="y"), train_sizes=sizes),
        learning_curve(cf.LinearRegression(), cf.from_arrow(pa.table(table), target="y"), train_sizes=sizes),
        learning_curve(
            cf.LinearRegression(), cf.from_dask(dd.from_pandas(table, npartitions=3), target="y"), train_sizes=sizes
        ),
    ]
    for result in results[1:]:
        np.testing.assert_array_equal(result.validation, results[0].validation)
        np.testing.assert_array_equal(result.n_rows, results[0].n_rows)
    refits = learning_curve(encoded, frame, y, train_sizes=sizes, scoring=REFITS)
    np.testing.assert_allclose(results[0].validation, refits.validation, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csr_array, sp.csc_matrix, pd.DataFrame, list])
def test_learning_curve_takes_any_rows(rows, kind):
    X, y = rows
    expected = learning_curve(cf.LinearRegression(), X, y, train_sizes=SIZES)
    result = learning_curve(cf.LinearRegression(), kind(X), kind(y) if kind is list else y, train_sizes=SIZES)
    np.testing.assert_allclose(result.validation, expected.validation, atol=1e-10)


def test_learning_curve_keeps_groups_and_weights(rows, rng):
    X, y = rows
    options = {
        "groups": rng.integers(0, 20, 300),
        "sample_weight": rng.integers(0, 3, 300),
        "cv": 5,
        "train_sizes": SIZES,
    }
    by_sums, by_refits = (
        learning_curve(cf.Ridge(alpha=0.1), X, y, scoring=scoring, **options) for scoring in (None, REFITS)
    )
    np.testing.assert_allclose(by_sums.validation, by_refits.validation, atol=1e-8)
    np.testing.assert_allclose(by_sums.train, by_refits.train, atol=1e-8)


def test_more_rows_help_and_the_gap_closes(rng):
    X = rng.normal(size=(2000, 20))
    y = X @ rng.normal(size=20) + rng.normal(size=2000)
    curve = learning_curve(cf.LinearRegression(), X, y, scoring="neg_mean_squared_error", train_sizes=[0.02, 0.2, 1.0])
    gap = curve.train_mean - curve.validation_mean
    assert (np.diff(curve.validation_mean) > 0).all()
    # noise 1: a fit to n rows has expected errors (1 - 21/n) and about n / (n - 22)
    n = curve.sizes
    np.testing.assert_allclose(gap, n / (n - 22) - (1 - 21 / n), rtol=0.35, atol=0.1)


# ---- validation curves ----


def test_validation_curve_of_alpha_is_that_of_scikit_learn(rows):
    X, y = rows
    cv, alphas = KFold(5, shuffle=True, random_state=0), np.logspace(-4, 2, 9)
    train, test = model_selection.validation_curve(
        linear_model.Ridge(), X, y, param_name="alpha", param_range=240 * alphas, cv=cv
    )
    curve = validation_curve(cf.Ridge(), X, y, param_name="alpha", param_range=alphas, cv=cv)
    assert curve.route == "statistics"
    np.testing.assert_allclose(curve.train, train, atol=1e-8)
    np.testing.assert_allclose(curve.validation, test, atol=1e-8)
    assert curve.param_range == alphas.tolist()
    assert curve.best_index == int(test.mean(axis=1).argmax())


def test_validation_curve_of_the_degree_is_that_of_scikit_learn(rng):
    x = rng.uniform(-1, 1, (120, 1))
    y = np.sin(4 * x[:, 0]) + 0.2 * rng.normal(size=120)
    cv = KFold(6)
    theirs = make_pipeline(PolynomialFeatures(), linear_model.LinearRegression())
    name, degrees = "polynomialfeatures__degree", range(1, 8)
    train, test = model_selection.validation_curve(theirs, x, y, param_name=name, param_range=list(degrees), cv=cv)
    model = cf.LinearRegression(basis=cf.Polynomial(1))
    curve = validation_curve(model, x, y, param_name="basis__degree", param_range=degrees, cv=cv)
    assert curve.route == "statistics"
    np.testing.assert_allclose(curve.train, train, atol=1e-8)
    np.testing.assert_allclose(curve.validation, test, atol=1e-8)


def test_validation_curve_of_any_estimator_is_that_of_scikit_learn(rows):
    X, y = rows
    options = {
        "param_name": "n_neighbors",
        "param_range": [1, 5, 20],
        "cv": GroupKFold(3),
        "groups": np.arange(300) % 9,
    }
    train, test = model_selection.validation_curve(KNeighborsRegressor(), X, y, **options)
    curve = validation_curve(KNeighborsRegressor(), X, y, **options)
    np.testing.assert_allclose(curve.train, train, atol=1e-12)
    np.testing.assert_allclose(curve.validation, test, atol=1e-12)


def test_one_standard_error_never_picks_the_less_penalised_model(rng):
    X = rng.normal(size=(60, 15))
    y = X[:, 0] + 2 * rng.normal(size=60)
    alphas = np.logspace(-3, 2, 20)
    curve = validation_curve(cf.Ridge(), X, y, param_name="alpha", param_range=alphas)
    best, simplest = curve.best_index, curve.one_standard_error_index
    bound = curve.validation_mean[best] - curve.validation_standard_error[best]
    assert simplest >= best
    assert curve.validation_mean[simplest] >= bound
    assert (curve.validation_mean[simplest + 1 :] < bound).all()


@pytest.mark.parametrize("name, values", [("weights", ["uniform", "distance"]), ("leaf_size", [10, 30]), ("p", [1, 2])])
def test_where_no_order_of_simplicity_is_known_none_is_marked(rows, name, values):
    curve = validation_curve(KNeighborsRegressor(), *rows, param_name=name, param_range=values, cv=3)
    assert curve.one_standard_error_index is None
    assert name in repr(curve)


# ---- refusals ----

REFUSED = {
    "one fold": (
        lambda X, y: cross_validate(cf.LinearRegression(), X, y, cv=1),
        "n_splits must be a whole number >= 2",
    ),
    "leave-one-out": (lambda X, y: cross_validate(cf.LinearRegression(), X, y, cv="loo"), "use CrossValidated"),
    "LeaveOneOut": (lambda X, y: learning_curve(cf.LinearRegression(), X, y, cv=LeaveOneOut()), "use CrossValidated"),
    "lone rows": (lambda X, y: cross_validate(cf.LinearRegression(), X, y, cv=300), "has one validation row"),
    "two scores": (lambda X, y: cross_validate(cf.LinearRegression(), X, y, scoring=["r2", "max_error"]), "one score"),
    "no estimator": (lambda X, y: cross_validate("ridge", X, y), "must have a method fit"),
    "no estimator to search": (lambda X, y: cf.CrossValidated("ridge").fit(X, y), "must have a method fit"),
    "share": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[0.5, 1.5]), r"shares in \(0, 1\].* Got 1.5"),
    "no rows": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[0, 5]), "whole numbers >= 1.* Got 0"),
    "too many": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[10, 271]), "271, .* are only 270"),
    "falling": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[0.5, 0.2]), "must increase"),
    "same": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[0.5, 0.5001]), "are the same rows"),
    "empty set": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[0.001, 1.0]), "without a training row"),
    "no sizes": (lambda X, y: learning_curve(cf.Ridge(), X, y, train_sizes=[]), "must be a list of shares"),
    "state": (lambda X, y: learning_curve(cf.Ridge(), X, y, random_state=None), "random_state must be a whole number"),
    "unknown parameter": (
        lambda X, y: validation_curve(cf.Ridge(), X, y, param_name="alhpa", param_range=[1]),
        "has no parameter 'alhpa'. It has alpha, basis",
    ),
    "empty range": (
        lambda X, y: validation_curve(cf.Ridge(), X, y, param_name="alpha", param_range=[]),
        "param_range is empty",
    ),
    "no range": (
        lambda X, y: validation_curve(cf.Ridge(), X, y, param_name="alpha", param_range=1.0),
        "must be a list of values",
    ),
    "bad value": (
        lambda X, y: validation_curve(cf.Ridge(), X, y, param_name="alpha", param_range=[1.0, -1.0]),
        "alpha must be a finite number >= 0 or None. Got -1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_with_a_reason(rows, case):
    call, words = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=words):
        call(*rows)


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_nan_is_named_by_its_row_among_all_rows(rows, scoring):
    X, y = rows
    X[137, 2] = np.nan
    with pytest.raises(ValueError, match="row 137, column 'x2'"):
        cross_validate(cf.LinearRegression(), X, y, scoring=scoring)
    with pytest.raises(ValueError, match="row 137, column 'x2'"):
        learning_curve(cf.LinearRegression(), X, y, scoring=scoring)


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        ([0.95, 0.95 + 2**-40, 0.95 - 2**-40], "0.95 +- 5e-13"),  # equal to rounding: only the digits that are meant
        ([0.9, 0.9], "0.9 +- 0"),
        ([0.1, 0.2, 0.4], "0.233 +- 0.088"),
        ([-1.2e9, -1.3e9], "-1250000000 +- 50000000"),
        ([1e-12, 2e-12], "1.5e-12 +- 5e-13"),
        ([0.5, np.inf], "inf"),
    ],
)
def test_scores_print_the_digits_that_are_meant(scores, shown):
    values = np.array(scores)
    with np.errstate(invalid="ignore"):
        text = repr(CrossValidationScores(values, values, np.ones(len(values)), "refits", "R2"))
    assert text == f"CrossValidationScores(R2 {shown} over {len(values)} splits, refits)"
