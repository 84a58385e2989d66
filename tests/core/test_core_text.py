"""Words of texts in the compiled core: every character as Python has it, any bytes survived."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import Any

import numpy as np
import pytest
from sklearn.utils.murmurhash import murmurhash3_32

from certifit import runtime


@pytest.fixture
def core() -> Any:
    """The core at hand: what reads words is compiled once and linked into both builds."""
    return runtime.core


LETTERS = (True, 1, 1, 1)  # lower case, words of one character or more
AS_THEY_ARE = (False, 1, 1, 1)
EVERY_CHARACTER = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF]
# Planes 2 to 13 are ideographs and empty places; 14 holds tags and selectors.
VARIED = [c for c in EVERY_CHARACTER if ord(c) < 0x20800 or 0xE0000 <= ord(c) < 0xE0200]


def plain_words(text: str, min_length: int = 1) -> list[str]:
    return re.findall(rf"(?u)\b\w{{{min_length},}}\b", text.lower())


def is_same_unicode(core: Any) -> bool:
    return bool(core.unicode_version == unicodedata.unidata_version)


@pytest.mark.slow
def test_every_character_belongs_to_a_word_where_python_says_so(core):
    found = core.words(EVERY_CHARACTER, AS_THEY_ARE)
    own = {c for c, words in zip(EVERY_CHARACTER, found, strict=True) if words == [c]}
    assert sum(map(len, found)) == len(own)
    python = {c for c in EVERY_CHARACTER if re.fullmatch(r"\w", c)}
    assert own == python if is_same_unicode(core) else len(own - python) == 0


@pytest.mark.slow
def test_every_character_has_the_lower_case_of_python(core):
    for c, words in zip(VARIED, core.words(VARIED, LETTERS), strict=True):
        if is_same_unicode(core) or words:
            assert words == plain_words(c), hex(ord(c))


@pytest.mark.parametrize("pattern", ["A{}Σ", " {}Σ", "Σ{}A", "AΣ{} ", "AΣ{}A"])
@pytest.mark.slow
def test_a_sigma_is_final_beside_every_character_where_python_says_so(core, pattern):
    if not is_same_unicode(core):
        pytest.skip("this Python has other Unicode tables than the core")
    texts = [pattern.format(c) for c in VARIED]
    for text, words in zip(texts, core.words(texts, LETTERS), strict=True):
        assert words == plain_words(text), ascii(text)


ALPHABET = [
    *"aA1_ .,-'\0\t\n",
    *"éÉßẞıİIi",
    "\u0301",
    "\u0307",
    "\u00ad",
    *"ΣσςΑά",
    *"Жж日本ـع",
    "😀",
    "𝐀",
    "ǅ",
    "Ⅷ",
    "ⓐ",
]


@pytest.mark.parametrize("min_length", [1, 2, 3])
def test_random_texts_are_cut_as_by_python(core, rng, min_length):
    rare = [chr(code) for code in rng.integers(0x80, 0x20000, 300) if not 0xD800 <= code <= 0xDFFF]
    letters = np.array(ALPHABET + (rare if is_same_unicode(core) else []), dtype=object)
    texts = ["".join(rng.choice(letters, rng.integers(0, 60))) for _ in range(3000)]
    own = core.words(texts, (True, min_length, 1, 1))
    assert own == [plain_words(text, min_length) for text in texts]


def buffers(parts: list[bytes]) -> tuple[Any, Any]:
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return np.frombuffer(b"".join(parts) or b"\0", dtype=np.uint8), offsets


def test_random_bytes_are_read_as_python_replaces_them(core, rng):
    valid = [c.encode() for c in ALPHABET]
    pieces = [*valid, b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80", b"\xf0\x9f"]
    parts = [b"".join(pieces[i] for i in rng.integers(0, len(pieces), rng.integers(0, 30))) for _ in range(2000)]
    texts = [part.decode("utf-8", "replace") for part in parts]
    assert core.words(buffers(parts), LETTERS) == [plain_words(text) for text in texts]
    first = next(i for i, part in enumerate(parts) if "\ufffd" in part.decode("utf-8", "replace"))
    assert core.find_terms(buffers(parts), LETTERS, [], 1, np.inf, -1, True, True, 2)[1][3] == first


def test_the_hash_is_murmur3(core, rng):
    words = ["".join(rng.choice([*"abcdefé日𝐀"], rng.integers(1, 20))) for _ in range(500)]
    n_columns = 1 << 31
    columns = core.hash_terms(words, AS_THEY_ARE, [], n_columns, False, True, 1)[1].view(np.uint32)
    expected = [abs(int(murmurhash3_32(word, seed=0))) % n_columns for word in words]
    np.testing.assert_array_equal(columns, expected)


BROKEN = {
    "bytes in a list": [b"a"],
    "numbers in a list": [1],
    "one part": (np.zeros(1, np.uint8),),
    "bytes of another type": (np.zeros(1, np.int8), np.array([0, 1])),
    "offsets of another type": (np.zeros(1, np.uint8), np.array([0.0, 1.0])),
    "no offsets": (np.zeros(1, np.uint8), np.zeros(0, np.int64)),
    "offsets that fall": (np.zeros(4, np.uint8), np.array([0, 3, 2])),
    "offsets below zero": (np.zeros(4, np.uint8), np.array([-1, 2])),
    "offsets beyond the bytes": (np.zeros(4, np.uint8), np.array([0, 5])),
    "offsets with gaps": (np.zeros(4, np.uint8), np.arange(8)[::2]),
}


@pytest.mark.parametrize("texts", BROKEN.values(), ids=BROKEN)
def test_broken_texts_are_refused(core, texts):
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        core.words(texts, LETTERS)


@pytest.mark.parametrize("analysis", [(True, 0, 1, 1), (True, 1, 2, 1), (True, 1, 0, 1), (True, 1, 1)])
def test_a_broken_analysis_is_refused(core, analysis):
    with pytest.raises(ValueError, match="analysis"):
        core.words(["a"], analysis)


@pytest.mark.parametrize("terms", [["ab", "ab"], ["ab", ""], ["ab ", "x"], [" ab"], ["ab  cd"], ["the"], ["ab the"]])
def test_a_vocabulary_of_no_terms_is_refused(core, terms):
    with pytest.raises(ValueError, match="of the vocabulary"):
        core.vocabulary(terms, ["the"])


def test_tables_of_terms_add(core, rng):
    texts = [" ".join(rng.choice([*"abcdefgh"], 6)) for _ in range(200)]

    def counted(part: list[str]) -> Any:
        return core.find_terms(part, (True, 1, 1, 2), [], 1, np.inf, -1, False, False, 1)[0]

    for own, whole in zip(core.add_terms(counted(texts[:77]), counted(texts[77:])), counted(texts), strict=True):
        np.testing.assert_array_equal(own, whole)
    broken = counted(texts)
    with pytest.raises(ValueError, match="ends of terms"):
        core.add_terms((broken[0][:1], *broken[1:]), broken)
