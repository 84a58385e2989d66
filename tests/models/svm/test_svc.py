"""Support vector classification against the mathematics, then against libsvm."""

from __future__ import annotations

import numpy as np
import pytest
from margin_reference import dual, gaussian, optimum, primal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as TheirSVC

import certifit as cf
from certifit.models.svm import task as margin_task
from certifit.models.svm.certificate import certify, certify_arrays
from certifit.models.svm.solver import Pool
from certifit.models.svm.task import MarginState, of_classes

SIGMA = 1.3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=60) > 0, 1, -1)
    weight = rng.integers(1, 4, size=60).astype(float)
    return X, y, weight


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, weight = rows
    return cf.SVC(0.02, kernel=cf.kernels.Gaussian(SIGMA)).fit(X, y, weight)


def test_the_optimum_is_that_of_slow_formulas(rows, fitted):
    X, y, weight = rows
    K, bound = gaussian(X, X, SIGMA), weight / (0.02 * weight.sum())
    c = np.zeros(60)
    c[fitted.support_] = fitted.dual_coef_[:, 0]
    value = primal(K, c, fitted.intercept_[0], y, y, bound, np.arange(60))
    a = optimum(K, y.astype(float), y.astype(float), bound, np.arange(60), 1000)
    best = dual(K, a, y, y, np.arange(60))
    assert best <= value * (1 + 1e-9)
    assert value - best <= 1e-4 * value
    assert 0.02 * value == pytest.approx(fitted.history_[-1]["objective"], rel=1e-3)


def test_the_multipliers_meet_their_conditions(rows, fitted):
    X, y, weight = rows
    bound = weight / (0.02 * weight.sum())
    a = np.zeros(60)
    a[fitted.support_] = y[fitted.support_] * fitted.dual_coef_[:, 0]
    margin = y * fitted.decision_function(X)
    assert (a >= 0).all() and (a <= bound * (1 + 1e-12)).all()
    assert abs(y @ a) <= 1e-12 * a.sum()
    assert (margin[a == 0] >= 1 - 1e-3).all()
    is_full = a >= bound * (1 - 1e-9)
    assert (margin[is_full] <= 1 + 1e-3).all()
    assert np.abs(margin[(a > 0) & ~is_full] - 1).max() <= 1e-3
    proof = fitted.certificate_
    assert proof.n_zero + proof.n_free + proof.n_bound == 60
    assert proof.n_free + proof.n_bound == len(fitted.support_) == fitted.n_support_.sum()


def test_slacks_add_up_to_the_objective_and_support_vectors_have_their_share(rows, fitted):
    X, y, weight = rows
    slack, c = fitted.slack(X, y), np.zeros(60)
    c[fitted.support_] = fitted.dual_coef_[:, 0]
    assert np.allclose(slack, np.maximum(0, 1 - y * fitted.decision_function(X)))
    value = np.average(slack, weights=weight) + 0.01 * c @ gaussian(X, X, SIGMA) @ c
    assert value == pytest.approx(fitted.history_[-1]["objective"], rel=1e-3)
    assert fitted.support_share_ == len(fitted.support_) / 60
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    for rule in ("one-vs-one", "one-vs-rest"):
        model = cf.SVC(0.02, multi_class=rule).fit(X, labels)
        of_pair = model.slack(X, labels)
        is_in = np.isin(labels, (0, 1)) if rule == "one-vs-one" else np.ones(60, dtype=bool)
        assert of_pair.shape == (60, 3) and np.array_equal(~np.isnan(of_pair[:, 0]), is_in)
        # The machine of a pair has the C of all rows: alpha times all rows over those of the pair.
        sign = np.where(labels == (1 if rule == "one-vs-one" else 0), 1, -1)[is_in]
        alone = cf.SVC(0.02 * 60 / is_in.sum(), kernel=model.kernel_).fit(X[is_in], sign)
        assert np.allclose(of_pair[is_in, 0], alone.slack(X[is_in], sign), atol=1e-6)


def test_the_dual_is_below_the_objective_in_every_round():
    X, y = load_breast_cancer(return_X_y=True)
    for solver in ("working-set", "smo"):
        history = cf.SVC(standardize=True, solver=solver).fit(X, y).history_
        assert all(row["dual"] <= row["objective"] * (1 + 1e-12) for row in history)
        assert len(history) > 2


def test_smo_steps_raise_the_dual_and_keep_the_sum():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.where(y[50:] == 2, 1.0, -1.0)
    model = cf.SVC(solver="smo").fit(X, y)
    a, steps = np.zeros(100), [row for row in model.history_ if "first" in row]
    values = [row["dual"] for row in model.history_]
    assert (np.diff(values) >= -1e-12).all()
    for row in steps:
        i, j = row["first"], row["second"]
        assert (a[i], a[j]) == (row["first_before"], row["second_before"])
        assert y[i] * row["first_before"] + y[j] * row["second_before"] == pytest.approx(
            y[i] * row["first_after"] + y[j] * row["second_after"], abs=1e-12
        )
        a[i], a[j] = row["first_after"], row["second_after"]
    assert model.history_[-1]["violation"] < steps[0]["violation"]


