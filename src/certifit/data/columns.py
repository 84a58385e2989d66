"""Columns of a block in the storage they came in: a table's rows as the compiled core reads them.

A block's columns are a list of segments. Numbers stay in their Arrow buffers with their validity bits; a category is
its codes and is never expanded: it stands for as many 0/1 columns as it has levels beside the reference.
`refuse_kinds` refuses frames with columns of other kinds (dates, masks, text), which would become numbers in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
Numbers = Array | float  # a number, or an array of them


def plain_numbers(values: Any) -> Array:
    """float64 as the core reads it: in one piece, and at addresses that a float64 may have."""
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous and values.flags.aligned:
        return values
    return np.require(values, np.float64, ("C", "A"))


class Segment(Protocol):
    """Some columns of a block."""

    @property
    def n_columns(self) -> int:
        """How many columns."""

    def part(self, begin: int, end: int) -> Segment:
        """Rows [begin, end)."""

    def taken(self, places: Array, n_rows: int) -> Segment:
        """Some of the n_rows rows, copied."""

    def core(self) -> tuple[Any, ...]:
        """As the compiled core takes it."""

    def dense(self, n_rows: int) -> Array:
        """Expanded: rows x columns of float64."""


@dataclass(frozen=True)
class Bits:
    """An Arrow bitmap: bit offset + i belongs to row i, least significant bit first."""

    data: Array  # uint8
    offset: int = 0

    def part(self, begin: int) -> Bits:
        """The bits from row `begin` on."""
        return replace(self, offset=self.offset + begin)

    def to_bool(self, n_rows: int) -> Array:
        """One bool a row; only the bytes of these rows are read."""
        begin, shift = divmod(self.offset, 8)
        packed = self.data[begin : begin + (shift + n_rows + 7) // 8]
        return np.unpackbits(packed, bitorder="little")[shift : shift + n_rows].view(np.bool_)


@dataclass(frozen=True)
class Dense:
    """A 2-D array of any numeric type."""

    values: Array

    @property
    def n_columns(self) -> int:
        """How many columns."""
        return int(self.values.shape[1])

    def part(self, begin: int, end: int) -> Dense:
        """Rows [begin, end)."""
        return Dense(self.values[begin:end])

    def taken(self, places: Array, n_rows: int) -> Dense:
        """Some of the rows, as float64."""
        return Dense(np.asarray(self.values[places], dtype=np.float64))

    def core(self) -> tuple[Any, ...]:
        """As the compiled core takes it."""
        return ("dense", self.values)

    def dense(self, n_rows: int) -> Array:
        """Rows x columns of float64."""
        return np.asarray(self.values, dtype=np.float64)


@dataclass(frozen=True)
class Number:
    """One numeric column; rows that are not valid read as `fill`."""

    values: Array | Bits
    valid: Bits | None = None
    fill: float = 0.0
    n_columns: int = 1

    def part(self, begin: int, end: int) -> Number:
        """Rows [begin, end)."""
        values = self.values.part(begin) if isinstance(self.values, Bits) else self.values[begin:end]
        return replace(self, values=values, valid=None if self.valid is None else self.valid.part(begin))

    def taken(self, places: Array, n_rows: int) -> Dense:
        """Some of the rows, as float64 without gaps."""
        values = self.values.to_bool(n_rows) if isinstance(self.values, Bits) else self.values
        out = np.asarray(values[places], dtype=np.float64)
        if self.valid is not None:
            out[~self.valid.to_bool(n_rows)[places]] = self.fill
        return Dense(out[:, None])

    def core(self) -> tuple[Any, ...]:
        """As the compiled core takes it."""
        valid = (None, 0) if self.valid is None else (self.valid.data, self.valid.offset)
        if isinstance(self.values, Bits):
            return ("bits", self.values.data, self.values.offset, *valid, self.fill)
        return ("number", self.values, *valid, self.fill)

    def dense(self, n_rows: int) -> Array:
        """Rows x 1 of float64."""
        is_bits = isinstance(self.values, Bits)
        values = self.values.to_bool(n_rows) if isinstance(self.values, Bits) else self.values
        out = values.astype(np.float64) if is_bits else np.array(values, dtype=np.float64)
        if self.valid is not None:
            out[~self.valid.to_bool(n_rows)] = self.fill
        return out[:, None]


@dataclass(frozen=True)
class Missing:
    """One column: 1 where a value is missing, else 0."""

    valid: Bits | None
    n_columns: int = 1

    def part(self, begin: int, end: int) -> Missing:
        """Rows [begin, end)."""
        return replace(self, valid=None if self.valid is None else self.valid.part(begin))

    def taken(self, places: Array, n_rows: int) -> Dense:
        """Some of the rows, as float64."""
        return Dense(self.dense(n_rows)[places])

    def core(self) -> tuple[Any, ...]:
        """As the compiled core takes it."""
        return ("missing", None, 0) if self.valid is None else ("missing", self.valid.data, self.valid.offset)

    def dense(self, n_rows: int) -> Array:
        """Rows x 1 of float64."""
        if self.valid is None:
            return np.zeros((n_rows, 1))
        return (~self.valid.to_bool(n_rows)).astype(np.float64)[:, None]


@dataclass(frozen=True)
class Codes:
    """A category: row i has a 1 in column columns[codes[i]], in null_column where it is not valid; -1 is no column."""

    codes: Array  # integers
    columns: Array  # int32, one a code
    n_columns: int
    valid: Bits | None = None
    null_column: int = -1

    def part(self, begin: int, end: int) -> Codes:
        """Rows [begin, end)."""
        valid = None if self.valid is None else self.valid.part(begin)
        return replace(self, codes=self.codes[begin:end], valid=valid)

    def taken(self, places: Array, n_rows: int) -> Codes:
        """Some of the rows."""
        valid = None
        if self.valid is not None:
            valid = Bits(np.packbits(self.valid.to_bool(n_rows)[places], bitorder="little"))
        return replace(self, codes=self.codes[places], valid=valid)

    def core(self) -> tuple[Any, ...]:
        """As the compiled core takes it."""
        valid = (None, 0) if self.valid is None else (self.valid.data, self.valid.offset)
        return ("codes", self.codes, self.columns, self.n_columns, *valid, self.null_column)

    def dense(self, n_rows: int) -> Array:
        """Rows x columns of 0 and 1."""
        valid = np.ones(n_rows, dtype=bool) if self.valid is None else self.valid.to_bool(n_rows)
        place = np.full(n_rows, self.null_column)
        place[valid] = self.columns[self.codes[:n_rows][valid]]
        out = np.zeros((n_rows, self.n_columns))
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = 1.0
        return out


@dataclass(frozen=True)
class Csr:
    """Columns that are mostly zero: a SciPy CSR array of float64 with sorted indices."""

    rows: Any

    @property
    def n_columns(self) -> int:
        """How many columns."""
        return int(self.rows.shape[1])

    def part(self, begin: int, end: int) -> Csr:
        """Rows [begin, end)."""
        return Csr(self.rows[begin:end])

    def taken(self, places: Array, n_rows: int) -> Csr:
        """Some of the rows."""
        return Csr(self.rows[places])

    def core(self) -> tuple[Any, ...]:
        """As the compiled core takes it."""
        return ("csr", self.rows.data, self.rows.indices, self.rows.indptr, self.n_columns)

    def dense(self, n_rows: int) -> Array:
        """Rows x columns."""
        return np.asarray(self.rows.toarray())


class Columns:
    """The columns of a block: segments side by side."""

    def __init__(self, segments: Sequence[Segment], n_rows: int) -> None:
        self.segments = list(segments)
        self.shape = (n_rows, sum(segment.n_columns for segment in segments))

    def part(self, begin: int, end: int) -> Columns:
        """Rows [begin, end)."""
        end = min(end, self.shape[0])
        return Columns([segment.part(begin, end) for segment in self.segments], end - begin)

    def taken(self, rows: Array) -> Columns:
        """The rows where `rows` is True, or those at these places in their order, copied."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows  # a mask would be read anew for every column
        return Columns([part.taken(places, self.shape[0]) for part in self.segments], len(places))

    def some(self, columns: Array) -> Array:
        """Some columns, ascending, expanded: rows x columns of float64."""
        parts, begin = [np.zeros((self.shape[0], 0))], 0
        for segment in self.segments:
            end = begin + segment.n_columns
            inside = columns[(columns >= begin) & (columns < end)] - begin
            begin = end
            if len(inside) and isinstance(segment, Csr):
                parts.append(dense_rows(segment.rows[:, inside]))
            elif len(inside):
                parts.append(segment.dense(self.shape[0])[:, inside])
        return np.concatenate(parts, axis=1)

    def core(self) -> list[tuple[Any, ...]]:
        """As the compiled core takes it."""
        return [("rows", self.shape[0]), *(segment.core() for segment in self.segments)]

    def toarray(self) -> Array:
        """Expanded: rows x columns of float64. For small blocks and tests."""
        if not self.segments:
            return np.zeros(self.shape)
        return np.concatenate([segment.dense(self.shape[0]) for segment in self.segments], axis=1)


