"""Claims on solvers that climb: a state far above the start is not taken for the minimum."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf


def rows(rng, n_classes):
    X = np.column_stack([rng.normal(size=200), 5e3 + 1e3 * rng.normal(size=200)])
    score = X[:, 0] + (X[:, 1] - 5e3) / 1e3 + rng.normal(size=200)
    return X, np.digitize(score, np.linspace(-1, 1, n_classes + 1)[1:-1])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.slow
def test_a_step_too_long_is_answered_with_the_largest_stable_one(n_classes, rng):
    X, y = rows(rng, n_classes)
    model = cf.LogisticRegression(alpha=1e-3, solver=cf.GradientDescent(step=1e3), max_iter=50)
    with pytest.warns(UserWarning, match="step must be below") as seen:
        model.fit(X, y)
    assert "nearly flat" not in str(seen[0].message)
    first = model.history_[0]["objective"]
    for row in model.history_:
        assert row["gap"] >= (row["objective"] - first) * (1 - 1e-12)
