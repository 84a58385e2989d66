"""What a target asks for, and how many rows each label has."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import certifit as cf
from certifit.data.target import goal_of, label_counts

CLASSES = {
    "text": (["spam", "ham"] * 5, "is text"),
    "category": (pd.Categorical(["u", "v", "w"]), "is text"),
    "flag": ([True, False], "true or false"),
    "zero_one": ([0, 1, 1], "is 0 or 1: two classes"),
    "whole_floats": ([2.0, 5.0, None], "is 2 or 5"),
    "numbers_and_a_word": (["0", "1", "x"], "is text"),
}
QUANTITIES = {
    "fractions": ([0.5, 1.0], "a number on a scale"),
    "counts": (list(range(50)), "a number on a scale"),
    "grades": ([1, 2, 3, 4, 5], "5 distinct whole numbers and is taken as a quantity. If they are classes, say so"),
    "infinite": ([1.0, np.inf], "a number on a scale"),
    "mostly_numbers": ([f"{i / 3}" for i in range(30)] + ["n/a?"], "numbers but for 'n/a?'"),
}


def scan(values, **roles):
    table = pd.DataFrame({"x": np.arange(len(values)), "y": values})
    return cf.from_arrow(table.assign(w=1.0), target="y", **roles)


@pytest.mark.parametrize("name", CLASSES)
def test_text_flags_and_two_whole_numbers_are_classes(name):
    values, words = CLASSES[name]
    task = goal_of(scan(values))
    assert task.is_classes and words in task.sentence


@pytest.mark.parametrize("name", QUANTITIES)
def test_other_numbers_are_a_quantity(name):
    values, words = QUANTITIES[name]
    task = goal_of(scan(values))
    assert not task.is_classes and words in task.sentence


def test_numbers_below_zero_are_a_quantity_without_a_pass_over_all_rows(tmp_path):
    class Counted:
        """A target column that counts the stretches that are read."""

        def __init__(self, inner):
            self.inner, self.view, self.read = inner, inner.view, 0

        def reading(self, target):
            column = self.inner.reading(target).resized(1024, 1024)
            stretches = column.stretches

            def counted():
                for stretch in stretches():
                    self.read += 1
                    yield stretch

            column.stretches = counted
            return column

    wide = Counted(scan(np.arange(-3, 49_997) / 7))
    assert not goal_of(wide).is_classes and wide.read == 1
    codes = Counted(scan(np.arange(50_000) % 2))
    assert goal_of(codes).is_classes and codes.read == 49


def test_rows_of_weight_zero_are_none():
    table = pd.DataFrame({"x": [1, 2, 3], "y": [0, 1, 7], "w": [1.0, 1.0, 0.0]})
    assert goal_of(cf.from_arrow(table, target="y", weight="w")).is_classes
    assert label_counts(cf.from_arrow(table, target="y", weight="w")) == {0: 1, 1: 1}


def test_labels_are_counted_on_every_source(tmp_path):
    table = pd.DataFrame({"x": range(9), "y": ["b", "a", "b"] * 3})
    table.to_csv(tmp_path / "a.csv", index=False)
    for source in (
        cf.from_arrow(table, target="y"),
        cf.scan_csv(tmp_path / "a.csv", target="y"),
        cf.from_dask(dd.from_pandas(table, npartitions=2), target="y"),
    ):
        assert label_counts(source) == {"a": 3, "b": 6}
        assert goal_of(source).is_classes
