"""The map from a table to numeric columns: a scikit-learn transformer, and what `Source.through` takes.

Row numbers in errors of `apply` and `transform` count from the first row of the table that was passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import count, groupby, islice
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from certifit.data.arrow import ArrowSource, array_table, frame_table, is_frame
from certifit.data.columns import Array, Codes, Columns, Csr, Dense, Segment
from certifit.data.privacy import FEWEST, conceal, rule
from certifit.data.source import Source
from certifit.data.user_input import unchanged_on_error
from certifit.maps.rows import right_length, set_names
from certifit.maps.table.choice import Settings, absent_note, choose
from certifit.maps.table.kinds import Level, Number, SetAside, TableColumn, Text
from certifit.maps.table.reading import numbers_together, plain
from certifit.maps.table.survey import Survey, of_record, refuse_lone_gaps, told_names, with_shares
from certifit.maps.text import NoTermsError, TextBinarizer

_MOST_CODES = 12  # values of a column of codes
_LEAST_CAP = 100_000  # distinct texts that a survey counts


class TableEncoder(TransformerMixin, BaseEstimator):
    """Numeric columns from a table with numbers, flags, categories, gaps and dates.

        number    x                      with gaps: x + mean(x) m  and  m,   m = 1 where x is missing
        flag      0 or 1                 gaps as for a number
        level     one 0/1 column per level but the reference; missing is a level of its own
        date      days since 1970-01-01, month, weekday, hour; gaps as for a number, with one m
        text      with texts=TextBinarizer(...): one column per term; gaps have no words and are marked by m

    Columns that are missing in exactly the same rows share one m, "a, b missing": more would repeat it.
    Columns that are constant, repeat another column, hold free text, identifiers or too many levels, or are of no such
    kind are set aside. `notes_` says so, one sentence each.

    Parameters
    ----------
    reference : "first", "most frequent" or dict {column: level}, default "first"
        The level whose rows are all zeros. Levels are sorted; columns not in the dict use "first".
    unseen : {"error", "reference"}, default "error"
        What to do after the fit with a level that the fit did not see, or with a gap in a column that had none: refuse
        it, or read it as the reference level or the mean. A column with grouped rare levels reads new ones as "other".
        Levels that the type of a column declares (pandas' category) and no row has are the reference either way.
    max_levels : int >= 2, default 1000
        A category with more levels is set aside.
    min_count : float >= 1, default 1
        Levels with fewer rows (less weight) are grouped in one level "other".
    missing : {"indicator", "fill", "error"}, default "indicator"
        Gaps of numbers and dates: fill with the mean and mark them in a column of their own, only fill, or refuse.
    dates : {"expand", "drop"}, default "expand"
    categories : names of columns of whole numbers that are codes of categories, default none
    texts : TextBinarizer or None, default None
        How columns of free text become columns of words: those with a space in most values that are long (more than 40
        characters on average) or seldom come twice. None sets such columns aside.
    absent : {"keep", "recognise"}, default "keep"
        Numbers such as -999 that 5 rows or more hold, far from all others of their column: numbers like others, with a
        note, or gaps.
    sparse_output : bool, default True
        `transform` gives a CSR array, else a dense one.
    levels : {"auto", "columns", "codes"}, default "auto"
        What a category becomes: a 0/1 column per level, or one column of codes 0, 1, ... in the order of its levels,
        missing values last, which trees split into sets of levels. More than 255 levels become columns all the same.
        "auto" is codes within trees, forests and gradient boosting, and columns everywhere else.

    Attributes
    ----------
    columns_ : list of the kind of each column, in order
    groups_ : list of (column, [names of the columns made of it])
    notes_ : list of sentences: what was filled, set aside, expanded, and what looks odd
    readings_ : dict of the columns of a CSV scan that are not written plainly, and the word that types= takes for how
    survey_ : counts, ranges, means and levels of each column; None after loading
    n_features_in_ : int
    feature_names_in_ : names of the columns, where they have any

    >>> import pyarrow as pa
    >>> table = pa.table({"x": [1.0, None, 3.0], "carrier": ["UA", "AA", "UA"], "year": [2013, 2013, 2013]})
    >>> encoder = TableEncoder(sparse_output=False)
    >>> encoder.fit_transform(table)
    array([[1., 0., 1.],
           [2., 1., 0.],
           [3., 0., 1.]])
    >>> list(encoder.get_feature_names_out())
    ['x', 'x missing', 'carrier=UA']
    >>> encoder.notes_[1]
    "Column 'year' was set aside: it is constant (2013 in every row)."
    """

    def __init__(
        self,
        *,
        reference: Any = "first",
        unseen: str = "error",
        max_levels: int = 1000,
        min_count: float = 1,
        missing: str = "indicator",
        dates: str = "expand",
        categories: Sequence[str] = (),
        texts: TextBinarizer | None = None,
        absent: str = "keep",
        sparse_output: bool = True,
        levels: str = "auto",
    ) -> None:
        self.reference = reference
        self.unseen = unseen
        self.max_levels = max_levels
        self.min_count = min_count
        self.missing = missing
        self.dates = dates
        self.categories = categories
        self.texts = texts
        self.absent = absent
        self.sparse_output = sparse_output
        self.levels = levels

    def fit(self, X: Any, y: Any = None) -> Self:
        """Survey a frame (pandas, polars, pyarrow, any Arrow stream) or a 2-D array and decide what columns become."""
        self._check_parameters()
        with unchanged_on_error(self):
            table = self._table(X, reset=True)
            return self._learn(ArrowSource.of_table(table))

    def fit_source(self, source: Source) -> Self:
        """The same from a scan: one pass. Means are weighted and rows of weight 0 are left out."""
        self._check_parameters()
        if not source.is_table:
            raise TypeError(f"TableEncoder needs a source of Arrow tables. Got {type(source).__name__}.")
        with unchanged_on_error(self):
            set_names(self, source.names if source.named else None, source.n_features)
            return self._learn(source)

    def transform(self, X: Any) -> Any:
        """Rows x columns of float64: CSR, or dense with sparse_output=False. X has the columns of the fit, in order."""
        check_is_fitted(self)
        columns = self.apply(self._table(X, reset=False))
        return _csr(columns) if self.sparse_output else columns.toarray()

    def apply(self, table: pa.Table | pa.RecordBatch) -> Columns:
        """The columns of an Arrow table as segments that the compiled core reads; columns are found by name."""
        check_is_fitted(self)
        kinds = [kind for kind in self.columns_ if kind.makes_columns]
        times = Counter(table.schema.names)
        if missing := [kind.name for kind in kinds if not times[kind.name]]:
            raise ValueError(f"Columns missing: {missing}. The fit used {[kind.name for kind in kinds]}.")
        if repeated := [kind.name for kind in kinds if times[kind.name] > 1]:
            raise ValueError(f"X has more than one column named {', '.join(map(repr, repeated))}. Rename them.")
        if table.num_rows == 0:
            return Columns([Dense(np.zeros((0, len(self._names_out(None)))))], 0)
        if self.unseen == "error":
            refuse_lone_gaps(kinds, table)
        parts: list[Segment] = []
        for is_plain, run in groupby(kinds, key=attrgetter("is_plain")):
            some = list(run)
            numbers = numbers_together(table, [kind.name for kind in some]) if is_plain else None
            if numbers is None:
                parts += [segment for kind in some for segment in kind.segments(self._column(table, kind))]
            else:
                parts.append(Dense(numbers))
        return Columns(parts, table.num_rows)

    @staticmethod
    def _column(table: pa.Table | pa.RecordBatch, kind: TableColumn) -> pa.Array:
        return kind.present(plain(table.column(kind.name)))

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Names of the columns: "x", "x missing", "carrier=UA", "date days", ..."""
        check_is_fitted(self)
        return np.array(self._names_out(self._labels(input_features)), dtype=object)

    @property
    def groups_(self) -> list[tuple[str, list[str]]]:
        """(column, names of the columns made of it), in order, columns set aside left out."""
        if not hasattr(self, "columns_"):
            raise AttributeError("TableEncoder has no groups_ before fit.")
        names = iter(self._names_out(None))
        groups = [(kind.name, [next(names) for _ in kind.names_out("")]) for kind in self.columns_]
        return [(name, made) for name, made in groups if made]

    @property
    def coded_(self) -> dict[str, list[str]]:
        """Columns of codes by their names, and what each code stands for."""
        if not any(isinstance(kind, Level) and kind.is_coded for kind in self.columns_):
            return {}
        names = iter(self._names_out(None))
        made = [(kind, [next(names) for _ in kind.names_out("")]) for kind in self.columns_]
        return {columns[0]: kind.codes for kind, columns in made if isinstance(kind, Level) and kind.is_coded}

    def uncoded(self) -> TableEncoder:
        """This encoder with a 0/1 column per level in the place of every column of codes."""
        other = copy(self)
        other.columns_ = [replace(kind, is_coded=False) if isinstance(kind, Level) else kind for kind in self.columns_]
        return other

    def opened(self) -> tuple[TableEncoder, list[tuple[int, int, float]], list[int]]:
        """What a refit on some of the rows would change: an encoder with every gap marked, gaps, columns to keep.

        A gap is (place of the column, place of its 0/1 mark, what was filled in) among the columns of that encoder.
        """
        check_is_fitted(self)
        other = copy(self)
        other.columns_ = [replace(kind, has_indicator=True) if self._fills(kind) else kind for kind in self.columns_]
        gaps: list[tuple[int, int, float]] = []
        kept: list[int] = []
        marks: dict[str, int] = {}
        at = 0
        for column, opened in zip(self.columns_, other.columns_, strict=True):
            width = len(opened.names_out(""))
            kept += range(at, at + len(column.names_out("")))
            marks[column.name] = at + width - 1
            if self._has_gaps(column):
                mark = marks[column.name if column.marked_by is None else column.marked_by]
                gaps += [(at + j, mark, fill) for j, fill in enumerate(column.record()[1])]
            at += width
        return other, gaps, kept

    def refilled(self, fills: Sequence[float]) -> TableEncoder:
        """This encoder with other fills, one per gap of `opened`, in its order."""
        other = copy(self)
        left = iter(float(fill) for fill in fills)
        other.columns_ = []
        for kind in self.columns_:
            record, old_fills = kind.record()
            is_gap = self._has_gaps(kind)
            other.columns_.append(of_record(record, [next(left) for _ in old_fills]) if is_gap else kind)
        other.columns_ = with_shares(other.columns_)
        return other

    def _has_gaps(self, kind: TableColumn) -> bool:
        """A number or date that the fit filled."""
        survey = getattr(self, "survey_", None)
        if isinstance(kind, Level | Text | SetAside) or survey is None:
            return False
        return bool(survey.columns[kind.name].missing)

    def _fills(self, kind: TableColumn) -> bool:
        """A number or date with gaps that no column marks."""
        return self._has_gaps(kind) and not kind.has_indicator and kind.marked_by is None

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """(JSON-able parameters, columns and notes; arrays) that `from_state` takes."""
        check_is_fitted(self)
        records, fills = zip(*(kind.record() for kind in self.columns_), strict=True)
        state = {
            "parameters": _plain_parameters(self.get_params(deep=False)),
            "named": hasattr(self, "feature_names_in_"),
            "columns": list(records),
            "notes": list(self.notes_),
            "readings": dict(self.readings_),
        }
        return state, {"fill": np.array([fill for of_column in fills for fill in of_column], dtype=np.float64)}

    @classmethod
    def from_state(cls, state: dict[str, Any], arrays: Mapping[str, Array]) -> Self:
        """The fitted encoder that `to_state` wrote; its survey is not kept."""
        parameters = dict(state["parameters"])
        texts = parameters.pop("texts", None)
        encoder = cls(**parameters, texts=None if texts is None else TextBinarizer.of_plain(texts))
        encoder._check_parameters()
        fills = np.asarray(arrays["fill"], dtype=np.float64).tolist()
        n_fills = [len(record["parts"]) for record in state["columns"]]
        if len(fills) != sum(n_fills):
            raise ValueError(f"The columns need {sum(n_fills)} fills. Got {len(fills)}.")
        kinds: list[TableColumn] = []
        left = iter(fills)
        for record, n in zip(state["columns"], n_fills, strict=True):
            kind = of_record(record, list(islice(left, n)))
            kinds.append(kind.coded() if encoder.levels == "codes" and isinstance(kind, Level) else kind)
        kinds = with_shares(kinds)
        set_names(encoder, [kind.name for kind in kinds] if state["named"] else None, len(kinds))
        encoder.columns_, encoder.notes_, encoder.survey_ = kinds, list(state["notes"]), None
        encoder.readings_ = dict(state.get("readings", {}))
        return encoder

    def kinds(self, source: Source) -> dict[str, str]:
        """What a fit would make of each column of a scan: number, flag, level, date, text or set aside. One pass."""
        self._check_parameters()
        return {kind.name: kind.kind for kind in self._chosen(source)[1]}

    def codes(self, source: Source) -> dict[str, int]:
        """Columns of whole numbers that may be codes of categories, and how many values each has: 3 to 12.

        Every value is in 5 rows or more. One pass, which a fit to the same source uses again.
        """
        self._check_parameters()
        survey, kinds, _ = self._chosen(source)
        rows = {kind.name: survey.columns[kind.name].numbers[""].counts for kind in kinds if type(kind) is Number}
        values = {name: [n for n in counts.values() if n] for name, counts in rows.items() if counts is not None}
        return {name: len(n) for name, n in values.items() if 3 <= len(n) <= _MOST_CODES and min(n) >= FEWEST}

    def _chosen(self, source: Source) -> tuple[Survey, list[TableColumn], list[str]]:
        """The survey, the kinds of the columns in order, and notes."""
        cap = max(_LEAST_CAP, 2 * int(self.max_levels))
        unknown = [name for name in (*self.categories, *self._references()) if name not in source.names]
        if unknown:
            raise ValueError(f"categories and reference name columns that are not there: {unknown}.")
        question = partial(Survey.of, cap=cap, categories=frozenset(self.categories))
        survey = source.surveyed(("survey", *question.keywords.values()), partial(source.reduce, question))
        absent = tuple((name, number) for name, c in survey.columns.items() if (number := c.absent) is not None)
        notes = [absent_note(name, number, survey.columns[name], self.absent) for name, number in absent]
        if absent and self.absent == "recognise":
            question = partial(question, absent=absent)
            survey = source.surveyed(("survey", *question.keywords.values()), partial(source.reduce, question))
        settings = Settings(
            self.reference,
            self.unseen,
            int(self.max_levels),
            float(self.min_count),
            self.missing,
            self.dates,
            self.texts is not None,
            self.levels == "codes",
            frozenset(name for name, word in getattr(source, "readings", {}).items() if word == "month"),
            getattr(source, "declared", {}),
        )
        kinds, more = choose(survey, settings, getattr(source, "place", "row {}".format))
        if absent and self.absent == "recognise":
            gaps = dict(absent)
            kinds = [
                replace(kind, absent=gaps[kind.name]) if kind.name in gaps and not isinstance(kind, SetAside) else kind
                for kind in kinds
            ]
        return survey, kinds, [*notes, *more]

    def _learn(self, source: Source) -> Self:
        survey, kinds, notes = self._chosen(source)
        kinds = [self._with_words(kind, source, notes) if isinstance(kind, Text) else kind for kind in kinds]
        self._refuse_references(kinds)
        if not any(kind.makes_columns for kind in kinds):
            rows = "1 sample" if survey.n_rows == 1 else f"{survey.n_rows:,} rows"
            raise ValueError(f"No column is left to fit in {rows}. {' '.join(notes)}")
        self.columns_, self.notes_ = kinds, notes
        self.readings_ = dict(getattr(source, "readings", {}))
        self.survey_: Survey | None = survey.brief(int(self.max_levels))
        if not rule().shows:
            conceal(*told_names(self))
        return self

    def _with_words(self, kind: Text, source: Source, notes: list[str]) -> TableColumn:
        """A column of texts with the terms that one more pass finds; set aside where there are none."""
        words = clone(self.texts).set_params(missing="empty")
        try:
            words.fit_source(source, kind.name)
        except NoTermsError as error:
            notes.append(f"Column {kind.name!r} was set aside: {error}")
            return SetAside(kind.name, reason="its texts hold no term that is kept")
        n_terms = len(words.get_feature_names_out())
        notes.append(f"Column {kind.name!r} is free text: {n_terms:,} columns of its terms.")
        return replace(kind, words=words)

    def _table(self, X: Any, reset: bool) -> pa.Table:
        """X as a table, its names and number of columns checked as scikit-learn does."""
        if isinstance(X, np.ma.MaskedArray):
            raise TypeError("X is a masked array, whose mask would be lost. Use NaN for missing values.")
        if is_frame(X):
            table = frame_table(X)
            validate_data(self, X if hasattr(X, "iloc") else table, reset=reset, skip_check_array=True)
            if 0 in table.shape and reset:
                raise ValueError(f"Found array with {table.num_rows} sample(s) and {table.num_columns} feature(s).")
            names = getattr(self, "feature_names_in_", None)
            return table if names is not None else table.rename_columns([f"x{j}" for j in range(table.num_columns)])
        if not hasattr(X, "dtype") and not sp.issparse(X) and np.asarray(X).dtype.kind == "U":
            X = np.array(X, dtype=object)  # a list of lists: numbers beside texts stay numbers
        table = array_table(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False))
        names = getattr(self, "feature_names_in_", None)
        return table if names is None else table.rename_columns([str(name) for name in names])

    def _labels(self, names: Sequence[str] | None) -> list[str] | None:
        """Names of the input columns. Those that are used may come in any order, with others beside them."""
        known = getattr(self, "feature_names_in_", None)
        used = {kind.name for kind in self.columns_ if kind.makes_columns}
        if names is None or (known is not None and used <= set(names)):
            return None
        if known is not None:
            raise ValueError(f"input_features is not equal to feature_names_in_. Got {list(names)}.")
        return right_length(names, self.n_features_in_)

    def _names_out(self, labels: list[str] | None) -> list[str]:
        labels = [kind.name for kind in self.columns_] if labels is None else labels
        made = [name for kind, label in zip(self.columns_, labels, strict=True) for name in kind.names_out(label)]
        if len(set(made)) == len(made):
            return made
        unique: dict[str, None] = {}
        for name in made:  # "x missing" may also be a column of the table
            free = (f"{name} ({number})" for number in count(2))
            unique[name if name not in unique else next(other for other in free if other not in unique)] = None
        return list(unique)

    def _refuse_references(self, kinds: list[TableColumn]) -> None:
        """Refuse to name a level of a column that has none."""
        asked = {*self.categories, *self._references()}
        for kind in kinds:
            if kind.name in asked and not isinstance(kind, Level | SetAside):
                raise TypeError(
                    f"categories and reference must name columns of levels. {kind.name!r} is a {kind.kind}."
                )

    def _references(self) -> list[str]:
        return [str(name) for name in self.reference] if isinstance(self.reference, dict) else []

    def _check_parameters(self) -> None:
        if not isinstance(self.reference, dict) and self.reference not in ("first", "most frequent"):
            raise ValueError(f"reference must be 'first', 'most frequent' or a dict. Got {self.reference!r}.")
        for name, legal in _CHOICES.items():
            value = getattr(self, name)
            if value not in legal:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, legal))}. Got {value!r}.")
        if not isinstance(self.max_levels, Integral) or isinstance(self.max_levels, bool) or self.max_levels < 2:
            raise ValueError(f"max_levels must be an integer >= 2. Got {self.max_levels!r}.")
        if not isinstance(self.min_count, Real) or isinstance(self.min_count, bool) or not self.min_count >= 1:
            raise ValueError(f"min_count must be a number >= 1. Got {self.min_count!r}.")
        if isinstance(self.categories, str):
            raise TypeError(f"categories must be a list of column names. Got {self.categories!r}.")
        if self.texts is not None and not isinstance(self.texts, TextBinarizer):
            raise TypeError(f"texts must be None or TextBinarizer(...). Got {self.texts!r}.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


_CHOICES: dict[str, tuple[Any, ...]] = {
    "unseen": ("error", "reference"),
    "missing": ("indicator", "fill", "error"),
    "dates": ("expand", "drop"),
    "absent": ("keep", "recognise"),
    "levels": ("auto", "columns", "codes"),
    "sparse_output": (True, False),
}


def _plain_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """In JSON types."""
    reference = parameters["reference"]
    if isinstance(reference, dict):
        reference = {str(name): str(level) for name, level in reference.items()}
    numbers = {"max_levels": int(parameters["max_levels"]), "min_count": float(parameters["min_count"])}
    return {
        **parameters,
        **numbers,
        "reference": reference,
        "categories": [str(name) for name in parameters["categories"]],
        "texts": None if parameters["texts"] is None else parameters["texts"].to_plain(),
        "sparse_output": bool(parameters["sparse_output"]),
    }


def _csr(columns: Columns) -> sp.csr_array:
    parts = [_sparse(segment, columns.shape[0]) for segment in columns.segments]
    return sp.csr_array(sp.hstack(parts, format="csr", dtype=np.float64))


def _sparse(segment: Segment, n_rows: int) -> sp.csr_array:
    if isinstance(segment, Csr):
        return segment.rows
    if not isinstance(segment, Codes):
        return sp.csr_array(segment.dense(n_rows))
    column = segment.columns[np.where(segment.codes >= 0, segment.codes, 0)] if len(segment.columns) else None
    place = np.full(n_rows, segment.null_column) if column is None else column.astype(np.int64)
    if segment.valid is not None:
        place = np.where(segment.valid.to_bool(n_rows), place, segment.null_column)
    rows = np.flatnonzero(place >= 0)
    offsets = np.concatenate([[0], np.cumsum(place >= 0)])
    return sp.csr_array((np.ones(len(rows)), place[rows], offsets), shape=(n_rows, segment.n_columns))


AUTO = "auto"
UserEncoder = TableEncoder | Literal["auto"] | None  # the parameter `encoder` of a model


def encoder_key(asked: UserEncoder) -> str | None:
    """What tells encoders apart that read columns differently."""
    encoder = encoder_of(asked)
    return None if encoder is None else repr(sorted(encoder.get_params().items()))


def encoder_of(asked: UserEncoder) -> TableEncoder | None:
    """The encoder that a parameter `encoder` names: "auto" is TableEncoder() with its defaults."""
    return TableEncoder() if isinstance(asked, str) else asked
