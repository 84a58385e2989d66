"""Whether a point is a solution of a constrained problem: the conditions of Karush, Kuhn and Tucker.

minimise f(x)  subject to  g_i(x) <= 0,  h_j(x) = 0.     L(x, a, b) = f(x) + sum_i a_i g_i(x) + sum_j b_j h_j(x)

    stationarity        grad f + sum a_i grad g_i + sum b_j grad h_j = 0
    primal feasibility  g_i(x) <= 0,  h_j(x) = 0
    dual feasibility    a_i >= 0
    slackness           a_i g_i(x) = 0

For convex f and g and affine h they prove the optimum. With a multiplier c of f they hold at any minimum (Fritz John);
where curved constraints allow c = 0, a minimum may have none of c = 1: min x, x^2 <= 0. The dual value is min over x of
L(x, a, b): never above the
primal one, and equal to it at an optimum of a convex problem.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from certifit.data.columns import Array, Numbers
from certifit.minimise.function import (
    EPS,
    Functions,
    User,
    as_numbers,
    called,
    check_jacobian,
    checked_start,
    difference_jacobian,
)
from certifit.minimise.minimum import Minimum, minimize
from certifit.minimise.problem import norm

PROBES = 40  # directions in which the Lagrangian is evaluated
DISTANCES = (0.01, 0.1, 1.0, 10.0)  # relative to max(|x|, 1)


@dataclass(frozen=True)
class Condition:
    """One condition: its number, relative to the size of its terms, and whether it is within tol."""

    name: str
    value: float
    tol: float
    worst: str = ""

    @property
    def holds(self) -> bool:
        """True when the number is within tol."""
        return bool(self.value <= self.tol)

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "VIOLATED" + (f" by {self.worst}" if self.worst else "")
        return f"{self.name:<20}{self.value:>10.1e}   {verdict}"


@dataclass(frozen=True)
class KKT:
    """What `check_kkt` found; `print` shows it in words.

    dual: min over x of the Lagrangian, None where it is not known; `dual_known` says how it was found. gap: primal -
    dual. inequality_multipliers and equality_multipliers are those given, or those found. verdict: what follows.
    """

    conditions: tuple[Condition, ...]
    primal: float
    dual: float | None
    dual_known: str
    inequality_multipliers: Array
    equality_multipliers: Array
    tol: float
    verdict: str

    @property
    def holds(self) -> bool:
        """Whether all four conditions hold within tol."""
        return all(condition.holds for condition in self.conditions)

    @property
    def gap(self) -> float | None:
        """Primal - dual value."""
        return None if self.dual is None else self.primal - self.dual

    def __getitem__(self, name: str) -> Condition:
        return {condition.name: condition for condition in self.conditions}[name]

    def __str__(self) -> str:
        rows = [str(condition) for condition in self.conditions]
        rows.append(f"{'primal value':<20}{self.primal:>16.8g}")
        shown = "unknown" if self.dual is None else f"{self.dual:.8g}"
        rows.append(f"{'dual value':<20}{shown:>16}   {self.dual_known}")
        return "\n".join([*rows, self.verdict])


def check_kkt(
    objective: User,
    x: ArrayLike,
    inequality: Functions | None = None,
    equality: Functions | None = None,
    multipliers: ArrayLike | None = None,
    *,
    gradient: User | None = None,
    inequality_jacobian: User | None = None,
    equality_jacobian: User | None = None,
    dual: User | None = None,
    tol: float = 1e-6,
) -> KKT:
    """Check a point of: minimise objective(x) subject to inequality(x) <= 0 and equality(x) = 0.

    inequality, equality : a function that gives a number or a vector, or a list of functions.
    multipliers : a pair (inequality's, equality's), or those of the one kind of constraints that there is. None finds
        those that fit best among the constraints at their limit.
    gradient, inequality_jacobian, equality_jacobian : else central differences; given ones are checked against them.
    dual : dual(a), dual(b) or dual(a, b) -> min over x of the Lagrangian. Without it the Lagrangian is minimised
        from x on; the result is its value there, stated to be that of a local search.
    tol : each number is relative to the size of its terms; distances are relative to max(|x|, 1).

    >>> import certifit as cf
    >>> found = cf.check_kkt(lambda x: x @ x, [0.5, 0.5], equality=lambda x: x[0] + x[1] - 1, multipliers=[-1.0])
    >>> found.holds, f"{found.primal:.6f} {found.dual:.6f}"
    (True, '0.500000 0.500000')
    """
    if not 0 < tol < np.inf:
        raise ValueError(f"tol must be a number > 0. Got {tol!r}.")
    problem = Constrained(objective, x, inequality, equality, gradient, inequality_jacobian, equality_jacobian)
    at, is_curved = _without_rounding(problem, problem.at(problem.x), tol)
    a, b = _found(at, problem.scale, tol) if multipliers is None else _given(multipliers, len(at.g), len(at.h))
    conditions = (
        _stationarity(problem, at, a, b, tol),
        _feasibility(at, problem.scale, tol),
        _signs(a, tol),
        _slackness(at, a, problem.scale, tol),
    )
    value, known = _dual(problem, at, a, b, conditions, dual)
    return KKT(conditions, at.value, value, known, a, b, tol, _verdict(problem, at, conditions, is_curved, tol))


def _verdict(
    problem: Constrained, at: At, conditions: Sequence[Condition], is_curved: Sequence[Array], tol: float
) -> str:
    """What the conditions say of the point; multipliers that do not fit say nothing where others do."""
    broken = ", ".join(condition.name for condition in conditions if not condition.holds)
    if not broken:
        return f"All conditions hold within {tol:g}. For a convex problem x is a minimum."
    said = f"{broken} violated by more than {tol:g}."
    is_feasible = conditions[1].holds
    if is_feasible and _stationarity(problem, at, *_found(at, problem.scale, tol), tol).holds:
        return f"NOT by these multipliers: {said} Others meet all conditions; without multipliers= they are found."
    if is_feasible and _is_abnormal(at, is_curved, problem.scale, tol):
        why = "But slopes of constraints at their limit cancel, so multipliers need not exist at a minimum."
        return f"NOT decided: {said} {why} Write these constraints in another form: x = 0 for x^2 <= 0."
    return f"NOT a solution: {said}"


def _is_abnormal(at: At, is_curved: Sequence[Array], scale: float, tol: float) -> bool:
    """Whether slopes of constraints at their limit cancel without the objective's, with a curved one among them.

    Of inequalities by a linear programme, a >= 0 with a sum of 1 over those that are curved (Motzkin); of equalities
    by their rank.
    """
    g, h = (J / np.where((size := np.linalg.norm(J, axis=1, keepdims=True)) > 0, size, 1.0)
            for J in (at.g_jacobian, at.h_jacobian))  # fmt: skip
    if is_curved[1].any() and np.linalg.matrix_rank(h, tol=tol) < len(h):
        return True
    active = _active(at, scale, tol)
    total = np.concatenate([is_curved[0][active], np.zeros(2 * len(h))])
    columns = np.vstack([np.vstack([g[active], h, -h]).T, total])
    return bool(total.any()) and nnls(columns, np.append(np.zeros(len(columns) - 1), 1.0))[1] <= tol


def _without_rounding(problem: Constrained, at: At, tol: float) -> tuple[At, list[Array]]:
    """0 for slopes of constraints that are small beside what they change by over the length of x; which are curved."""
    u = np.random.default_rng(0).normal(size=len(problem.x))
    move, slopes, is_curved = problem.scale / 100 * u / norm(u), [], []
    for part, J in zip(problem.parts[1:], (at.g_jacobian, at.h_jacobian), strict=True):
        bends = 50 * sum(np.linalg.norm(part.jacobian(problem.x + s * move) - J, axis=1) for s in (1, -1))
        is_curved.append(bends > tol * (np.linalg.norm(J, axis=1) + bends))
        slopes.append(np.where(np.abs(J) <= tol * np.asarray(bends)[:, None], 0.0, J))
    return replace(at, g_jacobian=slopes[0], h_jacobian=slopes[1]), is_curved


def _given(multipliers: ArrayLike, n_inequality: int, n_equality: int) -> tuple[Array, Array]:
    is_pair = isinstance(multipliers, tuple | list) and len(multipliers) == 2 and not all(map(np.isscalar, multipliers))
    pair: Sequence[ArrayLike]
    if is_pair or (n_inequality and n_equality):
        pair = cast("Sequence[ArrayLike]", multipliers)
    else:
        pair = (multipliers, ()) if n_inequality else ((), multipliers)
    legal = f"{n_inequality} numbers for the inequality and {n_equality} for the equality constraints"
    try:
        a, b = (np.atleast_1d(np.asarray(part, dtype=np.float64)).ravel() for part in pair)
    except (TypeError, ValueError):
        raise ValueError(f"multipliers must be a pair: {legal}. Got {multipliers!r}.") from None
    if (len(a), len(b)) != (n_inequality, n_equality):
        raise ValueError(f"multipliers must be {legal}. Got {len(a)} and {len(b)}.")
    for name, part in (("inequality", a), ("equality", b)):
        if not np.isfinite(part).all():
            raise ValueError(f"multipliers of {name} constraints must be finite. Got {part}.")
    return a, b


def _found(at: At, scale: float, tol: float) -> tuple[Array, Array]:
    """Multipliers with the least stationarity residual: a >= 0 on constraints at their limit, 0 on the others."""
    active = _active(at, scale, tol)
    columns = np.vstack([at.g_jacobian[active], at.h_jacobian, -at.h_jacobian]).T
    a, b = np.zeros(len(at.g)), np.zeros(len(at.h))
    if columns.shape[1]:
        solution, _ = nnls(columns, -at.gradient)
        a[active] = solution[: len(active)]
        plus, minus = np.split(solution[len(active) :], 2)
        b = plus - minus
    return a, b


def _active(at: At, scale: float, tol: float) -> Array:
    """Places of the inequalities at their limit."""
    return np.flatnonzero(at.g >= -tol * np.linalg.norm(at.g_jacobian, axis=1) * scale)


def _terms(at: At, a: Array, b: Array) -> float:
    """The size of what must cancel in the stationarity condition."""
    of_g = float(np.abs(a) @ np.linalg.norm(at.g_jacobian, axis=1))
    return norm(at.gradient) + of_g + float(np.abs(b) @ np.linalg.norm(at.h_jacobian, axis=1))


def _stationarity(problem: Constrained, at: At, a: Array, b: Array, tol: float) -> Condition:
    """|grad L| relative to its terms and to what it changes by when x moves by its own length."""
    left = at.gradient + a @ at.g_jacobian + b @ at.h_jacobian
    u = np.random.default_rng(0).normal(size=len(problem.x))
    move = 1e-4 * problem.scale * u / norm(u)
    ahead, behind = (problem.lagrangian_gradient(problem.x + s * move, a, b) for s in (1, -1))
    curved = norm(ahead - behind) / norm(2 * move) * problem.scale
    values = abs(at.value) + float(np.abs(a) @ np.abs(at.g)) + float(np.abs(b) @ np.abs(at.h))
    noise = EPS ** (2 / 3) * values / problem.scale  # of differences
    size = _terms(at, a, b) + (curved if np.isfinite(curved) else 0.0) + noise / tol
    worst = int(np.argmax(np.abs(left)))
    return Condition("stationarity", norm(left) / size if size > 0 else 0.0, tol, f"entry {worst} of the gradient")


def _distances(values: Array, jacobian: Array, scale: float) -> Array:
    """How far x must move to meet constraints, to first order, relative to its length."""
    sizes = np.linalg.norm(jacobian, axis=1)
    return np.asarray(np.abs(values) / np.where(sizes > 0, sizes * scale, 1.0))


def _feasibility(at: At, scale: float, tol: float) -> Condition:
    over = _distances(np.maximum(at.g, 0.0), at.g_jacobian, scale)
    off = np.concatenate([over, _distances(at.h, at.h_jacobian, scale)])
    if not len(off):
        return Condition("primal feasibility", 0.0, tol)
    worst = int(np.argmax(off))
    kind, place = ("inequality", worst) if worst < len(over) else ("equality", worst - len(over))
    return Condition("primal feasibility", float(off[worst]), tol, f"{kind} {place}")


def _signs(a: Array, tol: float) -> Condition:
    largest = float(np.max(np.abs(a), initial=0.0))
    below = np.maximum(-a, 0.0) / (largest or 1.0)
    worst = int(np.argmax(below)) if len(a) else 0
    return Condition("dual feasibility", float(np.max(below, initial=0.0)), tol, f"multiplier {worst}")


def _slackness(at: At, a: Array, scale: float, tol: float) -> Condition:
    size = max(abs(at.value), float(np.abs(a) @ np.linalg.norm(at.g_jacobian, axis=1)) * scale)
    off = np.abs(a * at.g) / (size or 1.0)
    worst = int(np.argmax(off)) if len(a) else 0
    return Condition("slackness", float(np.max(off, initial=0.0)), tol, f"inequality {worst}")


def _dual(
    problem: Constrained,
    at: At,
    a: Array,
    b: Array,
    conditions: tuple[Condition, ...],
    dual: User | None,
) -> tuple[float | None, str]:
    """min over x of the Lagrangian, and how it is known."""
    stationarity, feasibility, signs, _ = conditions
    if not signs.holds:
        return None, "no bound: a multiplier of an inequality is negative"
    if dual is not None:
        value = as_numbers(dual(*(part for part in (a, b) if len(part))), "The dual").item()
        is_bound = value <= at.value + stationarity.tol * abs(at.value) or not feasibility.holds
        return value, "by the function given" + ("" if is_bound else ": above the primal value, so it is no dual")
    here = problem.lagrangian(problem.x, a, b)
    lowest, place = _probed(problem, at, a, b, stationarity)
    if stationarity.holds and lowest is None:
        return here, "the Lagrangian is stationary at x, and nowhere lower where it was tried: no proof"
    start = problem.x if lowest is None else place
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lowest_point = minimize(
            lambda x: problem.lagrangian(x, a, b),
            start,
            gradient=(lambda x: problem.lagrangian_gradient(x, a, b)) if problem.has_derivatives else None,
            check=False,
            max_iter=1000,
        )
    assert isinstance(lowest_point, Minimum)  # there are no constraints
    if lowest_point.direction is not None:
        return -np.inf, "the Lagrangian is unbounded below"
    if not lowest_point.converged:
        return None, "the Lagrangian's minimum was not found"
    return min(lowest_point.value, here), "the Lagrangian is lower elsewhere than at x: x does not minimise it"


def _probed(problem: Constrained, at: At, a: Array, b: Array, stationarity: Condition) -> tuple[float | None, Array]:
    """A place around x where the Lagrangian is lower by more than its errors, or None."""
    here = problem.lagrangian(problem.x, a, b)
    terms = _terms(at, a, b) + abs(here) / problem.scale
    drawn = np.random.default_rng(0).normal(size=(PROBES, len(problem.x)))
    for u in drawn:
        for distance in DISTANCES:
            place = problem.x + distance * problem.scale * u / norm(u)
            value = problem.lagrangian(place, a, b)
            if value < here - stationarity.tol * terms * (1 + distance) * problem.scale:
                return value, place
    return None, problem.x


# ---- the user's problem: values and derivatives of the objective and of both kinds of constraints --------------------


@dataclass(frozen=True)
class At:
    """Values and derivatives at a point."""

    value: float
    gradient: Array
    g: Array
    g_jacobian: Array
    h: Array
    h_jacobian: Array


class Constrained:
    """minimise f(x) subject to g(x) <= 0 and h(x) = 0, around a point x."""

    def __init__(
        self,
        objective: User,
        x: ArrayLike,
        inequality: Functions | None,
        equality: Functions | None,
        gradient: User | None,
        inequality_jacobian: User | None,
        equality_jacobian: User | None,
    ) -> None:
        start = checked_start(x)
        self.shape, self.x = start.shape, start.ravel()
        self.scale = max(norm(self.x), 1.0)
        self.parts = [
            _Part("objective", objective, gradient, self),
            _Part("inequality", inequality, inequality_jacobian, self),
            _Part("equality", equality, equality_jacobian, self),
        ]
        for part in self.parts:
            part.check(self.x)

    @property
    def has_derivatives(self) -> bool:
        """Whether all derivatives are the user's own."""
        return all(part.own is not None for part in self.parts if part.functions)

    def shaped(self, x: Array) -> Numbers:
        """A flat vector as the user's functions see it."""
        return float(x[0]) if not self.shape else x.reshape(self.shape).copy()

    def at(self, x: Array) -> At:
        """Everything at a point."""
        values = [part.values(x) for part in self.parts]
        slopes = [part.jacobian(x) for part in self.parts]
        return At(float(values[0][0]), slopes[0][0], values[1], slopes[1], values[2], slopes[2])

    def lagrangian(self, x: Array, a: Array, b: Array) -> float:
        """f + a'g + b'h."""
        f, g, h = (part.values(x) for part in self.parts)
        return float(f[0] + a @ g + b @ h)

    def lagrangian_gradient(self, x: Array, a: Array, b: Array) -> Array:
        """Its gradient by x."""
        f, g, h = (part.jacobian(x) for part in self.parts)
        return np.asarray(f[0] + a @ g + b @ h)


