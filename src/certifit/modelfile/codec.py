"""One codec for every model: its record in `models/FAMILY/modelfile.py` says what is written, checked, read and shown.

    dump    a fitted model -> metadata and arrays        check   metadata against the record
    read    checked metadata and arrays -> Parts         build   Parts -> the fitted model

The models of which a model is made are written, checked and read by the same record each (`modelfile/nesting.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from certifit.minimise.steps import closed_form_row
from certifit.modelfile.container import ModelFileError
from certifit.modelfile.maps import Maps, close_maps, dump_maps, maps_spec, no_maps, open_maps, set_maps
from certifit.modelfile.nesting import CHILDREN, fold, is_nested, refuse_deep, refuse_many, unfold
from certifit.modelfile.schema import brief, check, check_arrays, plain, refuse_any, stored_spec
from certifit.modelfile.texts import LABELS, build_labels, dump_labels, label_arrays
from certifit.models.certificate import Certificate, least_certain
from certifit.models.file_checks import tolerance_problems
from certifit.models.learner import Learner, Param
from certifit.models.record import (
    TEXT,
    Array,
    Arrays,
    Check,
    Content,
    Field,
    Fields,
    Json,
    Maybe,
    Metadata,
    Model,
    OrNull,
    Record,
    Spec,
    deep_merge,
)
from certifit.models.table import STORED

SWITCHED_ON = Check("true", lambda value: value is True)


@dataclass(frozen=True)
class Parts:
    """All that a file holds of a model, checked: nothing in it contradicts the rest."""

    learner: Learner
    record: Record
    content: Content
    maps: Maps
    attributes: Mapping[str, object]
    children: tuple[Parts, ...] = ()

    @property
    def certificate(self) -> Certificate:
        """The certificate of the fit; of models, the one that says least."""
        if self.children:
            return least_certain([child.certificate for child in self.children])
        certificate = self.attributes["certificate_"]
        assert isinstance(certificate, Certificate)
        return certificate

    @property
    def n_models(self) -> int:
        """Models that it is made of, on all levels, and itself."""
        return 1 + sum(child.n_models for child in self.children)

    @property
    def n_bytes(self) -> int:
        """What the arrays of all these models take."""
        return sum(child.n_bytes for child in self.children) + sum(a.nbytes for a in self.content.arrays.values())

    @property
    def shown(self) -> dict[str, Metadata]:
        """What an inspection prints of it."""
        shown: dict[str, Metadata] = {}
        for show in self.record.shown:
            shown = deep_merge(shown, show(self.content))
        return shown


# Which model


def key_of(model: Model) -> str:
    """The id of a model's class; a subclass is another class."""
    cls = type(model)
    for key, learner in STORED.items():
        is_named = (cls.__module__, cls.__qualname__) == (f"certifit.{learner.module}", learner.name)
        if is_named and cls is learner.load():
            return key
    for inner in ("best_estimator_", "estimator_"):
        if inner in dir(model):
            raise ModelFileError(f"Save the model inside {cls.__name__}: save(model.{inner}, path).")
    legal = ", ".join(learner.name for learner in STORED.values())
    library = cls.__module__.partition(".")[0]
    origin = "" if library in ("certifit", "__main__") else f" of {brief(library)}"
    raise ModelFileError(f"A model file holds one of {legal}. Got {brief(cls.__qualname__)}{origin}.")


def record_of(model: Model) -> Record:
    """What a file stores of a model."""
    return STORED[key_of(model)].load_record()


def children_of(model: Model) -> list[Model]:
    """The models of which it is made; none of a plain one."""
    attribute = record_of(model).children
    return list(getattr(model, attribute)) if attribute else []


def learner_named(key: Json) -> Learner:
    """The row of an id read from a file."""
    check(TEXT, key, "estimator")
    if key not in STORED:
        raise ModelFileError(
            f"it holds the estimator {brief(key)}, and this version knows {', '.join(STORED)}. "
            "A newer certifit may read it."
        )
    return STORED[key]


# Dump


def dump(model: Model, level: int = 0) -> tuple[Metadata, Arrays]:
    """Metadata and arrays of a fitted model. level: how many models it is inside of."""
    refuse_deep(level)
    key = key_of(model)
    learner = STORED[key]
    record = learner.load_record()
    if (record.children or "certificate_") not in vars(model):
        raise ModelFileError(f"This {learner.name} is not fitted. Call fit, then save.")
    maps, arrays = dump_maps(model, "basis" in learner.others) if has_maps(learner) else ({}, {})
    try:
        metadata = maps | _dump_fields(record.fields, model)
        metadata |= {"estimator": key, "parameters": _dump_parameters(learner, record, model)}
        if record.has_labels:
            metadata["labels"], labels = dump_labels(model.classes_)
            arrays |= labels
        if record.children:
            metadata["children"], nested = fold([*_dump_children(model, record.children, level)])
            arrays |= nested
        specs = _arrays_in(record, metadata)
        stored = {name: _dump_array(spec, model) for name, spec in specs.items()}
        return metadata, arrays | {name: array for name, array in stored.items() if array is not None}
    except ModelFileError:
        raise
    except (TypeError, ValueError) as error:  # what a model has, or was changed to, a file cannot hold
        raise ModelFileError(str(error)) from None


