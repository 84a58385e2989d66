"""Naive Bayes: the formulas, scikit-learn on real text, parts that add up, the certificate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.naive_bayes as peers
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import train_test_split

import certifit as cf

MODELS = {"gaussian": cf.GaussianNB, "bernoulli": cf.BernoulliNB, "multinomial": cf.MultinomialNB}
PEERS = {"gaussian": peers.GaussianNB, "bernoulli": peers.BernoulliNB, "multinomial": peers.MultinomialNB}


def rows(rng, n=300, d=12, k=3):
    y = rng.integers(0, k, n)
    return rng.poisson(np.exp(rng.normal(size=(k, d)))[y]).astype(float), np.array(["a", "b", "c"])[y]


def test_bernoulli_is_the_formula(rng):
    X, y = rows(rng)
    w = rng.integers(0, 3, len(X)).astype(float)
    model = cf.BernoulliNB(0.5).fit(X, y, w)
    for k, label in enumerate(model.classes_):
        n_jk, n_k = w[y == label] @ (X[y == label] > 0), w[y == label].sum()
        p = (n_jk + 0.5) / (n_k + 2 * 0.5)
        np.testing.assert_allclose(np.exp(model.feature_log_prob_[k]), p, rtol=1e-13)
        joint = np.log(n_k / w.sum()) + np.where(X > 0, np.log(p), np.log(1 - p)).sum(axis=1)
        np.testing.assert_allclose(model.predict_joint_log_proba(X)[:, k], joint, rtol=1e-12)


def test_multinomial_is_the_formula(rng):
    X, y = rows(rng)
    model = cf.MultinomialNB(2.0, fit_prior=False).fit(X, y)
    for k, label in enumerate(model.classes_):
        counts = X[y == label].sum(axis=0)
        p = (counts + 2.0) / (counts.sum() + 2.0 * X.shape[1])
        np.testing.assert_allclose(np.exp(model.feature_log_prob_[k]), p, rtol=1e-13)
        np.testing.assert_allclose(model.predict_joint_log_proba(X)[:, k], X @ np.log(p) - np.log(3), rtol=1e-12)


def test_gaussian_is_the_formula(rng):
    X, y = rows(rng)
    model = cf.GaussianNB(priors=[0.2, 0.3, 0.5]).fit(X, y)
    added = 1e-9 * X.var(axis=0).max()
    np.testing.assert_allclose(model.epsilon_, added, rtol=1e-12)
    for k, label in enumerate(model.classes_):
        own = X[y == label]
        mean, variance = own.mean(axis=0), own.var(axis=0) + added
        joint = np.log(model.priors[k]) - ((X - mean) ** 2 / variance + np.log(2 * np.pi * variance)).sum(axis=1) / 2
        np.testing.assert_allclose(model.predict_joint_log_proba(X)[:, k], joint, rtol=1e-11)


@pytest.mark.parametrize("kind", MODELS)
def test_weights_are_repetitions_and_sparse_rows_are_rows(kind, rng):
    X, y = rows(rng)
    w = rng.integers(0, 4, len(X))
    weighted = MODELS[kind]().fit(X, y, w)
    repeated = MODELS[kind]().fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    wide = sp.csr_array(np.hstack([X, np.zeros((len(X), 30))]))
    for other, rows_ in ((repeated, X), (MODELS[kind]().fit(sp.csr_array(X), y, w), sp.csr_array(X))):
        np.testing.assert_allclose(
            other.predict_joint_log_proba(rows_), weighted.predict_joint_log_proba(X), rtol=1e-10
        )
    dense, sparse = MODELS[kind]().fit(wide.toarray(), y, w), MODELS[kind]().fit(wide, y, w)
    np.testing.assert_allclose(
        sparse.predict_log_proba(wide), dense.predict_log_proba(wide.toarray()), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("kind", MODELS)
def test_parts_add_up_to_one_fit(kind, rng):
    X, y = rows(rng)
    y[:40] = "a"  # the first part has one class
    w = rng.integers(1, 4, len(X)).astype(float)
    whole = MODELS[kind]().fit(X, y, w)
    parts = MODELS[kind]()
    for begin, end in ((0, 40), (40, 41), (41, 300)):
        classes = ["a", "b", "c"] if begin == 0 else None
        parts.partial_fit(X[begin:end], y[begin:end], classes=classes, sample_weight=w[begin:end])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)
    assert np.array_equal(parts.class_count_, whole.class_count_)
    if kind != "gaussian":
        assert np.array_equal(parts.feature_count_, whole.feature_count_)
    assert parts.certificate_.holds and parts.certify(X, y, w).holds


def test_partial_fit_refuses_what_does_not_go_on(rng):
    X, y = rows(rng)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        cf.BernoulliNB().partial_fit(X, y)
    model = cf.BernoulliNB().partial_fit(X, y, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="not among the classes"):
        model.partial_fit(X, np.where(y == "a", "z", y))
    with pytest.raises(ValueError, match="12 features"):
        model.partial_fit(X[:, :5], y)
    with pytest.raises(ValueError, match="not the same as on the last call"):
        model.partial_fit(X, y, classes=["a", "b"])


@pytest.mark.parametrize("kind", MODELS)
def test_a_nudge_of_any_part_is_noticed(kind, rng):
    X, y = rows(rng)
    model = MODELS[kind]().fit(X, y)
    again = model.certify(X, y)
    names = ("theta_", "var_", "class_prior_") if kind == "gaussian" else ("feature_log_prob_", "class_log_prior_")
    for name in names:
        kept = getattr(model, name)
        setattr(model, name, kept * (1 + 1e-4))
        assert model.certify(X, y).value > 10 * again.value + again.rounding, name
        setattr(model, name, kept)


@pytest.mark.parametrize("kind", ["bernoulli", "multinomial"])
def test_the_certificate_is_the_shortfall_of_the_likelihood(kind, rng):
    X, y = rows(rng)
    X = (X > 0).astype(float) if kind == "bernoulli" else X
    model = MODELS[kind](0.0).fit(np.vstack([X, np.ones((3, 12)), np.zeros((3, 12))]), [*y, *"abc", *"abc"])
    X, y = np.vstack([X, np.ones((3, 12)), np.zeros((3, 12))]), np.array([*y, *"abc", *"abc"])
    best = model.joint_log_likelihood(X, y) / len(X)
    p = np.exp(model.feature_log_prob_)
    for size in (1e-1, 1e-2):
        other = p * np.exp(size * rng.normal(size=p.shape))
        other = np.minimum(other, 0.999) if kind == "bernoulli" else other / other.sum(axis=1, keepdims=True)
        model.feature_log_prob_ = np.log(other)
        fall = best - model.joint_log_likelihood(X, y) / len(X)
        certificate = model.certify(X, y)
        np.testing.assert_allclose(certificate.shortfall, fall, rtol=1e-7)
        assert certificate.value >= certificate.shortfall


def test_no_smoothing_is_refused_where_it_leaves_rows_impossible(rng):
    X, y = rows(rng)
    X[y == "b", 3] = 0
    for model in (cf.BernoulliNB(0.0), cf.MultinomialNB(0.0)):
        with pytest.raises(ValueError, match=r"'x3'.*class 'b'.*alpha > 0"):
            model.fit(X, y)


def test_negative_counts_are_refused(rng):
    X, y = rows(rng)
    X[5, 2] = -1
    with pytest.raises(ValueError, match="Negative values"):
        cf.MultinomialNB().fit(X, y)
    with pytest.raises(ValueError, match="binarize"):
        cf.BernoulliNB(binarize=None).fit(X, y)


def texts(folder, name):
    table = pd.read_parquet(folder / name / f"{name}.parquet")
    return table["text"], table["label"].to_numpy()


@pytest.mark.parametrize("name", ["sms_spam", "subjectivity"])
@pytest.mark.parametrize("kind", ["bernoulli", "multinomial"])
def test_text_is_classified_as_scikit_learn_does(name, kind, shared_data):
    text, y = texts(shared_data, name)
    X = CountVectorizer().fit_transform(text)
    model, peer = MODELS[kind]().fit(X, y), PEERS[kind]().fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(X), peer.predict_joint_log_proba(X), rtol=1e-10)
    assert np.array_equal(model.predict(X), peer.predict(X))


def test_subjectivity_is_told_in_nine_of_ten_sentences(shared_data):
    text, y = texts(shared_data, "subjectivity")
    X = CountVectorizer(ngram_range=(1, 2)).fit_transform(text)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    assert cf.MultinomialNB().fit(train, y_train).score(test, y_test) > 0.91


@pytest.mark.parametrize("alpha", [1e-16, 1e-30, 1e-300])
def test_a_small_alpha_leaves_every_row_possible(alpha):
    """1 - p is alpha / (n + 2 alpha) where all rows of a class have the word: p itself rounds to 1."""
    X = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    model = cf.BernoulliNB(alpha).fit(X, [0, 0, 1, 1])
    log_odds = np.diff(model.predict_joint_log_proba(X), axis=1).ravel()
    expected = 2 * (np.log(alpha) - np.log(2))  # log[alpha / (2 + alpha)] twice
    np.testing.assert_allclose(log_odds, [expected / 2, expected / 2, -expected / 2, -expected / 2], rtol=1e-13)
    assert model.certificate_.holds
    with pytest.raises(ValueError, match=r"alpha=1e\+308 .*use alpha near 1"):
        cf.BernoulliNB(1e308).fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize("n_columns", [3, 50])
def test_fractional_weights_of_sparse_rows_are_no_counts_beyond_one(n_columns, rng):
    """Sums of weights in two orders differ in the last digit: still rows of 0 and 1, and chances of at most 1."""
    X = sp.csr_array(np.ones((6000, n_columns)))
    y, w = np.arange(6000) % 3, rng.uniform(0.0, 1.0, 6000)
    for binarize in (None, 0.0):
        model = cf.BernoulliNB(1e-12, binarize=binarize).fit(X, y, w)
        assert (model.feature_log_prob_ < 0).all() and model.certificate_.holds


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@pytest.mark.parametrize("kind", ["bernoulli", "multinomial"])
def test_the_scale_of_weights_costs_no_digits(kind, scale, rng):
    X, y = rows(rng)
    plain = MODELS[kind](1e-9).fit(X, y)
    scaled = MODELS[kind](1e-9 * scale).fit(X, y, np.full(len(y), scale))
    np.testing.assert_allclose(scaled.feature_log_prob_, plain.feature_log_prob_, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(scaled.class_log_prior_, plain.class_log_prior_, rtol=1e-15)


def test_a_class_without_rows_so_far_has_no_chance():
    X = np.array([[2.0, 1.0], [1.0, 3.0]])
    model = cf.MultinomialNB(0.0).partial_fit(X, ["a", "b"], classes=["a", "b", "c"])
    np.testing.assert_array_equal(model.predict_proba(X)[:, 2], 0)
    assert model.predict(X).tolist() == ["a", "b"]
    assert model.certify(X, ["a", "b"]).holds


@pytest.mark.parametrize("kind", ["bernoulli", "multinomial"])
def test_words_of_a_table_are_never_made_dense(rng, kind, monkeypatch):
    def refuse(segment, n_rows):
        raise AssertionError("dense")

    monkeypatch.setattr("certifit.data.columns.Csr.dense", refuse)
    words = np.array(["rain", "snow", "sun", "wind", "fog", "hail", "storm", "frost"])
    texts = [" ".join(rng.choice(words, 6)) for _ in range(60)]
    frame = pd.DataFrame({"text": texts, "place": rng.choice(["hill", "shore"], 60)})
    y = ["snow" in text for text in texts]
    encoder = cf.TableEncoder(texts=cf.TextBinarizer(binary=kind == "bernoulli"))
    model = MODELS[kind](encoder=encoder).fit(frame, y)
    assert model.score(frame, y) > 0.9


def test_categories_are_ones_that_a_threshold_of_1_does_not_pass(rng):
    frame = pd.DataFrame({"place": rng.choice(["hill", "shore", "town"], 60), "count": rng.integers(0, 4, 60)})
    y = rng.choice(["a", "b"], 60)
    model = cf.BernoulliNB(binarize=1.0, encoder=cf.TableEncoder()).fit(frame, y)
    table = np.column_stack([np.zeros((60, 2)), frame["count"] > 1])
    np.testing.assert_allclose(model.predict_proba(frame), cf.BernoulliNB().fit(table, y).predict_proba(table))
