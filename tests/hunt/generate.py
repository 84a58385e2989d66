"""Nasty problems, each made from (seed, case number) alone.

A design is plain rows and some troubles; each trouble leaves its name in `tags`, by which refusals are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
Random = np.random.Generator


@dataclass
class Problem:
    """What a model is fitted to. X: what the model is given (an array or a sparse matrix); parameters: of the model."""

    X: Any
    y: Array | None
    weights: Array | None
    parameters: dict[str, Any]
    tags: list[str] = field(default_factory=list)
    offset: Array | None = None
    exposure: Array | None = None

    @property
    def rows(self) -> Array:
        """X as a float64 array: the numbers as given."""
        dense = self.X.toarray() if sp.issparse(self.X) else self.X
        return np.asarray(dense, dtype=np.float64)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What `fit` takes, without trailing None."""
        values = [self.X, self.y, self.weights, self.offset, self.exposure]
        while values[-1] is None:
            values.pop()
        return tuple(values)

    def literals(self) -> str:
        """The problem as lines of Python."""
        lines = [f"X = {_literal(self.X)}"]
        if self.y is not None:
            lines.append(f"y = {_literal(self.y)}")
        for name in ("weights", "offset", "exposure"):
            if (values := getattr(self, name)) is not None:
                lines.append(f"{name} = {_literal(values)}")
        return "\n".join([*lines, f"parameters = {self.parameters!r}", f"# {', '.join(self.tags) or 'plain'}"])


def _literal(values: Any) -> str:
    if sp.issparse(values):
        return f"scipy.sparse.csr_array(np.array({values.toarray().tolist()!r}))"
    kind = "" if values.dtype in (np.float64, np.int64) or values.dtype.kind in "OU" else f", dtype=np.{values.dtype}"
    return f"np.array({values.tolist()!r}{kind})"


def chance(rng: Random, share: float) -> bool:
    """True with this probability."""
    return bool(rng.random() < share)


def shape_of(rng: Random, most_columns: int = 6, most_rows: int = 40) -> tuple[int, int]:
    """Mostly more rows than columns; few rows, and more columns than rows, now and then."""
    d = int(rng.integers(1, most_columns + 1))
    kind = rng.random()
    if kind < 0.12:
        return int(rng.integers(1, 4)), d
    if kind < 0.22:
        return int(rng.integers(max(d - 1, 1), d + 3)), d
    return int(rng.integers(min(d + 2, most_rows), most_rows + 1)), d


def _plain(rng: Random, n: int, d: int) -> Array:
    kind = rng.integers(5)
    if kind == 0:
        return rng.integers(-5, 6, size=(n, d)).astype(float)
    if kind == 1:
        return np.eye(d)[rng.integers(d, size=n)]
    if kind == 2:
        return np.asarray(np.linspace(0, 1, n)[:, None] ** np.arange(1, d + 1) + 0.0)
    return rng.normal(size=(n, d))


def _scale(rng: Random, X: Array) -> str:
    power = rng.choice([-150, -100, -20, -8, 8, 20, 100, 150])
    X[:, rng.integers(X.shape[1])] *= 10.0**power
    return f"scale 1e{power}"


def _scale_all(rng: Random, X: Array) -> str:
    power = rng.choice([-150, -30, 30, 150])
    X *= 10.0**power
    return f"scale 1e{power}"


def _offset(rng: Random, X: Array) -> str:
    power = int(rng.integers(8, 16))
    j = rng.integers(X.shape[1])
    X[:, j] += 10.0**power * max(np.abs(X[:, j]).max(), 1e-300)
    return "offset"


def _near_copy(rng: Random, X: Array) -> str:
    if X.shape[1] < 2:
        return ""
    j, k = rng.permutation(X.shape[1])[:2]
    power = int(rng.integers(8, 17))
    X[:, k] = X[:, j] + 10.0**-power * np.abs(X[:, j]).max() * rng.normal(size=len(X))
    return "near copy"


