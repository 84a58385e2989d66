"""Support vector machines beside libsvm (scikit-learn's SVC) and scikit-learn-intelex: seconds, gaps, accuracy, memory.

    OMP_NUM_THREADS=2 python -m benchmarks.svm ROW ...

    small        20,000 x 20, float64          single     the same rows in float32
    wide         20,000 x 784                  large      50,000 x 20, with the resident memory of each library
    folds        5 values of C x 5 folds on 10,000 x 20, beside their grid searches
    accuracy     skin_segmentation, mnist_5k, higgs_sample (Gaussian kernel), leukemia (linear), sms_spam (words)
    N            as small, of N rows

Gaussian kernel of the same width, C = 1; runs in turn, the least of each: seconds on the clock, and of all processors.
The first run of a process may pay for memory that the system has not handed out before (3 s for 1.4 GB of a virtual
machine): of one run each, that falls to the library that comes first.
The certificate is part of certifit's fit; `without it` is the fit less the time of the proof and of the float64 sums
that it needs. Gaps and violations of the conditions of the optimum are those of certifit's float64 code, on the
multipliers of every library.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import LinearSVC as TheirLinearSVC

import certifit as cf
from certifit.models.svm import base
from certifit.models.svm.certificate import certify_arrays
from certifit.models.svm.task import MarginTask, of_classes

COLUMNS, ROUNDS, CACHE = 20, 2, 2000
DATA = Path(__file__).parents[2] / "shared" / "data"
LABELS = {"skin_segmentation": "y", "mnist_5k": "label", "higgs_sample": "y", "leukemia": "y"}
MOST = 8000  # rows of a table that are fitted and asked for


@dataclass
class Seconds:
    """Of one run: on the clock, and of all processors; `proof` is the part of the clock that proofs took."""

    clock: float = np.inf
    cpu: float = np.inf
    proof: float = np.nan


@contextmanager
def proofs_timed(*places: tuple[object, str]) -> Iterator[list[float]]:
    """Seconds of the functions at these places, those within another counted once."""
    spent, depth = [0.0], [0]
    kept = [(owner, name, getattr(owner, name)) for owner, name in places]

    def timed(call: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **named: object) -> object:
            began, depth[0] = time.perf_counter(), depth[0] + 1
            try:
                return call(*arguments, **named)
            finally:
                depth[0] -= 1
                spent[0] += time.perf_counter() - began if depth[0] == 0 else 0.0

        return run

    for owner, name, call in kept:
        setattr(owner, name, timed(call))
    try:
        yield spent
    finally:
        for owner, name, call in kept:
            setattr(owner, name, call)


def timed(
    runs: dict[str, Callable[[], object]], rounds: int = ROUNDS, proofs: tuple[tuple[object, str], ...] = ()
) -> tuple[dict[str, Seconds], dict[str, object]]:
    """The least seconds of each run, and what it returned last."""
    seconds = {name: Seconds() for name in runs}
    results: dict[str, object] = {}
    for _ in range(rounds):
        for name, run in runs.items():
            with proofs_timed(*proofs) as proof:
                clock, cpu = time.perf_counter(), time.process_time()
                results[name] = run()
                clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
            if clock < seconds[name].clock:
                seconds[name] = Seconds(clock, min(cpu, seconds[name].cpu), proof[0])
    return seconds, results


def told(label: str, name: str, seconds: dict[str, Seconds], more: str) -> None:
    """A line: seconds of one library, and how many times certifit's they are, by the clock and by processors."""
    its, ours = seconds[name], seconds["certifit"]
    if name == "certifit":
        ratio = f"without proof {its.clock - its.proof:.2f} s"
    else:
        bare = its.clock / (ours.clock - ours.proof)
        ratio = f"{its.clock / ours.clock:.2f}x, by CPU {its.cpu / ours.cpu:.2f}x, without proof {bare:.2f}x"
    print(f"{label:>16}  {name:10} {its.clock:7.2f} s  CPU {its.cpu:7.2f} s  {ratio:48} {more}", flush=True)


def problem(n_rows: int, n_columns: int = COLUMNS) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of a smooth boundary, a tenth of the labels noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3]
    return X, np.where(score + 0.5 * rng.standard_normal(n_rows) > 0, 1, -1)


def peers() -> dict[str, type]:
    """What is installed."""
    found = {"libsvm": TheirSVC}
    try:
        from sklearnex.svm import SVC as IntelSVC
    except ImportError:
        return found
    return found | {"sklearnex": IntelSVC}


def width_of(X: np.ndarray) -> float:
    return float(np.sqrt(X.shape[1] * X.astype(np.float64).var() / 2))


def fits(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], object]]:
    """The fit of every library."""
    width = width_of(X)
    kernel, gamma = cf.kernels.Gaussian(width), 1 / (2 * width**2)
    runs: dict[str, Callable[[], object]] = {"certifit": lambda: cf.SVC(kernel=kernel, cache_size=CACHE).fit(X, y)}
    for name, peer in peers().items():
        runs[name] = lambda peer=peer: peer(gamma=gamma, cache_size=CACHE).fit(X, y)
    return runs


