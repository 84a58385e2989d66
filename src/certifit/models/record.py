"""What a model file stores of a model, as plain data: fields of metadata, arrays with symbolic shapes, and checks.

A record says where each value stands on a fitted model, so that one codec (`modelfile/codec.py`) writes, checks and
reads every model. Records are in the `modelfile.py` of each family, and the table of models names them.

    p   columns of the fit    d   features    k   p + 1 with an intercept, else p    K   classes

Other sizes are those that `Record.sizes` reads from the metadata; a symbol that it does not name takes the size of the
first array that has it, and a number is itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.minimise.steps import NAN, full_row

Model = Any  # a fitted model; a record names its attributes
Json = Any  # None, flags, integers, floats, texts, lists and objects of them
Metadata = dict[str, Json]
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Check:
    """One value: `legal` completes the sentence "x must be ...". cast: what a model has, as JSON has it."""

    legal: str
    accepts: Callable[[Json], bool]
    cast: Callable[[Json], Json] | None = None


@dataclass(frozen=True)
class OrNull:
    """Null, or what `spec` says."""

    spec: Spec


Spec = Check | OrNull | Mapping[str, "Spec"]


def _is_float(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


FLAG = Check("true or false", lambda value: type(value) is bool, bool)
INTEGER = Check("an integer", lambda value: type(value) is int, int)
COUNT = Check("an integer >= 0", lambda value: type(value) is int and value >= 0, int)
COUNT_FROM_1 = Check("an integer >= 1", lambda value: type(value) is int and value >= 1, int)
NUMBER = Check("a finite float", _is_float, float)
NUMBER_FROM_0 = Check("a finite float >= 0", lambda value: _is_float(value) and value >= 0, float)
# The condition of a singular matrix is infinite, and so may be a sum of squares far from 1.
MAGNITUDE = Check("a float >= 0, or infinity", lambda value: type(value) is float and value >= 0, float)
TEXT = Check("a text", lambda value: isinstance(value, str))
VERSION = Check(
    "a version such as '0.1.0'",
    lambda value: isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z.+-]{1,40}", value) is not None,
)
TEXTS = Check(
    "a list of texts",
    lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
    list,
)


def one_of(*values: str) -> Check:
    """A text out of a closed list."""
    return Check("one of " + ", ".join(map(repr, values)), lambda value: isinstance(value, str) and value in values)


@dataclass(frozen=True)
class Field:
    """A value of the metadata. at: where a model has it, as "data_.n_rows"; a load puts it back there.

    get: what it is of a model that has it in another form. is_left_out: a file has no such key where it is None.
    """

    spec: Spec
    at: str = ""
    get: Callable[[Model], Json] | None = None
    is_left_out: bool = False


@dataclass(frozen=True)
class Maybe:
    """Fields of an attribute that may be None: null in the file."""

    at: str
    fields: Fields


Fields = Mapping[str, "Field | Maybe | Fields"]


def fields_at(path: str, specs: Mapping[str, Spec]) -> dict[str, Field | Maybe | Fields]:
    """Fields that a model has under their own names: `path` with the name in place of *."""
    return {name: Field(spec, path.replace("*", name)) for name, spec in specs.items()}


Shape = tuple[str, ...]


@dataclass(frozen=True)
class Array:
    """An array whose sizes have names, such as ("p", "d"); never NaN, and finite unless stated otherwise.

    shape: where it depends on parameters, a function of the metadata. at, get: as of a Field. when: whether a file with
    this metadata has it; always, if not stated. is_tuple: a model has its numbers as a tuple.
    """

    shape: Shape | Callable[[Metadata], Shape]
    dtype: str = "float64"
    may_be_infinite: bool = False
    at: str = ""
    get: Callable[[Model], object] | None = None
    when: Callable[[Metadata], bool] | None = None
    is_tuple: bool = False


@dataclass(frozen=True)
class Content:
    """What a file holds, each value and each shape checked. arrays: all but those of the encoder and of children."""

    metadata: Metadata
    arrays: Arrays
    columns: list[str]
    labels: NDArray[Any] | None = None
    children: tuple[Content, ...] = ()

    @property
    def parameters(self) -> Metadata:
        """The parameters of the model that are single values."""
        parameters: Metadata = self.metadata["parameters"]
        return parameters

    @property
    def coefficients(self) -> tuple[str, ...]:
        """Names of the coefficients."""
        first = ("intercept",) if self.parameters["fit_intercept"] else ()
        return (*first, *self.columns)


@dataclass(frozen=True)
class Object:
    """An attribute that is an object: its class, and the arguments that follow from the rest of the file.

    The others are the fields and arrays whose `at` begins with the attribute.
    """

    place: str
    derived: Callable[[Content], Mapping[str, object]] | None = None


@dataclass(frozen=True)
class Setting:
    """A parameter that is an object or an array. asked: in a form that compares; given: as a load gives it."""

    asked: Callable[[Model], object]
    given: Callable[[Content], object]


Problems = Mapping[str, object]
Shown = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True)
class Record:
    """What a file stores of a model, in addition to its columns, its maps and the parameters that are single values.

    sizes: numbers behind symbols of shapes. derived: attributes that follow from the rest. checks: contradictions, in
    the order in which one makes sense after the other; a ValueError is one too. shown: what an inspection prints.
    told: what the objective says beyond the parameters. named: parameters that may be objects, and that a file can
    hold where they are names. switches: parameters at their defaults unless the file has them. children: the
    attribute that lists the models of which this one is made. counts: which rows the number of rows counts, "all",
    "weighted", "labelled", or "counted": those with a class and a weight above 0. finish: a method that derives further
    attributes.
    """

    fields: Fields = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    objects: Mapping[str, Object] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    named: Mapping[str, Field] = field(default_factory=dict)
    derived: Mapping[str, Callable[[Content], object]] = field(default_factory=dict)
    switches: tuple[str, ...] = ()
    sizes: tuple[Callable[[Metadata], Mapping[str, int]], ...] = ()
    checks: tuple[Callable[[Content], Iterable[Problems]], ...] = ()
    shown: tuple[Callable[[Content], Shown], ...] = ()
    told: tuple[Callable[[Metadata], Mapping[str, object]], ...] = ()
    has_labels: bool = False
    counts: str = "all"
    finish: str = ""
    children: str = ""

    def __or__(self, other: Record) -> Record:
        """Both records in one: the second adds to the first, or has another object or array in its place."""
        merged: dict[str, Any] = {}
        for name in (part.name for part in fields(Record)):
            first, second = getattr(self, name), getattr(other, name)
            if isinstance(first, Mapping):
                merged[name] = deep_merge(first, second)
            elif isinstance(first, tuple):
                merged[name] = first + second
            else:
                merged[name] = first if second == Record.__dataclass_fields__[name].default else second
        return Record(**merged)


def deep_merge(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Two nested mappings in one; the second decides."""
    both = {
        key: deep_merge(first[key], second[key])
        for key in first.keys() & second.keys()
        if isinstance(first[key], Mapping) and isinstance(second[key], Mapping)
    }
    return {**first, **second, **both}


