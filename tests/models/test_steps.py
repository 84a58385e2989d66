"""The steps of every fit: one shape of history_, limits of time, scikit-learn's callbacks, the line of progress."""

from __future__ import annotations

import io
import math
import time
import warnings
from typing import Any

import numpy as np
import pytest
from learners import LEARNERS, Row
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.minimise.steps import COLUMNS, Steps, Watch, watched
from certifit.models import callbacks
from certifit.models.table import STORED

callback = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9 has no callbacks")


def _fitted(row: Row) -> Any:
    X, y = row.rows()
    model = clone(row.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X) if y is None else model.fit(X, y)


@pytest.mark.parametrize("key", [key for key in LEARNERS if key in STORED and not STORED[key].load_record().children])
def test_every_history_has_the_same_columns_and_no_dual_above_its_primal(key: str, tmp_path: Any) -> None:
    model = _fitted(LEARNERS[key])
    cf.save(model, tmp_path / "model")
    for fitted in (model, cf.load(tmp_path / "model")):
        assert len(fitted.history_) >= 1
        for row in fitted.history_:
            assert set(COLUMNS) <= set(row)
            assert not row["dual"] > row["objective"]
        numbers = [row["iteration"] for row in fitted.history_]
        assert numbers == sorted(set(numbers)) and numbers[0] in (0, 1)


def test_a_dual_above_the_objective_is_cut_by_rounding_alone_and_a_false_one_is_seen() -> None:
    """So that the test of every history above is one of the solvers' bounds, not of the recorder."""
    row = Steps().add(1.0, dual=1.0 + 1e-15)
    assert row["dual"] == 1.0 and row["gap"] == 0.0
    assert Steps().add(1.0, dual=1.0 + 1e-9)["dual"] > 1.0
    assert Steps().add(1.0, dual=1.0 + 1e-9, rounding=1e-8)["dual"] == 1.0


BOUNDED: dict[str, tuple[Any, float]] = {  # models with a dual in every row, at a tolerance of their optimum
    "lasso by sweeps": (cf.Lasso(alpha=0.05, solver="coordinate-descent"), 1e-7),
    "elastic net by sweeps": (cf.ElasticNet(alpha=0.05, solver="coordinate-descent", start=3), 1e-7),
    "lasso": (cf.Lasso(alpha=0.05), 1e-9),
    "quantile": (cf.QuantileRegressor(0.3), 1e-9),
    "quantile with a penalty": (cf.QuantileRegressor(0.8, alpha=0.05), 1e-9),
    "support vectors": (cf.SVR(epsilon=0.1), 1e-3),
    "kernel ridge": (cf.KernelRidge(alpha=0.01), 1e-9),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_no_dual_of_any_row_is_above_the_optimum(name: str) -> None:
    """Stronger than dual <= primal of the same row: every dual is at most the least primal of all rows."""
    model, tol = BOUNDED[name]
    X, y = Row(None, "reg").rows(150, 4)
    history = clone(model).fit(X, y).history_
    duals = [row["dual"] for row in history if not math.isnan(row["dual"])]
    least = min(row["objective"] for row in history)
    assert len(duals) >= 1 and max(duals) <= least * (1 + 1e-12)
    assert least - max(duals) <= tol * least  # and they close on it


# ---- starts ----------------------------------------------------------------------------------------------------------


def _pinball(r: Any, quantile: float) -> float:
    return float(np.where(r > 0, quantile * r, (quantile - 1) * r).mean())


@pytest.mark.parametrize("n_columns", [4, 80])  # on products of columns, and on columns
def test_coordinate_descent_begins_at_its_start(n_columns: int) -> None:
    X, y = Row(None, "reg").rows(60, n_columns)
    X = X + np.arange(n_columns)
    start = np.random.default_rng(1).normal(size=n_columns)
    best = cf.ElasticNet(alpha=0.3).fit(X, y)
    for given in (start, 5, "zero"):
        w = {5: np.random.default_rng(5).standard_normal(n_columns), "zero": np.zeros(n_columns)}.get(
            given if isinstance(given, str | int) else "", start
        )
        solver = cf.CoordinateDescent(record="weights")
        model = cf.ElasticNet(alpha=0.3, solver=solver, start=given).fit(X, y)
        r = y - X @ w - (y - X @ w).mean()  # the intercept is the best one
        objective = (r @ r) / (2 * len(y)) + 0.3 * (np.abs(w).sum() / 2 + w @ w / 4)
        np.testing.assert_allclose(model.history_[0]["objective"], objective, rtol=1e-9)
        np.testing.assert_allclose(model.weights_[0][:-1], w, atol=1e-12)
        np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-3)
        assert model.certificate_.holds


