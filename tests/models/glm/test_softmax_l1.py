"""More than two classes with an L1 penalty, penalty factors and bounds: minima by their conditions, and proofs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

import certifit as cf
from certifit.data.source import Memory
from certifit.models.glm.certificate import certify
from certifit.models.glm.l1_solver import solve
from certifit.models.glm.softmax_task import SoftmaxTask, SoftmaxWeights
from certifit.models.lasso.task import Strengths

TOL = 1e-8


def classes(rng, n=200, d=5, k=4):
    """Rows of unlike columns, classes that overlap, half of the columns without effect; weights."""
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 3, d) + rng.normal(size=d)
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ (rng.normal(size=(d, k)) * (np.arange(d) % 2)[:, None])
    return X, (z + rng.gumbel(size=z.shape)).argmax(axis=1).astype(float), rng.integers(1, 4, n).astype(float)


def strengths(d, alpha=0.02, l1_ratio=1.0, factors=None, bounds=(-np.inf, np.inf)):
    factors = np.ones(d) if factors is None else np.asarray(factors, dtype=float)
    return Strengths(alpha, l1_ratio, factors, np.full(d, bounds[0]), np.full(d, bounds[1]))


def objective(X, y, weight, state, s):
    """The formula, in more digits than float64 has."""
    X, weight, coef = (np.asarray(part, dtype=np.longdouble) for part in (X, weight, state.coef))
    z = X @ coef.T + state.intercept
    top = z.max(axis=1, keepdims=True)
    loss = np.log(np.exp(z - top).sum(axis=1)) + top[:, 0] - z[np.arange(len(y)), y.astype(int)]
    penalty = s.factors * (s.l1_ratio * np.abs(coef) + (1 - s.l1_ratio) / 2 * coef**2)
    return weight @ loss / weight.sum() + s.alpha * penalty.sum()


def slopes(X, y, weight, state):
    """Of the mean loss by the weights of every class, and by its intercept."""
    z = X @ state.coef.T + state.intercept
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    off = (p - np.eye(len(state.coef))[y.astype(int)]) * (weight / weight.sum())[:, None]
    return off.T @ X, off.sum(axis=0)


CASES = {
    "lasso": {},
    "elastic net": {"l1_ratio": 0.5},
    "hardly squares": {"l1_ratio": 1 - 1e-6},
    "box": {"alpha": 0.0, "bounds": (-0.3, 0.2)},
    "ridge in a box": {"l1_ratio": 0.0, "bounds": (-0.1, 0.3)},
    "lasso above 0": {"bounds": (0.0, np.inf)},
    "factors": {"factors": [1, 2, 0.5, 1, 3]},
    "lasso beside free columns": {"factors": [0, 1, 0, 1, 1]},
    "elastic net beside free columns": {"l1_ratio": 0.5, "factors": [0, 1, 1, 1, 0]},
    "hardly squares beside a free column": {"l1_ratio": 1 - 1e-13, "factors": [1, 0, 1, 1, 1]},
    "above 0 without a penalty": {"alpha": 0.0, "bounds": (0.0, np.inf)},
}
FREE = {name for name in CASES if "free" in name or "without" in name}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_fit_meets_the_conditions_of_a_minimum_and_is_proven(name, fit_intercept, rng):
    X, y, weight = classes(rng)
    s = strengths(5, **CASES[name])
    task = SoftmaxTask(Memory(X, y, weight), 4, s, fit_intercept)
    state = solve(task, 1000).state
    found = certify(task, state, TOL)
    assert found.value < 1e-12 and (name not in FREE or "self-concordance" in found.theorem)
    coef, (by_weight, by_intercept) = state.coef, slopes(X, y, weight, state)
    g = by_weight + s.alpha * (1 - s.l1_ratio) * s.factors * coef
    l1 = s.alpha * s.l1_ratio * s.factors + 0 * coef
    up = np.where(coef < s.upper, -g - np.where(coef >= 0, l1, -l1), 0.0)
    down = np.where(coef > s.lower, g - np.where(coef <= 0, l1, -l1), 0.0)
    assert max(up.max(), down.max()) < 1e-10  # no move of one weight lowers the objective
    assert ((coef >= s.lower) & (coef <= s.upper)).all()
    if fit_intercept:
        assert np.abs(by_intercept).max() < 1e-12
        assert abs(state.intercept.sum()) < 1e-12
    else:
        assert not state.intercept.any()


def test_the_fit_is_that_of_scikit_learn(rng):
    X, y, weight = classes(rng, d=3, k=3)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = cf.LogisticRegression(alpha=0.03, l1_ratio=0.7).fit(X, y, weight)
    theirs = LogisticRegression(C=1 / (0.03 * weight.sum()), l1_ratio=0.7, solver="saga", tol=1e-9, max_iter=10_000)
    if theirs.penalty == "l2":  # scikit-learn before 1.8, where l1_ratio asks for no mix by itself
        theirs.set_params(penalty="elasticnet")
    theirs.fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    assert ((model.coef_ == 0) == (np.abs(theirs.coef_) < 1e-6)).all() and (model.coef_ == 0).any()
    assert model.certificate_.holds and model.certificate_.rank == np.count_nonzero(model.coef_.any(axis=0))


def test_two_classes_of_softmax_are_logistic_regression_with_the_same_penalty(rng):
    # min |w_0| + |w_1| over w_1 - w_0 = w is |w|
    X, y, weight = classes(rng, k=2)
    s = strengths(5, alpha=0.05)
    task = SoftmaxTask(Memory(X, y, weight), 2, s, True)
    state = solve(task, 1000).state
    one = cf.LogisticRegression(alpha=0.05, l1_ratio=1.0).fit(X, y, weight)
    np.testing.assert_allclose(state.coef[1] - state.coef[0], one.coef_[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.abs(state.coef).sum(axis=0), np.abs(one.coef_[0]), rtol=1e-7, atol=1e-9)
    assert certify(task, state, TOL).holds


@pytest.mark.parametrize("name", ["lasso", "elastic net", "box", "ridge in a box", *sorted(FREE)])
def test_a_bound_is_never_below_the_true_excess_and_moved_states_are_refused(name, rng):
    X, y, weight = classes(rng)
    s = strengths(5, **CASES[name])
    task = SoftmaxTask(Memory(X, y, weight), 4, s, True)
    best = solve(task, 1000).state
    lowest = objective(X, y, weight, best, s)
    assert certify(task, best, TOL).value < 1e-9
    for size in 10.0 ** rng.uniform(-9, 0, 30):
        coef = best.coef + size * rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.5)
        state = SoftmaxWeights(np.clip(coef, s.lower, s.upper), best.intercept + size * rng.normal(size=4))
        excess = float(objective(X, y, weight, state, s) - lowest)
        bound = certify(task, state, TOL)
        assert bound.value * float(objective(X, y, weight, state, s)) >= excess - 1e-17
        assert not (bound.holds and excess > TOL * lowest)
        if size > 1e-2:  # by curvature, squares of a nudge count
            assert not bound.holds


def test_a_file_verifies_and_a_nudge_of_any_weight_is_refused(rng, tmp_path):
    X, y, _ = classes(rng, k=3)
    model = cf.LogisticRegression(alpha=0.02, l1_ratio=1.0).fit(X, y)
    cf.save(model, tmp_path / "model.cfm")
    loaded = cf.load(tmp_path / "model.cfm")
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert cf.verify(loaded, X, y)
    for k in range(3):
        for j in range(5):
            loaded.coef_ = model.coef_.copy()
            loaded.coef_[k, j] += 1e-4 * max(abs(model.coef_[k, j]), 0.1)
            assert not cf.verify(loaded, X, y)


def test_penalty_factors_of_squares_are_those_of_scaled_columns(rng):
    X, y, _ = classes(rng, k=3)
    factors = np.array([1.0, 4.0, 0.25, 1.0, 9.0])
    model = cf.LogisticRegression(alpha=0.05, penalty_factors=factors).fit(X, y)
    scaled = cf.LogisticRegression(alpha=0.05).fit(X / np.sqrt(factors), y)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.coef_, scaled.coef_ / np.sqrt(factors), rtol=1e-7, atol=1e-9)
    free = cf.LogisticRegression(alpha=0.05, penalty_factors=factors * (np.arange(5) > 1)).fit(X, y)
    assert free.certificate_.holds
    np.testing.assert_allclose(free.coef_.sum(axis=0), 0.0, atol=1e-9)
    state = SoftmaxWeights(free.coef_, free.intercept_)
    by_weight = slopes(X, y, np.ones(len(y)), state)[0]
    np.testing.assert_allclose(by_weight[:, :2], 0.0, atol=1e-12)


def test_bounds_by_name_hold_for_every_class_as_scipy_finds(rng):
    X, y, _ = classes(rng, d=3, k=3)
    model = cf.LogisticRegression(alpha=0.01, bounds={"x1": (-0.2, 0.1), "x2": "increasing"}).fit(X, y)
    assert model.certificate_.holds
    s = Strengths(0.01, 0.0, np.ones(3), np.array([-np.inf, -0.2, 0.0]), np.array([np.inf, 0.1, np.inf]))

    def f(v):
        state = SoftmaxWeights(v[:9].reshape(3, 3), v[9:])
        by_weight, by_intercept = slopes(X, y, np.ones(len(y)), state)
        value = float(objective(X, y, np.ones(len(y)), state, s))
        return value, np.append((by_weight + 0.01 * state.coef).ravel(), by_intercept)

    box = [(low, high) for _ in range(3) for low, high in zip(s.lower, s.upper, strict=True)] + [(None, None)] * 3
    theirs = minimize(f, np.zeros(12), jac=True, bounds=box, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    np.testing.assert_allclose(model.coef_, theirs.x[:9].reshape(3, 3), atol=1e-5)
    assert (model.coef_ == np.array([9, 0.1, 9])).any() and (model.coef_[:, 2] == 0).any()


def test_two_classes_beside_free_columns_are_logistic_regression(rng):
    X, y, weight = classes(rng, k=2)
    s = strengths(5, alpha=0.05, factors=[0, 1, 1, 0, 1])
    state = solve(SoftmaxTask(Memory(X, y, weight), 2, s, True), 1000).state
    one = cf.LogisticRegression(alpha=0.05, l1_ratio=1.0, penalty_factors=s.factors).fit(X, y, weight)
    np.testing.assert_allclose(state.coef[1] - state.coef[0], one.coef_[0], rtol=1e-7, atol=1e-9)


def test_classes_that_a_free_column_separates_are_an_exact_fit_and_claim_no_more(rng):
    X = rng.normal(size=(60, 3))
    y = np.digitize(X[:, 0], [-0.4, 0.4])
    found = cf.LogisticRegression(alpha=0.1, l1_ratio=1.0, penalty_factors=[0, 1, 1]).fit(X, y).certificate_
    assert "null model" in found.claim


@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_many_columns_are_fitted_on_working_sets(rng, is_sparse, is_free):
    X = rng.normal(size=(120, 300)) * (rng.random((120, 300)) < 0.3)
    y = (X[:, :3] + rng.gumbel(size=(120, 3))).argmax(axis=1)
    factors = np.append(0.0 if is_free else 1.0, np.ones(299))
    model = cf.LogisticRegression(alpha=0.05, l1_ratio=1.0, penalty_factors=factors)
    model.fit(sp.csr_array(X) if is_sparse else X, y)
    assert model.certificate_.holds and 0 < model.certificate_.rank < 60
    kept = model.coef_.any(axis=0)
    small = cf.LogisticRegression(alpha=0.05, l1_ratio=1.0, penalty_factors=factors[kept]).fit(X[:, kept], y)
    np.testing.assert_allclose(small.coef_, model.coef_[:, kept], atol=1e-7)


def test_what_has_no_answer_is_refused(rng):
    X, y, _ = classes(rng, k=3)
    with pytest.raises(ValueError, match="takes no L1 penalty and no bounds"):
        cf.LogisticRegression(alpha=0.1, l1_ratio=1.0, solver="lbfgs").fit(X, y)
    with pytest.raises(ValueError, match=r"start has 1 for 'x0', outside its bounds -0\.5 to 0\.5"):
        cf.LogisticRegression(alpha=0.1, bounds=(-0.5, 0.5), start=np.ones((3, 6))).fit(X, y)


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_path_starts_without_weights_and_holds_the_single_fits(rng, is_wide):
    X, y, _ = classes(rng, k=3)
    factors = np.array([1.0, 0.0, 2.0, 1.0, 1.0])
    if is_wide:
        X, factors = np.hstack([X, rng.normal(size=(200, 150))]), np.append(factors, np.ones(150))
    model = cf.LogisticRegression(l1_ratio=1.0, penalty_factors=factors)
    path = model.path(X, y, n_alphas=6)
    assert path.coef.shape == (6, 3, X.shape[1]) and path.intercept.shape == (6, 3)
    assert not path.coef[0][:, factors > 0].any() and path.coef[1][:, factors > 0].any()
    assert (np.diff(path.n_nonzero) >= 0).all() and path.n_nonzero[0] == 1
    for alpha, coef, intercept in list(zip(path.alphas, path.coef, path.intercept, strict=True))[:3]:
        alone = cf.LogisticRegression(alpha, 1.0, penalty_factors=factors).fit(X, y)
        assert alone.certificate_.holds
        z, theirs = X @ coef.T + intercept, X @ alone.coef_.T + alone.intercept_
        np.testing.assert_allclose(z - z[:, :1], theirs - theirs[:, :1], atol=1e-5)
    given = model.path(X, y, alphas=[path.alphas[3], path.alphas[1]])
    np.testing.assert_allclose(given.coef, path.coef[[3, 1]], atol=1e-5)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_far_states_and_small_columns_are_judged_without_a_fault_of_their_own(rng):
    # From the hunt: no row has a chance of a class; a factor of 0 times the square of a unit beyond float64.
    X, y, weight = classes(rng)
    task = SoftmaxTask(Memory(X, y, weight), 4, strengths(5), True)
    assert not certify(task, SoftmaxWeights(np.zeros((4, 5)), np.array([-2000.0, 0.0, 0.0, 2000.0])), TOL).holds
    model = cf.LogisticRegression(alpha=1.0, penalty_factors=[0.0, 1.0]).fit(
        X[:12, :2] * [1e-160, 1.0], np.arange(12) % 3
    )
    assert model.certificate_.holds


def test_a_bound_is_near_the_excess_of_a_moved_state(rng):
    # From the point that a Newton step leads to: the gap of the state itself is of first order in the move.
    X, y, weight = classes(rng)
    s = strengths(5, alpha=0.05)
    task = SoftmaxTask(Memory(X, y, weight), 4, s, True)
    best = solve(task, 1000).state
    coef = np.where(best.coef == 0, 0.0, best.coef * (1 + 1e-2 * rng.normal(size=best.coef.shape)))
    moved = SoftmaxWeights(coef, best.intercept)
    value = float(objective(X, y, weight, moved, s))
    excess = value - float(objective(X, y, weight, best, s))
    assert excess < certify(task, moved, TOL).value * value < 1.1 * excess


def test_scores_that_cancel_are_no_exact_fit():
    # Losses as computed are 3e-19; the true ones are 2e-12, for roundings of products exceed what is left of them.
    g = np.array([12191827311055544.0, 11978176895520440.0, 13830567377723688.0])
    X = np.column_stack([g, g + np.array([4, 0, -4]), g + np.array([0, 4, -4])])
    rows = [[-6.5929412841796875, 6.5929412841796875, 0.0], [-6.819018363952637, 0.0, 6.819018363952637]]
    w = [*rows, [12.291340827941895, -6.110761642456055, -6.18057918548584]]
    model = cf.LogisticRegression(alpha=1e-60, l1_ratio=0.5, fit_intercept=False).fit(X, [0, 1, 2])
    model.coef_ = np.array(w)
    z = [[float(sum(Fraction(a) * Fraction(b) for a, b in zip(x, one, strict=True))) for one in w] for x in X.tolist()]
    losses = [np.log1p(sum(np.exp(other - own[k]) for j, other in enumerate(own) if j != k)) for k, own in enumerate(z)]
    found = model.certify(X, [0, 1, 2])
    assert not found.is_exact_fit and np.mean(losses) > 1e-14 * np.log(3)
    assert not found.holds
