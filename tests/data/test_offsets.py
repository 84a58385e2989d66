"""Offsets and exposures: the score of a row is offset + log exposure + b + x'w, wherever the row lives."""

from __future__ import annotations

import pickle
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from chunks import random_cuts
from sklearn.base import BaseEstimator, RegressorMixin
from tables import Numbers, in_memory, table_of_numbers

import certifit as cf
from certifit.data.roles import Roles
from certifit.data.source import Batches, Block, Memory, join
from certifit.data.user_input import class_source, fit_source, predict_rows, predict_source, unlabelled_source
from certifit.data.view import Target
from certifit.statistics.gram import counted, gram

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")


def rows() -> pa.Table:
    rng = np.random.default_rng(1)
    table = table_of_numbers(20_011)
    table = table.append_column("o", [rng.normal(size=len(table)) ** 2])
    return table.append_column("e", [rng.uniform(1.0, 9.0, len(table))])


TABLE = rows()
OFFSET = TABLE["o"].to_numpy() + np.log(TABLE["e"].to_numpy())
ROLES = {"target": "y", "weight": "w", "offset": "o", "exposure": "e"}
PLAIN = in_memory(TABLE)
MEMORY = Memory(PLAIN.block.X, PLAIN.block.y, PLAIN.block.weight, offset=OFFSET)


def offset_of(block: Block) -> Any:
    assert block.offset is not None and len(block.offset) == block.n_rows
    return block.offset


def of_offset_and_target(block: Block) -> Any:
    return np.array([block.offset @ block.y, block.offset.sum(), np.abs(block.offset).max()])


def offset_bits(source: Any) -> Any:
    """Sums of rows weighed by their offsets, and of offset times target, all bits."""
    source = source.through(Numbers()) if source.is_table else source
    sums = source.resized(4096, 8192).reduce(of_offset_and_target)
    return gram(source.weighted(offset_of), centred=True).sums.tobytes(), sums.tobytes()


BITS = offset_bits(MEMORY)


def csv_file(folder: Any) -> Any:
    path = folder / "rows.csv"
    pyarrow.csv.write_csv(TABLE, path)
    return cf.scan_csv(path, **ROLES)


def parquet_files(folder: Any) -> Any:
    for k, (begin, end) in enumerate(pairwise([0, 1, 9_000, len(TABLE)])):
        pyarrow.parquet.write_table(TABLE.slice(begin, end - begin), folder / f"{k}.parquet", row_group_size=777)
    return cf.scan_parquet(folder, **ROLES)


def dask_frame(folder: Any) -> Any:
    frame = TABLE.to_pandas()
    parts = [dask.delayed(frame.iloc[begin:end]) for begin, end in pairwise([0, 1, 9_000, len(TABLE)])]
    return cf.from_dask(dd.from_delayed(parts, meta=frame.iloc[:0]), **ROLES)


def dask_array(folder: Any) -> Any:
    block = MEMORY.block
    beside = {name: da.from_array(TABLE[column].to_numpy(), 500) for name, column in ROLES.items()}
    return cf.from_dask(da.from_array(block.X, chunks=(4_001, 2)), **beside)


