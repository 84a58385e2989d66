"""Any linear model of a quantity in a file, with a history of any numbers: the record where none is declared.

A model that has more attributes, or a certificate of a class of its own, adds them: `RECORD | Record(...)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from certifit.models.state import COUNT, TEXTS, Array, Content, Field, Metadata, Model, Problems, Record, fields_at
from certifit.models.states.least_squares import LINEAR, NAMED
from certifit.models.states.parts import ITERATIONS

_NOT_STORED = "seconds"  # so that the same fit gives the same bytes; a load says NaN


def _history_keys(model: Model) -> list[str]:
    return [key for key in model.history_[0] if key != "iteration"] if model.history_ else []


def _history(model: Model) -> list[list[float]]:
    keys = [key for key in _history_keys(model) if key != _NOT_STORED]
    return [[float(row[key]) for key in keys] for row in model.history_]


def _stored_keys(metadata: Metadata) -> list[str]:
    return [key for key in metadata["history"] if key != _NOT_STORED]


def _history_rows(content: Content) -> list[dict[str, float]]:
    keys, numbers = _stored_keys(content.metadata), content.arrays["history.iterations"].tolist()
    rows = (dict(zip(keys, row, strict=True)) for row in content.arrays["history"].tolist())
    found = zip(numbers, rows, strict=True)
    return [
        {"iteration": i, **{key: row.get(key, math.nan) for key in content.metadata["history"]}} for i, row in found
    ]


def _problems(content: Content) -> Iterator[Problems]:
    keys, numbers = content.metadata["history"], content.arrays["history.iterations"].tolist()
    is_sorted = all(low < high for low, high in zip([-1, *numbers], numbers, strict=False))
    yield {
        "iterations that do not follow each other": not is_sorted,
        "a history that names a number twice": len({*keys, "iteration"}) <= len(keys),
        "standard errors, which only least squares has": content.metadata["inference"] is not None,
    }


RECORD = (
    LINEAR
    | NAMED
    | Record(
        fields={"history": Field(TEXTS, get=_history_keys), "solution": fields_at("*_", {"n_iter": COUNT})},
        arrays={"history": Array(("m", "h"), may_be_infinite=True, get=_history), "history.iterations": ITERATIONS},
        derived={"history_": _history_rows},
        sizes=(lambda metadata: {"h": len(_stored_keys(metadata))},),
        checks=(_problems,),
    )
)
