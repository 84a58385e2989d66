"""Fits of 150 x 4 beside scikit-learn: what is not arithmetic.

    OMP_NUM_THREADS=1 python -m benchmarks.small [--turns 300]

Fits take turns in one process; the minimum of the CPU seconds counts. Ours includes the certificate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import linear_model as theirs

import certifit as cf

ROWS, COLUMNS = 150, 4


def fits() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """By name: our fit and that of scikit-learn, of the same objective."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, COLUMNS))
    z = X @ np.arange(1.0, COLUMNS + 1) / COLUMNS
    y, label = z + rng.standard_normal(ROWS), (z + rng.logistic(size=ROWS) > 0).astype(int)
    return {
        "least squares": (lambda: cf.LinearRegression().fit(X, y), lambda: theirs.LinearRegression().fit(X, y)),
        "ridge": (lambda: cf.Ridge(alpha=1 / ROWS).fit(X, y), lambda: theirs.Ridge().fit(X, y)),
        "logistic": (lambda: cf.LogisticRegression().fit(X, label), lambda: theirs.LogisticRegression().fit(X, label)),
        "lasso": (lambda: cf.Lasso(alpha=0.1).fit(X, y), lambda: theirs.Lasso(alpha=0.1).fit(X, y)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=300)
    turns = parser.parse_args().turns
    for name, pair in fits().items():
        best = [np.inf, np.inf]
        for _ in range(turns):
            for k, fit in enumerate(pair):
                begin = time.process_time()
                fit()
                best[k] = min(best[k], time.process_time() - begin)
        ours, other = (1e3 * seconds for seconds in best)
        print(f"{name:14s} certifit {ours:.3f} ms, scikit-learn {other:.3f} ms: {ours / other:.2f} of its time")


if __name__ == "__main__":
    main()
