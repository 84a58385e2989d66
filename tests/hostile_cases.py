"""Hostile inputs, one case each: numbers, targets, shapes, types, storage, sparse arrays, weights.

A case is a function of a `Subject`, an estimator under test. It returns (correct), raises what the estimator raised,
or raises Wrong / NotFinite where a bad answer came back without an error. Life after the fit is in `hostile_life`.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

N_ROWS, N_COLUMNS = 60, 4
NAMES = list("abcd")
SUPERVISED = ("reg", "pois", "positive", "clf")
ALL = (*SUPERVISED, "tr")
NUMERIC = ("reg", "pois", "positive")


class NotApplicable(Exception):
    """The case asks for something that the estimator does not have."""


class Wrong(Exception):
    """Accepted what must be refused, or a wrong answer without a word."""


class NotFinite(Exception):
    """NaN or infinity as an answer."""


def rows(
    kind: str, n: int = N_ROWS, d: int = N_COLUMNS, seed: int = 0, classes: int = 2, counts: bool = False
) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X = np.abs(X) if counts else X
    score = X @ np.linspace(1, -1, d)
    if kind == "clf":
        edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
        return X, np.digitize(score + 0.3 * rng.normal(size=n), edges).astype(int)
    if kind == "pois":
        return X, rng.poisson(np.exp(np.clip(0.3 * score, -3, 3))).astype(float)
    if kind == "positive":
        return X, np.exp(0.3 * score + 0.3 * rng.normal(size=n))
    return X, score + 0.3 * rng.normal(size=n)


@dataclass(frozen=True)
class Subject:
    """An estimator under test.

    kind: "reg", "pois", "positive", "clf" or "tr"; flags may hold "in order" (the order of the rows decides), "counts"
    (no negative X) and "categories" (it takes frames with columns of categories).
    """

    make: Callable[[], Any]
    kind: str
    flags: frozenset[str] = frozenset()

    def rows(self, **changes: Any) -> tuple[Any, Any]:
        return rows(self.kind, counts="counts" in self.flags, **changes)

    def fit(self, X: Any, y: Any, **options: Any) -> Any:
        return self.make().fit(X, y, **options)

    def output(self, model: Any, X: Any) -> Any:
        """What the model answers, as numbers."""
        names = {"tr": ["transform"], "clf": ["predict_proba", "decision_function", "predict"]}
        method = next(name for name in names.get(self.kind, ["predict"]) if hasattr(model, name))
        return np.asarray(getattr(model, method)(X), dtype=float)

    def fitted_output(self, X: Any, y: Any, at: Any = None) -> Any:
        return self.output(self.fit(X, y), X if at is None else at)

    def reference(self) -> Any:
        return self.fitted_output(*self.rows())

    def expected(self, X: Any, y: Any) -> Any:
        """The output of a fit to plain rows, made once for all cases that compare with it."""
        key = (self, X.shape, X.tobytes(), y.tobytes())
        if key not in EXPECTED:
            EXPECTED[key] = self.fitted_output(X, y)
        return EXPECTED[key]

    def takes_nan(self) -> bool:
        return bool(self.make().__sklearn_tags__().input_tags.allow_nan)

    def takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(self.make().fit).parameters


EXPECTED: dict[Any, Any] = {}


@dataclass(frozen=True)
class Case:
    run: Callable[[Subject], Any]
    kinds: tuple[str, ...] = ALL
    is_interrupt: bool = False
    is_alone: bool = False  # in a child of its own


CASES: dict[str, Case] = {}


def case(name: str, kinds: tuple[str, ...] = ALL, **options: Any) -> Callable[[Any], Any]:
    def register(run: Callable[[Subject], Any]) -> Callable[[Subject], Any]:
        CASES[name] = Case(run, kinds, **options)
        return run

    return register


def assert_finite(values: Any) -> None:
    bad = int(np.sum(~np.isfinite(values)))
    if bad:
        raise NotFinite(f"{bad} answers are not finite")


def assert_same(got: Any, expected: Any, tolerance: float = 1e-3, what: str = "") -> None:
    assert_finite(got)
    if got.shape != expected.shape:
        raise Wrong(f"shape {got.shape}, not {expected.shape} {what}")
    off = np.max(np.abs(got - expected)) / (1e-12 + np.max(np.abs(expected)))
    if not off <= tolerance:
        raise Wrong(f"off by {off:.2g}, relative {what}")


def assert_sane(subject: Subject, model: Any, X: Any, y: Any) -> None:
    """Finite, and not clearly worse than the mean or the majority."""
    answers = subject.output(model, X)
    assert_finite(answers)
    if subject.kind == "clf":
        right = np.mean(model.predict(X) == y)
        majority = np.max(np.unique(y, return_counts=True)[1]) / len(y)
        if right < majority - 0.1:
            raise Wrong(f"accuracy {right:.2f}, the majority has {majority:.2f}")
    elif subject.kind in NUMERIC:
        size = np.max(np.abs(y)) or 1.0
        error, variance = np.mean(((y - answers) / size) ** 2), np.var(y / size)
        if not error <= 1.5 * variance + 1e-12:
            raise Wrong(f"mean square {error:.3g} of a variance of {variance:.3g}")


def must_refuse(call: Callable[[], Any], allowed: bool = False) -> None:
    call()
    if not allowed:
        raise Wrong("accepted without a word")


def _put(a: Any, place: Any, value: Any) -> Any:
    a = a.copy()
    a[place] = value
    return a


def _frame(X: Any, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES).assign(**columns)


def _with_missing(X: Any) -> pd.DataFrame:
    frame = pd.DataFrame(np.round(X * 10).astype(int), columns=NAMES).astype("Int64")
    frame.iloc[3, 1] = pd.NA
    return frame


def _mixed_list(X: Any) -> list[Any]:
    out = X.tolist()
    out[2][1], out[4][0] = "oops", None
    return out


def _masked(X: Any) -> Any:
    mask = _put(np.zeros(X.shape, dtype=bool), (slice(None, None, 2), 1), True)
    return np.ma.masked_array(np.where(mask, 1e6, X), mask)


# ---- refused: name -> kinds, (X, y) as it must not be taken ---------------------------------------------------------

REFUSED: dict[str, tuple[tuple[str, ...], Callable[[Any, Any], tuple[Any, Any]]]] = {
    "X has NaN": (ALL, lambda X, y: (_put(X, (3, 1), np.nan), y)),
    "X has inf": (ALL, lambda X, y: (_put(X, (3, 1), np.inf), y)),
    "y NaN": (SUPERVISED, lambda X, y: (X, _put(y.astype(float), 3, np.nan))),
    "y inf": (SUPERVISED, lambda X, y: (X, _put(y.astype(float), 3, np.inf))),
    "y None entries": (SUPERVISED, lambda X, y: (X, _put(y.astype(object), 3, None))),
    "y=None": (SUPERVISED, lambda X, y: (X, None)),
    "y wrong length": (SUPERVISED, lambda X, y: (X, y[:-1])),
    "y mixed str/int labels": (("clf",), lambda X, y: (X, np.array([1, "yes"], dtype=object)[y])),
    "y continuous for classifier": (("clf",), lambda X, y: (X, y + 0.123 * np.arange(len(y)))),
    "y negative for Poisson": (("pois",), lambda X, y: (X, _put(y, 3, -1))),
    "d=0": (ALL, lambda X, y: (X[:, :0], y)),
    "empty X (0 rows)": (ALL, lambda X, y: (X[:0], y[:0])),
    "X 1-D": (ALL, lambda X, y: (X[:, 0], y)),
    "X 3-D": (ALL, lambda X, y: (X[:, :, None], y)),
    "X scalar / None": (ALL, lambda X, y: (None, y)),
    "X object strings": (ALL, lambda X, y: (_put(X.astype(object), (slice(None), 1), "red"), y)),
    "X list of mixed types": (ALL, lambda X, y: (_mixed_list(X), y)),
    "X DataFrame with category column": (ALL, lambda X, y: (_frame(X, b=pd.Categorical(["u", "v"] * 30)), y)),
    "X DataFrame pd.NA (Int64)": (ALL, lambda X, y: (_with_missing(X), y)),
    "X datetime64": (ALL, lambda X, y: ((X * 1e6).astype("int64").astype("datetime64[s]"), y)),
    "X complex": (ALL, lambda X, y: (X + 1j * X, y)),
    "X masked array": (ALL, lambda X, y: (_masked(X), y)),
}
MISSING = ("X has NaN", "X DataFrame pd.NA (Int64)", "sparse with NaN stored")  # allowed where a tag says so


def _refused(name: str, change: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = change(*subject.rows())
        is_taken = "category" in name and "categories" in subject.flags
        must_refuse(lambda: subject.fit(X, y), is_taken or (name in MISSING and subject.takes_nan()))

    return run


for _name, (_kinds, _change) in REFUSED.items():
    case(_name, _kinds)(_refused(_name, _change))

# ---- taken, with a sane answer: name -> kinds, (X, y) ---------------------------------------------------------------

SANE: dict[str, tuple[tuple[str, ...], Callable[[Any, Any], tuple[Any, Any]]]] = {
    "X column subnormal": (ALL, lambda X, y: (X * [1, 1e-310, 1, 1], y)),
    "X scaled 1e300": (ALL, lambda X, y: (X * 1e300, y)),
    "X scaled 1e-300": (ALL, lambda X, y: (X * 1e-300, y)),
    "one column scaled 1e12": (ALL, lambda X, y: (X * [1, 1e12, 1, 1], y)),
    "X offset 1e8 (cancellation)": (ALL, lambda X, y: (X + 1e8, y)),
    "y scaled 1e300": (("reg",), lambda X, y: (X, y * 1e300)),
    "y scaled 1e-300": (("reg",), lambda X, y: (X, y * 1e-300)),
    "y huge ints (reg)": (NUMERIC, lambda X, y: (X, (np.abs(y) * 2**60).astype(np.int64))),
    "constant column": (ALL, lambda X, y: (_put(X, (slice(None), 1), 7.0), y)),
    "duplicated columns": (ALL, lambda X, y: (np.column_stack([X, X, X]), y)),
    "all rows identical but y differs": (SUPERVISED, lambda X, y: (np.repeat(X[:1], len(X), axis=0), y)),
    "X float16 near overflow (6e4)": (ALL, lambda X, y: (np.clip(X * 2e4, -6e4, 6e4).astype(np.float16), y)),
    "X int64 > 2**53": (ALL, lambda X, y: ((X * 2**58).astype(np.int64), y)),
    "n=1": (ALL, lambda X, y: (X[:1], y[:1])),
    "n=2": (ALL, lambda X, y: (X[[np.argmin(y), np.argmax(y)]], y[[np.argmin(y), np.argmax(y)]])),
    "sparse all zero": (ALL, lambda X, y: (sp.csr_matrix(X.shape), y)),
}


def _sane(change: Callable[[Any, Any], tuple[Any, Any]]) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = change(*subject.rows())
        assert_sane(subject, subject.fit(X, y), X, y)

    return run


for _name, (_kinds, _change) in SANE.items():
    case(_name, _kinds)(_sane(_change))


@case("n<d (5 x 40)")
def _(subject: Subject) -> None:
    X, y = subject.rows(n=5, d=40)
    y = np.array([0, 1, 0, 1, 0]) if subject.kind == "clf" else y
    assert_sane(subject, subject.fit(X, y), X, y)


@case("all columns constant")
def _(subject: Subject) -> None:
    X, y = subject.rows()
    X[:] = 3.0
    answers = subject.fitted_output(X, y)
    assert_finite(answers)
    if subject.kind != "tr" and np.ptp(answers, axis=0).max() > 1e-6 * (1 + np.abs(answers).max()):
        raise Wrong("same rows, different answers")
    if subject.kind == "reg" and abs(answers.mean() - y.mean()) > 0.2:
        raise Wrong(f"answers {answers.mean():.3g}, the mean is {y.mean():.3g}")


@case("y constant", NUMERIC)
def _(subject: Subject) -> None:
    X, y = subject.rows()
    assert_same(subject.fitted_output(X, np.full(len(y), 5.0)), np.full(len(y), 5.0), 0.12)


@case("y all zero for Poisson", ("pois",))
def _(subject: Subject) -> None:
    X, y = subject.rows()
    answers = subject.fitted_output(X, np.zeros(len(y)))
    assert_finite(answers)
    if answers.max() > 0.1:
        raise Wrong(f"answers {answers.max():.2g} though every y is 0")


# ---- labels ---------------------------------------------------------------------------------------------------------


def _labels(values: Any, least: float) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = subject.rows(classes=len(values))
        labels = np.asarray(values)[y]
        answers = np.asarray(subject.fit(X, labels).predict(X))
        if not set(answers.tolist()) <= set(labels.tolist()):
            raise Wrong("labels changed")
        if np.mean(answers == labels) < least:
            raise Wrong(f"accuracy {np.mean(answers == labels):.2f}")

    return run


case("y huge ints 2**62, 2**62+1", ("clf",))(_labels([2**62, 2**62 + 1], 0.7))
case("y string labels", ("clf",))(_labels(["no", "yes"], 0.7))
case("y int8 labels up to 127 (3 classes)", ("clf",))(_labels(np.array([-128, 0, 127], dtype=np.int8), 0.0))


@case("perfectly separable", ("clf",))
def _(subject: Subject) -> None:
    X, _ = subject.rows()
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.sign(X[:, 0]) * 3
    model = subject.fit(X, y)
    assert_finite(subject.output(model, X))
    if np.mean(model.predict(X) == y) < 0.95:
        raise Wrong(f"accuracy {np.mean(model.predict(X) == y):.2f}")


@case("y one class only", ("clf",))
def _(subject: Subject) -> None:
    X, y = subject.rows()
    model = subject.fit(X, np.ones_like(y))
    assert_finite(subject.output(model, X))
    if not np.all(model.predict(X) == 1):
        raise Wrong("another class than the only one")


# ---- the same numbers in other storage: name -> (X as stored, tolerance) --------------------------------------------


def _strided(X: Any) -> Any:
    wide = np.full((2 * len(X), 2 * X.shape[1]), np.nan)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def _read_only(X: Any) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def _unaligned(X: Any) -> Any:
    out = np.frombuffer(memoryview(bytearray(X.nbytes + 1))[1:], dtype=float).reshape(X.shape)
    out[...] = X
    return out


def _mapped(X: Any) -> Any:
    with tempfile.NamedTemporaryFile(delete=False) as file:
        X.tofile(file)
    out = np.memmap(file.name, dtype=float, mode="r", shape=X.shape)
    os.unlink(file.name)  # the map keeps the pages
    return out


def _bytes(X: Any) -> Any:
    return np.clip(np.round(X * 40), -127, 127).astype(np.int8)


STORED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "X has -0.0": (lambda X: _put(X, (slice(None, None, 3), 1), -0.0), 1e-3),
    "X object floats": (lambda X: X.astype(object), 1e-3),
    "X list of lists": (lambda X: X.tolist(), 1e-3),
    "X float16": (lambda X: X.astype(np.float16), 2e-2),
    "X float32": (lambda X: X.astype(np.float32), 1e-2),
    "X int8 (Gram overflow)": (_bytes, 1e-3),
    "X uint8": (lambda X: (_bytes(X).astype(int) + 128).astype(np.uint8), 1e-3),
    "X bool": (lambda X: X > 0, 1e-3),
    "X longdouble": (lambda X: X.astype(np.longdouble), 1e-3),
    "X big-endian": (lambda X: X.astype(">f8"), 1e-3),
    "X strided view": (_strided, 1e-3),
    "X Fortran order": (np.asfortranarray, 1e-3),
    "X negative strides": (lambda X: X[::-1].copy()[::-1], 1e-3),
    "X, y read-only": (_read_only, 1e-3),
    "X unaligned": (_unaligned, 1e-3),
    "X memmap": (_mapped, 1e-3),
}


def _stored(store: Callable[[Any], Any], tolerance: float) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        X, y = subject.rows()
        X = store(X)
        plain = np.asarray(X, dtype=float)
        assert_same(subject.fitted_output(X, y), subject.expected(plain, y), tolerance)

    return run


for _name, (_store, _tolerance) in STORED.items():
    case(_name)(_stored(_store, _tolerance))


@case("y int8 targets (reg overflow)", NUMERIC)
def _(subject: Subject) -> None:
    X, y = subject.rows()
    small = np.clip(np.abs(y) * 40, 0, 127).astype(np.int8)
    assert_same(subject.fitted_output(X, small), subject.fitted_output(X, small.astype(float)))


@case("y column vector (n,1)", SUPERVISED)
def _(subject: Subject) -> None:
    X, y = subject.rows()
    expected = subject.expected(X, y)
    assert_same(subject.fitted_output(X, y[:, None]).reshape(expected.shape), expected)
