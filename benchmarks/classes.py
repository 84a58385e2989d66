"""Discriminant analysis and naive Bayes against scikit-learn: the same posteriors, wall and CPU seconds.

    python -m benchmarks.classes                    # all, some minutes
    python -m benchmarks.classes discriminant       # some
    python -m benchmarks.classes --quick            # small sizes: does everything run?
    python -m benchmarks.classes --out benchmarks/results/classes.jsonl

Runs take turns and the minimum counts; ours includes the certificate. scikit-learn-intelex has none of these models:
it leaves scikit-learn's in place, so that theirs are its times too.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import naive_bayes as peers
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

import certifit as cf
from benchmarks.turns import Compared, compare, many, run

PEER = "scikit-learn"


def classes(n_rows: int, n_columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of correlated columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, 1:] += 0.5 * X[:, :-1]
    y = rng.integers(0, 2, n_rows)
    X[:, 0] += y
    return X, y


def words(n_rows: int, n_words: int, kind: Any = np.float64, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Counts of words, a hundred entries a row; some words are more frequent than others."""
    rng = np.random.default_rng(seed)
    columns = (n_words * rng.random((n_rows, 100)) ** 3).astype(np.int32)
    offsets = (100 * np.arange(n_rows + 1)).astype(np.int32)
    counts = sp.csr_array(
        (rng.integers(1, 4, columns.size).astype(kind), columns.ravel(), offsets), shape=(n_rows, n_words)
    )
    counts.sum_duplicates()
    return counts, rng.integers(0, 2, n_rows)


def apart(X: Any) -> Callable[[Any, Any], float]:
    """The largest difference of two models' posteriors over the first rows of X."""
    rows = X[:10_000]
    return lambda ours, theirs: float(np.abs(ours.predict_proba(rows) - theirs.predict_proba(rows)).max())


def gap(ours: Any, theirs: Any) -> float:
    """The largest difference of two arrays."""
    return float(np.abs(ours - theirs).max())


def fits(task: str, size: str, ours: Any, rivals: dict[str, Any], X: Any, y: Any) -> Iterator[Compared]:
    """A fit of each."""
    others = {name: partial(peer.fit, X, y) for name, peer in rivals.items()}
    yield from compare(task, size, partial(ours.fit, X, y), others, apart(X))


def discriminant(quick: bool) -> Iterator[Compared]:
    """One covariance, and one a class; float64 and float32."""
    n_rows, d = (2000, 10) if quick else (1_000_000, 50)
    whole, y = classes(n_rows, d)
    for dtype in ("float64", "float32"):
        X, size = whole.astype(dtype), f"{n_rows:,} x {d}, {dtype}"
        slow = ("svd",) if dtype == "float64" else ()
        linear = {f"{PEER} LDA {s}": LinearDiscriminantAnalysis(solver=s) for s in ("lsqr", *slow)}
        quadratic = {f"{PEER} QDA {s}": QuadraticDiscriminantAnalysis(solver=s) for s in ("eigen", *slow)}
        yield from fits("discriminant, shared", size, cf.GaussianDiscriminant("shared"), linear, X, y)
        yield from fits("discriminant, a class each", size, cf.GaussianDiscriminant("class"), quadratic, X, y)


def gaussian(quick: bool) -> Iterator[Compared]:
    """Gaussian naive Bayes."""
    n_rows, d = (2000, 10) if quick else (1_000_000, 50)
    whole, y = classes(n_rows, d)
    for dtype in ("float64", "float32"):
        X, size = whole.astype(dtype), f"{n_rows:,} x {d}, {dtype}"
        yield from fits("Gaussian naive Bayes", size, cf.GaussianNB(), {PEER: peers.GaussianNB()}, X, y)


def counts(quick: bool) -> Iterator[Compared]:
    """Bernoulli and multinomial naive Bayes over sparse counts; int64 is what scikit-learn's vectorisers give."""
    n_rows, d = (2000, 500) if quick else (200_000, 20_000)
    for dtype in ("float64", "int64", "float32"):
        X, y = words(n_rows, d, dtype)
        size = f"{n_rows:,} x {d:,}, {X.nnz:,} entries, {dtype}"
        for name in ("BernoulliNB", "MultinomialNB"):
            yield from fits(f"{name}, sparse", size, getattr(cf, name)(), {PEER: getattr(peers, name)()}, X, y)