CLAIM: Mapping[str, Spec] = {
    "claim": TEXT,
    "rounding": MAGNITUDE,
    "theorem": TEXT,
    "tolerance": NUMBER_FROM_0,
    "value": MAGNITUDE,
}
# Only fits that treat columns as exact combinations of others have it.
LITERAL = {"literal": Field(MAGNITUDE, "certificate_.literal", is_left_out=True)}
ROWS = fields_at("data_.*", {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE})
TARGET = {"data": {**ROWS, **fields_at("data_.*", {"target_mean": NUMBER, "target_sd": MAGNITUDE})}}
HISTORY = ("objective", "gap", "step")


def history_array(model: Model) -> NDArray[np.float64]:
    """The history without its seconds, so that the same fit gives the same bytes."""
    return stored_numbers(model, HISTORY)


def stored_numbers(model: Model, keys: Sequence[str]) -> NDArray[np.float64]:
    """Columns of the history as a file holds them: minus infinity stands for what is not known."""
    rows = [[float(row[key]) for key in keys] for row in model.history_]
    numbers = np.array(rows, dtype=np.float64).reshape(len(rows), len(keys))
    return np.where(np.isnan(numbers), -np.inf, numbers)


def history_rows(
    array: NDArray[np.float64],
    numbers: list[int] | None = None,
    keys: Sequence[str] = HISTORY,
    more: Mapping[str, NDArray[np.float64]] | None = None,
) -> list[dict[str, float]]:
    """The history of a model: a row each, numbered from 1 where no numbers are stored. more: further columns."""
    table = dict(zip(keys, array.reshape(len(array), len(keys)).T, strict=True)) | dict(more or {})
    known = {name: [NAN if v == -math.inf else v for v in column.tolist()] for name, column in table.items()}
    first = known.pop("iteration", list(range(1, len(array) + 1)) if numbers is None else numbers)
    return [full_row(int(i), **{name: column[k] for name, column in known.items()}) for k, i in enumerate(first)]


# Columns of a history beside those that every file has, where a fit knows them.
MORE = ("dual", "gradient_norm", "step_size")


def _more_names(model: Model) -> list[str] | None:
    return [name for name in MORE if any(not math.isnan(row.get(name, NAN)) for row in model.history_)] or None


