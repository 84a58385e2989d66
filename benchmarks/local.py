"""Local regression beside statsmodels and NumPy: CPU seconds of the process, and how near the answers are.

    OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 python benchmarks/local.py [lowess] [widths]

Runs of both in turn, the least of each. lowess: 20,000 points, frac 0.1, 3 robust iterations, delta 0. widths: local
lines in 5 features, leave-one-out errors of 2,000 rows for the same 10 widths; NumPy with one matrix of weights per
width, one product with the moments of the rows, and stacked solves.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import certifit as cf
from certifit.data.source import Memory
from certifit.models.local.solver import left_out
from certifit.models.local.task import LocalForm, LocalTask

ROUNDS = 3


def timed(
    runs: dict[str, Callable[[], np.ndarray]],
) -> tuple[dict[str, float], dict[str, float], dict[str, np.ndarray]]:
    """The least CPU and wall seconds of each run, and what it returned last."""
    processor: dict[str, float] = {}
    wall: dict[str, float] = {}
    results: dict[str, np.ndarray] = {}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began, started = time.process_time(), time.perf_counter()
            results[name] = run()
            processor[name] = min(processor.get(name, np.inf), time.process_time() - began)
            wall[name] = min(wall.get(name, np.inf), time.perf_counter() - started)
    return processor, wall, results


def told(what: str, runs: dict[str, Callable[[], np.ndarray]]) -> None:
    """A line per run, and the ratio of the second to the first."""
    processor, wall, results = timed(runs)
    ours, theirs = runs
    apart = float(np.abs(results[ours] - results[theirs]).max() / np.abs(results[theirs]).max())
    for name in runs:
        print(f"{what:8} {name:12} {processor[name]:8.3f} s of CPU, {wall[name]:8.3f} s")
    ratio, faster = processor[theirs] / processor[ours], wall[theirs] / wall[ours]
    print(f"{what:8} {ratio:.1f}x of CPU, {faster:.1f}x of time; answers within {apart:.1e}")


def lowess() -> None:
    """20,000 points."""
    from statsmodels.nonparametric.smoothers_lowess import lowess as their_lowess

    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 20_000))
    y = np.sin(x) + 0.3 * rng.normal(size=len(x))
    told(
        "lowess",
        {
            "certifit": lambda: cf.lowess(x, y, 0.1, 3).fitted,
            "statsmodels": lambda: their_lowess(y, x, frac=0.1, it=3, delta=0.0, return_sorted=False),
        },
    )


def widths() -> None:
    """Mean squared errors by leave-one-out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 5))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(X))
    taus = np.geomspace(0.7, 5, 10)

    def ours() -> np.ndarray:
        task = LocalTask(Memory(X, y, names=list("abcde")), LocalForm("gaussian", "linear"), None, None)
        return np.square(left_out(task.rows, taus) / task.rows.y_scale).mean(axis=1)

    def numpy() -> np.ndarray:
        P = np.column_stack([np.ones(len(X)), X])
        pairs = [(j, k) for j in range(6) for k in range(j, 6)]
        Z = np.column_stack([*(P[:, j] * P[:, k] for j, k in pairs), P * y[:, None]])
        squares = (X**2).sum(axis=1)
        D = np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0)
        errors, M = [], np.empty((len(X), 6, 6))
        for tau in taus:
            S = np.exp(D * (-0.5 / tau**2)) @ Z
            for c, (j, k) in enumerate(pairs):
                M[:, j, k] = M[:, k, j] = S[:, c]
            right = np.stack([S[:, len(pairs) :], P], axis=2)
            fitted, lever = np.einsum("ij,ijk->ki", P, np.linalg.solve(M, right))
            errors.append(np.mean(((y - fitted) / (1 - lever)) ** 2))
        return np.array(errors)

    told("widths", {"certifit": ours, "NumPy": numpy})


if __name__ == "__main__":
    for name in sys.argv[1:] or ("lowess", "widths"):
        {"lowess": lowess, "widths": widths}[name]()
