"""What the course says of networks, shown: rates of approximation, sizes of steps, minima, the boundary as it moves."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
from certifit.evaluation.pictures.network import (
    Waves,
    greedy_errors,
    in_ball,
    random_feature_errors,
    trained_errors,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N_UNITS = 8
# Five rows want the weight near 1.5, one with a large x wants it near 0, four saturated ones hold the output at 1:
# the mean loss has a strict minimum near 0.018 that single rows do not share.
CAUGHT_X = np.array([0.9, 0.95, 1.0, 1.05, 1.1, 20.0, 1e4, -1e4, 1e4, -1e4])[:, None]
CAUGHT_Y = np.array([0.9] * 5 + [0.1, 1.0, -1.0, 1.0, -1.0])
ONE_UNIT = {
    "hidden_layer_sizes": (1,),
    "activation": "tanh",
    "biases": False,
    "output_bias": False,
    "standardize": False,
    "alpha": 0.0,
    "dtype": "float64",
    "momentum": 0.0,
    "learning_rate": 0.03,
    "n_iter_no_change": 10_000,
    "start": [[[0.01]], [[1.0]]],
}


@pytest.fixture(scope="module")
def errors():
    """Shares of the variance, by columns and kind: 1 to 8 units, and 32 for random features."""
    shares = {}
    for d in (2, 5, 10):
        X, waves = in_ball(500, d), Waves.drawn(d)
        y = waves(X)
        greedy = greedy_errors(X, y, N_UNITS)
        assert (greedy * np.arange(1, N_UNITS + 1) < (2 * waves.constant) ** 2).all(), "Barron's bound"
        drawn = np.mean([random_feature_errors(X, y, [N_UNITS, 32], seed=seed) for seed in range(8)], axis=0)
        shares[d] = {"greedy": greedy / y.var(), "drawn": drawn / y.var(), "y": y, "X": X}
    return shares


@pytest.mark.slow
def test_units_that_are_added_greedily_keep_to_the_bound_and_fall_in_every_dimension(errors):
    for d in errors:
        assert (np.diff(errors[d]["greedy"]) <= 1e-12).all(), "an output layer that is refitted is never worse"
        assert errors[d]["greedy"][-1] < 0.5


def test_features_that_are_drawn_at_random_degrade_with_the_number_of_columns(errors):
    drawn = [errors[d]["drawn"][1] for d in (2, 5, 10)]
    assert drawn[0] < drawn[1] < drawn[2]
    assert errors[10]["greedy"][-1] < errors[10]["drawn"][1], "8 learned units against 32 drawn ones"


def test_training_all_units_at_once_comes_near_too(errors):
    rows = errors[5]
    assert trained_errors(rows["X"], rows["y"], [N_UNITS], max_iter=60)[0] < 0.5 * rows["y"].var()


def test_the_constant_of_waves_is_that_of_barron():
    assert Waves(np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([0.5, -1.0])).constant == pytest.approx(4.5)
    assert (np.linalg.norm(in_ball(100, 7), axis=1) <= 1).all()


def test_gradient_descent_is_caught_in_a_minimum_that_stochastic_steps_leave():
    caught = cf.MLPRegressor(solver="gradient-descent", max_iter=600, **ONE_UNIT).fit(CAUGHT_X, CAUGHT_Y)
    assert caught.certificate_.gradient_norm < 1e-4 and caught.objective_ > 0.19
    assert 0.01 < caught.parameters_[0] < 0.03
    for seed in range(3):
        left = cf.MLPRegressor(solver="sgd", batch_size=1, max_iter=60, random_state=seed, **ONE_UNIT)
        assert left.fit(CAUGHT_X, CAUGHT_Y).objective_ < 0.1


def test_steps_too_small_right_and_too_large():
    x = np.linspace(-1, 1, 40)[:, None]
    model = cf.MLPRegressor(
        (8,), activation="tanh", solver="gradient-descent", momentum=0.0, max_iter=150, n_iter_no_change=10_000,
        dtype="float64",
    )  # fmt: skip
    losses = {}
    for rate in (1e-4, 0.1):
        history = model.set_params(learning_rate=rate).fit(x, np.sin(3 * x[:, 0])).history_
        losses[rate] = np.array([row["objective"] for row in history])
    assert (np.diff(losses[0.1]) < 0).all() and (np.diff(losses[1e-4]) < 0).all()
    fall = {rate: line[0] - line[-1] for rate, line in losses.items()}
    assert fall[1e-4] < 0.1 * fall[0.1], "too small: it has hardly moved"
    with pytest.raises(ValueError, match="The steps diverged"):
        model.set_params(learning_rate=20.0).fit(x, np.sin(3 * x[:, 0]))
