"""Pictures of fits: the way to the optimum, paths, influence, coefficients. They show the numbers of the fit."""

from __future__ import annotations

import re
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression as PeerRegression

import certifit as cf
from certifit.evaluation.pictures import spread, visible
from certifit.evaluation.pictures.coefficients import CoefficientDisplay, PathDisplay
from certifit.evaluation.pictures.convergence import ConvergenceDisplay, explanation
from certifit.evaluation.pictures.influence import InfluenceDisplay


@pytest.fixture
def axes():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    yield plt.subplots()[1]
    plt.close("all")


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(80, 4)) * [1, 10, 0.1, 1]
    X[:, 3] = X[:, 0] + 0.1 * X[:, 3]
    return pd.DataFrame(X, columns=["a", "b", "c", "d"]), X @ [3.0, 0.2, 0.0, -1.0] + rng.standard_t(3, size=80)


def stopped(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cf.Lasso(alpha=0.01, max_iter=1).fit(X, y)


# ---- convergence


def test_the_gap_is_relative_and_ends_below_the_tolerance(rows, axes):
    model = cf.HuberRegressor().fit(*rows)
    display = ConvergenceDisplay.from_estimator(model, ax=axes)
    shown = display.line_.get_ydata()
    expected = [row["gap"] / row["objective"] for row in model.history_]
    np.testing.assert_allclose(shown, np.maximum(expected, 1e-20))
    assert shown[0] > display.tolerance_line_.get_ydata()[0] == model.tol > shown[-1]
    assert display.mark_.get_ydata()[0] == pytest.approx(model.certificate_.value)
    assert axes.get_yscale() == "log" and display.caption_.get_text().startswith("Converged")
    assert len(shown) == len(model.history_) > 2


def test_a_fit_that_stopped_says_so_in_the_picture(rows, axes):
    model = stopped(*rows)
    display = ConvergenceDisplay.from_estimator(model, ax=axes)
    assert display.line_.get_ydata()[-1] == pytest.approx(model.certificate_.value, rel=1e-6)  # one unit for both
    assert display.mark_.get_ydata()[0] > model.tol
    assert "NOT certified" in display.mark_.get_label() and "NOT certified" in display.caption_.get_text()
    low, high = axes.get_ylim()
    assert low < model.tol < model.certificate_.value < high


def test_seconds_and_the_objective_can_be_drawn(rows, axes):
    model = cf.HuberRegressor().fit(*rows)
    display = ConvergenceDisplay.from_estimator(model, x="seconds", y="objective", ax=axes)
    np.testing.assert_array_equal(display.line_.get_xdata(), [row["seconds"] for row in model.history_])
    np.testing.assert_array_equal(display.line_.get_ydata(), [row["objective"] for row in model.history_])
    assert axes.get_xlabel() == "seconds" and axes.get_yscale() == "linear"


@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.Ridge(0.1), cf.Lasso(0.1), cf.ElasticNet(0.1)])
def test_every_model_has_a_picture(rows, axes, model):
    display = ConvergenceDisplay.from_estimator(model.fit(*rows), ax=axes)
    assert display.line_.get_ydata()[-1] < 1e-8
    assert "Predictions differ from the best by at most" in " ".join(display.caption_.get_text().split())


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("size", [1e-6, 1e-3, 0.05, 0.3])
def test_predictions_are_as_near_to_the_best_as_the_caption_says(rows, rng, alpha, size):
    X, y = rows[0].to_numpy(), rows[1]
    best = cf.Lasso(alpha).fit(X, y)
    moved = cf.Lasso(alpha, tol=0.5).fit(X, y)
    moved.coef_ = best.coef_ + size * rng.normal(size=4) / X.std(axis=0)
    words = explanation(moved.certify(X, y))
    claimed = re.search(r"by (?:at most|up to) ([\d.e+-]+) \(root mean square over the rows\)", words)
    distance = np.sqrt(np.mean((moved.predict(X) - best.predict(X)) ** 2))
    assert distance <= float(claimed[1]) * 1.06  # the sentence rounds to two digits
    assert words.count("redictions") == 1


def test_the_best_of_a_cross_validation_is_drawn(rows, axes):
    model = cf.CrossValidated(cf.Ridge(), {"alpha": [0.1, 1.0]}, cv=3).fit(*rows)
    display = ConvergenceDisplay.from_estimator(model, ax=axes)
    assert display.certificate is model.best_estimator_.certificate_


