"""Texts in files, on workers and in pipelines: the terms and columns of the same texts in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.naive_bayes import BernoulliNB
from sklearn.pipeline import make_pipeline

import certifit as cf
from tests.maps.test_text import same


@pytest.fixture
def table(rng: np.random.Generator, tmp_path: Path) -> pa.Table:
    words = np.array(["free", "cash", "Ünï", "der Zug", "日本語", "x"], dtype=object)
    texts = [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(3000)]
    table = pa.table({"label": rng.integers(0, 2, 3000).astype(float), "text": texts, "other": np.arange(3000.0)})
    pa.csv.write_csv(table, tmp_path / "texts.csv")
    pa.parquet.write_table(table, tmp_path / "texts.parquet", row_group_size=700)
    return table


@pytest.mark.parametrize("settings", [{}, {"min_df": 3, "max_features": 5, "ngram_range": (1, 2)}, {"n_hash": 16}])
@pytest.mark.parametrize("size", [None, 1, 7, 1024])
@pytest.mark.slow
def test_a_scan_gives_the_columns_of_its_texts_in_memory(table, tmp_path, settings, size):
    sources = [
        cf.scan_csv(tmp_path / "texts.csv", target="label", columns=["text"]),
        cf.scan_parquet(tmp_path / "texts.parquet", target="label", columns=["text"]),
        cf.from_arrow(pa.Table.from_batches(table.to_batches(max_chunksize=11)), target="label"),
    ]
    settings = {**settings, "missing": "empty"}  # a CSV has no empty text
    memory = cf.TextBinarizer(**settings).fit(table["text"])
    expected = memory.transform(table["text"])
    for source in sources:
        cut = source if size is None else source.resized(size, size)
        own = cf.TextBinarizer(**settings).fit_source(cut, "text")
        assert list(own.get_feature_names_out()) == list(memory.get_feature_names_out())
        assert own.n_texts_ == 3000
        if size != 1:
            block = source.through(own).gather()
            assert same(block.X, expected)
            np.testing.assert_array_equal(block.y, table["label"])


def test_a_scan_names_the_line_of_a_gap(tmp_path):
    path = tmp_path / "gap.csv"
    path.write_text("text,y\n" + "free cash,1\n" * 4 + ",0\n" + "free,1\n" * 3)
    with pytest.raises(ValueError, match="line 6 of"):
        cf.TextBinarizer().fit_source(cf.scan_csv(path, target="y"))
    source = cf.from_arrow(pa.table({"text": ["ab", "cd", None], "y": [1.0, 2.0, 3.0]}), target="y")
    mapped = cf.from_arrow(pa.table({"text": ["ab"]})).names
    assert mapped == ["text"]
    own = cf.TextBinarizer().fit(["ab"])
    with pytest.raises(ValueError, match="missing at row 2"):
        source.through(own).gather()


def test_workers_find_the_same_terms(table):
    dask = pytest.importorskip("dask.dataframe")
    frame = table.to_pandas()
    source = cf.from_dask(dask.from_pandas(frame, npartitions=5), target="label")
    own = cf.TextBinarizer(ngram_range=(1, 2), min_df=2).fit_source(source, "text")
    memory = cf.TextBinarizer(ngram_range=(1, 2), min_df=2).fit(frame["text"])
    assert own.vocabulary_ == memory.vocabulary_
    assert own.document_counts_.tolist() == memory.document_counts_.tolist()


def test_in_a_pipeline_of_scikit_learn(table):
    frame, y = table.to_pandas(), table["label"].to_numpy()
    union = ColumnTransformer(
        [("words", cf.TextBinarizer(), "text"), ("rest", "passthrough", ["other"])], sparse_threshold=1.0
    )
    X = union.fit_transform(frame)
    assert list(union.get_feature_names_out())[:2] == ["words__cash", "words__der"]
    np.testing.assert_array_equal(X.toarray()[:, -1], frame["other"])
    model = make_pipeline(cf.TextBinarizer(), BernoulliNB()).fit(frame["text"], y)
    assert model.predict(frame["text"]).shape == y.shape


def test_rows_of_weight_zero_are_no_rows():
    rows = pa.table({"text": ["ab", None, "cd", "ab ef"], "w": [1.0, 0.0, 0.0, 2.0]})
    own = cf.TextBinarizer().fit_source(cf.from_arrow(rows, weight="w"))
    assert own.vocabulary_ == {"ab": 0, "ef": 1}
    assert own.n_texts_ == 2


def test_the_column_of_a_scan_must_be_there():
    source = cf.from_arrow(pa.table({"text": ["ab"], "more": ["cd"]}))
    with pytest.raises(ValueError, match="column must name the texts"):
        cf.TextBinarizer().fit_source(source)
    with pytest.raises(ValueError, match="column must be one of"):
        cf.TextBinarizer().fit_source(source, "txt")
    own = cf.TextBinarizer().fit_source(source, "text")
    with pytest.raises(ValueError, match="Columns missing"):
        own.apply(pa.table({"other": ["ab"], "more": ["cd"]}))
