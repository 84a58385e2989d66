"""Dask: any partitions, any scheduler, the bits of the same rows in memory."""

from __future__ import annotations

import pickle
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tables import Numbers, bits, in_memory, table_of_numbers

from certifit.data.engines import dask_parts, from_dask
from certifit.data.engines.dask_parts import Aligned
from certifit.data.parts import PartPlan, local_parts
from certifit.data.source import Block
from certifit.runtime import n_threads

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")

TABLE = table_of_numbers()
MEMORY = in_memory(TABLE)
BITS = bits(MEMORY)
CUTS = {"unequal": [0, 1, 30_000, 30_000, 91_234, len(TABLE)], "one": [0, len(TABLE)]}


def frame(cuts: list[int]) -> Any:
    rows = TABLE.to_pandas()
    parts = [dask.delayed(rows.iloc[begin:end]) for begin, end in pairwise(cuts)]
    return dd.from_delayed(parts, meta=rows.iloc[:0])


def array(chunks: Any) -> tuple[Any, Any, Any]:
    block = MEMORY.block
    return da.from_array(block.X, chunks=(chunks, 2)), da.from_array(block.y, 1000), da.from_array(block.weight, -1)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.slow
def test_a_frame_gives_the_bits_of_the_rows_in_memory(cuts, scheduler):
    with dask.config.set(scheduler=scheduler):
        source = from_dask(frame(CUTS[cuts]), "y", "w")
        assert (source.names, source.n_rows) == (["a", "b", "c"], len(TABLE))
        assert bits(source) == bits(source) == BITS


@pytest.mark.parametrize("chunks", [(1, 50_000, 50_002), 4_096, -1])
def test_an_array_gives_the_bits_of_the_rows_in_memory(chunks):
    with dask.config.set(scheduler="threads"):
        assert bits(from_dask(*array(chunks))) == BITS


def test_chunks_of_unknown_length_are_counted():
    X, y, weight = array(30_000)
    keep = da.from_array(np.ones(len(TABLE), dtype=bool), chunks=X.chunks[0])
    y, weight = (one.rechunk(X.chunks[:1])[keep] for one in (y, weight))
    with dask.config.set(scheduler="synchronous"):
        assert bits(from_dask(X.rechunk({1: -1})[keep], y, weight)) == BITS


def test_a_cluster_of_processes_gives_the_same_bits(cluster):
    assert bits(from_dask(frame(CUTS["unequal"]), "y", "w")) == BITS
    assert bits(from_dask(*array(30_000))) == BITS


def _name_of_worker(run: Block) -> str:
    from distributed import get_worker

    return f"{type(run.X).__name__} {get_worker().name} {n_threads()}"


def test_maps_run_on_the_workers_on_one_thread(cluster):
    source = from_dask(frame(CUTS["unequal"]), "y", "w").through(Numbers())
    seen = list(source.map(_name_of_worker))
    assert all(one.startswith("Columns ") and one.endswith(" 1") for one in seen)


def _first_row_and_length(run: Block) -> tuple[int, int]:
    return run.first_row, run.n_rows


def test_runs_and_map_cut_the_same_rows():
    with dask.config.set(scheduler="synchronous"):
        source = from_dask(frame(CUTS["unequal"]), "y").resized(4096, 8192)
        local = [(run.first_row, run.n_rows) for run in source.stretches()]
        assert list(source.map(_first_row_and_length)) == local
        assert [first for first, _ in local] == list(range(0, len(TABLE), 8192))


def _failing(k: int) -> pd.DataFrame:
    if k == 2:
        raise OSError("disk of partition gone")
    return TABLE.slice(k * 10, 10).to_pandas()


def test_a_partition_that_fails_is_named():
    parts = [dask.delayed(partial(_failing, k))() for k in range(4)]
    with pytest.raises(ValueError, match=r"Partition 2 of 4 could not be computed: .*gone"):
        from_dask(dd.from_delayed(parts, meta=TABLE.slice(0, 0).to_pandas(), verify_meta=False), "y")


def test_a_bad_target_names_the_partition_and_the_row():
    rows = pd.DataFrame({"a": np.arange(10.0), "y": np.arange(10.0)})
    rows.loc[7, "y"] = np.nan
    with dask.config.set(scheduler="synchronous"):
        source = from_dask(dd.from_pandas(rows, npartitions=2), "y")
        with pytest.raises(ValueError, match=r"Partition 1 of 2 .*'y' is empty at row 2"):
            source.reduce(_first_row_and_length)