def _copy(rng: Random, X: Array) -> str:
    if X.shape[1] < 2:
        return ""
    j, k = rng.permutation(X.shape[1])[:2]
    X[:, k] = X[:, j] * rng.choice([1.0, 2.0, -0.5])
    return "copy"


def _combination(rng: Random, X: Array) -> str:
    """A combination of other columns, rounded to float64."""
    if X.shape[1] < 3:
        return ""
    i, j, k = rng.permutation(X.shape[1])[:3]
    with np.errstate(over="ignore"):
        mixed = rng.choice([0.1, 1.0, 1 / 3]) * X[:, i] + rng.choice([0.7, -1.0, np.pi]) * X[:, j]
    X[:, k] = np.where(np.isfinite(mixed), mixed, 1.0)
    return "combination"


def _constant(rng: Random, X: Array) -> str:
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, 0.1, 1e10, 1e-12])
    return "constant column"


def _dummies(rng: Random, X: Array) -> str:
    """One column per level: with an intercept they are dependent."""
    n, d = X.shape
    X[:] = np.eye(d)[rng.integers(d, size=n)]
    return "dummies"


def _large_whole(rng: Random, X: Array) -> str:
    """Whole numbers whose difference from a multiple of another column takes more than 48 bits."""
    n, d = X.shape
    a, z = rng.integers(-7, 8, size=n).astype(float), rng.integers(-3, 4, size=n).astype(float)
    X[:, 0] = a
    X[:, -1] = a * 2.0 ** rng.integers(40, 51) + z
    return "large whole numbers" if d > 1 else ""


def _light(rng: Random, X: Array) -> str:
    """A column that varies in one row only."""
    column = np.zeros(len(X))
    column[rng.integers(len(X))] = 1.0
    X[:, rng.integers(X.shape[1])] = column
    return "one row"


