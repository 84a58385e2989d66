"""Discriminant analysis and naive Bayes against scikit-learn: the same posteriors, the ratio of times.

    python -m benchmarks.classes                    # all, some minutes
    python -m benchmarks.classes discriminant       # some
    python -m benchmarks.classes --quick            # small sizes: does everything run?
    python -m benchmarks.classes --out FILE.jsonl   # result lines too

A fit each, the minimum of several runs. scikit-learn-intelex has none of these models of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.selection import Line, best_of, line, run


def classes(n_rows: int, n_columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of correlated columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    X[:, 1:] += 0.5 * X[:, :-1]
    y = rng.integers(0, 2, n_rows)
    X[:, 0] += y
    return X, y


def words(n_rows: int, n_words: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Counts of words, a hundred entries a row; some words are more frequent than others."""
    rng = np.random.default_rng(seed)
    columns = (n_words * rng.random((n_rows, 100)) ** 3).astype(np.int32)
    counts = sp.csr_array(
        (rng.integers(1, 4, columns.size).astype(np.float64), columns.ravel(), 100 * np.arange(n_rows + 1)),
        shape=(n_rows, n_words),
    )
    counts.sum_duplicates()
    return counts, rng.integers(0, 2, n_rows)


def apart(ours: Any, theirs: Any, X: Any) -> float:
    """The largest difference of posteriors over the first rows."""
    return float(np.abs(ours.predict_proba(X[:10_000]) - theirs.predict_proba(X[:10_000])).max())


def discriminant(quick: bool) -> Iterator[Line]:
    """One covariance, and one a class."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

    import certifit as cf

    n_rows, d = (2000, 10) if quick else (1_000_000, 50)
    X, y = classes(n_rows, d)
    size = f"{n_rows:,} x {d}"
    peers = {
        "shared": {"lsqr": LinearDiscriminantAnalysis(solver="lsqr")},
        "class": {"eigen": QuadraticDiscriminantAnalysis(solver="eigen"), "svd": QuadraticDiscriminantAnalysis()},
    }
    for kind, solvers in peers.items():
        ours, model = best_of(lambda kind=kind: cf.GaussianDiscriminant(kind).fit(X, y))
        for name, peer in solvers.items():
            theirs, other = best_of(lambda peer=peer: peer.fit(X, y))
            task = f"discriminant, covariance {kind}"
            yield line(task, size, f"scikit-learn {type(peer).__name__} {name}", ours, theirs, apart(model, other, X))


def gaussian(quick: bool) -> Iterator[Line]:
    """Gaussian naive Bayes."""
    from sklearn.naive_bayes import GaussianNB

    import certifit as cf

    n_rows, d = (2000, 10) if quick else (1_000_000, 50)
    X, y = classes(n_rows, d)
    ours, model = best_of(lambda: cf.GaussianNB().fit(X, y))
    theirs, other = best_of(lambda: GaussianNB().fit(X, y))
    yield line("Gaussian naive Bayes", f"{n_rows:,} x {d}", "scikit-learn", ours, theirs, apart(model, other, X))


def counts(quick: bool) -> Iterator[Line]:
    """Bernoulli and multinomial naive Bayes over sparse counts."""
    from sklearn.naive_bayes import BernoulliNB, MultinomialNB

    import certifit as cf

    n_rows, d = (2000, 500) if quick else (200_000, 20_000)
    X, y = words(n_rows, d)
    for mine, peer in ((cf.BernoulliNB, BernoulliNB), (cf.MultinomialNB, MultinomialNB)):
        ours, model = best_of(lambda mine=mine: mine().fit(X, y))
        theirs, other = best_of(lambda peer=peer: peer().fit(X, y))
        size = f"{n_rows:,} x {d:,}, {X.nnz:,} entries"
        yield line(f"{mine.__name__}, sparse", size, "scikit-learn", ours, theirs, apart(model, other, X))


def smoothing(quick: bool) -> Iterator[Line]:
    """Eleven smoothings x 10 folds."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.naive_bayes import MultinomialNB

    import certifit as cf

    n_rows, d = (2000, 500) if quick else (50_000, 20_000)
    X, y = words(n_rows, d)
    folds = list(cf.Folds(10, stratify=True).split(X, y))
    grid = {"alpha": 10.0 ** np.arange(-3.0, 2.01, 0.5)}
    ours, model = best_of(lambda: cf.CrossValidated(cf.MultinomialNB(), grid, cv=folds).fit(X, y))
    theirs, other = best_of(lambda: GridSearchCV(MultinomialNB(), grid, cv=folds).fit(X, y))
    difference = np.abs(model.cv_results_["mean_test_score"] - other.cv_results_["mean_test_score"]).max()
    yield line("MultinomialNB, 11 values x 10 folds", f"{n_rows:,} x {d:,}", "GridSearchCV", ours, theirs, difference)


if __name__ == "__main__":
    run(__doc__, {f.__name__: f for f in (discriminant, gaussian, counts, smoothing)})
