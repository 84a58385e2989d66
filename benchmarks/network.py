"""Networks beside scikit-learn and torch: wall and CPU seconds of runs that take turns, and accuracy on new rows.

    OMP_NUM_THREADS=2 python -m benchmarks.network [large] [small] [tables] [commands] [file] [--rounds 3] [--seeds 3]

large: Fashion-MNIST (Debian's dataset-fashion-mnist; without it 60,000 made rows), layers 784-100-100-10, float32,
batches of 200, Adam with step 1e-3, 10 epochs. small: 1,000 rows of 20 columns, layers 20-32-1, 200 epochs. torch has
its fused Adam, rows shuffled once per epoch and batches as views of them; scikit-learn gets float32. Our fit has its
certificate inside. tables: 30 epochs with the defaults on four tables of shared/data, a quarter of the rows held out.
commands: `certifit fit --model network` and `--model local` on tables of shared/data, a quarter of the rows set aside.
file: two epochs on a Parquet file of 1.6 GB with 256 MB allowed, in a process of its own, and the same in memory.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

import certifit as cf
from benchmarks.turns import in_turns

FASHION = Path("/usr/share/datasets/fashion-mnist")
THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))


@dataclass(frozen=True)
class Race:
    """Rows, layers and epochs."""

    name: str
    X: np.ndarray
    y: np.ndarray
    new_X: np.ndarray
    new_y: np.ndarray
    hidden: tuple[int, ...]
    epochs: int


def large() -> Race:
    """60,000 pictures."""
    if FASHION.exists():
        X, new_X = (_images(f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
        y, new_y = (_labels(f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k"))
        return Race("large, Fashion-MNIST", X, y, new_X, new_y, (100, 100), 10)
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 784))
    y = rng.integers(0, 10, 70_000)
    X = (0.1 * centres[y] + rng.normal(size=(70_000, 784))).astype(np.float32)
    return Race("large, made", X[:60_000], y[:60_000], X[60_000:], y[60_000:], (100, 100), 10)


def _images(name: str) -> np.ndarray:
    pixels = np.frombuffer(gzip.decompress((FASHION / name).read_bytes()), dtype=np.uint8, offset=16)
    return (pixels.reshape(-1, 784) / np.float32(255)).astype(np.float32)


def _labels(name: str) -> np.ndarray:
    return np.frombuffer(gzip.decompress((FASHION / name).read_bytes()), dtype=np.uint8, offset=8).astype(np.int64)


def small() -> Race:
    """1,000 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 20)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) > 0).astype(np.int64)
    return Race("small", X[:1_000], y[:1_000], X[1_000:], y[1_000:], (32,), 200)


def ours(race: Race, seed: int) -> float:
    """Accuracy on new rows."""
    model = cf.MLPClassifier(
        race.hidden, batch_size=200, max_iter=race.epochs, least_fall=0.0, standardize=False, random_state=seed
    )
    model.fit(race.X, race.y)
    assert model.certificate_.holds
    return float(model.score(race.new_X, race.new_y))


def scikit_learn(race: Race, seed: int) -> float:
    """Accuracy on new rows."""
    from sklearn.neural_network import MLPClassifier

    model = MLPClassifier(
        race.hidden, batch_size=200, max_iter=race.epochs, tol=0.0, n_iter_no_change=race.epochs, random_state=seed
    )
    return float(model.fit(race.X, race.y).score(race.new_X, race.new_y))


