"""The terms of many texts and how often they occur: a statistic that adds.

Below it the legal parameters of the map from texts to columns, and the stop words, which are no terms.

Texts as the compiled core takes them: a list of str, or the bytes and offsets of an Arrow array.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from certifit.data.arrow import one_chunk
from certifit.data.columns import Array
from certifit.data.privacy import cell
from certifit.data.source import Block, RowError
from certifit.runtime import check_memory, core, n_threads

Texts = list[str] | tuple[Array, Array]  # (bytes, offsets): text i is bytes[offsets[i] : offsets[i + 1]]

_FILL = ". Fill it, leave the row out, or use missing='empty' to read it as a text without words."
_DECODE = "Decode bytes first: [text.decode('utf-8') for text in X]."


def n_texts(texts: Texts) -> int:
    """How many."""
    return len(texts) if isinstance(texts, list) else len(texts[1]) - 1


def read_texts(X: Any, missing: str = "error") -> Texts:
    """A list, 1-D array, Series or Arrow array of str, one text per row. Missing: refused, or "empty" texts."""
    if isinstance(X, str):
        raise ValueError(f"X must be texts, one per row. Got one str of {len(X):,} characters: use [text].")
    if isinstance(X, bytes | bytearray | memoryview):
        raise TypeError(f"X must be texts (str), one per row. Got bytes. {_DECODE}")
    if isinstance(X, pa.Table | pa.RecordBatch):
        raise TypeError("X must be one column of texts. Got a table. Give one column: table['name'].")
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        raise ValueError(f"X must be 1-D, one text per row. Got shape {shape}. Give a column: X[:, 0], frame['name'].")
    if isinstance(X, pa.Array | pa.ChunkedArray):
        return arrow_texts(X, missing)
    dtype = getattr(X, "dtype", None)
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OUST":
        _refuse_item(0, X[0] if len(X) else X.dtype)
    if not isinstance(X, np.ndarray) and str(dtype or object) not in ("object", str(object)):  # Arrow may hold it
        return arrow_texts(_of_series(X), missing)
    if isinstance(X, dict | set | frozenset) or not hasattr(X, "__iter__"):
        raise TypeError(f"X must be a list, array or Series of texts. Got {type(X).__name__}.")
    return _checked_list(X.tolist() if isinstance(X, np.ndarray) else list(X), missing)


def arrow_texts(column: pa.Array | pa.ChunkedArray, missing: str = "error") -> Texts:
    """The same of an Arrow column, in place where it is in one piece."""
    kind = column.type.value_type if pt.is_dictionary(column.type) else column.type
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        raise TypeError(f"X must be texts. Got an Arrow array of {column.type}. Cast it to string first.")
    if not (pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view" or pt.is_null(kind)):
        raise TypeError(f"X must be texts. Got an Arrow array of {column.type}.")
    if not len(column):
        return []
    is_split = isinstance(column, pa.ChunkedArray) and column.num_chunks > 1
    if is_split or not (pt.is_string(column.type) or pt.is_large_string(column.type)):
        column = pc.cast(column, pa.large_string())  # pieces of 2 GB in all do not fit one array of strings
    array = one_chunk(column)
    if array.null_count and missing == "empty":
        array = pc.fill_null(array, "")
    if array.null_count:
        raise RowError("The text is missing", int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))), _FILL)
    _, offsets, data = array.buffers()
    width = np.dtype(np.int64 if pt.is_large_string(array.type) else np.int32)
    bounds = np.frombuffer(offsets, width, count=len(array) + 1, offset=array.offset * width.itemsize)
    return np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8), bounds


def refuse_invalid(row: int, rule: str) -> None:
    """Refuse the first text that is not valid Unicode, where there is one and the rule says so."""
    if row >= 0 and rule == "error":
        raise RowError(
            "The text is not valid Unicode (broken UTF-8, or half a surrogate pair)",
            row,
            ". Repair it, or use invalid='replace' to read such bytes as U+FFFD, which belongs to no word.",
        )


def _of_series(series: Any) -> pa.Array | pa.ChunkedArray:
    try:
        if hasattr(series, "__arrow_c_stream__"):
            return pa.chunked_array(series)
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"X must be texts. Got {type(series).__name__} of {series.dtype}: {error}") from None


def _checked_list(texts: list[Any], missing: str) -> list[str]:
    if set(map(type, texts)) <= {str}:
        return texts
    if missing == "empty":
        texts = ["" if _is_missing(text) else text for text in texts]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            _refuse_item(row, text)
    return texts


def _is_missing(item: Any) -> bool:
    is_nan = isinstance(item, float) and bool(np.isnan(item))
    return item is None or is_nan or type(item).__name__ in ("NAType", "NaTType")


def _refuse_item(row: int, item: Any) -> NoReturn:
    if _is_missing(item):
        raise RowError(f"The text is missing ({item})", row, _FILL)
    if isinstance(item, bytes | bytearray):
        raise TypeError(f"X must be texts (str). Row {row} is bytes. {_DECODE}")
    shown = cell(str(item)[:40])
    raise TypeError(f"X must be texts (str). Row {row} is {type(item).__name__}: {shown}. Use str(...) first.")


Result = TypeVar("Result")
_REPEATED = 8  # terms of so few words may occur again and again
_TERM_BYTES, _WORD_BYTES = 64, 6  # of a term in the tables of the core, and of a word of its text


@dataclass(frozen=True)
class Reading:
    """How texts become terms: the same words for every number of threads, and in every fold."""

    lowercase: bool
    min_length: int
    ngram_range: tuple[int, int]
    stop_words: tuple[str, ...]
    invalid: str
    missing: str

    @property
    def core(self) -> tuple[bool, int, int, int]:
        """As the compiled core takes it."""
        return (self.lowercase, self.min_length, *self.ngram_range)


@dataclass(frozen=True)
class Limits:
    """Which terms get a column. Shares of the texts are floats, numbers of texts are integers."""

    min_df: float
    max_df: float
    max_features: int | None
    binary: bool

    def bounds(self, n_rows: int) -> tuple[float, float]:
        """Least and largest number of texts."""
        low, high = (limit if isinstance(limit, int) else _share(limit, n_rows) for limit in (self.min_df, self.max_df))
        if high < low:
            raise ValueError(
                f"max_df={self.max_df} is {high:g} of {n_rows:,} texts, less than min_df={self.min_df} ({low:g})."
            )
        return low, high


def _share(share: float, n_rows: int) -> float:
    """share * n_rows; a whole number but for rounding is that number: 1/49 of 49 texts is one text."""
    number = share * n_rows
    return round(number) if abs(number - round(number)) <= 1e-12 * n_rows else number


@dataclass(frozen=True)
class Terms:
    """Terms sorted by code points: their UTF-8 bytes, where each ends, texts that hold it, times it occurs."""

    letters: Array
    ends: Array
    documents: Array
    times: Array
    n_rows: int

    @staticmethod
    def of(block: Block, column: str, reading: Reading) -> Terms:
        """Of the texts of a stretch. Rows of weight 0 are no rows."""
        return _of_block(block, column, reading, lambda texts: found(texts, reading, None, with_matrix=False)[0])

    def __add__(self, other: Terms) -> Terms:
        these, others = ((t.letters, t.ends, t.documents, t.times) for t in (self, other))
        letters, ends, documents, times = core.add_terms(these, others)
        return Terms(letters, ends, documents, times, self.n_rows + other.n_rows)

    def chosen(self, limits: Limits) -> Terms:
        """Those that the limits keep: of equal frequency, the first in order."""
        low, high = limits.bounds(self.n_rows)
        kept = np.flatnonzero((self.documents >= low) & (self.documents <= high))
        if limits.max_features is not None:
            frequency = self.documents if limits.binary else self.times
            often = np.argsort(-frequency[kept], kind="stable")[: limits.max_features]
            kept = np.sort(kept[often])
        begins = np.concatenate([[0], self.ends[:-1]])
        sizes = (self.ends - begins)[kept]
        ends = np.cumsum(sizes)
        within = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
        letters = self.letters[np.repeat(begins[kept], sizes) + within]
        return Terms(letters, ends, self.documents[kept], self.times[kept], self.n_rows)

    def to_list(self) -> list[str]:
        """The terms."""
        data = self.letters.tobytes()
        ends = self.ends.tolist()
        return [data[begin:end].decode() for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


def count_texts(block: Block, column: str, reading: Reading) -> int:
    """How many texts a stretch has; missing ones are refused where the reading says so."""
    return _of_block(block, column, reading, n_texts)


def _of_block(block: Block, column: str, reading: Reading, use: Callable[[Texts], Result]) -> Result:
    texts = one_chunk(block.X.column(column))
    rows = np.arange(block.n_rows)
    if block.weight is not None:
        rows = np.flatnonzero(block.weight > 0)
        texts = texts.take(pa.array(rows))
    try:
        return use(arrow_texts(texts, reading.missing))
    except RowError as error:
        raise RowError(error.before, int(rows[error.row]) + block.first_row, error.after) from None


def check_lengths(texts: Texts, reading: Reading, with_letters: bool) -> None:
    """Refuse terms of so many words that they outgrow the memory. Those of 9 words or more hardly ever repeat.

    A text of m words has m - n + 1 terms of n words.
    """
    least, most = reading.ngram_range
    if most <= _REPEATED:
        return
    m = _word_counts(texts).astype(np.float64)
    n = np.minimum(most, m)
    first = np.minimum(max(least, _REPEATED + 1), n + 1)
    n_terms = (n - first + 1) * (2 * m - n - first + 2) / 2  # sum over n of m - n + 1
    n_bytes = float(np.sum(n_terms * (_TERM_BYTES + with_letters * _WORD_BYTES * (first + n) / 2)))
    check_memory(n_bytes, f"Terms of up to {most:,} words", "Lower the largest number of ngram_range.")


def _word_counts(texts: Texts) -> Array:
    """Words of every text, roughly: what spaces and line breaks separate."""
    if isinstance(texts, list):
        return np.array([len(text.split()) for text in texts], dtype=np.int64)
    letters, offsets = texts
    is_gap = np.concatenate([[0], np.cumsum(np.isin(letters, (9, 10, 13, 32)), dtype=np.int64)])
    return np.diff(is_gap[offsets]) + 1


def found(texts: Texts, reading: Reading, limits: Limits | None, *, with_matrix: bool) -> tuple[Terms, Any]:
    """The terms of these texts within the limits, and the entries of their matrix."""
    check_lengths(texts, reading, with_letters=True)
    low, high = (1, math.inf) if limits is None else limits.bounds(n_texts(texts))
    most = -1 if limits is None or limits.max_features is None else limits.max_features
    binary = limits is not None and limits.binary
    (letters, ends, documents, times), matrix = core.find_terms(
        texts, reading.core, list(reading.stop_words), low, high, most, binary, with_matrix, n_threads()
    )
    refuse_invalid(matrix[3], reading.invalid)
    return Terms(letters, ends, documents, times, n_texts(texts)), matrix


# ---- legal parameters ------------------------------------------------------------------------------------------------

_RULES = {"invalid": ("error", "replace"), "missing": ("error", "empty")}
_LARGEST = (1 << 31) - 1
_INTEGERS = {"min_length": _LARGEST, "max_features": _LARGEST, "n_hash": _LARGEST + 1}  # largest legal values


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse what is not legal, by name."""
    for name in ("binary", "lowercase", "signed"):
        if not isinstance(parameters[name], bool | np.bool_):
            raise TypeError(f"{name} must be True or False. Got {parameters[name]!r}.")
    for name, legal in _RULES.items():
        if parameters[name] not in legal:
            raise ValueError(f"{name} must be {' or '.join(map(repr, legal))}. Got {parameters[name]!r}.")
    for name, largest in _INTEGERS.items():
        value = parameters[name]
        is_legal = _is_integer(value) and 1 <= value <= largest
        if not is_legal and not (value is None and name != "min_length"):
            raise ValueError(f"{name} must be an integer from 1 to {largest:,}. Got {value!r}.")
    _check_words(parameters["ngram_range"])
    for name in ("min_df", "max_df"):
        _check_limit(name, parameters[name])
    if parameters["term_weights"] not in (None, "tfidf"):
        raise ValueError(f"term_weights must be 'tfidf' or None. Got {parameters['term_weights']!r}.")
    _check_hashing(parameters)


