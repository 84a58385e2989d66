"""The linear family in a file: what its models store, and how they come back.

    c   columns of the data  d   features: these columns, or the numbers that an encoder makes of a table
    p   columns of the fit: the features, or the functions of a basis
    k   p + 1 with an intercept, else p
    q   directions in which the coefficients are not determined
    m   iterations

A number is stored once. What follows from others (names of columns, estimates of the inference, the rank in
the certificate) is derived on load, so a file cannot contradict itself. Seconds of the history are not
stored: the same fit gives the same bytes. A model without an encoder has no entry for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certifit.certificates.certificate import Certificate
from certifit.modelfile.bases import BASIS, BASIS_ARRAYS, build_basis, dump_basis, n_columns
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.encoders import ENCODER, build_encoder, dump_encoder, encoder_arrays
from certifit.modelfile.robust import check_robust, dump_robust
from certifit.modelfile.schema import (
    COUNT,
    COUNT_FROM_1,
    FLAG,
    INTEGER,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    TEXT,
    TEXTS,
    Array,
    OrNull,
    Spec,
    check_arrays,
)
from certifit.modelfile.sparse import build_penalty, check_penalty, dump_penalty, penalty_arrays

if TYPE_CHECKING:
    from certifit.certificates.inference import Inference

FITTED: Mapping[str, Spec] = {
    "basis": OrNull(BASIS),
    "certificate": {
        "claim": TEXT,
        "dependent": TEXTS,
        "has_digits": FLAG,
        "rounding": MAGNITUDE,
        "theorem": TEXT,
        "tolerance": NUMBER_FROM_0,
        "value": MAGNITUDE,
    },
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE, "target_mean": NUMBER, "target_sd": MAGNITUDE},
    "features": {"count": COUNT_FROM_1, "names": OrNull(TEXTS)},
    "inference": OrNull({"exponent": INTEGER, "rss": NUMBER_FROM_0, "tss": NUMBER_FROM_0}),
    "n_directions": OrNull(COUNT),  # null: the null space was too large to keep
    "n_iterations": COUNT,
    "solution": {"alpha": NUMBER_FROM_0, "condition": MAGNITUDE, "intercept": NUMBER, "rank": COUNT},
    "target": TEXT,
}
HISTORY = ("objective", "gap", "step")
LARGEST_EXPONENT = 1100
MOST_DIGITS = 15.0

Arrays = dict[str, NDArray[Any]]
Metadata = dict[str, Any]


def fitted(metadata: Metadata) -> Mapping[str, Spec]:
    """What the metadata of a fitted model says."""
    return {**FITTED, "encoder": ENCODER} if "encoder" in metadata else FITTED


def dump(model: Any) -> tuple[Metadata, Arrays]:
    """Metadata (the keys of `fitted`) and arrays of a fitted model."""
    basis, arrays = dump_basis(model.basis_)
    encoder, own = dump_encoder(model.encoder, model.encoder_)
    penalty, strengths = dump_penalty(model)
    arrays |= own | strengths
    certificate, inference = model.certificate_, model.inference_
    arrays["coef"] = model.coef_
    arrays["null_intercept"] = model.null_intercept_
    if model.null_space_ is not None:
        arrays["null_space"] = model.null_space_
    if certificate.digits:
        arrays["certificate.digits"] = np.array(certificate.digits, dtype=np.float64)
    if inference is not None:
        arrays["inference.inverse"] = inference.inverse
    history = [[float(row[key]) for key in HISTORY] for row in model.history_]
    arrays["history"] = np.array(history, dtype=np.float64).reshape(len(history), len(HISTORY))
    names = getattr(model, "feature_names_in_", None)
    metadata = {
        "basis": basis,
        "certificate": {
            **{key: getattr(certificate, key) for key in ("claim", "theorem")},
            **{key: float(getattr(certificate, key)) for key in ("rounding", "tolerance", "value")},
            "dependent": list(certificate.dependent),
            "has_digits": bool(certificate.digits),
        },
        "data": {
            "n_rows": int(model.data_["n_rows"]),
            **{key: float(model.data_[key]) for key in ("sum_weight", "target_mean", "target_sd")},
        },
        "features": {
            "count": int(model.n_features_in_),
            "names": None if names is None else [str(name) for name in names],
        },
        "inference": None if inference is None else _dump_inference(inference),
        "n_directions": None if model.null_space_ is None else int(model.null_space_.shape[1]),
        "n_iterations": len(history),
        "solution": {
            "rank": int(model.rank_),
            **{key: float(getattr(model, f"{key}_")) for key in ("alpha", "condition", "intercept")},
        },
        "target": model.target_name_,
    }
    parts = {"encoder": encoder, "penalty": penalty, "robust": dump_robust(model)}
    return metadata | {key: record for key, record in parts.items() if record is not None}, arrays


@dataclass(frozen=True)
class Parts:
    """All that a file holds beside the model's class, checked: nothing in it contradicts the rest."""

    encoder: Any
    fitted_encoder: Any
    basis: Any
    fitted_basis: Any
    columns: list[str]
    certificate: Certificate
    inference: Inference | None


