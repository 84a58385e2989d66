"""The 25 attacks that a model file must withstand, and the tests that make them.

ATTACKS is the table: number -> what is tried, and where. A file of tests is named from the folder `tests`. The attacks
that no other file makes are below it.
"""

from __future__ import annotations

import ast
import gzip
import os
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from forge import dumps, frame, hexed, metadata, refuse, seal, split, with_text
from samples import NASTY_NAMES, samples

import certifit as cf
from certifit.modelfile import ModelFileError, container, inspect
from certifit.modelfile.files import from_bytes, to_bytes

TESTS = Path(__file__).parents[1]
OWN, WHOLE, SPARSE = "modelfile/test_attacks.py", "modelfile/test_modelfile.py", "modelfile/test_sparse_files.py"
BOX, DISK, TEXT = "modelfile/test_container.py", "modelfile/test_disk.py", "modelfile/test_canonical.py"
TABLE, VERIFY = "modelfile/test_table_attacks.py", "modelfile/test_verify.py"
CLASSED, WORDS, PARTS = (f"modelfile/test_{kind}_files.py" for kind in ("class", "word", "component"))
SCORED, TREES = "modelfile/test_score_attacks.py", "modelfile/test_tree_files.py"
EDITED = "test_illegal_content_under_right_digests_is_refused"

