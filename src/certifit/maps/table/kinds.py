"""One class per column kind: what a column of a table becomes.

A column x with gaps becomes x + fill m and m, where m is 1 in the gaps and x is 0 there; `fill` is data of the kind,
so another fill (that of a fold) changes the columns by an affine map only. `is_lenient`: what training never showed (a
new level, a gap in a column that had none) counts as the fill or the reference; else it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data import columns as seg
from certifit.data.arrow import valid_bits, values_of
from certifit.data.columns import Array, Bits, Segment
from certifit.data.privacy import rule
from certifit.data.source import RowError
from certifit.maps.table.reading import PARTS, as_text, date_parts, family, valid_rows, whole_numbers, without_number
from certifit.maps.text import TextBinarizer

_SHOWN_LEVELS = 10
MOST_CODES = 255  # of a coded category
_SHOWN_SHARES = 2  # columns after the first that the name of a shared mark lists


@dataclass(frozen=True)
class TableColumn:
    """A column of the table: its name, and whether a 0/1 column marks its gaps.

    marked_by: the column whose 0/1 column marks these gaps too, for both are missing in the same rows; shares: the
    columns that this one marks beside itself. absent: a number that means no value, such as -999.
    """

    name: str
    has_indicator: bool = False
    is_lenient: bool = False
    marked_by: str | None = field(default=None, kw_only=True)
    shares: tuple[str, ...] = field(default=(), kw_only=True)
    absent: float | None = field(default=None, kw_only=True)

    kind: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]  # families

    @property
    def own_names(self) -> list[str]:
        """What follows the name of the column in the names out, gaps apart."""
        raise NotImplementedError

    def names_out(self, label: str) -> list[str]:
        """Names of the columns made, in order."""
        return [label + suffix for suffix in self.own_names] + ([self.mark(label)] if self.has_mark else [])

    @property
    def makes_columns(self) -> bool:
        """Whether any column is made of it."""
        return bool(self.own_names) or self.has_mark

    @property
    def has_mark(self) -> bool:
        """Whether a 0/1 column of its own marks the gaps."""
        return self.has_indicator

    def mark(self, label: str) -> str:
        """The name of the column that marks the gaps: "a missing", or "a, b missing" where b shares it."""
        n_more = len(self.shares) - _SHOWN_SHARES
        more = f" and {n_more} more" if n_more > 0 else ""
        return f"{', '.join([label, *self.shares[:_SHOWN_SHARES]])}{more} missing"

    @property
    def takes_gaps(self) -> bool:
        """Whether a gap is no surprise."""
        return self.has_indicator or self.is_lenient or self.marked_by is not None

    @property
    def is_plain(self) -> bool:
        """Whether a column without gaps stays as it is."""
        return False

    def segments(self, column: pa.Array) -> list[Segment]:
        """The columns made, as the compiled core reads them."""
        if pt.is_null(column.type):
            column = pa.nulls(len(column), self._empty_type)
        if family(column.type) not in self.reads:
            raise TypeError(f"Column {self.name!r} was a {self.kind} in the fit and is {column.type} here. Convert it.")
        return self._read(column)

    def present(self, column: pa.Array) -> pa.Array:
        """The column with a gap where the number that means no value stands."""
        return column if self.absent is None else without_number(column, self.absent)

    def record(self) -> tuple[dict[str, Any], list[float]]:
        """JSON types with the same keys for every kind, and the fills."""
        record = {
            "kind": self.kind, "name": self.name, "has_indicator": self.has_indicator, "is_lenient": self.is_lenient,
            "family": None, "parts": [], "levels": [], "reference": None, "other": None, "reason": None, "text": None,
            "declared": [],
            "marked_by": self.marked_by, "absent": self.absent,
        }  # fmt: skip
        return record, []

    @classmethod
    def of_record(cls, record: dict[str, Any], fills: list[float]) -> TableColumn:
        """The kind that `record` wrote."""
        raise NotImplementedError

    _empty_type: ClassVar[pa.DataType] = pa.float64()

    def _read(self, column: pa.Array) -> list[Segment]:
        raise NotImplementedError

    def _gaps(self, valid: Bits | None) -> list[Segment]:
        return [seg.Missing(valid)] if self.has_indicator else []

    def _refuse_gaps_of(self, column: pa.Array) -> None:
        if not self.takes_gaps and column.null_count:
            self._refuse_new_gap(column.is_null().to_numpy(zero_copy_only=False))

    def _refuse_new_gap(self, is_missing: Array) -> None:
        if self.takes_gaps or not is_missing.any():
            return
        raise RowError(
            f"Column {self.name!r} is missing",
            _first(is_missing),
            f", and the fit saw no gap there. Fill it, or fit with unseen='reference' to read it as {self._stand_in}.",
        )

    @property
    def _stand_in(self) -> str:
        return "the mean"


@dataclass(frozen=True)
class Number(TableColumn):
    """A number; gaps read as `fill`. A number with one value beside its gaps is left out: only the gaps remain."""

    fill: float = 0.0
    varies: bool = True

    kind = "number"
    reads: ClassVar[tuple[str, ...]] = ("number", "flag")

    @property
    def own_names(self) -> list[str]:
        """The name alone."""
        return [""] if self.varies else []

    @property
    def is_plain(self) -> bool:
        """A number that is neither marked nor recoded."""
        return self.varies and not self.has_indicator and self.absent is None

    def record(self) -> tuple[dict[str, Any], list[float]]:
        """The fill of a number that varies."""
        return super().record()[0] | {"parts": ["value"] if self.varies else []}, [self.fill] if self.varies else []

    @classmethod
    def of_record(cls, record: dict[str, Any], fills: list[float]) -> TableColumn:
        """The kind that `record` wrote."""
        return cls(*_common(record), fill=fills[0] if fills else 0.0, varies=bool(fills))

    def _read(self, column: pa.Array) -> list[Segment]:
        values, valid = self._checked(column)
        number: list[Segment] = [seg.Number(values, valid, self.fill)] if self.varies else []
        return number + self._gaps(valid)

    def _checked(self, column: pa.Array) -> tuple[Array | Bits, Bits | None]:
        """Values and where they are: NaN is a gap, infinity is refused."""
        if pt.is_decimal(column.type):
            column = pc.cast(column, pa.float64())
        values = values_of(column)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            if values.dtype.itemsize < 4:
                values = values.astype(np.float32)
            with np.errstate(over="ignore", invalid="ignore"):
                total = values.sum()
            if not np.isfinite(total):
                return values, self._finite_bits(values, column)
        self._refuse_gaps_of(column)
        return values, valid_bits(column)

    def _finite_bits(self, values: Array, column: pa.Array) -> Bits | None:
        valid = ~np.isnan(values)
        if (not_null := valid_rows(column)) is not None:
            valid &= not_null
        infinite = np.isinf(values) & valid
        if infinite.any():
            at = _first(infinite)
            advice = ". Numbers must be finite; leave the value empty if it is not known."
            raise RowError(f"Column {self.name!r} is {values[at]}", at, advice)
        self._refuse_new_gap(~valid)
        return None if valid.all() else Bits(np.packbits(valid, bitorder="little"))


@dataclass(frozen=True)
class Flag(Number):
    """True is 1, false 0; gaps read as `fill`, the share of true."""

    kind = "flag"
    reads = ("flag",)
    is_plain = False
    _empty_type = pa.bool_()


@dataclass(frozen=True)
class Date(TableColumn):
    """A date, time or duration as some of days, month, weekday, hour; one indicator for all."""

    family: str = "date"
    parts: tuple[str, ...] = ()
    fills: tuple[float, ...] = ()

    kind = "date"

    @property
    def reads(self) -> tuple[str, ...]:  # type: ignore[override]  # a constant in other kinds
        """Only its own family."""
        return (self.family,)

    @property
    def own_names(self) -> list[str]:
        """One a part."""
        return [f" {part}" for part in self.parts]

    def record(self) -> tuple[dict[str, Any], list[float]]:
        """The fill of each part."""
        return super().record()[0] | {"family": self.family, "parts": list(self.parts)}, list(self.fills)

    @classmethod
    def of_record(cls, record: dict[str, Any], fills: list[float]) -> TableColumn:
        """The kind that `record` wrote."""
        known = PARTS.get(record["family"], ())
        if not set(record["parts"]) <= set(known):
            raise ValueError(f"Parts {record['parts']} of {record['family']!r} are not known.")
        return cls(*_common(record), record["family"], tuple(record["parts"]), tuple(fills))

    @property
    def _empty_type(self) -> pa.DataType:
        return {"date": pa.date32(), "time": pa.time32("s"), "duration": pa.duration("s")}[self.family]

    def _read(self, column: pa.Array) -> list[Segment]:
        self._refuse_gaps_of(column)
        valid = valid_bits(column)
        parts = date_parts(column, self.parts) if self.parts else {}
        numbers = zip(parts.values(), self.fills, strict=True)
        return [seg.Number(values, valid, fill) for values, fill in numbers] + self._gaps(valid)


@dataclass(frozen=True)
class Level(TableColumn):
    """A category: one 0/1 column per level but the reference, whose rows are all zeros.

    `other` names the level that stands for all rare ones, and so for every level that the fit did not see. is_coded:
    one column of codes instead, for trees: 0, 1, ... in the order of the levels, then `other`, then missing values.
    declared: levels that the type of the column names and no row of the fit has; they are read as the reference.
    """

    levels: tuple[str, ...] = ()
    reference: str = ""
    other: str | None = None
    is_coded: bool = field(default=False, kw_only=True)
    declared: tuple[str, ...] = field(default=(), kw_only=True)

    kind = "level"
    reads = ("text", "number")

    def coded(self) -> Level:
        """One column of codes, where a byte has room for them."""
        return replace(self, is_coded=len(self.codes) <= MOST_CODES)

    @property
    def codes(self) -> list[str]:
        """What the codes of a coded column stand for, in their order."""
        missing = ["missing"] if self.has_indicator else []
        return [*self.levels, *([] if self.other is None else [self.other]), *missing]

    @property
    def has_mark(self) -> bool:
        """Missing values of a coded column have a code and no column."""
        return self.has_indicator and not self.is_coded

    @property
    def own_names(self) -> list[str]:
        """Every level but the reference; nothing of a coded column, which is named as in the table."""
        if self.is_coded:
            return [""]
        return [f"={level}" for level in (*self.levels, self.other) if level not in (self.reference, None)]

    def record(self) -> tuple[dict[str, Any], list[float]]:
        """The levels in order."""
        levels = {"levels": list(self.levels), "reference": self.reference, "other": self.other}
        return super().record()[0] | levels | {"declared": list(self.declared)}, []

    @classmethod
    def of_record(cls, record: dict[str, Any], fills: list[float]) -> TableColumn:
        """The kind that `record` wrote."""
        levels, reference, other = tuple(record["levels"]), record["reference"], record["other"]
        known = (*levels, *(declared := tuple(record.get("declared", ()))))
        if len(set(known)) < len(known) or other in known or reference not in (*levels, other):
            raise ValueError(f"The levels of column {record['name']!r} contradict each other.")
        return cls(*_common(record), levels, reference, other, declared=declared)

    _empty_type = pa.string()

    @cached_property
    def _known(self) -> pa.Array:
        """The levels, null and, last, levels that no row of the fit has."""
        return pa.array([*self.levels, None, *self.declared], pa.string())

    @cached_property
    def _columns(self) -> Array:
        """Column, or code, of each level, of null, of levels without rows, and of what is not known; -1 is none."""
        n_unknown = len(self.declared) + 1
        if self.is_coded:
            n, reference = len(self.levels), self.codes.index(self.reference)
            unknown = reference if self.other is None else n
            null = n + (self.other is not None) if self.has_indicator else unknown
            return np.array([*range(n), null, *[unknown] * n_unknown], dtype=np.int32)
        shown = [level for level in (*self.levels, self.other) if level not in (self.reference, None)]
        place = {level: j for j, level in enumerate(shown)}
        unknown = -1 if self.other is None else place.get(self.other, -1)
        null = len(shown) if self.has_indicator else (unknown if self.marked_by is None else -1)
        columns = [place.get(level, -1) for level in self.levels]
        return np.array([*columns, null, *[unknown] * n_unknown], dtype=np.int32)

    @property
    def _stand_in(self) -> str:
        return f"the reference level {self.reference!r}" if rule().shows else "the reference level"

    def _read(self, column: pa.Array) -> list[Segment]:
        """Codes in place where the column is a dictionary, else looked up."""
        if family(column.type) == "number":
            column = pc.dictionary_encode(whole_numbers(column, self.name))
        self._refuse_gaps_of(column)
        read = self._of_dictionary if pt.is_dictionary(column.type) else self._of_text
        return [read(column)]

    def _of_text(self, column: pa.Array) -> Segment:
        codes = pc.index_in(column, value_set=pc.cast(self._known, column.type))
        if codes.null_count and not self.is_lenient:
            row = _first(codes.is_null().to_numpy(zero_copy_only=False))
            self._refuse(column[row].as_py(), row)
        return self._codes(codes, self._columns[:-1], int(self._columns[-1]))

    def _of_dictionary(self, column: pa.Array) -> Segment:
        places = pc.index_in(as_text(column.dictionary), value_set=self._known)
        null, unknown = len(self.levels), len(self._known)
        at = pc.fill_null(places, unknown).to_numpy(zero_copy_only=False)
        if not self.is_lenient:
            self._refuse_used(column, at == unknown, at == null)
        return self._codes(column.indices, self._columns[at], int(self._columns[null]))

    def _codes(self, codes: pa.Array, columns: Array, null_column: int) -> Segment:
        values = values_of(codes)
        if isinstance(values, Bits):
            raise TypeError("codes are numbers")
        if self.is_coded:
            numbers = np.full(len(codes), null_column, dtype=np.float64)
            is_valid = valid_rows(codes)
            numbers[is_valid] = columns[np.asarray(values)[is_valid]]
            return seg.Dense(numbers[:, None])
        n_columns = len(self.own_names) + self.has_indicator
        return seg.Codes(values, np.ascontiguousarray(columns), n_columns, valid_bits(codes), null_column)

    def _refuse_used(self, column: pa.Array, is_unknown: Array, is_null: Array) -> None:
        """A dictionary may hold entries that no row uses; only a used one is refused."""
        if not (is_unknown.any() or is_null.any()):
            return
        used = pc.take(pa.array(is_unknown), column.indices).fill_null(False).to_numpy(zero_copy_only=False)
        if used.any():
            self._refuse(str(as_text(column.dictionary)[column.indices[_first(used)].as_py()]), _first(used))
        self._refuse_new_gap(pc.take(pa.array(is_null), column.indices).fill_null(False).to_numpy(zero_copy_only=False))

    def _refuse(self, level: str, row: int) -> NoReturn:
        shown = ", ".join(map(repr, self.levels[:_SHOWN_LEVELS])) + (", ..." * (len(self.levels) > _SHOWN_LEVELS))
        what, known = f"the level {level!r}", f". Its {len(self.levels)} levels are {shown}"
        if not rule().shows:
            what, known = "a level", " (--show-values names it)"
        raise RowError(
            f"Column {self.name!r} has {what}",
            row,
            f", which the fit did not see{known}. Fit with unseen='reference' to read new levels as {self._stand_in}, "
            "or name all levels in the column's type (pandas: astype('category') before rows are taken).",
        )


@dataclass(frozen=True)
class Text(TableColumn):
    """Free text: the columns of a fitted TextBinarizer; a missing text has no words."""

    words: TextBinarizer = field(default_factory=TextBinarizer)

    kind = "text"
    reads = ("text",)

    @property
    def own_names(self) -> list[str]:
        """One per term."""
        return self._names

    @cached_property
    def _names(self) -> list[str]:
        return [f": {term}" for term in self.words.get_feature_names_out()]

    def record(self) -> tuple[dict[str, Any], list[float]]:
        """The terms in order, and how texts are read."""
        state, arrays = self.words.to_state()
        terms = [term.removeprefix(": ") for term in self.own_names] if arrays else []
        documents = arrays["documents"].tolist() if arrays else []
        return super().record()[0] | {"levels": terms, "text": state | {"documents": documents}}, []

    @classmethod
    def of_record(cls, record: dict[str, Any], fills: list[float]) -> TableColumn:
        """The kind that `record` wrote."""
        parts = [term.encode() for term in record["levels"]]
        arrays: dict[str, Array] = {
            "letters": np.frombuffer(b"".join(parts), dtype=np.uint8),
            "ends": np.cumsum([len(part) for part in parts], dtype=np.int64),
            "documents": np.array(record["text"]["documents"], dtype=np.int64),
        }
        return cls(*_common(record), TextBinarizer.from_state(record["text"], arrays))

    _empty_type = pa.string()

    @property
    def _stand_in(self) -> str:
        return "a text without words"

    def _read(self, column: pa.Array) -> list[Segment]:
        self._refuse_gaps_of(column)
        if pt.is_dictionary(column.type):
            column = pc.cast(column, pa.large_string())
        return [seg.Csr(self.words.apply(column)), *self._gaps(valid_bits(column))]


@dataclass(frozen=True)
class SetAside(TableColumn):
    """A column that the model does not see, and why."""

    reason: str = ""

    kind = "set aside"
    reads = ()

    @property
    def own_names(self) -> list[str]:
        """None."""
        return []

    def segments(self, column: pa.Array) -> list[Segment]:
        """None, whatever the column holds."""
        return []

    def record(self) -> tuple[dict[str, Any], list[float]]:
        """Why."""
        return super().record()[0] | {"reason": self.reason}, []

    @classmethod
    def of_record(cls, record: dict[str, Any], fills: list[float]) -> TableColumn:
        """The kind that `record` wrote."""
        return cls(*_common(record), record["reason"])


KINDS: dict[str, type[TableColumn]] = {kind.kind: kind for kind in (Number, Flag, Level, Date, Text, SetAside)}


def _common(record: dict[str, Any]) -> tuple[str, bool, bool]:
    return record["name"], record["has_indicator"], record["is_lenient"]


def _first(mask: Array) -> int:
    return int(np.argmax(mask))
