"""One build gives the same bits for any number of threads; both are as exact as each other; bad arrays are refused."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from layouts import core_rows, csr, integers

THREADS = (1, 2, 8)


@pytest.mark.parametrize("form", ["dense", "float32", "thin", "thick"])
@pytest.mark.parametrize("twofold", [False, True])
@pytest.mark.parametrize("block_rows", [1, 3, 64, 100, 5000])
@pytest.mark.slow
def test_the_number_of_threads_does_not_change_a_bit(core, rng, block_rows, twofold, form):
    n, d = 700, 40
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < {"thin": 0.03, "thick": 0.5}.get(form, 1.0))
    rows = {"dense": X, "float32": X.astype(np.float32)}.get(form)
    rows = core_rows(csr(X) if rows is None else rows)
    y, weight, one, zero = rng.normal(size=n), rng.random(n), np.ones(d), np.zeros(d)
    grams = [core.gram(rows, y, weight, one, zero, 1.0, 0.0, 1.0, block_rows, twofold, t) for t in THREADS]
    states = [core.residual(rows, y, weight, one, 1.0, 1.0, one, 0.5, block_rows, t) for t in THREADS]
    for first, *others in (grams, states):
        for other in others:
            assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True) if a is not None)


def test_more_threads_than_blocks_or_rows_do_no_harm(core):
    hi, _ = core.gram(core_rows(np.ones((2, 1))), np.ones(2), None, np.ones(1), np.zeros(1), 1.0, 0.0, 1.0, 1, True, 64)
    assert np.array_equal(hi, np.full((3, 3), 2.0))


def test_the_builds_agree_to_rounding(rng):
    baseline = import_module("certifit._core_baseline")
    if not baseline.cpu_has_avx2():
        pytest.skip("this processor has no AVX2 and FMA")
    X, y = rng.normal(size=(500, 9)), rng.normal(size=500)
    sums = [
        module.gram(core_rows(X), y, None, np.ones(9), np.zeros(9), 1.0, 0.0, 1.0, 64, True, 1)
        for module in (baseline, import_module("certifit._core_avx2"))
    ]
    assert np.abs((sums[0][0] - sums[1][0]) + (sums[0][1] - sums[1][1])).max() < 2.0**-85


X4 = integers(np.random.default_rng(0), 6, 4)
GOOD = {
    "x": core_rows(X4), "y": np.ones(6), "weight": None, "scale": np.ones(4), "shift": np.zeros(4), "y_scale": 1.0,
    "y_shift": 0.0, "weight_scale": 1.0, "block_rows": 8, "twofold": True, "threads": 1,
}  # fmt: skip
[(_, VALUES, INDICES, OFFSETS, WIDTH)] = core_rows(csr(X4))
BAD = {
    "y too short": ({"y": np.ones(5)}, "y has 5 entries, needs 6"),
    "weight too long": ({"weight": np.ones(7)}, "weight has 7 entries, needs 6"),
    "scale too short": ({"scale": np.ones(3)}, "scale has 3 entries, needs 4"),
    "shift too short": ({"shift": np.ones(3)}, "shift has 3 entries, needs 4"),
    "rows of one dimension": ({"x": core_rows(np.ones(6))}, "2-D"),
    "complex rows": ({"x": core_rows(X4 + 1j)}, "float32, float64, integers or bool"),
    "float32 target": ({"y": np.ones(6, dtype=np.float32)}, None),
    "strided target": ({"y": np.ones(12)[::2]}, None),
    "no block": ({"block_rows": 0}, "block_rows"),
    "CSR offsets beyond the values": ({"x": [("csr", VALUES, INDICES, OFFSETS + 1, WIDTH)]}, "beyond"),
    "CSR values without an index": ({"x": [("csr", VALUES, INDICES[:-1], OFFSETS, WIDTH)]}, "CSR indices"),
    "CSR of mixed index types": ({"x": [("csr", VALUES, INDICES.astype(np.int64), OFFSETS, WIDTH)]}, "both"),
    "CSR of short integers": ({"x": [("csr", VALUES.astype(np.int16), INDICES, OFFSETS, WIDTH)]}, "CSR values"),
    "CSR without offsets": ({"x": [("csr", VALUES, INDICES, OFFSETS[:0], WIDTH)]}, "empty"),
    "CSR of three parts": ({"x": [("csr", VALUES, INDICES, OFFSETS)]}, "4 parts, needs 5"),
    "an unknown kind": ({"x": [("dance", X4)]}, "unknown kind"),
    "no segment": ({"x": []}, "at least one segment"),
    "segments of other lengths": ({"x": [("dense", X4), ("number", np.ones(5), None, 0, 0.0)]}, "rows"),
    "a short bitmap": ({"x": [("number", np.ones(60), np.zeros(7, dtype=np.uint8), 0, 0.0)]}, "bitmap"),
    "a code without a column": (
        {"x": [("codes", np.zeros(6, dtype=np.int8), np.array([4], dtype=np.int32), 4, None, 0, -1)]},
        "not there",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_do_not_fit_are_refused_before_they_are_read(core, name):
    change, words = BAD[name]
    with pytest.raises((ValueError, TypeError), match=words):
        core.gram(*(GOOD | change).values())


def test_sums_in_progress_do_not_hold_the_interpreter(core, rng):
    """Four calls at once from Python threads give what one gives."""
    from concurrent.futures import ThreadPoolExecutor

    X, y = rng.normal(size=(3000, 20)), rng.normal(size=3000)
    call = (core_rows(X), y, None, np.ones(20), np.zeros(20), 1.0, 0.0, 1.0, 64, True, 2)
    alone, _ = core.gram(*call)
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: core.gram(*call)[0], range(8)))
    assert all(np.array_equal(alone, other) for other in together)
