"""Tables and files: ridge on fremtpl2 with its categories against the peers, and Parquet larger than a run.

    python -m benchmarks.tables categories     # certifit, one-hot + scikit-learn, glum's categorical matrices
    python -m benchmarks.tables parquet        # 1e7 x 20: memory, and passes against pyarrow's own reading time

fremtpl2 is looked for in shared/data beside the project folder. Runs are interleaved; the minimum of several counts.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FREMTPL2 = Path(__file__).resolve().parents[2] / "shared" / "data" / "fremtpl2" / "freq.parquet"
TARGET = "ClaimNb"
LEFT_OUT = ["IDpol", "ClaimAmount", "NbSev"]
ALPHA = 1e-3  # on the mean scale


def categories(repeats: int) -> None:
    if not FREMTPL2.exists():
        raise SystemExit(f"{FREMTPL2.name} is not there: the folder shared/data belongs beside the project folder.")
    table = pq.read_table(FREMTPL2).drop_columns(LEFT_OUT)
    frame = table.to_pandas()
    y = frame.pop(TARGET).to_numpy().astype(float)
    print(f"fremtpl2: {table.num_rows:,} rows, {frame.shape[1]} columns, ridge alpha {ALPHA:g}")
    fits: dict[str, Callable[[], tuple[np.ndarray, float]]] = {
        "certifit Ridge on the table": lambda: _certifit(table),
        "scikit-learn one-hot (sparse) + Ridge": lambda: _scikit_learn(frame, y, sparse=True),
        "scikit-learn one-hot (dense) + Ridge(cholesky)": lambda: _scikit_learn(frame, y, sparse=False),
        "glum, tabmat categories": lambda: _glum(frame, y),
    }
    _race(fits, repeats)


def _certifit(table: pa.Table) -> tuple[np.ndarray, float]:
    import certifit as cf

    source = cf.from_arrow(table, target=TARGET)
    model = cf.Ridge(alpha=ALPHA).fit(source)
    return model.predict(table.slice(0, 1000)), model.certificate_.value


def _scikit_learn(frame: Any, y: np.ndarray, *, sparse: bool) -> tuple[np.ndarray, float]:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    chosen = make_column_selector(dtype_include=["category", "object", "string"])
    one_hot = make_column_transformer(
        (OneHotEncoder(drop="first", sparse_output=sparse), chosen),
        remainder="passthrough",
        sparse_threshold=1.0 if sparse else 0.0,
    )
    ridge = Ridge(alpha=ALPHA * len(y), solver="auto" if sparse else "cholesky", tol=1e-10)
    model = make_pipeline(one_hot, ridge).fit(frame, y)
    return model.predict(frame.iloc[:1000]), float("nan")


def _glum(frame: Any, y: np.ndarray) -> tuple[np.ndarray, float]:
    import glum

    model = glum.GeneralizedLinearRegressor(family="normal", alpha=ALPHA, l1_ratio=0, drop_first=True)
    model.fit(frame, y)
    return model.predict(frame.iloc[:1000]), float("nan")


def _race(fits: dict[str, Callable[[], tuple[np.ndarray, float]]], repeats: int) -> None:
    wall: dict[str, list[float]] = {name: [] for name in fits}
    cpu: dict[str, list[float]] = {name: [] for name in fits}
    answers: dict[str, np.ndarray] = {}
    for _ in range(repeats):
        for name, fit in list(fits.items()):
            begin, begin_cpu = time.perf_counter(), time.process_time()
            try:
                answers[name], _ = fit()
            except ImportError as error:
                print(f"{name}: not run, {error}")
                del fits[name]
                continue
            wall[name].append(time.perf_counter() - begin)
            cpu[name].append(time.process_time() - begin_cpu)
    first = next(iter(fits))
    print("| fit | wall | ratio | CPU | CPU ratio | predictions differ by |\n| --- | --- | --- | --- | --- | --- |")
    for name in fits:
        difference = np.abs(answers[name] - answers[first]).max() / np.abs(answers[first]).max()
        print(
            f"| {name} | {min(wall[name]):.3f} s | {min(wall[name]) / min(wall[first]):.2f} | {min(cpu[name]):.3f} s "
            f"| {min(cpu[name]) / min(cpu[first]):.2f} | {difference:.0e} |"
        )


def parquet(n_rows: int, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _write(path, n_rows)
        child = os.fork()  # the writer's memory must not count
        if child == 0:
            _passes(path, repeats)
            os._exit(0)
        os.waitpid(child, 0)


def _write(path: Path, n_rows: int, n_columns: int = 20, group: int = 1_000_000) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(n_columns)]
    writer = None
    for begin in range(0, n_rows, group):
        X = rng.normal(size=(min(group, n_rows - begin), n_columns))
        y = X @ np.linspace(-1, 1, n_columns) + rng.normal(size=len(X))
        table = pa.table([*X.T.copy(), y], names=[*names, "y"])
        writer = writer or pq.ParquetWriter(path, table.schema, write_page_checksum=True, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _passes(path: Path, repeats: int) -> None:
    import certifit as cf
    from certifit.maps import TableEncoder
    from certifit.statistics.gram import Scaling, gram
    from certifit.statistics.residual import residual

    cf.LinearRegression().fit(np.ones((3, 1)), np.arange(3.0))  # libraries loaded before memory is looked at
    source = cf.scan_parquet(path, target="y")
    encoder = TableEncoder().fit_source(source)
    mapped = source.through(encoder)

    def read() -> None:
        # pre_buffer holds whole row groups: slower here, and 1.9 GB
        file = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
        for _ in file.iter_batches(batch_size=65_536):
            pass

    def anew() -> Any:  # what a source has surveyed it remembers
        return cf.scan_parquet(path, target="y")

    scaling = Scaling.of(mapped, centred=True, exact=False)
    nothing = np.zeros(mapped.n_features)
    runs = {
        "pyarrow reads the file": read,
        "survey": lambda: TableEncoder().fit_source(anew()),
        "Gram pass": lambda: gram(mapped, centred=True),
        "residual pass": lambda: residual(mapped, scaling, nothing + 0.1, 0.0, scaling.shift, nothing),
        "whole fit (survey, Gram, residuals)": lambda: cf.LinearRegression().fit(anew()),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    base = min(times["pyarrow reads the file"])
    print("| pass | wall | of reading |\n| --- | --- | --- |")
    for name, seconds in times.items():
        print(f"| {name} | {min(seconds):.2f} s | {min(seconds) / base:.2f} |")
    print(f"largest resident memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["categories", "parquet"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    options = parser.parse_args()
    if options.what == "categories":
        categories(options.repeats)
    else:
        parquet(options.rows, min(options.repeats, 3))


if __name__ == "__main__":
    main()
