"""The compiled core that fits this processor, and how many threads, how much memory and how much work it may use.

CERTIFIT_BUILD=baseline or avx2 forces one build. Threads: `threads(n)` around a call, else OMP_NUM_THREADS,
else the processors this process may run on. Memory: `memory(n)` around a call, else a quarter of what there is.
Work: `work(hours)` around a call, else 8 hours of one processor core.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from importlib import import_module
from itertools import chain, islice, product
from pathlib import Path
from threading import Lock, local
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

_BUILDS = ("baseline", "avx2")
MANY_ROWS = 100_000  # work on fewer is not worth a thread
LONG = 20.0  # seconds of one processor core that are announced
_asked: ContextVar[int | None] = ContextVar("certifit_threads", default=None)
_granted: ContextVar[int | None] = ContextVar("certifit_memory", default=None)
_hours: ContextVar[float] = ContextVar("certifit_work", default=8.0)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _pick_core() -> ModuleType:
    forced = os.environ.get("CERTIFIT_BUILD", "")
    if forced and forced not in _BUILDS:
        raise ImportError(f"CERTIFIT_BUILD must be one of {', '.join(_BUILDS)}. Got {forced!r}.")
    try:
        baseline = import_module("certifit._core_baseline")
    except ModuleNotFoundError:
        return _only_core(forced)
    if forced == "baseline" or (not forced and not baseline.cpu_has_avx2()):
        return baseline
    if not baseline.cpu_has_avx2():
        raise ImportError("CERTIFIT_BUILD=avx2, but this processor has no AVX2 and FMA.")
    return import_module("certifit._core_avx2")


def _only_core(forced: str) -> ModuleType:
    """The core where it was built for the processor at hand alone (CERTIFIT_THIS_PROCESSOR in CMakeLists.txt)."""
    if forced == "baseline":
        raise ImportError("CERTIFIT_BUILD=baseline, but only the core for AVX2 was built. `make test` builds both.")
    if _lacks_avx2(Path("/proc/cpuinfo")):  # asked before its first instruction, which would end the process
        raise ImportError(
            "This certifit was built for processors with AVX2 and FMA, and this one has not both. Build it here: "
            "`make clean demo` for this processor, `make clean test` for any."
        )
    return import_module("certifit._core_avx2")


def _lacks_avx2(cpuinfo: Path) -> bool:
    """Whether Linux says that the processor has no AVX2 or no FMA; False where nothing is said."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return False
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), None)
    return flags is not None and not {"avx2", "fma"} <= set(flags)


core = _pick_core()
build = core.__name__.rpartition("_core_")[2]


@contextmanager
def _allowed(limit: ContextVar[Any], value: Any) -> Iterator[None]:
    """Another limit inside the `with` block."""
    token = limit.set(value)
    try:
        yield
    finally:
        limit.reset(token)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Use at most n threads inside the `with` block. The result has the same bits for any n."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"threads must be an integer >= 1. Got {n!r}.")
    with _allowed(_asked, n):
        yield


def n_threads() -> int:
    """Threads that a call may use now."""
    asked = _asked.get()
    if asked is not None:
        return asked
    return _default_threads(os.environ.get("OMP_NUM_THREADS", ""))


