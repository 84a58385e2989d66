"""The bounds: their formulas, and the theorems checked by simulation where that is cheap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import minimum_norm
from scipy import stats

from certifit.evaluation import bounds

# ---- ridge stability ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 0.999])
@pytest.mark.parametrize("B", [0.5, 1.0, 3.0])
def test_rows_and_alpha_are_the_theorem(epsilon, B):
    bound = bounds.ridge_stability(epsilon=epsilon, B=B)
    assert bound.m - 1 < 150 * B**2 / epsilon**2 * (1 + 1e-12) and bound.m >= 150 * B**2 / epsilon**2 * (1 - 1e-12)
    assert bound.value == bound.m and bound.alpha == pytest.approx(2 * epsilon / (3 * B**2), rel=1e-15)
    back = bounds.ridge_stability(m=bound.m, B=B)
    assert back.value == back.epsilon <= epsilon * (1 + 1e-12)
    assert (
        "|x| <= 1" in bound.sentence and "no intercept" in bound.sentence and "not a measured error" in bound.sentence
    )


def test_too_few_rows_promise_nothing():
    bound = bounds.ridge_stability(m=150)
    assert math.isinf(bound.value) and math.isnan(bound.alpha) and "says nothing" in bound.sentence
    assert bounds.ridge_stability(m=151).value < 1


def ball(rng, d):
    X = rng.normal(size=(5000, d))
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)


DISTRIBUTIONS = {
    "shrunk": lambda rng: (np.ones((10, 1)), np.ones(10)),  # w = 1 = B fits exactly: all excess is due to alpha
    "signal": lambda rng: (X := ball(rng, 10), np.clip(X.sum(axis=1) / 4 + 0.2 * rng.normal(size=len(X)), -1, 1)),
    "noise": lambda rng: (X := ball(rng, 60), rng.choice([-1.0, 1.0], len(X))),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_ridge_keeps_the_promise_in_expectation(rng, name):
    """Rows are drawn from a finite population, so risks are exact; the mean excess of 20 fits is at most epsilon."""
    bound = bounds.ridge_stability(epsilon=0.2)
    X, y = DISTRIBUTIONS[name](rng)

    def risk(w):
        return np.mean((y - X @ w) ** 2) / 2

    def fitted(rows, alpha):
        A = X[rows].T @ X[rows] / len(rows) + alpha * np.eye(X.shape[1])
        return np.linalg.solve(A, X[rows].T @ y[rows] / len(rows))

    best, _ = minimum_norm(X, y, fit_intercept=False)  # over all w: no riskier than the best with |w| <= B
    draws = [rng.integers(0, len(X), bound.m) for _ in range(20)]
    excess = np.mean([risk(fitted(rows, bound.alpha)) for rows in draws]) - risk(best)
    assert 0 < excess <= bound.epsilon
    if name == "shrunk":  # the check has teeth: a penalty 20 times as strong breaks the promise
        assert risk(fitted(draws[0], 20 * bound.alpha)) > bound.epsilon


def test_the_curve_is_epsilon_over_m():
    bound = bounds.ridge_stability(epsilon=0.1, B=2.0)
    m, epsilon = bound.curve()
    assert epsilon == pytest.approx(2.0 * np.sqrt(150 / m), rel=1e-14) and m[0] == 600 and epsilon[0] == 1
    assert bound.curve([15_000])[1][0] == pytest.approx(0.2, rel=1e-14)


# ---- the others -----------------------------------------------------------------------------------------------------


def test_hard_margin_is_its_formula_capped_at_one():
    bound = bounds.hard_margin(margin=0.5, radius=2.0, m=100_000, delta=0.1)
    assert bound.value == pytest.approx(math.sqrt(4 * 16 / 1e5) + math.sqrt(2 * math.log(20) / 1e5), rel=1e-15)
    assert bound.sentence.startswith("If the distribution has this margin")
    vacuous = bounds.hard_margin(margin=0.01, radius=2.0, m=100, delta=0.1)
    assert vacuous.value == 1.0 and "says nothing" in vacuous.sentence


@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_a_perceptron_makes_no_more_updates_than_promised(rng, delta):
    X = rng.normal(size=(200, 3))
    u = np.array([1.0, -2.0, 0.5, 0.3])
    Z = np.column_stack([X, np.ones(200)])
    Z = Z[np.abs(Z @ u) > 0.4]
    Z *= np.sign(Z @ u)[:, None]  # y (x, 1)
    bound = bounds.perceptron(np.linalg.norm(Z, axis=1).max(), (Z @ u).min() / np.linalg.norm(u), delta)
    w, updates, changed = np.zeros(4), 0, True
    while changed:
        changed = False
        for z in Z:
            if z @ w <= delta:
                w, updates, changed = w + z, updates + 1, True
    assert 0 < updates <= bound.value


def test_the_perceptron_of_the_course_stays_under_the_augmented_bound():
    """x = 0.1 (+1), 0.05 (-1): hundreds of updates; a bound from the margin of the points themselves would be 16."""
    Z = np.array([[0.1, 1.0], [-0.05, -1.0]])
    direction = np.array([1.0, -0.075]) / math.hypot(1.0, 0.075)
    bound = bounds.perceptron(np.linalg.norm(Z, axis=1).max(), (Z @ direction).min())
    w, updates = np.zeros(2), 0
    while (Z @ w <= 0).any():
        for z in Z:
            if z @ w <= 0:
                w, updates = w + z, updates + 1
    assert 100 < updates <= bound.value


def test_adaboost_stays_under_its_product(rng):
    """Ten rounds of stumps: the training error after each is at most the product so far."""
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * X[:, 0] > 0, 1, -1)
    stumps = [s * np.where(X[:, j] > t, 1, -1) for j in (0, 1) for t in np.sort(X[:, j])[::5] for s in (-1, 1)]
    weight, vote, errors = np.full(150, 1 / 150), np.zeros(150), []
    for _ in range(10):
        d, best = min(((weight[h != y].sum(), i) for i, h in enumerate(stumps)), key=lambda pair: pair[0])
        alpha = math.log((1 - d) / d)
        errors.append(d)
        vote += alpha * stumps[best]
        weight = np.where(stumps[best] != y, weight * math.exp(alpha), weight)
        weight /= weight.sum()
        assert np.mean(vote * y <= 0) <= bounds.adaboost(errors).value + 1e-12
    assert bounds.adaboost(errors).value == pytest.approx(math.prod(2 * math.sqrt(d * (1 - d)) for d in errors))
    assert bounds.adaboost([0.5, 0.0]).value == 0.0


def test_held_out_is_clopper_pearson():
    bound = bounds.held_out(3, 50, 0.9)
    exact = stats.binomtest(3, 50).proportion_ci(0.9, method="exact")
    assert (bound.low, bound.high, bound.value) == pytest.approx((exact.low, exact.high, exact.high), rel=1e-10)
    assert "not independent" in bound.sentence and "has not seen" in bound.sentence


@pytest.mark.parametrize("m", [1, 2, 3, 10, 1000])
def test_the_left_out_share_is_its_power(m):
    assert bounds.left_out_share(m).value == pytest.approx((1 - 1 / m) ** m, rel=1e-12)


def test_the_left_out_share_nears_one_over_e():
    assert bounds.left_out_share(10**15).value == pytest.approx(1 / math.e, rel=1e-14)


def test_a_bound_is_no_float_and_says_what_it_is():
    bound = bounds.left_out_share(5)
    with pytest.raises(TypeError):
        float(bound)  # so that no scorer takes it for a score
    with pytest.raises(AttributeError):
        bound.value = 0.0
    assert bound.sentence in repr(bound)


@pytest.mark.parametrize(
    "call, message",
    [
        (bounds.ridge_stability, "Give epsilon or m"),
        (lambda: bounds.ridge_stability(0.1, 10), "Give epsilon or m"),
        (lambda: bounds.ridge_stability(1.0), "epsilon must be between 0 and 1"),
        (lambda: bounds.ridge_stability(0.1, B=0), "B must be a positive number"),
        (lambda: bounds.ridge_stability(m=0), "m must be a whole number >= 1"),
        (lambda: bounds.ridge_stability(m=10.5), "m must be a whole number >= 1"),
        (lambda: bounds.hard_margin(2.0, 1.0, 10, 0.1), "margin must be in"),
        (lambda: bounds.hard_margin(1.0, 1.0, 10, 1.0), "delta must be between 0 and 1"),
        (lambda: bounds.perceptron(1.0, 0.0), "margin must be in"),
        (lambda: bounds.perceptron(1.0, 0.5, -1), "delta must be >= 0"),
        (lambda: bounds.adaboost([]), "one or more numbers"),
        (lambda: bounds.adaboost([1.5]), "one or more numbers"),
        (lambda: bounds.held_out(5, 4), "0 <= errors <= n"),
        (lambda: bounds.held_out(0, 0), "n must be a whole number >= 1"),
        (lambda: bounds.left_out_share(0), "m must be a whole number >= 1"),
    ],
)
def test_what_no_theorem_covers_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
