"""Hostile inputs, continued: sparse arrays, weights, predictions, copies, threads, forks, memory, parameters."""

from __future__ import annotations

import copy
import os
import pickle
import resource
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from hostile_cases import (
    MISSING,
    N_COLUMNS,
    N_ROWS,
    NotApplicable,
    Subject,
    Wrong,
    _frame,
    _put,
    assert_finite,
    assert_same,
    assert_sane,
    case,
    must_refuse,
)
from sklearn.base import clone

# ---- sparse ---------------------------------------------------------------------------------------------------------


def _sparse_rows(subject: Subject) -> tuple[Any, Any]:
    X, y = subject.rows()
    return np.where(np.abs(X) < 0.5, 0.0, X), y


def _unsorted(X: Any) -> Any:
    out = sp.csr_matrix(X)
    for begin, end in zip(out.indptr[:-1], out.indptr[1:], strict=True):
        out.indices[begin:end], out.data[begin:end] = (
            out.indices[begin:end][::-1].copy(),
            out.data[begin:end][::-1].copy(),
        )
    out.has_sorted_indices = False
    return out


def _twice(X: Any) -> Any:
    """Every entry in two parts."""
    once, out = sp.csr_matrix(X), sp.csr_matrix(X.shape)
    out.data = (once.data[:, None] * [0.25, 0.75]).ravel()
    out.indices, out.indptr = np.repeat(once.indices, 2), once.indptr * 2
    return out


def _explicit_zeros(X: Any) -> Any:
    out = sp.csr_matrix(np.where(X == 0, 1e-99, X))
    out.data[out.data == 1e-99] = 0.0
    return out


