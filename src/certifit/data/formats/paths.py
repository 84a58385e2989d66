"""Which files a path, a glob, a folder or a list means, and a check that they stay as they are."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

AnyPath = str | PathLike[str]


def listed(path: AnyPath | Sequence[AnyPath], endings: Sequence[str]) -> list[str]:
    """The files, sorted by name within a glob or a folder. `endings`: which files of a folder count."""
    if not isinstance(path, str | PathLike):
        found = [one for each in path for one in listed(each, endings)]
        if not found:
            raise ValueError("The list of files is empty.")
        return found
    text = os.fspath(path)
    if os.path.isdir(text):
        return _of_folder(text, endings)
    if not os.path.exists(text) and glob.has_magic(text):
        found = sorted(one for one in glob.glob(text, recursive=True) if os.path.isfile(one))
        if not found:
            raise FileNotFoundError(f"No file matches {text!r}.")
        return found
    if not os.path.exists(text):
        raise FileNotFoundError(f"There is no file {text!r}.")
    if not os.path.isfile(text):
        raise ValueError(f"{text!r} is not a regular file. A scan reads its rows more than once.")
    return [text]


def _of_folder(folder: str, endings: Sequence[str]) -> list[str]:
    inside = [one for one in Path(folder).rglob("*") if not any(p[0] in "._" for p in one.relative_to(folder).parts)]
    found = sorted(str(one) for one in inside if one.is_file() and one.name.lower().endswith(tuple(endings)))
    if not found:
        raise FileNotFoundError(f"The folder {folder!r} has no file that ends in {' or '.join(endings)}.")
    keyed = next((one for one in found if "=" in os.path.dirname(os.path.relpath(one, folder))), None)
    if keyed:
        raise ValueError(
            f"{keyed!r} keeps a column in the name of its folder, which a scan does not read. "
            "Give from_arrow a DuckDB relation of these files, or a list of the files."
        )
    return found


class Unchanged:
    """Size and time of files; `check` refuses one that changed since."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.seen = {path: _stamp(path) for path in paths}

    def check(self, path: str) -> None:
        """Raise if the file is another one than at the start."""
        if _stamp(path) != self.seen[path]:
            raise ValueError(f"{path!r} changed since it was scanned. Scan it again.")


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError as error:
        raise ValueError(f"{path!r} could not be read: {error.strerror}.") from error
    return found.st_size, found.st_mtime_ns
