"""Claims about softmax regression: the objective is the formula, the fit its minimum, the certificate a bound."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import certifit as cf
from certifit.data.source import Memory
from certifit.models.glm.certificate import certify
from certifit.models.glm.duality import _dual_chances, duality_gap
from certifit.models.glm.points import point_of
from certifit.models.glm.softmax_solver import solve
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.runtime import one_blas_thread, threads

TOL = 1e-8


def objective(X, y, state, alpha, weight=None):
    """The formula, in plain NumPy and more digits than float64 has."""
    weight = (np.ones(len(y)) if weight is None else weight).astype(np.longdouble)
    z = X.astype(np.longdouble) @ state.coef.T.astype(np.longdouble) + state.intercept
    top = z.max(axis=1, keepdims=True)
    loss = np.log(np.exp(z - top).sum(axis=1)) + top[:, 0] - z[np.arange(len(y)), y.astype(int)]
    return weight @ loss / weight.sum() + alpha / 2 * np.sum(state.coef.astype(np.longdouble) ** 2)


@pytest.fixture
def problem(rng):
    """Rows of unlike columns, three classes that overlap, weights."""
    X = rng.normal(size=(400, 4)) * [1.0, 30.0, 0.02, 1.0] + [0.0, 100.0, 0.0, -3.0]
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(4, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1).astype(float)
    return X, y, rng.integers(1, 4, 400).astype(float)


def fitted(X, y, alpha, fit_intercept=True, weight=None, tol=TOL):
    task = SoftmaxTask(Memory(X, y, weight), int(y.max()) + 1, alpha, fit_intercept)
    return task, solve(task, tol, 1000).state


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_gradient_and_hessian_are_those_of_the_objective(problem, rng, alpha, fit_intercept):
    X, y, weight = problem
    task = SoftmaxTask(Memory(X, y, weight), 3, alpha, fit_intercept)
    point = rng.normal(size=task.shape)
    point[:, 0] -= point.sum(axis=1)  # of the kind that states are
    if not fit_intercept:
        point[-1] = 0.0
    point = point.ravel() / 3
    at = task.evaluate(point, hessian=True)
    np.testing.assert_allclose(at.value, objective(X, y, task.to_state(point), alpha, weight), rtol=1e-12)
    way = rng.normal(size=task.shape)
    way = (way - way.mean(axis=1, keepdims=True)).ravel()
    if not fit_intercept:
        way[-3:] = 0.0
    h = 1e-5
    up, down = task.evaluate(point + h * way), task.evaluate(point - h * way)
    np.testing.assert_allclose(at.gradient @ way, (up.value - down.value) / (2 * h), rtol=1e-7)
    slope = (up.gradient - down.gradient) / (2 * h)
    np.testing.assert_allclose(at.hessian @ way, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(task.to_point(task.to_state(point)), point, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.5, 1e-3])
def test_the_fit_is_that_of_scikit_learn(problem, alpha, fit_intercept):
    X, y, weight = problem
    X = (X - X.mean(axis=0)) / X.std(axis=0) + 0.3
    task, state = fitted(X, y, alpha, fit_intercept, weight)
    theirs = LogisticRegression(
        C=1 / (alpha * weight.sum()), fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(X, y, weight)
    np.testing.assert_allclose(state.coef, theirs.coef_, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(state.intercept, theirs.intercept_ - theirs.intercept_.mean(), rtol=1e-7, atol=1e-8)
    assert certify(task, state, TOL).holds


def test_without_a_penalty_the_classes_have_mean_0_and_odds_are_against_a_reference(problem):
    X, y, _ = problem
    task, state = fitted(X, y, 0.0)
    assert certify(task, state, TOL).holds
    np.testing.assert_allclose(state.coef.sum(axis=0), 0.0, atol=1e-12)
    odds = state.relative_to(2)
    assert not odds.coef[2].any() and odds.intercept[2] == 0
    np.testing.assert_allclose(objective(X, y, odds, 0.0), objective(X, y, state, 0.0), rtol=1e-13)
    # The score equations of maximum likelihood: chances and classes have the same moments.
    z = X @ odds.coef.T + odds.intercept
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    rows = np.column_stack([X, np.ones(len(X))])
    expected = rows.T @ np.eye(3)[y.astype(int)]
    np.testing.assert_allclose(rows.T @ p, expected, rtol=1e-9, atol=1e-9 * np.abs(rows).sum())


def test_weight_two_is_the_row_twice_and_weight_0_is_no_row(problem):
    X, y, weight = problem
    _, state = fitted(X, y, 0.01, weight=weight)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    _, twice = fitted(X[rows], y[rows], 0.01)
    np.testing.assert_allclose(state.coef, twice.coef, rtol=1e-8, atol=1e-10)
    X0, y0 = np.vstack([X, np.full((1, 4), 1e9)]), np.append(y, 0.0)
    _, without = fitted(X0, y0, 0.01, weight=np.append(weight, 0.0))
    np.testing.assert_allclose(state.coef, without.coef, rtol=1e-10)


def test_sparse_rows_give_the_fit_of_dense_ones(rng):
    X = rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.2)
    y = rng.integers(0, 4, 300).astype(float)
    task, dense = fitted(X, y, 0.02)
    other, sparse = fitted(sp.csr_array(X), y, 0.02)
    np.testing.assert_allclose(sparse.coef, dense.coef, rtol=1e-8, atol=1e-10)
    assert certify(task, sparse, TOL).holds and certify(other, dense, TOL).holds


@pytest.mark.parametrize("d", [4, 300])
def test_threads_and_runs_do_not_change_a_bit(rng, d):
    X, y = rng.normal(size=(3000, d)), rng.integers(0, 6, 3000).astype(float)
    found = []
    for n, stretch_rows in ((1, None), (2, None), (2, 1024)):
        source = Memory(X, y)
        source.block_rows, source.stretch_rows = 512, stretch_rows
        with threads(n):
            task = SoftmaxTask(source, 6, 0.1, True)
            state = solve(task, 1e-6, 100).state
            found.append((state.coef.tobytes(), state.intercept.tobytes(), certify(task, state, 1e-6).value))
    assert found[0] == found[1] == found[2]


def proofs(task, state):
    """(bound, name) of every proof that the task has."""
    point = task.to_point(state)
    yield certify(task, state, TOL).value * task.evaluate(point).value
    if task.alpha > 0:
        gap = duality_gap(point_of(task, point, hessian=False), 1e-8)
        yield gap.value + gap.rounding


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.slow
def test_a_bound_is_never_below_the_true_excess(problem, rng, alpha, fit_intercept):
    X, y, weight = problem
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    task, best = fitted(X, y, alpha, fit_intercept, weight)
    lowest = objective(X, y, best, alpha, weight)
    proven = 0
    for size in 10.0 ** rng.uniform(-8, 0, 20):
        move = SoftmaxWeights(rng.normal(size=(3, 4)), rng.normal(size=3) * fit_intercept)
        if rng.random() < 0.3:  # intercepts alone, or weights alone
            move = SoftmaxWeights(np.zeros((3, 4)), move.intercept)
        state = SoftmaxWeights(best.coef + size * move.coef, best.intercept + size * move.intercept)
        excess = objective(X, y, state, alpha, weight) - lowest
        for bound in proofs(task, state):
            assert bound >= excess - 1e-18  # what the formula itself is rounded by
            proven += bound < np.inf
    assert proven > 10


def test_a_bound_is_near_the_excess(problem):
    X, y, _ = problem
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    task, best = fitted(X, y, 0.05)
    lowest = objective(X, y, best, 0.05)
    coef = best.coef.copy()
    coef[0, 0] += 1e-3
    state = SoftmaxWeights(coef, best.intercept)
    excess = objective(X, y, state, 0.05) - lowest
    by_curvature, by_duality = proofs(task, state)
    assert excess < by_curvature < 1.05 * excess
    assert excess < by_duality < 20 * excess


def test_states_that_were_moved_are_refused(problem):
    X, y, _ = problem
    task, best = fitted(X, y, 0.05)
    assert certify(task, best, TOL).holds
    size = np.abs(X).max(axis=0)
    for k in range(3):
        for j in range(4):
            coef = best.coef.copy()
            coef[k, j] += 1e-3 / size[j]
            assert not certify(task, SoftmaxWeights(coef, best.intercept), 1e-9).holds
        intercept = best.intercept.copy()
        intercept[k] += 1e-3
        assert not certify(task, SoftmaxWeights(best.coef, intercept), TOL).holds


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_what_intercepts_have_in_common_hides_no_excess(shift):
    """Intercepts of 1e11 and more are rounded to steps that their classes see, so rounding once more is an excess."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(25, 2)) + shift, np.arange(25.0) % 3
        task, state = fitted(X, y, 0.0)
        far = SoftmaxWeights(state.coef, state.intercept + 10.0 ** rng.uniform(11, 13))
        near = SoftmaxWeights(state.coef, far.intercept - far.intercept[0])  # the same chances: nothing is rounded
        assert certify(task, far, TOL).value == pytest.approx(certify(task, near, TOL).value, rel=0.01)


