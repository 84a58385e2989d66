"""A minimum of a user's function, with what is known of it.

The solvers by name, and what each needs of a problem.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from certifit.data.columns import Array, Numbers
from certifit.minimise.function import Functions, User, UserFunction
from certifit.minimise.gradient_descent import ConjugateGradient, GradientDescent
from certifit.minimise.newton import BFGS, LBFGS, Newton
from certifit.minimise.problem import Minimised, Row, Solver, Stop
from certifit.minimise.stochastic import SGD, AveragedSGD, MiniBatch

if TYPE_CHECKING:
    from certifit.evaluation.pictures.convergence import RunsDisplay
    from certifit.minimise.constrained import ConstrainedMinimum


SOLVERS: dict[str, Solver] = {
    "gradient-descent": GradientDescent(),
    "conjugate-gradient": ConjugateGradient(),
    "bfgs": BFGS(),
    "lbfgs": LBFGS(),
    "newton": Newton(),
    "sgd": SGD(),
    "mini-batch": MiniBatch(),
    "averaged-sgd": AveragedSGD(),
}
WORDS = {"gradient": "a gradient", "hessian": "a Hessian", "rows": "rows"}


def solver_of(solver: str | Solver) -> Solver:
    """A solver by its name, or the instance itself."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {', '.join(map(repr, SOLVERS))}, or an instance. Got {solver!r}.")
        return SOLVERS[solver]
    if not hasattr(solver, "minimise"):
        raise TypeError(f"solver must be a name or an instance of a solver. Got {solver!r}.")
    return solver


def check_needs(solver: Solver, offered: Iterable[str], what: str) -> None:
    """Refuse a solver that needs more than `what` (a loss, a function) offers, with those that do not."""
    missing = sorted(solver.needs - set(offered))
    if missing:
        fit = [repr(name) for name, other in SOLVERS.items() if other.needs <= set(offered)]
        needed = " and ".join(WORDS[name] for name in missing)
        use = f" Use {' or '.join(fit)}." if fit else ""
        raise ValueError(f"Solver {name_of(solver)!r} needs {needed} and {what} has none.{use}")


def name_of(solver: Solver) -> str:
    """The name of a solver in the table, or of its class."""
    return next((name for name, other in SOLVERS.items() if type(other) is type(solver)), type(solver).__name__)


LEAST_KKT = 1e-6  # least tolerance of the conditions of a constrained minimum
MOST_DENSE = 1000  # unknowns up to which BFGS keeps its d x d matrix by default
MOST_MEASURED = {True: 200, False: 30}  # most unknowns for which the Hessian is measured, with a gradient and without
DIFFERENCES = 1e-8  # share of the first value below which differences cannot distinguish values from 0
FLAT = {True: 1e-8, False: 1e-5}  # a curvature below this share of the largest is zero to its error


