"""Principal components against scikit-learn and scikit-learn-intelex: seconds, extra memory, agreement.

    python -m benchmarks.pca                    # all
    python -m benchmarks.pca tall               # some
    python -m benchmarks.pca --quick            # small sizes: does everything run?
    python -m benchmarks.pca --out FILE.jsonl   # result lines too

Each time is the minimum of several runs; ours includes the certificate.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.selection import Line, best_of, line


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


def tall(quick: bool) -> Iterator[Line]:
    """Many rows, ten components: one pass for the d x d matrix."""
    from sklearn.decomposition import PCA as Peer

    import certifit as cf

    n_rows, d = (20_000, 20) if quick else (1_000_000, 100)
    X = rows(n_rows, d)
    ours, model = best_of(lambda: cf.PCA(10).fit(X), 5)
    extra = extra_memory(lambda: cf.PCA(10).fit(X)) / X.nbytes
    size = f"{n_rows:,} x {d}, 10 components"
    note = f"extra memory {100 * extra:.1f} % of X, certificate {model.certificate_.value:.0e}"
    for name, peer in (("scikit-learn", Peer), ("scikit-learn-intelex", intelex())):
        if peer is not None:
            theirs, other = best_of(lambda peer=peer: peer(10).fit(X), 3)
            yield line("principal components", size, name, ours, theirs, difference(model, other), note)


def wide(quick: bool) -> Iterator[Line]:
    """Fewer rows than columns: the N x N matrix. Strong directions are easy for arpack, noise is not."""
    from sklearn.decomposition import PCA as Peer

    import certifit as cf

    n_rows, d = (100, 1000) if quick else (500, 20_000)
    for kind, X in (("strong", rows(n_rows, d)), ("noise", np.random.default_rng(0).standard_normal((n_rows, d)))):
        ours, model = best_of(lambda X=X: cf.PCA(10).fit(X), 7)
        size = f"{n_rows:,} x {d:,}, 10 components, {kind}"
        note = f"certificate {model.certificate_.value:.0e}"
        peers: dict[str, Any] = {
            f"scikit-learn {solver}": partial(Peer, 10, svd_solver=solver, random_state=0)
            for solver in ("arpack", "randomized")
        }
        patched = intelex()
        if patched is not None:
            peers["scikit-learn-intelex"] = partial(patched, 10)
        for name, peer in peers.items():
            theirs, other = best_of(lambda peer=peer, X=X: peer().fit(X), 3)
            yield line("principal components", size, name, ours, theirs, difference(model, other), note)


def large(quick: bool) -> Iterator[Line]:
    """Rows and columns both many: products alone."""
    from sklearn.decomposition import PCA as Peer

    import certifit as cf

    n_rows, d = (500, 400) if quick else (6000, 5000)
    X = rows(n_rows, d)
    ours, model = best_of(lambda: cf.PCA(10, solver="randomized").fit(X), 2)
    theirs, other = best_of(lambda: Peer(10, svd_solver="arpack", random_state=0).fit(X), 1)
    note = f"{model.n_iter_} steps, certificate {model.certificate_.value:.0e}"
    size = f"{n_rows:,} x {d:,}, 10 components"
    yield line("principal components", size, "scikit-learn arpack", ours, theirs, difference(model, other), note)


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference of the explained variances, relative to the largest."""
    own, other = ours.explained_variance_, theirs.explained_variance_
    return float(np.abs(own - other).max() / own.max())


def intelex() -> Any:
    """PCA of scikit-learn-intelex, where it is installed."""
    try:
        from sklearnex.decomposition import PCA
    except ImportError:
        return None
    return PCA


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


TASKS = {"tall": tall, "wide": wide, "large": large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=[], metavar="TASK", help=f"some of {', '.join(TASKS)}")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    if unknown := set(given.tasks) - set(TASKS):
        parser.error(f"unknown {sorted(unknown)}. Tasks are {', '.join(TASKS)}.")
    for task in given.tasks or TASKS:
        for one in TASKS[task](given.quick):
            print(
                f"{one.size:44} ours {one.ours:8.4f} s  {one.rival:24} {one.theirs:8.3f} s  {one.ratio:6.1f}x  "
                f"differ by {one.difference:.1e}  {one.agrees}",
                flush=True,
            )
            if given.out:
                with open(given.out, "a") as file:
                    file.write(json.dumps(asdict(one) | {"ratio": one.ratio}) + "\n")


if __name__ == "__main__":
    main()
