"""What a model does to rows before it weighs them, in a file: columns of the data, encoder, basis.

    c   columns of the data  d   features: these columns, or the numbers that an encoder makes of a table
    p   columns of the fit: the features, or the functions of a basis

Names of columns that follow from others are derived on load. A model without an encoder has no entry for it.

The basis of a model in a file: none, or a Polynomial. Functions are code, and code is never stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit.modelfile.container import ModelFileError
from certifit.modelfile.encoders import build_encoder, dump_encoder, encoder_arrays, encoder_spec
from certifit.modelfile.schema import brief
from certifit.models.record import COUNT_FROM_1, TEXTS, Array, Arrays, Metadata, OrNull, Spec, one_of

BASIS: Mapping[str, Spec] = {
    "kind": one_of("polynomial"),
    "degree": COUNT_FROM_1,
    "form": one_of("chebyshev", "powers"),
}
BASIS_ARRAYS = {"basis.lower": Array(("d",)), "basis.upper": Array(("d",))}


def dump_basis(basis: Any) -> tuple[dict[str, Any] | None, Arrays]:
    """Metadata and arrays of a fitted basis."""
    if basis is None:
        return None, {}
    from certifit.maps import Functions, Polynomial

    if type(basis) not in (Polynomial, Functions):
        raise ModelFileError(
            f"basis={brief(type(basis).__qualname__)} is no part of a model file. Use basis=Polynomial(degree) or None."
        )
    try:
        parameters, arrays = basis.to_state()
    except ValueError as error:  # Functions say why they are not stored
        raise ModelFileError(str(error)) from None
    record = {"kind": "polynomial", "degree": parameters["degree"], "form": parameters["form"]}
    return record, {f"basis.{name}": array for name, array in arrays.items()}


def n_columns(record: dict[str, Any] | None, n_features: int) -> int:
    """Columns that a basis makes of the features, from its record alone."""
    if record is None:
        return n_features
    from certifit.maps.basis import MAX_TERMS

    # As many terms as features or degrees at least: this bounds the binomial before it is computed.
    if max(n_features, record["degree"]) <= MAX_TERMS:
        n_terms = math.comb(n_features + record["degree"], n_features) - 1
        if n_terms <= MAX_TERMS:
            return n_terms
    raise ModelFileError(
        f"its basis has degree {record['degree']} in {n_features} features, more than {MAX_TERMS} terms."
    )


def build_basis(record: dict[str, Any] | None, arrays: Arrays, names: list[str] | None) -> tuple[Any, Any]:
    """The parameter `basis` and the fitted `basis_`."""
    if record is None:
        return None, None
    from certifit.maps import Polynomial

    parameters = {"degree": record["degree"], "form": record["form"]}
    fitted = Polynomial.from_state(
        {**parameters, "names": names}, {"lower": arrays["basis.lower"], "upper": arrays["basis.upper"]}
    )
    return Polynomial(**parameters), fitted


# Columns without a name that a file may claim where it has no array of that size (a tree has none).
MOST_UNNAMED = 1_000_000
FEATURES: Mapping[str, Spec] = {"count": COUNT_FROM_1, "names": OrNull(TEXTS)}


@dataclass(frozen=True)
class Maps:
    """Encoder and basis, as given and as fitted, and the columns of the fit."""

    encoder: Any
    fitted_encoder: Any
    basis: Any
    fitted_basis: Any
    columns: list[str]


@dataclass(frozen=True)
class Opened:
    """The encoder of a file and the sizes that follow from it. rest: the arrays that are not the encoder's."""

    encoder: Any
    fitted_encoder: Any
    names: list[str] | None
    d: int
    p: int
    rest: Arrays
    specs: Mapping[str, Array]  # arrays of the basis


def maps_spec(metadata: Metadata, has_basis: bool = True) -> Mapping[str, Spec]:
    """What the metadata says of the maps."""
    basis: Mapping[str, Spec] = {"basis": OrNull(BASIS)} if has_basis else {}
    encoder = {"encoder": encoder_spec(metadata["encoder"])} if "encoder" in metadata else {}
    return {"features": FEATURES, **basis, **encoder}


def dump_maps(model: Any, has_basis: bool = True) -> tuple[Metadata, Arrays]:
    """Metadata and arrays of the columns, the encoder and the basis of a fitted model."""
    basis, arrays = dump_basis(model.basis_)
    from certifit.maps import encoder_of

    encoder, encoder_parts = dump_encoder(encoder_of(model.encoder), model.encoder_)
    names = vars(model).get("feature_names_in_")
    metadata: Metadata = {
        "features": {
            "count": int(model.n_features_in_),
            "names": None if names is None else [str(name) for name in names],
        },
        **({"basis": basis} if has_basis else {}),
        **({} if encoder is None else {"encoder": encoder}),
    }
    return metadata, {**arrays, **encoder_parts}


def open_maps(metadata: Metadata, arrays: Arrays) -> Opened:
    """The encoder of checked metadata, and the sizes of the other arrays."""
    names, c = metadata["features"]["names"], metadata["features"]["count"]
    if names is not None and len(names) != c:
        raise ModelFileError(f"it has {len(names)} names for {c} features.")
    record, basis = metadata.get("encoder"), metadata.get("basis")
    expected = encoder_arrays(record, arrays)
    rest = {name: array for name, array in arrays.items() if name not in expected}
    # Every column of a model has a number of its own in the file, which bounds what an encoder may make.
    most_columns = max((array.size for array in rest.values()), default=0)
    if names is None and c > max(most_columns, MOST_UNNAMED):
        raise ModelFileError(
            f"it has {c:,} features without names and no array of that size; {MOST_UNNAMED:,} is the limit."
        )
    encoder, fitted = build_encoder(record, names, c, expected, most_columns)
    if fitted is not None:
        names = [str(name) for name in fitted.get_feature_names_out()]
    d = c if fitted is None or names is None else len(names)
    return Opened(encoder, fitted, names, d, n_columns(basis, d), rest, {} if basis is None else BASIS_ARRAYS)


def no_maps(arrays: Arrays) -> Opened:
    """Of a model that reads no rows itself."""
    return Opened(None, None, None, 0, 0, arrays, {})


def close_maps(opened: Opened, metadata: Metadata) -> Maps:
    """The basis and the names of the columns, once the arrays are checked; a ValueError for a basis that is none."""
    basis, fitted = build_basis(metadata.get("basis"), opened.rest, opened.names)
    if fitted is not None:
        columns = [str(name) for name in fitted.get_feature_names_out()]
    else:
        columns = [f"x{j}" for j in range(opened.d)] if opened.names is None else list(opened.names)
    return Maps(opened.encoder, opened.fitted_encoder, basis, fitted, columns)


def set_maps(model: Any, metadata: Metadata, maps: Maps) -> None:
    """The attributes of a fitted model that speak of columns."""
    model.encoder_, model.basis_, model.column_names_ = maps.fitted_encoder, maps.fitted_basis, maps.columns
    model.n_features_in_ = metadata["features"]["count"]
    if metadata["features"]["names"] is not None:
        model.feature_names_in_ = np.array(metadata["features"]["names"], dtype=object)