def test_convergence_refuses_what_it_cannot_draw(rows, axes):
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(cf.Ridge())
    with pytest.raises(ValueError, match=r"LinearRegression keeps no steps \(history_\)"):
        ConvergenceDisplay.from_estimator(PeerRegression().fit(*rows))
    model = cf.Ridge().fit(*rows)
    with pytest.raises(ValueError, match=r"x must be 'iteration' or 'seconds'. Got 'time'"):
        ConvergenceDisplay.from_estimator(model, x="time")
    with pytest.raises(ValueError, match=r"y must be 'gap' or 'objective'. Got 'loss'"):
        ConvergenceDisplay.from_estimator(model, y="loss")


# ---- paths


def test_a_path_shows_every_weight_and_their_number(rows, axes):
    path = cf.Lasso().path(*rows, n_alphas=20)
    display = PathDisplay.from_path(path, ax=axes)
    assert len(display.lines_) == 4
    order = np.argsort(-path.alphas)
    for j, line in enumerate(display.lines_):
        np.testing.assert_array_equal(line.get_xdata(), path.alphas[order])
        np.testing.assert_array_equal(line.get_ydata(), path.coef[order, j])
    left, right = axes.get_xlim()
    assert axes.get_xscale() == "log" and left > right  # weaker to the right
    labels = [int(label.get_text()) for label in display.counts_.get_xticklabels()]
    assert labels[0] == 0 and labels[-1] == np.count_nonzero(path.coef[order[-1]])


def test_names_stand_at_the_ends_of_the_largest_weights(rows, axes):
    path = cf.Lasso().path(*rows)
    display = PathDisplay.from_path(path, ax=axes, named=2)
    last = path.coef[np.argmin(path.alphas)]
    largest = [rows[0].columns[j] for j in np.argsort(-np.abs(last))[:2]]
    assert [text.get_text() for text in display.texts_] == largest


def test_the_chosen_alpha_is_marked(rows, axes):
    model = cf.CrossValidated(cf.Lasso(), cv=3, rule="1se").fit(*rows)
    display = PathDisplay.from_estimator(model, *rows, ax=axes)
    assert display.chosen_line_.get_xdata()[0] == model.best_params_["alpha"]
    assert PathDisplay.from_estimator(cf.Lasso(), *rows, ax=axes).chosen_line_ is None  # nothing is chosen yet


def test_a_path_in_any_order_is_the_same_picture(axes):
    alphas, coef = np.array([1.0, 0.1, 0.5]), np.array([[0.0, 0.0], [2.0, -1.0], [1.0, 0.0]])
    display = PathDisplay(alphas, coef).plot(axes)
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [0.0, 1.0, 2.0])


def test_a_path_refuses_what_it_cannot_draw(rows):
    with pytest.raises(TypeError, match="A path needs a Lasso, an ElasticNet"):
        PathDisplay.from_estimator(cf.Ridge(), *rows)
    with pytest.raises(ValueError, match="alphas must be above 0"):
        PathDisplay([1.0, 0.0], np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"Got 2 alphas and \(3, 1\)"):
        PathDisplay([1.0, 0.5], np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"names must be 1, one per column. Got 2"):
        PathDisplay([1.0, 0.5], np.zeros((2, 1)), ["a", "b"])


# ---- influence


def test_points_are_leverage_and_studentised_residual(rows, axes):
    model = cf.LinearRegression().fit(*rows)
    found = model.influence(*rows)
    display = InfluenceDisplay.from_estimator(model, *rows, ax=axes, labelled=3)
    np.testing.assert_array_equal(display.points_.get_offsets(), np.column_stack([found.leverage, found.studentised]))
    assert [text.get_text() for text in display.texts_] == [str(row) for row in found.most(3).row]
    assert display.n_hidden_ == 0


