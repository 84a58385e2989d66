"""Support vector machines beside libsvm (scikit-learn's SVC) and scikit-learn-intelex: CPU seconds, gaps, accuracy.

    OMP_NUM_THREADS=2 python benchmarks/svm.py [N_ROWS ...]
    OMP_NUM_THREADS=2 python benchmarks/svm.py folds N_ROWS     5 values of C x 5 folds, beside their grid searches

Gaussian kernel of the same width, C = 1, 20 columns; runs in turn, the least of each. The certificate is part of
certifit's fit; `proof` is its share. Violations of the conditions of the optimum and gaps are those of certifit's
float64 code, on the multipliers of every library.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC as TheirSVC

import certifit as cf
from certifit.models.svm.certificate import certify_arrays
from certifit.models.svm.task import of_classes

COLUMNS, ROUNDS, CACHE = 20, 2, 2000


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of a smooth boundary, a tenth of the labels noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, COLUMNS))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3]
    return X, np.where(score + 0.5 * rng.standard_normal(n_rows) > 0, 1, -1)


def peers() -> dict[str, type]:
    """What is installed."""
    found = {"libsvm": TheirSVC}
    try:
        from sklearnex.svm import SVC as IntelSVC
    except ImportError:
        return found
    return found | {"sklearnex": IntelSVC}


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


def main(n_rows: int) -> None:
    X, y = problem(n_rows)
    unseen, labels = problem(n_rows + 2000)[0][-2000:], problem(n_rows + 2000)[1][-2000:]
    width = float(np.sqrt(COLUMNS * X.var() / 2))
    kernel, gamma = cf.kernels.Gaussian(width), 1 / (2 * width**2)
    runs = {"certifit": lambda: cf.SVC(kernel=kernel, cache_size=CACHE).fit(X, y)}
    for name, peer in peers().items():
        runs[name] = lambda peer=peer: peer(gamma=gamma, cache_size=CACHE).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, found = timed(runs)
    began = time.process_time()
    found["certifit"].certify(X, y)
    proof = time.process_time() - began
    machine = of_classes(y.astype(float), np.arange(n_rows), np.ones(n_rows))
    for name, model in found.items():
        a = np.zeros(n_rows)
        a[model.support_] = np.abs(np.ravel(model.dual_coef_))
        judged = certify_arrays(kernel, X, machine, np.clip(a, 0, 1), float(np.ravel(model.intercept_)[0]), 1e-4)
        share = f"proof {proof:.2f} s" if name == "certifit" else f"{seconds[name] / seconds['certifit']:.1f}x"
        accuracy = np.mean(model.predict(unseen) == labels)
        print(
            f"{n_rows:7,} x {COLUMNS}  {name:10} {seconds[name]:8.2f} s  {share:13}  gap {judged.value:.1e}  "
            f"violation {judged.violation:.1e}  support {len(model.support_):6,}  accuracy {accuracy:.4f}"
        )


def folds(n_rows: int) -> None:
    """C = 0.01 to 100 of a row on five folds; one run of each, accuracies of cross-validation side by side."""
    X, y = problem(n_rows)
    width = float(np.sqrt(COLUMNS * X.var() / 2))
    kernel, gamma = cf.kernels.Gaussian(width), 1 / (2 * width**2)
    cv, values = StratifiedKFold(5, shuffle=True, random_state=0), [0.01, 0.1, 1.0, 10.0, 100.0]
    alphas = [cf.alpha_from_C(C, n_rows * 4 // 5) for C in values]
    model = cf.SVC(kernel=kernel, cache_size=CACHE)
    runs = {"certifit": lambda: cf.CrossValidated(model, {"alpha": alphas}, cv=cv).fit(X, y)}
    for name, peer in peers().items():
        grid = GridSearchCV(peer(gamma=gamma, cache_size=CACHE), {"C": values}, cv=cv)
        runs[name] = lambda grid=grid: grid.fit(X, y)
    seconds, found = timed(runs, rounds=1)
    for name, search in found.items():
        means = " ".join(f"{mean:.4f}" for mean in search.cv_results_["mean_test_score"])
        ratio = seconds[name] / seconds["certifit"]
        print(f"folds {n_rows:,} x {COLUMNS}  {name:10} {seconds[name]:8.2f} s  {ratio:5.1f}x  accuracy {means}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["folds"]:
        folds(int(sys.argv[2]))
    else:
        for size in sys.argv[1:] or ("10000",):
            main(int(size))
