"""The certificate of a likelihood is never below the truth, which is computed here in exact fractions and 60 digits."""

from __future__ import annotations

import warnings
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import certifit as cf


def log(value):
    """Of a fraction > 0, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(value.numerator) / Decimal(value.denominator)).ln()


def decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def exact_shortfall(model, X, y, w):
    """Of naive Bayes over counts: sum_k p^_k [log(p^_k / p_k) + trials_k sum_j p^_jk log(p^_jk / p_jk)]."""
    is_multinomial = isinstance(model, cf.MultinomialNB)
    alpha, total, out = Fraction(model.alpha), sum(map(Fraction, w)), Decimal(0)
    with localcontext() as context:
        context.prec = 60
        for k, label in enumerate(model.classes_):
            rows = [(Fraction(w[i]), X[i] if is_multinomial else X[i] > 0) for i in np.flatnonzero(y == label)]
            weight = sum(one for one, _ in rows)
            counts = [sum(one * Fraction(float(row[j])) for one, row in rows) for j in range(X.shape[1])]
            share = decimal(weight / total)
            out += share * (log(weight / total) - Decimal(float(model.class_log_prior_[k])))
            log_p = [Decimal(float(value)) for value in model.feature_log_prob_[k]]
            if is_multinomial:
                whole, trials = sum(counts) + alpha * len(counts), decimal(sum(counts) / weight)
                chances = [(n + alpha) / whole for n in counts]
                out += share * trials * sum(decimal(p) * (log(p) - own) for p, own in zip(chances, log_p, strict=True))
                continue
            for n, own in zip(counts, log_p, strict=True):
                p = (n + alpha) / (weight + 2 * alpha)
                out += share * decimal(p) * (log(p) - own)
                out += share * decimal(1 - p) * (log(1 - p) - (1 - own.exp()).ln())
    return float(out)


WEIGHTS = {"ones": lambda rng, n: np.ones(n), "any": lambda rng, n: rng.uniform(0.01, 3, n)}


@pytest.mark.parametrize("kind", [cf.BernoulliNB, cf.MultinomialNB])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("size", [1.0, 1e3, 1e16])
@pytest.mark.slow
def test_the_certificate_of_counts_is_never_below_the_truth(kind, weights, size, rng):
    """The best state too falls short: its chances, rounded, do not add up to 1, and every word of a row counts."""
    y = np.arange(24) % 3
    X = rng.poisson(2.0, (24, 7)) * size
    w = WEIGHTS[weights](rng, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(alpha=0.3).fit(X, y, w)
    assert model.certificate_.holds == (kind is cf.BernoulliNB or size < 1e16)  # 1e17 roundings a row are many nats
    assert model.certify(X, y, w).value >= exact_shortfall(model, X, y, w)
    for step in (-1e-3, -1e-6, 1e-9):
        kept = model.feature_log_prob_
        model.feature_log_prob_ = kept * (1 - step)
        assert model.certify(X, y, w).value >= exact_shortfall(model, X, y, w)
        model.feature_log_prob_ = kept


@pytest.mark.parametrize("kind", [cf.MultinomialNB, cf.GaussianNB, cf.GaussianDiscriminant])
def test_chances_that_do_not_add_up_to_one_are_noticed(kind, rng):
    """Chances that are all too small by a share s fall short by s, not by its square."""
    X, y = rng.poisson(3.0, (60, 4)) + 1.0, np.arange(60) % 2
    model = kind().fit(X, y)
    if kind is cf.MultinomialNB:
        model.feature_log_prob_ = model.feature_log_prob_ - 1e-6
        truth = exact_shortfall(model, X, y, np.ones(60))
        assert truth > 9.9e-7 * X.sum() / len(X) and model.certify(X, y).value >= truth
    elif kind is cf.GaussianNB:
        model.class_prior_ = model.class_prior_ * (1 - 1e-6)
        assert 1e-6 <= model.certify(X, y).value < 2e-6
    else:
        model.priors_ = model.priors_ * (1 - 1e-6)
        assert model.certify(X, y).value >= 1e-6


@pytest.mark.parametrize("step", [1e-6, 1e-9, -1e-11])
def test_roots_of_a_nearly_singular_covariance_are_checked_to_their_last_digits(step, rng):
    """Roots are large there, and a small change of one is a large one of the likelihood.

    With L = T T^^-1 the shortfall is [trace LL' - d - log det LL'] / 2: in fractions.
    """
    x = rng.normal(size=(40, 2))
    X, y = np.column_stack([x[:, 0], x[:, 0] + 1e-6 * x[:, 1]]), np.arange(40) % 2
    model = cf.GaussianDiscriminant("class").fit(X, y)
    assert model.certificate_.holds
    (a, _), (b, c) = ([Fraction(float(v)) for v in row] for row in model.roots_[0])
    model.roots_[0, 1, 0] *= 1 + step
    moved = (Fraction(float(model.roots_[0, 1, 0])) - b) / a  # L = [[1, 0], [moved, 1]]
    assert float(c) > 1e5
    assert model.certify(X, y).value >= float(moved**2 / 4)


def test_a_column_left_out_that_says_something_is_noticed(rng):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    model = cf.GaussianDiscriminant("diagonal").fit(X, y)
    model.redundant_ = (1,)
    model.roots_[:, :, 1] = 0.0
    assert "left out" in str(model.certify(X, y))
