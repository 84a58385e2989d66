"""Models of kernels beside scikit-learn: CPU seconds of the process, and how near the answers are.

    OMP_NUM_THREADS=2 python benchmarks/kernels.py [fit] [folds] [components] [maps]

Runs of both in turn, the least of each. fit: KernelRidge, 10,000 rows of 20 columns, alpha = 1 / n; residuals of both.
folds: 20 alphas x 5 folds of 8,000 rows; scikit-learn is timed on one alpha and counted 20 times (`--whole` runs all).
components: KernelPCA, 10 components of 5,000 rows, scikit-learn's by ARPACK. maps: the matrix of (x'z)^2 for 1,000 rows
of 100 features by the kernel and by the products of its map, and for 2,000 rows of 5 features Ridge on the map beside
KernelRidge.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.kernel_ridge import KernelRidge as TheirRidge
from sklearn.model_selection import GridSearchCV, KFold

import certifit as cf

COLUMNS, ROUNDS = 20, 2


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth function of a few columns, with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, COLUMNS))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * (X**2).sum(axis=1) / COLUMNS + 0.3 * rng.standard_normal(n_rows)
    return X, y - y.mean()


def timed(runs: dict[str, Callable[[], object]], rounds: int = ROUNDS) -> tuple[dict[str, float], dict[str, object]]:
    """The least CPU seconds of each run, and what it returned last."""
    seconds: dict[str, float] = {}
    results: dict[str, object] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.process_time()
            results[name] = run()
            seconds[name] = min(seconds.get(name, np.inf), time.process_time() - began)
    return seconds, results


def fit() -> None:
    X, y = problem(10_000)
    gamma = 1 / (COLUMNS * X.var())
    seconds, found = timed(
        {
            "certifit": lambda: cf.KernelRidge(fit_intercept=False).fit(X, y),
            "scikit-learn": lambda: TheirRidge(alpha=1.0, kernel="rbf", gamma=gamma).fit(X, y),
        }
    )
    G = cf.kernels.Gaussian("scale").resolved(X).matrix(X)
    for name, model in found.items():
        residual = np.linalg.norm(y - G @ model.dual_coef_ - model.dual_coef_) / np.linalg.norm(y)
        print(f"fit         {name:12} {seconds[name]:8.2f} s   residual {residual:.1e}")
    print(f"fit         {seconds['scikit-learn'] / seconds['certifit']:.1f}x")


def folds(whole: bool) -> None:
    X, y = problem(8_000)
    alphas = np.logspace(-2, 2, 20)
    gamma, cv = 1 / (COLUMNS * X.var()), KFold(5, shuffle=True, random_state=0)
    theirs, scoring = TheirRidge(kernel="rbf", gamma=gamma), "neg_mean_squared_error"
    ours = cf.KernelRidge(fit_intercept=False)
    tried = alphas if whole else alphas[10:11]
    cf.CrossValidated(ours, {"alpha": [0.1]}, cv=2, scoring=scoring).fit(X[:100], y[:100])  # what is imported late
    seconds, found = timed(
        {
            # scikit-learn's alpha is ours times the rows of the training set
            "certifit": lambda: cf.CrossValidated(ours, {"alpha": list(alphas / 6_400)}, cv=cv, scoring=scoring).fit(
                X, y
            ),
            "scikit-learn": lambda: GridSearchCV(theirs, {"alpha": tried}, cv=cv, scoring=scoring, refit=False).fit(
                X, y
            ),
        },
        rounds=1,
    )
    seconds["scikit-learn"] *= len(alphas) / len(tried)
    scores = found["certifit"].cv_results_["mean_test_score"]
    scores = scores if whole else scores[10:11]
    apart = np.abs(scores / found["scikit-learn"].cv_results_["mean_test_score"] - 1).max()
    for name, taken in seconds.items():
        print(
            f"folds       {name:12} {taken:8.2f} s{'' if whole or name == 'certifit' else '   (one alpha, times 20)'}"
        )
    print(f"folds       {seconds['scikit-learn'] / seconds['certifit']:.1f}x   scores apart by {apart:.1e}")


def components() -> None:
    X, _ = problem(5_000)
    gamma = 1 / (COLUMNS * X.var())
    seconds, found = timed(
        {
            "certifit": lambda: cf.KernelPCA(10).fit(X),
            "scikit-learn": lambda: TheirPCA(10, kernel="rbf", gamma=gamma, eigen_solver="arpack").fit(X),
        },
        rounds=3,
    )
    apart = np.abs(found["certifit"].eigenvalues_ / found["scikit-learn"].eigenvalues_ - 1).max()
    for name, taken in seconds.items():
        print(f"components  {name:12} {taken:8.2f} s")
    print(f"components  {seconds['scikit-learn'] / seconds['certifit']:.1f}x   eigenvalues apart by {apart:.1e}")


def maps() -> None:
    kernel, rng = cf.kernels.Polynomial(2, 0.0), np.random.default_rng(0)
    wide, long = rng.standard_normal((1_000, 100)), rng.standard_normal((2_000, 5))
    target = long[:, 0] * long[:, 1] + 0.1 * rng.standard_normal(2_000)

    def by_map() -> np.ndarray:
        features = cf.kernels.products(wide)
        return features @ features.T

    seconds, found = timed({"kernel": lambda: kernel.matrix(wide), "map": by_map}, rounds=3)
    apart = np.abs(found["kernel"] - found["map"]).max() / found["map"].max()
    taken = f"kernel {seconds['kernel']:.4f} s, map {seconds['map']:.3f} s"
    print(f"maps        matrix, 1,000 x 100: {taken}, {apart:.0e} apart")
    seconds, _ = timed(
        {
            "kernel": lambda: cf.KernelRidge(0.01, kernel=kernel).fit(long, target),
            "map": lambda: cf.Ridge(0.01).fit(cf.kernels.products(long), target),
        },
        rounds=3,
    )
    print(f"maps        fit, 2,000 x 5: kernel {seconds['kernel']:.3f} s, map {seconds['map']:.4f} s")


def main() -> None:
    asked = [name for name in sys.argv[1:] if not name.startswith("--")] or ["fit", "folds", "components", "maps"]
    runs = {"fit": fit, "folds": lambda: folds("--whole" in sys.argv), "components": components, "maps": maps}
    for name in asked:
        runs[name]()


if __name__ == "__main__":
    main()
