"""Claims about columns of free text in a file: the same terms come back, and forged ones are refused."""

from __future__ import annotations

import copy
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forge import dumps, hexed, metadata, refuse, with_array, with_number, with_text
from samples import letters, samples

import certifit as cf
from certifit.maps import TableEncoder, TextBinarizer
from certifit.modelfile import ModelFileError, container
from certifit.modelfile.encoders import COLUMN
from certifit.modelfile.files import from_bytes, to_bytes


def fitted(name: str = "words") -> Any:
    return copy.deepcopy(samples()[name].model)


def edited(data: bytes, **changes: Any) -> bytes:
    """The file with other parameters of its texts, and right digests."""
    tree = metadata(data)
    tree["encoder"]["texts"]["parameters"] |= changes
    return with_text(data, dumps(tree))


def with_terms(data: bytes, terms: list[str]) -> bytes:
    """The file with other terms of the first column of text, as many as there were."""
    said, arrays = container.from_bytes(data)
    ends, written = arrays["text_ends.terms"], arrays["texts.terms"].tobytes()
    begins = [0, *ends[:-1].tolist()]
    old = [written[begin:end] for begin, end in zip(begins, ends.tolist(), strict=True)]
    parts = [*(term.encode() for term in terms), *old[len(terms) :]]
    arrays["text_ends.terms"] = np.cumsum([len(part) for part in parts])
    arrays["texts.terms"] = np.frombuffer(b"".join(parts), np.uint8)
    return container.to_bytes(said, arrays)


READINGS = {
    "words": TextBinarizer(),
    "pairs": TextBinarizer(ngram_range=(1, 2), min_df=2, max_df=0.9),
    "counts": TextBinarizer(binary=False, max_features=5, lowercase=False),
    "stop words": TextBinarizer(stop_words=["Now", "free", "free", "don't"]),
    "english": TextBinarizer(stop_words="english", invalid="replace", min_length=1),
    "hashed": TextBinarizer(n_hash=16),
    "signed": TextBinarizer(n_hash=16, signed=True, binary=False),
}


@pytest.mark.parametrize("kind", READINGS)
@pytest.mark.parametrize(
    "model", [cf.GaussianDiscriminant(shrinkage=0.5), cf.GaussianNB(), cf.BernoulliNB(), cf.Ridge()]
)
@pytest.mark.filterwarnings("ignore:.*stop words are not one word")
@pytest.mark.slow
def test_words_are_read_as_before(kind, model):
    frame, y = letters(), np.arange(40) % 2
    model = copy.deepcopy(model).set_params(encoder=TableEncoder(texts=READINGS[kind])).fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what the fit said about stop words is not said again
        again = from_bytes(to_bytes(model))
    new = pd.concat([frame, frame[::-1].assign(message="FREE tonight unheard of")])
    scores = "predict" if isinstance(model, cf.Ridge) else "predict_log_proba"
    assert getattr(again, scores)(new).tobytes() == getattr(model, scores)(new).tobytes()
    assert again.column_names_ == model.column_names_
    for mine, other in zip(again.encoder_.columns_, model.encoder_.columns_, strict=True):
        assert mine.record() == other.record()
    assert cf.verify(again, frame, y)


def test_terms_counts_and_settings_come_back():
    model = fitted()
    again = from_bytes(to_bytes(model))
    before, after = (m.encoder_.columns_[0].words for m in (model, again))
    assert after.vocabulary_ == before.vocabulary_ and after.n_texts_ == before.n_texts_
    assert after.document_counts_.tolist() == before.document_counts_.tolist()
    assert again.encoder.texts.get_params() == model.encoder.texts.get_params()
    assert "now" not in after.vocabulary_ and "é漢" in after.vocabulary_


def test_a_word_of_a_hundred_thousand_letters_comes_back():
    frame = letters()
    frame.loc[3, "subject"] = "free " + "x" * 100_000 + " now and then"
    model = cf.BernoulliNB(encoder=TableEncoder(texts=TextBinarizer())).fit(frame, np.arange(40) % 2)
    assert from_bytes(to_bytes(model)).predict_proba(frame).tobytes() == model.predict_proba(frame).tobytes()


def test_an_encoder_that_met_no_texts_keeps_how_it_would_read_them():
    frame = letters()[["sender"]].assign(x=np.arange(40.0))
    model = cf.GaussianNB(encoder=TableEncoder(texts=TextBinarizer(n_hash=2**31))).fit(frame, np.arange(40) % 2)
    again = from_bytes(to_bytes(model))
    assert again.encoder.texts.n_hash == 2**31


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ngram_range", (2, 1), "ngram_range must be"),
        ("n_hash", 2, "n_hash learns none"),
        ("min_df", -1, "min_df"),
    ],
)
def test_a_reading_changed_after_the_fit_is_not_written(name, value, reason):
    model = fitted()
    setattr(model.encoder_.texts, name, value)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


# ---- what load refuses