def test_classes_that_can_be_parted_are_not_certified_without_a_penalty(rng):
    X = rng.normal(size=(60, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 20, axis=0)
    y = np.repeat([0.0, 1.0, 2.0], 20)
    task, state = fitted(X, y, 0.0)
    found = certify(task, state, TOL)
    assert not found.holds and "alpha > 0" in str(found)
    task, state = fitted(X, y, 1e-3)
    assert certify(task, state, TOL).holds


@pytest.mark.slow
def test_redundant_columns_are_named_and_the_rest_is_proven(problem):
    X, y, _ = problem
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    task, state = fitted(np.column_stack([X, X[:, 0] + 2 * X[:, 1]]), y, 0.0)
    found = certify(task, state, TOL)
    assert found.holds and found.rank == 4 and len(found.dependent) == 1
    _, alone = fitted(X, y, 0.0)
    best = objective(X, y, alone, 0.0)
    np.testing.assert_allclose(objective(np.column_stack([X, X[:, 0] + 2 * X[:, 1]]), y, state, 0.0), best, rtol=1e-12)


def test_many_columns_are_certified_by_duality(rng):
    X, y = rng.normal(size=(300, 160)), rng.integers(0, 5, 300).astype(float)
    task, state = fitted(X, y, 0.01)
    found = certify(task, state, TOL)
    assert found.holds and "duality" in found.theorem
    nudged = SoftmaxWeights(state.coef + 1e-4 * rng.normal(size=state.coef.shape), state.intercept)
    assert not certify(task, nudged, TOL).holds


def test_a_class_without_rows_and_offsets_are_refused(problem):
    X, y, weight = problem
    with pytest.raises(ValueError, match="Class 3 of 4 has no row with a weight"):
        solve(SoftmaxTask(Memory(X, y, weight), 4, 0.1, True), TOL, 10)


def test_real_digits_have_the_objective_of_scikit_learn(shared_data):
    table = pq.read_table(shared_data / "mnist_5k" / "mnist_5k.parquet")
    y = table["label"].to_numpy().astype(float)
    pixels = np.column_stack([table[name].to_numpy() for name in table.column_names if name != "label"])
    X = pixels.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(y), 49) / 255
    alpha = 1e-2
    task, state = fitted(X, y, alpha)
    theirs = one_blas_thread(LogisticRegression(C=1 / (alpha * len(y)), solver="newton-cholesky", tol=1e-10).fit)(X, y)
    assert certify(task, state, TOL).holds
    found = objective(X, y, state, alpha)
    np.testing.assert_allclose(
        found, objective(X, y, SoftmaxWeights(theirs.coef_, theirs.intercept_), alpha), rtol=1e-10
    )
    np.testing.assert_allclose(state.coef, theirs.coef_, rtol=1e-5, atol=1e-6)
    raw = pixels[::5].astype(np.uint8)  # as stored, and all columns of them
    task, state = fitted(raw, y[::5].copy(), 6500.0, tol=1e-6)  # 0.1 for pixels from 0 to 1
    assert certify(task, state, 1e-6).holds