def read(metadata: Metadata, arrays: Arrays) -> Parts:
    """The parts of checked metadata and arrays; what does not fit together is refused."""
    names, c = metadata["features"]["names"], metadata["features"]["count"]
    _check_names(names, c)
    own = encoder_arrays(metadata.get("encoder"), arrays)
    encoder, fitted_encoder = build_encoder(metadata.get("encoder"), names, c, own)
    if fitted_encoder is not None:
        names = [str(name) for name in fitted_encoder.get_feature_names_out()]
    d = c if fitted_encoder is None else len(names)
    p = n_columns(metadata["basis"], d)
    _check_arrays(metadata, {name: array for name, array in arrays.items() if name not in own}, d, p)
    _check_solution(metadata, p)
    if "penalty" in metadata:
        _check_sparse(metadata, arrays)
    if "robust" in metadata:
        check_robust(metadata)
    try:
        basis, fitted_basis = build_basis(metadata["basis"], arrays, names)
        columns = _column_names(fitted_basis, names, d)
        coefficients = ("intercept",) * metadata["parameters"]["fit_intercept"] + tuple(columns)
        certificate = _build_certificate(metadata, arrays, p, coefficients)
        inference = _build_inference(metadata, arrays, coefficients)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    return Parts(encoder, fitted_encoder, basis, fitted_basis, columns, certificate, inference)


def build(cls: type[Any], metadata: Metadata, arrays: Arrays) -> Any:
    """The fitted model of checked metadata and arrays; what does not fit together is refused."""
    parts = read(metadata, arrays)
    penalty = build_penalty(metadata.get("penalty"), arrays)
    model = cls(**metadata["parameters"], **penalty, basis=parts.basis, encoder=parts.encoder)
    model.encoder_ = parts.fitted_encoder
    model.basis_ = parts.fitted_basis
    model.column_names_ = parts.columns
    model.certificate_ = parts.certificate
    model.inference_ = parts.inference
    _set_solution(model, metadata, arrays)
    return model


def _dump_inference(inference: Inference) -> Metadata:
    return {
        "exponent": int(inference.exponent),
        "rss": float(inference.rss),
        "tss": float(inference.tss),
    }


def _check_arrays(metadata: Metadata, arrays: Arrays, d: int, p: int) -> None:
    k = p + metadata["parameters"]["fit_intercept"]
    q = metadata["n_directions"]
    sizes = {"d": d, "p": p, "k": k, "q": q or 0, "m": metadata["n_iterations"], "3": len(HISTORY)}
    specs = {
        "coef": Array(("p",)),
        "history": Array(("m", "3"), may_be_infinite=True),
        "null_intercept": Array(("q",)),
    }
    if q is not None:
        specs["null_space"] = Array(("p", "q"))
    if metadata["certificate"]["has_digits"]:
        specs["certificate.digits"] = Array(("k",))
    if metadata["inference"] is not None:
        specs["inference.inverse"] = Array(("k", "k"))
    if metadata["basis"] is not None:
        specs |= BASIS_ARRAYS
    specs |= penalty_arrays(metadata.get("penalty"))
    check_arrays(specs, sizes, arrays)
    digits = arrays.get("certificate.digits", np.zeros(0))
    if not ((digits >= 0) & (digits <= MOST_DIGITS)).all():
        raise ModelFileError(f"the array 'certificate.digits' must be in 0 to {MOST_DIGITS:g}.")


