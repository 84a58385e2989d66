"""Linear support vector machines beside liblinear (scikit-learn's LinearSVC) and snapml: CPU seconds and gaps.

    OMP_NUM_THREADS=2 python benchmarks/linear_svm.py [N_ROWS ...]        made rows of 50 columns
    OMP_NUM_THREADS=2 python benchmarks/linear_svm.py FILE.svm.gz ...     sparse rows of a file, as a9a and w8a

Without an intercept, which the peers penalise: the same objective for all. Runs in turn, the least of each; the
certificate is part of certifit's fit. `above` is how far the objective is above the least of all, relative.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC as TheirLinearSVC

import certifit as cf

COLUMNS, ROUNDS = 50, 2
POWER = {"squared_hinge": 2, "hinge": 1}


def problem(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are correlated with their neighbours, and labels of a noisy score."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, COLUMNS))
    X[:, 1:] += 0.5 * X[:, :-1]
    score = X @ rng.standard_normal(COLUMNS)
    return X, np.where(score / score.std() + rng.standard_normal(n_rows) > 0, 1, -1)


def sparse_rows(path: str) -> tuple[object, np.ndarray]:
    """Rows of a file, with the 32-bit places that liblinear wants."""
    X, y = load_svmlight_file(path)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, y


def snapml_fit(X: object, y: object, loss: str, C: float) -> np.ndarray | None:
    """The weights of snapml, where it is installed and has the loss."""
    try:
        from snapml import SupportVectorMachine
    except ImportError:
        return None
    if loss != "hinge":
        return None
    data = X.astype(np.float32)
    model = SupportVectorMachine(loss=loss, regularizer=1 / C, fit_intercept=False, n_jobs=2, max_iter=1000)
    return np.ravel(model.fit(data, y).coef_)


def runs(X: object, y: object, loss: str, C: float) -> dict[str, Callable[[], np.ndarray | None]]:
    """Weights by name."""
    alpha = 1 / (C * len(y))
    is_wide = loss == "squared_hinge" and X.shape[0] > X.shape[1]
    return {
        "certifit": lambda: cf.LinearSVC(alpha, loss, fit_intercept=False).fit(X, y).coef_[0],
        "liblinear": lambda: TheirLinearSVC(C=C, loss=loss, fit_intercept=False, dual=not is_wide).fit(X, y).coef_[0],
        "snapml": lambda: snapml_fit(X, y, loss, C),
    }


def race(name: str, X: object, y: np.ndarray, loss: str, C: float) -> None:
    seconds: dict[str, float] = {}
    weights: dict[str, np.ndarray] = {}
    for _ in range(ROUNDS):
        for label, run in runs(X, y, loss, C).items():
            began = time.process_time()
            w = run()
            if w is not None:
                weights[label] = w
                seconds[label] = min(seconds.get(label, np.inf), time.process_time() - began)
    value = {
        label: float(w @ w) / 2 + C * float((np.maximum(0, 1 - y * (X @ w)) ** POWER[loss]).sum())
        for label, w in weights.items()
    }
    least = min(value.values())
    for label, spent in seconds.items():
        ratio = spent / seconds["certifit"]
        above = value[label] / least - 1
        print(
            f"{name:>16} {loss:>13} C={C:<6g} {label:>9} {spent:8.3f} s  {ratio:6.2f}x  above {above:.1e}", flush=True
        )


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    for argument in arguments or ["100000"]:
        X, y = problem(int(argument)) if argument.isdigit() else sparse_rows(argument)
        name = f"{len(y):,} x {X.shape[1]}"
        for loss in POWER:
            for C in (0.001, 1.0):
                race(name, X, np.where(y > 0, 1, -1), loss, C)


if __name__ == "__main__":
    main(sys.argv[1:])
