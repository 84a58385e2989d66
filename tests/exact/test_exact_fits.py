"""Claims about exact proofs: they bear out sound fits of every model, and refuse every state that differs."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
from exact_fits import fits

import certifit as cf
from certifit.exact.proof import rows_of
from certifit.exact.table import PROVERS, exact_proof
from certifit.modelfile import inspect
from certifit.modelfile.verification import _exact_proof
from certifit.models.adapter import learner_of
from certifit.models.table import LEARNERS, kind_of_proof

pytest.importorskip("flint")
NAMES = list(fits())


def proof_of(name: str, model: Any = None) -> Any:
    fitted, data, beside = fits()[name]
    model = fitted if model is None else model
    return _exact_proof(model, fitted.certificate_, rows_again(model, data, beside))


def rows_again(model: Any, data: tuple[Any, ...], beside: dict[str, Any]) -> Any:
    X, y, weight = data
    return model._gate_again(X, y, **(beside if weight is None else {"sample_weight": weight, **beside}))


def test_every_model_of_the_table_is_tried():
    learners = {learner_of(model).name for model, *_ in fits().values()}
    assert learners == {learner.name for learner in LEARNERS.values() if learner.exact is not None}
    assert {learner.exact for learner in LEARNERS.values()} == {None, *PROVERS}


def test_a_fit_says_which_kind_of_proof_it_has(tmp_path):
    model, *_ = fits()["ridge"]
    cf.save(model, tmp_path / "m.certifit")
    words = inspect(tmp_path / "m.certifit").certificate["kind"]
    assert words == "float64, with an allowance for rounding; certifit verify --exact leaves none open"
    quantile = LEARNERS["quantile_regressor"]
    assert kind_of_proof(quantile.words, None, model.certificate_) == "float64, with an allowance for rounding"
    perceptron = LEARNERS["perceptron"]
    again = kind_of_proof(perceptron.words, perceptron.exact, model.certificate_)
    assert again == "none: its numbers were computed again in float64"
    local = cf.GLM("gamma", "identity").fit([[1.0], [2.0], [3.0]], [1.0, 2.5, 3.0]).certificate_
    assert kind_of_proof(LEARNERS["glm"].words, None, local) == "none: an estimate in float64"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_sound_fit_is_verified_exactly_and_its_float_certificate_is_an_upper_bound(name, tmp_path):
    model, data, beside = fits()[name]
    cf.save(model, tmp_path / "m.certifit")
    result = cf.verify(tmp_path / "m.certifit", *data, **beside, exact=True)
    assert result.holds, result.reasons
    assert result.kind == "exact" and result.exact.is_sharp
    assert result.exact.lower <= result.certificate.value
    assert result.exact.upper <= result.certificate.tolerance
    assert str(result).startswith("Verified exactly: ")
    assert result.sentences()[0].startswith("Verified exactly, in ball arithmetic of")
    assert cf.verify(model, *data, **beside).kind == "float64"


# What each class of models predicts with, and a change of it that its claim feels.
STATES = {"GaussianDiscriminant": "means_", "GaussianNB": "var_", "PCA": "components_"}
STATES |= dict.fromkeys(("BernoulliNB", "MultinomialNB"), "feature_log_prob_")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_nudge_of_one_number_is_refused(name):
    model, data, beside = fits()[name]
    changed = copy.deepcopy(model)
    state = getattr(changed, STATES.get(type(model).__name__, "coef_"))
    place = np.unravel_index(np.argmax(np.abs(state)), state.shape)
    bounds = np.ravel(np.asarray(getattr(model, "bounds", None) or [], dtype=float))
    state[place] *= 1 - 1e-4 if np.isin(state[place], bounds) or len(bounds) else 1 + 1e-4
    result = cf.verify(changed, *data, **beside, exact=True)
    assert not result.holds
    assert result.exact.fault or result.exact.lower > proof_of(name).upper


@pytest.mark.parametrize("name", ["lasso", "logistic", "softmax", "huber", "poisson in a box", "probit"])
def test_the_exact_value_of_a_far_state_is_the_excess_over_the_fit(name):
    """P(far) - P(fit) in float64 is the excess but for rounding."""
    model, data, beside = fits()[name]
    changed = copy.deepcopy(model)
    changed.coef_ = np.asarray(model.coef_) * 0.5
    proof = proof_of(name, changed)
    own, far = (objective(one, data, beside) for one in (model, changed))
    assert proof.lower == pytest.approx((far - own) / far, rel=1e-6)


def objective(model: Any, data: tuple[Any, ...], beside: dict[str, Any]) -> float:
    """The objective by NumPy alone, as the class documents it."""
    X, y, weight = data
    w = np.ones(len(X)) if weight is None else weight
    if len(getattr(model, "classes_", ())) == 3:
        z = X @ model.coef_.T + model.intercept_
        codes = np.searchsorted(model.classes_, y)
        rows = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(z)), codes]
        return float(np.average(rows, weights=w) + model.alpha_ / 2 * np.sum(model.coef_**2))
    coef = np.ravel(model.coef_)
    z = X @ coef + np.ravel(model.intercept_)[0]
    if type(model).__name__ == "HuberRegressor":
        r = np.abs(y - z) / model.scale_
        h = np.where(r <= model.delta, r**2 / 2, model.delta * r - model.delta**2 / 2)
        return float(np.average(model.scale_ * h, weights=w) + model.scale_ / 2)
    if type(model).__name__ == "Lasso":
        return float(np.average((y - z) ** 2 / 2, weights=w) + model.alpha_ * np.abs(coef).sum())
    if getattr(model, "class_weight_", None) is not None:
        w = w * model.class_weight_[y]
    rows = model._loss().value(np.asarray(y, dtype=float), z)
    l1 = model.alpha_ * model.l1_ratio * np.abs(coef).sum()
    return float(np.average(rows, weights=w) + l1 + model.alpha_ * (1 - model.l1_ratio) / 2 * np.sum(coef**2))


def test_a_false_certificate_is_said_to_be_false(monkeypatch):
    model, data, _ = fits()["least squares"]
    false = dataclasses.replace(model.certificate_, value=1e-40)
    changed = copy.deepcopy(model)
    changed.certificate_ = false
    monkeypatch.setattr(changed, "certify_source", lambda *args, **kwargs: false, raising=False)
    result = cf.verify(changed, *data, exact=True)
    assert not result.holds
    assert "The certificate in float64 is false: it claims 1e-40" in str(result)


def test_an_estimate_that_says_so_is_not_called_false(monkeypatch):
    model, data, _ = fits()["gamma"]
    least = proof_of("gamma").lower
    estimate = dataclasses.replace(model.certificate_, value=least / 2, is_local=True)
    changed = copy.deepcopy(model)
    changed.certificate_ = estimate
    monkeypatch.setattr(changed, "certify_source", lambda *args, **kwargs: estimate, raising=False)
    assert cf.verify(changed, *data, exact=True)
    changed.certificate_ = dataclasses.replace(estimate, value=least / 20)
    assert "was claimed: the coefficients were changed" in str(cf.verify(changed, *data, exact=True))


def test_digits_that_the_exact_minimum_does_not_have_are_said_to_be_false(monkeypatch):
    model, data, _ = fits()["least squares"]
    digits = (15.0,) * 3 + (30.0,)
    false = dataclasses.replace(model.certificate_, digits=digits)
    changed = copy.deepcopy(model)
    changed.certificate_ = false
    monkeypatch.setattr(changed, "certify_source", lambda *args, **kwargs: false, raising=False)
    assert "Digits claimed in float64 are false: 'x2'" in str(cf.verify(changed, *data, exact=True))


def test_exact_proof_is_what_verify_shows():
    model, data, beside = fits()["ridge"]
    rows = rows_of(model.mapped_again(rows_again(model, data, beside)))
    assert exact_proof(model, rows, model.certificate_) == cf.verify(model, *data, exact=True).exact


# Data and alpha of softmax fits that hold: an unknown whose last Newton step is nearly 0, and a loss of 0.
CLASSES = {
    "a step of nearly 0": (np.c_[np.full(7, 0.1), [-4.0, 5.0, -3.0, 0.0, 5.0, 3.0, 0.0]], [0, 1, 2, 0, 1, 1, 1], 0.1),
    "a loss of nearly 0": (1e149 * np.array([[2.0], [-6.0], [1.2], [-4.8], [10.0]]), [0, 1, 2, 3, 0], 1e-4),
}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.slow
def test_softmax_is_decided_where_newton_steps_end_at_rounding(name):
    X, y, alpha = CLASSES[name]
    model = cf.LogisticRegression(alpha=alpha).fit(X, y)
    assert model.certificate_.holds
    result = cf.verify(model, X, y, exact=True)
    assert result.holds, result.reasons
