"""Support vector regression against the mathematics, then against libsvm."""

from __future__ import annotations

import numpy as np
import pytest
from margin_reference import dual, gaussian, optimum, primal
from sklearn.datasets import load_diabetes
from sklearn.svm import SVR as TheirSVR

import certifit as cf
from certifit.models.svm.certificate import certify
from certifit.models.svm.task import MarginState, of_numbers


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=50)


def test_the_optimum_is_that_of_slow_formulas(rows):
    X, y = rows
    model = cf.SVR(0.02, epsilon=0.05, kernel=cf.kernels.Gaussian(1.0)).fit(X, y)
    K, machine = gaussian(X, X, 1.0), of_numbers(y, 0.05, np.full(50, 1 / (50 * 0.02)))
    c = np.zeros(50)
    c[model.support_] = model.dual_coef_[:, 0]
    parts = (machine.sign, machine.target, machine.bound, machine.row)
    value = primal(K, c, model.intercept_, *parts)
    best = dual(K, optimum(K, *parts, 1000), machine.sign, machine.target, machine.row)
    assert best <= value * (1 + 1e-9) and value - best <= 1e-3 * value
    errors = np.abs(y - model.predict(X))
    assert value * 0.02 == pytest.approx(np.maximum(errors - 0.05, 0).mean() + 0.01 * c @ K @ c, rel=1e-9)
    assert (errors[c == 0] <= 0.05 + 1e-3).all() and abs(c.sum()) <= 1e-12 * np.abs(c).sum()


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_predictions_are_libsvms_in_any_unit(scale):
    X, y = load_diabetes(return_X_y=True)
    X, y = X / X.std(axis=0), y / 100
    theirs = TheirSVR(C=1.0, gamma=0.05, tol=1e-8).fit(X, y)
    kernel = cf.kernels.Gaussian(np.sqrt(10.0))
    ours = cf.SVR(1 / 442 / scale, epsilon=0.1 * scale, kernel=kernel, tol=1e-8).fit(X, y * scale)
    assert ours.certificate_.holds
    assert np.allclose(ours.predict(X), scale * theirs.predict(X), atol=1e-5 * scale)


def test_the_certificate_refuses_what_is_changed(rows):
    X, y = rows
    model = cf.SVR(0.01).fit(X, y)
    task, state = model._task_on(X, y), model._state()
    assert certify(task, state, 1e-4).holds
    assert not certify(task, MarginState(state.points, state.dual * 1.05, state.intercepts), 1e-4).holds
    assert not certify(task, MarginState(state.points, state.dual, state.intercepts + 0.05), 1e-4).holds
    assert not certify(model._task_on(X, y + 0.1 * X[:, 0]), state, 1e-4).holds


def test_equal_rows_of_different_targets_are_proven():
    X = np.repeat(np.arange(6.0)[:, None], 3, axis=0)
    y = np.tile([0.0, 1.0, 5.0], 6) + X[:, 0]
    model = cf.SVR(0.05, kernel=cf.kernels.Linear()).fit(X, y)
    assert model.certificate_.holds and model.certify(X[::-1].copy(), y[::-1].copy()).holds


def test_a_far_target_of_a_made_case_of_547_rows_is_fitted_and_proven():
    """Columns in their own units, 22 of them, and a target far from 0, on which a peer ran for hours."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(547, 22)) * np.logspace(-2, 5, 22)
    y = 1e4 + 300 * np.tanh(X[:, 0] * 50) + 40 * rng.normal(size=547)
    model = cf.SVR(1 / (547 * 100), epsilon=1.0, standardize=True).fit(X, y)
    assert model.certificate_.holds


def test_a_tube_around_all_targets_has_no_support_vectors_and_predicts_its_middle(tmp_path):
    X, y = np.arange(8.0)[:, None], np.array([1.0, 2.0, 1.5, 1.0, 2.0, 1.2, 1.8, 1.5])
    model = cf.SVR(epsilon=1.0).fit(X, y)
    assert len(model.support_) == 0 and model.certificate_.holds
    assert np.abs(model.predict(X) - y).max() <= 1.0
    cf.save(model, tmp_path / "tube")
    assert np.array_equal(cf.load(tmp_path / "tube").predict(X), model.predict(X))
    assert cf.verify(tmp_path / "tube", X, y).holds


def test_targets_of_1e12_that_differ_by_1_are_those_about_0_moved(rng):
    X = np.repeat([[0.0], [1.0]], [11, 3], axis=0) + 1e-9 * rng.normal(size=(14, 1))
    y = np.round(1024 * (X[:, 0] * 2 - 0.7 + 0.3 * rng.normal(size=14))) / 1024  # whole multiples stay exact
    near, far = (cf.SVR(1e-3, epsilon=0.0).fit(X, y + shift) for shift in (0.0, 1e12))
    np.testing.assert_allclose(far.predict(X) - 1e12, near.predict(X), atol=1e-3)
    assert abs(far.dual_coef_.sum()) <= 1e-9 * np.abs(far.dual_coef_).sum()
