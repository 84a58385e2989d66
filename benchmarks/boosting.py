"""Gradient boosting beside LightGBM and scikit-learn's HistGradientBoosting on four tables: seconds and held-out loss.

    python benchmarks/boosting.py [--rounds 100] [--turns 3] [--threads 1] [--only adult] [--splits 5]

All have as many rounds, 31 leaves of at least 20 rows, a learning rate of 0.1 and 255 bins. Levels of a category are
numbered by their names, the same numbers for all. LightGBM runs without its least sum of curvatures per leaf and its
limit on Poisson steps, which the others do not have. A third of the rows is held out, drawn anew in every split; their
loss is the log loss, half of the Poisson deviance with exposure, or half of the squared error, the mean of all splits;
its ratio to LightGBM's has the standard error over splits, of which one alone says little.
Our fit has its certificate, which derives every leaf and every round's loss again. Fits take turns and the least time
of each counts; compare CPU seconds where other work shares the machine.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


class Table(NamedTuple):
    """Rows to fit, rows held out, and what is asked for. exposure: of counts, else None."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    exposure: np.ndarray | None
    new_X: np.ndarray
    new_y: np.ndarray
    new_exposure: np.ndarray | None


def table(name: str, seed: int = 0) -> Table:
    """A table of shared/data as numbers, a third of its rows held out."""
    target, kind, file, left_out = {
        "higgs_sample": ("y", "classes", "higgs_sample", ("split",)),
        "adult": ("income", "classes", "adult", ("split",)),
        "fremtpl2": ("ClaimNb", "counts", "freq", ("IDpol", "ClaimAmount", "NbSev")),
        "california_housing": ("median_house_value", "numbers", "california_housing", ()),
    }[name]
    frame = pd.read_parquet(DATA / name / f"{file}.parquet").drop(columns=list(left_out), errors="ignore")
    y = frame.pop(target)
    y = pd.factorize(y, sort=True)[0].astype(float) if kind == "classes" else y.to_numpy(dtype=float)
    exposure = np.minimum(frame.pop("Exposure").to_numpy(dtype=float), 1.0) if kind == "counts" else None
    if kind == "counts":
        y = np.minimum(y, 4.0)
    if kind == "numbers":
        y = y / 1e5
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            codes = pd.factorize(frame[column], sort=True)[0].astype(float)
            frame[column] = np.where(codes < 0, np.nan, codes)
    X = np.ascontiguousarray(frame.to_numpy(dtype=float))
    order = np.random.default_rng(seed).permutation(len(y))
    new, old = np.split(order, [len(y) // 3])
    parts = (None, None) if exposure is None else (exposure[old], exposure[new])
    return Table(kind, X[old], y[old], parts[0], X[new], y[new], parts[1])


def loss(rows: Table, predicted: np.ndarray) -> float:
    """The mean loss of the rows held out. predicted: chances of the second class, counts, or numbers."""
    y = rows.new_y
    if rows.kind == "classes":
        return float(-np.mean(np.where(y == 1, np.log(predicted), np.log1p(-predicted))))
    if rows.kind == "numbers":
        return float(np.mean(np.square(y - predicted)) / 2)
    logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / predicted), 0.0)
    return float(np.mean(logs - y + predicted))


Predict = Callable[[np.ndarray], np.ndarray]  # of rates, where there is an exposure


def ours(rows: Table, rounds: int) -> Predict:
    """Our fit."""
    import certifit as cf

    if rows.kind == "classes":
        classifier = cf.GradientBoostingClassifier(rounds).fit(rows.X, rows.y)
        return lambda X: classifier.predict_proba(X)[:, 1]
    family = "poisson" if rows.kind == "counts" else "gaussian"
    return cf.GradientBoostingRegressor(rounds, family=family).fit(rows.X, rows.y, exposure=rows.exposure).predict


