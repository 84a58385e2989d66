"""Claims about `start`: steps begin where they are told to, and every start ends at the one minimum."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import certifit as cf
from certifit.minimise.minimum import SOLVERS
from certifit.modelfile.files import from_bytes, to_bytes
from tests.reference import glm_objective, widrow_hoff

MEANS = {"gaussian": lambda z: z, "bernoulli": lambda z: 1 / (1 + np.exp(-z)), "poisson": np.exp}
SMOOTH = [name for name, solver in SOLVERS.items() if "rows" not in solver.needs]


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(60, 3)) + np.array([0.0, 1.0, -1.0])
    z = X @ [0.5, -0.2, 0.1] + 0.3
    targets = {
        "gaussian": 2 + z + rng.normal(size=60),
        "bernoulli": (z + rng.logistic(size=60) > 0).astype(float),
        "poisson": rng.poisson(np.exp(z)).astype(float),
    }
    return X, targets


@pytest.mark.parametrize("family", MEANS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_epoch_from_zero_is_the_rule_of_widrow_and_hoff(family, rows):
    X, targets = rows
    rule = cf.SGD(step=0.02, schedule="constant", shuffle=False)
    model = cf.GLM(family, solver=rule, start="zero", max_iter=1).fit(X, targets[family])
    expected = widrow_hoff(X, targets[family], np.zeros(4), 0.02, MEANS[family])[-1]
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-12)
    parts = cf.GLM(family, solver=rule, start=[1.0, 2.0, 3.0, 4.0]).partial_fit(X[:7], targets[family][:7])
    expected = widrow_hoff(X[:7], targets[family][:7], [1.0, 2.0, 3.0, 4.0], 0.02, MEANS[family])[-1]
    np.testing.assert_allclose(np.append(parts.coef_, parts.intercept_), expected, rtol=1e-12)


def test_the_notes_two_rows_by_hand():
    """theta = 0, step 1/2: (x, y) = (1, 2) gives w = b = 1; then (2, 1), h = 3, gives w = 1 - 2 = -1, b = 0."""
    rule = cf.SGD(step=0.5, schedule="constant", shuffle=False)
    model = cf.GLM(solver=rule, start="zero").partial_fit([[1.0], [2.0]], [2.0, 1.0])
    assert (model.coef_[0], model.intercept_) == (-1.0, 0.0)


@pytest.mark.parametrize("solver", ["auto", *SMOOTH])
def test_every_start_ends_at_the_minimum_and_the_first_row_is_the_start(solver, rows):
    X, targets = rows
    y = targets["poisson"]
    model = cf.PoissonRegressor(0.1, solver=solver, tol=1e-11)
    expected = clone(model).set_params(solver="auto").fit(X, y)
    vector = np.array([0.1, 0.2, -0.3, 0.4])
    starts = (("zero", np.zeros(4)), (3, np.random.default_rng(3).standard_normal(4)), (vector, vector))
    for start, theta in starts:
        found = clone(model).set_params(start=start).fit(X, y)
        assert found.certificate_.holds
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-4, atol=1e-6)
        objective = glm_objective(found._loss(), X, y, theta[:-1], theta[-1], 0.1, np.ones(60), np.zeros(60))
        np.testing.assert_allclose(found.history_[0]["objective"], objective, rtol=1e-10)


def test_an_l1_penalty_and_bounds_start_there_too(rows):
    X, targets = rows
    y = targets["bernoulli"] > 0
    model = cf.LogisticRegression(0.02, l1_ratio=1.0)
    found = clone(model).set_params(start="zero").fit(X, y)
    assert found.history_[0]["objective"] == pytest.approx(np.log(2))
    np.testing.assert_allclose(found.coef_, model.fit(X, y).coef_, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="start has -1 for 'x0', outside its bounds 0 to inf"):
        cf.LogisticRegression(0.02, bounds=(0, np.inf), start=[-1.0, 0.0, 0.0, 0.0]).fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "gradient-descent", "newton"])
def test_softmax_has_a_start_per_class(solver, rows):
    X, targets = rows
    y = np.digitize(targets["gaussian"], [1.5, 2.5])
    best = cf.LogisticRegression(0.1).fit(X, y)
    for start in ("zero", 5, np.arange(12.0).reshape(3, 4) / 10):
        found = cf.LogisticRegression(0.1, solver=solver, start=start).fit(X, y)
        assert found.certificate_.holds
        np.testing.assert_allclose(found.predict_proba(X), best.predict_proba(X), atol=1e-3)
    assert cf.LogisticRegression(0.1, start="zero").fit(X, y).history_[0]["objective"] == pytest.approx(np.log(3))


def test_without_an_intercept_a_start_has_none(rows):
    X, targets = rows
    model = cf.GLM("poisson", fit_intercept=False, start=[0.1, 0.2, 0.3]).fit(X, targets["poisson"])
    expected = glm_objective(
        model._loss(), X, targets["poisson"], np.array([0.1, 0.2, 0.3]), 0.0, 0.0, np.ones(60), np.zeros(60)
    )
    assert model.history_[0]["objective"] == pytest.approx(expected)


@pytest.mark.parametrize("start", ["one", True, -1, 0.5, [[1.0], [1.0, 2.0]], ["a"], [np.nan, 0.0, 0.0, 0.0], [0.0]])
def test_what_is_no_start_is_refused(start, rows):
    X, targets = rows
    with pytest.raises(ValueError, match="start must"):
        cf.PoissonRegressor(start=start).fit(X, targets["poisson"])


@pytest.mark.parametrize("start", [None, "zero", 7, [0.1, 0.2, 0.3, 0.4]])
def test_a_model_file_keeps_the_start(start, rows):
    X, targets = rows
    model = cf.LogisticRegression(start=start).fit(X, targets["bernoulli"])
    again = from_bytes(to_bytes(model))
    np.testing.assert_array_equal(again.start, model.start)
    np.testing.assert_array_equal(clone(again).fit(X, targets["bernoulli"]).coef_, model.coef_)


def test_folds_of_a_start_are_refits_and_agree(rows):
    X, targets = rows
    y = targets["poisson"]
    grid = {"alpha": [0.01, 0.1]}
    ours = cf.CrossValidated(cf.PoissonRegressor(start="zero"), grid, cv=3).fit(X, y)
    plain = cf.CrossValidated(cf.PoissonRegressor(), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], rtol=1e-6)


def own_loss():
    return cf.Loss(lambda y, z: np.log(np.cosh(z - y)), lambda y, z: np.tanh(z - y), name="log cosh")


@pytest.mark.parametrize("solver", [cf.SGD(step=0.1), cf.MiniBatch(step=0.1), cf.SGD()])
def test_a_loss_of_ones_own_without_a_curvature_is_learned_row_by_row(solver, rows):
    X, targets = rows
    best = cf.GLM(own_loss(), alpha=0.1, solver="lbfgs").fit(X, targets["gaussian"])
    found = cf.GLM(own_loss(), alpha=0.1, solver=solver, tol=1e-2).fit(X, targets["gaussian"])
    assert np.abs(found.coef_ - best.coef_).max() < 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_schedule_may_be_a_function_of_the_step(rows):
    X, targets = rows
    y = targets["bernoulli"]
    named = cf.SGD(step=0.3, schedule="inverse", decay=1.0, shuffle=False)
    model = cf.GLM("bernoulli", solver=named, start="zero", max_iter=3).fit(X, y)
    own = cf.SGD(step=0.3, schedule=lambda t: 1 / t, shuffle=False)
    np.testing.assert_allclose(clone(model).set_params(solver=own).fit(X, y).coef_, model.coef_, rtol=1e-10)
    theta = np.zeros(4)
    for t, (row, target) in enumerate(zip(np.column_stack([X, np.ones(60)]), y, strict=True), start=1):
        theta = theta + 0.3 / t * (target - MEANS["bernoulli"](theta @ row)) * row
    once = clone(model).set_params(solver=own, max_iter=1).fit(X, y)
    np.testing.assert_allclose(np.append(once.coef_, once.intercept_), theta, rtol=1e-10)
    with pytest.raises(ValueError, match=r"schedule must give positive numbers. Got -1.0 at iteration 1"):
        cf.GLM("bernoulli", solver=cf.SGD(step=0.3, schedule=lambda t: -1.0)).fit(X, y)
    with pytest.raises(ValueError, match="has no decay"):
        cf.SGD(step=0.3, schedule=lambda t: 1.0, decay=0.1)


def test_the_family_of_many_classes_is_named():
    with pytest.raises(ValueError, match="'multinomial' use LogisticRegression"):
        cf.GLM("multinomial").fit([[1.0], [2.0]], [0.0, 1.0])


def test_the_weights_of_every_step_are_kept_where_asked_for(rows):
    X, targets = rows
    y, A = targets["poisson"], np.column_stack([X, np.ones(60)])
    rule = cf.GradientDescent(step=0.01, record="weights")
    model = cf.PoissonRegressor(0.0, solver=rule, start="zero", tol=1e-4).fit(X, y)
    assert model.weights_.shape == (len(model.history_), 4)
    theta = np.zeros(4)
    for row, weights in zip(model.history_[:20], model.weights_, strict=False):
        np.testing.assert_allclose(weights, theta, rtol=1e-9, atol=1e-12)
        slope = A.T @ (np.exp(A @ theta) - y) / 60
        assert row["gradient_norm"] == pytest.approx(np.linalg.norm(slope), rel=1e-9)
        theta = theta - 0.01 * slope
    assert {row["step_size"] for row in model.history_[1:]} == {0.01}
    np.testing.assert_array_equal(model.weights_[-1], np.append(model.coef_, model.intercept_))
    assert not hasattr(model.set_params(solver="newton").fit(X, y), "weights_")


@pytest.mark.parametrize("solver", [cf.ConjugateGradient, cf.BFGS, cf.LBFGS, cf.Newton])
def test_every_smooth_solver_records_its_way(solver, rows):
    X, targets = rows
    model = cf.LogisticRegression(0.1, solver=solver(record="weights"), start="zero").fit(X, targets["bernoulli"])
    assert not model.weights_[0].any() and len(model.weights_) == len(model.history_)
    np.testing.assert_allclose(model.weights_[-1], np.append(model.coef_, model.intercept_), rtol=1e-12)
    three = np.digitize(targets["gaussian"], [1.5, 2.5])
    assert model.fit(X, three).weights_.shape[1:] == (3, 4)
    with pytest.raises(ValueError, match="record must be None or 'weights'"):
        cf.LogisticRegression(solver=solver(record="all")).fit(X, targets["bernoulli"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_learning_row_by_row_records_every_row(rows):
    X, targets = rows
    rule = cf.SGD(step=0.02, schedule="constant", shuffle=False, record="weights")
    model = cf.GLM("poisson", solver=rule, start="zero", max_iter=1).fit(X, targets["poisson"])
    expected = widrow_hoff(X, targets["poisson"], np.zeros(4), 0.02, np.exp)
    np.testing.assert_allclose(model.weights_[1:], expected, rtol=1e-11)
    with pytest.raises(ValueError, match="keeps the steps of a fit"):
        cf.GLM("poisson", solver=rule).partial_fit(X, targets["poisson"])


def test_minimize_records_its_way_too():
    found = cf.minimize(lambda x: x @ x, [1.0, 2.0], cf.GradientDescent(0.25, record="weights"), lambda x: 2 * x)
    halves = 0.5 ** np.arange(len(found.history_))[:, None]
    np.testing.assert_allclose(found.weights, halves * [1.0, 2.0])
