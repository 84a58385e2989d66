"""Principal components in a file.

    k   directions    m   steps of the search    s   variances of other directions, where known

    state.mean, state.scale   what rows are centred and divided by
    history                   the residual after every step, where only products were made

Shares, singular values and the variance of the noise follow from these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from certifit.models.file_checks import SAME, agree, is_orthonormal
from certifit.models.record import (
    CLAIM,
    COUNT,
    COUNT_FROM_1,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    Array,
    Content,
    Field,
    Metadata,
    Object,
    OrNull,
    Problems,
    Record,
    Shown,
    Spec,
    fields_at,
    history_rows,
    one_of,
)

UNIT_LENGTH = 1e-6
MOST_DIGITS = 15.0
_SIZES = ("condition", "explained", "missed", "orthonormality", "placed", "projection_error", "residual")
COMPONENTS: Mapping[str, Spec] = {
    **CLAIM,
    **dict.fromkeys(_SIZES, MAGNITUDE),
    "gap": OrNull(NUMBER),
    "outside": OrNull(NUMBER_FROM_0),
    "rank": COUNT,
}


def _is_by_products(metadata: Metadata) -> bool:
    return bool(metadata["route"] == "products")


def _certificate(content: Content) -> dict[str, object]:
    names = tuple(f"pca{i}" for i in range(content.metadata["n_directions"]))
    return {"n_columns": len(content.columns), "names": names}


def _history(content: Content) -> list[dict[str, float]]:
    if _is_by_products(content.metadata):
        return history_rows(content.arrays["history"], keys=("residual",))
    return history_rows(np.zeros((1, 0)), keys=())


def _state_problems(content: Content) -> Iterator[Problems]:
    metadata, arrays, parameters, p = content.metadata, content.arrays, content.parameters, len(content.columns)
    asked, k = parameters["n_components"], metadata["n_directions"]
    kept, dropped, digits = arrays["state.variances"], arrays["state.dropped"], arrays["certificate.digits"]
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", arrays["state.components"], arrays["state.components"]))
        explained, total = kept.sum(), metadata["total_variance"]
    yield {
        f"{k} directions of {p} columns": k > p,
        f"{asked} directions asked and {k} found": type(asked) is int and asked != k,
        f"{len(dropped)} variances dropped with {k} of {p} kept": len(dropped) > p - k,
        "a rank of more than all columns": metadata["certificate"]["rank"] > p,
        "digits that are not in 0 to 15": not ((digits >= 0) & (digits <= MOST_DIGITS)).all(),
        "a direction that is not of length 1": not (np.abs(lengths - 1) <= UNIT_LENGTH).all(),
        "a variance below 0": (kept < 0).any() or (dropped < 0).any(),
        "a variance dropped that is larger than one kept": (dropped > kept.min()).any(),
        "variances that add up to more than the total": not explained <= total * (1 + SAME),
        "a centre without center": not parameters["center"] and arrays["state.mean"].any(),
        "a scale that is not above 0": (arrays["state.scale"] <= 0).any(),
        "a scale without standardize": not parameters["standardize"] and (arrays["state.scale"] != 1).any(),
        "a history of more than one step": not _is_by_products(metadata) and metadata["n_iterations"] != 1,
        "a residual below 0": _is_by_products(metadata) and (arrays["history"] < 0).any(),
        "fewer rows than ddof": not metadata["data"]["sum_weight"] > float(parameters["ddof"]),
    }


def _variance_problems(content: Content) -> Iterator[Problems]:
    """Variances that are not sorted, or of which the sums and shares that are stored are not those."""
    metadata, parameters, p = content.metadata, content.parameters, len(content.columns)
    stored, asked = metadata["certificate"], parameters["n_components"]
    kept, dropped = content.arrays["state.variances"], content.arrays["state.dropped"]
    weight, total = np.float64(metadata["data"]["sum_weight"]), np.float64(metadata["total_variance"])
    is_seen = kept[0] > 0  # else all variances are lost in rounding: their shares are not known
    with np.errstate(all="ignore"):
        # A variance is that of its direction but for the residual and for rounding, which are shares of the largest.
        slack = SAME + p * (stored["residual"] + stored["rounding"]) * kept[0] / total
        missed = (total - kept.sum()) / total
        error = stored["projection_error"] * weight / (weight - float(parameters["ddof"])) / total
        gap = (kept[-1] - dropped[:1]) / kept[0]
        yield {
            "variances that are not sorted": (np.diff(kept) > 0).any() or (np.diff(dropped) > 0).any(),
            "variances that do not add up to the total": is_seen
            and len(dropped) == p - len(kept)
            and abs(kept.sum() + dropped.sum() - total) > slack * total,
            "a share of the variance that is not that of its variances": is_seen
            and abs(1 - stored["explained"] - missed) > slack,
            "a projection error that is not the sum of the variances dropped": is_seen and abs(error - missed) > slack,
            "a gap that is not that of its variances": stored["gap"] is not None
            and (np.abs(gap - stored["gap"]) > SAME + 2 * (stored["residual"] + stored["rounding"])).any(),
            f"more directions than {asked} of the variance needs": type(asked) is float
            and kept[:-1].sum() > asked * total * (1 + SAME),
        }


def _certificate_problems(content: Content) -> Iterator[Problems]:
    """A value that is not the worst of its parts, and digits of directions that equal variances do not have."""
    stored, kept = content.metadata["certificate"], content.arrays["state.variances"]
    worst = max(stored[key] for key in ("residual", "orthonormality", "missed", "placed"))
    is_alone = np.append(True, np.diff(kept) != 0) & np.append(np.diff(kept) != 0, True) & (kept > 0)
    is_square = is_orthonormal(content.arrays["state.components"], stored["orthonormality"])
    is_worst = agree(stored["value"], worst + stored["rounding"])
    yield {
        "directions that are not at right angles": not is_square,
        "a value that is not the worst of its parts": stored["value"] < math.inf and not is_worst,
        "digits of a direction whose variance is 0, or another's too": (
            content.arrays["certificate.digits"][~is_alone] > 0
        ).any(),
    }


def _show(content: Content) -> Shown:
    """How much the directions explain, and how they were found."""
    kept = content.arrays["state.variances"]
    shown = {
        "count": len(kept),
        "n_columns": len(content.columns),
        "variances": kept.tolist(),
        "total_variance": content.metadata["total_variance"],
        "explained": content.metadata["certificate"]["explained"],
        "route": content.metadata["route"],
    }
    return {"components": shown}


RECORD = Record(
    fields={
        "certificate": fields_at("certificate_.*", COMPONENTS),
        "data": fields_at("data_.*", {"n_rows": COUNT_FROM_1, "sum_weight": NUMBER_FROM_0}),
        "n_directions": Field(COUNT_FROM_1, get=lambda model: len(model.components_)),
        "n_iterations": Field(COUNT, get=lambda model: len(model.history_)),
        "route": Field(one_of("columns", "rows", "products"), "route_"),
        "total_variance": Field(NUMBER_FROM_0, "total_variance_"),
    },
    arrays={
        "certificate.digits": Array(("k",), at="certificate_.digits", is_tuple=True),
        "history": Array(
            ("m",),
            may_be_infinite=True,
            get=lambda model: [row["residual"] for row in model.history_],
            when=_is_by_products,
        ),
        "state.components": Array(("k", "p"), at="components_"),
        "state.dropped": Array(("s",), get=lambda model: model.spectrum_[len(model.components_) :]),
        "state.mean": Array(("p",), at="mean_"),
        "state.scale": Array(("p",), at="scale_"),
        "state.variances": Array(("k",), at="explained_variance_"),
    },
    objects={"certificate_": Object("models.pca.certificate:PCACertificate", _certificate)},
    derived={
        "history_": _history,
        "spectrum_": lambda content: np.concatenate(
            [content.arrays["state.variances"], content.arrays["state.dropped"]]
        ),
    },
    sizes=(lambda metadata: {"k": metadata["n_directions"], "m": metadata["n_iterations"]},),
    checks=(_state_problems, _variance_problems, _certificate_problems),
    shown=(_show,),
    finish="derive",
)
