"""Claims about separation: a direction is exact on every row, its absence is proven by rows, and nothing is guessed."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

import certifit as cf
from certifit.data.source import Batches, Block, Memory
from certifit.models.glm.separation import SIDES, class_sides, count_sides, held_sides
from certifit.models.glm.separation_certificate import separation, softmax_separation


def judged(X, y, sides=class_sides, fit_intercept=True, weight=None, **given):
    X = X if sp.issparse(X) else np.ascontiguousarray(X, dtype=float)
    return separation(Memory(X, np.asarray(y, dtype=float), weight), sides, fit_intercept, **given)


def scores(X, found):
    """b + x'v of every row in rational numbers."""
    v = [Fraction(w) for w in found.direction.tolist()]
    rows = np.asarray(X, dtype=float).tolist()
    return [Fraction(found.intercept) + sum(Fraction(x) * w for x, w in zip(row, v, strict=True)) for row in rows]


def check_direction(X, side, found):
    moved = [float(np.sign(float(s))) * one if one else -abs(s) for s, one in zip(scores(X, found), side, strict=True)]
    assert all(m >= 0 for m in moved)
    strict = sum(m > 0 for m in moved)
    assert strict == found.n_strict > 0
    assert (found.kind == "complete") == (strict == len(moved))
    names = [f"x{j}" for j in range(len(found.direction))]
    assert found.columns == tuple(names[j] for j in np.flatnonzero(found.direction))


def check_rows(X, side, found, fit_intercept=True):
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else np.asarray(X, dtype=float)
    rows, m = list(found.rows), np.array(found.multipliers)
    moving = side[rows] != 0
    assert (m[moving] > 0).all()
    signed = np.where(moving, side[rows], 1.0)[:, None] * A[rows]
    assert np.abs(m @ signed).max() <= 1e-12 * (np.abs(m) @ np.abs(signed)).max()


def by_one_program(X, side, fit_intercept=True):
    """The kind of separation, by one linear program over all rows."""
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else np.asarray(X, dtype=float)
    n, p = A.shape
    moving = side != 0
    upper = np.hstack([-side[:, None] * A, np.eye(n)])[moving]
    equal = np.hstack([A, np.zeros((n, n))])[~moving]
    limits = [(-1e6, 1e6)] * p + [(0, 1)] * n
    cost = np.append(np.zeros(p), -np.where(moving, 1.0, 0.0))
    t = linprog(cost, upper, np.zeros(len(upper)), equal, np.zeros(len(equal)), limits).x[p:][moving] > 0.5
    return "none" if not t.any() else ("complete" if t.all() and moving.all() else "quasi-complete")


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("sides", [class_sides, count_sides])
@pytest.mark.slow
def test_small_whole_data_are_never_undecided_and_every_answer_is_proven(rng, sides, fit_intercept):
    kinds = set()
    for _ in range(60):
        n, d = rng.integers(2, 14), rng.integers(1, 4)
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
        y = rng.integers(0, 2, n).astype(float)
        found, side = judged(X, y, sides, fit_intercept), sides(y)
        assert found.kind == by_one_program(X, side, fit_intercept)
        kinds.add(found.kind)
        if found.exists:
            check_direction(X, side, found)
        else:
            check_rows(X, side, found, fit_intercept)
    assert "none" in kinds and "quasi-complete" in kinds


@pytest.mark.parametrize("complete", [False, True])
def test_overlapping_classes_are_proven_by_no_more_than_two_rows_above_the_columns(rng, complete):
    X = rng.normal(size=(3000, 6))
    y = (X.sum(axis=1) + rng.normal(size=3000) > 0).astype(float)
    found = judged(X, y, complete=complete)
    assert found.kind == "none"
    assert len(found.rows) <= 6 + 2
    check_rows(X, class_sides(y), found)
    assert "cancel" in found.sentence()


@pytest.mark.slow
def test_a_hyperplane_is_found_through_rows_that_no_small_part_shows(rng):
    X = rng.normal(size=(20_000, 8))
    y = (X @ np.arange(8.0) > 0.1).astype(float)
    found = judged(X, y)
    assert found.kind == "complete"
    check_direction(X, class_sides(y), found)
    with_candidate = judged(X, y, candidate=np.append(np.arange(8.0), -0.1))
    assert np.array_equal(with_candidate.direction, np.arange(8.0))


