"""Free text in a table: recognised, counted in one more pass, given to models as sparse columns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.data.columns import Csr

SOME = "free cash now call win prize see you later home dinner ok love train ünï 日本"
WORDS = np.array(SOME.split(), dtype=object)


@pytest.fixture
def table(rng: np.random.Generator) -> pa.Table:
    """A text with gaps, a category, a number and a target that depends on two words."""
    n_rows = 2500
    texts = [" ".join(rng.choice(WORDS, 5 + rng.integers(0, 9))) for _ in range(n_rows)]
    carrier = rng.choice(["UA", "AA", "DL"], n_rows)
    x = rng.normal(size=n_rows)
    y = x + 2.0 * np.array(["free" in text for text in texts]) - np.array(["home" in text for text in texts])
    texts = [None if i % 97 == 5 else text for i, text in enumerate(texts)]  # type: ignore[misc]
    return pa.table({"x": x, "message": texts, "carrier": carrier, "y": y + 0.1 * rng.normal(size=n_rows)})


def test_without_the_parameter_free_text_is_set_aside(table):
    encoder = cf.TableEncoder().fit(table.drop_columns("y"))
    assert [kind.kind for kind in encoder.columns_] == ["number", "set aside", "level"]


def test_a_column_of_texts_becomes_its_terms_and_a_mark_of_its_gaps(table):
    encoder = cf.TableEncoder(texts=cf.TextBinarizer(min_df=2)).fit(table.drop_columns("y"))
    assert [kind.kind for kind in encoder.columns_] == ["number", "text", "level"]
    names = list(encoder.get_feature_names_out())
    words = cf.TextBinarizer(min_df=2, missing="empty").fit(table["message"])
    made = [f"message: {word}" for word in words.get_feature_names_out()]
    assert names == ["x", *made, "message missing", "carrier=DL", "carrier=UA"]
    matrix = encoder.transform(table.drop_columns("y"))
    expected = words.transform(table["message"]).toarray()
    np.testing.assert_array_equal(matrix[:, 1 : 1 + len(made)].toarray(), expected)
    gaps = table["message"].is_null().to_numpy()
    np.testing.assert_array_equal(matrix[:, [names.index("message missing")]].toarray().ravel(), gaps)
    assert any("'message' is free text: 16 columns" in note for note in encoder.notes_)
    assert any("missing in 26 of 2,500 rows: texts without words" in note for note in encoder.notes_)
    np.testing.assert_array_equal(
        cf.TableEncoder(texts=cf.TextBinarizer(min_df=2), sparse_output=False).fit_transform(table.drop_columns("y")),
        matrix.toarray(),
    )


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_every_storage_of_the_texts_gives_the_same_columns(table, kind):
    X = table.drop_columns("y")
    other = X.set_column(
        1, "message", X["message"].cast(kind) if "dict" not in str(kind) else X["message"].dictionary_encode()
    )
    first = cf.TableEncoder(texts=cf.TextBinarizer()).fit(X)
    second = cf.TableEncoder(texts=cf.TextBinarizer()).fit(other)
    assert list(first.get_feature_names_out()) == list(second.get_feature_names_out())
    assert (first.transform(X) != second.transform(other)).nnz == 0
    assert (first.transform(X) != first.transform(other)).nnz == 0


def test_a_model_of_a_csv_with_texts_is_that_of_the_matrix(table, tmp_path):
    pa.csv.write_csv(table, tmp_path / "a.csv")
    encoder = cf.TableEncoder(texts=cf.TextBinarizer())
    model = cf.Ridge(alpha=1e-6, encoder=encoder).fit(cf.scan_csv(tmp_path / "a.csv", target="y"))
    X = encoder.fit(table.drop_columns("y")).transform(table.drop_columns("y"))
    plain = cf.Ridge(alpha=1e-6).fit(X, table["y"].to_numpy())
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9, atol=1e-9)
    weight = dict(zip(encoder.get_feature_names_out(), model.coef_, strict=True))
    assert weight["message: free"] == pytest.approx(2, abs=0.1)
    assert weight["message: home"] == pytest.approx(-1, abs=0.1)
    assert model.score(table.drop_columns("y"), table["y"].to_numpy()) > 0.95


@pytest.mark.parametrize("size", [1024, 2048])
def test_files_and_memory_give_the_same_bits(table, tmp_path, size):
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=size)
    model = cf.Ridge(encoder=cf.TableEncoder(texts=cf.TextBinarizer(ngram_range=(1, 2), min_df=20)))
    first = clone(model).fit(cf.from_arrow(table, target="y")).coef_
    second = clone(model).fit(cf.scan_parquet(tmp_path / "a.parquet", target="y")).coef_
    np.testing.assert_array_equal(first, second)
    encoder = clone(model.encoder).fit(table.drop_columns("y"))
    assert len(first) > 200  # enough that the core reads them entry by entry
    plain = cf.Ridge().fit(encoder.transform(table.drop_columns("y")), table["y"].to_numpy())
    np.testing.assert_allclose(first, plain.coef_, rtol=1e-9, atol=1e-9)


def test_a_gap_that_the_fit_did_not_see_is_refused_or_has_no_words(table):
    whole = table.drop_columns("y").filter(table["message"].is_valid())
    gap = table.drop_columns("y").slice(5, 1)
    with pytest.raises(ValueError, match=r"'message' is missing at row 0.*a text without words"):
        cf.TableEncoder(texts=cf.TextBinarizer()).fit(whole).transform(gap)
    encoder = cf.TableEncoder(texts=cf.TextBinarizer(), unseen="reference").fit(whole)
    names = encoder.get_feature_names_out()
    row = dict(zip(names, encoder.transform(gap).toarray()[0], strict=True))
    assert not any(value for name, value in row.items() if name.startswith("message"))


def test_what_is_prose_is_recognised(rng):
    n_rows = 400
    table = pa.table(
        {
            "city": rng.choice(["New York", "Los Angeles", "San José"], n_rows),
            "code": [f"id{i}" for i in range(n_rows)],
            "title": [f"{' '.join(rng.choice(WORDS, 3))} {i}" for i in range(n_rows)],
            "story": rng.choice([" ".join(rng.choice(WORDS, 14)) for _ in range(60)], n_rows),
        }
    )
    kinds = {kind.name: kind.kind for kind in cf.TableEncoder(texts=cf.TextBinarizer()).fit(table).columns_}
    assert kinds == {"city": "level", "code": "set aside", "title": "text", "story": "text"}


def test_texts_without_terms_are_set_aside(table):
    encoder = cf.TableEncoder(texts=cf.TextBinarizer(min_df=1.0)).fit(table.drop_columns("y"))
    assert [kind.kind for kind in encoder.columns_] == ["number", "set aside", "level"]
    assert any("'message' was set aside: Empty vocabulary" in note for note in encoder.notes_)


@pytest.mark.parametrize("words", [cf.TextBinarizer(stop_words={"free", "cash"}), cf.TextBinarizer(n_hash=8)])
def test_a_state_maps_alike(table, words):
    X = table.drop_columns("y")
    encoder = cf.TableEncoder(texts=words).fit(X)
    state, arrays = encoder.to_state()
    other = cf.TableEncoder.from_state(json.loads(json.dumps(state)), arrays)
    assert (other.transform(X) != encoder.transform(X)).nnz == 0
    assert list(other.get_feature_names_out()) == list(encoder.get_feature_names_out())
    assert other.get_params()["texts"].get_params()["n_hash"] == words.n_hash


def test_folds_refill_only_numbers(table):
    X = table.drop_columns("y")
    encoder = cf.TableEncoder(texts=cf.TextBinarizer()).fit(X)
    opened, gaps, kept = encoder.opened()
    assert gaps == []
    assert len(kept) == len(opened.get_feature_names_out())
    assert (encoder.refilled([]).transform(X) != encoder.transform(X)).nnz == 0


def test_the_segment_of_words_can_be_cut_and_picked(table):
    columns = cf.TableEncoder(texts=cf.TextBinarizer()).fit(table.drop_columns("y")).apply(table)
    assert sum(isinstance(segment, Csr) for segment in columns.segments) == 1
    whole = columns.toarray()
    np.testing.assert_array_equal(columns.part(3, 50).toarray(), whole[3:50])
    rows = np.arange(len(whole)) % 3 == 1
    np.testing.assert_array_equal(columns.taken(rows).toarray(), whole[rows])


def test_only_a_text_binarizer_is_taken(table):
    with pytest.raises(TypeError, match="texts must be None or TextBinarizer"):
        cf.TableEncoder(texts="words").fit(table)


def test_a_model_file_holds_words(table, tmp_path: Path):
    scan = cf.from_arrow(table, target="y")
    model = cf.Ridge(encoder=cf.TableEncoder(texts=cf.TextBinarizer())).fit(scan)
    cf.save(model, tmp_path / "a.model")
    assert cf.load(tmp_path / "a.model").predict(scan).tobytes() == model.predict(scan).tobytes()


def test_kinds_are_those_of_a_fit(table):
    source = ArrowSource(table.to_batches, table.schema, "y", n_rows=table.num_rows)
    for words, kind in ((cf.TextBinarizer(), "text"), (None, "set aside")):
        encoder = cf.TableEncoder(texts=words)
        assert encoder.kinds(source) == {"x": "number", "message": kind, "carrier": "level"}
        assert {one.name: one.kind for one in encoder.fit_source(source).columns_} == encoder.kinds(source)