@cache
def _default_threads(limit: str) -> int:
    """Read once per process: small fits ask some ten times."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    available = min(available, _cgroup_processors())
    limit = limit.split(",", maxsplit=1)[0].strip()
    return min(available, int(limit)) if limit.isdigit() and int(limit) > 0 else available


@contextmanager
def memory(n_bytes: float) -> Iterator[None]:
    """Allow the statistics of a fit so many bytes inside the `with` block; the result has the same bits for any number.

    What needs more is refused before it begins. Without it the limit is a quarter of the memory that is free when
    certifit first asks, or of the limit of the container or the process where that is less.

    >>> with memory(16e9):
    ...     memory_limit()
    16000000000
    """
    if isinstance(n_bytes, bool) or not isinstance(n_bytes, int | float) or not 1 <= n_bytes < math.inf:
        raise ValueError(f"memory must be a number of bytes >= 1, such as 16e9. Got {n_bytes!r}.")
    with _allowed(_granted, int(n_bytes)):
        yield


def memory_limit() -> int:
    """Bytes that a statistic may take now."""
    granted = _granted.get()
    return _quarter_of_memory() if granted is None else granted


FEWER_CLASSES = "Use fewer classes (is the target a number or an identifier?), or naive Bayes."


def check_memory(n_bytes: float, what: str, instead: str) -> None:
    """Refuse `what`, which needs so many bytes, where that is beyond the limit. Called before the arrays are made."""
    limit = memory_limit()
    if n_bytes > limit:
        enough = float(f"{1.05 * n_bytes:.1e}")
        raise MemoryError(
            f"{what} needs {_size(n_bytes)} of memory, limit {_size(limit)}. {instead} "
            f"Or allow more: with certifit.memory({enough:.2g}): ..."
        )


@contextmanager
def work(hours: float) -> Iterator[None]:
    """Allow a fit so many hours of one processor core inside the `with` block; 8 without it.

    What is expected to take longer is refused before it begins. The expectation comes from the numbers of rows, columns
    and classes alone, never from a clock: the same fit is refused on every machine, and no fit that runs is cut short.

    >>> with work(100):
    ...     work_limit()
    100.0
    """
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours < math.inf:
        raise ValueError(f"work must be a number of hours > 0, such as 24. Got {hours!r}.")
    with _allowed(_hours, float(hours)):
        yield


def work_limit() -> float:
    """Hours of one processor core that a fit may be expected to take now."""
    return _hours.get()


def check_work(seconds: float, what: str, instead: str) -> None:
    """Refuse `what`, which is expected to take so many seconds of one core, where that is beyond the limit."""
    hours, limit = seconds / 3600, work_limit()
    if hours > limit:
        enough = float(f"{1.05 * hours:.1e}")
        raise ValueError(
            f"{what} is expected to take about {hours:,.0f} hours of one processor core, limit {limit:g} hours. "
            f"{instead} Or allow more: with certifit.work({enough:g}): ..."
        )


def announce_work(seconds: float, what: str, instead: str) -> None:
    """Refuse `what` beyond the limit; where it takes more than a moment, say so before it begins."""
    check_work(seconds, what, instead)
    if seconds > LONG:
        words = f"{what}: this is expected to take some {seconds:,.0f} s of one processor core, or less."
        warnings.warn(f"{words} {instead}", stacklevel=2)


def _size(n_bytes: float) -> str:
    power = min(4, max(0, int(math.log10(max(n_bytes, 1)) // 3)))
    return f"{n_bytes / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"


@cache
def _quarter_of_memory() -> int:
    """Read once: the limit stays the same while a process runs."""
    sizes = [_number_after("/proc/meminfo", "MemAvailable:") * 1024, _cgroup_memory(), _address_space()]
    if not sizes[0] and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes[0] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min((size for size in sizes if size > 0), default=16 << 30) // 4


def _number_after(path: str, word: str = "") -> int:
    """The number behind a word of a file, 0 where there is none."""
    try:
        text = Path(path).read_text()
        return int(text[text.index(word) + len(word) :].split()[0])
    except (OSError, ValueError, IndexError):  # no such file, or its number is "max"
        return 0


def _cgroup_memory(root: str = "/sys/fs/cgroup", of_process: str = "/proc/self/cgroup") -> int:
    """The smallest limit of the groups that this process is in, of their parents up to the root, in either version."""
    try:
        rows = [line.rstrip("\n").split(":", 2) for line in Path(of_process).read_text().splitlines()]
    except OSError:
        rows = []
    limits = []
    for _, controllers, path in [["", "", "/"], ["", "memory", "/"], *(row for row in rows if len(row) == 3)]:
        if controllers and "memory" not in controllers.split(","):
            continue
        top, name = (f"{root}/memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = Path(path.strip("/"))
        limits += [_number_after(f"{top}/{part}/{name}") for part in (group, *group.parents)]
    return min((limit for limit in limits if limit > 0), default=0)


def _address_space() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return max(0, resource.getrlimit(resource.RLIMIT_AS)[0])  # -1: no limit


def in_order(f: Callable[[Any], Result], items: Iterable[Any]) -> Iterator[Result]:
    """f of every item, in the order of the items, on the threads that a call may use; few results wait at a time.

    What f calls has one of the threads, and the limits and settings (np.errstate) of the caller.
    """

    def on_one_thread(item: Any) -> Result:
        with threads(1):
            return f(item)

    n, rest = n_threads(), iter(items)
    first = list(islice(rest, 2))
    items = chain(first, rest)
    if n == 1 or len(first) < 2:
        yield from map(f, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(n) as pool:
        for item in items:
            waiting.append(pool.submit(copy_context().run, on_one_thread, item))
            if len(waiting) > n:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def suited_map(n_rows: int) -> Callable[[Callable[[Any], Result], Iterable[Any]], Iterator[Result]]:
    """`in_order` for items of many rows, `map` for those of few, which are not worth a thread."""
    return map if n_rows < MANY_ROWS else in_order


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
        if getattr(_inside, "is_limited", False):  # a caller has seen to it
            return function(*args, **kwargs)
        _limit.enter()
        _inside.is_limited = True
        try:
            return function(*args, **kwargs)
        finally:
            _inside.is_limited = False
            _limit.leave()

    return limited


class _BlasLimit:
    """BLAS has one setting a process: the first call in takes it, the last one out gives it back.

    Only OpenBLAS on OpenMP has one a thread: every thread takes and gives back its own.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = Lock()
        self.depth = 0
        self.libraries: Any = None
        self.held: list[tuple[Any, int]] = []  # those that had more threads, and how many

    def enter(self) -> None:
        with self.lock:
            if self.libraries is None:  # looking for the loaded libraries takes milliseconds
                from threadpoolctl import ThreadpoolController

                self.libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            now = [(library, library.get_num_threads()) for library in self.libraries]
            more = [(library, n) for library, n in now if n not in (1, None)]
            _inside.held = [pair for pair in more if _is_per_thread(pair[0])]
            if self.depth == 0:
                self.held = [pair for pair in more if not _is_per_thread(pair[0])]
            for library, _ in more:
                _set_blas_threads(library, 1)
            self.depth += 1

    def leave(self) -> None:
        with self.lock:
            self.depth -= 1
            for library, n in _inside.held + (self.held if self.depth == 0 else []):
                _set_blas_threads(library, n)


def _is_per_thread(library: Any) -> bool:
    return getattr(library, "threading_layer", "") == "openmp"


def _set_blas_threads(library: Any, n: int) -> None:
    """By OpenBLAS's own function: threadpoolctl 3.8 does nothing in any thread but the first that set a number."""
    if library.internal_api == "openblas" and not _is_per_thread(library):
        for name in product(("", "scipy_"), ("openblas_set_num_threads",), ("", "64_", "_64")):
            own = getattr(library.dynlib, "".join(name), None)
            if own is not None:
                own(n)
                return
    library.set_num_threads(n)


_limit = _BlasLimit()
_inside = local()  # of the thread at hand
# A child of fork has only the thread that forked: whoever else held the limit is not there to give it back.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.reset)
    os.register_at_fork(after_in_child=_default_threads.cache_clear)  # a child may be bound to other processors
