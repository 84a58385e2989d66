"""Trees, forests, AdaBoost and `auto` through `certifit fit` on real tables, beside scikit-learn on the same rows.

    python -m benchmarks.tree_tables [TABLE ...] [--models tree,forest,adaboost,auto] [--alone]

A quarter of the rows is new to all fits; kddcup99 has its own test, whose attacks the training rows have in part never
seen. Trees have at most 8 levels, forests 100 trees, AdaBoost 100 stumps of classes and 50 trees of depth 3 of numbers;
scikit-learn gets the same, and categories as 0/1 columns; its AdaBoost of numbers, medians where values are missing.
`auto` compares all models of its list by 10 folds; it is not run on kddcup99. A level that no fit has seen is read as
the first one (--unseen reference), by scikit-learn as none.
CPU seconds are those of the whole command with its report, and of scikit-learn's fit and prediction.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TARGETS = {
    "adult": ("income", ["split"]),
    "higgs_sample": ("y", ["split"]),
    "kddcup99": ("attack", []),
    "california_housing": ("median_house_value", []),
    "wine_quality": ("quality", []),
    "bike_sharing": ("cnt", ["instant", "dteday", "casual", "registered"]),
}
OF_CLASSES = {
    "tree": (["tree", "--max-depth", "8"], lambda: DecisionTreeClassifier(max_depth=8)),
    "forest": (["forest"], lambda: RandomForestClassifier(100)),
    "adaboost": (["adaboost", "--rounds", "100"], lambda: AdaBoostClassifier(n_estimators=100)),
    "auto": (["auto"], None),
}
OF_NUMBERS = {
    "tree": (["regression-tree", "--max-depth", "8"], lambda: DecisionTreeRegressor(max_depth=8)),
    "forest": (["regression-forest"], lambda: RandomForestRegressor(100)),
    "adaboost": (["boosted-median", "--rounds", "50"], AdaBoostRegressor),
    "auto": (["auto"], None),
}


def table(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows to fit, and new ones."""
    if name == "kddcup99":
        parts = [pd.read_parquet(DATA / name / f"{part}.parquet") for part in ("train10pct", "test_corrected")]
        for part in parts:
            part["attack"] = np.where(part.pop("label").str.strip(".") == "normal", "no", "yes")
        return parts[0], parts[1]
    rows = pd.read_parquet(DATA / name / f"{name}.parquet").drop(columns=TARGETS[name][1])
    order = np.random.default_rng(0).permutation(len(rows))
    cut = 3 * len(rows) // 4
    return rows.iloc[order[:cut]], rows.iloc[order[cut:]]


def by_command(train: pd.DataFrame, new: pd.DataFrame, target: str, model: list[str]) -> tuple[Any, float, str]:
    """Predictions of new rows, CPU seconds of the fit, and whether it is proven."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/train.parquet", f"{folder}/new.parquet"]
        train.to_parquet(paths[0], index=False)
        new.to_parquet(paths[1], index=False)
        certifit = [sys.executable, "-W", "ignore", "-m", "certifit"]
        fit = [*certifit, "fit", paths[0], "-t", target, "-q", "-o", f"{folder}/out", "--model", *model]
        fit += ["--unseen", "reference", *([] if model == ["auto"] else ["--cv", "0"])]
        fit += [] if is_of_classes(train[target]) else ["--task", "quantity"]
        began = used()
        code = subprocess.run(fit, check=False, capture_output=True).returncode
        seconds = used() - began
        if code not in (0, 1):
            raise RuntimeError(f"{' '.join(fit)}: exit code {code}")
        predict = [*certifit, "predict", f"{folder}/out/model.certifit", paths[1], "-o", f"{folder}/p.csv"]
        predict += ["--proba"] if is_of_classes(train[target]) else []
        subprocess.run(predict, check=True, capture_output=True)
        return pd.read_csv(f"{folder}/p.csv"), seconds, "yes" if code == 0 else "no"


def used() -> float:
    """CPU seconds of the commands so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def is_of_classes(y: pd.Series) -> bool:
    """Whether the target is a class: text, or two numbers."""
    return not pd.api.types.is_numeric_dtype(y) or y.nunique() == 2


def by_peer(train: pd.DataFrame, new: pd.DataFrame, target: str, model: Any) -> tuple[Any, Any, float]:
    """Predictions, chances of the second class (None of numbers), and CPU seconds."""
    words = make_column_selector(dtype_exclude=np.number)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
    gaps = (
        [SimpleImputer(strategy="median")] if isinstance(model, AdaBoostRegressor) else []
    )  # it takes no missing values
    both = make_pipeline(make_column_transformer((encoder, words), remainder="passthrough"), *gaps, model)
    began = time.process_time()
    both.fit(train.drop(columns=target), train[target])
    X = new.drop(columns=target)
    chances = both.predict_proba(X)[:, 1] if is_of_classes(train[target]) else None
    return both.predict(X), chances, time.process_time() - began


def scores(truth: pd.Series, predicted: Any, chances: Any) -> str:
    """R2 of numbers; accuracy and AUC of classes."""
    if chances is None:
        return f"R2 {r2_score(truth, predicted):.4f}"
    second = sorted(truth.unique())[1]
    accuracy = float(np.mean(np.asarray(predicted).astype(str) == truth.astype(str).to_numpy()))
    return f"accuracy {accuracy:.4f}, AUC {roc_auc_score(truth == second, chances):.4f}"


def main() -> None:
    """Print a line per table and model."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--models", default="tree,forest,adaboost,auto")
    parser.add_argument("--alone", action="store_true", help="without scikit-learn")
    asked = parser.parse_args()
    print("| table | model | certifit | proven | CPU s | scikit-learn | CPU s |\n|---|---|---|---|---|---|---|")
    for name in asked.tables:
        target, (train, new) = TARGETS[name][0], table(name)
        for model in asked.models.split(","):
            if model == "auto" and name == "kddcup99":
                continue
            words, peer = (OF_CLASSES if is_of_classes(train[target]) else OF_NUMBERS)[model]
            predictions, seconds, is_proven = by_command(train, new, target, words)
            chances = predictions.iloc[:, -1] if is_of_classes(train[target]) else None
            ours = scores(new[target], predictions["prediction"], chances)
            line = f"| {name} | {model} | {ours} | {is_proven} | {seconds:.1f} |"
            if peer is None or asked.alone:
                print(f"{line} | |", flush=True)
                continue
            theirs, chances, seconds = by_peer(train, new, target, peer())
            print(f"{line} {scores(new[target], theirs, chances)} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
