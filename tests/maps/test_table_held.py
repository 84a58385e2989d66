"""Rows that hold the value which the name of an encoded column tells."""

import numpy as np
import pyarrow as pa

import certifit as cf
from certifit.maps.table.survey import reference_rows, rows_held, told_names

CITY = ["East"] * 9 + ["Aare"] * 2 + ["West"] * 6 + [None] * 3


def test_levels_are_counted_and_numbers_and_gaps_tell_no_value():
    encoder = cf.TableEncoder().fit(pa.table({"x": [1.5, None, 2.5, 3.5] * 5, "city": CITY}))
    assert list(encoder.get_feature_names_out()) == ["x", "x missing", "city=East", "city=West", "city missing"]
    assert rows_held(encoder).tolist() == [np.inf, np.inf, 9, 6, np.inf]
    assert reference_rows(encoder.columns_[1], encoder.survey_.columns["city"]) == 2


def test_rare_levels_that_are_grouped_count_together():
    encoder = cf.TableEncoder(min_count=7, reference={"city": "East"}).fit(pa.table({"city": CITY}))
    assert list(encoder.get_feature_names_out()) == ["city=other", "city missing"]
    assert rows_held(encoder).tolist() == [8, np.inf]


def test_rows_are_counted_not_weights():
    table = pa.table(
        {"city": ["East"] * 9 + ["Aare", "West", "West"], "w": [1.0] * 9 + [50.0, 50.0, 0.0], "y": range(12)}
    )
    source = cf.from_arrow(table, target="y", weight="w")
    encoder = cf.TableEncoder(reference={"city": "East"}).fit_source(source)
    assert rows_held(encoder).tolist() == [1, 1]
    secrets, public = told_names(encoder)
    assert secrets == dict.fromkeys(["city=Aare", "city=West"], "city=(not shown)") and public == []


def test_words_are_counted_by_texts_and_a_loaded_encoder_knows_no_rows_of_levels():
    texts = [f"the same words again and again, number w{k}" for k in range(30)]
    table = pa.table({"city": ["East", "West"] * 15, "text": [*texts[:-1], "the same words but one lonely one"]})
    encoder = cf.TableEncoder(texts=cf.TextBinarizer()).fit(table)
    held = dict(zip(encoder.get_feature_names_out(), rows_held(encoder), strict=True))
    assert held["city=West"] == 15 and held["text: the"] == 30 and held["text: lonely"] == 1
    loaded = cf.TableEncoder.from_state(*encoder.to_state())
    again = dict(zip(loaded.get_feature_names_out(), rows_held(loaded), strict=True))
    assert again == held | {"city=West": 0}
    assert told_names(loaded)[0]["text: lonely"] == "text: (not shown)"
