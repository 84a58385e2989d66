"""One rival's process. Reads requests and writes answers, one JSON object a line.

{"do": "hello"}                          -> versions
{"do": "load", "problem", "quick"}       -> checksum of the data, variants that solve this kind
{"do": "time", "variant", "calls"}       -> wall, cpu of one fit; coef, intercept, certified
{"do": "memory", "variant"}              -> the same of a first fit, and its peak memory in bytes or null
"""

import ctypes
import gc
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from . import rivals
from .problems import PROBLEMS, Data

Answer = dict[str, Any]
WARM_UP_ROWS = 2_000


def main() -> None:
    answers = private_stdout()
    warnings.simplefilter("ignore")
    bench = Bench(rivals.load(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(bench, request.pop("do"))(**request)
        except Exception as error:  # any failure of a rival is a result, not a crash of the run
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, allow_nan=False), file=answers, flush=True)


def private_stdout() -> TextIO:
    """Keep stdout for answers; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


class Bench:
    """The rival and the problem in hand."""

    def __init__(self, rival: rivals.Rival) -> None:
        self.rival = rival
        self.fits: dict[str, rivals.Solver] = {}
        self.data: Data | None = None

    def hello(self) -> Answer:
        version = self.rival.version()
        packages = {name: rivals.installed(name) for name in ("numpy", "scipy")}
        return {"versions": {"python": platform.python_version(), **packages, self.rival.NAME: version}}

    def load(self, problem: str, quick: bool) -> Answer:
        self.data = None
        self.fits = self.rival.solvers().get(PROBLEMS[problem].kind, {})
        if not self.fits:
            return {"variants": [], "checksum": None}
        self.data = PROBLEMS[problem].data(quick)
        return {"variants": list(self.fits), "checksum": self.data.checksum()}

    def memory(self, variant: str) -> Answer:
        """The peak of a first full fit; a few rows come first, so imports and thread pools do not count."""
        data, fit = self.current(variant)
        fit(data.head(WARM_UP_ROWS))
        answers: list[Answer] = []
        peak = peak_extra(lambda: answers.append(self.time(variant, calls=1)))
        return {**answers[0], "peak_memory": peak}

    def time(self, variant: str, calls: int) -> Answer:
        data, fit = self.current(variant)
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(calls):
            solution = fit(data)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        coef = np.asarray(solution.coef, dtype=np.float64).ravel()
        if not (np.isfinite(coef).all() and np.isfinite(solution.intercept)):
            raise ArithmeticError("the weights are not finite")
        return {
            "wall": wall / calls,
            "cpu": cpu / calls,
            "coef": coef.tolist(),
            "intercept": solution.intercept,
            "certified": solution.certified,
        }

    def current(self, variant: str) -> tuple[Data, rivals.Solver]:
        if self.data is None:
            raise RuntimeError("load a problem first")
        return self.data, self.fits[variant]


def peak_extra(run: Callable[[], object]) -> int | None:
    """Highest resident memory during run() above the level before it; None where Linux's /proc is missing."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # memory a former fit left in the heap would hide what this one takes
    try:
        Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM back to VmRSS
        before = status_bytes("VmRSS")
    except OSError:
        run()
        return None
    run()
    return max(0, status_bytes("VmHWM") - before)


def status_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    main()
