"""Default fits of two source trees side by side: CPU seconds, and their ratio.

    python benchmarks/before_after.py OTHER/src [src] [--rounds 7] [--only lasso,huber] [--sizes 2000x10,100000x30]

Each folder holds the package with its built core. A process per folder waits for its turn and fits once per turn, with
one thread; printed is the least of all rounds, and the ratio second / first: below 1 the second folder is faster.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def _numbers(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    return np.asarray(scores + rng.normal(size=len(scores)))


def _classes(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-scores))).astype(np.int64)


def _counts(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    return rng.poisson(np.exp(np.clip(scores / 2, -5, 3)))


def _nothing(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray | None:
    return None


FITS: dict[str, tuple[str, dict[str, Any], Callable[..., Any]]] = {
    "least squares": ("LinearRegression", {}, _numbers),
    "ridge": ("Ridge", {"alpha": 0.1}, _numbers),
    "lasso": ("Lasso", {"alpha": 0.05}, _numbers),
    "logistic": ("LogisticRegression", {}, _classes),
    "poisson": ("PoissonRegressor", {}, _counts),
    "huber": ("HuberRegressor", {}, _numbers),
    "quantile": ("QuantileRegressor", {}, _numbers),
    "pca": ("PCA", {}, _nothing),
    "discriminant": ("GaussianDiscriminant", {}, _classes),
    "naive bayes": ("GaussianNB", {}, _classes),
}


def rows(name: str, size: str) -> tuple[np.ndarray, Any]:
    """Made rows and a target for a fit, always the same."""
    n, d = map(int, size.split("x"))
    rng = np.random.default_rng(14)
    X = rng.normal(size=(n, d))
    return X, FITS[name][2](rng, X @ (rng.normal(size=d) / np.sqrt(d)))


def serve() -> None:
    """Lines "name size" from standard input; CPU seconds of one fit, or why there is none, to standard output."""
    import certifit as cf

    made: dict[str, Any] = {}
    with cf.threads(1):
        for line in sys.stdin:
            name, size = line.strip().rsplit(" ", 1)
            model = getattr(cf, FITS[name][0], None)
            if line not in made:
                made = {line: rows(name, size)}
            if model is None:
                print("missing", flush=True)
                continue
            begun = time.process_time()
            model(**FITS[name][1]).fit(*made[line])
            print(time.process_time() - begun, flush=True)


def started(folder: Path) -> subprocess.Popen[str]:
    """A process that fits with the package of a folder."""
    variables = os.environ | {"PYTHONPATH": str(folder.resolve()), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__, "--serve"]
    return subprocess.Popen(command, env=variables, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def asked(process: subprocess.Popen[str], name: str, size: str) -> float:
    """CPU seconds of one fit; not a number where the package has no such model."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{name} {size}\n")
    process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer:
        raise SystemExit(f"The fit of {name} at {size} ended its process.")
    return float("nan") if answer == "missing" else float(answer)


def main() -> None:
    """Print a table as it grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="of the package before, and after (default: src)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default=",".join(FITS))
    parser.add_argument("--sizes", default="2000x10,100000x30")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if not 1 <= len(options.folders) <= 2:
        parser.error("name the folder of the package before, and if it is not src the one after.")
    both = [started(folder) for folder in (*options.folders, Path("src"))[:2]]
    print(f"{'fit':<16}{'size':>12}{'before, s':>12}{'after, s':>12}{'ratio':>8}")
    for size in options.sizes.split(","):
        for name in options.only.split(","):
            turns = [[asked(process, name, size) for process in both] for _ in range(options.rounds + 1)][1:]
            before, after = np.min(turns, axis=0)
            print(f"{name:<16}{size:>12}{before:>12.4f}{after:>12.4f}{after / before:>8.3f}", flush=True)
    for process in both:
        process.terminate()


if __name__ == "__main__":
    main()
