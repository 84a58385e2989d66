"""Losses of support vector machines wherever a loss is legal: formulas, conjugates, and what a proof is worth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import certifit as cf
from certifit import kernels

LOSSES = (cf.HingeLoss(), cf.SquaredHingeLoss(), cf.EpsilonInsensitiveLoss(0.3))
Z = np.linspace(-3, 3, 401)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_slopes_are_derivatives_and_conjugates_the_largest_differences(loss):
    for y in (0.0, 1.0):
        at = np.full_like(Z, y)
        value, slope = loss.value(at, Z), loss.slope(at, Z)
        left, right = np.diff(value)[:-1] / np.diff(Z)[:-1], np.diff(value)[1:] / np.diff(Z)[1:]
        assert (left - 1e-9 <= slope[1:-1]).all() and (slope[1:-1] <= right + 1e-9).all()
        if loss.has_curvature:
            step = np.diff(slope) / np.diff(Z)
            assert np.isclose(np.median(step[step > 0]), loss.curvature(at, Z).max())
        for u in np.linspace(-1, 1, 9):
            far = np.linspace(-50, 50, 20001)
            most = (u * far - loss.value(np.full_like(far, y), far)).max()
            stated = float(loss.conjugate(np.array([y]), np.array([u]))[0])
            assert most > 10 if np.isinf(stated) else np.isclose(most, stated, atol=1e-2)


def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    score = X @ [1.0, -1.0, 0.5] + rng.normal(size=200)
    return X, score


def test_the_squared_hinge_as_a_family_is_the_linear_machine():
    X, score = rows()
    family = cf.GLM(cf.SquaredHingeLoss(), alpha=0.05).fit(X, (score > 0).astype(float))
    machine = cf.LinearSVC(0.05).fit(X, score > 0)
    assert family.certificate_.holds and "proven" in str(family.certificate_)
    assert np.allclose(family.coef_, machine.coef_[0], rtol=1e-6)
    family.coef_ = family.coef_ * 1.01
    assert not family.certify(X, (score > 0).astype(float)).holds


@pytest.mark.parametrize("solver", ["lbfgs", cf.SGD(), cf.AveragedSGD()])
@pytest.mark.slow
def test_kinks_are_never_proven_closer_than_they_are(solver):
    X, score = rows()
    hinge = cf.LinearSVC(0.05, "hinge").fit(X, score > 0)
    tube = cf.SVR(0.05, epsilon=0.3, kernel=kernels.Linear(), tol=1e-8).fit(X, score)
    weights = tube.dual_coef_[:, 0] @ tube.support_vectors_
    off = np.maximum(np.abs(score - tube.predict(X)) - 0.3, 0)
    least = {"hinge": hinge.history_[-1]["objective"], "tube": off.mean() + 0.025 * weights @ weights}
    for name, loss, y in (
        ("hinge", cf.HingeLoss(), (score > 0).astype(float)),
        ("tube", cf.EpsilonInsensitiveLoss(0.3), score),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cf.GLM(loss, alpha=0.05, solver=solver, max_iter=200).fit(X, y)
        z = model.intercept_ + X @ model.coef_
        objective = loss.value(y, z).mean() + 0.025 * model.coef_ @ model.coef_
        assert least[name] * (1 - 1e-6) <= objective <= 1.1 * least[name]
        assert model.certificate_.value >= (objective - least[name]) / objective - 1e-6


def test_a_width_below_0_is_refused():
    with pytest.raises(ValueError, match="epsilon must be"):
        cf.EpsilonInsensitiveLoss(-1.0)
