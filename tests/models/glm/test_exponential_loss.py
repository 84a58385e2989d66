"""The exponential loss as a family: its derivatives, its conjugate, and fits proven as those of the logistic loss."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize

import certifit as cf

LOSS = cf.ExponentialLoss()


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, (X @ [1.0, 1.0, 0.0] + rng.normal(size=200) > 0).astype(float)


def test_derivatives_and_conjugate_are_those_of_the_formula() -> None:
    z = np.linspace(-3, 3, 61)
    for y in (np.zeros(61), np.ones(61)):
        s = 2 * y - 1
        np.testing.assert_allclose(LOSS.value(y, z), np.exp(-s * z), rtol=1e-15)
        step = (LOSS.value(y, z + 1e-6) - LOSS.value(y, z - 1e-6)) / 2e-6
        np.testing.assert_allclose(LOSS.slope(y, z), step, rtol=1e-8)
        np.testing.assert_allclose(LOSS.curvature(y, z), np.exp(-s * z), rtol=1e-15)
        # u z - l(y, z) is largest at u = l'(y, z)
        u = LOSS.slope(y, z)
        np.testing.assert_allclose(LOSS.conjugate(y, u), u * z - LOSS.value(y, z), rtol=1e-12, atol=1e-12)
        assert np.isinf(LOSS.conjugate(y, s)).all()
    assert not LOSS.is_legal(np.array([0.5, -1.0, 2.0])).any()


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.1}, {"alpha": 0.01, "l1_ratio": 1.0}, {"solver": "lbfgs"}])
def test_fits_are_proven_and_agree_with_a_peer(settings: dict[str, object]) -> None:
    X, y = _rows()
    model = cf.GLM(LOSS, **settings).fit(X, y)
    assert model.certificate_.holds

    def objective(p: np.ndarray) -> float:
        alpha, ratio = float(settings.get("alpha", 0.0)), float(settings.get("l1_ratio", 0.0))  # type: ignore[arg-type]
        penalty = alpha * (ratio * np.abs(p[:3]).sum() + (1 - ratio) / 2 * p[:3] @ p[:3])
        return float(np.exp(-(2 * y - 1) * (X @ p[:3] + p[3])).mean() + penalty)

    ours = objective(np.append(model.coef_, model.intercept_))
    theirs = minimize(objective, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000, "fatol": 1e-13}).fun
    assert ours <= theirs * (1 + 1e-8)
    assert ours >= theirs * (1 - 1e-4)


def test_a_moved_coefficient_is_refused_and_the_proof_is_no_smaller_than_the_truth() -> None:
    X, y = _rows()
    model = cf.GLM(LOSS).fit(X, y)
    best = np.exp(-(2 * y - 1) * (X @ model.coef_ + model.intercept_)).mean()
    for nudge in (1e-3, 1e-2):
        model.coef_ = model.coef_ + np.array([nudge, 0.0, 0.0])
        now = np.exp(-(2 * y - 1) * (X @ model.coef_ + model.intercept_)).mean()
        again = model.certify(X, y)
        assert not again.holds and again.value >= (now - best) / now * (1 - 1e-9)


def test_separable_rows_are_not_certified() -> None:
    X, _ = _rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not cf.GLM(LOSS).fit(X, (X[:, 0] > 0).astype(float)).certificate_.holds


def test_targets_other_than_0_and_1_are_refused() -> None:
    with pytest.raises(ValueError, match="must be 0 or 1 for the exponential loss"):
        cf.GLM(LOSS).fit([[1.0], [2.0], [3.0]], [0.0, 1.0, 2.0])
