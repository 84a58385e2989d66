"""A leaderboard: the same splits for all, scores of refits, the mean of y, and which model is chosen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeRegressor

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.selection.compare.leaderboard import TooManyRefits, folds_for, leaderboard, mean_of_target
from certifit.selection.compare.leaderboard_table import BASELINE, RMSE, Entry, Leaderboard
from certifit.selection.compare.rules import Preference
from certifit.selection.folds.engine import Rows
from certifit.selection.folds.splits import rounds_of

MODELS = {"least squares": cf.LinearRegression(), "ridge": cf.Ridge()}


def rows(seed, n_rows=83, n_columns=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X @ np.arange(n_columns) + 3 + rng.normal(size=n_rows)


def scan(X, y, size=17, **others):
    names = {f"c{j}": X[:, j] for j in range(X.shape[1])}
    table = pa.table(names | {"y": y} | others)
    roles = {"weight": "w" if "w" in others else None, "group": "g" if "g" in others else None}
    return ArrowSource(lambda: table.to_batches(size), table.schema, "y", n_rows=len(y), **roles)


def rmse(y, predicted, weight=None):
    return np.sqrt(np.average((y - predicted) ** 2, weights=weight))


def splits_of(n_rows, n_splits=10, groups=None):
    return list(cf.Folds(n_splits).split(np.zeros((n_rows, 1)), None, groups))


def test_scores_are_those_of_least_squares_refitted_by_numpy_on_the_same_folds(seed):
    X, y = rows(seed)
    board = leaderboard(MODELS, X, y)
    ones = np.column_stack([np.ones(len(y)), X])
    expected, train_expected = [], []
    for train, validation in splits_of(len(y)):
        w = np.linalg.lstsq(ones[train], y[train], rcond=None)[0]
        expected.append(-rmse(y[validation], ones[validation] @ w))
        train_expected.append(-rmse(y[train], ones[train] @ w))
    entry = board["least squares"]
    assert entry.fold_scores == pytest.approx(expected, rel=1e-10)
    assert entry.fold_train_scores == pytest.approx(train_expected, rel=1e-10)
    assert entry.score == pytest.approx(np.mean(expected))
    assert entry.standard_error == pytest.approx(np.std(expected, ddof=1) / np.sqrt(10))
    assert entry.route == "statistics"


def test_a_tuned_entry_is_that_of_cross_validated(seed):
    X, y = rows(seed)
    for rule in ("min", "1se"):
        board = leaderboard(MODELS, X, y, rule=rule)
        search = cf.CrossValidated(cf.Ridge(), scoring=RMSE, rule=rule).fit(X, y)
        assert board["ridge"].params == search.best_params_
        assert board["ridge"].score == search.best_score_
        assert board["ridge"].model.get_params()["alpha"] == search.best_params_["alpha"]
        assert not hasattr(board["ridge"].model, "coef_")


def mean_of_y(y, splits, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return [-rmse(y[v], np.average(y[t], weights=weight[t]), weight[v]) for t, v in splits]


@pytest.mark.parametrize("models", [MODELS, {"through zero": cf.LinearRegression(fit_intercept=False)}], ids=str)
def test_the_baseline_predicts_the_mean_of_the_training_rows(seed, models):
    X, y = rows(seed)
    expected = mean_of_y(y, splits_of(len(y)))
    for source in ((X, y), (scan(X, y),)):
        board = leaderboard(models, *source)
        assert board.baseline.fold_scores == pytest.approx(expected, rel=1e-10)
        assert board.baseline.model is None


def test_weights_count_in_the_baseline_and_in_r2(seed):
    X, y = rows(seed)
    weight = np.random.default_rng(seed + 1).uniform(0.1, 3, len(y))
    splits = splits_of(len(y))
    null = [weight[v] @ (y[v] - np.average(y[t], weights=weight[t])) ** 2 for t, v in splits]
    ones = np.column_stack([np.ones(len(y)), X])
    squares = []
    for train, validation in splits:
        root = np.sqrt(weight[train])
        w = np.linalg.lstsq(ones[train] * root[:, None], y[train] * root, rcond=None)[0]
        squares.append(weight[validation] @ (y[validation] - ones[validation] @ w) ** 2)
    for board in (leaderboard(MODELS, X, y, sample_weight=weight), leaderboard(MODELS, scan(X, y, w=weight))):
        assert board.baseline.fold_scores == pytest.approx(mean_of_y(y, splits, weight), rel=1e-10)
        assert board.r2(board["least squares"]) == pytest.approx(1 - sum(squares) / sum(null), rel=1e-9)
        assert board.r2(board.baseline) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("scoring", [RMSE, "r2", "neg_mean_absolute_error"])
def test_the_mean_of_a_scan_is_that_of_arrays_by_sums_and_by_refits(seed, scoring):
    X, y = rows(seed)
    arrays = leaderboard({"tree": DecisionTreeRegressor(max_depth=2)}, X, y, scoring=scoring).baseline
    source = scan(X, y + 1e6, size=7)
    data = Rows.of(cf.LinearRegression(), source)
    found = mean_of_target(data, rounds_of(10, source), scoring)
    assert found.validation[0] == pytest.approx(arrays.fold_scores, rel=1e-8)
    assert found.train[0] == pytest.approx(arrays.fold_train_scores, rel=1e-8, abs=1e-12)


def test_estimators_of_other_libraries_have_the_same_splits(seed):
    X, y = rows(seed)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    board = leaderboard(MODELS | {"tree": tree}, X, y, cv=5)
    expected = cross_val_score(tree, X, y, cv=cf.Folds(5), scoring=RMSE)
    assert board["tree"].fold_scores == pytest.approx(expected, rel=1e-12)
    assert board["tree"].route == "refits"
    assert board.baseline.fold_scores == pytest.approx(mean_of_y(y, splits_of(len(y), 5)))


def test_differences_are_paired_by_fold(seed):
    X, y = rows(seed)
    board = leaderboard(MODELS, X, y)
    steps = board.baseline.fold_scores - board.best.fold_scores
    mean, error = board.difference(board.baseline)
    assert (mean, error) == pytest.approx((steps.mean(), steps.std(ddof=1) / np.sqrt(10)))
    assert board.difference(board.best) == (0.0, 0.0)


def board_of(scores, **facts):
    entries = [
        Entry(name, None if name == BASELINE else cf.LinearRegression(), {}, np.array(own), np.array(own), "statistics")
        for name, own in scores.items()
    ]
    return Leaderboard.of(entries, scoring=RMSE, rule="min", weight=np.ones(3), **facts)


def test_the_preferred_model_is_chosen_within_one_standard_error_of_the_best_and_not_beyond():
    best, error = np.array([-1.0, -1.1, -1.2]), np.std([-1.0, -1.1, -1.2], ddof=1) / np.sqrt(3)
    for distance, name in ((0.99, "plain"), (1.01, "best")):
        scores = {BASELINE: [-3, -3, -3], "plain": best - distance * error, "best": best}
        board = board_of(scores, preference=Preference.of("plain", "it is plain"))
        assert board.chosen.name == name
        assert board.best.name == "best"
        said = " ".join(board.sentences())
        assert ("within one standard error of the best, 'best', and it is plain" in said) == (name == "plain")
    assert board_of(scores).chosen.name == "best"


def test_of_models_within_one_standard_error_the_best_of_the_simplest_group_is_chosen():
    best, error = np.array([-1.0, -1.1, -1.2]), np.std([-1.0, -1.1, -1.2], ddof=1) / np.sqrt(3)
    prefer = [["linear"], ["ridge", "lasso"], ["forest"], ["kernel"]]
    reasons = ["p-values", "coefficients", "no rows", "rows"]
    for distances, name in (
        ({"linear": 0.5, "ridge": 0.4, "lasso": 0.3, "forest": 0.1}, "linear"),
        ({"linear": 1.5, "ridge": 0.4, "lasso": 0.3, "forest": 0.1}, "lasso"),
        ({"linear": 1.5, "ridge": 1.4, "lasso": 1.3, "forest": 0.1}, "forest"),
        ({"linear": 1.5, "ridge": 1.4, "lasso": 1.3, "forest": 1.1}, "kernel"),
    ):
        scores = {BASELINE: [-3, -3, -3], "kernel": best} | {one: best - far * error for one, far in distances.items()}
        board = board_of(scores, preference=Preference.of(prefer, reasons))
        assert board.chosen.name == name
        assert board.best.name == "kernel"
    with pytest.raises(ValueError, match="one reason per group"):
        Preference.of(prefer, reasons[:2])


def test_the_baseline_is_never_chosen_and_is_said_to_be_as_good():
    board = board_of({BASELINE: [-1, -1, -1], "model": [-2, -2, -2.1]})
    assert board.best.name == board.chosen.name == "model"
    assert "No better than the mean of y" in " ".join(board.sentences())
    assert [entry.name for entry in board.entries] == [BASELINE, "model"]


def test_an_entry_can_join_and_be_the_choice():
    board = board_of({BASELINE: [-3, -3, -3], "all": [-1, -1, -1]})
    entry = Entry("some", cf.LinearRegression(), {}, np.full(3, -2.0), np.full(3, -2.0), "statistics")
    assert board.joined(entry).chosen.name == "all"
    joined = board.joined(entry, is_chosen=True)
    assert joined.chosen is entry and joined.best.name == "all"
    assert [one.name for one in joined.entries] == ["all", "some", BASELINE]


def test_a_parameter_that_is_given_is_not_chosen_again(seed):
    X, y = rows(seed)
    board = leaderboard({"weak": cf.Ridge(alpha=1e-3), "strong": cf.Ridge(alpha=10.0)}, X, y)
    for name, alpha in (("weak", 1e-3), ("strong", 10.0)):
        search = cf.CrossValidated(cf.Ridge(), {"alpha": [alpha]}, scoring=RMSE).fit(X, y)
        assert board[name].params == {} and board[name].model.alpha == alpha
        assert board[name].score == pytest.approx(search.best_score_, rel=1e-12)


def test_cross_validated_brings_its_own_candidates_and_rule(seed):
    X, y = rows(seed)
    given = cf.CrossValidated(cf.Ridge(), {"alpha": [1e-3, 0.1, 5.0]}, rule="1se")
    board = leaderboard({"few": given}, X, y)
    assert list(board["few"].candidates["param_alpha"]) == [1e-3, 0.1, 5.0]
    assert board["few"].params == cf.CrossValidated(cf.Ridge(), {"alpha": [1e-3, 0.1, 5.0]}, rule="1se",
                                                    scoring=RMSE).fit(X, y).best_params_  # fmt: skip


def test_groups_stay_together_in_arrays_and_scans(seed):
    X, y = rows(seed)
    groups = np.array([f"g{k % 12}" for k in range(len(y))])
    expected = mean_of_y(y, splits_of(len(y), 5, groups))
    for board in (leaderboard(MODELS, X, y, cv=5, groups=groups), leaderboard(MODELS, scan(X, y, g=groups), cv=5)):
        assert board.baseline.fold_scores == pytest.approx(expected, rel=1e-10)


def test_a_scan_gives_the_scores_of_arrays(seed):
    X, y = rows(seed)
    arrays, scanned = leaderboard(MODELS, X, y), leaderboard(MODELS, scan(X, y))
    for entry in arrays.entries:
        assert scanned[entry.name].fold_scores == pytest.approx(entry.fold_scores, rel=1e-9)


def test_few_refits_are_spent_on_evenly_spaced_candidates_and_none_on_too_few(seed):
    X, y = rows(seed, 40, 1)
    curved = {"plain": cf.LinearRegression(), "curved": cf.Ridge(basis=cf.Polynomial(2))}
    board = leaderboard(curved, X, y, cv=2, most_refits=14)
    tried = list(board["curved"].candidates["param_alpha"])
    every = [one["alpha"] for one in curved["curved"].candidates(Rows.of(curved["curved"], X, y).source)]
    assert len(tried) == 7 and (tried[0], tried[-1]) == (every[0], every[-1])
    assert "Curved needs a refit" in board.notes[0] and "7 of 50" in board.notes[0]
    board = leaderboard(curved, X, y, cv=2, most_refits=9)
    assert {entry.name for entry in board.entries} == {"plain", BASELINE} and "left out" in board.notes[0]
    with pytest.raises(TooManyRefits, match="left out"):
        leaderboard({"curved": curved["curved"]}, X, y, cv=2, most_refits=1)


def test_the_table_and_its_words_name_everything(seed):
    X, y = rows(seed)
    board = leaderboard(MODELS, X, y)
    text = str(board)
    assert all(name in text for name in ("least squares", "ridge", "mean of y", "alpha="))
    assert "too small for a test" in text and "On rows it did not see" in text
    frame = board.to_frame()
    assert list(frame["name"]) == [entry.name for entry in board.entries]
    assert frame["score"].is_monotonic_decreasing and frame["chosen"].sum() == 1
    assert {"standard_error", "train_score", "difference", "difference_error", "route", "seconds"} <= set(frame.columns)


def test_r2_is_told_from_squared_errors_only(seed):
    X, y = rows(seed)
    boards = {scoring: leaderboard(MODELS, X, y, scoring=scoring) for scoring in (RMSE, "neg_mean_squared_error", "r2")}
    name = "least squares"
    assert boards[RMSE].r2(boards[RMSE][name]) == pytest.approx(
        boards["neg_mean_squared_error"].r2(boards["neg_mean_squared_error"][name]), rel=1e-9
    )
    assert boards["r2"].r2(boards["r2"][name]) is None
    assert "scores" in boards["r2"].sentences()[0]


@pytest.mark.parametrize(
    ("models", "options", "words"),
    [
        ([], {}, "dict"),
        ({}, {}, "at least one"),
        ({BASELINE: cf.Ridge()}, {}, "baseline"),
        ({"c": LogisticRegression()}, {}, "classifier"),
        ({"r": "ridge"}, {}, "The model .r. must have a method fit"),
        (MODELS, {"rule": "max"}, "'min', '1se'"),
        (MODELS, {"prefer": "lasso"}, "none of the models"),
        (MODELS, {"cv": "loo"}, "number of folds"),
        ({"r": cf.CrossValidated(cf.Ridge(), {"beta": [1]})}, {}, "beta"),
    ],
)
def test_errors_say_what_is_legal(models, options, words):
    X, y = rows(0)
    with pytest.raises((TypeError, ValueError), match=words):
        leaderboard(models, X, y, **options)


def test_a_missing_entry_is_named_with_those_there(seed):
    with pytest.raises(KeyError, match="least squares"):
        leaderboard(MODELS, *rows(seed))["lasso"]


@pytest.mark.parametrize(("n_rows", "n_splits"), [(83, 10), (10, 10), (9, 4), (4, 2), (3, None)])
def test_folds_that_rows_allow(n_rows, n_splits):
    folds, note = folds_for(scan(*rows(0, n_rows)))
    assert (None if folds is None else folds.n_splits) == n_splits
    assert (note is None) == (n_splits == 10)
    if note is not None:
        assert str(n_rows) in note


@pytest.mark.parametrize(("n_groups", "n_splits"), [(12, 10), (3, 3), (1, None)])
def test_folds_that_groups_allow(n_groups, n_splits):
    X, y = rows(0)
    folds, note = folds_for(scan(X, y, g=[f"g{k % n_groups}" for k in range(len(y))]))
    assert (None if folds is None else folds.n_splits) == n_splits
    assert (note is None) == (n_splits == 10)


@pytest.mark.parametrize("most_refits", [None, 100])
def test_errors_whose_squares_leave_float64_are_refused(rng, most_refits):
    X = rng.normal(size=(40, 2))
    with pytest.raises(ValueError, match="Rescale y"):
        leaderboard({"line": cf.LinearRegression()}, X, 1e200 * rng.normal(size=40), cv=4, most_refits=most_refits)
