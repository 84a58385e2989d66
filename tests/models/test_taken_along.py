"""Least squares of a file of numbers: the survey and the sums are one pass, and the fit has the bits of memory."""

from copy import copy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import certifit as cf
from certifit.data import source as rows
from certifit.data.formats.parquet_and_arrow import ParquetFiles
from certifit.data.kept import kept_rows
from certifit.maps import TableEncoder
from certifit.maps.table import along

N_ROWS, LAST = 5000, 4999  # some stretches
MODELS = {
    "least squares": cf.LinearRegression,
    "least squares without an intercept": lambda: cf.LinearRegression(fit_intercept=False),
    "ridge": lambda: cf.Ridge(alpha=0.1, standardize=True),
    "ridge by steps": lambda: cf.Ridge(alpha=0.1, solver="lbfgs"),
    "lasso": lambda: cf.Lasso(alpha=0.1),
    "components": lambda: cf.PCA(2),
    "standardised components about 0": lambda: cf.PCA(2, center=False, standardize=True),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(rows, "block_rows", lambda n_columns: 64)


@pytest.fixture
def passes(monkeypatch):
    """Columns of the passes that read a file to its end."""
    seen, batches = [], ParquetFiles.batches

    def watched(self, columns, size):
        yield from batches(self, columns, size)
        seen.append(columns)

    monkeypatch.setattr(ParquetFiles, "batches", watched)
    return seen


def numbers(rng):
    X = rng.normal([0, 0, 30, 0], size=(N_ROWS, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=N_ROWS)
    columns = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": X[:, 2], "d": (9 * X[:, 3]).astype(np.int16)}
    return columns | {"w": np.ones(N_ROWS), "y": y}


def with_gap(column):
    return pa.array(column, mask=np.arange(N_ROWS) == LAST)


def with_entry(column, value):
    return np.append(column[:-1], value)


# How the columns of `numbers` change, and whether the sums that were taken along are those of the encoded rows.
CHANGES = {
    "nothing": (lambda c: {}, True),
    "a missing value in the last row": (lambda c: {"a": with_gap(c["a"])}, False),
    "NaN in the last row": (lambda c: {"a": with_entry(c["a"], np.nan)}, False),
    "NaN in the first row": (lambda c: {"a": np.append(np.nan, c["a"][1:])}, False),
    "a missing whole number": (lambda c: {"d": with_gap(c["d"])}, False),
    "a missing value in a row of weight 0": (
        lambda c: {"a": with_gap(c["a"]), "w": with_entry(c["w"], 0.0)},
        None,
    ),
    "infinity": (lambda c: {"a": with_entry(c["a"], np.inf)}, None),
    "a target that is NaN": (lambda c: {"y": with_entry(c["y"], np.nan)}, None),
    "a constant": (lambda c: {"a": np.full(N_ROWS, 7.0)}, False),
    "a column that is constant up to the last row": (lambda c: {"a": np.append(np.zeros(LAST), 1.0)}, True),
    "a copy": (lambda c: {"a": c["c"]}, False),
    "row numbers": (lambda c: {"a": None, "id": np.arange(N_ROWS)}, False),
    "a number that often means no value": (lambda c: {"a": np.append(c["a"][:-9], np.full(9, -999.0))}, True),
    "a flag": (lambda c: {"a": c["a"] > 0}, None),
    "a category": (lambda c: {"a": np.array(["u", "v"])[(c["a"] > 0).astype(int)]}, None),
    "numbers of another size": (lambda c: {"a": with_entry(c["a"], 1e200)}, None),
    "weights": (lambda c: {"w": np.arange(N_ROWS) % 3.0}, True),
}


def found(model, source):
    """The bits of a fit and its certificate, or the words of a refusal."""
    try:
        model.fit(source)
    except ValueError as error:
        return str(error)
    bits = [getattr(model, name) for name in ("coef_", "intercept_", "components_", "mean_") if hasattr(model, name)]
    return [np.asarray(each).tobytes() for each in bits], model.column_names_, str(model.certificate_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a lasso with an entry of 1e200
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("model", MODELS)
def test_a_file_gives_the_bits_and_the_refusals_of_two_passes(rng, tmp_path, change, model, passes, monkeypatch):
    columns = numbers(rng)
    columns |= CHANGES[change][0](columns)
    table = pa.table({name: column for name, column in columns.items() if column is not None})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=777)

    def of_file():
        return found(MODELS[model](), cf.scan_parquet(tmp_path / "rows.parquet", target="y", weight="w"))

    together, n_passes = of_file(), len(passes)
    monkeypatch.setattr(along, "_MOST_COLUMNS", 0)
    assert together == of_file()
    is_taken = CHANGES[change][1]
    assert isinstance(together, str) or together == found(MODELS[model](), cf.from_arrow(table, "y", "w"))
    if is_taken is not None and model.startswith("least squares"):
        assert n_passes == (2 if is_taken else 3) and len(passes) == n_passes + 3


def test_workers_take_sums_along_too(rng, monkeypatch):
    frames = pytest.importorskip("dask.dataframe")
    table, taken, tell = pa.table(numbers(rng)), [], rows.Source.tell
    monkeypatch.setattr(rows.Source, "tell", lambda self, question, answer: taken.append(tell(self, question, answer)))
    frame = frames.from_pandas(table.to_pandas(), npartitions=3)
    together = found(cf.LinearRegression(), cf.from_dask(frame, target="y", weight="w"))
    assert taken and together == found(cf.LinearRegression(), cf.from_arrow(table, "y", "w"))


def test_what_is_told_of_rows_is_not_known_of_other_columns_blocks_or_targets(rng):
    source = cf.from_arrow(pa.table(numbers(rng)), target="y")
    told = kept_rows(source.through(TableEncoder().fit_source(source)))
    told.tell("sums", 1)
    assert told.known("sums") == 1 and told.known("others") is None
    others = [copy(told), told.reading(told.view.target), told.resized(64, 128), told.select(["a"]), told.unkept()]
    others += [told.weighted(lambda block: np.ones(block.n_rows)), told.kept(), told.narrow()]
    assert all(other.known("sums") is None for other in others)


def test_block_0_reads_no_rows_beyond_it(rng, tmp_path, monkeypatch):
    sizes, batches = [], ParquetFiles.batches

    def watched(self, columns, size):
        for batch in batches(self, columns, size):
            sizes.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(ParquetFiles, "batches", watched)
    table = pa.table(numbers(rng))
    pq.write_table(table, tmp_path / "rows.parquet")
    source = cf.scan_parquet(tmp_path / "rows.parquet", target="y")
    mapped = kept_rows(source.through(TableEncoder().fit_source(source)))
    sizes.clear()
    block = mapped.first_block()
    assert block.n_rows == 64 and sum(sizes) <= 2 * 64  # the next is read while one is used
    assert np.array_equal(block.X.toarray()[:, 0], table["a"].to_numpy()[:64])
