"""Names of files and folders that are written before they take their place, and what killed runs left of such."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import secrets
import shutil
import signal
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from time import time

TEMPORARY = ".certifit-"
DAY = 86_400.0  # seconds
_NAME = re.compile(r"\.certifit-(?:([0-9a-f]{8})-([0-9]+)-)?[0-9a-f]{12,16}(?:\.tmp)?")


def temporary_in(folder: str | os.PathLike[str], ending: str = "") -> Path:
    """A new name in a folder. What runs left there that were killed is removed first.

    The name tells machine and process: theirs are dead, or it is a day since anything was written.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if entry.name.startswith(TEMPORARY) and _is_left(entry)]
        for path in left:
            remove(path)
    return Path(folder) / f"{TEMPORARY}{_machine()}-{os.getpid()}-{secrets.token_hex(6)}{ending}"


def remove(path: str | os.PathLike[str]) -> None:
    """Without a trace, and without an error where there is none; a second Ctrl-C waits for it."""
    with uninterrupted(), contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C and the like wait until files are moved or removed, a matter of microseconds."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_left(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a folder is of our making, and of nobody who is still at it."""
    name = _NAME.fullmatch(entry.name)
    if name is None:
        return False
    is_here = os.name == "posix" and name[1] == _machine()  # elsewhere asking for a process may end it
    try:
        return (is_here and not _is_alive(int(name[2]))) or time() - entry.stat(follow_symlinks=False).st_mtime > DAY
    except OSError:  # gone by now
        return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@cache
def _machine() -> str:
    """Where numbers of processes mean these processes: a folder may be shared by machines and containers."""
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return f"{zlib.crc32(f'{platform.node()} {processes}'.encode()):08x}"
