"""Locally weighted regression and LOWESS: slow formulas first, then the claims of the certificate, then a peer."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import certifit as cf
from certifit.models.local.solver import left_out
from certifit.models.local.task import LocalForm, LocalTask

K = {
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "tricube": lambda u: np.maximum(1 - u**3, 0.0) ** 3,
}


def rows(n: int = 60, d: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X.sum(axis=1) + 0.2 * rng.normal(size=n), rng.integers(1, 4, size=n).astype(float)


def terms(u, degree: int):
    d = u.shape[1]
    squares = [u[:, j] * u[:, k] for j in range(d) for k in range(j, d)] if degree == 2 else []
    return np.column_stack([np.ones(len(u)), *(u.T if degree else []), *squares])


def slow(X, y, a, x, tau, kind: str, degree: int):
    """The coefficients at one query by least squares of weighted rows."""
    Phi, root = terms(X - x, degree), np.sqrt(a * K[kind](np.linalg.norm(X - x, axis=1) / tau))
    return np.linalg.lstsq(Phi * root[:, None], y * root, rcond=None)[0]


@pytest.mark.parametrize("kind", K)
@pytest.mark.parametrize("degree, name", list(enumerate(("constant", "linear", "quadratic"))))
def test_every_local_fit_is_weighted_least_squares(kind, degree, name):
    X, y, a = rows()
    model = cf.LocallyWeightedRegression(2.5, weights=kind, terms=name, standardize=False)
    model.fit(X, y, sample_weight=a)
    for x in X[:10] * 0.8:
        theta = slow(X, y, a, x, 2.5, kind, degree)
        local = model.local(x)
        assert np.allclose(local.coefficients, theta, rtol=1e-8, atol=1e-8 * np.abs(theta).max())
        assert model.predict([x])[0] == pytest.approx(theta[0], rel=1e-9, abs=1e-9)
    assert model.certificate_.holds


def test_standardised_columns_make_the_fit_free_of_units():
    X, y, _ = rows()
    model = cf.LocallyWeightedRegression(0.6).fit(X, y)
    other = cf.LocallyWeightedRegression(0.6).fit(X * [1e3, 1e-3] + [5.0, -2.0], y)
    assert np.allclose(model.predict(X), other.predict(X * [1e3, 1e-3] + [5.0, -2.0]), rtol=1e-9, atol=1e-9)
    assert np.allclose(
        model.local(X[0]).coefficients[1:] / [1e3, 1e-3], other.local(X[0] * [1e3, 1e-3] + [5.0, -2.0]).coefficients[1:]
    )


def test_a_wide_window_gives_the_least_squares_line_and_its_band():
    X, y, a = rows()
    line = cf.LinearRegression().fit(X, y)
    model = cf.LocallyWeightedRegression(1e7).fit(X, y)
    assert np.allclose(model.predict(X), line.predict(X), rtol=1e-9, atol=1e-10)
    assert model.degrees_ == pytest.approx(3)
    assert np.allclose(model.predict_band(X[:5]), line.predict_interval(X[:5], kind="confidence"), rtol=1e-7)
    weighted, line = cf.LocallyWeightedRegression(1e7).fit(X, y, a), cf.LinearRegression().fit(X, y, a)
    assert np.allclose(weighted.predict_band(X[:5]), line.predict_interval(X[:5], kind="confidence"), rtol=1e-7)


def test_a_function_of_the_users_weighs_and_a_basis_of_the_users_is_fitted():
    X, y, _ = rows()
    named = cf.LocallyWeightedRegression(0.8).fit(X, y)
    own = cf.LocallyWeightedRegression(0.8, weights=K["gaussian"], terms=lambda X: X).fit(X, y)
    assert np.allclose(own.predict(X), named.predict(X), rtol=1e-10, atol=1e-10)
    assert own.certificate_.holds
    assert own.local(X[0]).prediction == pytest.approx(named.predict(X[:1])[0], abs=1e-10)
    waves = cf.LocallyWeightedRegression(2.0, terms=lambda X: np.sin(2 * X[:, :1])).fit(X, np.sin(2 * X[:, 0]))
    assert np.allclose(waves.predict(X), np.sin(2 * X[:, 0]), atol=1e-10)
    with pytest.raises(ValueError, match="one finite number >= 0 per distance"):
        cf.LocallyWeightedRegression(1.0, weights=lambda u: -u).fit(X, y)
    with pytest.raises(ValueError, match="one row of columns per row"):
        cf.LocallyWeightedRegression(1.0, terms=lambda X: X[:3]).fit(X, y)


def _task(X, y, terms_="linear", kind="gaussian"):
    from certifit.data.source import Memory

    return LocalTask(Memory(X, y, names=[f"x{j}" for j in range(X.shape[1])]), LocalForm(kind, terms_), None, None)


@pytest.mark.parametrize("kind, terms_", [("gaussian", "linear"), ("tricube", "constant"), ("gaussian", "quadratic")])
@pytest.mark.slow
def test_leave_one_out_is_that_of_refits(kind, terms_):
    X, y, _ = rows(25)
    task = _task(X, y, terms_, kind)
    taus = np.array([0.05, 0.6, 3.0])
    errors = left_out(task.rows, taus) / task.rows.y_scale
    for i in range(len(task.y)):
        keep = np.arange(len(task.y)) != i
        for t, tau in enumerate(taus):
            model = cf.LocallyWeightedRegression(tau, weights=kind, terms=terms_, standardize=False)
            refit = model.fit(task.X[keep], task.y[keep]).predict(task.X[i : i + 1])[0]
            assert errors[t, i] == pytest.approx(task.y[i] - refit, rel=1e-5, abs=1e-7)


def test_tau_is_that_of_least_error_by_leave_one_out_and_cross_validation_agrees():
    X, y, _ = rows(80)
    model = cf.LocallyWeightedRegression().fit(X, y)
    tau, error = model.curve_[np.argmin(model.curve_[:, 1])]
    assert model.tau_ == tau
    searched = cf.CrossValidated(cf.LocallyWeightedRegression(), {"tau": model.curve_[:, 0].tolist()}, cv="loo").fit(
        X, y
    )
    assert searched.best_params_["tau"] == tau
    assert error == model.curve_[:, 1].min()


def test_of_many_rows_some_are_left_out_and_predicted_from_all_others(monkeypatch):
    from certifit.models.local import solver

    X, y, _ = rows(90)
    task, taus = _task(X, y), np.array([0.3, 0.8, 2.0])
    every = np.square(left_out(task.rows, taus))
    monkeypatch.setattr(solver, "n_left_out", lambda n_rows, n_unknowns: 30)
    places = solver.points_of(90, 30)
    curve = solver.width_errors(task.rows, task.share, taus)
    assert len(places) == 30
    assert curve[:, 1] == pytest.approx(every[:, places].mean(axis=1) / task.rows.y_scale**2, rel=1e-9)


def test_so_many_rows_are_left_out_as_their_fits_allow():
    from certifit.models.local.about import n_left_out

    assert [n_left_out(n, 2) for n in (100, 2048, 20_000)] == [100, 2048, 2048]
    assert n_left_out(20_000, 14) == 256 < n_left_out(20_000, 6) < 2048


def test_a_far_query_has_the_fit_of_exact_arithmetic():
    """The weights of all rows underflow there; their ratios do not."""
    from fractions import Fraction

    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0, 5.0])
    model = cf.LocallyWeightedRegression(1.0, standardize=False).fit(x[:, None], y)
    for query in (60.0, -50.0):
        w = [np.exp(-((query - v) ** 2 - min((query - u) ** 2 for u in x)) / 2) for v in x]
        w, v, t = ([Fraction(float(n)) for n in values] for values in (w, x, y))
        s0, s1, s2 = (sum(a * b**k for a, b in zip(w, v, strict=True)) for k in range(3))
        t0, t1 = (sum(a * b**k * c for a, b, c in zip(w, v, t, strict=True)) for k in range(2))
        slope = (s0 * t1 - s1 * t0) / (s0 * s2 - s1 * s1)
        exact = float((t0 - slope * s1) / s0 + slope * Fraction(query))
        if float((s0 * s2 - s1 * s1) / s0 / s2) > 1e-10:
            assert model.predict([[query]])[0] == pytest.approx(exact, rel=1e-6)
    assert np.isfinite(model.predict([[1e6]])).all()


def test_fewer_rows_than_unknowns_take_the_smallest_slopes():
    model = cf.LocallyWeightedRegression(1.0, standardize=False).fit([[0.0, 0.0], [1.0, 1.0]], [1.0, 3.0])
    assert np.allclose(model.local([0.5, 0.5]).coefficients, [2.0, 1.0, 1.0])
    assert model.predict([[0.5, 0.5]])[0] == pytest.approx(2.0)
    assert model.certificate_.n_singular == 2 and "smallest slopes" in str(model.certificate_)
    assert cf.LocallyWeightedRegression(1.0).fit([[2.0]], [7.0]).predict([[100.0]])[0] == 7.0


def test_no_row_within_tau_means_the_nearest_rows_alone():
    model = cf.LocallyWeightedRegression(0.5, weights="tricube", standardize=False).fit([[0.0], [1.0]], [1.0, 3.0])
    assert model.predict([[9.0]])[0] == 3.0


@pytest.mark.parametrize("part", ["coefficients", "y", "rows", "tau"])
def test_the_certificate_refuses_a_state_that_is_not_the_fit(part):
    X, y, _ = rows()
    model = cf.LocallyWeightedRegression(0.7).fit(X, y)
    assert model.certify(X, y).holds
    name = {"coefficients": "local_coef_", "y": "y_fit_", "rows": "X_fit_", "tau": "tau_"}[part]
    value = getattr(model, name)
    nudged = value * (1 + 1e-4) if part == "tau" else value.copy()
    if part != "tau":
        nudged[3] += 1e-4
    setattr(model, name, nudged)
    assert not model.certify(X, y).holds
    assert not cf.LocallyWeightedRegression(0.7).fit(X, y).certify(X[1:], y[1:]).holds


def test_the_residual_never_hides_an_error_of_a_coefficient():
    """A shift of one coefficient by e moves its own equation by e |phi|^2: the value is at least a share of that."""
    X, y, _ = rows()
    model = cf.LocallyWeightedRegression(0.7).fit(X, y)
    rng = np.random.default_rng(1)
    for _ in range(30):
        size = 10.0 ** rng.uniform(-10, 0)
        copy = cf.LocallyWeightedRegression(0.7).fit(X, y)
        copy.local_coef_ = model.local_coef_.copy()
        copy.local_coef_[rng.integers(len(X)), rng.integers(3)] += size
        assert copy.certify(X, y).value > 1e-3 * size / (1 + np.abs(model.local_coef_).max() + np.abs(y).max())


def test_the_bits_do_not_depend_on_threads_order_or_copies():
    X, y, a = rows(300)
    with cf.threads(1):
        one = cf.LocallyWeightedRegression().fit(X, y, a)
        first = one.predict(X)
    with cf.threads(3):
        assert np.array_equal(cf.LocallyWeightedRegression().fit(X, y, a).predict(X), first)
    order = np.random.default_rng(0).permutation(len(X))
    other = cf.LocallyWeightedRegression().fit(X[order], y[order], a[order])
    assert other.tau_ == one.tau_ and np.array_equal(other.predict(X), first)
    copies = np.repeat(np.arange(len(X)), a.astype(int))
    assert np.allclose(cf.LocallyWeightedRegression().fit(X[copies], y[copies]).predict(X), first, rtol=1e-12)


def test_many_rows_are_proven_at_some_of_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 1))
    model = cf.LocallyWeightedRegression(0.2).fit(X, X[:, 0])
    assert len(model.local_coef_) == 1024 and "1,024 of 3,000" in str(model.certificate_)


def test_coverage_of_the_band_where_there_is_no_bias():
    rng, x = np.random.default_rng(0), np.linspace(-1, 1, 80)[:, None]
    hits = []
    for _ in range(150):
        model = cf.LocallyWeightedRegression(0.5).fit(x, 2 * x[:, 0] + rng.normal(size=80))
        low, high = model.predict_band([[0.3]], level=0.9)[0]
        hits.append(low <= 0.6 <= high)
    assert 0.82 <= np.mean(hits) <= 0.97


# ---- LOWESS ----------------------------------------------------------------------------------------------------------


def slow_lowess(x, y, k: int, iterations: int):
    r, fitted = np.ones(len(x)), np.zeros(len(x))
    for step in range(iterations + 1):
        for i in range(len(x)):
            near = np.argsort(np.abs(x - x[i]), kind="stable")[:k]
            h = np.abs(x[near] - x[i]).max()
            w = r[near] * np.maximum(1 - (np.abs(x[near] - x[i]) / h) ** 3, 0) ** 3
            A = np.column_stack([np.ones(k), x[near] - x[i]]) * np.sqrt(w)[:, None]
            fitted[i] = np.linalg.lstsq(A, y[near] * np.sqrt(w), rcond=None)[0][0]
        if step < iterations:
            e = np.abs(y - fitted)
            u = e / (6 * np.median(e))
            r = np.where(u < 1, (1 - u**2) ** 2, 0.0)
    return fitted


@pytest.mark.parametrize("n, frac", [(40, 0.5), (700, 0.9)])
def test_lowess_is_its_formula(n, frac):
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 6, n))
    y = np.sin(x) + 0.2 * rng.standard_t(2, size=n)
    smooth = cf.lowess(x, y, frac, 2)
    assert np.allclose(smooth.fitted, slow_lowess(x, y, int(frac * n + 1e-10), 2), atol=1e-9)
    assert ((smooth.robust_weights >= 0) & (smooth.robust_weights <= 1)).all()


def test_lowess_keeps_its_digits_far_from_the_origin():
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 1, 2000))
    y = np.sin(9 * x) + 0.1 * rng.normal(size=2000)
    x = np.round(x * 2**20) / 2**20
    shifted = cf.lowess(x + 2.0**20, y, 0.8).fitted
    assert np.allclose(shifted, cf.lowess(x, y, 0.8).fitted, atol=1e-9)


def test_lowess_is_that_of_statsmodels():
    peer = pytest.importorskip("statsmodels.nonparametric.smoothers_lowess")
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 10, 3000)
    y = np.sin(x) + 0.3 * rng.standard_t(3, size=3000)
    order = np.argsort(x)
    theirs = peer.lowess(y, x, frac=0.3, it=3, delta=0.0, return_sorted=False)[order]
    assert np.abs(cf.lowess(x, y, 0.3, 3).fitted - theirs).max() < 1e-10


@pytest.mark.parametrize(
    "change, words", [({"frac": 0.0}, "frac"), ({"frac": 1.5}, "frac"), ({"iterations": -1}, "iterations")]
)
def test_lowess_refuses_in_words(change, words):
    with pytest.raises(ValueError, match=words):
        cf.lowess(np.arange(5.0), np.arange(5.0), **change)
    with pytest.raises(ValueError, match="Row 1"):
        cf.lowess([0.0, np.nan], [1.0, 2.0])


@pytest.mark.parametrize("parameters", [{}, {"terms": "quadratic"}, {"standardize": False}, {"weights": "tricube"}])
def test_folds_have_the_errors_of_refits(rng, parameters):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    y[:30] += X[:30, 0] ** 2
    weight = rng.integers(0, 3, 60).astype(float)
    splits, taus = list(cf.Folds(4).split(X)), [0.7, None, 3.0]
    model = cf.LocallyWeightedRegression(**parameters)
    search = cf.CrossValidated(model, {"tau": taus}, cv=splits).fit(X, y, sample_weight=weight)
    assert search.route_ == "statistics"
    for place, tau in enumerate(taus):
        for split, (train, validation) in enumerate(splits):
            fitted = clone(model).set_params(tau=tau).fit(X[train], y[train], sample_weight=weight[train])
            for rows, side in ((train, "train"), (validation, "test")):
                score = fitted.score(X[rows], y[rows], sample_weight=weight[rows])
                found = search.cv_results_[f"split{split}_{side}_score"][place]
                np.testing.assert_allclose(found, score, rtol=1e-9, atol=1e-9)


def test_folds_that_would_take_long_are_refits(rng, monkeypatch):
    X, y, search = (
        rng.normal(size=(40, 2)),
        rng.normal(size=40),
        cf.CrossValidated(cf.LocallyWeightedRegression(), cv=4),
    )
    quick = search.fit(X, y).cv_results_["mean_test_score"]
    monkeypatch.setattr("certifit.models.local.model.MOST_SECONDS", 0.0)
    assert search.fit(X, y).route_ == "refits"
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], quick, rtol=1e-9)


def test_folds_of_a_file_are_those_of_memory_and_gaps_are_refitted(rng, tmp_path):
    frame = pd.DataFrame(rng.normal(size=(50, 2)), columns=["a", "b"])
    frame["y"] = np.sin(frame["a"]) + frame["b"]
    frame.to_parquet(tmp_path / "rows.parquet")
    grid, model = {"tau": [0.5, 2.0]}, cf.LocallyWeightedRegression()
    whole = cf.CrossValidated(model, grid, cv=5).fit(frame[["a", "b"]], frame["y"])
    scanned = cf.CrossValidated(model, grid, cv=5).fit(cf.scan_parquet(tmp_path / "rows.parquet", target="y"))
    assert scanned.route_ == "statistics"
    np.testing.assert_allclose(scanned.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"], rtol=1e-12)
    frame.loc[3, "a"] = np.nan
    assert (
        cf.CrossValidated(cf.LocallyWeightedRegression(encoder="auto"), grid, cv=5)
        .fit(frame[["a", "b"]], frame["y"])
        .route_
        == "refits"
    )


def test_what_takes_long_says_so_before_it_begins_and_hears_ctrl_c_between_widths(rng, monkeypatch):
    """The core hears of Ctrl-C between queries: where one takes long, widths are fitted one after the other."""
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    at_once = cf.LocallyWeightedRegression().fit(X, y)
    monkeypatch.setattr("certifit.runtime.LONG", 0.0)
    monkeypatch.setattr("certifit.models.local.solver.DEAF", 0.0)
    with pytest.warns(UserWarning, match="840 local fits to 60 rows.* expected .* Sample rows"):
        apart = cf.LocallyWeightedRegression().fit(X, y)
    assert apart.curve_.tobytes() == at_once.curve_.tobytes()
    assert apart.local_coef_.tobytes() == at_once.local_coef_.tobytes()


def test_distances_for_a_function_are_made_a_query_at_a_time(rng):
    """Rows x rows x columns took 480 MB, and no Ctrl-C was heard while they were made."""
    X = rng.normal(size=(1000, 60))
    tracemalloc.start()
    cf.LocallyWeightedRegression(3.0, weights=lambda u: np.exp(-u * u), terms="constant").fit(X, X[:, 0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
