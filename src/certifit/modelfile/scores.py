"""Models of scores in a file: logistic and softmax regression and generalised linear models.

p   columns of the fit (see `maps`)    C   rows of weights: a class each with softmax, else 1
K   classes                            k   p + 1 with an intercept, else p
m   rows of the history

coef, intercept                        C x p and C numbers
history, history.iterations            m x (objective, gap, step), and the number of each, from 0 on
class_weight                           a factor a class, where class_weight was given or "balanced"
penalty.factors, .lower, .upper        see `sparse`
inference.inverse                      k x k, where there are standard errors (see `laws`)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.modelfile.agreement import SAME, agree, check_alpha
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Family, Metadata, Parts, summed_size
from certifit.modelfile.labels import LABELS, build_labels, dump_labels, label_arrays
from certifit.modelfile.laws import (
    INFERENCE,
    LAW,
    build_inference,
    build_law,
    check_inference,
    dump_inference,
    dump_law,
    read_law,
)
from certifit.modelfile.maps import Opened, close_maps, dump_maps, maps_spec, open_maps, set_maps
from certifit.modelfile.schema import (
    COUNT,
    COUNT_FROM_1,
    FLAG,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    SETTING_FROM_0,
    TEXT,
    TEXTS,
    Array,
    Check,
    OrNull,
    Spec,
    brief,
    check_arrays,
    dump_literal,
    one_of,
    refuse_any,
    with_literal,
)
from certifit.modelfile.sparse import build_penalty, check_penalty, describe_penalty, dump_penalty, penalty_arrays
from certifit.modelfile.sparse import settings as penalty_settings

SOLVERS = (
    "auto",
    "gradient-descent",
    "conjugate-gradient",
    "bfgs",
    "lbfgs",
    "newton",
    "sgd",
    "mini-batch",
    "averaged-sgd",
    "coordinate-descent",
)
SHARE_FROM_0 = Check(
    "a number from 0 to 1", lambda value: SETTING_FROM_0.accepts(value) and not isinstance(value, bool) and value <= 1
)
WEIGHTED: Mapping[str, Spec] = {"class_weight": OrNull(one_of("balanced", "given"))}
CERTIFICATE: Mapping[str, Spec] = {
    "claim": TEXT,
    "condition": MAGNITUDE,
    "dependent": TEXTS,
    "fault": TEXT,
    "is_local": FLAG,
    "rank": COUNT,
    "rounding": MAGNITUDE,
    "theorem": TEXT,
    "tolerance": NUMBER_FROM_0,
    "value": MAGNITUDE,
}
FITTED: Mapping[str, Spec] = {
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE, "target_mean": NUMBER, "target_sd": MAGNITUDE},
    "inference": OrNull(INFERENCE),
    "n_iterations": COUNT_FROM_1,
    "offset": OrNull(TEXT),  # what it was called; null: there was none
    "penalty": {"has_bounds": FLAG, "has_factors": FLAG},
    "solution": {"alpha": NUMBER_FROM_0},
    "target": TEXT,
}
HISTORY = ("objective", "gap", "step")


@dataclass(frozen=True)
class Extra:
    """What models of scores have beside others: labels (None for a quantity), inference, and the family of a GLM."""

    labels: Any
    inference: Any
    law: Any


def family(has_classes: bool = False, has_law: bool = False) -> Family:
    """The family of models with or without classes, with or without a family of targets to choose."""

    def fitted(metadata: Metadata) -> Mapping[str, Spec]:
        own = {"labels": LABELS, **WEIGHTED} if has_classes else {"exposure": OrNull(TEXT)}
        proof = {"certificate": with_literal(CERTIFICATE, metadata)}
        return {**FITTED, **proof, **own, **({"law": LAW} if has_law else {}), **maps_spec(metadata)}

    def dump(model: Any) -> tuple[Metadata, Arrays]:
        metadata, arrays = _dump(model)
        own, more = _dump_classes(model) if has_classes else ({"exposure": model.exposure_name_}, {})
        law = {"law": dump_law(model)} if has_law else {}
        return metadata | own | law, arrays | more

    def settings(model: Any) -> dict[str, Any]:
        own = penalty_settings(model)
        if has_classes:
            own |= {"class_weight": _asked_weight(model)}
        return own | ({"family": dump_law(model), "link": None} if has_law else {})

    return Family(fitted, dump, _read, _build, settings, _size_of_classes if has_classes else _size, describe)


def _dump(model: Any) -> tuple[Metadata, Arrays]:
    _refuse_solver(model.solver)
    maps, arrays = dump_maps(model)
    penalty, strengths = dump_penalty(model)
    certificate, inference = model.certificate_, model.inference_
    history = [[float(row[key]) for key in HISTORY] for row in model.history_]
    arrays |= strengths | {
        "coef": np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)),
        "intercept": np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)),
        "history": np.array(history, dtype=np.float64).reshape(len(history), len(HISTORY)),
        "history.iterations": np.array([int(row["iteration"]) for row in model.history_], dtype=np.int64),
    }
    if inference is not None:
        arrays["inference.inverse"] = inference.inverse
    metadata = {
        **maps,
        "certificate": {
            **{key: str(getattr(certificate, key)) for key in ("claim", "fault", "theorem")},
            **{key: float(getattr(certificate, key)) for key in ("condition", "rounding", "tolerance", "value")},
            "dependent": list(certificate.dependent),
            "is_local": bool(certificate.is_local),
            "rank": int(certificate.rank),
            **dump_literal(certificate.literal),
        },
        "data": {
            "n_rows": int(model.data_["n_rows"]),
            **{key: float(model.data_[key]) for key in ("sum_weight", "target_mean", "target_sd")},
        },
        "inference": dump_inference(inference),
        "n_iterations": len(history),
        "offset": model.offset_name_,
        "penalty": {key: bool((penalty or {}).get(key)) for key in ("has_bounds", "has_factors")},
        "solution": {"alpha": float(model.alpha_)},
        "target": model.target_name_,
    }
    return metadata, arrays


def _refuse_solver(solver: Any) -> None:
    if isinstance(solver, str):
        return
    from certifit.solvers.table import name_of

    name = name_of(solver)
    raise ModelFileError(
        f"solver={brief(solver)} is an object, and a model file has solvers by name. The weights are found: "
        f"model.set_params(solver={(name if name in SOLVERS else 'auto')!r}), then save. "
        "A later fit of the loaded model takes the steps of that name."
    )


def _dump_classes(model: Any) -> tuple[Metadata, Arrays]:
    labels, arrays = dump_labels(model.classes_)
    given = model.class_weight
    if model.class_weight_ is not None:
        arrays["class_weight"] = model.class_weight_
    word = given if given is None or isinstance(given, str) else "given"
    return {"labels": labels, "class_weight": word}, arrays


def _asked_weight(model: Any) -> Any:
    """The parameter class_weight, a factor a class where factors are given."""
    given = model.class_weight
    if given is None or isinstance(given, str):
        return given
    try:
        return model._factors_of(np.ones(len(model.classes_)))
    except (TypeError, ValueError) as error:  # changed after the fit
        raise ModelFileError(str(error)) from None


def _read(metadata: Metadata, arrays: Arrays) -> Parts:
    """The parts of checked metadata and arrays."""
    opened = open_maps(metadata, arrays)
    _check_arrays(metadata, opened)
    labels = build_labels(metadata["labels"], opened.rest) if "labels" in metadata else None
    _check_content(metadata, opened.rest, opened.p, labels)
    _check_inference(metadata, opened.p)
    law = read_law(metadata)[0] if "law" in metadata else None
    from certifit.certificates.generalised import ScoreCertificate

    stored = dict(metadata["certificate"])
    dependent = tuple(stored.pop("dependent"))
    try:
        maps = close_maps(opened, metadata)
        names = ("intercept",) * metadata["parameters"]["fit_intercept"] + tuple(maps.columns)
        certificate = ScoreCertificate(**stored, n_columns=opened.p, dependent=dependent, names=names)
        inference = None if metadata["inference"] is None else build_inference(metadata, opened.rest, names)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    if inference is not None:
        check_inference(metadata, opened.rest, inference.family.name)
    return Parts(maps, certificate, Extra(labels, inference, law))


def _check_arrays(metadata: Metadata, opened: Opened) -> None:
    n_classes = metadata["labels"]["count"] if "labels" in metadata else 2
    sizes = {
        "d": opened.d,
        "p": opened.p,
        "k": opened.p + metadata["parameters"]["fit_intercept"],
        "C": 1 if n_classes == 2 else n_classes,
        "m": metadata["n_iterations"],
        "3": len(HISTORY),
    }
    specs = {
        "coef": Array(("C", "p")),
        "intercept": Array(("C",)),
        "history": Array(("m", "3"), may_be_infinite=True),
        "history.iterations": Array(("m",), np.int64),
        **({} if metadata["inference"] is None else {"inference.inverse": Array(("k", "k"))}),
        **opened.specs,
        **penalty_arrays(metadata["penalty"]),
    }
    if "labels" in metadata:
        labels, letters = label_arrays(metadata["labels"], opened.rest)
        weights = {} if metadata["class_weight"] is None else {"class_weight": Array(("K",))}
        specs, sizes = {**specs, **labels, **weights}, {**sizes, "K": n_classes, **letters}
    check_arrays(specs, sizes, opened.rest)


def _check_content(metadata: Metadata, arrays: Arrays, p: int, labels: Any) -> None:
    stored, iterations = metadata["certificate"], arrays["history.iterations"]
    problems = {
        "fewer than two classes": labels is not None and len(labels) < 2,
        f"rank {stored['rank']} of {p} columns": stored["rank"] > p,
        "more dependent columns than the rank leaves": len(stored["dependent"]) > p - stored["rank"],
        "an intercept without fit_intercept": not metadata["parameters"]["fit_intercept"] and arrays["intercept"].any(),
        "a fault and a proof": stored["fault"] and stored["value"] <= stored["tolerance"],
        "a class of negative weight": (arrays.get("class_weight", np.zeros(1)) < 0).any(),
        "iterations that do not follow each other": iterations[0] < 0 or (iterations[1:] <= iterations[:-1]).any(),
    }
    refuse_any(problems)
    factors = arrays.get("class_weight", np.ones(1))
    asked, data = metadata["parameters"]["alpha"], metadata["data"]
    check_alpha(asked, metadata["solution"]["alpha"], data["sum_weight"], factors)
    check_penalty(arrays)
    if labels is not None:
        _check_classes(metadata, factors, len(labels))


def _check_classes(metadata: Metadata, factors: Any, n_classes: int) -> None:
    """Refuse codes 0 to K - 1 of another spread than they can have, and factors that do not balance classes."""
    mean, spread = metadata["data"]["target_mean"], min(metadata["data"]["target_sd"], float(n_classes))
    with np.errstate(divide="ignore", over="ignore"):
        balance = float((1.0 / factors).sum())  # of W / (K W_k): K times the classes' shares
    largest = mean * (n_classes - 1 - mean)  # Bhatia and Davis; two codes reach it
    refuse_any(
        {
            "codes of classes with another spread": not 0 <= mean <= n_classes - 1
            or spread**2 > largest * (1 + SAME) + SAME
            or (n_classes == 2 and not abs(spread**2 - largest) <= SAME),
            "factors that do not balance the classes": metadata["class_weight"] == "balanced"
            and not agree(balance, n_classes),
        }
    )


def _check_inference(metadata: Metadata, p: int) -> None:
    """Refuse standard errors of what is no maximum likelihood, or of columns that do not determine it."""
    stored, n_classes = metadata["certificate"], metadata.get("labels", {"count": 2})["count"]
    problems = {
        "under a penalty": metadata["solution"]["alpha"] > 0,
        "within bounds": metadata["penalty"]["has_bounds"],
        "of redundant columns": stored["rank"] < p,
        "of a fit with a fault": stored["fault"] != "",
        "of weighted classes": metadata.get("class_weight") is not None,
        f"of {n_classes} classes": n_classes != 2,
    }
    is_there = metadata["inference"] is not None
    refuse_any({f"standard errors {problem}": is_there and is_so for problem, is_so in problems.items()})


def _build(cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
    own, labels = build_penalty(metadata["penalty"], arrays), parts.extra.labels
    if labels is not None:
        own |= {"class_weight": _given_weight(metadata, arrays, labels)}
    if "law" in metadata:
        own |= build_law(metadata["law"], parts.extra.law)
    model = cls(**metadata["parameters"], **own, basis=parts.maps.basis, encoder=parts.maps.encoder)
    set_maps(model, metadata, parts.maps)
    model.certificate_, model.target_name_ = parts.certificate, metadata["target"]
    model.offset_name_, model.exposure_name_ = metadata["offset"], metadata.get("exposure")
    model.coef_, model.intercept_ = arrays["coef"], arrays["intercept"]
    if labels is None:
        model.coef_, model.intercept_ = arrays["coef"][0], float(arrays["intercept"][0])
    else:
        model.classes_, model.class_weight_ = labels, arrays.get("class_weight")
    model.alpha_ = metadata["solution"]["alpha"]
    model.rank_, model.condition_ = parts.certificate.rank, parts.certificate.condition
    model.data_ = dict(metadata["data"])
    numbers = zip(arrays["history.iterations"].tolist(), arrays["history"].tolist(), strict=True)
    model.history_ = [
        {"iteration": i, **dict(zip(HISTORY, row, strict=True)), "seconds": math.nan} for i, row in numbers
    ]
    model.inference_ = parts.extra.inference
    return model


def _given_weight(metadata: Metadata, arrays: Arrays, labels: Any) -> Any:
    """The parameter class_weight: of factors that were given, all of them by label."""
    if metadata["class_weight"] != "given":
        return metadata["class_weight"]
    return dict(zip(labels.tolist(), arrays["class_weight"].tolist(), strict=True))


def _size(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[int, float]:
    from certifit.data.gate import fit_source

    return summed_size(fit_source(model.reader(), X, y, sample_weight), _weighted_size)


def _size_of_classes(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[int, float]:
    return summed_size(model.labelled(X, y, sample_weight), _weighted_size)


def _weighted_size(run: Any) -> tuple[int, float]:
    """Rows that have a weight, and the sum of weights."""
    if run.weight is None:
        return run.n_rows, float(run.n_rows)
    return int(np.count_nonzero(run.weight)), float(run.weight.sum())


def describe(metadata: Metadata, arrays: Arrays, parts: Parts) -> dict[str, Any]:
    """What an inspection shows: the weights of two classes or a quantity, or the classes of softmax."""
    alpha = metadata["solution"]["alpha"]
    model = {"alpha": alpha, "has_standard_errors": metadata["inference"] is not None}
    model |= {role: metadata.get(role) for role in ("offset", "exposure")} | describe_penalty(arrays)
    found: dict[str, Any] = {"model": model}
    if parts.extra.labels is not None:
        found["classes"] = {"labels": parts.extra.labels.tolist(), "dtype": metadata["labels"]["dtype"]}
    if len(arrays["coef"]) == 1:
        weights = arrays["coef"][0]
        found["coefficients"] = {
            "count": len(weights),
            "n_nonzero": int(np.count_nonzero(weights)),
            "intercept": float(arrays["intercept"][0]) if metadata["parameters"]["fit_intercept"] else None,
            "rank": parts.certificate.rank,
            "condition": parts.certificate.condition,
            "names": parts.maps.columns,
            "values": weights.tolist(),
        }
    return found
