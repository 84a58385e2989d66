"""scikit-learn's contract, for every estimator: all of its checks, and what cloning, copying and refitting keep."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import replace
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from learners import CHECKED, LEARNERS, OF_MATRICES, Row, name_of
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import certifit as cf
from certifit.models.adapter import learner_of
from certifit.models.learner import Keeps
from certifit.models.table import LEARNERS as TABLE
from tests.repetitions import IS_SOAK

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = {name_of(model): (row, model) for row in LEARNERS.values() for model in (row.model, *row.checked)}
EVERY = pytest.mark.parametrize("name", MODELS)


def test_every_model_of_the_table_has_its_row_here():
    assert {key: type(row.model) for key, row in LEARNERS.items()} == {key: row.load() for key, row in TABLE.items()}


# What a class needs to be made; all else is at its default. HardMarginSVC refuses rows that are not separable, and the
# checks have tables of four rows that differ, too few for five folds.
NEEDED: dict[str, Any] = {
    "OneVsRestClassifier": {"estimator": cf.LogisticRegression()},
    "BaggingClassifier": {"estimator": cf.DecisionTreeClassifier()},
    "BaggingRegressor": {"estimator": cf.DecisionTreeRegressor()},
    "Calibrated": {"estimator": cf.GaussianNB(), "cv": 3},
    "CrossValidated": {"estimator": cf.Ridge()},
    "ForwardSelection": {"estimator": cf.LinearRegression()},
    "BackwardSelection": {"estimator": cf.LinearRegression()},
    "Functions": {"functions": [np.sin]},
    "HardMarginSVC": {"not_separable": "warn"},
}
PUBLIC = {name: getattr(cf, name) for name in cf.__all__ if hasattr(getattr(cf, name), "set_params")}
DEFAULTS = {name: public(**NEEDED.get(name, {})) for name, public in PUBLIC.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFAULTS)
def test_every_check_of_scikit_learn_passes_at_the_defaults(name):
    assert failed(list(estimator_checks_generator(DEFAULTS[name]))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CHECKED if name not in map(name_of, DEFAULTS.values())])
def test_every_check_of_scikit_learn_passes(name):
    """One test per model, not one per check: pytest's own work on 8,000 tests took longer than many of them.

    All checks of the model that stands for its row. Of its other settings every third one, which together are all of
    them where there are three; `make soak` has all checks of all.
    """
    row, model = CHECKED[name]
    checks = list(estimator_checks_generator(model))
    assert len(checks) > 30
    if model is not row.model and not IS_SOAK:
        checks = checks[[other is model for other in row.checked].index(True) % 3 :: 3]
    assert failed(checks) == {}


def failed(checks: list[Any]) -> dict[str, Exception]:
    """The errors of the checks that fail, by name."""
    failures = {}
    for estimator, check in checks:
        try:
            check(estimator)
        except SkipTest:
            continue
        except Exception as error:
            failures[check.func.__name__] = error
    return failures


def test_a_score_that_no_probability_tells_from_0_decides_all_the_same():
    """z = 1e-17 means the second class, as decision_function says; both probabilities of it are 1/2."""
    X, y = np.repeat([[0.0], [1.0]], 40, axis=0), np.tile(["one", "two"], 40)
    model = cf.GradientBoostingClassifier(3).fit(X, y)
    fitted = model.boosting_
    for z, expected in ((1e-17, "two"), (0.0, "one"), (-1e-17, "one")):
        model.boosting_ = replace(fitted, start=np.array([z]), value=np.zeros_like(fitted.value))
        assert (model.decision_function(X) == z).all() and (model.predict_proba(X) == 0.5).all()
        assert set(model.predict(X)) == {expected} == set(list(model.staged_predict(X))[-1])


@EVERY
def test_parameters_are_those_that_scikit_learn_reads(name):
    model = MODELS[name][1]
    for deep in (True, False, True):
        assert list(model.get_params(deep).items()) == list(BaseEstimator.get_params(model, deep).items())


class Weaker(cf.Ridge):
    """A user's model with an __init__ of its own."""

    def __init__(self, strength=1.0, *, inner=None):
        super().__init__(alpha=strength)
        self.strength, self.inner = strength, inner


def test_a_class_of_a_user_has_the_parameters_of_its_own_init():
    assert "alpha" in cf.Ridge().get_params()
    model = Weaker(2.0, inner=cf.Lasso(alpha=0.3))
    assert model.get_params(deep=False).keys() == {"strength", "inner"}
    assert model.set_params(inner__alpha=0.5).get_params()["inner__alpha"] == 0.5
    for other in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.strength == 2.0 and other.inner.alpha == 0.5


