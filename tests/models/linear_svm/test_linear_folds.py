"""Linear machines on all folds together: scores are those of refits, and each is the least of its objective."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.models.folds import Candidates, RowFolds
from certifit.models.linear_svm.folds import Machines
from certifit.selection.folds.engine import _refitted, offered_scores
from certifit.selection.folds.rows import Rows
from certifit.selection.folds.splits import rounds_of

ALPHAS = (1e1, 1e-2, 1e-4)


def table(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """40 rows of 60 columns far from 0, some of them equal, with weights that leave some out."""
    rng = np.random.default_rng(seed)
    y = np.arange(40) % n_classes
    X = 20 + rng.normal(size=(40, 60))
    X[:, 0] += 3 * y
    X[35:] = X[:5]
    return X, np.array(list("abcd"))[y], rng.integers(0, 3, 40).astype(float)


def folds_of(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> tuple[Rows, Any]:
    rows = Rows.of(model, X, y, weight)
    return rows, rounds_of(cf.Folds(3, stratify=True), rows.source, rows.labels, rows.groups)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_scores_of_rows_left_out_are_those_of_refits(n_classes: int, standardize: bool, fit_intercept: bool) -> None:
    X, y, weight = table(n_classes)
    model = cf.Calibrated(cf.LinearSVC(standardize=standardize, fit_intercept=fit_intercept), cv=2)
    rows, rounds = folds_of(model, X, y, weight if fit_intercept else None)
    grid = [{"estimator__alpha": alpha} for alpha in ALPHAS]
    together = offered_scores(model, rows, rounds, grid, "neg_log_loss", with_rows=True)
    refits = _refitted(model, rows, rounds, grid, "neg_log_loss", None, "folds", True)
    assert together.validation == pytest.approx(refits.validation, abs=1e-6)
    for one, other in zip(together.held_out, refits.held_out, strict=True):
        assert np.array_equal(one.numbers, other.numbers)
        assert one.values["score"] == pytest.approx(other.values["score"], abs=1e-5)


def test_the_model_itself_is_scored_as_its_refits() -> None:
    X, y, _ = table(3)
    model = cf.LinearSVC()
    rows, rounds = folds_of(model, X, y, None)
    grid = [{"alpha": alpha} for alpha in (*ALPHAS, None)]
    together = offered_scores(model, rows, rounds, grid, "accuracy")
    refits = _refitted(model, rows, rounds, grid, "accuracy", None, "folds", False)
    assert together.validation == pytest.approx(refits.validation)


@pytest.mark.parametrize(
    "settings", [{"loss": "hinge"}, {"class_weight": "balanced"}, {"solver": "coordinate"}, {"max_iter": 1}]
)
def test_what_is_not_solved_together_is_refitted(settings: dict[str, Any]) -> None:
    X, y, _ = table(2)
    model = cf.LinearSVC(alpha=1e-3, **settings)
    rows, rounds = folds_of(model, X, y, None)
    assert not isinstance(model.folds(rows.source, rounds, Candidates([{}], rows.classes), rows.shared), RowFolds)


def test_more_rows_than_columns_are_refitted() -> None:
    X, y, _ = table(2)
    rows, rounds = folds_of(cf.LinearSVC(), X[:, :20], y, None)
    assert cf.LinearSVC().folds(rows.source, rounds, Candidates([{}], rows.classes), rows.shared) is None


def hard(name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None, dict[str, Any], float]:
    """Rows, weights, settings and an alpha of 36 rows whose last third are copies, some with other labels."""
    X = rng.normal(size=(36, 72))
    X[24:] = X[:12]
    if name == "copies":
        return X, None, {}, 1e-6
    if name == "unlike weights":
        return X, 10.0 ** rng.uniform(-6, 6, 36), {"standardize": True}, 1e-9
    if name == "lost alpha":
        return np.rint(3 * X) * 1e8, None, {"fit_intercept": False}, 1e-12
    if name == "beyond float64":
        return X * 1e155, None, {"fit_intercept": False}, 1.0
    X[:, 0] = 1e10 * (1 + 1e-13 * rng.normal(size=36))  # rounding of a constant
    return X, None, {"standardize": True}, 0.01


@pytest.mark.parametrize("name", ["copies", "unlike weights", "lost alpha", "beyond float64", "nearly constant"])
def test_scores_that_are_not_those_of_refits_are_refitted(name: str) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, weight, settings, alpha = hard(name, rng)
        y = np.array(list("abc"))[rng.permutation(36) % 3]
        model = cf.LinearSVC(alpha=alpha, **settings)
        rows, rounds = folds_of(model, X, y, weight)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = model.folds(rows.source, rounds, Candidates([{}], rows.classes), rows.shared)
        if found is None:
            continue
        assert name not in ("lost alpha", "beyond float64")
        cells = rounds[0].cells.of(rows.source.gather())
        for times, state in zip(rounds[0].train, found.states[0][0], strict=True):
            seen = np.append(times, 0.0)[cells] * (1.0 if weight is None else weight)
            refit = model.fit(X[seen > 0], y[seen > 0], seen[seen > 0])
            assert state.scores == pytest.approx(refit.decision_function(X), rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("has_intercept", [False, True])
def test_machines_end_at_the_least_of_their_objectives(has_intercept: bool) -> None:
    """No gap is left but rounding, and none is below it where a machine has not moved."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 50))
    y = np.sign(rng.normal(size=(6, 30)))
    bound = rng.uniform(0.5, 2, size=(6, 30)) * 10.0 ** np.arange(-3, 3)[:, None]
    machines = Machines(X @ X.T, y, bound, has_intercept)
    assert (machines.gaps() > 1e-6).all()
    machines.solve(50)
    assert np.abs(machines.gaps()).max() < 1e-9
    w = machines.beta @ X
    slack = np.maximum(1 - y * (w @ X.T + machines.b[:, None]), 0)
    assert w == pytest.approx((2 * bound * slack * y) @ X, abs=1e-9)
    if has_intercept:
        assert (bound * slack * y).sum(axis=1) == pytest.approx(np.zeros(6), abs=1e-9)