def _check_solution(metadata: Metadata, p: int) -> None:
    solution, inference = metadata["solution"], metadata["inference"]
    alpha, rank, q = solution["alpha"], solution["rank"], metadata["n_directions"]
    asked = metadata["parameters"].get("alpha", 0)
    n_dependent = len(metadata["certificate"]["dependent"])
    problems = {
        f"rank {rank} of {p} columns": rank > p,
        f"alpha {asked!r} asked and {alpha!r} used": asked is not None and asked != alpha,
        f"{q} directions for rank {rank} of {p} columns": "penalty" not in metadata
        and q is not None
        and q != p - rank
        and (q or not alpha),
        f"{n_dependent} dependent columns for rank {rank} of {p}": n_dependent > p - rank,
        "an intercept without fit_intercept": not metadata["parameters"]["fit_intercept"]
        and solution["intercept"] != 0,
        "standard errors under a penalty": inference is not None and alpha > 0,
        "standard errors of redundant columns": inference is not None and rank < p,
        f"an exponent beyond {LARGEST_EXPONENT}": inference is not None
        and abs(inference["exponent"]) > LARGEST_EXPONENT,
    }
    for problem, found in problems.items():
        if found:
            raise ModelFileError(f"its content does not fit together: {problem}.")


def _check_sparse(metadata: Metadata, arrays: Arrays) -> None:
    """What holds where the penalty sets weights to zero: the rank counts the others, and nothing is inferred."""
    rank, weights = metadata["solution"]["rank"], int(np.count_nonzero(arrays["coef"]))
    problems = {
        f"rank {rank} for {weights} coefficients that are not 0": rank != weights,
        "directions that are not determined": metadata["n_directions"] != 0,
        "standard errors under a penalty": metadata["inference"] is not None,
        "a history of another length": len(metadata["penalty"]["iterations"]) != metadata["n_iterations"],
    }
    for problem, found in problems.items():
        if found:
            raise ModelFileError(f"its content does not fit together: {problem}.")
    check_penalty(arrays)


def _check_names(names: list[str] | None, c: int) -> None:
    if names is not None and len(names) != c:
        raise ModelFileError(f"it has {len(names)} names for {c} features.")


def _column_names(basis: Any, names: list[str] | None, d: int) -> list[str]:
    if basis is not None:
        return [str(name) for name in basis.get_feature_names_out()]
    return [f"x{j}" for j in range(d)] if names is None else list(names)


def _build_certificate(metadata: Metadata, arrays: Arrays, p: int, coefficients: tuple[str, ...]) -> Certificate:
    stored = metadata["certificate"]
    return Certificate(
        claim=stored["claim"],
        theorem=stored["theorem"],
        value=stored["value"],
        tolerance=stored["tolerance"],
        rounding=stored["rounding"],
        rank=metadata["solution"]["rank"],
        n_columns=p,
        condition=metadata["solution"]["condition"],
        dependent=tuple(stored["dependent"]),
        names=coefficients if stored["has_digits"] or metadata.keys() & {"penalty", "robust"} else (),
        digits=tuple(arrays["certificate.digits"].tolist()) if stored["has_digits"] else (),
    )


def _build_inference(metadata: Metadata, arrays: Arrays, coefficients: tuple[str, ...]) -> Inference | None:
    stored = metadata["inference"]
    if stored is None:
        return None
    from certifit.certificates.inference import Inference

    has_intercept = metadata["parameters"]["fit_intercept"]
    first = [metadata["solution"]["intercept"]] * has_intercept
    return Inference(
        names=coefficients,
        estimate=np.concatenate([first, arrays["coef"]]),
        inverse=arrays["inference.inverse"],
        rss=stored["rss"],
        tss=stored["tss"],
        exponent=stored["exponent"],
        n_obs=metadata["data"]["sum_weight"],
        has_intercept=has_intercept,
    )


def _iterations(metadata: Metadata) -> list[int]:
    """The number of every row of the history: 1, 2, ... unless told."""
    counted = list(range(1, metadata["n_iterations"] + 1))
    told: list[int] = metadata.get("penalty", {}).get("iterations", counted)
    return told


def _set_solution(model: Any, metadata: Metadata, arrays: Arrays) -> None:
    for key, value in metadata["solution"].items():
        setattr(model, f"{key}_", value)
    if "robust" in metadata:
        model.scale_, model.n_iter_ = metadata["robust"]["scale"], metadata["n_iterations"]
    model.coef_ = arrays["coef"]
    model.null_space_ = arrays.get("null_space")
    model.null_intercept_ = arrays["null_intercept"]
    model.n_features_in_ = metadata["features"]["count"]
    if metadata["features"]["names"] is not None:
        model.feature_names_in_ = np.array(metadata["features"]["names"], dtype=object)
    model.target_name_ = metadata["target"]
    model.data_ = dict(metadata["data"])
    model.history_ = [
        {"iteration": i, **dict(zip(HISTORY, row, strict=True)), "seconds": math.nan}
        for i, row in zip(_iterations(metadata), arrays["history"].tolist(), strict=True)
    ]
