"""Remainders of near-copies against exact rationals: the basis spans the same space, and what is said of it is true."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.data.columns import Bits, Codes, Columns, Csr, Dense, Missing, Number
from certifit.data.source import Batches, Block, Memory
from certifit.statistics.remainders import UNIT, column_remainders, literal_columns


def exact_remainder(x, remainders, i):
    """x_j - sum_k C_jk x_k - c_j as a rational, in scaled units."""

    def whole(pair, *at):
        return Fraction(float(pair[0][at])) + Fraction(float(pair[1][at]))

    scaled = [Fraction(float(v)) * Fraction(float(s)) for v, s in zip(x, remainders.scale, strict=True)]
    combined = sum((whole(remainders.times, i, k) * scaled[k] for k in range(len(scaled))), Fraction(0))
    return scaled[int(remainders.columns[i])] - combined - whole(remainders.constants, i)


def near_copy(distance, offset=0.0, n=40):
    rng = np.random.default_rng(0)
    u, v, t = rng.normal(size=(3, n))
    return np.c_[u + offset, t, u + offset + distance * v]


def whole_numbers(n=40):
    rng = np.random.default_rng(1)
    a, z = rng.integers(-31, 32, size=(2, n)).astype(float)
    return np.c_[a, a * 2.0**48 + z]


def source_of(X, weight=None):
    return Memory(X, np.zeros(X.shape[0]), weight)


def dummies(n=60, levels=4):
    return np.random.default_rng(2).integers(0, levels, n)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    "X",
    [near_copy(1e-14), near_copy(3e-15), near_copy(1e-14) * 1e150, near_copy(1e-14) * [1, 1e-200, 1e180]],
)
def test_a_near_copy_is_apart_and_its_remainder_is_right_to_the_last_bits(X, fit_intercept):
    found = column_remainders(source_of(X), fit_intercept)
    assert found is not None and found.is_apart.all()
    basis = found.basis()
    rest = basis.apply(X).toarray()[:, -1]
    for x, e in zip(X, rest, strict=True):
        true = exact_remainder(x, found, 0) * Fraction(float(basis.unit[0]))
        assert abs(Fraction(float(e)) - true) <= Fraction(UNIT) * abs(true) + Fraction(float(basis.relative_error[0]))
    assert 0.5 <= np.abs(rest).max() < 1


def test_whole_numbers_beyond_2_48_are_apart():
    found = column_remainders(source_of(whole_numbers()), True)
    assert found is not None and found.is_apart.all()


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_a_sum_of_columns_is_one_but_for_rounding(offset):
    X = np.random.default_rng(3).normal(size=(50, 3)) + offset
    for more in (X[:, 0] + 2 * X[:, 1], 0.1 * X[:, 0], X[:, 2] / 3 + 5.1):
        found = column_remainders(source_of(np.c_[X, more]), True)
        assert found is not None and found.is_rounding.all(), found


def test_a_relation_of_whole_numbers_is_exact():
    X = np.random.default_rng(3).integers(-1000, 1000, size=(50, 3)).astype(float)
    more = np.c_[X[:, 0] + 2 * X[:, 1], X[:, 2] + 123456789012.0, np.full(50, 1e10)]
    found = column_remainders(source_of(np.c_[X, more]), True)
    assert found is not None and found.is_exact.tolist() == [True] * 3
    assert len(found.basis().live) == 0


@pytest.mark.parametrize(("n", "offset"), [(15, 1e15), (400, 0.0)])  # in rationals; by small fractions
def test_multiples_of_an_exact_combination_are_those_of_the_entries(n, offset):
    # Rows are rounded when they are multiplied by roots of weights, and the sums tell multiples of 1e-15 to a digit.
    rng = np.random.default_rng(4)
    thirds = 3.0 * rng.integers(0, 2, n)
    X = np.c_[offset + thirds / 3, thirds, rng.integers(0, 5, n) / 4]
    found = column_remainders(source_of(sp.csr_array(X), rng.choice([1.0, 2.0, 3.0], n)), True)
    assert found is not None and found.is_exact.all()
    left = [exact_remainder(x, found, i) for x in X for i in range(len(found.columns))]
    assert max(abs(float(e)) for e in left) < 2.0**-95


def test_rows_of_weight_zero_do_not_count():
    X = np.random.default_rng(3).integers(-9, 9, size=(30, 2)).astype(float)
    X = np.c_[X, X.sum(axis=1)]
    X[4, 2] += 1
    weight = np.ones(30)
    assert column_remainders(source_of(X, weight), True) is None
    weight[4] = 0
    found = column_remainders(source_of(X, weight), True)
    assert found is not None and found.is_exact.all()


def test_a_column_that_differs_in_a_light_row_only_is_apart():
    X = np.random.default_rng(3).normal(size=(30, 2))
    X = np.c_[X, X[:, 0]]
    X[4, 2] += 1
    weight = np.ones(30)
    weight[4] = 1e-40
    found = column_remainders(source_of(X, weight), True)
    assert found is not None and found.is_apart.all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_type_of_array_is_read_as_it_is(dtype, order):
    X = np.asarray(np.eye(4)[dummies()], dtype=dtype, order=order)
    found = column_remainders(source_of(X), True)
    assert found is not None and found.is_exact.all() and found.columns.tolist() == [3]


def stored(X, codes):
    """The dummies of codes and a near-copy, as columns in every storage."""
    levels = np.arange(codes.max() + 1, dtype=np.int32)
    numbers = [Number(np.ascontiguousarray(X[:, 0])), Dense(X[:, 1:])]
    missing = Missing(Bits(np.packbits(codes == 0, bitorder="little")))
    return Columns([Codes(codes, levels, len(levels)), missing, *numbers], len(codes))


def test_tables_sparse_rows_and_streams_give_what_dense_rows_give():
    codes = dummies()
    X = near_copy(1e-14, n=len(codes))
    whole = stored(X, codes)
    dense = whole.toarray()
    expected = column_remainders(source_of(dense), True)
    assert expected is not None and expected.columns.tolist() == [3, 4, 7]
    assert expected.is_exact.tolist() == [True, True, False] and expected.is_apart.tolist() == [False, False, True]
    wanted = expected.basis().apply(dense).toarray()
    y = np.zeros(len(codes))
    sparse = Columns([Csr(sp.csr_array(dense[:, :4])), Dense(dense[:, 4:])], len(codes))
    batches = Batches(lambda: iter([Block(dense[:7], y[:7], None), Block(dense[7:], y[7:], None)]), list("abcdefgh"))
    for source, rows in [
        (source_of(whole), whole),
        (source_of(sp.csr_array(dense)), sp.csr_array(dense)),
        (source_of(sparse), sparse),
        (batches, dense),
    ]:
        found = column_remainders(source, True)
        assert found is not None and found.columns.tolist() == expected.columns.tolist()
        mapped = found.basis().apply(rows).toarray()
        assert (mapped[:, :-1] == wanted[:, :-1]).all()
        scale = np.corrcoef(mapped[:, -1], wanted[:, -1])[0, 1]
        assert scale == pytest.approx(1, abs=1e-9)
        literal = literal_columns(source, found, True)
        assert literal is not None and literal.factor.condition < 100


def test_copies_of_a_near_copy_are_remainders_of_remainders():
    X = near_copy(1e-14)
    X = np.c_[X, X[:, 2], 2 * X[:, 2]]
    source = source_of(X)
    found = column_remainders(source, True)
    assert found is not None and found.is_apart.all() and len(found.columns) == 3
    literal = literal_columns(source, found, True)
    assert literal is not None and literal.factor.condition < 100
    assert literal.remainders.is_exact.tolist() == [False, True, True]
    assert literal.source.names == ["x0", "x1", "remainder of x2"]


@pytest.mark.parametrize("distance, offset", [(1e-14, 0.0), (1e-15, 0.0), (1e-6, 1e8)])
def test_a_converted_state_has_the_same_scores_within_its_bound(distance, offset):
    X = near_copy(distance, offset)
    source = source_of(np.c_[X, X[:, 2], 2 * X[:, 1]])
    X = source.block.X
    found = column_remainders(source, True)
    assert found is not None
    literal = literal_columns(source, found, True)
    assert literal is not None
    basis = literal.basis
    rng = np.random.default_rng(4)
    for size in (1.0, 1e14):
        coef = rng.normal(size=5) * [size, 1, size, size, 1]
        coef[2] = -coef[0] - coef[3]
        state = basis.converted(coef, 0.3)
        mapped = basis.apply(X).toarray()
        for x, b in zip(X, mapped, strict=True):
            true = sum((Fraction(v) * Fraction(w) for v, w in zip(x, coef, strict=True)), Fraction(0.3))
            pairs = zip(b, state.coef, strict=True)
            own = sum((Fraction(v) * Fraction(w) for v, w in pairs), Fraction(state.intercept))
            assert abs(true - own) <= Fraction(float(state.errors @ np.abs(b) + state.intercept_error))
