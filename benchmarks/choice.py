"""What a choice among models does to their scores: winner, corrected and nested figures, on noise and on real rows.

    python -m benchmarks.choice [--sets 1000] [--draws 200] [--processes 2] [--data FOLDER]

Noise: 40 rows, 20 of each class, 15 columns that say nothing; the truth is 0.5. Real rows: some are drawn for the
choice, and the fit of the winner is scored on all others. Results: benchmarks/results/choice.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import certifit as cf

RESULTS = Path(__file__).parent / "results" / "choice.jsonl"
SHRINKAGES = {"shrinkage": [0.0, 0.1, 0.3, 0.6, 1.0]}
ALPHAS = {"alpha": [0.01, 0.1, 1.0, 10.0, 100.0]}
N_FOLDS = 5
SIZES = {"adult": (100, 300, 1000), "higgs_sample": (100, 300, 1000), "california_housing": (100, 300, 1000)}


def classifiers() -> dict:
    """Four models of classes, 16 candidates."""
    return {
        "linear discriminant": cf.CrossValidated(cf.GaussianDiscriminant(standardize=True), SHRINKAGES),
        "quadratic discriminant": cf.CrossValidated(cf.GaussianDiscriminant("class", standardize=True), SHRINKAGES),
        "Gaussian naive Bayes": cf.GaussianNB(),
        "logistic regression": cf.CrossValidated(cf.LogisticRegression(), ALPHAS),
    }


def regressors() -> dict:
    """Three models of a quantity, 151 candidates."""
    return {"least squares": cf.LinearRegression(), "ridge": cf.Ridge(), "lasso": cf.CrossValidated(cf.Lasso())}


def of_noise(seed: int) -> tuple[float, float, float]:
    """(winner, corrected, nested) accuracy of one set of noise."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 15)), rng.permutation(np.arange(40) % 2)
    folds = cf.Folds(N_FOLDS, stratify=True, random_state=seed)
    board = cf.leaderboard(classifiers(), X, y, cv=folds, scoring="accuracy", nested=True)
    return board.correction.winner, float(board.corrected), float(board.nested_score)


def of_real(name: str, n_rows: int, folder: str, seed: int) -> tuple[float, float, float, float]:
    """(winner, corrected, truth on the other rows, whether the interval holds the truth) of one draw of rows."""
    X, y = real_rows(folder, name)
    order = np.random.default_rng(seed).permutation(len(y))
    own, others = order[:n_rows], order[n_rows:]
    is_classes = y.dtype.kind == "i"
    models, scoring = (classifiers(), "accuracy") if is_classes else (regressors(), "neg_root_mean_squared_error")
    folds = cf.Folds(N_FOLDS, stratify=is_classes, random_state=seed)
    board = cf.leaderboard(models, X[own], y[own], cv=folds, scoring=scoring)
    predicted = board.chosen.model.fit(X[own], y[own]).predict(X[others])
    truth = np.mean(predicted == y[others]) if is_classes else -np.sqrt(np.mean((predicted - y[others]) ** 2))
    found = board.corrected
    return board.correction.winner, float(found), float(truth), float(found.low <= truth <= found.high)


_KEPT: dict = {}


def real_rows(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns and target of a data set, prepared simply."""
    if name not in _KEPT:
        import pandas as pd

        table = pd.read_parquet(Path(folder) / name / f"{name}.parquet")
        if name == "adult":
            y = table.pop("income").cat.codes.to_numpy().astype(np.int64)
            columns = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
            table = pd.get_dummies(table[["sex", "relationship"]]).astype(float).join(table[columns])
            X = np.log1p(table.to_numpy(dtype=np.float64))
        elif name == "higgs_sample":
            y = (table.pop("y") > 0).to_numpy().astype(np.int64)
            X = table.drop(columns="split").to_numpy(dtype=np.float64)
        else:
            y = np.log(table.pop("median_house_value").to_numpy(dtype=np.float64))
            table = table.drop(columns="ocean_proximity").fillna(table.median(numeric_only=True))
            X = np.log1p(table.abs().to_numpy(dtype=np.float64))
        # A column that does not vary within a class of a few rows has no variance to divide by.
        _KEPT[name] = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape) if name == "adult" else X, y
    return _KEPT[name]


def row_of(name: str, n_rows: int, sets: list[tuple[float, ...]], names: tuple[str, ...]) -> dict:
    """Means and their standard errors over sets."""
    table = np.array(sets)
    row = {"data": name, "n_rows": n_rows, "n_sets": len(table)}
    for column, values in zip(names, table.T, strict=True):
        row[column] = round(float(values.mean()), 4)
        row[f"{column}_error"] = round(float(values.std(ddof=1) / np.sqrt(len(values))), 4)
    return row


def main() -> None:
    """Run the study, print a table and keep its rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=1000, help="sets of noise")
    parser.add_argument("--draws", type=int, default=200, help="draws of rows from every real data set and size")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--data", default=None, help="folder of the data sets; without it noise alone")
    chosen = parser.parse_args()
    with ProcessPoolExecutor(chosen.processes) as pool:
        noise = list(pool.map(of_noise, range(chosen.sets), chunksize=10))
        rows = [row_of("noise", 40, noise, ("winner", "corrected", "nested"))]
        print(json.dumps(rows[-1]), flush=True)
        for name, sizes in SIZES.items() if chosen.data else ():
            for n_rows in sizes:
                work = partial(of_real, name, n_rows, chosen.data)
                draws = list(pool.map(work, range(chosen.draws), chunksize=5))
                rows.append(row_of(name, n_rows, draws, ("winner", "corrected", "truth", "covered")))
                print(json.dumps(rows[-1]), flush=True)
    RESULTS.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