def test_partitions_of_other_types_are_named():
    parts = [dask.delayed(pd.DataFrame({"a": [1.0], "y": [1.0]})), dask.delayed(pd.DataFrame({"a": ["x"], "y": [1.0]}))]
    with pytest.raises(ValueError, match="Partition 1 has other types"):
        from_dask(dd.from_delayed(parts, meta=pd.DataFrame({"a": [1.0], "y": [1.0]}), verify_meta=False), "y")


def test_text_categories_and_gaps_come_as_one_schema():
    rows = pd.DataFrame(
        {"t": ["u", None, "v", "w"], "c": pd.Categorical(["k", "l", "k", "m"]), "n": [None, None, 1.0, 2.0], "y": 1.0}
    )
    with dask.config.set(scheduler="synchronous"):
        source = from_dask(dd.from_pandas(rows, npartitions=2), "y")
        (run,) = source.stretches()
    assert pa.types.is_dictionary(run.X.schema.field("c").type)
    assert run.X.to_pydict() == {"t": ["u", None, "v", "w"], "c": ["k", "l", "k", "m"], "n": [None, None, 1.0, 2.0]}


X2 = da.ones((6, 2), chunks=3)
REFUSED = {
    "a pandas frame": (lambda: from_dask(TABLE.to_pandas()), TypeError, "needs a Dask.*DataFrame"),
    "unknown target": (lambda: from_dask(frame([0, 5]), "Y"), ValueError, "no column 'Y'. Did you mean 'y'"),
    "y of another length": (lambda: from_dask(X2, da.ones(5)), ValueError, "y has 5 rows but X has 6"),
    "y as a table": (lambda: from_dask(X2, X2), ValueError, "y must be a Dask array"),
    "columns of an array": (lambda: from_dask(X2, columns=["a"]), ValueError, "columns= is for data frames"),
    "one dimension": (lambda: from_dask(da.ones(5)), ValueError, "2 dimensions. Got 1"),
    "no rows": (lambda: from_dask(frame([0, 0])), ValueError, "0 rows"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_in_words(case):
    make, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        make()


def received(f: Any) -> Any:
    """f as a worker gets it, where its arrays lie at odd addresses of a message."""
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(f, protocol=5, buffer_callback=buffers.append)
    odd = [memoryview(bytearray(b"?" + bytes(buffer.raw())))[1:] for buffer in buffers]
    return pickle.loads(message, buffers=odd)


def test_arrays_that_workers_receive_begin_where_numbers_may_begin():
    f = partial(np.dot, np.arange(5.0))
    assert not received(f).args[0].flags.aligned
    arrived = received(Aligned(f))
    assert arrived.args[0].flags.aligned
    assert arrived(np.ones(5)) == Aligned(f)(np.ones(5)) == 10.0


@pytest.mark.parametrize("n_threads", [1, 2, 50])
def test_parts_in_groups_are_those_of_memory(n_threads, monkeypatch):
    monkeypatch.setattr(dask_parts, "_n_threads", lambda: n_threads)
    rng = np.random.default_rng(0)
    plan = PartPlan(90, 8, "order", lambda rows: {name: rows[name][np.argsort(rows["order"])] for name in rows})
    stretches = [{"order": rng.integers(0, 2**63, 30).astype(np.uint64) * 2, "y": rng.random(30)} for _ in range(3)]
    told = []
    with dask.config.set(scheduler="synchronous"):
        tasks = [dask.delayed(rows) for rows in stretches]
        for parts in (local_parts(stretches, plan, may_spill=False), dask_parts.DaskParts.built(tasks, plan)):
            total = parts.updated_total(lambda part: ({"z": 2 * part["y"]}, np.array([part.n_rows])), ("y",))
            firsts = list(parts.update(lambda part: ({"z": part["z"] + 1}, part.first), ("z",)))
            carried = parts.fold(lambda part, before: before / 2 + part["z"].sum(), 0.0, ("z",))
            whole = parts.total(lambda part: np.array([part.n_rows]), ("y",))
            told.append((total, firsts, carried, whole, parts.gathered(lambda part: part["z"], ("z",)).tolist()))
    assert told[0] == told[1] and told[0][0] == 90 and len(told[0][1]) == 12