def test_both_solvers_end_at_the_same_function():
    X, y = load_wine(return_X_y=True)
    for rule in ("one-vs-one", "one-vs-rest"):
        models = [
            cf.SVC(0.01, standardize=True, multi_class=rule, solver=solver).fit(X, y)
            for solver in ("smo", "working-set")
        ]
        scores = [model.decision_function(X) for model in models]
        assert np.allclose(*scores, atol=1e-7)


def test_the_certificate_refuses_what_is_changed(rows, fitted):
    X, y, weight = rows
    task = fitted._task_on(X, y, sample_weight=weight)
    state, best = fitted._state(), fitted.certificate_.value
    assert certify(task, state, 1e-4).value == pytest.approx(best, rel=1e-6, abs=1e-13)
    for place in range(0, len(state.dual), 7):
        dual = state.dual.copy()
        dual[place] *= 1.2
        assert not certify(task, MarginState(state.points, dual, state.intercepts), 1e-4).holds
    moved = MarginState(state.points, state.dual, state.intercepts + 0.1)
    assert not certify(task, moved, 1e-4).holds
    points = state.points.copy()
    points[0] += 1e-3
    assert not certify(task, MarginState(points, state.dual, state.intercepts), 1e-4).holds


def test_the_gap_is_never_below_the_excess(rows, fitted):
    X, y, weight = rows
    rng = np.random.default_rng(0)
    K, bound = gaussian(X, X, SIGMA), weight / (0.02 * weight.sum())
    machine = of_classes(y.astype(float), np.arange(60), bound)
    best = fitted.history_[-1]["dual"] / 0.02
    for size in (1e-6, 1e-3, 1e-1, 1.0):
        for _ in range(20):
            a = np.zeros(60)
            a[fitted.support_] = np.abs(fitted.dual_coef_[:, 0])
            a = np.clip(a + size * rng.normal(size=60), 0, bound)
            b = fitted.intercept_[0] + size * rng.normal()
            proof = certify_arrays(cf.kernels.Gaussian(SIGMA), X, machine, a, b, 1e-4)
            value = primal(K, y * a, b, y, y, bound, np.arange(60))
            assert proof.value * value >= (value - best) * (1 - 1e-9)


@pytest.mark.parametrize("n_columns", [4, 200])  # sums of the kernel; of rows of the kernel that the solver has kept
def test_a_proof_with_sums_in_float32_never_says_more_than_one_in_float64(n_columns, monkeypatch):
    monkeypatch.setattr(margin_task, "MANY_VALUES", 0)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(700, n_columns))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=700) > 0, 1, -1)
    X[:, 4:] *= 0.3
    width, most = 2.0, 100 / 700
    model = cf.SVC(0.01, kernel=cf.kernels.Gaussian(width)).fit(X, y)
    precise, near = model._task_on(X, y), model._task_on(X, y)
    assert precise.in_float64
    near.in_float64 = False
    pool = Pool(near.rows, np.arange(700), 1e8)

    def in_float32(of):
        """f, none of it in float64 that is not yet, and how far it is off."""
        return near.near_values(
            of.points, of.dual, lambda f, off: off < 0, lambda: pool.sums(model.support_, of.dual[:, 0])
        )

    state, n_open = model._state(), []
    for size in (0.0, 1e-7, 1e-5, 1e-3, 1e-1):
        dual = np.clip(state.dual * (1 + size * rng.normal(size=state.dual.shape)), -most, most)
        moved = MarginState(state.points, dual, state.intercepts + size * rng.normal())
        f, off = in_float32(moved)
        exact = precise.values(moved.points, moved.dual)[:, 0]
        assert (np.abs(f - exact) <= off).all() and (off > 0).all() and (off < 0.05).all()
        ours, theirs = certify(near, moved, 1e-4), certify(precise, moved, 1e-4)
        assert ours.value >= theirs.value - theirs.rounding
        assert ours.value <= 1.01 * theirs.value + 1e-8
        assert ours.holds == theirs.holds == (size < 1e-3)
        assert ours.violation == pytest.approx(theirs.violation, abs=1e-12)
        n_open.append(int((in_float32(moved)[1] == 0).sum()))
    assert 0 < n_open[0] < 500  # many rows of the fit were never summed in float64
    assert model.certificate_.holds and model.certify(X, y).holds


def test_sums_of_kept_rows_are_off_by_no_more_than_their_bound_for_any_threads():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 600)) + 3.0
    y = X[:, 0] > 3
    rows = cf.SVC(0.1, kernel=cf.kernels.Gaussian(20.0)).fit(X, y)._task_on(X, y).rows
    support = np.flatnonzero(rng.random(300) < 0.7)
    for scale in (1.0, 1e30, 1e-300):
        c = rng.normal(size=len(support)) * np.exp(3 * rng.normal(size=len(support))) * scale
        sums = []
        for n_threads in (1, 2, 8):
            with cf.threads(n_threads):
                sums.append(Pool(rows, np.arange(300), 1e8).sums(support, c))
        assert all(np.array_equal(sums[0], other) for other in sums)
        f, off = sums[0]
        exact = rows.kernel.times(X, X[support], np.column_stack([c, np.abs(c)]))
        assert (np.abs(f - exact[:, 0]) <= off).all() and (off <= 1e-4 * exact[:, 1]).all()
    assert Pool(rows, np.arange(300), 299 * 300 * 4.0).sums(support, c) is None  # rows may have been dropped
    assert Pool(rows, np.arange(300), 1e8).widened().sums(support, c) is None  # float64


