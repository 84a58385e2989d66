"""Trees, forests and AdaBoost beside scikit-learn, its extension for Intel, snapml, LightGBM and XGBoost.

    python -m benchmarks.trees [RACE ...] [--rounds 2] [--threads 2] [--libraries certifit,snapml]
    python -m benchmarks.trees seeds [--rows 1000000] [--seeds 5] [--trees 10]        forests, seed by seed
    python -m benchmarks.trees seeds --tables --rows 5000 --trees 50 --seeds 80       each on rows of its own

All races take some 10 minutes on two quiet cores. Every fit has a process of its own, with all libraries in turn, and
the least of the runs counts; one that took more than 20 seconds is not repeated. Memory is what the process had at most
during the fit beyond what it had before, with the rows in place. Accuracy and AUC are those on rows that no fit has
seen. Libraries that are not installed are left out.

LightGBM's time grows with the square of the leaves of a tree (12 CPU seconds for 20 trees of 4,096 leaves, 50 for 20 of
16,384, of those 200,000 x 30): in `forest` its trees have at most 1,024 leaves where all others grow until leaves are
pure. In `coarse-forest` its leaves have at least 20 rows, those of the others 12: rows that are drawn with replacement
count once and stand for 1.6. Its single tree on bins would hold 16 GB of histograms for the leaves of `bins-1e6`; in
`coarse-bins` all have at most 12 levels.

One forest says little of how well forests predict: a race of forests prints the accuracy of its one seed and does not
judge it. `seeds` compares means, with the standard error of the difference in pairs; `scikit-learn-255-bins` is that
library's forest on columns that are cut into 255 bins first.

The number of rounds of AdaBoost is chosen by 10 folds on 5,000 rows, among five numbers: a grid search fits each of
them, we fit the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
ROUNDS = {"n_estimators": [5, 10, 20, 40, 80]}
LONG = 20.0  # seconds of a fit that is not repeated
ALIKE = 0.002  # of accuracy, or AUC
OURS = "certifit"
BINNED = "scikit-learn-255-bins"


def problem(n_rows: int, n_columns: int = 30, n_new: int = 50_000, seed: int = 1) -> Rows:
    """Two classes with interactions, discrete and skewed columns, and noise; some of the rows are for scoring."""
    rng = np.random.default_rng(seed)
    n = n_rows + n_new
    X = rng.standard_normal((n, n_columns))
    X[:, 10:15] = np.round(X[:, 10:15] * 2)
    X[:, 15:18] = np.exp(X[:, 15:18])
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] ** 2 - 0.5 + 0.7 * X[:, 4] * (X[:, 5] > 0)
    score += 0.3 * X[:, 10] - 0.4 * np.log(X[:, 15]) + 0.2 * X[:, 6:10].sum(axis=1)
    y = (score + 0.5 * rng.logistic(size=n) > 0).astype(np.int64)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


Call = tuple[str, dict[str, Any]]  # a class, and its parameters


@dataclass(frozen=True)
class Race:
    """A size, what each library is asked for, and the ratios of seconds that are wanted."""

    n_rows: int
    n_columns: int
    n_new: int
    calls: Callable[[int], dict[str, Call]]
    wanted: dict[str, float]
    memory: dict[str, float]  # wanted ratios of memory
    predicting: dict[str, float]  # wanted ratios of seconds of the prediction
    is_drawn: bool = False  # by a seed: accuracies of one fit are not compared


def _exact(threads: int) -> dict[str, Call]:
    boost = {"max_depth": 64, "min_child_weight": 0, "reg_lambda": 0, "learning_rate": 1.0, "n_estimators": 1}
    return {
        OURS: ("certifit:DecisionTreeClassifier", {}),
        "scikit-learn": ("sklearn.tree:DecisionTreeClassifier", {}),
        "XGBoost": ("xgboost:XGBClassifier", {**boost, "tree_method": "exact", "n_jobs": threads}),
        "snapml": ("snapml:DecisionTreeClassifier", {"n_jobs": threads, "use_histograms": False}),
    }


def _leaves(threads: int, n_leaves: int, least: int) -> dict[str, Any]:
    return {
        "num_leaves": n_leaves, "min_child_samples": least, "min_child_weight": 0.0, "n_jobs": threads, "verbose": -1,
    }  # fmt: skip


def _binned(threads: int) -> dict[str, Call]:
    whole = {"max_depth": 0, "min_child_weight": 0, "reg_lambda": 0, "learning_rate": 1.0, "n_estimators": 1}
    return {
        OURS: ("certifit:DecisionTreeClassifier", {"max_bins": 255}),
        "snapml": ("snapml:DecisionTreeClassifier", {"n_jobs": threads, "use_histograms": True, "hist_nbins": 255}),
        "XGBoost": ("xgboost:XGBClassifier", {**whole, "tree_method": "hist", "max_bin": 255, "n_jobs": threads}),
    }


def _coarse_bins(threads: int) -> dict[str, Call]:
    one = {"n_estimators": 1, "learning_rate": 1.0, "max_depth": 12}
    snapml = {"n_jobs": threads, "use_histograms": True, "hist_nbins": 255, "max_depth": 12}
    return {
        OURS: ("certifit:DecisionTreeClassifier", {"max_bins": 255, "max_depth": 12}),
        "snapml": ("snapml:DecisionTreeClassifier", snapml),
        "LightGBM": ("lightgbm:LGBMClassifier", {**_leaves(threads, 2**12, 1), **one}),
    }


DRAWN = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.632, "feature_fraction_bynode": 5 / 30}


def _forest(threads: int, n_trees: int = 100) -> dict[str, Call]:
    whole = {"max_depth": 0, "min_child_weight": 0, "reg_lambda": 0, "subsample": 0.632, "colsample_bynode": 5 / 30}
    trees = {"n_estimators": n_trees}
    return {
        OURS: ("certifit:RandomForestClassifier", trees),
        "scikit-learn": ("sklearn.ensemble:RandomForestClassifier", {**trees, "n_jobs": threads}),
        "scikit-learn-intelex": ("sklearnex.ensemble:RandomForestClassifier", {**trees, "n_jobs": threads}),
        "LightGBM": ("lightgbm:LGBMClassifier", {**trees, **_leaves(threads, 2**10, 1), **DRAWN}),
        "XGBoost": ("xgboost:XGBRFClassifier", {**trees, **whole, "max_bin": 255, "n_jobs": threads}),
    }


def _coarse_forest(threads: int) -> dict[str, Call]:
    trees = {"n_estimators": 100}
    ours = {**trees, "min_samples_leaf": 12}
    return {
        OURS: ("certifit:RandomForestClassifier", ours),
        "scikit-learn": ("sklearn.ensemble:RandomForestClassifier", {**ours, "n_jobs": threads}),
        "scikit-learn-intelex": ("sklearnex.ensemble:RandomForestClassifier", {**ours, "n_jobs": threads}),
        "LightGBM": ("lightgbm:LGBMClassifier", {**trees, **_leaves(threads, 2**13, 20), **DRAWN}),
    }


def _stumps(threads: int) -> dict[str, Call]:
    stumps = {"num_leaves": 2, "n_jobs": threads, "verbose": -1, "n_estimators": 200}
    return {
        OURS: ("certifit:AdaBoostClassifier", {"n_estimators": 200}),
        "scikit-learn": ("sklearn.ensemble:AdaBoostClassifier", {"n_estimators": 200}),
        "LightGBM": ("lightgbm:LGBMClassifier", stumps),
    }


def _folds(threads: int) -> dict[str, Call]:
    return {OURS: ("certifit:CrossValidated", {}), "scikit-learn": ("sklearn.model_selection:GridSearchCV", {})}


EXACT = {"scikit-learn": 12.0, "XGBoost": 2.0, "snapml": 2.0}
RACES = {
    "tree-100k": Race(100_000, 20, 200_000, _exact, EXACT, {}, {}),
    "tree-1e6": Race(1_000_000, 30, 200_000, _exact, EXACT, {}, {}),
    "bins-1e6": Race(1_000_000, 30, 200_000, _binned, {"snapml": 1.0}, {}, {}),
    "coarse-bins": Race(1_000_000, 30, 200_000, _coarse_bins, {"snapml": 1.0, "LightGBM": 1.0}, {}, {}),
    "forest": Race(
        200_000, 30, 1_000_000, _forest,
        {"scikit-learn": 5.0, "scikit-learn-intelex": 3.0, "LightGBM": 1.0},
        memory={"scikit-learn": 2.0}, predicting={"scikit-learn": 3.0}, is_drawn=True,
    ),
    "coarse-forest": Race(200_000, 30, 200_000, _coarse_forest, {"LightGBM": 1.0}, {}, {}, is_drawn=True),
    "adaboost": Race(100_000, 30, 200_000, _stumps, {"scikit-learn": 60.0, "LightGBM": 1.0}, {}, {}),
    "rounds": Race(5_000, 30, 200_000, _folds, {"scikit-learn": 50.0}, {}, {}),
}  # fmt: skip


def made(call: Call) -> Any:
    """The estimator of a call."""
    place, parameters = call
    module, name = place.split(":")
    if name == "CrossValidated":
        import certifit as cf

        return cf.CrossValidated(cf.AdaBoostClassifier(), ROUNDS, cv=10)
    if name == "GridSearchCV":
        from sklearn.ensemble import AdaBoostClassifier
        from sklearn.model_selection import GridSearchCV

        return GridSearchCV(AdaBoostClassifier(), ROUNDS, cv=10)
    if name == "BinnedForest":
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import KBinsDiscretizer

        bins = KBinsDiscretizer(255, encode="ordinal", strategy="quantile")
        return make_pipeline(bins, RandomForestClassifier(**parameters))
    return getattr(import_module(module), name)(**parameters)


def race(name: str, rounds: int, threads: int, libraries: str) -> None:
    """Print a line per library. libraries: those that run beside ours, all where it is empty."""
    that = RACES[name]
    calls = {
        library: call
        for library, call in that.calls(threads).items()
        if find_spec(call[0].split(":")[0].split(".")[0])
        and (not libraries or library in (OURS, *libraries.split(",")))
    }
    best: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for part, array in zip("XyZz", problem(that.n_rows, that.n_columns, that.n_new), strict=True):
            np.save(Path(folder, f"{part}.npy"), array)
        for turn in range(rounds):
            for library, call in calls.items():
                if turn and best[library]["wall"] > LONG:
                    continue
                run = in_a_process(call, folder, threads)
                best[library] = {key: min(value, best.get(library, run)[key]) for key, value in run.items()}
    print(
        f"\n{name}: {that.n_rows:,} x {that.n_columns}, {that.n_new:,} new rows, {threads} threads, load {load():.1f}"
    )
    heads = ("library", "fit s", "ratio", "cpu s", "ratio", "predict s", "ratio", "MB", "ratio", "accuracy", "AUC", "")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for library, run in best.items():
        ratios = {key: run[key] / max(best[OURS][key], 1e-9) for key in ("wall", "cpu", "predict", "memory")}
        print(
            f"| {library} | {run['wall']:.2f} | {ratios['wall']:.2f} | {run['cpu']:.2f} | {ratios['cpu']:.2f} "
            f"| {run['predict']:.2f} | {ratios['predict']:.2f} | {run['memory'] / 1e6:.0f} | {ratios['memory']:.2f} "
            f"| {run['accuracy']:.4f} | {run['auc']:.4f} | {verdict(that, library, ratios, run, best[OURS])} |",
            flush=True,
        )


def verdict(that: Race, library: str, ratios: dict[str, float], run: dict[str, float], ours: dict[str, float]) -> str:
    """What was wanted, and whether it was reached at equal quality."""
    words = []
    for key, wanted in (("wall", that.wanted), ("predict", that.predicting), ("memory", that.memory)):
        if library in wanted:
            is_met = ratios[key] >= wanted[library]
            words.append(f"{key} {wanted[library]:g}x {'met' if is_met else 'MISSED'}")
    if library != OURS and not that.is_drawn:
        is_as_good = max(ours[key] - run[key] for key in ("accuracy", "auc")) >= -ALIKE
        words.append("as good" if is_as_good else "NOT AS GOOD")
    return ", ".join(words)


def in_a_process(call: Call, folder: str, threads: int) -> dict[str, float]:
    """Seconds, bytes and quality of one fit."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.trees", "child", json.dumps(call), folder]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child(call: Call, folder: str) -> dict[str, float]:
    """One fit of the rows in a folder; a small one before it pays for what is imported late."""
    from sklearn.metrics import roc_auc_score

    X, y, new_X, new_y = (np.load(Path(folder, f"{part}.npy")) for part in "XyZz")
    made(call).fit(X[:400], y[:400])
    before = reset_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    model = made(call).fit(X, y)
    fitted = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "memory": float(peak() - before)}
    wall = time.perf_counter()
    chances = model.predict_proba(new_X)[:, 1]
    predicted = time.perf_counter() - wall
    accuracy, auc = float(np.mean((chances > 0.5) == new_y)), float(roc_auc_score(new_y, chances))
    return {**fitted, "predict": predicted, "accuracy": accuracy, "auc": auc}


