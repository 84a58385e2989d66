"""Tables of unlike shapes: small, wide, long, and texts; through Python and through the command line.

    python -m benchmarks.shapes [SHAPE ...] [--large] [--python] [--cap SECONDS] [--data FOLDER] [--out FILE.jsonl]
    python -m benchmarks.shapes --curves FILE.svg [--out FILE.jsonl]

Through Python: one fit or search of certifit and of scikit-learn, the minimum of some turns. Through the command line:
`certifit fit`, its report and certificate included, and `benchmarks/shapes_script.py`, which compares those models of
scikit-learn that `certifit fit` compared, by ten folds; those that `certifit fit` stopped after some folds too. Every
figure is of a process of its own: CPU and wall seconds, peak memory (of the command line with its imports; of Python
without their time). --large adds 1e6 x 50, 1e7 x 20 and the CSV files of 1e6 rows. --python leaves the command line
out: the script takes an hour on some shapes. --cap ends a process of the command line after so many CPU seconds, and
its line says so. --curves draws what `certifit fit` costs against rows, columns, classes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

OURS, THEIRS = "certifit", "scikit-learn"
FOLDS = 5


@dataclass(frozen=True)
class Shape:
    """A table. write: makes it as a file in a folder. task: what Python fits, by library. turns: runs, of which the
    quickest is told.

    task None: Python is not raced on it. goal: what the script compares models of; None: the command line is not.
    """

    write: Callable[[Path, Path], Path]
    task: Callable[[Path], dict[str, Callable[[], Any]]] | None
    goal: str | None = None
    options: tuple[str, ...] = ()
    turns: int = 3
    is_large: bool = False


@dataclass(frozen=True)
class Cell:
    """Figures of one process."""

    shape: str
    way: str
    library: str
    cpu: float
    wall: float
    megabytes: float
    code: int
    load: float


def quantity(n_rows: int, n_columns: int, kind: str = "csv") -> Callable[[Path, Path], Path]:
    """y is a sum of ten columns and noise."""

    def write(folder: Path, data: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / f"table.{kind}"
        random, schema, writer = np.random.default_rng(0), None, None
        for begin in range(0, n_rows, 1_000_000):  # 1e7 rows are not held together
            X = random.standard_normal((min(1_000_000, n_rows - begin), n_columns)).round(4)
            y = X[:, :10].sum(axis=1) + random.standard_normal(len(X))
            columns = {f"x{j}": X[:, j] for j in range(n_columns)} | {"y": y.round(4)}
            if kind == "csv":
                import pandas as pd

                pd.DataFrame(columns).to_csv(path, index=False)
                continue
            table = pa.table(columns)
            schema = table.schema if schema is None else schema
            writer = pq.ParquetWriter(path, schema) if writer is None else writer
            writer.write_table(table)
        if writer is not None:
            writer.close()
        return path

    return write


def classes(n_rows: int, n_columns: int, n_classes: int) -> Callable[[Path, Path], Path]:
    """Gaussian classes whose means differ in twenty columns."""

    def write(folder: Path, data: Path) -> Path:
        import pandas as pd

        random = np.random.default_rng(0)
        y = random.permutation(np.arange(n_rows) % n_classes)
        X = random.standard_normal((n_rows, n_columns))
        X[:, :20] += random.standard_normal((n_classes, min(20, n_columns)))[y]
        table = pd.DataFrame(X.round(5), columns=[f"x{j}" for j in range(n_columns)])
        table["y"] = np.array([f"class {k}" for k in range(n_classes)])[y]
        table.to_csv(folder / "table.csv", index=False)
        return folder / "table.csv"

    return write


def sentences(folder: Path, data: Path) -> Path:
    """Ten thousand sentences of films, subjective or not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(data / "subjectivity/subjectivity.parquet")
    text, label = table.column_names[:2] if table.schema.field(0).type == pa.string() else table.column_names[1::-1]
    pq.write_table(pa.table({"text": table[text], "y": table[label].cast(pa.string())}), folder / "table.parquet")
    return folder / "table.parquet"


