"""Principal components in a file.

    p   columns of the fit (see `maps`)    k   directions    m   steps of the search
    state.components (k, p)    state.variances (k,)    state.dropped   variances of other directions, where known
    state.mean, state.scale    (p,) what rows are centred and divided by
    certificate.digits (k,)    history (m,) the residual after every step, where only products were made

Shares, singular values and the variance of the noise follow from these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.modelfile.agreement import SAME, agree, is_orthonormal
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.family import Arrays, Family, Metadata, Parts, summed_size
from certifit.modelfile.maps import Opened, close_maps, dump_maps, maps_spec, open_maps, set_maps
from certifit.modelfile.schema import (
    COUNT,
    COUNT_FROM_1,
    MAGNITUDE,
    NUMBER,
    NUMBER_FROM_0,
    TEXT,
    Array,
    OrNull,
    Spec,
    check_arrays,
    one_of,
    refuse_any,
)

_TEXTS = ("claim", "theorem")
_SIZES = ("condition", "explained", "missed", "orthonormality", "placed", "projection_error", "residual", "rounding")
FITTED: Mapping[str, Spec] = {
    "certificate": {
        **dict.fromkeys(_TEXTS, TEXT),
        **dict.fromkeys(_SIZES, MAGNITUDE),
        "gap": OrNull(NUMBER),
        "outside": OrNull(NUMBER_FROM_0),
        "rank": COUNT,
        "tolerance": NUMBER_FROM_0,
        "value": MAGNITUDE,
    },
    "data": {"n_rows": COUNT_FROM_1, "sum_weight": NUMBER_FROM_0},
    "n_directions": COUNT_FROM_1,
    "n_iterations": COUNT,
    "route": one_of("columns", "rows", "products"),
    "total_variance": NUMBER_FROM_0,
}
UNIT_LENGTH = 1e-6
MOST_DIGITS = 15.0


def _fitted(metadata: Metadata) -> Mapping[str, Spec]:
    return {**FITTED, **maps_spec(metadata)}


def _dump(model: Any) -> tuple[Metadata, Arrays]:
    maps, arrays = dump_maps(model)
    certificate, k = model.certificate_, len(model.components_)
    arrays |= {
        "certificate.digits": np.array(certificate.digits, dtype=np.float64),
        "state.components": model.components_,
        "state.dropped": model.spectrum_[k:],
        "state.mean": model.mean_,
        "state.scale": model.scale_,
        "state.variances": model.explained_variance_,
    }
    if model.route_ == "products":
        arrays["history"] = np.array([row["residual"] for row in model.history_], dtype=np.float64)
    metadata = {
        **maps,
        "certificate": {
            **{key: getattr(certificate, key) for key in _TEXTS},
            **{key: float(getattr(certificate, key)) for key in (*_SIZES, "tolerance", "value")},
            **{key: _or_null(getattr(certificate, key)) for key in ("gap", "outside")},
            "rank": int(certificate.rank),
        },
        "data": {"n_rows": int(model.data_["n_rows"]), "sum_weight": float(model.data_["sum_weight"])},
        "n_directions": k,
        "n_iterations": len(model.history_),
        "route": model.route_,
        "total_variance": float(model.total_variance_),
    }
    return metadata, arrays


def _or_null(value: Any) -> float | None:
    return None if value is None else float(value)


def _read(metadata: Metadata, arrays: Arrays) -> Parts:
    opened = open_maps(metadata, arrays)
    _check_arrays(metadata, opened)
    _check_state(metadata, opened.rest, opened.p)
    _check_variances(metadata, opened.rest, opened.p)
    _check_certificate(metadata["certificate"], opened.rest)
    try:
        maps = close_maps(opened, metadata)
    except ValueError as error:
        raise ModelFileError(f"its content does not fit together: {error}") from None
    from certifit.certificates.components import ComponentsCertificate

    certificate = ComponentsCertificate(
        **metadata["certificate"],
        n_columns=opened.p,
        names=tuple(f"pca{i}" for i in range(metadata["n_directions"])),
        digits=tuple(arrays["certificate.digits"].tolist()),
    )
    return Parts(maps, certificate)


def _check_arrays(metadata: Metadata, opened: Opened) -> None:
    specs = {
        "certificate.digits": Array(("k",)),
        "state.components": Array(("k", "p")),
        "state.dropped": Array(("s",)),
        "state.mean": Array(("p",)),
        "state.scale": Array(("p",)),
        "state.variances": Array(("k",)),
        **({"history": Array(("m",), may_be_infinite=True)} if metadata["route"] == "products" else {}),
        **opened.specs,
    }
    dropped = opened.rest.get("state.dropped", np.zeros(0))
    sizes = {"k": metadata["n_directions"], "m": metadata["n_iterations"], "s": dropped.size}
    check_arrays(specs, {"d": opened.d, "p": opened.p, **sizes}, opened.rest)


def _check_state(metadata: Metadata, arrays: Arrays, p: int) -> None:
    asked, k = metadata["parameters"]["n_components"], metadata["n_directions"]
    kept, dropped, digits = arrays["state.variances"], arrays["state.dropped"], arrays["certificate.digits"]
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", arrays["state.components"], arrays["state.components"]))
        explained, total = kept.sum(), metadata["total_variance"]
    parameters = metadata["parameters"]
    refuse_any(
        {
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
            "a history of more than one step": metadata["route"] != "products" and metadata["n_iterations"] != 1,
            "fewer rows than ddof": not metadata["data"]["sum_weight"] > float(parameters["ddof"]),
        }
    )


def _check_variances(metadata: Metadata, arrays: Arrays, p: int) -> None:
    """Refuse variances that are not sorted, or of which the sums and shares that are stored are not those."""
    stored, parameters, total = metadata["certificate"], metadata["parameters"], metadata["total_variance"]
    kept, dropped, asked = arrays["state.variances"], arrays["state.dropped"], parameters["n_components"]
    weight, total = np.float64(metadata["data"]["sum_weight"]), np.float64(total)
    with np.errstate(all="ignore"):
        # A variance is that of its direction but for the residual and for rounding, which are shares of the largest.
        slack = SAME + p * (stored["residual"] + stored["rounding"]) * kept[0] / total
        missed = (total - kept.sum()) / total
        error = stored["projection_error"] * weight / (weight - float(parameters["ddof"])) / total
        gap = (kept[-1] - dropped[:1]) / kept[0]
        problems = {
            "variances that are not sorted": (np.diff(kept) > 0).any() or (np.diff(dropped) > 0).any(),
            "variances that do not add up to the total": len(dropped) == p - len(kept)
            and abs(kept.sum() + dropped.sum() - total) > slack * total,
            "a share of the variance that is not that of its variances": abs(1 - stored["explained"] - missed) > slack,
            "a projection error that is not the sum of the variances dropped": abs(error - missed) > slack,
            "a gap that is not that of its variances": stored["gap"] is not None
            and (np.abs(gap - stored["gap"]) > SAME + 2 * (stored["residual"] + stored["rounding"])).any(),
            f"more directions than {asked} of the variance needs": type(asked) is float
            and kept[:-1].sum() > asked * total * (1 + SAME),
        }
    refuse_any(problems)


def _check_certificate(stored: Metadata, arrays: Arrays) -> None:
    """Refuse a value that is not the worst of its parts, and digits of directions that equal variances do not have."""
    kept, digits = arrays["state.variances"], arrays["certificate.digits"]
    worst = max(stored[key] for key in ("residual", "orthonormality", "missed", "placed"))
    is_alone = np.append(True, np.diff(kept) != 0) & np.append(np.diff(kept) != 0, True) & (kept > 0)
    refuse_any(
        {
            "directions that are not at right angles": not is_orthonormal(
                arrays["state.components"], stored["orthonormality"]
            ),
            "a value that is not the worst of its parts": stored["value"] < math.inf
            and not agree(stored["value"], worst + stored["rounding"]),
            "digits of a direction whose variance is 0, or another's too": (digits[~is_alone] > 0).any(),
        }
    )


def _build(cls: type[Any], metadata: Metadata, arrays: Arrays, parts: Parts) -> Any:
    model = cls(**metadata["parameters"], basis=parts.maps.basis, encoder=parts.maps.encoder)
    set_maps(model, metadata, parts.maps)
    model.certificate_, model.route_ = parts.certificate, metadata["route"]
    model.components_, model.explained_variance_ = arrays["state.components"], arrays["state.variances"]
    model.mean_, model.scale_ = arrays["state.mean"], arrays["state.scale"]
    model.spectrum_ = np.concatenate([model.explained_variance_, arrays["state.dropped"]])
    model.total_variance_, model.data_ = metadata["total_variance"], dict(metadata["data"])
    residuals = arrays["history"].tolist() if "history" in arrays else [None]
    model.history_ = [
        {"iteration": i, **({} if residual is None else {"residual": residual}), "seconds": math.nan}
        for i, residual in enumerate(residuals, 1)
    ]
    model.derive()
    return model


def _settings(model: Any) -> dict[str, Any]:
    return {}


def _size(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[int, float]:
    """Rows and sum of weights of the data of a verify."""
    from certifit.data.gate import unlabelled_source

    return summed_size(unlabelled_source(model.reader(), X, sample_weight))


def _describe(metadata: Metadata, arrays: Arrays, parts: Parts) -> dict[str, Any]:
    """What an inspection shows: how much the directions explain, and how they were found."""
    kept, total = arrays["state.variances"], metadata["total_variance"]
    found = {
        "count": len(kept),
        "n_columns": arrays["state.mean"].size,
        "variances": kept.tolist(),
        "total_variance": total,
        "explained": metadata["certificate"]["explained"],
        "route": metadata["route"],
    }
    return {"components": found}


COMPONENTS = Family(_fitted, _dump, _read, _build, _settings, _size, _describe)
