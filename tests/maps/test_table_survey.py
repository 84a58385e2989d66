"""Neither the survey nor the columns depend on how rows are cut, and both equal a plain reading."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit.data.arrow import ArrowSource
from certifit.data.source import Block
from certifit.maps.table import TableEncoder
from certifit.maps.table.moments import moments, moments_of_columns, row_keys
from certifit.maps.table.survey import Survey, refuse_lone_gaps
from certifit.runtime import core

N = 30


def cut(table: pa.Table, sizes: list[int], recode: bool = False) -> list[pa.RecordBatch]:
    """Batches of these sizes, then the rest; `recode`: every batch has its own dictionary, in another order."""
    begins = [0, *np.cumsum(sizes).tolist()]
    pieces = [table.slice(begin, end - begin) for begin, end in zip(begins, [*begins[1:], table.num_rows], strict=True)]
    if recode:
        pieces = [_recoded(piece) for piece in pieces]
    return [batch for piece in pieces for batch in piece.combine_chunks().to_batches()]


def _recoded(piece: pa.Table) -> pa.Table:
    for j, field in enumerate(piece.schema):
        if pa.types.is_string(field.type):
            texts = piece.column(j).to_pylist()
            known = list(dict.fromkeys(t for t in reversed(texts) if t is not None))
            codes = pa.array([None if t is None else known.index(t) for t in texts], pa.int32())
            piece = piece.set_column(j, field.name, pa.DictionaryArray.from_arrays(codes, pa.array(known, pa.string())))
    return piece


def source(batches: list[pa.RecordBatch]) -> ArrowSource:
    return ArrowSource(lambda: batches, batches[0].schema)


NUMBERS = st.none() | st.just(math.nan) | st.sampled_from([-999.0, -99.0, 9999.0]) | st.floats(-1e6, 1e6)
columns = st.fixed_dictionaries(
    {
        "x": st.lists(NUMBERS, min_size=N, max_size=N),
        "n": st.lists(st.none() | st.integers(-5, 5), min_size=N, max_size=N),
        "f": st.lists(st.none() | st.booleans(), min_size=N, max_size=N),
        "t": st.lists(st.none() | st.sampled_from(["a", "b", "", "ä", "long one"]), min_size=N, max_size=N),
        "d": st.lists(st.none() | st.integers(-(10**5), 10**5), min_size=N, max_size=N),
        "row": st.just([float(i) ** 2 for i in range(N)]),
    }
)
SCHEMA = pa.schema(
    [
        ("x", pa.float64()), ("n", pa.int16()), ("f", pa.bool_()), ("t", pa.string()), ("d", pa.timestamp("s")),
        ("row", pa.float64()),
    ]
)  # fmt: skip


def gaps(values: list[Any]) -> list[bool]:
    return [value is None or (isinstance(value, float) and math.isnan(value)) for value in values]


def plain_reading(name: str, values: list[Any]) -> Iterator[tuple[str, list[float]]]:
    """Names and columns of a number, a flag or a text, row by row."""
    missing = gaps(values)
    there = [value for value, gap in zip(values, missing, strict=True) if not gap]
    if isinstance(there[0] if there else None, str):
        for level in sorted(set(there))[1:]:
            yield f"{name}={level}", [float(value == level) for value in values]
    elif len(set(there)) > 1:
        mean = math.fsum(there) / len(there)
        yield name, [mean if gap else float(value) for value, gap in zip(values, missing, strict=True)]
    if any(missing):
        yield f"{name} missing", [float(gap) for gap in missing]


@settings(max_examples=60, deadline=None)
@given(columns=columns, sizes=st.lists(st.integers(0, 7), max_size=4), recode=st.booleans())
@pytest.mark.slow
def test_columns_equal_a_plain_reading_for_any_cut_and_dictionary(
    columns: dict[str, list[Any]], sizes: list[int], recode: bool
) -> None:
    table = pa.table(columns, SCHEMA)
    expected = {}
    for name in ("x", "n", "f", "t", "row"):
        own = dict(plain_reading(name, columns[name]))
        expected |= own if not all(gaps(columns[name])) else {}
    encoder = TableEncoder().fit_source(source(cut(table, sizes, recode)))
    made = {}
    for kind, names in encoder.groups_:
        if kind != "d":
            made |= {name: kind for name in names}
    repeats = [kind.name for kind in encoder.columns_ if "repeats" in getattr(kind, "reason", "")]
    expected = {name: column for name, column in expected.items() if name.split("=")[0].split(" ")[0] not in repeats}
    for kind in encoder.columns_:  # columns with the same gaps share the mark of the first
        if kind.marked_by is not None or "missing in the same rows" in getattr(kind, "reason", ""):
            expected.pop(f"{kind.name} missing", None)
        if kind.shares:
            assert all(gaps(columns[name]) == gaps(columns[kind.name]) for name in kind.shares)
            expected = {kind.mark(kind.name) if n == f"{kind.name} missing" else n: v for n, v in expected.items()}
    assert list(made) == list(expected)
    array = encoder.apply(pa.Table.from_batches(cut(table, sizes, recode))).toarray()
    names = list(encoder.get_feature_names_out())
    for name, values in expected.items():
        np.testing.assert_allclose(array[:, names.index(name)], values, rtol=1e-13, atol=1e-9)
    whole = TableEncoder().fit(table)
    assert whole.columns_ == encoder.columns_ and whole.notes_ == encoder.notes_
    assert array.tobytes() == whole.apply(table).toarray().tobytes()


def surveys_equal(a: Survey, b: Survey, exact: bool) -> None:
    for name, column in a.columns.items():
        left, right = asdict(column), asdict(b.columns[name])
        if not exact:
            for part, numbers in left["numbers"].items():
                for key in ("mean", "squares"):
                    other = right["numbers"][part].pop(key)
                    assert numbers.pop(key) == pytest.approx(other, rel=1e-12, abs=1e-9)
            if left["texts"]:
                left["texts"].pop("distinct_in_stretches"), right["texts"].pop("distinct_in_stretches")
        left.pop("type"), right.pop("type")
        assert left == right


@settings(max_examples=40, deadline=None)
@given(columns=columns, at=st.integers(1, N - 1))
@pytest.mark.slow
def test_a_survey_is_the_sum_of_the_surveys_of_its_parts(columns: dict[str, list[Any]], at: int) -> None:
    table = pa.table(columns, SCHEMA)
    parts = (Block(table.slice(0, at), None, None, 0), Block(table.slice(at), None, None, at))
    total = Survey.of(parts[0], 100) + Survey.of(parts[1], 100)
    surveys_equal(total, Survey.of(Block(table, None, None, 0), 100), exact=False)


def many_rows(rng: np.random.Generator, n: int = 20_011) -> pa.Table:
    x = rng.normal(size=(6, n)) * 10.0 ** rng.integers(-6, 6, (6, 1)) + 1e4
    x[1, rng.random(n) < 0.3] = np.nan
    texts = np.array(["UA", "AA", "DL", "B6", None], dtype=object)[rng.integers(0, 5, n)]
    columns = {f"x{j}": x[j] for j in range(6)}
    columns["x2"] = pa.array(x[2], mask=rng.random(n) < 0.1)
    columns["n"] = pa.array(rng.integers(-300, 300, n), mask=rng.random(n) < 0.5)
    columns["flag"] = pa.array(rng.random(n) < 0.2, mask=rng.random(n) < 0.01)
    columns["t"] = pa.array(texts)
    columns["when"] = pa.array(rng.integers(0, 10**9, n), pa.timestamp("s"))
    return pa.table(columns)


@pytest.mark.parametrize("recode", [False, True])
@pytest.mark.parametrize("sizes", [[], [1, 777, 3], [4096] * 4, [9999, 1, 1]])
def test_any_cut_gives_the_same_survey_and_the_same_bits(seed: int, sizes: list[int], recode: bool) -> None:
    table = many_rows(np.random.default_rng(seed))
    whole = TableEncoder().fit(table)
    other = source(cut(table, sizes, recode))
    other.block_rows //= 16  # several runs
    base = source(table.to_batches())
    base.block_rows //= 16
    encoder, again = TableEncoder().fit_source(other), TableEncoder().fit_source(base)
    surveys_equal(encoder.survey_, again.survey_, exact=True)
    surveys_equal(encoder.survey_, whole.survey_, exact=False)
    assert encoder.columns_ == again.columns_
    run = next(iter(other.stretches()))
    assert encoder.apply(run.X).toarray().tobytes() == again.apply(table.slice(0, run.n_rows)).toarray().tobytes()


def test_survey_facts_equal_numpy(rng: np.random.Generator) -> None:
    table = many_rows(rng)
    facts = TableEncoder().fit(table).survey_.to_dict()
    assert facts["n_rows"] == table.num_rows
    for name in ("x0", "x1", "x2", "n"):
        x = table[name].to_numpy().astype(float)
        x = x[~np.isnan(x)]
        own = facts["columns"][name]
        assert (own["min"], own["max"], own["missing"]) == (x.min(), x.max(), table.num_rows - len(x))
        assert own["mean"] == pytest.approx(x.mean(), rel=1e-13)
        assert own["sd"] == pytest.approx(x.std(), rel=1e-9)
    counts = Counter(text for text in table["t"].to_pylist() if text is not None)
    assert dict(facts["columns"]["t"]["levels"]) == counts
    assert facts["columns"]["n"]["distinct"] == len(set(table["n"].drop_null().to_pylist()))


def test_a_survey_keeps_no_texts_of_columns_with_many() -> None:
    secret = pa.table({"id": [f"secret{i}" for i in range(100)], "x": range(100)})
    assert "secret" not in repr(TableEncoder(max_levels=50).fit(secret).survey_)


@pytest.mark.parametrize("n_rows", [1, 63, 5000])
@pytest.mark.parametrize("twofold", [False, True])
def test_the_core_reads_the_columns_as_they_expand(seed: int, n_rows: int, twofold: bool) -> None:
    rng = np.random.default_rng(seed)
    table = many_rows(rng)
    encoder = TableEncoder().fit(table)
    for form in (table, pa.Table.from_batches(cut(table, [], recode=True))):
        columns = encoder.apply(form.slice(13, n_rows))
        dense, y = columns.toarray(), rng.normal(size=n_rows)
        scale = np.full(dense.shape[1], 0.5)
        arguments = (None, scale, np.zeros(dense.shape[1]), 1.0, 0.0, 1.0, 1024, twofold, 2)
        sums, _ = core.gram(columns.core(), y, *arguments)
        z = np.column_stack([dense * scale, np.ones(n_rows), y])
        np.testing.assert_allclose(sums, z.T @ z, rtol=1e-11, atol=1e-8)
        weights = rng.normal(size=dense.shape[1])
        scores = core.scores(columns.core(), weights, 0.25, 2)
        np.testing.assert_allclose(scores, dense @ weights + 0.25, rtol=1e-11, atol=1e-7)


def test_a_part_of_the_columns_is_the_columns_of_a_part(rng: np.random.Generator) -> None:
    table = many_rows(rng, 500)
    encoder = TableEncoder().fit(table)
    whole = encoder.apply(table)
    np.testing.assert_array_equal(whole.part(37, 411).toarray(), encoder.apply(table.slice(37, 374)).toarray())
    np.testing.assert_array_equal(whole.toarray(), encoder.transform(table).toarray())


def test_a_source_through_the_encoder_gives_all_rows(rng: np.random.Generator) -> None:
    table = many_rows(rng)
    encoder = TableEncoder().fit(table)
    mapped = source(cut(table, [777, 4])).through(encoder)
    assert mapped.names == list(encoder.get_feature_names_out())
    rows = np.concatenate([run.X.toarray() for run in mapped.stretches()])
    np.testing.assert_array_equal(rows, encoder.apply(table).toarray())


@pytest.mark.parametrize("n_rows", [1, 2, 65, 1000])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_columns_surveyed_together_have_the_bits_of_one_by_one(n_rows, is_weighted):
    draw = np.random.default_rng(n_rows)
    X = np.stack(
        [
            draw.standard_normal(n_rows),
            np.arange(n_rows) * 1.0,
            draw.integers(0, 3, n_rows) * 1.0,
            np.full(n_rows, 2.5),
            draw.standard_normal(n_rows) * 1e200,
            np.where(np.arange(n_rows) % 7, 0.0, -0.0),
        ]
    )
    keys, weight = row_keys(np.arange(n_rows)), draw.random(n_rows) + 0.1 if is_weighted else None
    assert moments_of_columns(X, keys, weight) == [moments(x, None, keys, weight) for x in X]


def test_neighbouring_numbers_are_read_together_as_one_by_one(monkeypatch):
    draw = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{j}": draw.standard_normal(20) for j in range(5)}
    columns |= {"whole": np.arange(20), "kind": ["a", "b"] * 10, "gaps": [None, *range(19)]}
    columns |= {f"z{j}": draw.integers(0, 9, 20) for j in range(5)} | {"small": draw.random(20).astype(np.float32)}
    table = pa.table(columns)
    encoder = TableEncoder().fit(table)
    together = encoder.apply(table)
    monkeypatch.setattr("certifit.maps.table.reading._TOGETHER", 1000)
    one_by_one = encoder.apply(table)
    assert len(together.segments) < len(one_by_one.segments)
    np.testing.assert_array_equal(together.toarray(), one_by_one.toarray())


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
def test_numbers_read_together_say_what_is_wrong(value):
    table = pa.table({f"x{j}": np.random.default_rng(j).standard_normal(9) for j in range(6)})
    encoder = TableEncoder().fit(table)
    broken = table.set_column(3, "x3", pa.array([1.0] * 4 + [value] + [2.0] * 4, pa.float64()))
    with pytest.raises(ValueError, match=r"Column 'x3' is .* at row 4"):
        encoder.apply(broken)


def test_lone_gaps_are_looked_for_in_time_linear_in_the_columns():
    """Of 12 rows of 20,000 columns with the same gaps 400 million bound methods were made."""
    gaps: list[float | None] = [1.0, None, 2.0, 4.0, None, 7.0]
    table = pa.table({f"x{j}": [None if x is None else x**j for x in gaps] for j in range(1, 31)})
    kinds = [Counting(kind) for kind in TableEncoder().fit_source(source(table.to_batches())).columns_]
    refuse_lone_gaps(kinds, table)  # type: ignore[arg-type]
    assert sum(kind.n_asked for kind in kinds) == len(kinds) == 30


class Counting:
    """A kind that counts how often it is asked which of its cells are present."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.n_asked = kind, 0

    def __getattr__(self, name: str) -> Any:
        self.n_asked += name == "present"
        return getattr(self.kind, name)