def test_real_wines_have_the_objective_of_scikit_learn(shared_data):
    table = pq.read_table(shared_data / "wine_quality" / "wine_quality.parquet").to_pandas()
    target = "quality"
    y = np.unique(table[target], return_inverse=True)[1].astype(float)
    X = table.drop(columns=target).select_dtypes("number").to_numpy(dtype=float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    task, state = fitted(X, y, None)
    theirs = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X, y)
    assert certify(task, state, TOL).holds
    expected = objective(X, y, SoftmaxWeights(theirs.coef_, theirs.intercept_), 1 / len(y))
    np.testing.assert_allclose(objective(X, y, state, 1 / len(y)), expected, rtol=1e-10)
    np.testing.assert_allclose(state.coef, theirs.coef_, rtol=1e-5, atol=1e-6)


def test_a_penalty_that_underflows_in_the_units_of_the_columns_counts_as_none():
    X = np.array([[5e162], [5.000000000005e162], [4.999999999995e162]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = cf.LogisticRegression(alpha=1e-4).fit(X, [0, 1, 2])
    assert model.certificate_.holds


def test_a_weak_penalty_is_solved_to_its_floor_where_it_alone_holds_the_weights():
    # The third class is apart: its weights grow by steps of the same length until the penalty holds them.
    X, y = np.array([[0.0], [1.0], [0.0], [1.0], [2.0], [0.5]]), [0, 1, 1, 0, 2, 0]
    model = cf.LogisticRegression(alpha=1e-12).fit(X, y)
    assert len(model.history_) > 20 and model.certificate_.value < 1e-11
    assert cf.verify(model, X, y)
    model.coef_[2, 0] *= 1 + 1e-4
    assert not cf.verify(model, X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rounding_of_slopes_is_not_only_that_of_the_rows_of_a_class(fit_intercept, rng):
    """Chances of a rare class add up to more than its share where no intercept lowers them."""
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3.0
    task = SoftmaxTask(Memory(X, y, np.where(y == 0, 1.0, 1e-12)), 3, 1.0, fit_intercept)
    at = point_of(task, np.zeros(task.size), hessian=False)
    error = at.gradient_error.reshape(task.shape)
    assert (error[:2, 1] > 1e-16 * at.reach[:2] / 3).all()
    if not fit_intercept:
        dual = _dual_chances(at, 1e-8)
        assert (dual.error.reshape(2, 3)[:, 1] > 1e-16 * at.reach[:2] / 3).all()


@pytest.mark.parametrize("strength", [{"l1_ratio": 1e-6}, {"l1_ratio": 0.3}, {}])
def test_a_class_that_is_nearly_all_of_the_weight_is_proven(rng, strength):
    """The slopes are no larger than the loss, and so is their rounding."""
    X, y = rng.normal(size=(13, 1)), np.arange(13) % 3
    model = cf.LogisticRegression(alpha=0.01, **strength).fit(X, y, np.where(y == 1, 1e9, 1.0))
    assert model.certificate_.holds and model.certificate_.value < 1e-12


def test_weights_beyond_the_digits_of_float64_make_no_warning(rng):
    X, y = rng.normal(size=(6, 1)), np.arange(6) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = cf.LogisticRegression(alpha=1e-9).fit(X, y, np.where(y == 1, 1e69, 1.0))
    assert np.isfinite(model.coef_).all()
