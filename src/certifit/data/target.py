"""What a target asks for: classes to tell apart, counts, a positive quantity or any; and the rows of each label.

Of numbers, with s the skewness m_3 / m_2^(3/2) of all rows of positive weight, the first rule that holds decides:

    whole numbers >= 0, and an exposure column                    counts
    two distinct whole numbers                                    classes
    whole numbers whose smallest is 0 or 1, s > 1/2               counts
    numbers > 0, s > 1, the largest >= 10 times the smallest      a positive quantity
    others                                                        a quantity
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.labels import LabelSet
from certifit.data.privacy import cell, conceal, quoted_labels
from certifit.data.roles import CLASSES, COUNTS, POSITIVE, QUANTITY
from certifit.data.source import Block, Source
from certifit.data.view import Target

MOST_CODES = 20  # whole numbers of so few values may be classes
SKEWED_COUNTS, SKEWED = 0.5, 1.0  # skewness above which whole numbers from 0 or 1 up are counts, others positive
LEAST_RATIO = 10.0  # of the largest to the smallest value of a positive quantity


@dataclass(frozen=True)
class Goal:
    """What a model of a target is to do: "quantity", "counts", "positive" or "classes"; and a sentence that says so."""

    name: str
    sentence: str
    constant: float | None = None  # the one number that a numeric target is in every row
    n_rows: int = 0  # that hold the constant
    may_be_classes: bool = True  # text, flags, or whole numbers of few values

    @property
    def is_classes(self) -> bool:
        """Whether labels are told apart."""
        return self.name == CLASSES


def goal_of(source: Source) -> Goal:
    """What the target of a scan asks for. Its column alone is read, and no further than the answer needs.

    Text, categories and flags are classes. Text that is mostly numbers, of more than 20 values, is a quantity with a
    fault in it. Numbers: see above.
    """
    column = source.reading(Target.RAW)
    values: set[Any] = set()
    kind, shapes, n_missing = "number", [], 0
    for stretch in column.stretches():
        target = _column_of(stretch)
        n_missing += target.null_count
        known = target.drop_null()
        kind = "text" if _is_text(known.type) else "flag" if pa.types.is_boolean(known.type) else kind
        if len(values) <= MOST_CODES:
            values |= set(pc.unique(known).to_pylist())
        if kind != "number":
            break
        shapes.append(Shape.of(known))
        if shapes[-1].low < 0 and (len(values) > MOST_CODES or (len(values) > 1 and not shapes[-1].is_whole)):
            break
    if kind != "number":
        return _OF_KIND[kind](f"{column.target!r}", values)
    shape = reduce(add, shapes, Shape())
    goal = _goal_of_numbers(f"{column.target!r}", values, shape, _has_exposure(source))
    is_constant = shape.n > 0 and shape.low == shape.high and n_missing == 0  # a fit names the row of an empty cell
    return replace(goal, constant=shape.low, n_rows=shape.n) if is_constant else goal


def _goal_of_text(name: str, values: set[Any]) -> Goal:
    words = sorted(value for value in values if not _is_number(value))
    if len(values) > MOST_CODES and 2 * len(words) < len(values):
        shown = cell(", ".join(map(repr, words[:3])) + (", ..." if len(words) > 3 else ""))
        return Goal(QUANTITY, f"{name} is numbers but for {shown}: taken as a quantity. Mend or remove those rows.")
    return Goal(CLASSES, f"{name} is text: its values are classes.")


def _goal_of_flags(name: str, values: set[Any]) -> Goal:
    return Goal(CLASSES, f"{name} is true or false: two classes.")


_OF_KIND: dict[str, Callable[[str, set[Any]], Goal]] = {"text": _goal_of_text, "flag": _goal_of_flags}


def _goal_of_numbers(name: str, values: set[Any], shape: Shape, has_exposure: bool) -> Goal:
    """The rules above, in their order."""
    is_few = shape.is_whole and len(values) <= MOST_CODES
    pair = " or ".join(str(int(value)) for value in sorted(values)) if is_few else ""
    skewed = f"skewed to the right (skewness {shape.skewness:.2g})"
    or_classes = " If they are classes, say so: --task classes." if is_few else ""
    is_counts = shape.is_whole and shape.low in (0, 1) and shape.skewness > SKEWED_COUNTS
    is_positive = shape.low > 0 and shape.skewness > SKEWED and shape.high >= LEAST_RATIO * shape.low
    rules = (
        (len(values) < 2, QUANTITY, f"has {len(values)} distinct value{'s' * (len(values) != 1)}."),
        (
            has_exposure and shape.is_whole and shape.low >= 0,
            COUNTS,
            f"is whole numbers >= 0 and has an exposure: counts.{or_classes or _OR_QUANTITY}",
        ),
        (is_few and len(values) == 2, CLASSES, f"is {pair}: two classes.{_OR_QUANTITY}"),
        (is_counts, COUNTS, f"is whole numbers from {shape.low:g} up, {skewed}: counts.{_OR_QUANTITY}{or_classes}"),
        (is_positive, POSITIVE, f"is positive and {skewed}: its spread is taken to grow with its mean.{_OR_QUANTITY}"),
        (is_few, QUANTITY, f"has {len(values)} distinct whole numbers and is taken as a quantity.{or_classes}"),
        (True, QUANTITY, "is a number on a scale: a quantity."),
    )
    named = ((goal, f"{name} {sentence}") for holds, goal, sentence in rules if holds)
    return Goal(*next(named), may_be_classes=is_few)


_OR_QUANTITY = " If it is a quantity, say so: --task quantity."


def _has_exposure(source: Source) -> bool:
    return source.view.roles.exposure is not None


@dataclass(frozen=True)
class Shape:
    """Of some numbers: how many, mean, sums of (y - mean)^2 and (y - mean)^3, smallest, largest, whether all whole."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    is_whole: bool = True

    @staticmethod
    def of(column: pa.Array) -> Shape:
        """Of a column; what is no number (a date) has no shape and is not whole."""
        try:
            y = pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        except pa.ArrowException:
            return Shape(low=-np.inf, is_whole=False)
        if not len(y):
            return Shape()
        with np.errstate(over="ignore", invalid="ignore"):
            is_whole = bool((y - np.floor(y) == 0).all())  # infinity is not
            mean = float(y.mean())
            squares, cubes = (float(((y - mean) ** power).sum()) for power in (2, 3))
        return Shape(len(y), mean, squares, cubes, float(y.min()), float(y.max()), is_whole)

    @property
    def skewness(self) -> float:
        """m_3 / m_2^(3/2); 0 of equal numbers, and where the sums leave float64."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            skewness = np.sqrt(float(self.n)) * np.float64(self.cubes) / np.float64(self.squares) ** 1.5
        return float(skewness) if np.isfinite(skewness) else 0.0

    def __add__(self, other: Shape) -> Shape:
        """Central sums of both, from the means of each (Chan, Golub and LeVeque; Terriberry for cubes)."""
        n = self.n + other.n
        a, b = (self.n / n, other.n / n) if n else (0.0, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            d = np.float64(other.mean) - self.mean
            squares = self.squares + other.squares + n * a * b * d**2
            cubes = self.cubes + other.cubes + n * a * b * (a - b) * d**3
            cubes += 3 * d * (a * other.squares - b * self.squares)
        ends = min(self.low, other.low), max(self.high, other.high)
        is_whole = self.is_whole and other.is_whole
        return Shape(n, float(self.mean + b * d), float(squares), float(cubes), *ends, is_whole)


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def label_counts(source: Source) -> dict[Any, int]:
    """Rows of every label of a scan, labels sorted: one pass over the target alone, once per source."""
    column = source.reading(Target.RAW)
    tally = source.remembered("label counts", lambda: column.reduce(_Tally.finder(column)))
    rows = {label: tally.rows[label] for label in sorted(tally.rows)}
    conceal(quoted_labels(rows))
    return rows


@dataclass(frozen=True)
class _Tally:
    """Rows by label."""

    rows: dict[Any, int]

    @staticmethod
    def finder(column: Source) -> Callable[[Block], _Tally]:
        return _Teller(LabelSet.finder(column))

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(self.rows | {label: n + self.rows.get(label, 0) for label, n in other.rows.items()})


@dataclass(frozen=True)
class _Teller:
    """Rows by label of a block; labels are refused as a fit refuses them. Can be sent to a worker."""

    finder: Callable[[Block], LabelSet]

    def __call__(self, block: Block) -> _Tally:
        self.finder(block)
        counts = pc.value_counts(_column_of(block))
        return _Tally(dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)))


def _column_of(stretch: Block) -> pa.Array:
    """The target of a stretch that is read raw: text, flags or numbers; rows of weight 0 are none."""
    if isinstance(stretch.X, pa.Table):
        column = stretch.X.column(0).combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    elif stretch.y is None:
        raise ValueError("The scan has no target. Use scan_csv(path, target='name of the column').")
    else:
        column = pa.array(stretch.y)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if stretch.weight is None else column.filter(pa.array(stretch.weight > 0))
