"""The lasso on fold Gram matrices against scikit-learn: 100 strengths, at an equal or smaller gap.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.gram_lasso [--repeats 5] [--problems cv_20k_100]

Seconds of CPU, one thread, the minimum of interleaved runs. `sums` is the pass over the rows (fold Gram matrices),
`path` what the compiled core does with them. A gap here is (primal - dual) / (y'y / n): scikit-learn's `tol` bounds
it, certifit's `tol` bounds the larger (primal - dual) / objective.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.runtime import core

Array = NDArray[np.float64]
Systems = tuple[Array, Array, Array]  # G (K, d, d), c (K, d), yy (K,)


@dataclass(frozen=True)
class Problem:
    n_rows: int
    n_features: int
    n_informative: int
    n_folds: int  # 1: the path of all rows
    correlation: float | None  # of neighbours; None: each column shares a fifth of its variance with the next
    tol: float

    def data(self) -> tuple[Array, Array]:
        rng = np.random.default_rng(0)
        Z = rng.standard_normal((self.n_rows, self.n_features))
        X = Z.copy()
        if self.correlation is None:
            X[:, 1:] += 0.5 * Z[:, :-1]
        else:
            for j in range(1, self.n_features):
                X[:, j] = self.correlation * X[:, j - 1] + np.sqrt(1 - self.correlation**2) * Z[:, j]
        w = np.zeros(self.n_features)
        w[rng.choice(self.n_features, self.n_informative, replace=False)] = rng.standard_normal(self.n_informative)
        return X, X @ w + 3 * rng.standard_normal(self.n_rows)


PROBLEMS = {
    "cv_20k_100": Problem(20_000, 100, 20, 10, None, 1e-8),
    "cv_3k_300_ar95": Problem(3_000, 300, 30, 10, 0.95, 1e-6),
    "path_10k_2000_ar95": Problem(10_000, 2_000, 100, 1, 0.95, 1e-6),
}


def sums(X: Array, y: Array, n_folds: int) -> Array:
    """(folds, d + 2, d + 2): sums of z z' with z = (x - shift, 1, y - shift), contiguous folds."""
    n, d = X.shape
    fold = np.repeat(np.arange(n_folds, dtype=np.int32), np.diff(np.linspace(0, n, n_folds + 1).astype(int)))
    shift, y_shift = X[:2048].mean(axis=0), float(y[:2048].mean())
    rest = np.ones(d), shift, 1.0, y_shift, 1.0, 4096, False, 1
    hi, _ = core.gram([("dense", X)], y, None, *rest, fold, n_folds)
    return np.asarray(hi)


def training(cells: Array) -> Systems:
    """Of every fold the sums over the other folds, about their mean, divided by their number."""
    total = cells.sum(axis=0)
    train = total - cells if len(cells) > 1 else total[None]
    d = train.shape[1] - 2
    keep = np.r_[0:d, d + 1]
    count, means = train[:, d, d], train[:, d, keep] / train[:, d, d, None]
    centred = train[:, keep[:, None], keep] / count[:, None, None] - means[:, :, None] * means[:, None, :]
    return np.ascontiguousarray(centred[:, :d, :d]), np.ascontiguousarray(centred[:, :d, d]), centred[:, d, d].copy()


def solve(systems: Systems, alphas: Array, tol: float) -> Any:
    d = systems[0].shape[1]
    wide = np.full(d, np.inf)
    return core.gram_lasso_path(*systems, alphas, 1.0, np.ones(d), -wide, wide, tol, 1000, 1)


def scikit_learn(X: Array, y: Array, problem: Problem, alphas: Array, tol: float) -> Any:
    from sklearn.linear_model import LassoCV, lasso_path
    from sklearn.model_selection import KFold

    if problem.n_folds > 1:
        return LassoCV(cv=KFold(problem.n_folds), alphas=alphas, tol=tol, max_iter=100_000).fit(X, y)
    Z, t = np.asfortranarray(X - X.mean(axis=0)), y - y.mean()
    return lasso_path(Z, t, alphas=alphas, precompute=True, tol=tol, max_iter=100_000)


def measured(runs: dict[str, Callable[[], Any]], repeats: int) -> tuple[dict[str, float], dict[str, Any]]:
    """CPU seconds, the minimum of interleaved runs; and what the last one gave."""
    best, results = dict.fromkeys(runs, np.inf), {}
    for _ in range(repeats):
        for name, call in runs.items():
            started = time.process_time()
            results[name] = call()
            best[name] = min(best[name], time.process_time() - started)
    return best, results


def compare(name: str, problem: Problem, repeats: int) -> None:
    X, y = problem.data()
    cells = sums(X, y, problem.n_folds)
    systems = training(cells)
    everything = training(cells.sum(axis=0, keepdims=True))
    top = float(np.abs(everything[1]).max())
    alphas = top * np.geomspace(1, 1e-3, 100)
    runs: dict[str, Callable[[], Any]] = {
        "sums": lambda: training(sums(X, y, problem.n_folds)),
        "path": lambda: solve(systems, alphas, problem.tol),
        "refit": lambda: solve(everything, alphas, problem.tol),
        f"scikit-learn {problem.tol:g}": lambda: scikit_learn(X, y, problem, alphas, problem.tol),
        "scikit-learn 0.0001": lambda: scikit_learn(X, y, problem, alphas, 1e-4),
    }
    if problem.n_folds == 1:
        del runs["refit"]
    seconds, results = measured(runs, repeats)
    _, gaps, objectives, iterations, status = results["path"]
    ours = sum(seconds[part] for part in ("sums", "path", "refit") if part in seconds)
    print(f"{name}: {problem.n_rows} x {problem.n_features}, {problem.n_folds} fold(s), 100 strengths")
    print("  " + ", ".join(f"{part} {seconds[part]:.4f} s" for part in ("sums", "path", "refit") if part in seconds))
    print(f"  gap {(gaps * objectives / systems[2][:, None]).max():.1e}, of the objective {gaps.max():.1e}, ", end="")
    print(f"{iterations.mean():.2f} rounds a strength, at most {iterations.max()}, all converged: {not status.any()}")
    for peer in [key for key in seconds if key.startswith("scikit")]:
        print(f"  {peer}: {seconds[peer]:.3f} s, {seconds[peer] / ours:.1f} times certifit's {ours:.4f} s")
        print("   ", difference(results[peer], results, X, alphas))


def difference(theirs: Any, ours: dict[str, Any], X: Array, alphas: Array) -> str:
    if isinstance(theirs, tuple):
        _, weights, gaps = theirs[:3]
        return (
            f"their gap {gaps.max() / ours['sums'][2][0]:.1e}; weights {abs(weights.T - ours['path'][0][0]).max():.1e}"
        )
    place = int(np.argmin(abs(alphas - theirs.alpha_)))
    return f"weights at their choice differ by {abs(theirs.coef_ - ours['refit'][0][0, place]).max():.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")  # scikit-learn warns of strengths that it did not solve
    for name in options.problems:
        compare(name, PROBLEMS[name], options.repeats)


if __name__ == "__main__":
    main()
