"""solver= and start= of linear models, coordinate descent by sweeps, and steps that are too large."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.minimise.minimum import SOLVERS

SMOOTH = [name for name, solver in SOLVERS.items() if "rows" not in solver.needs]
BY_ROWS = [name for name in SOLVERS if name not in SMOOTH]
LINEAR = {
    "least squares": cf.LinearRegression(),
    "ridge": cf.Ridge(0.1),
    "standardised ridge": cf.Ridge(0.1, standardize=True),
    "huber": cf.HuberRegressor(scale=1.0, max_iter=1000),
}


def _rows(n: int = 120, d: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(1, 2, d)
    return X, 1 + X @ np.linspace(1, -1, d) + rng.normal(size=n)


# ---- the notes' rule -------------------------------------------------------------------------------------------------


def test_one_epoch_of_lms_from_zero_is_the_rule_by_hand() -> None:
    """w += step (y - h(x)) x, b alike, step 1/10, rows (1, 2), (2, 3), (3, 1).

    row 1: h = 0,                 error 2      -> w = 0.2,                   b = 0.2
    row 2: h = 0.2 + 0.4 = 0.6,   error 2.4    -> w = 0.2 + 0.48 = 0.68,     b = 0.44
    row 3: h = 0.44 + 2.04 = 2.48, error -1.48 -> w = 0.68 - 0.444 = 0.236,  b = 0.292
    """
    lms = cf.SGD(step=0.1, schedule="constant", shuffle=False, record="weights")
    with pytest.warns(ConvergenceWarning):
        model = cf.LinearRegression(solver=lms, start="zero", max_iter=1).fit([[1.0], [2.0], [3.0]], [2.0, 3.0, 1.0])
    by_hand = [[0.0, 0.0], [0.2, 0.2], [0.68, 0.44], [0.236, 0.292]]
    np.testing.assert_allclose(model.weights_, by_hand, rtol=0, atol=1e-15)
    assert model.coef_[0] == model.weights_[-1, 0] and model.intercept_ == model.weights_[-1, 1]


def test_one_step_of_gradient_descent_from_zero_is_the_rule_by_hand() -> None:
    """w -= step mean of (h(x) - y) x: from 0 with rows (1, 2), (2, 3), (3, 1) w = step 11/3, b = step 2."""
    descent = cf.GradientDescent(step=0.1, record="weights")
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = cf.LinearRegression(solver=descent, start="zero", max_iter=1).fit(
            [[1.0], [2.0], [3.0]], [2.0, 3.0, 1.0]
        )
    np.testing.assert_allclose(model.weights_, [[0, 0], [1.1 / 3, 0.2]], rtol=1e-14)


def test_one_step_of_softmax_from_zero_is_the_rule_by_hand() -> None:
    """From 0 every class has the chance 1/3: row (1, class 0) moves class 0 by step 2/3, the others by -step 1/3."""
    rule = cf.SGD(step=0.3, schedule="constant", shuffle=False, record="weights")
    model = cf.LogisticRegression(alpha=0.0, solver=rule, start="zero", max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit([[1.0], [2.0], [-1.0]], [0, 1, 2])
    np.testing.assert_allclose(model.weights_[1], [[0.2, 0.2], [-0.1, -0.1], [-0.1, -0.1]], rtol=1e-12)
    assert model.weights_.shape == (4, 3, 2)


@pytest.mark.parametrize("solver", ["sgd", "mini-batch", "averaged-sgd"])
def test_softmax_is_learned_row_by_row(solver: str) -> None:
    X, y = _rows(200)
    k = np.digitize(y, [0, 2])
    best = cf.LogisticRegression(alpha=0.1).fit(X, k)
    model = cf.LogisticRegression(alpha=0.1, solver=solver, tol=1e-2).fit(X, k)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.predict_proba(X), best.predict_proba(X), atol=0.1)
    bare = cf.LogisticRegression(alpha=0.1, solver=solver, tol=1e-2, fit_intercept=False).fit(X, k)
    assert not bare.intercept_.any()


# ---- every solver ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("solver", SMOOTH)
def test_every_smooth_solver_ends_at_the_direct_fit_with_its_steps(name: str, solver: str) -> None:
    X, y = _rows()
    direct = LINEAR[name].fit(X, y)
    recorded = type(SOLVERS[solver])(record="weights")
    model = type(direct)(**direct.get_params() | {"solver": recorded, "start": "zero"}).fit(X, y)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.coef_, direct.coef_, atol=1e-3)
    assert model.weights_.shape == (len(model.history_), X.shape[1] + 1)
    assert not model.weights_[0].any()
    np.testing.assert_array_equal(model.weights_[-1], [*model.coef_, model.intercept_])
    assert model.history_[-1]["objective"] == pytest.approx(_objective(model, X, y), rel=1e-9)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("solver", BY_ROWS)
def test_every_solver_by_rows_comes_near_the_direct_fit(name: str, solver: str) -> None:
    X, y = _rows()
    direct = LINEAR[name].fit(X, y)
    model = type(direct)(**direct.get_params() | {"solver": solver, "tol": 1e-2, "max_iter": 300}).fit(X, y)
    assert model.certificate_.holds
    np.testing.assert_allclose(model.predict(X), direct.predict(X), atol=0.6)


def _objective(model: Any, X: Any, y: Any) -> float:
    r = y - model.predict(X)
    alpha = float(getattr(model, "alpha", None) or 0.0)
    spreads = X.std(axis=0) if getattr(model, "standardize", False) else 1.0
    edge = model.delta * model.scale if isinstance(model, cf.HuberRegressor) else np.inf
    loss = np.where(np.abs(r) <= edge, r**2 / 2, edge * np.abs(r) - edge**2 / 2 if np.isfinite(edge) else 0.0)
    return float(loss.mean() + alpha / 2 * np.sum(np.square(spreads * model.coef_)))


def test_a_start_is_where_the_steps_begin() -> None:
    X, y = _rows()
    begin = [1.0, 2.0, 3.0, 4.0]
    model = cf.Ridge(0.1, solver=cf.LBFGS(record="weights"), start=begin).fit(X, y)
    np.testing.assert_allclose(model.weights_[0], begin, rtol=1e-12)
    with pytest.raises(ValueError, match="solver='auto' solves directly"):
        cf.Ridge(start="zero").fit(X, y)


def test_a_solver_that_does_not_suit_the_objective_is_refused_with_those_that_do() -> None:
    X, y = _rows()
    for solver in SOLVERS:
        with pytest.raises(ValueError, match=r"corner at 0\. Use solver='auto' or 'coordinate-descent'"):
            cf.Lasso(solver=solver).fit(X, y)
        with pytest.raises(ValueError, match="Give scale= a number"):
            cf.HuberRegressor(solver=solver).fit(X, y)
    with pytest.raises(ValueError, match="solver must be one of"):
        cf.LinearRegression(solver="coordinate-descent").fit(X, y)
    with pytest.raises(ValueError, match="alpha=0 without bounds is least squares"):
        cf.Lasso(0.0, solver="coordinate-descent").fit(X, y)


@pytest.mark.parametrize("name", LINEAR)
def test_files_keep_the_solver_the_start_and_the_steps(name: str, tmp_path: Any) -> None:
    X, y = _rows()
    for start in ("zero", 3, [1.0, 2.0, 3.0, 4.0]):
        settings = LINEAR[name].get_params() | {"solver": "lbfgs", "start": start}
        model = type(LINEAR[name])(**settings).fit(X, y)
        cf.save(model, tmp_path / "model")
        again = cf.load(tmp_path / "model")
        assert again.solver == "lbfgs" and np.array_equal(again.start, start)
        for column in ("iteration", "objective", "gap", "gradient_norm", "step_size", "step"):
            np.testing.assert_array_equal(
                [row[column] for row in again.history_], [row[column] for row in model.history_]
            )
        assert cf.verify(again, X, y).holds


def test_folds_of_a_chosen_solver_are_refits() -> None:
    X, y = _rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        chosen = cf.CrossValidated(cf.Ridge(solver="newton"), {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    direct = cf.CrossValidated(cf.Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(chosen.best_estimator_.coef_, direct.best_estimator_.coef_, rtol=1e-6)
    np.testing.assert_allclose(chosen.best_score_, direct.best_score_, rtol=1e-6)


# ---- coordinate descent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(80, 5), (20, 40)])
@pytest.mark.parametrize("kind", ["lasso", "elastic net", "bounded", "standardised"])
@pytest.mark.slow
def test_sweeps_show_primal_dual_and_gap_and_end_at_the_optimum(kind: str, shape: tuple[int, int]) -> None:
    X, y = _rows(*shape)
    fast: Any = {
        "lasso": cf.Lasso(0.1),
        "elastic net": cf.ElasticNet(0.1, 0.5),
        "bounded": cf.Lasso(0.1, bounds=(0.0, 1.0)),
        "standardised": cf.Lasso(0.1, standardize=True),
    }[kind].fit(X, y)
    slow = type(fast)(**fast.get_params() | {"solver": cf.CoordinateDescent(record="weights")}).fit(X, y)
    assert slow.certificate_.holds and len(slow.history_) >= 2
    best = fast.history_[-1]["objective"]
    for row, weights in zip(slow.history_, slow.weights_, strict=True):
        assert row["dual"] <= best * (1 + 1e-9) and best <= row["objective"] * (1 + 1e-9)
        assert row["gap"] == pytest.approx(row["objective"] - row["dual"], rel=1e-6, abs=1e-12)
        assert row["objective"] == pytest.approx(_elastic(fast, X, y, weights), rel=1e-9)
    objectives = [row["objective"] for row in slow.history_]
    assert (np.diff(objectives) <= 1e-12).all()
    assert slow.history_[0]["iteration"] == 0 and not slow.weights_[0, :-1].any()


def _elastic(model: Any, X: Any, y: Any, weights: Any) -> float:
    w, r = weights[:-1], y - X @ weights[:-1] - weights[-1]
    ratio = float(getattr(model, "l1_ratio", 1.0))
    spreads = X.std(axis=0) if model.standardize else 1.0
    penalty = ratio * np.abs(spreads * w).sum() + (1 - ratio) / 2 * np.square(spreads * w).sum()
    return float(r @ r / (2 * len(y)) + model.alpha * penalty)


def test_a_sweep_by_hand() -> None:
    """Two columns at right angles of mean square 1: the first sweep soft-thresholds the products, and is the last."""
    X, y = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]), np.array([3.0, 1, -1, -3])
    model = cf.Lasso(0.5, solver=cf.CoordinateDescent(record="weights")).fit(X, y)
    np.testing.assert_allclose(model.weights_[1], [2 - 0.5, 1 - 0.5, 0.0], atol=1e-15)
    assert [row["objective"] for row in model.history_[:2]] == pytest.approx([2.5, 0.25 + 0.5 * 2.0])


# ---- steps that are too large ----------------------------------------------------------------------------------------


def _curvature(X: Any, alpha: float = 0.0) -> float:
    Z = np.column_stack([X, np.ones(len(X))])
    return float(np.linalg.eigvalsh(Z.T @ Z / len(X) + np.diag([alpha] * X.shape[1] + [0.0]))[-1])


@pytest.mark.parametrize("name", ["least squares", "ridge", "huber"])
def test_descent_with_too_large_a_step_names_the_largest_stable_one(name: str) -> None:
    X, y = _rows()
    limit = 2 / _curvature(X, 0.1 if name == "ridge" else 0.0)
    settings = LINEAR[name].get_params() | {"start": "zero", "max_iter": 400}
    with pytest.warns(ConvergenceWarning, match=r"2 / \(largest curvature\)") as told:
        type(LINEAR[name])(**settings | {"solver": cf.GradientDescent(step=3 * limit)}).fit(X, y)
    stated = float(str(told[0].message).split("= ")[-1].split(". Take")[0])
    assert stated <= limit * (1 + 1e-9) or name == "huber"  # Huber's curvature is that of the rows within its band
    if name != "huber":
        assert stated == pytest.approx(limit, rel=1e-6)
    stable = type(LINEAR[name])(**settings | {"solver": cf.GradientDescent(step=0.5 * limit), "tol": 1e-4}).fit(X, y)
    assert stable.certificate_.holds


@pytest.mark.parametrize("kind", ["logistic", "softmax", "poisson"])
def test_descent_of_scores_with_too_large_a_step_names_the_largest_stable_one(kind: str) -> None:
    X, y = _rows()
    step = cf.GradientDescent(step=500.0)
    model: Any = cf.PoissonRegressor(solver=step) if kind == "poisson" else cf.LogisticRegression(solver=step)
    target = {"logistic": y > 1, "softmax": np.digitize(y, [0, 2]), "poisson": np.round(np.abs(y))}[kind]
    with pytest.warns(ConvergenceWarning, match=r"2 / \(largest curvature\)"):
        model.set_params(max_iter=50).fit(X, target)


@pytest.mark.parametrize("solver", [cf.SGD, cf.MiniBatch, cf.AveragedSGD])
@pytest.mark.parametrize("kind", ["least squares", "ridge", "huber", "logistic", "softmax", "poisson"])
@pytest.mark.slow
def test_steps_by_rows_that_are_too_large_name_the_largest_stable_one(solver: Any, kind: str) -> None:
    X, y = _rows()
    models: dict[str, Any] = LINEAR | {"poisson": cf.PoissonRegressor()}
    model = models.get(kind, cf.LogisticRegression())
    target = {"logistic": y > 1, "softmax": np.digitize(y, [0, 2]), "poisson": np.round(np.abs(y))}.get(kind, y)
    too_large = solver(step=100.0, schedule="constant")
    settings = model.get_params() | {"solver": too_large, "max_iter": 3, "tol": 1e-12}
    with pytest.warns(ConvergenceWarning, match=r"largest curvature of a row's loss\)"):
        type(model)(**settings).fit(X, target)


@pytest.mark.parametrize("solver", [cf.SGD, cf.MiniBatch])
def test_learning_row_by_row_hands_back_the_last_state_unless_the_best_is_asked_for(solver, rng):
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, -1.0] + rng.normal(size=60)
    options = {"step": 0.2, "schedule": "constant", "record": "weights", "batch_rows": 1 if solver is cf.SGD else 5}
    n_other = 0
    for max_iter in range(3, 9):
        model = cf.LinearRegression(solver=solver(**options), max_iter=max_iter, tol=1e-9).fit(X, y)
        last = [*model.coef_, model.intercept_]
        np.testing.assert_array_equal(model.weights_[-1], last)
        best = model.set_params(solver=solver(keep="best", **options)).fit(X, y)
        least = min(row["objective"] for row in best.history_)
        assert np.mean(np.square(y - best.predict(X))) / 2 == pytest.approx(least)
        n_other += not np.array_equal(last, [*best.coef_, best.intercept_])
    assert n_other > 0
    with pytest.raises(ValueError, match="keep must be"):
        solver(keep="first")


@pytest.mark.parametrize("solver", [cf.AveragedSGD, cf.SGD, cf.MiniBatch, cf.GradientDescent])
@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.Ridge(0.1), cf.HuberRegressor(scale=1.0)])
def test_steps_that_are_too_large_say_so_with_the_largest_stable_one_and_blame_no_column(solver, model, rng):
    X = rng.normal(size=(100, 3)) * [1.0, 5.0, 8.0]
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=100)
    rows = np.column_stack([X, np.ones(100)])
    largest = np.square(rows).sum(axis=1).max()  # of a row; of all rows the largest eigenvalue of their mean
    largest = np.linalg.eigvalsh(rows.T @ rows / 100)[-1] if solver is cf.GradientDescent else largest
    for step in (100.0, 1e150):
        model.set_params(solver=solver(step=step, record="weights"), max_iter=30)
        with pytest.warns(ConvergenceWarning, match="must be below 2 / ") as told:
            model.fit(X, y)
        words = str(told[0].message)
        stable = float(words.split(") = ")[1].split(maxsplit=1)[0].rstrip("."))
        assert 0.7 * 2 / largest < stable <= 2 / largest * (1 + 1e-9)
        assert "Multiply" not in words and np.isfinite(model.weights_).all()


def test_parts_of_rows_that_make_steps_diverge_name_the_largest_stable_one(rng):
    X = rng.normal(size=(100, 2))
    model = cf.PoissonRegressor(alpha=0.0, solver=cf.SGD(step=100.0, schedule="constant"))
    with pytest.raises(ValueError, match=r"must be below 2 / .* = 0\.\d+ to be stable"):
        for _ in range(20):
            model.partial_fit(X, rng.poisson(3.0, 100))