def _names_with_numbers(model: Model) -> list[str] | None:
    """The same, and the numbers of the steps where they are not 1, 2, 3, ..."""
    numbers, names = [row["iteration"] for row in model.history_], _more_names(model) or []
    return (["iteration"] * (numbers != list(range(1, len(numbers) + 1))) + names) or None


def more_columns(content: Content) -> dict[str, NDArray[np.float64]]:
    """The columns of the history that this file has beside those of every file."""
    names = content.metadata.get("history_more", [])
    return dict(zip(names, content.arrays["history.more"].T, strict=True)) if names else {}


def _more_problems(content: Content) -> Iterator[Problems]:
    names = content.metadata.get("history_more", [])
    numbers = more_columns(content).get("iteration", np.arange(1.0))
    is_sorted = bool((numbers[1:] > numbers[:-1]).all()) and bool((numbers >= 0).all())
    yield {
        "a column of the history that is not known": not set(names) <= {"iteration", *MORE},
        "a column of the history twice": len(set(names)) < len(names),
        "iterations that do not follow each other": not (is_sorted and bool((numbers == np.floor(numbers)).all())),
    }


def _more(names: Callable[[Model], list[str] | None]) -> Record:
    return Record(
        fields={"history_more": Field(TEXTS, get=names, is_left_out=True)},
        arrays={
            "history.more": Array(
                ("m", "c"),
                may_be_infinite=True,
                get=lambda model: stored_numbers(model, names(model) or ()),
                when=lambda metadata: bool(metadata.get("history_more")),
            )
        },
        sizes=(lambda metadata: {"c": len(metadata.get("history_more", []))},),
        checks=(_more_problems,),
    )


MORE_HISTORY, NUMBERED_HISTORY = _more(_more_names), _more(_names_with_numbers)


def fault_problems(content: Content) -> Iterator[Problems]:
    """A certificate that holds has no fault."""
    stored = content.metadata["certificate"]
    yield {"a fault and a proof": stored["fault"] and stored["value"] <= stored["tolerance"]}


def show_coefficients(content: Content) -> Shown:
    """The coefficients of one row of weights."""
    arrays, metadata = content.arrays, content.metadata
    facts = {**metadata["certificate"], **metadata.get("solution", {})}
    if arrays["coef"].ndim > 1 and len(arrays["coef"]) > 1:
        return {}
    weights = arrays["coef"].ravel()
    intercept = float(arrays["intercept"][0]) if "intercept" in arrays else facts.get("intercept", 0.0)
    shown = {
        "count": len(weights),
        "n_nonzero": int(np.count_nonzero(weights)),
        "intercept": intercept if content.parameters["fit_intercept"] else None,
        "rank": facts.get("rank", len(weights)),
        "condition": facts.get("condition"),
        "names": content.columns,
        "values": weights.tolist(),
    }
    return {"coefficients": shown}


def show_penalised(content: Content) -> Shown:
    """The strength of a penalty, and whether there are standard errors."""
    metadata = content.metadata
    has_errors = metadata.get("inference") is not None
    return {"model": {"alpha": metadata["solution"]["alpha"], "has_standard_errors": has_errors}}


def show_labels(content: Content) -> Shown:
    """The labels of the classes."""
    labels = [] if content.labels is None else content.labels.tolist()
    return {"classes": {"labels": labels, "dtype": content.metadata["labels"]["dtype"]}}


# Penalty factors and bounds: a number per column of the fit, or none at all. A model may name them by column; a file
# has them as arrays, which the models accept just as well.


def _factors(model: Model) -> NDArray[np.float64] | None:
    return None if model.penalty_factors is None else model._factors(model.column_names_)


def _bounds(model: Model) -> tuple[NDArray[np.float64], ...]:
    """Two arrays; none where there are no bounds."""
    return () if model.bounds is None else model._bounds(model.column_names_)


def _has_factors(metadata: Metadata) -> bool:
    return bool(metadata["penalty"]["has_factors"])


def _has_bounds(metadata: Metadata) -> bool:
    return bool(metadata["penalty"]["has_bounds"])


def _stored_bounds(content: Content) -> tuple[NDArray[np.float64], ...] | None:
    return (
        tuple(content.arrays[f"penalty.{end}"] for end in ("lower", "upper")) if _has_bounds(content.metadata) else None
    )


def _penalty_problems(content: Content) -> Iterator[Problems]:
    arrays = content.arrays
    coef, factors = arrays["coef"], arrays.get("penalty.factors", np.zeros(0))
    lower, upper = arrays.get("penalty.lower", -np.inf), arrays.get("penalty.upper", np.inf)
    yield {
        "a penalty factor below 0": (factors < 0).any(),
        "bounds without 0 between them": (np.greater(lower, 0) | np.less(upper, 0)).any(),
        "a coefficient outside its bounds": ((coef < lower) | (coef > upper)).any(),
    }


