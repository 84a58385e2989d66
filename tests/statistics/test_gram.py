"""The Gram statistic of a source: scaled, shifted, independent of chunks; NIST's univariate sets at their floor."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from chunks import batches, memory, random_cuts
from reference import digits, rational

from certifit.data.source import Block, Memory
from certifit.statistics.gram import ColumnRange, ColumnSizes, Gram, Scaling, gram

# Digits of mean and standard deviation that float64 input leaves: the value rounded to float64 is the data.
UNIVARIATE = {
    "Lottery": (15.0, 14.5),
    "Lew": (15.0, 14.5),
    "Mavro": (15.0, 13.1),
    "Michelso": (15.0, 13.8),
    "NumAcc1": (15.0, 15.0),
    "NumAcc2": (14.5, 14.0),
    "NumAcc3": (15.0, 9.4),
    "NumAcc4": (15.0, 8.2),
}


@pytest.mark.parametrize("twofold", [False, True])
@pytest.mark.parametrize("block_rows", [None, 7])
@pytest.mark.parametrize("name", UNIVARIATE)
def test_mean_and_deviation_of_nist_sets_are_at_the_floor_of_float64(nist_univariate, name, block_rows, twofold):
    y, certified = nist_univariate(name)
    source = Memory(np.arange(len(y), dtype=float)[:, None], y)
    source.block_rows = block_rows or source.block_rows
    statistic = gram(source, centred=True, twofold=twofold)
    mean, about = statistic.target_moments()
    scale = statistic.scaling.y_scale
    least_mean, least_deviation = UNIVARIATE[name]
    assert digits(mean / scale, certified["mean"]) >= least_mean - 0.1
    assert digits(np.sqrt(about / (len(y) - 1)) / scale, certified["sd"]) >= least_deviation - 0.1


def entries(statistic: Gram, j: int, k: int) -> Fraction:
    return Fraction(statistic.sums[j, k]) + (Fraction(0) if statistic.low is None else Fraction(statistic.low[j, k]))


@pytest.mark.parametrize("centred", [False, True])
def test_twofold_sums_are_those_of_exact_arithmetic(rng, centred):
    X, y, weight = (
        rng.normal(np.array([0, 5, 1e3, 1e6]), size=(60, 4)),
        rng.normal(size=60),
        rng.choice([0.25, 1, 4], 60),
    )
    statistic = gram(memory(X, y, weight, block_rows=8), centred, twofold=True)
    s = statistic.scaling
    scale, shift = [*s.scale, s.y_scale], [*s.shift, s.y_shift]
    columns = np.column_stack([X, y])
    z = [
        [v * Fraction(a) - Fraction(c) for v, a, c in zip(row, scale, shift, strict=True)] for row in rational(columns)
    ]
    z = [[*row[:4], Fraction(1), row[4]] for row in z]
    w = [weight * Fraction(s.weight_scale) for weight in rational(weight)]
    for j in range(6):
        for k in range(6):
            true = sum(a * row[j] * row[k] for a, row in zip(w, z, strict=True))
            size = sum(a * abs(row[j] * row[k]) for a, row in zip(w, z, strict=True))
            assert abs(entries(statistic, j, k) - true) <= Fraction(2.0**-97) * size


@pytest.mark.parametrize("twofold", [False, True])
def test_any_chunking_gives_the_same_bits(rng, twofold):
    X, y, weight = rng.normal(size=(900, 5)) + 3, rng.normal(size=900), rng.random(900)
    for block_rows in (1, 3, 16, 50):
        whole = gram(memory(X, y, weight, block_rows=block_rows), True, twofold)
        cut = gram(batches(X, y, weight, block_rows=block_rows, cuts=random_cuts(rng, 900)), True, twofold)
        assert np.array_equal(whole.sums, cut.sums)
        assert not twofold or np.array_equal(whole.low, cut.low)
        assert whole.n_rows == cut.n_rows == 900


def test_columns_are_brought_near_one_and_shifted_by_their_mean(rng):
    X = rng.normal(size=(200, 3)) * [1e-150, 1.0, 1e200] + [0.0, 50.0, 1e202]
    scaling = Scaling.of(Memory(X, rng.normal(size=200)), centred=True, exact=False)
    assert np.all(np.frexp(scaling.scale)[0] == 0.5)  # powers of two
    assert np.abs(X * scaling.scale).max(axis=0) == pytest.approx([1.5] * 3, abs=0.5)
    assert scaling.shift == pytest.approx((X * scaling.scale).mean(axis=0))
    assert not Scaling.of(Memory(X, rng.normal(size=200)), centred=False, exact=False).shift.any()


def test_an_exact_statistic_shifts_only_where_no_bit_is_lost(rng):
    X = np.column_stack([rng.normal(size=50), rng.normal(size=50) + 100])
    scaling = Scaling.of(Memory(X, X[:, 0]), centred=True, exact=True)
    assert scaling.shift[0] == 0 and scaling.y_shift == 0
    assert scaling.shift[1] > 0
    exact = [v * Fraction(scaling.scale[1]) - Fraction(scaling.shift[1]) for v in rational(X[:, 1])]
    assert all(Fraction(float(v)) == v for v in exact)


def test_a_constant_column_becomes_exactly_zero():
    X = np.full((10, 1), 0.1)
    statistic = gram(Memory(X, np.arange(10.0)), centred=True)
    assert statistic.sums[0, 0] == 0


@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_shift_does_not_depend_on_the_layout(rng, layout):
    X, y = rng.normal(size=(1000, 7)) + 1, rng.normal(size=1000)
    plain = Scaling.of(Memory(X, y), centred=True, exact=False)
    other = Scaling.of(Memory(np.array(X, order=layout), y), centred=True, exact=False)
    assert np.array_equal(plain.shift, other.shift)


@pytest.mark.parametrize("late", [1e3, 1e160, 1e300])
def test_rows_that_belie_the_first_block_are_summed_anew(late):
    X, y = np.ones((40, 1)), np.ones(40)
    X[:10], X[10:, 0] = 1e-3, np.linspace(-1, 1, 30) * late
    y[10:] = late / 7
    statistic = gram(memory(X, y, block_rows=4), centred=True)
    assert np.isfinite(statistic.sums).all()
    scaled = X[:, 0] * statistic.scaling.scale[0] - statistic.scaling.shift[0]
    assert statistic.sums[0, 0] == pytest.approx(scaled @ scaled)


def test_the_first_value_that_is_not_finite_is_named(rng):
    X = rng.normal(size=(500, 3))
    X[321, 2] = np.nan
    with pytest.raises(ValueError, match="NaN: row 321, column 'x2'"):
        gram(memory(X, np.ones(500), block_rows=16), centred=True)


def test_ranges_and_sizes_add_to_those_of_all_rows(rng):
    X, y, weight = rng.normal(size=(100, 3)), rng.normal(size=100), rng.integers(0, 2, size=100) * 1.0
    source = batches(X, y, weight, block_rows=2, cuts=[10, 33, 90])
    span, size = source.reduce(ColumnRange.of), source.reduce(ColumnSizes.of)
    X, y = X[weight > 0], y[weight > 0]  # a row of weight 0 is no row
    assert np.array_equal(span.lower, X.min(axis=0))
    assert np.array_equal(span.upper, X.max(axis=0))
    assert np.array_equal(size.columns, np.abs(X).max(axis=0))
    assert size.target == np.abs(y).max()


def test_norms_are_those_of_the_unshifted_columns(rng):
    X = rng.normal(np.array([0, 10, 1000]), size=(80, 3))
    statistic = gram(Memory(X, rng.normal(size=80)), centred=True)
    assert statistic.norms == pytest.approx(np.linalg.norm(X, axis=0) * statistic.scaling.scale, rel=1e-10)


def test_an_empty_block_has_no_sizes_to_go_by():
    with pytest.raises(ValueError, match="0 rows"):
        Scaling.of(Memory(np.zeros((0, 2)), np.zeros(0)), centred=True, exact=False)
    assert Block(np.zeros((0, 2)), None, None).n_rows == 0
