"""Kernel ridge regression in a file.

    r   rows that are kept    m   refinements

    state.points   the rows, as the kernel sees them; none of a precomputed kernel
    state.dual     their coefficients

A kernel is stored as plain data: its kind, its numbers, and the kernels that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.mathematics.kernels import Kernel
from certifit.mathematics.kernels.stored import is_stored_kernel, kernel_from
from certifit.models.agreement import alpha_problems
from certifit.models.kernel.task import PRECOMPUTED
from certifit.models.state import (
    COUNT,
    NUMBER,
    NUMBER_FROM_0,
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
    Setting,
    Shown,
    fields_at,
)
from certifit.models.state_parts import CLAIM, TARGET, TARGET_NAME, history_rows

KERNEL = Check("a kernel", is_stored_kernel)
NOT_STORED = "A model file holds no code: use a kernel of certifit.kernels, or kernel='precomputed'."
HISTORY = ("objective", "gap")


def _tree(kernel: Kernel | str | None) -> Json:
    """Plain data of a kernel; "precomputed" and None as they are."""
    if kernel is None or isinstance(kernel, str):
        return kernel
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel is a function. {NOT_STORED}")
    return kernel.tree()


def _asked(model: Model) -> Json:
    return _tree(model.kernel)


def _given(content: Content) -> Kernel | str | None:
    asked = content.metadata["kernel"]["asked"]
    return asked if asked is None or isinstance(asked, str) else kernel_from(asked)


def _fitted(content: Content) -> Kernel | None:
    fitted = content.metadata["kernel"]["fitted"]
    return None if fitted is None else kernel_from(fitted)


def _has_points(metadata: Metadata) -> bool:
    return bool(metadata["kernel"]["asked"] != PRECOMPUTED)


def _is_standardised(metadata: Metadata) -> bool:
    return bool(metadata["parameters"]["standardize"])


def _problems(content: Content) -> Iterator[Problems]:
    metadata, parameters = content.metadata, content.parameters
    stored, n_points, n_rows = metadata["certificate"], metadata["n_points"], metadata["data"]["n_rows"]
    has_points, landmarks = _has_points(metadata), parameters["n_landmarks"]
    asked, fitted = _given(content), _fitted(content)
    is_other = isinstance(asked, Kernel) and asked.is_resolved and asked != fitted
    yield alpha_problems(parameters["alpha"], metadata["solution"]["alpha"], metadata["data"]["sum_weight"], np.ones(1))
    yield {
        "a kernel that was asked for and one that was fitted, of different kinds": (fitted is None) == has_points,
        "a width that is not a number": fitted is not None and not fitted.is_resolved,
        "another kernel than the one that was asked for": is_other,
        f"{n_points} rows kept of {n_rows}": n_points > n_rows,
        f"{n_points} rows kept, and {landmarks} landmarks": landmarks is not None and n_points > landmarks,
        "columns that are not the rows of a precomputed kernel": not has_points and n_points != len(content.columns),
        "an intercept without fit_intercept": not parameters["fit_intercept"]
        and metadata["solution"]["intercept"] != 0,
        "a scale that is not above 0": _is_standardised(metadata) and (content.arrays["state.scale"] <= 0).any(),
        "a kernel that is not Mercer, which was not allowed": stored["refuted"]
        and parameters["indefinite"] == "refuse",
    }


def _show(content: Content) -> Shown:
    """The kernel, the strength of the penalty, and that rows are kept."""
    metadata, fitted = content.metadata, _fitted(content)
    return {
        "model": {
            "alpha": metadata["solution"]["alpha"],
            "has_standard_errors": False,
            "kernel": "precomputed" if fitted is None else str(fitted),
            "rows_kept": metadata["n_points"] if _has_points(metadata) else 0,
        }
    }


def _told(metadata: Metadata) -> dict[str, object]:
    fitted = metadata["kernel"]["fitted"]
    kernel = "the matrix given" if fitted is None else str(kernel_from(fitted))
    return {"alpha": metadata["solution"]["alpha"], "kernel": kernel}


KERNEL_RIDGE = Record(
    fields={
        "certificate": fields_at("certificate_.*", {**CLAIM, "assumption": TEXT, "refuted": TEXT}),
        **TARGET,
        **TARGET_NAME,
        "kernel": {
            "asked": Field(
                OrNull(Check("a kernel, or 'precomputed'", lambda v: v == PRECOMPUTED or is_stored_kernel(v))),
                get=_asked,
            ),
            "fitted": Field(OrNull(KERNEL), get=lambda model: _tree(model.kernel_)),
        },
        "n_iterations": Field(COUNT, get=lambda model: len(model.history_)),
        "n_points": Field(COUNT, get=lambda model: len(model.dual_coef_)),
        "solution": fields_at("*_", {"alpha": NUMBER_FROM_0, "intercept": NUMBER, "n_iter": COUNT}),
    },
    arrays={
        "history": Array(
            ("m", "2"),
            may_be_infinite=True,
            get=lambda model: np.array([[row[key] for key in HISTORY] for row in model.history_]).reshape(-1, 2),
        ),
        "state.dual": Array(("r",), at="dual_coef_"),
        "state.mean": Array(("p",), at="mean_", when=_is_standardised),
        "state.points": Array(("r", "p"), at="X_fit_", when=_has_points),
        "state.scale": Array(("p",), at="scale_", when=_is_standardised),
    },
    objects={"certificate_": Object("models.kernel.certificate:KernelCertificate")},
    settings={"kernel": Setting(_asked, _given)},
    derived={
        "history_": lambda content: history_rows(content.arrays["history"], keys=HISTORY),
        "kernel_": _fitted,
        "X_fit_": lambda content: content.arrays.get("state.points", np.zeros((0, len(content.columns)))),
        "mean_": lambda content: content.arrays.get("state.mean"),
        "scale_": lambda content: content.arrays.get("state.scale"),
    },
    sizes=(lambda metadata: {"m": metadata["n_iterations"], "r": metadata["n_points"]},),
    checks=(_problems,),
    shown=(_show,),
    told=(_told,),
)
