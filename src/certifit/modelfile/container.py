"""The container: one safetensors file with one JSON object and named arrays. It knows nothing of models.

    8 bytes    size of the header, little-endian, a multiple of 8
    header     canonical JSON, ASCII, padded with spaces:
                 "__metadata__": {"certifit": canonical JSON of the metadata, as text,
                                  "sha256_payload": digest of the payload,
                                  "sha256_header": digest of this header without this entry}
                 and for each array  name: {"dtype", "shape", "data_offsets"}
    payload    the arrays in the order of their names, little-endian, C order, without gaps

Every limit is checked before the thing it limits is built, and both digests before anything is believed.
A digest finds accidents, not forgers: who edits a file can compute a new one.

Bytes to disk and back: one read of a regular file, and a write that happens whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.data.temporary import remove, temporary_in
from certifit.modelfile import canonical
from certifit.modelfile.canonical import CanonicalError

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
        temporary = os.fspath(temporary_in(folder, ".tmp"))
        try:
            _write_new(temporary, data, mode)
            if read_bytes(temporary, len(data)) != data:
                raise ModelFileError(f"{show(path)} was not saved: the disk gave back other bytes than were written.")
            os.replace(temporary, target)
        except BaseException:
            remove(temporary)
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
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{show(path)} is {_kind(status.st_mode)}. Give save the name of a file.")
    return stat.S_IMODE(status.st_mode)


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


MAX_HEADER = 1024**2
MAX_ARRAYS = 4096
MAX_DIMENSIONS = 3
DTYPES: Mapping[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "U8": np.dtype("u1")}

_NAME = re.compile(r"[a-z0-9_.]{1,64}", re.ASCII)
_OTHER_FORMATS = {
    b"PK": "a zip archive",
    b"\x80": "a pickle",
    b"\x93NUMPY": "a NumPy array",
    b"\x1f\x8b": "gzip",
}

Arrays = Mapping[str, NDArray[Any]]


def to_bytes(metadata: dict[str, Any], arrays: Arrays) -> bytes:
    """The bytes of a model file."""
    payload = []
    digest = hashlib.sha256()
    table: dict[str, Any] = {}
    position = 0
    for name in sorted(arrays):
        code, array = _portable(name, arrays[name])
        end = position + array.nbytes
        table[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [position, end]}
        payload.append(array.tobytes())
        digest.update(payload[-1])
        position = end
    try:
        text = canonical.encode(metadata)
    except CanonicalError as error:
        raise ModelFileError(f"its metadata {error}.") from None
    table["__metadata__"] = {"certifit": text, "sha256_payload": digest.hexdigest()}
    table["__metadata__"]["sha256_header"] = _header_digest(table)
    header = _pad(_header_text(table))
    if len(header) > MAX_HEADER:
        raise ModelFileError(
            f"its names and settings take {len(header)} bytes, and a model file has room "
            f"for {MAX_HEADER}. Use shorter column names, or drop redundant columns."
        )
    return b"".join([len(header).to_bytes(8, "little"), header, *payload])


def refuse_names(names: Sequence[str]) -> None:
    """Refuse columns whose names alone fill the header of a file: a fit of them could not be saved."""
    n_bytes = len(json.dumps(json.dumps(list(names), separators=(",", ":"))))  # metadata are a text inside a header
    if n_bytes > MAX_HEADER:
        raise ModelFileError(
            f"The names of {len(names):,} columns take {n_bytes:,} bytes, and a model file has room for "
            f"{MAX_HEADER:,}. Use shorter names or fewer columns."
        )


def from_bytes(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Metadata and arrays of the bytes of a model file, or a ModelFileError."""
    start = 8 + _header_size(data)
    table = _parse_header(data[8:start])
    metadata = _check_entries(table)
    _check_arrays(table, len(data) - start)
    if hashlib.sha256(memoryview(data)[start:]).hexdigest() != metadata["sha256_payload"]:
        raise ModelFileError("its numbers do not match their digest, so the file was damaged or edited.")
    if _header_digest(table | {"__metadata__": metadata}) != metadata["sha256_header"]:
        raise ModelFileError("its header does not match its digest, so the file was damaged or edited.")
    try:
        value = canonical.decode(metadata["certifit"])
    except CanonicalError as error:
        raise ModelFileError(f"its metadata {error}.") from None
    if not isinstance(value, dict):
        raise ModelFileError("its metadata is not a JSON object.")
    return value, _load_arrays(data)


def digests(data: bytes) -> dict[str, str]:
    """The two digests in the header of bytes that `from_bytes` accepts."""
    entries = _check_entries(_parse_header(data[8 : 8 + _header_size(data)]))
    return {key: entries[key] for key in ("sha256_header", "sha256_payload")}


def _load_arrays(data: bytes) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(data)
    except (SafetensorError, ValueError) as error:
        raise ModelFileError(f"the safetensors reader refused it: {error}.") from None
    return {name: arrays[name] for name in sorted(arrays)}


