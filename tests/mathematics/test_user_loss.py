"""A loss of the user's own: what is right passes, what is wrong is told with the point."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import certifit as cf
from certifit.mathematics.losses.scores import ScoreLoss

Y = np.random.default_rng(0).normal(size=100)
SIGNS = np.array([-1.0, 1.0, 1.0])
COUNTS = np.random.default_rng(0).poisson(3.0, 200).astype(float)


def half_square(y, z):
    return (z - y) ** 2 / 2


def residual(y, z):
    return z - y


def one(y, z):
    return np.ones_like(z)


def softplus(y, z):
    return np.logaddexp(0, -y * z)


RIGHT = {
    "squared": (half_square, residual, one, Y),
    "squared, large": (half_square, residual, one, 1e9 + 1e8 * Y),
    "squared, small": (half_square, residual, one, 1e-8 * Y),
    "absolute": (lambda y, z: np.abs(z - y), lambda y, z: np.sign(z - y), None, Y),
    "logistic": (softplus, lambda y, z: -y / (1 + np.exp(y * z)), None, SIGNS),
    "hinge": (lambda y, z: np.maximum(0, 1 - y * z), lambda y, z: np.where(y * z < 1, -y, 0.0), None, SIGNS),
    "squared hinge": (
        lambda y, z: np.maximum(0, 1 - y * z) ** 2,
        lambda y, z: -2 * y * np.maximum(0, 1 - y * z),
        lambda y, z: 2.0 * (y * z < 1),
        SIGNS,
    ),
    "exponential": (lambda y, z: np.exp(-y * z), lambda y, z: -y * np.exp(-y * z), lambda y, z: np.exp(-y * z), SIGNS),
    "poisson": (lambda y, z: np.exp(z) - y * z, lambda y, z: np.exp(z) - y, lambda y, z: np.exp(z), COUNTS),
    "pseudo-Huber": (
        lambda y, z: np.sqrt(1 + (z - y) ** 2) - 1,
        lambda y, z: (z - y) / np.sqrt(1 + (z - y) ** 2),
        lambda y, z: (1 + (z - y) ** 2) ** -1.5,
        1e6 * Y,
    ),
    "only z > 0": (
        lambda y, z: np.where(z > 0, y * z - np.log(np.maximum(z, 1e-300)), np.inf),
        lambda y, z: y - 1 / z,
        lambda y, z: 1 / z**2,
        np.array([1.0, 2.0, 5.0]),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass_at_any_scale_and_kink(name):
    value, slope, curvature, y = RIGHT[name]
    checked = cf.Loss(value, slope, curvature, name=name).checked(y)
    assert checked.is_convex and checked.refutation == "" and checked.has_curvature == (curvature is not None)
    assert checked.is_nonnegative == (name != "poisson")
    z = np.linspace(0.1, 1, len(y))
    np.testing.assert_array_equal(checked.value(y, z), value(y, z))
    np.testing.assert_array_equal(checked.slope(y, z), slope(y, z))


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("wrong", [lambda g: lambda y, z: 1.01 * g(y, z), lambda g: lambda y, z: -g(y, z)])
def test_a_slope_one_percent_off_is_refused_with_the_point(name, wrong):
    value, slope, curvature, y = RIGHT[name]
    with pytest.raises(
        ValueError, match=r"slope of the loss .* is not the derivative of value: at y = \S+, z = \S+ it"
    ):
        cf.Loss(value, wrong(slope), curvature, name=name).checked(y)


def test_a_wrong_curvature_is_refused_with_what_was_got_and_expected():
    with pytest.raises(ValueError) as error:
        cf.Loss(half_square, residual, lambda y, z: 2 * one(y, z)).checked(np.array([0.0, 1.0]))
    assert str(error.value) == (
        "curvature of the loss is not the derivative of slope: at y = 0, z = -10 it is 2, and slope says 1."
    )


def test_a_dent_is_found_and_the_claim_is_local():
    loss = cf.Loss(
        lambda y, z: np.log1p((z - y) ** 2 / 2), lambda y, z: (z - y) / (1 + (z - y) ** 2 / 2), name="Cauchy"
    ).checked(np.array([0.0, 1.0]))
    assert not loss.is_convex
    assert loss.refutation == (
        "the loss 'Cauchy' is not convex: at y = 0 its slope falls from -0.196078 at z = -10 to -0.545455 at z = -3. "
        "A fit is a local claim."
    )


def test_the_squared_error_through_a_sigmoid_is_seen_not_to_be_convex():
    def p(z):
        return 1 / (1 + np.exp(-z))

    loss = cf.Loss(lambda y, z: (p(z) - y) ** 2 / 2, lambda y, z: (p(z) - y) * p(z) * (1 - p(z)), mean=p)
    assert not loss.checked(np.array([0.0, 1.0])).is_convex


@pytest.mark.parametrize(
    "value, words",
    [
        (lambda y, z: max(y - z, 0), "value of the loss must take an array of targets"),
        (lambda y, z: (z - y.mean()) ** 2, "value of the loss must treat each row by itself"),
        (lambda y, z: np.mean((z - y) ** 2), "value of the loss must give a number per row: shape"),
        (lambda y, z: np.full(len(y), np.nan), "value of the loss is nan at y = "),
        (lambda y, z: np.full(len(y), -np.inf), "value of the loss is -inf at y = "),
    ],
)
def test_functions_that_are_no_losses_are_refused(value, words):
    with pytest.raises((ValueError, TypeError), match=words):
        cf.Loss(value, residual).checked(Y)


def test_what_is_no_function_is_refused_at_once():
    with pytest.raises(TypeError, match=r"value must be a function. Got 3"):
        cf.Loss(3, residual)
    with pytest.raises(TypeError, match=r"curvature must be a function. Got 1.0"):
        cf.Loss(half_square, residual, 1.0)


def test_a_loss_without_a_curvature_says_so_where_one_is_needed():
    loss = cf.Loss(half_square, residual)
    with pytest.raises(NotImplementedError, match=r"has no curvature. Give one, .* 'lbfgs'"):
        loss.curvature(Y, Y)


def test_predictions_are_scores_or_their_means():
    assert cf.Loss(half_square, residual).mean(Y) is Y and cf.Loss(half_square, residual).score(2.5) == 2.5
    positive = cf.Loss(*RIGHT["poisson"][:3], mean=np.exp)
    np.testing.assert_array_equal(positive.mean(Y), np.exp(Y))
    assert positive.score(2.5) == 0.0


def test_a_loss_of_named_functions_can_be_sent():
    loss = cf.Loss(half_square, residual, one, name="squared").checked(Y)
    again = pickle.loads(pickle.dumps(loss))
    assert isinstance(again, ScoreLoss) and again.name == "the loss 'squared'"
    np.testing.assert_array_equal(again.value(Y, 2 * Y), loss.value(Y, 2 * Y))


def test_any_finite_target_is_legal():
    with pytest.raises(ValueError, match=r"must be a finite number for the loss. Row 4 is inf"):
        cf.Loss(half_square, residual).check_target(np.array([0.0, np.inf]), first_row=3)
