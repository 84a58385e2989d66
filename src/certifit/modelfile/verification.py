"""Verify: is this model what it claims to be, on this data?

The certificate is computed anew by code that no solver touches. It holds iff

    value <= tol   and   value <= 10 x stored value + rounding   and   digits >= digits stored (of directions: less 1)

and the rank and the size of the data are those of the file. The comparison with the stored value refuses a
coefficient moved by so little that the objective hardly feels it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

from certifit.certificates.certificate import Certificate
from certifit.certificates.components import ComponentsCertificate
from certifit.data.gate import takes
from certifit.modelfile.files import load
from certifit.modelfile.registry import entry_of

GROWTH = 10.0
DIGITS_SLACK = 1e-6  # last bits of the sums on another processor
# Residuals of directions end at their rounding, which is another one on another processor: as much as GROWTH allows.
DIRECTIONS_SLACK = math.log10(GROWTH)
WEIGHT_SLACK = 1e-9
MOST_NAMES = 5


@dataclass(frozen=True)
class Verification:
    """Whether the claims of a model hold on data, and if not, why. True in a condition iff they hold."""

    holds: bool
    reasons: tuple[str, ...]
    certificate: Certificate
    stored: Certificate

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if self.holds:
            return (
                f"Verified: on this data the {self.certificate.claim} is {self.certificate.value:.1e}, "
                f"within the tolerance {self.certificate.tolerance:.1e}; "
                f"{self.stored.value:.1e} was claimed."
            )
        return "\n".join(["NOT verified.", *(f"- {reason}" for reason in self.reasons)])


def verify(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None
) -> Verification:
    """Recompute the certificate of a model, or of the model file at a path, on the data of its fit.

    >>> import certifit as cf
    >>> X, y = [[1.0], [2.0], [4.0], [5.0]], [2.0, 3.0, 7.0, 7.0]
    >>> model = cf.LinearRegression().fit(X, y)
    >>> bool(cf.verify(model, X, y))
    True
    >>> model.coef_ = model.coef_ + 1e-4
    >>> bool(cf.verify(model, X, y))
    False
    """
    if isinstance(model, str | PathLike):
        model = load(model)
    beside = {name: one for name, one in (("offset", offset), ("exposure", exposure)) if one is not None}
    for name in (name for name in beside if not takes(model, name)):
        raise ValueError(f"{type(model).__name__} takes no {name}. Leave it out.")
    certificate = model.certify(X, y, sample_weight, **beside)
    stored = model.certificate_
    reasons = (
        *_data_reasons(model, X, y, sample_weight),
        *_value_reasons(certificate, stored),
        *_rank_reasons(certificate, stored),
        *_digit_reasons(certificate, stored),
    )
    return Verification(not reasons, reasons, certificate, stored)


def _data_reasons(model: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[str]:
    n_rows, sum_weight = entry_of(model)[1].family.size(model, X, y, sample_weight)
    seen = model.data_
    if n_rows != seen["n_rows"]:
        yield f"This is not the data the model was fitted on: {n_rows} rows, the model saw {seen['n_rows']}."
    elif not math.isclose(sum_weight, seen["sum_weight"], rel_tol=WEIGHT_SLACK):
        yield (
            f"This is not the data the model was fitted on: the weights sum to {sum_weight:.10g}, "
            f"the model saw {seen['sum_weight']:.10g}."
        )


def _value_reasons(certificate: Certificate, stored: Certificate) -> Iterator[str]:
    if certificate.fault:
        yield f"There is no proof on this data. {certificate.fault}"
        return
    if not certificate.holds:
        yield (
            f"The {certificate.claim} is {certificate.value:.1e} on this data, "
            f"above the tolerance {certificate.tolerance:.1e}."
        )
    if not certificate.value <= GROWTH * stored.value + certificate.rounding:
        yield (
            f"The {certificate.claim} is {certificate.value:.1e} on this data, and {stored.value:.1e} was "
            "claimed: the coefficients were changed, or the data are not those of the fit."
        )


def _rank_reasons(certificate: Certificate, stored: Certificate) -> Iterator[str]:
    if certificate.rank != stored.rank:
        yield f"The columns have rank {certificate.rank} on this data, and rank {stored.rank} was claimed."


def _digit_reasons(certificate: Certificate, stored: Certificate) -> Iterator[str]:
    if not stored.digits:
        return
    found = certificate.digits or (0.0,) * len(stored.digits)
    slack = DIRECTIONS_SLACK if isinstance(stored, ComponentsCertificate) else DIGITS_SLACK
    short = [
        f"{name!a} {now:.1f} of {claimed:.1f}"
        for name, now, claimed in zip(stored.names, found, stored.digits, strict=True)
        if not now >= claimed - slack
    ]
    if short:
        more = f", and {len(short) - MOST_NAMES} more" if len(short) > MOST_NAMES else ""
        yield f"Fewer digits are proven than claimed: {', '.join(short[:MOST_NAMES])}{more}."
