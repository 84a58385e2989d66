"""The sort behind ranks, exact pair counts and bootstrap draws, against the definitions; both builds."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

N = 20_000  # more than one bucket of the sort
MASK = 2**32 - 1


def uniform(rng: Any, n: int) -> Any:
    return rng.random(n)


def outlier(rng: Any, n: int) -> Any:
    return np.where(np.arange(n) % 1000 == 0, 1e300, 1000 + rng.random(n))


def ends(rng: Any, n: int) -> Any:
    return rng.choice([-math.inf, -1e308, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e308, math.inf], n)


SCORES: dict[str, Callable[[Any, int], Any]] = {
    "uniform": uniform,
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: 10 ** rng.uniform(-300, 300, n) * rng.choice([-1, 1], n),
    "denormal": lambda rng, n: rng.integers(-1000, 1000, n) * 5e-324,
    "adjacent": lambda rng, n: 1.0 + rng.integers(0, n, n) * 2.0**-52,
    "outlier": outlier,
    "ends": ends,
    "half equal": lambda rng, n: np.where(rng.random(n) < 0.5, 0.5, rng.random(n)),
    "constant": lambda rng, n: np.full(n, -3.0),
    "two values": lambda rng, n: rng.integers(0, 2, n) * 1.0,
    "integers": lambda rng, n: rng.integers(-50, 50, n) * 1.0,
    "ascending": lambda rng, n: np.arange(n) * 1.0,
    "descending": lambda rng, n: -np.arange(n) * 1.0,
}


def labels_of(rng: Any, n: int, share: float = 0.4) -> Any:
    labels = (rng.random(n) < share).astype(np.uint8)
    labels[:2] = 0, 1
    return labels


def placement_counts(scores: Any, labels: Any) -> Any:
    """t of every row by the definition: twice the rows of the other class that it beats, plus those equal to it."""
    negatives, positives = np.sort(scores[labels == 0]), np.sort(scores[labels == 1])
    t = np.empty(len(scores), dtype=object)
    for side, others in ((1, negatives), (0, positives)):
        own = scores[labels == side]
        below, not_above = np.searchsorted(others, own, "left"), np.searchsorted(others, own, "right")
        count = below + not_above
        t[labels == side] = count if side else 2 * len(others) - count
    return t


def joined(halves: tuple[int, int]) -> int:
    return (halves[0] << 64) + halves[1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SCORES)
def test_pairs_in_order_are_counted_exactly(core, rng, name, dtype):
    with np.errstate(over="ignore", under="ignore"):
        scores = SCORES[name](rng, 300).astype(dtype)
    labels = labels_of(rng, 300)
    positives, negatives = scores[labels == 1], scores[labels == 0]
    greater = positives[:, None] > negatives
    equal = positives[:, None] == negatives
    n_negatives, n_positives, twice, *_ = core.placement_sums(scores, labels, 2)
    assert (n_negatives, n_positives) == (len(negatives), len(positives))
    assert twice == 2 * int(greater.sum()) + int(equal.sum())


@pytest.mark.parametrize("share", [0.5, 0.001, 0.999])
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.slow
def test_placements_and_their_squares_are_exact(core, rng, name, share):
    scores, labels = SCORES[name](rng, N), labels_of(rng, N, share)
    t = placement_counts(scores, labels)
    n_negatives, n_positives, twice, negative, positive = core.placement_sums(scores, labels, 2)
    assert twice == t[labels == 1].sum() == t[labels == 0].sum()
    assert joined(positive) == sum(int(v) ** 2 for v in t[labels == 1])
    assert joined(negative) == sum(int(v) ** 2 for v in t[labels == 0])
    other = np.where(labels == 1, n_negatives, n_positives)
    assert np.array_equal(core.placements(scores, labels, 2), t.astype(float) / (2.0 * other))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SCORES)
def test_groups_are_the_distinct_scores_in_descending_order(core, rng, name, weighted):
    scores, labels = SCORES[name](rng, N), labels_of(rng, N)
    weight = rng.integers(1, 9, N) / 8 if weighted else None  # sums are exact
    distinct, group = np.unique(scores, return_inverse=True)
    got, positives, negatives = core.score_groups(scores, labels, weight, 2)
    assert np.array_equal(got, distinct[::-1])
    counted = np.ones(N) if weight is None else weight
    for side, sums in ((1, positives), (0, negatives)):
        wanted = np.bincount(group, counted * (labels == side), len(distinct))
        assert np.array_equal(sums, wanted[::-1])


def test_squares_beyond_64_bits_are_exact(core):
    n = 8_000_000
    scores, labels = np.zeros(n), np.zeros(n, dtype=np.uint8)
    labels[: n // 2] = 1
    scores[0] = 1.0
    *_, positive = core.placement_sums(scores, labels, 2)
    half = n // 2
    assert joined(positive) == (2 * half) ** 2 + (half - 1) * half**2 > 2**64


@pytest.mark.parametrize("stride", [1, 2, -1, -3])
def test_scores_are_read_where_they_lie(core, rng, stride):
    scores, labels = rng.normal(size=3 * 700)[::stride][:700], labels_of(rng, 700)
    assert core.placement_sums(scores, labels, 1) == core.placement_sums(scores.copy(), labels, 1)


@pytest.mark.parametrize("name", ["normal", "half equal", "integers", "outlier"])
@pytest.mark.slow
def test_the_number_of_threads_does_not_change_a_bit(core, rng, name):
    n = 300_000  # several blocks
    scores, labels, weight = SCORES[name](rng, n), labels_of(rng, n), rng.random(n)
    small = slice(0, 30_000)
    one, many = (
        [
            [*map(hash, core.placement_sums(scores, labels, threads))],
            core.weighted_auc(scores, labels, weight, threads),
            *core.score_groups(scores, labels, weight, threads),
            core.placements(scores, labels, threads),
            *core.bootstrap_ranking(scores[small], labels[small], weight[small], "auc", 20, 7, threads),
            *core.bootstrap_ranking(scores[small], labels[small], None, "average_precision", 20, 7, threads),
        ]
        for threads in (1, 5)
    )
    for a, b in zip(one, many, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("row", [0, 17, 299_999])
def test_the_first_nan_is_named(core, rng, row):
    n = 300_000
    scores, labels = rng.normal(size=n), labels_of(rng, n)
    scores[[row, n - 1]] = math.nan
    with pytest.raises(ValueError, match=f"row {row} is NaN"):
        core.placement_sums(scores, labels, 3)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"scores": np.zeros(3)}, "labels has 4 entries, needs 3"),
        ({"scores": np.zeros((4, 1))}, "1-D"),
        ({"scores": np.zeros(4, dtype=np.int64)}, "float32 or float64"),
        ({"scores": np.zeros(0), "labels": np.zeros(0, dtype=np.uint8)}, "no scores"),
        ({"labels": np.array([0, 1, 2, 1], dtype=np.uint8)}, "0 or 1"),
        ({"labels": np.ones(4, dtype=np.uint8)}, "both classes"),
        ({"weight": np.ones(3)}, "weight has 3 entries, needs 4"),
        ({"weight": np.array([1.0, math.nan, 1.0, 1.0])}, ">= 0"),
        ({"weight": np.array([1.0, -1.0, 1.0, 1.0])}, ">= 0"),
        ({"weight": np.array([1e308, 1.0, 1e308, 1.0])}, "finite"),
        ({"weight": np.array([0.0, 1.0, 0.0, 1.0])}, "both classes need"),
    ],
)
def test_what_the_core_cannot_rank_is_refused(core, change, message):
    given = {"scores": np.zeros(4), "labels": np.array([0, 1, 0, 1], dtype=np.uint8), "weight": np.ones(4)} | change
    with pytest.raises(ValueError, match=message):
        core.weighted_auc(given["scores"], given["labels"], given["weight"], 1)


# ---- bootstrap ------------------------------------------------------------------------------------------------------


def philox(counter: int, stream: int, seed: int) -> list[int]:
    """Philox4x32-10 as published: four words."""
    a, b, c, d = counter & MASK, counter >> 32, stream & MASK, stream >> 32
    key = [seed & MASK, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = second >> 32 ^ b ^ key[0], second & MASK, first >> 32 ^ d ^ key[1], first & MASK
        key = [(key[0] + 0x9E3779B9) & MASK, (key[1] + 0xBB67AE85) & MASK]
    return [a, b, c, d]


def words(stream: int, seed: int) -> Iterator[int]:
    """256 counters at a time: their first words, then their second words, and so on."""
    counter = 0
    while True:
        blocks = [philox(counter + lane, stream, seed) for lane in range(256)]
        yield from (block[part] for part in range(4) for block in blocks)
        counter += 256


def drawn_rows(n: int, stream: int, seed: int) -> list[int]:
    source, rows = words(stream, seed), []
    while len(rows) < n:
        product = next(source) * n
        if product & MASK >= 2**32 % n:
            rows.append(product >> 32)
    return rows


def auc(scores: Any, labels: Any, weight: Any) -> float:
    positive, negative = labels == 1, labels == 0
    gap = scores[positive][:, None] - scores[negative]
    pairs = weight[positive][:, None] * weight[negative]
    return float((((gap > 0) + (gap == 0) / 2) * pairs).sum() / pairs.sum())


def average_precision(scores: Any, labels: Any, weight: Any) -> float:
    hits = labels * weight
    precision = np.array([hits[scores >= s].sum() / weight[scores >= s].sum() for s in scores])
    return float(hits @ precision / hits.sum())


def test_the_reference_gives_the_published_numbers():
    assert philox(0, 0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = 2**64 - 1
    assert philox(ones, ones, ones) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("measure", [auc, average_precision])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n, name", [(7, "normal"), (60, "integers"), (60, "two values"), (1500, "half equal")])
@pytest.mark.slow
def test_a_replicate_is_the_measure_of_the_rows_drawn(core, rng, n, name, weighted, measure):
    scores, labels = SCORES[name](rng, n), labels_of(rng, n)
    weight = rng.random(n) if weighted else None
    counted = np.ones(n) if weight is None else weight
    seed = 2**63 + 5
    values, redrawn = core.bootstrap_ranking(scores, labels, weight, measure.__name__, 11, seed, 2)
    thrown = 0
    for b, value in enumerate(values):
        attempt = 0
        while len(set(labels[rows := drawn_rows(n, b | attempt << 40, seed)])) < 2:
            attempt += 1
        thrown += attempt
        assert value == pytest.approx(measure(scores[rows], labels[rows], counted[rows]), rel=1e-12)
    assert redrawn == thrown


def test_resamples_with_one_class_are_drawn_again_and_counted(core):
    scores, labels = np.array([1.0, 2.0, 2.0]), np.array([1, 0, 1], dtype=np.uint8)
    values, redrawn = core.bootstrap_ranking(scores, labels, None, "auc", 3000, 0, 1)
    assert np.isfinite(values).all()
    # Of 27 samples 1 is all negative and 8 all positive: 9 of 27 are thrown away, 1/2 for every one that is kept.
    assert redrawn / 3000 == pytest.approx(0.5, abs=5 * math.sqrt(0.75 / 3000))


def test_every_sample_is_as_likely_as_any_other(core):
    scores = np.array([1.0, 2.0, 3.0])
    labels = np.array([0, 1, 0], dtype=np.uint8)
    values, _ = core.bootstrap_ranking(scores, labels, None, "auc", 4000, 3, 2)
    # With both classes: 6 orders of p a b, and 3 of each of ppa, ppb, paa, pbb. 6 of 18 samples give each value.
    shares = [np.mean(values == value) for value in (0.0, 0.5, 1.0)]
    assert shares == pytest.approx([1 / 3, 1 / 3, 1 / 3], abs=5 * math.sqrt(2 / 9 / 4000))


def test_ctrl_c_ends_a_bootstrap(core, rng):
    scores, labels = rng.normal(size=100_000), labels_of(rng, 100_000)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            core.bootstrap_ranking(scores, labels, None, "auc", 10_000_000, 0, 2)  # would take an hour
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
