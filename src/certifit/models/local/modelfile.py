"""Locally weighted regression in a file.

r   distinct rows that are kept            c   those whose coefficients are kept
    t   widths that leave-one-out tried        k   1 and the terms of a local fit

state.rows, state.y, state.weight   the rows, their targets and weights
state.coefficients                  of the local fit at some of them, or all
curve                               tau and the error by leave-one-out
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from certifit.models.file_checks import agree
from certifit.models.local.task import DEGREES, KINDS, points_of
from certifit.models.record import (
    CLAIM,
    COUNT,
    COUNT_FROM_1,
    MAGNITUDE,
    NUMBER_FROM_0,
    STANDARDISED,
    TARGET,
    TARGET_NAME,
    TEXT,
    Array,
    Check,
    Content,
    Field,
    Json,
    Metadata,
    Model,
    Object,
    OrNull,
    Problems,
    Record,
    Shown,
    fault_problems,
    fields_at,
    history_rows,
    one_of,
)

WIDTH = Check("a float above 0", lambda value: type(value) is float and 0 < value < np.inf, float)


def _name(parameter: str) -> Callable[[Model], Json]:
    """The name of a parameter that may be a function; a function is no part of a file."""

    def get(model: Model) -> Json:
        value = getattr(model, parameter)
        if not isinstance(value, str):
            raise ValueError(f"{parameter} is a function, and a model file holds no code. Use one of the names.")
        return value

    return get


def _n_terms(metadata: Metadata, d: int) -> int:
    return (0, d, d + d * (d + 1) // 2)[DEGREES[metadata["parameters"]["terms"]]]


def _problems(content: Content) -> Iterator[Problems]:
    metadata, parameters, arrays = content.metadata, content.parameters, content.arrays
    stored = metadata["certificate"]
    tau, asked, curve = metadata["solution"]["tau"], parameters["tau"], arrays["curve"]
    yield {
        f"a width {tau!r} that was not asked for": asked is not None and asked != tau,
        "a curve of widths that nobody tried": asked is not None and len(curve) > 0,
        "a width that leave-one-out did not try": asked is None and len(curve) > 0 and tau not in curve[:, 0],
        "an error below 0": (curve < 0).any() or (arrays["history"] < 0).any(),
        "more distinct rows than rows": metadata["n_points"] > metadata["data"]["n_rows"],
        "a weight that is not above 0": (arrays["state.weight"] <= 0).any(),
        "other coefficients than its columns have": arrays["state.coefficients"].shape[1]
        != 1 + _n_terms(metadata, len(content.columns)),
        "another number of rows than its certificate": stored["n_kept"] != metadata["n_points"],
        "another number of points than its certificate": stored["n_points"] != metadata["n_checked"],
        "points that its rows do not have": metadata["n_checked"] != len(points_of(metadata["n_points"])),
        "weights that do not add up": not agree(float(np.sum(arrays["state.weight"])), metadata["data"]["sum_weight"]),
    }


def _show(content: Content) -> Shown:
    metadata = content.metadata
    return {
        "model": {
            "tau": metadata["solution"]["tau"],
            "rows_kept": metadata["n_points"],
            "effective_parameters": metadata["solution"]["degrees"],
        }
    }


LOCAL = STANDARDISED | Record(
    fields={
        "certificate": fields_at(
            "certificate_.*",
            {
                **CLAIM,
                "condition": OrNull(MAGNITUDE),
                "n_points": COUNT_FROM_1,
                "n_kept": COUNT_FROM_1,
                "n_singular": COUNT,
                "fault": TEXT,
            },
        ),
        **TARGET,
        **TARGET_NAME,
        "n_points": Field(COUNT_FROM_1, get=lambda model: len(model.y_fit_)),
        "n_checked": Field(COUNT_FROM_1, get=lambda model: len(model.local_coef_)),
        "n_terms": Field(COUNT_FROM_1, get=lambda model: model.local_coef_.shape[1]),
        "n_widths": Field(COUNT, get=lambda model: len(model.curve_)),
        "solution": fields_at("*_", {"tau": WIDTH, "noise": MAGNITUDE, "degrees": NUMBER_FROM_0}),
    },
    arrays={
        "curve": Array(("t", "2"), may_be_infinite=True, at="curve_"),
        "history": Array(("1", "1"), may_be_infinite=True, get=lambda model: [[model.history_[0]["objective"]]]),
        "state.coefficients": Array(("c", "k"), at="local_coef_"),
        "state.rows": Array(("r", "p"), at="X_fit_"),
        "state.weight": Array(("r",), at="weight_fit_"),
        "state.y": Array(("r",), at="y_fit_"),
    },
    objects={"certificate_": Object("models.local.certificate:LocalCertificate")},
    named={
        "terms": Field(one_of(*DEGREES), get=_name("terms")),
        "weights": Field(one_of(*KINDS), get=_name("weights")),
    },
    derived={"history_": lambda content: history_rows(content.arrays["history"], keys=("objective",))},
    sizes=(
        lambda metadata: {
            "r": metadata["n_points"],
            "c": metadata["n_checked"],
            "t": metadata["n_widths"],
            "k": metadata["n_terms"],
        },
    ),
    checks=(fault_problems, _problems),
    shown=(_show,),
    told=(lambda metadata: {"alpha": metadata["solution"]["tau"]},),
)