def test_quantile_regression_begins_at_its_start(tmp_path: Any) -> None:
    X, y = Row(None, "reg").rows(80, 4)
    best = cf.QuantileRegressor(0.3).fit(X, y)
    start = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    model = cf.QuantileRegressor(0.3, start=start).fit(X, y)
    np.testing.assert_allclose(model.history_[0]["objective"], _pinball(y - X @ start[:-1] - start[-1], 0.3))
    zero = cf.QuantileRegressor(0.3, start="zero", fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(zero.history_[0]["objective"], _pinball(y, 0.3))
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-9)
    assert model.certificate_.holds and model.history_[0]["iteration"] == 0
    cf.save(model, tmp_path / "model")
    np.testing.assert_array_equal(cf.load(tmp_path / "model").start, start)


def test_conjugate_gradients_of_kernel_ridge_begin_at_their_start(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setattr("certifit.models.kernel.solver.DIRECT", 50)
    X, y = Row(None, "reg").rows(120, 3)
    kernel = cf.kernels.Gaussian(2.0)
    best = cf.KernelRidge(alpha=0.01, kernel=kernel).fit(X, y)
    start = np.append(0.1 * np.random.default_rng(0).normal(size=120), 0.5)
    model = cf.KernelRidge(alpha=0.01, kernel=kernel, start=start).fit(X, y)
    G, c = kernel.matrix(X), start[:-1]
    objective = np.square(y - start[-1] - G @ c).mean() / 2 + 0.01 / 2 * c @ G @ c
    np.testing.assert_allclose(model.history_[0]["objective"], objective, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), best.predict(X), atol=1e-8)
    assert model.certificate_.holds and model.history_[0]["iteration"] == 0
    cf.save(model, tmp_path / "model")
    np.testing.assert_array_equal(cf.load(tmp_path / "model").start, start)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (cf.Lasso(start="zero"), "start needs a solver that takes steps"),
        (cf.Lasso(solver="coordinate-descent", start=[1.0, 2.0]), "shape"),
        (cf.Lasso(solver="coordinate-descent", start=[-1.0] * 4, bounds=(0, 9)), "outside of its bounds"),
        (cf.QuantileRegressor(start=[np.nan] * 5), "finite"),
        (cf.KernelRidge(start="zero"), "start needs conjugate gradients"),
    ],
)
def test_a_start_that_nothing_would_read_is_refused(model: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.fit(*Row(None, "reg").rows())


# ---- limits of time --------------------------------------------------------------------------------------------------


def _limited() -> list[tuple[str, Any]]:
    with_limit = [key for key, row in LEARNERS.items() if key in STORED and "max_time" in STORED[key].params]
    return [(key, LEARNERS[key]) for key in with_limit]


@pytest.mark.parametrize(("key", "row"), _limited())
def test_a_fit_whose_time_is_up_stops_and_begins_no_proof(key: str, row: Row, monkeypatch: Any, tmp_path: Any) -> None:
    """1e-9 s are over at the first step: what is left is a finished model that says so, also in its file."""
    X, y = row.rows(100, 6)
    model = clone(row.model).set_params(max_time=1e-9)
    rows = (X,) if y is None else (X, y)
    with monkeypatch.context() as during, pytest.warns(ConvergenceWarning, match="time was up before the proof"):
        during.setattr(type(model), "_certified", None)
        model.fit(*rows)
    assert len(model.history_) <= 2
    assert np.isfinite(row.answers(model, X)).all()
    cf.save(model, tmp_path / "model")
    for kept in (model, cf.load(tmp_path / "model")):
        assert not kept.certificate_.holds
        assert "time was up before the proof" in kept.certificate_.sentences()[0]
        np.testing.assert_array_equal(row.answers(kept, X), row.answers(model, X))
        verification = cf.verify(kept, *rows)
        assert not verification and not any("rank" in reason for reason in verification.reasons)
        assert "time was up" not in str(kept.certify(*rows)) and "states" not in str(kept.certify(*rows))
    if key == "linear_regression":
        with pytest.raises(ValueError, match="time was up"):
            model.summary()


def test_a_network_looks_at_the_time_within_an_epoch(monkeypatch: Any) -> None:
    monkeypatch.setattr("certifit.models.network.solver.WEIGHT_SECONDS", 1.0)  # so a part of an epoch is a batch
    X, y = Row(None, "reg").rows()
    model = cf.MLPRegressor((5,), batch_size=7, max_iter=1, early_stopping=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole, limited, hurried = (clone(model).set_params(max_time=t).fit(X, y) for t in (None, 1e6, 1e-9))
    np.testing.assert_array_equal(whole.parameters_, limited.parameters_)
    assert (whole.parameters_ != hurried.parameters_).any()


def test_what_only_a_proof_needs_is_left_out_when_time_is_up(monkeypatch: Any, tmp_path: Any) -> None:
    """A lasso tries no further dual points; the other eigenvalues of all columns are not found."""
    monkeypatch.setattr("certifit.models.lasso.solver.proven_gap", None)
    X, y = Row(None, "reg").rows(60, 220)
    with pytest.warns(ConvergenceWarning, match="time was up before the proof"):
        assert np.isfinite(cf.Lasso(0.01, max_time=1e-9).fit(X, y).history_[-1]["objective"])
        components = cf.PCA(2, max_time=1e-9).fit(X)
    cf.save(components, tmp_path / "model")
    assert len(components.spectrum_) == len(cf.load(tmp_path / "model").spectrum_) == 2
    np.testing.assert_allclose(components.projection_error_, cf.PCA(2).fit(X).projection_error_, rtol=1e-9)


def test_time_that_is_up_leaves_a_bound_that_is_true() -> None:
    X, y = LEARNERS["logistic_regression"].rows(400, 6)
    best = cf.LogisticRegression().fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        stopped = cf.LogisticRegression(solver="gradient-descent", start="zero", max_time=1e-9).fit(X, y)
    assert not stopped.certificate_.holds
    excess = 1 - best.history_[-1]["objective"] / stopped.history_[-1]["objective"]
    assert excess <= stopped.certificate_.value


STOPPED: dict[str, tuple[Any, str]] = {
    "adaboost": (cf.AdaBoostClassifier(20), "clf"),
    "adaboost of numbers": (cf.AdaBoostRegressor(20), "reg"),
    "forest": (cf.RandomForestClassifier(20), "clf"),
    "forest of numbers": (cf.RandomForestRegressor(20), "reg"),
    "boosting": (cf.GradientBoostingClassifier(20, min_samples_leaf=5), "clf"),
    "boosting of numbers": (cf.GradientBoostingRegressor(20, min_samples_leaf=5), "reg"),
    "boosting with early stopping": (cf.GradientBoostingRegressor(20, min_samples_leaf=5, early_stopping=True), "reg"),
    "bagging": (cf.BaggingClassifier(cf.DecisionTreeClassifier(), 8), "clf"),
    "bagging of numbers": (cf.BaggingRegressor(cf.DecisionTreeRegressor(), 8), "reg"),
}


@pytest.mark.parametrize("name", STOPPED)
def test_an_ensemble_that_is_stopped_is_the_start_of_the_whole_and_says_what_is_missing(
    name: str, tmp_path: Any
) -> None:
    model, kind = STOPPED[name]
    X, y = Row(None, kind).rows(200, 4)
    stopped = clone(model).set_callbacks(Recorder(stop_at=3))
    with pytest.warns(ConvergenceWarning, match=f"of the {model.n_estimators} .* asked for"):
        stopped.fit(X, y)
    n_made = len(stopped.history_)
    assert 3 <= n_made < model.n_estimators
    small = clone(model).set_params(n_estimators=n_made).fit(X, y)
    assert small.certificate_.holds
    np.testing.assert_array_equal(Row.answers(stopped, X), Row.answers(small, X))
    cf.save(stopped, tmp_path / "model")
    for kept in (stopped, cf.load(tmp_path / "model")):  # a proof made again, and one from a file, say the same
        assert not kept.certificate_.holds and "asked for" in str(kept.certificate_)
        assert not kept.certify(X, y).holds and not cf.verify(kept, X, y)
        np.testing.assert_array_equal(Row.answers(kept, X), Row.answers(small, X))


def test_rounds_that_end_by_themselves_are_whole() -> None:
    """Boosting ends at a stump or tree without error, and early stopping at rounds that do not help."""
    X = np.arange(60.0)[:, None]
    assert cf.AdaBoostClassifier(20).fit(X, X[:, 0] > 30).certificate_.holds
    assert cf.AdaBoostRegressor(20).fit(X, X[:, 0] > 30).certificate_.holds
    noise = np.random.default_rng(0).normal(size=60)
    early = cf.GradientBoostingRegressor(200, min_samples_leaf=5, early_stopping=True, n_iter_no_change=2)
    assert early.fit(X, noise).n_iter_ < 190 and early.certificate_.holds


def test_two_threads_and_a_watch_give_the_forest_of_one(tmp_path: Any) -> None:
    X, y = Row(None, "clf").rows(200, 4)
    whole = cf.RandomForestClassifier(7).fit(X, y)
    recorder = Recorder()
    with cf.threads(2):
        told = cf.RandomForestClassifier(7).set_callbacks(recorder).fit(X, y)
    assert len(recorder.steps) == 7
    np.testing.assert_array_equal(whole.forest_.threshold, told.forest_.threshold)


@pytest.mark.parametrize("wrong", [0, -1.0, math.inf, math.nan])
def test_a_time_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="max_time must be a number of seconds above 0 or None"):
        cf.Lasso(max_time=wrong).fit(*LEARNERS["lasso"].rows())


def test_a_fit_inside_another_keeps_the_deadline_of_the_outer_one() -> None:
    soon = time.perf_counter()
    with watched(Watch(soon, 0.5)), watched(Watch(soon + 1000, 1000.0)):
        steps = Steps()
        steps.add(1.0)
    assert steps.is_over and "0.5 s" in steps.reason


# ---- callbacks -------------------------------------------------------------------------------------------------------


class Recorder:
    """What scikit-learn's hooks are told. stop_at: the step after which it asks to stop."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.events: list[str] = []
        self.steps: list[dict[str, float]] = []
        self.stop_at = stop_at
        self.fitted: Any = None

    def setup(self, estimator: Any, context: Any) -> None:
        self.events.append("setup")

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None, fitted_estimator: Any = None
    ) -> bool:
        self.events.append(f"end {context.task_name}")
        if context.task_name == "fit":
            self.fitted = fitted_estimator
            return False
        self.steps.append(metadata["step"])
        return len(self.steps) == self.stop_at

    def teardown(self, estimator: Any, context: Any) -> None:
        self.events.append("teardown")


def test_callbacks_see_every_row_of_the_history() -> None:
    recorder = Recorder()
    X, y = LEARNERS["logistic_regression"].rows()
    model = cf.LogisticRegression(solver="lbfgs").set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.steps == list(model.history_)
    assert (recorder.fitted.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize(("key", "row"), _limited())
@pytest.mark.slow
def test_a_callback_can_stop_every_iterative_model(key: str, row: Row) -> None:
    X, y = row.rows(400, 6)
    recorder = Recorder(stop_at=1)
    model = clone(row.model).set_callbacks(recorder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X) if y is None else model.fit(X, y)
    assert 1 <= len(model.history_) <= 2
    assert recorder.events[-1] == "teardown"


def test_a_fit_that_fails_is_torn_down_and_leaves_the_callbacks() -> None:
    recorder = Recorder()
    model = cf.LogisticRegression().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[np.nan], [1.0]], [0, 1])
    assert recorder.events == ["setup", "begin fit", "teardown"]
    assert not hasattr(model, "_callback_fit_ctx")


def test_scikit_learns_own_callbacks_and_pipelines_take_our_models(capsys: Any) -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = LEARNERS["logistic_regression"].rows()
    model = make_pipeline(StandardScaler(), cf.LogisticRegression(solver="newton"))
    model.set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "LogisticRegression" in capsys.readouterr().out


# ---- progress --------------------------------------------------------------------------------------------------------


def test_scripts_show_no_progress_and_asking_shows_it(monkeypatch: Any) -> None:
    assert not callbacks.shows_progress()
    with cf.progress(True):
        assert callbacks.shows_progress()
    monkeypatch.setattr("sys.ps1", ">>> ", raising=False)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert not callbacks.shows_progress()  # a prompt without a terminal
    with pytest.raises(TypeError, match="True or False"), cf.progress("yes"):  # type: ignore[arg-type]
        pass


def test_a_long_fit_draws_a_line_and_takes_it_away(monkeypatch: Any) -> None:
    drawn = io.StringIO()
    drawn.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(callbacks, "PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr", drawn)
    line = callbacks.ProgressLine("Ridge")
    with line as tell:
        deadline = time.perf_counter() + 30
        while line._line is None and time.perf_counter() < deadline:
            time.sleep(0.01)
        assert tell({"iteration": 3, "objective": 0.25, "gap": math.nan}) is False
    assert line.text == "Ridge  step 3  objective 0.25"
    assert "Ridge" in drawn.getvalue()
