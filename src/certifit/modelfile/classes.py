"""Classifiers with a closed form in a file: labels, priors, and the state of each kind (see `gaussian`, `counts`).

    K   classes    p   columns of the fit (see `maps`)
    class_count    weight of the rows of every class
    priors         those that were given, where they were

What is left out of the fit, its rank and its names in the certificate follow from `redundant`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.modelfile.agreement import agree
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Family, Metadata, Parts, summed_size
from certifit.modelfile.labels import LABELS, build_labels, dump_labels, label_arrays
from certifit.modelfile.maps import Opened, close_maps, dump_maps, maps_spec, open_maps, set_maps
from certifit.modelfile.schema import (
    COUNT_FROM_1,
    FLAG,
    MAGNITUDE,
    NUMBER_FROM_0,
    TEXT,
    Array,
    Spec,
    check_arrays,
    refuse_any,
)

CERTIFICATE: Mapping[str, Spec] = {
    "claim": TEXT,
    "condition": MAGNITUDE,
    "fault": TEXT,
    "kind": TEXT,
    "rounding": MAGNITUDE,
    "theorem": TEXT,
    "tolerance": NUMBER_FROM_0,
    "value": MAGNITUDE,
}
FITTED: Mapping[str, Spec] = {
    "certificate": CERTIFICATE,
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE},
    "has_priors": FLAG,
    "labels": LABELS,
    "target": TEXT,
}
MOST_OFF = 1e-8  # of given priors from a sum of 1, as the models allow


@dataclass(frozen=True)
class Kind:
    """What one kind of classifier has beside the others.

    priors: the name of the parameter. dump: its own metadata and arrays. arrays: those that checked metadata announce
    for K classes, with sizes. check: refuses what contradicts itself. place: sets the attributes of a model.
    """

    priors: str
    has_basis: bool
    dump: Callable[[Any], tuple[Metadata, Arrays]]
    arrays: Callable[[Metadata, Arrays, int], tuple[dict[str, Array], dict[str, int]]]
    check: Callable[[Metadata, Arrays], None]
    place: Callable[[Any, Metadata, Arrays], None]


def family(kind: Kind) -> Family:
    """The family of one kind of classifier."""

    def fitted(metadata: Metadata) -> Mapping[str, Spec]:
        return {**FITTED, **maps_spec(metadata, kind.has_basis)}

    def dump(model: Any) -> tuple[Metadata, Arrays]:
        return _dump(kind, model)

    def read(metadata: Metadata, arrays: Arrays) -> Parts:
        return _read(kind, metadata, arrays)

    def build(cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
        return _build(kind, cls, metadata, arrays, parts)

    def settings(model: Any) -> dict[str, Any]:
        return {kind.priors: _given_priors(kind, model)}

    return Family(fitted, dump, read, build, settings, size, describe)


def size(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[int, float]:
    """Rows and sum of weights of the data of a verify: of rows that have a class."""
    return summed_size(model.labelled(X, y, sample_weight), _size)


def describe(metadata: Metadata, arrays: Arrays, parts: Parts) -> dict[str, Any]:
    """What an inspection shows: labels with their priors and weights, and the columns that decide between them."""
    priors = arrays["state.priors"] if "state.priors" in arrays else np.exp(arrays["state.log_priors"])
    found = {
        "labels": parts.extra.tolist(),
        "dtype": metadata["labels"]["dtype"],
        "priors": priors.tolist(),
        "are_priors_given": metadata["has_priors"],
        "weights": arrays["class_count"].tolist(),
        "n_columns": parts.certificate.n_columns,
        "left_out": list(parts.certificate.dependent),
    }
    return {"classes": found | ({"epsilon": metadata["sums"]["epsilon"]} if "sums" in metadata else {})}


def redundant_places(arrays: Arrays, p: int) -> tuple[int, ...]:
    """Places of columns that are left out: sorted, each its own, some column left."""
    places = arrays.get("state.redundant", np.zeros(0, dtype=np.int64)).tolist()
    is_legal = all(low < high for low, high in zip([-1, *places], [*places, p], strict=True))
    refuse_any({f"redundant columns that are not places from 0 to {p - 1}, sorted": not is_legal})
    return tuple(places)


def check_priors(priors: Any, metadata: Metadata, arrays: Arrays) -> None:
    """Refuse priors that are none, or that are neither those given nor the classes' shares."""
    given, count = arrays.get("priors"), arrays["class_count"]
    with np.errstate(over="ignore"):
        total, sum_of_given = count.sum(), 1.0 if given is None else given.sum()
    refuse_any(
        {
            "a class of negative weight": (count < 0).any(),
            "weights of classes whose sum is 0 or infinite": not (0 < total < np.inf),
            "classes whose weights do not add up to that of the rows": not agree(total, metadata["data"]["sum_weight"]),
        }
    )
    wanted = count / total if given is None else given
    is_uniform = metadata["parameters"].get("fit_prior", True) is False and given is None
    wanted = np.full(len(count), 1.0 / len(count)) if is_uniform else wanted
    refuse_any(
        {
            "given priors that are negative or do not add up to 1": given is not None
            and not ((given >= 0).all() and abs(sum_of_given - 1) <= MOST_OFF),
            "priors that are not those given, or the classes' shares": not agree(priors, wanted),
        }
    )


