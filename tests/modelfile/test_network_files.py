"""Networks in files: sizes of layers that are not those of the stored weights are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from forge import refuse, with_number

import certifit as cf
from certifit.modelfile.files import from_bytes, to_bytes


@cache
def file_of(kind: str) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    if kind == "classes":
        return to_bytes(cf.MLPClassifier((4, 2), max_iter=3).fit(X, np.digitize(X[:, 0], [-0.5, 0.5])))
    return to_bytes(cf.MLPRegressor((4, 2), max_iter=3).fit(X, X[:, 0]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize("layer", [0, 1, 2, 3])
@pytest.mark.parametrize("size", [-1, 0, 7, 2**31, 2**62, -(2**63)])
def test_sizes_of_layers_that_the_weights_do_not_have_are_refused(kind, layer, size):
    refuse(with_number(file_of(kind), "layer_sizes", layer, size))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_file_itself_is_read(kind):
    assert [len(bias) for bias in from_bytes(file_of(kind)).layer_biases_][:2] == [4, 2]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_has_weights_of_classes_and_a_loss_with_its_number():
    rng = np.random.default_rng(0)
    X, exposure = rng.normal(size=(40, 3)), rng.uniform(1, 2, size=40)
    y = exposure * np.exp(X[:, 0])
    labels = np.where(X[:, 0] > 0, "a", "b")
    classes = cf.MLPClassifier((4,), max_iter=30, learning_rate=0.1, class_weight={"a": 2.0}).fit(X, labels)
    counts = cf.MLPRegressor((4,), max_iter=30, learning_rate=0.02, loss="tweedie", power=1.2).fit(
        X, y, exposure=exposure
    )
    again = from_bytes(to_bytes(classes))
    assert again.class_weight == {"a": 2.0, "b": 1.0} and again.certify(X, labels).holds
    again = from_bytes(to_bytes(counts))
    assert again.power == 1.2 and again.certify(X, y, exposure=exposure).holds
    assert np.array_equal(again.predict(X, exposure=exposure), counts.predict(X, exposure=exposure))
