"""The hard margin against the mathematics: the widest gap, its proof, and the proof that there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import certifit as cf
from certifit.models.svm.hard_certificate import NotSeparableError, margin_bound
from certifit.models.svm.solver import WINDOW, Rise
from certifit.models.svm.task import MarginState


def separable(n=30, d=2, seed=0, gap=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    score = X @ w / np.linalg.norm(w)
    X += np.where(score > 0, gap, -gap)[:, None] * w / np.linalg.norm(w)
    return X, np.where(score > 0, 1, -1)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_margin_is_that_of_the_quadratic_programme(fit_intercept):
    X, y = separable()
    model = cf.HardMarginSVC(fit_intercept=fit_intercept).fit(X, y)
    A = np.column_stack([X, np.ones(len(X)) * fit_intercept])
    start = np.append(model.coef_[0], model.intercept_[0]) + 0.3
    best = minimize(
        lambda v: v[:2] @ v[:2] / 2,
        start,
        jac=lambda v: np.append(v[:2], 0.0),
        constraints={"type": "ineq", "fun": lambda v: y * (A @ v) - 1, "jac": lambda v: y[:, None] * A},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert best.success
    assert np.allclose(model.coef_[0], best.x[:2], rtol=1e-5)
    assert model.margin_ == pytest.approx(1 / np.linalg.norm(best.x[:2]), rel=1e-6)
    assert (y * model.decision_function(X)).min() == pytest.approx(1.0, abs=1e-9)
    assert model.certificate_.holds and model.certificate_.value < 1e-9


def test_b_is_the_middle_and_the_free_vectors_agree():
    X, y = separable(seed=3)
    model = cf.HardMarginSVC().fit(X, y)
    f = X @ model.coef_[0]
    assert model.intercept_[0] == pytest.approx(-(f[y < 0].max() + f[y > 0].min()) / 2, abs=1e-9)
    support = model.support_
    assert np.allclose(y[support] - f[support], model.intercept_[0], atol=1e-6)


def test_a_kernel_separates_what_no_line_does():
    X, y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), [0, 0, 1, 1]
    with pytest.raises(NotSeparableError, match="No direction separates the rows") as caught:
        cf.HardMarginSVC().fit(X, y)
    proof = caught.value.separation
    signed = np.column_stack([X, np.ones(4)]) * np.array([-1, -1, 1, 1])[:, None]
    assert np.abs(np.array(proof.multipliers) @ signed[list(proof.rows)]).max() == 0
    model = cf.HardMarginSVC(cf.kernels.Polynomial(2)).fit(X, y)
    assert model.certificate_.holds and (model.predict(X) == y).all()


def test_equal_rows_of_both_classes_are_named():
    X = np.array([[0.0], [1.0], [2.0], [1.0]])
    with pytest.raises(NotSeparableError, match="rows 1 and 3 have the same numbers"):
        cf.HardMarginSVC(cf.kernels.Gaussian(1.0)).fit(X, [0, 0, 1, 1])


def test_warn_fits_the_soft_margin_that_it_states():
    X = np.array([[0.0], [1.0], [2.0], [1.0]])
    with pytest.warns(UserWarning, match="soft margin of SVC"):
        model = cf.HardMarginSVC(not_separable="warn").fit(X, [0, 0, 1, 1])
    soft = cf.SVC(model.alpha_, kernel=cf.kernels.Linear()).fit(X, [0, 0, 1, 1])
    assert np.allclose(model.decision_function(X), soft.decision_function(X))
    assert model.certificate_.is_soft and model.certificate_.holds


def test_the_certificate_refuses_a_narrower_separator():
    X, y = separable(seed=1)
    model = cf.HardMarginSVC().fit(X, y)
    task, state = model._task_on(X, y), model._state()
    assert model._certified(task, state).value < 1e-9
    shift = MarginState(state.points, state.dual, state.intercepts + 0.01)
    refused = model._certified(task, shift)
    assert not refused.holds and refused.margin < model.certificate_.margin
    dual = state.dual.copy()
    dual[0] *= 1.05
    assert not model._certified(task, MarginState(state.points, dual, state.intercepts)).holds


def test_the_bound_is_the_formula():
    assert margin_bound(2.0, 0.5, 10**6) == pytest.approx(np.sqrt(4 * 16 / 1e6) + np.sqrt(2 * np.log(40) / 1e6))
    X, y = separable()
    model = cf.HardMarginSVC(fit_intercept=False).fit(X, y)
    proof = model.certificate_
    assert proof.radius == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert proof.margin == pytest.approx(1 / np.linalg.norm(model.coef_)) and not proof.is_augmented
    assert proof.bound == pytest.approx(margin_bound(proof.radius, proof.margin, len(y)))
    model = cf.HardMarginSVC().fit(X, y)
    proof, size = model.certificate_, np.hypot(np.linalg.norm(model.coef_), model.intercept_[0])
    assert proof.is_augmented and proof.radius == pytest.approx(np.sqrt((X**2).sum(axis=1).max() + 1))
    assert proof.bound == pytest.approx(margin_bound(proof.radius, 1 / size, len(y)))


def test_rows_as_small_as_float64_has_squares_of_are_separated_and_smaller_ones_said_to_be_undecided() -> None:
    X = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 3.0]])
    y = ["left", "right", "right"]
    model = cf.HardMarginSVC().fit(X * 2.0**-500, y)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.margin_, 2.0**-500, rtol=1e-6)
    with pytest.raises(ValueError, match="undecided within rounding"):
        cf.HardMarginSVC().fit(X * 2.0**-990, y)


def test_a_dual_that_no_longer_rises_ends_a_fit() -> None:
    flat, slow, fast = Rise(), Rise(), Rise()
    for number in range(WINDOW):
        flat.add(2.0, 1.0)
        slow.add(2.0, 1.0 + 1e-10 * number)
        fast.add(2.0, 1.0 + 1e-3 * number)
    assert flat.is_over and not slow.is_over  # the first window begins with no dual at all
    for number in range(WINDOW):
        slow.add(2.0, 1.0 + 1e-10 * (WINDOW + number))
        fast.add(2.0, 1.1 + 1e-3 * number)
    assert slow.is_over and not fast.is_over


@pytest.mark.filterwarnings("ignore:NOT certified")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("far", [1e5, 1e8])
def test_rows_that_a_narrow_kernel_keeps_apart_need_few_steps(far, fit_intercept):
    """k(x, x) of rows far from 0 was lost in rounding: no step was felt, and the search did not end."""
    X, y = np.random.default_rng(0).normal(size=(6, 3)) * far, [0, 1, 0, 1, 0, 1]
    kernel = cf.kernels.Gaussian(1.0)
    model = cf.HardMarginSVC(kernel=kernel, fit_intercept=fit_intercept, max_iter=5000).fit(X, y)
    assert len(model.history_) < 500
    if far < 1e6:  # products of orthogonal functions: every row has the multiplier 1
        assert model.certificate_.value < 1e-3
        assert np.isclose(model.certificate_.margin, 6**-0.5, rtol=1e-3)
