"""Losses of scores with an L1 penalty against the best peers: equal objectives, wall and CPU seconds.

    python -m benchmarks.glm_l1                 # all, some minutes
    python -m benchmarks.glm_l1 logistic        # some
    python -m benchmarks.glm_l1 --quick         # small sizes: does everything run?
    python -m benchmarks.glm_l1 --out benchmarks/results/glm_l1.jsonl

Ours ends at the rounding floor and includes the certificate. "differ by" is the excess of a rival's objective over
ours, relative. Rivals that are not installed are left out, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import certifit as cf
from benchmarks.glm import certified, excess, glum, installed, objective, peer, scores, targets, words
from benchmarks.turns import Compared, compare, run

LINEAR = "sklearn.linear_model"
N_ALPHAS = 50


def liblinear(X: Any, y: Any, alpha: float, tol: float) -> Callable[[], Any]:
    """scikit-learn's liblinear at equal penalty; its intercept is penalised unless it is scaled far up."""
    return peer(
        LINEAR, "LogisticRegression", X, y, C=1 / (alpha * len(y)), l1_ratio=1.0, solver="liblinear", tol=tol,
        intercept_scaling=100.0, max_iter=1000,
    )  # fmt: skip


def skglm(X: Any, y: Any, alpha: float, kind: str) -> Callable[[], Any]:
    """skglm's prox-Newton."""

    def fit() -> Any:
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import Logistic, Poisson
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton

        datafit = {"logistic": Logistic, "poisson": Poisson}[kind]()
        solver = ProxNewton(tol=1e-8, fit_intercept=True)
        return GeneralizedLinearEstimator(datafit, L1(alpha), solver).fit(X, y)

    return fit


def snapml(X: Any, y: Any, alpha: float, tol: float) -> Callable[[], Any]:
    """snapml at equal penalty."""
    return peer(
        "snapml", "LogisticRegression", X, y, regularizer=alpha * len(y), penalty="l1", dual=False, n_jobs=2,
        fit_intercept=True, tol=tol, max_iter=10_000, normalize=False,
    )  # fmt: skip


def logistic(quick: bool) -> Iterator[Compared]:
    """Dense rows, some 60 of 200 columns with a weight."""
    n, d = (4000, 20) if quick else (100_000, 200)
    X, z = scores(n, d)
    y, alpha = targets("logistic", z), 5e-3
    rivals = installed(
        {
            "glum": ("glum", glum("logistic", X, y, alpha, 1.0)),
            "glum, its default tolerance": ("glum", glum("logistic", X, y, alpha, 1.0, 1e-4)),
            "liblinear": ("sklearn", liblinear(X, y, alpha, 1e-6)),
            "snapml": ("snapml", snapml(X, y, alpha, 1e-8)),
            "skglm": ("skglm", skglm(X, y, alpha, "logistic")),
        }
    )
    value = objective("logistic", X, y, alpha, 0.0)
    ours = partial(cf.LogisticRegression(alpha=alpha, l1_ratio=1.0).fit, X, y)
    yield from compare("logistic, L1", f"{n:,} x {d}", ours, rivals, excess(value), certified, rounds=4)


def counts(quick: bool) -> Iterator[Compared]:
    """Poisson and Gamma, log link."""
    n, d = (4000, 20) if quick else (100_000, 200)
    X, z = scores(n, d)
    for kind, name in (("poisson", "PoissonRegressor"), ("gamma", "GammaRegressor")):
        y, alpha = targets(kind, z), 2e-2
        peers = {
            "glum": ("glum", glum(kind, X, y, alpha, 1.0)),
            "glum, its default tolerance": ("glum", glum(kind, X, y, alpha, 1.0, 1e-4)),
        }
        if kind == "poisson":
            peers["skglm"] = ("skglm", skglm(X, y, alpha, kind))
        value = objective(kind, X, y, alpha, 0.0)
        ours = partial(getattr(cf, name)(alpha=alpha, l1_ratio=1.0).fit, X, y)
        yield from compare(f"{kind}, L1", f"{n:,} x {d}", ours, installed(peers), excess(value), certified, rounds=4)


def sparse(quick: bool) -> Iterator[Compared]:
    """Text-like rows, few of many columns with a weight."""
    n, d = (2000, 500) if quick else (100_000, 50_000)
    X, y = words(n, d)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # what liblinear takes
    for alpha in (1e-4, 2e-5):
        rivals = installed(
            {
                "liblinear, excess 1e-8": ("sklearn", liblinear(X, y, alpha, 1e-5)),
                "liblinear, its default": ("sklearn", liblinear(X, y, alpha, 1e-4)),
                "skglm": ("skglm", skglm(X.tocsc(), 2.0 * y - 1, alpha, "logistic")),
            }
        )
        value = objective("logistic", X, y, alpha, 0.0)
        ours = partial(cf.LogisticRegression(alpha=alpha, l1_ratio=1.0).fit, X, y)
        size = f"{n:,} x {d:,}, {X.nnz:,} entries"
        yield from compare(f"sparse logistic, L1 {alpha:g}", size, ours, rivals, excess(value), certified, rounds=3)


def path(quick: bool) -> Iterator[Compared]:
    """Fifty alphas, each with the one before as its start."""
    n, d = (4000, 20) if quick else (50_000, 80)
    X, z = scores(n, d)
    for kind, model in (("logistic", cf.LogisticRegression), ("poisson", cf.PoissonRegressor)):
        y = targets(kind, z)
        alphas = model(alpha=1.0, l1_ratio=1.0).path(X, y, n_alphas=N_ALPHAS).alphas
        ours = partial(model(alpha=1.0, l1_ratio=1.0).path, X, y, alphas=alphas)

        def theirs(kind: str = kind, y: np.ndarray = y, alphas: np.ndarray = alphas) -> Any:
            from glum import GeneralizedLinearRegressor

            family, link = ("binomial", "logit") if kind == "logistic" else ("poisson", "log")
            model = GeneralizedLinearRegressor(
                family=family, link=link, alpha=list(alphas), alpha_search=True, l1_ratio=1
            )
            return model.set_params(gradient_tol=1e-6, max_iter=500).fit(X, y).coef_path_

        rivals = installed({"glum": ("glum", theirs)})

        def far(own: Any, other: Any) -> float:
            return float(np.abs(own.coef - np.asarray(other)[: len(own.coef)]).max())

        yield from compare(f"{kind}, path of {N_ALPHAS}", f"{n:,} x {d}", ours, rivals, far, rounds=3)


TASKS: dict[str, Callable[[bool], Iterator[Compared]]] = {
    "logistic": logistic,
    "counts": counts,
    "sparse": sparse,
    "path": path,
}

if __name__ == "__main__":
    run(__doc__, TASKS)