def race(
    n_rows: int, n_columns: int = COLUMNS, dtype: type = np.float64, rounds: int = ROUNDS, but: tuple[str, ...] = ()
) -> None:
    """Fits of the same problem; but: libraries that are left out."""
    both, labels = problem(n_rows + 2000, n_columns)
    X, y = np.ascontiguousarray(both[:n_rows], dtype=dtype), labels[:n_rows]
    runs = {name: run for name, run in fits(X, y).items() if name not in but}
    seconds, models = timed(runs, rounds, ((base, "certify"), (MarginTask, "values"), (MarginTask, "near_values")))
    machine = of_classes(y.astype(float), np.arange(n_rows), np.ones(n_rows))
    kernel, rows = cf.kernels.Gaussian(width_of(X)), X.astype(np.float64)
    for name, model in models.items():
        a = np.zeros(n_rows)
        a[model.support_] = np.abs(np.ravel(model.dual_coef_))
        judged = certify_arrays(kernel, rows, machine, np.clip(a, 0, 1), float(np.ravel(model.intercept_)[0]), 1e-4)
        accuracy = np.mean(model.predict(both[n_rows:].astype(dtype)) == labels[n_rows:])
        more = f"gap {judged.value:.1e}  violation {judged.violation:.1e}  support {len(model.support_):6,}"
        told(f"{n_rows:,} x {n_columns}", name, seconds, f"{more}  accuracy {accuracy:.4f}")


def resident(n_rows: int) -> None:
    """Resident memory of a process that makes the rows and fits one library."""
    for name in ("certifit", *peers()):
        if name == "libsvm":
            continue
        command = [sys.executable, "-m", "benchmarks.svm", f"resident:{name}:{n_rows}"]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout, end="", flush=True)


def peak() -> float:
    """Megabytes that this process was resident at most; getrusage tells those of its parent where they were more."""
    told = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return float(told.split()[0]) / 1024


def resident_of(name: str, n_rows: int) -> None:
    small, of_small = problem(200)
    fits(small, of_small)[name]()  # what is imported at the first fit is no memory of a fit
    X, y = problem(n_rows)
    run, before = fits(X, y)[name], peak()
    run()
    after = peak()
    print(f"{n_rows:,} x {COLUMNS}  {name:10} resident {after:,.0f} MB at most, {after - before:,.0f} of it by the fit")


def folds(n_rows: int) -> None:
    """C = 0.01 to 100 of a row on five folds; one run of each, accuracies of cross-validation side by side."""
    X, y = problem(n_rows)
    width = width_of(X)
    kernel, gamma = cf.kernels.Gaussian(width), 1 / (2 * width**2)
    cv, values = StratifiedKFold(5, shuffle=True, random_state=0), [0.01, 0.1, 1.0, 10.0, 100.0]
    alphas = [cf.alpha_from_C(C, n_rows * 4 // 5) for C in values]
    model = cf.SVC(kernel=kernel, cache_size=CACHE)
    runs: dict[str, Callable[[], object]] = {
        "certifit": lambda: cf.CrossValidated(model, {"alpha": alphas}, cv=cv).fit(X, y)
    }
    for name, peer in peers().items():
        if name == "libsvm":
            continue
        grid = GridSearchCV(peer(gamma=gamma, cache_size=CACHE), {"C": values}, cv=cv)
        runs[name] = lambda grid=grid: grid.fit(X, y)
    seconds, found = timed(runs, 1, ((base, "certify"),))
    for name, search in found.items():
        means = " ".join(f"{mean:.4f}" for mean in search.cv_results_["mean_test_score"])
        told(f"folds {n_rows:,}", name, seconds, f"accuracy {means}")


def accuracy(name: str) -> None:
    """Right rows among those that were not seen, C = 1 of a row, of every library."""
    frame = pd.read_parquet(DATA / name / f"{name}.parquet").drop(columns="split", errors="ignore")
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:MOST]]
    half = len(frame) // 2
    if name == "sms_spam":
        X, y = CountVectorizer(binary=True).fit_transform(frame["text"]).astype(float), frame["label"].to_numpy()
        # Without an intercept, which liblinear penalises.
        ours = cf.LinearSVC(1 / half, "hinge", fit_intercept=False)
        theirs = TheirLinearSVC(loss="hinge", fit_intercept=False)
        models = {"certifit": ours, "liblinear": theirs}
    else:
        y, X = frame[LABELS[name]].to_numpy(), frame.drop(columns=LABELS[name]).to_numpy(dtype=float)
        spread = X[:half].std(axis=0)
        X = (X - X[:half].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        models = {"certifit": cf.SVC(1 / half)} | {peer: machine() for peer, machine in peers().items()}
        if name == "leukemia":
            hard = cf.HardMarginSVC(kernel=cf.kernels.Linear()).fit(X, y)
            print(f"leukemia, all rows: separable, margin {hard.margin_:.6g}; {hard.certificate_.sentences()[0]}")
            models = {"certifit": cf.SVC(1 / half, kernel=cf.kernels.Linear())}
            models |= {peer: machine(kernel="linear") for peer, machine in peers().items()}
    shares = {label: model.fit(X[:half], y[:half]).score(X[half:], y[half:]) for label, model in models.items()}
    proven = f"proven within {models['certifit'].certificate_.value:.1e}"
    print(f"{name:>18}  " + "  ".join(f"{label} {share:.4f}" for label, share in shares.items()) + f"  {proven}")


def large() -> None:
    race(50_000, rounds=1, but=("libsvm",))
    resident(50_000)


def accuracies() -> None:
    for name in (*LABELS, "sms_spam"):
        accuracy(name)


ROWS: dict[str, Callable[[], None]] = {
    "small": lambda: race(20_000),
    "single": lambda: race(20_000, dtype=np.float32, but=("libsvm",)),
    "wide": lambda: race(20_000, 784, but=("libsvm",)),
    "large": large,
    "folds": lambda: folds(10_000),
    "accuracy": accuracies,
}


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    for argument in arguments or list(ROWS):
        if argument.startswith("resident:"):
            resident_of(argument.split(":")[1], int(argument.split(":")[2]))
        elif argument.isdigit():
            race(int(argument))
        else:
            ROWS[argument]()


if __name__ == "__main__":
    main(sys.argv[1:])
