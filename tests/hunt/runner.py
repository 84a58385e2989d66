"""Many cases on a few processes: resumes from its file, ends cleanly at Ctrl-C, and gives a case that hangs up.

Every line of the file is the record of one case; the first line is the seed.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import certifit as cf
from tests.hunt.estimators import ESTIMATORS, estimator_of
from tests.hunt.judge import Record
from tests.hunt.table import table_of

BATCH = 20  # cases per message to a process
STARVED = 30  # times the limit: how long a process may wait for a processor before it counts as one that hangs


def cases_of(n_cases: int, names: set[str]) -> Iterator[int]:
    """The first n_cases case numbers whose estimator is among these."""
    found, case = 0, 0
    while found < n_cases:
        if estimator_of(case).name in names:
            yield case
            found += 1
        case += 1


def run_case(seed: int, case: int, exact: bool = False) -> dict[str, Any]:
    """The record of one case; an error of the hunt itself is a finding too."""
    row = estimator_of(case)
    try:
        return row.run(seed, case, exact).to_dict()
    except Exception as error:
        record = Record(case, row.name, [])
        record.crashes.append({"state": "the hunt itself", "error": f"{type(error).__name__}: {error}"[:200], "at": ""})
        return record.to_dict()


def _work(pipe: Connection, seed: int, exact: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: it ends its processes
    try:
        with cf.threads(1):
            while (cases := pipe.recv()) is not None:
                for case in cases:
                    pipe.send(run_case(seed, case, exact))
    except EOFError:
        return


@dataclass
class Worker:
    """A process, the cases it still has, and its own seconds and those of the clock when it last sent one."""

    process: Any
    pipe: Connection
    cases: list[int] = field(default_factory=list)
    since: tuple[float, float] = (0.0, 0.0)

    @classmethod
    def start(cls, seed: int, exact: bool) -> Worker:
        """A new process."""
        ours, theirs = mp.Pipe()
        process = mp.get_context("spawn").Process(target=_work, args=(theirs, seed, exact), daemon=True)
        process.start()
        theirs.close()
        return cls(process, ours)

    def give(self, cases: list[int]) -> None:
        """More cases."""
        self.cases = list(cases)
        self.noted()
        self.pipe.send(cases)

    def noted(self) -> None:
        """It said something."""
        self.since = (processor_seconds(self.process.pid), time.monotonic())

    def hangs(self, timeout: float) -> bool:
        """Whether a case takes longer than this: seconds of the processor, so that other work beside it is no fault."""
        worked, waited = processor_seconds(self.process.pid) - self.since[0], time.monotonic() - self.since[1]
        return bool(self.cases) and (worked > timeout or waited > STARVED * timeout)

    def end(self) -> None:
        """Stop this process."""
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def processor_seconds(pid: int) -> float:
    """What a process has had of the processor; of the clock, where the system does not tell that."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(
    n_cases: int, seed: int, names: set[str], jobs: int, out: Path, timeout: float, exact: bool = False
) -> list[dict[str, Any]]:
    """All records, those of an earlier run with the same file too. Prints the table. exact: with exact proofs."""
    console = Console(soft_wrap=True)
    if not console.is_terminal:
        console.width = 200
    records = resumed(out, seed, exact)
    done = {record["case"] for record in records}
    wanted = list(cases_of(n_cases, names))
    left = [case for case in wanted if case not in done]
    began, fresh = time.monotonic(), 0
    with out.open("a") as file, _bar(console) as bar:
        if not out.stat().st_size:
            file.write(json.dumps(head_of(seed, exact)) + "\n")
        task = bar.add_task("hunting", total=len(wanted), completed=len(wanted) - len(left))
        try:
            for record in _records(left, seed, jobs, timeout, exact):
                _kept(file, records, record)
                fresh += 1
                bar.advance(task)
        except KeyboardInterrupt:
            console.print("Stopped. The same command goes on from here.")
    taken = set(wanted)
    records = [record for record in records if record["case"] in taken]
    hours = (time.monotonic() - began) / 3600
    table_of(console, records, seed)
    if fresh:
        console.print(
            f"{fresh:,} cases in {hours * 60:.1f} minutes: {fresh / hours:,.0f} cases per hour. Records: {out}"
        )
    if exact and records:
        share = sum(record["exact_seconds"] for record in records) / sum(record["seconds"] for record in records)
        console.print(f"{share:.0%} of the time went into exact proofs.")
    return records


def head_of(seed: int, exact: bool) -> dict[str, Any]:
    """The first line of a file of records: runs that differ in it are not mixed."""
    return {"seed": seed, "estimators": list(ESTIMATORS)} | ({"exact": True} if exact else {})


def resumed(out: Path, seed: int, exact: bool = False) -> list[dict[str, Any]]:
    """The records of an earlier run; a last line that was cut off is dropped."""
    out.parent.mkdir(parents=True, exist_ok=True)
    lines = out.read_text().splitlines() if out.exists() else []
    if not lines:
        return []
    head = json.loads(lines[0])
    if head != head_of(seed, exact):
        raise SystemExit(
            f"{out} holds the run of another seed, of other estimators, or not of the same --exact. Use another --out, "
            "or remove it."
        )
    records = []
    for line in lines[1:]:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    out.write_text("\n".join([lines[0], *(json.dumps(record) for record in records)]) + "\n")
    return records


def _kept(file: TextIO, records: list[dict[str, Any]], record: dict[str, Any]) -> None:
    records.append(record)
    file.write(json.dumps(record) + "\n")
    file.flush()


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
    )


def _records(cases: list[int], seed: int, jobs: int, timeout: float, exact: bool) -> Iterator[dict[str, Any]]:
    """Records as they come; a process that works on a case for `timeout` seconds is replaced."""
    queue = list(reversed(cases))
    workers = [Worker.start(seed, exact) for _ in range(max(min(jobs, len(cases)), 0))]
    try:
        while queue or any(worker.cases for worker in workers):
            for worker in workers:
                if not worker.cases and queue:
                    worker.give([queue.pop() for _ in range(min(BATCH, len(queue)))])
            ready = wait([worker.pipe for worker in workers if worker.cases], timeout=1.0)
            for place, worker in enumerate(workers):
                if worker.pipe in ready:
                    try:
                        record = worker.pipe.recv()
                    except EOFError:  # the process died
                        workers[place] = _replaced(worker, seed, exact)
                        yield _lost(worker, "the process died")
                        continue
                    worker.cases.remove(record["case"])
                    worker.noted()
                    yield record
                elif worker.hangs(timeout):
                    workers[place] = _replaced(worker, seed, exact)
                    yield _lost(worker, f"no answer within {timeout:g} s")
    finally:
        for worker in workers:
            worker.end()


def _replaced(worker: Worker, seed: int, exact: bool) -> Worker:
    worker.end()
    other = Worker.start(seed, exact)
    if worker.cases[1:]:
        other.give(worker.cases[1:])
    return other


def _lost(worker: Worker, why: str) -> dict[str, Any]:
    case = worker.cases[0]
    record = Record(case, estimator_of(case).name, [])
    record.crashes.append({"state": "any", "error": f"hang: {why}", "at": ""})
    return record.to_dict()
