"""Claims: forward and backward selection of generalised linear models visit the subsets of exhaustive refits."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

import certifit as cf
from certifit.models.glm.subset_fits import SubsetFits
from certifit.selection.features.search import RefitSearch

N, D = 600, 9
DIRECTIONS = {"forward": cf.ForwardSelection, "backward": cf.BackwardSelection}


@pytest.fixture
def problem(rng):
    """Correlated columns, every third of which counts."""
    X = rng.normal(size=(N, D))
    X[:, 1:] += 0.4 * X[:, :-1]
    return X, X @ (rng.normal(size=D) * (np.arange(D) % 3 == 0)) / 2


def targets(kind, z, rng):
    if kind == "logistic":
        return (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int)
    return rng.poisson(np.exp(z)).astype(float) if kind == "poisson" else rng.gamma(2.0, np.exp(z) / 2)


MODELS = {
    "logistic": cf.LogisticRegression(alpha=1e-3),
    "poisson": cf.PoissonRegressor(alpha=1e-3),
    "gamma": cf.GammaRegressor(alpha=0.0),
}


def refitted(monkeypatch, selection, *given, **options):
    """The same selection with every subset refitted."""
    with monkeypatch.context() as patch:
        patch.setattr("certifit.selection.features.wrappers.score_search", lambda *args: None)
        return selection.fit(*given, **options)


def no_refits(monkeypatch):
    def scores(self, subsets):
        raise AssertionError("a subset was refitted")

    monkeypatch.setattr(RefitSearch, "_scores", scores)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.slow
def test_the_path_is_that_of_refits_of_every_candidate(kind, direction, problem, rng, monkeypatch):
    X, z = problem
    y = targets(kind, z, rng)
    scoring = "neg_log_loss" if kind == "logistic" else None
    make = DIRECTIONS[direction]
    slow = refitted(monkeypatch, make(MODELS[kind], "best", cv=4, scoring=scoring), X, y)
    no_refits(monkeypatch)
    fast = make(MODELS[kind], "best", cv=4, scoring=scoring).fit(X, y)
    assert [step.features for step in fast.steps_] == [step.features for step in slow.steps_]
    for own, other in zip(fast.steps_, slow.steps_, strict=True):
        np.testing.assert_allclose(own.fold_scores, other.fold_scores, rtol=1e-8)
        np.testing.assert_allclose(own.train_score, other.train_score, rtol=1e-8)


@pytest.mark.slow
def test_weights_offsets_groups_and_fixed_features_count(problem, rng, monkeypatch):
    X, z = problem
    offset, weight = rng.normal(size=N) / 3, rng.integers(0, 3, N).astype(float)
    y = targets("poisson", z + offset, rng)
    options = {"cv": cf.Folds(3, repeats=2), "groups": {"pair": [1, 2]}, "fixed": [4]}
    beside = {"sample_weight": weight, "offset": offset}
    slow = refitted(monkeypatch, cf.ForwardSelection(MODELS["poisson"], 4, **options), X, y, **beside)
    no_refits(monkeypatch)
    fast = cf.ForwardSelection(MODELS["poisson"], 4, **options).fit(X, y, **beside)
    assert [step.features for step in fast.steps_] == [step.features for step in slow.steps_]
    for own, other in zip(fast.steps_, slow.steps_, strict=True):
        np.testing.assert_allclose(own.fold_scores, other.fold_scores, rtol=1e-8)


def test_levels_of_a_category_go_together(problem, rng, monkeypatch):
    X, z = problem
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(D)])
    table["place"] = pd.Categorical(rng.choice(["here", "there", "nowhere"], N))
    y = targets("logistic", z + 2 * (table["place"] == "here"), rng)
    no_refits(monkeypatch)
    estimator = cf.LogisticRegression(alpha=1e-3, encoder=cf.TableEncoder())
    model = cf.ForwardSelection(estimator, 3, cv=4, scoring="neg_log_loss").fit(table, y)
    assert "place" in model.selected_features_ and model.estimator_.coef_.shape == (1, 4)


@pytest.mark.slow
def test_redundant_columns_without_a_penalty_are_refitted(problem, rng, monkeypatch):
    X, z = problem
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    y = targets("gamma", z, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slow = refitted(monkeypatch, cf.BackwardSelection(MODELS["gamma"], 8, cv=3), X, y)
        fast = cf.BackwardSelection(MODELS["gamma"], 8, cv=3).fit(X, y)
    assert [step.features for step in fast.steps_] == [step.features for step in slow.steps_]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_subsets_and_scores_on_german_credit_are_those_of_scikit_learn(direction, shared_data):
    table = pd.read_parquet(shared_data / "german_credit" / "german_credit.parquet")
    y = table.pop("class").to_numpy()
    numbers = table.select_dtypes("number")
    X = ((numbers - numbers.mean()) / numbers.std()).to_numpy()
    folds, C = StratifiedKFold(5), 1.0
    n_train = len(next(folds.split(X, y))[0])
    ours = DIRECTIONS[direction](cf.LogisticRegression(alpha=1 / (C * n_train)), 4, cv=folds, scoring="neg_log_loss")
    ours.fit(X, y)
    estimator = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10)
    theirs = SequentialFeatureSelector(
        estimator, n_features_to_select=4, direction=direction, cv=folds, scoring="neg_log_loss"
    ).fit(X, y)
    assert ours.support_.tolist() == theirs.get_support().tolist()
    scores = cross_val_score(estimator, X[:, theirs.get_support()], y, cv=folds, scoring="neg_log_loss")
    np.testing.assert_allclose(ours.steps_[-1].fold_scores, scores, rtol=1e-6)


@pytest.mark.slow
def test_the_path_on_breast_cancer_is_that_of_refits_of_every_candidate(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)
    X = ((X - X.mean(axis=0)) / X.std(axis=0))[:, ::2]
    selection = cf.ForwardSelection(cf.LogisticRegression(alpha=1e-3), 6, cv=3, scoring="neg_log_loss")
    slow = [step.features for step in refitted(monkeypatch, selection, X, y).steps_]
    no_refits(monkeypatch)
    assert [step.features for step in selection.fit(X, y).steps_] == slow


def test_a_step_far_from_its_second_order_is_not_left_out(rng, monkeypatch):
    """A column of few huge entries moves scores so far that the second order says little of where it leads."""
    X = rng.normal(size=(N, 4))
    X[:, 3] = np.where(rng.random(N) < 0.05, 30.0, 0.0)
    y = ((X[:, 0] + 2 * (X[:, 3] > 0) + rng.logistic(size=N) / 2) > 0.5).astype(int)
    selection = cf.ForwardSelection(MODELS["logistic"], 2, cv=3, scoring="neg_log_loss")
    slow = [step.features for step in refitted(monkeypatch, selection, X, y).steps_]
    no_refits(monkeypatch)
    assert [step.features for step in selection.fit(X, y).steps_] == slow


def test_one_subset_per_step_is_fitted_to_the_end(problem, rng, monkeypatch):
    """Those that cannot be best any more go no further."""
    settled = []
    inner = SubsetFits.settle

    def counted(self, *given, **options):
        settled.append(self)
        return inner(self, *given, **options)

    monkeypatch.setattr(SubsetFits, "settle", counted)
    X, z = problem
    cf.ForwardSelection(MODELS["poisson"], 3, cv=3).fit(X, targets("poisson", z, rng))
    assert sum(len(fits.points()) == 1 for fits in settled) <= 4 and len(settled) <= 7  # with the one of no features


def test_a_score_that_training_rows_lack_is_refitted(problem, rng):
    X, z = problem
    y = targets("logistic", z, rng)
    model = cf.ForwardSelection(MODELS["logistic"], 1, cv=KFold(3), scoring="roc_auc").fit(X[:, :3], y)
    assert model.n_features_ == 1