def _check_words(pair: Any) -> None:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(map(_is_integer, pair)):
        raise TypeError(f"ngram_range must be two integers. Got {pair!r}.")
    if not 1 <= pair[0] <= pair[1] < 1 << 16:
        raise ValueError(f"ngram_range must be 1 <= least <= most. Got {pair!r}.")


def _check_limit(name: str, value: Any) -> None:
    is_share = isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1
    if not is_share and not (_is_integer(value) and value >= 1):
        raise ValueError(f"{name} must be an integer >= 1 or a float in [0, 1]. Got {value!r}.")


def _check_hashing(parameters: Mapping[str, Any]) -> None:
    if parameters["n_hash"] is None:
        if parameters["signed"]:
            raise ValueError("signed=True needs n_hash: the columns of a vocabulary hold one term each.")
        return
    if parameters["term_weights"] is not None:
        raise ValueError("term_weights needs a vocabulary, and n_hash learns none. Leave one of them out.")
    if parameters["signed"] and parameters["binary"]:
        raise ValueError("signed=True needs binary=False: whether a term occurs has no sign.")
    limits = (parameters["min_df"], parameters["max_df"], parameters["max_features"])
    if limits != (1, 1.0, None) or not _is_integer(parameters["min_df"]) or _is_integer(parameters["max_df"]):
        raise ValueError("min_df, max_df and max_features need a vocabulary, and n_hash learns none. Leave them out.")


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