def texts(n_rows: int, n_classes: int, n_words: int = 30_000) -> Callable[[Path, Path], Path]:
    """Texts of 5 to 39 words, less and less frequent ones; every class has its own frequencies."""

    def write(folder: Path, data: Path) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        random = np.random.default_rng(0)
        y = random.integers(0, n_classes, n_rows)
        shares = np.exp(0.7 * random.normal(size=(n_classes, n_words))) / np.arange(1, n_words + 1)
        sums = (shares / shares.sum(axis=1, keepdims=True)).cumsum(axis=1)
        drawn = (np.searchsorted(sums[k], random.random(random.integers(5, 40))) for k in y)
        columns = {"text": [" ".join(f"w{j}" for j in words) for words in drawn], "y": [f"class {k}" for k in y]}
        pq.write_table(pa.table(columns), folder / "table.parquet")
        return folder / "table.parquet"

    return write


def mixed(is_classes: bool, n_rows: int = 1_000_000) -> Callable[[Path, Path], Path]:
    """18 numbers, a category, a flag; a quantity or two classes."""

    def write(folder: Path, data: Path) -> Path:
        import pyarrow as pa
        from pyarrow import csv

        random = np.random.default_rng(0)
        X, kind, flag = (
            random.standard_normal((n_rows, 18)).round(4),
            random.integers(0, 8, n_rows),
            random.random(n_rows) < 0.3,
        )
        score = 0.5 * X[:, :6].sum(axis=1) + 0.2 * kind + flag
        columns = {f"x{j}": X[:, j] for j in range(18)} | {"kind": np.array(list("abcdefgh"))[kind], "flag": flag}
        noisy = score + (random.logistic(size=n_rows) if is_classes else random.standard_normal(n_rows))
        columns["y"] = np.where(noisy > 1, "yes", "no") if is_classes else noisy.round(4)
        csv.write_csv(pa.table(columns), folder / "table.csv")
        return folder / "table.csv"

    return write


def _columns(path: Path) -> tuple[Any, Any]:
    import pandas as pd

    table = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    return table.drop(columns="y").to_numpy(), table["y"].to_numpy()


def least_squares(path: Path) -> dict[str, Callable[[], Any]]:
    """One fit."""
    from sklearn.linear_model import LinearRegression

    import certifit as cf

    X, y = _columns(path)
    return {OURS: lambda: cf.LinearRegression().fit(X, y), THEIRS: lambda: LinearRegression().fit(X, y)}


def ridge(path: Path) -> dict[str, Callable[[], Any]]:
    """One fit of a penalty of 1 on the sum of squares."""
    from sklearn.linear_model import Ridge

    import certifit as cf

    X, y = _columns(path)
    return {OURS: lambda: cf.Ridge().fit(X, y), THEIRS: lambda: Ridge().fit(X, y)}


def ridge_search(path: Path) -> dict[str, Callable[[], Any]]:
    """Thirty penalties by five folds."""
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV

    import certifit as cf

    X, y = _columns(path)
    grid = {"alpha": np.geomspace(1e-3, 1e3, 30)}
    return {
        OURS: lambda: cf.CrossValidated(cf.Ridge(), {"alpha": grid["alpha"] / len(y)}, cv=FOLDS).fit(X, y),
        THEIRS: lambda: GridSearchCV(Ridge(), grid, cv=FOLDS).fit(X, y),
    }


