"""Near-copies, constant columns and far offsets against exact rationals: the sentence is true of the numbers given."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from folding import fold_squares

import certifit as cf
from certifit.data.source import Memory
from certifit.models.least_squares.certificate import certify
from certifit.models.least_squares.dual import least_squares_task
from certifit.models.least_squares.normal_equations import Weights

pytestmark = pytest.mark.filterwarnings("ignore:NOT certified")


def rationals(array):
    return [[Fraction(float(v)) for v in row] for row in np.atleast_2d(array)]


class Truth:
    """sum_i w_i (y_i - b - x_i'v)^2 + sum_w alpha |v|^2 and its minimum over all v and b, exactly; rank may be less."""

    def __init__(self, X, y, weight=None, alpha=0.0, fit_intercept=True):
        n = len(y)
        ones = [[Fraction(1)] * int(fit_intercept)] * n
        self.rows = [a + b for a, b in zip(ones, rationals(X), strict=True)]
        self.y = rationals(y)[0]
        self.w = [Fraction(1)] * n if weight is None else rationals(weight)[0]
        self.offset, self.pull = int(fit_intercept), sum(self.w) * Fraction(alpha)

    def objective(self, state):
        v = [Fraction(float(value)) for value in state]
        residuals = [
            t - sum(a * b for a, b in zip(row, v, strict=True)) for row, t in zip(self.rows, self.y, strict=True)
        ]
        squares = sum(w * r * r for w, r in zip(self.w, residuals, strict=True))
        return squares + self.pull * sum(value * value for value in v[self.offset :])

    def minimum(self, columns=None):
        """Over some of the columns (the intercept is one where there is one)."""
        at = list(range(len(self.rows[0]))) if columns is None else columns
        right = [self._dot(j, self.y) for j in at]
        own = [self.pull if j >= self.offset else Fraction(0) for j in at]
        system = [[self._dot(j, [row[k] for row in self.rows]) for k in at] for j in at]
        for i, pull in enumerate(own):
            system[i][i] += pull
        solution = _solved([[*row, b] for row, b in zip(system, right, strict=True)])
        whole = sum(w * t * t for w, t in zip(self.w, self.y, strict=True))
        return whole - sum(a * b for a, b in zip(solution, right, strict=True))

    def null(self):
        return Truth([[]] * len(self.y), [float(t) for t in self.y], self.w, 0.0, bool(self.offset)).minimum()

    def excess(self, state, columns=None):
        """Relative to the objective, or to the null model's where that is 1e14 times as large."""
        found, null = self.objective(state), self.null()
        unit = null if found * 10**14 < null else found
        left = found - self.minimum(columns)
        return left / unit if left else Fraction(0)

    def _dot(self, j, values):
        return sum(w * row[j] * v for w, row, v in zip(self.w, self.rows, values, strict=True))


def _solved(system):
    """A solution of a consistent system by elimination; unknowns without a pivot are 0."""
    n = len(system)
    pivots = []
    for j in range(n):
        free = [i for i in range(n) if i not in pivots and system[i][j]]
        if not free:
            pivots.append(None)
            continue
        pivots.append(free[0])
        for i in range(n):
            if i != free[0] and system[i][j]:
                factor = system[i][j] / system[free[0]][j]
                system[i] = [a - factor * b for a, b in zip(system[i], system[free[0]], strict=True)]
    return [Fraction(0) if i is None else system[i][n] / system[i][j] for j, i in enumerate(pivots)]


def state_of(model):
    return [*([model.intercept_] if model.fit_intercept else []), *model.coef_]


def said(certificate):
    return Fraction(certificate.value if certificate.literal is None else certificate.literal)


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(2, 12))
    return u, v, u + v + 0.1 * rng.normal(size=12)


