"""What is added up about numbers and about texts.

Sums merge as means and squares about them (Chan), never raw. A fingerprint is sum_i h(x_i) k_i mod 2^64 with a key k_i
made of the global row number, so it does not depend on how rows are cut; equal columns have equal fingerprints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.columns import Array
from certifit.data.privacy import FEWEST
from certifit.maps.table.reading import as_text
from certifit.runtime import core

WORD = 1 << 64
PIECE = 8192  # rows whose intermediate results stay in the cache
_WIDEST_RANGE = 1024  # whole numbers within such a range are counted one by one
_LARGEST_WHOLE = 2.0**62  # beyond it numbers are not counted as int64
_HASHED_LEVELS = 10_000
_FIRST_ROWS = 64
Pieces: TypeAlias = tuple[Array, ...]  # of each piece of rows: count, lower, upper, weight, mean, squares, fingerprint


@dataclass(frozen=True)
class NumberMoments:
    """Numbers of one column, rows in order. squares = sum w (x - mean)^2."""

    count: int = 0
    weight: float = 0.0
    lower: float = np.inf
    upper: float = -np.inf
    mean: float = 0.0
    squares: float = 0.0
    first: float = 0.0
    last: float = 0.0
    is_whole: bool = True
    is_increasing: bool = True
    fingerprint: int = 0
    counts: dict[int, int] | None = None  # rows of each whole number, where they span little
    few: Mapping[float, int] | None = None  # rows of each number, where at most FEWEST differ

    @property
    def is_constant(self) -> bool:
        """One value in all rows that have one."""
        return self.lower >= self.upper

    @property
    def rows_by_number(self) -> Mapping[float, int] | Mapping[int, int] | None:
        """Rows of each number; None where there are too many to count."""
        return self.few if self.counts is None else self.counts

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(self.squares / self.weight)) if self.weight > 0 else 0.0

    def __add__(self, other: NumberMoments) -> NumberMoments:
        if not self.count or not other.count:
            return self if self.count else other
        weight = self.weight + other.weight
        share = other.weight / weight
        lower, upper = min(self.lower, other.lower), max(self.upper, other.upper)
        apart = other.mean - self.mean
        return NumberMoments(
            count=self.count + other.count,
            weight=weight,
            lower=lower,
            upper=upper,
            mean=_within(self.mean * (1 - share) + other.mean * share, lower, upper),
            squares=self.squares + other.squares + apart * apart * share * self.weight,
            first=self.first,
            last=other.last,
            is_whole=self.is_whole and other.is_whole,
            is_increasing=self.is_increasing and other.is_increasing and self.last < other.first,
            fingerprint=(self.fingerprint + other.fingerprint) % WORD,
            counts=_added_numbers(self.counts, other.counts, upper - lower),
            few=_added_few(self.few, other.few),
        )


def moments(
    values: Array, valid: Array | None, keys: Array, weight: Array | None, pieces: Pieces | None = None
) -> NumberMoments:
    """Of the values of any numeric type that are valid (None: all), which are finite; keys: one word per row.

    pieces: what `plain_pieces` made of them, where it is known.
    """
    if not len(values) or (valid is not None and not valid.any()):
        return NumberMoments(counts={}, few={})
    stand_in = values[0] if valid is None else values[np.argmax(valid)]
    pieces = pieces or plain_pieces(values, valid, keys, weight)
    if pieces is None:
        rows = (
            _piece(_filled(values[p], _part(valid, p), stand_in), _part(valid, p), keys[p], _part(weight, p))
            for p in _pieces(len(values))
        )
        pieces = tuple(np.array(part) for part in zip(*rows, strict=True))
    count, lowest, highest, weights, means, squares, fingerprints = pieces
    lower, upper, total = float(lowest.min()), float(highest.max()), float(weights.sum())
    mean = _within(float((means * (weights / total)).sum()), lower, upper)
    is_whole = values.dtype.kind in "iub" or all(
        _are_whole(_filled(values[p], _part(valid, p), stand_in)) for p in _pieces(len(values))
    )
    present = values if valid is None else values[valid]
    is_increasing = _increase(present[:PIECE]) and _increase(present)
    with np.errstate(over="ignore", invalid="ignore"):
        about = float(squares.sum() + (weights * (means - mean) ** 2).sum())
    is_narrow = is_whole and upper - lower <= _WIDEST_RANGE and max(-lower, upper) < _LARGEST_WHOLE
    return NumberMoments(
        count=int(count.sum()),
        weight=total,
        lower=lower,
        upper=upper,
        mean=mean,
        squares=about,
        first=float(stand_in),
        last=float(values[-1] if valid is None else values[len(valid) - 1 - np.argmax(valid[::-1])]),
        is_whole=is_whole,
        is_increasing=is_increasing,
        fingerprint=int(fingerprints.sum(dtype=np.uint64)),
        counts=_counted(values, valid, int(lower), int(upper)) if is_narrow else None,
        few=_few_numbers(present),
    )


def moments_of_columns(X: Array, keys: Array, weight: Array | None) -> list[NumberMoments]:
    """`moments` of every row of X, a column of the table, to the same bits. PIECE numbers at most, their sum finite."""
    lower, upper, n_rows = X.min(axis=1), X.max(axis=1), X.shape[1]
    total = float(n_rows if weight is None else weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        if weight is None:
            *_, mean, squares, fingerprints = core.number_facts(X, keys[None])
        else:
            mean = (X * weight).sum(axis=1) / total
        if not np.isfinite(mean).all():  # weights that make a sum overflow
            return [moments(x, None, keys, weight) for x in X]
        if weight is not None:
            mean = np.minimum(np.maximum(mean, lower), upper)
            about = X - mean[:, None]
            about *= about
            about *= weight
            squares, fingerprints = about.sum(axis=1), _fingerprint((X + 0.0).view(np.uint64), keys)
    is_whole = np.asarray((np.rint(X) == X).all(axis=1))
    is_narrow = is_whole & (upper - lower <= _WIDEST_RANGE) & (np.maximum(-lower, upper) < _LARGEST_WHOLE)
    is_increasing = np.asarray((X[:, 1:] > X[:, :-1]).all(axis=1))
    first_rows = np.sort(X[:, :_FIRST_ROWS], axis=1)
    are_many = np.count_nonzero(np.diff(first_rows, axis=1), axis=1) >= FEWEST
    return [
        NumberMoments(
            count=n_rows,
            weight=total,
            lower=float(lower[j]),
            upper=float(upper[j]),
            mean=float(mean[j]),
            squares=float(squares[j]),
            first=float(X[j, 0]),
            last=float(X[j, -1]),
            is_whole=bool(is_whole[j]),
            is_increasing=bool(is_increasing[j]),
            fingerprint=int(fingerprints[j]),
            counts=_counted(X[j], None, int(lower[j]), int(upper[j])) if is_narrow[j] else None,
            few=None if are_many[j] else _few_numbers(X[j]),
        )
        for j in range(len(X))
    ]


def plain_pieces(values: Array, valid: Array | None, keys: Array, weight: Array | None) -> Pieces | None:
    """What `_piece` gives of every piece, of all pieces together; None where a sum is not finite.

    None too where values are not all float64 that are valid and have no weights.
    """
    if values.dtype != np.float64 or valid is not None or weight is not None or not len(values):
        return None
    n_whole = len(values) // PIECE * PIECE
    parts = []
    for begin, end, length in ((0, n_whole, PIECE), (n_whole, len(values), len(values) - n_whole)):
        if begin < end:
            lines = (np.ascontiguousarray(part[begin:end]).reshape(-1, length) for part in (values, keys))
            lower, upper, mean, squares, fingerprint = core.number_facts(*lines)
            count = np.full(len(lower), length)
            parts.append((count, lower, upper, count.astype(np.float64), mean, squares, fingerprint))
    pieces = parts[0] if len(parts) == 1 else tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    return pieces if np.isfinite(pieces[4]).all() else None


def _piece(
    x: Array, valid: Array | None, keys: Array, weight: Array | None
) -> tuple[int, float, float, float, float, float, Array | np.uint64]:
    """(count, lower, upper, weight, mean, squares, fingerprint) of rows that stay in the cache."""
    count = len(x) if valid is None else int(np.count_nonzero(valid))
    if not count:
        return 0, np.inf, -np.inf, 0.0, 0.0, 0.0, np.uint64(0)
    lower, upper = float(x.min()), float(x.max())
    if valid is not None:
        weight = valid if weight is None else weight * valid
        keys = keys * valid
    total = float(count if weight is None else weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float((x if weight is None else x * weight).sum()) / total
        if not np.isfinite(mean):
            mean = float((x / total if weight is None else x * (weight / total)).sum())
        mean = _within(mean, lower, upper)
        about = x - mean
        about *= about
        if weight is not None:
            about *= weight
        squares = float(about.sum())
    return count, lower, upper, total, mean, squares, _fingerprint((x + 0.0).view(np.uint64), keys)


def _filled(values: Array, valid: Array | None, stand_in: float) -> Array:
    """As float64; gaps read as a valid value, so that range and wholeness stand."""
    x = values.astype(np.float64, copy=False)
    return x if valid is None else np.where(valid, x, np.float64(stand_in))


def _pieces(n_rows: int) -> list[slice[int, int, None]]:
    return [slice(begin, begin + PIECE) for begin in range(0, n_rows, PIECE)]


def _part(values: Array | None, rows: slice[int, int, None]) -> Array | None:
    return None if values is None else values[rows]


@dataclass(frozen=True)
class Levels:
    """Texts of one column: the weight of each distinct one, unless there are more than a cap."""

    count: int = 0
    counts: dict[str, float] | None = None  # None: more distinct texts than the cap
    distinct: int | None = 0  # None: more than the cap
    distinct_in_stretches: int = 0  # summed over stretches, so at least the number of distinct texts
    length: int = 0  # characters of all rows
    spaced: int = 0  # rows with a space inside
    fingerprint: int | None = 0  # None: too many distinct texts to tell
    rows: dict[str, float] | None = None  # rows of each distinct text, where weights make `counts` another number

    def rows_of(self, text: str) -> float:
        """Rows that hold a text; 0 where that is not known."""
        rows = self.counts if self.rows is None else self.rows
        return 0 if rows is None else rows.get(text, 0)

    def added(self, other: Levels, cap: int) -> Levels:
        """The sum, with at most `cap` distinct texts counted."""
        counts = _added_texts(self.counts, other.counts, cap)
        hashes = (self.fingerprint, other.fingerprint)
        return Levels(
            count=self.count + other.count,
            counts=counts,
            distinct=None if counts is None else len(counts),
            distinct_in_stretches=self.distinct_in_stretches + other.distinct_in_stretches,
            length=self.length + other.length,
            spaced=self.spaced + other.spaced,
            fingerprint=None if None in hashes else sum(h for h in hashes if h is not None) % WORD,
            rows=_added_texts(self.rows, other.rows, cap),
        )

    def without_texts(self) -> Levels:
        """The same facts, the texts themselves forgotten."""
        return replace(self, counts=None, rows=None)


def levels(column: pa.Array, keys: Array, weight: Array | None, cap: int) -> Levels:
    """Of a column without nulls: text, a dictionary, or whole numbers."""
    if not pt.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    codes = column.indices.to_numpy(zero_copy_only=False).astype(np.intp, copy=False)
    rows = np.bincount(codes, minlength=len(column.dictionary)) if len(codes) else np.zeros(0, dtype=np.int64)
    used = np.flatnonzero(rows)
    texts = as_text(column.dictionary).take(pa.array(used))
    rows_of = rows[used]
    known = len(used) <= cap
    weights = rows_of if weight is None else np.bincount(codes, weights=weight, minlength=len(rows))[used]
    # A dictionary may hold one text twice, so counts are added and not set.
    counts = _added_pairs(texts.to_pylist(), weights.tolist()) if known else None
    own_rows = None if weight is None or not known else _added_pairs(texts.to_pylist(), rows_of.tolist())
    lengths = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    spaced = pc.match_substring(texts, " ").to_numpy(zero_copy_only=False)
    return Levels(
        count=len(codes),
        counts=counts,
        distinct=None if counts is None else len(counts),
        distinct_in_stretches=len(used),
        length=int(rows_of @ lengths),
        spaced=int(rows_of @ spaced),
        fingerprint=_text_fingerprint(texts, used, codes, len(rows), keys) if len(used) <= _HASHED_LEVELS else None,
        rows=own_rows,
    )


def row_keys(rows: Array) -> Array:
    """One pseudo-random word per row number (splitmix64)."""
    z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def _fingerprint(words: Array, keys: Array) -> Array:
    """Of the words along the last axis."""
    # The high half is mixed into the low one: floats of few digits have only zeros there.
    mixed = words >> np.uint64(32)
    mixed ^= words
    mixed += np.uint64(0x9E3779B97F4A7C15)  # a zero must not count as a missing value
    mixed *= keys
    return np.asarray(mixed.sum(axis=-1, dtype=np.uint64))


def _text_fingerprint(texts: pa.Array, used: Array, codes: Array, n_codes: int, keys: Array) -> int:
    words = np.zeros(n_codes, dtype=np.uint64)
    words[used] = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in texts.to_pylist()]
    return int(_fingerprint(words[codes], keys)) if len(codes) else 0


def _within(value: float, lower: float, upper: float) -> float:
    return min(max(value, lower), upper)


def _are_whole(x: Array) -> bool:
    return bool((np.rint(x) == x).all())


def _increase(x: Array) -> bool:
    return bool((x[1:] > x[:-1]).all())


def _counted(values: Array, valid: Array | None, lower: int, upper: int) -> dict[int, int]:
    rows = np.zeros(upper - lower + 1, dtype=np.int64)
    for p in _pieces(len(values)):
        piece = values[p] if valid is None else values[p][valid[p]]
        rows += np.bincount(piece.astype(np.int64) - lower, minlength=len(rows))
    used = np.flatnonzero(rows)
    return dict(zip((used + lower).tolist(), rows[used].tolist(), strict=True))


def _added_numbers(a: dict[int, int] | None, b: dict[int, int] | None, width: float) -> dict[int, int] | None:
    if a is None or b is None or width > _WIDEST_RANGE:
        return None
    return {key: a.get(key, 0) + b.get(key, 0) for key in sorted(a.keys() | b.keys())}


def _few_numbers(values: Array) -> dict[float, int] | None:
    """Rows of each number; None where more than FEWEST differ, which the first rows mostly show."""
    counts: dict[float, int] = {}
    first_rows = np.sort(values[:_FIRST_ROWS])
    if np.count_nonzero(first_rows[1:] != first_rows[:-1]) >= FEWEST:
        return None
    while len(values):
        if len(counts) == FEWEST:
            return None
        is_same = values == values[0]
        counts[float(values[0])] = int(np.count_nonzero(is_same))
        values = values[~is_same]
    return counts


def _added_few(a: Mapping[float, int] | None, b: Mapping[float, int] | None) -> Mapping[float, int] | None:
    if a is None or b is None or len(a.keys() | b.keys()) > FEWEST:
        return None
    return {key: a.get(key, 0) + b.get(key, 0) for key in sorted(a.keys() | b.keys())}


def _added_texts(a: dict[str, float] | None, b: dict[str, float] | None, cap: int) -> dict[str, float] | None:
    if a is None or b is None:
        return None
    total = _added_pairs([*a, *b], [*a.values(), *b.values()])
    return total if len(total) <= cap else None


def _added_pairs(texts: list[str], weights: list[float]) -> dict[str, float]:
    total: dict[str, float] = {}
    for text, weight in zip(texts, weights, strict=True):
        total[text] = total.get(text, 0) + weight
    return total