def test_one_row_on_the_wrong_side_is_enough_to_prove_that_there_is_none(rng):
    X = rng.normal(size=(5000, 3))
    y = (X @ [1.0, 2.0, 3.0] > 0).astype(float)
    inside = int(np.argmax(X @ [1.0, 2.0, 3.0]))
    y[inside] = 0.0
    found = judged(X, y)
    assert found.kind == "none"
    assert inside in found.rows
    check_rows(X, class_sides(y), found)


def test_a_rare_category_of_one_class_is_named_and_the_columns_beside_it_are_not(rng):
    X = rng.normal(size=(4000, 4))
    rare = rng.random(4000) < 0.003
    y = (X[:, 0] + rng.normal(size=4000) > 0).astype(float)
    y[rare] = 1.0
    found = judged(np.column_stack([X, rare]), y)
    assert found.kind == "quasi-complete"
    assert found.columns == ("x4",)
    assert found.n_strict == rare.sum()
    assert "'x4'" in found.sentence() and "alpha > 0" in found.sentence()
    assert judged(np.column_stack([X, rare]), y, complete=True).kind == "none"  # it does not part all rows


def test_collinear_columns_are_not_separation(rng):
    X = rng.normal(size=(500, 3))
    level = np.eye(4)[rng.integers(0, 4, 500)]  # with the intercept they are collinear
    y = (X[:, 0] + rng.normal(size=500) > 0).astype(float)
    for columns in (np.column_stack([X, level]), np.column_stack([X, X @ [1, 2, 3]]), np.column_stack([X, X[:, :1]])):
        found = judged(columns, y)
        assert found.kind == "none"
        assert len(found.left_out) == 1
        check_rows(columns, class_sides(y), found)


def test_copies_that_differ_are_not_taken_for_copies():
    near = np.array([1.0, 2.0, 3.0])
    X = np.column_stack([near, near + np.array([0.0, 2.0**-45, 0.0])])
    y = np.array([0.0, 1.0, 0.0])  # x1 - x0 parts the classes, exactly
    assert judged(X, y, complete=True).kind != "none"
    assert judged(X, y).kind != "none"
    same = judged(np.column_stack([near, near]), y, complete=True)
    assert same.kind == "none" and not same.left_out


def test_counts_that_are_all_zero_in_a_category_have_no_finite_rate(rng):
    X = np.column_stack([rng.normal(size=2000), rng.random(2000) < 0.01])
    y = rng.poisson(np.exp(X[:, 0] / 2)).astype(float)
    assert judged(X, y, count_sides).kind == "none"
    y[X[:, 1] == 1] = 0.0
    found = judged(X, y, count_sides)
    assert found.kind == "quasi-complete"
    assert found.columns == ("x1",)
    assert found.direction[1] < 0
    check_direction(X, count_sides(y), found)


def test_losses_that_rise_on_both_sides_know_no_separation(rng):
    X = rng.normal(size=(100, 3))
    found = judged(X, rng.gamma(2.0, size=100), held_sides)
    assert found.kind == "none"
    assert "hold every weight" in found.sentence()
    collinear = judged(np.column_stack([X, X[:, 0]]), rng.gamma(2.0, size=100), held_sides)
    assert collinear.kind == "none"
    assert len(collinear.left_out) == 1


def test_every_compiled_loss_has_its_sides():
    y = np.array([0.0, 0.5, 1.0])
    assert {code: sides(y).tolist() for code, sides in SIDES.items()} == {
        0: [-1, 0, 1], 1: [-1, 0, 0], 2: [0, 0, 0], 3: [0, 0, 0], 4: [-1, 0, 0], 5: [-1, 0, 0]
    }  # fmt: skip


def test_rows_of_weight_zero_are_no_rows(rng):
    X = np.arange(20.0)[:, None]
    y = (np.arange(20) > 9).astype(float)
    y[0], weight = 1.0, np.ones(20)
    assert judged(X, y).kind == "none"
    weight[0] = 0.0
    assert judged(X, y, weight=weight).kind == "complete"


