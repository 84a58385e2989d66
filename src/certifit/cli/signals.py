"""Ctrl-C, SIGTERM and SIGHUP while the program starts: exit code 130, 143 or 129 at any moment, and no traceback.

Python raises KeyboardInterrupt wherever it happens to be. In the middle of an import that is often swallowed, or turned
into an ImportError: such an interrupt is raised again until the command has ended. This module is imported first and
imports next to nothing itself, so that there is hardly a moment before it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

_PROGRAMS = ("certifit", "certifit.exe", "certifit-script.py")
_AGAIN = 0.02  # seconds


def _leave(number: int, frame: object) -> NoReturn:
    """Nothing is begun yet: there is nothing to undo."""
    os._exit(128 + number)


def _hears_hangup() -> bool:
    """Whether the end of the terminal ends the program: not of one that nohup started."""
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


def is_the_program() -> bool:
    """Whether this process is `certifit` or `python -m certifit`, and not another program that imports the package."""
    folder, name = os.path.split(sys.argv[0] if sys.argv else "")
    return name in _PROGRAMS or (name == "__main__.py" and os.path.basename(folder) == "certifit")


if is_the_program():
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    if _hears_hangup():
        signal.signal(signal.SIGHUP, _leave)


class Interrupts:
    """What has arrived while a command runs."""

    seen = False


@contextmanager
def unwinding() -> Iterator[Interrupts]:
    """Inside, Ctrl-C raises KeyboardInterrupt, SIGTERM and SIGHUP SystemExit, so that temporary files are removed."""
    interrupts = Interrupts()

    def interrupt(number: int, frame: Any) -> NoReturn:
        interrupts.seen = True
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
        raise KeyboardInterrupt

    def again(number: int, frame: Any) -> None:
        if _is_importing(frame):  # else it is on its way out, and must not be disturbed
            raise KeyboardInterrupt

    def terminate(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    handlers = {"SIGINT": interrupt, "SIGTERM": terminate, "SIGALRM": again}
    handlers |= {"SIGHUP": terminate} if _hears_hangup() else {}
    numbers = {getattr(signal, name): handler for name, handler in handlers.items() if hasattr(signal, name)}
    try:
        before = {number: signal.signal(number, handler) for number, handler in numbers.items()}
    except ValueError:  # not the main thread
        yield interrupts
        return
    hooks = sys.unraisablehook, sys.excepthook
    sys.unraisablehook = lambda error: None if error.exc_type is KeyboardInterrupt else hooks[0](error)
    sys.excepthook = lambda kind, *error: None if kind is KeyboardInterrupt else hooks[1](kind, *error)
    try:
        yield interrupts
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook, sys.excepthook = hooks


def _is_importing(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
