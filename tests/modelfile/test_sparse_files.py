"""Claims about lasso and elastic net in a file: factors and bounds come back, and illegal ones are refused."""

from __future__ import annotations

import copy
import struct
from typing import Any

import numpy as np
import pytest
from forge import dumps, hexed, metadata, refuse, seal, split, with_text
from samples import NASTY_NAMES, SPARSE, samples

import certifit as cf
from certifit.modelfile import ModelFileError
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.lasso.model import Lasso


def fitted(name: str) -> Any:
    return copy.deepcopy(samples()[name].model)


def edited(data: bytes, section: str, **changes: Any) -> bytes:
    """The file with entries of a section of its metadata changed, and right digests."""
    tree = metadata(data)
    tree[section] |= changes
    return with_text(data, dumps(tree))


def with_number(data: bytes, array: str, place: int, number: float) -> bytes:
    """The file with one number of an array changed, and right digests."""
    table, payload = split(data)
    at = table[array]["data_offsets"][0] + 8 * place
    return seal(table, payload[:at] + struct.pack("<d", number) + payload[at + 8 :])


# ---- the same model comes back


@pytest.mark.parametrize("name", SPARSE)
def test_factors_and_bounds_mean_the_same_after_a_load(name):
    model = fitted(name)
    again = from_bytes(to_bytes(model))
    before, after = (m._strengths(m.column_names_, m.alpha) for m in (model, again))
    for part in ("factors", "lower", "upper"):
        np.testing.assert_array_equal(getattr(after, part), getattr(before, part))
    assert (again.penalty_factors is None) == (model.penalty_factors is None)
    assert (again.bounds is None) == (model.bounds is None)


def test_what_was_given_by_name_comes_back_as_one_number_a_column():
    again = from_bytes(to_bytes(fitted("elastic net by name")))
    assert list(again.feature_names_in_) == NASTY_NAMES[:5]
    assert again.penalty_factors.tolist() == [1, 1, 3, 1, 1]
    lower, upper = again.bounds
    assert lower.tolist() == [0, -1, -np.inf, -np.inf, -np.inf]
    assert upper.tolist() == [np.inf, 0.5, np.inf, np.inf, np.inf]


@pytest.mark.parametrize("name", SPARSE)
def test_a_loaded_model_fits_to_the_same_bits(name):
    model, *data = samples()[name]
    again = from_bytes(to_bytes(model)).fit(*data)
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert float(again.intercept_).hex() == float(model.intercept_).hex()


def test_a_fit_that_stopped_early_is_stored_with_what_it_can_prove():
    _, X, y, _ = samples()["lasso"]
    model = fitted("lasso")
    model.coef_ = model.coef_ * (1 + 1e-3)
    model.certificate_ = model.certify(X, y)
    again = from_bytes(to_bytes(model))
    assert not again.certificate_.holds and again.certificate_ == model.certificate_
    assert str(again.certificate_).startswith("NOT certified")


@pytest.mark.parametrize("name", ["lasso", "lasso with bounds", "elastic net"])
def test_verify_refuses_a_zero_that_is_no_longer_one(name):
    model, *data = samples()[name]
    places = np.flatnonzero(model.coef_ == 0)
    assert len(places)
    for place in places:
        changed = fitted(name)
        changed.coef_[place] = 1e-4
        result = cf.verify(changed, *data)
        assert not result and any("rank" in reason for reason in result.reasons)


def test_verify_refuses_a_coefficient_outside_its_bounds():
    model, *data = samples()["lasso with bounds"]
    changed = fitted("lasso with bounds")
    changed.coef_[0] = 1.5 * (1 + 1e-4)
    assert model.coef_[0] == 1.5
    assert not cf.verify(changed, *data)


