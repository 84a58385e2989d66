"""The solvers by name, and what each needs of a problem."""

from __future__ import annotations

from collections.abc import Iterable

from certifit.minimise.conjugate_gradient import ConjugateGradient
from certifit.minimise.gradient_descent import GradientDescent
from certifit.minimise.newton import Newton
from certifit.minimise.problem import Solver
from certifit.minimise.quasi_newton import BFGS, LBFGS
from certifit.minimise.stochastic import SGD, AveragedSGD, MiniBatch

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
