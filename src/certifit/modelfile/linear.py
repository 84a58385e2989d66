"""The linear family in a file: what its models store, and how they come back.

    d   features    p   columns of the fit (see `maps`)
    k   p + 1 with an intercept, else p
    q   directions in which the coefficients are not determined
    m   iterations

A number is stored once. What follows from others (names of columns, estimates of the inference, the rank in
the certificate) is derived on load, so a file cannot contradict itself. Seconds of the history are not
stored: the same fit gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit.certificates.certificate import Certificate
from certifit.modelfile.agreement import NEAR, SAME, agree, check_alpha, check_inverse
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Family, Metadata, Parts, summed_size
from certifit.modelfile.maps import Opened, close_maps, dump_maps, maps_spec, open_maps, set_maps
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
    dump_literal,
    refuse_any,
    with_literal,
)
from certifit.modelfile.sparse import (
    build_penalty,
    check_penalty,
    describe_penalty,
    dump_penalty,
    penalty_arrays,
    settings,
)

if TYPE_CHECKING:
    from certifit.certificates.inference import Inference

CERTIFICATE: Mapping[str, Spec] = {
    "claim": TEXT,
    "dependent": TEXTS,
    "has_digits": FLAG,
    "rounding": MAGNITUDE,
    "theorem": TEXT,
    "tolerance": NUMBER_FROM_0,
    "value": MAGNITUDE,
}
FITTED: Mapping[str, Spec] = {
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE, "target_mean": NUMBER, "target_sd": MAGNITUDE},
    "inference": OrNull({"exponent": INTEGER, "rss": NUMBER_FROM_0, "tss": NUMBER_FROM_0}),
    "n_directions": OrNull(COUNT),  # null: the null space was too large to keep
    "n_iterations": COUNT,
    "solution": {"alpha": NUMBER_FROM_0, "condition": MAGNITUDE, "intercept": NUMBER, "rank": COUNT},
    "target": TEXT,
}
HISTORY = ("objective", "gap", "step")
LARGEST_EXPONENT = 1100
MOST_DIGITS = 15.0
FEWEST_DIGITS = 10.0  # of every coefficient, where the objective has enough to be compared


def fitted(metadata: Metadata) -> Mapping[str, Spec]:
    """What the metadata of a fitted model says."""
    return {**FITTED, "certificate": with_literal(CERTIFICATE, metadata), **maps_spec(metadata)}


def dump(model: Any) -> tuple[Metadata, Arrays]:
    """Metadata (the keys of `fitted`) and arrays of a fitted model."""
    maps, arrays = dump_maps(model)
    penalty, strengths = dump_penalty(model)
    arrays |= strengths
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
    metadata = {
        **maps,
        "certificate": {
            **{key: getattr(certificate, key) for key in ("claim", "theorem")},
            **{key: float(getattr(certificate, key)) for key in ("rounding", "tolerance", "value")},
            "dependent": list(certificate.dependent),
            "has_digits": bool(certificate.digits),
            **dump_literal(certificate.literal),
        },
        "data": {
            "n_rows": int(model.data_["n_rows"]),
            **{key: float(model.data_[key]) for key in ("sum_weight", "target_mean", "target_sd")},
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
    parts = {"penalty": penalty, "robust": dump_robust(model)}
    return metadata | {key: record for key, record in parts.items() if record is not None}, arrays


def read(metadata: Metadata, arrays: Arrays) -> Parts:
    """The parts of checked metadata and arrays; what does not fit together is refused. extra: the inference."""
    opened = open_maps(metadata, arrays)
    _check_arrays(metadata, opened)
    _check_solution(metadata, opened.p)
    if "penalty" in metadata:
        _check_sparse(metadata, arrays)
    if "robust" in metadata:
        check_robust(metadata)
    try:
        maps = close_maps(opened, metadata)
        coefficients = ("intercept",) * metadata["parameters"]["fit_intercept"] + tuple(maps.columns)
        certificate = _build_certificate(metadata, arrays, opened.p, coefficients)
        inference = _build_inference(metadata, arrays, coefficients)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    if inference is not None:
        _check_inference(metadata, opened.rest)
    return Parts(maps, certificate, inference)


def build(cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
    """The fitted model of what `read` accepted."""
    penalty = build_penalty(metadata.get("penalty"), arrays)
    model = cls(**metadata["parameters"], **penalty, basis=parts.maps.basis, encoder=parts.maps.encoder)
    set_maps(model, metadata, parts.maps)
    model.certificate_ = parts.certificate
    model.inference_ = parts.extra
    _set_solution(model, metadata, arrays)
    return model


def size(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[int, float]:
    """Rows and sum of weights of the data of a verify."""
    from certifit.data.gate import fit_source

    return summed_size(fit_source(model.reader(), X, y, sample_weight))


def _dump_inference(inference: Inference) -> Metadata:
    return {
        "exponent": int(inference.exponent),
        "rss": float(inference.rss),
        "tss": float(inference.tss),
    }


def _check_arrays(metadata: Metadata, opened: Opened) -> None:
    arrays, p = opened.rest, opened.p
    k = p + metadata["parameters"]["fit_intercept"]
    q = metadata["n_directions"]
    sizes = {"d": opened.d, "p": p, "k": k, "q": q or 0, "m": metadata["n_iterations"], "3": len(HISTORY)}
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
    specs |= {**opened.specs, **penalty_arrays(metadata.get("penalty"))}
    check_arrays(specs, sizes, arrays)
    digits = arrays.get("certificate.digits", np.zeros(0))
    if not ((digits >= 0) & (digits <= MOST_DIGITS)).all():
        raise ModelFileError(f"the array 'certificate.digits' must be in 0 to {MOST_DIGITS:g}.")


def _check_solution(metadata: Metadata, p: int) -> None:
    solution, inference = metadata["solution"], metadata["inference"]
    alpha, rank, q = solution["alpha"], solution["rank"], metadata["n_directions"]
    check_alpha(metadata["parameters"].get("alpha", 0), alpha, metadata["data"]["sum_weight"], np.ones(1))
    n_dependent = len(metadata["certificate"]["dependent"])
    problems = {
        f"rank {rank} of {p} columns": rank > p,
        f"{q} directions for rank {rank} of {p} columns": "penalty" not in metadata
        and q is not None
        and q != p - rank
        and (q or not alpha),
        f"{n_dependent} dependent columns for rank {rank} of {p}": n_dependent > p
        or (n_dependent > p - rank and not (alpha and rank < p)),  # a penalty gives some that repeat others a rank
        "an intercept without fit_intercept": not metadata["parameters"]["fit_intercept"]
        and solution["intercept"] != 0,
        "standard errors under a penalty": inference is not None and alpha > 0,
        "standard errors of redundant columns": inference is not None and rank < p,
        f"an exponent beyond {LARGEST_EXPONENT}": inference is not None
        and abs(inference["exponent"]) > LARGEST_EXPONENT,
    }
    refuse_any(problems)


def _check_inference(metadata: Metadata, arrays: Arrays) -> None:
    """Refuse sums of squares that are not those of the target and of the objective, or a matrix that is no inverse."""
    stored, data, has_intercept = metadata["inference"], metadata["data"], metadata["parameters"]["fit_intercept"]
    mass = data["sum_weight"] if has_intercept else None
    check_inverse(arrays["inference.inverse"], mass, metadata["solution"]["condition"])
    exponent, rss, tss = stored["exponent"], stored["rss"], stored["tss"]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        size = np.ldexp(np.array([data["target_sd"], 0.0 if has_intercept else data["target_mean"]]), -exponent)
        about = float(data["sum_weight"] * (size @ size))
        residual = float(2 * data["sum_weight"] * np.ldexp(arrays["history"][-1:, 0], -2 * exponent).sum())
    digits = arrays.get("certificate.digits", np.zeros(1))
    is_known = len(arrays["history"]) > 0 and residual < math.inf and bool((digits >= FEWEST_DIGITS).all())
    refuse_any(
        {
            "a sum of squares that is not that of the target": about < math.inf and not agree(tss, about, NEAR),
            "residuals of more than the target": rss > tss * (1 + SAME),
            "residuals that are not those of the objective": is_known and abs(rss - residual) > NEAR * rss + SAME * tss,
        }
    )


def _check_sparse(metadata: Metadata, arrays: Arrays) -> None:
    """What holds where the penalty sets weights to zero: the rank counts the others, and nothing is inferred."""
    rank, weights = metadata["solution"]["rank"], int(np.count_nonzero(arrays["coef"]))
    problems = {
        f"rank {rank} for {weights} coefficients that are not 0": rank != weights,
        "directions that are not determined": metadata["n_directions"] != 0,
        "standard errors under a penalty": metadata["inference"] is not None,
        "a history of another length": len(metadata["penalty"]["iterations"]) != metadata["n_iterations"],
    }
    refuse_any(problems)
    check_penalty(arrays)


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
        literal=stored.get("literal"),
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
    model.target_name_ = metadata["target"]
    model.data_ = dict(metadata["data"])
    model.history_ = [
        {"iteration": i, **dict(zip(HISTORY, row, strict=True)), "seconds": math.nan}
        for i, row in zip(_iterations(metadata), arrays["history"].tolist(), strict=True)
    ]


def describe(metadata: Metadata, arrays: Arrays, parts: Parts) -> dict[str, Any]:
    """What an inspection shows of a linear model."""
    solution = metadata["solution"]
    model = {"alpha": solution["alpha"], "has_standard_errors": metadata["inference"] is not None}
    if "robust" in metadata:
        model["scale"] = metadata["robust"]["scale"]
    if "penalty" in metadata:
        model |= describe_penalty(arrays)
    coefficients = {
        "count": len(arrays["coef"]),
        "n_nonzero": int(np.count_nonzero(arrays["coef"])),
        "intercept": solution["intercept"] if metadata["parameters"]["fit_intercept"] else None,
        "rank": solution["rank"],
        "condition": solution["condition"],
        "names": parts.maps.columns,
        "values": arrays["coef"].tolist(),
    }
    return {"model": model, "coefficients": coefficients}


LINEAR = Family(fitted, dump, read, build, settings, size, describe)
