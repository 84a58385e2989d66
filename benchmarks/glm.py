"""Generalised linear models against the best peers: equal objectives, wall and CPU seconds.

    python -m benchmarks.glm                    # all, many minutes
    python -m benchmarks.glm logistic           # some
    python -m benchmarks.glm --quick            # small sizes: does everything run?
    python -m benchmarks.glm --out benchmarks/results/glm.jsonl

Runs take turns and the minimum counts; ours includes the certificate. "differ by" is the excess of a rival's objective
over ours, relative: a rival that stops early shows it there. Rivals that are not installed are left out, and named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse as sp
from scipy.special import logsumexp

import certifit as cf
from benchmarks.turns import Compared, compare, run

FREMTPL2 = Path(__file__).resolve().parents[2] / "shared" / "data" / "fremtpl2" / "freq.parquet"
Fit = Callable[[], Any]


def scores(n_rows: int, n_columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns and scores of moderate size."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, 1:] += 0.3 * X[:, :-1]
    return X, X @ (rng.standard_normal(n_columns) / np.sqrt(2 * n_columns))


def targets(kind: str, z: np.ndarray, seed: int = 1) -> np.ndarray:
    """A target of every row, drawn from the family with score z."""
    rng = np.random.default_rng(seed)
    drawn: dict[str, Callable[[], np.ndarray]] = {
        "logistic": lambda: (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(np.int64),
        "poisson": lambda: rng.poisson(np.exp(z)).astype(np.float64),
        "gamma": lambda: rng.gamma(2.0, np.exp(z) / 2),
    }
    return drawn[kind]()


MEAN_LOSS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "logistic": lambda y, z: float(np.mean(np.logaddexp(0, z) - y * z)),
    "poisson": lambda y, z: float(np.mean(np.exp(z) - y * z)),
    "gamma": lambda y, z: float(np.mean(y * np.exp(-z) + z)),
}


def objective(kind: str, X: Any, y: np.ndarray, l1: float, l2: float) -> Callable[[Any], float]:
    """The objective of a fitted model: mean loss, l1 |w|_1 + l2/2 |w|^2."""

    def value(model: Any) -> float:
        w = np.ravel(model.coef_)
        z = np.asarray(X @ w) + float(np.ravel(model.intercept_)[0])
        return MEAN_LOSS[kind](y, z) + l1 * float(np.abs(w).sum()) + l2 / 2 * float(w @ w)

    return value


def excess(value: Callable[[Any], float]) -> Callable[[Any, Any], float]:
    """How far theirs is above ours, relative."""
    return lambda ours, theirs: (value(theirs) - value(ours)) / abs(value(ours))


def certified(model: Any) -> str:
    """What our fit proves."""
    return f"proven within {model.certificate_.value:.0e}"


def installed(rivals: dict[str, tuple[str, Callable[[], Any]]]) -> dict[str, Fit]:
    """Those whose package is there: {name: (package, fit)}."""
    for name, (package, _) in rivals.items():
        if find_spec(package) is None:
            print(f"{name} left out: {package} is not installed.")
    return {name: fit for name, (package, fit) in rivals.items() if find_spec(package) is not None}


def peer(module: str, name: str, X: Any, y: Any, **parameters: Any) -> Callable[[], Any]:
    """The fit of a class of a package, imported when it is run."""

    def fit() -> Any:
        package = __import__(module, fromlist=[name])
        return getattr(package, name)(**parameters).fit(X, y)

    return fit


def glum(kind: str, X: Any, y: Any, alpha: float, l1_ratio: float = 0.0, tol: float = 1e-6) -> Fit:
    """glum's fit at equal penalty."""
    family = {"logistic": "binomial", "poisson": "poisson", "gamma": "gamma"}[kind]
    link = "logit" if kind == "logistic" else "log"
    return peer(
        "glum", "GeneralizedLinearRegressor", X, y, family=family, link=link, alpha=alpha, l1_ratio=l1_ratio,
        gradient_tol=tol, max_iter=500,
    )  # fmt: skip


