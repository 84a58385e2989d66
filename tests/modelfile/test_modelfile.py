"""Claims about save and load: the same model comes back to the bit, and nothing else is loaded."""

from __future__ import annotations

import copy
import os
import re
import struct
from typing import Any

import numpy as np
import pytest
from forge import dumps, edited, hexed, metadata, refuse, seal, split, with_text
from samples import EVERY, NAMES, NASTY_NAMES, fit, samples
from sklearn.base import clone
from sklearn.linear_model import LinearRegression as ForeignRegression
from sklearn.preprocessing import StandardScaler

import certifit as cf
from certifit.modelfile import ModelFileError
from certifit.modelfile.files import PASSING, from_bytes, to_bytes
from tests.repetitions import some_of


def fitted(name: str = "least squares") -> Any:
    return copy.deepcopy(samples()[name].model)


def bits(array: Any) -> bytes:
    return np.asarray(array).tobytes()


# ---- the same model comes back


@pytest.mark.parametrize("name", NAMES)
def test_predictions_intervals_and_summary_are_the_same_bits(name, tmp_path):
    model, X, *_ = samples()[name]
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert type(again) is type(model)
    assert bits(again.predict(X)) == bits(model.predict(X))
    assert again.objective == model.objective
    if model.inference_ is not None:
        assert str(again.summary()) == str(model.summary())
        for kind in ("prediction", "confidence"):
            intervals = [m.predict_interval(X, level=0.9, kind=kind) for m in (again, model)]
            assert bits(intervals[0]) == bits(intervals[1])
    if isinstance(model.basis_, cf.Polynomial):
        assert again.monomials() == model.monomials()


@pytest.mark.parametrize("name", NAMES)
def test_every_attribute_survives(name):
    model = samples()[name].model
    again = from_bytes(to_bytes(model))
    assert vars(again).keys() == vars(model).keys()
    assert again.get_params().keys() == model.get_params().keys()
    for key, value in model.get_params().items():
        is_apart = key in ("basis", "bounds", "penalty_factors") or key.startswith("encoder")
        assert is_apart or again.get_params()[key] == value
    assert again.certificate_ == model.certificate_
    assert again.data_ == model.data_
    assert again.column_names_ == model.column_names_
    for key in ("coef_", "null_space_", "null_intercept_"):
        assert bits(getattr(again, key)) == bits(getattr(model, key))
    for key in ("intercept_", "alpha_", "rank_", "condition_", "n_features_in_", "target_name_"):
        assert getattr(again, key) == getattr(model, key)
    for row, old in zip(again.history_, model.history_, strict=True):
        kept = row.keys() - PASSING
        assert kept == old.keys() - PASSING
        assert {key: row[key] for key in kept} == {key: old[key] for key in kept}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.slow
def test_the_same_fit_gives_the_same_bytes(name):
    sample = samples()[name]
    first = to_bytes(sample.model)
    assert to_bytes(fit(clone(sample.model), sample)) == first
    assert to_bytes(from_bytes(first)) == first


@pytest.mark.parametrize("name", ["least squares", "ridge", "fewer rows than columns", "lasso", "elastic net"])
def test_a_model_file_holds_no_rows(name):
    model, X, y, _ = samples()[name]
    _, payload = split(to_bytes(model))
    for number in [*np.ravel(X), *y]:
        assert struct.pack("<d", number) not in payload


def test_a_history_may_be_infinite():
    model = fitted("ridge")
    model.history_[0]["objective"] = float("inf")
    assert from_bytes(to_bytes(model)).history_[0]["objective"] == float("inf")


def test_a_loaded_model_can_be_fitted_again():
    model, X, y, _ = samples()["chebyshev"]
    again = from_bytes(to_bytes(model)).fit(X, y)
    assert bits(again.coef_) == bits(model.coef_)


def test_names_are_stored_faithfully_and_as_printable_ascii():
    model = samples()["named"].model
    data = to_bytes(model)
    again = from_bytes(data)
    assert list(again.feature_names_in_) == NASTY_NAMES
    assert again.target_name_ == "<b>\x1b]0;title\x07"
    header = data[8 : 8 + int.from_bytes(data[:8], "little")].decode("ascii")
    assert header.isprintable()


# ---- what save refuses


def test_functions_are_refused_by_name(tmp_path):
    _, X, y, _ = samples()["least squares"]
    model = cf.LinearRegression(basis=cf.Functions([np.sin])).fit(X, y)
    sentence = "basis=Functions([...]) holds Python functions, which a model file never stores."
    with pytest.raises(ModelFileError, match=re.escape(sentence)):
        cf.save(model, tmp_path / "m.certifit")
    assert os.listdir(tmp_path) == []