def logistic_search(path: Path) -> dict[str, Callable[[], Any]]:
    """Ten penalties by five folds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    import certifit as cf

    X, y = _columns(path)
    C = np.geomspace(1e-3, 1e3, 10)
    return {
        OURS: lambda: cf.CrossValidated(cf.LogisticRegression(), {"alpha": 1 / (C * len(y))}, cv=FOLDS).fit(X, y),
        THEIRS: lambda: GridSearchCV(LogisticRegression(max_iter=1000), {"C": C}, cv=FOLDS).fit(X, y),
    }


def words(path: Path) -> dict[str, Callable[[], Any]]:
    """Sentences as columns of their words, and one fit."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression

    import certifit as cf

    X, y = _columns(path)
    texts = X[:, 0].tolist()
    return {
        OURS: lambda: cf.LogisticRegression().fit(cf.TextBinarizer().fit_transform(texts), y),
        THEIRS: lambda: LogisticRegression(max_iter=1000).fit(CountVectorizer(binary=True).fit_transform(texts), y),
    }


def from_parquet(path: Path) -> dict[str, Callable[[], Any]]:
    """Least squares of a file: certifit in one pass over it, scikit-learn of the table that pandas holds."""
    from sklearn.linear_model import LinearRegression

    import certifit as cf

    def theirs() -> Any:
        X, y = _columns(path)
        return LinearRegression().fit(X, y)

    return {OURS: lambda: cf.LinearRegression().fit(cf.scan_parquet(path, target="y")), THEIRS: theirs}


SHAPES = {
    "150 x 4": Shape(quantity(150, 4), least_squares, "quantity", turns=50),
    "2,000 x 100": Shape(quantity(2000, 100), ridge_search, "quantity", turns=20),
    "80 x 2,300, 4 classes": Shape(classes(80, 2300, 4), logistic_search, "classes", ("--task", "classes")),
    "80 x 100, 4 classes": Shape(classes(80, 100, 4), logistic_search, "classes", ("--task", "classes")),
    "80 x 200, 4 classes": Shape(classes(80, 200, 4), logistic_search, "classes", ("--task", "classes")),
    "80 x 400, 4 classes": Shape(classes(80, 400, 4), logistic_search, "classes", ("--task", "classes")),
    "500 x 20,000": Shape(quantity(500, 20_000, "parquet"), ridge, "quantity"),
    "10,000 sentences": Shape(sentences, words, "texts", ("--model", "logistic", "--texts", "text")),
    "10,000 texts, 8 classes": Shape(texts(10_000, 8), words, "texts", ("--model", "logistic", "--texts", "text")),
    "10,000 sentences, all models": Shape(sentences, None, "texts"),
    "1e6 x 50": Shape(quantity(1_000_000, 50, "parquet"), least_squares, "quantity", turns=30, is_large=True),
    "1e6 rows of CSV": Shape(mixed(False), None, "quantity", is_large=True),
    "1e6 rows of CSV, 2 classes": Shape(mixed(True), None, "classes", is_large=True),
    "1e7 x 20, Parquet": Shape(quantity(10_000_000, 20, "parquet"), from_parquet, "quantity", is_large=True),
}


