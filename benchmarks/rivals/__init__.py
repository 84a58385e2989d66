"""One file a rival. Each file has

    NAME             what the table prints
    version()        the installed version; raises NotInstalled when there is none
    solvers()        {kind of problem: {variant: solver}}; only this call imports the library

A solver takes Data and returns a Solution. Variants exist where a library has several ways worth comparing:
its default, and its best.
"""

import importlib
import importlib.metadata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, cast

from numpy.typing import NDArray

from ..problems import Data

MODULES = {
    "certifit": "certifit_",
    "numpy": "numpy_",
    "scipy": "scipy_",
    "scikit-learn": "scikit_learn",
    "scikit-learn-intelex": "scikit_learn_intelex",
    "glum": "glum_",
    "statsmodels": "statsmodels_",
}


class Solution(NamedTuple):
    coef: NDArray[Any]
    intercept: float
    certified: bool | None = None  # None: the rival makes no claim


Solver = Callable[[Data], Solution]
Solvers = dict[str, dict[str, Solver]]


class Rival(Protocol):
    NAME: str

    def version(self) -> str: ...

    def solvers(self) -> Solvers: ...


class NotInstalled(ImportError):
    """The rival's package is absent; the runner says so and goes on."""


def load(name: str) -> Rival:
    if name not in MODULES:
        raise ValueError(f"Unknown rival {name!r}. Known: {', '.join(MODULES)}.")
    return cast(Rival, importlib.import_module(f".{MODULES[name]}", __name__))


def installed(package: str) -> str:
    """The version of a package, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise NotInstalled(f"{package} is not installed") from None


def fitted(model: Any, data: Data) -> Solution:
    """Fit a model that follows scikit-learn's contract."""
    model.fit(data.X, data.y)
    return Solution(model.coef_, float(model.intercept_))


@contextmanager
def inner_threads(limit: int) -> Iterator[None]:
    """Limit the threads inside each job of a variant that uses n_jobs.

    Two jobs with two BLAS threads each fight over two cores and look twice as slow as they are.
    """
    import joblib
    from threadpoolctl import threadpool_limits

    with joblib.parallel_config(backend="loky", inner_max_num_threads=limit), threadpool_limits(limit):
        yield