def test_a_foreign_basis_is_refused_by_name():
    model = fitted()
    model.basis_ = StandardScaler().fit(samples()["least squares"].X)
    with pytest.raises(ModelFileError, match="basis='StandardScaler' is no part of a model file"):
        to_bytes(model)


class Derived(cf.LinearRegression):
    pass


@pytest.mark.parametrize("model", [Derived(), ForeignRegression(), "model", None, print])
def test_a_class_outside_the_table_is_refused(model):
    with pytest.raises(ModelFileError, match="A model file holds one of LinearRegression, Ridge, Lasso, ElasticNet"):
        to_bytes(model)


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(ModelFileError, match="is not fitted"):
        to_bytes(cf.Ridge())


CHANGES: dict[str, tuple[str, str, Any, str]] = {
    "fit_intercept": (
        "least squares",
        "fit_intercept",
        False,
        "does not fit together|must be float64 of shape",
    ),
    "alpha": ("ridge", "alpha", 7.0, "alpha 7.0 asked"),
    "basis": ("chebyshev", "basis", None, "parameters of this LinearRegression are not those of its fit"),
    "degree": ("chebyshev", "basis", cf.Polynomial(3), "are not those of its fit"),
    "tol is text": ("ridge", "tol", "1e-8", "parameters.tol must be a finite number"),
    "tol is NaN": ("ridge", "tol", float("nan"), "parameters.tol must be a finite number >= 0. Got nan"),
    "coefficients": ("least squares", "coef_", np.ones(3), "set inference_ = None"),
    "coefficient NaN": ("ridge", "coef_", np.array([np.nan, 1, 1]), "holds NaN or infinity"),
    "too few coefficients": ("ridge", "coef_", np.ones(2), "must be float64 of shape"),
    "float32 coefficients": ("ridge", "coef_", np.ones(3, np.float32), "dtype float32"),
    "column names": (
        "ridge",
        "column_names_",
        ["a", "b", "c"],
        "column_names_ of this Ridge",
    ),
    "no column names": ("ridge", "column_names_", None, "column_names_ of this Ridge"),
    "a note": ("ridge", "note", "mine", "no place for the attribute 'note'"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_model_changed_after_its_fit_is_refused_when_it_would_come_back_as_another(case):
    name, attribute, value, reason = CHANGES[case]
    model = fitted(name)
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


@pytest.mark.parametrize("alpha", [2, 0.5, np.float32(0.5), np.int64(3), 10**30])
def test_numbers_of_any_type_are_parameters(alpha):
    _, X, y, _ = samples()["ridge"]
    model = cf.Ridge(alpha=alpha, fit_intercept=np.True_).fit(X, y)
    assert from_bytes(to_bytes(model)).alpha == float(alpha)


# ---- what load refuses


def test_a_file_cut_at_any_byte_is_refused():
    data = to_bytes(fitted())
    for size in range(len(data)):
        refuse(data[:size])


@pytest.mark.parametrize("name, bits", [("least squares", range(8)), ("powers", [5])])
@pytest.mark.slow
def test_a_flip_of_any_bit_is_refused(name, bits):
    data = to_bytes(fitted(name))
    for position in range(len(data)):
        for bit in bits:
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            refuse(bytes(damaged))


def test_the_error_names_the_file_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cf.save(fitted(), "m.certifit")
    damaged = bytearray((tmp_path / "m.certifit").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "m.certifit").write_bytes(damaged)
    with pytest.raises(ModelFileError, match=r"^'m.certifit' is not a sound model file: its numbers"):
        cf.load("m.certifit")


EDITS: dict[str, tuple[str, str, Any, str]] = {
    "newer format": (
        "ridge",
        "format",
        3,
        "has format 3, .* in format 1. Use a newer certifit",
    ),
    "older format": ("ridge", "format", 0, "it has format 0, .* Fit and save the model again"),
    "format is true": ("ridge", "format", True, "format must be an integer"),
    "no such estimator": ("ridge", "estimator", "forest", "it holds the estimator 'forest'"),
    "an import path": ("ridge", "estimator", "certifit.models.least_squares.model.Ridge", "it holds the estimator"),
    "a system call": ("ridge", "estimator", "os.system", "it holds the estimator"),
    "estimator is a list": ("ridge", "estimator", ["ridge"], "estimator must be a text"),
    "another estimator": ("ridge", "estimator", "linear_regression", "unknown key 'alpha'"),
    "library is code": ("ridge", "library", "0.1; rm -rf /", "must be a version"),
    "negative alpha": ("ridge", "parameters.alpha", hexed(-1.0), ">= 0"),
    "infinite alpha": ("ridge", "parameters.alpha", hexed(float("inf")), "finite number >= 0"),
    "alpha is code": ("ridge", "parameters.alpha", "__import__('os')", "finite number >= 0"),
    "alpha is not the one used": ("ridge", "parameters.alpha", 3, "alpha 3 asked"),
    "tol is 2**63": ("ridge", "parameters.tol", 2**63, "64 bits"),
    "negative tol": ("ridge", "parameters.tol", -1, ">= 0"),
    "fit_intercept is 1": ("ridge", "parameters.fit_intercept", 1, "True or False"),
    "fit_intercept turned off": ("ridge", "parameters.fit_intercept", False, "must be float64 of shape"),
    "a parameter more": ("ridge", "parameters.n_jobs", 10**9, "unknown key 'n_jobs'"),
    "parameters are a list": ("ridge", "parameters", [], "metadata.parameters must be an object"),
    "features": ("ridge", "features.count", 4, "must be float64 of shape"),
    "no features": ("ridge", "features.count", 0, "integer >= 1"),
    "too many features": ("ridge", "features.count", 2**62, "no array of that size"),
    "too few names": ("named", "features.names", ["a"], "1 names for 6 features"),
    "names are numbers": ("named", "features.names", [1, 2, 3, 4, 5, 6], "list of texts"),
    "rank above columns": ("ridge", "solution.rank", 4, "rank 4 of 3"),
    "negative rank": ("ridge", "solution.rank", -1, ">= 0"),
    "rank below directions": ("least squares", "solution.rank", 2, "does not fit together"),
    "NaN condition": ("ridge", "solution.condition", {"hex": "nan"}, "NaN"),
    "infinite intercept": ("ridge", "solution.intercept", hexed(float("inf")), "finite float"),
    "an intercept after all": (
        "no intercept",
        "solution.intercept",
        hexed(1.0),
        "intercept without fit_intercept",
    ),
    "penalty on least squares": ("least squares", "solution.alpha", hexed(1.0), "alpha 0 asked and 1.0 used"),
    "directions": ("least squares", "n_directions", 1, "must be float64 of shape"),
    "negative residual": ("least squares", "inference.rss", hexed(-1.0), ">= 0"),
    "huge exponent": ("least squares", "inference.exponent", 10**6, "an exponent beyond"),
    "inference dropped, array left": ("least squares", "inference", None, "is no array of this model"),
    "inference under a penalty": (
        "ridge",
        "inference",
        {"exponent": 0, "rss": hexed(1.0), "tss": hexed(1.0)},
        "'inference.inverse' is missing",
    ),
    "too few observations": ("least squares", "data.sum_weight", hexed(2.0), "no residual degree of freedom"),
    "no rows": ("ridge", "data.n_rows", 0, ">= 1"),
    "rows are a float": ("ridge", "data.n_rows", hexed(24.0), "integer >= 1"),
    "negative value": ("ridge", "certificate.value", hexed(-1.0), ">= 0"),
    "a relation too many": ("ridge", "certificate.dependent", ["x0 = x1"], "1 dependent columns"),
    "digits denied": ("ridge", "certificate.has_digits", False, "is no array of this model"),
    "basis of another kind": ("chebyshev", "basis.kind", "functions", "one of 'polynomial'"),
    "basis of another form": ("chebyshev", "basis.form", "os.system", "one of 'chebyshev', 'powers'"),
    "degree 10**9": ("chebyshev", "basis.degree", 10**9, "more than 10000 terms"),
    "degree 500": ("chebyshev", "basis.degree", 500, "more than 10000 terms"),
    "degree 3": ("chebyshev", "basis.degree", 3, "must be float64 of shape"),
    "degree 0": ("chebyshev", "basis.degree", 0, ">= 1"),
    "basis dropped": ("chebyshev", "basis", None, "'basis.lower' is no array|must be float64 of shape"),
    "iterations": ("ridge", "n_iterations", 2**40, "must be float64 of shape"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, path, value, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), path, value), reason)


def records(tree: dict[str, Any], path: str = "") -> list[str]:
    """Paths of all objects in the metadata."""
    inner = [(key, value) for key, value in tree.items() if isinstance(value, dict) and value.keys() != {"hex"}]
    return [path, *(found for key, value in inner for found in records(value, f"{path}{key}."))]


KEYED = ["least squares", "powers", "named", "lasso with factors", "elastic net", "huber", "shared", "gaussian naive"]
SCORED = ["logistic drawn", "softmax", "poisson exposed", "glm tweedie", "perceptron in order"]


@pytest.mark.parametrize(
    "name", [*KEYED, *SCORED, "multinomial", "words", "words hashed", "components", "components mle"]
)
@pytest.mark.slow
def test_no_key_may_be_missing_and_none_may_be_added(name):
    data = to_bytes(fitted(name))
    for path in records(metadata(data)):
        refuse(edited(data, f"{path}extra", 1), "unknown key 'extra'")
        node = metadata(data)
        for folder in path.split(".")[:-1]:
            node = node[folder]
        for key in node:
            tree = metadata(data)
            inner = tree
            for folder in path.split(".")[:-1]:
                inner = inner[folder]
            del inner[key]
            refuse(with_text(data, dumps(tree)), "has no|must be|needs|is no array|without how texts are read")


ARRAYED = ["chebyshev", "elastic net by name", "shared", "per class", "gaussian naive", "bernoulli", "words"]


@pytest.mark.parametrize("sample", [*ARRAYED, *SCORED, "words hashed", "components", "components by products"])
def test_no_array_may_be_missing_and_none_may_be_added(sample):
    table, payload = split(to_bytes(fitted(sample)))
    for name in table.keys() - {"__metadata__"}:
        start, end = table[name]["data_offsets"]
        rest = copy.deepcopy(table)
        del rest[name]
        for entry in rest.values():
            if "data_offsets" in entry and entry["data_offsets"][0] >= end:
                entry["data_offsets"] = [offset - (end - start) for offset in entry["data_offsets"]]
        refuse(seal(rest, payload[:start] + payload[end:]), "is missing")
    entry = {"dtype": "F64", "shape": [1], "data_offsets": [len(payload), len(payload) + 8]}
    refuse(seal({**table, "zz": entry}, payload + bytes(8)), "'zz' is no array of this model")


NUMBERED = ["least squares", "redundant columns", "chebyshev", "shared", "per class", "gaussian naive", "multinomial"]


@pytest.mark.parametrize(
    "name", [*NUMBERED, "logistic likelihood", *SCORED[1:], "components", "components by products"]
)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused(name, number):
    table, payload = split(to_bytes(fitted(name)))
    for array, entry in table.items():
        start, end = entry.get("data_offsets", (0, 0))
        may_be = array in (
            "history",
            "history.more",
            "state.log_p",
            "state.log_priors",
            "boundary.intercept",
        ) and not np.isnan(number)
        if start < end and entry["dtype"] == "F64" and not may_be:
            changed = payload[:start] + struct.pack("<d", number) + payload[start + 8 :]
            refuse(seal(table, changed), f"'{array}' holds NaN or infinity")


def test_digits_beyond_15_are_refused():
    table, payload = split(to_bytes(fitted()))
    start = table["certificate.digits"]["data_offsets"][0]
    refuse(seal(table, payload[:start] + struct.pack("<d", 16.0) + payload[start + 8 :]), "must be in 0 to 15")


def test_a_range_turned_around_is_refused():
    table, payload = split(to_bytes(fitted("chebyshev")))
    lower, upper = (table[f"basis.{end}"]["data_offsets"][0] for end in ("lower", "upper"))
    low, high = payload[lower : lower + 8], payload[upper : upper + 8]
    turned = payload[:lower] + high + payload[lower + 8 : upper] + low + payload[upper + 8 :]
    refuse(seal(table, turned), "does not fit together")


def test_the_payload_of_another_model_is_refused():
    one, other = to_bytes(fitted()), to_bytes(fitted("exact"))
    payload = split(other)[1]
    assert len(payload) == len(split(one)[1])
    refuse(one[: -len(payload)] + payload, "numbers do not match their digest")


def test_a_hostile_file_runs_no_code(tmp_path):
    mark = tmp_path / "ran"
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    data = to_bytes(fitted("named"))
    for path in ("estimator", "library", "target", "features.names", "certificate.claim", "parameters.tol"):
        try:
            model = from_bytes(edited(data, path, [code] * 6 if path == "features.names" else code))
        except ModelFileError:
            continue
        str(model), str(model.summary()), str(model.certificate_)
    assert not mark.exists()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.slow
def test_thousands_of_damaged_files_are_refused_or_give_a_sound_model(name):
    from fuzz import run

    counts = run(some_of(40), seed=0, name=name)
    assert counts["blind refused"] > 0 and counts["sealed refused"] > 0 and counts["blind sound"] == 0


def test_a_null_space_that_was_too_large_to_keep_comes_back_as_none():
    model = copy.deepcopy(samples()["fewer rows than columns"].model)
    model.null_space_, model.null_intercept_ = None, np.zeros(0)
    assert from_bytes(to_bytes(model)).null_space_ is None
