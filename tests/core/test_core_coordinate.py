"""Lasso and elastic net on Gram matrices: every face of small problems, the conditions of the optimum, the gap."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from gram_lasso import Problem, autoregressive, grid, small

from tests.repetitions import some_of

CONVERGED, MAX_ITER, ROUNDING, NOT_GRAM = range(4)


# ---- the optimum ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_face_lies_lower_than_the_answer(core, rng):
    for _ in range(some_of(100)):
        problem, alphas = small(rng)
        weights, gaps, objectives, _, status = (part[0] for part in problem.path(core, alphas))
        assert (weights >= problem.lower).all() and (weights <= problem.upper).all()
        scale = np.mean(problem.y**2)
        for alpha, w, gap, objective, end in zip(alphas, weights, gaps, objectives, status, strict=True):
            lowest = problem.lowest(alpha)
            assert problem.objective(alpha, w) - lowest <= 1e-13 * (scale + lowest)
            assert objective == pytest.approx(lowest, rel=1e-12, abs=1e-13 * scale)
            assert end in (CONVERGED, ROUNDING)
            assert gap * max(objective, 1e-14 * scale / 2) <= 1e-13 * (objective + scale)


@pytest.mark.slow
def test_the_gap_is_never_below_the_true_excess(core, rng):
    """States from beside the optimum to far away; the allowance is the rounding of the objective itself."""
    for _ in range(some_of(100)):
        problem, alphas = small(rng)
        weights = problem.weights(core, alphas)
        scale = np.mean(problem.y**2)
        for alpha, w in zip(alphas, weights, strict=True):
            steps = np.array([1e-9, 1e-6, 1e-3, 0.1, 1, 10])[:, None] * rng.normal(size=(6, len(w)))
            states = np.clip(w + steps * (rng.random((6, len(w))) < 0.7), problem.lower, problem.upper)
            gaps, objectives = problem.gaps(core, alpha, states)
            lowest = problem.lowest(alpha)
            for state, gap, objective in zip(states, gaps, objectives, strict=True):
                true = problem.objective(alpha, state)
                terms = np.sqrt(np.mean(problem.X**2, axis=0)) @ abs(state)  # what cancels in yy - 2 c'w + w'Gw
                rounding = 1e-14 * (10 * scale + 10 * true + terms**2)
                assert objective == pytest.approx(true, rel=1e-13, abs=rounding)
                assert gap * max(objective, 1e-14 * scale / 2) >= true - lowest - rounding


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_the_gap_is_not_above_that_of_the_lasso_on_augmented_rows(core, rng, ratio):
    X, y = autoregressive(rng)
    problem = Problem.of(X, y, ratio)
    for alpha in grid(problem, 5):
        (best,) = problem.weights(core, [alpha])
        for size in (1e-6, 1e-3, 0.1):
            w = best + size * rng.normal(size=len(best))
            (gap,), (objective,) = problem.gaps(core, alpha, w[None])
            l1, l2 = (float(part[0]) for part in problem.strengths(alpha))
            n = len(y)
            Z = np.vstack([problem.X / np.sqrt(n), np.sqrt(l2) * np.eye(len(w))])
            r = np.append(problem.y / np.sqrt(n), np.zeros(len(w))) - Z @ w
            s = min(1.0, l1 / np.abs(Z.T @ r).max())
            augmented = (
                r @ r / 2 + l1 * np.abs(w).sum() - s * (r @ np.append(problem.y / np.sqrt(n), 0 * w)) + s**2 * r @ r / 2
            )
            assert gap * objective <= augmented * (1 + 1e-9)


@pytest.mark.parametrize("ratio", [1.0, 0.7, 0.1, 0.0])
@pytest.mark.parametrize("kind", ["plain", "factors", "free", "signs", "box"])
def test_correlated_columns_meet_the_conditions_of_the_optimum_to_rounding(core, rng, kind, ratio):
    X, y = autoregressive(rng)
    d = X.shape[1]
    columns = {
        "plain": {},
        "factors": {"factors": rng.uniform(0.1, 3, size=d)},
        "free": {"factors": (rng.random(d) < 0.8).astype(float)},
        "signs": {
            "lower": np.where(rng.random(d) < 0.5, 0, -np.inf),
            "upper": np.where(rng.random(d) < 0.3, 0, np.inf),
        },
        "box": {"lower": np.full(d, -0.05), "upper": np.full(d, 0.2)},
    }[kind]
    problem = Problem.of(X, y, ratio, **columns)
    alphas = grid(problem)
    weights, gaps, _, _, status = problem.path(core, alphas, tol=0.0)
    assert set(status[0]) <= {CONVERGED, ROUNDING} and (gaps <= 1e-12).all()
    for alpha, w in zip(alphas, weights[0], strict=True):
        assert problem.violations(alpha, w).max() <= 1e-12 * np.sqrt(np.mean(problem.y**2))


@pytest.mark.parametrize("ratio", [1.0, 0.5])
@pytest.mark.parametrize("positive", [False, True])
def test_scikit_learn_has_the_same_weights(core, rng, ratio, positive):
    from sklearn.linear_model import ElasticNet

    X, y = autoregressive(rng, rho=0.5)
    d = X.shape[1]
    problem = Problem.of(X, y, ratio, lower=np.zeros(d) if positive else np.full(d, -np.inf))
    alphas = grid(problem, 4, 0.01)
    for alpha, w in zip(alphas, problem.weights(core, alphas), strict=True):
        theirs = ElasticNet(alpha=alpha, l1_ratio=ratio, positive=positive, tol=1e-14, max_iter=100_000).fit(X, y)
        assert abs(w - theirs.coef_).max() <= 1e-9 * max(1e-3, abs(w).max())
        assert ((w != 0) == (abs(theirs.coef_) > 1e-12)).all()


def test_one_column_is_a_soft_threshold(core):
    alphas = np.array([2.0, 1.0, 0.75, 0.0])
    one, wide = np.ones(1), np.full(1, np.inf)
    weights, *_ = core.gram_lasso_path(
        np.full((1, 1, 1), 4.0), one[None], one, alphas, 0.5, one, -wide, wide, 0.0, 9, 1
    )
    assert weights[0, :, 0] == pytest.approx([0, 0.5 / 4.5, 0.625 / 4.375, 0.25], rel=1e-15)


def test_without_a_penalty_the_answer_is_least_squares(core, rng):
    X, y = autoregressive(rng)
    problem = Problem.of(X, y)
    (w,) = problem.weights(core, [0.0])
    assert w == pytest.approx(np.linalg.lstsq(problem.X, problem.y, rcond=None)[0], rel=1e-9)


# ---- paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_the_order_of_the_strengths_does_not_matter(core, rng, ratio):
    X, y = autoregressive(rng)
    problem = Problem.of(X, y, ratio)
    alphas = grid(problem, 40)
    down = problem.weights(core, alphas)
    for order in (np.arange(40)[::-1], rng.permutation(40), np.array([0, 39] * 20), np.array([39])):
        assert abs(problem.weights(core, alphas[order]) - down[order]).max() <= 1e-11


def test_many_changes_of_the_active_columns_leave_no_trace(core, rng):
    X, y = autoregressive(rng)
    problem = Problem.of(X, y)
    alphas = np.tile(grid(problem, 20), 30)
    weights, _, _, iterations, status = (part[0] for part in problem.path(core, alphas, tol=1e-12))
    assert (status == CONVERGED).all() and iterations.max() < 30
    assert abs(weights[-20:] - weights[:20]).max() <= 1e-11


@pytest.mark.parametrize("threads", [2, 8])
def test_the_number_of_threads_does_not_change_a_bit(core, rng, threads):
    problems = [Problem.of(*autoregressive(rng)) for _ in range(5)]
    systems = [np.concatenate(parts) for parts in zip(*(problem.system() for problem in problems), strict=True)]
    alphas, first = grid(problems[0]), problems[0]
    rest = alphas, 0.8, first.factors, first.lower, first.upper, 1e-10, 1000
    one, other = (core.gram_lasso_path(*systems, *rest, n) for n in (1, threads))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    alone = replace(problems[3], ratio=0.8).path(core, alphas, tol=1e-10)
    assert all(np.array_equal(a[3:4], b) for a, b in zip(one, alone, strict=True))


@pytest.mark.parametrize("ratio", [1.0, 0.3])
@pytest.mark.parametrize("kind", ["plain", "free", "positive"])
def test_alpha_max_is_where_the_first_penalised_weight_appears(core, rng, ratio, kind):
    X, y = autoregressive(rng)
    d = X.shape[1]
    penalised = np.ones(d, dtype=bool)
    penalised[: 5 * (kind == "free")] = False
    lower = np.full(d, 0.0 if kind == "positive" else -np.inf)
    problem = Problem.of(X, y, ratio, factors=penalised * rng.uniform(0.5, 2, size=d), lower=lower)
    free = problem.X[:, ~penalised]
    rest = problem.y - free @ np.linalg.lstsq(free, problem.y, rcond=None)[0]
    pull = problem.X[:, penalised].T @ rest / len(y) / (ratio * problem.factors[penalised])
    top = problem.alpha_max(core)
    assert top == pytest.approx(max(0, (pull if kind == "positive" else abs(pull)).max()), rel=1e-12)
    at, below = problem.weights(core, [top, 0.999 * top])
    assert not at[penalised].any() and below[penalised].any() == (top > 0)
    assert np.count_nonzero(at[~penalised]) == 5 * (kind == "free")


def test_without_l1_no_alpha_gives_zeros(core, rng):
    problem = Problem.of(*autoregressive(rng), ratio=0.0)
    assert problem.alpha_max(core) == np.inf
    assert replace(problem, factors=0 * problem.factors).alpha_max(core) == 0


# ---- degenerate -----------------------------------------------------------------------------------------------------


def test_columns_that_say_nothing_keep_the_weight_zero(core, rng):
    X, y = autoregressive(rng, d=10)
    X[:, [2, 7]] = 0
    problem = Problem.of(X, y, factors=np.arange(10) % 3.0)
    weights = problem.weights(core, [*grid(problem), 0.0])
    assert not weights[:, [2, 7]].any() and np.count_nonzero(weights[-1]) == 8


@pytest.mark.parametrize("design", ["copies", "one-hot", "sums", "wide", "walk"])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_dependent_columns_are_solved_like_any_others(core, rng, design, ratio):
    n = 80
    Z = rng.normal(size=(n, 15))
    codes = rng.integers(0, 4, size=(2, n))
    X = {
        "copies": np.hstack([Z, Z, -Z]),
        "one-hot": np.hstack([np.eye(4)[codes[0]], np.eye(4)[codes[1]], np.eye(16)[codes[0] * 4 + codes[1]]]),
        "sums": np.hstack([np.round(Z), np.round(Z[:, :7]) + np.round(Z[:, 7:14])]),
        "wide": rng.normal(size=(n, 120)),
        "walk": rng.normal(size=(n, 100)).cumsum(axis=1),
    }[design]
    problem = Problem.of(X, X[:, :3].sum(axis=1) + rng.normal(size=n), ratio)
    alphas = grid(problem)
    weights, gaps, _, iterations, status = (part[0] for part in problem.path(core, alphas, tol=0.0))
    assert set(status) <= {CONVERGED, ROUNDING} and (gaps <= 1e-9).all() and iterations.max() < 40
    for alpha, w in zip(alphas, weights, strict=True):
        assert problem.violations(alpha, w).max() <= 1e-9 * np.sqrt(np.mean(problem.y**2) * np.mean(X**2))


def test_more_free_columns_than_rows_fit_exactly(core, rng):
    """Weights of dependent unpenalised columns must not run away along the directions that change nothing."""
    for _ in range(30):
        X = rng.normal(size=(20, 80))
        problem = Problem.of(X, X[:, :3].sum(axis=1) + rng.normal(size=20), factors=(np.arange(80) >= 25).astype(float))
        for w in problem.weights(core, [1.0, 0.1, 0.01]):
            assert np.mean((problem.y - problem.X @ w) ** 2) <= 1e-12 * np.mean(problem.y**2)
            assert np.abs(w).max() < 1e4


def test_a_target_of_zeros_has_zero_weights(core, rng):
    problem = Problem.of(rng.normal(size=(30, 4)), np.zeros(30))
    weights, gaps, objectives, _, status = problem.path(core, [0.1, 0.0])
    assert not weights.any() and not gaps.any() and not objectives.any() and not status.any()


def test_no_columns_and_no_strengths_are_legal(core):
    nothing = np.zeros(0)
    parts = core.gram_lasso_path(
        np.zeros((1, 0, 0)), np.zeros((1, 0)), np.ones(1), np.ones(2), 1.0, *[nothing] * 3, 0.0, 5, 2
    )
    assert parts[0].shape == (1, 2, 0) and np.array_equal(parts[2], [[0.5, 0.5]]) and not parts[4].any()
    parts = core.gram_lasso_path(
        np.zeros((0, 1, 1)), np.zeros((0, 1)), nothing, nothing, 1.0, *[np.zeros(1)] * 3, 0.0, 5, 2
    )
    assert parts[0].shape == (0, 0, 1)


# ---- honesty --------------------------------------------------------------------------------------------------------


def test_too_few_iterations_are_told_with_a_gap_that_holds(core, rng):
    problem = Problem.of(*autoregressive(rng))
    alphas = grid(problem, 2, 1e-3)
    (weights, gaps, objectives, iterations, status) = (part[0] for part in problem.path(core, alphas, max_iter=1))
    best = problem.path(core, alphas)[2][0]
    assert list(status) == [CONVERGED, MAX_ITER] and list(iterations) == [1, 1]
    assert gaps[1] * objectives[1] >= objectives[1] - best[1] > 0
    assert objectives[1] == pytest.approx(problem.objective(alphas[1], weights[1]), rel=1e-12)


def test_alpha_max_is_refused_where_the_unpenalised_columns_are_not_solved(core, rng):
    problem = Problem.of(*autoregressive(rng), factors=np.zeros(60))
    with pytest.raises(RuntimeError, match="Raise max_iter"):
        core.gram_alpha_max(*problem.system(), 1.0, problem.factors, problem.lower, problem.upper, 1, 1)


def test_a_tolerance_below_rounding_is_told(core, rng):
    problem = Problem.of(*autoregressive(rng))
    gaps, status = (problem.path(core, grid(problem), tol=0.0)[part][0] for part in (1, 4))
    assert (status[gaps > 0] == ROUNDING).all() and (status[gaps == 0] == CONVERGED).all() and gaps.max() < 1e-12


def test_a_matrix_that_is_no_gram_matrix_is_told(core):
    G, c, one, wide = np.array([[[1.0, 2.0], [2.0, 1.0]]]), np.array([[0.9, 0.8]]), np.ones(2), np.full(2, np.inf)
    *_, status = core.gram_lasso_path(G, c, np.ones(1), np.array([0.01]), 1.0, one, -wide, wide, 1e-8, 100, 1)
    assert status[0, 0] == NOT_GRAM


@pytest.mark.parametrize(
    "change, message",
    [
        ({"gram": np.full((1, 2, 2), np.nan)}, "finite"),
        ({"moment": np.array([[np.inf, 0.0]])}, "finite"),
        ({"square": np.array([np.nan])}, "finite"),
        ({"square": np.array([-1.0])}, "square must be >= 0"),
        ({"gram": np.array([[[1.0, 0.5], [0.4, 1.0]]])}, "not symmetric"),
        ({"moment": np.array([[3.0, 0.0]])}, "not sums over the same rows"),
        ({"gram": np.ones((1, 2, 3))}, "columns x columns"),
        ({"moment": np.ones((2, 2))}, "matrices x columns"),
        ({"square": np.ones(2)}, "square has 2 entries"),
        ({"alphas": np.array([np.inf])}, "finite"),
        ({"alphas": np.array([-1.0])}, "alphas must be >= 0"),
        ({"alphas": np.array([1e308]), "factors": np.full(2, 10.0)}, "alphas times factors"),
        ({"ratio": 1.5}, "ratio must be in"),
        ({"ratio": np.nan}, "ratio must be in"),
        ({"factors": np.array([1.0, -1.0])}, "factors must be >= 0"),
        ({"factors": np.array([1.0, np.inf])}, "finite"),
        ({"factors": np.ones(3)}, "factors has 3 entries"),
        ({"lower": np.array([0.1, 0.0])}, "bounds must hold 0"),
        ({"upper": np.array([np.nan, 0.0])}, "bounds must hold 0"),
        ({"tol": -1.0}, "tol must be >= 0"),
        ({"tol": np.nan}, "tol must be >= 0"),
        ({"max_iter": 0}, "max_iter must be >= 1"),
    ],
)
def test_bad_arguments_are_refused(core, change, message):
    legal = {
        "gram": np.eye(2)[None],
        "moment": np.array([[0.5, 0.1]]),
        "square": np.ones(1),
        "alphas": np.ones(1),
        "ratio": 1.0,
        "factors": np.ones(2),
        "lower": -np.ones(2),
        "upper": np.ones(2),
        "tol": 1e-8,
        "max_iter": 10,
        "threads": 1,
    }
    core.gram_lasso_path(**legal)
    with pytest.raises(ValueError, match=message):
        core.gram_lasso_path(**{**legal, **change})


def test_arrays_are_never_converted_in_secret(core):
    one = np.ones(2)
    with pytest.raises(TypeError):
        core.gram_lasso_path(
            np.eye(2, dtype=np.float32)[None], one[None] / 9, np.ones(1), one, 1.0, one, -one, one, 1e-8, 10, 1
        )


def test_states_outside_their_bounds_have_no_gap(core, rng):
    problem = Problem.of(*autoregressive(rng), lower=np.zeros(60))
    with pytest.raises(ValueError, match="within their bounds"):
        problem.gaps(core, 0.1, np.full((1, 60), -1.0))


def test_control_c_ends_a_long_path(core, rng):
    problem = Problem.of(*autoregressive(rng, n=800, d=600), ratio=0.1)
    alphas = np.tile(grid(problem, 2, 1e-2), 4000)
    main = threading.get_ident()

    def interrupt_inside_the_core() -> None:
        looks = 0
        while looks < 5_000:
            looks = looks + 1 if sys._current_frames()[main].f_code.co_name == "path" else 0
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt_inside_the_core, daemon=True)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        problem.path(core, alphas, threads=2)
    thread.join()
    assert problem.path(core, alphas[:1])[4][0, 0] == CONVERGED
