"""Support vector machines in a file.

r   support vectors    m   rounds of the history    f   machines    K   classes

state.points   the support vectors, as the kernel sees them; none of a precomputed kernel
state.dual     their multipliers times their signs, a column per machine
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.file_checks import SAME, alpha_problems
from certifit.models.kernel.modelfile import KEPT, history_of
from certifit.models.record import (
    CLAIM,
    CLASS_WEIGHT,
    COUNT,
    COUNT_FROM_1,
    FLAG,
    LABELLED,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    PENALISED,
    ROWS,
    TARGET,
    TARGET_NAME,
    TEXT,
    Array,
    Content,
    Field,
    Object,
    OrNull,
    Problems,
    Record,
    fields_at,
)
from certifit.models.svm.task import ONE_VS_ONE

CERTIFICATE = {
    **CLAIM,
    "assumption": TEXT,
    "n_bound": COUNT,
    "n_free": COUNT,
    "n_zero": COUNT,
    "violation": MAGNITUDE,
}


def n_machines(n_classes: int, multi_class: str) -> int:
    """Machines of so many classes."""
    if n_classes == 2:
        return 1
    return n_classes * (n_classes - 1) // 2 if multi_class == ONE_VS_ONE else n_classes


def _support_problems(content: Content) -> Iterator[Problems]:
    """Support vectors that are not rows of the fit, or multipliers that do not add up to 0."""
    metadata, arrays = content.metadata, content.arrays
    dual, support, n_rows = arrays["state.dual"], arrays["state.support"], metadata["data"]["n_rows"]
    has_intercept = content.parameters["fit_intercept"]
    with np.errstate(over="ignore", invalid="ignore"):
        sums, size = np.abs(dual.sum(axis=0)), np.abs(dual).sum(axis=0)
    yield {
        "row numbers that are not those of the data": (support < 0).any() or (support >= n_rows).any(),
        "row numbers that are not in order": (np.diff(support) <= 0).any(),
        "an intercept without fit_intercept": not has_intercept and arrays["state.intercepts"].any(),
        "multipliers that do not cancel": has_intercept and not (sums <= SAME * size).all(),
        "conditions that are met less well than 0": metadata["certificate"]["violation"] < 0,
    }


MACHINES = (
    KEPT
    | PENALISED
    | history_of("machine", "objective", "dual", "gap", "violation")
    | Record(
        fields={
            "certificate": fields_at("certificate_.*", CERTIFICATE),
            "data": ROWS,
            "n_machines": Field(COUNT_FROM_1, get=lambda model: len(model.intercepts_)),
            "n_support": Field(COUNT, get=lambda model: len(model.support_)),
            "solution": fields_at("*_", {"alpha": NUMBER_FROM_0, "n_iter": COUNT_FROM_1}),
            **TARGET_NAME,
        },
        arrays={
            "state.dual": Array(("r", "f"), at="dual_coef_"),
            "state.intercepts": Array(("f",), at="intercepts_"),
            "state.support": Array(("v",), "int64", at="support_"),
        },
        objects={"certificate_": Object("models.svm.certificate:MarginCertificate")},
        sizes=(lambda metadata: {"f": metadata["n_machines"], "v": metadata["n_support"]},),
        checks=(_support_problems,),
        shown=(lambda content: {"model": {"n_support": content.metadata["n_support"]}},),
    )
)


def _class_problems(content: Content) -> Iterator[Problems]:
    metadata, parameters, arrays = content.metadata, content.parameters, content.arrays
    n_classes, counts = metadata["labels"]["count"], arrays["n_support"]
    factors = arrays.get("class_weight", np.ones(1))
    wanted = n_machines(n_classes, parameters["multi_class"])
    yield alpha_problems(parameters["alpha"], metadata["solution"]["alpha"], metadata["data"]["sum_weight"], factors)
    yield {
        "fewer than two classes": n_classes < 2,
        f"{metadata['n_machines']} machines of {n_classes} classes": metadata["n_machines"] != wanted,
        "support vectors of the classes that are not all": (counts < 0).any()
        or int(counts.sum()) != metadata["n_support"],
    }


SVC = (
    MACHINES
    | LABELLED
    | CLASS_WEIGHT
    | Record(arrays={"n_support": Array(("K",), "int64", at="n_support_")}, checks=(_class_problems,))
)


def _number_problems(content: Content) -> Iterator[Problems]:
    metadata, parameters = content.metadata, content.parameters
    yield alpha_problems(parameters["alpha"], metadata["solution"]["alpha"], metadata["data"]["sum_weight"], np.ones(1))
    yield {f"{metadata['n_machines']} machines of one target": metadata["n_machines"] != 1}


SVR = MACHINES | Record(fields={**TARGET}, checks=(_number_problems,))


def _hard_problems(content: Content) -> Iterator[Problems]:
    metadata = content.metadata
    is_soft = metadata["solution"]["alpha"] is not None
    yield {
        "other than two classes": metadata["labels"]["count"] != 2,
        "other than one machine": metadata["n_machines"] != 1,
        "a soft margin that was not allowed": is_soft and content.parameters["not_separable"] == "raise",
        "weights of rows, which a hard margin does not take": metadata["data"]["sum_weight"]
        != metadata["data"]["n_rows"],
    }
    stored = metadata["certificate"]
    yield {
        "a margin beyond the radius": not is_soft and stored["margin"] > stored["radius"] * (1 + SAME),
        "a soft margin with the proof of a hard one": stored["is_soft"] != is_soft,
    }


HARD_MARGIN = (
    MACHINES
    | LABELLED
    | Record(
        fields={
            "certificate": fields_at(
                "certificate_.*",
                {
                    **CERTIFICATE,
                    "bound": NUMBER_FROM_0,
                    "is_augmented": FLAG,
                    "is_soft": FLAG,
                    "margin": NUMBER_FROM_0,
                    "radius": MAGNITUDE,
                },
            ),
            "margin": Field(NUMBER, "margin_"),
            "solution": {"alpha": Field(OrNull(NUMBER_FROM_0), "alpha_")},
        },
        objects={"certificate_": Object("models.svm.hard_certificate:HardMarginCertificate")},
        checks=(_hard_problems,),
    )
)