def test_a_near_copy_is_not_called_redundant(pair):
    u, v, y = pair
    X = np.c_[u, u + 1e-14 * v]
    model = cf.LinearRegression().fit(X, y)
    found, true = model.certificate_, Truth(X, y).excess(state_of(model))
    assert true > 0.5 and not found.holds and found.literal is None
    assert true <= said(found) <= true * Fraction(1.001)
    assert "x1 = x0 within" in found.sentences()[0] and "redundant (rank" not in str(found)
    assert not cf.verify(model, X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_whole_numbers_beyond_2_48_are_fitted_exactly(fit_intercept):
    rng = np.random.default_rng(0)
    a, z = rng.integers(-31, 32, size=(2, 12)).astype(float)
    X = np.c_[a, a * 2.0**48 + z]
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, 5 * z)
    assert model.certificate_.holds and model.certificate_.is_exact_fit
    assert model.coef_.tolist() == [-5 * 2.0**48, 5.0]
    assert Truth(X, 5 * z, fit_intercept=fit_intercept).objective(state_of(model)) == 0


def test_a_column_that_differs_in_a_light_row_counts(pair):
    u, v, y = pair
    X = np.c_[u, v, u]
    X[3, 2] += 1
    for light in (1e-30, 1e-40):
        weight = np.ones(12)
        weight[3] = light
        model = cf.LinearRegression().fit(X, y, weight)
        assert Truth(X, y, weight).excess(state_of(model)) <= said(model.certificate_)


@pytest.mark.parametrize("alpha", [1e-40, 1e-33, 1e-30, 1e-27])
def test_a_tiny_penalty_beside_copies_is_minimised_as_it_stands(pair, alpha):
    u, v, y = pair
    for X in (np.c_[u, u + 1e-14 * v], np.c_[u, u], np.c_[u, v, u + 2 * v]):
        model = cf.Ridge(alpha).fit(X, y)
        true = Truth(X, y, None, alpha).excess(state_of(model))
        assert true <= said(model.certificate_) <= true * Fraction(1.001) + Fraction(1, 10**4)
    same = cf.Ridge(alpha).fit(np.c_[u, u], y)
    assert same.certificate_.holds and same.certificate_.literal is None


def test_columns_repeated_up_to_rounding_are_treated_as_exact_in_so_many_words(pair):
    u, v, y = pair
    X = np.c_[u, v, u + 2 * v]
    model = cf.LinearRegression().fit(X, y)
    found, truth = model.certificate_, Truth(X, y)
    assert found.holds and found.literal is not None
    assert truth.excess(state_of(model), [0, 1, 2]) <= Fraction(found.value)
    assert truth.excess(state_of(model)) <= Fraction(found.literal)
    first = found.sentences()[0]
    assert first.startswith("Converged: treating x2 = x0 + 2 x1 as exact, ")
    assert f"Taken literally, the data allow up to {found.literal:.1e} less." in first


@pytest.mark.parametrize("times", [3, 7, 1000])
def test_relations_with_fractions_are_exact(times):
    rng = np.random.default_rng(1)
    k = rng.integers(-99, 99, size=400).astype(float)
    X = np.c_[times * k, rng.normal(size=400), k]
    model = cf.LinearRegression().fit(X, rng.normal(size=400))
    assert model.certificate_.holds and model.certificate_.literal is None
    assert model.certificate_.dependent


def test_dummies_of_all_levels_are_an_exact_relation():
    rng = np.random.default_rng(1)
    X = np.eye(5)[rng.integers(0, 5, 300)]
    found = cf.LinearRegression().fit(X, rng.normal(size=300)).certificate_
    assert found.holds and found.literal is None and found.dependent == ("x4 = -x0 - x1 - x2 - x3 + 1",)


def test_the_objective_itself_is_what_relative_means(pair):
    u, v, _ = pair
    X, y = u[:, None], 1e12 + 0.01 * (u + v)
    model = cf.LinearRegression().fit(X, y)
    true = Truth(X, y).excess(state_of(model))
    assert true > 1e-7 and not model.certificate_.holds
    assert true <= said(model.certificate_) <= true * Fraction(1.001)
    assert "Subtract a constant near 1e+12 from the target." in model.certificate_.sentences()[0]
    assert cf.LinearRegression().fit(X, y - 1e12).certificate_.holds


