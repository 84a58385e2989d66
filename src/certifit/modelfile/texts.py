"""Many texts as two arrays, since the header has little room.

    texts       their UTF-8 bytes, one after the other
    text_ends   where each ends

The name of the bytes sorts last, so the numbers before them stay aligned in the file. `of` is the end of both names
where a file has more than one such pair.

Columns of free text in a file: how texts are read, and the terms that have a column.

    header              the parameters of the TextBinarizer, and how many texts its fit saw
    encoder.documents   texts of the fit that hold each term
    text_ends.terms, texts.terms   the terms of every column of text, in the order of the columns; none with n_hash

An encoder without texts has no entry for them. Columns of text are read alike, with missing="empty".

The labels of a classifier in a file: sorted, each its own, of the dtype that they had.

header          their dtype and number; of texts of a fixed width also that
classes         the labels, where they are numbers or flags (0, 1); whole numbers beyond int64 by their bits
text_ends.classes, classes   the labels, where they are texts
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import ge
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certifit.modelfile.canonical import MAX_STRING
from certifit.modelfile.container import ModelFileError
from certifit.modelfile.schema import brief, refuse_any
from certifit.models.record import (
    COUNT,
    COUNT_FROM_1,
    FLAG,
    TEXTS,
    Array,
    Arrays,
    Check,
    Metadata,
    OrNull,
    Spec,
    one_of,
)

if TYPE_CHECKING:
    from certifit.maps import TextBinarizer


def text_arrays(of: str = "", n_texts: str = "n_texts", n_bytes: str = "n_bytes") -> dict[str, Array]:
    """The two arrays and the names of their sizes."""
    return {f"text_ends{of}": Array((n_texts,), "int64"), f"texts{of}": Array((n_bytes,), "uint8")}


TEXT_ARRAYS = text_arrays()


def pack(texts: Sequence[str], of: str = "", most: int | None = MAX_STRING) -> Arrays:
    """The two arrays of these texts, each of at most so many characters."""
    parts = [_encoded(text, most) for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return {f"text_ends{of}": ends, f"texts{of}": np.frombuffer(b"".join(parts), dtype="uint8")}


def sizes(arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Numbers of texts and of bytes; an array that is missing has none, and `check_arrays` says so."""
    lengths = {name: arrays[name].size if name in arrays else 0 for name in TEXT_ARRAYS}
    return {"n_texts": lengths["text_ends"], "n_bytes": lengths["texts"]}


def unpack(arrays: Mapping[str, NDArray[Any]], of: str = "", most: int | None = MAX_STRING) -> list[str]:
    """The texts; their bytes must be valid UTF-8, touch each other and be all there is."""
    ends, letters = arrays[f"text_ends{of}"], arrays[f"texts{of}"]
    begins = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    if (begins[1:] < begins[:-1]).any() or begins[-1] != letters.size:
        raise ModelFileError(f"its texts must follow each other and fill {letters.size} bytes.")
    data = letters.tobytes()
    pairs = zip(begins[:-1].tolist(), ends.tolist(), strict=True)
    return [_decoded(data[begin:end], most) for begin, end in pairs]


def _encoded(text: str, most: int | None) -> bytes:
    _refuse_long(text, most)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ModelFileError(f"the text {brief(text)} holds half a character, which UTF-8 cannot say.") from None


def _decoded(part: bytes, most: int | None) -> str:
    try:
        text = part.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelFileError(f"one of its texts is not valid UTF-8: {brief(part)}.") from None
    _refuse_long(text, most)
    return text


def _refuse_long(text: str, most: int | None) -> None:
    if most is not None and len(text) > most:
        raise ModelFileError(f"it holds a text of {len(text)} characters, and the limit is {most}.")


OF_TERMS = ".terms"
_LARGEST = (1 << 31) - 1


def _is_integer(value: Any, high: int = _LARGEST) -> bool:
    return type(value) is int and 1 <= value <= high


