"""Linear support vector machines beside their formulas, exact sums, the textbook's listing and peers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC as TheirLinearSVC

import certifit as cf
from certifit import kernels
from certifit.data.columns import Columns
from certifit.models.linear_svm import solver as linear_solver
from certifit.models.linear_svm.certificate import certify, multipliers_of
from certifit.models.linear_svm.task import LinearTask, moments

POWER = {"hinge": 1, "squared_hinge": 2}
LOSSES = tuple(POWER)


def rows(n=120, d=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + np.arange(d)
    return X, np.where(X @ np.linspace(1, -1, d) + noise * rng.normal(size=n) > -1, "yes", "no")


def objective(model, X, y, w, b, weight=None):
    """The formula of the docstring."""
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    slack = np.maximum(0.0, 1 - sign * (X @ w + b)) ** POWER[model.loss]
    return np.average(slack, weights=weight) + model.alpha_ / 2 * (w @ w)


def exact_objective(model, X, y, w, b):
    """The same in rational numbers."""
    sign = [1 if label == model.classes_[1] else -1 for label in y]
    X, w, b = [[Fraction(v) for v in row] for row in X], [Fraction(v) for v in w], Fraction(b)
    slack = [1 - s * (sum(p * q for p, q in zip(row, w, strict=True)) + b) for s, row in zip(sign, X, strict=True)]
    costs = sum(max(v, Fraction(0)) ** POWER[model.loss] for v in slack)
    return costs / len(X) + Fraction(model.alpha_) / 2 * sum(v * v for v in w)


def exact_bound(model, X, y, a):
    """A lower bound on every objective in rational numbers, from multipliers near the best; C = 1 / (alpha n)."""
    sign = [1 if label == model.classes_[1] else -1 for label in y]
    C = 1 / (Fraction(model.alpha_) * len(X))
    a = [max(Fraction(v), Fraction(0)) for v in a]
    a = a if model.loss == "squared_hinge" else [min(v, C) for v in a]
    above, below = (sum(v for v, s in zip(a, sign, strict=True) if s == side) for side in (1, -1))
    factor = {1: min(above, below) / above, -1: min(above, below) / below}  # the sum of sign a is 0
    a = [v * factor[s] for v, s in zip(a, sign, strict=True)]
    w = [sum(s * v * Fraction(x) for s, v, x in zip(sign, a, column, strict=True)) for column in X.T]
    conjugate = sum(v * v for v in a) / (4 * C) if model.loss == "squared_hinge" else 0
    return Fraction(model.alpha_) * (sum(a) - conjugate - sum(v * v for v in w) / 2)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_bounds_the_excess_in_exact_sums_and_nudges_are_refused(loss):
    """The least objective lies between two rational numbers, 1e-12 apart; no state may claim less than its excess."""
    X, y = rows(60, 3)
    model = cf.LinearSVC(0.05, loss).fit(X, y)
    w, b, best = model.coef_[0].copy(), model.intercept_.copy(), model.certificate_
    task = model._task_on(X, y)
    v = 1 - task.machines[0].sign * (X @ w + b)
    low = exact_bound(model, X, y, multipliers_of(task, 0, v, 1e-4))
    high = exact_objective(model, X, y, w, b[0])
    assert 0 <= high - low <= Fraction(best.value) * high and best.value < 1e-12
    rng = np.random.default_rng(1)
    for size, _ in product((1e-9, 1e-6, 1e-4, 1e-2, 1.0), range(4)):
        model.coef_, model.intercept_ = w[None] + size * rng.normal(size=(1, 3)), b + size * rng.normal(size=1)
        primal = exact_objective(model, X, y, model.coef_[0], model.intercept_[0])
        value = certify(task, model._state(), model.tol).value
        assert Fraction(value) * primal >= primal - high
        assert value > 10 * best.value or size < 1e-4
        assert value > model.tol or size < 1e-2


@pytest.mark.parametrize("loss", LOSSES)
def test_no_solver_and_no_peer_is_lower(loss):
    X, y = rows(300, 5, seed=2)
    best = cf.LinearSVC(0.02, loss, tol=1e-6).fit(X, y)
    least = objective(best, X, y, best.coef_[0], best.intercept_[0])
    assert best.certificate_.value < 1e-10
    solvers = ("newton", "coordinate") if loss == "squared_hinge" else ("interior-point", "coordinate")
    for solver in solvers:
        other = cf.LinearSVC(0.02, loss, solver=solver, tol=1e-6).fit(X, y)
        assert other.certificate_.holds
        assert least * (1 - 1e-9) <= objective(other, X, y, other.coef_[0], other.intercept_[0]) <= least * (1 + 2e-6)
        assert all(not row["dual"] > row["objective"] for row in other.history_)
    sign = np.where(y == "yes", 1, -1)
    ours = cf.LinearSVC(0.02, loss, fit_intercept=False).fit(X, y)  # their intercept is penalised
    theirs = TheirLinearSVC(
        C=1 / (0.02 * len(X)), loss=loss, fit_intercept=False, tol=1e-9, max_iter=100_000, dual=True
    ).fit(X, sign)
    assert np.allclose(ours.coef_, theirs.coef_, rtol=1e-4, atol=1e-5)


def test_the_hinge_is_the_kernel_machine_of_products():
    X, y = rows(200, 4, seed=3)
    ours, kernel = cf.LinearSVC(0.01, "hinge").fit(X, y), cf.SVC(0.01, kernel=kernels.Linear(), tol=1e-8).fit(X, y)
    assert np.allclose(ours.decision_function(X), kernel.decision_function(X), rtol=1e-5, atol=1e-5)


def listing(X, sign, alpha, order):
    """The textbook's averaged SGD, line by line."""
    theta, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, i in enumerate(order, start=1):
        w = theta / (alpha * t)
        total += w
        if sign[i] * (X[i] @ w) < 1:
            theta = theta + sign[i] * X[i]
    return total / len(order)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_sgd_is_the_listing_and_its_intercept_the_best_for_the_mean(is_sparse):
    X, y = rows(50, 3, seed=4)
    weight = np.random.default_rng(0).integers(1, 4, 50).astype(float)
    sign, rng = np.where(y == "yes", 1.0, -1.0), np.random.default_rng(7)
    share = weight / weight.sum()
    ends = np.cumsum(share / 0.1)
    order = np.concatenate([np.searchsorted(ends, rng.random(50) * ends[-1], side="right") for _ in range(5)])
    model = cf.LinearSVC(0.1, "hinge", solver="sgd", max_iter=5, random_state=7)
    with pytest.warns(ConvergenceWarning):
        model.fit(sp.csr_array(X) if is_sparse else X, y, weight)
    assert np.allclose(model.coef_[0], listing(X, sign, 0.1, order), rtol=1e-9)
    at = [objective(model, X, y, model.coef_[0], b, weight) for b in model.intercept_[0] + np.linspace(-1, 1, 201)]
    assert min(at) >= at[100] - 1e-12
    assert (
        model.certificate_.value >= 1 - cf.LinearSVC(0.1, "hinge").fit(X, y, weight).history_[-1]["objective"] / at[100]
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_rows_weights_and_spreads_are_what_they_stand_for(loss):
    X, y = rows(80, 4, seed=5)
    X[X < 0.5] = 0.0
    weight = np.random.default_rng(0).integers(0, 4, 80).astype(float)
    model = cf.LinearSVC(0.05, loss).fit(X, y, weight)
    sparse = cf.LinearSVC(0.05, loss).fit(sp.csr_array(X), y, weight)
    twice = cf.LinearSVC(0.05, loss).fit(np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int)))
    for other in (sparse, twice):
        assert np.allclose(other.coef_, model.coef_, rtol=1e-6, atol=1e-8)
        assert np.allclose(other.intercept_, model.intercept_, rtol=1e-6, atol=1e-8)
    spread = np.sqrt(np.average((X - np.average(X, axis=0)) ** 2, axis=0))
    for flag, by in ((True, spread), (False, np.sqrt((X**2).mean(axis=0)))):
        own = cf.LinearSVC(0.05, loss, standardize=True, fit_intercept=flag).fit(X, y)
        scaled = cf.LinearSVC(0.05, loss, fit_intercept=flag).fit(X / by, y)
        assert np.allclose(own.coef_ * by, scaled.coef_, rtol=1e-6) and own.certificate_.holds