def _wide_index(X: Any) -> Any:
    out = sp.csr_matrix(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


SPARSE: dict[str, Callable[[Any], Any]] = {
    "csr": sp.csr_matrix, "csc": sp.csc_matrix, "csr_array": sp.csr_array, "coo": sp.coo_matrix, "lil": sp.lil_matrix,
    "dok": sp.dok_matrix, "bsr": sp.bsr_matrix, "dia": sp.dia_matrix, "explicit zeros": _explicit_zeros,
    "unsorted indices": _unsorted, "duplicate entries": _twice, "int64 indices": _wide_index,
    "float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}  # fmt: skip


def _sparse(store: Callable[[Any], Any]) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = _sparse_rows(subject)
        same = np.asarray(store(X).toarray(), dtype=float) if "hashed" in subject.flags else X
        wanted = subject.expected(X, y) if same is X else subject.fitted_output(same, y, X)
        assert_same(subject.fitted_output(store(X), y, X), wanted, 2e-2)

    return run


for _name, _store in SPARSE.items():
    case(f"sparse {_name}")(_sparse(_store))

CORRUPT: dict[str, dict[str, dict[int, float]]] = {
    "with NaN stored": {"data": {3: np.nan}},
    "column index out of range": {"indices": {5: 10**6}},
    "negative column index": {"indices": {5: -7}},
    "indptr beyond data": {"indptr": {-1: 10**7}},
    "indptr not monotone": {"indptr": {5: 40, 6: 0}},
}


def _corrupt(name: str, edits: dict[str, dict[int, float]]) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = _sparse_rows(subject)
        X = sp.csr_matrix(X)
        for part, values in edits.items():
            for place, value in values.items():
                getattr(X, part)[place] = value
        must_refuse(lambda: subject.fit(X, y), f"sparse {name}" in MISSING and subject.takes_nan())

    return run


for _name, _edits in CORRUPT.items():
    case(f"sparse {_name}")(_corrupt(_name, _edits))

# ---- weights --------------------------------------------------------------------------------------------------------


def weights(name: str) -> Callable[[Any], Any]:
    """A case that applies to estimators with sample_weight."""

    def register(run: Callable[[Subject], None]) -> None:
        def only_with_weights(subject: Subject) -> None:
            if not subject.takes_weights():
                raise NotApplicable("no sample_weight")
            run(subject)

        case(f"sample_weight {name}")(only_with_weights)

    return register


BAD_WEIGHTS: dict[str, Any] = {
    "negative": _put(np.ones(N_ROWS), 3, -5),
    "NaN": _put(np.ones(N_ROWS), 3, np.nan),
    "inf": _put(np.ones(N_ROWS), 3, np.inf),
    "all zero": np.zeros(N_ROWS),
    "wrong length": np.ones(N_ROWS - 1),
    "strings": np.full(N_ROWS, "a"),
}


def _bad_weight(weight: Any) -> Callable[[Subject], None]:
    return lambda subject: must_refuse(lambda: subject.fit(*subject.rows(), sample_weight=weight))


def _scaled_weight(value: float) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = subject.rows()
        assert_sane(subject, subject.fit(X, y, sample_weight=np.full(N_ROWS, value)), X, y)

    return run


def _counted_weight(times: int) -> Callable[[Subject], None]:
    """Weight `times` on 15 rows against those rows that often."""

    def run(subject: Subject) -> None:
        _any_order(subject)
        X, y = subject.rows()
        weight = np.where(np.arange(N_ROWS) < 15, times, 1)
        again = np.repeat(np.arange(N_ROWS), weight)
        model = subject.fit(X, y, sample_weight=weight.astype(float))
        assert_same(subject.output(model, X), subject.fitted_output(X[again], y[again], X), 2e-2)

    return run


def _any_order(subject: Subject) -> None:
    if "in order" in subject.flags:
        raise NotApplicable("the order of the rows decides")


for _name, _weight in BAD_WEIGHTS.items():
    weights(_name)(_bad_weight(_weight))
weights("tiny 1e-300")(_scaled_weight(1e-300))
weights("huge 1e300")(_scaled_weight(1e300))
weights("zero = row removed")(_counted_weight(0))
weights("3 = row repeated")(_counted_weight(3))

# ---- after the fit --------------------------------------------------------------------------------------------------


@case("inputs not mutated")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    before = X.tobytes(), y.tobytes()
    subject.fitted_output(X, y)
    if (X.tobytes(), y.tobytes()) != before:
        raise Wrong("X or y was changed")


@case("predict before fit")
def _(subject: Subject) -> None:
    must_refuse(lambda: subject.output(subject.make(), subject.rows()[0]))


@case("predict wrong n_features")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(X, y)
    must_refuse(lambda: subject.output(model, X[:, :-1]))


@case("predict NaN")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(X, y)
    must_refuse(lambda: subject.output(model, _put(X, (1, 1), np.nan)), subject.takes_nan())


@case("predict 0 rows")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    if len(subject.output(subject.fit(X, y), X[:0])):
        raise Wrong("answers for no rows")


@case("predict DataFrame columns reordered")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(_frame(X), y)
    must_refuse(lambda: subject.output(model, _frame(X)[["d", "c", "b", "a"]]))


@case("pickle round trip")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(X, y)
    assert_same(subject.output(pickle.loads(pickle.dumps(model)), X), subject.output(model, X), 1e-12)


@case("deepcopy, get/set_params, clone")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    assert_same(subject.output(copy.deepcopy(clone(subject.make()).fit(X, y)), X), subject.expected(X, y))


@case("fit twice, other width")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(*subject.rows(n=40, d=7, seed=5)).fit(X, y)
    assert_same(subject.output(model, X), subject.expected(X, y), 1e-6)


@case("bitwise repeatable")
def _(subject: Subject) -> None:
    if not np.array_equal(subject.reference(), subject.reference()):
        raise Wrong("two fits differ in bits")


@case("row permutation")
def _(subject: Subject) -> None:
    _any_order(subject)
    X, y = subject.rows()
    order = np.random.default_rng(1).permutation(N_ROWS)
    assert_same(subject.fitted_output(X[order], y[order], X), subject.expected(X, y))


@case("column permutation")
def _(subject: Subject) -> None:
    _any_order(subject)
    X, y = subject.rows()
    order = np.random.default_rng(1).permutation(N_COLUMNS)
    assert_same(np.abs(subject.fitted_output(X[:, order], y)), np.abs(subject.expected(X, y)), 1e-2)


@case("predict one row = predict batch")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(X, y)
    single = np.concatenate([np.atleast_1d(subject.output(model, X[i : i + 1])) for i in range(N_ROWS)])
    together = subject.output(model, X)
    assert_same(single.reshape(together.shape), together, 1e-9)


@case("8 threads predict at once")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model, many = subject.fit(X, y), np.tile(X, (20, 1))
    expected = subject.output(model, many)
    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(lambda _: subject.output(model, many), range(40)):
            assert_same(answers, expected, 0.0)


@case("4 threads fit at once")
def _(subject: Subject) -> None:
    expected = subject.reference()
    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(lambda _: subject.reference(), range(4)):
            assert_same(answers, expected, 1e-6)


HANG = 300  # seconds until a child that waits, and does not compute, counts as hung; no measure of speed


@case("fork after fit, predict in child")
def _(subject: Subject) -> None:
    X, y = subject.rows(n=2000)
    model = subject.fit(X, y)
    expected = subject.output(model, X)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            same = np.array_equal(subject.output(model, X), expected)
            os.write(write, b"1" if same and np.isfinite(subject.fitted_output(X[:100], y[:100])).all() else b"0")
        finally:
            os._exit(0)
    if not select.select([read], [], [], HANG)[0]:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise TimeoutError("the child hangs")
    answer = os.read(read, 1)
    os.waitpid(child, 0)
    if answer != b"1":
        raise Wrong("the child answers otherwise, or died")


@case("KeyboardInterrupt during fit", is_interrupt=True, is_alone=True)
def _(subject: Subject) -> None:
    """Interrupted by the driver; the next fit must work."""
    X, y = subject.rows(n=60_000, d=40)
    os.write(1, b"fitting\n")
    try:
        for _ in range(10_000):
            subject.fit(X, y)
    except KeyboardInterrupt:
        assert_finite(subject.reference())
        return
    raise Wrong("not interrupted")


@case("peak memory, 50000 x 20", is_alone=True)
def _(subject: Subject) -> None:
    X, y = subject.rows(n=50_000, d=20)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    subject.fit(X, y)
    times = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / X.nbytes
    if times > 20:
        raise Wrong(f"memory of {times:.1f} times the rows")


# ---- parameters -----------------------------------------------------------------------------------------------------

NUMERIC_PARAMETERS = ("alpha", "C", "learning_rate", "var_smoothing", "tol", "max_depth", "n_components")


def _parameter(value: Any) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        name = next((name for name in NUMERIC_PARAMETERS if name in subject.make().get_params()), None)
        if name is None:
            raise NotApplicable("no numeric parameter")
        must_refuse(lambda: subject.make().set_params(**{name: value}).fit(*subject.rows()))

    return run


case("parameter NaN")(_parameter(float("nan")))
case("parameter -1")(_parameter(-1.0))
case("parameter 'abc'")(_parameter("abc"))


@case("parameter max_iter=0")
def _(subject: Subject) -> None:
    if "max_iter" not in subject.make().get_params():
        raise NotApplicable("no max_iter")
    must_refuse(lambda: subject.make().set_params(max_iter=0).fit(*subject.rows()))
