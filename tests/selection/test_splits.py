"""Folds and bootstrap draws: exact shares, whole groups, the same rows on every engine, scikit-learn's contract."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

import certifit as cf
from certifit.data.source import Block, Memory
from certifit.selection.folds.splits import rounds_of


def sets(splits, n_rows, group=None):
    cells = splits.cells.of(Block(np.zeros((n_rows, 0)), None, None, 0, group))
    rows = np.arange(n_rows)
    for s in range(splits.n_splits):
        yield np.repeat(rows, splits.train[s][cells].astype(int)), rows[splits.validation[s][cells] > 0]


@pytest.mark.parametrize("repeats", [1, 3])
def test_every_row_validates_once_a_round(repeats):
    folds = cf.Folds(4, repeats=repeats)
    X = np.zeros((101, 1))
    pairs = list(folds.split(X))
    assert len(pairs) == folds.get_n_splits() == 4 * repeats
    for r in range(repeats):
        own = pairs[4 * r : 4 * r + 4]
        assert sorted(np.concatenate([test for _, test in own])) == list(range(101))
        for train, test in own:
            assert sorted([*train, *test]) == list(range(101))
            assert 25 <= len(test) <= 26
    if repeats > 1:
        assert set(pairs[0][1]) != set(pairs[4][1])


def test_stratified_folds_share_every_class(rng):
    y = rng.choice(["a", "b", "c"], p=[0.7, 0.25, 0.05], size=400)
    for _, test in cf.Folds(5, stratify=True).split(np.zeros((400, 1)), y):
        for label in "abc":
            assert abs((y[test] == label).sum() - (y == label).sum() / 5) < 1


def test_groups_stay_in_one_fold(rng):
    groups = rng.choice(["x", "y", "z", "u", "v", "w", "q"], size=200)
    seen = []
    for train, test in cf.Folds(3).split(np.zeros((200, 1)), groups=groups):
        assert not set(groups[train]) & set(groups[test])
        seen += list(test)
    assert sorted(seen) == list(range(200))


def test_stratifying_groups_is_refused():
    with pytest.raises(ValueError, match="both"):
        list(cf.Folds(2, stratify=True).split(np.zeros((4, 1)), [0, 1, 0, 1], groups=[1, 2, 3, 4]))


def test_a_bootstrap_draws_n_rows_and_leaves_out_its_share():
    shares = []
    for drawn, left_out in cf.Bootstrap(50).split(np.zeros((1000, 1))):
        assert len(drawn) == 1000 and not set(drawn) & set(left_out)
        assert set(drawn) | set(left_out) == set(range(1000))
        shares.append(len(left_out) / 1000)
    share = cf.Bootstrap.left_out_share(1000)
    assert share == pytest.approx((1 - 1 / 1000) ** 1000) and share == pytest.approx(1 / np.e, abs=1e-3)
    assert np.mean(shares) == pytest.approx(share, abs=0.005)  # 50 draws: standard error about 0.0015


def test_a_draw_depends_on_its_number_alone():
    few, many = (list(cf.Bootstrap(k, random_state=7).split(np.zeros((30, 1)))) for k in (2, 5))
    assert all((a[0] == b[0]).all() for a, b in zip(few, many, strict=False))


@pytest.mark.parametrize(
    "cv",
    [
        7,
        cf.Folds(3, repeats=2),
        cf.Bootstrap(4),
        KFold(4, shuffle=True, random_state=0),
        GroupKFold(3),
        [(np.arange(40), np.arange(40, 60)), (np.arange(30, 60), np.arange(30))],
    ],
    ids=["number", "folds", "bootstrap", "KFold", "GroupKFold", "pairs"],
)
def test_anything_that_splits_becomes_the_same_sets_of_rows(rng, cv):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    group = rng.integers(0, 6, size=60).astype(np.uint64)
    source = Memory(X, y)
    keys = None
    if isinstance(cv, GroupKFold):
        source.block, keys = Block(X, y, None, 0, group), group
    given = cf.Folds(cv) if isinstance(cv, int) else cv
    wanted = given if isinstance(given, list) else list(given.split(X, y, keys))
    got = [pair for splits in rounds_of(cv, source) for pair in sets(splits, 60, keys)]
    assert len(got) == len(wanted)
    for (train, test), (other_train, other_test) in zip(got, wanted, strict=True):
        assert (np.sort(train) == np.sort(other_train)).all() and (np.sort(test) == np.sort(other_test)).all()


def test_a_file_has_the_folds_of_the_array(rng, tmp_path):
    X, y = rng.normal(size=(3000, 2)), rng.normal(size=3000)
    customer = rng.integers(0, 200, size=3000)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "customer": customer, "y": y})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=777)
    scan = cf.scan_parquet(tmp_path / "t.parquet", target="y", group="customer")
    assert scan.names == ["a", "b"]
    from_file = cf.CrossValidated(cf.Ridge(), {"alpha": [0.1]}, cv=5).fit(scan)
    in_memory = cf.CrossValidated(cf.Ridge(), {"alpha": [0.1]}, cv=5).fit(X, y, groups=customer)
    for k in range(5):
        name = f"split{k}_test_score"
        assert from_file.cv_results_[name] == pytest.approx(in_memory.cv_results_[name], rel=1e-12)


def test_scikit_learn_takes_our_folds(rng):
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    assert len(cross_val_score(PeerRidge(), X, y, cv=cf.Folds(6))) == 6


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: cf.Folds(1), "n_splits must be a whole number >= 2"),
        (lambda: cf.Folds(2.5), "n_splits"),
        (lambda: cf.Folds(3, repeats=0), "repeats"),
        (lambda: cf.Bootstrap(0), "n_splits"),
        (lambda: list(cf.Folds(5).split([[0]] * 3)), "5 folds need 5 rows"),
        (lambda: rounds_of("ten", Memory(np.ones((9, 1)), np.ones(9))), "cv must be"),
        (lambda: rounds_of([], Memory(np.ones((9, 1)), np.ones(9))), "no split"),
        (lambda: rounds_of([([0], [99])], Memory(np.ones((9, 1)), np.ones(9))), "row 99 of 9"),
        (lambda: list(cf.Folds(2).split([[0]] * 4, groups=[1, 2])), "one label per row"),
    ],
)
def test_what_cannot_split_is_refused_in_words(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()