def _dump(kind: Kind, model: Any) -> tuple[Metadata, Arrays]:
    maps, arrays = dump_maps(model, kind.has_basis)
    labels, names = dump_labels(model.classes_)
    own, state = kind.dump(model)
    given = _given_priors(kind, model)
    certificate = model.certificate_
    arrays |= names | state | {"class_count": model.class_count_} | ({} if given is None else {"priors": given})
    metadata = {
        **maps,
        **own,
        "certificate": {
            **{key: str(getattr(certificate, key)) for key in ("claim", "fault", "kind", "theorem")},
            **{key: float(getattr(certificate, key)) for key in ("condition", "rounding", "tolerance", "value")},
        },
        "data": {"n_rows": int(model.data_["n_rows"]), "sum_weight": float(model.data_["sum_weight"])},
        "has_priors": given is not None,
        "labels": labels,
        "target": model.target_name_,
    }
    return metadata, arrays


def _given_priors(kind: Kind, model: Any) -> Any:
    given = getattr(model, kind.priors)
    try:
        return None if given is None else np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelFileError(f"{kind.priors} must be one number a class. Got {given!r:.60}.") from None


def _read(kind: Kind, metadata: Metadata, arrays: Arrays) -> Parts:
    """extra: the labels."""
    opened = open_maps(metadata, arrays)
    _check_arrays(kind, metadata, opened)
    labels = build_labels(metadata["labels"], opened.rest)
    kind.check(metadata, opened.rest)
    redundant = redundant_places(opened.rest, opened.p)
    stored = metadata["certificate"]
    refuse_any({"a fault and a proof": stored["fault"] and stored["value"] <= stored["tolerance"]})
    try:
        maps = close_maps(opened, metadata)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    from certifit.certificates.likelihood import LikelihoodCertificate

    certificate = LikelihoodCertificate(
        **stored,
        rank=opened.p - len(redundant),
        n_columns=opened.p,
        dependent=tuple(maps.columns[j] for j in redundant),
    )
    return Parts(maps, certificate, labels)


def _check_arrays(kind: Kind, metadata: Metadata, opened: Opened) -> None:
    n_classes = metadata["labels"]["count"]
    labels, letters = label_arrays(metadata["labels"], opened.rest)
    own, own_sizes = kind.arrays(metadata, opened.rest, n_classes)
    given = {"priors": Array(("K",))} if metadata["has_priors"] else {}
    specs = {"class_count": Array(("K",)), **given, **opened.specs, **labels, **own}
    sizes = {"K": n_classes, "d": opened.d, "p": opened.p, "1": 1, **letters, **own_sizes}
    check_arrays(specs, sizes, opened.rest)


def _build(kind: Kind, cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
    basis = {"basis": parts.maps.basis} if kind.has_basis else {}
    priors = {kind.priors: arrays.get("priors")}
    model = cls(**metadata["parameters"], **basis, **priors, encoder=parts.maps.encoder)
    set_maps(model, metadata, parts.maps)
    model.certificate_, model.classes_ = parts.certificate, parts.extra
    model.class_count_, model.target_name_ = arrays["class_count"], metadata["target"]
    model.data_ = dict(metadata["data"])
    kind.place(model, metadata, arrays)
    return model


def _size(run: Any) -> tuple[int, float]:
    has_class = run.y >= 0
    n_rows = int(has_class.sum())
    return n_rows, float(n_rows if run.weight is None else run.weight[has_class].sum())
