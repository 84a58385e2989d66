"""Claims about what an exact proof asks for: an extra, time, and options of the command line."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import certifit as cf
from certifit.exact import balls
from certifit.exact.proof import TooLarge, expected_seconds, in_words


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=30)
    return cf.LinearRegression().fit(X, y), X, y


def test_a_missing_library_is_named_with_its_extra(fitted, monkeypatch):
    model, X, y = fitted
    balls.flint.cache_clear()
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(ImportError, match=r"pip install 'certifit\[exact\]'"):
        cf.verify(model, X, y, exact=True)
    assert cf.verify(model, X, y).holds
    monkeypatch.undo()
    balls.flint.cache_clear()
    assert cf.verify(model, X, y, exact=True).holds


def test_a_long_proof_is_refused_before_a_row_is_read(fitted):
    model, _, _ = fitted
    model.data_ = model.data_ | {"n_rows": 10**9}
    with pytest.raises(TooLarge, match=r"1,000,000,000 rows and 2 columns .* hours, and 10 minutes are allowed"):
        cf.verify(model, None, exact=True)
    assert expected_seconds(model) > 3600


def test_a_limit_can_be_raised_and_lowered(fitted):
    model, X, y = fitted
    assert cf.verify(model, X, y, exact=True, most_minutes=1e6).holds
    with pytest.raises(TooLarge, match="most_minutes="):
        cf.verify(model, X, y, exact=True, most_minutes=0.0)


@pytest.mark.parametrize(
    "seconds, words",
    [(0.1, "about a second"), (40.0, "about 40 seconds"), (600.0, "about 10 minutes"), (1e4, "about 3 hours")],
)
def test_times_are_rough_numbers(seconds, words):
    assert in_words(seconds) == words


def test_the_precision_of_the_caller_is_left_alone():
    context = balls.flint().ctx
    before = context.prec
    with pytest.raises(ZeroDivisionError), balls.precision(1000):
        raise ZeroDivisionError
    assert context.prec == before