@dataclass(frozen=True)
class Minimum:
    """What `minimize` found. `print` shows it in words; `plot` draws the way there.

    x has the shape of x0. decrement: how far the value is above the minimum by the quadratic model at x, an estimate
    (NaN where there is none). curvature: the smallest eigenvalue of the Hessian at x (NaN where it was not measured).
    largest_step: of a fixed step that did not converge, 2 / largest curvature. direction: unit vector of an endless
    fall. history_: a row per iteration: iteration, objective, gap, gradient_norm, step_size, step, seconds. weights: of
    a method with record="weights", the point of every iteration, a flat row each, the start first.
    """

    x: Numbers
    value: float
    gradient: Numbers
    converged: bool
    reason: str
    method: str
    decrement: float
    curvature: float
    largest_step: float | None
    direction: Numbers | None
    n_evaluations: int
    by_differences: bool
    history_: list[dict[str, float]] = field(repr=False)
    is_saddle: bool = False
    weights: Array | None = field(default=None, repr=False)

    def sentences(self) -> list[str]:
        """What is known, in words."""
        out = [self.reason]
        if self.direction is None:
            out.append(self._estimate())
        if self.by_differences:
            out.append("The gradient is by central differences of f: about ten digits of a well scaled function.")
        return [sentence for sentence in out if sentence]

    def plot(self, ax: object = None, *, y: str = "excess", x: str = "iteration") -> RunsDisplay:
        """Draw the way: the objective above its best on a log axis, or y="objective", "gap" or "step"."""
        from certifit.evaluation.pictures.convergence import RunsDisplay

        return RunsDisplay.from_runs({self.method: self}, x=x, y=y, ax=ax)

    def __str__(self) -> str:
        steps = int(self.history_[-1]["iteration"])
        shown = np.array2string(np.asarray(self.x), precision=8, threshold=20, separator=", ")
        head = f"value {self.value:.10g} at x = {shown}, after {steps} steps of {self.method}"
        return "\n".join([f"{head} ({self.n_evaluations} evaluations of f).", *self.sentences()])

    def _estimate(self) -> str:
        if np.isnan(self.curvature):
            known = "The curvature was not measured."
        elif self.is_saddle:
            return f"A curvature there is negative ({self.curvature:.3g}): a saddle or a top. Start elsewhere."
        elif self.curvature > 0:
            known = f"The smallest curvature there is {self.curvature:.3g} > 0."
        else:
            known = "The smallest curvature there is zero to its error: the minimum may not be unique."
        if np.isnan(self.decrement):
            return f"{known} No proof: other, lower minima are possible."
        return (
            f"Local estimate, no proof: by the quadratic model at x the value is about {self.decrement:.1e} above a "
            f"minimum. {known}"
        )


def minimize(
    f: User,
    x0: ArrayLike,
    method: str | Solver = "auto",
    gradient: User | None = None,
    hessian: User | None = None,
    *,
    inequality: Functions | None = None,
    equality: Functions | None = None,
    inequality_jacobian: User | None = None,
    equality_jacobian: User | None = None,
    tol: float = 1e-8,
    step_tol: float = 0.0,
    max_iter: int = 10_000,
    max_time: float | None = None,
    check: bool = True,
    callback: Callable[[Row, Array], object] | None = None,
) -> Minimum | ConstrainedMinimum:
    """A local minimum of a smooth function: f(x) -> number, of a number, a vector or an array of any shape.

    method : "auto", "gradient-descent", "conjugate-gradient", "bfgs", "lbfgs", "newton", or an instance such as
        `GradientDescent(step=0.1)`. "auto": newton where a Hessian is given, else bfgs, and lbfgs above 1000 unknowns.
    gradient, hessian : functions of x. Without a gradient, central differences are used, and the result states it.
    tol : the gradient's norm relative to its first, and the estimate of what is left relative to |f|. 0: to rounding.
    step_tol : stop where |x_k - x_(k-1)| is at most this; 0 is off.
    max_iter, max_time : limits, the second in seconds.
    check : compare gradient and Hessian with differences at x0, and refuse wrong ones.
    callback : called with (row of history_, x) after every iteration; returning True stops.
    inequality, equality : constraints inequality(x) <= 0 and equality(x) = 0, each a function that gives a number or a
        vector, or a list of functions; solved by multipliers, which the result has with theta_P and theta_D, judged by
        `check_kkt` at tol (1e-6 at least: derivatives may be differences). method, hessian and step_tol are not for
        them, and max_iter counts rounds of multipliers.
    inequality_jacobian, equality_jacobian : their derivatives; else central differences.

    f may be infinite or NaN outside its domain: steps turn back. A run that does not converge warns with the reason.

    >>> import certifit as cf
    >>> minimum = cf.minimize(lambda x: x - np.log(x), 3.0, gradient=lambda x: 1 - 1 / x, hessian=lambda x: 1 / x**2)
    >>> print(f"{minimum.x:.10f}", minimum.converged)
    1.0000000000 True
    >>> nearest = cf.minimize(lambda x: x @ x, [3.0, 1.0], equality=lambda x: x[0] + x[1] - 1)
    >>> np.round(nearest.x, 6), np.round(nearest.equality_multipliers, 6), round(nearest.theta_D, 6)
    (array([0.5, 0.5]), array([-1.]), 0.5)
    """
    if inequality is not None or equality is not None:
        from certifit.minimise.constrained import minimise_constrained

        if method != "auto" or hessian is not None or step_tol != 0:
            raise ValueError("Constraints are solved by multipliers: leave method, hessian and step_tol out.")
        slopes = (gradient, inequality_jacobian, equality_jacobian)
        limits = Stop(0.0, max_iter=max_iter, max_time=max_time, callback=callback)
        return minimise_constrained(f, x0, inequality, equality, slopes, max(tol, LEAST_KKT), limits)
    if inequality_jacobian is not None or equality_jacobian is not None:
        raise ValueError("A Jacobian of constraints was given, but no constraints. Give inequality= or equality=.")
    function = UserFunction(f, x0, gradient, hessian)
    solver = _solver(method, function)
    if check:
        function.check()
    floor = 0.0 if gradient is not None else DIFFERENCES * abs(function.value(function.start.ravel()))
    stop = Stop(tol, step_tol, max_iter, max_time, floor if np.isfinite(floor) else 0.0, callback)
    run = solver.minimise(function, function.start.ravel(), stop)
    minimum = _described(function, run, name_of(solver))
    if not minimum.converged:
        warnings.warn("\n".join(minimum.sentences()), ConvergenceWarning, stacklevel=2)
    return minimum


