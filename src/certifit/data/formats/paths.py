"""Which files a path, a glob, a folder or a list means, and a check that they stay as they are."""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

AnyPath = str | PathLike[str]


class ShownAs(str):
    """The place of a copy, which messages call by the name that its user typed."""

    def __new__(cls, place: str, typed: str) -> ShownAs:
        """A path."""
        path = super().__new__(cls, place)
        path.typed = typed
        return path

    typed: str

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.typed

    def __repr__(self) -> str:
        return repr(self.typed)


def listed(path: AnyPath | Sequence[AnyPath], endings: Sequence[str]) -> list[str]:
    """The files, sorted by name within a glob or a folder. `endings`: which files of a folder count."""
    if not isinstance(path, str | PathLike):
        files = [file for each in path for file in listed(each, endings)]
        if not files:
            raise ValueError("The list of files is empty.")
        return files
    text = os.fspath(path)
    if os.path.isdir(text):
        return _of_folder(text, endings)
    if not os.path.exists(text) and glob.has_magic(text):
        files = sorted(file for file in glob.glob(text, recursive=True) if os.path.isfile(file))
        if not files:
            raise FileNotFoundError(f"No file matches {text!r}.")
        return files
    if not os.path.exists(text):
        raise FileNotFoundError(f"There is no file {text!r}.")
    if not os.path.isfile(text):
        raise ValueError(f"{text!r} is not a regular file. A scan reads its rows more than once.")
    return [text]


def _of_folder(folder: str, endings: Sequence[str]) -> list[str]:
    inside = [path for path in Path(folder).rglob("*") if not any(p[0] in "._" for p in path.relative_to(folder).parts)]
    files = sorted(str(path) for path in inside if path.is_file() and path.name.lower().endswith(tuple(endings)))
    if not files:
        raise FileNotFoundError(f"The folder {folder!r} has no file that ends in {' or '.join(endings)}.")
    return files


class Unchanged:
    """What tells files from others: place, size, times and the digest of a pass. One that changed since is refused."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.seen = {path: _stamp(path) for path in paths}
        self.digests: dict[str, int] = {}

    def check(self, path: str, digest: int | None = None) -> None:
        """Raise if the file is another one than at the start. digest: of all its bytes, after a pass."""
        is_other = digest is not None and self.digests.setdefault(path, digest) != digest
        if is_other or _stamp(path) != self.seen[path]:
            raise ValueError(f"{path!r} changed since it was scanned. Scan it again.")


def refused_memory(path: str, error: Exception) -> MemoryError:
    """What to say where the rows of a file do not fit into memory; its bytes may be sound."""
    said = str(error).strip().rstrip(".") or "no memory is left"
    return MemoryError(f"{path!r} could not be read: {said}. Close other programs, or read fewer columns (columns=).")


def digested(data: bytes | memoryview, before: int = 0) -> int:
    """A digest of bytes that goes on from that of those before them: CRC-32, at a few GB per second."""
    return zlib.crc32(data, before)


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise ValueError(f"{path!r} could not be read: {error.strerror}.") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