def _dump_children(model: Model, attribute: str, level: int) -> Iterator[tuple[Metadata, Arrays]]:
    for place, child in enumerate(getattr(model, attribute)):
        try:
            yield dump(child, level + 1)
        except ModelFileError as error:
            raise ModelFileError(f"{attribute}[{place}] cannot be saved. {error}") from None


def has_maps(learner: Learner) -> bool:
    """Whether a model reads rows itself, through an encoder or a basis; a model of models leaves that to them."""
    return "encoder" in learner.others


def settings(model: Model) -> Metadata:
    """Parameters that are objects or arrays, in a form that compares."""
    try:
        return {name: part.asked(model) for name, part in record_of(model).settings.items()}
    except (TypeError, ValueError) as error:  # changed after the fit: the model says what is legal
        raise ModelFileError(str(error)) from None


def _dump_parameters(learner: Learner, record: Record, model: Model) -> Metadata:
    late = _late(learner, record)
    single = {name: plain(getattr(model, name)) for name in learner.params if name not in late}
    switches = {
        name: plain(getattr(model, name)) for name in late if getattr(model, name) != _default(learner.params.get(name))
    }
    return {**single, **switches, **_dump_fields(record.named, model)}


def _dump_fields(fields: Fields, model: Model) -> Metadata:
    values = {key: _dump_value(item, model) for key, item in fields.items()}
    return {key: value for key, value in values.items() if value is not None or not _is_left_out(fields[key])}


def _is_left_out(item: Field | Maybe | Fields) -> bool:
    return isinstance(item, Field) and item.is_left_out


def _dump_value(item: Field | Maybe | Fields, model: Model) -> Json:
    if isinstance(item, Field):
        return _cast(item.spec, item.get(model) if item.get else _at(model, item.at))
    if isinstance(item, Maybe):
        return None if _at(model, item.at) is None else _dump_fields(item.fields, model)
    return _dump_fields(item, model)


def _cast(spec: Spec, value: Json) -> Json:
    if value is None or isinstance(spec, Mapping):
        return value
    if isinstance(spec, OrNull):
        return _cast(spec.spec, value)
    return value if spec.cast is None else spec.cast(value)


def _at(model: Model, path: str) -> Json:
    """The attribute of a path such as "data_.n_rows", whose second part may be a key."""
    value = model
    for name in path.split("."):
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value


def _dump_array(spec: Array, model: Model) -> NDArray[np.generic] | None:
    value = spec.get(model) if spec.get else _at(model, spec.at)
    return value if value is None or isinstance(value, np.ndarray) else np.asarray(value, dtype=spec.dtype)


# Check


def check_model(metadata: Metadata, head: Mapping[str, Spec]) -> None:
    """Refuse metadata that is not that of a model in the table; arrays are not looked at. head: what else it says."""
    learner = learner_named(metadata.get("estimator"))
    record = learner.load_record()
    spec = {
        **head,
        "estimator": TEXT,
        "parameters": _parameters_spec(learner, record, metadata.get("parameters")),
        **_fields_spec(record.fields, metadata),
        **(maps_spec(metadata, "basis" in learner.others) if has_maps(learner) else {}),
        **({"labels": LABELS} if record.has_labels else {}),
        **({"children": CHILDREN} if record.children else {}),
    }
    check(spec, metadata, "metadata")
    if "certificate" in record.fields:
        refuse_any(tolerance_problems(metadata))


def _parameters_spec(learner: Learner, record: Record, stored: Json) -> dict[str, Spec]:
    """The legal parameters of a file that has these."""
    has, late = stored if isinstance(stored, dict) else {}, _late(learner, record)
    single = {name: stored_spec(param) for name, param in learner.params.items() if name not in late}
    switched = {name: _switched(learner.params.get(name)) for name in late if name in has}
    return {**single, **_fields_spec(record.named, has), **switched}


def _late(learner: Learner, record: Record) -> tuple[str, ...]:
    """Parameters that a file has only where they are not the default: files of versions without them stay legal."""
    return (*record.switches, *(name for name, param in learner.params.items() if param.is_left_out))


def _default(param: Param | None) -> Json:
    return False if param is None else param.default


def _switched(param: Param | None) -> Spec:
    """What a file may say of a parameter that it has only where it is not the default."""
    if param is None:
        return SWITCHED_ON
    return Check(
        f"{param.legal}, and not the default",
        lambda value: type(value) in (bool, int, float, str) and param.is_legal(value) and value != param.default,
    )


def _fields_spec(fields: Fields, stored: Json) -> dict[str, Spec]:
    """The legal keys and values of a file that has these."""
    has = stored if isinstance(stored, dict) else {}
    return {key: _spec(item, has.get(key)) for key, item in fields.items() if key in has or not _is_left_out(item)}


