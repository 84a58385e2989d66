"""Functions that take turns: wall and CPU seconds of each, the minimum of its runs; and result lines of them.

A disturbance hits everyone or no one. Where other work shares the machine, compare CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

LONG = 60.0  # seconds after which a comparison makes no further round


@dataclass(frozen=True)
class Timed:
    """Seconds of the fastest run, and what the last one gave."""

    wall: float
    cpu: float
    result: Any


@dataclass(frozen=True)
class Compared:
    """Ours against one rival; ratios above 1: ours is faster."""

    task: str
    size: str
    rival: str
    ours: float
    theirs: float
    ours_cpu: float
    theirs_cpu: float
    difference: float
    agrees: str
    load: float
    ratio: float
    cpu_ratio: float


def in_turns(functions: dict[str, Callable[[], Any]], rounds: int = 7) -> dict[str, Timed]:
    """Every function once a round, in order."""
    walls: dict[str, list[float]] = {name: [] for name in functions}
    cpus: dict[str, list[float]] = {name: [] for name in functions}
    results: dict[str, Any] = {}
    begin = time.perf_counter()
    for _ in range(rounds):
        for name, f in functions.items():
            results.pop(name, None)
            wall, cpu = time.perf_counter(), time.process_time()
            results[name] = f()
            walls[name].append(time.perf_counter() - wall)
            cpus[name].append(time.process_time() - cpu)
        if time.perf_counter() - begin > LONG:
            break
    return {name: Timed(min(walls[name]), min(cpus[name]), results[name]) for name in functions}


def many(f: Callable[[], Any], times: int) -> Callable[[], Any]:
    """f so many times, for what is too short to be timed once."""

    def all_of_them() -> Any:
        for _ in range(times):
            result = f()
        return result

    return all_of_them


def compare(
    task: str,
    size: str,
    ours: Callable[[], Any],
    rivals: dict[str, Callable[[], Any]],
    difference: Callable[[Any, Any], float] = lambda a, b: float("nan"),
    note: Callable[[Any], str] = lambda result: "",
    rounds: int = 7,
) -> Iterator[Compared]:
    """One line a rival."""
    timed = in_turns({"ours": ours} | rivals, rounds)
    mine = timed["ours"]
    for name in rivals:
        other = timed[name]
        yield Compared(
            task,
            size,
            name,
            mine.wall,
            other.wall,
            mine.cpu,
            other.cpu,
            float(difference(mine.result, other.result)),
            note(mine.result),
            round(os.getloadavg()[0], 2),
            other.wall / mine.wall,
            other.cpu / mine.cpu,
        )


def run(description: str | None, tasks: dict[str, Callable[[bool], Iterator[Compared]]]) -> None:
    """The command line of a file of comparisons."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=[], metavar="TASK", help=f"some of {', '.join(tasks)}")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args()
    if unknown := set(given.tasks) - set(tasks):
        parser.error(f"unknown {sorted(unknown)}. Tasks are {', '.join(tasks)}.")
    for task in given.tasks or tasks:
        for one in tasks[task](given.quick):
            print(shown(one), flush=True)
            if given.out:
                with open(given.out, "a") as file:
                    file.write(json.dumps(asdict(one)) + "\n")


def shown(one: Compared) -> str:
    """A line for the terminal: wall and CPU seconds and their ratios."""
    differ = f"  differ by {one.difference:.1e}" if np.isfinite(one.difference) else ""
    return (
        f"{one.task:34} {one.size:42} {one.rival:40} ours {one.ours:8.4f} s, CPU {one.ours_cpu:8.4f}  theirs "
        f"{one.theirs:8.4f} s, CPU {one.theirs_cpu:8.4f}  {one.ratio:6.1f}x, CPU {one.cpu_ratio:6.1f}x{differ}  "
        f"{one.agrees}".rstrip()
    )
