"""The compiled core answers or refuses any arguments: a sample of the binding fuzz."""

from __future__ import annotations

import os

import numpy as np
import pytest
from core_calls import CALLS

from certifit.runtime import core

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="calls run in forked children")


def test_every_function_of_the_core_has_a_legal_call():
    functions = {name for name in dir(core) if callable(getattr(core, name)) and not name.startswith("__")}
    assert functions - {"cpu_has_avx2"} == set(CALLS)
    for name, draw in CALLS.items():
        for seed in range(3):
            getattr(core, name)(**draw(np.random.default_rng(seed)))


def test_damaged_arguments_never_end_the_process():
    from fuzz_bindings import run

    outcome = run(1500, seed=0)
    assert outcome.deaths == []
    assert outcome.ends["refused"] > 300 and outcome.ends["answered"] > 300


CSR = {
    "a column beyond the last": ([0, 60], [0, 1, 2]),
    "a negative column": ([0, -1], [0, 1, 2]),
    "offsets beyond the entries": ([0, 1], [0, 1, 9]),
    "offsets that fall": ([0, 1], [0, 2, 1]),
    "offsets below zero": ([0, 1], [-1, 1, 2]),
}


@pytest.mark.parametrize("indices, offsets", CSR.values(), ids=CSR)
@pytest.mark.parametrize("width", [3, 40])  # read as dense rows, and entry by entry
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_bad_csr_is_refused_by_every_pass(indices, offsets, width, kind):
    rows = [("csr", np.ones(2), np.array(indices, dtype=kind), np.array(offsets, dtype=kind), width)]
    with pytest.raises(ValueError, match="CSR"):
        core.scores(rows, np.ones(width), 0.0, 2)
    with pytest.raises(ValueError, match="CSR"):
        one, cells = np.ones(width), np.zeros(2, dtype=np.int32)
        core.cell_sums(rows, None, cells, one, np.zeros((1, width)), 1.0, False, None, 1024, 2)


@pytest.mark.parametrize(
    "rows",
    [
        [()],
        [("rows", 100), ("dense", np.ones((2, 2)))],
        [("dense", np.ones((2, 2))), ("rows", 100)],
        [("rows", 9), ("bits", None, 0, None, 0, 0.5)],
        [("rows", 9), ("missing", np.zeros(1, np.uint8), 2**64 - 4)],
        [("codes", np.zeros(2, np.int32), np.array([4], np.int32), 2**32 + 1, None, 0, -1)],
    ],
)
def test_segments_that_contradict_each_other_are_refused(rows):
    with pytest.raises(ValueError):
        core.row_squares(rows, 1)


def test_the_wide_solver_ends_where_the_l1_part_all_but_vanishes():
    rng = np.random.default_rng(0)
    x, y = ("dense", np.asfortranarray(rng.normal(size=(30, 80)))), rng.normal(size=30)
    found = core.wide_lasso_path(x, y, None, True, np.array([0.1]), 5e-324, None, None, None, 1e-8, 1, 1)
    assert np.isfinite(found["relative_gaps"]).all()


@pytest.mark.parametrize("count", [-1, 2**62, 2**63 - 1])
def test_counts_of_terms_whose_sum_could_overflow_are_refused(count):
    table = (np.frombuffer(b"ab", dtype=np.uint8), np.array([2]), np.array([1]), np.array([count]))
    with pytest.raises(ValueError, match=r"counts of terms must be in \[0, 2\^62\)"):
        core.add_terms(table, table)


def test_nothing_to_solve_for_and_no_directions_are_legal():
    empty = np.empty((3, 0))
    assert core.twofold_solve(np.eye(3), np.zeros((3, 3)), empty, empty, 1)[0].shape == (3, 0)
    rows = [("dense", np.ones((5, 3)))]
    assert core.project(rows, np.ones(3), np.zeros(3), empty, 1).shape == (5, 0)


WALKS = sorted(name for name, draw in CALLS.items() if {"left", "feature"} <= set(draw(np.random.default_rng(0))))


@pytest.mark.parametrize("name", WALKS)
def test_a_child_whose_neighbour_is_beyond_the_largest_integer_is_refused(name):
    arguments = CALLS[name](np.random.default_rng(0))
    left = np.array(arguments["left"])
    left[np.flatnonzero(left)[0] if left.any() else 0] = np.iinfo(left.dtype).max
    with pytest.raises(ValueError, match=r"child|class"):
        getattr(core, name)(**(arguments | {"left": left}))


def test_a_forest_refuses_targets_whose_sum_is_beyond_float64():
    stops = {"max_depth": 3, "min_rows_split": 2, "min_rows_leaf": 1}
    draws = {"n_trees": 1, "n_tried": 1, "max_bins": 9, "n_levels": None, "seed": 7, "threads": 1}
    x, y = [("dense", np.arange(20.0)[:, None])], np.where(np.arange(20) % 2, 1.7e308, -1.7e308)
    with pytest.raises(ValueError, match=r"the sum of \|y\| is not finite"):
        core.grow_forest(x=x, y=y, weight=None, n_classes=0, **draws, **stops)


def test_a_tree_over_no_columns_is_its_root():
    nodes = {"threshold": np.zeros(1), "is_missing_left": np.zeros(1, np.uint8), "n_levels": None, "sets": None}
    tree = {"ends": np.array([0, 1]), "feature": np.array([-1]), "left": np.array([0]), **nodes}
    rows = [("dense", np.empty((11, 0)))]  # eight rows are walked at a time
    scores, _ = core.add_trees(x=rows, **tree, value=np.array([2.5]), width=1, first=0, last=1, threads=1)
    np.testing.assert_array_equal(np.ravel(scores), np.full(11, 2.5))
