"""Pictures of ranking curves: the right numbers, the interval in the legend, no figure needed beforehand."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from certifit.evaluation.metrics.ranking import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)
from certifit.evaluation.pictures.roc_and_precision import (
    PrecisionRecallDisplay,
    RocCurveDisplay,
    drawn_precision,
    drawn_roc,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
DISPLAYS = [RocCurveDisplay, PrecisionRecallDisplay]


@pytest.fixture(autouse=True)
def closed_figures() -> Any:
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture
def rows(rng: Any) -> tuple[Any, Any]:
    X = rng.normal(size=(150, 2))
    return X, np.where(X[:, 0] + rng.normal(size=150) > 0.5, "spam", "ham")


def words(display: Any) -> str:
    return " | ".join(text.get_text() for text in display.ax_.get_legend().get_texts())


@pytest.mark.slow
def test_the_legend_names_the_area_and_its_interval(rows):
    X, y = rows
    roc = RocCurveDisplay.from_predictions(y, X[:, 0], pos_label="spam", name="first")
    area = roc_auc_score(y, X[:, 0])
    assert f"first: AUC = {area:.3f}\n95 % DeLong {area.low:.3f} to {area.high:.3f}" in words(roc)
    precision = PrecisionRecallDisplay.from_predictions(y, X[:, 0], pos_label="spam", interval="bootstrap", level=0.9)
    area = average_precision_score(y, X[:, 0], pos_label="spam", interval="bootstrap", level=0.9)
    assert f"AP = {area:.3f}\n90 % bootstrap {area.low:.3f} to {area.high:.3f}" in words(precision)
    assert f"Chance (AP = {np.mean(y == 'spam'):.3g})" in words(precision)


def test_the_line_is_the_curve(rows):
    X, y = rows
    roc = RocCurveDisplay.from_predictions(y, X[:, 0], pos_label="ham")
    fpr, tpr, _ = roc_curve(y, X[:, 0], pos_label="ham")
    assert np.array_equal(roc.line_.get_xydata(), np.column_stack([fpr, tpr]))
    shown = PrecisionRecallDisplay.from_predictions(y, X[:, 0], pos_label="ham")
    precision, recall, _ = precision_recall_curve(y, X[:, 0], pos_label="ham")
    corners = {tuple(point) for point in shown.line_.get_xydata()}
    assert {(r, p) for r, p in zip(recall, precision, strict=True) if r > 0} <= corners
    area = trapezoid(shown.line_.get_ydata(), shown.line_.get_xdata())
    assert np.isclose(area, average_precision_score(y, X[:, 0], pos_label="ham"), rtol=1e-12)


def test_thinned_curves_keep_their_ends_and_their_area(rng):
    y = rng.random(4000) < 0.3
    score = y + rng.normal(size=4000)
    fpr, tpr, _ = roc_curve(y, score)
    x, rate = drawn_roc(fpr, tpr, 150)
    assert len(x) <= 152 and (x[0], rate[0], x[-1], rate[-1]) == (0, 0, 1, 1)
    assert np.isclose(trapezoid(rate, x), roc_auc_score(y, score), atol=2e-3)
    precision, recall, _ = precision_recall_curve(y, score)
    x, share = drawn_precision(precision, recall, 150)
    assert len(x) <= 304 and (x[0], x[-1]) == (0, 1) and np.all(np.diff(x) >= 0)
    assert np.isclose(trapezoid(share, x), average_precision_score(y, score), atol=1e-2)


def test_the_band_is_clopper_pearson_at_each_threshold(rows):
    X, y = rows
    fpr, low, high = RocCurveDisplay.from_predictions(y, X[:, 0], pos_label="spam", drop_intermediate=False).band
    threshold = 0.2
    hits, n = int(np.sum(X[y == "spam", 0] >= threshold)), int(np.sum(y == "spam"))
    wanted = stats.binomtest(hits, n).proportion_ci(0.95)
    at = np.flatnonzero(np.isclose(fpr, np.mean(X[y == "ham", 0] >= threshold)))
    assert any(np.allclose([low[i], high[i]], wanted) for i in at)
    recall, low, high = PrecisionRecallDisplay.from_predictions(y, X[:, 0], pos_label="spam").band
    wanted = stats.binomtest(hits, int(np.sum(X[:, 0] >= threshold))).proportion_ci(0.95)
    at = np.flatnonzero(np.isclose(recall, hits / n))
    assert any(np.allclose([low[i], high[i]], wanted) for i in at)


@pytest.mark.parametrize("display", DISPLAYS)
def test_rows_with_weights_have_no_band(rows, display):
    X, y = rows
    assert display.from_predictions(y == "spam", X[:, 0], sample_weight=np.arange(150)).band is None


@pytest.mark.parametrize("pos_label", ["ham", "spam"])
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()])
def test_an_estimator_is_drawn_for_either_class(rows, model, pos_label):
    X, y = rows
    model.fit(X, y)
    display = RocCurveDisplay.from_estimator(model, X, y, pos_label=pos_label)
    score = model.decision_function(X) * (1 if pos_label == "spam" else -1)
    assert display.roc_auc == pytest.approx(float(roc_auc_score(y, score, pos_label=pos_label)))
    assert display.pos_label == pos_label and type(model).__name__ in words(display)
    assert PrecisionRecallDisplay.from_estimator(model, X, y).pos_label == "spam"


@pytest.mark.parametrize("display", DISPLAYS)
def test_it_draws_into_the_axes_it_is_given(rows, display):
    X, y = rows
    _, ax = matplotlib.pyplot.subplots()
    drawn = display.from_predictions(y == "spam", X[:, 0], ax=ax, color="red")
    assert drawn.ax_ is ax and drawn.line_.get_color() == "red"
    assert drawn.plot(name="again").ax_ is not ax


@pytest.mark.parametrize("display", DISPLAYS)
def test_what_has_no_curve_is_refused(rows, display):
    X, y = rows
    with pytest.raises(ValueError, match="LinearRegression has 0 classes and no such method"):
        display.from_estimator(LinearRegression().fit(X, y == "spam"), X, y)
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="pos_label must be 'ham' or 'spam'"):
        display.from_estimator(model, X, y, pos_label="eggs")


@pytest.mark.parametrize("display", DISPLAYS)
def test_a_missing_matplotlib_names_the_extra(rows, display, monkeypatch):
    X, y = rows
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'certifit\[plot\]'"):
        display.from_predictions(y == "spam", X[:, 0])