SOURCES = {
    "arrow": lambda folder: cf.from_arrow(TABLE, **ROLES),
    "pandas": lambda folder: cf.from_arrow(TABLE.to_pandas(), **ROLES),
    "polars": lambda folder: cf.from_arrow(pl.from_arrow(TABLE), **ROLES),
    "polars, lazy": lambda folder: cf.from_arrow(pl.from_arrow(TABLE).lazy(), **ROLES),
    "csv": csv_file,
    "parquet": parquet_files,
    "dask frame": dask_frame,
    "dask array": dask_array,
    "kept": lambda folder: csv_file(folder).kept(),
    "pickled": lambda folder: pickle.loads(pickle.dumps(cf.from_arrow(TABLE, **ROLES))),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_bits_with_an_offset(source, tmp_path):
    scan = SOURCES[source](tmp_path)
    assert scan.view.has_offset
    assert scan.n_features == 3
    assert offset_bits(scan) == BITS


def test_batches_of_any_size_give_the_same_bits_with_an_offset(rng):
    def open_batches():
        ends = [*random_cuts(rng, len(TABLE)), len(TABLE)]
        return (MEMORY.block.part(begin, end) for begin, end in pairwise([0, *ends]))

    with pytest.raises(ValueError, match="an offset that is not declared"):
        next(Batches(open_batches, list("abc")).stretches())
    source = Batches(open_batches, list("abc"), Roles("y", "w", offset="o"))
    assert source.view.has_offset
    assert offset_bits(source) == BITS


CHANGES = {
    "mapped": lambda source: source.through(Numbers()),
    "weighted": lambda source: source.weighted(lambda block: np.ones(block.n_rows)),
    "without target": lambda source: source.reading(Target.NONE),
    "weighted, without target": lambda source: CHANGES["weighted"](source).reading(Target.NONE),
    "one column": lambda source: source.select(["a"]),
    "other blocks": lambda source: source.resized(512, 1024),
    "without target, read as codes": lambda source: source.reading(Target.NONE).reading(Target.CODES, np.array([0, 1])),
}


# The columns of a Dask frame are chosen with columns=.
CHANGED = [(change, engine) for change in CHANGES for engine in ("arrow", "csv", "dask frame")]
CHANGED.remove(("one column", "dask frame"))


@pytest.mark.parametrize(("change", "engine"), CHANGED)
@pytest.mark.slow
def test_a_changed_source_keeps_its_offset(change, engine, tmp_path):
    source = CHANGES[change](SOURCES[engine](tmp_path))
    assert source.view.has_offset
    np.testing.assert_array_equal(np.concatenate([run.offset for run in source.stretches()]), OFFSET)


def test_an_array_read_as_codes_keeps_its_offset():
    source = Memory(np.ones((4, 1)), np.array([3.0, 5.0, 5.0, 3.0]), offset=np.arange(4.0))
    source = source.reading(Target.CODES, np.array([3, 5]))
    assert source.view.has_offset
    np.testing.assert_array_equal(source.first_block().offset, np.arange(4.0))


@pytest.mark.parametrize("engine", ["arrow", "csv", "parquet", "dask frame", "dask array"])
def test_the_target_alone_is_read_without_the_offset(engine, tmp_path):
    column = SOURCES[engine](tmp_path).reading(Target.RAW)
    assert not column.view.has_offset
    assert all(run.offset is None for run in column.stretches())


def test_parts_and_rows_of_a_block_take_their_offsets_along():
    block = Block(
        np.arange(8.0).reshape(4, 2), np.arange(4.0), np.array([1.0, 0.0, 2.0, 0.0]), 10, None, np.arange(4.0)
    )
    np.testing.assert_array_equal(block.part(1, 3).offset, [1.0, 2.0])
    np.testing.assert_array_equal(join([block.part(2, 4), block.part(0, 2)]).offset, [2.0, 3.0, 0.0, 1.0])
    np.testing.assert_array_equal(counted(block).offset, [0.0, 2.0])


def test_an_exposure_alone_is_the_offset_log_of_it():
    scan = cf.from_arrow(TABLE.drop_columns("o"), "y", "w", exposure="e")
    np.testing.assert_array_equal(scan.first_block().offset, np.log(TABLE["e"].to_numpy())[: scan.block_rows])


def test_a_source_without_such_a_column_has_no_offset(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2.5\n0 1:1\n")
    sources = [cf.from_arrow(TABLE, "y"), PLAIN, cf.scan_svmlight(path), PLAIN.through(Numbers())]
    assert not any(source.view.has_offset for source in sources)


class Counts(RegressorMixin, BaseEstimator):
    """Takes an offset and an exposure; what the gate makes of them is `source_`."""

    def __init__(self, encoder: Any = None) -> None:
        self.encoder = encoder

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, offset: Any = None, exposure: Any = None) -> Any:
        self.source_ = fit_source(self, X, y, sample_weight, offset, exposure)
        self.encoder_ = cf.TableEncoder() if self.source_.is_table else None
        return self


N = 5
X = np.arange(2.0 * N).reshape(N, 2)
Y = np.array([0.0, 2.0, 1.0, 0.0, 3.0])
EXPOSURE = np.array([1.0, 0.5, 2.0, 4.0, 0.25])

GIVEN = {
    "arrays": (np.arange(N), EXPOSURE),
    "lists": (list(range(N)), EXPOSURE.tolist()),
    "whole numbers of pandas": (pd.Series(range(N), dtype="Int64"), pd.Series(EXPOSURE)),
    "polars": (pl.Series(range(N)), pl.Series(EXPOSURE)),
    "arrow": (pa.array(range(N)), pa.array(EXPOSURE)),
    "float32": (np.arange(N, dtype=np.float32), EXPOSURE.astype(np.float32)),
}


@pytest.mark.parametrize("frame", [False, True], ids=["array", "frame"])
@pytest.mark.parametrize("given", GIVEN)
def test_offset_and_exposure_of_arrays_add_up(given, frame):
    offset, exposure = GIVEN[given]
    model = Counts(cf.TableEncoder() if frame else None)
    rows = pd.DataFrame(X, columns=["a", "offset"]) if frame else X
    source = model.fit(rows, Y, offset=offset, exposure=exposure).source_
    assert source.view.has_offset and model.n_features_in_ == 2
    np.testing.assert_array_equal(source.first_block().offset, np.arange(N) + np.log(EXPOSURE))
    block = predict_rows(model, rows, offset, exposure)
    np.testing.assert_array_equal(block.offset, np.arange(N) + np.log(EXPOSURE))


def test_one_number_is_the_offset_of_every_row():
    np.testing.assert_array_equal(Counts().fit(X, Y, offset=2).source_.block.offset, np.full(N, 2.0))


def test_labels_and_offsets_pass_the_gate_together():
    labels = np.array(["n", "y", "n", "y", "n"])
    source, classes = class_source(Counts(), X, labels, None, offset=np.arange(N), exposure=EXPOSURE)
    assert classes.tolist() == ["n", "y"]
    np.testing.assert_array_equal(source.first_block().offset, np.arange(N) + np.log(EXPOSURE))
    frame = pd.DataFrame(X, columns=["a", "b"])
    source, _ = class_source(Counts(cf.TableEncoder()), frame, labels, None, exposure=EXPOSURE)
    np.testing.assert_array_equal(source.first_block().offset, np.log(EXPOSURE))


def test_no_offset_at_a_prediction_is_none():
    assert predict_rows(Counts().fit(X, Y, exposure=EXPOSURE), X).offset is None


def other(at: int, value: Any, dtype: Any = float) -> Any:
    values = np.ones(N).astype(dtype)
    values[at] = value
    return values


FAULTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "zero exposure": ({"exposure": other(3, 0.0)}, ValueError, "exposure must be > 0. It is 0 at row 3. Remove"),
    "negative exposure": ({"exposure": other(2, -1.5)}, ValueError, "exposure must be > 0. It is -1.5 at row 2"),
    "nan exposure": ({"exposure": other(1, np.nan)}, ValueError, "exposure must be finite. It is nan at row 1"),
    "infinite exposure": ({"exposure": other(1, np.inf)}, ValueError, "exposure must be finite. It is inf at row 1"),
    "nan offset": ({"offset": other(4, np.nan)}, ValueError, "offset must be finite. It is nan at row 4"),
    "missing": ({"offset": other(4, None, object)}, ValueError, "offset must be finite. It is nan at row 4"),
    "missing in pandas": (
        {"offset": pd.Series([1, 2, pd.NA, 4, 5], dtype="Int64")}, ValueError, "offset must be finite. .* row 2",
    ),
    "short": ({"exposure": np.ones(N - 1)}, ValueError, f"exposure has {N - 1} entries but X has {N} rows"),
    "long": ({"offset": np.ones(N + 1)}, ValueError, f"offset has {N + 1} entries but X has {N} rows"),
    "two columns": ({"offset": np.ones((N, 2))}, ValueError, "offset must be 1-D, one number per row. Got 2"),
    "text": ({"exposure": ["1", "2", "3", "4", "5"]}, TypeError, "exposure must be numbers"),
    "text among numbers": ({"offset": other(2, "2", object)}, TypeError, "offset must be numbers. It is '2' at row 2"),
    "complex": ({"offset": np.ones(N) + 1j}, TypeError, "offset must be numbers. Got dtype complex128"),
    "dates": ({"offset": np.ones(N).astype("M8[D]")}, TypeError, "offset must be numbers. Got dtype datetime64"),
    "mask": ({"exposure": np.ma.masked_less(np.ones(N), 0)}, TypeError, "masked array"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_wrong_offset_or_exposure_is_refused_in_words(case):
    given, error, words = FAULTS[case]
    with pytest.raises(error, match=words):
        Counts().fit(X, Y, **given)
    with pytest.raises(error, match=words):
        predict_rows(Counts().fit(X, Y), X, **given)


CELLS = {
    "zero": ("3\n0\n", "Exposure 'e' must be > 0. It is 0 at line 3 of"),
    "negative": ("3\n-2\n", "Exposure 'e' must be > 0. It is -2 at line 3 of"),
    "empty": ("3\nNA\n", "Column 'e' is empty at line 3 of"),
    "text": ("3\nlong\n", "line 3: column 'e' is 'long', not a number"),
}


@pytest.mark.parametrize("case", CELLS)
def test_a_wrong_exposure_in_a_file_names_its_line(case, tmp_path):
    cells, words = CELLS[case]
    path = tmp_path / "rows.csv"
    path.write_text("e,x,y\n" + "".join(f"{cell},1,2\n" for cell in cells.split()))
    with pytest.raises(ValueError, match=words):
        list(cf.scan_csv(path, "y", exposure="e").stretches())


ROLE_FAULTS = {
    "absent": ({"exposure": "E"}, ValueError, "no column 'E'. Did you mean 'e'"),
    "absent offset": ({"offset": "off"}, ValueError, "has no column 'off'"),
    "a feature too": ({"exposure": "e", "columns": ["a", "e"]}, ValueError, "'e' cannot be a feature and the exposure"),
    "the target too": ({"offset": "y"}, ValueError, "'y' cannot be the target and the offset at once"),
    "the weight too": ({"weight": "w", "exposure": "w"}, ValueError, "'w' cannot be the weight and the exposure"),
    "both": ({"offset": "e", "exposure": "e"}, ValueError, "'e' cannot be the offset and the exposure at once"),
}


@pytest.mark.parametrize("case", ROLE_FAULTS)
def test_columns_in_two_roles_or_none_are_refused(case, tmp_path):
    roles, error, words = ROLE_FAULTS[case]
    pyarrow.parquet.write_table(TABLE.slice(0, 5), tmp_path / "rows.parquet")
    pyarrow.csv.write_csv(TABLE.slice(0, 5), tmp_path / "rows.csv")
    frame = dd.from_pandas(TABLE.slice(0, 5).to_pandas(), npartitions=1)
    scans = [
        partial(cf.scan_parquet, tmp_path / "rows.parquet"),
        partial(cf.scan_csv, tmp_path / "rows.csv"),
        partial(cf.from_arrow, TABLE.slice(0, 5)),
        partial(cf.from_dask, frame),
    ]
    for scan in scans:
        with pytest.raises(error, match=words):
            scan(target="y", **roles)


def test_a_column_of_text_is_no_exposure():
    table = TABLE.slice(0, 3).append_column("t", [["a", "b", "c"]])
    with pytest.raises(TypeError, match="Column 't' is string, but the exposure must be numbers"):
        cf.from_arrow(table, "y", exposure="t").first_block()


def test_a_wrong_exposure_of_a_dask_array_is_refused():
    rows = da.from_array(X, chunks=(2, 2))
    with pytest.raises(ValueError, match=r"exposure must be > 0\. It is 0 at row 1"):
        list(cf.from_dask(rows, da.from_array(Y, 2), exposure=da.from_array(other(3, 0.0), 2)).stretches())
    with pytest.raises(ValueError, match="offset has 4 rows but X has 5"):
        cf.from_dask(rows, da.from_array(Y, 2), offset=da.from_array(np.ones(4), 2))


@pytest.mark.parametrize("scan", [cf.from_arrow(TABLE, **ROLES), MEMORY, MEMORY.weighted(offset_of)])
def test_a_model_without_an_offset_refuses_a_scan_that_has_one(scan):
    plain = cf.LinearRegression().fit(cf.from_arrow(TABLE, "y", columns=["a", "b", "c"]) if scan.is_table else PLAIN)
    for use in (
        lambda: cf.LinearRegression().fit(scan),
        lambda: plain.predict(scan),
        lambda: plain.certify(scan),
        lambda: cf.PCA(1).fit(scan),
        lambda: class_source(cf.GaussianNB(), scan, None, None),
    ):
        with pytest.raises(ValueError, match=r"The scan has an offset, and \w+ takes none"):
            use()


def test_a_scan_carries_its_own_offset():
    scan = cf.from_arrow(TABLE, **ROLES)
    model = Counts().fit(scan)
    assert model.source_ is scan
    assert predict_source(model, scan) is scan
    with pytest.raises(ValueError, match=r"A scan carries its exposure. Pass it as scan_csv\(..., exposure="):
        model.fit(scan, exposure=EXPOSURE)
    with pytest.raises(ValueError, match="A scan carries its offset"):
        predict_source(model, scan, offset=EXPOSURE)
    with pytest.raises(ValueError, match="takes none"):
        unlabelled_source(cf.PCA(), scan, None)


def test_a_model_of_classes_takes_an_offset_and_no_exposure():
    table = TABLE.slice(0, 50).append_column("z", [["n", "y"] * 25]).select(["a", "b", "z", "o", "e"])
    model = cf.LogisticRegression().fit(cf.from_arrow(table.drop_columns("e"), "z", offset="o"))
    assert (model.offset_name_, model.exposure_name_) == ("o", None)
    with pytest.raises(ValueError, match="The scan has an exposure, and LogisticRegression takes none"):
        model.fit(cf.from_arrow(table, "z", offset="o", exposure="e"))
    with pytest.raises(ValueError, match="The scan has an exposure, and LogisticRegression takes none"):
        model.predict(cf.from_arrow(table.drop_columns("o"), "z", exposure="e"))
