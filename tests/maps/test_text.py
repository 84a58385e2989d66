"""Texts to columns: what is counted, what is refused, the same result for any way that the texts come in."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import certifit as cf
from certifit.maps.text.terms import ENGLISH

HOSTILE = [
    "",
    " \t\n",
    "?!... --- ''",
    "a b c",
    "w" * 1_000_000,
    "ab " * 50_000,
    "😀😀 smile😀face 👨‍👩‍👧",
    "e\u0301te\u0301 été ÉTÉ",
    "Istanbul İSTANBUL ısı I",
    "nul\0byte \0\0 x\0y",
    "ΟΔΟΣ οδος ΣΑΣ Σ",
    "日本語 テキスト ٣٤ ²½ Ⅷ",
    "under_score __ _a",
    "straße STRASSE ẞẞ",
]


def made(texts: list[str], **settings: Any) -> tuple[list[str], Any]:
    binarizer = cf.TextBinarizer(**settings)
    matrix = binarizer.fit_transform(texts)
    return list(binarizer.get_feature_names_out()), matrix


def plain(texts: list[str], n: int = 1) -> tuple[list[str], Any]:
    """Counts of terms of n words, written out."""
    rows = []
    for text in texts:
        words = re.findall(r"\b\w\w+\b", text.lower())
        rows.append(Counter(" ".join(words[i : i + n]) for i in range(len(words) - n + 1)))
    names = sorted(set().union(*rows))
    return names, np.array([[row[name] for name in names] for row in rows])


def same(a: Any, b: Any) -> bool:
    return all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr", "shape"))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_counts_are_those_of_the_definition(n):
    names, matrix = made(HOSTILE, ngram_range=(n, n), binary=False)
    expected_names, expected = plain(HOSTILE, n)
    assert names == expected_names
    np.testing.assert_array_equal(matrix.toarray(), expected)
    np.testing.assert_array_equal(made(HOSTILE, ngram_range=(n, n))[1].toarray(), expected > 0)


def test_columns_are_sorted_and_unique_in_every_row():
    matrix = made(HOSTILE, ngram_range=(1, 3))[1]
    for row in range(len(HOSTILE)):
        assert (np.diff(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]) > 0).all()
    assert matrix.dtype == np.float64
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32


@pytest.mark.parametrize("settings", [{}, {"ngram_range": (1, 3)}, {"n_hash": 50, "binary": False, "signed": True}])
@pytest.mark.slow
def test_threads_do_not_matter(rng, settings):
    words = np.array([f"w{i}" for i in range(500)], dtype=object)
    texts = [" ".join(words[(500 * rng.random(12) ** 3).astype(int)]) for _ in range(5000)] + HOSTILE
    results = []
    for n in (1, 2, 8):
        with cf.threads(n):
            names, matrix = made(texts, **settings)
            results.append((names, matrix, cf.TextBinarizer(**settings).fit(texts).transform(texts)))
    for names, matrix, again in results:
        assert names == results[0][0]
        assert same(matrix, results[0][1])
        assert same(again, results[0][1])


WAYS = {
    "tuple": tuple,
    "generator": iter,
    "objects": lambda texts: np.array(texts, dtype=object),
    "series": pd.Series,
    "series of objects": lambda texts: pd.Series(texts, dtype=object, index=range(5, 5 + len(texts))),
    "series of strings": lambda texts: pd.Series(texts, dtype="string"),
    "categories": lambda texts: pd.Series(texts, dtype="category"),
    "polars": pl.Series,
    "arrow": lambda texts: pa.array(texts, pa.string()),
    "large arrow": lambda texts: pa.array(texts, pa.large_string()),
    "views": lambda texts: pa.array(texts, pa.string()).cast(pa.string_view()),
    "dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "slice": lambda texts: pa.array(["before", *texts, "after", None])[1:-2],
    "chunks": lambda texts: pa.chunked_array([texts[:3], [], texts[3:4], texts[4:]], pa.string()),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_container_of_the_same_texts_gives_the_same_bits(way):
    names, matrix = made(HOSTILE, ngram_range=(1, 2))
    own = cf.TextBinarizer(ngram_range=(1, 2)).fit(WAYS[way](HOSTILE))
    assert list(own.get_feature_names_out()) == names
    assert same(own.transform(WAYS[way](HOSTILE)), matrix)


def test_numpy_strings_are_read():
    texts = np.array(["free cash", "free beer"])
    assert made(texts)[0] == ["beer", "cash", "free"]  # type: ignore[arg-type]


REFUSED = {
    "none": (["a", None], "missing (None) at row 1"),
    "nan": (["a", "b", float("nan")], "missing (nan) at row 2"),
    "series with a gap": (pd.Series(["a", None, "b"], dtype="string"), "missing at row 1"),
    "objects with a gap": (pd.Series(["a", np.nan], dtype=object), "at row 1"),
    "arrow with a gap": (pa.array(["a", None]), "missing at row 1"),
    "nothing but gaps": (pa.nulls(3), "missing at row 0"),
    "a number": (["a", 3], "Row 1 is int: 3"),
    "a list": ([["a"], ["b"]], "Row 0 is list"),
    "numbers": (np.ones(3), "Row 0 is float64: 1.0"),
    "arrow numbers": (pa.array([1, 2]), "int64"),
    "series of numbers": (pd.Series([1.0, 2.0]), "double"),
    "bytes": ([b"a", "b"], "Row 0 is bytes. Decode"),
    "an array of bytes": (np.array([b"ab", b"cd"]), "Row 0 is bytes. Decode"),
    "one bytes": (b"text", "Got bytes. Decode"),
    "arrow bytes": (pa.array([b"ab"]), "Cast it to string"),
    "one text": ("text", "use [text]"),
    "two dimensions": (np.array([["ab"], ["cd"]]), "shape (2, 1)"),
    "a frame": (pd.DataFrame({"x": ["ab"]}), "shape (1, 1)"),
    "a table": (pa.table({"x": ["ab"]}), "table['name']"),
    "a set": ({"ab", "cd"}, "Got set"),
    "a number alone": (3, "Got int"),
    "nothing": ([], "0 texts"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_text_is_refused_by_name(case):
    X, message = REFUSED[case]
    for settings in ({}, {"n_hash": 8}):
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            cf.TextBinarizer(**settings).fit(X)
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            cf.TextBinarizer(**settings).fit_transform(X)
        if case != "nothing":
            with pytest.raises((ValueError, TypeError), match=re.escape(message)):
                cf.TextBinarizer(**settings).fit(["free cash"]).transform(X)


GAPS = {
    "list": ["free", None, float("nan"), ""],
    "series": pd.Series(["free", None, np.nan, ""], dtype="string"),
    "objects": pd.Series(["free", None, pd.NA, ""], dtype=object),
    "arrow": pa.array(["free", None, None, ""]),
    "chunks": pa.chunked_array([["free", None], [None, ""]]),
}


@pytest.mark.parametrize("texts", GAPS.values(), ids=GAPS)
def test_missing_texts_are_empty_on_request(texts):
    own = cf.TextBinarizer(missing="empty").fit(texts)
    assert own.n_texts_ == 4
    assert own.transform(texts).toarray().tolist() == [[1], [0], [0], [0]]
    assert cf.TextBinarizer(n_hash=1, missing="empty").fit_transform(pa.nulls(3)).nnz == 0


def test_no_texts_are_no_rows():
    assert cf.TextBinarizer().fit(["free cash"]).transform([]).shape == (0, 2)


BROKEN = {
    "surrogates": (["fine", "half\ud800pair free", "ok"], ["fine", "half", "pair free"]),
    "utf-8": (
        pa.StringArray.from_buffers(3, pa.py_buffer(np.array([0, 2, 7, 9], np.int32)), pa.py_buffer(b"okab\xffcdno")),
        ["ok", "ab cd", "no"],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("settings", [{}, {"n_hash": 64}])
def test_broken_unicode_is_refused_or_replaced(case, settings):
    X, _ = BROKEN[case]
    with pytest.raises(ValueError, match=r"not valid Unicode .* at row 1\. .*invalid='replace'"):
        cf.TextBinarizer(**settings).fit(X)
    with pytest.raises(ValueError, match="at row 1"):
        cf.TextBinarizer(**settings).fit(["fine"]).transform(X)
    matrix = cf.TextBinarizer(**settings, invalid="replace").fit_transform(X)
    as_spaces = [re.sub("[\ud800\ufffd]", " ", text) for text in _decoded(X)]
    assert same(matrix, cf.TextBinarizer(**settings).fit_transform(as_spaces))


def _decoded(X: Any) -> list[str]:
    return X if isinstance(X, list) else [text.as_buffer().to_pybytes().decode("utf-8", "replace") for text in X]


PARAMETERS = {
    "binary": 2,
    "ngram_range": [(0, 1), (2, 1), 1, (1,), (1.0, 2)],
    "min_df": [0, -1, 1.5, True, "1"],
    "max_df": [0, -0.1, 1.5, None],
    "max_features": [0, 2.5, -1],
    "stop_words": ["french", 3, [b"a"]],
    "min_length": [0, 1.5],
    "n_hash": [0, -1, 2.0, 1 << 32],
    "signed": [True, 3],
    "invalid": ["ignore", None],
    "missing": ["drop", 0],
    "lowercase": [None],
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_illegal_parameters_are_refused_by_name(name):
    values = PARAMETERS[name]
    for value in values if isinstance(values, list) else [values]:
        with pytest.raises((ValueError, TypeError), match=name):
            cf.TextBinarizer(**{name: value}).fit(["free cash"])


@pytest.mark.parametrize("settings", [{"min_df": 2}, {"max_df": 0.5}, {"max_features": 3}, {"min_df": 1.0}])
def test_limits_are_refused_with_hashing(settings):
    with pytest.raises(ValueError, match="need a vocabulary"):
        cf.TextBinarizer(n_hash=8, **settings).fit(["free cash"])
    with pytest.raises(ValueError, match="binary=False"):
        cf.TextBinarizer(n_hash=8, signed=True).fit(["free cash"])


@pytest.mark.parametrize(
    "texts, settings",
    [(["", "?"], {}), (["a b"], {}), (["the"], {"stop_words": "english"}), (["ab", "cd"], {"min_df": 2})],
)
def test_no_term_left_is_refused(texts, settings):
    with pytest.raises(ValueError, match="no term of"):
        cf.TextBinarizer(**settings).fit(texts)


def test_limits_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="max_df=1 is 1 of 2 texts, less than min_df=2"):
        cf.TextBinarizer(min_df=2, max_df=1).fit(["ab", "ab"])


def test_of_equally_frequent_terms_the_first_are_kept():
    texts = ["dd cc", "bb aa", "ee cc cc cc", "aa ee"]
    assert made(texts, max_features=2)[0] == ["aa", "cc"]
    assert made(texts, max_features=1, binary=False)[0] == ["cc"]
    assert made(texts, max_features=99)[0] == ["aa", "bb", "cc", "dd", "ee"]


def test_single_letters_are_kept_on_request():
    assert made(["I am a b_ 7"], min_length=1)[0] == ["7", "a", "am", "b_", "i"]
    assert made(["I am a b_ 7"], min_length=1, lowercase=False)[0] == ["7", "I", "a", "am", "b_"]


def test_terms_skip_stop_words_and_break_at_words_without_a_column():
    own = cf.TextBinarizer(ngram_range=(2, 2), stop_words=["The"]).fit(["cat the sat", "sat mat"])
    assert own.vocabulary_ == {"cat sat": 0, "sat mat": 1}
    np.testing.assert_array_equal(own.transform(["cat sat", "cat dog sat", "THE cat the the sat mat"]).toarray(),
                                  [[1, 0], [0, 0], [1, 1]])  # fmt: skip
    assert own.terms_of("The cat the sat mat") == ["cat sat", "sat mat"]


def test_stop_words_that_are_never_met_are_said():
    with pytest.warns(UserWarning, match=r"1 of 2 stop words are not one word .*\"don't\""):
        cf.TextBinarizer(stop_words=["don't", "a"]).fit(["free cash"])


def test_the_english_list_holds_no_negation_and_only_words():
    assert not ENGLISH & {"no", "not", "nor", "never", "none", "cannot", "without", "don", "isn", "against all"}
    assert all(re.fullmatch("[a-z]+", word) for word in ENGLISH)
    assert made(["The cat is not on a mat"], stop_words="english")[0] == ["cat", "mat", "not"]


def test_facts_of_the_fit():
    own = cf.TextBinarizer().fit(["free cash free", "free beer"])
    assert own.vocabulary_ == {"beer": 0, "cash": 1, "free": 2}
    assert own.document_counts_.tolist() == [1, 1, 2]
    assert own.n_texts_ == 2
    hashed = cf.TextBinarizer(n_hash=4).fit(["free cash"])
    assert list(hashed.get_feature_names_out()) == ["hash0", "hash1", "hash2", "hash3"]
    assert not hasattr(hashed, "vocabulary_")
    assert not hasattr(cf.TextBinarizer(), "vocabulary_")


@pytest.mark.parametrize("settings", [{"ngram_range": (1, 2), "stop_words": "english"}, {"n_hash": 8}])
def test_copies_and_states_map_alike(settings):
    own = cf.TextBinarizer(**settings).fit(HOSTILE)
    matrix = own.transform(HOSTILE)
    state, arrays = own.to_state()
    copies = [
        pickle.loads(pickle.dumps(own)),
        copy.deepcopy(own),
        cf.TextBinarizer.from_state(json.loads(json.dumps(state)), arrays),
        clone(own).fit(HOSTILE),
    ]
    own.set_params(binary=False, ngram_range=(3, 3), lowercase=False)  # of no effect before the next fit
    for other in (own, *copies):
        assert same(other.transform(HOSTILE), matrix)
        assert list(other.get_feature_names_out()) == list(copies[0].get_feature_names_out())


def test_a_refit_forgets():
    own = cf.TextBinarizer().fit(["free cash"])
    own.transform(["free"])
    assert own.fit(["other words"]).transform(["free other"]).toarray().tolist() == [[1, 0]]
    own.set_params(n_hash=4).fit(["free"])
    assert not hasattr(own, "vocabulary_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_accepts_the_estimator():
    check_estimator(cf.TextBinarizer())


def test_a_share_of_the_texts_is_a_number_of_them_but_for_rounding():
    """49 times 1/49 is less than 1 in float64."""
    texts = ["aa"] + ["bb"] * 48
    assert list(cf.TextBinarizer(max_df=1 / 49).fit(texts).vocabulary_) == ["aa"]
    for n in (49, 98, 103, 107):
        for k in range(1, n):
            found = cf.TextBinarizer(min_df=k / n, max_df=k / n).fit(["aa"] * k + [""] * (n - k))
            assert found.document_counts_.tolist() == [k]