def lightgbm(rows: Table, rounds: int, threads: int) -> Predict:
    """LightGBM's fit, by its own interface: an exposure is a start of the scores."""
    import lightgbm as lgb

    objective = {"classes": "binary", "counts": "poisson", "numbers": "regression"}[rows.kind]
    settings = {
        "objective": objective, "num_leaves": 31, "min_data_in_leaf": 20, "learning_rate": 0.1, "max_bin": 255,
        "num_threads": threads, "verbose": -1, "min_sum_hessian_in_leaf": 0.0, "poisson_max_delta_step": 1e-9,
        "seed": 0,
    }  # fmt: skip
    level, start = 0.0, None
    if rows.exposure is not None:
        level = np.log(rows.y.sum() / rows.exposure.sum())
        start = level + np.log(rows.exposure)
    data = lgb.Dataset(rows.X, rows.y, init_score=start, params={"max_bin": 255, "verbose": -1})
    model = lgb.train(settings, data, rounds)
    if rows.kind == "counts":
        return lambda X: np.exp(level + model.predict(X, raw_score=True, num_threads=threads))
    return lambda X: model.predict(X, num_threads=threads)


def scikit_learn(rows: Table, rounds: int) -> Predict:
    """scikit-learn's fit; of counts, rates weighted by the exposure, which has the same slopes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    shared: dict[str, Any] = {"max_iter": rounds, "early_stopping": False, "max_bins": 255}
    if rows.kind == "classes":
        classifier = HistGradientBoostingClassifier(**shared).fit(rows.X, rows.y)
        return lambda X: classifier.predict_proba(X)[:, 1]
    if rows.kind == "numbers":
        return HistGradientBoostingRegressor(**shared).fit(rows.X, rows.y).predict
    model = HistGradientBoostingRegressor(loss="poisson", **shared)
    return model.fit(rows.X, rows.y / rows.exposure, sample_weight=rows.exposure).predict


def contestants(asked: argparse.Namespace) -> dict[str, Callable[[Table], Predict]]:
    """Fits by name."""
    return {
        "certifit": lambda rows: ours(rows, asked.rounds),
        "LightGBM": lambda rows: lightgbm(rows, asked.rounds, asked.threads),
        "scikit-learn": lambda rows: scikit_learn(rows, asked.rounds),
    }


def held_out(rows: Table, predict: Predict) -> float:
    """The loss of the rows held out."""
    answers = np.asarray(predict(rows.new_X))
    return loss(rows, answers if rows.new_exposure is None else answers * rows.new_exposure)


def race(name: str, asked: argparse.Namespace) -> None:
    """A line per contestant: seconds of the fit, held-out loss, seconds of a prediction of many rows."""
    from turns import in_turns

    rows, fits = table(name), contestants(asked)
    timed = in_turns({key: lambda fit=fit: fit(rows) for key, fit in fits.items()}, asked.turns)
    losses = {key: [held_out(rows, timed[key].result)] for key in fits}
    for seed in range(1, asked.splits):
        other = table(name, seed)
        for key, fit in fits.items():
            losses[key].append(held_out(other, fit(other)))
    many = np.resize(rows.new_X, (asked.predict, rows.X.shape[1]))
    predicted = in_turns({key: lambda key=key: timed[key].result(many) for key in fits}, asked.turns)
    peer = timed["LightGBM"]
    for key, fit in timed.items():
        mean, ratios = np.mean(losses[key]), np.divide(losses[key], losses["LightGBM"])
        error = f" ± {np.std(ratios, ddof=1) / len(ratios) ** 0.5:.4f}" if len(ratios) > 1 else ""
        print(
            f"{name:18} {rows.X.shape[0]:7,} x {rows.X.shape[1]:2} {key:12} fit {fit.wall:6.2f} s, cpu {fit.cpu:6.2f} "
            f"({fit.cpu / peer.cpu:4.2f}x LightGBM), held-out loss {mean:.6f} ({np.mean(ratios):.4f}x{error}), predict "
            f"{asked.predict:,} rows {predicted[key].wall:5.2f} s, cpu {predicted[key].cpu:5.2f}",
            flush=True,
        )


def main() -> None:
    """Every table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--predict", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=["higgs_sample", "adult", "california_housing", "fremtpl2"])
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(asked.threads)  # before the libraries are imported
    warnings.simplefilter("ignore")
    for name in asked.only:
        race(name, asked)


if __name__ == "__main__":
    main()
