"""Lasso paths and cross-validation at an equal duality gap: certifit, scikit-learn, celer, skglm, glmnet, adelie.

    python -m benchmarks.sparse [--problems NAME ...] [--rivals NAME ...] [--repeats 3] [--quick]
    python -m benchmarks.sparse --python adelie=OTHER/bin/python --out benchmarks/results/sparse.jsonl

Every rival has its own process and two threads where it can use them, or as many as OMP_NUM_THREADS says. Runs are
interleaved and the minimum counts; a run beyond --cap seconds of CPU ends the rival. CPU seconds (of all threads) tell
the work where the machine is busy.
The worst relative gap (gap / objective, in plain NumPy, on all rows and every alpha of the path) stands beside each
time; TOLS are chosen so that a peer comes to 1e-6, or as near as it can.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from . import record
from .run import THREAD_VARIABLES, machine, say
from .sparse_problems import PROBLEMS, Data, Sparse, made
from .sparse_rivals import RIVALS, THREADS
from .table import grid, seconds

OURS = "certifit"
# What each library calls its tolerance: the power of ten with a worst gap near 1e-6 over these problems.
TOLS = {
    "certifit": 1e-8,
    "scikit-learn": 1e-7,
    "celer": 1e-9,
    "skglm": 1e-7,
    "python-glmnet": 1e-14,
    "adelie": 1e-14,
}


class TooSlow(RuntimeError):
    """No answer within the cap, or none at all."""


@dataclass
class Entry:
    """A rival on the problem in hand, and what was measured."""

    rival: str
    kind: str
    folder: Path
    tol: float
    cap: float
    python: str
    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    chosen: int = -1
    error: str = ""

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.python, "-m", "benchmarks.sparse_rivals", self.rival, self.kind, repr(self.tol), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
            env=os.environ | dict.fromkeys(THREAD_VARIABLES, str(THREADS)),
        )
        try:
            answer = self.read(300)
            self.versions = {self.rival: answer["version"], "numpy": answer["numpy"]}
        except TooSlow as failure:
            self.error = str(failure)

    def read(self, limit: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        started = used(self.process.pid)
        while not (ready := select.select([self.process.stdout], [], [], 1.0)[0]):
            if used(self.process.pid) - started > limit:
                break
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            raise TooSlow("the process ended" if ready else f"over {limit:g} s of CPU")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TooSlow(answer["error"])
        return answer

    def ask(self, what: str) -> dict[str, Any] | None:
        assert self.process.stdin is not None
        print(what, file=self.process.stdin, flush=True)
        try:
            return self.read(self.cap)
        except TooSlow as failure:
            self.error = str(failure)
            return None

    def time_once(self) -> None:
        answer = self.ask("time")
        if answer:
            self.walls.append(answer["wall"])
            self.cpus.append(answer["cpu"])
            self.chosen = answer["chosen"]

    def weights(self) -> Any:
        return np.load(self.folder / f"{self.rival}.weights.npy")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def used(pid: int) -> float:
    """CPU seconds of a process: on a busy machine the clock on the wall says little. Without /proc, that clock."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return time.perf_counter()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(problem: Sparse, options: argparse.Namespace) -> list[record.Record]:
    data = made(problem, options.quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data.save(folder)
        entries = [
            Entry(
                rival,
                problem.kind,
                folder,
                float(options.tol.get(rival, TOLS[rival])),
                options.cap,
                options.python.get(rival, sys.executable),
            )
            for rival in options.rivals
        ]
        try:
            return compare(problem, data, timed(entries, options), options)
        finally:
            for entry in entries:
                entry.close()


def timed(entries: list[Entry], options: argparse.Namespace) -> list[Entry]:
    for entry in entries:
        entry.start()
        if entry.error:
            say(f"  {entry.rival}: {entry.error}")
    for number in range(options.repeats):
        first = number % len(entries)
        for entry in entries[first:] + entries[:first]:
            if not entry.error and sum(entry.cpus) < options.spend:
                entry.time_once()
                time.sleep(0.05)  # threads of a finished product spin for a while
    return entries


def compare(problem: Sparse, data: Data, entries: list[Entry], options: argparse.Namespace) -> list[record.Record]:
    """Objective, gap and weights of everyone, by the same function. Of "cv": of the alpha that certifit chose."""
    load = os.getloadavg()[0]
    last = next((entry.chosen for entry in entries if entry.rival == OURS and entry.walls), -1)
    judged: dict[str, tuple[float, float, Any]] = {}
    for entry in entries:
        if not entry.walls or (problem.kind == "cv" and entry.ask("path") is None):
            continue
        weights = entry.weights()
        pairs = [data.objective_and_gap(alpha, w) for alpha, w in zip(data.alphas, weights, strict=True)]
        judged[entry.rival] = pairs[last][0], max(gap / objective for objective, gap in pairs), weights[last]
    best = min((objective for objective, _, _ in judged.values()), default=0.0)
    reference = next((w for objective, _, w in judged.values() if objective == best), np.ones(1))
    shared = {
        "problem": describe(problem, data, options.quick),
        "machine": machine(),
        "threads": THREADS,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "load": load,
        "best_objective": best,
        "certified": None,
        "calls": 1,
        "peak_memory": None,
        "peak_memory_of_X": None,
    }
    return [line(entry, judged.get(entry.rival), reference, shared) for entry in entries]


def line(entry: Entry, found: tuple[float, float, Any] | None, reference: Any, shared: dict[str, Any]) -> record.Record:
    objective, gap, weights = found if found else (None, None, None)
    best = shared["best_objective"]
    off = None if weights is None else float(np.abs(weights - reference).max() / np.abs(reference).max())
    return {
        **shared,
        "rival": entry.rival,
        "variant": f"tol {entry.tol:g}",
        "versions": entry.versions,
        "status": "ok" if entry.walls else "failed",
        "message": entry.error,
        "objective": objective,
        "excess": None if objective is None else (objective - best) / best,
        "gap": gap,
        "coef_difference": off,
        "wall": min(entry.walls, default=None),
        "cpu": min(entry.cpus, default=None),
        "walls": entry.walls,
        "cpus": entry.cpus,
        "runs": len(entry.walls),
    }


def describe(problem: Sparse, data: Data, quick: bool) -> dict[str, Any]:
    n_rows, n_columns = data.X.shape
    values = data.X.data if data.is_sparse else data.X
    return {
        "name": f"{problem.name} (quick)" if quick else problem.name,
        "kind": f"lasso {problem.kind}",
        "about": problem.about,
        "rows": n_rows,
        "columns": n_columns,
        "dtype": str(values.dtype),
        "storage": "csc" if data.is_sparse else "F",
        "bytes": int(values.nbytes),
        "alpha": float(data.alphas[-1]),
        "seed": 0,
        "checksum": zlib.crc32(np.ascontiguousarray(data.y), zlib.crc32(values.ravel(order="K").view(np.uint8))),
    }


def table(lines: list[record.Record]) -> str:
    """Of one problem. A ratio is the rival's time over certifit's."""
    problem = lines[0]["problem"]
    ours = next((line for line in lines if line["rival"] == OURS), lines[0])
    rows = []
    for one in sorted(lines, key=lambda line: (line["cpu"] is None, line["cpu"])):
        ratios = [
            "-" if one[key] is None or not ours[key] else f"{one[key] / ours[key]:.1f}" for key in ("wall", "cpu")
        ]
        quality = ["-" if one[key] is None else f"{one[key]:.0e}" for key in ("gap", "coef_difference")]
        times = [seconds(one["wall"]), ratios[0], seconds(one["cpu"]), ratios[1]]
        rows.append([one["rival"], one["variant"], *times, *quality, one["message"][:60]])
    head = ["rival", "", "wall", "ratio", "CPU", "ratio", "worst gap", "weights differ by", ""]
    title = f"## {problem['name']}: {problem['about']}, {problem['rows']:,} x {problem['columns']:,}"
    return f"\n{title} (load {lines[0]['load']:.1f})\n\n{grid(head, rows)}"


def main() -> None:
    options = parse()
    records: list[record.Record] = []
    for name in options.problems:
        lines = measure(PROBLEMS[name], options)
        print(table(lines), flush=True)
        records += lines
        if options.out:
            record.write(options.out, records)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description="Time lasso paths.")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=list(PROBLEMS), metavar="NAME")
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=list(RIVALS), metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3, help="interleaved runs of each rival (3)")
    parser.add_argument("--cap", type=float, default=60, help="CPU seconds that a run may take (60)")
    parser.add_argument("--spend", type=float, default=20, help="CPU seconds after which a rival runs no more (20)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and columns")
    parser.add_argument("--python", nargs="*", default=[], metavar="RIVAL=PATH", help="other interpreters")
    parser.add_argument("--tol", nargs="*", default=[], metavar="RIVAL=TOL", help="other tolerances")
    parser.add_argument("--out", type=Path, help="write the result lines to this file")
    options = parser.parse_args()
    options.python, options.tol = (
        dict(pair.split("=", 1) for pair in given) for given in (options.python, options.tol)
    )
    return options


if __name__ == "__main__":
    main()
