"""The sort of a column (cpp/sorted.hpp), through the largest edges of stumps, which need every cut in its place."""

import numpy as np
import pytest

ULP = 2.0**-52
COLUMNS = {
    "far apart": lambda rng: rng.normal(size=3000),
    "of all sizes": lambda rng: np.ldexp(rng.choice([-1.0, 1.0], 3000), rng.integers(-1074, 1024, 3000)),
    "equal in the upper half of their bits": lambda rng: 1 + rng.permutation(3000) * ULP,
    "equal in it by eights": lambda rng: rng.permutation(3000) // 8 + 1 + rng.integers(0, 8, 3000) * ULP,
    "equal in it by twenties": lambda rng: -(rng.permutation(3000) // 20) - 1 - rng.permutation(3000) * ULP,
    "one alone far from its place": lambda rng: np.append(1 + np.arange(1, 3000) * ULP, 1.0),
    "few values": lambda rng: rng.integers(-3, 4, 3000).astype(float),
    "one value": lambda rng: np.full(3000, 7.0),
    "zeros of both signs": lambda rng: rng.choice([-0.0, 0.0, 5e-324, -5e-324], 3000),
    "in order": lambda rng: np.sort(rng.normal(size=3000)),
    "in the opposite order": lambda rng: np.sort(rng.normal(size=3000))[::-1],
    "two rows": lambda rng: np.array([2.0, 1.0]),
    "one row": lambda rng: np.array([1.0]),
}  # fmt: skip


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_is_cut_between_all_of_its_values(core, rng, column):
    x = np.ascontiguousarray(COLUMNS[column](rng))
    signs = rng.integers(-9, 10, size=(len(x), 4)).astype(float)  # whose sums are exact in any order
    order = np.argsort(x, kind="stable")
    cuts = np.flatnonzero(x[order][:-1] < x[order][1:])
    sums = np.cumsum(signs[order], axis=0)
    edges = np.abs(sums[-1] - 2 * np.vstack([np.zeros(4), sums[cuts]]))
    largest = core.largest_edges([("rows", len(x)), ("dense", x[:, None])], signs, 1)
    np.testing.assert_array_equal(largest, edges.max(axis=0))