def coarseness(X: Any) -> Array | None:
    """How much coarser than float64 the type of every column rounds, of rows or a frame; None of what has no types."""
    float32 = float(np.finfo(np.float32).eps / np.finfo(np.float64).eps)
    if isinstance(X, Columns):
        types = [(str(getattr(getattr(part, "values", ""), "dtype", "")), part.n_columns) for part in X.segments]
        kinds = [kind for kind, width in types for _ in range(width)]
    else:
        kinds = [kind for _, kind in _column_kinds(X)]
    if not kinds and not hasattr(X, "dtype"):
        return None
    is_coarse = np.isin(kinds, ("float32", "float")) if kinds else np.full(X.shape[1], X.dtype == np.float32)
    return np.where(is_coarse, float32, 1.0)


# ---- kinds of columns that are not numbers ---------------------------------------------------------------------------


def refuse_kinds(X: Any) -> None:
    """Refuse masks, dates and categories, which would become numbers in silence."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(
            "X is a masked array, whose mask would be lost. Fill it (X.filled(...)) or drop the masked rows."
        )
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        raise TypeError(
            f"X has dtype {dtype}: dates and durations are not numbers. Convert them, e.g. to days since a date."
        )
    for name, kind in _column_kinds(X):
        for word, advice in _REFUSED_KINDS.items():
            if word in kind:
                raise TypeError(f"Column {name!r} of X has dtype {kind}. {advice}")


_ENCODE = (
    "Give the model encoder='auto' (its settings: encoder=TableEncoder(...)), or encode it as numbers first (for "
    "example sklearn.preprocessing.OneHotEncoder)."
)
_DATE = "Give the model encoder='auto', or convert it to numbers first, e.g. days since a date."
_REFUSED_KINDS = {
    "categor": _ENCODE,
    "dictionary": _ENCODE,
    "enum": _ENCODE,
    "string": _ENCODE,
    "utf8": _ENCODE,
    "date": _DATE,
    "time": _DATE,
    "duration": _DATE,
}


def _column_kinds(X: Any) -> list[tuple[str, str]]:
    """(name, lower-case dtype) of the columns of a pandas, polars or Arrow table; none for arrays."""
    schema = getattr(X, "schema", None)
    if schema is not None and hasattr(schema, "types"):  # pyarrow
        return [(name, str(kind).lower()) for name, kind in zip(schema.names, schema.types, strict=True)]
    dtypes = getattr(X, "dtypes", None)
    columns = getattr(X, "columns", None)
    if dtypes is None or columns is None:
        return []
    kinds = [str(kind).lower() for kind in dtypes]
    are_texts = [kind == "str" or (kind == "object" and _is_text(X.iloc[:, j])) for j, kind in enumerate(kinds)]
    return [
        (str(name), "string" if is_text else kind)
        for name, kind, is_text in zip(columns, kinds, are_texts, strict=True)
    ]


def _is_text(column: Any) -> bool:
    """Whether Python objects hold text that is no number, as text does in pandas before 3."""
    try:
        np.asarray(column, dtype=np.float64)
    except ValueError:
        return True
    except TypeError:  # dates, gaps of pandas: scikit-learn says what they are
        return False
    return False


def dense_rows(X: Any) -> Array:
    """Rows as a float64 array."""
    if hasattr(X, "toarray"):  # columns, or a sparse matrix
        X = X.toarray()
    return np.asarray(X, dtype=np.float64)
