"""One fit: what it says of itself, beside what is true of it."""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import stats

from tests.hunt.judge import PRINTED, is_sentence
from tests.hunt.references.numbers import ratio
from tests.hunt.truth import LinearTruth, SquaresTruth, Truth, kept_columns
from tests.ordinary.problems import Ordinary
from tests.ordinary.relations import independent, is_separated, projection

SLOW = 20.0  # seconds of the processor that a fit may take
PATIENCE = 60.0  # the same, of its truth
NONSENSE = 1e-6  # standard deviations of the target: predictions of least squares further off are wrong
Excess = tuple[float, bool]


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


def examined(problem: Ordinary, model: Any, truth_of: Callable[[Ordinary, Any], Truth | None]) -> dict[str, Any]:
    """The record: verdict ("right", "false", "needless", "refused", "unknown", "error", "crash", "slow") and figures."""
    began = time.process_time()
    record: dict[str, Any] = {"tags": problem.tags, "shape": list(problem.rows.shape), "verdict": "slow"}
    try:
        with at_most(SLOW), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(problem.X, *problem.arguments[1:])
    except TimeoutError:
        return record | {"seconds": SLOW}
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
            truth = truth_of(problem, model)
            if truth is None:
                is_right = np.isfinite(np.asarray(model.predict(problem.X), dtype=np.float64)).all()
                return record | {"verdict": "right" if is_right else "false"}
            return record | (of_linear if isinstance(truth, LinearTruth) else of_other)(problem, model, truth)
    except TimeoutError:
        return record | {"verdict": "unknown", "fault": "the truth takes too long"}


def of_other(problem: Ordinary, model: Any, truth: Truth) -> dict[str, Any]:
    """Closed forms and trees: the truth is one number, and sentences that are false."""
    certificate = model.certificate_
    verdict = truth.verdict(model, certificate)
    out: dict[str, Any] = {"true": verdict.true}
    if verdict.faults or verdict.false_digits:
        return out | {"verdict": "false", "fault": "; ".join([*verdict.faults, *verdict.false_digits])[:300]}
    if certificate.holds:
        is_false = verdict.is_known and not verdict.true <= max(certificate.value * (1 + PRINTED), 1e-80)
        return out | {"verdict": "false" if is_false and not certificate.is_local else "right"}
    if not verdict.is_known:
        return out | {"verdict": "unknown"}
    return out | {"verdict": "needless" if verdict.true <= certificate.tolerance else "refused"}


def of_linear(problem: Ordinary, model: Any, truth: LinearTruth) -> dict[str, Any]:
    """A minimum: over all weights, over those of the columns that the certificate keeps, or that are independent."""
    certificate, d = model.certificate_, problem.rows.shape[1]
    is_free = float(getattr(model, "alpha_", 0.0)) == 0.0
    kept, is_near = independent(problem, bool(model.fit_intercept))
    named = kept_columns(certificate, d) if is_free and certificate.dependent else None
    objective = truth.objective(model)
    below = truth.null() if certificate.is_exact_fit else objective

    def excess(columns: list[int] | None) -> Excess:
        best, is_known = truth.infimum(columns)
        return ratio(max(objective - best, best * 0), below), is_known

    literal = excess(None)
    if is_free and len(kept) < d and is_followed(problem, truth, kept):
        kept, is_near = list(range(d)), True
    out: dict[str, Any] = {"literal": literal[0], "n_relations": d - len(kept), "near": is_near}
    claimed = literal if named is None or len(named) == d else excess(named)
    out["true"] = claimed[0]
    faults = []
    if certificate.holds:
        if claimed[1] and not claimed[0] <= max(certificate.value * (1 + PRINTED), 1e-80):
            faults.append(f"an excess of {certificate.value:.2e} is claimed, true is {claimed[0]:.2e}")
        if not np.isfinite(claimed[0]):
            faults.append("no finite objective")
    if certificate.holds and is_free and type(model).__name__ == "LinearRegression":
        faults += astray(problem, model, kept)
        columns = None if named is None or len(named) == d else named
        faults += truth.false_digits(model, certificate, columns)
    if faults:
        return out | {"verdict": "false", "fault": "; ".join(faults)[:300]}
    if certificate.holds:
        return out | {"verdict": "right"}
    ways = {"literally": literal, "as named": claimed}
    if is_free and len(kept) < d:
        ways["on independent columns"] = excess(kept)
    right = [way for way, (true, is_known) in ways.items() if is_known and true <= certificate.tolerance]
    out["spanned"] = min(true for true, _ in ways.values())
    out["reason"] = reason(problem, d - len(kept), is_near)
    if is_free and "No finite" in str(certificate) and is_separated(problem, model, kept):
        return out | {"verdict": "refused", "reason": "separation"}
    if right:
        return out | {"verdict": "needless", "fault": ", ".join(right)}
    return out | {"verdict": "refused" if all(is_known for _, is_known in ways.values()) else "unknown"}


def is_followed(problem: Ordinary, truth: LinearTruth, kept: list[int]) -> bool:
    """Whether the remainders of relations explain the target better than rounding can: by squares, an F test."""
    if not isinstance(truth, SquaresTruth):
        return False
    less, all_ = (float(ratio(truth.infimum(columns)[0], truth.null())) for columns in (kept, None))
    n, d = problem.rows.shape
    r, rest = d - len(kept), n - d - 1
    return rest > 0 and float(stats.f.sf((less - all_) / r / max(all_ / rest, 1e-300), r, rest)) < 1e-6


def astray(problem: Ordinary, model: Any, kept: list[int]) -> list[str]:
    """Predictions of least squares that are not those of the projection on the independent columns."""
    used = slice(None) if problem.weights is None else problem.weights > 0
    y = np.asarray(problem.y, dtype=np.float64)[used]
    best = projection(problem, kept, bool(model.fit_intercept))
    off = float(np.sqrt(np.mean((model.predict(problem.X)[used] - best) ** 2)))
    allowed = NONSENSE * float(np.std(y)) + 2 * math.sqrt(model.certificate_.value * float(np.mean((y - best) ** 2)))
    spread = float(np.std(y)) or 1.0
    return [f"predictions are {off / spread:.1e} sd from those of the best fit"] if off > allowed else []


def reason(problem: Ordinary, n_relations: int, is_near: bool) -> str:
    """The class that a refusal is counted in."""
    words = ["relation"] * (n_relations > 0) + ["near columns"] * is_near
    if any(tag in problem.tags for tag in ("date", "identifier", "squared")):
        words.append("large numbers")
    return " and ".join(words) or "plain"
