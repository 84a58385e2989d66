"""Models of kernels in a file.

    r   rows that are kept    m   steps of the history    c   directions

    state.points   the rows, as the kernel sees them; none of a precomputed kernel
    state.dual     their coefficients

A kernel is stored as plain data: its kind, its numbers, and the kernels that it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from certifit.mathematics.kernels import Kernel
from certifit.mathematics.kernels.stored import is_stored_kernel, kernel_from
from certifit.models.file_checks import NEAR, agree, alpha_problems, is_orthonormal
from certifit.models.kernel.task import PRECOMPUTED
from certifit.models.least_squares.modelfile import started
from certifit.models.pca.modelfile import COMPONENTS, MOST_DIGITS
from certifit.models.record import (
    CLAIM,
    COUNT,
    COUNT_FROM_1,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    NUMBERED_HISTORY,
    PENALISED,
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
    Setting,
    Shown,
    fields_at,
    history_rows,
    more_columns,
    stored_numbers,
)

KERNEL = Check("a kernel", is_stored_kernel)
NOT_STORED = "A model file holds no code: use a kernel of certifit.kernels, or kernel='precomputed'."


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


def _kept_problems(content: Content) -> Iterator[Problems]:
    """A kernel that is not the one asked for, or rows that are not those of the fit."""
    metadata = content.metadata
    n_points, n_rows, has_points = metadata["n_points"], metadata["data"]["n_rows"], _has_points(metadata)
    asked, fitted = _given(content), _fitted(content)
    is_other = isinstance(asked, Kernel) and asked.is_resolved and asked != fitted
    yield {
        "a kernel that was asked for and one that was fitted, of different kinds": (fitted is None) == has_points,
        "a width that is not a number": fitted is not None and not fitted.is_resolved,
        "another kernel than the one that was asked for": is_other,
        f"{n_points} rows kept of {n_rows}": n_points > n_rows,
        "columns that are not the rows of a precomputed kernel": not has_points and n_points != len(content.columns),
    }


def _show_kept(content: Content) -> Shown:
    """The kernel, and how many rows are kept."""
    metadata, fitted = content.metadata, _fitted(content)
    n_kept = metadata["n_points"] if _has_points(metadata) else 0
    return {"model": {"kernel": "precomputed" if fitted is None else str(fitted), "rows_kept": n_kept}}


def _told_kernel(metadata: Metadata) -> dict[str, object]:
    fitted = metadata["kernel"]["fitted"]
    return {"kernel": "the matrix given" if fitted is None else str(kernel_from(fitted))}


def history_of(*keys: str) -> Record:
    """The numbers of the history, without its seconds."""

    def stored(model: Model) -> object:
        return stored_numbers(model, keys)

    return Record(
        fields={"n_iterations": Field(COUNT, get=lambda model: len(model.history_))},
        arrays={"history": Array(("m", str(len(keys))), may_be_infinite=True, get=stored)},
        derived={"history_": lambda content: history_rows(content.arrays["history"], keys=keys)},
        sizes=(lambda metadata: {"m": metadata["n_iterations"]},),
    )


# Every model of a kernel: the kernel, and the rows that are kept.
KEPT = STANDARDISED | Record(
    fields={
        "kernel": {
            "asked": Field(
                OrNull(Check("a kernel, or 'precomputed'", lambda v: v == PRECOMPUTED or is_stored_kernel(v))),
                get=_asked,
            ),
            "fitted": Field(OrNull(KERNEL), get=lambda model: _tree(model.kernel_)),
        },
        "n_points": Field(COUNT, get=lambda model: len(model.dual_coef_)),
    },
    arrays={"state.points": Array(("r", "p"), at="X_fit_", when=_has_points)},
    settings={"kernel": Setting(_asked, _given)},
    derived={
        "kernel_": _fitted,
        "X_fit_": lambda content: content.arrays.get("state.points", np.zeros((0, len(content.columns)))),
    },
    sizes=(lambda metadata: {"r": metadata["n_points"]},),
    checks=(_kept_problems,),
    shown=(_show_kept,),
    told=(_told_kernel,),
)


def _ridge_problems(content: Content) -> Iterator[Problems]:
    metadata, parameters = content.metadata, content.parameters
    n_points, landmarks, solution = metadata["n_points"], parameters["n_landmarks"], metadata["solution"]
    is_refuted = metadata["certificate"]["refuted"]
    yield alpha_problems(parameters["alpha"], solution["alpha"], metadata["data"]["sum_weight"], np.ones(1))
    yield {
        f"{n_points} rows kept, and {landmarks} landmarks": landmarks is not None and n_points > landmarks,
        "an intercept without fit_intercept": not parameters["fit_intercept"] and solution["intercept"] != 0,
        "a kernel that is not Mercer, which was not allowed": is_refuted and parameters["indefinite"] == "refuse",
    }


def _ridge_history(content: Content) -> list[dict[str, float]]:
    return history_rows(content.arrays["history"], keys=("objective", "gap"), more=more_columns(content))


KERNEL_RIDGE = (
    KEPT
    | PENALISED
    | history_of("objective", "gap")
    | NUMBERED_HISTORY
    | Record(derived={"history_": _ridge_history})
    | started("b")
    | Record(
        fields={
            "certificate": fields_at("certificate_.*", {**CLAIM, "assumption": TEXT, "refuted": TEXT}),
            **TARGET,
            **TARGET_NAME,
            "solution": fields_at("*_", {"alpha": NUMBER_FROM_0, "intercept": NUMBER, "n_iter": COUNT}),
        },
        arrays={"state.dual": Array(("r",), at="dual_coef_")},
        objects={"certificate_": Object("models.kernel.certificate:KernelCertificate")},
        checks=(_ridge_problems,),
    )
)


def _lms_problems(content: Content) -> Iterator[Problems]:
    metadata, parameters = content.metadata, content.parameters
    stored, step = metadata["certificate"], metadata["step"]
    history = content.arrays["history"]
    share = step / stored["largest_step"] if stored["largest_step"] > 0 else np.inf
    yield {
        f"a step {step!r} that was not asked for": parameters["step"] not in (None, step),
        "passes that were not asked for": metadata["n_iterations"] > parameters["max_iter"],
        "a step that is not stable": not step < stored["largest_step"] and not stored["fault"],
        "a value that is not that of its step": not stored["fault"] and not agree(stored["value"], share),
        "an objective that is not that of the last pass": not stored["fault"]
        and len(history) > 0
        and not agree(stored["objective"], float(history[-1, 0]), NEAR),
        "weights of rows, which LMS does not take": metadata["data"]["sum_weight"] != metadata["data"]["n_rows"],
    }


KERNEL_LMS = (
    KEPT
    | history_of("objective")
    | Record(
        fields={
            "certificate": fields_at(
                "certificate_.*", {**CLAIM, "fault": TEXT, "largest_step": MAGNITUDE, "objective": MAGNITUDE}
            ),
            **TARGET,
            **TARGET_NAME,
            "step": Field(NUMBER_FROM_0, "step_"),
        },
        arrays={"state.dual": Array(("r",), at="dual_coef_")},
        objects={"certificate_": Object("models.kernel.descent:LmsCertificate")},
        derived={"n_iter_": lambda content: content.metadata["n_iterations"]},
        checks=(_lms_problems,),
    )
)


def _direction_problems(content: Content) -> Iterator[Problems]:
    metadata, kept = content.metadata, content.arrays["state.variances"]
    asked, k = content.parameters["n_components"], metadata["n_directions"]
    with np.errstate(over="ignore"):
        total, explained = metadata["total_variance"], float(kept.sum())
    stored, vectors = metadata["certificate"], content.arrays["state.vectors"]
    digits = content.arrays["certificate.digits"]
    yield {
        f"{asked} directions asked and {k} stored": asked is not None and asked != k,
        f"{k} directions of {len(vectors)} rows": k > len(vectors),
        "digits that are not in 0 to 15": not ((digits >= 0) & (digits <= MOST_DIGITS)).all(),
        "a variance below 0, or not sorted": (kept < 0).any() or (np.diff(kept) > 0).any(),
        "variances that add up to more than the total": not explained <= total * (1 + NEAR) + stored["rounding"],
        "directions that are not at right angles": not is_orthonormal(
            np.ascontiguousarray(vectors.T), stored["orthonormality"]
        ),
    }


def _components(content: Content) -> dict[str, object]:
    names = tuple(f"pca{i}" for i in range(content.metadata["n_directions"]))
    return {"n_columns": len(content.arrays["state.vectors"]), "names": names}


KERNEL_PCA = (
    KEPT
    | history_of("residual")
    | Record(
        fields={
            "certificate": fields_at("certificate_.*", COMPONENTS),
            "data": fields_at("data_.*", {"n_rows": COUNT_FROM_1, "sum_weight": NUMBER_FROM_0}),
            "n_directions": Field(COUNT_FROM_1, get=lambda model: len(model.explained_variance_)),
            "total_variance": Field(NUMBER_FROM_0, "total_variance_"),
        },
        arrays={
            "certificate.digits": Array(("c",), at="certificate_.digits", is_tuple=True),
            "state.dual": Array(("r", "c"), at="dual_coef_"),
            "state.offsets": Array(("c",), at="offsets_"),
            "state.variances": Array(("c",), at="explained_variance_"),
            "state.vectors": Array(("v", "c"), at="eigenvectors_"),
        },
        objects={"certificate_": Object("models.pca.certificate:PCACertificate", _components)},
        sizes=(lambda metadata: {"c": metadata["n_directions"]},),
        checks=(_direction_problems,),
        finish="derive",
    )
)