def _repeated(rng: Random, X: Array) -> str:
    X[:] = X[rng.integers(max(len(X) // 3, 1), size=len(X))]
    return "repeated rows"


TROUBLES: tuple[Callable[[Random, Array], str], ...] = (
    _scale, _scale_all, _offset, _offset, _near_copy, _near_copy, _near_copy, _copy, _combination, _constant, _dummies,
    _large_whole, _light, _repeated,
)  # fmt: skip


def design(rng: Random, n: int, d: int, most: int = 2) -> tuple[Array, list[str]]:
    """Rows with none to `most` troubles."""
    X, tags = _plain(rng, n, d), []
    for _ in range(rng.integers(0, most + 1)):
        tags.append(TROUBLES[rng.integers(len(TROUBLES))](rng, X))
    return X, [tag for tag in tags if tag]


def weights_of(rng: Random, n: int, tags: list[str]) -> Array | None:
    """None, plain, whole, with zeros, of any size, very unequal."""
    kind = rng.random()
    if kind < 0.5:
        return None
    if kind < 0.62:
        return np.asarray(rng.uniform(0.1, 3, size=n))
    if kind < 0.72:
        return rng.integers(1, 5, size=n).astype(float)
    if kind < 0.82:
        tags.append("zero weights")
        weights = rng.integers(0, 3, size=n).astype(float)
        weights[rng.integers(n)] = 1.0
        return weights
    if kind < 0.91:
        power = rng.choice([-200, -50, 50, 200])
        tags.append(f"weights 1e{power}")
        return np.asarray(rng.uniform(0.5, 2, size=n) * 10.0**power)
    tags.append("unequal weights")
    power = rng.choice([4, 12, 30, 200])
    return np.asarray(10.0 ** rng.uniform(-power, power / 2, size=n))


def signal(rng: Random, X: Array) -> Array:
    """A combination of the columns in their own units, of size 1 or so."""
    size = np.abs(X - X.mean(axis=0)).max(axis=0)
    size = np.where((size > 0) & np.isfinite(size), size, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (X - X.mean(axis=0)) / size
    return np.nan_to_num(scaled) @ rng.normal(size=X.shape[1])


def quantity(rng: Random, X: Array, tags: list[str]) -> Array:
    """A target of any sign: noise from none to much, outliers, offsets, scales."""
    n, kind = len(X), rng.random()
    if kind < 0.06:
        tags.append("constant target")
        return np.full(n, float(rng.choice([0.0, 1.0, 0.1, 1e12])))
    if kind < 0.14:
        tags.append("exact fit")
        j = rng.integers(X.shape[1])
        return np.asarray(X[:, j] * rng.choice([1.0, 3.0, 0.1]) + rng.choice([0.0, 1.0, 0.3]))
    noise = 10.0 ** rng.choice([-12, -6, -3, -1, -1, 0, 0, 0, 1])
    y = signal(rng, X) + noise * rng.normal(size=n)
    if kind < 0.24:  # noise along the smallest differences between columns
        tags.append("target along a difference")
        y = y + (X[:, -1] - X[:, 0]) / max(np.abs(X[:, -1] - X[:, 0]).max(), 1e-300)
    if chance(rng, 0.1):
        y[rng.integers(n)] += 1e6
        tags.append("outlier")
    if chance(rng, 0.15):
        power = int(rng.integers(8, 15))
        y = y + 10.0**power
        tags.append("target offset")
    if chance(rng, 0.12):
        power = rng.choice([-150, -80, 80, 150])
        y = y * 10.0**power
        tags.append(f"target 1e{power}")
    return np.asarray(y)


def dressed(rng: Random, X: Array, tags: list[str]) -> Any:
    """The rows as the model is given them: float64, float32 or sparse."""
    kind = rng.random()
    if kind < 0.08 and np.abs(X).max(initial=0.0) < 1e30 and not any("e-" in tag for tag in tags):
        tags.append("float32")
        return X.astype(np.float32)
    if kind < 0.2:
        tags.append("sparse")
        return sp.csr_array(X)
    return X


def regression(rng: Random, parameters: dict[str, Any], most_columns: int = 6) -> Problem:
    """A regression problem."""
    n, d = shape_of(rng, most_columns)
    X, tags = design(rng, n, d)
    y = quantity(rng, X, tags)
    weights = weights_of(rng, n, tags)
    if chance(rng, 0.15):
        parameters["fit_intercept"] = False
    return Problem(dressed(rng, X, tags), y, weights, parameters, tags)


def calm(rng: Random, X: Array) -> Array:
    """A linear score of size 1 or so."""
    z = signal(rng, X)
    return np.asarray(z / max(np.abs(z).max(initial=0.0), 1.0) * rng.choice([0.3, 1.0, 3.0]))


def labels(rng: Random, X: Array, n_classes: int, tags: list[str]) -> Array:
    """Classes: by chance, nearly separable, separable, or of a linear score with noise."""
    n, kind = len(X), rng.random()
    z = signal(rng, X)
    if kind < 0.2:
        codes = rng.integers(n_classes, size=n)
    elif kind < 0.5:
        tags.append("separable")
        order = np.argsort(np.argsort(z, kind="stable"), kind="stable")
        codes = order * n_classes // max(n, 1)
    elif kind < 0.65:
        tags.append("nearly separable")
        order = np.argsort(np.argsort(z, kind="stable"), kind="stable")
        codes = order * n_classes // max(n, 1)
        codes[rng.integers(n)] = rng.integers(n_classes)
    else:
        noisy = z / max(z.std(), 1e-300) + rng.normal(size=n) * rng.choice([0.3, 1.0, 3.0])
        order = np.argsort(np.argsort(noisy, kind="stable"), kind="stable")
        codes = order * n_classes // max(n, 1)
    return np.asarray(codes, dtype=np.int64)


def classification(rng: Random, parameters: dict[str, Any], n_classes: int = 2, most_columns: int = 4) -> Problem:
    """Labelled rows; every class has a row of positive weight."""
    n, d = shape_of(rng, most_columns, 30)
    n = max(n, n_classes)
    X, tags = design(rng, n, d)
    y = labels(rng, X, n_classes, tags)
    y[:n_classes] = np.arange(n_classes)
    weights = weights_of(rng, n, tags)
    if weights is not None:
        weights[:n_classes] = np.maximum(weights[:n_classes], weights.max())
    return Problem(dressed(rng, X, tags), y, weights, parameters, tags)


def word_counts(rng: Random, parameters: dict[str, Any]) -> Problem:
    """Counts of words: small, large, with words that no row has."""
    n, d, n_classes = int(rng.integers(2, 25)), int(rng.integers(1, 7)), int(rng.integers(2, 4))
    n, tags = max(n, n_classes), []
    X = rng.poisson(rng.choice([0.2, 1.0, 10.0]), size=(n, d)).astype(float)
    kind = rng.random()
    if kind < 0.2:
        power = int(rng.integers(6, 16))
        tags.append(f"counts to 1e{power}")
        X = np.floor(X * 10.0**power * rng.random(size=X.shape))
    elif kind < 0.3:
        X[:, rng.integers(d)] = 0.0
        tags.append("a word never seen")
    elif kind < 0.4:
        power = rng.choice([-150, -20, 20, 150])
        X *= 10.0**power
        tags.append(f"scale 1e{power}")
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    weights = weights_of(rng, n, tags)
    if weights is not None:
        weights[:n_classes] = np.maximum(weights[:n_classes], weights.max())
    return Problem(dressed(rng, X, tags), np.asarray(y), weights, parameters, tags)


def counts(rng: Random, X: Array, tags: list[str]) -> Array:
    """Whole numbers >= 0, up to 1e15, with zeros."""
    z = calm(rng, X)
    kind = rng.random()
    if kind < 0.2:
        power = int(rng.integers(6, 16))
        tags.append(f"counts to 1e{power}")
        return np.asarray(np.round(10.0**power * np.exp(z - z.max()) * rng.uniform(0.5, 1, size=len(X))))
    if kind < 0.3:
        tags.append("exact fit")
        return np.asarray(np.exp(np.round(z)))
    if kind < 0.4:
        tags.append("few counts")
        return rng.poisson(0.1 * np.exp(z)).astype(float)
    return rng.poisson(np.exp(z + rng.choice([0.0, 2.0]))).astype(float)


def amounts(rng: Random, X: Array, tags: list[str]) -> Array:
    """Numbers > 0."""
    z, kind = calm(rng, X), rng.random()
    if kind < 0.1:
        tags.append("exact fit")
        return np.asarray(np.exp(z))
    y = np.exp(z) * rng.gamma(rng.choice([0.3, 2.0, 1e4]), size=len(X))
    if kind < 0.25:
        power = rng.choice([-100, -12, 12, 100])
        tags.append(f"target 1e{power}")
        y = y * 10.0**power
    return np.asarray(np.maximum(y, 1e-200))


def shares(rng: Random, X: Array, tags: list[str]) -> Array:
    """0 or 1, now and then numbers between."""
    if chance(rng, 0.2):
        tags.append("shares")
        return np.asarray(rng.integers(0, 5, size=len(X)) / 4)
    y = labels(rng, X, 2, tags).astype(float)
    return y


TARGETS: dict[str, Callable[[Random, Array, list[str]], Array]] = {
    "gaussian": quantity,
    "bernoulli": shares,
    "binomial": shares,
    "poisson": counts,
    "negative-binomial": counts,
    "tweedie": counts,
    "gamma": amounts,
    "inverse-gaussian": amounts,
}


def generalised(rng: Random, parameters: dict[str, Any], family: str, most_columns: int = 4) -> Problem:
    """Targets of a family."""
    n, d = shape_of(rng, most_columns, 30)
    X, tags = design(rng, n, d)
    y = TARGETS[family](rng, X, tags)
    if chance(rng, 0.15):
        parameters["fit_intercept"] = False
    elif np.ptp(y) == 0 and len(y) > 1:
        y[0] = 1.0 - y[0] if family in ("bernoulli", "binomial") else y[0] + 1.0
    weights = weights_of(rng, n, tags)
    return Problem(dressed(rng, X, tags), y, weights, parameters, tags)
