"""The certificate of least squares and ridge against exact arithmetic: never below the true excess, never a digit
more than there is."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from reference import Exact, digits, dot, rational

import certifit as cf
from certifit.data.source import Memory
from certifit.models.certificate import Certificate
from certifit.models.least_squares.certificate import certify
from certifit.models.least_squares.dual import DualLeastSquares, least_squares_task
from certifit.models.least_squares.normal_equations import Weights
from certifit.models.least_squares.solver import solve
from certifit.models.least_squares.task import LeastSquares
from certifit.statistics.residual import EXACT_FIT

TOLERANCE = 1e-8


def relative_excess(exact: Exact, state: Any, minimum: Fraction | None = None) -> Fraction:
    """(P - P*) / P, or over P(null model) where P is below 1e-14 of it: what the certificate must not understate."""
    v = rational(state)[int(exact.fit_intercept) :]
    squares = sum(w * r * r for w, r in zip(exact.weights, exact.residuals(state), strict=True))
    objective = squares + sum(exact.weights) * Fraction(exact.alpha) * dot(v, v)
    is_exact = objective < Fraction(EXACT_FIT) * exact.null_objective
    excess = objective - (exact.minimum if minimum is None else minimum)
    return excess / (exact.null_objective if is_exact else objective) if excess else Fraction(0)


def certified(task: Any, state: Any) -> Certificate:
    offset = int(task.fit_intercept)
    return certify(task, Weights(np.array(state[offset:]), float(state[0]) if offset else 0.0), TOLERANCE)


def perturbed(rng: np.random.Generator, state: Any, n_states: int) -> Iterator[Any]:
    """The state moved by 1e-17 to 1e-1 of each coefficient: all of them, or one."""
    for i in range(n_states):
        noise = 10.0 ** rng.integers(-17, 0) * rng.normal(size=len(state))
        if i % 3 == 0:
            noise[rng.permutation(len(state))[1:]] = 0.0
        yield state * (1 + noise)


FORMS = {"columns": (9, 3), "rows": (4, 6)}
ROWS = {
    "plain": lambda X: X,
    "far from zero": lambda X: X + 1e6,
    "very far from zero": lambda X: X + 1e8,
    "unlike columns": lambda X: X * 10.0 ** np.arange(-3, X.shape[1] - 3),
    "near dependent": lambda X: np.column_stack([X[:, :-1], X[:, 0] + 1e-4 * X[:, -1]]),
}
CASES = list(product(FORMS, ROWS, [0.0, 1e-7, 0.5], [True, False]))


@pytest.mark.parametrize("form, kind, alpha, fit_intercept", CASES)
@pytest.mark.slow
def test_the_value_is_never_below_the_true_excess(rng, form, kind, alpha, fit_intercept):
    n, d = FORMS[form]
    X, y = ROWS[kind](rng.normal(size=(n, d))), rng.normal(size=n) * 3 + 2
    weight = rng.random(n) if rng.random() < 0.5 else None
    exact = Exact(X, y, weight, alpha, fit_intercept)
    task = least_squares_task(Memory(X, y, weight), alpha, fit_intercept)
    assert isinstance(task, LeastSquares if form == "columns" else DualLeastSquares)
    minimum = Fraction(0) if form == "rows" and alpha == 0 else None  # fewer rows than columns: an exact fit
    start = solve(task).state
    state = np.array([start.intercept] * fit_intercept + list(start.coef))
    for moved in [state, *perturbed(rng, state, 48)]:
        found = certified(task, moved)
        true = relative_excess(exact, moved, minimum)
        assert Fraction(found.value) >= true
        assert 0 < found.rounding <= found.value


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("kind", ROWS)
def test_the_value_is_hardly_above_it_either(rng, kind, alpha):
    X, y = ROWS[kind](rng.normal(size=(9, 3))), rng.normal(size=9)
    exact, task = Exact(X, y, None, alpha), LeastSquares(Memory(X, y), alpha, True)
    solution = np.array([float(v) for v in exact.solution])
    for moved in perturbed(rng, solution, 30):
        true = float(relative_excess(exact, moved))
        assert certified(task, moved).value <= true * (1 + 1e-3) + 1e-20


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("excess, holds", [(10 * TOLERANCE, False), (2 * TOLERANCE, False), (TOLERANCE / 10, True)])
def test_a_state_scaled_to_an_excess_holds_iff_that_is_within_tol(rng, form, alpha, excess, holds):
    if form == "rows" and alpha == 0:
        pytest.skip("an exact fit has no objective to be relative to")
    X, y = rng.normal(size=FORMS[form]), rng.normal(size=FORMS[form][0])
    exact, task = Exact(X, y, None, alpha), least_squares_task(Memory(X, y), alpha, True)
    solution = np.array([float(v) for v in exact.solution])
    for _ in range(5):
        direction = rng.normal(size=len(solution))
        curvature = float(exact.excess(solution + direction))
        state = solution + direction * np.sqrt(excess * float(exact.minimum) / curvature)
        assert float(relative_excess(exact, state)) == pytest.approx(excess, rel=1e-3)
        assert certified(task, state).holds is holds


EXACT_FITS = {
    "a constant target": (np.arange(12.0).reshape(6, 2) ** 2, np.full(6, 5.1)),
    "a target of zeros": (np.arange(12.0).reshape(6, 2) ** 2, np.zeros(6)),
    "a line": (np.arange(6.0)[:, None], np.arange(6.0) * 3 + 1),
    "a line with roundings": (np.arange(6.0)[:, None] / 7, np.arange(6.0) / 7 * 0.3 + 0.1),
    "a line far from zero": (np.arange(6.0)[:, None] + 1e7, (np.arange(6.0) + 1e7) * 0.3),
    "as many rows as columns": (np.arange(9.0).reshape(3, 3) ** 2, np.array([1.0, -2, 0.5])),
    "fewer rows than columns": (np.arange(12.0).reshape(3, 4) ** 2, np.array([1.0, -2, 0.5])),
    "few rows, a constant target": (np.arange(12.0).reshape(3, 4) ** 2, np.full(3, 0.3)),
    "one row": (np.array([[1.0, 2.0, 3.0]]), np.array([0.7])),
    "one row, one column": (np.array([[3.0]]), np.array([0.7])),
    "columns of constants": (np.full((5, 2), 0.1), np.full(5, 0.7)),
    "columns of zeros": (np.zeros((5, 2)), np.arange(5.0)),
}


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.Ridge(0.1), cf.Ridge(0.0)], ids=str)
@pytest.mark.parametrize("name", EXACT_FITS)
@pytest.mark.slow
def test_an_exact_fit_is_certified(name, model, fit_intercept):
    X, y = EXACT_FITS[name]
    model = model.set_params(fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.holds
    assert model.certificate_.value > 0
    assert cf.verify(model, X, y)


def noisy(rng: np.random.Generator, noise: float) -> tuple[Any, Any]:
    X = rng.normal(size=(200, 4))
    return X, X @ [1.0, 0.0, -0.5, 2.0] + noise * rng.normal(size=200)


@pytest.mark.parametrize(
    "model", [cf.LinearRegression(), cf.LinearRegression(fit_intercept=False), cf.Ridge(0.3)], ids=str
)
@pytest.mark.parametrize("noise", [0.0, 0.1, 2.0, 10.0])  # R-squared 1 to 0.05
def test_a_nudge_of_any_coefficient_is_refused(rng, model, noise):
    X, y = noisy(rng, noise)
    model = model.fit(X, y)
    assert cf.verify(model, X, y)
    for place, proven in zip(range(-int(model.fit_intercept), 4), model.certificate_.digits, strict=True):
        changed = copy.deepcopy(model)
        # Relative, and absolute for what is not distinguishable from 0.
        if place < 0:
            changed.intercept_ += 1e-4 * (abs(model.intercept_) if proven else 1.0)
        else:
            changed.coef_[place] += 1e-4 * (abs(model.coef_[place]) if proven else 1.0)
        found = changed.certify(X, y)
        assert found.value > 10 * model.certificate_.value + found.rounding
        assert not cf.verify(changed, X, y)


@pytest.mark.parametrize("shape", [(5, 9), (9, 5)])
def test_a_nudge_is_refused_with_fewer_rows_than_columns_too(rng, shape):
    X, y = rng.normal(size=shape), rng.normal(size=shape[0])
    for model in (cf.LinearRegression().fit(X, y), cf.Ridge(0.3).fit(X, y)):
        assert cf.verify(model, X, y)
        for place in range(shape[1]):
            changed = copy.deepcopy(model)
            changed.coef_[place] *= 1 + 1e-4
            assert not cf.verify(changed, X, y)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("spread", [1.0, 1e-3, 1e-6, 1e-9])
def test_no_digit_is_claimed_that_is_not_there(rng, spread, alpha):
    for _ in range(10):
        X = rng.normal(size=(12, 3)) + rng.normal(size=3) * 10
        X[:, 2] = X[:, 0] + spread * X[:, 2]
        y = rng.normal(size=12)
        model = cf.Ridge(alpha).fit(X, y)
        exact = Exact(X, y, None, alpha).solution
        got = [model.intercept_, *model.coef_]
        for claimed, value, true in zip(model.certificate_.digits, got, exact, strict=True):
            assert 0 <= claimed <= 15
            assert claimed <= digits(value, true, 17)


@pytest.mark.parametrize("kind", ROWS)
def test_no_digit_is_claimed_for_a_state_that_is_off(rng, kind):
    X, y = ROWS[kind](rng.normal(size=(9, 3))), rng.normal(size=9)
    exact, task = Exact(X, y).solution, LeastSquares(Memory(X, y), 0.0, True)
    for moved in perturbed(rng, np.array([float(v) for v in exact]), 30):
        for claimed, value, true in zip(certified(task, moved).digits, moved, exact, strict=True):
            assert abs(Fraction(value) - true) <= Fraction(10.0**-claimed) * abs(Fraction(value))


def test_claimed_digits_allow_for_decimals_that_float64_cannot_hold(rng):
    """0.1 is not a float64: the claim must hold against the fit of the decimals as they were written."""
    for _ in range(10):
        tenths = rng.integers(-99, 100, size=(15, 3))
        targets = rng.integers(-99, 100, size=15)
        model = cf.LinearRegression().fit(tenths / 10, targets / 10)
        # Units of a tenth on both sides: the same weights, and a tenth of the intercept.
        written = Exact(tenths, targets).solution
        true = [written[0] / 10, *written[1:]]
        got = [model.intercept_, *model.coef_]
        for claimed, value, exact in zip(model.certificate_.digits, got, true, strict=True):
            assert claimed <= digits(value, exact, 17)
        assert min(model.certificate_.digits) > 8


def test_a_coefficient_that_is_zero_has_no_digit():
    X = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    found = cf.LinearRegression().fit(X, X[:, 0]).certificate_
    assert dict(zip(found.names, found.digits, strict=True))["x1"] == 0


def test_coefficients_in_a_relation_have_no_digit_and_others_do(rng):
    X = rng.integers(-9, 10, size=(30, 4)).astype(float)
    X[:, 3] = X[:, 0] - 2 * X[:, 1]
    found = cf.LinearRegression().fit(X, rng.normal(size=30)).certificate_
    of = dict(zip(found.names, found.digits, strict=True))
    assert of["x0"] == of["x1"] == of["x3"] == 0
    assert of["x2"] > 8


def test_the_least_term_of_an_exact_relation_moves_its_coefficient():
    """x1 = b x0 + c in three rows, for the rounding of one of them a c of 1e-34: the intercept can be any number."""
    a, b = 2777777777.777777, -2.123995154637852e-11
    X = np.array([[a, b], [a * 1e-8, b * 1e-8], [a, b]])
    constant = Fraction(b) - (Fraction(b) - Fraction(b * 1e-8)) / (Fraction(a) - Fraction(a * 1e-8)) * Fraction(a)
    assert 0 < abs(constant) < 1e-30
    found = cf.LinearRegression().fit(X, np.array([1.0, 3.0, 1.1])).certificate_
    assert max(found.digits) == 0


def test_no_digit_is_claimed_beyond_the_condition_that_can_be_borne(rng):
    X = rng.normal(size=(20, 2))
    X[:, 1] = X[:, 0] * (1 + 4e-14 * X[:, 1])
    found = cf.LinearRegression().fit(X, rng.normal(size=20)).certificate_
    assert max(found.digits) == 0


def test_an_estimator_warns_where_it_is_not_certified(rng):
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    with pytest.warns(Warning, match="NOT certified") as caught:
        model = cf.LinearRegression(tol=0.0).fit(X, y)
    assert not model.certificate_.holds
    assert caught[0].filename == __file__  # the line of the user, not one of ours


@pytest.mark.parametrize("shape", [(40, 5), (8, 30)])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_predictions_are_no_further_from_the_best_than_said(rng, shape, alpha):
    X, y = rng.normal(size=shape), 1e3 * rng.normal(size=shape[0])
    model = cf.Ridge(alpha).fit(X, y)
    best = model.predict(X)
    for size in (1e-6, 1e-2, 1.0):
        model.coef_ = model.coef_ + size * rng.normal(size=shape[1])
        moved = np.sqrt(np.mean((model.predict(X) - best) ** 2))
        said = model.certify(X, y)
        assert moved <= said.prediction_change + 1e-15 * np.abs(y).max()  # `best` is rounded too
        assert said.holds or f"{said.prediction_change:.2g} (root mean square" in said.sentences()[0]


@pytest.mark.parametrize("alpha", [1e10, 10.0, 1e-4])
@pytest.mark.parametrize("is_copied", [False, True])
def test_the_pull_of_a_penalty_counts_where_its_size_in_scaled_units_is_beyond_float64(rng, alpha, is_copied):
    # Columns of 1e-150 have no weight; one put there costs alpha w^2 / 2, though it moves no prediction.
    X = rng.integers(-5, 6, size=(12, 3)) * np.array([1.0, 1e-150, 1e-150])
    X[:, 2] = X[:, 1] if is_copied else X[:, 2]
    y = rng.normal(size=12)
    model = cf.Ridge(alpha=alpha).fit(X, y)
    assert model.certificate_.holds
    objective = np.mean((y - model.predict(X)) ** 2) + alpha * model.coef_ @ model.coef_
    for share in (1e-12, 1e-6, 1.0):
        other = copy.deepcopy(model)
        other.coef_[1] = np.sqrt(share * objective / alpha)
        true = share / (1 + share)
        found = other.certify(X, y)
        assert true * (1 - 1e-6) <= found.value <= 2 * true + 1e-14
        assert found.holds == (share < TOLERANCE)


@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_residuals_whose_squares_underflow_are_not_taken_for_none(target, fit_intercept):
    X = np.linspace(0, 1e-180, 24)[:, None] ** [1, 1] * [1.0, 0.5]
    X[::2, 1] = 0.0
    y = np.full(24, target if fit_intercept else 0.0)
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.holds
    model.coef_ = np.array([0.0, 1e-3])
    assert not model.certify(X, y).holds  # the best fit has no residual: the excess is all there is


@pytest.mark.parametrize("model", [cf.Ridge(alpha=None), cf.Ridge(alpha=0.5)])
def test_a_penalty_without_any_residual_is_an_excess_whatever_the_weight_of_the_row(model):
    X, y, weight = np.array([[1.0, 0.0, 0.0]]), np.array([7e-13]), np.array([1e200])
    model.fit(X, y, weight)
    assert model.certificate_.holds
    model.coef_[1] += 0.2
    assert not model.certify(X, y, weight).holds


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7])
def test_the_error_of_a_twofold_sum_of_many_rows_is_within_its_unit(value):
    X, y = np.full((5000, 1), value), np.full(5000, 1.0)
    task = LeastSquares(Memory(X, y), 0.0, False)
    state = Weights(np.array([value]), 0.0)
    at, s = task.residual_at(state), task.gram.scaling
    left = Fraction(1) - Fraction(value) ** 2
    true = 5000 * left**2 * Fraction(s.y_scale) ** 2 * Fraction(s.weight_scale)
    assert abs(Fraction(at.squares) - true) <= true * Fraction(2.0**-53) + 2 * Fraction(at.off) ** 2 + 2 * Fraction(
        at.off
    ) * Fraction(float(np.sqrt(at.squares)))
    assert at.unit >= 5000 * 2.0**-105


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_penalty_beyond_the_root_of_float64_is_not_lost_in_the_dual():
    pytest.importorskip("flint")
    X, y, w = np.array([[0.0] * 3, [1.0] * 3]), np.array([-0.66, 0.77]), np.array([1.5e-200, 7e-201])
    model = cf.Ridge(4.6e199).fit(X, y, w)
    model.intercept_ += 1e-5
    exact = cf.verify(model, X, y, w, exact=True).exact
    assert model.certify(X, y, w).value >= exact.lower > 1e-11
