"""Lasso and elastic net for more columns than rows: optimality, the gap, scikit-learn, degenerate cases; both builds.

minimise  sum_i w_i (y_i - b - x_i'v)^2 / (2 W) + alpha sum_j f_j (ratio |v_j| + (1 - ratio)/2 v_j^2),  lower <= v <= upper
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import ElasticNet

TOL = 1e-11


@dataclass
class Problem:
    X: Any
    y: Any
    weight: Any = None
    fit_intercept: bool = True
    ratio: float = 1.0
    factor: Any = None
    lower: Any = None
    upper: Any = None

    @property
    def n_columns(self) -> int:
        return self.X.shape[1]

    @property
    def columns(self) -> tuple[Any, ...]:
        if not sp.issparse(self.X):
            return ("dense", np.asfortranarray(self.X, dtype=np.float64))
        X = sp.csc_array(self.X)
        X.sum_duplicates()
        return ("csc", X.data.astype(np.float64), X.indices, X.indptr, X.shape[0])

    @property
    def omega(self) -> Any:
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        return weight / weight.sum()

    def penalties(self, alpha: float) -> tuple[Any, Any]:
        factor = np.ones(self.n_columns) if self.factor is None else self.factor
        return alpha * self.ratio * factor, alpha * (1 - self.ratio) * factor

    def bounds(self) -> tuple[Any, Any]:
        none = np.full(self.n_columns, np.inf)
        return (-none if self.lower is None else self.lower), (none if self.upper is None else self.upper)

    def residual(self, weights: Any, intercept: float) -> Any:
        return self.y - intercept - self.X @ weights

    def objective(self, alpha: float, weights: Any, intercept: float) -> float:
        l1, l2 = self.penalties(alpha)
        r = self.residual(weights, intercept)
        return float(0.5 * self.omega @ r**2 + l1 @ np.abs(weights) + 0.5 * l2 @ weights**2)

    def violation(self, alpha: float, weights: Any, intercept: float) -> float:
        """The farthest that a slope is from the subdifferential of its penalty, relative to |x_j| |y|."""
        l1, l2 = self.penalties(alpha)
        lower, upper = self.bounds()
        assert (weights >= lower).all() and (weights <= upper).all()
        r, X = self.residual(weights, intercept), self.X.toarray() if sp.issparse(self.X) else self.X
        slope = X.T @ (self.omega * r) - l2 * weights
        low = np.where(weights > 0, l1, -l1)  # of the subdifferential
        high = np.where(weights < 0, -l1, l1)
        short, beyond = np.maximum(low - slope, 0), np.maximum(slope - high, 0)
        short, beyond = np.where(weights == lower, 0, short), np.where(weights == upper, 0, beyond)
        size = np.sqrt(self.omega @ X**2 * (self.omega @ self.y**2)) + 1e-300
        rows = abs(self.omega @ r) / np.sqrt(self.omega @ self.y**2) if self.fit_intercept else 0.0
        return float(max((np.maximum(short, beyond) / size).max(), rows))

    def options(self) -> tuple[Any, ...]:
        return self.columns, self.y, self.weight, self.fit_intercept

    def limits(self) -> tuple[Any, ...]:
        return self.ratio, self.factor, self.lower, self.upper

    def path(self, core: Any, alphas: Any, tol: float = TOL, max_iter: int = 100_000, threads: int = 2) -> Any:
        alphas = np.asarray(alphas, dtype=np.float64)
        return core.wide_lasso_path(*self.options(), alphas, *self.limits(), tol, max_iter, threads)

    def solve(self, core: Any, alpha: float, tol: float = TOL) -> tuple[Any, float, Any]:
        found = self.path(core, [alpha], tol)
        return weights_of(found, 0, self.n_columns), found["intercepts"][0], found

    def alpha_max(self, core: Any) -> float:
        return core.wide_alpha_max(*self.options(), *self.limits(), 2)

    def gap(self, core: Any, alpha: float, weights: Any, intercept: float) -> tuple[float, float, float]:
        [columns] = np.nonzero(weights)
        return core.wide_lasso_gap(*self.options(), alpha, *self.limits(), columns, weights[columns], intercept, 1)


def weights_of(found: Any, number: int, n_columns: int) -> Any:
    place = slice(*found["offsets"][number : number + 2])
    weights = np.zeros(n_columns)
    weights[found["columns"][place]] = found["weights"][place]
    return weights


def made(rng: np.random.Generator, n_rows: int = 40, n_columns: int = 150, density: float = 1.0) -> Problem:
    X = rng.normal(size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    X[:, 1:] += 0.5 * X[:, :-1]
    truth = np.where(np.arange(n_columns) % 15 == 0, 2.0, 0.0)
    return Problem(X + (0.3 if density == 1 else 0), X @ truth + rng.normal(size=n_rows) + 1.5)


def _factors(rng: np.random.Generator, problem: Problem) -> Problem:
    factor = rng.random(problem.n_columns) + 0.2
    factor[[3, 30, 77]] = 0.0
    return replace(problem, factor=factor)


def _bounds(rng: np.random.Generator, problem: Problem) -> Problem:
    lower, upper = -rng.random(problem.n_columns), rng.random(problem.n_columns)
    lower[::3], upper[1::3] = 0.0, np.inf
    return replace(problem, lower=lower, upper=upper)


VARIANTS = {
    "lasso": lambda rng, p: p,
    "no intercept": lambda rng, p: replace(p, fit_intercept=False),
    "weighted": lambda rng, p: replace(p, weight=rng.random(len(p.y)) * (rng.random(len(p.y)) < 0.9)),
    "elastic net": lambda rng, p: replace(p, ratio=0.5),
    "nearly ridge": lambda rng, p: replace(p, ratio=0.02),
    "factors": _factors,
    "factors and ridge": lambda rng, p: replace(_factors(rng, p), ratio=0.7),
    "bounds": _bounds,
    "bounds and ridge": lambda rng, p: replace(_bounds(rng, p), ratio=0.7),
    "not negative": lambda rng, p: replace(p, lower=np.zeros(p.n_columns)),
    "free within bounds": lambda rng, p: _bounds(rng, _factors(rng, p)),
    "sparse": lambda rng, p: replace(p, X=sp.csc_array(p.X * (rng.random(p.X.shape) < 0.2))),
    "sparse and weighted": lambda rng, p: replace(
        p, X=sp.csc_array(p.X * (rng.random(p.X.shape) < 0.2)), weight=rng.random(len(p.y))
    ),
    "duplicates": lambda rng, p: replace(p, X=p.X[:, rng.integers(0, 50, size=p.n_columns)]),
    "far from zero": lambda rng, p: replace(p, X=p.X + 1e4, y=p.y - 1e4),
}


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


def scikit_learn(problem: Problem, alpha: float) -> tuple[Any, float]:
    model = ElasticNet(
        alpha=alpha, l1_ratio=problem.ratio, fit_intercept=problem.fit_intercept, tol=1e-14, max_iter=1_000_000
    )
    model.fit(problem.X, problem.y, sample_weight=problem.weight)
    return model.coef_, model.intercept_


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


DEGENERATE = {
    "one row": (np.array([[1.0, 2.0, 3.0]]), np.array([4.0])),
    "one column": (np.arange(5.0)[:, None], np.array([1.0, 2.0, 2.0, 5.0, 4.0])),
    "one number": (np.array([[2.0]]), np.array([3.0])),
    "a constant target": (np.arange(12.0).reshape(3, 4), np.full(3, 0.1)),
    "a target of zeros": (np.arange(12.0).reshape(3, 4) ** 2, np.zeros(3)),
    "columns of zeros": (np.zeros((3, 4)), np.arange(3.0)),
    "constant columns": (np.full((3, 4), 0.1), np.arange(3.0)),
    "all columns equal": (np.repeat(np.array([[1.0], [0.0], [5.0]]), 9, axis=1), np.arange(3.0)),
    "columns and their opposites": (np.array([[1.0, -1.0], [0.0, 0.0], [5.0, -5.0]]), np.arange(3.0)),
    "tiny values": (np.array([[5e-324, 1e-310], [1e-300, 0.0], [0.0, 1e-305]]), np.arange(3.0)),
}


@pytest.mark.parametrize("alpha", [1e-6, 0.1, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate_data_have_a_certified_answer(core, case, form, fit_intercept, alpha):
    X, y = DEGENERATE[case]
    problem = Problem(sp.csc_array(X) if form == "sparse" else X, y, fit_intercept=fit_intercept)
    weights, intercept, found = problem.solve(core, alpha, 1e-8)
    assert found["status"] == ["converged"] and found["relative_gaps"][0] <= 1e-8
    assert problem.objective(alpha, weights, intercept) == pytest.approx(found["objectives"][0], abs=1e-15, rel=1e-9)
    assert np.isfinite(weights).all() and np.isfinite(problem.alpha_max(core))
    constant = X.max(axis=0) == X.min(axis=0)
    assert not weights[constant if fit_intercept else ~X.any(axis=0)].any()


def test_more_unpenalised_columns_than_rows_fit_exactly(core, rng):
    factor = np.where(np.arange(80) < 30, 0.0, 1.0)
    problem = Problem(rng.normal(size=(20, 80)), rng.normal(size=20), factor=factor)
    _, _, found = problem.solve(core, 0.1)
    assert found["objectives"][0] < 1e-20  # nothing is left for the certificate to be relative to
    assert found["relative_gaps"][0] <= 1.0


@pytest.mark.parametrize("shape", [(20, 900), (60, 2000)])
def test_supports_larger_than_the_number_of_rows_are_solved(core, rng, shape):
    """Many weights: residuals instead of products, conjugate gradients instead of a factor."""
    problem = replace(made(rng, *shape), ratio=0.01)
    alpha = 1e-3 * problem.alpha_max(core)
    weights, intercept, found = problem.solve(core, alpha, 1e-13)
    assert found["relative_gaps"][0] <= TOL and np.count_nonzero(weights) > 4 * shape[0]
    assert problem.violation(alpha, weights, intercept) < 1e-7


def test_as_many_weights_as_rows_are_solved(core, rng):
    problem = made(rng, 60, 400)
    alpha = 1e-5 * problem.alpha_max(core)
    weights, intercept, found = problem.solve(core, alpha, 1e-8)
    assert found["status"] == ["converged"] and 50 < np.count_nonzero(weights) <= 60
    assert problem.violation(alpha, weights, intercept) < 1e-10


@pytest.mark.parametrize("max_iter", [0, 1, 3])
@pytest.mark.parametrize("variant", ["lasso", "nearly ridge", "sparse"])
def test_a_fit_that_is_stopped_says_so_and_how_far_it_may_be(core, rng, variant, max_iter):
    problem = VARIANTS[variant](rng, made(rng, 60, 300))
    alphas = problem.alpha_max(core) * np.array([0.02, 0.005])
    best = problem.path(core, alphas)
    found = problem.path(core, alphas, max_iter=max_iter)
    assert (found["iterations"] <= max_iter).all()
    for number in range(2):
        excess = found["objectives"][number] - best["objectives"][number]
        assert found["status"][number] == "max_iter" and found["relative_gaps"][number] > TOL
        assert found["gaps"][number] >= excess * (1 - 1e-9)


def test_a_tolerance_below_rounding_ends_and_says_so(core, rng):
    problem = made(rng)
    _, _, found = problem.solve(core, 0.05 * problem.alpha_max(core), 1e-30)
    assert found["status"] == ["rounding"] and found["relative_gaps"][0] < 1e-13


def test_ctrl_c_ends_a_long_path(core, rng):
    problem = made(rng, 200, 4000)
    alphas = problem.alpha_max(core) * np.geomspace(1, 1e-3, 20_000)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have told us to ignore it
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            problem.path(core, alphas)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


GOOD = Problem(np.arange(12.0).reshape(3, 4) ** 2, np.arange(3.0))


def odd(place: int, value: float) -> Any:
    X = GOOD.X.copy()
    X[1, place] = value
    return X


def csc(**changed: Any) -> Any:
    parts = {"values": np.ones(3), "indices": np.array([0, 2, 1]), "offsets": np.array([0, 2, 3, 3, 3]), "n_rows": 3}
    return ("csc", *(parts | changed).values())


REFUSED = {
    "NaN": ({"X": odd(2, np.nan)}, "Column 2 of X holds NaN or infinity"),
    "infinity": ({"X": odd(3, -np.inf)}, "Column 3 of X holds NaN or infinity"),
    "sparse NaN": ({"X": sp.csc_array(odd(1, np.nan))}, "Column 1 of X holds NaN or infinity"),
    "beyond 1e300": ({"X": odd(0, 1e305)}, "Column 0 of X holds values beyond 1e300"),
    "y with NaN": ({"y": np.array([0, np.nan, 1])}, "y must be finite and within 1e300. Entry 1 is"),
    "y too short": ({"y": np.ones(2)}, "y has 2 entries, needs 3"),
    "negative weight": ({"weight": np.array([1.0, -1.0, 1.0])}, "weight must be finite and >= 0. Entry 1 is -1"),
    "weights of zero": ({"weight": np.zeros(3)}, "The weights sum to 0"),
    "factor too long": ({"factor": np.ones(5)}, "factor has 5 entries, needs 4"),
    "negative factor": ({"factor": -np.ones(4)}, "factor must be finite and >= 0"),
    "lower above zero": ({"lower": np.full(4, 0.1)}, "lower must be <= 0. Entry 0 is 0.1"),
    "upper below zero": ({"upper": np.full(4, -0.1)}, "upper must be >= 0"),
    "a bound of NaN": ({"upper": np.full(4, np.nan)}, "upper must be >= 0"),
    "ratio zero": ({"ratio": 0.0}, r"ratio must be in \(0, 1\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_values_are_refused_with_their_place(core, case):
    changed, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        replace(GOOD, **changed).path(core, [0.1])


@pytest.mark.parametrize("alphas", [[0.0], [0.1, -1.0], [np.nan], [np.inf]])
def test_alphas_must_be_positive(core, alphas):
    with pytest.raises(ValueError, match="alphas must be finite and > 0"):
        GOOD.path(core, alphas)


BROKEN = {
    "C order": (("dense", np.ones((3, 4))), "contiguous"),
    "float32": (("dense", np.ones((3, 4), dtype=np.float32, order="F")), "float64"),
    "no columns": (("dense", np.ones((3, 0), order="F")), "at least one row and one column"),
    "one dimension": (("dense", np.ones(3)), "dimensions"),
    "no kind": ((), "columns must be"),
    "rows that fall": (csc(indices=np.array([2, 0, 1])), "Column 0 of X has rows that do not increase"),
    "a row twice": (csc(indices=np.array([1, 1, 1])), "Column 0 of X has rows that do not increase"),
    "a row too far": (csc(indices=np.array([0, 2, 3])), "Column 1 of X has rows that do not increase or are not there"),
    "a negative row": (csc(indices=np.array([-1, 2, 1])), "Column 0"),
    "offsets that fall": (csc(offsets=np.array([0, 2, 1, 3, 3])), "offsets decrease"),
    "offsets too far": (csc(offsets=np.array([0, 2, 3, 3, 4])), "beyond the values"),
    "offsets of another type": (csc(offsets=np.array([0, 2, 3, 3, 3], dtype=np.int32)), "both be int32 or both int64"),
    "indices too short": (csc(indices=np.array([0, 2])), "CSC indices has 2 entries, needs 3"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_columns_are_refused(core, case):
    columns, message = BROKEN[case]
    with pytest.raises(ValueError, match=message):
        core.wide_lasso_path(columns, np.ones(3), None, True, np.ones(1), 1.0, None, None, None, TOL, 10, 1)


def test_weights_outside_their_bounds_have_no_gap(core):
    problem = replace(GOOD, upper=np.full(4, 0.5))
    with pytest.raises(ValueError, match="weight of column 2 is outside its bounds"):
        problem.gap(core, 0.1, np.array([0.0, 0.5, 0.6, 0.0]), 0.0)


# ---- real data ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["colon", "leukemia", "subjectivity"])
def real(request: pytest.FixtureRequest, shared_data: Any) -> Problem:
    import pyarrow.parquet as pq

    table = pq.read_table(shared_data / request.param / f"{request.param}.parquet").to_pandas()
    if request.param != "subjectivity":
        y = table.pop("y").to_numpy(np.float64)
        return Problem(table.to_numpy(np.float64), y)
    from sklearn.feature_extraction.text import CountVectorizer

    text, label = table["text"][::4], table["label"][::4]  # one sentence in four: fewer rows than words
    y = (label == label.iloc[0]).to_numpy(np.float64)
    return Problem(sp.csc_array(CountVectorizer().fit_transform(text), dtype=np.float64), y)


@pytest.mark.filterwarnings("ignore:Objective did not converge")
@pytest.mark.parametrize("part, ratio", [(0.3, 1.0), (0.05, 1.0), (0.1, 0.5)])
def test_real_data_with_more_columns_than_rows_have_the_answer_of_scikit_learn(core, real, part, ratio):
    problem = replace(real, ratio=ratio)
    assert problem.n_columns > len(problem.y)
    alpha = part * problem.alpha_max(core)
    weights, intercept, found = problem.solve(core, alpha, 1e-15)
    assert found["relative_gaps"][0] <= TOL
    theirs, their_intercept = scikit_learn(problem, alpha)
    assert found["objectives"][0] == pytest.approx(problem.objective(alpha, theirs, their_intercept), rel=1e-10)
    assert weights == pytest.approx(theirs, abs=1e-8 * max(1.0, np.abs(theirs).max()))
    assert intercept == pytest.approx(their_intercept, abs=1e-7)
