"""Every fit's certificate in float64 against the proof in ball arithmetic (`verify(exact=True)`), where there is one.

The references of the hunt share no code with the package; this compares the package's two kinds of proof.
"""

from __future__ import annotations

import time
from typing import Any

import certifit as cf
from certifit.exact.losses import NoExactForm
from tests.hunt.generate import Problem
from tests.hunt.judge import Record, watched


def examine_exact(record: Record, problem: Problem, model: Any) -> None:
    """Note the exact proof of a fit: what it says, and whether the certificate in float64 says more than it may."""
    began = time.perf_counter()
    with watched(record, "verify exactly"):
        try:
            verification = cf.verify(model, *problem.arguments, exact=True)
        except NoExactForm:
            return
    record.exact = outcome_of(verification)
    if record.exact == "refuted":
        claimed, why = float(verification.stored.value), " ".join(verification.reasons)
        finding = {"state": "fit, exactly", "claimed": claimed, "true": verification.exact.lower, "why": why[:300]}
        (record.exact_refuted if verification.stored.holds else record.understated).append(finding)
    record.exact_seconds = round(time.perf_counter() - began, 4)


def outcome_of(verification: Any) -> str:
    """What the exact proof adds to the certificate in float64.

    "agrees": both hold, or neither does. "refuted": the certificate claims less than is proven to be the least, or a
    digit that is false. "undecided": the certificate holds, and it is not proven exactly. "proven": the certificate
    does not hold, and the fit is proven exactly.
    """
    if any(" false: " in reason for reason in verification.reasons) or is_below(verification):
        return "refuted"
    if verification.stored.holds:
        return "agrees" if verification else "undecided"
    return "proven" if verification else "agrees"


def is_below(verification: Any) -> bool:
    """Whether the value stored with the fit is below the least that is proven."""
    proof, stored = verification.exact, verification.stored
    if getattr(stored, "is_local", False):  # an estimate that says so
        return False
    return not proof.fault and getattr(stored, "outside", None) is None and proof.lower > stored.value
