"""A linear support vector machine in a file: its weights. f: machines, m: steps of the history."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.models.file_checks import alpha_problems
from certifit.models.kernel.modelfile import history_of
from certifit.models.record import (
    CLASS_WEIGHT,
    COUNT_FROM_1,
    LABELLED,
    NUMBER_FROM_0,
    PENALISED,
    ROWS,
    TARGET_NAME,
    Array,
    Content,
    Field,
    Object,
    Problems,
    Record,
    fields_at,
    show_coefficients,
)
from certifit.models.svm.modelfile import CERTIFICATE, n_machines


def _problems(content: Content) -> Iterator[Problems]:
    metadata, parameters, arrays = content.metadata, content.parameters, content.arrays
    n_classes, factors = metadata["labels"]["count"], arrays.get("class_weight", np.ones(1))
    yield alpha_problems(parameters["alpha"], metadata["solution"]["alpha"], metadata["data"]["sum_weight"], factors)
    yield {
        "fewer than two classes": n_classes < 2,
        f"{metadata['n_machines']} machines of {n_classes} classes": metadata["n_machines"]
        != n_machines(n_classes, "one-vs-rest"),
        "an intercept without fit_intercept": not parameters["fit_intercept"] and arrays["intercept"].any(),
        "conditions that are met less well than 0": metadata["certificate"]["violation"] < 0,
    }


LINEAR_SVC = (
    LABELLED
    | CLASS_WEIGHT
    | PENALISED
    | history_of("machine", "objective", "dual", "gap", "violation")
    | Record(
        fields={
            "certificate": fields_at("certificate_.*", CERTIFICATE),
            "data": ROWS,
            "n_machines": Field(COUNT_FROM_1, get=lambda model: len(model.intercept_)),
            "solution": fields_at("*_", {"alpha": NUMBER_FROM_0, "n_iter": COUNT_FROM_1}),
            **TARGET_NAME,
        },
        arrays={
            "coef": Array(("f", "p"), at="coef_"),
            "intercept": Array(("f",), at="intercept_"),
        },
        objects={"certificate_": Object("models.svm.certificate:MarginCertificate")},
        sizes=(lambda metadata: {"f": metadata["n_machines"]},),
        checks=(_problems,),
        shown=(show_coefficients,),
    )
)