def written(write: Callable[[Path, Path], Path], folder: Path, data: Path) -> Path:
    """The table, made by a process of its own.

    Linux counts what a process holds when it starts a command as memory of that command: the one that starts and
    measures commands must stay small.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def make() -> None:
        try:
            sender.send(write(folder, data))
        except FileNotFoundError as error:
            sender.send(error)

    child = context.Process(target=make)
    child.start()
    sender.close()
    made = receiver.recv()
    child.join()
    if isinstance(made, FileNotFoundError):
        raise made
    return Path(made)


def timed(shape: Shape, path: Path, library: str) -> tuple[float, float]:
    """CPU and wall seconds of the quickest turn, after one that warms up."""
    assert shape.task is not None
    work = shape.task(path)[library]
    best = (np.inf, np.inf)
    for turn in range(shape.turns + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        took = time.process_time() - cpu, time.perf_counter() - wall
        best = best if turn == 0 else (min(best[0], took[0]), min(best[1], took[1]))
    return best


def in_python(name: str, path: Path, library: str) -> Cell:
    """A process that fits by one library."""
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.shapes", "--cell", name, library, str(path)],
        stdout=subprocess.PIPE,
    )
    out, _ = child.communicate()
    cpu, wall, megabytes = json.loads(out) if child.returncode == 0 else (np.nan, np.nan, np.nan)
    return Cell(name, "Python", library, cpu, wall, megabytes, child.returncode, os.getloadavg()[0])


def on_command_line(name: str, path: Path, library: str, cap: int | None = None) -> Cell:
    """`certifit fit`, or the script with the models that it compared just before."""
    shape = SHAPES[name]
    if library == OURS:
        return command_line(name, path, shape.options, cap)
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.shapes_script", str(path), "y", str(shape.goal)]
    return watched(name, THEIRS, [*command, ";".join(compared(path))], cap)


def command_line(name: str, path: Path, options: Sequence[str], cap: int | None = None) -> Cell:
    """`certifit fit` of a table, its report in the folder beside it."""
    fit = [sys.executable, "-m", "certifit", "fit", str(path), "-t", "y", "-o", str(path.parent / "report")]
    return watched(name, OURS, [*fit, *options], cap)


def compared(path: Path) -> list[str]:
    """The models that `certifit fit` has compared, by its report, those among them that it stopped after some folds."""
    validation = json.loads((path.parent / "report" / "report.json").read_text())["validation"]
    stopped = [note.partition(" was stopped after ") for note in validation["notes"]]
    return [*(str(row["name"]) for row in validation["rows"]), *(name for name, is_there, _ in stopped if is_there)]


def watched(name: str, library: str, command: Sequence[str], cap: int | None = None) -> Cell:
    """A command of its own, with modules as an installation has them: compiled before. A first run compiles them.

    cap: CPU seconds after which the system ends it.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    if cap is not None:
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (cap, cap + 1))
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Cell(name, "command line", library, cpu, wall, usage.ru_maxrss / 1024, child.returncode, os.getloadavg()[0])


def shown(cell: Cell) -> str:
    """A line of the table."""
    end = "not done after this CPU time (--cap)" if cell.code == -signal.SIGXCPU else f"exit code {cell.code}"
    return (
        f"{cell.shape:24} {cell.way:13} {cell.library:13} CPU {cell.cpu:9.4f} s  wall {cell.wall:9.4f} s  "
        f"{cell.megabytes:6.0f} MB  {end}  load {cell.load:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"some of {'; '.join(SHAPES)}")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--python", action="store_true", help="through Python alone")
    parser.add_argument("--cap", type=int, metavar="SECONDS", help="CPU seconds that a process of the command line has")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--curves", type=Path, metavar="FILE.svg", help="draw the cost against the size instead")
    parser.add_argument("--cell", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        name, library, path = options.cell
        took = timed(SHAPES[name], Path(path), library)
        print(json.dumps([*took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
        return
    if options.curves:
        from .shapes_curves import run

        run(options.curves, options.out)
        return
    if unknown := set(options.shapes) - set(SHAPES):
        parser.error(f"unknown {sorted(unknown)}. Shapes are {'; '.join(SHAPES)}.")
    for name in options.shapes or [name for name, shape in SHAPES.items() if options.large or not shape.is_large]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = written(SHAPES[name].write, Path(folder), options.data)
            except FileNotFoundError as error:
                print(f"{name}: left out, its data are not there (--data): {error}")
                continue
            shape = SHAPES[name]
            ways: list[Callable[[str, Path, str], Cell]] = [in_python] if shape.task is not None else []
            ways += [partial(on_command_line, cap=options.cap)] if shape.goal is not None and not options.python else []
            for cell in (way(name, path, library) for way in ways for library in (OURS, THEIRS)):
                print(shown(cell), flush=True)
                if options.out:
                    with options.out.open("a") as file:
                        file.write(json.dumps(asdict(cell)) + "\n")


if __name__ == "__main__":
    main()
