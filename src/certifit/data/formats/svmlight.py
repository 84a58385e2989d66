"""Sparse text in svmlight (libsvm) form, in constant memory: chunks of whole lines, each parsed to CSR."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from certifit.data import privacy
from certifit.data.columns import Array
from certifit.data.formats.paths import Unchanged, digested, refused_memory
from certifit.data.source import Block

_CHUNK = 4 << 20
_LONGEST = 1 << 28  # bytes of a line
_MOST = 2**31 - 1  # index


class SvmlightFile:
    """One file: `label index:value index:value ...` a line."""

    def __init__(self, path: str, zero_based: bool, n_features: int | None) -> None:
        self.path, self.zero_based = path, bool(zero_based)
        self.unchanged = Unchanged([path])
        self.has_queries = self.is_cut = False
        self.n_rows: int | None = None
        self.n_features = 0 if n_features is None else int(n_features)
        if n_features is None:
            self._survey()
        if self.n_features < 1:
            raise ValueError(f"{path!r} has no columns." if n_features is None else "n_features must be >= 1.")

    @property
    def notes(self) -> list[str]:
        """What a report should say."""
        notes = ["The file groups rows by qid, which was ignored."] if self.has_queries else []
        if self.is_cut:
            notes.append(f"{self.path!r} does not end with a line break: its last row may be cut.")
        return notes

    def blocks(self) -> Iterator[Block]:
        """All rows."""
        for first_line, chunk in self._chunks():
            X, y = self._parsed(chunk, first_line, self.n_features)
            if len(y):
                yield Block(sp.csr_array(X), y, None)

    def _survey(self) -> None:
        """The largest index and the number of rows."""
        n_rows = n_features = 0
        for first_line, chunk in self._chunks():
            X, y = self._parsed(chunk, first_line, None)
            n_rows += len(y)
            n_features = max(n_features, X.shape[1] if X.nnz else 0)
        if not n_rows:
            raise ValueError(f"{self.path!r} has no rows.")
        self.n_rows, self.n_features = n_rows, n_features

    def _parsed(self, chunk: bytes, first_line: int, n_features: int | None) -> tuple[sp.csr_array, Array]:
        from sklearn.datasets import load_svmlight_file

        self.has_queries |= b"qid:" in chunk
        try:
            if not chunk.strip():
                return sp.csr_array((0, n_features or 1)), np.zeros(0)
            X, y = load_svmlight_file(io.BytesIO(chunk), n_features=n_features, zero_based=self.zero_based)
            if X.nnz and X.indices.min() < 0:
                raise ValueError("index below the first")
            if not np.isfinite(y).all():
                raise ValueError("a label is not finite")
        except (ValueError, OverflowError, IndexError) as error:
            raise ValueError(self._fault(chunk, first_line) or f"{self.path!r}: {error}") from error
        return X, y

    def _fault(self, chunk: bytes, first_line: int) -> str | None:
        """The first line that is not of the form, in words."""
        for number, line in enumerate(chunk.split(b"\n"), first_line):
            what = _wrong(line.partition(b"#")[0].decode("utf8", "replace").split(), self.zero_based, self.n_features)
            if what:
                return f"{self.path!r}, line {number}: {what}"
        return None

    def _chunks(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines, some megabytes at a time, with the number of the first."""
        self.unchanged.check(self.path)
        first_line, unfinished, digest = 1, b"", 0
        try:
            with pa.input_stream(self.path, compression="detect") as file:
                while data := bytes(file.read(_CHUNK)):
                    digest = digested(data, digest)
                    lines, newline, tail = (unfinished + data).rpartition(b"\n")
                    unfinished = tail
                    if len(unfinished) > _LONGEST:
                        raise ValueError(f"{self.path!r} has a line longer than {_LONGEST:,} bytes. Is it a table?")
                    if newline:
                        yield first_line, lines + newline
                        first_line += lines.count(b"\n") + 1
        except MemoryError as error:
            raise refused_memory(self.path, error) from error
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path!r} could not be read: {error}") from error
        self.is_cut = bool(unfinished.strip())
        if unfinished:
            yield first_line, unfinished
        self.unchanged.check(self.path, digest)


def _wrong(cells: list[str], zero_based: bool, n_features: int) -> str | None:
    """What is wrong with the cells of a line, or None."""
    if wrong_label := _wrong_label(cells[0] if cells else "0"):
        return wrong_label
    before = -1
    for cell in (cell for cell in cells[1:] if not cell.startswith("qid:")):
        index, colon, value = cell.partition(":")
        if not colon or not re.fullmatch(r"\d+", index) or not _is_number(value):
            return f"a cell must be index:value. Got {privacy.cell(repr(cell))}."
        if wrong_index := _wrong_index(index, before, zero_based, n_features):
            return wrong_index
        before = int(index)
    return None


def _wrong_index(index: str, before: int, zero_based: bool, n_features: int) -> str | None:
    if index == "0" and not zero_based:
        return "index 0 in a file whose first column is 1. Pass zero_based=True if it is 0."
    if len(index) > len(str(_MOST)) or int(index) > _MOST:
        return f"index {index[:20]} is larger than {_MOST}, the largest that is read."
    if int(index) <= before:
        return f"indices must increase. Got {index} after {before}."
    is_beyond = n_features and int(index) >= n_features + (not zero_based)
    return f"index {index} is beyond n_features={n_features}." if is_beyond else None


def _wrong_label(label: str) -> str | None:
    if label.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return f"the label (the target) must be finite. Got {privacy.cell(repr(label))}. Remove such rows."
    return None if _is_number(label) else f"the label must be a number. Got {privacy.cell(repr(label))}."


def _is_number(text: str) -> bool:
    try:
        return not math.isnan(float(text)) and "_" not in text
    except ValueError:
        return False