def test_names_of_parameters_do_not_keep_a_class_alive():
    made = type("Made", (cf.Ridge,), {})
    made().get_params()
    seen = weakref.ref(made)
    del made
    gc.collect()
    assert seen() is None


_FAILS = {name_of(model): reasons for model, reasons in OF_MATRICES}


@parametrize_with_checks(
    [model for model, _ in OF_MATRICES], expected_failed_checks=lambda model: _FAILS[name_of(model)]
)
def test_every_check_of_scikit_learn_passes_with_the_matrix_of_a_kernel(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [model for model, reasons in OF_MATRICES if reasons], ids=name_of)
def test_the_matrices_of_the_checks_that_fail_are_of_no_kernel(model):
    """They are made before the model sees them, so no tag helps; of no kernel nothing could be proven."""
    flowers, species = load_iris(return_X_y=True)
    products, numbers = flowers @ flowers.T, 3 * np.random.RandomState(0).uniform(size=(20, 5)).astype(np.float32)
    less_mean = products - products.mean()  # check_positive_only_tag_during_fit
    cut = (numbers @ numbers.T).astype(np.int64)  # check_estimators_dtypes
    for K, y, share in ((less_mean, species, 0.5), (cut, np.array([1, 2] * 10), 1e-3)):
        values = np.linalg.eigvalsh(K)
        assert values[0] < -share * values[-1]
        with pytest.raises(ValueError, match="Mercer"):
            clone(model).fit(K, y)
    clone(model).fit(products, species)


def fitted(row: Row, model: Any, n: int = 60, d: int = 3, seed: int = 0) -> Any:
    X, y = row.rows(n, d, seed)
    return clone(model).fit(X, y)


@EVERY
@pytest.mark.slow
def test_copies_answer_the_same_and_prove_the_same(name):
    row, model = MODELS[name]
    X, _ = row.rows(60, 3)
    first = fitted(row, model)
    for other in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first), fitted(row, clone(first))):
        assert np.array_equal(row.answers(other, X), row.answers(first, X))
        assert other.certificate_ == first.certificate_


def keeps_rows(model):
    learner = learner_of(model)
    return learner.is_ours and learner.keeps is not Keeps.NOTHING


@EVERY
@pytest.mark.slow
def test_a_fitted_model_holds_no_rows(name):
    row, model = MODELS[name]
    if keeps_rows(model):
        pytest.skip("predictions of this model are made of its rows, which its row of the table says")
    if hasattr(model, "max_depth"):
        model = clone(model).set_params(max_depth=2)  # else a tree has more leaves for more rows
    small, large = (fitted(row, model, n) for n in (50, 5000))
    sizes = []
    for kept in (small, large):
        kept.history_ = ()  # a row per iteration
        sizes.append(len(pickle.dumps(kept)))
    assert sizes[1] < sizes[0] + 600


@EVERY
@pytest.mark.slow
def test_a_second_fit_forgets_the_first(name):
    row, model = MODELS[name]
    X, y = row.rows(60, 3)
    first, once = fitted(row, model, d=2, seed=1), fitted(row, model)
    twice = first.fit(X, y)
    assert np.array_equal(row.answers(twice, X), row.answers(once, X))
    assert vars(twice).keys() == vars(once).keys()
    assert twice.column_names_ == once.column_names_


# What a fit leaves to ask for, by name.
QUESTIONS = (
    "predict", "predict_proba", "predict_log_proba", "predict_joint_log_proba", "predict_interval", "decision_function",
    "transform", "inverse_transform", "projection_error",
)  # fmt: skip


@EVERY
def test_what_needs_a_fit_says_so(name):
    row, model = MODELS[name]
    X, y = row.rows(60, 3)
    model = clone(model)
    calls = [lambda name=name: getattr(model, name)(X) for name in QUESTIONS if hasattr(model, name)]
    calls += [getattr(model, name) for name in ("summary", "monomials") if hasattr(model, name)]
    for call in (*calls, lambda: model.certify(X, y)):
        with pytest.raises(NotFittedError):
            call()


def test_a_model_works_in_a_pipeline_and_in_cross_validation():
    X, y = LEARNERS["ridge"].rows()
    scores = cross_val_score(make_pipeline(StandardScaler(), cf.Ridge(0.01)), X, y)
    assert scores.shape == (5,) and scores.mean() > 0.5


def test_solutions_need_a_fit():
    with pytest.raises(NotFittedError):
        cf.LinearRegression().solutions([])
