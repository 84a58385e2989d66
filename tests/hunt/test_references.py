"""The references against closed forms and certified values, and that they share no code with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flint import arb, arb_mat, fmpq

from tests.hunt.references import moments
from tests.hunt.references.convex import ZERO
from tests.hunt.references.halfspace import lies_in_a_halfspace
from tests.hunt.references.huber import JointHuber, huber
from tests.hunt.references.losses import FAR, LOSSES, _log_normal, _log_normal_far, logistic, poisson_log, squared
from tests.hunt.references.numbers import BITS, as_float, ratio, rational, set_bits, whole
from tests.hunt.references.quadratic import Kinked, Squares
from tests.hunt.references.scores import Scores
from tests.hunt.references.softmax import Softmax

RNG_SEED = 20


@pytest.fixture(autouse=True)
def _bits() -> None:
    set_bits(BITS)


# NIST StRD, Longley: certified values https://www.itl.nist.gov/div898/strd/lls/data/Longley.shtml
LONGLEY = np.array([
    [60323, 83.0, 234289, 2356, 1590, 107608, 1947], [61122, 88.5, 259426, 2325, 1456, 108632, 1948],
    [60171, 88.2, 258054, 3682, 1616, 109773, 1949], [61187, 89.5, 284599, 3351, 1650, 110929, 1950],
    [63221, 96.2, 328975, 2099, 3099, 112075, 1951], [63639, 98.1, 346999, 1932, 3594, 113270, 1952],
    [64989, 99.0, 365385, 1870, 3547, 115094, 1953], [63761, 100.0, 363112, 3578, 3350, 116219, 1954],
    [66019, 101.2, 397469, 2904, 3048, 117388, 1955], [67857, 104.6, 419180, 2822, 2857, 118734, 1956],
    [68169, 108.4, 442769, 2936, 2798, 120445, 1957], [66513, 110.8, 444546, 4681, 2637, 121950, 1958],
    [68655, 112.6, 482704, 3813, 2552, 123366, 1959], [69564, 114.2, 502601, 3931, 2514, 125368, 1960],
    [69331, 115.7, 518173, 4806, 2572, 127852, 1961], [70551, 116.9, 554894, 4007, 2827, 130081, 1962],
])  # fmt: skip
CERTIFIED = (
    -3482258.63459582, 15.0618722713733, -0.0358191792925910, -2.02022980381683, -1.03322686717359,
    -0.0511041056535807, 1829.15146461355,
)  # fmt: skip


def drawn(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and a target."""
    rng = np.random.default_rng(RNG_SEED)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


def test_references_import_nothing_of_the_package() -> None:
    for file in (Path(__file__).parent / "references").glob("*.py"):
        assert "certifit" not in file.read_text(), file.name


@pytest.mark.parametrize("values", [[1.5, -0.1, 0.0], [1e-300, 1e300], [2.0**60 + 2**8, 5e-324]])
def test_integers_and_their_exponent_are_the_numbers(values: list[float]) -> None:
    integers, exponent = whole(values)
    for integer, value in zip(integers, values, strict=True):
        assert fmpq(integer) * (fmpq(2) ** exponent) == rational(value)


def test_least_squares_has_the_certified_digits_of_longley() -> None:
    exact = Squares(LONGLEY[:, 1:], LONGLEY[:, 0])
    best = exact.minimiser()
    certified = exact.units(CERTIFIED[1:], CERTIFIED[0])
    for found, known in zip(best.v, certified, strict=True):
        assert as_float(abs(found - known) / abs(known)) < 1e-13
    assert all(best.determined)


def test_a_copy_leaves_the_infimum_and_takes_the_digits() -> None:
    X, y = drawn(12, 2)
    alone, beside = Squares(X, y).minimiser(), Squares(np.c_[X, X[:, 0] * 2], y).minimiser()
    # the units of the target are the same, so the objectives are
    assert alone.objective == beside.objective
    assert beside.determined == [True, False, True, False]


def test_weight_two_is_the_row_twice() -> None:
    X, y = drawn(9, 2)
    twice = Squares(np.r_[X, X[:1]], np.r_[y, y[:1]])
    weighted = Squares(X, y, np.r_[2.0, np.ones(8)])
    assert ratio(twice.minimiser().objective, twice.null) == ratio(weighted.minimiser().objective, weighted.null)


def test_lasso_of_orthogonal_columns_shrinks_by_alpha() -> None:
    X = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    y = np.array([3.0, 2.0, -1.0, -4.0])
    exact = Kinked(X, y, None, False, 0.0, 0.5)
    best, is_proven = exact.best([fmpq(0)] * 2)
    moments_of = X.T @ y / 4
    expected = exact.units(np.sign(moments_of) * np.maximum(np.abs(moments_of) - 0.5, 0), 0.0)
    assert is_proven
    assert best.v == expected


