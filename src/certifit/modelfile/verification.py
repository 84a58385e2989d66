"""Verify: is this model what it claims to be, on this data?

The certificate is computed anew by code that no solver touches. It holds iff

    value <= tol   and   value <= 10 x stored value + rounding   and   digits >= digits stored (of directions: less 1)

and the rank and the size of the data are those of the file. The comparison with the stored value refuses a
coefficient moved by so little that the objective hardly feels it.

With exact=True the value is computed in ball arithmetic (certifit.exact), every rounding bounded, and must be at most
tol and what was claimed, without any slack; a certificate in float64 below it is false, and so are its digits where the
exact minimum has others. An estimate, which says that it is no proof, may be 10 times too small.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.data.source import Block, Source
from certifit.data.user_input import takes
from certifit.exact.proof import MOST_MINUTES, ExactProof, refuse_long
from certifit.modelfile.codec import children_of, key_of, record_of
from certifit.modelfile.files import load
from certifit.models.certificate import OUT_OF_TIME, Certificate, least_certain
from certifit.models.learner import how_sure
from certifit.models.pca.certificate import PCACertificate
from certifit.models.record import Json, Model
from certifit.models.table import STORED
from certifit.models.trees.certificate import TreeCertificate
from certifit.selection.compare.nested import rows_of_fit

GROWTH = 10.0
DIGITS_SLACK = 1e-6  # last bits of the sums on another processor
# Residuals of directions end at their rounding, which is another one on another processor: as much as GROWTH allows.
BOUND_SLACK = 1e-9  # relative, of a bound that another processor rounds differently
DIRECTIONS_SLACK = math.log10(GROWTH)
WEIGHT_SLACK = 1e-9
MOST_NAMES = 5
# What a solver could do better is no advice here: on the rows of its fit the model had a proof.
NOT_ITS_ROWS = (
    "There is no proof on this data. The coefficients are far from the best ones for these rows. Either these are not "
    "the rows of the fit (other rows, or changed values), or the coefficients were changed. Give the data of the fit, "
    "or fit again to these rows."
)


@dataclass(frozen=True)
class Verification:
    """Whether the claims of a model hold on data, and if not, why. True in a condition iff they hold.

    exact: the proof in ball arithmetic, where asked for. sure: "proven" over a bound on the optimum, "estimated" near
    the fit, or "checked" of its own numbers alone. n_models: the certificate is that of the least certain of them.
    """

    holds: bool
    reasons: tuple[str, ...]
    certificate: Certificate
    stored: Certificate
    exact: ExactProof | None = None
    sure: str = "proven"
    n_models: int = 1

    @property
    def kind(self) -> str:
        """Which kind of proof it is: "float64", with an allowance for rounding, or "exact", in ball arithmetic."""
        return "float64" if self.exact is None else "exact"

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        if not self.holds:
            return "\n".join(["NOT verified.", *(f"- {reason}" for reason in self.reasons)])
        how, value = (
            ("Verified", self.certificate.value) if self.exact is None else ("Verified exactly", self.exact.upper)
        )
        return (
            f"{how}: on this data the {self.certificate.claim} is {value:.1e}, "
            f"within the tolerance {self.certificate.tolerance:.1e}; "
            f"{self.stored.value:.1e} was claimed."
        )

    def sentences(self) -> list[str]:
        """What is proven, or why nothing is, in words."""
        if not self.holds:
            return list(self.reasons)
        if self.exact is None:
            first, *others = self.certificate.sentences()
            least = "" if self.n_models == 1 else f"Of its {self.n_models:,} models the one that says least: "
            return [f"{least}{first}", *others]
        return [_exact_sentence(self.exact, self.certificate, self.stored), *self.certificate.sentences()[1:]]


def verify(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    exposure: Any = None,
    *,
    exact: bool = False,
    most_minutes: float = MOST_MINUTES,
) -> Verification:
    """Recompute the certificate of a model, or of the model file at a path, on the data of its fit.

    Of a scan, the rows that `certifit fit --holdout` set aside are left out again; arrays are the rows of the fit.
    exact: in ball arithmetic, so that the proof holds to the last rounding; needs python-flint, pip install
    'certifit[exact]'. most_minutes: refuse an exact proof that is expected to take longer.

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
    if exact:
        _refuse_exact(model, most_minutes)
    check_is_fitted(model)
    roles = beside if sample_weight is None else {"sample_weight": sample_weight, **beside}
    rows = rows_of_fit(model, X) if isinstance(X, Source) else X
    return _verified(model, model._gate_again(rows, y, **roles), exact)