def _solver(method: str | Solver, function: UserFunction) -> Solver:
    if isinstance(method, str):
        if method == "auto":
            small = "bfgs" if function.size <= MOST_DENSE else "lbfgs"
            method = "newton" if function.own_hessian is not None else small
        if method not in SOLVERS:
            smooth = (name for name, solver in SOLVERS.items() if "rows" not in solver.needs)
            legal = ", ".join(map(repr, ("auto", *smooth)))
            raise ValueError(f"method must be one of {legal}, or an instance of a solver. Got {method!r}.")
        method = SOLVERS[method]
    if not hasattr(method, "minimise"):
        raise TypeError(f"method must be a name or an instance of a solver. Got {method!r}.")
    offered = {"gradient"} | ({"hessian"} if function.own_hessian is not None else set())
    check_needs(method, offered, "this function")
    return method


def _described(function: UserFunction, run: Minimised, method: str) -> Minimum:
    """The result with its second-order facts: decrement, smallest curvature, and whether it is a saddle."""
    curvature, decrement, is_saddle = np.nan, run.decrement, False
    has_gradient = function.own_gradient is not None
    if run.direction is None and (function.own_hessian is not None or function.size <= MOST_MEASURED[has_gradient]):
        curvature, measured, is_saddle = _second_order(function, run)
        decrement = decrement if np.isnan(measured) else measured
    reason, converged = run.reason, run.converged
    if converged and is_saddle:
        reason, converged = "NOT a minimum: the gradient vanishes, but not all curvatures are positive.", False
    return Minimum(
        function.shaped(run.x),
        run.value,
        function.shaped(run.gradient),
        converged,
        reason,
        method,
        decrement,
        curvature,
        run.largest_step,
        run.direction,
        function.evaluations,
        function.own_gradient is None,
        run.trace,
        is_saddle,
        run.weights,
    )


def _second_order(function: UserFunction, run: Minimised) -> tuple[float, float, bool]:
    """(smallest curvature, decrement, whether a curvature is negative) at the end, from the Hessian there."""
    H = function.measured_hessian(run.x)
    if not np.isfinite(H).all():
        return np.nan, np.nan, False
    unit = float(np.max(np.abs(H), initial=0.0)) or 1.0
    values, vectors = np.linalg.eigh((H + H.T) / (2 * unit))
    flat = FLAT[function.own_hessian is not None] * float(np.max(np.abs(values)))
    smallest = 0.0 if abs(values[0]) <= flat else float(values[0]) * unit
    if values[0] <= flat:
        return smallest, np.nan, bool(values[0] < -flat)
    along = vectors.T @ run.gradient
    return smallest, float(along @ (along / values)) / unit / 2, False