@pytest.mark.parametrize("weights", ["frequency", "variance"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_contour_through_a_row_is_its_distance(rows, rng, axes, weights, fit_intercept):
    weight = rng.integers(1, 4, len(rows[1]))
    X = rows[0].assign(e=rows[0]["a"] - rows[0]["b"])  # redundant: it counts as no coefficient
    model = cf.LinearRegression(fit_intercept=fit_intercept).fit(X, rows[1], weight)
    found = model.influence(X, rows[1], weight, weights=weights)
    display = InfluenceDisplay.from_estimator(model, X, rows[1], weight, weights=weights, ax=axes)
    for i in found.most(10).row:
        t = display.residual_at(found.leverage[i], found.cooks_distance[i])
        assert t == pytest.approx(abs(found.studentised[i]), rel=1e-8)
    line = display.contours_[0.5]
    h, t = line.get_xdata(), line.get_ydata()
    seen = np.isfinite(t)
    square = t[seen] ** 2
    r_squared = square * display.df_resid / (display.df_resid - 1 + square)
    np.testing.assert_allclose(r_squared * h[seen] / (1 - h[seen]) / display.n_coefficients, 0.5, rtol=1e-9)


def test_rows_without_a_number_are_counted(rows, axes):
    X = rows[0].assign(one=0.0)
    X.loc[7, "one"] = 1.0  # only this row tells its coefficient
    display = InfluenceDisplay.from_estimator(cf.LinearRegression().fit(X, rows[1]), X, rows[1], ax=axes)
    assert display.n_hidden_ == 1 and "1 rows have no such number" in axes.get_xlabel()
    assert len(display.points_.get_offsets()) == 79


def test_influence_refuses_what_it_cannot_draw(rows):
    with pytest.raises(TypeError, match="Influence needs a fitted LinearRegression"):
        InfluenceDisplay.from_estimator(PeerRegression(), *rows)
    with pytest.raises(TypeError, match=r"Pass what model.influence\(X, y\) returns. Got list"):
        InfluenceDisplay([1, 2], 2, 3.0)
    with pytest.raises(ValueError, match=r"No influence: .*penalty"):
        InfluenceDisplay.from_estimator(cf.Ridge(1.0).fit(*rows), *rows)


# ---- coefficients


def test_bars_are_the_confidence_intervals(rows, axes):
    model = cf.LinearRegression().fit(*rows)
    display = CoefficientDisplay.from_estimator(model, *rows, covariance="HC3", level=0.9, ax=axes)
    frame = model.summary(*rows, covariance="HC3", level=0.9).to_frame().iloc[1:]
    np.testing.assert_allclose(display.points_.get_xdata(), frame["coef"])
    ends = np.array([segment[:, 0] for segment in display.bars_.get_segments()])
    np.testing.assert_allclose(ends, frame[["[0.05", "0.95]"]])
    assert [label.get_text() for label in axes.get_yticklabels()] == list("abcd")
    assert "90 %" in axes.get_xlabel() and "HC3" in axes.get_xlabel()


def test_relative_coefficients_are_t_values(rows, axes):
    model = cf.LinearRegression().fit(*rows)
    display = CoefficientDisplay.from_estimator(model, relative=True, intercept=True, most=3, ax=axes)
    t = model.inference_.t_values
    kept = np.sort(np.argsort(-np.abs(t))[:3])
    np.testing.assert_allclose(display.points_.get_xdata(), t[kept])
    assert axes.get_title() == "3 of 5 coefficients, those of largest |t|"


def test_coefficients_refuse_what_they_cannot_draw(rows, axes):
    with pytest.raises(TypeError, match="Intervals need a fitted LinearRegression"):
        CoefficientDisplay.from_estimator(PeerRegression().fit(*rows))
    with pytest.raises(TypeError, match=r"Pass what model.summary\(\) returns"):
        CoefficientDisplay.from_summary("table")
    with pytest.raises(ValueError, match="most must be at least 1"):
        CoefficientDisplay.from_estimator(cf.LinearRegression().fit(*rows), most=0)


# ---- all of them

DISPLAYS = {
    "ConvergenceDisplay": lambda rows: ConvergenceDisplay.from_estimator(cf.Ridge().fit(*rows)),
    "PathDisplay": lambda rows: PathDisplay.from_estimator(cf.Lasso(), *rows),
    "InfluenceDisplay": lambda rows: InfluenceDisplay.from_estimator(cf.LinearRegression().fit(*rows), *rows),
    "CoefficientDisplay": lambda rows: CoefficientDisplay.from_estimator(cf.LinearRegression().fit(*rows)),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_without_matplotlib_says_what_to_install(rows, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{name} needs matplotlib: pip install 'certifit\[plot\]'"):
        DISPLAYS[name](rows)


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.slow
def test_hostile_names_are_drawn_as_text(rows, axes, name):
    X = rows[0].set_axis(["$x^2$", "a\nb\x1b[31m", "long " * 40, r"\frac{1}"], axis=1)
    display = DISPLAYS[name]((X, rows[1]))
    display.figure_.canvas.draw()  # a broken formula would raise here
    assert display.ax_.figure is display.figure_


def test_names_are_shown_on_one_line():
    assert visible("a\nb") == r"a\nb" and visible("$x$") == r"\$x\$" and len(visible("x" * 50)) == 18


def test_labels_are_moved_apart_and_keep_their_order():
    assert spread([0.0, 5.0], 1.0) == [0.0, 5.0]
    moved = spread([1.0, 1.0, 1.1, 9.0], 1.0)
    assert np.diff(np.sort(moved)).min() >= 1 - 1e-6 and moved[3] == 9.0
