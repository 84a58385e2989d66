"""Lasso and elastic net for more columns than rows: optimality, the gap, scikit-learn, paths, units; both builds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from wide_problem import TOL, VARIANTS, made, scikit_learn, weights_of


@pytest.mark.parametrize("part", [0.9, 0.3, 0.05, 0.002])
@pytest.mark.parametrize("variant", VARIANTS)
def test_slopes_lie_in_the_subdifferential(core, rng, variant, part):
    problem = VARIANTS[variant](rng, made(rng))
    alpha = part * problem.alpha_max(core)
    weights, intercept, found = problem.solve(core, alpha, 1e-13)
    assert found["relative_gaps"][0] <= 1e-12
    assert problem.violation(alpha, weights, intercept) < (1e-8 if variant == "far from zero" else 1e-10)


@pytest.mark.parametrize("variant", VARIANTS)
def test_objective_and_gap_are_those_of_the_weights_returned(core, rng, variant):
    problem = VARIANTS[variant](rng, made(rng))
    alphas = problem.alpha_max(core) * np.array([0.5, 0.1, 0.01])
    found = problem.path(core, alphas, 1e-6)
    for number, alpha in enumerate(alphas):
        weights, intercept = weights_of(found, number, problem.n_columns), found["intercepts"][number]
        objective, gap, relative = problem.gap(core, alpha, weights, intercept)
        assert found["objectives"][number] == pytest.approx(problem.objective(alpha, weights, intercept), rel=1e-9)
        assert found["objectives"][number] == pytest.approx(objective, rel=1e-12)
        # Slopes that were bounded, not computed, can only make the gap of the path the larger one.
        rounding = 1e-9 if variant == "far from zero" else 1e-13
        assert gap <= found["gaps"][number] + rounding * objective
        assert relative <= 1e-6 + rounding and found["status"][number] == "converged"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_gap_is_never_below_the_true_excess(core, rng, variant):
    problem = VARIANTS[variant](rng, made(rng, 25, 80))
    free = problem.factor is not None and not (problem.factor > 0).all()
    lower, upper = problem.bounds()
    for part in (0.8, 0.1, 0.01):
        alpha = part * problem.alpha_max(core)
        best, intercept, _ = problem.solve(core, alpha, 1e-13)
        least = problem.objective(alpha, best, intercept)
        for size in 10.0 ** np.arange(-12, 3):
            touched = rng.random(problem.n_columns) < rng.random()
            weights = best + size * rng.normal(size=problem.n_columns) * touched
            weights = np.clip(weights, lower, upper)
            shift = intercept + (size * rng.normal() * rng.integers(0, 2) if problem.fit_intercept else 0.0)
            objective, gap, _ = problem.gap(core, alpha, weights, shift)
            excess = problem.objective(alpha, weights, shift) - least
            rounding = 1e-8 if variant == "far from zero" else 1e-12
            assert gap >= excess - rounding * max(objective, least)
            assert gap <= objective * (1 + 1e-12)
            if not free and size <= 1e-9:
                assert gap <= 1e-4 * objective  # it says something, too


@pytest.mark.filterwarnings("ignore:Objective did not converge", "ignore:Setting penalty")
@pytest.mark.parametrize("part", [0.5, 0.1, 0.02])
@pytest.mark.parametrize(
    "variant",
    ["lasso", "no intercept", "weighted", "elastic net", "nearly ridge", "sparse", "sparse and weighted", "duplicates"],
)
def test_the_answer_is_that_of_scikit_learn(core, rng, variant, part):
    problem = VARIANTS[variant](rng, made(rng))
    if sp.issparse(problem.X):
        problem.X.sort_indices()
    alpha = part * problem.alpha_max(core)
    weights, intercept, found = problem.solve(core, alpha, 1e-15)  # weights need half the digits of the objective
    assert found["relative_gaps"][0] <= TOL
    theirs, their_intercept = scikit_learn(problem, alpha)
    assert found["objectives"][0] == pytest.approx(problem.objective(alpha, theirs, their_intercept), rel=1e-10)
    if variant != "duplicates":  # there the weights are not determined
        assert weights == pytest.approx(theirs, abs=1e-8 * np.abs(theirs).max())
        assert intercept == pytest.approx(their_intercept, abs=1e-8 * np.abs(problem.y).max())


@pytest.mark.parametrize("variant", ["lasso", "elastic net", "factors", "bounds", "sparse"])
def test_a_path_is_its_single_solutions(core, rng, variant):
    problem = VARIANTS[variant](rng, made(rng))
    alphas = problem.alpha_max(core) * np.geomspace(1, 0.01, 30)
    found = problem.path(core, alphas)
    assert set(found["status"]) == {"converged"}
    for number in (0, 7, 20, 29):
        weights, _, single = problem.solve(core, alphas[number])
        assert found["objectives"][number] == pytest.approx(single["objectives"][0], rel=1e-10)
        assert weights_of(found, number, problem.n_columns) == pytest.approx(weights, abs=1e-6)


def test_alphas_may_rise_and_repeat(core, rng):
    problem = made(rng)
    alphas = problem.alpha_max(core) * np.array([0.01, 0.5, 0.5, 0.02, 2.0, 0.01])
    found = problem.path(core, alphas)
    assert found["objectives"][[0, 1]] == pytest.approx(found["objectives"][[5, 2]], rel=1e-10)
    assert found["offsets"][4] == found["offsets"][5] and set(found["status"]) == {"converged"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_first_weight_appears_just_below_alpha_max(core, rng, variant):
    problem = VARIANTS[variant](rng, made(rng))
    alpha_max = problem.alpha_max(core)
    penalised = np.ones(problem.n_columns, bool) if problem.factor is None else problem.factor > 0
    above, below = (problem.solve(core, alpha_max * part, 1e-13)[0] for part in (1 + 1e-9, 1 - 1e-3))
    assert not above[penalised].any() and below[penalised].any()


def test_alpha_max_is_the_largest_slope_of_the_constant_model(core, rng):
    problem = replace(made(rng), weight=rng.random(40))
    slopes = problem.X.T @ (problem.omega * (problem.y - problem.omega @ problem.y))
    assert problem.alpha_max(core) == pytest.approx(np.abs(slopes).max(), rel=1e-12)
    positive = replace(problem, lower=np.zeros(problem.n_columns), ratio=0.25)
    assert positive.alpha_max(core) == pytest.approx(slopes.max() / 0.25, rel=1e-12)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_columns_give_the_answer_of_dense_ones(core, rng, fit_intercept, index):
    dense = replace(made(rng, density=0.1), fit_intercept=fit_intercept, weight=rng.random(40))
    X = sp.csc_array(dense.X)
    sparse = replace(dense, X=sp.csc_array((X.data, X.indices.astype(index), X.indptr.astype(index)), shape=X.shape))
    alphas = dense.alpha_max(core) * np.array([0.3, 0.03])
    one, other = dense.path(core, alphas), sparse.path(core, alphas)
    assert one["objectives"] == pytest.approx(other["objectives"], rel=1e-10)
    for number in range(2):
        weights = [weights_of(found, number, dense.n_columns) for found in (one, other)]
        assert weights[0] == pytest.approx(weights[1], abs=1e-8)


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(core, rng):
    problem = made(rng)
    times = rng.integers(0, 3, size=40)
    weighted = replace(problem, weight=times.astype(np.float64))
    repeated = replace(problem, X=np.repeat(problem.X, times, axis=0), y=np.repeat(problem.y, times))
    alpha = 0.05 * weighted.alpha_max(core)
    one, other = weighted.solve(core, alpha), repeated.solve(core, alpha)
    assert one[0] == pytest.approx(other[0], abs=1e-9) and one[1] == pytest.approx(other[1], abs=1e-9)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.slow
def test_the_number_of_threads_does_not_change_a_bit(core, rng, ratio, form):
    problem = replace(made(rng, 150, 1500, 1.0 if form == "dense" else 0.3), ratio=ratio)
    if form == "sparse":
        problem.X = sp.csc_array(problem.X)
    alphas = problem.alpha_max(core) * np.geomspace(1, 0.02, 10)
    first, *others = (problem.path(core, alphas, threads=threads) for threads in (1, 2, 8))
    for other in others:
        assert all(np.array_equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("power", [-498, 498])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_columns_in_units_of_1e150_give_the_same_bits_in_their_units(core, rng, form, power):
    plain = replace(made(rng, density=0.4), factor=np.ones(150))
    scale = np.where(rng.random(150) < 0.5, 2.0**power, 1.0)
    scaled = replace(plain, X=plain.X * scale, factor=scale)  # the same problem for v / scale
    if form == "sparse":
        plain, scaled = (replace(p, X=sp.csc_array(p.X)) for p in (plain, scaled))
    alpha = 0.05 * plain.alpha_max(core)
    assert scaled.alpha_max(core) == plain.alpha_max(core)
    (one, intercept, found), (other, other_intercept, other_found) = plain.solve(core, alpha), scaled.solve(core, alpha)
    assert np.array_equal(one, other * scale) and intercept == other_intercept
    assert found["gaps"][0] == other_found["gaps"][0]


@pytest.mark.parametrize("power", [-498, 498])
def test_a_target_in_units_of_1e150_gives_the_same_bits_in_its_units(core, rng, power):
    plain = made(rng)
    scaled = replace(plain, y=plain.y * 2.0**power)
    alpha = 0.05 * plain.alpha_max(core)
    one, other = plain.solve(core, alpha), scaled.solve(core, alpha * 2.0**power)
    assert np.array_equal(one[0], other[0] * 2.0**-power) and one[2]["relative_gaps"] == other[2]["relative_gaps"]
