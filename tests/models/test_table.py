"""The table of models says what their signatures say, and is what parameters are checked by."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVR, LinearSVC

import certifit as cf
from certifit.models.adapter import learner_of
from certifit.models.learner import Answer, choice, count, either, flag, number
from certifit.models.table import LEARNERS

KEYS = sorted(LEARNERS)


@pytest.mark.parametrize("key", KEYS)
def test_defaults_are_those_of_the_signature(key):
    learner = LEARNERS[key]
    parameters = inspect.signature(learner.load().__init__).parameters
    assert set(parameters) - {"self"} == {*learner.params, *learner.others}
    for name, param in learner.params.items():
        assert parameters[name].default == param.default, name


@pytest.mark.parametrize("key", KEYS)
def test_defaults_are_legal(key):
    for name, param in LEARNERS[key].params.items():
        param.check(name, param.default)


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_no_kind_is_refused_by_every_fit(key):
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    for name in LEARNERS[key].params:
        model = LEARNERS[key].load()(**{name: object()})
        with pytest.raises((TypeError, ValueError), match=f"{name} must be"):
            model.fit(X, y)


def test_a_class_derived_from_one_of_ours_has_its_row():
    ridge = LEARNERS["ridge"].load()
    mine = type("Mine", (ridge,), {})
    assert learner_of(mine) is learner_of(mine()) is learner_of(ridge()) is LEARNERS["ridge"]


def test_an_estimator_of_others_answers_by_its_tags():
    answers = {SVR(): Answer.NUMBER, GaussianNB(): Answer.CLASSES, LinearSVC(): Answer.MARGINS, PCA(): Answer.NONE}
    for estimator, answer in answers.items():
        assert not learner_of(estimator).is_ours
        assert learner_of(estimator).answers({}) is answer


@pytest.mark.parametrize("key", KEYS)
def test_models_have_the_methods_of_their_answers(key):
    model = LEARNERS[key].load()()
    answer = LEARNERS[key].answers(model.get_params(deep=False))
    assert hasattr(model, "transform") == (answer is Answer.NONE) != hasattr(model, "predict")
    assert hasattr(model, "means") == (answer is Answer.MEAN)
    assert hasattr(model, "predict_proba") == (answer is Answer.CLASSES)
    assert hasattr(model, "decision_function") or answer is not Answer.MARGINS
    assert is_classifier(model) == answer.is_class
    assert is_regressor(model) == (answer in (Answer.NUMBER, Answer.MEAN))


@pytest.mark.parametrize(
    "param, legal, illegal",
    [
        (number(1.0), [0, 0.0, np.float32(2), 1e308], [-1e-300, np.nan, np.inf, 10**400]),
        (number(0.5, most=1.0), [0, 1], [-0.1, 1.1, np.nan]),
        (number(0.5, most=1.0, is_above=True), [5e-324, 1.0], [0, 1.1]),
        (number(0.0, least=-np.inf), [-1e308, 0], [np.inf, np.nan]),
        (count(3), [1, np.int64(7)], [0, -5]),
        (count(3, most=9), [1, 9], [10, 10**30]),
        (flag(True), [True, np.False_], []),
        (choice("a", "a", "b"), ["a", "b"], ["c", 1, None]),
        (either("a or 1", "a", choice("a", "a"), count(1, most=1)), ["a", 1], ["b", 2, 1.5]),
    ],
)
def test_ranges(param, legal, illegal):
    for value in legal:
        param.check("x", value)
    for value in illegal:
        with pytest.raises(ValueError, match="x must be"):
            param.check("x", value)


@pytest.mark.parametrize("param", [number(1.0), count(1), flag(True)])
@pytest.mark.parametrize("value", ["1", None, [1.0], 1j])
def test_other_types_are_type_errors(param, value):
    with pytest.raises(TypeError, match="x must be"):
        param.check("x", value)


def test_none_is_legal_only_where_it_is_said():
    number(None, or_none=True).check("x", None)
    with pytest.raises(ValueError, match="a finite number >= 0 or None"):
        number(None, or_none=True).check("x", -1.0)


def test_the_table_needs_no_numpy():
    code = "import sys, certifit.models.table; assert not {'numpy', 'sklearn', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


ELSEWHERE = [
    (cf.LogisticRegression, {"C": 1.0}, "alpha_from_C"),
    (cf.LogisticRegression, {"penalty": "l1"}, "l1_ratio=1"),
    (cf.Lasso, {"positive": True}, r"bounds=\(0, np.inf\)"),
    (cf.HuberRegressor, {"epsilon": 1.5}, "delta"),
    (cf.DecisionTreeClassifier, {"random_state": 0}, "Nothing is drawn at random"),
    (cf.Ridge, {"alhpa": 1.0}, "Did you mean 'alpha'"),
    (cf.Ridge, {"colour": 1.0}, "It has alpha, basis"),
]


@pytest.mark.parametrize("cls, params, sentence", ELSEWHERE, ids=[next(iter(row[1])) for row in ELSEWHERE])
def test_parameters_of_other_libraries_are_refused_with_what_to_write(cls, params, sentence):
    with pytest.raises(TypeError, match=sentence):
        cls(**params)


@pytest.mark.parametrize("cls", [cf.Ridge, cf.KernelRidge])
def test_a_penalty_in_another_unit_than_scikit_learns_is_said_in_the_first_line(cls):
    assert "per row" in cls.__doc__.splitlines()[0] and "scikit-learn" in cls.__doc__.splitlines()[0]
