"""From a survey to the kind of each column, and the sentences that say why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from certifit.data.arrow import MIXED
from certifit.data.privacy import rule
from certifit.maps.table.kinds import Date, Flag, Level, Number, SetAside, TableColumn, Text
from certifit.maps.table.moments import Levels, NumberMoments
from certifit.maps.table.survey import ColumnSurvey, Survey, sharing

FEW_ROWS = 20  # too few rows to call a column an identifier, too few levels to call one free text
_UNIQUE_SHARE = 0.95
_IDENTIFIER = r"(?:.*[_ .-])?(?:id|idx|index|key|nr|no|number|row|rownum|rowid|rownames)|column1|unnamed.*|instant|sno"
_LONGEST_LEVEL = 10_000  # characters
_DAY = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_LONG_TEXT = 40  # mean number of characters above which texts are long


@dataclass(frozen=True)
class Settings:
    """The parameters of the encoder."""

    reference: str | dict[str, str]
    unseen: str
    max_levels: int
    min_count: float
    missing: str
    dates: str
    texts: bool  # whether free text becomes columns of words
    are_coded: bool = False  # whether a category is one column of codes
    months: frozenset[str] = frozenset()  # columns of dates that are months, whose first day has a weekday by chance
    declared: Mapping[str, Sequence[str]] = field(default_factory=dict)  # levels that types of columns name

    @property
    def is_lenient(self) -> bool:
        """Whether a gap is taken in a column that had none in training."""
        return self.unseen == "reference"

    def reference_of(self, name: str) -> str:
        """The rule, or the level itself where one is given."""
        return str(self.reference.get(name, "first")) if isinstance(self.reference, dict) else str(self.reference)


def choose(survey: Survey, settings: Settings, place: Callable[[int], str]) -> tuple[list[TableColumn], list[str]]:
    """Kinds in the order of the columns, and notes."""
    if not survey.n_rows:
        raise ValueError("No row has a weight above 0, so there is nothing to fit. Use other weights, or none.")
    kinds: list[TableColumn] = []
    known: dict[tuple[object, ...], str] = {}
    for name, column in survey.columns.items():
        _refuse_values(name, column, settings, place)
        kind = _CHOICES[column.family](name, column, settings)
        key = _key(column)
        if not isinstance(kind, SetAside) and key is not None:
            twin = known.setdefault(key, name)
            if twin != name:
                kind = SetAside(name, reason=f"it repeats column {twin!r} in every row")
        kinds.append(kind)
    kinds = sharing(kinds, survey)
    marked = [kind for kind in kinds if kind.has_mark]
    marks = {name: kind.mark(kind.name) for kind in marked for name in (kind.name, *kind.shares)}
    notes = [
        note
        for kind in kinds
        for note in _sentences(kind, survey.columns[kind.name], survey.n_rows, marks.get(kind.name, ""))
    ]
    return kinds, notes


def absent_note(name: str, number: float, column: ColumnSurvey, what: str) -> str:
    """What became of a number that looks like a sign for no value."""
    said = f"Column {name!r} is {number:g} in {column.codes[number]:,} rows, far from its other numbers"
    if what == "recognise":
        return f"{said}: read as missing. To read it as a number: absent='keep'."
    return f"{said}. If it means no value: absent='recognise'."


def _refuse_values(name: str, column: ColumnSurvey, settings: Settings, place: Callable[[int], str]) -> None:
    if column.first_infinite is not None:
        raise ValueError(
            f"Column {name!r} is infinite at {place(column.first_infinite)}. "
            "Numbers must be finite; leave the value empty if it is not known."
        )
    if settings.missing == "error" and column.first_missing is not None and column.family != "other":
        raise ValueError(
            f"Column {name!r} is missing in {column.missing:,} rows, first at {place(column.first_missing)}. "
            "Fill them, or use missing='indicator'."
        )


def _key(column: ColumnSurvey) -> tuple[object, ...] | None:
    """Equal for columns with the same values in every row."""
    if column.texts is not None:
        hashed = column.texts.fingerprint
        return None if hashed is None else ("text", column.missing, hashed)
    family = "number" if column.family == "flag" else column.family
    facts = tuple((part, m.fingerprint, m.lower, m.upper) for part, m in column.numbers.items())
    return (family, column.missing, facts)


def _number(name: str, column: ColumnSurvey, settings: Settings) -> TableColumn:
    values = column.numbers[""]
    if reason := _no_information(column, values.is_constant, f"{values.lower:g}"):
        return SetAside(name, reason=reason)
    if _counts_rows(name, values):
        return SetAside(name, reason="it only numbers the rows. Rename it to keep it")
    kind = Flag if column.family == "flag" else Number
    return kind(name, *_gaps(column, settings), fill=values.mean, varies=not values.is_constant)


def _date(name: str, column: ColumnSurvey, settings: Settings) -> TableColumn:
    if not column.is_readable:
        return SetAside(name, reason=f"the time zone of {column.type} is not known here")
    if settings.dates == "drop":
        return SetAside(name, reason="it is a date and dates='drop'")
    parts = {part: values for part, values in column.numbers.items() if not values.is_constant}
    if name in settings.months:
        parts.pop("weekday", None)
    if reason := _no_information(column, not parts, "one date"):
        return SetAside(name, reason=reason)
    fills = tuple(values.mean for values in parts.values())
    return Date(name, *_gaps(column, settings), column.family, tuple(parts), fills)


def _level(name: str, column: ColumnSurvey, settings: Settings) -> TableColumn:
    texts = column.texts
    if texts is None:
        raise ValueError(f"Column {name!r} was not surveyed as text.")
    if reason := _not_levels(texts) or _too_long(texts):
        return SetAside(name, reason=reason)
    if texts.counts is None:
        return SetAside(name, reason=_too_many("more than " + f"{settings.max_levels:,}", settings))
    only = next(iter(texts.counts), None)
    if reason := _no_information(column, len(texts.counts) <= 1, repr(only)):
        return SetAside(name, reason=reason)
    reference = _reference(name, texts, settings)
    kept = [x for x, count in texts.counts.items() if count >= settings.min_count or x == reference]
    if len(kept) > settings.max_levels:
        return SetAside(name, reason=_too_many(f"{len(kept):,}", settings))
    other = _free_name("other", kept) if len(kept) < len(texts.counts) else None
    has_indicator = column.missing > 0
    if not kept and not has_indicator:
        return SetAside(name, reason=f"each of its {len(texts.counts):,} levels has less than min_count rows")
    levels = tuple(sorted(kept, key=_order(column)))
    if reference is None:
        reference = _rule(settings.reference_of(name), levels, texts.counts) if levels else str(other)
    is_lenient = settings.is_lenient or other is not None
    declared = () if is_lenient else tuple(sorted({*settings.declared.get(name, ())} - {*levels}))
    kind = Level(name, has_indicator, is_lenient, levels, reference, other, declared=declared)
    return kind.coded() if settings.are_coded else kind


def _set_aside(name: str, column: ColumnSurvey, settings: Settings) -> TableColumn:
    if column.family == "empty":
        return SetAside(name, reason="it holds no value")
    reason = f"its type {column.type} is neither number, flag, text nor date"
    if column.type.startswith(_NESTED) and column.type != str(MIXED):
        reason += ". Its cells hold several values each: to use them, make a column of each"
    return SetAside(name, reason=reason)


_NESTED = ("struct<", "list<", "large_list<", "fixed_size_list<", "list_view<", "large_list_view<", "map<")


def _text(name: str, column: ColumnSurvey, settings: Settings) -> TableColumn:
    if settings.texts and column.texts is not None and _is_prose(column.texts):
        return Text(name, column.missing > 0, settings.is_lenient)
    return _level(name, column, settings)


_CHOICES: dict[str, Callable[[str, ColumnSurvey, Settings], TableColumn]] = {
    "number": _number,
    "flag": _number,
    "text": _text,
    "date": _date,
    "time": _date,
    "duration": _date,
    "empty": _set_aside,
    "other": _set_aside,
}


def _gaps(column: ColumnSurvey, settings: Settings) -> tuple[bool, bool]:
    """(has_indicator, is_lenient) of a column of numbers."""
    has_indicator = column.missing > 0 and settings.missing == "indicator"
    return has_indicator, settings.is_lenient or settings.missing == "fill"


def _no_information(column: ColumnSurvey, is_constant: bool, value: str) -> str | None:
    if column.count == 0:
        return "it holds no value"
    if is_constant and not column.missing:
        return f"it is constant ({value if rule().may_print(column.count) else 'one value'} in every row)"
    return None


def _is_prose(texts: Levels) -> bool:
    """Most values hold a space, and they are long or seldom come twice."""
    distinct = texts.distinct_in_stretches if texts.distinct is None else texts.distinct
    if texts.count <= FEW_ROWS or distinct <= FEW_ROWS or 2 * texts.spaced <= texts.count:
        return False
    return texts.length > _LONG_TEXT * texts.count or 2 * distinct > texts.count


def _not_levels(texts: Levels) -> str | None:
    """Why a text column is no category: every row has its own text, or the texts are prose."""
    distinct = texts.distinct_in_stretches if texts.distinct is None else texts.distinct
    if texts.count <= FEW_ROWS or distinct <= FEW_ROWS:
        return None
    if texts.length > _LONG_TEXT * texts.count and 2 * texts.spaced > texts.count:
        length = f"{texts.length / texts.count:.0f} characters on average"
        return f"it is free text ({length}). Name it in texts (--texts) to make columns of its words"
    if distinct > _UNIQUE_SHARE * texts.count:
        what = "free text or an identifier" if _is_prose(texts) else "an identifier"
        return f"it looks like {what} ({distinct:,} different texts in {texts.count:,} rows)"
    return None


def _too_long(texts: Levels) -> str | None:
    longest = max(map(len, texts.counts or ()), default=0)
    return f"it holds a text of {longest:,} characters, too long for a category" if longest > _LONGEST_LEVEL else None


def _too_many(count: str, settings: Settings) -> str:
    return (
        f"it has {count} levels and max_levels is {settings.max_levels:,}. Raise max_levels to keep it, or group its "
        "rare levels with min_count"
    )


def _reference(name: str, texts: Levels, settings: Settings) -> str | None:
    """The level that the user named for this column, or None."""
    if not isinstance(settings.reference, dict) or name not in settings.reference:
        return None
    level, counts = str(settings.reference[name]), texts.counts or {}
    if level not in counts:
        some = [repr(other) for other in sorted(counts) if rule().may_print(texts.rows_of(other))]
        more = ", ..." if len(some[:10]) < len(counts) else ""
        raise ValueError(
            f"reference names the level {level!r} of column {name!r}, which has the levels "
            f"{', '.join(some[:10])}{more}."
        )
    return level


def _rule(rule: str, levels: tuple[str, ...], counts: dict[str, float]) -> str:
    return levels[0] if rule == "first" else max(levels, key=lambda level: counts[level])


def _order(column: ColumnSurvey) -> Callable[[str], float | str]:
    """Levels that are numbers go by size, texts by their letters."""
    values = column.type.removeprefix("dictionary<values=").split(",")[0]
    return float if values.startswith(("int", "uint", "float", "double", "halffloat", "decimal")) else str


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += " (rare)"
    return name


# What people call the last line of a sheet, in some languages.
_SUMS = frozenset({
    "total", "totals", "grand total", "subtotal", "sum", "average", "mean", "summe", "gesamt", "insgesamt",
    "gesamtsumme", "mittelwert", "somme", "moyenne", "totale", "totaal", "suma",
})  # fmt: skip


_MANY_LEVELS = 20  # of a column with fewer than so many rows for each: a note says that it may be no category
_FEW_ROWS = 3


def _sentences(kind: TableColumn, column: ColumnSurvey, n_rows: int, mark: str) -> Iterator[str]:
    counts = {} if column.texts is None else column.texts.counts or {}
    if any(n == 1 and _folded(level) in _SUMS for level, n in counts.items()):
        yield (
            f"Column {kind.name!r}: one row is named as sums are (total, mean) and was fitted like all others. "
            "If it sums up other rows, remove it."
        )
    if isinstance(kind, SetAside):
        yield f"Column {kind.name!r} was set aside: {kind.reason}."
        return
    if column.missing:
        yield _gap_sentence(kind, column.missing, n_rows, mark)
    if isinstance(kind, Date):
        made = ", ".join(repr(kind.name + suffix) for suffix in kind.own_names)
        yield f"Column {kind.name!r} became {made}."
    if isinstance(kind, Level) and kind.other is not None and column.texts is not None and column.texts.counts:
        n_rare = len(column.texts.counts) - len(kind.levels)
        yield f"Column {kind.name!r}: {n_rare:,} rare levels were grouped as {kind.other!r}; new levels count as that."
    if isinstance(kind, Level) and (n_alike := len(kind.levels) - len({_folded(level) for level in kind.levels})):
        one = "One level differs" if n_alike == 1 else f"{n_alike:,} levels differ"
        yield (
            f"Column {kind.name!r}: {one} from another in capitals or spaces alone. To read them as one: "
            f"types={{{kind.name!r}: 'lower-case'}}."
        )
    if isinstance(kind, Level) and _are_dates(kind.levels):
        yield f"Column {kind.name!r} holds dates as text, read as {len(kind.levels):,} levels. Convert it to dates."
    elif isinstance(kind, Level) and len(kind.levels) >= _MANY_LEVELS and n_rows < _FEW_ROWS * len(kind.levels):
        yield (
            f"Column {kind.name!r} is text of {len(kind.levels):,} levels in {n_rows:,} rows, too few rows for each. "
            "If numbers or dates are meant, write all of them in one way; if not, leave it out (columns=)."
        )
    if isinstance(kind, Number) and _may_be_days(column.numbers[""]):
        yield (
            f"Column {kind.name!r} was read as a number, and looks like dates written as 20260131. If it holds dates, "
            "convert it."
        )
    elif isinstance(kind, Number) and _numbers_rows(column.numbers[""]):
        yield (
            f"Column {kind.name!r} looks like an identifier: whole numbers that grow from row to row. It was kept; "
            "leave it out if it only numbers the rows."
        )


def _gap_sentence(kind: TableColumn, missing: int, n_rows: int, mark: str) -> str:
    """mark: the column that marks the gaps, this one's or that of a column with the same gaps."""
    what = f"Column {kind.name!r} is missing in {missing:,} of {n_rows:,} rows"
    if isinstance(kind, Level | Text) and (kind.marked_by or kind.shares):
        return f"{what}: marked in {mark!r}."
    if isinstance(kind, Level | Text):
        return f"{what}: a level of its own." if isinstance(kind, Level) else f"{what}: texts without words."
    filled = [f"{kind.fill:g}"] if isinstance(kind, Number) and kind.varies else []
    filled = [f"{fill:g}" for fill in kind.fills] if isinstance(kind, Date) else filled
    shown = f" {', '.join(filled)}" if rule().may_print(n_rows - missing) else ""  # the mean of one row is its value
    said = [f"filled with the mean{shown}"] if filled else []
    said += [f"marked in {mark!r}"] if kind.has_indicator or kind.marked_by else []
    return f"{what}: {' and '.join(said)}."


def _folded(level: str) -> str:
    return " ".join(level.split()).casefold()


def _are_dates(levels: tuple[str, ...]) -> bool:
    if len(levels) <= FEW_ROWS:
        return False
    try:
        pc.cast(pa.array(levels), pa.timestamp("s"))
    except pa.ArrowInvalid:
        return False
    return True


def _counts_rows(name: str, values: NumberMoments) -> bool:
    """Whether a column is called an identifier and is one: whole numbers that grow by 1 from row to row."""
    is_consecutive = _numbers_rows(values) and values.last - values.first == values.count - 1
    return is_consecutive and re.fullmatch(_IDENTIFIER, name.strip().lower()) is not None


def _may_be_days(values: NumberMoments) -> bool:
    """Whether the smallest and the largest of whole numbers are dates such as 20260131."""
    return values.is_whole and all(re.fullmatch(_DAY, f"{value:.0f}") for value in (values.lower, values.upper))


def _numbers_rows(values: NumberMoments) -> bool:
    return values.is_whole and values.is_increasing and values.count > FEW_ROWS
