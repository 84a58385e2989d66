"""Every fit with less and less memory: MemoryError or an error of ours, or the same fit; never a crash.

    python tests/little_memory.py [--only "Lasso, wide" softmax] [--steps 12]

Each case is fitted once without a limit, which loads all libraries; then in forked children whose address space may
grow by so many megabytes only, from next to nothing up to what the fit needs. A child may answer with the bits of the
fit without a limit, or raise MemoryError, or a ValueError; anything else is a fault.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402
from learners import ROWS  # noqa: E402
from sklearn.base import clone  # noqa: E402

import certifit as cf  # noqa: E402

STUCK = 300  # seconds until a child that does not answer is given up
STATES = ("coef_", "intercept_", "components_", "theta_", "means_", "feature_log_prob_", "scores_", "vocabulary_")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30_000, 40))
Y = X[:, 0] + RNG.normal(size=30_000)
LABELS = (Y > 0).astype(int)
CLASSES = np.clip(Y.astype(int) + 2, 0, 4)
COUNTS = np.floor(np.abs(X))
WIDE = RNG.normal(size=(300, 4_000))
TEXTS = [" ".join(f"w{k}" for k in RNG.integers(0, 20_000, size=60)) for _ in range(4_000)]

FITS: dict[str, Callable[[], Any]] = {
    "LinearRegression": lambda: cf.LinearRegression().fit(X, Y),
    "LinearRegression, wide": lambda: cf.LinearRegression().fit(WIDE, Y[:300]),
    "Ridge, wide": lambda: cf.Ridge().fit(WIDE, Y[:300]),
    "Lasso": lambda: cf.Lasso(0.01).fit(X, Y),
    "Lasso, wide": lambda: cf.Lasso(0.1).fit(WIDE, Y[:300]),
    "ElasticNet, wide": lambda: cf.ElasticNet(0.1).fit(WIDE, Y[:300]),
    "HuberRegressor": lambda: cf.HuberRegressor().fit(X, Y),
    "PCA": lambda: cf.PCA(3).fit(X),
    "PCA, wide": lambda: cf.PCA(3).fit(WIDE),
    "PCA(randomized)": lambda: cf.PCA(3, solver="randomized").fit(WIDE),
    "LogisticRegression": lambda: cf.LogisticRegression().fit(X, LABELS),
    "LogisticRegression(lbfgs)": lambda: cf.LogisticRegression(solver="lbfgs").fit(X, LABELS),
    "LogisticRegression(sgd)": lambda: cf.LogisticRegression(solver="sgd", max_iter=5).fit(X, LABELS),
    "LogisticRegression(L1), wide": lambda: cf.LogisticRegression(0.1, 1.0).fit(WIDE, LABELS[:300]),
    "softmax": lambda: cf.LogisticRegression().fit(X, CLASSES),
    "PoissonRegressor": lambda: cf.PoissonRegressor().fit(X, COUNTS[:, 0]),
    "GLM(negative-binomial)": lambda: cf.GLM("negative-binomial", alpha=0.01).fit(X, COUNTS[:, 0]),
    "Perceptron": lambda: cf.Perceptron(max_iter=5).fit(X, LABELS),
    "GaussianDiscriminant": lambda: cf.GaussianDiscriminant("class").fit(X, CLASSES),
    "GaussianNB": lambda: cf.GaussianNB().fit(X, CLASSES),
    "BernoulliNB": lambda: cf.BernoulliNB().fit(X, CLASSES),
    "MultinomialNB": lambda: cf.MultinomialNB().fit(COUNTS, CLASSES),
    "OneVsRestClassifier": lambda: cf.OneVsRestClassifier(cf.LogisticRegression()).fit(X, CLASSES).estimators_[0],
    "CrossValidated(ridge)": lambda: cf.CrossValidated(cf.Ridge(), cv=5).fit(X, Y).best_estimator_,
    "CrossValidated(lasso)": lambda: cf.CrossValidated(cf.Lasso(), cv=5).fit(X[:3000], Y[:3000]).best_estimator_,
    "ForwardSelection": lambda: cf.ForwardSelection(cf.Ridge(), 3, cv=3).fit(X[:, :10], Y),
    "MutualInformationFilter": lambda: cf.MutualInformationFilter(2).fit(X[:, :6], Y),
    "TextBinarizer": lambda: cf.TextBinarizer(ngram_range=(1, 2)).fit(TEXTS),
    "Polynomial": lambda: cf.LinearRegression(basis=cf.Polynomial(2)).fit(X[:, :12], Y),
}
OF_FEW_ROWS = ("kernel_", "svc", "svr", "hard_margin", "locally_weighted", "mlp_")  # slow on many
FITS |= {
    key: lambda key=key, row=row: clone(row.model).fit(*row.rows(*size_of(key)))
    for key, row in ROWS.items()
    if type(row.model).__name__ not in {name.partition("(")[0].partition(",")[0] for name in FITS}
}


def size_of(key: str) -> tuple[int, int]:
    return (1_500, 20) if key.startswith(OF_FEW_ROWS) else (30_000, 40)


def _answer(name: str) -> bytes:
    model = FITS[name]()
    if name in ROWS:
        return bytes(ROWS[name].answers(model, ROWS[name].rows(*size_of(name))[0][:200]).tobytes())
    states = [getattr(model, state) for state in STATES if hasattr(model, state)]
    if not states:
        states = [model.get_support()]
    return b"|".join(
        str(sorted(s.items())).encode() if isinstance(s, dict) else np.asarray(s).tobytes() for s in states
    )


def _in_child(name: str, n_bytes: int, connection: Connection) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        warnings.simplefilter("ignore")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with open("/proc/self/statm") as file:
            most = int(file.read().split()[0]) * resource.getpagesize() + n_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        try:
            answer: tuple[str, bytes] = "fit", _answer(name)
        except (MemoryError, ValueError) as error:
            answer = type(error).__name__, str(error)[:200].encode()
        except BaseException as error:
            answer = "fault", f"{type(error).__name__}: {error}"[:300].encode()
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        connection.send(answer)
    finally:
        os._exit(0)


def ended(name: str, n_bytes: int) -> tuple[str, bytes]:
    """How a fit ends that may take so many bytes more than the process has: fit, MemoryError, ValueError, fault."""
    reader, writer = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        reader.close()
        _in_child(name, n_bytes, writer)
    writer.close()
    with reader:
        try:
            if reader.poll(STUCK):
                return reader.recv()  # type: ignore[no-any-return]
            os.kill(child, signal.SIGKILL)
            return "fault", b"hangs"
        except EOFError:
            return "fault", b"the process died"
        finally:
            os.waitpid(child, 0)


def faults(name: str, sizes: list[float]) -> Iterator[str]:
    """What goes wrong at limits of so many megabytes."""
    without_limit = _answer(name)
    for size in sizes:
        kind, answer = ended(name, int(size * 2**20))
        if kind == "fault":
            yield f"{size:.3g} MB: {answer.decode()}"
        elif kind == "fit" and answer != without_limit:
            yield f"{size:.3g} MB: another fit"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=list(FITS), help="names of cases")
    parser.add_argument("--steps", type=int, default=12, help="limits between 0.1 and 200 MB")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes = np.geomspace(0.1, 200, chosen.steps).tolist()
    n_faults = 0
    for name in chosen.only:
        wrong = list(faults(name, sizes))
        n_faults += len(wrong)
        print(f"{'FAIL' if wrong else 'ok  '} {name}" + "".join(f"\n     {fault}" for fault in wrong), flush=True)
    print(f"{n_faults} faults")
    return int(n_faults > 0)


if __name__ == "__main__":
    sys.exit(main())
