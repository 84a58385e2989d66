"""Displays hold what they draw, draw on the axes given, and hide no bin."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from certifit.evaluation import bounds
from certifit.evaluation.metrics.confusion import ConfusionMatrix
from certifit.evaluation.metrics.probabilities import calibration
from certifit.evaluation.pictures.confusion_and_calibration import CalibrationDisplay, ConfusionMatrixDisplay


@pytest.fixture(autouse=True)
def figures(request):
    if "matplotlib" in request.node.name:
        yield
        return
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def drawn(rng, n=300):
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")


def test_a_cell_shows_its_count_and_its_share_of_the_true_class():
    display = ConfusionMatrixDisplay(
        ConfusionMatrix(("a", "b", "c"), np.array([[8, 2, 0], [1, 3, 0], [0, 0, 0]]))
    ).plot()
    assert display.text_[0, 0].get_text() == "8\n80%"
    assert display.text_[1, 0].get_text() == "1\n25%"
    assert display.text_[2, 2].get_text() == "0\n-"  # a class without rows has no share
    assert np.asarray(display.im_.get_array()).tolist() == [[0.8, 0.2, 0], [0.25, 0.75, 0], [0, 0, 0]]
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["a", "b", "c"]
    assert display.ax_.get_ylabel() == "true" and display.ax_.get_xlabel() == "predicted"
    assert "21.4% wrong, 95 % interval" in display.ax_.get_title()


def test_all_three_ways_to_a_confusion_display_agree(rng, figures):
    X, y = drawn(rng)
    model = LogisticRegression().fit(X, y)
    matrix = ConfusionMatrix.of(y, model.predict(X))
    ax = figures.subplots()[1]
    by_model = ConfusionMatrixDisplay.from_estimator(model, X, y, ax=ax)
    by_rows = ConfusionMatrixDisplay.from_predictions(y, model.predict(X), display_labels=["N", "Y"])
    by_array = ConfusionMatrixDisplay(matrix.counts)
    for display in (by_model, by_rows, by_array):
        assert (display.confusion_matrix.counts == matrix.counts).all()
    assert by_model.ax_ is ax and by_model.figure_ is ax.figure
    assert by_rows.display_labels == ("N", "Y") and by_array.display_labels == (0, 1)


def test_weights_are_drawn_without_an_interval():
    display = ConfusionMatrixDisplay.from_predictions([0, 1, 1], [0, 1, 0], sample_weight=[0.5, 1.25, 2])
    assert display.text_[1, 1].get_text() == "1.25\n38%"
    assert display.ax_.get_title().endswith("no interval")


@pytest.mark.parametrize("n_classes, text", [(12, "5"), (25, None)])
def test_many_classes_stay_legible(n_classes, text):
    display = ConfusionMatrixDisplay(np.diag([5] * n_classes)).plot()
    assert (display.text_ is None) if text is None else (display.text_[3, 3].get_text() == text)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ConfusionMatrixDisplay(np.zeros((2, 3))), ValueError, "square"),
        (lambda: ConfusionMatrixDisplay(np.eye(2), display_labels=["a"]), ValueError, "2 classes need as many"),
        (lambda: CalibrationDisplay(np.eye(2)), TypeError, "result of calibration"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_points_and_bars_are_the_table(rng):
    p = rng.random(400)
    result = calibration((rng.random(400) < p).astype(int), p, 5)
    display = CalibrationDisplay(result, name="model").plot()
    points, _, (bars,) = display.line_
    assert points.get_xdata() == pytest.approx(result.mean_prediction)
    assert points.get_ydata() == pytest.approx(result.observed_share)
    for segment, row in zip(bars.get_segments(), result.table(), strict=True):
        assert segment[:, 1] == pytest.approx([row["low"], row["high"]])
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any("expected calibration error" in word and "95 % interval" in word for word in words)


def test_an_empty_bin_is_hatched_and_named():
    display = CalibrationDisplay.from_predictions([0, 1, 1], [0.05, 0.95, 0.9], strategy="uniform", bins=10)
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "no rows (7 of 10 bins)" in words
    hatched = [patch for patch in display.ax_.patches if patch.get_hatch()]
    assert len(hatched) == 7
    assert len(display.bars_) == 10 and len(display.line_[0].get_xdata()) == 3


def test_weighted_calibration_is_drawn_without_bars():
    display = CalibrationDisplay.from_predictions([0, 1, 1], [0.1, 0.6, 0.9], sample_weight=[1, 2, 1], bins=2)
    assert not display.line_.has_yerr
    assert not any("interval" in text.get_text() for text in display.ax_.get_legend().get_texts())


def test_a_calibration_display_of_a_model_is_that_of_its_predictions(rng, figures):
    X, y = drawn(rng)
    model = LogisticRegression().fit(X, y)
    ax = figures.subplots()[1]
    display = CalibrationDisplay.from_estimator(model, X, y, bins=4, ax=ax)
    expected = calibration(y, model.predict_proba(X)[:, 1], 4, pos_label="yes")
    assert display.ax_ is ax and display.name == "LogisticRegression"
    assert (display.calibration.happened == expected.happened).all()
    other = CalibrationDisplay.from_estimator(model, X, y, bins=4, pos_label="no")
    assert other.calibration.happened.sum() == (y == "no").sum()
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba"):
        CalibrationDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="pos_label='maybe'"):
        CalibrationDisplay.from_estimator(model, X, y, pos_label="maybe")


def test_the_curve_of_ridge_stability_says_it_is_a_promise():
    ax = bounds.ridge_stability(epsilon=0.1).plot()
    assert "not a measured error" in ax.get_title()
    assert ax.get_lines()[0].get_ydata()[0] == 1.0


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    real = builtins.__import__

    def refusing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refusing)
    display = ConfusionMatrixDisplay(np.eye(2, dtype=int))  # only drawing needs it
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'certifit\[plot\]'"):
        display.plot()