def _verified(model: Model, rows: Json, exact: bool) -> Verification:
    """The claims of a model on checked rows; of models, those of each on its own rows."""
    if children := children_of(model):
        return _joint(
            model, [_verified(child, child_rows, exact) for child, child_rows in zip(children, rows, strict=True)]
        )
    certificate, stored = model.certify_source(rows), model.certificate_
    reasons = [*_data_reasons(model, rows)]
    proof = _exact_proof(model, certificate, rows) if exact else None
    if proof is None:
        reasons += _value_reasons(certificate, stored, _is_derived(model))
    else:
        reasons += _exact_reasons(proof, certificate, stored)
    reasons += [*_rank_reasons(certificate, stored), *_digit_reasons(certificate, stored)]
    reasons += _bound_reasons(certificate, stored)
    sure = how_sure(_is_derived(model), getattr(certificate, "is_local", False))
    return Verification(not reasons, tuple(reasons), certificate, stored, proof, sure)


def _joint(model: Model, results: list[Verification]) -> Verification:
    """All claims hold, or the reasons of those that do not; the certificate is the one that says least."""
    attribute = record_of(model).children
    reasons = [f"{attribute}[{k}]: {reason}" for k, result in enumerate(results) for reason in result.reasons]
    reasons += [model.shortfall] if model.shortfall else []
    least = least_certain([result.certificate for result in results])
    weakest = next(result for result in results if result.certificate is least)
    # In the order of the alphabet the word that says least is the first.
    sure = "checked" if _is_derived(model) else min(result.sure for result in results)
    return replace(weakest, holds=not reasons, reasons=tuple(reasons), sure=sure, n_models=len(results))


def _refuse_exact(model: Any, most_minutes: float) -> None:
    """Refuse what cannot be proven exactly, before any row is read."""
    from certifit.exact.balls import flint
    from certifit.exact.table import prover_of

    children = children_of(model)
    for child in children:
        _refuse_exact(child, most_minutes / len(children))
    if not children:
        prover_of(model)
        flint()
        refuse_long(model, most_minutes)


def _exact_proof(model: Any, certificate: Certificate, source: Source) -> ExactProof:
    from certifit.exact.proof import rows_of
    from certifit.exact.table import exact_proof

    return exact_proof(model, rows_of(model.mapped_again(source)), certificate)


def _data_reasons(model: Any, source: Source) -> Iterator[str]:
    counted = _COUNTS[record_of(model).counts]
    n_rows, sum_weight = (sum(part) for part in zip(*source.map(counted), strict=True))
    seen = model.data_
    if n_rows != seen["n_rows"]:
        aside = " Its fit set rows aside: give the whole table, as a scan." if "held_out" in seen else ""
        yield f"This is not the data the model was fitted on: {n_rows} rows, the model saw {seen['n_rows']}.{aside}"
    elif not math.isclose(sum_weight, seen["sum_weight"], rel_tol=WEIGHT_SLACK):
        yield (
            f"This is not the data the model was fitted on: the weights sum to {sum_weight:.10g}, "
            f"the model saw {seen['sum_weight']:.10g}."
        )


def _all_rows(run: Block) -> tuple[int, float]:
    return run.n_rows, float(run.n_rows if run.weight is None else run.weight.sum())


def _weighted_rows(run: Block) -> tuple[int, float]:
    n_rows, sum_weight = _all_rows(run)
    return n_rows if run.weight is None else int(np.count_nonzero(run.weight)), sum_weight


def _labelled_rows(run: Block) -> tuple[int, float]:
    has_class = np.asarray(run.y) >= 0
    n_rows = int(has_class.sum())
    return n_rows, float(n_rows if run.weight is None else run.weight[has_class].sum())


def _counted_rows(run: Block) -> tuple[int, float]:
    weight = np.ones(run.n_rows) if run.weight is None else np.asarray(run.weight)
    is_counted = (np.asarray(run.y) >= 0) & (weight > 0)
    return int(is_counted.sum()), float(weight[is_counted].sum())


_COUNTS = {"all": _all_rows, "weighted": _weighted_rows, "labelled": _labelled_rows, "counted": _counted_rows}


def _is_derived(model: Model) -> bool:
    """Whether its numbers are derived again, and nothing is said of other fits."""
    return STORED[key_of(model)].words.goal.is_derived


def _value_reasons(certificate: Certificate, stored: Certificate, is_derived: bool) -> Iterator[str]:
    fault = certificate.fault
    if fault and stored.holds and not is_derived:
        yield NOT_ITS_ROWS
        return
    if fault:
        lead = "The numbers do not agree with this data" if is_derived else "There is no proof on this data"
        yield f"{lead}. {fault[0].upper()}{fault[1:]}"
        return
    if not certificate.holds:
        yield (
            f"The {certificate.claim} is {certificate.value:.1e} on this data, "
            f"above the tolerance {certificate.tolerance:.1e}."
        )
    if certificate.holds and not math.isfinite(stored.value):
        yield "The fit claims nothing that could be verified: the value stored with it is not finite. Fit it again."
    elif not certificate.value <= GROWTH * stored.value + certificate.rounding:
        yield (
            f"The {certificate.claim} is {certificate.value:.1e} on this data, and {stored.value:.1e} was "
            f"claimed: the {'model was' if is_derived else 'coefficients were'} changed, or the data are not those of "
            "the fit."
        )


