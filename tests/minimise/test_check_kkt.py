"""check_kkt: solutions pass with their multipliers, and points beside them are refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import certifit as cf

ROWS = np.array([[2.0, 2.0], [3.0, 3.0], [0.0, 0.0], [1.0, 0.0]])
LABELS = np.array([1, 1, -1, -1])


@dataclass(frozen=True)
class Case:
    """A problem with its solution: x, multipliers, value, and the dual as a function where it is short."""

    objective: Any
    x: Any
    value: float
    a: Any = ()
    b: Any = ()
    constraints: dict[str, Any] = field(default_factory=dict)
    is_convex: bool = True

    @property
    def multipliers(self):
        return (self.a, self.b) if len(self.a) and len(self.b) else self.a if len(self.a) else self.b


CASES = {
    "a line": Case(lambda x: x @ x, [0.5, 0.5], 0.5, b=[-1.0], constraints={"equality": lambda x: x[0] + x[1] - 1}),
    "a half-space that binds": Case(
        lambda x: (x[0] - 2) ** 2 + x[1] ** 2, [1.0, 0.0], 1.0, a=[2.0], constraints={"inequality": lambda x: x[0] - 1}
    ),
    "a half-space that does not": Case(
        lambda x: (x[0] - 2) ** 2 + x[1] ** 2, [2.0, 0.0], 0.0, a=[0.0], constraints={"inequality": lambda x: x[0] - 5}
    ),
    "both kinds": Case(
        lambda x: x[0] ** 2 + 2 * x[1] ** 2 + 3 * x[2] ** 2,
        [0.0, 0.6, 0.4],
        1.2,
        a=[2.4],
        b=[-2.4],
        constraints={"inequality": lambda x: x[0], "equality": lambda x: x.sum() - 1},
    ),
    "a linear programme": Case(
        lambda x: -x[0] - 2 * x[1],
        [0.0, 1.0],
        -2.0,
        a=[2.0, 1.0, 0.0],
        constraints={"inequality": [lambda x: x[0] + x[1] - 1, lambda x: -x]},
    ),
    "the largest margin": Case(
        lambda w: w[:2] @ w[:2] / 2,
        [0.4, 0.8, -1.4],
        0.4,
        a=[0.4, 0.0, 0.0, 0.4],
        constraints={"inequality": lambda w: 1 - LABELS * (ROWS @ w[:2] + w[2])},
    ),
    "a circle": Case(
        lambda x: x[0] + x[1],
        -np.sqrt([0.5, 0.5]),
        -np.sqrt(2),
        a=[np.sqrt(0.5)],
        constraints={"inequality": lambda x: x @ x - 1},
    ),
    "one number": Case(lambda x: (x - 3) ** 2, 1.0, 4.0, a=[4.0], constraints={"inequality": lambda x: x - 1}),
    "no constraint": Case(lambda x: (x[0] - 1) ** 2 + x[1] ** 4 + x[1] ** 2, [1.0, 0.0], 0.0),
    "not convex": Case(
        lambda x: -(x**2), 1.0, -1.0, a=[2.0, 0.0], constraints={"inequality": lambda x: np.array([x - 1, -1 - x])},
        is_convex=False,
    ),
}  # fmt: skip


def check(case, x=None, multipliers=None, **more):
    given = case.multipliers if multipliers is None else multipliers
    return cf.check_kkt(case.objective, case.x if x is None else x, multipliers=given, **case.constraints, **more)


@pytest.mark.parametrize("name", CASES)
def test_a_solution_passes_with_its_multipliers(name):
    case = CASES[name]
    found = check(case)
    assert found.holds, str(found)
    assert found.primal == pytest.approx(case.value, abs=1e-12)
    assert all(condition.value <= 1e-9 for condition in found.conditions)
    assert "All conditions hold" in str(found)


@pytest.mark.parametrize("name", CASES)
def test_strong_duality_shows_where_the_problem_is_convex(name):
    case = CASES[name]
    found = check(case)
    if case.is_convex:
        assert found.dual == pytest.approx(case.value, abs=1e-9) and abs(found.gap) <= 1e-9
    else:
        assert found.dual == -np.inf and "unbounded below" in found.dual_known


@pytest.mark.parametrize("name", sorted(set(CASES) - {"no constraint"}))
def test_multipliers_are_found_where_none_are_given(name):
    case = CASES[name]
    found = cf.check_kkt(case.objective, case.x, **case.constraints)
    assert found.holds
    np.testing.assert_allclose(found.inequality_multipliers, case.a, atol=1e-8)
    np.testing.assert_allclose(found.equality_multipliers, case.b, atol=1e-8)


@pytest.mark.parametrize("size", [1e-4, 1e-2, 0.3])
@pytest.mark.parametrize("name", sorted(set(CASES) - {"a linear programme"}))
@pytest.mark.slow
def test_points_beside_the_solution_are_refused(name, size, rng):
    case = CASES[name]
    for _ in range(10):
        move = rng.normal(size=np.shape(case.x))
        x = np.asarray(case.x) + size * move / np.linalg.norm(move)
        found = check(case, x)
        assert not found.holds and "NOT a solution" in str(found)


@pytest.mark.parametrize("direction, broken", [([1.0, 0.0], {"primal feasibility"}), ([1.0, -1.0], {"slackness"})])
def test_a_linear_programme_refuses_what_is_not_its_corner(direction, broken):
    case = CASES["a linear programme"]
    found = check(case, np.asarray(case.x) + 1e-3 * np.array(direction))
    assert broken <= {condition.name for condition in found.conditions if not condition.holds}


@pytest.mark.parametrize("name", sorted(set(CASES) - {"no constraint"}))
def test_wrong_multipliers_are_refused(name):
    case = CASES[name]
    a, b = np.array(case.a, float), np.array(case.b, float)
    wrong = (1.001 * a + 0.001, 1.001 * b)
    given = wrong if len(a) and len(b) else wrong[0] if len(a) else wrong[1]
    assert not check(case, multipliers=given).holds


def test_each_condition_is_named_where_it_breaks():
    case = CASES["a half-space that binds"]
    broken = {
        "stationarity": check(case, multipliers=[2.1]),
        "primal feasibility": check(case, [1.1, 0.0], [1.8]),
        "dual feasibility": check(CASES["one number"], 1.0, [-4.0]),
        "slackness": check(case, [0.5, 0.0], [3.0]),
    }
    for name, found in broken.items():
        assert not found[name].holds and f"{name}" in str(found).splitlines()[-1]
    alone = check(case, [1.1, 0.0], [1.8])
    assert alone["stationarity"].holds and alone["dual feasibility"].holds
    assert "inequality 0" in str(alone["primal feasibility"])


def test_weak_duality_with_a_dual_function_of_the_users():
    """min x^2 subject to 1 - x <= 0: the dual is a - a^2 / 4, largest at a = 2."""
    for a in (0.5, 1.0, 2.0, 3.0):
        found = cf.check_kkt(
            lambda x: x**2, 1.0, lambda x: 1 - x, multipliers=[a], dual=lambda a: float(a[0] - a[0] ** 2 / 4)
        )
        assert found.dual == a - a**2 / 4 and found.gap >= 0
        assert found.holds == (a == 2.0) and found.dual_known == "by the function given"
        searched = cf.check_kkt(lambda x: x**2, 1.0, lambda x: 1 - x, multipliers=[a])
        assert searched.dual == pytest.approx(found.dual, abs=1e-9)


def test_a_function_above_the_primal_value_is_no_dual():
    found = cf.check_kkt(lambda x: x**2, 1.0, lambda x: 1 - x, multipliers=[2.0], dual=lambda a: 7.0)
    assert "above the primal value" in found.dual_known


def test_constraints_may_be_defined_near_the_point_alone():
    """sqrt and log outside their domain are NaN in the probes; the conditions at x do not suffer."""
    found = cf.check_kkt(
        lambda x: -np.log(x[0]) - np.log(x[1]),
        [1.0, 1.0],
        inequality=lambda x: np.array([x[0] + x[1] - 2, np.sqrt(x[0]) - 5]),
    )
    assert found.holds and found.dual == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(found.inequality_multipliers, [1, 0], atol=1e-8)


def test_a_negative_multiplier_has_no_dual_value():
    found = check(CASES["one number"], 1.0, [-4.0])
    assert found.dual is None and "negative" in found.dual_known and found.gap is None


def test_own_derivatives_are_used_and_checked():
    case = CASES["a line"]
    right = {"gradient": lambda x: 2 * x, "equality_jacobian": lambda x: np.ones((1, 2))}
    assert check(case, **right).conditions[0].value == 0
    with pytest.raises(ValueError, match=r"The Jacobian of equality is not the derivative of equality: entry \[0, 1\]"):
        check(case, equality_jacobian=lambda x: [1.0, 2.0])
    with pytest.raises(ValueError, match="The Jacobian of objective is not"):
        check(case, gradient=lambda x: 3 * x)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_the_functions_does_not_matter(scale):
    case = CASES["both kinds"]
    inequality, equality = case.constraints["inequality"], case.constraints["equality"]
    for x, holds in ((case.x, True), ([0.01, 0.59, 0.4], False)):
        found = cf.check_kkt(
            lambda x: scale * case.objective(x), x, lambda x: scale * inequality(x), lambda x: scale * equality(x)
        )
        assert found.holds is holds


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"multipliers": [1.0, 2.0]}, "0 numbers for the inequality and 1 for the equality constraints. Got 0 and 2"),
        ({"multipliers": ([-1.0], [])}, "0 numbers for the inequality and 1 for the equality constraints. Got 1 and 0"),
        ({"multipliers": ([], ["a"])}, "must be a pair: 0 numbers .* Got .*'a'"),
        ({"multipliers": [np.nan]}, "must be finite"),
        ({"objective": lambda x: x}, "objective must give one number. Got 2"),
        ({"equality": lambda x: np.inf}, "equality is not finite at x"),
        ({"inequality_jacobian": lambda x: x}, "no inequality constraints"),
        ({"equality_jacobian": lambda x: np.ones(3)}, "must be 1 x 2 numbers"),
        ({"tol": 0}, "tol must be a number > 0"),
        ({"inequality": lambda x: x[0] - 9, "multipliers": [1.0]}, "must be a pair"),
    ],
)
def test_what_is_wrong_is_told(arguments, message):
    given = {"objective": lambda x: x @ x, "x": [0.5, 0.5], "equality": lambda x: x[0] + x[1] - 1}
    with pytest.raises(ValueError, match=message):
        cf.check_kkt(**(given | arguments))


def test_a_pair_of_multipliers_may_have_an_empty_part():
    found = cf.check_kkt(lambda x: x @ x, [0.5, 0.5], equality=lambda x: x[0] + x[1] - 1, multipliers=([], [-1.0]))
    assert found.holds and found.equality_multipliers.tolist() == [-1.0]
    bounded = cf.check_kkt(lambda x: x**2, 1.0, lambda x: 1 - x, multipliers=([2.0], []))
    assert bounded.holds and bounded.inequality_multipliers.tolist() == [2.0]


CUSP = [lambda x: x[1] - (1 - x[0]) ** 3, lambda x: -x[1]]
BALLS = [lambda x: (x[0] - 1) ** 2 + x[1] ** 2 - 1, lambda x: (x[0] + 1) ** 2 + x[1] ** 2 - 1]


@pytest.mark.parametrize(
    "objective, x, constraints",
    [
        (lambda x: x, 0.0, {"inequality": lambda x: x**2}),
        (lambda x: -x[0], [1.0, 0.0], {"inequality": CUSP}),  # of Kuhn and Tucker; the minimum
        (lambda x: x[0] + x[1], [0.0, 0.0], {"inequality": BALLS}),  # the one point that two balls share
        (lambda x: x[0] + x[1], [1.0, 0.0], {"equality": lambda x: (x[0] - 1) ** 2 + x[1] ** 2}),
    ],
)
def test_minima_without_multipliers_are_not_called_wrong(objective, x, constraints):
    """Slopes of the constraints cancel without the objective's: by Fritz John nothing follows."""
    found = cf.check_kkt(objective, x, **constraints)
    assert not found.holds and found.verdict.startswith("NOT decided: stationarity") and found.verdict in str(found)


@pytest.mark.parametrize(
    "objective, x, constraints",
    [
        (lambda x: x[0], [1.0, 0.0], {"inequality": lambda x: x @ x - 1}),
        (lambda x: x[1], [1.0, 0.0], {"inequality": [lambda x: x[0] - 1, lambda x: 1 - x[0]]}),  # affine: x[0] = 1
        (lambda x: x, -1e-3, {"inequality": lambda x: x**2 - 1}),
    ],
)
def test_points_that_are_no_minimum_still_are_called_so(objective, x, constraints):
    assert cf.check_kkt(objective, x, **constraints).verdict.startswith("NOT a solution: stationarity")


def test_wrong_multipliers_of_a_solution_do_not_make_it_wrong():
    found = cf.check_kkt(lambda x: x @ x, [0.5, 0.5], equality=lambda x: x[0] + x[1] - 1, multipliers=[1.0])
    assert not found.holds and found.verdict.startswith("NOT by these multipliers: stationarity")