def test_the_last_round_of_many_rows_is_told_with_the_f_that_was_summed_again():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(4500, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=4500) > 0, 1, -1)
    model = cf.SVC(kernel=cf.kernels.Gaussian(1.5)).fit(X, y)
    assert model.certificate_.holds and model.certificate_.violation <= 2e-3
    last, task = model.history_[-1], model._task_on(X, y)
    assert all(row["dual"] <= row["objective"] for row in model.history_)
    b = model.intercept_[0]
    f = task.values(model._state().points, model._state().dual)[:, 0]
    norm = float(model.dual_coef_[:, 0] @ f[model.support_])
    objective = np.maximum(1 - y * (f + b), 0.0).mean() + model.alpha_ / 2 * norm
    assert last["objective"] == pytest.approx(objective, rel=1e-4) and last["violation"] <= 2e-3


def test_rows_of_the_kernel_that_are_kept_give_the_machine_of_rows_that_are_made_again():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(4200, 66))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] * X[:, 2] > 0, 1, -1)
    X[:, 3:] *= 0.1
    models = []
    for threads, cache_size in ((1, 200), (2, 200), (1, 1e-3)):
        with cf.threads(threads):
            models.append(cf.SVC(kernel=cf.kernels.Gaussian(2.0), cache_size=cache_size).fit(X, y))
    kept, twice, made = models
    assert np.array_equal(kept.dual_coef_, twice.dual_coef_)
    assert kept.certificate_.holds and made.certificate_.holds
    assert np.abs(kept.decision_function(X) - made.decision_function(X)).max() < 5e-3


def test_the_certificate_knows_rows_in_any_order(rows, fitted):
    X, y, weight = rows
    order = np.random.default_rng(3).permutation(60)
    assert fitted.certify(X[order], y[order], weight[order]).holds
    twice = np.repeat(np.arange(60), weight.astype(int))
    assert fitted.certify(X[twice], y[twice]).holds


def test_weight_two_is_the_row_twice(rows):
    X, y, weight = rows
    twice = np.repeat(np.arange(60), weight.astype(int))
    model, other = cf.SVC(0.01).fit(X, y, weight), cf.SVC(0.01).fit(X[twice], y[twice])
    assert np.allclose(model.decision_function(X), other.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_decisions_are_libsvms(load, C):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    theirs = TheirSVC(C=C, tol=1e-8).fit(X, y)
    ours = cf.SVC(cf.alpha_from_C(C, len(y)), tol=1e-8).fit(X, y)
    assert ours.certificate_.holds
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_class_weights_are_libsvms():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = {0: 3.0, 1: 0.5}
    theirs = TheirSVC(tol=1e-8, gamma=0.02, class_weight=weights).fit(X, y)
    ours = cf.SVC(kernel=cf.kernels.Gaussian(5.0), class_weight=weights, tol=1e-8).fit(X, y)
    assert np.allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_no_free_support_vector_puts_b_in_the_middle():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 1, 0, 1]
    model = cf.SVC(10.0, kernel=cf.kernels.Linear()).fit(X, y)
    assert model.certificate_.n_free == 0 and model.certificate_.holds
    assert model.intercept_[0] == pytest.approx(0.0, abs=1e-12)


def test_a_fit_that_is_stopped_early_says_so():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match="max_iter = 3 steps"):
        model = cf.SVC(standardize=True, max_iter=3).fit(X, y)
    assert not model.certificate_.holds


def test_a_kernel_that_is_not_mercer_is_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="Mercer"):
        cf.SVC(kernel=lambda A, B: -(A @ B.T)).fit(X, X[:, 0] > 0)


@pytest.mark.slow
def test_rows_that_may_yet_move_are_solved_apart_and_the_fit_is_proven_with_the_same_bits_for_any_threads():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(5000, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=5000) > 0, 1, -1)
    fits = []
    for n in (1, 2):
        with cf.threads(n):
            fits.append(cf.SVC(cf.alpha_from_C(1.0, 5000), kernel=cf.kernels.Gaussian(1.0)).fit(X, y))
    assert fits[0].certificate_.holds and fits[0].certificate_.violation <= 1e-3
    assert np.array_equal(fits[0].dual_coef_, fits[1].dual_coef_)


def test_columns_of_1e150_are_refused_without_a_warning_of_numpy():
    t = np.arange(11) / 10
    X, y = np.column_stack([np.ones(11), 1e150 * t**2, t**3, t**4]), [0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0]
    with pytest.warns(ConvergenceWarning) as told:
        model = cf.SVC(1e-12, kernel=cf.kernels.Linear()).fit(X, y)
    assert not model.certificate_.holds and len(told) == 1