@pytest.mark.parametrize("alpha", [0.0, 1e-30, 1e-14, 1.0])
@pytest.mark.parametrize("constant", [1e10, 1e150, 0.1, 3.0])
def test_a_constant_column_beside_an_intercept_has_weight_0(pair, constant, alpha):
    u, _, y = pair
    X = np.c_[u, np.full(12, constant)]
    model = cf.Ridge(alpha).fit(X, y)
    assert abs(model.coef_[1] * constant) < 1e-15
    assert model.certificate_.holds
    assert Truth(X, y, None, alpha).excess(state_of(model)) <= said(model.certificate_)


def test_digits_are_claimed_only_for_what_every_minimiser_shares(pair):
    _, _, y = pair
    rng = np.random.default_rng(5)
    square = cf.LinearRegression().fit(rng.normal(size=(4, 4)), y[:4]).certificate_
    assert max(square.digits) == 0
    constants = cf.LinearRegression().fit(np.c_[rng.normal(size=(12, 1)), np.full((12, 1), 7.0)], y).certificate_
    digits = dict(zip(constants.names, constants.digits, strict=True))
    assert digits["intercept"] == digits["x1"] == 0 and digits["x0"] > 8


@pytest.mark.parametrize("weight", [1e199, 1e-199, 1.0])
@pytest.mark.parametrize("size", [1e83, 1e-83, 1e150])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_heavy_weights_and_large_targets_are_fitted(n, size, weight):
    X, y = np.arange(4.0)[:n, None], np.array([1.0, 2, 0, 1])[:n] * size
    for model in (cf.LinearRegression(), cf.Ridge(0.1), cf.LinearRegression(fit_intercept=False)):
        model.fit(X, y, np.full(n, weight))
        assert model.certificate_.holds and str(model.certificate_)


@pytest.mark.parametrize("alpha", [0.0, 1e-35, 1e-20])
@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("distance", [1e-8, 1e-12, 1e-14, 1e-15, 1e-16])
@pytest.mark.slow
def test_no_state_near_a_near_copy_is_praised_too_much(distance, offset, alpha):
    rng = np.random.default_rng(7)
    u, v, t = rng.normal(size=(3, 8))
    X = np.c_[u + offset, t, u + offset + distance * max(offset, 1) * v]
    y = u + v + 0.1 * rng.normal(size=8)
    task, truth = least_squares_task(Memory(X, y), alpha, True), Truth(X, y, None, alpha)
    start = np.array(state_of(cf.Ridge(alpha).fit(X, y)))
    for size in (0.0, 1e-16, 1e-10, 1e-4):
        state = start * (1 + size * rng.normal(size=4))
        found = certify(task, Weights(state[1:], float(state[0])), 1e-8)
        assert truth.excess(state) <= said(found)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_fewer_rows_than_columns_only_exact_relations_among_rows_count(fit_intercept):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4, 6))
    X[3] = X[1]
    y = rng.normal(size=4)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.holds and not model.certificate_.is_exact_fit
    assert Truth(X, y, None, 0.0, fit_intercept).excess(state_of(model)) <= said(model.certificate_)
    X[3] += 1e-15 * rng.normal(size=6)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert Truth(X, y, None, 0.0, fit_intercept).excess(state_of(model)) <= said(model.certificate_)


def test_fold_scores_are_those_of_the_exact_minimum_where_columns_are_near_copies():
    from certifit.data.cells import ByRow, Splits

    rng = np.random.default_rng(2)
    u, v = rng.normal(size=(2, 24))
    X, y = np.c_[u, u + 1e-9 * v], u + v + 0.1 * rng.normal(size=24)
    splits = Splits.folds(ByRow(3, 0))
    path = fold_squares(cf.LinearRegression(), Memory(X, y), [splits], [{}])
    cells = splits.cells.of(Memory(X, y).block)
    for k in range(3):
        own = Truth(X[cells != k], y[cells != k])
        assert path.train[0, k] == pytest.approx(float(own.minimum()), rel=1e-8)


def test_nothing_warns_for_an_ordinary_fit(pair):
    u, v, y = pair
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf.LinearRegression().fit(np.c_[u, v, u + 2 * v], y)
