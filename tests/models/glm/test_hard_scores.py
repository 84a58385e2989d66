"""Claims on hard rows: a certificate of a loss of scores is never below the true excess, the truth in 80 digits."""

from __future__ import annotations

import copy
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.mathematics.families import NegativeBinomial

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def eighty_digits():
    before = getcontext().prec
    getcontext().prec = 80
    yield
    getcontext().prec = before


def logistic(y, z):
    p = 1 / (1 + (-z).exp())
    return (1 + z.exp()).ln() - y * z, p - y, p * (1 - p)


def gamma(y, z):
    u = y.ln() - z
    return u.exp() - 1 - u, 1 - u.exp(), u.exp()


def objective(loss, X, y, strengths, point, l1):
    """Value, gradient and Hessian at a point, in Decimal numbers; the intercept is a column of ones."""
    size, n = len(point), Decimal(len(y))
    value = sum(s / 2 * p * p for s, p in zip(strengths, point, strict=True))
    value += sum(Decimal(l1) * abs(p) for p in point)
    slope = [s * p + Decimal(l1) * int(p > 0) for s, p in zip(strengths, point, strict=True)]
    matrix = [[strengths[i] if i == j else Decimal(0) for j in range(size)] for i in range(size)]
    for row, target in zip(X, y, strict=True):
        one, first, second = loss(target, sum(a * p for a, p in zip(row, point, strict=True)))
        value += one / n
        for i in range(size):
            slope[i] += first * row[i] / n
            for j in range(size):
                matrix[i][j] += second * row[i] * row[j] / n
    return value, slope, matrix