def _is_words(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2 and all(_is_integer(number) for number in value)
    return is_pair and value[0] <= value[1] < 1 << 16


def _is_limit(value: Any) -> bool:
    return _is_integer(value) or (type(value) is float and 0 <= value <= 1)


def _is_stop_words(value: Any) -> bool:
    return value == "english" if isinstance(value, str) else TEXTS.accepts(value) and value == sorted(set(value))


_INTEGER = Check(f"an integer from 1 to {_LARGEST}", _is_integer)
_LIMIT = Check("an integer >= 1 or a float in [0, 1]", _is_limit)
PARAMETERS: Mapping[str, Spec] = {
    "binary": FLAG,
    "invalid": one_of("error", "replace"),
    "lowercase": FLAG,
    "max_df": _LIMIT,
    "max_features": OrNull(_INTEGER),
    "min_df": _LIMIT,
    "min_length": _INTEGER,
    "missing": one_of("error", "empty"),
    "n_hash": OrNull(Check("an integer from 1 to 2^31", lambda value: _is_integer(value, _LARGEST + 1))),
    "ngram_range": Check("two integers, 1 <= least <= most", _is_words),
    "signed": FLAG,
    "stop_words": OrNull(Check("'english' or a sorted list of words", _is_stop_words)),
}
WORDS: Mapping[str, Spec] = {"n_texts": OrNull(COUNT_FROM_1), "parameters": PARAMETERS}
TERM_WEIGHTS = one_of("tfidf")  # what is not there is no weights
WORD_ARRAYS = {
    "encoder.documents": Array(("n_terms",), "int64"),
    **text_arrays(OF_TERMS, "n_terms", "n_letters"),
}


def words_spec(record: Any) -> Spec:
    """What the record of columns of text says; of the weights of terms only where there are."""
    parameters = record.get("parameters") if isinstance(record, dict) else None
    if not isinstance(parameters, dict) or "term_weights" not in parameters:
        return WORDS
    return {**WORDS, "parameters": {**PARAMETERS, "term_weights": TERM_WEIGHTS}}


def plain_words(words: TextBinarizer) -> Metadata:
    """The parameters of a map from texts in JSON types."""
    try:
        return words.to_plain()
    except (TypeError, ValueError) as error:
        raise ModelFileError(str(error)) from None


def dump_words(columns: list[Metadata]) -> tuple[int | None, Arrays]:
    """How many texts the fit saw, and the arrays of columns as the encoder states them; None where there are none."""
    text_columns = [column for column in columns if column["text"] is not None]
    if not text_columns:
        return None, {}
    n_texts = int(text_columns[0]["text"]["n_texts"])
    if text_columns[0]["text"]["parameters"]["n_hash"] is not None:
        return n_texts, {}
    terms = [term for column in text_columns for term in column["levels"]]
    documents = np.array([count for column in text_columns for count in column["text"]["documents"]], dtype="int64")
    return n_texts, {"encoder.documents": documents, **pack(terms, OF_TERMS, most=None)}


def word_arrays(record: Metadata, arrays: Arrays, n_terms: int) -> tuple[Mapping[str, Array], dict[str, int]]:
    """The arrays that a checked record announces, and their sizes."""
    if record["n_texts"] is None or record["parameters"]["n_hash"] is not None:
        return {}, {}
    letters = arrays.get(f"texts{OF_TERMS}", np.zeros(0))
    return WORD_ARRAYS, {"n_terms": n_terms, "n_letters": letters.size}


def check_counts(record: Metadata | None, n_terms: list[int], most_columns: int) -> None:
    """Refuse numbers of terms, one per column of text, that the parameters rule out or the file has no room for."""
    if record is None:
        refuse_any({"a column of text without how texts are read": n_terms})
        return
    n_hash, most = record["parameters"]["n_hash"], record["parameters"]["max_features"]
    made = [n_hash or n for n in n_terms]
    refuse_any(
        {
            "texts counted without a column of text": not n_terms and record["n_texts"] is not None,
            "a column of text without a number of texts": n_terms and record["n_texts"] is None,
            "terms and n_hash": n_hash is not None and any(n_terms),
            "a column of text without a term": 0 in made,
            f"more than {most} terms": most is not None and n_terms and max(n_terms) > most,
            f"{sum(made)} columns of words in a model of {most_columns} numbers": sum(made) > most_columns,
        }
    )


def build_words(record: Metadata, names: list[str], n_terms: list[int], arrays: Arrays) -> dict[str, Metadata]:
    """For every column of text its terms and how they are read, as the encoder states them."""
    parameters = {**record["parameters"], "missing": "empty"}
    has_terms = record["parameters"]["n_hash"] is None
    terms = unpack(arrays, OF_TERMS, most=None) if has_terms and names else []
    documents = arrays["encoder.documents"].tolist() if has_terms and names else []
    built, at = {}, 0
    for name, n in zip(names, n_terms, strict=True):
        column_terms, counts = terms[at : at + n], documents[at : at + n]
        _check_terms(column_terms, counts, record)
        state = {"parameters": parameters, "column": name, "n_texts": record["n_texts"], "documents": counts}
        built[name] = {"levels": column_terms, "text": state}
        at += n
    return built


def _check_terms(terms: list[str], counts: list[int], record: Metadata) -> None:
    """Refuse terms that are not sorted, or that the parameters would have left out."""
    n_texts, limits = record["n_texts"], (record["parameters"]["min_df"], record["parameters"]["max_df"])
    least, most = record["parameters"]["ngram_range"]
    low, high = (limit if type(limit) is int else limit * n_texts for limit in limits)
    refuse_any(
        {
            "terms that are not sorted, or come twice": any(map(ge, terms, terms[1:])),
            "a term of too few or too many words": not all(least <= 1 + term.count(" ") <= most for term in terms),
            "a term in no text, or in more than there are": not all(1 <= count <= n_texts for count in counts),
            "a term in too few or too many texts": not all(low <= count <= high for count in counts),
        }
    )


MOST_CLASSES = 100_000
MOST_LETTERS = 1 << 24  # of all labels at the width of the longest: 64 MB
MOST_WIDTH = 4096  # beyond the longest label: every prediction takes it
OF_LABELS = ".classes"
_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_REAL = ("float16", "float32", "float64")
_TEXT = ("object", "text")

LABELS: Mapping[str, Spec] = {
    "count": Check(
        f"an integer from 1 to {MOST_CLASSES}", lambda value: type(value) is int and 1 <= value <= MOST_CLASSES
    ),
    "dtype": one_of(*_WHOLE, *_REAL, *_TEXT),
    "width": COUNT,  # characters of a text; 0 of objects and numbers
}


def dump_labels(classes: NDArray[Any]) -> tuple[Metadata, Arrays]:
    """Metadata and arrays of the labels."""
    kind, width = _kind_of(classes)
    record = {"count": len(classes), "dtype": kind, "width": width}
    if kind in _TEXT:
        return record, pack([str(label) for label in classes.tolist()], OF_LABELS)
    if kind in _REAL:
        return record, {"classes": classes.astype(np.float64)}
    return record, {"classes": classes.view(np.int64) if kind == "uint64" else classes.astype(np.int64)}


def label_arrays(record: Metadata) -> dict[str, Array]:
    """The arrays that a checked record announces."""
    if record["dtype"] in _TEXT:
        return text_arrays(OF_LABELS, "K", "n_letters")
    return {"classes": Array(("K",), "float64" if record["dtype"] in _REAL else "int64")}


def build_labels(record: Metadata, arrays: Arrays) -> NDArray[Any]:
    """The labels of a checked record and arrays."""
    kind, width = record["dtype"], record["width"]
    if kind != "text":
        refuse_any({f"a width of {width} for labels of dtype {kind}": width})
    classes = _build_texts(kind, width, arrays) if kind in _TEXT else _build_numbers(kind, arrays["classes"])
    values = classes.tolist()
    refuse_any({"classes that are not sorted, or come twice": any(map(_is_not_below, values, values[1:]))})
    return classes


def _kind_of(classes: NDArray[Any]) -> tuple[str, int]:
    if classes.dtype.kind == "U":
        return "text", classes.dtype.itemsize // 4
    if classes.dtype == object and all(type(label) is str for label in classes):
        return "object", 0
    for name in (*_WHOLE, *_REAL):
        if classes.dtype == np.dtype(name):
            return name, 0
    raise ModelFileError(f"labels of dtype {brief(str(classes.dtype))} are no part of a model file. Convert y first.")


def _build_numbers(kind: str, numbers: NDArray[Any]) -> NDArray[Any]:
    if kind == "uint64":
        return numbers.view(np.uint64)
    with np.errstate(over="ignore"):
        classes = numbers.astype(kind)
    if not np.array_equal(classes.astype(numbers.dtype), numbers):
        raise ModelFileError(f"its classes are not numbers of dtype {kind}.")
    return classes


def _build_texts(kind: str, width: int, arrays: Arrays) -> NDArray[Any]:
    labels = unpack(arrays, OF_LABELS)
    if kind == "object":
        return np.array(labels, dtype=object)
    longest = max(1, *map(len, labels))
    most = min(MOST_LETTERS // len(labels), max(longest, MOST_WIDTH))
    if not longest <= width <= most:
        raise ModelFileError(
            f"its {len(labels)} labels have {longest} characters and a width of {width}. A width is that of the "
            f"longest label or more, and {most} at most: give the labels as objects."
        )
    classes = np.array(labels, dtype=f"U{width}")
    if classes.tolist() != labels:
        raise ModelFileError("one of its labels ends in NUL, which text of a fixed width cannot say.")
    return classes


def _is_not_below(low: Any, high: Any) -> bool:
    return not low < high
