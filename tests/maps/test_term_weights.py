"""Weights of terms: those of scikit-learn's TfidfVectorizer, in the model file and on the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.feature_extraction.text import TfidfVectorizer

import certifit as cf
from certifit import cli

TEXTS = ["Win a prize, win cash", "are you at home", "the cat and the dog", "", "cash for the cat", "you win"] * 4
LABELS = np.array(["spam", "ham", "ham", "ham", "spam", "spam"] * 4)


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("stop", [None, ["the", "and"]])
def test_weights_are_those_of_scikit_learn(binary, stop):
    map_ = cf.TextBinarizer(term_weights="tfidf", binary=binary, stop_words=stop)
    theirs = TfidfVectorizer(binary=binary, stop_words=stop)
    np.testing.assert_allclose(map_.fit_transform(TEXTS).toarray(), theirs.fit_transform(TEXTS).toarray(), rtol=1e-14)
    other = ["win win the unknown", "cash cash cash", "zebra"]
    np.testing.assert_allclose(map_.transform(other).toarray(), theirs.transform(other).toarray(), rtol=1e-14)


def test_a_text_is_weighed_alike_in_any_block():
    map_ = cf.TextBinarizer(term_weights="tfidf").fit(TEXTS)
    whole = map_.transform(TEXTS).toarray()
    parts = [map_.transform(TEXTS[k : k + 5]).toarray() for k in range(0, len(TEXTS), 5)]
    assert np.array_equal(whole, np.concatenate(parts))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"term_weights": "bm25"}, "'tfidf' or None"), ({"term_weights": "tfidf", "n_hash": 8}, "needs a vocabulary")],
)
def test_what_is_not_legal_is_refused(parameters, words):
    with pytest.raises(ValueError, match=words):
        cf.TextBinarizer(**parameters).fit(TEXTS)


def test_a_model_file_stores_the_weights(tmp_path):
    frame = {"text": [f"{text} number {k} {'abc'[k % 3] * 3}" for k, text in enumerate(TEXTS)]}
    import pyarrow as pa

    encoder = cf.TableEncoder(texts=cf.TextBinarizer(term_weights="tfidf", stop_words="english"))
    model = cf.LogisticRegression(alpha=0.01, encoder=encoder).fit(pa.table(frame), LABELS)
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert again.encoder.texts.term_weights == "tfidf"
    assert np.array_equal(again.predict_proba(pa.table(frame)), model.predict_proba(pa.table(frame)))


def run(*args):
    return CliRunner().invoke(cli.main, [str(arg) for arg in args])


def test_the_command_line_leaves_words_out_and_weighs_the_others(tmp_path):
    rows = "\n".join(f'"{text} item{k}",{label}' for k, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True)))
    (tmp_path / "m.csv").write_text(f"text,label\n{rows}\n")
    fit = ["fit", tmp_path / "m.csv", "-t", "label", "-o", tmp_path / "out", "--cv", "0", "--texts", "text"]
    fit += ["--stop-words", "english", "--min-word-count", "2"]
    result = run(*fit, "--model", "logistic", "--term-weights", "tfidf")
    assert result.exit_code == 0, result.output
    words = cf.load(tmp_path / "out" / "model.certifit").encoder_.texts
    assert (words.term_weights, words.stop_words, words.binary) == ("tfidf", "english", False)
    context = json.loads((tmp_path / "out" / "report.json").read_text())
    names = {row["name"].rpartition(": ")[2] for row in context["deciding"]["rows"]}
    assert "win" in names and not names & {"the", "and", "you"}
    assert run("verify", tmp_path / "out" / "model.certifit", tmp_path / "m.csv", "-t", "label").exit_code == 0
    refused = run(*fit, "--term-weights", "tfidf")
    assert refused.exit_code == 2 and "naive Bayes counts words" in refused.output
