"""`certifit fit` as it comes beside scikit-learn's HistGradientBoosting as it comes: loss of the same held-out rows.

    python benchmarks/auto.py [--only adult] [--splits 1] [--first 0] [--model auto]

A third of the rows is held out, drawn anew in every split. Ours is `certifit fit train.parquet --target NAME` and then
`certifit predict`, nothing else said but the exposure of fremtpl2 and `--unseen reference`: held-out rows of adult have
a level that the others have not. Theirs has its defaults (100 rounds of 31 leaves, early stopping above 10,000 rows)
and is told which columns are categories; counts are rates weighted by the exposure.
The loss is the log loss, half of the Poisson deviance with exposure, or half of the squared error.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
TABLES = {
    "higgs_sample": ("y", "classes", "higgs_sample", ("split",)),
    "adult": ("income", "classes", "adult", ("split",)),
    "fremtpl2": ("ClaimNb", "counts", "freq", ("IDpol", "ClaimAmount", "NbSev")),
    "california_housing": ("median_house_value", "numbers", "california_housing", ()),
}


class Split(NamedTuple):
    """A table, the rows to fit and those held out. exposure: the column that has it, of counts."""

    kind: str
    target: str
    rows: pd.DataFrame
    new: pd.DataFrame
    exposure: str | None


def split(name: str, seed: int) -> Split:
    """A table of shared/data, a third of its rows held out."""
    target, kind, file, left_out = TABLES[name]
    frame = pd.read_parquet(DATA / name / f"{file}.parquet").drop(columns=list(left_out), errors="ignore")
    if kind == "counts":
        frame = frame.assign(Exposure=np.minimum(frame["Exposure"], 1.0), ClaimNb=np.minimum(frame[target], 4))
    if kind == "numbers":
        frame[target] = frame[target] / 1e5
    order = np.random.default_rng(seed).permutation(len(frame))
    new, old = np.split(order, [len(frame) // 3])
    return Split(kind, target, frame.iloc[old], frame.iloc[new], "Exposure" if kind == "counts" else None)


def loss(rows: Split, predicted: np.ndarray) -> float:
    """The mean loss of the rows held out. predicted: chances of the second class, counts, or numbers."""
    if rows.kind == "classes":
        is_second = (pd.factorize(rows.new[rows.target], sort=True)[0] == 1).astype(float)
        return float(-np.mean(np.where(is_second == 1, np.log(predicted), np.log1p(-predicted))))
    y = rows.new[rows.target].to_numpy(dtype=float)
    if rows.kind == "numbers":
        return float(np.mean(np.square(y - predicted)) / 2)
    logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / predicted), 0.0)
    return float(np.mean(logs - y + predicted))


def ours(rows: Split, model: str, folder: Path) -> tuple[np.ndarray, str]:
    """Predictions of the command line, and the model that it took."""
    rows.rows.to_parquet(folder / "train.parquet", index=False)
    rows.new.to_parquet(folder / "new.parquet", index=False)
    exposure = [] if rows.exposure is None else ["--exposure", rows.exposure]
    command = [sys.executable, "-m", "certifit"]
    fit = [
        *command,
        "fit",
        "train.parquet",
        "-t",
        rows.target,
        "-o",
        "out",
        "--model",
        model,
        *exposure,
        "--unseen",
        "reference",
    ]
    said = subprocess.run(fit, cwd=folder, capture_output=True, text=True, check=False)
    if said.returncode not in (0, 1):
        raise RuntimeError(said.stderr)
    told = [line.strip() for line in said.stdout.splitlines() if line.strip()]
    chances = ["--proba"] if rows.kind == "classes" else []
    predict = [*command, "predict", "out/model.certifit", "new.parquet", "-o", "predicted.csv", *chances]
    answered = subprocess.run(predict, cwd=folder, capture_output=True, text=True, check=False)
    if answered.returncode:
        raise RuntimeError(answered.stderr)
    predicted = pd.read_csv(folder / "predicted.csv")
    column = predicted.columns[-1] if rows.kind == "classes" else "prediction"
    return predicted[column].to_numpy(dtype=float), " | ".join(told[:12])


def theirs(rows: Split) -> np.ndarray:
    """Predictions of HistGradientBoosting."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    left_out = [rows.target, *([] if rows.exposure is None else [rows.exposure])]
    both = pd.concat([rows.rows, rows.new]).drop(columns=left_out)
    for column in both:
        if not pd.api.types.is_numeric_dtype(both[column]):
            both[column] = both[column].astype("category")
    X, new_X = both.iloc[: len(rows.rows)], both.iloc[len(rows.rows) :]
    shared: dict[str, Any] = {"categorical_features": "from_dtype", "random_state": 0}
    y = rows.rows[rows.target]
    if rows.kind == "classes":
        return HistGradientBoostingClassifier(**shared).fit(X, y).predict_proba(new_X)[:, 1]
    if rows.kind == "numbers":
        return HistGradientBoostingRegressor(**shared).fit(X, y).predict(new_X)
    time, new_time = (part[rows.exposure].to_numpy(dtype=float) for part in (rows.rows, rows.new))
    model = HistGradientBoostingRegressor(loss="poisson", **shared).fit(X, y / time, sample_weight=time)
    return model.predict(new_X) * new_time


def main() -> None:
    """A line per table and split."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(TABLES))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first split")
    parser.add_argument("--model", default="auto")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.only:
        for seed in range(asked.first, asked.first + asked.splits):
            rows = split(name, seed)
            with tempfile.TemporaryDirectory() as folder:
                before = os.times()
                predicted, told = ours(rows, asked.model, Path(folder))
                after = os.times()
            cpu = after.children_user + after.children_system - before.children_user - before.children_system
            own, peer = loss(rows, predicted), loss(rows, theirs(rows))
            print(
                f"{name:18} split {seed}: {own:.6f} ({own / peer:.4f}x HistGradientBoosting's {peer:.6f}), "
                f"cpu {cpu:.0f} s: {told}",
                flush=True,
            )


if __name__ == "__main__":
    main()
