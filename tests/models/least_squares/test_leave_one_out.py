"""Exact leave-one-out against n refits, rows that stand alone, and jackknife+ against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

import certifit as cf
from certifit.data.source import Memory
from certifit.models.least_squares.influence import leave_one_out


def refitted(X, y, weight, alpha, fit_intercept):
    errors = np.empty(len(y))
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        model = cf.Ridge(alpha, fit_intercept=fit_intercept)
        model.fit(X[keep], y[keep], None if weight is None else weight[keep])
        errors[i] = y[i] - model.predict(X[i : i + 1])[0]
    return errors


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weights", ["equal", "few", "many"])
@pytest.mark.parametrize("scales", ["like", "apart"])
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.2, None])
@pytest.mark.slow
def test_leaving_rows_out_is_refitting_without_them(rng, fit_intercept, weights, scales, alpha):
    X = rng.normal(size=(40, 4)) * (1.0 if scales == "like" else 10.0 ** np.array([-6, 0, 3, 8])) + 2.0
    y = X[:, 1] + rng.normal(size=40)
    weight = {"equal": None, "few": rng.integers(1, 4, 40) * 1.0, "many": rng.uniform(0.1, 3, 40)}[weights]
    left = leave_one_out(Memory(X, y, weight), [alpha], fit_intercept)
    errors = refitted(X, y, weight, alpha, fit_intercept)
    w = np.ones(40) if weight is None else weight
    assert left.squares[0] / left.y_scale**2 == pytest.approx(float(w @ errors**2), rel=1e-8)
    assert left.fourths[0] / left.y_scale**4 == pytest.approx(float(w @ errors**4), rel=1e-8)
    assert left.n_rows == 40 and left.n_alone == 0


def test_one_basis_for_all_alphas_gives_what_one_each_gives(rng):
    X, y = rng.normal(size=(500, 6)), rng.normal(size=500)
    alphas = [1e-3, 0.1, 4.0, None]
    together = leave_one_out(Memory(X, y), alphas, True)
    for a, alpha in enumerate(alphas):
        assert together.squares[a] == pytest.approx(leave_one_out(Memory(X, y), [alpha], True).squares[0], rel=1e-10)


def test_a_row_that_only_itself_determines_is_reported(rng):
    X = np.column_stack([rng.normal(size=30), np.zeros(30)])
    X[17, 1] = 1.0  # the only row with the second column
    y = rng.normal(size=30)
    left = leave_one_out(Memory(X, y), [0.0], True)
    assert left.alone == (17,) and left.n_alone == 1
    others = np.delete(refitted(X, y, None, 0.0, True), 17)
    assert left.squares[0] / left.y_scale**2 == pytest.approx(float(others @ others), rel=1e-9)
    assert left.weight[0] == 29


def test_a_row_of_weight_zero_is_no_row(rng):
    X, y, weight = rng.normal(size=(50, 3)), rng.normal(size=50), np.ones(50)
    weight[::5] = 0.0
    kept = weight > 0
    whole = leave_one_out(Memory(X, y, weight), [0.3], True)
    alone = leave_one_out(Memory(X[kept], y[kept]), [0.3], True)
    assert whole.squares[0] == pytest.approx(alone.squares[0], rel=1e-12) and whole.n_rows == 40


def test_jackknife_plus_is_its_definition(rng):
    X, y, new = rng.normal(size=(35, 3)), rng.normal(size=35), rng.normal(size=(6, 3))
    level, n = 0.8, 35
    centres, errors = np.empty((6, n)), refitted(X, y, None, 0.1, True)
    for i in range(n):
        keep = np.arange(n) != i
        centres[:, i] = cf.Ridge(0.1).fit(X[keep], y[keep]).predict(new)
    k = math.ceil(level * (n + 1))
    high = np.sort(centres + abs(errors), axis=1)[:, k - 1]
    low = np.sort(centres - abs(errors), axis=1)[:, n - k]
    got = cf.jackknife_plus(cf.Ridge(0.1), X, y, new, level)
    assert np.allclose(got, np.column_stack([low, high]), rtol=1e-9)


def test_too_few_rows_for_a_level_give_the_whole_line(rng):
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    assert np.isinf(cf.jackknife_plus(cf.LinearRegression(), X, y, X[:2], 0.95)).all()


def test_models_that_cannot_are_refused(rng):
    from sklearn.linear_model import Ridge

    with pytest.raises(TypeError, match="CrossValidated"):
        cf.jackknife_plus(Ridge(), np.ones((3, 1)), np.ones(3), np.ones((1, 1)))