def _portable(name: str, array: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    if not _NAME.fullmatch(name):
        raise ModelFileError(f"an array name has 1 to 64 of a-z, 0-9, '_' and '.'. Got {name!a}.")
    for code, dtype in DTYPES.items():
        if array.dtype == dtype and 1 <= array.ndim <= MAX_DIMENSIONS:
            return code, np.ascontiguousarray(array, dtype)
    raise ModelFileError(
        f"array '{name}' has dtype {array.dtype} and {array.ndim} dimensions. "
        f"A model file holds float64, int64 and uint8 of 1 to {MAX_DIMENSIONS} dimensions."
    )


def _header_digest(table: dict[str, Any]) -> str:
    entries = {key: text for key, text in table["__metadata__"].items() if key != "sha256_header"}
    return hashlib.sha256(_header_text(table | {"__metadata__": entries})).hexdigest()


def _header_text(table: dict[str, Any]) -> bytes:
    # The metadata is one long text in the header; it is the header as a whole that has a limit.
    return canonical.encode(table, max_string=sys.maxsize).encode("ascii")


def _pad(header: bytes) -> bytes:
    return header + b" " * (-len(header) % 8)


def _header_size(data: bytes) -> int:
    size = int.from_bytes(data[:8], "little")
    if len(data) >= 8 and 0 < size <= min(MAX_HEADER, len(data) - 8) and size % 8 == 0:
        return size
    for magic, kind in _OTHER_FORMATS.items():
        if data.startswith(magic):
            raise ModelFileError(f"it starts like {kind}, which is never read. Save the model with certifit.save.")
    if len(data) < 8:
        raise ModelFileError(f"it has {len(data)} bytes, and a header starts with 8.")
    # The size itself is not printed: of another kind of file it is the first 8 bytes.
    raise ModelFileError(
        f"it announces a header that does not fit into its {len(data)} bytes. A header has a multiple of 8 bytes, at "
        f"most {MAX_HEADER}."
    )


def _parse_header(header: bytes) -> dict[str, Any]:
    text = header.rstrip(b" ")
    if not header.isascii() or _pad(text) != header:
        raise ModelFileError("its header is not ASCII text padded with up to 7 spaces.")
    try:
        table = canonical.decode(text.decode("ascii"), max_string=MAX_HEADER)
    except CanonicalError as error:
        raise ModelFileError(f"its header {error}.") from None
    if not isinstance(table, dict):
        raise ModelFileError("its header is not a JSON object.")
    return table


def _check_entries(table: dict[str, Any]) -> dict[str, str]:
    entries = table.get("__metadata__")
    legal = {"certifit", "sha256_payload", "sha256_header"}
    if not isinstance(entries, dict) or entries.keys() != legal:
        raise ModelFileError("its header lacks certifit's metadata. It may be another safetensors file.")
    if not all(isinstance(text, str) for text in entries.values()):
        raise ModelFileError("its metadata and digests must be texts.")
    return entries


def _check_arrays(table: dict[str, Any], n_bytes: int) -> None:
    names = sorted(table.keys() - {"__metadata__"})
    if len(names) > MAX_ARRAYS:
        raise ModelFileError(f"it lists {len(names)} arrays, and the limit is {MAX_ARRAYS}.")
    position = 0
    for name in names:
        if not _NAME.fullmatch(name):
            raise ModelFileError(f"an array name has 1 to 64 of a-z, 0-9, '_' and '.'. Got {name[:80]!a}.")
        position = _check_array(name, table[name], position)
    if position != n_bytes:
        raise ModelFileError(f"its arrays take {position} bytes, but {n_bytes} follow the header.")


def _check_array(name: str, entry: Any, position: int) -> int:
    """The end of the array, which starts where the one before it ended."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"array '{name}' needs dtype, shape and data_offsets, and nothing else.")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise ModelFileError(f"array '{name}' is {str(code)[:32]!a}. Legal are F64, I64 and U8.")
    if not _is_counts(shape) or not 1 <= len(shape) <= MAX_DIMENSIONS:
        raise ModelFileError(f"array '{name}' needs a shape of 1 to {MAX_DIMENSIONS} sizes, each >= 0.")
    if not _is_counts(offsets) or len(offsets) != 2:
        raise ModelFileError(f"array '{name}' needs two data_offsets, each >= 0.")
    extent = 1
    for size in shape:
        extent *= max(size, 1)  # Python integers do not overflow; the extent bounds shapes with a 0 too
    n_bytes = 0 if 0 in shape else extent * DTYPES[code].itemsize
    if extent > MAX_FILE or offsets != [position, position + n_bytes]:
        raise ModelFileError(
            f"array '{name}' of shape {shape} must take bytes {position} to {position + n_bytes}. Got {offsets}."
        )
    return position + n_bytes


def _is_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
