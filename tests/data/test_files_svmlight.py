"""svmlight text: sparse rows in constant memory, every fault with its line."""

from __future__ import annotations

import gzip
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from tables import bits

import certifit as cf
from certifit.data.files import scan_svmlight
from certifit.data.formats import svmlight
from certifit.data.source import Memory

GOOD = "1 1:0.5 3:2\n-1 2:1e-3 # a comment\n\n2 3:7\n"


@pytest.fixture
def scan(tmp_path):
    def scanned(text: str, **options: Any) -> Any:
        path = tmp_path / "rows.svm"
        path.write_text(text)
        return scan_svmlight(path, **options)

    return scanned


def test_a_file_gives_its_rows(scan):
    source = scan(GOOD)
    (run,) = source.stretches()
    assert (source.n_features, source.names, source.named) == (3, ["x0", "x1", "x2"], False)
    assert np.array_equal(run.X.toarray(), [[0.5, 0, 2], [0, 1e-3, 0], [0, 0, 7]])
    assert np.array_equal(run.y, [1, -1, 2])


def test_the_first_column_may_be_0_and_there_may_be_more_than_the_file_shows(scan):
    (run,) = scan("1 0:5\n", zero_based=True, n_features=4).stretches()
    assert np.array_equal(run.X.toarray(), [[5, 0, 0, 0]])


@pytest.mark.parametrize("name", ["a9a/a9a", "w8a/w8a"])
def test_real_files_give_the_bits_of_their_rows_in_memory(shared_data, name):
    path = shared_data / f"{name}.svm.gz"
    X, y = load_svmlight_file(str(path), zero_based=False)
    source = scan_svmlight(path)
    expected = bits(Memory(sp.csr_array(X), y))
    assert bits(source) == bits(pickle.loads(pickle.dumps(source))) == expected


def test_the_size_of_the_chunks_does_not_matter(scan, monkeypatch):
    text = "".join(f"{k % 7} {k % 5 + 1}:{k}.5 9:{k}\n" for k in range(3000))
    expected = bits(scan(text))
    monkeypatch.setattr(svmlight, "_CHUNK", 100)
    assert bits(scan(text)) == expected


# name -> (text, options, the words of the error)
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no number": ("1 1:2\n1 2:x\n", {}, "line 2: a cell must be index:value. Got '2:x'"),
    "no label": ("1 1:2\nyes 2:1\n", {}, "line 2: the label must be a number. Got 'yes'"),
    "no colon": ("1 1:2\n\n1 2\n", {}, "line 3: a cell must be index:value. Got '2'"),
    "indices that fall": ("1 3:2 2:1\n", {}, "line 1: indices must increase. Got 2 after 3"),
    "an index twice": ("1 3:2 3:1\n", {}, "line 1: indices must increase. Got 3 after 3"),
    "index 0": ("1 1:2\n1 0:2\n", {}, "line 2: index 0.*zero_based=True"),
    "beyond": ("1 1:2\n1 9:2\n", {"n_features": 3}, "line 2: index 9 is beyond n_features=3"),
    "empty": ("", {}, "no rows"),
    "only comments": ("# nothing\n", {}, "no rows"),
    "no columns": ("1\n-1\n", {}, "no columns"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_error_names_the_line(scan, case):
    text, options, words = REFUSED[case]
    with pytest.raises(ValueError, match=words):
        list(scan(text, **options).stretches())


def test_the_line_is_right_far_down_a_file(scan, monkeypatch):
    monkeypatch.setattr(svmlight, "_CHUNK", 1000)
    with pytest.raises(ValueError, match="line 5001: a cell must be"):
        scan("1 1:2\n" * 5000 + "1 1:?\n")


def test_qid_is_ignored_and_noted(scan):
    source = scan("1 qid:3 1:2\n")
    assert np.array_equal(next(source.stretches()).X.toarray(), [[2]])
    assert "qid" in source.notes[0]


def test_a_cut_compressed_file_is_refused(tmp_path):
    data = gzip.compress(("1 1:2\n" * 100_000).encode())
    (tmp_path / "t.svm.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match="could not be read"):
        scan_svmlight(tmp_path / "t.svm.gz")


def test_a_target_that_is_not_finite_is_named_as_such(tmp_path):
    path = tmp_path / "data.svm"
    for label in ("nan", "inf", "-inf"):
        path.write_text(f"1 1:2\n{label} 1:3\n2 2:1\n")
        with pytest.raises(ValueError, match=rf"line 2: the label \(the target\) must be finite. Got '{label}'"):
            cf.scan_svmlight(path)


def test_a_last_line_without_an_end_is_noted(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:2\n2 2:1\n")
    assert cf.scan_svmlight(path).notes == []
    path.write_text("1 1:2\n2 2:1")
    assert "its last row may be cut" in cf.scan_svmlight(path).notes[0]


@pytest.mark.parametrize("index", ["2147483648", str(2**63), "9" * 5000])
def test_an_index_beyond_those_that_are_read_is_named(index, tmp_path):
    (tmp_path / "data.svm").write_text(f"1 1:2\n-1 1:1 {index}:1\n")
    with pytest.raises(ValueError, match=f"line 2: index {index[:20]} is larger than 2147483647"):
        cf.scan_svmlight(tmp_path / "data.svm")


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("certifit.data.formats.svmlight._LONGEST", 1 << 22)
    (tmp_path / "data.svm").write_bytes(b"1 1:2\n" + bytes(12 << 20))
    with pytest.raises(ValueError, match="has a line longer than 4,194,304 bytes"):
        cf.scan_svmlight(tmp_path / "data.svm")
