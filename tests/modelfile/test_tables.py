"""Claims about the encoder in a model file: it comes back whole, and no other one is built."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from forge import edited, metadata, split
from samples import NASTY_LEVELS, TABLES, samples, table

import certifit as cf
from certifit.data.arrow import ArrowSource
from certifit.data.source import Memory
from certifit.maps import TableEncoder
from certifit.modelfile import ModelFileError
from certifit.modelfile.encoders import KINDS, plain_parameters
from certifit.modelfile.files import from_bytes, to_bytes


def fitted(name: str = "table") -> Any:
    return copy.deepcopy(samples()[name].model)


def test_levels_that_a_type_declares_come_back_and_contradictions_are_refused():
    frame = pd.DataFrame({"t": pd.Categorical(["a", "b", "b", "c"]), "x": [1.0, 2.0, 4.0, 3.0]})
    model = cf.Ridge(1.0, encoder="auto").fit(frame.iloc[:3], [1.0, 2.0, 3.5])
    again = from_bytes(to_bytes(model))
    assert again.encoder_.columns_ == model.encoder_.columns_
    assert (again.predict(frame) == model.predict(frame)).all()
    for declared in ([["x", ["c"]]], [["t", ["a"]]], [["no", ["c"]]], [["t", ["c", "c"]]]):
        with pytest.raises(ModelFileError):
            from_bytes(edited(to_bytes(model), "encoder.declared", declared))


# ---- the same encoder comes back


@pytest.mark.parametrize("name", TABLES)
def test_the_encoder_comes_back_with_its_parameters_columns_and_notes(name):
    model = samples()[name].model
    again = from_bytes(to_bytes(model))
    assert again.encoder_.columns_ == model.encoder_.columns_
    assert again.encoder_.notes_ == model.encoder_.notes_
    assert again.encoder_.groups_ == model.encoder_.groups_
    assert list(again.encoder_.feature_names_in_) == list(model.feature_names_in_)
    assert again.encoder_.survey_ is None
    for key in ("encoder", "encoder_"):
        assert plain_parameters(getattr(again, key)) == plain_parameters(getattr(model, key))


def test_the_samples_have_every_kind_of_column_but_times():
    columns = [*fitted().encoder_.columns_, *fitted("words").encoder_.columns_]
    kinds = {(kind.kind, getattr(kind, "family", None)) for kind in columns}
    assert kinds == {kind[:2] for kind in KINDS} - {("date", "time")}


def test_a_time_of_day_comes_back():
    table = pa.table({"at": pa.array([3600, 7200, None, 60_000], pa.time32("s"))})
    model = cf.LinearRegression(encoder=TableEncoder()).fit(table, [1.0, 2.0, 5.0, 3.0])
    again = from_bytes(to_bytes(model))
    assert again.column_names_ == ["at hour", "at missing"]
    assert again.predict(table).tobytes() == model.predict(table).tobytes()


@pytest.mark.parametrize("name", ["table", "table filled"])
def test_new_levels_and_new_gaps_are_read_as_before(name):
    model = samples()[name].model
    again = from_bytes(to_bytes(model))
    new = table()
    new["nasty"] = ["never seen", *new["nasty"].astype(str)[1:]]
    answers = []
    for m in (model, again):
        try:
            answers.append(m.predict(new).tobytes())
        except ValueError as error:
            answers.append(str(error))
    assert answers[0] == answers[1]
    assert isinstance(answers[0], str) == (model.encoder_.unseen == "error")


def test_the_policy_for_unseen_levels_stands_in_the_header():
    for name, policy in (("table", "error"), ("table filled", "reference")):
        assert metadata(to_bytes(fitted(name)))["encoder"]["parameters"]["unseen"] == policy


def test_nasty_levels_are_stored_faithfully_and_stay_out_of_the_header():
    data = to_bytes(fitted())
    (nasty,) = [kind for kind in from_bytes(data).encoder_.columns_ if kind.name == "nasty"]
    assert sorted(nasty.levels) == sorted(NASTY_LEVELS)
    header = data[8 : 8 + int.from_bytes(data[:8], "little")].decode("ascii")
    assert header.isprintable() and "onerror" not in header


@pytest.mark.parametrize("n_levels", [5, 1200])
def test_many_levels_do_not_fill_the_header(n_levels):
    levels = [f"{'x' * 1000}{i}" for i in range(n_levels)]
    frame = pd.DataFrame({"g": levels * 2})
    model = cf.Ridge(alpha=1, encoder=TableEncoder(max_levels=n_levels)).fit(frame, np.arange(2.0 * n_levels))
    data = to_bytes(model)
    assert int.from_bytes(data[:8], "little") < 4000
    assert from_bytes(data).encoder_.columns_ == model.encoder_.columns_


def test_a_column_named_hex_can_have_a_reference():
    frame = pd.DataFrame({"hex": list("aabbc")})
    model = cf.LinearRegression(encoder=TableEncoder(reference={"hex": "b"})).fit(frame, np.arange(5.0))
    assert from_bytes(to_bytes(model)).encoder.reference == {"hex": "b"}


@pytest.mark.parametrize("settings", [{}, {"reference": {"a": 1}, "categories": np.array(["a"]), "min_count": 2}])
def test_an_encoder_that_was_given_but_not_needed_comes_back(settings):
    X, y = samples()["ridge"].X, samples()["ridge"].y
    model = cf.Ridge(encoder=TableEncoder(**settings)).fit(Memory(X, y))
    assert model.encoder_ is None
    again = from_bytes(to_bytes(model))
    assert again.encoder_ is None
    assert plain_parameters(again.encoder) == plain_parameters(model.encoder)
    assert to_bytes(again) == to_bytes(model)


def test_a_fitted_encoder_may_be_the_parameter():
    frame, y = samples()["table"].X, samples()["table"].y
    model = cf.Ridge(encoder=TableEncoder().fit(frame)).fit(frame, y)
    assert to_bytes(from_bytes(to_bytes(model))) == to_bytes(model)


def test_numbers_stay_aligned_in_the_file():
    entries, _ = split(to_bytes(fitted()))
    starts = [entry["data_offsets"][0] for name, entry in entries.items() if name != "__metadata__"]
    assert all(start % 8 == 0 for start in starts)


# ---- verify


def test_a_table_is_verified_as_a_frame_and_as_a_scan(tmp_path):
    model, scan, *_ = samples()["table scanned"]
    cf.save(model, tmp_path / "m.certifit")
    arrow = pa.Table.from_batches(scan.open_batches())
    small = ArrowSource(lambda: arrow.to_batches(max_chunksize=7), arrow.schema, "y", "w")
    for given in (model, tmp_path / "m.certifit"):
        assert cf.verify(given, scan)
        assert cf.verify(given, small)
        assert cf.verify(given, arrow.select(["day", "rare", "x"]), arrow["y"].to_numpy(), arrow["w"].to_numpy())


def test_a_part_of_a_table_and_other_weights_are_said():
    model, scan, *_ = samples()["table scanned"]
    arrow = pa.Table.from_batches(scan.open_batches())
    part = cf.verify(model, ArrowSource(arrow.slice(0, 38).to_batches, arrow.schema, "y", "w"))
    assert part.reasons[0].endswith("38 rows, the model saw 40.")
    plain = cf.verify(model, ArrowSource(arrow.to_batches, arrow.schema, "y", columns=["x", "rare", "day"]))
    assert plain.reasons[0].endswith("the weights sum to 40, the model saw 79.")


@pytest.mark.parametrize("column", ["x", "rare", "day"])
def test_one_changed_cell_of_a_table_is_refused(column):
    model, scan, *_ = samples()["table scanned"]
    frame = pa.Table.from_batches(scan.open_batches()).to_pandas()
    frame.loc[7, column] = frame.loc[8, column]
    changed = pa.Table.from_pandas(frame, schema=scan.schema, preserve_index=False)
    assert not cf.verify(model, ArrowSource(changed.to_batches, changed.schema, "y", "w"))


# ---- what save refuses


class Derived(TableEncoder):
    pass


def test_another_class_of_encoder_is_refused_by_name():
    frame, y = samples()["table"].X, samples()["table"].y
    for data in ((frame, y), (Memory(np.eye(4), np.arange(4.0)),)):
        model = cf.Ridge(encoder=Derived()).fit(*data)
        with pytest.raises(ModelFileError, match="encoder='Derived' is no part of a model file"):
            to_bytes(model)


CHANGES: dict[str, tuple[Any, str]] = {
    "parameter dropped": (lambda m: setattr(m, "encoder", None), ""),
    "parameter changed": (lambda m: m.encoder.set_params(unseen="reference"), "are not those of its fit"),
    "policy changed": (lambda m: m.encoder_.set_params(unseen="reference"), "are not those of its fit"),
    "illegal policy": (lambda m: m.encoder_.set_params(unseen="guess"), "unseen must be one of"),
    "encoder dropped": (lambda m: setattr(m, "encoder_", None), "must be float64 of shape"),
    "column dropped": (lambda m: m.encoder_.columns_.pop(), "must be int64 of shape"),
    "columns swapped": (lambda m: m.encoder_.columns_.reverse(), "against the parameters|is not what its fit left"),
    "half a character": (lambda m: m.encoder_.notes_.append("\ud800"), "half a character"),
    "a huge note": (lambda m: m.encoder_.notes_.append("x" * 70_000), "70000 characters, and the limit is 65536"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_changed_encoder_is_refused_unless_it_comes_back_as_it_is(case):
    change, reason = CHANGES[case]
    model = fitted()
    change(model)
    if not reason:
        assert from_bytes(to_bytes(model)).encoder is None
        return
    with pytest.raises(ModelFileError, match=reason) as caught:
        to_bytes(model)
    assert str(caught.value).isprintable()
