"""Claims about every array of every model file: forged, it is refused by load or verify, or nothing predicts by it.

The digests of a forgery are right. Refusals are errors in words, and verifications that do not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from forge import with_array, with_child
from learners import settings
from samples import Sample, quietly, samples
from sklearn.base import clone

import certifit as cf
from certifit.modelfile import container, nesting
from certifit.modelfile.codec import record_of
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.table import PUBLIC

FORGERIES: dict[str, Callable[[Any], Any]] = {
    "zeroed": np.zeros_like,
    "reversed": lambda array: array.ravel()[::-1].reshape(array.shape),
    "negated": lambda array: np.logical_not(array) if array.dtype == bool else -array,
    "times 1.01": lambda array: (array * 1.01).astype(array.dtype),
}
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "projection_error")
ROUNDING = 1e-9  # what is added and taken off again, as a mean is, may change last digits
# 20 epochs of random steps state so loose a bound that weights a hundredth away meet it too, and verify says so much.
LOOSE = "PoissonRegressor(max_iter=20, solver='averaged-sgd')"


def cases(key: str) -> dict[str, Sample]:
    """Fits of a model, in every setting of the tests, that a file can hold and that are verified, with their rows."""
    fitted = {f"sample {name}": sample for name, sample in samples().items() if is_of(key, sample.model)}
    for name, (row, model) in settings("attacked", "checked").items():
        if is_of(key, model) and name != LOOSE:
            X, y = row.rows(24, 3)
            if "Perceptron" in name:  # takes classes that can be separated
                y = np.where(X[:, 0] > 0.1, "yes", "no")
            fitted[name] = Sample(quietly(clone(model).fit, *((X,) if y is None else (X, y))), X, y)
    return {name: s for name, s in fitted.items() if can_be_kept(s.model) and verified(s.model, s)}


def is_of(key: str, model: Any) -> bool:
    """Whether it is this model; a model of another library is none."""
    return type(model) is PUBLIC[key].load()


def can_be_kept(model: Any) -> bool:
    """Whether a file can hold all models that it is made of."""
    attribute = record_of(model).children
    return not attribute or all(type(child).__module__.startswith("certifit.") for child in getattr(model, attribute))


def answers(model: Any, X: Any) -> list[Any]:
    """All that a model says of rows, and of rows between them."""
    every = [X, (X + X[::-1]) / 2] if isinstance(X, np.ndarray) else [X]
    return [np.asarray(getattr(model, name)(rows)) for name in ANSWERS if hasattr(model, name) for rows in every]


def forged(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every forgery of every array, and of those of a model of every kind in it."""
    said, arrays = container.from_bytes(data)
    for name, array in arrays.items():
        for how, forge in FORGERIES.items():
            changed = np.ascontiguousarray(forge(array))
            if changed.tobytes() != array.tobytes():
                yield f"{name} {how}", with_array(data, name, changed)
    if "children" in said:
        children = nesting.containers(said["children"]["count"], arrays)
        kinds = [container.from_bytes(child)[0].get("estimator") for child in children]
        for place in {kind: place for place, kind in enumerate(kinds)}.values():
            for name, child in forged(children[place]):
                yield f"model {place}: {name}", with_child(data, place, lambda _, child=child: child)


def is_same(model: Any, X: Any, wanted: list[Any]) -> bool:
    """Whether it answers as the fit did; rows of which it cannot say anything are another answer."""
    try:
        pairs = zip(answers(model, X), wanted, strict=True)
        return all(
            np.array_equal(a, b) if b.dtype.kind not in "fc" else np.allclose(a, b, ROUNDING, ROUNDING)
            for a, b in pairs
        )
    except ValueError:
        return False


def passes(forgery: bytes, sample: Sample, wanted: list[Any]) -> bool:
    """Whether a forgery that answers in another way is loaded and verified."""
    try:
        model = from_bytes(forgery)
        return not is_same(model, sample.X, wanted) and bool(verified(model, sample))
    except ValueError:  # a ModelFileError is one
        return False


def verified(model: Any, sample: Sample) -> Any:
    """What verify says of it on its rows."""
    weight = {} if sample.sample_weight is None else {"sample_weight": sample.sample_weight}
    return cf.verify(model, sample.X, sample.y, **weight)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", PUBLIC)
@pytest.mark.slow
def test_what_predicts_is_what_is_proven(key):
    fits = cases(key)
    assert fits
    for name, sample in fits.items():
        wanted = answers(sample.model, sample.X)
        forgeries = forged(to_bytes(sample.model))
        assert not [how for how, forgery in forgeries if passes(forgery, sample, wanted)], name