# ---- stop words: they tell little about what a text is about ---------------------------------------------------------
# The English list holds the closed classes of the grammar: articles, pronouns, prepositions, conjunctions, auxiliary
# verbs, and the pieces that \w leaves of contractions ("they'll" is they, ll). Negations (no, not, nor, never, and
# what is left of "don't" and "isn't") and modal verbs of doubt are not in it, because they decide what a sentence
# claims.

_SHOWN = 5

_ENGLISH = """
a an the this that these those
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
herself it its itself they them their theirs themselves who whom whose which what
about after against among around as at before behind between by during for from in into of off on onto out over
since through to toward towards under until up upon via with within
and but if or so than then though because while when where whether
am is are was were be been being do does did doing done has have had having will would shall should
also here how just such there too very
ll re ve
"""
ENGLISH = frozenset(_ENGLISH.split())


def stop_words(choice: Any, lowercase: bool) -> list[str]:
    """The words to leave out, sorted; "english" is the list above."""
    if choice is None:
        return []
    if isinstance(choice, str):
        if choice != "english":
            raise ValueError(f"stop_words must be None, 'english' or a list of words. Got {choice!r}.")
        return sorted(ENGLISH)
    if not isinstance(choice, Iterable) or isinstance(choice, bytes):
        raise TypeError(f"stop_words must be None, 'english' or a list of words. Got {choice!r}.")
    words = list(choice)
    if wrong := [word for word in words if not isinstance(word, str)]:
        raise TypeError(f"stop_words must be texts. Got {wrong[0]!r}.")
    return sorted({word.lower() if lowercase else word for word in words})


def warn_of_idle(words: list[str]) -> None:
    """A stop word that is no single run of word characters ("don't") is never met."""
    read = core.words(words, (False, 1, 1, 1))
    idle = [word for word, tokens in zip(words, read, strict=True) if tokens != [word]]
    if idle:
        shown = ", ".join(map(repr, idle[:_SHOWN])) + (", ..." if len(idle) > _SHOWN else "")
        warnings.warn(
            f"{len(idle)} of {len(words)} stop words are not one word and leave out nothing: {shown}. "
            "Give the words that their texts are cut into.",
            UserWarning,
            stacklevel=4,
        )
