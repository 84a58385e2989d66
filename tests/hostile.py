"""Hostile inputs for scikit-learn-style estimators, each case in a process of its own.

    python tests/hostile.py --factories module:FACTORIES [--only NAME] [--case WORDS] [--json PATH]

FACTORIES: {name: (kind, factory)} or {name: (kind, factory, flags)}; kind "reg", "pois", "clf" or "tr".
A crash, a hang and too much memory are outcomes and not the end of the run; times are of the processor that a case
uses, which a busy machine does not change:
correct | clear_error | unclear_error | wrong_silent | nan_output | crash | hang | na
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from importlib import import_module
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import hostile_life  # noqa: F401, E402  (registers its cases)
from hostile_cases import CASES, Case, NotApplicable, NotFinite, Subject, Wrong  # noqa: E402

OUTCOMES = ("correct", "clear_error", "unclear_error", "wrong_silent", "nan_output", "crash", "hang", "na")
BAD = ("unclear_error", "wrong_silent", "nan_output", "crash", "hang")
REFUSALS = (ValueError, TypeError, MemoryError, NotImplementedError)
# A clear error names an argument or the fault.
NAMED = re.compile(
    r"\b(X|y|sample_weight|weights?|n_samples|n_features|features?|samples?|NaN|nan|infinity|inf|alpha|C|inputs?|array|"
    r"data|class|classes|sparse|dtype|shape|negative|labels?|fitted|fit|complex|string|numeric|target|max_iter|tol|"
    r"allocate|parameter)\b"
)
UNTIL_SIGNAL = 0.4  # seconds into the fit
LATEST_ANSWER = 3.0  # seconds of the processor from the signal
STUCK = 600  # seconds until a case that waits, and does not compute, is given up
THREADS = int(os.environ["OMP_NUM_THREADS"])

Outcome = tuple[str, str]


def outcome_of(error: BaseException) -> Outcome:
    kinds = {NotApplicable: "na", Wrong: "wrong_silent", NotFinite: "nan_output", TimeoutError: "hang"}
    for kind, outcome in kinds.items():
        if isinstance(error, kind):
            return outcome, str(error)
    text = f"{type(error).__name__}: {str(error)[:160]}"
    clear = isinstance(error, REFUSALS) and NAMED.search(str(error))
    if not clear:
        text += " | " + traceback.format_exc(limit=-2)[-300:].replace("\n", " ")
    return "clear_error" if clear else "unclear_error", text


def run(case: Case, subject: Subject, seconds: float) -> Outcome:
    """The outcome of a case in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _in_child(case, subject, writer, seconds)
    os.close(writer)
    try:
        return _watched(case, child, reader)
    finally:
        os.close(reader)


def _in_child(case: Case, subject: Subject, writer: int, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = int(time.process_time() + seconds * THREADS) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 5))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(writer if case.is_interrupt else silent, 1)
    os.dup2(silent, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    try:
        case.run(subject)
        outcome: Outcome = "correct", ""
    except BaseException as error:
        outcome = outcome_of(error)
    os.write(writer, pickle.dumps((outcome, time.process_time())))
    os._exit(0)


def _watched(case: Case, child: int, reader: int) -> Outcome:
    sent = None
    if case.is_interrupt and select.select([reader], [], [], STUCK)[0] and os.read(reader, 8):
        select.select([reader], [], [], UNTIL_SIGNAL)
        os.kill(child, signal.SIGINT)
        sent = _processor_seconds(child)
    if not select.select([reader], [], [], STUCK)[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return "hang", f"longer than {STUCK} s"
    parts = b""
    while part := os.read(reader, 65536):
        parts += part
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return "hang", "more seconds of the processor than the limit"
    if not parts:
        return "crash", f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {status}"
    outcome: Outcome
    outcome, used = pickle.loads(parts)  # from our own child
    if sent is not None and used - sent > LATEST_ANSWER * THREADS:
        return "hang", f"answered the interrupt after {used - sent:.1f} s"
    return outcome


def _processor_seconds(process: int) -> float | None:
    """What a process has used so far, where the system says it."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def battery(factories: dict[str, Any], only: str = "", words: str = "", seconds: float = 20) -> dict[str, Any]:
    results: dict[str, dict[str, Outcome]] = {}
    for name, (kind, make, *flags) in factories.items():
        if only not in name:
            continue
        subject = Subject(make, kind, frozenset(*flags))
        subject.fit(*subject.rows())  # libraries are loaded before the fork
        results[name] = {
            title: run(case, subject, seconds) for title, case in CASES.items() if kind in case.kinds and words in title
        }
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factories", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", default="")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=20, help="of the processor that a case may use")
    given = parser.parse_args()
    module, _, variable = given.factories.partition(":")
    results = battery(getattr(import_module(module), variable), given.only, given.case, given.seconds)
    for name, outcomes in results.items():
        counts = Counter(outcome for outcome, _ in outcomes.values())
        print(f"{name:32s}" + "".join(f" {outcome} {counts[outcome]}" for outcome in OUTCOMES))
        for title, (outcome, text) in outcomes.items():
            if outcome in BAD:
                print(f"    {title}: {outcome}: {text}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(results, file, indent=1)
    return int(any(outcome in BAD for outcomes in results.values() for outcome, _ in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
