"""Claims about the certificate of generalised linear models: never below the true excess, and near it close by."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import certifit as cf
from certifit.models.glm import newton
from certifit.models.glm.certificate import Decrement, certify
from certifit.models.least_squares.normal_equations import Weights
from tests.glm_problem import LOSSES, Rows, drawn, task_of
from tests.reference import glm_objective

TOL = 1e-8


def excess(name, rows, alpha, state, best):
    values = [
        glm_objective(LOSSES[name], rows.X, rows.y, one.coef, one.intercept, alpha, rows.weight, rows.offset)
        for one in (state, best)
    ]
    return (values[0] - values[1]) / values[0]


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.slow
def test_the_bound_is_never_below_the_true_excess_and_near_it_close_by(name, alpha, rng):
    rows = drawn(name, rng)
    task = task_of(name, rows, alpha)
    best = newton.solve(task, 100).state
    scale = 1 / rows.X.std(axis=0)
    for size in np.geomspace(1e-5, 1.0, 60):
        moved = Weights(best.coef + size * rng.normal(size=4) * scale, best.intercept + size * rng.normal())
        true = excess(name, rows, alpha, moved, best)
        found = certify(task, moved, TOL)
        assert found.value >= true * (1 - 1e-6) - 1e-14
        if size < 1e-3:
            assert found.value <= 1.1 * true + 1e-12


@pytest.mark.parametrize("name", LOSSES)
def test_the_minimum_is_certified_and_a_nudge_is_not(name, rng):
    rows = drawn(name, rng)
    task = task_of(name, rows)
    best = newton.solve(task, 100).state
    assert certify(task, best, TOL).value < 1e-18
    for j in range(4):
        coef = best.coef.copy()
        coef[j] += 3e-3 / rows.X[:, j].std()
        refused = certify(task, Weights(coef, best.intercept), TOL)
        assert not refused.holds
        assert "NOT certified" in str(refused)


@pytest.mark.parametrize("quasi", [False, True], ids=["complete", "quasi-complete"])
def test_separable_classes_are_never_certified(quasi, rng):
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(float)
    if quasi:
        X[:10, 0] = 0.0
    rows = Rows(X, y, np.ones(60), np.zeros(60))
    task = task_of("logistic", rows)
    found = certify(task, newton.solve(task, 1000).state, 1e-3)
    assert not found.holds
    assert found.fault


def test_redundant_columns_are_named_and_the_fit_is_certified(rng):
    rows = drawn("poisson", rng, d=3)
    X = np.column_stack([rows.X, rows.X[:, 0] - 2 * rows.X[:, 1], np.full(len(rows.X), 3.0)])
    task = task_of("poisson", Rows(X, rows.y, rows.weight, rows.offset))
    found = certify(task, newton.solve(task, 100).state, TOL)
    assert found.holds
    assert found.rank == 3
    assert len(found.dependent) == 2
    assert any("x3" in sentence and "x0" in sentence for sentence in found.dependent)


def test_a_tiny_objective_is_measured_against_the_null_model(rng):
    X = rng.normal(size=(50, 2))
    z = X @ [0.5, -0.2] + 1
    rows = Rows(X, np.exp(z), np.ones(50), np.zeros(50))  # counts equal to their means: a deviance of zero
    task = task_of("poisson", rows)
    found = certify(task, newton.solve(task, 100).state, TOL)
    assert found.holds
    assert found.value > 0


def test_the_series_and_the_closed_form_of_the_bound_meet():
    for reach in (0.1, 1.0, 7.0):
        below, above = (Decrement(q / reach, 0.0, reach).excess() for q in (0.0999999, 0.1000001))
        assert below == pytest.approx(above, rel=1e-5)
    assert Decrement(0.5, 0.5, 1.0).excess() == np.inf
    assert Decrement(1e-3, 0.0, 0.0).excess() == pytest.approx(5e-7, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_penalty_too_weak_to_hold_a_copy_is_no_part_of_the_proof(rng, n_classes):
    x = rng.normal(size=3000)
    y = np.digitize(x + rng.logistic(size=3000), [-0.5, 0.5][: n_classes - 1])
    found = cf.LogisticRegression(alpha=1e-14).fit(np.column_stack([x, 2 * x]), y).certificate_
    assert found.holds and found.rank == 1 and len(found.dependent) == 1


def test_scores_that_cancel_are_no_exact_fit():
    # x'w as computed is +-500, and -4 in truth: roundings of the products are a thousand times what is left.
    g = np.array([28296739329346544.0, 32995304526899696.0, 25368643134500624.0, 34487996810507424.0])
    X, y = np.column_stack([g, g + 16, g + 16]), np.array([0.0, 1.0, 0.0, 1.0])
    model = cf.LogisticRegression(alpha=1e-60, fit_intercept=False).fit(X, y)
    w = [0.26165008544921875, -187.5, 187.23834991455078]
    model.coef_ = np.array([w])
    z = np.array([float(sum(Fraction(a) * Fraction(b) for a, b in zip(row, w, strict=True))) for row in X.tolist()])
    assert np.log1p(np.exp(np.where(y == 1, -z, z))).mean() > 1
    assert not model.certify(X, y).holds
    assert not cf.verify(model, X, y)


def test_slopes_beyond_float64_prove_nothing_and_raise_nothing():
    X, y = np.array([[-0.095], [0.42], [-0.34], [0.889], [-0.963], [-0.148]]), [1, 5, 1, 0, 0, 1]
    model = cf.PoissonRegressor(alpha=1e-9, l1_ratio=0.5).fit(X, y)
    for w in np.arange(780.0, 806.0, 0.25):
        model.coef_ = np.array([w])
        assert not model.certify(X, y).holds
