"""Networks: worked examples by hand, gradients, and the same bits for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf

BY_HAND = {
    "standardize": False,
    "alpha": 0.0,
    "max_iter": 1,
    "learning_rate": 1e-300,
    "dtype": "float64",
    "solver": "gradient-descent",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_chain_of_three_weights_has_the_gradients_of_the_notes():
    v, w1, w0, x, y = 0.7, -1.3, 2.1, 0.9, 0.4
    start = [[[w0]], [[w1]], [[v]]]
    model = cf.MLPRegressor(
        (1, 1), activation="identity", loss="full-squared", biases=False, output_bias=False, start=start, **BY_HAND
    ).fit([[x]], [y])
    found = model.backward([[x]], [y])
    error = 2 * (v * w1 * w0 * x - y)
    wanted = [error * v * w1 * x, error * v * w0 * x, error * w1 * w0 * x]
    assert [g.item() for g, _ in found.gradients] == pytest.approx(wanted, rel=1e-12)
    assert [s.item() for s in found.states] == pytest.approx([x, w0 * x, w1 * w0 * x, v * w1 * w0 * x])
    assert found.costates[-1].item() == pytest.approx(error)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_2_2_3_1_network_of_relu_by_hand():
    W1, W2, W3 = np.array([[1.0, -1], [0.5, 2]]), np.array([[1.0, 1], [-1, 2], [2, -3]]), np.array([[1.0, -2, 3]])
    x, y = np.array([2.0, 1.0]), 1.0
    h1 = np.maximum(W1 @ x, 0)  # (1, 3)
    h2 = np.maximum(W2 @ h1, 0)  # (4, 5, 0)
    z = W3 @ h2  # -6
    p3 = 2 * (z - y)
    p2 = W3.T @ p3
    q2 = p2 * (h2 > 0)
    p1 = W2.T @ q2
    q1 = p1 * (h1 > 0)
    model = cf.MLPRegressor(
        (2, 3), loss="full-squared", biases=False, output_bias=False, start=[W1, W2, W3], **BY_HAND
    ).fit([x], [y])
    found = model.backward([x], [y])
    assert z.tolist() == [-6.0] and [s.ravel().tolist() for s in found.states] == [
        x.tolist(),
        h1.tolist(),
        h2.tolist(),
        [-6.0],
    ]
    for (gradient, _), wanted in zip(
        found.gradients, (np.outer(q1, x), np.outer(q2, h1), np.outer(p3, h2)), strict=True
    ):
        assert np.array_equal(gradient, wanted)
    assert np.array_equal(found.costates[1][0], p1) and np.array_equal(found.costates[2][0], p2)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "identity", "relu", "leaky-relu"])
@pytest.mark.parametrize("loss", ["squared", "full-squared", "huber", "poisson", "gamma"])
def test_the_core_has_the_gradient_of_its_value(activation, loss):
    from certifit.data.source import Memory
    from certifit.models.network.certificate import objective
    from certifit.models.network.layout import Layout
    from certifit.models.network.losses import NetworkLoss
    from certifit.models.network.task import NetworkTask

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.gamma(2.0, size=40)
    layout = Layout((3, 5, 4, 1), activation, 0.1, True, True)
    source = Memory(X, y, names=["a", "b", "c"])
    task = NetworkTask(source, layout, NetworkLoss(loss), "float64", alpha=0.1, units=None, standardize=False)
    point = layout.drawn(0, 0)
    value, gradient = task.value_gradient(point)
    again, slow = objective(task, point)
    assert value == pytest.approx(again, rel=1e-12)
    assert np.allclose(gradient, slow, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 200))
    y = np.digitize(X[:, 0] + X[:, 1], [-1, 1])
    fits = []
    for n in (1, 3):
        with cf.threads(n):
            fits.append(cf.MLPClassifier((120, 60), max_iter=3).fit(X, y))
    assert np.array_equal(fits[0].parameters_, fits[1].parameters_)
    assert fits[0].history_[-1]["objective"] == fits[1].history_[-1]["objective"]