@pytest.mark.parametrize(
    ("section", "changes"),
    [
        ("parameters", {"alpha": hexed(0.21)}),
        ("penalty", {"has_factors": False}),
        ("solution", {"intercept": hexed(3.0)}),
    ],
)
def test_verify_refuses_another_objective_under_right_digests(section, changes):
    name = "lasso with factors" if section == "penalty" else "lasso"
    model, *data = samples()[name]
    table, payload = split(edited(to_bytes(model), section, **changes))
    if section == "parameters":
        tree = metadata(seal(table, payload))
        tree["solution"]["alpha"] = changes["alpha"]
        table["__metadata__"]["certifit"] = dumps(tree)
    if section == "penalty":
        payload, table = _without(table, payload, "penalty.factors")
    forged = from_bytes(seal(table, payload))
    assert not cf.verify(forged, *data)


def _without(table: dict[str, Any], payload: bytes, name: str) -> tuple[bytes, dict[str, Any]]:
    start, end = table.pop(name)["data_offsets"]
    for entry in table.values():
        if "data_offsets" in entry and entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [offset - (end - start) for offset in entry["data_offsets"]]
    return payload[:start] + payload[end:], table


# ---- what save refuses


@pytest.mark.parametrize(
    ("name", "parameter", "value", "reason"),
    [
        ("lasso", "alpha", 0.1, "alpha 0.1 asked and 0.2 used"),
        ("lasso", "max_iter", 0, "parameters.max_iter must be a whole number >= 1"),
        ("lasso", "penalty_factors", [1.0, 1.0], "penalty_factors must be 5 finite numbers >= 0"),
        ("lasso", "penalty_factors", {"zz": 1.0}, "penalty_factors names a column that is not there"),
        ("lasso", "penalty_factors", [1, 1, -1, 1, 1], "penalty_factors must be 5 finite numbers >= 0"),
        ("lasso", "bounds", (1.0, 2.0), "must have 0 between them"),
        ("lasso", "bounds", (0.0, 2.0), "a coefficient outside its bounds"),
        ("elastic net", "l1_ratio", 0, "parameters.l1_ratio must be a number above 0 and at most 1"),
    ],
)
def test_a_parameter_changed_to_an_illegal_one_is_refused(name, parameter, value, reason):
    model = fitted(name)
    setattr(model, parameter, value)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


def test_a_class_derived_from_lasso_is_refused():
    derived = type("Derived", (Lasso,), {})
    with pytest.raises(ModelFileError, match="A model file holds one of"):
        to_bytes(derived())


# ---- what load refuses

EDITS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "alpha is null": ("lasso", "parameters", {"alpha": None}, "alpha must be a finite number >= 0"),
    "negative alpha": ("lasso", "parameters", {"alpha": hexed(-0.2)}, "alpha must be a finite number >= 0"),
    "another alpha": ("lasso", "parameters", {"alpha": hexed(0.3)}, "alpha 0.3 asked and 0.2 used"),
    "max_iter 2**63": ("lasso", "parameters", {"max_iter": 2**63}, "64 bits"),
    "max_iter -1": ("lasso", "parameters", {"max_iter": -1}, "whole number >= 1"),
    "max_iter is a float": ("lasso", "parameters", {"max_iter": hexed(7.0)}, "whole number >= 1"),
    "max_iter is code": ("lasso", "parameters", {"max_iter": "os.system"}, "whole number >= 1"),
    "l1_ratio 0": ("elastic net", "parameters", {"l1_ratio": 0}, "above 0 and at most 1"),
    "l1_ratio 1.5": ("elastic net", "parameters", {"l1_ratio": hexed(1.5)}, "above 0 and at most 1"),
    "l1_ratio is true": ("elastic net", "parameters", {"l1_ratio": True}, "above 0 and at most 1"),
    "l1_ratio of a lasso": ("lasso", "parameters", {"l1_ratio": 1}, "unknown key 'l1_ratio'"),
    "factors in the metadata": ("lasso", "parameters", {"penalty_factors": [1]}, "unknown key 'penalty_factors'"),
    "factors announced": ("lasso", "penalty", {"has_factors": True}, "'penalty.factors' is missing"),
    "factors denied": ("lasso with factors", "penalty", {"has_factors": False}, "is no array of this model"),
    "bounds announced": ("lasso", "penalty", {"has_bounds": True}, "'penalty.lower' is missing"),
    "bounds denied": ("lasso with bounds", "penalty", {"has_bounds": False}, "is no array of this model"),
    "flag is a number": ("lasso", "penalty", {"has_bounds": 1}, "true or false"),
    "too long a history": ("lasso", "penalty", {"iterations": [0, 1, 2, 3]}, "a history of another length"),
    "a history that turns back": ("lasso", "penalty", {"iterations": [7, 0]}, "each above the one before"),
    "a history before 0": ("lasso", "penalty", {"iterations": [-1, 0]}, "each above the one before"),
    "a history of floats": ("lasso", "penalty", {"iterations": [hexed(0.0), 1]}, "each above the one before"),
    "another rank": ("lasso", "solution", {"rank": 2}, "rank 2 for 3 coefficients"),
    "rank above columns": ("lasso", "solution", {"rank": 6}, "rank 6 of 5"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, section, changes, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), section, **changes), reason)


