"""The perceptron in a file: its weights, its mistakes, and the proof that it ended, or that it has no end.

p   columns of the fit (see `maps`)    k   p + 1 with an intercept, else p
m   epochs    r   rows of the proof    o   rows of an order that was given
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.modelfile.agreement import SAME, agree
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Family, Metadata, Parts, summed_size
from certifit.modelfile.labels import LABELS, build_labels, dump_labels, label_arrays
from certifit.modelfile.maps import Opened, close_maps, dump_maps, maps_spec, open_maps, set_maps
from certifit.modelfile.schema import (
    COUNT,
    COUNT_FROM_1,
    FLAG,
    MAGNITUDE,
    NUMBER_FROM_0,
    TEXT,
    Array,
    OrNull,
    Spec,
    check_arrays,
    one_of,
    refuse_any,
)

ORDERS = ("given", "shuffled", "numbers")
FITTED: Mapping[str, Spec] = {
    "certificate": {
        "bound": MAGNITUDE,
        "claim": TEXT,
        "fault": TEXT,
        "margin": NUMBER_FROM_0,
        "radius": MAGNITUDE,
        "rounding": MAGNITUDE,
        "theorem": TEXT,
        "tolerance": NUMBER_FROM_0,
        "value": MAGNITUDE,
        "was_seen_once": FLAG,
    },
    "cycle": OrNull({"first": COUNT, "last": COUNT}),
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE},
    "has_start": FLAG,
    "labels": LABELS,
    "n_epochs": COUNT_FROM_1,
    "n_order": COUNT,
    "n_proof": COUNT,
    "order": one_of(*ORDERS),
    "target": TEXT,
}
PLAIN = ("claim", "fault", "theorem")
NUMBERS = ("bound", "margin", "radius", "rounding", "tolerance", "value")


def fitted(metadata: Metadata) -> Mapping[str, Spec]:
    """What the metadata of a fitted perceptron says."""
    return {**FITTED, **maps_spec(metadata)}


def settings(model: Any) -> dict[str, Any]:
    """The parameters that a file has as arrays."""
    return {
        "start": None if model.start is None else np.asarray(model.start, dtype=np.float64),
        "order": model.order if isinstance(model.order, str) else np.asarray(model.order, dtype=np.int64),
    }


def dump(model: Any) -> tuple[Metadata, Arrays]:
    """Metadata (the keys of `fitted`) and arrays of a fitted perceptron."""
    maps, arrays = dump_maps(model)
    labels, names = dump_labels(model.classes_)
    given, proof = settings(model), model.certificate_
    arrays |= names | {
        "coef": np.asarray(model.coef_, dtype=np.float64),
        "intercept": np.asarray(model.intercept_, dtype=np.float64),
        "mistakes": np.array([int(row["mistakes"]) for row in model.history_], dtype=np.int64),
        "proof.rows": np.array(proof.rows, dtype=np.int64),
        "proof.multipliers": np.array(proof.multipliers, dtype=np.float64),
    }
    if given["start"] is not None:
        arrays["start"] = given["start"]
    if not isinstance(given["order"], str):
        arrays["order"] = given["order"]
    cycle = model.cycle_
    return {
        **maps,
        "certificate": {
            **{key: str(getattr(proof, key)) for key in PLAIN},
            **{key: float(getattr(proof, key)) for key in NUMBERS},
            "was_seen_once": bool(proof.was_seen_once),
        },
        "cycle": None if cycle is None else {"first": int(cycle[0]), "last": int(cycle[1])},
        "data": {"n_rows": int(model.data_["n_rows"]), "sum_weight": float(model.data_["sum_weight"])},
        "has_start": given["start"] is not None,
        "labels": labels,
        "n_epochs": len(arrays["mistakes"]),
        "n_order": len(arrays.get("order", ())),
        "n_proof": len(proof.rows),
        "order": given["order"] if isinstance(given["order"], str) else "numbers",
        "target": model.target_name_,
    }, arrays


def read(metadata: Metadata, arrays: Arrays) -> Parts:
    """The parts of checked metadata and arrays. extra: the labels."""
    opened = open_maps(metadata, arrays)
    _check_arrays(metadata, opened)
    labels = build_labels(metadata["labels"], opened.rest)
    _check_content(metadata, opened.rest)
    if not metadata["certificate"]["fault"]:
        _check_bound(metadata, opened.rest)
    try:
        maps = close_maps(opened, metadata)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    from certifit.certificates.perceptron import PerceptronCertificate

    certificate = PerceptronCertificate(
        **metadata["certificate"],
        n_updates=_n_updates(opened.rest),
        rank=opened.p,
        n_columns=opened.p,
        condition=0.0,
        rows=tuple(opened.rest["proof.rows"].tolist()),
        multipliers=tuple(opened.rest["proof.multipliers"].tolist()),
        cycle=_cycle(metadata),
    )
    return Parts(maps, certificate, labels)


def _check_arrays(metadata: Metadata, opened: Opened) -> None:
    labels, letters = label_arrays(metadata["labels"], opened.rest)
    has_order = metadata["order"] == "numbers"
    refuse_any({f"{metadata['n_order']} rows of an order": has_order != (metadata["n_order"] > 0)})
    specs = {
        "coef": Array(("1", "p")),
        "intercept": Array(("1",)),
        "mistakes": Array(("m",), np.int64),
        "proof.rows": Array(("r",), np.int64),
        "proof.multipliers": Array(("r",)),
        **({"start": Array(("k",))} if metadata["has_start"] else {}),
        **({"order": Array(("o",), np.int64)} if has_order else {}),
        **opened.specs,
        **labels,
    }
    sizes = {
        "1": 1,
        "d": opened.d,
        "p": opened.p,
        "k": opened.p + metadata["parameters"]["fit_intercept"],
        "m": metadata["n_epochs"],
        "r": metadata["n_proof"],
        "o": metadata["n_order"],
        "K": metadata["labels"]["count"],
        **letters,
    }
    check_arrays(specs, sizes, opened.rest)


def _n_updates(arrays: Arrays) -> int:
    """A mistake is an update. Integers of Python: a forged sum may pass 64 bits."""
    return sum(arrays["mistakes"].tolist())


def _cycle(metadata: Metadata) -> tuple[int, ...]:
    cycle = metadata["cycle"]
    return () if cycle is None else (cycle["first"], cycle["last"])


def _check_content(metadata: Metadata, own: Arrays) -> None:
    stored, n_rows, n_epochs = metadata["certificate"], metadata["data"]["n_rows"], metadata["n_epochs"]
    bound, rows = stored["bound"], own["proof.rows"]
    cycle = metadata["cycle"] or {"first": 0, "last": n_epochs}
    share = math.inf if math.isinf(bound) else _n_updates(own) / bound if bound > 0 else 0.0
    refuse_any(
        {
            "a perceptron of other than two classes": metadata["labels"]["count"] != 2,
            "an intercept without fit_intercept": not metadata["parameters"]["fit_intercept"]
            and own["intercept"].any(),
            "weights of rows, which a perceptron does not take": metadata["data"]["sum_weight"] != n_rows,
            "a fault and a proof": stored["fault"] and stored["value"] <= stored["tolerance"],
            "neither a fault nor a proof": not stored["fault"] and not stored["value"] <= stored["tolerance"],
            "rows that prove a fault, and no fault": not stored["fault"] and len(rows),
            "rows seen once, and no fault": not stored["fault"] and stored["was_seen_once"],
            "negative mistakes": (own["mistakes"] < 0).any(),
            "a value that is not updates / bound": stored["value"] != share,
            "epochs of a cycle that do not follow each other": not cycle["first"] < cycle["last"] <= n_epochs,
            "row numbers that are not those of the data": (rows < 0).any() or (rows >= n_rows).any(),
            "multipliers that are not positive": not (own["proof.multipliers"] > 0).all(),
            "row numbers of an order that are negative": (own.get("order", np.zeros(1)) < 0).any(),
        }
    )


def _check_bound(metadata: Metadata, own: Arrays) -> None:
    """Refuse a proof whose bound is not that of its radius, margin, threshold, start and weights."""
    from certifit.certificates.perceptron import bound_on_updates

    stored, start = metadata["certificate"], own.get("start", np.zeros(own["coef"].size + 1))
    has_intercept = metadata["parameters"]["fit_intercept"]
    begin = start if has_intercept or "start" not in own else np.append(start, 0.0)
    end = np.append(own["coef"][0], own["intercept"])
    with np.errstate(over="ignore"):
        square = float(np.square(stored["radius"]))
        wanted = bound_on_updates(square, float(metadata["parameters"]["delta"]), stored["margin"], begin, end)
    refuse_any(
        {
            "a margin that is not above 0 and within the radius": not 0
            < stored["margin"]
            <= stored["radius"] * (1 + SAME),
            "a bound that is not that of its radius and margin": not agree(stored["bound"], wanted),
            "mistakes in the last epoch, and a proof that there are none": own["mistakes"][-1] != 0,
        }
    )


def build(cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
    """The fitted model of what `read` accepted."""
    order = arrays["order"] if metadata["order"] == "numbers" else metadata["order"]
    given = {"start": arrays.get("start"), "order": order, "basis": parts.maps.basis, "encoder": parts.maps.encoder}
    model = cls(**metadata["parameters"], **given)
    set_maps(model, metadata, parts.maps)
    model.certificate_, model.classes_ = parts.certificate, parts.extra
    model.coef_, model.intercept_, model.target_name_ = arrays["coef"], arrays["intercept"], metadata["target"]
    model.data_, model.n_updates_ = dict(metadata["data"]), _n_updates(arrays)
    model.cycle_ = _cycle(metadata) or None
    model.history_ = [
        {"iteration": i, "mistakes": mistakes, "seconds": math.nan}
        for i, mistakes in enumerate(arrays["mistakes"].tolist(), start=1)
    ]
    return model


def _size(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[int, float]:
    return summed_size(model.labelled(X, y, sample_weight))


def describe(metadata: Metadata, arrays: Arrays, parts: Parts) -> dict[str, Any]:
    """What an inspection shows of a perceptron."""
    weights = arrays["coef"][0]
    return {
        "model": {"n_updates": _n_updates(arrays), "has_standard_errors": False},
        "classes": {"labels": parts.extra.tolist(), "dtype": metadata["labels"]["dtype"]},
        "coefficients": {
            "count": len(weights),
            "n_nonzero": int(np.count_nonzero(weights)),
            "intercept": float(arrays["intercept"][0]) if metadata["parameters"]["fit_intercept"] else None,
            "rank": parts.certificate.rank,
            "condition": None,
            "names": parts.maps.columns,
            "values": weights.tolist(),
        },
    }


PERCEPTRON = Family(fitted, dump, read, build, settings, _size, describe)
