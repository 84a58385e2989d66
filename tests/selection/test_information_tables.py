"""The filter on tables that come in pieces: every source gives the scores of the rows in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from neighbours import of_counts, of_number_and_class, of_two_numbers

import certifit as cf
from certifit.data.source import Memory
from certifit.selection.information import tables as information_tables
from certifit.selection.information.filter import MutualInformationFilter

HANG = 600  # seconds until a process counts as hung; no measure of speed
NAMES = ["x", "z", "codes", "flag", "text", "category"]


def table(rng: np.random.Generator, n_rows: int = 700) -> pa.Table:
    """Columns of every kind, three of them with gaps; y has classes, t has numbers, w weights, one has ones."""
    x, z = rng.normal(size=(2, n_rows))
    codes = rng.integers(0, 6, n_rows)
    text = np.array(["a", "b", None, "long", ""], dtype=object)[rng.integers(0, 5, n_rows)]
    return pa.table(
        {
            "x": x,
            "z": z,
            "codes": pa.array(codes, pa.int16(), mask=rng.random(n_rows) < 0.1),
            "flag": pa.array(z > 0, mask=rng.random(n_rows) < 0.1),
            "text": pa.array(text.tolist()),
            "category": pa.array([f"level {c}" for c in codes]).dictionary_encode(),
            "y": np.digitize(x + codes, [0.0, 3.0]),
            "t": x + codes + rng.normal(size=n_rows),
            "w": rng.integers(0, 4, n_rows) / 2,
            "one": np.full(n_rows, 3.5),
        }
    )


@pytest.fixture
def rows(rng: np.random.Generator) -> pa.Table:
    return table(rng)


def arrow(rows: pa.Table, folder: Any, **roles: Any) -> Any:
    return cf.from_arrow(pa.concat_tables([rows[:1], rows[1:300], rows[300:]]), **roles)


def parquet(rows: pa.Table, folder: Any, **roles: Any) -> Any:
    pq.write_table(rows, folder / "rows.parquet", row_group_size=97)
    return cf.scan_parquet(folder / "rows.parquet", **roles)


def csv(rows: pa.Table, folder: Any, **roles: Any) -> Any:
    plain = rows.set_column(5, "category", rows["category"].cast(pa.string()))
    full = plain.set_column(4, "text", rows["text"].fill_null("none").combine_chunks())
    pyarrow.csv.write_csv(full, folder / "rows.csv")
    return cf.scan_csv(folder / "rows.csv", **roles)


def dask(rows: pa.Table, folder: Any, **roles: Any) -> Any:
    delayed, frames = pytest.importorskip("dask").delayed, pytest.importorskip("dask.dataframe")
    frame = rows.to_pandas()
    cuts = [0, 1, 250, 250, 701]
    return cf.from_dask(frames.from_delayed([delayed(frame.iloc[a:b]) for a, b in pairwise(cuts)]), **roles)


SOURCES = {"arrow": arrow, "parquet": parquet, "csv": csv, "dask": dask}


@pytest.mark.parametrize("target", ["y", "t"])
@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.slow
def test_every_source_gives_the_scores_of_the_formulas(rows, tmp_path, name, target):
    source = SOURCES[name](rows, tmp_path, target=target, columns=NAMES)
    found = MutualInformationFilter("all").fit(source)
    y = rows[target].to_numpy()
    levels = [rows[column].to_pylist() for column in NAMES[2:]]
    numbers = [rows["x"].to_numpy(), rows["z"].to_numpy()]
    if target == "y":
        expected = [of_number_and_class(x, y, 3) for x in numbers] + [of_counts(x, y.tolist()) for x in levels]
    else:
        expected = [of_two_numbers(x, y, 3) for x in numbers]
        expected += [of_number_and_class(y, np.array([str(one) for one in x]), 3) for x in levels]
    assert np.allclose(found.scores_, expected, rtol=0, atol=1e-12)
    assert found.kinds_ == ["continuous"] * 2 + ["discrete"] * 4
    assert found.target_kind_ == {"y": "discrete", "t": "continuous"}[target]
    assert list(found.get_feature_names_out()) == NAMES


@pytest.mark.slow
def test_cuts_of_the_rows_do_not_change_a_bit(rows):
    whole = cf.from_arrow(rows, "y", columns=NAMES)
    scores = MutualInformationFilter().fit(whole).scores_
    for size in (1, 64, 500):
        assert np.array_equal(MutualInformationFilter().fit(whole.resized(size, size)).scores_, scores)


def test_a_frame_and_a_scan_score_the_same(rows):
    scan = cf.from_arrow(rows, "y", columns=NAMES)
    frame = rows.select(NAMES).to_pandas()
    expected = MutualInformationFilter().fit(frame, rows["y"].to_numpy()).scores_
    assert np.allclose(MutualInformationFilter().fit(scan).scores_, expected, rtol=0, atol=1e-15)


def test_a_weight_is_how_often_a_row_counts(rows):
    scan = cf.from_arrow(rows, "y", "w", columns=NAMES[2:])
    found = MutualInformationFilter("all").fit(scan)
    weight = rows["w"].to_numpy()
    expected = [of_counts(rows[name].to_pylist(), rows["y"].to_pylist(), weight) for name in NAMES[2:]]
    assert np.allclose(found.scores_, expected, rtol=0, atol=1e-14)
    twice = rows.take(pa.array(np.repeat(np.arange(len(rows)), (2 * weight).astype(int))))
    repeated = MutualInformationFilter("all").fit(cf.from_arrow(twice, "y", columns=NAMES[2:]))
    assert np.allclose(found.scores_, repeated.scores_, rtol=0, atol=1e-14)


def test_rows_of_weight_zero_are_no_rows_and_equal_weights_no_weights(rows):
    kept = np.arange(len(rows)) % 3 > 0
    weighted = rows.set_column(rows.column_names.index("w"), "w", pa.array(np.where(kept, 2.5, 0.0)))
    for target in ("y", "t"):
        found = MutualInformationFilter().fit(cf.from_arrow(weighted, target, "w", columns=NAMES))
        expected = MutualInformationFilter().fit(cf.from_arrow(rows.filter(pa.array(kept)), target, columns=NAMES))
        assert np.allclose(found.scores_, expected.scores_, rtol=0, atol=1e-14)


def test_unequal_weights_and_neighbours_do_not_go_together(rows):
    for source in (cf.from_arrow(rows, "y", "w", columns=NAMES), cf.from_arrow(rows, "t", "w", columns=["text"])):
        with pytest.raises(ValueError, match="take no weights, and these range from"):
            MutualInformationFilter().fit(source)


def test_a_constant_column_of_numbers_or_gaps_scores_zero(rows):
    rows = rows.append_column("nothing", pa.nulls(len(rows)))
    found = MutualInformationFilter().fit(cf.from_arrow(rows, "t", columns=["x", "one", "nothing"]))
    assert found.scores_[1:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "value, words", [(None, "continuous and empty or NaN at row 20"), (np.inf, "infinite at row 20")]
)
def test_a_gap_in_a_continuous_column_is_named_and_may_be_declared_a_level(rows, value, words):
    x = np.round(rows["x"].to_numpy(), 1).tolist()
    x[20] = value
    source = cf.from_arrow(rows.set_column(0, "x", pa.array(x)), "y", columns=["x", "z"])
    with pytest.raises(ValueError, match=f"Column 'x' is {words}"):
        MutualInformationFilter().fit(source)
    if value is None:
        found = MutualInformationFilter(discrete_features=["x"]).fit(source)
        assert found.scores_[0] == pytest.approx(of_counts(x, rows["y"].to_pylist()), abs=1e-14)


def test_the_place_in_a_file_is_named(rows, tmp_path):
    x = rows["x"].to_pylist()
    x[20] = None
    source = parquet(rows.set_column(0, "x", pa.array(x)), tmp_path, target="y", columns=["x"])
    with pytest.raises(ValueError, match=r"at row 21 of '.*rows\.parquet'"):
        MutualInformationFilter().fit(source)


def test_columns_that_do_not_fit_in_memory_are_refused_with_advice(rows):
    source = cf.from_arrow(rows, "y", columns=NAMES)
    refusal = r"2 columns of 700 rows needs [\d.]+ kB of memory, limit 10 kB.*columns=\[\.\.\.\].*certifit\.memory\("
    with cf.memory(10_000):
        with pytest.raises(MemoryError, match=refusal):
            MutualInformationFilter().fit(source)
        assert MutualInformationFilter(discrete_features=True).fit(source).kinds_ == ["discrete"] * 6


def test_too_many_pairs_are_refused_with_advice(rows, monkeypatch):
    monkeypatch.setattr(information_tables, "MOST_PAIRS", 100)
    source = cf.from_arrow(rows, "y", columns=["codes", "x"]).resized(64, 64)
    with pytest.raises(ValueError, match="Column 'x' has more than 100 different pairs"):
        MutualInformationFilter(discrete_features=True).fit(source)


def test_the_target_may_be_said_to_be_classes_or_numbers(rows):
    source = cf.from_arrow(rows, "y", columns=["x", "text"])
    found = MutualInformationFilter(target="continuous").fit(source)
    y = rows["y"].to_numpy().astype(float)
    text = np.array([str(one) for one in rows["text"].to_pylist()])
    assert found.scores_[0] == pytest.approx(of_two_numbers(rows["x"].to_numpy(), y, 3), abs=1e-12)
    assert found.scores_[1] == pytest.approx(of_number_and_class(y, text, 3), abs=1e-12)
    many = cf.from_arrow(rows.append_column("id", pa.array(np.arange(700) // 2)), "id", columns=["text"])
    assert MutualInformationFilter().fit(many).target_kind_ == "continuous"
    found = MutualInformationFilter(target="discrete").fit(many)
    assert found.scores_[0] == pytest.approx(of_counts(rows["text"].to_pylist(), (np.arange(700) // 2).tolist()))


def test_a_source_of_arrays_is_gathered(rows, tmp_path):
    X, y = np.column_stack([rows["x"], rows["z"]]), rows["t"].to_numpy()
    expected = MutualInformationFilter().fit(X, y).scores_
    assert np.array_equal(MutualInformationFilter().fit(Memory(X, y)).scores_, expected)
    (tmp_path / "a.svm").write_text("".join(f"{i % 2} 1:{i % 3} 3:{i % 5}\n" for i in range(60)))
    found = MutualInformationFilter().fit(cf.scan_svmlight(tmp_path / "a.svm"))
    i = np.arange(60)
    dense = np.column_stack([i % 3, 0 * i, i % 5])
    assert np.allclose(found.scores_, MutualInformationFilter().fit(dense, i % 2).scores_, rtol=0, atol=1e-15)


BAD = {
    "a target beside a scan": (lambda r: (cf.from_arrow(r, "y"), r["y"]), "A scan carries its target"),
    "no target": (lambda r: (cf.from_arrow(r.select(["x"])),), "no target"),
    "an array without target": (lambda r: (Memory(np.ones((4, 2)), None),), "no target"),
    "an array with weights": (lambda r: (Memory(np.ones((4, 2)), np.ones(4), np.ones(4)),), "no weights here"),
    "one row": (lambda r: (cf.from_arrow(r[:1], "y", columns=["x"]),), "Found 1 rows"),
    "a list": (
        lambda r: (cf.from_arrow(r.append_column("l", pa.array([[1]] * len(r))), "y", columns=["l"]),),
        "Column 'l' is list",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_sources_that_cannot_be_scored_are_refused(rows, name):
    make, words = BAD[name]
    with pytest.raises((ValueError, TypeError), match=words):
        MutualInformationFilter().fit(*make(rows))


def test_a_scan_is_not_transformed(rows):
    source = cf.from_arrow(rows, "y", columns=NAMES)
    with pytest.raises(TypeError, match="Scan again with columns="):
        MutualInformationFilter().fit(source).transform(source)


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.slow
def test_control_c_ends_long_work_and_the_next_fit_works():
    code = """
        import os, signal, sys, threading
        import numpy as np
        from certifit.selection.information.filter import MutualInformationFilter

        rng = np.random.default_rng(0)
        n = 400_000
        X = rng.normal(size=(n, 60))
        small = X[:50], X[:50, 0] + X[:50, 1]
        before = MutualInformationFilter().fit(*small).scores_
        main = threading.get_ident()

        def interrupt_inside_the_core():
            looks = 0
            while looks < 2000:
                looks = looks + 1 if sys._current_frames()[main].f_code.co_name == "of_numbers" else 0
            os.kill(os.getpid(), signal.SIGINT)

        for y, k in ((rng.normal(size=n), 300), (rng.integers(0, 2, n), 3)):
            try:
                threading.Thread(target=interrupt_inside_the_core, daemon=True).start()
                MutualInformationFilter(n_neighbors=k).fit(X, y)
                print("was not interrupted")
            except KeyboardInterrupt:
                print("interrupted", np.array_equal(MutualInformationFilter().fit(*small).scores_, before))
        """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.stdout.splitlines() == ["interrupted True"] * 2, done.stderr
