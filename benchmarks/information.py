"""Mutual information of 100,000 x 50 against scikit-learn: the same scores, and how much sooner.

    python -m benchmarks.information [--rows 100000] [--features 50] [--repeats 3]

Runs take turns; the smallest wall time of each counts. scikit-learn adds random noise of 1e-10 to every number, which
changes the order of a few distances: "of two seeds" is the largest difference between two of its own runs. The last
line compares 2,000 rows with the formulas written out in NumPy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from certifit.runtime import n_threads, threads
from certifit.selection.information.filter import MutualInformationFilter

N_NEIGHBORS = 3


def problem(n_rows: int, n_features: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Features, a target of three classes and a target of numbers that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(-3, 4, n_features)
    Z = X / X.std(axis=0)
    score = Z[:, 0] + Z[:, 1] ** 2 - Z[:, 2] * Z[:, 3] + rng.normal(size=n_rows)
    return X, np.digitize(score, [-0.5, 1.5]), score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    X, classes, numbers = problem(options.rows, options.features)
    print(f"{options.rows:,} rows, {options.features} features, {N_NEIGHBORS} neighbours, {n_threads()} processors\n")
    print("| target | scikit-learn | n_jobs=-1 | certifit, 1 thread | certifit | largest difference | of two seeds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, y, rival in (("classes", classes, mutual_info_classif), ("numbers", numbers, mutual_info_regression)):
        compare(name, X, y, rival, options.repeats)
    print("\nagainst the formulas in NumPy, 2,000 rows:", f"{worst_error(*problem(2000, 4)):.1e}")


def compare(name: str, X: Any, y: Any, rival: Callable[..., Any], repeats: int) -> None:
    """One line of the table; ratios are to scikit-learn with the same number of processors."""
    own = MutualInformationFilter("all", n_neighbors=N_NEIGHBORS)

    def one_thread() -> Any:
        with threads(1):
            return own.fit(X, y).scores_

    runs: dict[str, Callable[[], Any]] = {
        "rival 1": lambda: rival(X, y, n_neighbors=N_NEIGHBORS, random_state=0),
        "rival all": lambda: rival(X, y, n_neighbors=N_NEIGHBORS, random_state=1, n_jobs=-1),
        "own 1": one_thread,
        "own all": lambda: own.fit(X, y).scores_,
    }
    best = dict.fromkeys(runs, np.inf)
    scores: dict[str, Any] = {}
    for _ in range(repeats):
        for key, run in runs.items():
            begin = time.perf_counter()
            scores[key] = run()
            best[key] = min(best[key], time.perf_counter() - begin)
    apart, noise = (np.abs(scores["rival 1"] - scores[other]).max() for other in ("own all", "rival all"))
    default, alike, single = (
        best[rival_key] / best[own_key]
        for rival_key, own_key in (("rival 1", "own all"), ("rival all", "own all"), ("rival 1", "own 1"))
    )
    print(
        f"| {name} | {best['rival 1']:.2f} s | {best['rival all']:.2f} s | {best['own 1']:.3f} s ({single:.0f}x) | "
        f"{best['own all']:.3f} s ({default:.0f}x the default, {alike:.0f}x n_jobs=-1) | {apart:.1e} | {noise:.1e} |"
    )


def worst_error(X: Any, classes: Any, numbers: Any) -> float:
    """Largest difference to the formulas written out."""
    own = MutualInformationFilter("all", n_neighbors=N_NEIGHBORS)
    errors = [
        np.abs(own.fit(X, y).scores_ - [plain(x, y, is_class) for x in X.T]).max()
        for y, is_class in ((classes, True), (numbers, False))
    ]
    return float(max(errors))


def plain(x: Any, y: Any, is_class: bool) -> float:
    """Psi(n) + mean[psi(k) - psi(a) - psi(b)]: all distances, no ties."""
    dx = np.abs(x[:, None] - x) / x.std()
    dy = np.where(y[:, None] == y, 0.0, np.inf) if is_class else np.abs(y[:, None] - y) / y.std()
    both = np.maximum(dx, dy)
    radius = np.sort(both, axis=1)[:, N_NEIGHBORS, None]  # the row itself comes first
    near_y = (np.isfinite(dy) if is_class else dy < radius).sum(axis=1)
    terms = digamma((both < radius).sum(axis=1)) - digamma((dx < radius).sum(axis=1)) - digamma(near_y)
    return max(0.0, float(digamma(len(x)) + terms.mean()))


if __name__ == "__main__":
    main()
