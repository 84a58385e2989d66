"""Huber's certificate against the minimum in some thousand bits: never below the true excess, and near it."""

from __future__ import annotations

import warnings
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from robust_truth import HuberTruth, exact, true_excess

import certifit as cf
from certifit.models.certificate import EXACT_FIT_CLAIM
from certifit.models.huber.task import median_scale

SCALES = ["joint", "mad", 0.5]


def fitted(X: Any, y: Any, weight: Any = None, **parameters: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cf.HuberRegressor(**parameters).fit(X, y, weight)


def noisy(rng: np.random.Generator, n: int = 30) -> tuple[Any, Any]:
    u, v = rng.normal(size=(2, n))
    return u, v


@pytest.mark.parametrize("alpha", [0.0, 0.01])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("offset", [1e6, 1e10, 1e12])
@pytest.mark.slow
def test_an_offset_of_the_target_puts_no_floor_below_the_excess(rng, scale, alpha, offset):
    x, noise = noisy(rng)
    y = offset + 0.01 * (x + noise)
    own = scale if isinstance(scale, str) else 0.005
    model = fitted(x[:, None], y, scale=own, alpha=alpha)
    assert true_excess(model, x[:, None], y) <= model.certificate_.value


@pytest.mark.parametrize("scale", SCALES)
def test_an_exact_fit_says_that_it_is_relative_to_the_null_model(rng, scale):
    X = rng.normal(size=(12, 2))
    y = X @ [2.0, -1.0] + 3.0
    model = fitted(X, y, scale=scale)
    assert model.certificate_.holds and model.certificate_.claim == EXACT_FIT_CLAIM
    assert model.certificate_.sentences()[0].startswith("Exact fit to rounding")
    assert true_excess(model, X, y) <= model.certificate_.value


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("target", [0.0, 3.3])
@pytest.mark.filterwarnings("ignore:.*NOT certified")
def test_a_target_that_does_not_vary_has_no_best_joint_scale(rng, n, target):
    # The objective is s / 2 without a residual: its infimum 0 is that of no fit, and the null model's is 0 as well.
    X, y = rng.normal(size=(n, 2)), np.full(n, target)
    model = fitted(X, y)
    assert not model.certificate_.holds and not model.certificate_.is_exact_fit
    assert model.certificate_.value >= 1.0
    assert "The target does not vary" in model.certificate_.sentences()[0]
    model.scale_ = 1e6
    assert not model.certify(X, y).holds
    assert fitted(X, y, scale="mad").certificate_.holds and fitted(X, y, scale=1.0).certificate_.holds


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("size", [1e-7, 1e-10, 1e-12])
@pytest.mark.slow
def test_near_copies_are_told_apart_and_the_fit_is_proven(rng, scale, size):
    u, v = noisy(rng)
    X, y = np.c_[u, u + size * v], u + v + 0.1 * rng.normal(size=30)
    model = fitted(X, y, scale=scale, tol=1e-6)
    truth = true_excess(model, X, y)
    assert model.certificate_.holds and not model.certificate_.dependent
    assert truth <= model.certificate_.value <= 10 * truth + 1e-13


@pytest.mark.parametrize("scale", SCALES)
def test_near_copies_within_the_reach_of_rounding_are_not_called_redundant(rng, scale):
    u, v = noisy(rng)
    X, y = np.c_[u, u + 1e-14 * v], u + v + 0.1 * rng.normal(size=30)
    model = fitted(X, y, scale=scale)
    certificate = model.certificate_
    assert true_excess(model, X, y) <= certificate.value
    assert not certificate.holds and certificate.literal is None and certificate.near


def test_whole_numbers_beyond_2_to_the_48_are_taken_as_they_are():
    a, z = np.arange(30.0), (np.arange(30) * 7 % 11).astype(float)
    X, y = np.c_[a, a * 2.0**48 + z], 5 * z + (np.arange(30) == 4) * 100.0
    model = fitted(X, y)
    assert true_excess(model, X, y) <= model.certificate_.value


@pytest.mark.parametrize("scale", SCALES)
def test_a_relation_that_holds_to_rounding_is_the_condition_of_the_proof(rng, scale):
    u, v = noisy(rng)
    X, y = np.c_[u, v, u / 3 + v], u + v + rng.normal(size=30)
    model = fitted(X, y, scale=scale)
    certificate = model.certificate_
    assert certificate.holds and certificate.literal is not None
    assert "treating x2 = 1/3 x0 + x1 as exact" in certificate.sentences()[0]
    assert true_excess(model, X, y) <= certificate.literal
    kept = fitted(X[:, :2], y, scale=scale if scale != "mad" else float(model.scale_))
    assert true_excess(kept, X[:, :2], y) <= 1e-12


@pytest.mark.parametrize("scale", ["joint", 0.2])
def test_what_the_state_takes_from_a_column_set_aside_counts_against_fits_without_it(rng, scale):
    """x1 is x0 and an offset but for its rounding, which is of the size of the residuals."""
    u = rng.normal(size=12)
    for offset in (1.4e13, 5e13):
        X, y = np.c_[u, u + offset], -0.65 * (u + (u + offset - offset)) + 1e-3 * rng.normal(size=12)
        model = fitted(X, y, scale=scale, delta=2.5)
        certificate = model.certificate_
        assert certificate.literal is not None
        state = [model.intercept_, *model.coef_]
        both, kept = (HuberTruth(own, y, None, 2.5, 0.0, scale == "joint", True) for own in (X, X[:, :1]))
        objective = both.objective(exact(state), exact([model.scale_])[0])
        least = kept.minimum([0.0, -1.3], model.scale_)
        assert float((objective - least) / objective) <= certificate.value <= certificate.literal * (1 + 1e-9)


def test_an_exact_copy_is_no_condition(rng):
    u, v = noisy(rng)
    X, y = np.c_[u, v, 2 * u], u + v + rng.normal(size=30)
    model = fitted(X, y)
    assert model.certificate_.holds and model.certificate_.literal is None
    assert true_excess(model, X, y) <= model.certificate_.value


def test_a_column_that_varies_only_in_light_rows_is_not_set_aside_in_silence(rng):
    n = 20
    weight = np.where(np.arange(n) < 15, 1.0, 1e-32)
    u = rng.normal(size=n)
    X = np.c_[u, u + (weight < 1) * rng.normal(size=n)]
    y = u + rng.normal(size=n)
    model = fitted(X, y, weight)
    assert true_excess(model, X, y, weight) <= model.certificate_.value


@pytest.mark.parametrize("alpha", [1e-20, 1e-8, 0.1])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.slow
def test_columns_of_any_size_are_proven_beside_a_penalty(rng, scale, alpha):
    X = rng.normal(size=(25, 3)) * [1.0, 1e150, 1e-6]
    y = X @ [1.0, 1e-150, 1e6] + rng.standard_t(2, size=25)
    model = fitted(X, y, scale=scale, alpha=alpha)
    assert true_excess(model, X, y) <= model.certificate_.value


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 0.1])
@pytest.mark.parametrize("nasty", ["plain", "offset", "near", "heavy", "wide"])
@pytest.mark.slow
def test_the_certificate_is_never_below_the_excess_of_a_perturbed_state(rng, scale, alpha, nasty):
    n, d = (4, 5) if nasty == "wide" else (15, 3)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.standard_t(1.5, size=n)
    weight = 10.0 ** rng.uniform(-9, 9, size=n) if nasty == "heavy" else None
    if nasty == "offset":
        X, y = X + np.array([1e8, 0.0, 0.0]), y + 1e7
    if nasty == "near":
        X[:, 2] = X[:, 0] + 1e-9 * X[:, 2]
    model = fitted(X, y, weight, scale=scale, alpha=alpha)
    for power in rng.uniform(2, 13, size=2):
        other = copy(model)
        other.coef_ = model.coef_ * (1 + 10.0**-power * rng.normal(size=d))
        other.intercept_ = model.intercept_ * (1 + 10.0 ** -(power + 2) * rng.normal())
        value = other.certify(X, y, weight).value
        assert true_excess(other, X, y, weight) <= value


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scale", SCALES)
def test_a_fit_ends_at_its_rounding_floor_and_a_nudge_of_a_ten_thousandth_is_refused(rng, scale, alpha, fit_intercept):
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.1] + rng.standard_t(2, size=40)
    model = fitted(X, y, scale=scale, alpha=alpha, fit_intercept=fit_intercept)
    assert model.certificate_.value < 4e-15
    for j in range(3):
        other = copy(model)
        other.coef_ = model.coef_ * (1 + 1e-4 * (np.arange(3) == j))
        assert not cf.verify(other, X, y)


