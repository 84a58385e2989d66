"""minimize under constraints: multipliers, theta_P and theta_D against the mathematics."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit as cf


def test_the_nearest_point_of_a_plane_has_its_multiplier() -> None:
    """min x'x on x1 + x2 = 1: x = (1/2, 1/2), b = -1, both values 1/2."""
    found = cf.minimize(lambda x: x @ x, [3.0, 1.0], equality=lambda x: x[0] + x[1] - 1)
    assert found.converged and found.kkt.holds
    np.testing.assert_allclose(found.x, [0.5, 0.5], atol=1e-7)
    np.testing.assert_allclose(found.equality_multipliers, [-1.0], atol=1e-6)
    assert found.theta_P == pytest.approx(0.5, abs=1e-7) and found.theta_D == pytest.approx(0.5, abs=1e-6)


def test_active_and_slack_inequalities() -> None:
    """min (x1 - 2)^2 + (x2 - 1)^2, x1^2 <= x2, x1 + x2 <= 2, x1 >= -5: x = (1, 1), a = (2/3, 2/3, 0)."""
    limits = [lambda x: x[0] ** 2 - x[1], lambda x: x[0] + x[1] - 2, lambda x: -5 - x[0]]
    found = cf.minimize(lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2, [0.0, 0.0], inequality=limits)
    assert found.converged
    np.testing.assert_allclose(found.x, [1.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(found.inequality_multipliers, [2 / 3, 2 / 3, 0.0], atol=1e-5)
    assert found.theta_D <= found.theta_P + 1e-6


@pytest.mark.parametrize("draw", range(3))
@pytest.mark.slow
def test_a_quadratic_program_agrees_with_its_linear_system(draw: int) -> None:
    """min x'Qx/2 - c'x on Ax = b: [Q A'; A 0] (x, m) = (c, b)."""
    rng = np.random.default_rng(draw)
    root, A, c, b = rng.normal(size=(5, 5)), rng.normal(size=(2, 5)), rng.normal(size=5), rng.normal(size=2)
    Q = root @ root.T + np.eye(5)
    exact = np.linalg.solve(np.block([[Q, A.T], [A, np.zeros((2, 2))]]), np.concatenate([c, b]))
    found = cf.minimize(
        lambda x: x @ Q @ x / 2 - c @ x,
        np.zeros(5),
        gradient=lambda x: Q @ x - c,
        equality=lambda x: A @ x - b,
        equality_jacobian=lambda x: A,
    )
    assert found.converged
    np.testing.assert_allclose(found.x, exact[:5], atol=1e-6)
    np.testing.assert_allclose(found.equality_multipliers, exact[5:], atol=1e-5)
    assert found.theta_D == pytest.approx(found.theta_P, abs=1e-5)


def test_a_support_vector_machine_by_hand() -> None:
    """min |w|^2/2, y (w x + b) >= 1 at x = -1, 1, 3: w = 1, b = 0; the outer row has the multiplier 0."""
    x, y = np.array([-1.0, 1.0, 3.0]), np.array([-1.0, 1.0, 1.0])
    found = cf.minimize(lambda p: p[0] ** 2 / 2, [0.0, 0.0], inequality=lambda p: 1 - y * (p[0] * x + p[1]))
    np.testing.assert_allclose(found.x, [1.0, 0.0], atol=1e-5)
    np.testing.assert_allclose(found.inequality_multipliers, [0.5, 0.5, 0.0], atol=1e-4)


def test_constraints_that_contradict_each_other_are_reported() -> None:
    with pytest.warns(ConvergenceWarning, match="primal feasibility"):
        found = cf.minimize(lambda x: x @ x, [1.0, 1.0], equality=[lambda x: x[0] - 1, lambda x: x[0] + 1])
    assert not found.converged and not found.kkt.holds and len(found.history_) >= 2


def test_what_does_not_go_with_constraints_is_refused() -> None:
    with pytest.raises(ValueError, match="solved by multipliers"):
        cf.minimize(lambda x: x @ x, [1.0], method="bfgs", equality=lambda x: x[0])
    with pytest.raises(ValueError, match="no constraints"):
        cf.minimize(lambda x: x @ x, [1.0], equality_jacobian=lambda x: [[1.0]])