class _Part:
    """The objective or one kind of constraints, as a vector function of a flat vector."""

    def __init__(self, name: str, functions: Functions | None, jacobian: User | None, problem: Constrained) -> None:
        if jacobian is not None and functions is None:
            raise ValueError(f"A Jacobian of {name} constraints was given, but no {name} constraints.")
        self.name, self.problem, self.own = name, problem, jacobian
        listed = [] if functions is None else [functions] if callable(functions) else list(functions)
        self.functions = listed
        self.sizes: list[int] = []
        self.sizes = [len(part) for part in self._parts(problem.x)]

    def values(self, x: Array) -> Array:
        return np.concatenate([np.zeros(0), *self._parts(x)])

    def _parts(self, x: Array) -> list[Array]:
        """What each function gives; NaN in the size it has at the point where it is not defined."""
        shaped = self.problem.shaped(x)
        parts = [as_numbers(called(f, shaped), self.name).ravel() for f in self.functions]
        for k, size in enumerate(self.sizes):
            if len(parts[k]) == 1 and np.isnan(parts[k]).all():
                parts[k] = np.full(size, np.nan)
        return parts

    def jacobian(self, x: Array) -> Array:
        count = len(self.values(x))
        if not count:
            return np.zeros((0, len(x)))
        if self.own is None:
            return difference_jacobian(self.values, x)
        out = as_numbers(called(self.own, self.problem.shaped(x)), f"The Jacobian of {self.name}")
        if out.size != count * len(x):
            raise ValueError(f"The derivatives of {self.name} must be {count} x {len(x)} numbers. Got {out.shape}.")
        return out.reshape(count, len(x))

    def check(self, x: Array) -> None:
        values = self.values(x)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.name} is not finite at x: {values}.")
        if self.name == "objective" and len(values) != 1:
            raise ValueError(f"objective must give one number. Got {len(values)}.")
        if self.own is not None:
            check_jacobian(
                self.values, self.jacobian(x), x, (f"The Jacobian of {self.name}", "entry [{i}, {j}]", self.name)
            )