EDITS: dict[str, tuple[dict[str, Any], str]] = {
    "binary is a number": ({"binary": 1}, "true or false"),
    "no words": ({"ngram_range": [0, 1]}, "two integers"),
    "words turned around": ({"ngram_range": [2, 1]}, "two integers"),
    "words without an end": ({"ngram_range": [1, 2**40]}, "two integers"),
    "three numbers of words": ({"ngram_range": [1, 1, 1]}, "two integers"),
    "pairs only": ({"ngram_range": [2, 2]}, "too few or too many words"),
    "min_df of 0 texts": ({"min_df": 0}, "an integer >= 1 or a float"),
    "min_df beyond all texts": ({"min_df": 41}, "too few or too many texts"),
    "max_df of none": ({"max_df": hexed(0.0)}, "too few or too many texts"),
    "max_df is infinite": ({"max_df": hexed(float("inf"))}, "an integer >= 1 or a float"),
    "too many terms": ({"max_features": 3}, "more than 3 terms"),
    "no letters": ({"min_length": 0}, "an integer from 1"),
    "2**63 letters": ({"min_length": 2**62}, "an integer from 1"),
    "another rule": ({"invalid": "os.system"}, "one of 'error', 'replace'"),
    "another language": ({"stop_words": "french"}, "'english' or a sorted list"),
    "stop words that are not sorted": ({"stop_words": ["b", "a"]}, "'english' or a sorted list"),
    "stop words twice": ({"stop_words": ["a", "a"]}, "'english' or a sorted list"),
    "a term that is a stop word": ({"stop_words": ["free"]}, "is no term"),
    "signs without hashing": ({"signed": True}, "signed=True needs n_hash"),
    "hashing": ({"n_hash": 8}, "is no array of this model"),
    "no columns": ({"n_hash": 0}, "2\\^31"),
    "a parameter more": ({"tokenizer": "eval"}, "unknown key 'tokenizer'"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_parameters_under_right_digests_are_refused(case):
    changes, reason = EDITS[case]
    refuse(edited(to_bytes(fitted()), **changes), reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "is no array|without a number of texts"),
        (0, "integer >= 1"),
        (3, "in more than there are"),
        (2**62, "float|few"),
    ],
)
def test_another_number_of_texts_is_refused(value, reason):
    data = edited(to_bytes(fitted()), min_df=hexed(0.05))
    tree = metadata(data)
    tree["encoder"]["texts"]["n_texts"] = value
    refuse(with_text(data, dumps(tree)), reason)


def test_hashing_into_more_columns_than_the_file_has_numbers_is_refused_at_once():
    data = to_bytes(fitted("words hashed"))
    tracemalloc.start()
    refuse(edited(data, n_hash=2**31), "columns of words in a model of")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20
    refuse(edited(data, n_hash=9), "must be float64 of shape")


def test_terms_that_are_not_sorted_or_come_twice_are_refused():
    data = to_bytes(fitted())
    terms = list(fitted().encoder_.columns_[0].words.vocabulary_)
    assert from_bytes(with_terms(data, terms)).column_names_ == fitted().column_names_
    refuse(with_terms(data, [terms[1], terms[0]]), "not sorted, or come twice")
    refuse(with_terms(data, [terms[0], terms[0]]), "not sorted, or come twice")
    refuse(with_terms(data, [""]), "is no term")
    refuse(with_terms(data, ["aa bb"]), "too few or too many words")
    refuse(with_terms(data, [terms[0] + " "]), "too few or too many words|is no term")
    refuse(with_terms(data, ["\x1b[31m now"]), "too few or too many words|not sorted")


@pytest.mark.parametrize("number", [0, -1, 2**62, 41])
def test_a_term_in_an_impossible_number_of_texts_is_refused(number):
    refuse(with_number(to_bytes(fitted()), "encoder.documents", 0, number), "a term in no text, or in more")


@pytest.mark.slow
def test_terms_that_do_not_fill_their_bytes_are_refused():
    data = to_bytes(fitted())
    refuse(with_number(data, "text_ends.terms", 0, -1), "must follow each other")
    refuse(with_number(data, "text_ends.terms", -1, 2**62), "must follow each other")
    refuse(with_number(data, "texts.terms", 0, 0xFF), "not valid UTF-8")
    documents = container.from_bytes(data)[1]["encoder.documents"]
    refuse(with_array(data, "encoder.documents", documents[:-1]), "must be int64 of shape|terms. Got")


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("n_levels", 0, "need .* terms"),
        ("n_levels", 2**62, "n_levels of column 0"),
        ("n_levels", -1, "n_levels of column 0"),
        ("has_other", 1, "has_other of column 0"),
        ("reference", 1, "reference of column 0"),
        ("parts", 1, "parts of column 0"),
        ("kind", 2, "need .* terms|n_levels|texts"),
        ("kind", 0, "parts|n_levels"),
    ],
)
def test_an_illegal_column_of_text_is_refused(field, value, reason):
    data = to_bytes(fitted())
    assert metadata(data)["features"]["names"][0] == "message"
    refuse(with_number(data, "encoder.columns", (0, COLUMN.index(field)), value), reason)


def test_a_column_of_text_needs_how_it_is_read():
    data = to_bytes(fitted("words hashed"))
    tree = metadata(data)
    del tree["encoder"]["texts"]
    refuse(with_text(data, dumps(tree)), "without how texts are read")
