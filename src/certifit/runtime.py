"""The compiled core that fits this processor, and how many threads it may use.

CERTIFIT_BUILD=baseline or avx2 forces one build. Threads: `threads(n)` around a call, else OMP_NUM_THREADS,
else the processors this process may run on.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

_BUILDS = ("baseline", "avx2")
_asked: ContextVar[int | None] = ContextVar("certifit_threads", default=None)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _pick_core() -> ModuleType:
    forced = os.environ.get("CERTIFIT_BUILD", "")
    if forced and forced not in _BUILDS:
        raise ImportError(f"CERTIFIT_BUILD must be one of {', '.join(_BUILDS)}. Got {forced!r}.")
    baseline = import_module("certifit._core_baseline")
    if forced == "baseline" or (not forced and not baseline.cpu_has_avx2()):
        return baseline
    if not baseline.cpu_has_avx2():
        raise ImportError("CERTIFIT_BUILD=avx2, but this processor has no AVX2 and FMA.")
    return import_module("certifit._core_avx2")


core = _pick_core()
build = core.__name__.rpartition("_core_")[2]


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use at most n threads inside the `with` block. The result has the same bits for any n."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"threads must be an integer >= 1. Got {n!r}.")
    token = _asked.set(n)
    try:
        yield
    finally:
        _asked.reset(token)


def n_threads() -> int:
    """Threads that a call may use now."""
    asked = _asked.get()
    if asked is not None:
        return asked
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    available = min(available, _cgroup_processors())
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


def in_order(f: Callable[[Any], Result], items: Iterable[Any]) -> Iterator[Result]:
    """f of every item, in the order of the items, on the threads that a call may use; few results wait at a time."""
    n = n_threads()
    if n == 1:
        yield from map(f, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n) as pool:
        for item in items:
            waiting.append(pool.submit(f, item))
            if len(waiting) > n:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@cache
def _cgroup_processors() -> int:
    """Processors' worth of time that a container grants, rounded up."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):  # no cgroup, or quota is "max"
        return os.cpu_count() or 1


def one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run `function` with BLAS and LAPACK on one thread: same bits everywhere, and no fight with our threads."""

    @wraps(function)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        _limit.enter()
        try:
            return function(*args, **kwargs)
        finally:
            _limit.leave()

    return limited


class _BlasLimit:
    """BLAS has one setting a process: the first call in takes it, the last one out gives it back."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = Lock()
        self.depth = 0
        self.controller: Any = None
        self.held: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.depth == 0:
                if self.controller is None:  # looking for the loaded libraries takes milliseconds
                    from threadpoolctl import ThreadpoolController

                    self.controller = ThreadpoolController()
                self.held = self.controller.limit(limits=1, user_api="blas")
            self.depth += 1

    def leave(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.held.restore_original_limits()


_limit = _BlasLimit()
# A child of fork has only the thread that forked: whoever else held the limit is not there to give it back.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.reset)
