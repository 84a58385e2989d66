"""Bytes to disk and back: one read of a regular file, and a write that happens whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from os import PathLike

MAX_FILE = 2 * 1024**3

Path = str | PathLike[str]


class ModelFileError(ValueError):
    """A model that cannot be saved, or a file that is not a sound model file."""


def read_bytes(path: Path, max_bytes: int = MAX_FILE) -> bytes:
    """All bytes of a regular file of at most `max_bytes`, opened once and read once."""
    # O_NONBLOCK: opening a pipe that nobody writes to returns at once, and is then refused.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
        try:
            return _read_regular(descriptor, max_bytes, path)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise ModelFileError(f"{show(path)} could not be read: {error.strerror or error}.") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Put `data` at `path`: temporary file beside it, fsync, read back, rename, fsync of the folder.

    On any error the file that was there stays as it was, and the temporary file is removed.
    """
    try:
        target = os.path.realpath(path)  # a link stays a link; its target is replaced
        mode = _mode_of(target, path)
        folder = os.path.dirname(target)
        temporary = os.path.join(folder, f".certifit-{secrets.token_hex(8)}.tmp")
        try:
            _write_new(temporary, data, mode)
            if read_bytes(temporary, len(data)) != data:
                raise ModelFileError(f"{show(path)} was not saved: the disk gave back other bytes than were written.")
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(folder)
    except OSError as error:
        raise ModelFileError(
            f"{show(path)} could not be saved: {error.strerror or error}. A file that was there before is unchanged."
        ) from error


def show(path: Path) -> str:
    """The path as the user gave it, quoted, so that no control character reaches a terminal."""
    return ascii(os.fspath(path))


def _read_regular(descriptor: int, max_bytes: int, path: Path) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{show(path)} is {_kind(status.st_mode)}. A model file is a regular file.")
    if status.st_size > max_bytes:
        raise ModelFileError(
            f"{show(path)} has {status.st_size} bytes, and the limit is {max_bytes}. "
            "Pass a larger max_bytes to load if you trust the file."
        )
    # One byte more than expected is asked for, so a file that grows is noticed.
    parts: list[bytes] = []
    missing = status.st_size + 1
    while missing and (part := os.read(descriptor, missing)):
        parts.append(part)
        missing -= len(part)
    if missing != 1:
        raise ModelFileError(f"{show(path)} changed while it was read. Try again.")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _mode_of(target: str, path: Path) -> int | None:
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise ModelFileError(f"{show(path)} is {_kind(found.st_mode)}. Give save the name of a file.")
    return stat.S_IMODE(found.st_mode)


def _write_new(temporary: str, data: bytes, mode: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(temporary, flags, 0o666), "wb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        os.fsync(file.fileno())
    if mode is not None:
        os.chmod(temporary, mode)


def _sync_folder(folder: str) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    # The new file is in place already; a file system that cannot sync a folder is no reason to fail.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "not a regular file")
