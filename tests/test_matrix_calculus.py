"""The rules of matrix calculus behind the normal equations, against differences; and where a cost is not convex."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
from certifit.minimise.function import difference_gradient


@pytest.fixture
def matrices(rng):
    """A, B, C square of size 4."""
    return rng.normal(size=(3, 4, 4))


RULES = {
    "tr AB": (lambda A, B, C: np.trace(A @ B), lambda A, B, C: B.T),
    "tr ABA'C": (lambda A, B, C: np.trace(A @ B @ A.T @ C), lambda A, B, C: C @ A @ B + C.T @ A @ B.T),
    "det A": (lambda A, B, C: np.linalg.det(A), lambda A, B, C: np.linalg.det(A) * np.linalg.inv(A).T),
    "log |det A|": (lambda A, B, C: np.linalg.slogdet(A)[1], lambda A, B, C: np.linalg.inv(A).T),
    "tr A": (lambda A, B, C: np.trace(A), lambda A, B, C: np.eye(4)),
    "|A|^2": (lambda A, B, C: np.sum(A**2), lambda A, B, C: 2 * A),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_gives_the_gradient(name, matrices):
    f, rule = RULES[name]
    A, B, C = matrices
    np.testing.assert_allclose(difference_gradient(lambda M: f(M, B, C), A), rule(A, B, C), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", RULES)
def test_the_gradient_by_the_transpose_is_the_transpose_of_the_gradient(name, matrices):
    """With f as a function of M = A', the gradient by M is (gradient by A)'."""
    f, rule = RULES[name]
    A, B, C = matrices
    by_transpose = difference_gradient(lambda M: f(M.T, B, C), A.T)
    np.testing.assert_allclose(by_transpose, rule(A, B, C).T, rtol=1e-7, atol=1e-8)


def test_traces_of_products_turn_round(matrices):
    A, B, C = matrices
    assert np.trace(A @ B @ C) == pytest.approx(np.trace(C @ A @ B)) == pytest.approx(np.trace(B @ C @ A))
    assert np.trace(A) == np.trace(A.T) and np.trace(A + B) == pytest.approx(np.trace(A) + np.trace(B))


def test_a_factor_leaves_a_trace(matrices):
    assert np.trace(2.5 * matrices[0]) == pytest.approx(2.5 * np.trace(matrices[0]))


def test_the_derivative_of_a_product_with_a_vector_is_the_matrix(rng, matrices):
    """A row per entry of x, a column per entry of A'x."""
    A, x = matrices[0], rng.normal(size=4)
    np.testing.assert_allclose(np.asarray(cf.derivatives(lambda v: A.T @ v, x).jacobian).T, A, rtol=1e-7, atol=1e-9)


def test_the_push_through_identity(rng):
    """(P'P + a I)^-1 P' = P' (P P' + a I)^-1."""
    P = rng.normal(size=(5, 9))
    left = np.linalg.solve(P.T @ P + 0.3 * np.eye(9), P.T)
    np.testing.assert_allclose(left, P.T @ np.linalg.inv(P @ P.T + 0.3 * np.eye(5)), rtol=1e-9, atol=1e-12)


def test_the_derivative_of_a_quadratic_form_needs_both_halves(rng, matrices):
    A, x = matrices[0], rng.normal(size=4)
    found = difference_gradient(lambda v: v @ A @ v, x)
    np.testing.assert_allclose(found, (A + A.T) @ x, rtol=1e-7, atol=1e-8)
    assert np.abs(found - 2 * A @ x).max() > 0.01  # 2Ax is right for symmetric A alone


def test_the_worked_example_of_a_gradient_by_a_matrix(rng):
    """f(A) = 3/2 A11 + 5 A12^2 + A21 A22 has gradient [[3/2, 10 A12], [A22, A21]]."""
    A = rng.normal(size=(2, 2))
    found = difference_gradient(lambda M: 1.5 * M[0, 0] + 5 * M[0, 1] ** 2 + M[1, 0] * M[1, 1], A)
    np.testing.assert_allclose(found, [[1.5, 10 * A[0, 1]], [A[1, 1], A[1, 0]]], rtol=1e-8, atol=1e-9)


def test_the_normal_equations_are_where_the_gradient_of_least_squares_vanishes(rng):
    """1/2 |Xw - y|^2 has gradient X'Xw - X'y, by the rules above."""
    X, y, w = rng.normal(size=(20, 4)), rng.normal(size=20), rng.normal(size=4)
    found = difference_gradient(lambda v: np.sum((X @ v - y) ** 2) / 2, w)
    np.testing.assert_allclose(found, X.T @ X @ w - X.T @ y, rtol=1e-7, atol=1e-7)
    least = cf.minimize(lambda v: np.sum((X @ v - y) ** 2) / 2, w, gradient=lambda v: X.T @ (X @ v - y))
    np.testing.assert_allclose(X.T @ X @ least.x, X.T @ y, rtol=1e-6, atol=1e-6)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def test_the_squared_cost_through_a_sigmoid_is_not_convex(rng):
    """(sigmoid(w x) - y)^2 / 2 bends down where the example is far on the wrong side; the log loss never does."""
    x, y, w = 1.0, 1.0, -3.0
    p = sigmoid(w * x)
    curvature = x**2 * p * (1 - p) * (p * (1 - p) + (p - y) * (1 - 2 * p))
    assert curvature < 0
    measured = difference_gradient(
        lambda v: float(difference_gradient(lambda u: float((sigmoid(u * x) - y) ** 2 / 2), v)), w
    )
    assert measured == pytest.approx(curvature, rel=1e-3)
    middle, ends = (sigmoid(np.array([-6.0])) - y) ** 2, (sigmoid(np.array([-12.0, 0.0])) - y) ** 2
    assert middle > ends.mean()  # above the chord: what no convex function is
    X, labels = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    for v in rng.normal(scale=5, size=(50, 3)):
        p = sigmoid(X @ v)
        H = X.T @ ((p * (1 - p))[:, None] * X)
        assert np.linalg.eigvalsh(H)[0] >= -1e-12 * np.linalg.eigvalsh(H)[-1]
        squared = X.T @ ((p * (1 - p) * (p * (1 - p) + (p - labels) * (1 - 2 * p)))[:, None] * X)
        if np.linalg.eigvalsh(squared)[0] < -1e-6:
            break
    else:
        pytest.fail("no point of negative curvature was seen")
