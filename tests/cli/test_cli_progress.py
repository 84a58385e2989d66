import functools
import io
import sys

import numpy as np
import pyarrow as pa
import pytest

import certifit as cf
from certifit.cli.progress import Display, rows_line, time_line
from certifit.data.arrow import ArrowSource
from certifit.data.source import Memory
from certifit.data.source_wrappers import Picked
from certifit.selection.folds.engine import has_sums


def table_source(n_rows=1000, place="line {}".format):
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=n_rows), "c": rng.choice(["u", "v"], n_rows), "y": rng.normal(size=n_rows)})
    return ArrowSource(lambda: table.to_batches(100), table.schema, "y", place=place, n_rows=n_rows)


def test_rows_are_counted_and_the_source_is_the_same():
    display = Display()
    assert not display.is_on
    source = Memory(np.ones((7, 2)), np.ones(7), names=["a", "b"])
    watched = display.watch(source)
    assert [run.n_rows for run in watched.stretches()] == [7]
    assert display._rows == 7
    assert watched.names == ["a", "b"] and watched.named and watched.block_rows == source.block_rows


def test_a_watched_table_gives_the_same_bits_and_keeps_its_facts():
    source = table_source()
    watched = Display().watch(source)
    assert watched.is_table and watched.n_rows == 1000 and watched.place(3) == "line 3"
    assert not hasattr(watched, "skipped")
    first, second = cf.LinearRegression().fit(source), cf.LinearRegression().fit(watched)
    assert first.coef_.tobytes() == second.coef_.tobytes()
    chosen = watched.select(["x"])
    assert chosen.names == ["x"] and type(chosen).__name__ == "Watched"
    in_memory = Display().watch(Memory(np.arange(14.0).reshape(7, 2), None)).select(["x1"])
    assert in_memory.names == ["x1"] and np.array_equal(next(in_memory.stretches()).X, np.arange(1.0, 14.0, 2)[:, None])
    assert sum(run.n_rows == 128 for run in watched.resized(64, 128).stretches()) == 7


def test_a_pass_over_targets_reads_few_columns_under_the_display_too():
    source = table_source()
    weighted = source.weighted(lambda block: np.full(block.n_rows, 2.0))
    for rows in (source, weighted, Picked(weighted, np.arange(1000) % 2 == 0)):
        narrow = Display().watch(rows).narrow()
        assert type(narrow).__name__ == "Watched" and narrow.names == ["x"]
        assert all(run.X.column_names == ["x"] for run in narrow.stretches())
        targets = [np.concatenate([run.y for run in each.stretches()]) for each in (rows, narrow)]
        assert np.array_equal(*targets)


def test_every_pass_starts_at_zero_with_its_total_and_is_named():
    seen = []

    class Recorded(Display):
        def step(self, label, total=None):
            super().step(label, total)
            seen.append((label, total))

    display = Recorded()
    display.step("fitting")
    cf.LinearRegression().fit(display.watch(table_source()))
    labels = [label for label, total in seen if total == 1000]
    assert "looking at the columns" in labels and "proving" in labels
    assert display._rows == 1000


def test_an_error_of_a_run_is_given_the_place_in_the_data():
    def refuse(run, first):
        if run.first_row == first:
            raise ValueError("Column 'c' has the level 'w' at row 133, which the fit did not see.")

    with pytest.raises(ValueError, match="at line 133, which"), Display() as display:
        list(display.watch(table_source()).resized(64, 64).map(functools.partial(refuse, first=128)))


def test_the_words_of_the_display():
    assert rows_line(1_200_000, 3_000_000, 800_000.4) == "1,200,000 of 3,000,000 rows  800,000 rows/s"
    assert rows_line(1200, None, None) == "1,200 rows"
    assert rows_line(0, 10, None) == ""
    assert time_line(100, 75, 3) == "1:15 left"
    assert time_line(100, None, 3) == "0:03" and time_line(None, None, 3700) == "1:01:40"


def test_a_terminal_sees_rows_a_second_and_the_time_left(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("certifit.cli.progress.DELAY_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with Display() as display:
        display._timer.join()
        display.step("fitting")
        for _ in display.watch(table_source()).resized(64, 64).stretches():
            display._bar.refresh()
    shown = terminal.getvalue()
    assert "fitting" in shown and "of 1,000 rows" in shown and "rows/s" in shown and "left" in shown


@pytest.mark.parametrize(("model", "is_hidden"), [(cf.Ridge(), False), (cf.Ridge(basis=cf.Polynomial(2)), True)])
def test_the_display_gives_way_to_the_bar_that_counts_refits(monkeypatch, model, is_hidden):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr("certifit.cli.progress.DELAY_SECONDS", 0.0)
    with Display() as display:
        display._timer.join()
        with display.yielding(not has_sums(model, table_source())):
            assert display.is_on != is_hidden and (display._bar is None) == is_hidden
        assert display.is_on and display._bar is not None


def test_quiet_silences_every_bar(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Display(quiet=True) as display, display.yielding(are_refits=True):
        assert not sys.stderr.isatty()
    assert sys.stderr is terminal and terminal.getvalue() == ""


def test_labels_of_a_watched_table_are_read_as_those_of_the_table():
    kinds = np.array(["a", "b", "c"])[np.arange(1000) % 3]
    table = pa.table({"x": np.arange(1000.0) % 7, "kind": kinds})
    source = ArrowSource(table.to_batches, table.schema, "kind", n_rows=1000)
    watched = Display().watch(source)
    first, second = cf.GaussianNB().fit(source), cf.GaussianNB().fit(watched)
    assert first.classes_.tolist() == second.classes_.tolist() == ["a", "b", "c"]
    assert first.theta_.tobytes() == second.theta_.tobytes()
    assert first.predict(watched).tolist() == first.predict(source).tolist()


def test_rows_of_a_small_watched_file_are_read_once_for_all_models_of_classes(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    lines = [f"{x},{'ab'[int(x > 0)]}" for x in rng.normal(size=200)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    scan = cf.scan_csv(tmp_path / "rows.csv", target="y", types={"y": "text"})
    reads = []
    batches = type(scan.files).batches
    monkeypatch.setattr(type(scan.files), "batches", lambda *args: reads.append(1) or batches(*args))
    models = {"one": cf.GaussianDiscriminant(), "two": cf.GaussianNB()}
    watched = cf.leaderboard(models, Display().watch(scan))
    n_watched = len(reads)
    plain = cf.leaderboard(models, scan)
    assert n_watched <= 3  # labels, rows
    assert [one.score for one in watched.entries] == [one.score for one in plain.entries]