def prediction(quick: bool) -> Iterator[Compared]:
    """Labels and posteriors of new rows."""
    n_rows, d = (2000, 10) if quick else (500_000, 50)
    X, y = classes(n_rows, d)
    pairs: list[tuple[Any, Any, Any, Any]] = [
        (cf.GaussianDiscriminant("shared"), LinearDiscriminantAnalysis(solver="lsqr"), X, y),
        (cf.GaussianDiscriminant("class"), QuadraticDiscriminantAnalysis(solver="eigen"), X, y),
        (cf.GaussianNB(), peers.GaussianNB(), X, y),
    ]
    counts = words(*((2000, 500) if quick else (100_000, 20_000)))
    pairs += [(getattr(cf, name)(), getattr(peers, name)(), *counts) for name in ("BernoulliNB", "MultinomialNB")]
    for mine, peer, rows, labels in pairs:
        mine.fit(rows, labels)
        peer.fit(rows, labels)
        kind = f", {mine.covariance}" if isinstance(mine, cf.GaussianDiscriminant) else ""
        size = f"{rows.shape[0]:,} x {rows.shape[1]:,}{kind}"
        for method in ("predict", "predict_proba"):
            ours, theirs = (partial(getattr(model, method), rows) for model in (mine, peer))
            yield from compare(f"{type(mine).__name__}.{method}", size, ours, {PEER: theirs}, gap)


def small(quick: bool) -> Iterator[Compared]:
    """150 rows x 4 columns: a hundred fits."""
    X, y = classes(150, 4)
    times = 3 if quick else 100
    pairs: list[tuple[str, Any, Any]] = [
        ("discriminant, shared", cf.GaussianDiscriminant("shared"), LinearDiscriminantAnalysis(solver="lsqr")),
        ("discriminant, a class each", cf.GaussianDiscriminant("class"), QuadraticDiscriminantAnalysis(solver="eigen")),
        ("GaussianNB", cf.GaussianNB(), peers.GaussianNB()),
        ("BernoulliNB", cf.BernoulliNB(), peers.BernoulliNB()),
        ("MultinomialNB", cf.MultinomialNB(), peers.MultinomialNB()),
    ]
    for name, mine, peer in pairs:
        rows = np.abs(X) if name == "MultinomialNB" else X
        ours, theirs = (many(partial(model.fit, rows, y), times) for model in (mine, peer))
        yield from compare(f"{name}, {times} fits", "150 x 4", ours, {PEER: theirs}, apart(rows))


def smoothing(quick: bool) -> Iterator[Compared]:
    """Eleven smoothings x 10 folds."""
    from sklearn.model_selection import GridSearchCV

    n_rows, d = (2000, 500) if quick else (50_000, 20_000)
    X, y = words(n_rows, d)
    folds = list(cf.Folds(10, stratify=True).split(X, y))
    grid = {"alpha": 10.0 ** np.arange(-3.0, 2.01, 0.5)}
    ours = partial(cf.CrossValidated(cf.MultinomialNB(), grid, cv=folds).fit, X, y)
    theirs = partial(GridSearchCV(peers.MultinomialNB(), grid, cv=folds).fit, X, y)
    size = f"{n_rows:,} x {d:,}, 11 values x 10 folds"
    yield from compare("MultinomialNB, smoothing", size, ours, {f"{PEER} GridSearchCV": theirs}, _mean_scores, rounds=3)


def _mean_scores(ours: Any, theirs: Any) -> float:
    return gap(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])


def interrupt(quick: bool) -> Iterator[Compared]:
    """Seconds from Ctrl-C, 20 ms into a fit, to the end of the fit: in place of the time of a whole one."""
    X, y = classes(*((200_000, 50) if quick else (1_000_000, 100)))
    models = (cf.GaussianDiscriminant("shared"), cf.GaussianDiscriminant("class"), cf.GaussianNB())
    for model in models:
        name = f"{type(model).__name__} {getattr(model, 'covariance', '')}".strip()
        ours, whole = partial(_stopped, partial(model.fit, X, y)), partial(model.fit, X, y)
        size = f"{X.shape[0]:,} x {X.shape[1]}"
        yield from compare(f"Ctrl-C, {name}", size, ours, {"the whole fit": whole}, note=_response)


def _stopped(fit: Callable[[], Any]) -> float:
    """Seconds from the signal to the exception; 0 if the fit was over before."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.02, send)
    timer.start()
    try:
        fit()
        timer.cancel()
        timer.join()
    except KeyboardInterrupt:
        return time.perf_counter() - sent[0]
    return 0.0


def _response(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms after the signal"


if __name__ == "__main__":
    run(__doc__, {f.__name__: f for f in (discriminant, gaussian, counts, prediction, small, smoothing, interrupt)})