ATTACKS: dict[int, tuple[str, dict[str, str]]] = {
    1: (
        "pickle, joblib or zip bytes under our extension",
        {BOX: "test_other_formats_are_named_and_refused", OWN: "test_joblib_and_npz_bytes_run_nothing"},
    ),
    2: (
        "code by a class name, an import path, a parameter, a function",
        {WHOLE: "test_a_hostile_file_runs_no_code", OWN: "test_no_text_of_a_file_reaches_an_import"},
    ),
    3: (
        "header length 0, 2**63, beyond the file, 99 MB",
        {BOX: "test_an_impossible_header_size_is_refused"},
    ),
    4: (
        "nested JSON, duplicate keys, NaN, huge integers, invalid UTF-8, byte order mark, NUL",
        {BOX: "test_a_malformed_header_is_refused", TEXT: "test_everything_else_is_refused"},
    ),
    5: (
        "300,000 arrays; arrays of no size that share offsets",
        {BOX: "test_many_arrays_of_no_size_are_refused", OWN: "test_a_header_of_300_000_arrays_is_refused_unread"},
    ),
    6: (
        "shapes that overflow, negative, without or with too many dimensions",
        {BOX: "test_a_malformed_array_under_right_digests_is_refused"},
    ),
    7: (
        "offsets that overlap, leave a gap, trail, run backwards",
        {BOX: "test_a_malformed_array_under_right_digests_is_refused", OWN: "test_bytes_that_no_array_has_are_refused"},
    ),
    8: (
        "a file cut at every byte",
        {
            WHOLE: "test_a_file_cut_at_any_byte_is_refused",
            TABLE: "test_a_table_model_that_is_cut_is_refused",
            SPARSE: "test_a_file_cut_anywhere_and_a_flip_of_any_bit_of_its_numbers_are_refused",
            CLASSED: "test_a_file_that_is_cut_and_a_flip_of_a_bit_are_refused",
        },
    ),
    9: (
        "every single bit flipped",
        {WHOLE: "test_a_flip_of_any_bit_is_refused", TABLE: "test_a_flip_of_a_bit_of_a_table_model_is_refused"},
    ),
    10: (
        "another dtype, big-endian, objects",
        {BOX: "test_a_malformed_array_under_right_digests_is_refused"},
    ),
    11: (
        "NaN and infinity as numbers",
        {
            WHOLE: "test_a_number_that_is_not_finite_is_refused",
            SPARSE: "test_illegal_numbers_under_right_digests_are_refused",
            CLASSED: "test_no_warning_comes_out_of_a_forged_file",
            PARTS: "test_illegal_numbers_under_right_digests_are_refused",
            SCORED: "test_illegal_numbers_under_right_digests_are_refused",
        },
    ),
    12: (
        "counts of features, names, columns that contradict each other",
        {
            **dict.fromkeys((WHOLE, SPARSE, CLASSED, PARTS, SCORED), EDITED),
            TABLE: "test_a_table_needs_names_each_its_own",
            WORDS: "test_terms_that_do_not_fill_their_bytes_are_refused",
        },
    ),
    13: (
        "tree cycles, children out of range, depth 10**6",
        {TREES: "test_nodes_that_are_no_tree_are_refused"},
    ),
    14: (
        "indices out of range: those of an encoder, of columns left out and of rows that are told are all there are",
        {
            SCORED: "test_row_numbers_of_a_perceptron_reach_no_memory",
            TABLE: "test_an_illegal_column_under_right_digests_is_refused",
            WORDS: "test_an_illegal_column_of_text_is_refused",
            CLASSED: "test_illegal_numbers_under_right_digests_are_refused",
            OWN: "test_whole_numbers_that_point_somewhere_have_attacks_of_their_own",
            TREES: "test_nodes_that_are_no_tree_are_refused",
        },
    ),
    15: (
        "decompression bombs: nothing is decompressed",
        {
            OWN: "test_a_compressed_bomb_is_refused_in_its_own_size",
            BOX: "test_reading_takes_no_more_than_twice_the_file",
            WORDS: "test_hashing_into_more_columns_than_the_file_has_numbers_is_refused_at_once",
        },
    ),
    16: (
        "paths in names, external data, link, pipe, device as the file",
        {
            BOX: "test_an_illegal_array_name_is_refused_by_reader_and_writer",
            DISK: "test_only_a_regular_file_is_read",
            OWN: "test_a_feature_named_like_a_path_opens_nothing",
        },
    ),
    17: (
        "the numbers of one model under the metadata of another",
        {
            WHOLE: "test_the_payload_of_another_model_is_refused",
            VERIFY: "test_the_numbers_of_another_model_under_right_digests_are_refused",
        },
    ),
    18: ("an older or unknown format", {WHOLE: EDITED, OWN: "test_only_the_format_of_this_version_is_read"}),
    19: (
        "parameters out of range",
        {
            **dict.fromkeys((WHOLE, SPARSE, CLASSED, PARTS, SCORED), EDITED),
            WORDS: "test_illegal_parameters_under_right_digests_are_refused",
        },
    ),
    20: (
        "HTML, formulas, terminal codes in names and levels",
        {
            OWN: "test_no_control_character_of_a_file_reaches_the_terminal",
            VERIFY: "test_reasons_hold_no_control_characters",
            "cli/test_cli_fit.py": "test_hostile_names_are_harmless_on_the_terminal_and_in_every_file",
            "report/test_report_tables.py": "test_hostile_names_and_levels_are_harmless",
            "report/test_report_text.py": "test_no_name_is_a_formula_for_a_spreadsheet",
        },
    ),
    21: (
        "the file replaced between check and use",
        {
            DISK: "test_a_file_replaced_after_it_was_opened_is_read_as_it_was",
            OWN: "test_a_file_is_opened_once",
        },
    ),
    22: (
        "full disk, kill -9, a folder that cannot be written",
        {
            DISK: "test_a_process_killed_while_it_saves_keeps_the_old_file",
            OWN: "test_a_folder_that_cannot_be_written_is_an_error",
        },
    ),
    23: ("a reader beside a writer", {DISK: "test_a_reader_beside_a_writer_sees_the_old_or_the_new_file"}),
    24: (
        "an upload too large, a zip, a path from outside: load takes a limit, and a zip is no model",
        {DISK: "test_a_file_over_the_limit_is_not_read", OWN: "test_load_and_inspect_read_no_more_than_they_may"},
    ),
    25: (
        "a certificate edited by hand",
        {
            VERIFY: "test_a_smaller_excess_claimed_than_there_is_is_refused",
            OWN: "test_an_edited_certificate_is_marked_unverified_and_refused_on_the_data",
            CLASSED: "test_an_edited_certificate_does_not_hide_a_moved_number",
            SCORED: "test_an_edited_certificate_does_not_hide_a_moved_weight",
        },
    ),
}