@pytest.mark.parametrize("case", range(12))
def test_the_median_scale_of_three_rows_is_found_in_few_steps(case):
    rng = np.random.default_rng(case)
    X, y = rng.normal(size=(3, 2)), rng.normal(size=3)
    for alpha in (0.0, 1e-3):
        model = fitted(X, y, scale="mad", alpha=alpha)
        assert model.certificate_.holds and model.n_iter_ < 300


def test_the_middle_of_equal_weights_is_that_of_ones_whatever_their_size(rng):
    r = rng.normal(size=40)
    for size in (1e-200, 0.1, 1e27 / 3):
        assert median_scale(r, np.full(40, size)) == median_scale(r, np.ones(40))


def test_the_middle_is_found_where_sums_of_weights_round():
    r, tied = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])  # 0.1 + 0.2 - 0.3 = 2^-56 + 2^-57 > 0 exactly
    assert median_scale(r, tied) * 0.6744897501960817 == pytest.approx(2.0)
    halves = np.array([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])  # pairs across the middle are a tie, however sums round
    assert median_scale(np.arange(1.0, 7.0), halves) * 0.6744897501960817 == pytest.approx(3.5)


@pytest.mark.parametrize("scale", SCALES)
def test_a_penalty_cut_for_a_tiny_column_is_counted_in_the_excess(rng, scale):
    X = rng.normal(size=(20, 2)) * [1.0, 1e-150]
    y = X[:, 0] + rng.standard_t(2, size=20)
    model = fitted(X, y, scale=scale, alpha=0.01)
    assert model.certificate_.holds
    model.coef_ = model.coef_ + np.array([0.0, 1e-4])  # moves no score, and adds 5e-11 to the penalty
    truth = true_excess(model, X, y)
    assert 1e-12 < truth <= model.certify(X, y).value <= 2 * truth