def logistic(quick: bool) -> Iterator[Compared]:
    """Dense rows, the penalty of scikit-learn's default."""
    n, d = (4000, 10) if quick else (500_000, 50)
    X, z = scores(n, d)
    y = targets("logistic", z)
    linear = "sklearn.linear_model"
    rivals = installed(
        {
            "scikit-learn newton-cholesky": (
                "sklearn",
                peer(linear, "LogisticRegression", X, y, solver="newton-cholesky", tol=1e-6),
            ),
            "scikit-learn lbfgs, tight": (
                "sklearn",
                peer(linear, "LogisticRegression", X, y, tol=1e-7, max_iter=1000),
            ),
            "scikit-learn lbfgs, its default": ("sklearn", peer(linear, "LogisticRegression", X, y)),
            "glum": ("glum", glum("logistic", X, y, 1 / n)),
            "scikit-learn-intelex": (
                "sklearnex",
                peer("sklearnex.linear_model", "LogisticRegression", X, y, tol=1e-7, max_iter=1000),
            ),
        }
    )
    value = objective("logistic", X, y, 0.0, 1 / n)
    ours = partial(cf.LogisticRegression().fit, X, y)
    yield from compare("logistic, L2", f"{n:,} x {d}", ours, rivals, excess(value), certified, rounds=4)


def counts(quick: bool) -> Iterator[Compared]:
    """Poisson and Gamma, log link."""
    n, d = (4000, 10) if quick else (500_000, 50)
    X, z = scores(n, d)
    for kind, name in (("poisson", "PoissonRegressor"), ("gamma", "GammaRegressor")):
        y, alpha = targets(kind, z), 1e-3
        rivals = installed(
            {
                "glum": ("glum", glum(kind, X, y, alpha)),
                "scikit-learn newton-cholesky": (
                    "sklearn",
                    peer("sklearn.linear_model", name, X, y, alpha=alpha, solver="newton-cholesky", tol=1e-6),
                ),
            }
        )
        value = objective(kind, X, y, 0.0, alpha)
        ours = partial(getattr(cf, name)(alpha=alpha).fit, X, y)
        yield from compare(f"{kind}, L2", f"{n:,} x {d}", ours, rivals, excess(value), certified, rounds=4)


def softmax(quick: bool) -> Iterator[Compared]:
    """Ten classes of pictures with 784 points."""
    n, d, k = (2000, 30, 4) if quick else (60_000, 784, 10)
    rng = np.random.default_rng(0)
    centres = rng.random((k, d)) * (rng.random((k, d)) < 0.3)
    y = rng.integers(0, k, n)
    X = np.clip(centres[y] + 0.35 * rng.standard_normal((n, d)), 0, 1) * (rng.random(d) < 0.8)

    def value(model: Any) -> float:
        z = X @ model.coef_.T + model.intercept_
        own = np.mean(logsumexp(z, axis=1) - z[np.arange(n), y])
        return float(own) + float((model.coef_**2).sum()) / (2 * n)

    linear = "sklearn.linear_model"
    rivals = installed(
        {
            "scikit-learn lbfgs, tight": (
                "sklearn",
                peer(linear, "LogisticRegression", X, y, tol=1e-7, max_iter=2000),
            ),
            "scikit-learn lbfgs, its default": ("sklearn", peer(linear, "LogisticRegression", X, y)),
        }
    )
    ours = partial(cf.LogisticRegression(tol=1e-5).fit, X, y)
    yield from compare("softmax", f"{n:,} x {d}, {k} classes", ours, rivals, excess(value), certified, rounds=2)


