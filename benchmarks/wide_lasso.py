"""Lasso with more columns than rows: one alpha and a path of 100, against celer, skglm and scikit-learn.

    python -m benchmarks.wide_lasso [--rows 2000] [--columns 20000] [--repeats 3] [--path] [--threads 2] [--quick]

Columns follow an AR(0.5) chain, one in a hundred matters, the signal is three times the noise. Rivals get centred
columns, outside the clock; certifit gets the raw ones and fits the intercept. Runs are interleaved and the minimum
counts; CPU seconds tell the work where the machine is busy. The worst relative gap (gap / objective, in plain NumPy
for everyone) stands beside each time: the tolerances are chosen so that rivals come as near to 1e-6 as they can.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .table import grid

Array = NDArray[np.float64]
Solve = Callable[[Array], Array]  # alphas -> weights, one column an alpha


class Wide(NamedTuple):
    """The raw columns and target, and both centred."""

    X: Array
    y: Array
    centred: Array
    target: Array

    @property
    def alpha_max(self) -> float:
        return float(np.abs(self.centred.T @ self.target).max() / len(self.target))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide_lasso", description="Lasso, d > n.")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=20000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2, help="of certifit's second row")
    parser.add_argument("--path", action="store_true", help="the path of 100 alphas too: minutes a rival")
    parser.add_argument("--rivals", nargs="*", default=list(RIVALS))
    parser.add_argument("--quick", action="store_true", help="200 x 2000")
    given = parser.parse_args()
    shape = (200, 2000) if given.quick else (given.rows, given.columns)
    data = wide(*shape)
    solves = dict(installed(given.rivals, data, given.threads))
    tasks = {f"alpha_max / {part}": np.array([data.alpha_max / part]) for part in (5, 20)}
    if given.path:
        tasks["path of 100 to alpha_max / 100"] = data.alpha_max * np.geomspace(1, 0.01, 100)
    for title, alphas in tasks.items():
        print(f"\n{title}, {shape[0]} x {shape[1]}\n\n{table(data, alphas, solves, given.repeats)}", flush=True)


def wide(n_rows: int, n_columns: int, seed: int = 0) -> Wide:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    for j in range(1, n_columns):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * X[:, j]
    truth = np.where(rng.random(n_columns) < 0.01, rng.normal(size=n_columns), 0.0)
    signal, noise = X @ truth, rng.normal(size=n_rows)
    y = signal + noise * (np.linalg.norm(signal) / np.linalg.norm(noise) / 3)
    X = np.asfortranarray(X)
    return Wide(X, y, np.asfortranarray(X - X.mean(axis=0)), y - y.mean())


# ---- the rivals -----------------------------------------------------------------------------------------------------


def certifit(data: Wide, threads: int) -> Solve:
    from certifit.runtime import core

    def solve(alphas: Array) -> Array:
        found = core.wide_lasso_path(
            ("dense", data.X), data.y, None, True, alphas, 1.0, None, None, None, 1e-6, 100_000, threads
        )
        weights = np.zeros((data.X.shape[1], len(alphas)))
        for number in range(len(alphas)):
            place = slice(*found["offsets"][number : number + 2])
            weights[found["columns"][place], number] = found["weights"][place]
        return weights

    return solve


def celer(data: Wide, threads: int) -> Solve:
    from celer import celer_path

    options: dict[str, Any] = {"pb": "lasso", "tol": 1e-8, "max_iter": 100, "max_epochs": 100_000, "prune": 1}
    return lambda alphas: celer_path(data.centred, data.target, alphas=alphas, **options)[1]


def skglm(data: Wide, threads: int) -> Solve:
    from skglm.datafits import Quadratic
    from skglm.penalties import L1
    from skglm.solvers import AndersonCD

    solver = AndersonCD(max_iter=200, max_epochs=100_000, tol=1e-6, fit_intercept=False, warm_start=True)
    datafit = Quadratic()

    def solve(alphas: Array) -> Array:
        weights, residual = np.zeros(data.X.shape[1]), np.zeros(len(data.y))
        out = []
        for alpha in alphas:
            weights, *_ = solver.solve(data.centred, data.target, datafit, L1(alpha), weights.copy(), residual)
            residual = data.centred @ weights
            out.append(weights)
        return np.column_stack(out)

    return solve


def scikit_learn(data: Wide, threads: int) -> Solve:
    from sklearn.linear_model import lasso_path

    options: dict[str, Any] = {"tol": 1e-7, "max_iter": 100_000, "precompute": False, "check_input": False}
    return lambda alphas: lasso_path(data.centred, data.target, alphas=alphas, **options)[1]


RIVALS = {"certifit": certifit, "celer": celer, "skglm": skglm, "scikit-learn": scikit_learn}


def installed(names: list[str], data: Wide, threads: int) -> Iterator[tuple[str, Solve]]:
    warm = wide(20, 60)
    for name in names:
        try:
            RIVALS[name](warm, 1)(np.array([warm.alpha_max / 2]))  # imports and just-in-time compilers do not count
        except ImportError:
            print(f"{name} is not installed: skipped.")
            continue
        if name == "certifit":
            yield f"certifit, {threads} threads", certifit(data, threads)
        yield f"{name}, 1 thread", RIVALS[name](data, 1)


# ---- the clock ------------------------------------------------------------------------------------------------------


def table(data: Wide, alphas: Array, solves: dict[str, Solve], repeats: int) -> str:
    wall, work = ({name: np.inf for name in solves} for _ in range(2))
    answers = {}
    warnings.simplefilter("ignore")  # the gap tells what a warning would
    for _ in range(repeats):
        for name, solve in solves.items():
            start, used = time.perf_counter(), time.process_time()
            answers[name] = solve(alphas)
            wall[name] = min(wall[name], time.perf_counter() - start)
            work[name] = min(work[name], time.process_time() - used)
    rows = []
    for name, weights in answers.items():
        gaps = [relative_gap(data, alpha, w) for alpha, w in zip(alphas, weights.T, strict=True)]
        kept = int(np.count_nonzero(weights[:, -1]))
        rows.append([name, f"{wall[name]:.2f}", f"{work[name]:.2f}", f"{max(gaps):.0e}", f"{kept:,}"])
    return grid(["", "wall s", "CPU s", "worst gap", "weights at the last alpha"], rows)


def relative_gap(data: Wide, alpha: float, weights: Array) -> float:
    [support] = np.nonzero(weights)
    residual = data.target - data.centred[:, support] @ weights[support]
    slopes = data.centred.T @ residual / len(residual)
    scale = min(1.0, alpha / np.abs(slopes).max())
    half = 0.5 * residual @ residual / len(residual)
    lost = (alpha * np.abs(weights) - scale * weights * slopes)[support].sum()
    return float((half * (1 - scale) ** 2 + lost) / (half + alpha * np.abs(weights).sum()))


if __name__ == "__main__":
    main()
