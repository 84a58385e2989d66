"""The encoder of a table model in a file: its parameters, and what its fit decided for each column.

    header            the parameters, the policy for unseen levels among them
    encoder.columns   one row per column of the table: the fields of COLUMN
    encoder.fill      what gaps read as, one number per part, in the order of the columns
    encoder.marks     where columns share a mark of their gaps: the place of the column whose mark it is, else -1
    texts             each column's levels and the name of its rare ones, or why it was set aside; then the notes
    terms             of columns of free text: see `words`

Names of the columns are the names of the features. Whether a column takes what the fit never saw follows from the
parameters. The survey is not stored: no prediction needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certifit.modelfile import texts as text_store
from certifit.modelfile.container import ModelFileError
from certifit.modelfile.schema import brief, check_arrays, plain
from certifit.modelfile.texts import (
    WORD_ARRAYS,
    build_words,
    check_counts,
    dump_words,
    plain_words,
    word_arrays,
    words_spec,
)
from certifit.models.record import FLAG, TEXTS, Array, Arrays, Check, Metadata, Spec, one_of

if TYPE_CHECKING:
    from certifit.maps import TableEncoder


class Kind(NamedTuple):
    """A legal kind of column. `parts` are the numbers that it can have, one bit each."""

    name: str
    family: str | None = None
    parts: tuple[str, ...] = ()


# The place in this list is the code in a file: new kinds go to the end.
KINDS = (
    Kind("number", parts=("value",)),
    Kind("flag", parts=("value",)),
    Kind("level"),
    Kind("date", "date", ("days", "month", "weekday", "hour")),
    Kind("date", "time", ("hour",)),
    Kind("date", "duration", ("days",)),
    Kind("set aside"),
    Kind("text"),
)
COLUMN = ("kind", "has_indicator", "parts", "n_levels", "has_other", "reference")
RULES = ("first", "most frequent")


def _is_pairs(value: Any) -> bool:
    if not isinstance(value, list) or not all(TEXTS.accepts(pair) and len(pair) == 2 for pair in value):
        return False
    names = [name for name, _ in value]
    return names == sorted(set(names))


PARAMETERS: Mapping[str, Spec] = {
    "categories": TEXTS,
    "dates": one_of("expand", "drop"),
    "max_levels": Check("an integer >= 2", lambda value: type(value) is int and value >= 2),
    "min_count": Check("a float >= 1", lambda value: type(value) is float and value >= 1),
    "missing": one_of("indicator", "fill", "error"),
    "reference": Check(
        "'first', 'most frequent' or sorted pairs of a column and its level",
        lambda value: value in RULES if isinstance(value, str) else _is_pairs(value),
    ),
    "sparse_output": FLAG,
    "unseen": one_of("error", "reference"),
}
# is_given: the model was made with encoder=; is_fitted: it was fitted to a table
ENCODER: Mapping[str, Spec] = {"is_fitted": FLAG, "is_given": FLAG, "parameters": PARAMETERS}
ENCODER_ARRAYS = {
    "encoder.columns": Array(("n_columns", "n_fields"), "int64"),
    "encoder.fill": Array(("n_fills",)),
    **text_store.TEXT_ARRAYS,
}

MARKS = {"encoder.marks": Array(("n_columns",), "int64")}


def _pairs_with(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, list)
        and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and accepts(pair[1])
            for pair in value
        )
    )


# What only some encoders have: how cells were written, numbers that mean no value, the rule that finds them, levels
# that no row of the fit has.
READINGS = Check("sorted pairs of a column and how its cells are written", _is_pairs)
ABSENT = Check("pairs of a column and a number", _pairs_with(lambda value: type(value) is float))
RULE = one_of("recognise")
DECLARED = Check("pairs of a column and its levels", _pairs_with(TEXTS.accepts))
CODES = one_of("codes")  # categories as codes; what is not there is columns


def encoder_spec(record: Any) -> Spec:
    """What the record of an encoder says; of free text, written cells and numbers for no value only where there are."""
    if not isinstance(record, dict):
        return ENCODER
    more: dict[str, Spec] = {"texts": words_spec(record.get("texts"))}
    more |= {"readings": READINGS, "absent": ABSENT, "declared": DECLARED}
    spec = {**ENCODER, **{name: of for name, of in more.items() if name in record}}
    some: dict[str, Spec] = {"absent": RULE, "levels": CODES}
    if isinstance(record.get("parameters"), dict):
        spec["parameters"] = {**PARAMETERS, **{name: of for name, of in some.items() if name in record["parameters"]}}
    return spec


def dump_encoder(asked: Any, fitted: Any) -> tuple[Metadata | None, Arrays]:
    """Metadata and arrays of the parameter `encoder` and the fitted `encoder_`; no record where both are None."""
    if asked is None and fitted is None:
        return None, {}
    from certifit.maps import TableEncoder

    for encoder in (asked, fitted):
        if encoder is not None and type(encoder) is not TableEncoder:
            raise ModelFileError(
                f"encoder={brief(type(encoder).__qualname__)} is no part of a model file. "
                "Use encoder=TableEncoder(...) or None."
            )
    parameters = plain_parameters(asked if fitted is None else fitted) or {}
    words = parameters.pop("texts", None)
    record = {"is_fitted": fitted is not None, "is_given": asked is not None, "parameters": parameters}
    n_texts, arrays = (None, {}) if fitted is None else _dump_columns(fitted)
    if fitted is not None:
        absent = [[kind.name, kind.absent] for kind in fitted.columns_ if kind.absent is not None]
        readings = sorted([name, word] for name, word in fitted.readings_.items())
        declared = [[kind.name, list(kind.declared)] for kind in fitted.columns_ if getattr(kind, "declared", ())]
        more = {"absent": absent, "readings": readings, "declared": declared}
        record |= {name: pairs for name, pairs in more.items() if pairs}
    return record | ({} if words is None else {"texts": {"n_texts": n_texts, "parameters": words}}), arrays


def plain_parameters(encoder: TableEncoder | None) -> Metadata | None:
    """The parameters of an encoder in JSON types. What they cannot be is refused by PARAMETERS and WORDS."""
    if encoder is None:
        return None
    parameters = encoder.get_params(deep=False)
    words = parameters.pop("texts")
    if parameters["levels"] != "codes":  # what is not there is columns, as in files of every version
        del parameters["levels"]
    settings = {name: plain(value) for name, value in parameters.items()}
    if words is not None:
        settings["texts"] = plain_words(words)
    if settings["absent"] == "keep":
        settings.pop("absent")
    if isinstance(settings["reference"], dict):
        settings["reference"] = sorted([str(name), str(level)] for name, level in settings["reference"].items())
    if isinstance(settings["categories"], Iterable) and not isinstance(settings["categories"], str):
        settings["categories"] = [str(name) for name in settings["categories"]]
    if type(settings["min_count"]) is int:
        settings["min_count"] = float(settings["min_count"])
    if type(settings["sparse_output"]) in (int, float):  # 1 is True for the encoder
        settings["sparse_output"] = bool(settings["sparse_output"])
    return settings


def build_encoder(
    record: Metadata | None, names: list[str] | None, n_columns: int, arrays: Arrays, most_columns: int
) -> tuple[Any, Any]:
    """The parameter `encoder` and the fitted `encoder_` of a checked record; `arrays` are those of the encoder."""
    if record is None:
        return None, None
    if not (record["is_given"] or record["is_fitted"]):
        raise ModelFileError("its encoder is neither given nor fitted.")
    from certifit.maps import TableEncoder, TextBinarizer

    parameters = {**record["parameters"], "categories": tuple(record["parameters"]["categories"])}
    if isinstance(parameters["reference"], list):
        parameters["reference"] = dict(parameters["reference"])
    words = record.get("texts")
    made = None if words is None else TextBinarizer.of_plain(words["parameters"])
    table_encoder = TableEncoder(**parameters, texts=made) if record["is_given"] else None
    if not record["is_fitted"]:
        if words is not None:
            check_counts(words, [], most_columns)
        return table_encoder, None
    if names is None or len(set(names)) < len(names):
        raise ModelFileError("the columns of a table need names, each its own.")
    fitted = _build_fitted(parameters, record, names, n_columns, arrays, most_columns)
    return table_encoder, _with_readings(fitted, record.get("readings", []), record.get("absent", []))


def _with_readings(encoder: TableEncoder, readings: list[list[str]], absent: list[list[Any]]) -> TableEncoder:
    """How cells were written, and the numbers that mean no value, each of a column that the encoder has."""
    known = {kind.name: kind.kind for kind in encoder.columns_}
    if strange := [name for name, _ in readings if name not in known]:
        raise ModelFileError(f"its encoder says how {brief(strange[0])} is written, which is no column of it.")
    if strange := [name for name, number in absent if known.get(name) != "number" or not np.isfinite(number)]:
        raise ModelFileError(f"its encoder has a number for no value of {brief(strange[0])}, which is no number.")
    encoder.readings_ = {name: word for name, word in readings}
    numbers = {name: number for name, number in absent}
    encoder.columns_ = [replace(kind, absent=numbers.get(kind.name)) for kind in encoder.columns_]
    return encoder


def encoder_arrays(record: Metadata | None, arrays: Arrays) -> Arrays:
    """Those of the arrays that belong to the encoder."""
    is_fitted = record is not None and record["is_fitted"]
    return {name: array for name, array in arrays.items() if is_fitted and name in ENCODER_ARRAYS | MARKS | WORD_ARRAYS}


def _dump_columns(encoder: TableEncoder) -> tuple[int | None, Arrays]:
    """How many texts columns of free text had, and the arrays."""
    state, arrays = encoder.to_state()
    if not state["named"]:
        raise ModelFileError("its encoder was fitted to columns without names.")
    rows, texts = [], []
    for record in state["columns"]:
        row, column_arrays = _dump_column(record)
        rows.append(row)
        texts += column_arrays
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), len(COLUMN))
    n_texts, terms = dump_words(state["columns"])
    return n_texts, {
        "encoder.columns": columns,
        "encoder.fill": arrays["fill"],
        **_dump_marks(state["columns"]),
        **text_store.pack([*texts, *state["notes"]]),
        **terms,
    }


def _dump_marks(records: list[Metadata]) -> Arrays:
    """The columns whose gaps another one marks; nothing where there are none, so that older versions read the file."""
    if all(record["marked_by"] is None for record in records):
        return {}
    place = {record["name"]: j for j, record in enumerate(records)}
    return {"encoder.marks": np.array([place.get(record["marked_by"], -1) for record in records], dtype=np.int64)}


def _dump_column(record: Metadata) -> tuple[list[int], list[str]]:
    """The fields of COLUMN, and the texts of a column."""
    codes = [code for code, kind in enumerate(KINDS) if kind[:2] == (record["kind"], record["family"])]
    if not codes:
        raise ModelFileError(f"column {brief(record['name'])} is of a kind that a model file does not know.")
    parts = [1 << bit for bit, part in enumerate(KINDS[codes[0]].parts) if part in record["parts"]]
    n_levels, has_other = len(record["levels"]), record["other"] is not None
    levels = [] if codes[0] == _TEXT else [*record["levels"], *[record["other"]] * has_other]
    if levels and record["reference"] not in levels:
        raise ModelFileError(f"the reference of column {brief(record['name'])} is not one of its levels.")
    reference = levels.index(record["reference"]) if levels else 0
    reason = [] if record["reason"] is None else [record["reason"]]
    return [codes[0], record["has_indicator"], sum(parts), n_levels, has_other, reference], [*levels, *reason]


def _build_fitted(
    parameters: Metadata, record: Metadata, names: list[str], n_columns: int, arrays: Arrays, most_columns: int
) -> TableEncoder:
    from certifit.maps import TableEncoder

    words, declared = record.get("texts"), dict(record.get("declared", []))
    table = _checked_table(parameters, words, n_columns, arrays)
    is_text = table[:, 0] == _TEXT
    n_terms = table[is_text, 3].tolist()
    check_counts(words, n_terms, most_columns)
    text_names = [name for name, is_own in zip(names, is_text.tolist(), strict=True) if is_own]
    terms = {} if words is None else build_words(words, text_names, n_terms, arrays)
    texts = iter(text_store.unpack(arrays))
    rows = zip(names, table.tolist(), strict=True)
    columns = [_column_record(name, dict(zip(COLUMN, row, strict=True)), parameters, texts) for name, row in rows]
    _check_policies(columns, parameters)
    for column in columns:
        if column["kind"] == "level" and not column["is_lenient"]:
            column["declared"] = declared.pop(column["name"], [])
    if declared:
        raise ModelFileError(f"its encoder names levels of {brief(next(iter(declared)))} beside those of rows.")
    columns = [column | terms.get(column["name"], {}) for column in columns]
    columns = [column | mark for column, mark in zip(columns, _read_marks(names, arrays), strict=True)]
    plain_texts = None if words is None else words["parameters"]
    state = {
        "parameters": {**parameters, "texts": plain_texts},
        "named": True,
        "columns": columns,
        "notes": list(texts),
    }
    try:
        encoder = TableEncoder.from_state(state, {"fill": arrays["encoder.fill"]})
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"its encoder does not fit together: {error}") from None
    if not any(kind.names_out("") for kind in encoder.columns_):
        raise ModelFileError("its encoder makes no column.")
    return encoder


def _read_marks(names: list[str], arrays: Arrays) -> list[Metadata]:
    """What each column's record says of a mark that is another's; the encoder refuses one that is none."""
    if "encoder.marks" not in arrays:
        return [{}] * len(names)
    places = arrays["encoder.marks"].tolist()
    if any(not -1 <= place < len(names) for place in places) or max(places, default=-1) < 0:
        raise ModelFileError(f"its encoder.marks are places of columns, 0 to {len(names) - 1}, or -1.")
    return [{} if place < 0 else {"marked_by": names[place]} for place in places]


_LEVEL, _SET_ASIDE, _TEXT = (KINDS.index(Kind(name)) for name in ("level", "set aside", "text"))


def _checked_table(parameters: Metadata, words: Metadata | None, n_columns: int, arrays: Arrays) -> NDArray[np.int64]:
    """One row per column of the table, its fields and the sizes of all arrays checked."""
    n_fills = arrays["encoder.fill"].size if "encoder.fill" in arrays else 0  # the encoder compares it with its parts
    n_terms = arrays["encoder.documents"].size if "encoder.documents" in arrays else 0
    specs, letters = ({}, {}) if words is None else word_arrays(words, arrays, n_terms)
    sizes = {"n_columns": n_columns, "n_fields": len(COLUMN), "n_fills": n_fills, **text_store.sizes(arrays), **letters}
    marks = MARKS if "encoder.marks" in arrays else {}
    check_arrays({**ENCODER_ARRAYS, **marks, **specs}, sizes, arrays)
    table = arrays["encoder.columns"]
    _check_columns(table, min(parameters["max_levels"], sizes["n_texts"]), n_terms)
    is_text = table[:, 0] == _TEXT
    n_own = int(table[~is_text, 3].sum() + table[:, 4].sum()) + int((table[:, 0] == _SET_ASIDE).sum())
    if n_own > sizes["n_texts"]:
        raise ModelFileError(f"its columns need {n_own} texts. Got {sizes['n_texts']}.")
    if sum(table[is_text, 3].tolist()) != n_terms:
        raise ModelFileError(f"its columns of text need {sum(table[is_text, 3].tolist())} terms. Got {n_terms}.")
    return table


def _check_columns(table: NDArray[np.int64], most_levels: int, most_terms: int) -> None:
    """Refuse a field out of its range. A field that means nothing for a kind is 0."""
    kind, *_ = fields = table.T

    def largest() -> Iterator[Any]:  # each range is asked for when the fields before it are known to be legal
        yield np.full(len(kind), len(KINDS) - 1)
        yield kind != _SET_ASIDE
        yield np.array([(1 << len(k.parts)) - 1 for k in KINDS])[kind]
        yield np.where(kind == _LEVEL, most_levels, np.where(kind == _TEXT, most_terms, 0))
        yield kind == _LEVEL
        yield np.where(kind == _LEVEL, table[:, 3] + table[:, 4] - 1, 0)

    for name, values, most in zip(COLUMN, fields, largest(), strict=True):
        wrong = (values < 0) | (values > most)
        if wrong.any():
            j = int(np.argmax(wrong))
            raise ModelFileError(f"{name} of column {j} of its table is {values[j]}. Legal is 0 to {int(most[j])}.")


def _column_record(name: str, row: dict[str, int], parameters: Metadata, texts: Iterator[str]) -> Metadata:
    """A column as the encoder states it."""
    kind = KINDS[row["kind"]]
    is_level, is_aside, is_text = (row["kind"] == code for code in (_LEVEL, _SET_ASIDE, _TEXT))
    levels = [] if is_text else list(islice(texts, row["n_levels"]))
    other = next(texts) if row["has_other"] else None
    takes_new = other is not None if is_level else parameters["missing"] == "fill" and not is_text
    return {
        "kind": kind.name,
        "name": name,
        "has_indicator": bool(row["has_indicator"]),
        "is_lenient": not is_aside and (takes_new or parameters["unseen"] == "reference"),
        "family": kind.family,
        "parts": [part for bit, part in enumerate(kind.parts) if row["parts"] >> bit & 1],
        "levels": levels,
        "reference": [*levels, other][row["reference"]] if is_level else None,
        "other": other,
        "reason": next(texts) if is_aside else None,
        "text": None,
        "marked_by": None,
    }


def _check_policies(columns: list[Metadata], parameters: Metadata) -> None:
    """Refuse columns that the stated parameters rule out."""
    reference = parameters["reference"]
    named = reference if isinstance(reference, dict) else {}
    kinds = {column["name"]: column["kind"] for column in columns}
    for name in (*parameters["categories"], *named):
        if kinds.get(name) not in ("level", "set aside"):
            raise ModelFileError(f"categories and reference name {brief(name)}, which is no column of levels.")
    for column in columns:
        name, levels = column["name"], column["levels"]
        is_level, marks_all = column["kind"] == "level", column["kind"] in ("level", "text")
        wanted = named.get(name, levels[0] if levels else column["other"])
        problems = {
            "marks its gaps": column["has_indicator"]
            and parameters["missing"] not in (("indicator", "fill") if marks_all else ("indicator",)),
            "is a date": column["kind"] == "date" and parameters["dates"] == "drop",
            "has another reference": is_level
            and column["reference"] != wanted
            and (reference != "most frequent" or column["reference"] == column["other"]),
        }
        for problem, is_there in problems.items():
            if is_there:
                raise ModelFileError(f"column {brief(name)} {problem}, against the parameters of its encoder.")