def words(n_rows: int, n_columns: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Sparse rows like those of text, of length near 1: 0.1 % of the entries, few frequent columns, labels by them."""
    rng = np.random.default_rng(seed)
    each = max(n_columns // 1000, 5)
    columns = (n_columns * rng.random((n_rows, each)) ** 2).astype(np.int32)
    values = (rng.random(columns.size) + 0.5) / np.sqrt(each)
    starts = (each * np.arange(n_rows + 1)).astype(np.int32)
    X = sp.csr_array((values, columns.ravel(), starts), shape=(n_rows, n_columns))
    X.sum_duplicates()
    z = 2 * np.asarray(X @ rng.standard_normal(n_columns))
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-z))).astype(np.int64)


def sparse(quick: bool) -> Iterator[Compared]:
    """Text-like rows, L2 and L1."""
    n, d = (2000, 500) if quick else (100_000, 50_000)
    X, y = words(n, d)
    size = f"{n:,} x {d:,}, {X.nnz:,} entries"
    linear = "sklearn.linear_model"
    for name, ratio, C in (("L2", 0.0, 1.0), ("L1", 1.0, 1.0)):
        alpha = 1 / (C * n)
        rivals = installed(
            {
                f"liblinear {name}": (
                    "sklearn",
                    peer(linear, "LogisticRegression", X, y, C=C, l1_ratio=ratio, solver="liblinear", tol=1e-4),
                ),
                f"snapml {name}": (
                    "snapml",
                    peer(
                        "snapml",
                        "LogisticRegression",
                        sp.csr_matrix(X),
                        y,
                        regularizer=1 / C,
                        n_jobs=2,
                        penalty=name.lower(),
                        fit_intercept=True,
                        tol=1e-4,
                        max_iter=1000,
                        normalize=False,
                        dual=name == "L2",
                    ),
                ),
            }
        )
        value = objective("logistic", X, y, alpha * ratio, alpha * (1 - ratio))
        ours = partial(cf.LogisticRegression(alpha=alpha, l1_ratio=ratio, tol=1e-5).fit, X, y)
        yield from compare(f"sparse logistic, {name}", size, ours, rivals, excess(value), certified, rounds=3)


def categories(quick: bool) -> Iterator[Compared]:
    """Claims of motor insurance with exposure: categories as they are, against glum's categorical matrices."""
    if not FREMTPL2.exists():
        print(f"fremtpl2 left out: {FREMTPL2.name} is not in shared/data beside the project folder.")
        return
    table = pq.read_table(FREMTPL2).drop_columns(["IDpol", "ClaimAmount", "NbSev"])
    table = table.slice(0, 5000) if quick else table
    frame = table.to_pandas()
    y, exposure = (frame.pop(name).to_numpy().astype(float) for name in ("ClaimNb", "Exposure"))
    alpha = 1e-3

    def ours() -> Any:
        scan = cf.from_arrow(table, target="ClaimNb", exposure="Exposure")
        return cf.PoissonRegressor(alpha=alpha).fit(scan)

    def theirs() -> Any:
        from glum import GeneralizedLinearRegressor

        model = GeneralizedLinearRegressor(
            family="poisson", link="log", alpha=alpha, l1_ratio=0, drop_first=True, gradient_tol=1e-8, max_iter=500
        )
        return model.fit(frame, y, offset=np.log(exposure))

    def apart(mine: Any, other: Any) -> float:
        rates = mine.predict(table.drop_columns(["ClaimNb", "Exposure"]).slice(0, 1000))
        return float(np.abs(rates / other.predict(frame.iloc[:1000]) - 1).max())

    size = f"{len(y):,} x {frame.shape[1]}, with categories"
    rivals = installed({"glum, tabmat categories": ("glum", theirs)})
    yield from compare("Poisson with exposure, fremtpl2", size, ours, rivals, apart, certified, rounds=4)


TASKS: dict[str, Callable[[bool], Iterator[Compared]]] = {
    "logistic": logistic,
    "counts": counts,
    "softmax": softmax,
    "sparse": sparse,
    "categories": categories,
}

if __name__ == "__main__":
    run(__doc__, TASKS)