@pytest.mark.parametrize("bounds", [None, (-0.2, 0.3), (0.0, np.inf)])
def test_every_start_of_the_active_set_ends_at_the_same_minimum(bounds: tuple[float, float] | None) -> None:
    X, y = drawn(15, 5)
    X[:, 4] = X[:, 0]
    exact = Kinked(X, y, None, True, 0.0, 0.1, bounds=bounds)
    rng = np.random.default_rng(1)
    found = [exact.best(exact.units(rng.normal(size=5), 1.0)) for _ in range(4)]
    assert all(is_proven for _, is_proven in found)
    assert len({as_float(best.objective) for best, _ in found}) == 1
    other = exact.units(np.clip(rng.normal(size=5) * 0.1, *(bounds or (-9, 9))), 0.3)
    assert exact.objective(other) > found[0][0].objective


@pytest.mark.parametrize("pair", LOSSES, ids="-".join)
@pytest.mark.parametrize("y", [0.0, 0.25, 1.0])
def test_slopes_of_losses_are_their_differences(pair: tuple[str, str], y: float) -> None:
    if y == 0 and pair[0] in ("gamma", "inverse-gaussian"):
        y = 0.5
    given = {"negative-binomial": arb(0.7), "tweedie": arb(1.3)}
    law = (LOSSES[pair](given[pair[0]]) if pair[0] in given else LOSSES[pair]())(arb(y))
    z, step = arb(0.6), arb(2) ** -80
    low, at, high = law(z - step), law(z), law(z + step)
    assert abs((high[0] - low[0]) / (2 * step) - at[1]) < arb(10) ** -30
    assert abs((high[1] - low[1]) / (2 * step) - at[2]) < arb(10) ** -30
    assert at[0] >= 0


@pytest.mark.parametrize("size", [1e3, 2.6e10, 1e60])
def test_a_far_tail_of_the_normal_has_its_value_and_slopes(size: float) -> None:
    law, t = LOSSES["bernoulli", "probit"]()(arb(1)), arb(size) * (1 + arb(2) ** -80)
    value, slope, curvature = law(-t)
    # t / (1 + t^2) < Phi(-t) / phi(t) < 1 / t, and the slopes that follow
    beside = value - t * t / 2 - (2 * arb.pi()).log() / 2
    assert beside >= t.log() - arb(10) ** -60 * value and beside <= (t + 1 / t).log() + arb(10) ** -60 * value
    assert abs(slope + t) <= 1 / t + arb(10) ** -80 * t
    assert abs(1 - curvature) <= 3 / (t * t) + arb(10) ** -80


def test_the_two_forms_of_the_tail_of_the_normal_agree() -> None:
    for near, far in zip(_log_normal(-arb(FAR)), _log_normal_far(arb(FAR)), strict=True):
        assert abs(near - far) < arb(10) ** -60 * abs(near)


def test_the_best_constant_of_poisson_is_the_log_of_the_mean() -> None:
    y = np.array([3.0, 0.0, 7.0, 1.0])
    scores = Scores(np.zeros((4, 0)), [poisson_log(arb(float(v))) for v in y], None, True, [])
    found = scores.best([ZERO])
    assert found.is_converged
    assert abs(found.v[0] - arb(2.75).log()) < arb(10) ** -30


def test_squared_scores_have_the_infimum_of_exact_least_squares() -> None:
    X, y = drawn(10, 3)
    exact = Squares(X, y)
    scores = Scores(X, [squared(arb(float(v))) for v in y], None, True, [ZERO] * 3)
    found, best = scores.best([ZERO] * 4), exact.minimiser().objective
    unit = arb(2) ** (2 * exact.exponents[-1])
    assert abs(found.value - arb(best) * unit / (2 * arb(exact.sum_weight))) < arb(10) ** -60


def test_separated_classes_have_the_infimum_zero() -> None:
    X = np.array([[-2.0], [-1.0], [1.0], [3.0]])
    scores = Scores(X, [logistic(arb(v)) for v in (0, 0, 1, 1)], None, True, [ZERO])
    assert scores.best([ZERO] * 2, None, arb(10) ** -40).value < arb(10) ** -30


def test_softmax_of_two_classes_is_logistic() -> None:
    X, y = drawn(14, 2)
    codes = (y > np.random.default_rng(3).normal(size=14)).astype(int)
    both = Softmax(X, codes, 2, None, True, 0.0)
    scores = Scores(X, [logistic(arb(int(c))) for c in codes], None, True, [ZERO] * 2)
    found, other = both.best([ZERO] * both.size), scores.best([ZERO] * 3)
    assert found.is_converged and other.is_converged
    assert abs(found.value - other.value) < arb(10) ** -40


