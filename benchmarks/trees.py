"""Trees, forests and AdaBoost beside scikit-learn (its extension for Intel, LightGBM, XGBoost, snapml where installed).

    python benchmarks/trees.py [--rows 100000] [--new 50000] [--rounds 2] [--only forest]

Runs of all contestants in turn, the least of each; two threads where a peer takes them. Accuracy is that on rows that
no fit has seen. The number of rounds of AdaBoost is chosen by 10 folds on 5,000 rows, among five numbers: a grid search
fits each of them, we fit the largest.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import AdaBoostClassifier as TheirBoost
from sklearn.ensemble import RandomForestClassifier as TheirForest
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier as TheirTree

import certifit as cf

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
ROUNDS = {"n_estimators": [5, 10, 20, 40, 80]}
FEW_ROWS = 5_000  # of a search by folds


def problem(n_rows: int, n_columns: int = 30, n_new: int = 50_000) -> Rows:
    """Two classes with interactions, discrete and skewed columns, and noise; some of the rows are for scoring."""
    rng = np.random.default_rng(1)
    n = n_rows + n_new
    X = rng.standard_normal((n, n_columns))
    X[:, 10:15] = np.round(X[:, 10:15] * 2)
    X[:, 15:18] = np.exp(X[:, 15:18])
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] ** 2 - 0.5 + 0.7 * X[:, 4] * (X[:, 5] > 0)
    score += 0.3 * X[:, 10] - 0.4 * np.log(X[:, 15]) + 0.2 * X[:, 6:10].sum(axis=1)
    y = (score + 0.5 * rng.logistic(size=n) > 0).astype(np.int64)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def contests(n_trees: int, n_stumps: int) -> dict[str, dict[str, Callable[[], Any]]]:
    """Contests, and the contestants of each."""
    out: dict[str, dict[str, Callable[[], Any]]] = {
        "exact tree": {"certifit": cf.DecisionTreeClassifier, "scikit-learn": TheirTree},
        "tree on 255 bins": {"certifit": lambda: cf.DecisionTreeClassifier(max_bins=255)},
        f"forest of {n_trees}": {
            "certifit": lambda: cf.RandomForestClassifier(n_trees),
            "scikit-learn": lambda: TheirForest(n_trees, n_jobs=2),
        },
        f"AdaBoost, {n_stumps} stumps": {
            "certifit": lambda: cf.AdaBoostClassifier(n_stumps),
            "scikit-learn": lambda: TheirBoost(n_estimators=n_stumps),
        },
        "rounds by 10 folds": {
            "certifit": lambda: cf.CrossValidated(cf.AdaBoostClassifier(), ROUNDS, cv=10),
            "scikit-learn": lambda: GridSearchCV(TheirBoost(), ROUNDS, cv=10),
        },
    }
    if find_spec("sklearnex"):
        from sklearnex.ensemble import RandomForestClassifier as IntelForest

        out[f"forest of {n_trees}"]["scikit-learn-intelex"] = lambda: IntelForest(n_trees, n_jobs=2)
    if find_spec("xgboost"):
        from xgboost import XGBClassifier

        whole = {"max_depth": 0, "min_child_weight": 0, "reg_lambda": 0, "learning_rate": 1.0, "n_jobs": 2}
        one = {"n_estimators": 1, **whole}
        out["exact tree"]["XGBoost"] = lambda: XGBClassifier(**one | {"tree_method": "exact", "max_depth": 64})
        out["tree on 255 bins"]["XGBoost"] = lambda: XGBClassifier(tree_method="hist", max_bin=255, **one)
    if find_spec("snapml"):
        from snapml import DecisionTreeClassifier as SnapTree

        out["exact tree"]["snapml"] = lambda: SnapTree(n_jobs=2, use_histograms=False)
        out["tree on 255 bins"]["snapml"] = lambda: SnapTree(n_jobs=2, use_histograms=True, hist_nbins=255)
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        leaves = {"num_leaves": 2**17, "min_child_samples": 1, "min_child_weight": 0.0, "n_jobs": 2, "verbose": -1}
        out["tree on 255 bins"]["LightGBM"] = lambda: LGBMClassifier(n_estimators=1, learning_rate=1.0, **leaves)
        drawn = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.632, "colsample_bynode": 0.18}
        out[f"forest of {n_trees}"]["LightGBM"] = lambda: LGBMClassifier(n_estimators=n_trees, **leaves, **drawn)
        stumps = {"num_leaves": 2, "n_jobs": 2, "verbose": -1}
        out[f"AdaBoost, {n_stumps} stumps"]["LightGBM"] = lambda: LGBMClassifier(n_estimators=n_stumps, **stumps)
    return out


def run(make: Callable[[], Any], rows: Rows) -> tuple[float, float, float, float]:
    """Wall and CPU seconds of the fit, wall seconds of the prediction, accuracy."""
    X, y, new_X, new_y = rows
    wall, cpu = time.perf_counter(), time.process_time()
    model = make().fit(X, y)
    fitted, used = time.perf_counter() - wall, time.process_time() - cpu
    wall = time.perf_counter()
    quality = float(np.mean(model.predict(new_X) == new_y))
    return fitted, used, time.perf_counter() - wall, quality


def main() -> None:
    """Print a line per contest and library."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--new", type=int, default=50_000, help="rows that are predicted")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--stumps", type=int, default=50)
    parser.add_argument("--only", default="", help="contests whose names contain this")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = problem(asked.rows, n_new=asked.new)
    for name, makes in contests(asked.trees, asked.stumps).items():
        if asked.only not in name:
            continue
        best = dict.fromkeys(makes, (np.inf,) * 4)
        for _ in range(asked.rounds):
            for library, make in makes.items():
                some = slice(FEW_ROWS if "folds" in name else None)
                best[library] = tuple(map(min, best[library], run(make, (rows[0][some], rows[1][some], *rows[2:]))))
        ours = best["certifit"]
        for library, (wall, cpu, predicted, quality) in best.items():
            print(
                f"{name:22} {asked.rows:9,} rows {library:20} fit {wall:7.2f} s ({wall / ours[0]:5.1f}x), "
                f"cpu {cpu:7.2f} s ({cpu / ours[1]:5.1f}x), predict {predicted:6.3f} s, accuracy {quality:.4f}"
            )


if __name__ == "__main__":
    main()