def _spec(item: Field | Maybe | Fields, stored: Json) -> Spec:
    if isinstance(item, Field):
        return item.spec
    return OrNull(_fields_spec(item.fields, stored)) if isinstance(item, Maybe) else _fields_spec(item, stored)


# Read


def read(metadata: Metadata, arrays: Arrays, level: int = 0) -> Parts:
    """The parts of checked metadata and arrays; what does not fit together is refused. level: as of `dump`."""
    learner = STORED[metadata["estimator"]]
    record = learner.load_record()
    children: tuple[Parts, ...] = ()
    if record.children:
        children = _read_children(metadata["children"], arrays, level + 1)
        arrays = {name: array for name, array in arrays.items() if not is_nested(name)}
    opened = open_maps(metadata, arrays) if has_maps(learner) else no_maps(arrays)
    sizes = {"d": opened.d, "p": opened.p, "k": opened.p + metadata["parameters"].get("fit_intercept", False)}
    specs = {**_arrays_in(record, metadata), **opened.specs}
    if record.has_labels:
        specs |= label_arrays(metadata["labels"])
        sizes["K"] = metadata["labels"]["count"]
    for size in record.sizes:
        sizes |= size(metadata)
    check_arrays(specs, sizes, opened.rest, metadata)
    labels = build_labels(metadata["labels"], opened.rest) if record.has_labels else None
    try:
        maps = close_maps(opened, metadata)
        content = Content(metadata, opened.rest, maps.columns, labels, tuple(child.content for child in children))
        attributes = _attributes(record, content)
        for problems in (problems for check in record.checks for problems in check(content)):
            refuse_any(problems)
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    return Parts(learner, record, content, maps, attributes, children)


def _read_children(children: Metadata, arrays: Arrays, level: int) -> tuple[Parts, ...]:
    """The models inside, checked one after the other."""
    refuse_deep(level)
    parts: list[Parts] = []
    n_models = n_bytes = 0
    for metadata, child_arrays in unfold(children, {name: array for name, array in arrays.items() if is_nested(name)}):
        check_model(metadata, {})
        parts.append(read(metadata, child_arrays, level))
        n_models, n_bytes = n_models + parts[-1].n_models, n_bytes + parts[-1].n_bytes
        refuse_many(n_models, n_bytes)
    return tuple(parts)


def _arrays_in(record: Record, metadata: Metadata) -> dict[str, Array]:
    """The arrays that metadata announce."""
    return {name: spec for name, spec in record.arrays.items() if spec.when is None or spec.when(metadata)}


def _attributes(record: Record, content: Content) -> dict[str, object]:
    """The attributes that fields and arrays hold, with the objects that are made of them."""
    values: Metadata = {}
    _collect(record.fields, content.metadata, values)
    for name, spec in record.arrays.items():
        if spec.at and name in content.arrays:
            array = content.arrays[name]
            _put(values, spec.at, tuple(array.tolist()) if spec.is_tuple else array)
    for name, part in record.objects.items():
        if values.get(name) is not None:
            arguments = {key: tuple(item) if isinstance(item, list) else item for key, item in values[name].items()}
            values[name] = _load(part.place)(**arguments | dict(part.derived(content) if part.derived else {}))
    return values


def _collect(fields: Fields, stored: Metadata, values: Metadata) -> None:
    for key, item in fields.items():
        if isinstance(item, Field):
            if item.at and key in stored:
                _put(values, item.at, stored[key])
        elif isinstance(item, Maybe) and stored[key] is None:
            values[item.at] = None
        else:
            _collect(item.fields if isinstance(item, Maybe) else item, stored[key], values)


def _put(values: Metadata, path: str, value: object) -> None:
    name, _, key = path.partition(".")
    if key:
        values.setdefault(name, {})[key] = value
    else:
        values[name] = value


def _load(place: str) -> Model:
    module, _, name = place.partition(":")
    return getattr(import_module(f"certifit.{module}"), name)


# Build


def build(parts: Parts) -> Model:
    """The fitted model of what `read` accepted."""
    content, record = parts.content, parts.record
    maps = {"basis": parts.maps.basis, "encoder": parts.maps.encoder}
    objects = {name: maps[name] for name in maps if name in parts.learner.others}
    settings = {name: part.given(content) for name, part in record.settings.items()}
    children = [build(child) for child in parts.children]
    if children and "estimator" in parts.learner.others:
        from sklearn.base import clone

        objects["estimator"] = clone(children[0])
    model = parts.learner.load()(**content.parameters, **settings, **objects)
    if children:
        setattr(model, record.children, children)
    if has_maps(parts.learner):
        set_maps(model, content.metadata, parts.maps)
    if record.has_labels:
        model.classes_ = content.labels
    derived = {name: derive(content) for name, derive in record.derived.items()}
    for name, value in {**parts.attributes, **derived}.items():
        setattr(model, name, value)
    if "history_" not in vars(model) and not record.children:
        model.history_ = [closed_form_row(float("nan"))]
    if record.finish:
        getattr(model, record.finish)()
    return model
