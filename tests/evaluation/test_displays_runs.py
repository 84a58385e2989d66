"""Several runs in one picture."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def runs():
    f, g = (lambda x: (x[0] - 1) ** 2 + 10 * (x[1] + 2) ** 2 + 3), (lambda x: np.array([2 * x[0] - 2, 20 * x[1] + 40]))
    found = {name: cf.minimize(f, [0.0, 0.0], name, g) for name in ("gradient-descent", "bfgs")}
    yield found
    matplotlib.pyplot.close("all")


def test_the_excess_over_the_best_of_all_is_drawn_on_a_log_axis(runs):
    shown = cf.ConvergenceDisplay.from_runs(runs)
    assert shown.best == min(run.value for run in runs.values())
    assert shown.ax_.get_yscale() == "log" and list(shown.lines_) == list(runs)
    for name, run in runs.items():
        drawn = shown.lines_[name].get_ydata()
        expected = np.array([row["objective"] for row in run.history_]) - shown.best
        seen = np.isfinite(drawn)
        np.testing.assert_array_equal(drawn[seen], expected[seen])
        assert seen[0] and (expected[~seen] <= np.finfo(float).eps * abs(shown.best)).all()
    texts = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert texts == list(runs)


@pytest.mark.parametrize("y, scale", [("objective", "linear"), ("step", "log"), ("gap", "log"), ("excess", "log")])
@pytest.mark.parametrize("x", ["iteration", "seconds"])
def test_other_columns_are_drawn(runs, x, y, scale):
    shown = cf.ConvergenceDisplay.from_runs(runs, x=x, y=y)
    assert shown.ax_.get_yscale() == scale and shown.ax_.get_xlabel() == x


def test_a_known_minimum_is_taken(runs):
    shown = cf.ConvergenceDisplay.from_runs(runs, best=3.0)
    assert shown.best == 3.0


def test_models_and_plain_histories_are_drawn_side_by_side(rng):
    X = rng.normal(size=(60, 3))
    model = cf.HuberRegressor().fit(X, X @ [1.0, 2.0, 3.0] + rng.standard_t(2, size=60))
    shown = cf.ConvergenceDisplay.from_runs({"model": model, "rows": model.history_})
    assert len(shown.lines_) == 2
    matplotlib.pyplot.close("all")


def test_a_result_draws_itself_on_given_axes(runs):
    _, ax = matplotlib.pyplot.subplots()
    assert runs["bfgs"].plot(ax, y="step").ax_ is ax


@pytest.mark.parametrize(
    "arguments, message", [({"y": "loss"}, "y must be one of 'excess'"), ({"x": "k"}, "x must be")]
)
def test_what_is_wrong_is_told(runs, arguments, message):
    with pytest.raises(ValueError, match=message):
        cf.ConvergenceDisplay.from_runs(runs, **arguments)


def test_what_keeps_no_steps_is_told():
    with pytest.raises(ValueError, match=r"Run 'mine' keeps no steps \(history_\)"):
        cf.ConvergenceDisplay.from_runs({"mine": object()})
