"""An ordinary problem: rows of a real table, everyday columns beside its own, a target, weights, exposure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tests.hunt.generate import Problem
from tests.ordinary.columns import ADDED, Array, Random
from tests.ordinary.tables import levels, numbers, some_rows

MOST_COLUMNS = 28


@dataclass
class Ordinary(Problem):
    """X is a frame with the columns x0, x1, ..., or an array. target: as `drawn` has it."""

    target: str = "number"

    def literals(self) -> str:
        """Lines of Python."""
        if not isinstance(self.X, pd.DataFrame):
            return super().literals()
        columns = (f"    {n!r}: np.array({v.tolist()!r}, dtype=np.{v.dtype}),\n" for n, v in self.X.items())
        rest = Problem(np.zeros((1, 1)), self.y, self.weights, self.parameters, self.tags, self.offset, self.exposure)
        rest_lines = rest.literals().split("\n", 1)[1]
        return "import pandas as pd\nX = pd.DataFrame({\n" + "".join(columns) + "})\n" + rest_lines

    @property
    def is_single(self) -> Array:
        """Which columns have the type float32."""
        kinds = self.X.dtypes if isinstance(self.X, pd.DataFrame) else [self.X.dtype] * self.X.shape[1]
        return np.array([kind == np.float32 for kind in kinds])


def drawn(rng: Random, target: str, parameters: dict[str, Any], most_rows: int, most_columns: int) -> Ordinary:
    """target: "number", "count", "positive", "two", "classes", "words" (counts in X too) or "none"."""
    rows = some_rows(rng, most_rows)
    names = [str(name) for name in rng.permutation(numbers(rows))]
    own = names[: int(rng.integers(1, 1 + min(6, len(names), most_columns)))]
    base = [rows[name].to_numpy(np.float64) for name in own]
    y = target_of(rng, target, rows, [name for name in names if name not in own], base)
    columns, tags = list(base), []
    for name in rng.permutation(levels(rows))[: rng.integers(3)]:
        codes, dropped = rows[name].to_numpy(), rng.random() < 0.5
        columns += [(codes == level).astype(float) for level in pd.unique(codes)[int(dropped) :]]
        tags += ["levels" if dropped else "all levels"]
    for place in rng.permutation(len(ADDED))[: rng.integers(4)]:
        columns += ADDED[place](rng, base)
        tags.append(ADDED[place].__name__)
    X = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns[: min(most_columns, MOST_COLUMNS)]])
    X = np.minimum(np.abs(np.round(X)), 1e6) if target == "words" else _dressed(rng, X, tags)
    problem = Ordinary(X, y, None, parameters, tags, target=target)
    if rng.random() < 0.4:
        kind = int(rng.integers(4))
        tags.append(("whole weights", "real weights", "weights of 10", "some weights 0")[kind])
        n = len(X)
        kinds = [rng.integers(1, 6, size=n), rng.gamma(2.0, size=n), np.full(n, 10), rng.integers(3, size=n)]
        problem.weights = np.asarray(kinds[kind], dtype=np.float64)
    if target == "count" and rng.random() < 0.3:
        problem.exposure = np.round(rng.uniform(0.05, 1.0, size=len(X)), 3)
        tags.append("exposure")
    return problem


def _dressed(rng: Random, X: Array, tags: list[str]) -> Any:
    """A frame or an array; standardised, or some columns in float32."""
    kind = rng.random()
    if kind < 0.2:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        tags.append("standardised before")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    if kind > 0.9:
        tags.append("all float32")
        return X.astype(np.float32)
    if kind > 0.8:
        tags.append("some float32")
        return frame.astype({name: np.float32 for name in frame if rng.random() < 0.5})
    return frame if rng.random() < 0.5 else X


def target_of(rng: Random, target: str, rows: pd.DataFrame, others: list[str], base: list[Array]) -> Any:
    """A column of the table that is not among the others' own, or drawn about a score of them."""
    score = sum((float(rng.normal()) * (x - x.mean()) / x.std() for x in base), np.zeros(len(rows)))
    score = score / max(float(score.std()), 1e-9) * float(rng.choice([0.1, 0.5, 1.0, 2.0])) + float(rng.normal())
    column = rows[others[0]].to_numpy(np.float64) if others and rng.random() < 0.5 else None
    if target == "none":
        return None
    if target == "number":
        noise = float(rng.choice([1e-3, 0.3, 1.0, 3.0])) * rng.standard_t(4, size=len(score))
        return column if column is not None else np.round((score + noise) * float(rng.choice([1, 1000])), 2)
    mean = np.exp(np.clip(score, -5, 5))
    if target == "count":
        is_count = column is not None and 0 <= column.min() <= column.max() <= 1000 and (column % 1 == 0).all()
        return column if is_count else rng.poisson(mean).astype(np.float64)
    if target == "positive":
        is_positive = column is not None and column.min() > 0
        return column if is_positive else np.maximum(np.round(rng.gamma(2.0, mean), 3), 1e-3)
    noisy = column if column is not None else score + rng.logistic(size=len(score))
    n_classes = 2 if target == "two" else int(rng.integers(2 if target == "words" else 3, 5))
    even, rare = np.linspace(0, 1, n_classes + 1)[1:-1], [0.85, 0.95, 0.98][: n_classes - 1]
    codes = np.unique(
        np.digitize(noisy, np.quantile(noisy, even if rng.random() < 0.6 else rare)), return_inverse=True
    )[1]
    if codes.max() + 1 < n_classes:
        codes = rng.integers(n_classes, size=len(codes))
        codes[:n_classes] = np.arange(n_classes)
    return codes
