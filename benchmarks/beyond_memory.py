"""Histogram trees, forests and boosting on a Parquet file beyond the memory allowed: peak of memory, seconds, digest.

    python benchmarks/beyond_memory.py [--rows 10000000] [--columns 20] [--rounds 50] [--limit 256] [--folder DIR]
        [--model boosting | tree | regression-tree | forest] [--place file | dask | memory] [--trees 10] [--depth 8]
        [--workers 2] [--worker-memory 2GB]

file: read in passes under certifit.memory(limit MB); dask: the same on a LocalCluster, whose workers hold the rows;
memory: the rows in an array, to compare the digest with. All give the same digest. Peaks are of the process that fits,
less what it held when the fit began: `anonymous` cannot be written back to a file, `resident` is all of it. Temporary
files are read and written, not mapped: their pages are the system's cache and belong to no process. The file is made
where it is missing, of rows that follow from their numbers alone.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 200_000  # rows of a row group


def made(path: Path, n_rows: int, n_columns: int) -> Path:
    """The file: normal columns, one of them rounded and one with gaps; two classes, and a number."""
    if path.exists():
        return path
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, _schema(n_columns)) as writer:
        for begin in range(0, n_rows, GROUP):
            rng = np.random.default_rng(begin)
            X = rng.normal(size=(min(GROUP, n_rows - begin), n_columns))
            score = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(size=len(X))
            X[:, 3] = X[:, 3].round(1)
            X[::7, 4] = np.nan
            table = {f"x{j}": X[:, j] for j in range(n_columns)} | {"y": (score > 0).astype(np.int64), "score": score}
            writer.write_table(pa.table(table, schema=_schema(n_columns)))
    part.rename(path)
    return path


def _schema(n_columns: int) -> pa.Schema:
    return pa.schema([*((f"x{j}", pa.float64()) for j in range(n_columns)), ("y", pa.int64()), ("score", pa.float64())])


class Peaks:
    """The largest anonymous and resident memory of this process while it runs, in bytes, looked at every 20 ms."""

    def __enter__(self) -> Peaks:
        self.before = _memory()
        self.most = dict(self.before)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.02):
            for name, size in _memory().items():
                self.most[name] = max(self.most[name], size)

    def words(self) -> str:
        """The peaks, and what they add to the memory before."""
        names = {"RssAnon": "anonymous", "VmRSS": "resident"}
        return ", ".join(
            f"{words} {self.most[name] / 1e6:,.0f} MB ({(self.most[name] - self.before[name]) / 1e6:+,.0f})"
            for name, words in names.items()
        )


def _memory() -> dict[str, int]:
    lines = Path("/proc/self/status").read_text().splitlines()
    sizes = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith(("RssAnon", "VmRSS"))}
    return {name: 1024 * int(size) for name, size in sizes.items()}


def digest(state: Any) -> str:
    """Of all arrays of a fit."""
    arrays = sorted((name, value) for name, value in vars(state).items() if isinstance(value, np.ndarray))
    return hashlib.sha256(b"".join(name.encode() + value.tobytes() for name, value in arrays)).hexdigest()[:16]


def rows_of(asked: argparse.Namespace, path: Path) -> Any:
    """The rows, where they are asked for."""
    import certifit as cf

    target, features = "score" if asked.model == "regression-tree" else "y", [f"x{j}" for j in range(asked.columns)]
    names = [*features, target]
    if asked.place == "memory":
        return cf.from_arrow(pq.read_table(path, columns=names), target=target)
    if asked.place == "file":
        return cf.scan_parquet(path, columns=features, target=target)
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=asked.workers, threads_per_worker=1, memory_limit=asked.worker_memory)
    asked.client = Client(cluster)  # kept for as long as the fit runs
    return cf.from_dask(dd.read_parquet(path, columns=names, split_row_groups=1), target=target)


def main() -> None:
    """One fit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--limit", type=float, default=256.0)
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    parser.add_argument("--model", choices=["boosting", "tree", "regression-tree", "forest"], default="boosting")
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--place", choices=["file", "dask", "memory"], default="file")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--worker-memory", default="2GB")
    asked = parser.parse_args()
    import certifit as cf

    path = made(asked.folder / f"rows-and-scores-{asked.rows}-{asked.columns}.parquet", asked.rows, asked.columns)
    model = {
        "boosting": cf.GradientBoostingClassifier(asked.rounds),
        "tree": cf.DecisionTreeClassifier(max_bins=255, max_depth=asked.depth),
        "regression-tree": cf.DecisionTreeRegressor(max_bins=255, max_depth=asked.depth),
        "forest": cf.RandomForestClassifier(asked.trees, max_depth=asked.depth),
    }[asked.model]
    limit = 64e9 if asked.place == "memory" else asked.limit * 1e6
    with Peaks() as peaks, cf.memory(int(limit)):
        before, began = os.times(), time.perf_counter()
        model.fit(rows_of(asked, path))
        after, ended = os.times(), time.perf_counter()
    state = getattr(model, {"boosting": "boosting_", "forest": "forest_"}.get(asked.model, "tree_"))
    print(
        f"{asked.model} of {asked.rows:,} x {asked.columns}, {asked.place}: digest {digest(state)}, "
        f"{'certified' if model.certificate_.holds else 'NOT certified'}, {ended - began:.0f} s, cpu "
        f"{after.user + after.system - before.user - before.system:.0f} s, peaks: {peaks.words()}",
        flush=True,
    )


if __name__ == "__main__":
    main()
