"""AdaBoost's margin game by linear programming: a proven interval beside brute force, whatever the solver says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.models.adaboost.certificate import certify
from tests.models.trees.test_adaboost import best_margin, problem, stumps

SOLVED = 1e-9  # the brute force is a linear program too


@pytest.mark.parametrize("n_rounds", [1, 30])
@pytest.mark.parametrize("table", range(4))
def test_the_interval_is_around_the_value_of_the_game_over_all_stumps_and_narrow(table, n_rounds):
    X, y, weight = problem(n=30, seed=table)
    model = cf.AdaBoostClassifier(n_rounds).fit(X, y, weight)
    certificate, value = model.certify(X, y, weight, polish=True), best_margin(X, y)
    assert certificate.holds
    assert certificate.polished_margin - SOLVED <= value <= certificate.best_margin + SOLVED
    assert 0 <= certificate.best_margin - certificate.polished_margin <= 1e-8
    assert certificate.margin <= certificate.polished_margin + SOLVED


def measured(X: Any, y: Any, polished: Any) -> tuple[float, float]:
    """The smallest margin of a polished vote, and the largest edge of any stump under its weights."""
    signs = 2.0 * y - 1
    votes = np.zeros(len(y))
    for (feature, threshold, left, right), share in zip(polished.stumps, polished.share, strict=True):
        votes += share * (2 * np.where(X[:, feature] <= threshold, left, right) - 1)
    weights = polished.weights / polished.weights.sum()
    edges = [abs(np.sum(weights * signs * np.where(left, 1, -1))) for left in stumps(X)]
    return float((signs * votes).min() / polished.share.sum()), max(edges)


def test_both_ends_are_those_of_the_vote_and_the_weights_that_the_certificate_shows():
    X, y, _ = problem(n=30, seed=1)
    certificate = cf.AdaBoostClassifier(5).fit(X, y).certify(X, y, polish=True)
    margin, edge = measured(X, y, certificate.polished)
    assert margin - 1e-12 <= certificate.polished_margin <= margin
    assert edge <= certificate.best_margin <= edge + 1e-12


def test_votes_and_weights_from_anywhere_bound_the_value_of_the_game(rng):
    X, y, _ = problem(n=30, seed=2)
    model, value = cf.AdaBoostClassifier(5).fit(X, y), best_margin(X, y)
    task, solved = model._task_on(X, y), model.certify(X, y, polish=True)
    for size in (1e-6, 1e-3, 1.0):
        share = np.abs(solved.polished.share + size * rng.normal(size=len(solved.polished.share)))
        weights = np.abs(solved.polished.weights + size * rng.normal(size=len(y)))
        changed = certify(task, model.vote_, replace(solved.polished, share=share, weights=weights))
        assert changed.polished_margin < value < changed.best_margin
        assert changed.best_margin - changed.polished_margin > size / 100


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_what_is_no_vote_and_no_weights_proves_nothing(bad):
    X, y, _ = problem(n=30)
    model = cf.AdaBoostClassifier(5).fit(X, y)
    task, polished = model._task_on(X, y), model.certify(X, y, polish=True).polished
    broken = replace(polished, share=np.append(polished.share[1:], bad), weights=np.append(polished.weights[1:], bad))
    short = replace(polished, share=polished.share[1:], weights=polished.weights[1:])
    for other in (broken, short):
        changed = certify(task, model.vote_, other)
        assert changed.polished_margin == -1 and changed.best_margin == model.certificate_.best_margin


def test_a_changed_model_is_refused_with_polish_too():
    X, y, _ = problem(n=30)
    model = cf.AdaBoostClassifier(5).fit(X, y)
    model.vote_ = replace(model.vote_, alpha=model.vote_.alpha * (1 + 1e-4))
    refused = model.certify(X, y, polish=True)
    assert not refused.holds and refused.best_margin is None and "changed" in refused.fault


def test_rows_that_no_vote_separates_have_the_best_margin_0_and_one_stump_the_best_1():
    for X, y, value in (([[0.0], [0.0], [1.0], [2.0]], [0, 1, 0, 1], 0.0), ([[1.0], [1.0]], [0, 1], 0.0)):
        certificate = cf.AdaBoostClassifier(5).fit(X, y).certify(X, y, polish=True)
        assert certificate.polished_margin <= value <= certificate.best_margin
        assert certificate.best_margin - certificate.polished_margin < 1e-12
    certificate = cf.AdaBoostClassifier(5).fit([[1.0], [2.0]], [0, 1]).certify([[1.0], [2.0]], [0, 1], polish=True)
    assert 1 - 1e-12 < certificate.polished_margin <= certificate.best_margin == 1


def test_printed_ends_are_rounded_outward():
    X, y, _ = problem(n=30, seed=3)
    certificate = cf.AdaBoostClassifier(5).fit(X, y).certify(X, y, polish=True)
    words = certificate.sentences()[-1].rstrip(".").split()
    low, high = (float(word.rstrip(",")) for word in words if word[0] in "-0" and "." in word)
    assert low <= certificate.polished_margin <= certificate.best_margin <= high < low + 1e-7
    stated = float(certificate.sentences()[1].rstrip(".").split()[-1])
    assert certificate.best_margin <= stated < certificate.best_margin + 1.1e-4


def test_more_than_two_classes_are_refused():
    X, y, _ = problem(3)
    with pytest.raises(ValueError, match="two classes; here are 3"):
        cf.AdaBoostClassifier(3).fit(X, y).certify(X, y, polish=True)


def test_the_order_of_rows_and_polish_leave_the_model_as_it_is(rng):
    X, y, _ = problem(n=30)
    model = cf.AdaBoostClassifier(5).fit(X, y)
    before = model.certificate_
    rows = rng.permutation(len(y))
    first, second = model.certify(X, y, polish=True), model.certify(X[rows], y[rows], polish=True)
    assert abs(first.best_margin - second.best_margin) < 1e-8 and model.certificate_ is before
    assert model.certify(X, y) == before and "polished" not in first.to_dict()