def fitted(name: str = "ridge") -> Any:
    return samples()[name].model


def names_in(file: str) -> set[str]:
    tree = ast.parse((TESTS / file).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_attack_has_a_test_and_every_test_named_exists():
    assert list(ATTACKS) == list(range(1, 26))
    for number, (_, places) in ATTACKS.items():
        for file, name in places.items():
            assert name in names_in(file), f"attack {number}: {file} has no {name}"


def test_every_test_of_this_file_is_an_attack():
    named = {places[OWN] for _, places in ATTACKS.values() if OWN in places}
    about_the_table = {name for name in names_in(OWN) if name.startswith("test_every_")}
    assert names_in(OWN) == named | about_the_table


class Payload:
    """Runs code when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_joblib_and_npz_bytes_run_nothing(tmp_path):
    path, mark = tmp_path / "m.certifit", tmp_path / "ran"
    for compress in (0, ("zlib", 3), ("gzip", 3)):
        joblib.dump(Payload(mark), path, compress=compress)
        with pytest.raises(ModelFileError, match="is not a sound model file"):
            cf.load(path)
    with open(path, "wb") as file:
        np.savez(file, coef=np.array([Payload(mark)], dtype=object))
    with pytest.raises(ModelFileError, match="a zip archive"):
        cf.load(path)
    assert not mark.exists()
    joblib.load(_dumped(tmp_path, mark))
    assert mark.exists()  # the bait does bite


def _dumped(folder: Path, mark: Path) -> Path:
    joblib.dump(Payload(mark), folder / "bait")
    return folder / "bait"


def test_no_text_of_a_file_reaches_an_import(monkeypatch):
    data = to_bytes(fitted())
    from_bytes(data)  # what a sound file imports is here now
    monkeypatch.setattr("builtins.__import__", _refuse_import(__import__))
    for name in (
        "os.system",
        "subprocess",
        "certifit.models.least_squares.model",
        "builtins.eval",
        "antigravity",
        "Ridge",
    ):
        tree = metadata(data) | {"estimator": name}
        refuse(with_text(data, dumps(tree)), "it holds the estimator")


def _refuse_import(real: Any) -> Any:
    def importing(name: str, *rest: Any) -> Any:
        assert name in sys.modules or name.startswith("certifit"), f"the reader imports {name}"
        return real(name, *rest)

    return importing


def test_a_header_of_300_000_arrays_is_refused_unread():
    entry = '"zz%06d":{"data_offsets":[0,0],"dtype":"F64","shape":[0]}'
    header = ("{" + ",".join(entry % i for i in range(300_000)) + "}").encode()
    tracemalloc.start()
    refuse(frame(header, b""), "announces a header")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(header)  # the file itself twice, no table of it


def test_bytes_that_no_array_has_are_refused():
    table, payload = split(to_bytes(fitted()))
    refuse(seal(table, payload + bytes(8)), "follow the header")
    refuse(seal(table, payload[:-8]), "follow the header|must take bytes")


def test_whole_numbers_that_point_somewhere_have_attacks_of_their_own():
    # A model with indices in its state needs its own tests of attacks 13 and 14 before they stand here.
    texts = {"text_ends", "text_ends.classes", "text_ends.terms"}
    counts = {"classes", "counts.rows", "sums.rows", "encoder.documents", "history.iterations", "mistakes"}
    counts |= {
        "forest.ends",
        "forest.feature",
        "forest.left",
        "tree.feature",
        "tree.left",
        "stumps.feature",
        "stumps.left",
        "stumps.right",
    }  # see test_tree_files.py
    counts |= {"directions", "trees.ends", "trees.feature", "trees.left"}  # see test_boosting_files.py
    counts |= {"child_ends"}  # see test_nested_files.py
    counts |= {"n_support", "state.support"}  # see test_margin_files.py
    counts |= {"layer_sizes"}  # see test_network_files.py
    told = {"order", "proof.rows"}  # of a perceptron: see test_row_numbers_of_a_perceptron_reach_no_memory
    for name, sample in samples().items():
        table, _ = split(to_bytes(sample.model))
        integers = {key.removeprefix("shared.") for key, entry in table.items() if entry.get("dtype") == "I64"}
        assert integers <= {"encoder.columns", "state.redundant"} | texts | counts | told, name


def test_a_compressed_bomb_is_refused_in_its_own_size():
    bomb = gzip.compress(bytes(64 * 1024**2), 9)
    tracemalloc.start()
    refuse(bomb, "gzip")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1024**2


def test_a_feature_named_like_a_path_opens_nothing(tmp_path, monkeypatch):
    data = to_bytes(fitted("named"))
    assert "../../x" in NASTY_NAMES
    (tmp_path / "m.certifit").write_bytes(data)
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *rest: opened.append(str(path)) or real(path, *rest))
    assert "../../x" in cf.load(tmp_path / "m.certifit").feature_names_in_
    assert opened == [str(tmp_path / "m.certifit")]


@pytest.mark.parametrize("version", [-1, 0, 2, 3, 2**31, 2**63 - 1, None, "1", True, hexed(1.0)])
def test_only_the_format_of_this_version_is_read(version):
    data = to_bytes(fitted())
    refuse(with_text(data, dumps(metadata(data) | {"format": version})), "format")


def test_no_control_character_of_a_file_reaches_the_terminal(tmp_path):
    from click.testing import CliRunner

    from certifit.cli import main

    for name in (
        "named",
        "table",
        "elastic net by name",
        "shared",
        "diagonal",
        "gaussian naive",
        "words",
        "components mle",
        "logistic",
        "logistic drawn",
        "softmax",
        "gamma",
        "poisson exposed",
        "perceptron",
    ):
        cf.save(fitted(name), tmp_path / "m.certifit")
        result = CliRunner().invoke(main, ["inspect", str(tmp_path / "m.certifit")])
        assert result.exit_code == 0, result.output
        assert result.output.replace("\n", "").isprintable()


def test_a_file_is_opened_once(tmp_path, monkeypatch):
    path = tmp_path / "m.certifit"
    cf.save(fitted(), path)
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *given: opened.append(given[0]) or real(*given))
    for reader in (cf.load, inspect):
        opened.clear()
        reader(path)
        assert len(opened) == 1


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder that even the administrator cannot write")
def test_a_folder_that_cannot_be_written_is_an_error():
    with pytest.raises(ModelFileError, match=r"could not be saved: .* A file that was there before is unchanged"):
        cf.save(fitted(), "/proc/self/m.certifit")


def test_load_and_inspect_read_no_more_than_they_may(tmp_path):
    path = tmp_path / "m.certifit"
    cf.save(fitted(), path)
    size = path.stat().st_size
    for reader in (cf.load, inspect):
        reader(path, max_bytes=size)
        with pytest.raises(ModelFileError, match=f"the limit is {size - 1}"):
            reader(path, max_bytes=size - 1)
    assert container.MAX_HEADER <= 1024**2 and container.MAX_ARRAYS <= 4096


@pytest.mark.parametrize("name", ["ridge", "lasso", "elastic net", "huber", "huber fixed"])
def test_an_edited_certificate_is_marked_unverified_and_refused_on_the_data(name, tmp_path):
    model, *rows = samples()[name]
    data = to_bytes(model)
    tree = metadata(data)
    tree["certificate"]["value"] = tree["certificate"]["rounding"] = hexed(0.0)
    tree["solution"]["intercept"] = hexed(model.intercept_ * (1 + 1e-4))
    path = tmp_path / "m.certifit"
    path.write_bytes(with_text(data, dumps(tree)))
    said = inspect(path).certificate
    assert said["holds"] and said["value"] == 0 and said["is_verified"] is False
    result = cf.verify(path, *rows)
    assert not result and "0.0e+00 was claimed" in str(result)
