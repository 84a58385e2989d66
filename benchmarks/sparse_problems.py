"""Lasso problems of the sparse benchmark: their data, their alphas, and the duality gap in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
REAL_DATA = Path(__file__).parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Sparse:
    """A lasso problem. kind: "cv" is 10 folds and the fit of the best alpha, "path" all alphas, "fit" one."""

    name: str
    kind: str
    about: str
    make: Callable[[bool], tuple[Any, Array]]  # quick -> X, y
    ratios: Array  # of alpha_max


@dataclass(frozen=True)
class Data:
    X: Any
    y: Array
    alphas: Array  # decreasing

    def save(self, folder: Path) -> None:
        parts = {"data": self.X.data, "indices": self.X.indices, "indptr": self.X.indptr} if self.is_sparse else {}
        for name, values in {"y": self.y, "alphas": self.alphas, "shape": self.X.shape, **parts}.items():
            np.save(folder / f"{name}.npy", values)
        if not self.is_sparse:
            np.save(folder / "X.npy", self.X)

    @staticmethod
    def load(folder: Path) -> Data:
        parts = {file.stem: np.load(file) for file in folder.glob("*.npy") if "." not in file.stem}
        if "X" in parts:
            return Data(parts["X"], parts["y"], parts["alphas"])
        X = sp.csc_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
        return Data(X, parts["y"], parts["alphas"])

    @property
    def is_sparse(self) -> bool:
        return sp.issparse(self.X)

    def head(self, n_rows: int, n_columns: int) -> Data:
        """A small part, for a first fit that does not count."""
        X = self.X[:n_rows, :n_columns]
        return Data(X.copy() if self.is_sparse else np.asfortranarray(X), self.y[:n_rows].copy(), self.alphas)

    def slopes(self, residual: Array) -> Array:
        centred = residual - residual.mean()
        return np.asarray(self.X.T @ centred) / len(centred)

    def objective_and_gap(self, alpha: float, weights: Array) -> tuple[float, float]:
        """With the best intercept. The dual point is the residual, scaled until all slopes are within alpha."""
        [support] = np.nonzero(weights)
        residual = self.y - self.X[:, support] @ weights[support]
        residual = residual - residual.mean()
        slopes = self.slopes(residual)
        scale = min(1.0, alpha / np.abs(slopes).max())
        half = 0.5 * float(residual @ residual) / len(residual)
        size = np.abs(weights[support])
        lost = float((alpha * size - scale * weights[support] * slopes[support]).sum())
        return half + alpha * float(size.sum()), half * (1 - scale) ** 2 + lost


def made(problem: Sparse, quick: bool) -> Data:
    X, y = problem.make(quick)
    data = Data(X, y, np.zeros(0))
    return Data(X, y, float(np.abs(data.slopes(y)).max()) * problem.ratios)


def chain(n_rows: int, n_columns: int, correlation: float, n_effects: int, noise: float) -> Callable[[bool], Any]:
    """Gaussian columns, each correlated with the one before it."""

    def make(quick: bool) -> tuple[Array, Array]:
        n, d = (n_rows // 10, n_columns // 10) if quick else (n_rows, n_columns)
        rng = np.random.default_rng(0)
        X = np.asfortranarray(rng.standard_normal((n, d)))
        for j in range(1, d):
            X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
        effects = np.zeros(d)
        chosen = rng.choice(d, min(n_effects, d), replace=False)
        effects[chosen] = rng.standard_normal(len(chosen))
        signal = X @ effects
        return X, signal + noise * signal.std() * rng.standard_normal(n)

    return make


def words(n_rows: int, n_columns: int, density: float) -> Callable[[bool], Any]:
    """Columns as rare as words are: their frequencies fall by a power law."""

    def make(quick: bool) -> tuple[Any, Array]:
        n, d = (n_rows // 10, n_columns // 10) if quick else (n_rows, n_columns)
        rng = np.random.default_rng(0)
        frequency = np.arange(1.0, d + 1) ** -0.7
        counts = rng.binomial(n, np.minimum(frequency * (density * d / frequency.sum()), 0.5)).clip(3)
        rows = np.concatenate([np.sort(rng.choice(n, count, replace=False)) for count in counts]).astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        X = sp.csc_matrix((rng.exponential(size=len(rows)) + 0.1, rows, offsets), shape=(n, d))
        effects = np.zeros(d)
        effects[rng.choice(d, d // 100, replace=False)] = rng.standard_normal(d // 100)
        signal = X @ effects
        return X, signal + 0.5 * signal.std() * rng.standard_normal(n)

    return make


def subjectivity(quick: bool) -> tuple[Any, Array]:
    """10,000 sentences and their 20,909 words, objective or subjective."""
    import pyarrow.parquet as pq
    from sklearn.feature_extraction.text import CountVectorizer

    table = pq.read_table(REAL_DATA / "subjectivity" / "subjectivity.parquet").to_pydict()
    text, label = (table[name][:: 10 if quick else 1] for name in ("text", "label"))
    X = sp.csc_matrix(CountVectorizer().fit_transform(text), dtype=np.float64)
    X.sort_indices()
    return X, np.array([float(one == label[0]) for one in label])


HUNDRED = np.geomspace(1, 1e-3, 100)
LIST = [
    Sparse("cv_20k_100", "cv", "100 alphas x 10 folds", chain(20_000, 100, 0.5, 20, 0.7), HUNDRED),
    Sparse("cv_3k_300_ar95", "cv", "100 alphas x 10 folds, AR 0.95", chain(3_000, 300, 0.95, 30, 0.5), HUNDRED),
    Sparse("path_10k_2000_ar95", "path", "100 alphas, AR 0.95", chain(10_000, 2_000, 0.95, 100, 0.5), HUNDRED),
    Sparse("wide_20", "fit", "alpha_max / 20", chain(2_000, 20_000, 0.5, 200, 0.33), np.array([0.05])),
    Sparse("wide_100", "fit", "alpha_max / 100", chain(2_000, 20_000, 0.5, 200, 0.33), np.array([0.01])),
    Sparse("wide_path", "path", "100 alphas", chain(2_000, 20_000, 0.5, 200, 0.33), np.geomspace(1, 0.01, 100)),
    Sparse("words_100", "fit", "sparse, alpha_max / 100", words(100_000, 50_000, 0.001), np.array([0.01])),
    Sparse("subjectivity_path", "path", "word counts, 30 alphas", subjectivity, np.geomspace(1, 0.03, 30)),
]
PROBLEMS = {problem.name: problem for problem in LIST}