def exact_scores(X: np.ndarray, y: np.ndarray, bound: np.ndarray, z: np.ndarray, has_intercept: bool) -> Any:
    """The best scores in fractions, by Newton's steps from rows that have slack at z; None where they do not settle."""
    rows, n = [[Fraction(x) for x in row] for row in X], len(y)
    G = [[sum(a * b for a, b in zip(row, other, strict=True)) for other in rows] for row in rows]
    for _ in range(20):
        active = [i for i in range(n) if y[i] * z[i] < 1]
        system = [[G[i][j] + (i == j) / (2 * Fraction(bound[i])) for j in active] + [Fraction(1)] for i in active]
        if has_intercept:
            system.append([Fraction(1)] * len(active) + [Fraction(0)])
        right = [Fraction(y[i]) for i in active] + [Fraction(0)] * has_intercept
        solution = solved([row[: len(right)] for row in system], right)
        b = solution[-1] if has_intercept else Fraction(0)
        z = [sum(G[i][j] * beta for j, beta in zip(active, solution, strict=False)) + b for i in range(n)]
        if active == [i for i in range(n) if y[i] * z[i] < 1]:
            return z
    return None


def solved(system: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """By elimination."""
    table = [[*row, value] for row, value in zip(system, right, strict=True)]
    for k in range(len(table)):
        pivot = max(range(k, len(table)), key=lambda i: abs(table[i][k]))
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [x / table[k][k] for x in table[k]]
        for i in range(len(table)):
            if i != k:
                table[i] = [x - table[i][k] * at for x, at in zip(table[i], table[k], strict=True)]
    return [row[-1] for row in table]


@pytest.mark.parametrize("has_intercept", [False, True])
def test_scores_are_no_further_from_the_best_than_is_said(has_intercept: bool) -> None:
    """Of rows and weights of unlike sizes, whose products are rounded by more than small rows are long."""
    n_checked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5, 8)) * 10.0 ** rng.uniform(-7, 7, size=(5, 1))
        y, bound = np.array([1.0, -1, 1, -1, rng.choice([-1, 1])]), 10.0 ** rng.uniform(-4, 12, size=5)
        machines = Machines(X @ X.T, y[None], bound[None], has_intercept)
        machines.solve(50)
        machines.gaps()
        off = machines.off(np.square(X).sum(axis=1), X.shape[1])[0]
        best = exact_scores(X, y, bound, machines.z[0], has_intercept) if np.isfinite(off).all() else None
        if best is not None:
            n_checked += 1
            assert all(abs(Fraction(z) - at) <= most for z, at, most in zip(machines.z[0], best, off, strict=True))
    assert n_checked > 15