@pytest.mark.parametrize("loss", LOSSES)
def test_more_classes_are_each_against_the_rest_and_weighted(loss):
    X, _ = rows(150, 3, seed=6)
    y = np.digitize(X[:, 0] - X[:, 1], [-1.5, -0.5])
    factors = {0: 2.0, 1: 1.0, 2: 0.5}
    model = cf.LinearSVC(0.05, loss, class_weight=factors).fit(X, y)
    weight = np.array([factors[k] for k in y])
    for k in range(3):
        one = cf.LinearSVC(0.05, loss).fit(X, y == k, weight)
        assert np.allclose(model.coef_[k], one.coef_[0], rtol=1e-6, atol=1e-8)
    assert model.decision_function(X).shape == (150, 3) and model.slack(X, y).shape == (150, 3)
    assert np.array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


def test_more_columns_than_rows_and_a_file(tmp_path):
    X, _ = rows(40, 90, seed=7)
    y = np.where(np.arange(40) % 3 == 0, "yes", "no")
    for loss in LOSSES:
        model = cf.LinearSVC(loss=loss).fit(X, y)
        assert model.certificate_.holds and model.score(X, y) == 1
        assert np.allclose(
            model.slack(X, y), np.maximum(0, 1 - np.where(y == "yes", 1, -1) * model.decision_function(X))
        )
        again = cf.load(cf.save(model, tmp_path / f"{loss}.certifit") or tmp_path / f"{loss}.certifit")
        assert np.array_equal(again.predict(X), model.predict(X)) and cf.verify(again, X, y)
        assert cf.verify(again, X[::-1], y[::-1])  # the order of the rows is no part of the proof
        again.coef_ = again.coef_ * 1.1
        assert not cf.verify(again, X, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_verify_refuses_a_coefficient_moved_by_a_ten_thousandth(loss, rng):
    """The gap stays below the tolerance: what refuses it is that more than rounding was added to the claim."""
    X = rng.normal(size=(60, 3))
    y = X[:, 0] > 0.5 * rng.normal(size=60)
    model = cf.LinearSVC(0.05, loss, tol=1e-3).fit(X, y)
    assert cf.verify(model, X, y)
    model.coef_ = model.coef_ * [1.0001, 1.0, 1.0]
    result = cf.verify(model, X, y)
    assert result.certificate.value < 1e-3 and not result


def test_what_one_method_cannot_solve_another_one_proves():
    """Products of these rows are 1e40, of which the interior point method makes nothing."""
    X, y = rows(5, 2)
    for solver in ("auto", "coordinate"):
        model = cf.LinearSVC(1.0, "hinge", solver=solver).fit(1e20 * X, y)
        assert model.certificate_.holds and cf.verify(model, 1e20 * X, y)


def test_what_a_loss_cannot_be_solved_by_is_refused():
    X, y = rows(20, 2)
    with pytest.raises(ValueError, match="solver='sgd' does not solve loss='squared_hinge'"):
        cf.LinearSVC(solver="sgd").fit(X, y)
    with pytest.raises(ValueError, match="solver='newton' does not solve loss='hinge'"):
        cf.LinearSVC(loss="hinge", solver="newton").fit(X, y)


def test_wide_columns_go_by_products_and_by_coordinates():
    """Columns beyond what is factored, sparse as words are: the same proof."""
    rng = np.random.default_rng(8)
    X = sp.random_array((300, 2000), density=0.02, random_state=rng, format="csr")
    y = np.asarray(X[:, :40].sum(axis=1)).ravel() > 0.4
    for loss in LOSSES:
        model = cf.LinearSVC(1e-3, loss).fit(X, y)
        slow = cf.LinearSVC(1e-3, loss, solver="coordinate").fit(X, y)
        assert model.certificate_.holds and slow.certificate_.holds
        assert np.isclose(model.history_[-1]["objective"], slow.history_[-1]["objective"], rtol=2e-4)


def test_words_of_a_table_are_never_expanded(monkeypatch):
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(40)])
    frame = pd.DataFrame({"text": [" ".join(rng.choice(words, 8)) for _ in range(60)], "x": rng.normal(size=60)})
    y = frame["text"].str.contains("word7") | (frame["x"] > 1)
    encoder = cf.TableEncoder(texts=cf.TextBinarizer())
    model = cf.LinearSVC(0.01, encoder=encoder).fit(frame, y)
    assert model.certificate_.holds
    expanded = sp.csr_array(model.encoder_.transform(frame)).toarray()
    again = cf.LinearSVC(0.01).fit(expanded, y)
    assert np.allclose(model.coef_, again.coef_, atol=1e-3)
    monkeypatch.setattr(Columns, "toarray", None)
    cf.LinearSVC(0.01, encoder=encoder).fit(frame, y)


