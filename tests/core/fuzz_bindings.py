"""Calls every function of the compiled core with damaged arguments: it must answer or raise, never end the process.

    python tests/core/fuzz_bindings.py --calls 1000000 --seed 0
    python tests/core/fuzz_bindings.py --replay 12345 --seed 0

Call k of a seed is always the same one. Calls run in forked children; a child that dies is counted with the number of
its call, and another goes on behind it. After a second a call is interrupted as Ctrl-C does, and must answer.
"""

from __future__ import annotations

import argparse
import contextlib
import mmap
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from core_calls import CALLS, Arguments, Rng

from certifit.runtime import core

ROOM = 1 << 30  # bytes that a child may take
UNTIL_INTERRUPT = 1.0  # seconds
STUCK = 60.0  # seconds after which a call that does not answer the interrupt is given up
NAMES = sorted(CALLS)
INTEGERS = (-1, 0, 1, 2, 7, 255, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**64 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e-300, 1e300, -1e300, 1.7e308, -1.7e308, np.inf, -np.inf, np.nan)
OTHERS: tuple[Any, ...] = (None, "", "x", "\udc80", b"x", [], (), {}, 1.5, object(), np.empty(0), np.empty((0, 0)))


class Interrupt(Exception):
    """Raised by the timer inside a call."""


def of(seed: int, number: int) -> tuple[str, Arguments]:
    """Function and arguments of a call."""
    rng = np.random.default_rng([seed, number])
    name = NAMES[number % len(NAMES)]
    arguments = CALLS[name](rng)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        chosen = str(rng.choice(list(arguments)))
        arguments[chosen] = damaged(arguments[chosen], rng)
    return name, arguments


def damaged(value: Any, rng: Rng) -> Any:
    """Another value of the same kind, or of another."""
    if rng.random() < 0.04:
        return OTHERS[rng.integers(len(OTHERS))]
    if isinstance(value, np.ndarray):
        return _array(value, rng)
    if isinstance(value, list | tuple):
        return _sequence(value, rng)
    if isinstance(value, bool | int):
        return INTEGERS[rng.integers(len(INTEGERS))]
    if isinstance(value, float):
        return FLOATS[rng.integers(len(FLOATS))]
    return OTHERS[rng.integers(len(OTHERS))]


def _array(array: Any, rng: Rng) -> Any:
    return _DAMAGE[rng.integers(len(_DAMAGE))](array, rng)


def _entries(array: Any, rng: Rng) -> Any:
    """Some entries set to what no index, count or number should be."""
    array = array.copy(order="K")
    if not array.size:
        return array
    kinds = FLOATS if array.dtype.kind == "f" else (*INTEGERS, *array.shape, array.size)
    for _ in range(rng.choice([1, 1, 3])):
        value = kinds[rng.integers(len(kinds))]
        with contextlib.suppress(OverflowError, ValueError), np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = value
    return array


def _shuffled(array: Any, rng: Rng) -> Any:
    return array[rng.permutation(len(array))]


def _shorter(array: Any, rng: Rng) -> Any:
    axis = int(rng.integers(array.ndim))
    return np.take(array, range(int(rng.integers(array.shape[axis] + 1))), axis=axis)


def _longer(array: Any, rng: Rng) -> Any:
    return np.concatenate([array, array], axis=int(rng.integers(array.ndim)))


def _of_type(array: Any, rng: Rng) -> Any:
    kinds = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c16", ">f8", ">i4"]
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(kinds))


def _strided(array: Any, rng: Rng) -> Any:
    kind = rng.integers(4)
    if kind == 0:
        return array[::-1]
    if kind == 1:
        return np.repeat(array, 2, axis=0)[::2]
    if kind == 2:
        return array.T
    return np.broadcast_to(array[:1], array.shape) if len(array) else array


def _shaped(array: Any, rng: Rng) -> Any:
    kind = rng.integers(4)
    if kind == 0:
        return array.reshape(-1)
    if kind == 1:
        return array[None]
    if kind == 2:
        return array[..., None]
    return array[0] if len(array) else array


_DAMAGE = (_entries, _entries, _entries, _shuffled, _shorter, _longer, _of_type, _strided, _shaped)


def _sequence(values: Any, rng: Rng) -> Any:
    """One part damaged (mostly), left out, doubled, or two exchanged."""
    parts = list(values)
    if not parts:
        return values
    at, other = (int(i) for i in rng.integers(len(parts), size=2))
    kind = rng.choice(["part", "part", "part", "part", "out", "twice", "exchange"])
    if kind == "part":
        parts[at] = damaged(parts[at], rng)
    elif kind == "out":
        del parts[at]
    elif kind == "twice":
        parts.insert(other, parts[at])
    else:
        parts[at], parts[other] = parts[other], parts[at]
    return type(values)(parts)


@dataclass
class Outcome:
    """How calls ended; deaths: (number, function, what ended it)."""

    ends: Counter[str] = field(default_factory=Counter)
    deaths: list[tuple[int, str, str]] = field(default_factory=list)


def run(n_calls: int, seed: int = 0, first: int = 0) -> Outcome:
    """Calls first .. first + n_calls - 1."""
    outcome, shared = Outcome(), mmap.mmap(-1, 4096)
    place = np.frombuffer(shared, dtype=np.int64)  # number of the call, answered, refused, interrupted
    at = first
    while at < first + n_calls:
        place[:] = 0
        place[0] = at
        end = min(at + 20_000, first + n_calls)
        child = os.fork()
        if child == 0:
            _calls(at, end, seed, place)
        death = _ended(child, place)
        for k, name in enumerate(("answered", "refused", "interrupted"), 1):
            outcome.ends[name] += int(place[k])
        at = end
        if death:
            at = int(place[0]) + 1
            outcome.deaths.append((at - 1, NAMES[(at - 1) % len(NAMES)], death))
    return outcome


def _calls(begin: int, end: int, seed: int, place: Any) -> None:
    """Make the calls in this process and leave it."""
    status = 1
    try:
        limit()
        for number in range(begin, end):
            place[0] = number
            place[1 + end_of(*of(seed, number))] += 1
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def limit() -> None:
    """Let this process take so much more memory, and no more."""
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _interrupt(*_: object) -> None:
    raise Interrupt


def end_of(name: str, arguments: Arguments) -> int:
    """0: answered, 1: refused, 2: interrupted."""
    signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, UNTIL_INTERRUPT)
        getattr(core, name)(**arguments)
    except Interrupt:
        return 2
    except Exception:
        return 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


def _ended(child: int, place: Any) -> str:
    """What ended a child before its time, or nothing."""
    seen, since = -1, time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        if place[0] != seen:
            seen, since = int(place[0]), time.monotonic()
        elif time.monotonic() - since > STUCK:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hang"
        time.sleep(0.005)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"exit {os.WEXITSTATUS(status)}" if os.WEXITSTATUS(status) else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", type=int, help="make this one call here, and show it")
    given = parser.parse_args()
    if given.replay is not None:
        name, arguments = of(given.seed, given.replay)
        print(name, arguments, flush=True)
        print(getattr(core, name)(**arguments))
        return 0
    outcome = run(given.calls, given.seed, given.first)
    for number, name, death in outcome.deaths[:100]:
        print(f"call {number}: {name}: {death}")
    print(f"{given.calls} calls: {len(outcome.deaths)} deaths, {dict(outcome.ends)}")
    return int(bool(outcome.deaths))


if __name__ == "__main__":
    sys.exit(main())
