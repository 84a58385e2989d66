"""Claims about refuting convexity by two points."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf

CONVEX = {
    "exponential": np.exp,
    "log cosh": lambda x: np.log(np.cosh(x)),
    "a line": lambda x: 3 * x - 1e6,
    "a kink": abs,
    "an indicator": lambda x: 0.0 if -1 <= x <= 1 else np.inf,
    "minus log": lambda x: -np.log(x),
}


@pytest.mark.parametrize("name", CONVEX)
def test_convex_functions_are_not_refuted(name, rng):
    found = cf.is_convex(CONVEX[name], rng.normal(size=40))
    assert found and found.x is None and found.n_pairs == 780
    assert "no proof" in str(found)


def test_the_two_points_refute_it(rng):
    def f(x):
        return float(np.sin(x @ [1.0, 2.0]))

    found = cf.is_convex(f, rng.normal(size=(30, 2)))
    assert not found
    between = f((1 - found.t) * found.x + found.t * found.y)
    chord = (1 - found.t) * f(found.x) + found.t * f(found.y)
    assert between - chord == pytest.approx(found.excess) and found.excess > 0


def test_a_domain_with_a_hole_is_not_convex():
    found = cf.is_convex(lambda x: 0.0 if abs(x) > 0.1 else np.inf, [-1.0, 1.0])
    assert not found and np.isinf(found.excess)


def test_points_are_checked():
    for points in ([1.0], 3.0, [np.nan, 1.0]):
        with pytest.raises(ValueError, match="points must be 2 to 500 rows"):
            cf.is_convex(np.exp, points)
    with pytest.raises(ValueError, match="f must give one number"):
        cf.is_convex(lambda x: x, [[1.0, 2.0], [2.0, 3.0]])
