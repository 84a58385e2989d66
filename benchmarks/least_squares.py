"""Least squares of 1e6 x 50 beside scikit-learn-intelex and NumPy, interleaved, in two ways.

    OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 python -m benchmarks.least_squares [--rounds 30] [--quick]

The workers of OpenBLAS spin for some 100 ms after a product and slow down whatever runs next on the same processors.
So every fit is timed rested (0.2 s of sleep before it) and right after a product of NumPy, and both are told. All fits
are of one process, take turns, and the minimum of the rounds counts; ours includes the certificate. NumPy's is X'X,
X'y and a solve, centred afterwards.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

from .problems import PROBLEMS, Data
from .rivals import Solution, certifit_, numpy_, scikit_learn_intelex

REST = 0.2  # seconds in which the workers stop
WANTED = {"scikit-learn-intelex": 1.8, "NumPy X'X + solve": 1.4}


def contestants() -> dict[str, Callable[[Data], Solution]]:
    """By name, ours first; scikit-learn-intelex where it is installed."""
    fits: dict[str, Callable[[Data], Solution]] = {"certifit": certifit_.solvers()["ols"]["LinearRegression"]}
    try:
        fits["scikit-learn-intelex"] = scikit_learn_intelex.solvers()["ols"]["LinearRegression"]
    except ImportError:
        print("scikit-learn-intelex is not installed.")
    return fits | {"NumPy X'X + solve": numpy_.solvers()["ols"]["X'X + solve"]}


def seconds(fit: Callable[[Data], Solution], data: Data, product: np.ndarray | None) -> tuple[float, float]:
    """Wall and CPU seconds of a fit, after a product of NumPy or after a rest."""
    if product is None:
        time.sleep(REST)
    else:
        product.T @ product
    wall, cpu = time.perf_counter(), time.process_time()
    fit(data)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="few rows: does it run?")
    given = parser.parse_args()
    data, fits = PROBLEMS["ols_1e6x50"].data(given.quick), contestants()
    weights = {name: fit(data).coef for name, fit in fits.items()}  # imports, pools of threads, pages
    product = np.random.default_rng(0).standard_normal((20_000, 200))
    ways = {"rested": None, "after a product": product}
    best = {(way, name): (np.inf, np.inf) for way in ways for name in fits}
    for _ in range(given.rounds):
        for way, before in ways.items():
            for name, fit in fits.items():
                now, least = seconds(fit, data, before), best[way, name]
                best[way, name] = min(now[0], least[0]), min(now[1], least[1])
    print(f"{data.X.shape}, minimum of {given.rounds} rounds, load {os.getloadavg()[0]:.2f}")
    for way in ways:
        ours = best[way, "certifit"]
        for name in fits:
            wall, cpu = best[way, name]
            wanted = f" (wanted {WANTED[name]})" if name in WANTED else ""
            off = np.abs(weights[name] - weights["certifit"]).max()
            line = f"{way:16} {name:22} {1e3 * wall:8.1f} ms, CPU {1e3 * cpu:8.1f} ms"
            print(f"{line}  {wall / ours[0]:5.2f}x{wanted}, CPU {cpu / ours[1]:5.2f}x, weights differ by {off:.0e}")


if __name__ == "__main__":
    main()
