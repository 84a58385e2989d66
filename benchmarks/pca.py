"""Principal components against scikit-learn and scikit-learn-intelex: wall and CPU seconds, extra memory, agreement.

    python -m benchmarks.pca                    # all, some minutes
    python -m benchmarks.pca tall               # some
    python -m benchmarks.pca --quick            # small sizes: does everything run?
    python -m benchmarks.pca --out benchmarks/results/pca.jsonl

Runs take turns and the minimum counts; ours includes the certificate.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA as Peer

import certifit as cf
from benchmarks.turns import Compared, compare, many, run


def rows(n_rows: int, n_columns: int, seed: int = 0) -> np.ndarray:
    """A few strong directions and noise, away from zero."""
    rng = np.random.default_rng(seed)
    strong = min(20, n_columns)
    X = rng.standard_normal((n_rows, n_columns))
    X += rng.standard_normal((n_rows, strong)) @ (
        rng.standard_normal((strong, n_columns)) * np.linspace(2, 0.5, strong)[:, None]
    )
    X += 3.0
    return X


def peers(*solvers: str) -> dict[str, Any]:
    """Rivals with ten components: scikit-learn with some solvers, and scikit-learn-intelex where it is installed."""
    found: dict[str, Any] = {
        f"scikit-learn {solver}": partial(Peer, 10, svd_solver=solver, random_state=0) for solver in solvers
    }
    try:
        from sklearnex.decomposition import PCA as Patched
    except ImportError:
        return found
    return found | {"scikit-learn-intelex": partial(Patched, 10)}


def fits(size: str, X: np.ndarray, rivals: dict[str, Any], note: str = "", **settings: Any) -> Iterator[Compared]:
    """A fit of each."""

    def told(model: Any) -> str:
        return f"{note}certificate {model.certificate_.value:.0e}"

    others = {name: (lambda peer=peer: peer().fit(X)) for name, peer in rivals.items()}
    yield from compare(
        "principal components", size, lambda: cf.PCA(10, **settings).fit(X), others, difference, told, rounds=5
    )


def tall(quick: bool) -> Iterator[Compared]:
    """Many rows, ten components: one pass for the d x d matrix."""
    n_rows, d = (20_000, 20) if quick else (1_000_000, 100)
    X = rows(n_rows, d)
    for dtype in ("float64", "float32"):
        X = X.astype(dtype, copy=False)
        extra = extra_memory(lambda X=X: cf.PCA(10).fit(X)) / X.nbytes
        size = f"{n_rows:,} x {d}, 10 components, {dtype}"
        yield from fits(size, X, peers("auto"), f"extra memory {100 * extra:.1f} % of X, ")


def wide(quick: bool) -> Iterator[Compared]:
    """Fewer rows than columns: the N x N matrix. Strong directions are easy for arpack, noise is not."""
    n_rows, d = (100, 1000) if quick else (500, 20_000)
    for kind, X in (("strong", rows(n_rows, d)), ("noise", np.random.default_rng(0).standard_normal((n_rows, d)))):
        size = f"{n_rows:,} x {d:,}, 10 components, {kind}"
        yield from fits(size, X, peers("arpack", "full", "randomized"))


def large(quick: bool) -> Iterator[Compared]:
    """Rows and columns both many: products alone."""
    n_rows, d = (500, 400) if quick else (6000, 5000)
    size = f"{n_rows:,} x {d:,}, 10 components"
    yield from fits(size, rows(n_rows, d), peers("arpack"), solver="randomized")


def scores(quick: bool) -> Iterator[Compared]:
    """Scores of new rows, and rows back from them."""
    X = rows(*((20_000, 20) if quick else (500_000, 100)))
    size = f"{X.shape[0]:,} x {X.shape[1]}, 10 components"
    ours, theirs = cf.PCA(10).fit(X), {name: peer().fit(X) for name, peer in peers("auto").items()}
    for method in ("transform", "inverse_transform"):
        given = X if method == "transform" else X[:, :10].copy()
        others = {name: partial(getattr(peer, method), given) for name, peer in theirs.items()}
        yield from compare(f"PCA.{method}", size, partial(getattr(ours, method), given), others, size_apart)


def small(quick: bool) -> Iterator[Compared]:
    """150 rows x 4 columns: a hundred fits."""
    X, times = rows(150, 4), 3 if quick else 100
    others = {"scikit-learn": many(lambda: Peer(2).fit(X), times)}
    yield from compare(f"PCA, {times} fits", "150 x 4", many(lambda: cf.PCA(2).fit(X), times), others, difference)


def size_apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of the sizes of entries (a direction's sign is free), relative to the largest."""
    return float(np.abs(np.abs(ours) - np.abs(theirs)).max() / np.abs(theirs).max())


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference of the explained variances, relative to the largest."""
    own, other = ours.explained_variance_, theirs.explained_variance_
    return float(np.abs(own - other).max() / own.max())


def extra_memory(f: Callable[[], Any]) -> float:
    """Bytes by which resident memory grows at most while f runs."""
    before, most, done = resident(), [0.0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            most[0] = max(most[0], resident() - before)
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    f()
    done.set()
    watcher.join()
    return most[0]


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096.0


if __name__ == "__main__":
    run(__doc__, {f.__name__: f for f in (tall, wide, large, scores, small)})
