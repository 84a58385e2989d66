"""The basis of a model in a file: none, or a Polynomial. Functions are code, and code is never stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.schema import brief
from certifit.models.record import COUNT_FROM_1, Array, Arrays, Spec, one_of

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
