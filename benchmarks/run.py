"""The runner: every rival on every problem, in turns.

    python -m benchmarks.run [--problems NAME ...] [--rivals NAME ...] [--repeats K] [--quick] [--out FILE]

Each rival lives in its own process, so thread pools, patches and memory do not mix. The runs of one problem
are interleaved: round 1 times every variant once, round 2 again from another start, and so on; the minimum
counts. Slow variants leave after --seconds. The runner itself evaluates every solution's objective.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from . import record, reference, table
from .problems import PROBLEMS, Data, Problem, objective
from .rivals import MODULES

# OpenBLAS threads spin for some 30 ms after a product; the next run should not pay for them.
PAUSE = 0.05
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class RivalFailed(RuntimeError):
    """A rival answered with an error, or its process ended."""


class Worker:
    """A rival's process. ask() sends a request and waits for the answer."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        cores = sorted(os.sched_getaffinity(0))[:threads] if hasattr(os, "sched_getaffinity") else []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads)),
        )
        if cores:  # TBB and others read no variable but obey the affinity
            os.sched_setaffinity(self.process.pid, cores)
        self.versions: dict[str, str] = {}

    def ask(self, do: str, **details: Any) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(json.dumps({"do": do, **details}), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise RivalFailed(f"the process ended with code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RivalFailed(answer["error"])
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@dataclass
class Entry:
    """One variant of one rival on the problem in hand, and what was measured."""

    worker: Worker
    variant: str
    calls: int
    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    spent: float = 0.0
    peak_memory: int | None = None
    answer: dict[str, Any] | None = None
    error: str = ""

    def measure_memory(self, seconds: float) -> None:
        """An untimed first fit. One so slow that no time is left counts as the only run."""
        answer = self.spend("memory")
        if answer:
            self.peak_memory = answer["peak_memory"]
            if self.spent >= seconds:
                self.keep(answer)

    def time_once(self) -> None:
        answer = self.spend("time", calls=self.calls)
        if answer:
            self.keep(answer)

    def spend(self, do: str, **details: Any) -> dict[str, Any] | None:
        start = time.perf_counter()
        try:
            return self.worker.ask(do, variant=self.variant, **details)
        except RivalFailed as failure:
            self.error = str(failure)
            return None
        finally:
            self.spent += time.perf_counter() - start
            time.sleep(PAUSE)

    def keep(self, answer: dict[str, Any]) -> None:
        self.answer = answer
        self.walls.append(answer["wall"])
        self.cpus.append(answer["cpu"])


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    workers = start(options.rivals, options.threads)
    records: list[record.Record] = []
    try:
        for name in options.problems:
            say(f"{name} ...")
            records += measure(PROBLEMS[name], workers, options)
            if options.out:
                record.write(options.out, records)
    finally:
        for worker in workers:
            worker.close()
    print(table.markdown(records))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Time all rivals.")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--rivals", nargs="+", choices=MODULES, default=list(MODULES), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=7, help="interleaved runs of each variant (7)")
    parser.add_argument("--seconds", type=float, default=10, help="time a variant gets on a problem (10)")
    parser.add_argument("--threads", type=int, default=cores(), help="threads a rival may use (all cores)")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that all works")
    parser.add_argument("--out", type=Path, help="write the result lines to this file")
    return parser.parse_args(arguments)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start(names: list[str], threads: int) -> list[Worker]:
    """The processes of the rivals that are installed."""
    workers = []
    for worker in [Worker(name, threads) for name in names]:
        try:
            worker.versions = worker.ask("hello")["versions"]
            workers.append(worker)
        except RivalFailed as failure:
            say(f"skipped {worker.name}: {failure}")
            worker.close()
    return workers


def measure(problem: Problem, workers: list[Worker], options: argparse.Namespace) -> list[record.Record]:
    data = problem.data(options.quick)
    entries = enter(problem, workers, data.checksum(), options.quick)
    for entry in entries:
        entry.measure_memory(options.seconds)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    for round_number in range(options.repeats):
        first = round_number % len(entries) if entries else 0
        for entry in entries[first:] + entries[:first]:
            if not entry.error and (not entry.walls or entry.spent < options.seconds):
                entry.time_once()
    shared = {
        "problem": describe(problem, data, options.quick),
        "machine": machine(),
        "threads": options.threads,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": load,
    }
    return compare(entries, data, shared)


def enter(problem: Problem, workers: list[Worker], checksum: int, quick: bool) -> list[Entry]:
    """Let every process make the data, one after the other, and list who solves this kind of problem."""
    entries = []
    for worker in workers:
        try:
            answer = worker.ask("load", problem=problem.name, quick=quick)
        except RivalFailed as failure:
            say(f"  {worker.name} cannot load {problem.name}: {failure}")
            continue
        if answer["variants"] and answer["checksum"] != checksum:
            raise RuntimeError(f"{worker.name} made other data for {problem.name}: checksums differ.")
        entries += [Entry(worker, variant, problem.calls) for variant in answer["variants"]]
    return entries


def compare(entries: list[Entry], data: Data, shared: dict[str, Any]) -> list[record.Record]:
    """Judge all solutions by the same objective and the same reference."""
    coef, intercept = reference.solve(data)
    best = objective(coef, intercept, data)
    values: list[float | None] = []
    for entry in entries:
        answer = None if entry.error else entry.answer
        values.append(objective(np.array(answer["coef"]), answer["intercept"], data) if answer else None)
    best = min([best, *(value for value in values if value is not None)])
    return [line(entry, value, best, coef, shared) for entry, value in zip(entries, values, strict=True)]


def line(entry: Entry, value: float | None, best: float, coef: Any, shared: dict[str, Any]) -> record.Record:
    answer = None if value is None else entry.answer
    difference = None if answer is None else np.abs(answer["coef"] - coef).max() / np.abs(coef).max()
    peak = entry.peak_memory
    return {
        **shared,
        "rival": entry.worker.name,
        "variant": entry.variant,
        "versions": entry.worker.versions,
        "status": "ok" if answer else "failed",
        "message": entry.error,
        "objective": value,
        "best_objective": best,
        "excess": (value - best) / best if value is not None else None,
        "coef_difference": None if difference is None else float(difference),
        "certified": answer["certified"] if answer else None,
        "wall": min(entry.walls) if answer else None,
        "cpu": min(entry.cpus) if answer else None,
        "walls": entry.walls,
        "cpus": entry.cpus,
        "runs": len(entry.walls),
        "calls": entry.calls,
        "peak_memory": peak,
        "peak_memory_of_X": None if peak is None else peak / shared["problem"]["bytes"],
    }


def describe(problem: Problem, data: Data, quick: bool) -> dict[str, Any]:
    n_rows, n_features = data.X.shape
    return {
        "name": f"{problem.name} (quick)" if quick else problem.name,
        "kind": problem.kind,
        "about": problem.about,
        "rows": n_rows,
        "columns": n_features,
        "dtype": str(data.X.dtype),
        "storage": data.storage(),
        "bytes": data.n_bytes(),
        "alpha": data.alpha,
        "seed": problem.seed,
        "checksum": data.checksum(),
    }


def machine() -> str:
    """The processor's name and the number of cores this run may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        rows = info.read_text().splitlines()
        name = next((row.split(":")[1].strip() for row in rows if row.startswith("model name")), name)
    return f"{name}, {cores()} cores, {platform.system()}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
