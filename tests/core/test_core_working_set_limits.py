"""Lasso with more columns than rows where it ends: degenerate data, few sweeps, rounding, Ctrl-C, refusals."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from wide_problem import TOL, VARIANTS, Problem, made, scikit_learn

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
@pytest.mark.slow
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


CLOSE = {
    "copies": lambda rng, X: X[:, rng.integers(0, 50, size=X.shape[1])],
    "neighbours nearly equal": lambda rng, X: np.cumsum(X, axis=1),
    "few directions and noise": lambda rng, X: X[:, :8] @ rng.normal(size=(8, X.shape[1])) + 1e-4 * X,
}


@pytest.mark.parametrize("part", [1e-2, 1e-4])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("case", CLOSE)
def test_columns_that_all_but_depend_on_each_other_take_few_rounds(core, rng, case, form, part):
    X = CLOSE[case](rng, rng.normal(size=(60, 300)))
    y = X @ np.where(np.arange(300) % 30 == 0, 1.0, 0.0)
    problem = Problem(sp.csc_array(X) if form == "sparse" else X, y + 0.3 * y.std() * rng.normal(size=60))
    alpha = part * problem.alpha_max(core)
    weights, intercept, found = problem.solve(core, alpha, 1e-9)
    assert found["status"] == ["converged"] and found["iterations"][0] < 200
    assert problem.violation(alpha, weights, intercept) < 1e-9


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_unpenalised_columns_that_depend_on_each_other_are_certified(core, rng, ratio):
    problem = made(rng, 60, 300)
    X = problem.X[:, rng.integers(0, 100, size=300)]
    factor = np.where(np.arange(300) < 30, 0.0, 1.0)
    problem = replace(problem, X=X, factor=factor, ratio=ratio)
    for part in (0.1, 1e-3):
        _, _, found = problem.solve(core, part * problem.alpha_max(core), 1e-9)
        assert found["status"] == ["converged"]


def test_a_path_far_down_changes_between_products_and_residuals(core, rng):
    """A ridge lets in more weights than rows: the working set outgrows its Gram matrix, and shrinks again."""
    problem = replace(made(rng, 30, 1200), ratio=0.05)
    largest = problem.alpha_max(core)
    alphas = largest * np.array([0.5, 1e-3, 0.5, 1e-3])
    found = problem.path(core, alphas, 1e-10)
    assert set(found["status"]) == {"converged"} and found["offsets"][2] - found["offsets"][1] > 4 * 30
    assert found["objectives"][[0, 1]] == pytest.approx(found["objectives"][[2, 3]], rel=1e-9)


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
