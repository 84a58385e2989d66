"""Few rows per bin are searched by walks through their order: trees are those of histograms, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
from certifit.models.boosting import rounds
from certifit.models.boosting.rounds import _has_row_in_every_bin


def table(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, some of them rounded, with missing values and a column that has nothing else; two columns of levels."""
    X = rng.normal(size=(n, p))
    X[:, ::3] = np.round(4 * X[:, ::3])
    X[rng.random((n, p)) < 0.1] = np.nan
    X[:, :2] = rng.integers(0, 7, size=(n, 2))
    X[:, 2] = np.nan
    return X, (np.nansum(X[:, :6], axis=1) + rng.normal(size=n) > 6).astype(int) + (rng.random(n) < 0.3)


def nodes(*args: object, **settings: object) -> dict[str, bytes]:
    state = cf.GradientBoostingClassifier(5, categorical_features=[0, 1], **settings).fit(*args).boosting_
    names = ("feature", "left", "threshold", "is_missing_left", "value", "weight", "gain", "sets")
    return {name: getattr(state, name).tobytes() for name in names}


@pytest.mark.parametrize("settings", [{"min_samples_leaf": 1}, {"subsample": 0.6, "max_features": 0.5}, {"l2": 1.0}])
@pytest.mark.parametrize("n", [40, 150, 256])
def test_walks_change_no_bit(n: int, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    X, y = table(rng, n, 90)
    weight = rng.choice([0.5, 1.0, 3.0], size=n)
    monkeypatch.setattr(rounds, "ROWS_PER_BIN", 0)
    expected = nodes(X, y, weight, **settings)
    monkeypatch.setattr(rounds, "ROWS_PER_BIN", 1000)
    calls = []
    monkeypatch.setattr(
        rounds, "_has_row_in_every_bin", lambda *args: calls.append(args) or _has_row_in_every_bin(*args)
    )
    assert nodes(X, y, weight, **settings) == expected
    assert len(calls) == 1 and _has_row_in_every_bin(*calls[0])


def test_a_bin_without_a_row_is_seen() -> None:
    """The last code is that of missing values."""
    n_bins = np.array([3], dtype=np.uint8)
    for codes, expected in (
        ([0, 1, 1, 2, 3], True), ([0, 1, 1, 2], True), ([0, 0, 1, 3], False), ([0, 2, 2, 3], False), ([1, 2], False),
        ([3, 3], False),
    ):  # fmt: skip
        assert _has_row_in_every_bin(np.array([codes], dtype=np.uint8), n_bins) == expected
    assert _has_row_in_every_bin(np.array([[1, 1]], dtype=np.uint8), np.array([1], dtype=np.uint8))
