"""One fit: what it says of itself, beside what is true of it.

Verdicts: "right"; "false"; "needless", a refusal of a fit whose excess is within tol; "refused", a refusal of another
one, or of a likelihood without a maximum; "error", a sentence; "crash"; "slow"; "unknown": the truth is not found.
"""

from __future__ import annotations

import math
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.hunt.judge import PRINTED, is_sentence
from tests.hunt.references.numbers import ratio
from tests.hunt.truth import LinearTruth, SquaresTruth, Truth, kept_columns
from tests.ordinary.problems import Ordinary
from tests.ordinary.relations import independent, is_separated, projection

SLOW, PATIENCE = 20.0, 60.0  # seconds of the processor that a fit, and its truth, may take
NONSENSE = 1e-6  # standard deviations of the target: predictions of least squares further off are wrong
Record = dict[str, Any]


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeoutError after some seconds of the processor."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def examined(problem: Ordinary, model: Any, truth_of: Callable[[Ordinary, Any], Truth] | None) -> Record:
    """The record of a fit; truth_of None: nothing but crashes, time and finite predictions is judged."""
    record: Record = {"tags": problem.tags, "shape": list(problem.rows.shape), "seconds": SLOW}
    began = time.process_time()
    try:
        with at_most(SLOW), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(problem.X, *problem.arguments[1:])
    except TimeoutError:
        return record | {"verdict": "slow"}
    except Exception as error:
        verdict = "error" if is_sentence(error) else "crash"
        return record | {"verdict": verdict, "why": f"{type(error).__name__}: {error}"[:300], "seconds": 0.0}
    record["seconds"] = round(time.process_time() - began, 3)
    if bad := [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]:
        return record | {"verdict": "crash", "why": f"RuntimeWarning: {bad[0]}"[:300]}
    certificate = model.certificate_
    record |= {"holds": bool(certificate.holds), "value": float(certificate.value), "why": str(certificate)[:300]}
    record["tol"] = float(getattr(certificate, "tolerance", math.nan))
    try:
        with at_most(PATIENCE):
            return record | judged(problem, model, truth_of)
    except TimeoutError:
        return record | {"verdict": "unknown", "fault": "the truth takes too long"}


def judged(problem: Ordinary, model: Any, truth_of: Callable[[Ordinary, Any], Truth] | None) -> Record:
    """The verdict on a fit that came to its end."""
    if truth_of is None:
        return {"verdict": "right" if np.isfinite(np.asarray(model.predict(problem.X), dtype=float)).all() else "false"}
    is_open = not model.certificate_.holds and getattr(model, "alpha_", None) == 0.0
    if is_open and is_separated(problem, independent(problem)[0]):
        unsaid = "" if "No finite" in str(model.certificate_) else ", unsaid"
        return {"verdict": "refused", "reason": f"separation{unsaid}"}
    truth = truth_of(problem, model)
    record = of_minimum(problem, model, truth) if isinstance(truth, LinearTruth) else of_closed_form(model, truth)
    if record["verdict"] == "needless" and re.search("best scale is 0|so is the scale", str(model.certificate_)):
        return record | {"verdict": "refused", "reason": "the best scale is 0"}  # the infimum, and no fit of Huber's
    return record


def of_closed_form(model: Any, truth: Truth) -> Record:
    """Closed forms and trees: the truth is one number, and sentences that are false."""
    certificate = model.certificate_
    verdict = truth.verdict(model, certificate)
    faults = [*verdict.faults, *verdict.false_digits]
    if certificate.holds and not getattr(certificate, "is_local", False) and verdict.is_known:
        faults += above(certificate.value, verdict.true)
    is_right = verdict.is_known and verdict.true <= certificate.tolerance
    word = "right" if certificate.holds else "needless" if is_right else "refused" if verdict.is_known else "unknown"
    return {"verdict": "false" if faults else word, "true": verdict.true, "fault": "; ".join(faults)[:300]}


def above(claimed: float, true: float) -> list[str]:
    """An excess above the one claimed, in words."""
    is_true = true <= max(claimed * (1 + PRINTED), 1e-80)
    return [] if is_true else [f"an excess of {claimed:.2e} is claimed, true is {true:.2e}"]


def of_minimum(problem: Ordinary, model: Any, truth: LinearTruth) -> Record:
    """A minimum over all weights, over those of the columns that the certificate keeps, or of independent columns."""
    certificate, d = model.certificate_, problem.rows.shape[1]
    is_free = getattr(model, "alpha_", 0.0) == 0.0
    kept, is_near = independent(problem)
    named = kept_columns(certificate, d) if is_free and certificate.dependent else None
    objective = truth.objective(model)
    below = truth.null() if certificate.is_exact_fit else objective

    def excess(columns: list[int] | None) -> tuple[float, bool]:
        best, is_known = truth.infimum(columns)
        return ratio(max(objective - best, best * 0), below), is_known

    ways = {"literally": excess(None)}
    ways["as named"] = ways["literally"] if named is None or len(named) == d else excess(named)
    true, is_known = ways["as named"]
    out: Record = {"true": true, "literal": ways["literally"][0], "n_relations": d - len(kept), "near": is_near}
    if certificate.holds:
        faults = above(certificate.value, true) if is_known else []
        if is_free and type(truth) is SquaresTruth:
            faults += truth.false_digits(model, certificate, None if named is None or len(named) == d else named)
            faults += astray(problem, model, kept)
        return out | {"verdict": "false" if faults else "right", "fault": "; ".join(faults)[:300]}
    if is_free and len(kept) < d:
        ways["on independent columns"] = excess(kept)
    right = [way for way, (true, is_known) in ways.items() if is_known and true <= certificate.tolerance]
    is_known = all(is_known for _, is_known in ways.values())
    words = ["relation"] * (len(kept) < d) + ["near columns"] * is_near
    words += ["large numbers"] * any(tag in problem.tags for tag in ("date", "identifier", "squared"))
    out |= {"spanned": min(true for true, _ in ways.values()), "reason": " and ".join(words) or "plain"}
    return out | {"verdict": "needless" if right else "refused" if is_known else "unknown", "fault": ", ".join(right)}


def astray(problem: Ordinary, model: Any, kept: list[int]) -> list[str]:
    """Predictions of least squares that are not those of the projection on the independent columns."""
    used = slice(None) if problem.weights is None else problem.weights > 0
    y, best = problem.y[used], projection(problem, kept)
    off = float(np.sqrt(np.mean((model.predict(problem.X)[used] - best) ** 2)))
    allowed = NONSENSE * float(np.std(y)) + 2 * math.sqrt(model.certificate_.value * float(np.mean((y - best) ** 2)))
    return [f"predictions are {off / np.std(y):.1e} sd from those of the best fit"] if off > allowed else []
