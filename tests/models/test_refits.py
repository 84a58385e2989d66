"""A refit that fails, at whatever stage, leaves the fit before it whole: every estimator in one table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from learners import REFITTED, Row
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

import certifit as cf
from certifit.data.source import Memory

PASSES = (0, 1, 2, 3, 5, 8, 13, 21, 40)  # the pass over the rows that fails


class BrokenRead(Exception):
    """What a file that goes away in the middle of a fit raises."""


def rows(row: Row, seed: int) -> tuple[Any, Any]:
    X, y = row.rows(40, 3, seed)
    return X, X[:, 0] if y is None else (y == "yes").astype(int) if row.kind == "clf" else y


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


@pytest.mark.parametrize("name", REFITTED)
@pytest.mark.slow
def test_rows_that_are_refused_leave_the_old_fit(name):
    row, model = REFITTED[name]
    X, y = rows(row, 0)
    model = fitted(clone(model), X, y)
    before, said = dict(vars(model)), answers(model, X)
    other, target = rows(row, 1)
    hole, wide = other.copy(), np.column_stack([other, other[:, 0]])
    hole[7, 1] = np.inf if get_tags(model).input_tags.allow_nan else np.nan
    hidden = target.astype(float)
    hidden[3] = np.inf
    for bad in ((hole, target), (wide, hidden), (wide, target[:-1]), (pd.DataFrame(hole, columns=list("abc")), target)):
        if row.kind == "tr" and "target" not in row.flags and bad[0] is wide:
            continue  # a target is not looked at
        with pytest.raises(ValueError):
            fitted(model, *bad)
        assert_same_fit(model, before, said, X)


@pytest.mark.parametrize("name", REFITTED)
@pytest.mark.slow
def test_a_pass_that_fails_leaves_the_old_fit(name, monkeypatch):
    row, model = REFITTED[name]
    X, y = rows(row, 0)
    model = fitted(clone(model), X, y)
    before, said = dict(vars(model)), answers(model, X)
    wide = np.column_stack([rows(row, 1)[0], np.arange(40.0)])
    read = Memory.stretches
    for last in PASSES:
        left = [last]

        def stretches(self: Memory, left: list[int] = left) -> Iterator[Any]:
            if not left[0]:
                raise BrokenRead
            left[0] -= 1
            return read(self)

        with monkeypatch.context() as patched:
            patched.setattr(Memory, "stretches", stretches)
            try:
                fitted(model, wide, rows(row, 1)[1])
            except BrokenRead:
                patched.undo()
                assert_same_fit(model, before, said, X)
            else:
                break  # fewer passes than that
    assert fitted(model, wide, rows(row, 1)[1]).n_features_in_ == 4


@pytest.mark.parametrize("name", [name for name, (_, model) in REFITTED.items() if hasattr(model, "tol")])
@pytest.mark.slow
def test_a_warning_that_is_an_error_leaves_the_old_fit(name):
    row, model = REFITTED[name]
    X, y = rows(row, 0)
    model = fitted(clone(model), X, y).set_params(tol=0.0)
    before, said = dict(vars(model)), answers(model, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            model.fit(*rows(row, 1))
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