def reset_peak() -> int:
    """Bytes held now; the peak begins here, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0
    return peak()


def peak() -> int:
    """The most bytes that were held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def load() -> float:
    """Processes that want to run."""
    return os.getloadavg()[0]


def seeds(n_rows: int, n_seeds: int, n_trees: int, libraries: str, threads: int, has_tables: bool) -> None:
    """Accuracy and AUC of forests by their seed: how far two equal ones are apart. has_tables: rows by the seed too."""
    from sklearn.metrics import roc_auc_score

    named = (OURS, *(libraries or "scikit-learn-intelex").split(","))
    calls = {library: call for library, call in _seeded(threads, n_trees).items() if library in named}
    scores: dict[str, list[tuple[float, float]]] = {library: [] for library in calls}
    for seed in range(n_seeds):
        if seed == 0 or has_tables:
            X, y, new_X, new_y = problem(n_rows, n_new=50_000 if has_tables else 200_000, seed=1 + seed)
        for library, (place, parameters) in calls.items():
            chances = made((place, {**parameters, "random_state": seed})).fit(X, y).predict_proba(new_X)[:, 1]
            scores[library].append((float(np.mean((chances > 0.5) == new_y)), float(roc_auc_score(new_y, chances))))
            accuracy, auc = scores[library][-1]
            print(f"seed {seed} {library:20} accuracy {accuracy:.4f}, AUC {auc:.4f}", flush=True)
    for library, pairs in scores.items():
        mean, spread = np.mean(pairs, axis=0), np.std(pairs, axis=0, ddof=1)
        print(
            f"{library}: accuracy {mean[0]:.4f}, standard deviation over seeds {spread[0]:.4f}; "
            f"AUC {mean[1]:.4f}, {spread[1]:.4f}; {lead(scores[OURS], pairs)}"
        )