def _exact_reasons(proof: ExactProof, certificate: Certificate, stored: Certificate) -> Iterator[str]:
    """Why the exact value does not bear out the model's claims."""
    if proof.fault:
        yield f"There is no exact proof on this data: {proof.fault}"
        return
    claim, value = certificate.claim, f"{proof.lower:.3g} at least, computed exactly,"
    if not proof.upper <= certificate.tolerance:
        end = f"is {value}" if proof.lower > certificate.tolerance else f"is proven to be {proof.upper:.1e} at most"
        yield f"The {claim} {end} on this data, above the tolerance {certificate.tolerance:.1e}."
    is_comparable = getattr(certificate, "outside", None) is None  # random probes prove nothing about a value
    is_estimate = getattr(certificate, "is_local", False)  # it says so itself, and claims nothing that could be false
    slack = GROWTH if is_estimate else 1.0
    if is_comparable and not is_estimate and proof.lower > certificate.value:
        yield (
            f"The certificate in float64 is false: it claims {certificate.value:.3g}, and the {claim} is {value} on "
            "this data. Please report it with the data."
        )
    elif is_comparable and proof.lower > slack * stored.value and stored.is_exact_fit == certificate.is_exact_fit:
        yield (
            f"The {claim} is {value} on this data, and {stored.value:.3g} was claimed: the coefficients were changed, "
            "or the data are not those of the fit."
        )
    elif is_comparable and not proof.is_sharp and not proof.upper <= GROWTH * stored.value + certificate.rounding:
        yield (
            f"Undecided: {proof.bits} bits tell the {claim} to be between {proof.lower:.1e} and {proof.upper:.1e}, and "
            f"{stored.value:.1e} was claimed."
        )
    yield from _literal_reasons(proof, certificate)
    yield from _false_digit_reasons(proof, certificate)


def _literal_reasons(proof: ExactProof, certificate: Certificate) -> Iterator[str]:
    if proof.literal is None or certificate.literal is None or not proof.literal[0] > certificate.literal:
        return
    yield (
        f"The certificate in float64 is false: it says that the data taken literally allow {certificate.literal:.3g} "
        f"less at most, and they allow {proof.literal[0]:.3g}. Please report it with the data."
    )


def _false_digit_reasons(proof: ExactProof, certificate: Certificate) -> Iterator[str]:
    """Digits that the exact minimum does not have."""
    if proof.errors is None or not certificate.digits:
        return
    wrong = [
        f"{name!a} (off by {error:.1e}, {digits:.1f} digits claimed)"
        for name, digits, error in zip(certificate.names, certificate.digits, proof.errors, strict=True)
        if digits > 0 and error > 10.0**-digits
    ]
    if wrong:
        more = f", and {len(wrong) - MOST_NAMES} more" if len(wrong) > MOST_NAMES else ""
        yield f"Digits claimed in float64 are false: {', '.join(wrong[:MOST_NAMES])}{more}. Please report it."


def _exact_sentence(proof: ExactProof, certificate: Certificate, stored: Certificate) -> str:
    """What an exact proof says, with how it was made."""
    value = f"{proof.upper:.1e}" if proof.is_sharp else f"{proof.upper:.1e} at most"
    literally = "" if proof.literal is None else f" Taken literally, the data allow up to {proof.literal[1]:.1e} less."
    return (
        f"Verified exactly, in ball arithmetic of {proof.bits} bits with every rounding bounded: the "
        f"{certificate.claim} is {value}.{literally} The fit claimed {stored.value:.1e} in float64."
    )


def _rank_reasons(certificate: Certificate, stored: Certificate) -> Iterator[str]:
    if certificate.rank != stored.rank and stored.theorem != OUT_OF_TIME:
        yield f"The columns have rank {certificate.rank} on this data, and rank {stored.rank} was claimed."


def _bound_reasons(certificate: Certificate, stored: Certificate) -> Iterator[str]:
    """A tree that was compared with all others claims no more than the rows show."""
    if not isinstance(stored, TreeCertificate) or stored.least_loss is None or stored.fault:
        return
    least = certificate.least_loss if isinstance(certificate, TreeCertificate) else None
    if least is None or stored.least_loss > least * (1 + BOUND_SLACK):
        yield (
            f"No tree was claimed to have a loss below {stored.least_loss:.8g}; on this data no more is proven than "
            f"{least or 0.0:.8g}."
        )


def _digit_reasons(certificate: Certificate, stored: Certificate) -> Iterator[str]:
    if not stored.digits:
        return
    digits_now = certificate.digits or (0.0,) * len(stored.digits)
    slack = DIRECTIONS_SLACK if isinstance(stored, PCACertificate) else DIGITS_SLACK
    short = [
        f"{name!a} {now:.1f} of {claimed:.1f}"
        for name, now, claimed in zip(stored.names, digits_now, stored.digits, strict=True)
        if not now >= claimed - slack
    ]
    if short:
        more = f", and {len(short) - MOST_NAMES} more" if len(short) > MOST_NAMES else ""
        yield f"Fewer digits are proven than claimed: {', '.join(short[:MOST_NAMES])}{more}."
