"""One case: fit, perturb, certify, verify, and compare every claim with the truth."""

from __future__ import annotations

import math
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

import certifit as cf
from tests.hunt.generate import Problem
from tests.hunt.truth import PRINTED, Truth, Verdict

KNOWN = 1e-80  # relative: references of 300 bits know no excess below it

SHARE_CERTIFIED = 0.25  # of the fits, certified again without a change: nearly always the same numbers
KINDS = ("false_certificates", "understated", "false_digits", "nudges_passed", "crashes", "exact_refuted")
NUDGE_EXCESS = 1e-12  # a nudge that changes the objective by less than this share is rounding


@dataclass
class Record:
    """What came out of one case; counts, and one entry per finding."""

    case: int
    estimator: str
    tags: list[str]
    states: int = 0
    held: int = 0
    unknown: int = 0
    false_certificates: list[dict[str, Any]] = field(default_factory=list)
    understated: list[dict[str, Any]] = field(default_factory=list)
    false_digits: list[dict[str, Any]] = field(default_factory=list)
    is_right: bool = False  # the fit's true value is within tol
    is_refused: bool = False  # ... and its certificate does not hold
    reason: str = ""
    nudges: int = 0
    nudges_passed: list[dict[str, Any]] = field(default_factory=list)
    crashes: list[dict[str, Any]] = field(default_factory=list)
    refused_input: str = ""  # the sentence of a refusal
    seconds: float = 0.0
    exact: str = ""  # what verify(exact=True) says beside the certificate (tests/hunt/exact.py), where it was asked
    exact_refuted: list[dict[str, Any]] = field(default_factory=list)
    exact_seconds: float = 0.0

    @property
    def findings(self) -> list[tuple[str, dict[str, Any]]]:
        """All that must not be."""
        return [(kind, finding) for kind in KINDS for finding in getattr(self, kind)]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)


class Refused(Exception):
    """The package refused its input with a sentence of its own."""


@contextmanager
def watched(record: Record, what: str) -> Iterator[None]:
    """Note exceptions that are no sentence for the user, and arithmetic warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except Exception as error:
            if not is_sentence(error):
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{place.filename.rsplit('/', 2)[-1]}:{place.lineno}"
                record.crashes.append({"state": what, "error": f"{type(error).__name__}: {error}"[:200], "at": where})
            raise Refused from error
        finally:
            bad = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
            record.crashes += [{"state": what, "error": f"RuntimeWarning: {bad[0]}"[:200], "at": ""}] if bad else []


def is_sentence(error: Exception) -> bool:
    """A ValueError raised by the package's own code, or by scikit-learn's checks of input, with a sentence."""
    frames = traceback.extract_tb(error.__traceback__)
    own = any(part in frames[-1].filename for part in ("/certifit/", "/sklearn/utils/validation"))
    return isinstance(error, ValueError) and own and len(str(error).split()) >= 4


def examine(
    case: int,
    name: str,
    problem: Problem,
    model: Any,
    truth_of: Callable[[Problem, Any], Truth | None],
    rng: np.random.Generator,
    *,
    beside: Callable[[Record, Problem, Any], None] | None = None,
) -> Record:
    """Everything that is claimed about one problem. beside: what else is asked of the fit, at last."""
    record = Record(case, name, list(problem.tags))
    began = time.perf_counter()
    try:
        with watched(record, "fit"):
            model.fit(*problem.arguments)
        truth = truth_of(problem, model)
        if truth is not None:
            _examine_fit(record, problem, model, truth, rng)
            _examine_states(record, problem, model, truth, rng)
            _examine_nudges(record, problem, model, truth, rng)
        if beside is not None:
            beside(record, problem, model)
    except Refused as refusal:
        if not record.crashes:
            record.refused_input = str(refusal.__cause__)[:200]
    record.seconds = round(time.perf_counter() - began, 4)
    return record


def _examine_fit(record: Record, problem: Problem, model: Any, truth: Truth, rng: np.random.Generator) -> None:
    certificate = model.certificate_
    verdict = truth.verdict(model, certificate)
    compare(record, "fit", certificate, verdict)
    if verdict.is_known and verdict.true <= certificate.tolerance:
        record.is_right = True
        record.is_refused = not certificate.holds
        record.reason = truth.reason(problem)
    if rng.random() < SHARE_CERTIFIED:
        with watched(record, "certify"):
            again = model.certify(*problem.arguments)
        compare(record, "certify", again, truth.verdict(model, again))


def _examine_states(record: Record, problem: Problem, model: Any, truth: Truth, rng: np.random.Generator) -> None:
    for label, other in truth.states(model, rng, float(model.certificate_.tolerance)):
        with watched(record, label):
            certificate = other.certify(*problem.arguments)
        compare(record, label, certificate, truth.verdict(other, certificate))


def _examine_nudges(record: Record, problem: Problem, model: Any, truth: Truth, rng: np.random.Generator) -> None:
    if not model.certificate_.holds:
        return
    for label, other, excess in truth.nudged(model, rng):
        if not excess > NUDGE_EXCESS:
            continue
        record.nudges += 1
        with watched(record, f"verify {label}"):
            passed = bool(cf.verify(other, *problem.arguments))
        if passed:
            stored = float(model.certificate_.value)
            record.nudges_passed.append({"state": f"1e-4 of {label}", "claimed": stored, "true": excess})


def compare(record: Record, label: str, certificate: Any, verdict: Verdict) -> None:
    """Count one state, and note where the certificate says less than the truth."""
    record.states += 1
    record.held += int(certificate.holds)
    if math.isnan(verdict.true):
        verdict.true, verdict.is_known = 0.0, False
    record.unknown += int(not verdict.is_known)
    if getattr(certificate, "is_local", False):  # an estimate that says so
        return
    bucket = record.false_certificates if certificate.holds else record.understated
    value = float(certificate.value)
    if not verdict.true <= max(value * (1 + PRINTED), KNOWN):
        bucket.append({"state": label, "claimed": value, "true": verdict.true})
    literal = getattr(certificate, "literal", None)
    if literal is not None and verdict.literal is not None and not verdict.literal <= literal * (1 + PRINTED):
        bucket.append({"state": f"{label}, literally", "claimed": float(literal), "true": verdict.literal})
    for fault in verdict.faults:
        record.false_certificates.append({"state": label, "claimed": value, "true": verdict.true, "fault": fault})
    if verdict.false_digits:
        record.false_digits.append({"state": label, "digits": verdict.false_digits})