def test_a_pull_is_known_where_the_squares_of_scales_overflow(rng):
    X, y = rng.normal(size=(20, 1)) * 1e-180, rng.standard_t(2, size=20) * 1e-180
    for size in (0.0, 1.0, 1e3):
        model = fitted(X, y, alpha=1e-10)
        model.coef_ = np.array([size])
        assert true_excess(model, X, y) <= model.certify(X, y).value


@pytest.mark.filterwarnings("ignore:.*NOT certified")
@pytest.mark.slow
def test_a_penalty_below_the_range_of_scaled_columns_is_no_division_by_zero(rng):
    first = np.arange(20) % 2 == 0
    X = np.where(first[:, None], [[0.0, 1.0000000000009999e162]], [[1e150, 1e162]])
    y = np.where(first, 0.648, -0.348) + 1e-12 * rng.normal(size=20)
    model = cf.HuberRegressor(scale="joint", delta=2.5, alpha=0.01).fit(X, y)
    assert np.isfinite(model.coef_).all()


def test_the_square_of_a_small_weight_is_not_zero():
    """One row is met by the intercept alone: any weight is all excess, however small its square."""
    X, y = np.array([[0.0, 1.0]]), np.array([1e156])
    model = cf.HuberRegressor(scale="mad", alpha=1e-20).fit(X, y)
    model.coef_ = np.array([1e-5, 0.0])
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("level", [1e4, 1e6, 1e7])
def test_rows_of_little_weight_put_no_error_into_the_smallest_median_scale(level):
    """Heavy rows are met exactly, so the scale is 2^-44 of the target's root mean square, over all rows."""
    x, weight = np.arange(12.0), np.where(np.arange(12) < 2, 1.0, 1e-8)
    y = np.where(np.arange(12) == 3, level, 1.0 + np.square(x) / 3)
    model = fitted(x[:, None], y, weight, scale="mad")
    mean_square = sum(Fraction(w) * Fraction(t) ** 2 for w, t in zip(weight, y, strict=True)) / sum(
        map(Fraction, weight)
    )
    assert model.scale_ == pytest.approx(2.0**-44 * float(mean_square) ** 0.5, rel=1e-14, abs=0)
    assert cf.verify(model, x[:, None], y, weight, exact=True)


def test_what_twofold_residuals_leave_of_an_exact_fit_is_counted_as_rounding():
    powers = [
        [0.3333333333333333, 0.11111111111111109, 0.03703703703703703],
        [0.6666666666666666, 0.44444444444444436, 0.2962962962962962],
    ]
    X = np.array([[0.0] * 3, *powers, [1.0] * 3])
    y = np.array([1.0, 1.3333333333333333, 1.6666666666666665, 2.0])
    model = fitted(X, y, scale=0.29329264593481696, delta=2.5)
    assert model.certificate_.is_exact_fit
    assert 0 < cf.verify(model, X, y, exact=True).exact.lower <= model.certificate_.value
