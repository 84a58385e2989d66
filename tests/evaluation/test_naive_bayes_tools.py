"""What decides in naive Bayes, whether its assumption holds, and how it stands beside a conditional model."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf


@pytest.fixture
def classes(rng):
    y = rng.integers(0, 2, 400)
    return y, y[:, None] + rng.normal(size=(400, 3))


def test_words_are_ordered_by_what_they_bring_and_odds_are_those_of_the_shares():
    X = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1]])
    model = cf.BernoulliNB().fit(X, ["a", "a", "b", "b"])
    words = cf.deciding_words(model, ["one", "two", "three"])
    assert [word.name for word in words["a"]] == ["one"]
    assert words["a"][0].log_odds == pytest.approx(np.log((3 / 4) / (1 / 4)))
    assert words["b"][0].evidence == pytest.approx(words["b"][0].log_odds * words["b"][0].count / 2)
    assert len(cf.deciding_words(model, most=1)["b"]) == 1


def test_words_of_what_has_none_are_refused():
    X = np.array([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(TypeError, match="Got GaussianDiscriminant"):
        cf.deciding_words(cf.GaussianDiscriminant("diagonal", shrinkage=0.5).fit(np.vstack([X, X + 0.1]), [0, 1, 0, 1]))
    with pytest.raises(ValueError, match=r"one per column\. Got 3"):
        cf.deciding_words(cf.BernoulliNB().fit(X, [0, 1]), ["a", "b", "c"])


def test_independent_columns_are_seldom_refuted_and_copies_always():
    """Over 60 samples a test at 5 % refutes at most a tenth of what is true."""
    refuted = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 150)
        X = y[:, None] + rng.normal(size=(150, 3))
        refuted += cf.conditional_independence(X, y).p_value < 0.05
    assert refuted <= 9
    noisy_copy = np.column_stack([X, X[:, 0] + 0.5 * rng.normal(size=150)])
    worst = cf.conditional_independence(noisy_copy, y)
    assert worst.p_value < 1e-6 and {worst.pairs[0].first, worst.pairs[0].second} == {"x0", "x3"}


def test_flags_are_tested_within_classes_and_not_across_them(rng):
    """Columns that both follow the class are dependent, and independent given it."""
    y = rng.integers(0, 2, 800)
    flags = (rng.random((800, 2)) < np.where(y, 0.8, 0.2)[:, None]).astype(float)
    assert abs(np.corrcoef(flags.T)[0, 1]) > 0.2
    assert cf.conditional_independence(flags, y).p_value > 1e-3
    flags[:, 1] = np.where(rng.random(800) < 0.7, flags[:, 0], flags[:, 1])
    assert cf.conditional_independence(flags, y).p_value < 1e-6


def test_the_test_of_two_flags_is_that_of_scipy(rng):
    from scipy.stats import chi2, chi2_contingency

    y = rng.integers(0, 2, 200)
    flags = rng.integers(0, 2, (200, 2))
    tables = [np.histogram2d(*flags[y == k].T, bins=2)[0] for k in (0, 1)]
    statistic = sum(chi2_contingency(table, correction=False, lambda_="log-likelihood")[0] for table in tables)
    assert cf.conditional_independence(flags, y).pairs[0].p_value == pytest.approx(chi2.sf(statistic, 2))


def test_what_cannot_be_tested_is_refused(classes):
    y, X = classes
    with pytest.raises(ValueError, match="2 to 2000 columns"):
        cf.conditional_independence(X[:, :1], y)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Row 3, column 1 is nan"):
        cf.conditional_independence(X, y)


def test_logistic_regression_is_never_worse_in_the_conditional_likelihood(classes):
    y, X = classes
    joint, conditional = cf.GaussianDiscriminant().fit(X, y), cf.LogisticRegression(alpha=0).fit(X, y)
    of = [np.log(model.predict_proba(X)[np.arange(400), y]).sum() for model in (joint, conditional)]
    assert of[1] >= of[0]
    assert joint.joint_log_likelihood(X, y) < of[0], "log p(x) is part of the joint one"
