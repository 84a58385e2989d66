"""Models of scores in a file: logistic and softmax regression and generalised linear models.

    p   columns of the fit (see `maps`)    C   rows of weights: 1, or a class each with softmax
    K   classes, 0 for a quantity          k   p + 1 with an intercept, else p
    m   rows of the history

Estimates, names and the family of the inference follow from the rest, so a file cannot contradict itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Family, Metadata, Parts, summed_size
from certifit.modelfile.labels import LABELS, build_labels, dump_labels, label_arrays
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
    check_arrays,
    one_of,
    refuse_any,
)
from certifit.modelfile.sparse import PENALTY, build_penalty, check_penalty, dump_penalty, penalty_arrays
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
)
SHARE_FROM_0 = Check(
    "a number from 0 to 1", lambda value: SETTING_FROM_0.accepts(value) and not isinstance(value, bool) and value <= 1
)
PARAMETERS: Mapping[str, Spec] = {
    "alpha": SETTING_FROM_0,
    "fit_intercept": FLAG,
    "l1_ratio": SHARE_FROM_0,
    "max_iter": COUNT_FROM_1,
    "solver": one_of(*SOLVERS),
    "step_tol": SETTING_FROM_0,
    "tol": OrNull(SETTING_FROM_0),
}
CLASS_PARAMETERS: Mapping[str, Spec] = {**PARAMETERS, "alpha": OrNull(SETTING_FROM_0)}
WEIGHTED: Mapping[str, Spec] = {"class_weight": OrNull(one_of("balanced", "given"))}
DEFAULT_LINKS = {
    "gaussian": "identity",
    "bernoulli": "logit",
    "binomial": "logit",
    "poisson": "log",
    "gamma": "log",
    "exponential": "log",
    "inverse-gaussian": "log",
    "tweedie": "log",
    "negative-binomial": "log",
}
LAW: Mapping[str, Spec] = {
    "link": OrNull(TEXT),
    "name": one_of(*DEFAULT_LINKS),
    "parameter": OrNull(NUMBER),
}
INFERENCE = ("deviance", "null_deviance", "pearson", "saturated", "n_rows", "sum_weight", "mean_information")
FITTED: Mapping[str, Spec] = {
    "certificate": {
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
    },
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": MAGNITUDE, "target_mean": NUMBER, "target_sd": MAGNITUDE},
    "exposure": OrNull(TEXT),  # what it was called; null: there was none
    "inference": OrNull({key: OrNull(NUMBER) for key in INFERENCE}),
    "n_rows_of_weights": COUNT_FROM_1,
    "n_trace": COUNT,
    "offset": OrNull(TEXT),
    "penalty": PENALTY,
    "solution": {"alpha": NUMBER_FROM_0},
    "target": TEXT,
}
HISTORY = ("objective", "gap", "step")


def family(has_classes: bool = False, has_law: bool = False) -> Family:
    """The family of models with or without classes, with or without a family of targets to choose."""

    def fitted(metadata: Metadata) -> Mapping[str, Spec]:
        classes = {"labels": LABELS, **WEIGHTED} if has_classes else {}
        return {**FITTED, **classes, **({"law": LAW} if has_law else {}), **maps_spec(metadata)}

    def dump(model: Any) -> tuple[Metadata, Arrays]:
        metadata, arrays = _dump(model)
        own, more = _dump_classes(model) if has_classes else ({}, {})
        law = {"law": _dump_law(model)} if has_law else {}
        return metadata | own | law, arrays | more

    def settings(model: Any) -> dict[str, Any]:
        own = penalty_settings(model)
        if has_classes:
            own |= {"class_weight": _dump_classes(model)[0]["class_weight"]}
        return own | ({"family": _dump_law(model), "link": None} if has_law else {})

    return Family(fitted, dump, _read, _build, settings, _size_of_classes if has_classes else _size, describe)


def _dump(model: Any) -> tuple[Metadata, Arrays]:
    maps, arrays = dump_maps(model)
    penalty, strengths = dump_penalty(model)
    certificate, inference = model.certificate_, model.inference_
    history = [[float(row[key]) for key in HISTORY] for row in model.history_]
    arrays |= strengths | {
        "coef": np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)),
        "intercept": np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)),
        "history": np.array(history, dtype=np.float64).reshape(len(history), len(HISTORY)),
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
        },
        "data": {
            "n_rows": int(model.data_["n_rows"]),
            **{key: float(model.data_[key]) for key in ("sum_weight", "target_mean", "target_sd")},
        },
        "exposure": model.exposure_name_,
        "inference": None if inference is None else {key: _number(getattr(inference, key)) for key in INFERENCE},
        "n_rows_of_weights": len(arrays["coef"]),
        "n_trace": len(history),
        "offset": model.offset_name_,
        "penalty": penalty,
        "solution": {"alpha": float(model.alpha_)},
        "target": model.target_name_,
    }
    return metadata, arrays


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _dump_classes(model: Any) -> tuple[Metadata, Arrays]:
    labels, arrays = dump_labels(model.classes_)
    given = model.class_weight
    if model.class_weight_ is not None:
        arrays["class_weight"] = model.class_weight_
    word = given if given is None or isinstance(given, str) else "given"
    return {"labels": labels, "class_weight": word}, arrays


def _dump_law(model: Any) -> Metadata:
    from certifit.families.responses import FAMILIES, family_of

    if getattr(model, "link", None) is not None and not isinstance(model.link, str):
        raise ModelFileError(
            "a link of the user's own is no part of a model file. Name one, or predict without a file."
        )
    try:
        law = family_of(model.family)
    except ValueError:
        raise ModelFileError("a loss of the user's own is code, and no part of a model file.") from None
    if type(law) is not type(FAMILIES.get(law.name)):
        raise ModelFileError(f"the family {law.name!r} is the user's own: code is no part of a model file.")
    parameter = next((float(getattr(law, key)) for key in ("power", "alpha") if hasattr(law, key)), None)
    return {"link": model.link, "name": law.name, "parameter": parameter}


def _read(metadata: Metadata, arrays: Arrays) -> Parts:
    """extra: the labels, None for a quantity."""
    opened = open_maps(metadata, arrays)
    _check_arrays(metadata, opened)
    labels = build_labels(metadata["labels"], opened.rest) if "labels" in metadata else None
    _check_content(metadata, opened.rest, opened.p, labels)
    try:
        maps = close_maps(opened, metadata)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    from certifit.certificates.generalised import ScoreCertificate

    intercept = ["intercept"] * metadata["parameters"]["fit_intercept"]
    stored = dict(metadata["certificate"])
    dependent = tuple(stored.pop("dependent"))
    certificate = ScoreCertificate(
        **stored, n_columns=opened.p, dependent=dependent, names=tuple([*intercept, *maps.columns])
    )
    return Parts(maps, certificate, labels)


def _check_arrays(metadata: Metadata, opened: Opened) -> None:
    sizes = {
        "d": opened.d,
        "p": opened.p,
        "k": opened.p + metadata["parameters"]["fit_intercept"],
        "C": metadata["n_rows_of_weights"],
        "m": metadata["n_trace"],
        "3": len(HISTORY),
    }
    specs = {
        "coef": Array(("C", "p")),
        "intercept": Array(("C",)),
        "history": Array(("m", "3"), may_be_infinite=True),
        **({} if metadata["inference"] is None else {"inference.inverse": Array(("k", "k"))}),
        **opened.specs,
        **penalty_arrays(metadata["penalty"]),
    }
    if "labels" in metadata:
        labels, letters = label_arrays(metadata["labels"], opened.rest)
        weights = {} if metadata["class_weight"] is None else {"class_weight": Array(("K",))}
        specs, sizes = {**specs, **labels, **weights}, {**sizes, "K": metadata["labels"]["count"], **letters}
    check_arrays(specs, sizes, opened.rest)


def _check_content(metadata: Metadata, arrays: Arrays, p: int, labels: Any) -> None:
    stored, alpha = metadata["certificate"], metadata["solution"]["alpha"]
    asked, n_weights = metadata["parameters"]["alpha"], metadata["n_rows_of_weights"]
    n_classes = 2 if labels is None else len(labels)
    problems = {
        "fewer than two classes": n_classes < 2,
        f"{n_weights} rows of weights for {n_classes} classes": n_weights != (1 if n_classes == 2 else n_classes),
        f"rank {stored['rank']} of {p} columns": stored["rank"] > p,
        f"alpha {asked!r} asked and {alpha!r} used": asked is not None and asked != alpha,
        "more dependent columns than the rank leaves": len(stored["dependent"]) > p - stored["rank"],
        "an intercept without fit_intercept": not metadata["parameters"]["fit_intercept"] and arrays["intercept"].any(),
        "standard errors under a penalty": metadata["inference"] is not None and alpha > 0,
        "standard errors of redundant columns": metadata["inference"] is not None and stored["rank"] < p,
        "a fault and a proof": stored["fault"] and stored["value"] <= stored["tolerance"],
        "a class of negative weight": (arrays.get("class_weight", np.zeros(1)) < 0).any(),
        "a history of another length": len(metadata["penalty"]["iterations"]) != metadata["n_trace"],
    }
    refuse_any(problems)
    check_penalty(arrays)


def _build(cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
    own = build_penalty(metadata["penalty"], arrays)
    if parts.extra is not None:
        own |= {"class_weight": _given_weight(metadata, arrays, parts.extra)}
    if "law" in metadata:
        own |= _given_law(metadata["law"])
    model = cls(**metadata["parameters"], **own, basis=parts.maps.basis, encoder=parts.maps.encoder)
    set_maps(model, metadata, parts.maps)
    model.certificate_, model.target_name_ = parts.certificate, metadata["target"]
    model.offset_name_, model.exposure_name_ = metadata["offset"], metadata["exposure"]
    model.coef_, model.intercept_ = arrays["coef"], arrays["intercept"]
    if parts.extra is None:
        model.coef_, model.intercept_ = arrays["coef"][0], float(arrays["intercept"][0])
    else:
        model.classes_, model.class_weight_ = parts.extra, arrays.get("class_weight")
    model.alpha_ = metadata["solution"]["alpha"]
    model.rank_, model.condition_ = parts.certificate.rank, parts.certificate.condition
    model.data_ = dict(metadata["data"])
    model.history_ = [
        {"iteration": i, **dict(zip(HISTORY, row, strict=True)), "seconds": math.nan}
        for i, row in zip(metadata["penalty"]["iterations"], arrays["history"].tolist(), strict=True)
    ]
    model.inference_ = _build_inference(model, metadata["inference"], arrays, parts)
    return model


def _given_weight(metadata: Metadata, arrays: Arrays, labels: Any) -> Any:
    """The parameter class_weight: of factors that were given, all of them by label."""
    if metadata["class_weight"] != "given":
        return metadata["class_weight"]
    return dict(zip(labels.tolist(), arrays["class_weight"].tolist(), strict=True))


def _given_law(law: Metadata) -> dict[str, Any]:
    """The parameters family and link; a family with a parameter comes back as the object."""
    from certifit.families.responses import FAMILIES

    found: Any = FAMILIES[law["name"]]
    key = next((key for key in ("power", "alpha") if hasattr(found, key)), None)
    refuse_any({f"a parameter of the family {law['name']!r}": (key is None) != (law["parameter"] is None)})
    try:
        given = law["name"] if key is None else replace(found, **{key: law["parameter"]})
        found.link(law["link"])
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    return {"family": given, "link": law["link"]}


def _build_inference(model: Any, stored: Metadata | None, arrays: Arrays, parts: Parts) -> Any:
    if stored is None:
        return None
    from certifit.certificates.glm_inference import GlmInference

    numbers: dict[str, Any] = {key: math.nan if value is None else value for key, value in stored.items()}
    family, link = model._family()
    first = [np.ravel(model.intercept_)[0]] * bool(model.fit_intercept)
    try:
        return GlmInference(
            names=parts.certificate.names,
            estimate=np.concatenate([first, np.ravel(model.coef_)]),
            inverse=arrays["inference.inverse"],
            family=family,
            link=link,
            has_intercept=bool(model.fit_intercept),
            **numbers,
        )
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None


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
    model |= {role: metadata[role] for role in ("offset", "exposure")}
    found: dict[str, Any] = {"model": model}
    if parts.extra is not None:
        found["classes"] = {"labels": parts.extra.tolist(), "dtype": metadata["labels"]["dtype"]}
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
