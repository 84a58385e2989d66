"""Huber regression on rows where least squares fails: printed fits, peers, leverage."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from reference import huber_objective, own_huber_objective

import certifit as cf
from certifit.models.huber.model import HuberRegressor

RULES = ["joint", "mad", 1.0, 0.05, 50.0]


def classics(shared_data, name: str, target: str) -> tuple[np.ndarray, np.ndarray, list[str]]:
    path = shared_data / "classics_small" / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"{name} is not there")
    with path.open() as file:
        table = list(csv.DictReader(file))
    names = [column for column in table[0] if column != target]
    X = np.array([[float(row[column]) for column in names] for row in table])
    return X, np.array([float(row[target]) for row in table]), names


@pytest.mark.parametrize("scale", ["joint", "mad"])
def test_calls_wrongly_recorded_for_six_years_carry_least_squares_away_and_huber_less(shared_data, scale):
    X, y, _ = classics(shared_data, "phones", "calls")
    clean = (X[:, 0] < 64) | (X[:, 0] > 69)  # 1964 to 1969 (1970 in part) counted minutes, not calls
    truth = cf.LinearRegression().fit(X[clean], y[clean]).coef_[0]
    squares = cf.LinearRegression().fit(X, y).coef_[0]
    huber = HuberRegressor(scale=scale).fit(X, y)
    assert huber.certificate_.holds
    assert abs(squares - truth) > 2
    assert abs(huber.coef_[0] - truth) < abs(squares - truth)
    near = HuberRegressor(scale=0.1).fit(X, y)
    assert near.certificate_.holds
    assert abs(near.coef_[0] - truth) < 0.2 * abs(squares - truth)


# MASS::rlm, Huber's psi with k = 1.345 and the median scale, as printed in Venables and Ripley: weights, then scale
PRINTED = {
    "phones": ("calls", [-102.6222, 2.0414], 9.032),
    "stackloss": ("stack.loss", [-41.0265, 0.8294, 0.9261, -0.1278], 2.441),
}


def reweighted(X, y, accuracy, constant, most=50) -> tuple[np.ndarray, float]:
    """What rlm does: least squares with weights psi(r/s) / (r/s), until the residuals change by the accuracy."""
    A = np.column_stack([np.ones(len(y)), X])
    weights = np.linalg.lstsq(A, y, rcond=None)[0]
    for _ in range(most):
        r = y - A @ weights
        scale = float(np.median(np.abs(r)) / constant)
        root = np.sqrt(np.minimum(1.0, 1.345 * scale / np.maximum(np.abs(r), 1e-300)))
        weights = np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0]
        change = y - A @ weights - r
        if np.sqrt(change @ change / (r @ r)) <= accuracy:
            break
    return weights, scale


@pytest.mark.parametrize("name", PRINTED)
def test_the_printed_fits_of_mass_are_stops_on_the_way_to_ours(shared_data, name):
    target, printed, scale = PRINTED[name]
    X, y, _ = classics(shared_data, name, target)
    then, s = reweighted(X, y, 1e-4, 0.6745)  # its accuracy and its constant
    np.testing.assert_allclose(then, printed, atol=6e-5)
    assert s == pytest.approx(scale, abs=6e-4)
    model = HuberRegressor(1.345, scale="mad").fit(X, y)
    end, s = reweighted(X, y, 1e-15, 0.6744897501960817, most=5000)
    np.testing.assert_allclose([model.intercept_, *model.coef_], end, rtol=1e-10)
    assert model.scale_ == pytest.approx(s, rel=1e-10)
    np.testing.assert_allclose(then, end, rtol=2e-3)


CLASSICS = [("phones", "calls"), ("starsCYG", "log.light"), ("stackloss", "stack.loss"), ("hbk", "Y")]


@pytest.mark.parametrize("name, target", CLASSICS)
def test_classic_rows_have_the_joint_optimum_of_scikit_learn_or_a_lower_one(shared_data, name, target):
    sklearn = pytest.importorskip("sklearn.linear_model")
    X, y, _ = classics(shared_data, name, target)
    model = HuberRegressor().fit(X, y)
    # below such a slope its objective changes by less than its rounding, and its line search may end in an error
    peer = sklearn.HuberRegressor(alpha=0.0, tol=1e-3, max_iter=100_000).fit(X, y)
    ours, theirs = (
        own_huber_objective(model, X, y),
        huber_objective(model, X, y, peer.coef_, peer.intercept_, peer.scale_),
    )
    assert ours <= theirs * (1 + 1e-14)
    assert theirs == pytest.approx(ours, rel=2e-8)
    assert model.certificate_.value < 1e-13


@pytest.mark.parametrize("name, target", CLASSICS)
def test_classic_rows_have_the_median_scale_fit_of_statsmodels(shared_data, name, target):
    sm = pytest.importorskip("statsmodels.api")
    X, y, _ = classics(shared_data, name, target)
    model = HuberRegressor(scale="mad").fit(X, y)
    peer = sm.RLM(y, sm.add_constant(X), M=sm.robust.norms.HuberT(1.35)).fit(maxiter=10_000, tol=1e-14)
    np.testing.assert_allclose([model.intercept_, *model.coef_], peer.params, rtol=1e-10)
    assert model.scale_ == pytest.approx(peer.scale, rel=1e-10)


@pytest.mark.parametrize("scale", ["joint", "mad", 0.1])
def test_stack_loss_is_nearer_to_the_fit_without_its_four_outliers(shared_data, scale):
    X, y, _ = classics(shared_data, "stackloss", "stack.loss")
    clean = np.setdiff1d(np.arange(21), [0, 2, 3, 20])
    truth = cf.LinearRegression().fit(X[clean], y[clean]).coef_
    squares = np.abs(cf.LinearRegression().fit(X, y).coef_ - truth)
    huber = np.abs(HuberRegressor(scale=scale).fit(X, y).coef_ - truth)
    assert (huber <= squares).sum() >= 2
    assert huber[1] < squares[1] / 1.5  # water temperature suffers most


@pytest.mark.parametrize("scale", ["joint", "mad", 0.1])
def test_giant_stars_far_out_in_x_carry_huber_away_too_and_the_optimum_is_proven(shared_data, scale):
    X, y, _ = classics(shared_data, "starsCYG", "log.light")
    dwarfs = X[:, 0] > 3.6
    assert cf.LinearRegression().fit(X, y).coef_[0] < 0 < cf.LinearRegression().fit(X[dwarfs], y[dwarfs]).coef_[0]
    model = HuberRegressor(scale=scale).fit(X, y)
    assert model.certificate_.value < 1e-13  # the best fit by this loss, which bounds residuals and not leverage
    assert model.coef_[0] < 0
    assert HuberRegressor(scale=scale).fit(X[dwarfs], y[dwarfs]).coef_[0] > 1


def test_leverage_tells_of_the_giant_stars_and_residuals_do_not(shared_data):
    X, y, _ = classics(shared_data, "starsCYG", "log.light")
    giants = X[:, 0] < 3.6
    found = cf.LinearRegression().fit(X, y).influence(X, y)
    assert set(np.argsort(-found.leverage)[: giants.sum()]) == set(np.flatnonzero(giants))
    r = np.abs(y - HuberRegressor().fit(X, y).predict(X))
    assert not giants[np.argsort(-r)[:3]].any()


@pytest.mark.parametrize("name, target", CLASSICS)
@pytest.mark.parametrize("fixed", [0.5, 5.0])
def test_a_fixed_scale_agrees_with_statsmodels(shared_data, name, target, fixed):
    norms = pytest.importorskip("statsmodels.robust.norms")
    X, y, _ = classics(shared_data, name, target)
    model = HuberRegressor(scale=fixed).fit(X, y)
    # Its reweighting at this scale, from our answer, moves nothing: w_i = psi(r_i / s) / (r_i / s).
    A = np.column_stack([np.ones(len(y)), X])
    ours = np.array([model.intercept_, *model.coef_])
    root = np.sqrt(norms.HuberT(1.35).weights((y - A @ ours) / fixed))
    theirs = np.linalg.lstsq(A * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
