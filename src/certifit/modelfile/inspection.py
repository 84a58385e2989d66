"""Inspect: what a model file holds, told by its reader alone. No class is built, no row is read, nothing is proven.

Every check of `load` is made, so what is shown is what a load would give. A linear model without a table or a
polynomial needs neither scikit-learn nor the models.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields

from certifit.modelfile import container
from certifit.modelfile.codec import Parts
from certifit.modelfile.disk import MAX_FILE, ModelFileError, Path, read_bytes, show
from certifit.modelfile.files import parts_of
from certifit.models.learner import Told
from certifit.models.record import Json, Metadata
from certifit.models.table import kind_of_proof


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
    """All but the file; the estimators of a model of models have read the same columns and rows."""
    metadata, shown = parts.content.metadata, parts.shown
    estimators = [_told(child) for child in parts.children]
    if estimators:
        first = estimators[0]
        rows = {**first, "data": {key: first["data"][key] for key in ("n_rows", "sum_weight")}}
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
    certificate = parts.certificate
    keys = ("claim", "theorem", "value", "tolerance", "rounding")
    said = {key: getattr(certificate, key) for key in keys} | {"kind": kind_of_proof(parts.learner.name, certificate)}
    # Whoever writes a file can write any certificate: only `verify` proves one.
    return {**said, "holds": certificate.holds, "is_verified": False, "sentences": certificate.sentences()}


def _plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return "infinity" if isinstance(value, float) and math.isinf(value) else value