def torch(race: Race, seed: int) -> float:
    """Accuracy on new rows."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(THREADS)
    sizes = (race.X.shape[1], *race.hidden, int(race.y.max()) + 1)
    layers: list[torch.nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    X, y = torch.from_numpy(race.X), torch.from_numpy(race.y)
    for _ in range(race.epochs):
        order = torch.randperm(len(X))
        rows, classes = X[order], y[order]
        for begin in range(0, len(X), 200):
            optimiser.zero_grad(set_to_none=True)
            scores = network(rows[begin : begin + 200])
            torch.nn.functional.cross_entropy(scores, classes[begin : begin + 200]).backward()
            optimiser.step()
    with torch.no_grad():
        return float((network(torch.from_numpy(race.new_X)).argmax(1).numpy() == race.new_y).mean())


RIVALS: dict[str, Callable[[Race, int], float]] = {"certifit": ours, "scikit-learn": scikit_learn, "torch": torch}


def run(race: Race, rounds: int, seeds: int) -> None:
    """A line per library, and the ratio to the faster of the others."""
    at = {"seed": 0}
    accuracy: dict[str, list[float]] = {name: [] for name in RIVALS}

    def once(name: str) -> Callable[[], None]:
        return lambda: accuracy[name].append(RIVALS[name](race, at["seed"]))

    walls, cpus = {name: np.inf for name in RIVALS}, {name: np.inf for name in RIVALS}
    for k in range(max(rounds, seeds)):
        at["seed"] = k % seeds
        for name, timed in in_turns({name: once(name) for name in RIVALS}, 1).items():
            walls[name], cpus[name] = min(walls[name], timed.wall), min(cpus[name], timed.cpu)
    for name in RIVALS:
        mean = float(np.mean(accuracy[name][:seeds]))
        print(f"{race.name:22} {name:12} {walls[name]:8.3f} s, {cpus[name]:8.3f} s of CPU, {100 * mean:.2f} % right")
    wall, cpu = (min(v for k, v in times.items() if k != "certifit") / times["certifit"] for times in (walls, cpus))
    print(f"{race.name:22} the faster of the others takes {wall:.2f}x our time, {cpu:.2f}x our CPU")


# table -> target, columns that are left out, whether it has classes
TABLES: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "california_housing": ("median_house_value", (), False),
    "bike_sharing": ("cnt", ("casual", "registered", "instant", "dteday"), False),
    "mnist_5k": ("label", (), True),
    "adult": ("income", (), True),
}
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def tables() -> None:
    """R2 or accuracy on new rows, and CPU seconds of the fit."""
    import pandas as pd
    from sklearn import neural_network
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    for name, (target, left_out, has_classes) in TABLES.items():
        frame = pd.read_parquet(DATA / name / f"{name}.parquet").drop(columns=list(left_out), errors="ignore")
        y = frame.pop(target).to_numpy()
        columns = pd.get_dummies(frame, drop_first=True, dtype=float)
        X = columns.fillna(columns.mean()).to_numpy(float)
        rows, new_rows, y, new_y = train_test_split(X, y, test_size=0.25, random_state=0)
        kind = "MLPClassifier" if has_classes else "MLPRegressor"
        scaler = StandardScaler().fit(rows)
        centre, spread = (0.0, 1.0) if has_classes else (y.mean(), y.std())
        ours = getattr(cf, kind)(max_iter=30)
        theirs = getattr(neural_network, kind)(max_iter=30, random_state=0)
        their_y, their_new_y = (y, new_y) if has_classes else ((part - centre) / spread for part in (y, new_y))
        timed = in_turns(
            {
                "certifit": partial(ours.fit, rows, y),
                "scikit-learn": partial(theirs.fit, scaler.transform(rows), their_y),
            },
            1,
        )
        scores = ours.score(new_rows, new_y), theirs.score(scaler.transform(new_rows), their_new_y)
        for (library, run), score in zip(timed.items(), scores, strict=True):
            print(f"{name:22} {library:12} {run.cpu:8.3f} s of CPU, {'right' if has_classes else 'R2'} {score:.3f}")


WEATHER = "season,yr,mnth,hr,holiday,weekday,workingday,weathersit,temp,atemp,hum,windspeed"
# file of shared/data -> target, models, and other options of `certifit fit`
COMMANDS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "classics_small/mcycle.csv": ("accel", ("network", "local"), ()),
    "mnist_5k/mnist_5k.parquet": ("label", ("network",), ()),
    "california_housing/california_housing.parquet": ("median_house_value", ("network", "local"), ()),
    "adult/adult.parquet": ("income", ("network",), ()),
    "bike_sharing/bike_sharing.parquet": ("cnt", ("network", "local"), ("--columns", WEATHER)),
}


def commands() -> None:
    """The score on the rows set aside, beside that of a constant, and seconds of the whole command with its report."""
    heads = ("file", "model", "measure on new rows", "value", "a constant", "proven", "CPU seconds")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name, (target, models, options) in COMMANDS.items():
        for model in models:
            with tempfile.TemporaryDirectory() as folder:
                call = [sys.executable, "-W", "ignore", "-m", "certifit", "fit", str(DATA / name), "-t", target, "-q"]
                call += ["--model", model, "--cv", "0", "--holdout", "0.25", "-o", f"{folder}/out", *options]
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                code = subprocess.run(call, check=False, stderr=subprocess.DEVNULL).returncode
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                assert code in (0, 1), f"{name}, {model}: exit code {code}"
                held = json.loads(Path(folder, "out", "report.json").read_text())["validation"]["holdout"]
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            values = f"{held['measure']} | {held['value']:.4g} | {held['baseline']:.4g}"
            print(
                f"| {Path(name).name} | {model} | {values} | {'yes' if code == 0 else 'no'} | {seconds:.1f} |",
                flush=True,
            )


FILE_ROWS, FILE_COLUMNS, GROUP_ROWS, ALLOWED = 2_000_000, 100, 100_000, 256e6
PARAMETERS = {"hidden_layer_sizes": (32,), "batch_size": 500, "max_iter": 2, "least_fall": 0.0}


def file() -> None:
    """Peak memory and seconds of a fit to a file larger than the memory allowed; whether the bits are those in memory.

    The peak is that of the whole process, its imports and its reading included.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _write(path)
        print(f"file: {FILE_ROWS:,} rows of {FILE_COLUMNS} columns, {path.stat().st_size / 1e9:.2f} GB")
        from_file, in_memory = (_in_a_process(way, path) for way in ("file", "memory"))
    is_same = from_file[0] == in_memory[0]
    for name, (_, peak, seconds) in {"from the file": from_file, "in memory": in_memory}.items():
        print(f"{name:14} peak {peak / 1e6:6.0f} MB, {seconds:6.1f} s of CPU")
    print(
        f"allowed: {ALLOWED / 1e6:.0f} MB beside the process; the bits are {'the same' if is_same else 'NOT THE SAME'}"
    )