def test_another_class_under_right_digests_is_refused():
    for name, other in [("lasso", "ridge"), ("lasso", "elastic_net"), ("elastic net", "lasso"), ("ridge", "lasso")]:
        tree = metadata(to_bytes(fitted(name)))
        refuse(with_text(to_bytes(fitted(name)), dumps(tree | {"estimator": other})), "has the unknown key|has no")


NUMBERS = {
    "factor below 0": ("lasso with factors", "penalty.factors", -1.0, "factor below 0"),
    "factor NaN": ("lasso with factors", "penalty.factors", np.nan, "holds NaN or infinity"),
    "factor infinite": ("lasso with factors", "penalty.factors", np.inf, "holds NaN or infinity"),
    "lower bound above 0": ("lasso with bounds", "penalty.lower", 0.5, "bounds without 0 between them"),
    "lower bound infinite": ("lasso with bounds", "penalty.lower", np.inf, "bounds without 0 between them"),
    "lower bound NaN": ("lasso with bounds", "penalty.lower", np.nan, "holds NaN"),
    "upper bound below 0": ("lasso with bounds", "penalty.upper", -0.5, "bounds without 0 between them"),
    "upper bound -infinite": ("lasso with bounds", "penalty.upper", -np.inf, "bounds without 0 between them"),
    "upper bound NaN": ("lasso with bounds", "penalty.upper", np.nan, "holds NaN"),
    "outside its bound": ("lasso with bounds", "penalty.upper", 1.4, "a coefficient outside its bounds"),
    "coefficient outside": ("lasso with bounds", "coef", -1e-9, "a coefficient outside its bounds"),
    "coefficient NaN": ("lasso", "coef", np.nan, "holds NaN or infinity"),
    "coefficient infinite": ("lasso", "coef", np.inf, "holds NaN or infinity"),
    "coefficient 0 after all": ("lasso", "coef", 0.0, "rank 3 for 2 coefficients"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_illegal_numbers_under_right_digests_are_refused(case):
    name, array, number, reason = NUMBERS[case]
    refuse(with_number(to_bytes(fitted(name)), array, 0, number), reason)


def test_factors_and_bounds_have_one_number_a_column():
    for name, array in [("lasso with factors", "penalty.factors"), ("lasso with bounds", "penalty.upper")]:
        table, payload = split(to_bytes(fitted(name)))
        end = table[array]["data_offsets"][1]
        table[array] = table[array] | {"shape": [6], "data_offsets": [end - 40, end + 8]}
        for entry in table.values():
            if entry.get("data_offsets", (0,))[0] >= end:
                entry["data_offsets"] = [offset + 8 for offset in entry["data_offsets"]]
        longer = payload[:end] + struct.pack("<d", 1.0) + payload[end:]
        refuse(seal(table, longer), f"'{array}' must be float64 of shape")


@pytest.mark.parametrize("name", ["lasso with bounds", "elastic net by name"])
@pytest.mark.slow
def test_a_file_cut_anywhere_and_a_flip_of_any_bit_of_its_numbers_are_refused(name):
    data = to_bytes(fitted(name))
    for size in range(len(data)):
        refuse(data[:size], ".")
    start = 8 + int.from_bytes(data[:8], "little")
    for position in range(start, len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            refuse(bytes(damaged), "numbers do not match their digest")
