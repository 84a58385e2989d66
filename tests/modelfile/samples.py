"""One small fitted model of every kind that a file can hold, with its data."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import certifit as cf

NASTY_NAMES = [
    "\x1b[31mred\x07",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    "é漢😀 \u202e",
    "../../x",
    "",
]


class Sample(NamedTuple):
    model: Any
    X: Any
    y: Any
    sample_weight: Any = None


@cache
def samples() -> dict[str, Sample]:
    """Fitted once; a test that changes a model works on a copy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 3))
    y = X @ [1.0, -2.0, 0.5] + 3.0 + rng.normal(size=24)
    wide = rng.normal(size=(4, 7))
    named = pd.DataFrame(rng.normal(size=(24, 6)), columns=NASTY_NAMES)
    target = pd.Series(y, name="<b>\x1b]0;title\x07")
    weight = rng.integers(1, 4, size=24).astype(float)
    cases = {
        "least squares": (cf.LinearRegression(), X, y),
        "no intercept": (cf.LinearRegression(fit_intercept=False), X, y),
        "weighted": (cf.LinearRegression(tol=1e-6), X, y, weight),
        "chebyshev": (cf.LinearRegression(basis=cf.Polynomial(2)), X, y),
        "powers": (cf.Ridge(alpha=1, basis=cf.Polynomial(2, form="powers")), X, y),
        "ridge": (cf.Ridge(), X, y),
        "ridge without penalty": (cf.Ridge(alpha=np.float64(0)), X, y),
        "redundant columns": (cf.LinearRegression(), np.column_stack([X, X[:, 0] - X[:, 1], np.ones(24)]), y),
        "fewer rows than columns": (cf.LinearRegression(), wide, y[:4]),
        "ridge on few rows": (cf.Ridge(alpha=0.1), wide, y[:4]),
        "exact": (cf.LinearRegression(), X, X @ [1.0, -2.0, 0.5] + 3.0),
        "named": (cf.LinearRegression(), named, target),
        "named chebyshev": (cf.LinearRegression(basis=cf.Polynomial(1)), named, target),
    }
    return {
        name: Sample(model.fit(*data), *data)  # type: ignore[call-arg]
        for name, (model, *data) in cases.items()
    }


NAMES = list(samples())
