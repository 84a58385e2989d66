"""Many texts as two arrays, since the header has little room.

    texts       their UTF-8 bytes, one after the other
    text_ends   where each ends

The name of the bytes sorts last, so the numbers before them stay aligned in the file. `of` is the end of both names
where a file has more than one such pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certifit.modelfile.canonical import MAX_STRING
from certifit.modelfile.disk import ModelFileError
from certifit.modelfile.schema import brief
from certifit.models.record import Array, Arrays


def text_arrays(of: str = "", n_texts: str = "n_texts", n_bytes: str = "n_bytes") -> dict[str, Array]:
    """The two arrays and the names of their sizes."""
    return {f"text_ends{of}": Array((n_texts,), "int64"), f"texts{of}": Array((n_bytes,), "uint8")}


TEXT_ARRAYS = text_arrays()


def pack(texts: Sequence[str], of: str = "", most: int | None = MAX_STRING) -> Arrays:
    """The two arrays of these texts, each of at most so many characters."""
    parts = [_encoded(text, most) for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return {f"text_ends{of}": ends, f"texts{of}": np.frombuffer(b"".join(parts), dtype="uint8")}


def sizes(arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Numbers of texts and of bytes; an array that is missing has none, and `check_arrays` says so."""
    found = {name: arrays[name].size if name in arrays else 0 for name in TEXT_ARRAYS}
    return {"n_texts": found["text_ends"], "n_bytes": found["texts"]}


def unpack(arrays: Mapping[str, NDArray[Any]], of: str = "", most: int | None = MAX_STRING) -> list[str]:
    """The texts; their bytes must be valid UTF-8, touch each other and be all there is."""
    ends, letters = arrays[f"text_ends{of}"], arrays[f"texts{of}"]
    begins = np.concatenate([np.zeros(1, dtype=np.int64), ends])
    if (begins[1:] < begins[:-1]).any() or begins[-1] != letters.size:
        raise ModelFileError(f"its texts must follow each other and fill {letters.size} bytes.")
    data = letters.tobytes()
    pairs = zip(begins[:-1].tolist(), ends.tolist(), strict=True)
    return [_decoded(data[begin:end], most) for begin, end in pairs]


def _encoded(text: str, most: int | None) -> bytes:
    _refuse_long(text, most)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ModelFileError(f"the text {brief(text)} holds half a character, which UTF-8 cannot say.") from None


def _decoded(part: bytes, most: int | None) -> str:
    try:
        text = part.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelFileError(f"one of its texts is not valid UTF-8: {brief(part)}.") from None
    _refuse_long(text, most)
    return text


def _refuse_long(text: str, most: int | None) -> None:
    if most is not None and len(text) > most:
        raise ModelFileError(f"it holds a text of {len(text)} characters, and the limit is {most}.")
