"""The race of a leaderboard: which models are stopped, after how many splits, and that nothing else changes."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

import certifit as cf
from certifit.selection.compare.leaderboard import leaderboard
from certifit.selection.compare.trial import _RowScores

N_SPLITS = 10


class Counted(RegressorMixin, BaseEstimator):
    """Least squares whose predictions are off by +-wrong in turn; counts its fits."""

    n_fits = 0

    def __init__(self, wrong=0.0):
        self.wrong = wrong

    def fit(self, X, y):
        Counted.n_fits += 1
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X) + self.wrong * np.sign(np.sin(1e4 * X[:, 0]))


def rows(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    return X, X @ [1.0, 2.0, 0.0] + rng.normal(size=n_rows)


def raced(wrong, race=True, **options):
    Counted.n_fits = 0
    board = leaderboard({"line": cf.LinearRegression(), "other": Counted(wrong)}, *rows(), race=race, **options)
    return board, Counted.n_fits


def test_a_model_that_is_clearly_behind_is_fitted_to_two_training_sets_and_named_with_its_figures():
    board, n_fits = raced(3.0)
    assert n_fits == 2
    assert [entry.name for entry in board.entries if entry.model is not None] == ["line"]
    (note,) = board.notes
    X, y = rows()
    first = list(cf.Folds(N_SPLITS).split(X))[:2]
    squares = [(y[test] - Counted(3.0).fit(X[train], y[train]).predict(X[test])) ** 2 for train, test in first]
    assert note.startswith(f"Other was stopped after 2 of {N_SPLITS} folds: on their 80 rows its error is ")
    assert f" is {np.sqrt(np.concatenate(squares).mean()):.4g}, that of line " in note


def test_a_model_that_is_about_as_good_is_stopped_only_beside_a_simpler_one():
    """Paired rows are 0.1 off: it cannot be ahead by one standard error, and it may be ahead by a little."""
    board, n_fits = raced(0.1)
    assert n_fits == N_SPLITS and board["other"].route == "refits"
    board, n_fits = raced(0.1, prefer="line")
    assert n_fits < N_SPLITS and board.notes[0].endswith("the simpler one.")
    assert raced(3.0, prefer="other")[1] == N_SPLITS  # within a standard error of a model that is not, it is chosen


@pytest.mark.parametrize("options", [{"race": False}, {"nested": True, "cv": 3}])
def test_no_model_is_stopped_unless_asked_nor_in_a_nested_choice(options):
    board = raced(3.0, **options)[0]
    assert board["other"].score < board["line"].score and not board.notes


def test_models_that_are_not_stopped_have_the_scores_of_all_splits():
    """Of quadrants: trees win and are scored in heats, the line is not raced; all is as without a race."""
    X = rows(300)[0]
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    entrants = {
        "line": cf.LogisticRegression(),
        "tree": cf.CrossValidated(cf.DecisionTreeClassifier(), {"max_depth": [2, 3, 4]}),
        "forest": cf.RandomForestClassifier(n_estimators=10),
    }
    plain, race = (leaderboard(entrants, X, y, race=is_race) for is_race in (False, True))
    assert not race.notes
    for entry in plain.entries:
        same = race[entry.name]
        assert same.params == entry.params and same.route == entry.route
        assert np.array_equal(same.fold_scores, entry.fold_scores)
        assert {name: float(value) for name, value in same.metrics.items()} == {
            name: float(value) for name, value in entry.metrics.items()
        }
    assert float(race.corrected) == float(plain.corrected)


def test_groups_count_as_one():
    rng = np.random.default_rng(0)
    values, weight = rng.normal(size=20), rng.uniform(1, 2, size=20)
    alone = _RowScores(values, weight, np.arange(20))
    mean = np.average(values, weights=weight)
    expected = np.sqrt(20 / 19 * np.sum((weight * (values - mean)) ** 2)) / weight.sum()
    assert alone.standard_error == pytest.approx(expected)
    in_pairs = _RowScores(np.repeat(values, 2), np.repeat(weight, 2), np.repeat(np.arange(20), 2))
    assert in_pairs.standard_error == pytest.approx(expected)
    assert _RowScores(values, weight, np.zeros(20, dtype=int)).standard_error == np.inf


def test_candidates_clearly_behind_the_best_one_are_stopped_and_the_choice_is_that_of_all_folds():
    entrants = {"line": cf.LinearRegression(), "other": cf.CrossValidated(Counted(), {"wrong": [0.0, 0.1, 2.0, 3.0]})}
    every = leaderboard(entrants, *rows())["other"]
    Counted.n_fits = 0
    board = leaderboard(entrants, *rows(), race=True)
    other = board["other"]
    assert Counted.n_fits == 2 * N_SPLITS + 2 * 2  # two candidates on all folds, two on the first two
    (note,) = board.notes
    assert note == f"Other: candidates clearly behind the best one were stopped after 2 folds (2) of {N_SPLITS}."
    assert other.params == every.params
    assert np.array_equal(other.fold_scores, every.fold_scores)
