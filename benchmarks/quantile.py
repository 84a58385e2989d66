"""QuantileRegressor beside scikit-learn (HiGHS) and statsmodels (QuantReg): CPU seconds and objectives.

    python benchmarks/quantile.py

CPU time of the process, runs of the three in turn, the least of each. excess: of the objective over ours, relative.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from sklearn.linear_model import QuantileRegressor as Peer
from threadpoolctl import threadpool_limits

import certifit as cf

SIZES = ((10_000, 20), (100_000, 10))
QUANTILES = (0.5, 0.9)
MOST_ROWS_OF_HIGHS = 10_000  # beyond it takes minutes
ROUNDS = 3


def problem(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows with heavy tails."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    return X, X @ rng.normal(size=n_columns) + rng.standard_t(3, size=n_rows)


def fits(X: np.ndarray, y: np.ndarray, quantile: float) -> dict[str, Callable[[], np.ndarray]]:
    """Functions that fit and return predictions."""
    design = sm.add_constant(X)
    out = {
        "certifit": lambda: cf.QuantileRegressor(quantile).fit(X, y).predict(X),
        "statsmodels": lambda: sm.QuantReg(y, design).fit(q=quantile).predict(design),
    }
    if len(y) <= MOST_ROWS_OF_HIGHS:
        out["scikit-learn"] = lambda: Peer(quantile=quantile, alpha=0.0, solver="highs").fit(X, y).predict(X)
    return out


def main() -> None:
    """Print a line per problem and library."""
    warnings.simplefilter("ignore")
    for n_rows, n_columns in SIZES:
        X, y = problem(n_rows, n_columns)
        for quantile in QUANTILES:
            seconds: dict[str, float] = {}
            losses: dict[str, float] = {}
            for _ in range(ROUNDS):
                for name, fit in fits(X, y, quantile).items():
                    began = time.process_time()
                    r = y - fit()
                    seconds[name] = min(seconds.get(name, np.inf), time.process_time() - began)
                    losses[name] = float(np.mean(np.where(r > 0, quantile, quantile - 1) * r))
            for name, taken in seconds.items():
                excess = losses[name] / losses["certifit"] - 1
                ratio = taken / seconds["certifit"]
                print(f"{n_rows:7,} x {n_columns:2} q={quantile} {name:12} {taken:8.3f} s {ratio:6.1f}x {excess:+.1e}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