def solved(matrix, right):
    """Gauss; the matrix is regular."""
    rows = [[*line, r] for line, r in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        best = max(range(i, len(rows)), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for k in range(len(rows)):
            if k != i:
                share = rows[k][i] / rows[i][i]
                rows[k] = [a - share * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [line[-1] / line[i] for i, line in enumerate(rows)]


def true_excess(loss, X, y, strengths, point, l1=0.0):
    """Relative, by Newton's method from the point; with an l1 penalty on weights > 0."""
    decimals = [[Decimal(float(v)) for v in line] for line in X]
    target, own = [Decimal(float(v)) for v in y], [Decimal(float(s)) for s in strengths]
    start = here = [Decimal(float(p)) for p in point]
    for _ in range(40):
        _, slope, matrix = objective(loss, decimals, target, own, here, l1)
        here = [p - s for p, s in zip(here, solved(matrix, slope), strict=True)]
    first, last = (objective(loss, decimals, target, own, at, l1)[0] for at in (start, here))
    return float((first - last) / first)


def test_a_penalty_on_a_redundant_column_does_not_hide_nearly_equal_ones(rng):
    x = rng.normal(size=40)
    X = np.column_stack([x, x + 1e-7 * rng.normal(size=40), np.full(40, 7.25)])
    y = (rng.random(40) < 0.5).astype(float)
    model = cf.LogisticRegression(alpha=1e-5, penalty_factors=[0.0, 1e-9, 10.0]).fit(X, y)
    point = np.append(model.coef_[0], model.intercept_)
    true = true_excess(logistic, np.column_stack([X, np.ones(40)]), y, [0.0, 1e-14, 1e-4, 0.0], point)
    assert true > 1e-5
    assert model.certificate_.value >= true
    assert not model.certificate_.holds


def test_a_penalty_too_weak_to_be_seen_in_the_hessian_is_paid_for(rng):
    x = rng.normal(size=30)
    X = np.column_stack([x, 4 * x])
    y = (rng.random(30) < 1 / (1 + np.exp(-x))).astype(float)
    model = cf.LogisticRegression(alpha=1e-14).fit(X, y)
    point = np.array([model.coef_[0, 0] + 4 * model.coef_[0, 1], 0.0, model.intercept_[0]])
    moved = cf.LogisticRegression(alpha=1e-14).fit(X, y)
    moved.coef_ = point[None, :2]
    true = true_excess(logistic, np.column_stack([X, np.ones(30)]), y, [1e-14, 1e-14, 0.0], point)
    assert true > 1e-16
    assert moved.certify(X, y).value >= true
    assert model.certificate_.holds


def test_terms_that_cancel_in_a_loss_are_part_of_the_rounding():
    X, y = np.array([[99998.6737]]), np.array([9992.26241875])
    model = cf.GammaRegressor(alpha=1e-5, l1_ratio=1.0, fit_intercept=False).fit(X, y)
    assert model.certificate_.value >= true_excess(gamma, X, y, [0.0], model.coef_, l1=1e-5)


def test_a_gap_is_never_negative():
    for count in range(1, 30):
        model = cf.PoissonRegressor(alpha=1.0, l1_ratio=0.5).fit(np.ones((1, 2)), [count * 1e12])
        assert model.certificate_.value >= 0


def test_relations_of_columns_of_very_different_size_are_told():
    x = np.array([1.0, 2.0, 4.0])
    X = np.column_stack([x * 2.0**-520, x * 2.0**520])
    model = cf.GammaRegressor(alpha=0.0).fit(X, [1.0, 2.0, 3.0])
    assert model.certificate_.dependent == ("x1 = a combination of x0",)
    assert Fraction(X[0, 1]) / Fraction(X[0, 0]) > Fraction(np.finfo(float).max)


def test_columns_of_zeros_alone_are_certified():
    model = cf.PoissonRegressor(alpha=0.01, fit_intercept=False).fit(np.zeros((5, 2)), [1.0, 0.0, 2.0, 1.0, 1.0])
    assert model.certificate_.holds
    assert not model.coef_.any()


def test_a_weak_penalty_of_softmax_is_paid_for(rng):
    x = rng.normal(size=60)
    X, y = np.column_stack([x, 4 * x]), np.digitize(x + 2 * rng.normal(size=60), [-1.0, 1.0])
    model, moved = (cf.LogisticRegression(alpha=1e-14).fit(X, y) for _ in range(2))
    moved.coef_ = np.column_stack([model.coef_ @ [1.0, 4.0], np.zeros(3)])  # the same scores
    more = 1e-14 / 2 * float(np.sum(moved.coef_**2) - np.sum(model.coef_**2))
    assert more > 1e-15
    assert moved.certify(X, y).value >= more / 2  # the objective is below log 3
    assert model.certificate_.holds


@pytest.mark.parametrize("size", [1e-20, 7.0, 1e6])
@pytest.mark.parametrize("model", [cf.PoissonRegressor, cf.GammaRegressor])
def test_a_constant_target_leaves_nothing_but_rounding_and_that_is_said(model, size, rng):
    X = rng.normal(size=(30, 3))
    with pytest.warns(ConvergenceWarning, match="in every row"):
        fit = model(alpha=0.0).fit(X, np.full(30, size))
    assert not fit.certificate_.holds
    assert np.allclose(fit.predict(X), size, rtol=1e-12, atol=0)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_a_loss_below_zero_is_measured_by_its_size(l1_ratio, rng):
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + rng.normal(size=50)
    loss = cf.Loss(lambda y, z: (z - y) ** 2 / 2 - 100, lambda y, z: z - y, lambda y, z: np.ones_like(z))
    model = cf.GLM(family=loss, alpha=0.01, l1_ratio=l1_ratio).fit(X, y)
    assert model.certificate_.holds
    assert model.certificate_.is_local


def rough_fits(rng):
    """Fits whose bound in float64 is mostly rounding: of targets far from 0, and of large counts."""
    X = rng.normal(size=(30, 2))
    z = X @ [0.3, -0.2]
    counts = np.round(1e8 * np.exp(z) * rng.uniform(0.5, 1, 30))
    return {
        "gaussian": (cf.GLM("gaussian"), X, 1e9 + z + rng.normal(size=30)),
        "negative binomial": (cf.GLM(cf.families.NegativeBinomial(alpha=30.0)), X, counts),
    }


@pytest.mark.parametrize("name", ["gaussian", "negative binomial"])
def test_rounding_in_a_bound_hides_no_changed_coefficient(name, rng):
    pytest.importorskip("flint")
    model, *data = rough_fits(rng)[name]
    model.fit(*data)
    exact = cf.verify(model, *data, exact=True)
    assert exact.holds and exact.exact.lower <= model.certificate_.value <= 1e-12
    for j in range(len(model.coef_)):
        other = copy.deepcopy(model)
        other.coef_[j] *= 1 + 1e-4
        excess = cf.verify(other, *data, exact=True).exact
        again = other.certify(*data)
        assert again.value >= excess.lower
        assert excess.lower < 1e-12 or not cf.verify(other, *data)


def test_squares_below_the_range_of_float64_are_not_zero():
    """The best weight is 0 and its objective 0: any other weight, however small, is all excess."""
    X, y, weight = np.array([[-1.5870825918568344e-158]]), np.array([1.0]), np.array([1.876669495999421e50])
    model = cf.GLM(NegativeBinomial(0.01), fit_intercept=False, alpha=1.0).fit(X, y, weight)
    assert model.coef_[0] == 0 or not model.certificate_.holds
    model.coef_ = np.array([5.28604691e-174])
    assert not model.certify(X, y, weight).holds


@pytest.mark.filterwarnings("ignore:.*NOT certified")
def test_a_share_of_columns_set_aside_whose_square_overflows_is_no_error(rng):
    """Scores are 1 / mu^2 = 1e200 and more."""
    X = rng.integers(-5, 6, size=(10, 3)).astype(float)
    X = np.c_[X, X[:, 0] / 3 - X[:, 2]]
    model = cf.GLM("inverse-gaussian", "inverse-squared").fit(X, 10.0 ** -rng.uniform(100, 107, size=10))
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("alpha", [1e-9, 1e-13])
@pytest.mark.slow
def test_a_weak_penalty_of_softmax_hides_no_changed_coefficient(alpha, standardize, rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    model = cf.LogisticRegression(alpha=alpha, standardize=standardize).fit(X, y)
    assert model.certificate_.value < 1e-14 and cf.verify(model, X, y, exact=True)
    for place in ((0, 0), (2, 1)):
        other = copy.copy(model)
        other.coef_ = model.coef_.copy()
        other.coef_[place] *= 1 + 1e-4
        proof = cf.verify(other, X, y, exact=True)
        assert proof.exact.lower <= other.certify(X, y).value <= 1.01 * proof.exact.upper
        assert not cf.verify(other, X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_penalty_in_standard_deviations_is_that_of_the_numbers_given(n_classes):
    """At an excess of 1e-28 the roundings of float64 standard deviations would show."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(6, 3)), np.arange(6) % n_classes
        model = cf.LogisticRegression(alpha=1e-12, standardize=True).fit(X, y)
        proof = cf.verify(model, X, y, exact=True).exact
        assert proof.fault or proof.lower <= model.certificate_.value


@pytest.mark.filterwarnings("ignore:.*NOT certified")
@pytest.mark.parametrize("link", [None, "probit", "cloglog"])
def test_a_share_met_by_its_mean_has_no_loss_of_rounding(link):
    """All weight but 1e-48 of it is on one row: the objective is what the others leave, not a rounding of this one."""
    X, y = np.full((4, 2), -1.5), np.array([0.5, 0.25, 0.75, 0.5])
    weight = np.array([1e-142, 1e-4, 2e-52, 2e-51])
    model = cf.GLM("bernoulli", link).fit(X, y, weight)
    proof = cf.verify(model, X, y, weight, exact=True).exact
    assert proof.lower <= model.certificate_.value
    loss = model._loss()
    apart = np.array([1e-3, 1e-6, 1e-9])
    scores = loss.score(0.25) + apart
    expected = loss.curvature(np.full(3, 0.25), scores) * apart**2 / 2
    np.testing.assert_allclose(loss.value(np.full(3, 0.25), scores), expected, rtol=5e-3, atol=1e-30)
