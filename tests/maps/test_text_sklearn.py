"""The same terms, columns and counts as scikit-learn's vectorisers, on real texts and hostile ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

import certifit as cf
from certifit.maps.text.terms import ENGLISH
from tests.maps.test_text import HOSTILE


@pytest.fixture(params=["sms_spam", "subjectivity", "hostile"])
def texts(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "hostile":
        return HOSTILE
    folder: Path = request.getfixturevalue("shared_data") / request.param
    found: list[str] = pq.read_table(folder / f"{request.param}.parquet").column("text").to_pylist()
    return found


SETTINGS: dict[str, dict[str, Any]] = {
    "words": {},
    "counts": {"binary": False},
    "one and two words": {"ngram_range": (1, 2), "binary": False},
    "two and three words, rare left out": {"ngram_range": (2, 3), "min_df": 2},
    "three words, shares": {"ngram_range": (1, 3), "min_df": 0.001, "max_df": 0.1},
    "frequent left out": {"max_df": 0.05, "min_df": 1},
    "stop words": {"stop_words": sorted(ENGLISH), "ngram_range": (1, 2)},
    "case kept": {"lowercase": False},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.slow
def test_equal_to_the_count_vectoriser(texts, settings):
    if texts is HOSTILE:  # 14 texts with few words in common
        settings = {name: value for name, value in settings.items() if name not in ("min_df", "max_df")}
    own = cf.TextBinarizer(**settings)
    rival = CountVectorizer(**{"binary": True, **settings})
    matrix, expected = own.fit_transform(texts), rival.fit_transform(texts)
    assert own.vocabulary_ == rival.vocabulary_
    expected.sort_indices()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(matrix, part), getattr(expected, part))
    half = texts[: len(texts) // 2]
    again, expected = own.fit(half).transform(texts), rival.fit(half).transform(texts)
    assert own.vocabulary_ == rival.vocabulary_
    expected.sort_indices()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(again, part), getattr(expected, part))


@pytest.mark.parametrize("binary, most", [(True, 10), (False, 10), (True, 1000), (False, 1000)])
@pytest.mark.slow
def test_the_most_frequent_are_those_of_the_count_vectoriser(texts, binary, most):
    """Of terms as frequent as the last one kept, scikit-learn's sort takes any; here the first are kept."""
    own = cf.TextBinarizer(binary=binary, max_features=most, ngram_range=(1, 2)).fit(texts)
    everything = CountVectorizer(binary=binary, ngram_range=(1, 2)).fit(texts)
    frequency = np.asarray(everything.transform(texts).sum(axis=0)).ravel()
    names = everything.get_feature_names_out()
    expected = sorted(names[np.argsort(-frequency, kind="stable")[:most]])
    assert list(own.get_feature_names_out()) == expected
    theirs = CountVectorizer(binary=binary, max_features=most, ngram_range=(1, 2)).fit(texts).vocabulary_
    least = np.sort(frequency)[::-1][: most + 1][-1]
    sure = {name for name, count in zip(names, frequency, strict=True) if count > least}
    assert sure <= set(expected)
    assert sure <= set(theirs)
    assert len(theirs) == len(expected)


@pytest.mark.parametrize("signed, binary", [(False, True), (False, False), (True, False)])
@pytest.mark.parametrize("n_hash", [7, 1 << 18])
@pytest.mark.slow
def test_equal_to_the_hashing_vectoriser(texts, n_hash, signed, binary):
    settings = {"ngram_range": (1, 2), "binary": binary, "stop_words": sorted(ENGLISH)}
    matrix = cf.TextBinarizer(n_hash=n_hash, signed=signed, **settings).fit_transform(texts)
    expected = HashingVectorizer(n_features=n_hash, alternate_sign=signed, norm=None, **settings).transform(texts)
    expected.sum_duplicates()
    expected.eliminate_zeros()
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(matrix, part), getattr(expected, part))
