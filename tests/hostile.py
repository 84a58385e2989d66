"""Hostile inputs for scikit-learn-style estimators, in forked children: a case that ends its child ends only itself.

    python tests/hostile.py --factories module:FACTORIES [--only NAME] [--case WORDS] [--json PATH]
    python tests/hostile.py --factories module:FACTORIES --serve      # a name per line in, its outcomes as JSON out

FACTORIES: {name: (kind, factory)} or {name: (kind, factory, flags)}; kind "reg", "pois", "positive", "clf" or "tr".
A crash, a hang and too much memory are outcomes and not the end of the run; times are of the processor that a case
uses, which a busy machine does not change:
correct | clear_error | unclear_error | wrong_silent | nan_output | crash | hang | na
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
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
UNTIL_SIGNAL = 0.15  # seconds into the fits
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


def run(cases: dict[str, Case], subject: Subject, seconds: float) -> dict[str, Outcome]:
    """The outcome of every case; one child for all, the next child goes on behind the case that ended the last."""
    outcomes: dict[str, Outcome] = {}
    batches = [{title: case} for title, case in cases.items() if case.is_alone]
    batches.append({title: case for title, case in cases.items() if not case.is_alone})
    for batch in batches:
        while waiting := [title for title in batch if title not in outcomes]:
            outcomes |= _one_child({title: batch[title] for title in waiting}, subject, seconds)
    return {title: outcomes[title] for title in cases}


def _one_child(cases: dict[str, Case], subject: Subject, seconds: float) -> dict[str, Outcome]:
    """The outcomes of the first cases, at least one: up to the case that ends the child."""
    reader, writer = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        reader.close()
        _in_child(cases, subject, writer, seconds)
    writer.close()
    outcomes = {}
    with reader:
        for title, case in cases.items():
            outcomes[title], is_alive = _watched(case, child, reader)
            if not is_alive:
                return outcomes
    os.waitpid(child, 0)
    return outcomes


def _in_child(cases: dict[str, Case], subject: Subject, writer: Connection, seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silent = os.open(os.devnull, os.O_WRONLY)
    is_interrupt = any(case.is_interrupt for case in cases.values())
    os.dup2(writer.fileno() if is_interrupt else silent, 1)
    os.dup2(silent, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    warnings.simplefilter("ignore")
    for case in cases.values():
        most = int(time.process_time() + seconds * THREADS) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        try:
            case.run(subject)
            outcome: Outcome = "correct", ""
        except BaseException as error:
            outcome = outcome_of(error)
        writer.send((outcome, time.process_time()))
    os._exit(0)


def _watched(case: Case, child: int, reader: Connection) -> tuple[Outcome, bool]:
    """The outcome of the case that the child is at, and whether the child lives on."""
    sent = None
    if case.is_interrupt and reader.poll(STUCK) and os.read(reader.fileno(), 8):
        reader.poll(UNTIL_SIGNAL)
        os.kill(child, signal.SIGINT)
        sent = _processor_seconds(child)
    if not reader.poll(STUCK):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return ("hang", f"longer than {STUCK} s"), False
    try:
        outcome, used = reader.recv()
    except EOFError:
        return _end_of_child(os.waitpid(child, 0)[1]), False
    if sent is not None and used - sent > LATEST_ANSWER * THREADS:
        return ("hang", f"answered the interrupt after {used - sent:.1f} s"), True
    return outcome, True


def _end_of_child(status: int) -> Outcome:
    if not os.WIFSIGNALED(status):
        return "crash", f"exit {status}"
    if os.WTERMSIG(status) == signal.SIGXCPU:
        return "hang", "more seconds of the processor than the limit"
    return "crash", f"signal {os.WTERMSIG(status)}"


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
        if only not in ("", name):
            continue
        subject = Subject(make, kind, frozenset(*flags))
        subject.fit(*subject.rows())  # libraries are loaded before the fork
        cases = {title: case for title, case in CASES.items() if kind in case.kinds and words in title}
        results[name] = run(cases, subject, seconds)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factories", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", default="")
    parser.add_argument("--json")
    parser.add_argument("--serve", action="store_true", help="names on standard input")
    parser.add_argument("--seconds", type=float, default=20, help="of the processor that a case may use")
    given = parser.parse_args()
    module, _, variable = given.factories.partition(":")
    factories = getattr(import_module(module), variable)
    if given.serve:
        for name in map(str.strip, sys.stdin):
            print(json.dumps(battery(factories, name, given.case, given.seconds)[name]), flush=True)
        return 0
    results = battery(factories, given.only, given.case, given.seconds)
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