def _show_penalty(content: Content) -> Shown:
    """How many columns have a factor of their own, and how many have bounds."""
    arrays, none = content.arrays, np.zeros(1)
    factors = arrays.get("penalty.factors", np.ones(1))
    ends = (arrays.get("penalty.lower", none - np.inf), arrays.get("penalty.upper", none + np.inf))
    is_bounded = np.isfinite(ends[0]) | np.isfinite(ends[1])
    return {"model": {"n_factors": int((factors != 1).sum()), "n_bounded": int(is_bounded.sum())}}


def _bound_array(place: int) -> Array:
    """Infinite where there is no bound."""
    return Array(("p",), may_be_infinite=True, get=lambda model: _bounds(model)[place], when=_has_bounds)


PENALTY = Record(
    fields={
        "penalty": {
            "has_bounds": Field(FLAG, get=lambda model: model.bounds is not None),
            "has_factors": Field(FLAG, get=lambda model: model.penalty_factors is not None),
        }
    },
    arrays={
        "penalty.factors": Array(("p",), get=_factors, when=_has_factors),
        "penalty.lower": _bound_array(0),
        "penalty.upper": _bound_array(1),
    },
    settings={
        "penalty_factors": Setting(_factors, lambda content: content.arrays.get("penalty.factors")),
        "bounds": Setting(_bounds, _stored_bounds),
    },
    checks=(_penalty_problems,),
    shown=(_show_penalty,),
    told=(lambda metadata: {key: metadata["penalty"][key] for key in ("has_factors", "has_bounds")},),
)
PENALISED = Record(told=(lambda metadata: {"alpha": metadata["solution"]["alpha"]},), shown=(show_penalised,))
LABELLED = Record(
    has_labels=True, told=(lambda metadata: {"n_classes": metadata["labels"]["count"]},), shown=(show_labels,)
)
TARGET_NAME = {"target": Field(TEXT, "target_name_")}


def _is_standardised(metadata: Metadata) -> bool:
    return bool(metadata["parameters"]["standardize"])


def _scale_problems(content: Content) -> Iterator[Problems]:
    yield {"a scale that is not above 0": (content.arrays.get("state.scale", np.ones(1)) <= 0).any()}


# Mean and scale of the columns, None without standardize.
STANDARDISED = Record(
    arrays={f"state.{name}": Array(("p",), at=f"{name}_", when=_is_standardised) for name in ("mean", "scale")},
    derived={
        "mean_": lambda content: content.arrays.get("state.mean"),
        "scale_": lambda content: content.arrays.get("state.scale"),
    },
    checks=(_scale_problems,),
)
LENGTH_OF_HISTORY = Field(COUNT_FROM_1, get=lambda model: len(model.history_))
ITERATIONS = Array(("m",), "int64", get=lambda model: [int(row["iteration"]) for row in model.history_])


# Weights of classes


def _word_of_weights(model: Model) -> str | None:
    asked: str | None = model.class_weight
    return asked if asked is None or isinstance(asked, str) else "given"


def _asked_weight(model: Model) -> str | NDArray[np.float64] | None:
    """The parameter class_weight, a factor per class where factors are given."""
    if isinstance(model.class_weight, str | None):
        return model.class_weight
    factors: NDArray[np.float64] = model._factors_of(np.ones(len(model.classes_)))
    return factors


def _given_weight(content: Content) -> str | dict[Hashable, float] | None:
    """The parameter class_weight: of factors that were given, all of them by label."""
    word: str | None = content.metadata.get("class_weight")
    if word != "given" or content.labels is None:
        return word
    return dict(zip(content.labels.tolist(), content.arrays["class_weight"].tolist(), strict=True))


def _class_weight_problems(content: Content) -> Iterator[Problems]:
    """Factors that are none, or that do not balance the classes."""
    factors = content.arrays.get("class_weight", np.ones(1))
    yield {"a class of negative weight": (factors < 0).any()}
    with np.errstate(divide="ignore", over="ignore"):
        balance = float((1.0 / factors).sum())  # of W / (K W_k): K times the classes' shares
    is_balanced = content.metadata.get("class_weight") == "balanced"
    n_classes = content.metadata["labels"]["count"]
    yield {
        "factors that do not balance the classes": is_balanced and not math.isclose(balance, n_classes, rel_tol=1e-9)
    }


CLASS_WEIGHT = Record(
    fields={"class_weight": Field(OrNull(one_of("balanced", "given")), get=_word_of_weights)},
    arrays={
        "class_weight": Array(("K",), at="class_weight_", when=lambda stored: stored.get("class_weight") is not None)
    },
    settings={"class_weight": Setting(_asked_weight, _given_weight)},
    derived={"class_weight_": lambda content: content.arrays.get("class_weight")},
    checks=(_class_weight_problems,),
)