def _write(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, names = np.random.default_rng(0), [f"x{j}" for j in range(FILE_COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in (*names, "y")])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(FILE_ROWS // GROUP_ROWS):
            X = rng.normal(size=(GROUP_ROWS, FILE_COLUMNS))
            y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=GROUP_ROWS)
            writer.write_table(pa.table([*X.T, y], schema=schema))


def _in_a_process(way: str, path: Path) -> tuple[str, float, float]:
    """Digest of the parameters, peak bytes, CPU seconds."""
    call = [sys.executable, "-W", "ignore", "-m", "benchmarks.network", way + "-child", str(path)]
    digest, peak, seconds = subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()
    return digest, float(peak), float(seconds)


def _child(way: str, path: str) -> None:
    began, scan = time.process_time(), cf.scan_parquet(path, target="y")
    model = cf.MLPRegressor(**PARAMETERS)
    if way == "file-child":
        with cf.memory(ALLOWED):
            model.fit(scan)
    else:
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        model.fit(np.column_stack([table[name] for name in table.column_names[:-1]]), table["y"].to_numpy())
    assert model.certificate_.holds
    digest = hashlib.sha256(model.parameters_.tobytes()).hexdigest()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(digest, peak, time.process_time() - began)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1].endswith("-child"):
        _child(*sys.argv[1:])
        sys.exit()
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("races", nargs="*", default=["large", "small"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.races:
        if name in ("tables", "commands", "file"):
            {"tables": tables, "commands": commands, "file": file}[name]()
            continue
        run({"large": large, "small": small}[name](), options.rounds, options.seeds)
