"""Pictures and report sections of networks and local regression: what is drawn is what the model has."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import certifit as cf
from certifit.evaluation.pictures.local import drawn_widths
from certifit.evaluation.pictures.network import MOST_POINTS, drawn_epochs
from certifit.models.callbacks import ProgressLine, curve_of
from certifit.report import convergence, widths
from certifit.report.convergence import draw_learning
from certifit.report.widths import draw_widths

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def network():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    return cf.MLPClassifier((5,), max_iter=6, early_stopping=True, n_starts=2).fit(X, y), X, y


@pytest.fixture(scope="module")
def local():
    x = np.linspace(0, 6, 60)
    return cf.LocallyWeightedRegression().fit(x[:, None], np.sin(x)), x


def test_the_lines_of_epochs_are_those_of_the_history(network):
    model, X, _ = network
    drawn = drawn_epochs(model.history_)
    assert drawn.lines["objective on the rows of the fit"].tolist() == [row["objective"] for row in model.history_]
    assert drawn.lines["loss on rows held out"].tolist() == [row["held_out"] for row in model.history_]
    many = drawn_epochs([{"iteration": k + 1, "objective": 1.0 / (k + 1)} for k in range(1000)])
    assert (
        len(many.epochs) == MOST_POINTS
        and many.epochs[-1] == 1000
        and list(many.lines) == ["objective on the rows of the fit"]
    )
    assert len(cf.EpochsDisplay.from_estimators({"one": model, "other": model}).lines_) == 4
    with pytest.raises(TypeError, match="is no network"):
        cf.EpochsDisplay.from_estimator(cf.LinearRegression().fit(X, X[:, 0]))


def test_hidden_units_are_the_states_of_the_layer(network):
    model, X, _ = network
    display = cf.HiddenUnitsDisplay.from_estimator(model, X, grid_points=7)
    grid = np.stack(np.meshgrid(display.across, display.up), axis=-1).reshape(-1, 2)
    states = model.forward(grid)[1]
    order = np.argsort(-np.abs(model.layer_weights_[1]).sum(axis=0), kind="stable")
    assert np.array_equal(display.values.reshape(5, -1), states.T[order])
    with pytest.raises(ValueError, match="layer must be from 1 to 1"):
        cf.HiddenUnitsDisplay.from_estimator(model, X, layer=2)


def test_the_width_that_is_ringed_is_that_of_the_model(local):
    model, x = local
    taus, errors, chosen = drawn_widths(model.curve_, model.tau_)
    assert taus[chosen] == model.tau_ and errors[chosen] == errors.min()
    cf.TauDisplay.from_estimator(model)
    display = cf.LocalFitDisplay.from_estimator(model, 2.0)
    assert np.interp(2.0, display.places, display.line) == pytest.approx(model.predict([[2.0]])[0], abs=1e-3)
    lines = cf.LocalWidthsDisplay.from_estimator(model, x[:, None], np.sin(x), taus=(0.1, 1e6)).lines_
    straight = lines[1e6].get_ydata()
    assert np.allclose(np.diff(straight, 2), 0, atol=1e-9)
    curve = cf.LocallyWeightedRegression(1.0).fit(x[:, None], np.sin(x)).leave_one_out()
    assert len(curve) == 15 and np.allclose(curve[curve[:, 0] != 1.0], model.curve_, rtol=1e-9)


def test_conditions_are_those_of_the_certificate(local):
    model, _ = local
    sizes = model.conditions()
    assert len(sizes) == 60 and sizes[np.isfinite(sizes)].max() == model.certificate_.condition
    assert np.isinf(sizes).sum() == model.certificate_.n_singular


def test_the_report_has_a_section_on_learning_and_on_the_width(network, local):
    facts = convergence.learning_facts(SimpleNamespace(model=network[0], sections=("learning",)))
    assert facts["n_checked"] == network[0].certificate_.n_checked and len(facts["starts"]) == 2
    assert "2 random starts ended between" in " ".join(facts["sentences"])
    svg = draw_learning({"learning": facts})
    assert "loss on rows held out" in svg and draw_learning({"learning": None}) == ""
    facts = widths.width_facts(SimpleNamespace(model=local[0], sections=("widths",)))
    assert facts["worst"][0] == local[0].certificate_.condition and facts["tau"] == local[0].tau_
    assert draw_widths({"widths": facts}).startswith("<svg")
    nothing = SimpleNamespace(model=None, sections=())
    assert convergence.learning_facts(nothing) is None and widths.width_facts(nothing) is None


def test_the_line_of_progress_has_the_curve_so_far_and_the_loss_of_rows_held_out():
    line = ProgressLine("MLPClassifier")
    for k in range(100):
        line.tell({"iteration": k + 1, "objective": 1.0 / (k + 1), "held_out": 0.5})
    assert line.text.startswith("MLPClassifier  step 100  objective 0.01  held out 0.5  █") and line.text.endswith("▁")
    assert curve_of([1.0, 2.0]) == "" and curve_of([3.0, 3.0, 3.0]) == "▁▁▁"