def _seeded(threads: int, n_trees: int) -> dict[str, Call]:
    """Forests whose seeds are compared."""
    calls = _forest(threads, n_trees)
    return calls | {BINNED: ("sklearn.ensemble:BinnedForest", calls["scikit-learn"][1])}


def lead(ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> str:
    """How far we are ahead in the mean over seeds, with its standard error; as good: within ALIKE by two of these."""
    ahead = np.subtract(ours, theirs)
    mean, error = ahead.mean(axis=0), ahead.std(axis=0, ddof=1) / np.sqrt(len(ahead))
    if not ahead.any():
        return "ours"
    is_as_good, is_worse = (mean - 2 * error >= -ALIKE).all(), (mean + 2 * error < -ALIKE).any()
    word = "as good" if is_as_good else "NOT AS GOOD" if is_worse else "undecided, ask for more seeds"
    return (
        f"certifit is ahead by {mean[0]:+.4f} +- {error[0]:.4f} in accuracy, {mean[1]:+.4f} +- {error[1]:.4f} in AUC: "
        f"{word}"
    )


def main() -> None:
    """Run what is asked for."""
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(json.loads(sys.argv[2]), sys.argv[3])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("races", nargs="*", choices=[*RACES, "seeds"], help="all but `seeds` where none is named")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of `seeds`")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=10, help="of a forest of `seeds`")
    parser.add_argument("--tables", action="store_true", help="of `seeds`: every seed has rows of its own")
    parser.add_argument("--libraries", default="", help="that run beside ours; all where none is named")
    asked = parser.parse_args()
    for name in asked.races or RACES:
        if name == "seeds":
            seeds(asked.rows, asked.seeds, asked.trees, asked.libraries, asked.threads, asked.tables)
        else:
            race(name, asked.rounds, asked.threads, asked.libraries)


if __name__ == "__main__":
    main()