def test_a_row_exactly_on_the_plane_is_not_taken_for_one_beside_it():
    """0.1 + 0.2 is not 0.3 in float64, by 6e-17: the classes overlap by that, or are apart by it."""
    X = np.array([[0.3], [0.1 + 0.2], [0.0], [1.0]])
    assert judged(X, [0, 1, 0, 1]).exists
    assert judged(X, [1, 0, 0, 1]).kind in ("none", "undecided")


def test_far_columns_and_units_do_not_matter(rng):
    X = np.column_stack([2000 + rng.integers(0, 20, 400), 1e-8 * rng.normal(size=400), 1e9 * rng.normal(size=400)])
    y = (X[:, 0] > 2009).astype(float)
    found = judged(X, y)
    assert found.kind == "complete"
    assert found.columns == ("x0",)
    y[:5] = 1 - y[:5]
    assert judged(X, y).kind == "none"


def test_sparse_rows_and_chunks_give_the_same_answer(rng):
    X = np.where(rng.random((800, 40)) < 0.7, 0.0, rng.normal(size=(800, 40)))
    y = (X @ rng.normal(size=40) > 0.1).astype(float)
    cuts = [0, 3, 400, 800]

    def chunks():
        return (Block(X[a:b], y[a:b], None, a) for a, b in pairwise(cuts))

    whole = judged(X, y)
    assert whole.kind == "complete"
    assert np.array_equal(separation(Batches(chunks, whole_names(40)), class_sides, True).direction, whole.direction)
    assert judged(sp.csr_array(X), y).kind == "complete"


def whole_names(d):
    return [f"x{j}" for j in range(d)]


def test_classes_of_softmax_are_parted_by_differences_of_their_weights(rng):
    X = rng.normal(size=(900, 3))
    Z = X @ rng.normal(size=(3, 3))
    apart, overlapping = Z.argmax(axis=1), (Z + rng.gumbel(size=Z.shape)).argmax(axis=1)
    found = softmax_separation(Memory(X, apart.astype(float)), 3, True)
    assert found.kind == "complete"
    parted = X @ found.direction.T + found.intercept
    assert np.array_equal(parted.argmax(axis=1), apart)
    assert softmax_separation(Memory(X, overlapping.astype(float)), 3, True).kind == "none"
    rare = rng.random(900) < 0.05
    overlapping[rare] = np.where(rng.random(rare.sum()) < 0.5, 0, 1)  # never class 2
    found = softmax_separation(Memory(np.column_stack([X, rare]), overlapping.astype(float)), 3, True)
    assert found.kind == "quasi-complete"
    assert found.columns == ("x3",)
    assert found.direction[2, 3] < max(found.direction[:2, 3])


def test_the_direction_of_complete_separation_is_told_in_plain_numbers():
    model = cf.LogisticRegression(alpha=0.0)
    with pytest.warns(ConvergenceWarning, match=r"the direction \+1 x0 moves every row"):
        model.fit(np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1])
    assert model.certificate_.separation.direction.tolist() == [1.0]


def test_a_direction_beyond_float64_ends_without_a_verdict():
    X = np.array([[1e-300, 1.0000000020596108e-300], [1e-300, 1.0000000015793897e-300], [0.0, -9.39854464056814e-310],
                  [1e-300, 9.999999987729291e-301]])  # fmt: skip
    model = cf.LogisticRegression(0.0, penalty_factors=[3.0, 0.0], standardize=True)
    with pytest.warns(ConvergenceWarning, match="NOT certified"):
        model.fit(
            X, [0, 1, 1, 1], np.array([2.1942837578932757, 2.1942837578932757, 0.9220294131946236, 2.1942837578932757])
        )


def test_a_penalty_on_no_column_is_none_and_the_separating_direction_is_named(rng):
    X = np.repeat([[0.0], [1.0], [2.0]], 10, axis=0) + rng.uniform(-0.3, 0.3, (30, 1))
    for y in (np.repeat([0, 0, 1], 10), np.repeat([0, 1, 2], 10)):
        with pytest.warns(ConvergenceWarning, match="No finite maximum of the likelihood exists"):
            cf.LogisticRegression(alpha=1.0, penalty_factors=[0.0]).fit(X, y)
