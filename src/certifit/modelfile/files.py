"""Save and load: a model to its file and back, the same bits.

Inspect: what a model file holds, told by its reader alone. No class is built, no row is read, nothing is proven.

Every check of `load` is made, so what is shown is what a load would give. A linear model without a table or a
polynomial needs neither scikit-learn nor the models.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from copy import copy
from dataclasses import dataclass, fields
from numbers import Real

import numpy as np
from numpy.typing import NDArray

import certifit
from certifit.modelfile import codec, container
from certifit.modelfile.codec import Parts
from certifit.modelfile.container import MAX_FILE, ModelFileError, Path, read_bytes, show, write_bytes
from certifit.modelfile.encoders import plain_parameters
from certifit.modelfile.schema import HELD_OUT, brief, check, plain
from certifit.models.learner import Told
from certifit.models.record import INTEGER, VERSION, Arrays, Json, Metadata, Model
from certifit.models.table import kind_of_proof

ADVICE = {"inference_": "Fit again, or set inference_ = None to save it without standard errors."}
FORMAT = 1  # raised when a file of an older certifit can no longer say all that a model is
NESTED_FORMAT = 2  # of models that are made of models

PASSING = frozenset(
    {"seconds", "norm", "dual", "gradient_norm", "step_size"}
    | {f"{place}{when}" for place in ("first", "second") for when in ("", "_before", "_after")}  # pairs of SMO
)  # of a history, that a file does not keep


def save(model: Model, path: Path) -> None:
    """Write a fitted model to a file, whole or not at all. The file holds no code, and rows only of models of kernels.

    >>> import tempfile
    >>> import certifit as cf
    >>> model = cf.LinearRegression().fit([[1.0], [2.0], [4.0]], [2.0, 3.0, 7.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cf.save(model, f"{folder}/line.certifit")
    ...     again = cf.load(f"{folder}/line.certifit")
    >>> bool(again.predict([[3.0]]) == model.predict([[3.0]]))
    True
    """
    write_bytes(path, to_bytes(model))


def load(path: Path, *, max_bytes: int = MAX_FILE) -> Model:
    """The fitted model of a file that `save` wrote; its predictions are the same bits.

    The file is read as data: nothing in it is run, and its class comes from a closed list. What is damaged,
    incomplete or not a model is a ModelFileError. A sound file may still be a forged one: `verify` tells
    whether the model is the best fit to the data.
    """
    data = read_bytes(path, max_bytes)
    try:
        return from_bytes(data)
    except ModelFileError as error:
        raise ModelFileError(f"{show(path)} is not a sound model file: {error}") from None


def to_bytes(model: Model) -> bytes:
    """The bytes of a model file. They are read back and compared with the model before anybody gets them."""
    metadata, arrays = codec.dump(model)
    metadata |= {"format": _format_of(metadata), "library": certifit.__version__}
    metadata |= {key: rule for key, rule in model.data_.items() if key == "held_out"}
    try:
        check_metadata(metadata)
        data = container.to_bytes(metadata, arrays)
        again = from_bytes(data)
    except ModelFileError as error:
        raise ModelFileError(f"This {type(model).__name__} cannot be saved: {error}") from None
    _refuse_difference(model, again)
    return data


def from_bytes(data: bytes) -> Model:
    """The model of the bytes of a model file."""
    parts = parts_of(*container.from_bytes(data))
    model = codec.build(parts)
    model.data_ |= {key: rule for key, rule in parts.content.metadata.items() if key == "held_out"}
    return model


def parts_of(metadata: Metadata, arrays: Arrays) -> codec.Parts:
    """What a file holds, checked."""
    check_metadata(metadata)
    return codec.read(metadata, arrays)


def check_metadata(metadata: Metadata) -> None:
    """Refuse metadata that is not that of an estimator in the table; its arrays are not looked at."""
    _check_format(metadata.get("format"), _format_of(metadata))
    aside = {"held_out": HELD_OUT} if "held_out" in metadata else {}
    codec.check_model(metadata, {"format": INTEGER, "library": VERSION, **aside})


def _format_of(metadata: Metadata) -> int:
    return NESTED_FORMAT if "children" in metadata else FORMAT


def _check_format(number: Json, legal: int) -> None:
    check(INTEGER, number, "format")
    if number != legal:
        advice = "Use a newer certifit." if number > NESTED_FORMAT else "Fit and save the model again."
        raise ModelFileError(
            f"it has format {number}, and certifit {certifit.__version__} reads such a model in format {legal}. "
            f"{advice}"
        )


def _settings(model: Model) -> Metadata:
    """All parameters, those of the basis under their own names."""
    if children := codec.children_of(model):
        return _composite_settings(model, children[0])
    parameters = model.get_params()
    single = {name: plain(parameters[name]) for name in parameters if not name.startswith("encoder")}
    single.pop("basis", None)
    from certifit.maps import encoder_of

    encoder = encoder_of(model.encoder)
    asked = plain_parameters(encoder)
    if (
        asked is not None
        and encoder is not None
        and encoder.levels == "auto"
        and getattr(model.encoder_, "levels", "") == "codes"
    ):
        asked["levels"] = "codes"  # what "auto" became
    return single | {"encoder": asked} | codec.settings(model)


def _composite_settings(model: Model, child: Model) -> Metadata:
    """All parameters of a model of models; those of its estimator as a fitted one has them."""
    parameters = {name: plain(value) for name, value in model.get_params(deep=False).items()}
    prototype = parameters.pop("estimator", None)
    if prototype is None:
        return parameters
    if type(prototype) is not type(child):
        raise ModelFileError(
            f"The estimator of this {type(model).__name__} is not that of its fit. Fit again, then save."
        )
    asked = copy(child).set_params(**prototype.get_params(deep=False))
    return parameters | {"estimator": _settings(asked)}


def _refuse_difference(model: Model, again: Model) -> None:
    """Refuse a model that would come back as another one."""
    kind = type(model).__name__
    asked = _settings(model)
    if not _same(asked, _settings(again)):
        raise ModelFileError(f"The parameters of this {kind} are not those of its fit. Fit again, then save.")
    names = {name for m in (model, again) for name in vars(m) if not name.startswith("_")}
    for children in zip(codec.children_of(model), codec.children_of(again), strict=True):
        _refuse_difference(*children)
    for name in sorted(names - asked.keys() - {"basis", codec.record_of(model).children}):
        if name not in vars(again):
            raise ModelFileError(f"A model file has no place for the attribute {brief(name)}. Delete it, then save.")
        if name not in vars(model) or not _same(vars(model)[name], vars(again)[name]):
            raise ModelFileError(
                f"{name} of this {kind} is not what its fit left, or does not belong to the rest. "
                + ADVICE.get(name, "Fit again, then save.")
            )


REAL = (float, Real)  # the class of nearly all numbers first: to ask the other one takes longer


def _same(a: Json, b: Json) -> bool:
    """Equal to the bit. What a file does not keep of the rows of a history is not compared."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(_raw(a), _raw(b))
    if isinstance(a, str) or (isinstance(a, REAL) and isinstance(b, REAL)):
        return a == b if isinstance(a, str) else float(a).hex() == float(b).hex()
    if isinstance(a, list | tuple | np.ndarray) and isinstance(b, list | tuple | np.ndarray):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is not type(b):
        return False
    a, b = _parts(a), _parts(b)
    if not isinstance(a, dict):
        return bool(a == b)
    passing = PASSING if "iteration" in a else frozenset()
    return a.keys() - passing == b.keys() - passing and all(_same(a[key], b[key]) for key in a.keys() - passing)


def _raw(array: NDArray[np.generic]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).view(np.uint8)


def _parts(value: Json) -> Json:
    """The fields of a record that count, the state of a map, and anything else as it is."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.compare}
    from certifit.maps import Polynomial, TableEncoder

    return dict(enumerate(value.to_state())) if isinstance(value, Polynomial | TableEncoder) else value


@dataclass(frozen=True)
class Inspection:
    """What a model file says, in plain Python types. See `to_dict` for JSON.

    A model has coefficients, classes, components or estimators that it is made of, whichever its kind has; the others
    are None. So is a target that there is not.
    """

    file: Metadata
    model: Metadata
    target: str | None
    features: Metadata
    encoder: Metadata | None
    coefficients: Metadata | None
    classes: Metadata | None
    components: Metadata | None
    certificate: Metadata
    data: Metadata
    estimators: list[Metadata] | None

    def to_dict(self) -> Metadata:
        """Plain JSON types; infinity, which JSON does not have, is the text 'infinity'."""
        plain: Metadata = _plain({field.name: getattr(self, field.name) for field in fields(self)})
        return plain


def inspect(path: Path, *, max_bytes: int = MAX_FILE) -> Inspection:
    """What the model file at a path holds; a ModelFileError for anything but a sound file.

    >>> import tempfile
    >>> import certifit as cf
    >>> from certifit.modelfile import inspect
    >>> model = cf.Ridge(alpha=1.0).fit([[1.0, 0.0], [2.0, 1.0], [4.0, 3.0]], [2.0, 3.0, 7.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cf.save(model, f"{folder}/m.certifit")
    ...     found = inspect(f"{folder}/m.certifit")
    >>> found.model["class"], found.coefficients["count"], found.data["n_rows"]
    ('Ridge', 2, 3)
    """
    data = read_bytes(path, max_bytes)
    try:
        parts = parts_of(*container.from_bytes(data))
    except ModelFileError as error:
        raise ModelFileError(f"{show(path)} is not a sound model file: {error}") from None
    return Inspection(file=_file(data, parts.content.metadata), **_told(parts))


def _told(parts: Parts) -> Metadata:
    """All but the file; the estimators of a model of models have read the same columns, and rows unless it says which.

    rows_kept of such a model: of the estimator that keeps most.
    """
    metadata, shown = parts.content.metadata, parts.shown
    estimators = [_told(child) for child in parts.children]
    if estimators:
        first = estimators[0]
        data = metadata["data"] if "data" in metadata else first["data"]
        rows = {**first, "data": {key: data[key] for key in ("n_rows", "sum_weight")}}
        kept = max(one["model"].get("rows_kept", 0) for one in estimators)
        shown = {**shown, "model": {**shown.get("model", {}), **({"rows_kept": kept} if kept else {})}}
    else:
        iterations = {key: metadata[key] for key in ("n_iterations",) if key in metadata}
        rows = {
            "features": _features(metadata),
            "encoder": _encoder(metadata, parts),
            "data": {**metadata["data"], **iterations},
        }
    return {
        "model": _model(parts) | shown.get("model", {}),
        "target": metadata.get("target"),
        **{part: rows[part] for part in ("features", "encoder", "data")},
        **{kind: shown.get(kind) for kind in ("coefficients", "classes", "components")},
        "certificate": _certificate(parts),
        "estimators": estimators or None,
    }


def _file(data: bytes, metadata: Metadata) -> Metadata:
    return {
        "n_bytes": len(data),
        "format": metadata["format"],
        "library": metadata["library"],
        "sha256": hashlib.sha256(data).hexdigest(),
        **container.digests(data),
    }


def _model(parts: Parts) -> Metadata:
    metadata = parts.content.metadata
    told: Metadata = {key: value for tell in parts.record.told for key, value in tell(metadata).items()}
    # A file leaves out newer parameters at their defaults.
    parameters = {name: param.default for name, param in parts.learner.params.items()} | metadata["parameters"]
    return {
        "class": parts.learner.name,
        "estimator": metadata["estimator"],
        "objective": parts.learner.objective(Told(parameters, **told)),
        "parameters": metadata["parameters"],
        "basis": metadata.get("basis"),
    }


def _features(metadata: Metadata) -> Metadata:
    return {"count": metadata["features"]["count"], "names": metadata["features"]["names"]}


def _encoder(metadata: Metadata, parts: Parts) -> Metadata | None:
    """How a table is read, and what the fit noted about its columns."""
    if parts.maps.fitted_encoder is None:
        return None
    state, _ = parts.maps.fitted_encoder.to_state()
    kinds = {column["name"]: column["kind"] for column in state["columns"]}
    return {"parameters": metadata["encoder"]["parameters"], "kinds": kinds, "notes": list(state["notes"])}


def _certificate(parts: Parts) -> Metadata:
    certificate, learner = parts.certificate, parts.learner
    said = {key: getattr(certificate, key) for key in ("claim", "theorem", "value", "tolerance", "rounding")}
    said["kind"] = kind_of_proof(learner.words, learner.exact, certificate)
    # Whoever writes a file can write any certificate: only `verify` proves one.
    return {**said, "holds": certificate.holds, "is_verified": False, "sentences": certificate.sentences()}


def _plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return "infinity" if isinstance(value, float) and math.isinf(value) else value
