"""What is said about separation of nasty rows, against exact rationals: near copies, offsets and scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flint import fmpq

from certifit.data.source import Memory
from certifit.models.glm.separation import class_sides, count_sides
from certifit.models.glm.separation_certificate import Separation, separation, softmax_separation
from tests.hunt.references.halfspace import recedes
from tests.hunt.references.numbers import rational

CASES = 25
N_CLASSES = 3
Row = list[fmpq]


def nasty_rows(rng: np.random.Generator) -> Any:
    """Few rows of small whole or drawn numbers, with a near copy or combination, an offset, a scale."""
    n, d = int(rng.integers(4, 12)), int(rng.integers(1, 4))
    X = rng.normal(size=(n, d)) if rng.random() < 0.5 else rng.integers(-3, 4, size=(n, d)).astype(float)
    if rng.random() < 0.7:
        near = X @ rng.integers(-2, 3, size=d) + 10.0 ** rng.integers(-15, -7) * rng.normal(size=n)
        X = np.column_stack([X, near])
    if rng.random() < 0.4:
        X = X + np.where(rng.random(X.shape[1]) < 0.5, 10.0 ** rng.integers(6, 16), 0.0)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.choice([-100, -8, 8, 100])
    return np.ascontiguousarray(X)


def unknowns(X: Any, left_out: tuple[str, ...] = ()) -> list[Row]:
    """(x_i, 1) without the columns left out."""
    kept = [j for j in range(X.shape[1]) if f"x{j}" not in left_out]
    ones = [] if "intercept" in left_out else [1.0]
    return [[rational(x) for x in [*row[kept], *ones]] for row in X]


def dot(row: Row, weights: Row) -> fmpq:
    return sum((a * b for a, b in zip(row, weights, strict=True)), fmpq(0))


def check_one_score(X: Any, y: Any, sides: Any) -> str:
    """One score: what is said, after it was checked."""
    side = [int(s) for s in sides(y)]
    found = separation(Memory(X, y), sides, True)
    if found.exists:
        assert found.direction is not None
        direction = [rational(w) for w in [*found.direction, float(found.intercept)]]
        moved = [
            dot(row, direction) * s if s else -abs(dot(row, direction))
            for row, s in zip(unknowns(X), side, strict=True)
        ]
        assert_receding(found, moved)
    if found.kind == "none":
        rows = unknowns(X, found.left_out)
        moving = [[s * a for a in row] for row, s in zip(rows, side, strict=True) if s]
        assert not recedes(moving, [row for row, s in zip(rows, side, strict=True) if not s]), found.sentence()
    return found.kind


def check_classes(X: Any, y: Any) -> str:
    """One score per class: the same."""
    found = softmax_separation(Memory(X, y), N_CLASSES, True)
    if found.exists:
        assert found.direction is not None
        weights = [
            [rational(w) for w in [*row, b]] for row, b in zip(found.direction, np.ravel(found.intercept), strict=True)
        ]
        scores = [[dot(row, one) for one in weights] for row in unknowns(X)]
        assert_receding(
            found, [z[int(c)] - z[k] for z, c in zip(scores, y, strict=True) for k in range(N_CLASSES) if k != c]
        )
    if found.kind == "none":
        assert not recedes(differences(unknowns(X, found.left_out), y)), found.sentence()
    return found.kind


def differences(rows: list[Row], y: Any) -> list[Row]:
    """z_y - z_k as a row of the weights of all classes."""
    out = []
    for row, code in zip(rows, y, strict=True):
        for k in range(N_CLASSES):
            if k != code:
                signs = [int(c == code) - int(c == k) for c in range(N_CLASSES)]
                out.append([sign * a for sign in signs for a in row])
    return out


def assert_receding(found: Separation, moved: Row) -> None:
    assert all(m >= 0 for m in moved), found.sentence()
    assert any(m > 0 for m in moved), found.sentence()
    assert found.kind != "complete" or all(m > 0 for m in moved), found.sentence()


@pytest.mark.parametrize("loss", ["classes", "counts", "softmax"])
def test_what_is_said_of_separation_is_true_of_the_numbers_given(loss: str) -> None:
    rng = np.random.default_rng(14)
    kinds = []
    for _ in range(CASES):
        X = nasty_rows(rng)
        n = len(X)
        if loss == "softmax":
            y = rng.permutation(np.arange(n) % N_CLASSES).astype(float)
            z = X - X.mean(axis=0)
            if rng.random() < 0.6:  # classes along a direction
                y = np.sort(y)[np.argsort(np.argsort(z @ rng.normal(size=z.shape[1])))]
            kinds.append(check_classes(X, y))
            continue
        z = (X - X.mean(axis=0)) @ rng.normal(size=X.shape[1])
        y = (z > np.median(z)).astype(float) if rng.random() < 0.6 else (rng.random(n) < 0.5).astype(float)
        kinds.append(check_one_score(X, y, class_sides if loss == "classes" else count_sides))
    assert "none" in kinds and {"complete", "quasi-complete"} & set(kinds)
