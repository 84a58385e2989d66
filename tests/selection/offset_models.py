"""Models of rates and of odds that take an offset, their data, and their scores on folds written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score

import certifit as cf
from certifit.data.source import Block, Source
from certifit.data.user_input import fit_source, predict_rows, predict_source

N = 60
DEVIANCE = "neg_mean_poisson_deviance"


class Rate(RegressorMixin, BaseEstimator):
    """shrink x the mean rate, times the exposure of a row. Knows arrays alone."""

    def __init__(self, shrink: float = 1.0) -> None:
        self.shrink = shrink

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        self.n_features_in_ = X.shape[1]
        self.rate_ = self.shrink * float(weight @ np.asarray(y) / (weight @ exposure_of(len(y), offset, exposure)))
        return self

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        return self.rate_ * exposure_of(len(X), offset, exposure)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> float:
        return float(r2_score(y, self.predict(X, offset, exposure), sample_weight=sample_weight))


class ScannedRate(Rate, cf.HuberRegressor):
    """The same for checked rows of any source, as the models of this library take them."""

    encoder_: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        source = fit_source(self, X, y, sample_weight, offset, exposure)
        self.encoder_ = cf.TableEncoder() if source.is_table else None
        total, times = source.reduce(of_rate)
        self.rate_ = self.shrink * float(total / times)
        return self

    def predict(self, X: Any, offset: Any = None, exposure: Any = None) -> Any:
        if isinstance(X, Source):
            return np.concatenate(list(predict_source(self, X, offset, exposure).map(self._of_block)))
        return self._of_block(predict_rows(self, X, offset, exposure))

    def _of_block(self, block: Block) -> Any:
        return self.rate_ * exposure_of(block.n_rows, block.offset, None)


def of_rate(block: Block) -> Any:
    weight = np.ones(block.n_rows) if block.weight is None else block.weight
    return np.array([weight @ block.y, weight @ exposure_of(block.n_rows, block.offset, None)])


def exposure_of(n_rows: int, offset: Any, exposure: Any) -> Any:
    times = np.ones(n_rows) if exposure is None else np.asarray(exposure)
    return times if offset is None else times * np.exp(offset)


class Odds(ClassifierMixin, BaseEstimator):
    """Two classes: log-odds of the training shares, plus the offset of a row."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None) -> Any:
        self.classes_ = np.unique(y)
        share = np.average(np.asarray(y) == self.classes_[1], weights=sample_weight)
        self.odds_ = np.log(share / (1 - share))
        return self

    def predict_proba(self, X: Any, offset: Any = None) -> Any:
        z = self.odds_ + (np.zeros(len(X)) if offset is None else offset)
        return np.column_stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))])

    def predict(self, X: Any, offset: Any = None) -> Any:
        return self.classes_[self.predict_proba(X, offset).argmax(axis=1)]


MODELS = [Rate, ScannedRate]


def drawn(rng: Any) -> Any:
    """X, y, offset and exposure: counts of the rate 2."""
    exposure = rng.uniform(0.2, 5.0, N)
    offset = rng.normal(size=N)
    y = rng.poisson(2 * exposure * np.exp(offset)).astype(float)
    return rng.normal(size=(N, 3)), y, offset, exposure


def fold_scores(data: Any, score: Any, n_splits: int = 5, shrink: float = 1.0, weight: Any = None) -> Any:
    """Scores of the rate of the other folds, written out."""
    X, y, offset, exposure = data
    times = exposure * np.exp(offset)
    weight = np.ones(N) if weight is None else weight
    scores = []
    for train, test in cf.Folds(n_splits).split(X):
        rate = shrink * (weight[train] @ y[train]) / (weight[train] @ times[train])
        scores.append(score(y[test], rate * times[test], sample_weight=weight[test]))
    return np.array(scores)


def scans(data: Any, folder: Any) -> dict[str, Any]:
    X, y, offset, exposure = data
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "o": offset, "e": exposure})
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet", row_group_size=7)
    roles = {"target": "y", "offset": "o", "exposure": "e"}
    dask = pytest.importorskip("dask.dataframe")
    return {
        "memory": cf.from_arrow(pa.Table.from_pandas(frame), **roles),
        "csv": cf.scan_csv(folder / "rows.csv", **roles),
        "parquet": cf.scan_parquet(folder / "rows.parquet", **roles),
        "dask": cf.from_dask(dask.from_pandas(frame, npartitions=3), **roles),
    }


def routed(model: Any) -> Any:
    return model.set_fit_request(offset=True, exposure=True).set_score_request(offset=True, exposure=True)
