"""Trees of boosting from walks through the rows of each column: bit by bit those of histograms, for any numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

Rng = np.random.Generator
RIDGES = (0.0, 5e-324, 1e-300, 1e-290, 1e-12, 1.0, 1e10, 1e200, 1e250, 1e270, 1e300, 1.7e308, np.inf)


def columns(rng: Rng, n: int, p: int) -> dict[str, Any]:
    """Codes of columns with as many values as rows, few, one and none; some have missing values, some are levels."""
    codes, n_bins, n_levels = np.zeros((p, n), np.uint8), np.ones(p, np.uint8), np.zeros(p, np.uint8)
    for j in range(p):
        values = rng.integers(0, rng.choice([1, 2, 8, max(n // 3, 1), 10 * n]), size=n)
        is_missing = rng.random(n) < rng.choice([0.0, 0.0, 0.0, 0.1, 0.9, 1.0])
        if not is_missing.all():
            ranks = np.minimum(np.unique(values[~is_missing], return_inverse=True)[1], 254)
            codes[j, ~is_missing], n_bins[j] = ranks, ranks.max() + 1
        codes[j, is_missing] = n_bins[j]
        n_levels[j] = n_bins[j] * (rng.random() < 0.1)
    return {"codes": codes.T.copy(), "by_column": codes, "n_bins": n_bins, "n_levels": n_levels}


def sums(rng: Rng, n: int) -> dict[str, Any]:
    """Slopes and curvatures of rows, from all of one size to hundreds of powers of ten apart."""
    slope, curvature = rng.normal(size=n), rng.random(n)
    kind = rng.integers(9)
    if kind == 0:
        slope, curvature = np.sign(slope), np.ones(n)
    elif kind == 1:
        slope, curvature = slope * 10.0 ** rng.integers(-300, 300), curvature * 10.0 ** rng.integers(-300, 300)
    elif kind == 2:
        slope, curvature = slope * 10.0 ** rng.integers(-20, 20, n), curvature * 10.0 ** rng.integers(-20, 20, n)
    elif kind == 3:
        curvature[rng.random(n) < rng.choice([0.5, 1.0])] = 0
    elif kind == 4:
        curvature *= 1e-300
    elif kind == 5:
        slope[0] = rng.choice([1e308, np.inf, np.nan, 5e-324, 0.0])
    elif kind == 6:
        slope += rng.choice([10, 1e6])
    elif kind == 7:  # classes that are nearly pure, with weights far apart
        weight = rng.choice([1, 2.5, 1e9, 1e-9], size=n, p=[0.6, 0.3, 0.05, 0.05])
        slope, curvature = weight * rng.choice([-1, 1e-8, 0.4], size=n), weight * rng.choice([1e-8, 0.2], size=n)
    return {"slope": slope, "curvature": curvature, "weight": rng.random(n)}


def problem(rng: Rng, n: int) -> dict[str, Any]:
    p = int(rng.choice([1, 5, 7, 8, 65, 130, 270]))
    drawn = np.flatnonzero(rng.random(n) < 0.7).astype(np.uint32)
    tried = np.flatnonzero(rng.random(p) < 0.6).astype(np.uint32)
    plan = {
        "max_depth": int(rng.choice([1, 3, 20])),
        "max_leaves": int(rng.choice([2, 8, 300])),
        "min_rows_leaf": int(rng.choice([0, 1, 2, 5, 20, 128])),
        "ridge": float(rng.choice(RIDGES)),
        "is_best_first": bool(rng.integers(2)),
        "direction": None,
        "scratch": np.zeros(3 * n, np.uint64),
        "bundled": None,
        "bundle_of": None,
    }
    return {
        **columns(rng, n, p),
        **sums(rng, n),
        "rows": drawn if len(drawn) and rng.random() < 0.4 else None,
        "columns": tried if len(tried) and rng.random() < 0.3 else np.arange(p, dtype=np.uint32),
        **plan,
    }


def bits(tree: dict[str, Any]) -> dict[str, bytes]:
    return {name: np.asarray(part).tobytes() for name, part in tree.items()}


def both(core: Any, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tree from walks, and that from histograms."""
    order = np.argsort(given["by_column"], axis=1, kind="stable")
    codes = np.take_along_axis(given["by_column"], order, axis=1)
    walked = core.grow_newton(**given, sorted_rows=order.astype(np.uint8), sorted_codes=codes, threads=2)
    return walked, core.grow_newton(**given, sorted_rows=None, sorted_codes=None, threads=1)


@pytest.mark.parametrize("n", [1, 2, 5, 60, 255, 256])
def test_walks_change_no_bit(core, rng, n):
    n_split = 0
    for _ in range(60):
        walked, expected = both(core, problem(rng, n))
        assert bits(walked) == bits(expected)
        n_split += len(expected["feature"]) > 1
    assert n_split or n == 1


def test_threads_change_no_bit(core, rng):
    """So many columns that threads share them."""
    given = problem(rng, 256) | columns(rng, 256, 2500) | {"columns": np.arange(2500, dtype=np.uint32), "rows": None}
    walked, expected = both(core, given | {"min_rows_leaf": 20, "max_leaves": 4})
    assert bits(walked) == bits(expected)


def test_missing_values_may_be_alone_on_the_left(core, rng):
    """The rows of the tree are in eight of 33 bins, not the first. What is rounded of a light side is least there."""
    codes = np.arange(34, dtype=np.uint8)[None]
    slope, curvature = np.full(34, 1.749999909e-08), np.full(34, 1.749999878e-08)
    slope[[8, 33]], curvature[8] = (17.49999909, -0.9999999825), 17.49999878
    given = problem(rng, 34) | {
        "codes": codes.T.copy(), "by_column": codes, "n_bins": np.array([33], np.uint8), "n_levels": None,
        "slope": slope, "curvature": curvature, "rows": np.array([1, 2, 3, 4, 5, 6, 7, 8, 33], np.uint32),
        "columns": np.zeros(1, np.uint32), "max_leaves": 2, "min_rows_leaf": 1, "ridge": 0.0,
    }  # fmt: skip
    walked, expected = both(core, given)
    assert bits(walked) == bits(expected)
    assert expected["bin"][0] == 0 and expected["is_missing_left"][0]


def test_more_rows_than_bytes_are_refused(core, rng):
    given = problem(rng, 257)
    order = np.argsort(given["by_column"], axis=1).astype(np.uint8)
    with pytest.raises(ValueError, match="bytes"):
        core.grow_newton(**given, sorted_rows=order, sorted_codes=order, threads=1)
