"""The best tree of depth 2 and 3 on the tables of shared/data: seconds, proof, and loss on held-out rows beside greedy.

    python benchmarks/best_tree.py [--splits 10] [--only adult wine_quality]

Columns are encoded: one column per level of a category. CPU seconds count both threads. The tables are all those of
shared/data with less than 100,000 rows and at most 1,000 encoded columns; small ones, of classics_small and nist, share
a line. Texts have more columns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_svmlight_file

import certifit as cf

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TARGETS = {
    "adult": "income", "ames_housing": "Sale_Price", "bike_sharing": "cnt", "california_housing": "median_house_value",
    "german_credit": "class", "higgs_sample": "y", "wine_quality": "quality", "mnist_5k": "label",
}  # fmt: skip
SMALL_TARGETS = {
    "Animals": "brain", "DoctorVisits": "visits", "Insurance": "Claims", "anscombe": "y1", "cars": "dist", "hbk": "Y",
    "mcycle": "accel", "medpar": "los", "phones": "calls", "quine": "Days", "stackloss": "stack.loss",
    "starsCYG": "log.light",
}  # fmt: skip
LEFT_OUT = {"split", "instant", "dteday", "casual", "registered", "text", "pid", "order"}
OF_NUMBERS = {"ames_housing", "bike_sharing", "california_housing", "wine_quality", "DoctorVisits"}
DEPTH_3 = (
    "adult", "bike_sharing", "california_housing", "german_credit", "higgs_sample", "wine_quality", "DoctorVisits",
)  # fmt: skip


def table(name: str) -> tuple[Any, Any]:
    """Encoded columns and target of a table."""
    if name in ("a9a", "w8a"):
        X, y = load_svmlight_file(str(DATA / name / f"{name}.svm.gz"))
        return X.toarray(), y
    if name in SMALL_TARGETS:
        frame = pd.read_csv(DATA / "classics_small" / f"{name}.csv")
    else:
        frame = pd.read_parquet(DATA / name / f"{name}.parquet")
    y = frame.pop((TARGETS | SMALL_TARGETS)[name])
    frame = frame.drop(columns=[c for c in frame if c.lower() in LEFT_OUT])
    X = pd.get_dummies(frame, dtype=float).astype(float)
    return X.to_numpy(), y.to_numpy(dtype=float) if name in OF_NUMBERS else y.astype(str).to_numpy()


def tree(name: str, depth: int, search: str) -> Any:
    """A model for the target of a table."""
    kind = cf.DecisionTreeRegressor if name in OF_NUMBERS else cf.DecisionTreeClassifier
    return kind(max_depth=depth, search=search)


def loss(name: str, model: Any, X: Any, y: Any) -> float:
    """Share of wrong rows, or mean squared error."""
    predicted = model.predict(X)
    return float(np.mean(np.square(predicted - y)) if name in OF_NUMBERS else np.mean(predicted != y))


def times(name: str, depths: list[int]) -> None:
    """How long a search takes, and what it proves."""
    X, y = table(name)
    for depth in depths:
        cpu, wall = time.process_time(), time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proof = tree(name, depth, "optimal").fit(X, y).certificate_
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        closed = "closed" if proof.is_closed else f"open, bound {proof.least_loss:.6g}"
        size = f"{X.shape[0]} x {X.shape[1]}"
        print(
            f"{name:20s} {size:14s} depth {depth}  cpu {cpu:5.2f} s  wall {wall:5.2f} s  "
            f"loss {proof.loss:.6g}  {closed}"
        )


def small_tables() -> None:
    """Depth 2 and 3 of all tables of classics_small and of the regressions of nist."""
    frames = {name: table(name) for name in SMALL_TARGETS}
    for path in sorted((DATA / "nist").glob("[!u]*.csv")):
        frame = pd.read_csv(path)
        y = frame.pop("y").to_numpy(dtype=float)
        frames[path.stem] = (frame.to_numpy(dtype=float), y)
    for depth in (2, 3):
        seconds, is_closed = [], []
        for X, y in frames.values():
            cpu = time.process_time()
            proof = cf.DecisionTreeRegressor(max_depth=depth, search="optimal").fit(X, y).certificate_
            seconds.append(time.process_time() - cpu)
            is_closed.append(proof.is_closed)
        print(f"{len(frames)} small tables  depth {depth}  cpu at most {max(seconds):.2f} s  {sum(is_closed)} closed")


def held_out(name: str, depth: int, n_splits: int) -> None:
    """The best tree beside the greedy one on rows that neither has seen."""
    X, y = table(name)
    losses: dict[str, list[float]] = {"greedy": [], "optimal": []}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(y))
        new, old = np.split(order, [int(0.3 * len(y))])
        for search, values in losses.items():
            values.append(loss(name, tree(name, depth, search).fit(X[old], y[old]), X[new], y[new]))
    greedy, best = (np.array(values) for values in losses.values())
    won = int(np.sum(best < greedy))
    print(
        f"{name:20s} depth {depth}  greedy {greedy.mean():.5g}  best {best.mean():.5g}  "
        f"change {best.mean() / greedy.mean() - 1:+.1%}  better in {won} of {n_splits} splits"
    )


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--only", nargs="*", default=[])
    asked = parser.parse_args()
    names = asked.only or [*TARGETS, "DoctorVisits", "a9a", "w8a"]
    for name in names:
        times(name, [2, 3] if name in DEPTH_3 else [2])
    if not asked.only:
        small_tables()
    for name in ("bike_sharing", "higgs_sample", "german_credit"):
        for depth in (2, 3):
            if name in names and asked.splits:
                held_out(name, depth, asked.splits)


if __name__ == "__main__":
    main()