def test_an_offset_of_a_column_leaves_the_infimum_of_softmax() -> None:
    rng = np.random.default_rng(2)
    X, codes = rng.integers(-5, 6, size=(10, 2)).astype(float), np.arange(10) % 3
    near, far = (Softmax(X + np.array([0.0, offset]), codes, 3, None, True, 1.0) for offset in (0.0, 5e12))
    found, other = (softmax.best([ZERO] * softmax.size) for softmax in (near, far))
    assert found.is_converged and other.is_converged
    assert abs(found.value - other.value) < arb(10) ** -30
    # a start near the minimum is not the minimum
    off = far.best([x * (1 + arb(2) ** -53) for x in other.v])
    assert abs(off.value - found.value) < arb(10) ** -30


def test_huber_far_from_its_kink_is_least_squares() -> None:
    X, y = drawn(10, 2)
    laws = [huber(arb(float(v)), arb(1e6), arb(1)) for v in y]
    squares = [squared(arb(float(v))) for v in y]
    found = [Scores(X, own, None, True, [ZERO] * 2).best([ZERO] * 3) for own in (laws, squares)]
    assert abs(found[0].value - found[1].value) < arb(10) ** -50


def test_no_scale_has_a_lower_value_than_the_joint_one() -> None:
    X, y = drawn(16, 2)
    y[0] += 30
    zeros = [ZERO] * 2
    scores = Scores(X, [squared(arb(0))] * 16, None, True, zeros)
    joint = JointHuber(scores, [arb(float(v)) for v in y], arb(1.35), arb(1))
    found = joint.best([ZERO, ZERO, ZERO, arb(1)])
    assert found.is_converged
    for s in (0.3, 0.7, 1.0, 2.0, as_float(found.v[-1])):
        laws = [huber(arb(float(v)), arb(1.35), arb(s)) for v in y]
        fixed = Scores(X, laws, None, True, zeros).best([ZERO] * 3)
        assert fixed.value / arb(s) + arb(s) / 2 >= found.value - arb(10) ** -30


def test_a_best_scale_of_zero_is_least_absolute_deviations() -> None:
    # more than half of the targets are equal, so the best scale is 0 and the constant is their value
    y = [1.0, 1.0, 1.0, 1.0, 1.0, 4.0, 7.0]
    scores = Scores(np.zeros((7, 0)), [squared(arb(0))] * 7, None, True, [])
    joint = JointHuber(scores, [arb(v) for v in y], arb(1.35), arb(1))
    found = joint.best([arb(0), arb(1)])
    assert abs(found.value - arb(1.35) * 9 / 7) < arb(10) ** -30


def test_eigenvalues_are_those_of_the_closed_form() -> None:
    values = moments.eigenvalues(arb_mat([[2, 1, 0], [1, 2, 0], [0, 0, 5]]))
    for found, known in zip(values, (5, 3, 1), strict=True):
        assert abs(found - known) < arb(10) ** -60


def test_a_gaussian_twice_as_wide_is_apart_by_its_closed_form() -> None:
    best, state = arb_mat([[1]]), arb_mat([[2]])
    assert abs(moments.gaussian_divergence(best, state) - (arb(1) / 2 - 1 + arb(2).log()) / 2) < arb(10) ** -60
    assert not moments.gaussian_divergence(arb_mat([[0]]), state).is_finite()


POWERS = [  # of 0, 0.2, ..., 1: -0.5 x^3, x^2, x^3, x^4, rounded
    [-0.0, 0.0, 0.0, 0.0],
    [-0.004000000000000001, 0.04000000000000001, 0.008000000000000002, 0.0016000000000000003],
    [-0.03200000000000001, 0.16000000000000003, 0.06400000000000002, 0.025600000000000005],
    [-0.10800000000000005, 0.3600000000000001, 0.2160000000000001, 0.12960000000000008],
    [-0.25600000000000006, 0.6400000000000001, 0.5120000000000001, 0.4096000000000001],
    [-0.5, 1.0, 1.0, 1.0],
]


@pytest.mark.parametrize(
    ("rows", "signs", "is_separable"),
    [
        # 53.3 x1 - 83.3 x3 > 1 holds for the three rows of the second class and for no other
        (POWERS, [-1, 1, 1, 1, -1, -1], True),
        ([[0.0], [1.0], [2.0]], [1, -1, 1], False),
        ([[0.0], [1.0], [1.0]], [1, -1, 1], False),  # touching is not apart
        ([[0.0], [1.0], [np.nextafter(1.0, 2.0)]], [-1, -1, 1], True),
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [1, 1, -1, -1], False),
    ],
)
def test_classes_are_separable_by_rationals(rows: list[list[float]], signs: list[int], is_separable: bool) -> None:
    examples = [[s * rational(x) for x in (*row, 1.0)] for row, s in zip(rows, signs, strict=True)]
    assert lies_in_a_halfspace(examples) is is_separable
