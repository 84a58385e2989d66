"""A refit that fails, at whatever stage, leaves the fit before it whole: every estimator in one table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hostile_factories import FACTORIES
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.source import Memory

MODELS: dict[str, tuple[str, Any]] = {name: (row[0], row[1]) for name, row in FACTORIES.items()} | {
    "Ridge(polynomial)": ("reg", lambda: cf.Ridge(0.1, basis=cf.Polynomial(2))),
    "HuberRegressor(polynomial)": ("reg", lambda: cf.HuberRegressor(basis=cf.Polynomial(2))),
    "GammaRegressor": ("pois", lambda: cf.GammaRegressor(0.1)),
    "GLM(poisson, l1)": ("pois", lambda: cf.GLM("poisson", alpha=0.01, l1_ratio=1.0)),
    "ForwardSelection": ("reg", lambda: cf.ForwardSelection(cf.Ridge(0.1), n_features_to_select=2)),
    "BackwardSelection": ("reg", lambda: cf.BackwardSelection(cf.LinearRegression(), n_features_to_select=2)),
    "MutualInformationFilter": ("reg", lambda: cf.MutualInformationFilter(2)),
    "Polynomial": ("tr", cf.Polynomial),
    "Functions": ("tr", lambda: cf.Functions([np.tanh])),
}
PASSES = (0, 1, 2, 3, 5, 8, 13, 21, 40)  # the pass over the rows that fails


class BrokenRead(Exception):
    """What a file that goes away in the middle of a fit raises."""


def rows(kind: str, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, (40, 3)).astype(float) + (rng.random((40, 3)) if kind != "clf" else 0)
    score = X @ [0.4, -0.3, 0.2]
    y = {"clf": (score + rng.normal(size=40) > 0.4).astype(int), "pois": rng.poisson(np.exp(score)) + 1.0}
    return X, y.get(kind, score + rng.normal(size=40))


def fitted(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def answers(model: Any, X: Any) -> list[Any]:
    """All that a user may ask of the fit."""
    out: list[Any] = [str(getattr(model, "certificate_", ""))]
    for name in ("predict", "predict_proba", "transform"):
        if hasattr(model, name):
            out.append(np.asarray(getattr(model, name)(X)).tobytes())
    return out


def assert_same_fit(model: Any, before: dict[str, Any], said: list[Any], X: Any) -> None:
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    assert answers(model, X) == said


@pytest.mark.parametrize("name", MODELS)
def test_rows_that_are_refused_leave_the_old_fit(name):
    kind, make = MODELS[name]
    X, y = rows(kind, 0)
    model = fitted(make(), X, y)
    before, said = dict(vars(model)), answers(model, X)
    other, target = rows(kind, 1)
    hole, wide = other.copy(), np.column_stack([other, other[:, 0]])
    hole[7, 1] = np.nan
    hidden = target.astype(float)
    hidden[3] = np.inf
    for bad in ((hole, target), (wide, hidden), (wide, target[:-1]), (pd.DataFrame(hole, columns=list("abc")), target)):
        if kind == "tr" and bad[0] is wide:
            continue  # a target is not looked at
        with pytest.raises(ValueError):
            fitted(model, *bad)
        assert_same_fit(model, before, said, X)


@pytest.mark.parametrize("name", MODELS)
def test_a_pass_that_fails_leaves_the_old_fit(name, monkeypatch):
    kind, make = MODELS[name]
    X, y = rows(kind, 0)
    model = fitted(make(), X, y)
    before, said = dict(vars(model)), answers(model, X)
    wide = np.column_stack([rows(kind, 1)[0], np.arange(40.0)])
    read = Memory.runs
    for last in PASSES:
        left = [last]

        def runs(self: Memory, left: list[int] = left) -> Iterator[Any]:
            if not left[0]:
                raise BrokenRead
            left[0] -= 1
            return read(self)

        with monkeypatch.context() as patched:
            patched.setattr(Memory, "runs", runs)
            try:
                fitted(model, wide, rows(kind, 1)[1])
            except BrokenRead:
                patched.undo()
                assert_same_fit(model, before, said, X)
            else:
                break  # fewer passes than that
    assert fitted(model, wide, rows(kind, 1)[1]).n_features_in_ == 4


@pytest.mark.parametrize("name", [name for name in MODELS if hasattr(MODELS[name][1](), "tol")])
def test_a_warning_that_is_an_error_leaves_the_old_fit(name):
    kind, make = MODELS[name]
    X, y = rows(kind, 0)
    model = fitted(make(), X, y).set_params(tol=0.0)
    before, said = dict(vars(model)), answers(model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            model.fit(*rows(kind, 1))
        except ConvergenceWarning:
            assert_same_fit(model, before, said, X)


def test_texts_and_tables_keep_their_old_fit():
    words = cf.TextBinarizer().fit(["one two", "two three"])
    for bad in ([], [b"\xff"], [3], ["", " "]):
        with pytest.raises((TypeError, ValueError)):
            words.fit(bad)
        assert words.transform(["two"]).sum() == 1
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    encoder = cf.TableEncoder().fit(frame)
    expected = encoder.transform(frame).toarray()
    twice = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    for bad in (frame[[]], twice, pd.DataFrame({"a": [np.inf, 1.0]}), pd.DataFrame({"c": [None, None]})):
        with pytest.raises(ValueError):
            encoder.fit(bad)
        assert np.array_equal(encoder.transform(frame).toarray(), expected)
