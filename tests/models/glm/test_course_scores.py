"""The course's own claims on logistic regression and generalised linear models (C1, C2, C6) and its worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as SklearnLogistic

import certifit as cf
from certifit.models.folds import ClassState


def with_weights(X, weights, intercept, **options):
    """A fitted model whose weights are then those of the example."""
    model = cf.LogisticRegression(**options).fit(X, np.arange(len(X)) % 2)
    assert model.coef_.shape == (1, len(weights))
    model.coef_, model.intercept_ = np.array([weights]), np.array([intercept])
    return model


def test_the_boundary_of_minus_three_one_one_is_the_line_on_which_the_columns_sum_to_three(rng):
    model = with_weights(rng.normal(size=(10, 2)), [1.0, 1.0], -3.0)
    t = rng.uniform(-5, 5, size=50)
    line = np.column_stack([t, 3 - t])
    np.testing.assert_allclose(model.predict_proba(line), 0.5, atol=1e-15)
    assert (model.predict(line + 1e-6) == 1).all() and (model.predict(line - 1e-6) == 0).all()


def test_with_squares_of_the_columns_the_boundary_is_the_unit_circle_and_class_one_is_outside(rng):
    squares = cf.Functions([lambda X: X[:, 0], lambda X: X[:, 1], lambda X: X[:, 0] ** 2, lambda X: X[:, 1] ** 2])
    model = with_weights(rng.normal(size=(10, 2)), [0.0, 0.0, 1.0, 1.0], -1.0, basis=squares)
    angle = rng.uniform(0, 2 * np.pi, size=50)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(model.decision_function(circle), 0, atol=1e-15)
    assert (model.predict(1.001 * circle) == 1).all() and (model.predict(0.999 * circle) == 0).all()
    assert model.predict([[1.0, 0.0]])[0] == 0  # on the circle: the score is 0, and that is class 0


@pytest.mark.parametrize(
    "model",
    [
        cf.LogisticRegression(), cf.LinearSVC(), cf.Perceptron(), cf.OneVsRestClassifier(cf.LogisticRegression()),
        SklearnLogistic(),
    ],
    ids=lambda model: f"{type(model).__module__.split('.')[0]} {type(model).__name__}",
)  # fmt: skip
def test_a_score_of_exactly_0_is_the_first_class_and_any_above_it_the_second(model):
    model = clone(model).fit([[0.0], [3.0], [1.0], [2.0]], ["a", "b", "a", "b"])
    inner = model.estimators_[0] if hasattr(model, "estimators_") else model
    inner.coef_, inner.intercept_ = np.array([[1.0]]), np.zeros(1)
    assert list(model.predict([[0.0], [1e-17], [-1e-17]])) == ["a", "b", "a"]


def test_folds_mean_the_class_that_predict_means_where_both_are_as_probable():
    class Scored:
        def mapped_scores(self, rows):
            return rows

    scores = np.array([[0.0, 0.0], [0.0, 1e-17], [0.0, -1e-17], [2.0, 2.0]])
    log_proba = ClassState(Scored(), np.arange(2), 2).predicted(scores)
    assert log_proba.argmax(axis=1).tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(log_proba, np.log(0.5), rtol=1e-15)


def test_one_far_outlier_moves_the_boundary_of_least_squares_and_not_of_logistic_regression():
    x, y = np.arange(20.0)[:, None], (np.arange(20) >= 10).astype(float)
    y[[8, 11]] = [1.0, 0.0]  # not separable
    far_x, far_y = np.vstack([x, [[300.0]]]), np.append(y, 1.0)

    def boundaries(make, level):
        models = [make().fit(x, y), make().fit(far_x, far_y)]
        return [((level - np.ravel(m.intercept_)) / np.ravel(m.coef_))[0] for m in models]

    before, after = boundaries(cf.LinearRegression, 0.5)
    assert abs(before - 9.5) < 0.1 and abs(after - before) > 3
    before, after = boundaries(lambda: cf.LogisticRegression(alpha=0.0), 0.0)
    assert abs(before - 9.5) < 0.1 and abs(after - before) < 1e-6


def test_the_squared_cost_through_a_sigmoid_is_seen_not_to_be_convex_and_the_log_loss_is(rng):
    def p(z):
        return 1 / (1 + np.exp(-z))

    squared = cf.Loss(lambda y, z: (y - p(z)) ** 2 / 2, lambda y, z: (p(z) - y) * p(z) * (1 - p(z)), mean=p)
    log_loss = cf.Loss(lambda y, z: np.logaddexp(0, z) - y * z, lambda y, z: p(z) - y, mean=p)
    y = np.array([0.0, 1.0])
    assert log_loss.checked(y).is_convex
    seen = squared.checked(y)
    assert not seen.is_convex and "is not convex: at y = 0 its slope falls" in seen.refutation
    z = np.array([1.0, 5.0])  # a chord below the curve
    ends, middle = squared.value(np.zeros(2), z), squared.value(np.zeros(1), np.array([3.0]))
    assert middle[0] > ends.mean()
    X = rng.normal(size=(60, 2))
    target = (X[:, 0] + rng.normal(size=60) > 0).astype(float)
    fit = cf.GLM(squared, solver="lbfgs").fit(X, target)
    assert "no proof" in str(fit.certificate_) and "elsewhere" in str(fit.certificate_)


MEANS = {
    "bernoulli": lambda z: 1 / (1 + np.exp(-z)),
    "poisson": np.exp,
    "gaussian": lambda z: z,
}


@pytest.mark.parametrize("family", MEANS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_rule_learns_every_family_with_its_canonical_link(family, rng):
    """w += step (y - h(x)) x, row after row."""
    X = rng.normal(size=(30, 3))
    y = {"bernoulli": rng.integers(0, 2, 30), "poisson": rng.poisson(2.0, 30), "gaussian": rng.normal(size=30)}[family]
    y, step = y.astype(float), 0.03
    rule = cf.SGD(step=step, schedule="constant", shuffle=False)
    model = cf.GLM(family, solver=rule, max_iter=1, fit_intercept=False).fit(X, y)
    w = np.zeros(3)
    for row, target in zip(X, y, strict=True):
        w += step * (target - MEANS[family](row @ w)) * row
    np.testing.assert_allclose(model.coef_, w, rtol=1e-12, atol=1e-14)


def test_the_summary_says_whose_odds_it_is_of(rng):
    X = rng.normal(size=(60, 1))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "good", "bad")
    text = " ".join(str(cf.LogisticRegression(alpha=0.0).fit(X, y).summary()).split())
    assert "Coefficients are of the log-odds of y = 'good' against 'bad'." in text


@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_alpha_from_C_gives_the_optimum_of_scikit_learn(C, rng):
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200) > 0
    weight = rng.uniform(0.5, 2.0, size=200)
    own = cf.LogisticRegression(alpha=cf.alpha_from_C(C, weight.sum())).fit(X, y, weight)
    other = SklearnLogistic(C=C, solver="newton-cholesky", tol=1e-12).fit(X, y, weight)
    np.testing.assert_allclose(own.coef_, other.coef_, rtol=1e-8)


@pytest.mark.parametrize("C, n", [(0.0, 10), (-1.0, 10), (1.0, 0), (1.0, np.inf)])
def test_alpha_from_C_refuses_what_no_C_or_number_of_rows_can_be(C, n):
    with pytest.raises(ValueError, match=r"C must be|n must be"):
        cf.alpha_from_C(C, n)


def test_a_run_that_was_stopped_early_is_not_blamed_on_flat_columns(rng):
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.logistic(size=200) > 0
    with pytest.warns(ConvergenceWarning, match="too far from one for a bound") as told:
        cf.LogisticRegression(solver=cf.GradientDescent(step=1e-3), max_iter=2).fit(X, y)
    assert "flat" not in str(told[0].message) and "max_iter" in str(told[0].message)


def test_three_classes_under_a_penalty_are_told_to_fit_without_it(rng):
    model = cf.LogisticRegression().fit(rng.normal(size=(60, 2)), np.arange(60) % 3)
    with pytest.raises(ValueError, match=r"under a penalty.* Use LogisticRegression\(alpha=0\)"):
        model.summary()


@pytest.mark.parametrize("model", [cf.GLM("bernoulli"), cf.PoissonRegressor(), cf.Ridge()])
def test_labels_given_to_a_regressor_lead_to_a_classifier(model, rng):
    with pytest.raises(ValueError, match=r"y must be numbers: .*'a'.* use a classifier, as LogisticRegression"):
        model.fit(rng.normal(size=(4, 2)), np.array(["a", "b", "a", "b"]))