@pytest.mark.parametrize("loss", LOSSES)
def test_standardised_sparse_rows_are_solved_as_dense_ones_are(loss):
    X = sp.random_array((80, 30), density=0.2, random_state=np.random.default_rng(0), format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() > np.median(X.sum(axis=1))
    ours, dense = (cf.LinearSVC(0.05, loss, standardize=True).fit(rows, y) for rows in (X, X.toarray()))
    assert ours.certificate_.holds and ours.n_iter_ < 100
    assert np.allclose(ours.coef_, dense.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_second_derivatives_of_rows_that_moved_lead_where_those_of_all_do(is_sparse, monkeypatch):
    X, y = rows(2000, 6)
    X = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if is_sparse else X
    counts, fits = [], []
    square_of = LinearTask.square_of

    def counted(task, places, curvatures):
        counts.append(len(places))
        return square_of(task, places, curvatures)

    monkeypatch.setattr(LinearTask, "square_of", counted)
    for share in (linear_solver.FEW_MOVED, -1.0):
        monkeypatch.setattr(linear_solver, "FEW_MOVED", share)
        fits.append(cf.LinearSVC(1e-3, "squared_hinge").fit(X, y))
        assert bool(counts) == (share > 0) and all(0 < n <= 0.4 * 2000 for n in counts)
        counts.clear()
    moved, whole = fits
    np.testing.assert_allclose(moved.coef_, whole.coef_, rtol=1e-10)
    assert moved.certificate_.value < 1e-12 and whole.certificate_.value < 1e-12


@pytest.mark.parametrize("n_columns", [60, 1700])
def test_fewer_rows_than_columns_are_solved_in_what_the_rows_span(n_columns):
    """The weights are sums of rows, and no other solver is lower."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(30, n_columns))
    X[20:25] = X[:5]  # rows that span less than their number
    y = np.where(np.arange(30) % 2 == 0, "yes", "no")
    model = cf.LinearSVC(0.05, tol=1e-9).fit(X, y)
    other = cf.LinearSVC(0.05, solver="coordinate", tol=1e-9, max_iter=100_000).fit(X, y)
    assert model.certificate_.holds
    assert model.history_[-1]["objective"] <= other.history_[-1]["objective"] * (1 + 1e-8)
    span = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    outside = model.coef_ - (model.coef_ @ span.Vh[: span.S.size - 5].T) @ span.Vh[: span.S.size - 5]
    assert np.abs(outside).max() < 1e-10 * np.abs(model.coef_).max()


@pytest.mark.parametrize("about_mean", [True, False])
@pytest.mark.parametrize("kind", ["plain", "far from 0", "nearly constant", "tiny", "huge"])
def test_spreads_are_those_of_the_rows_as_given(kind, about_mean):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(12, 2)) * 4) * rng.integers(0, 2, (12, 2))
    X[:, 0] += {"far from 0": 2.0**51 + 1, "nearly constant": 2.0**35}.get(kind, 0.0)
    X *= {"tiny": 2.0**-700, "huge": 2.0**1000}.get(kind, 1.0)
    share = rng.uniform(0.1, 2, 12)
    share /= share.sum()
    shares = [Fraction(s) for s in share.tolist()]
    for given in (X, sp.csr_array(X)):
        for column, spread in zip(X.T.tolist(), moments(given, share, about_mean)[1], strict=True):
            x = [Fraction(entry) for entry in column]
            mean = sum(s * a for s, a in zip(shares, x, strict=True)) / sum(shares) if about_mean else 0
            variance = sum(s * (a - mean) ** 2 for s, a in zip(shares, x, strict=True)) / sum(shares)
            assert abs(Fraction(float(spread)) ** 2 / variance - 1) < Fraction(1, 10**12)


def test_a_proof_is_about_spreads_of_a_column_far_from_0():
    # A mean of 1e15 is off by 1/16: squares about it, and the penalty that was proven, were some percent too large.
    rng = np.random.default_rng(1)
    x = np.round(rng.normal(size=30) * 2)
    y = np.where(x + rng.normal(size=30) > 0, 1, 0)
    near, far = (cf.LinearSVC(alpha=0.3, standardize=True).fit((x + by)[:, None], y) for by in (0.0, 1e15 + 3))
    assert near.certificate_.holds
    if far.certificate_.holds:
        assert far.coef_ == pytest.approx(near.coef_, rel=1e-6)
    assert moments((x + 1e15 + 3)[:, None], np.full(30, 1 / 30), True)[1] == pytest.approx(x.std(), rel=1e-12)


@pytest.mark.parametrize("alpha", [None, 1e-4, 0.1])
def test_the_hinge_on_seconds_since_1970_is_certified_beside_columns_of_size_1(seed, alpha):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(80, 2)), 1.38e9 + 86_400 * rng.integers(365, size=80)])
    y = np.where(X[:, 0] + rng.logistic(size=80) > 0, "yes", "no")
    model = cf.LinearSVC(alpha, "hinge").fit(X, y)
    scaled = cf.LinearSVC(alpha, "hinge").fit((X - X.mean(axis=0)) / [1, 1, 1e7], y)  # nearly no penalty either way
    assert model.certificate_.holds
    best = objective(scaled, (X - X.mean(axis=0)) / [1, 1, 1e7], y, scaled.coef_[0], scaled.intercept_[0])
    assert objective(model, X, y, model.coef_[0], model.intercept_[0]) <= best * (1 + 1e-4)


def test_nanoseconds_that_rounding_keeps_from_a_proof_are_named():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), 1.38e18 + 8.64e13 * rng.integers(365, size=80)])
    with pytest.warns(ConvergenceWarning, match="Use standardize=True: 'x1' has the largest entries"):
        cf.LinearSVC(0.01).fit(X, X[:, 0] + rng.logistic(size=80) > 0)
    assert cf.LinearSVC(0.01, standardize=True).fit(X, X[:, 0] + rng.logistic(size=80) > 0).certificate_.holds


def test_multipliers_beyond_float64_are_no_proof(rng):
    """Their sum raised an OverflowError, or that of inf and -inf."""
    X = rng.normal(size=(60, 3))
    model = cf.LinearSVC().fit(X, X[:, 0] > 0)
    for alpha in (1e-308, 1e-310):
        model.alpha_ = alpha
        assert not cf.verify(model, X, X[:, 0] > 0)
