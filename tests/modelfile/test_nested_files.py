"""Claims about a file of a model that is made of models: the same bits, limits, and each of them verified."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from forge import edited, metadata, refuse, with_array, with_child
from fuzz import run
from samples import NESTED as NAMES
from samples import samples
from sklearn.linear_model import LogisticRegression as TheirLogistic

import certifit as cf
from certifit.modelfile import ModelFileError, container, inspect, nesting
from certifit.modelfile.files import from_bytes, to_bytes

BOTH = pytest.mark.parametrize("name", NAMES)


def file_of(name: str = NAMES[0]) -> bytes:
    return to_bytes(copy.deepcopy(samples()[name].model))


@BOTH
def test_it_predicts_and_is_written_as_before(name):
    model, X, *_ = samples()[name]
    data = file_of(name)
    again = from_bytes(data)
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert again.predict(X).tolist() == model.predict(X).tolist() and again.classes_.dtype == model.classes_.dtype
    assert again.certificates_ == model.certificates_ and again.target_name_ == model.target_name_
    assert to_bytes(again) == data and metadata(data)["format"] == 2


@BOTH
def test_what_all_models_share_is_stored_once(name):
    _, arrays = container.from_bytes(file_of(name))
    models = samples()[name].model.estimators_
    shared, own = metadata(file_of(name))["children"]["shared"], nesting.containers(len(models), arrays)
    assert shared["estimator"] == "logistic_regression" and "parameters" in shared and "labels" in shared
    assert "shared.classes" in arrays
    assert all(
        "coef" in container.from_bytes(data)[1] and "classes" not in container.from_bytes(data)[1] for data in own
    )
    assert len(file_of(name)) < sum(len(to_bytes(child)) for child in models)


def test_models_of_one_file_share_no_memory():
    again = from_bytes(file_of())
    again.estimators_[0].classes_[0] = 7
    assert again.estimators_[1].classes_.tolist() == [0, 1]


@BOTH
@pytest.mark.parametrize("place", [0, 2])
def test_a_changed_coefficient_of_any_model_is_refused(name, place, tmp_path):
    sample = samples()[name]
    model = copy.deepcopy(sample.model)
    model.estimators_[place].coef_[0, 0] += 1e-4
    cf.save(model, tmp_path / "m.certifit")
    result = cf.verify(tmp_path / "m.certifit", sample.X, sample.y)
    assert not result and result.reasons[0].startswith(f"estimators_[{place}]: ")
    assert not cf.verify(sample.model, sample.X[:-1], sample.y[:-1])


def test_two_classes_are_one_model_and_an_exact_proof_is_made_of_each():
    sample = samples()[NAMES[0]]
    pytest.importorskip("flint")
    labels = np.asarray(sample.y) == sample.y[0]
    model = from_bytes(to_bytes(cf.OneVsRestClassifier(cf.LogisticRegression(0.1)).fit(sample.X, labels)))
    assert len(model.estimators_) == 1
    assert cf.verify(model, sample.X, labels, exact=True).kind == "exact"


def test_an_inspection_tells_the_models(tmp_path):
    (tmp_path / "m.certifit").write_bytes(file_of())
    found = inspect(tmp_path / "m.certifit")
    model = samples()[NAMES[0]].model
    assert [one["coefficients"]["values"] for one in found.estimators] == [
        m.coef_[0].tolist() for m in model.estimators_
    ]
    assert found.certificate["value"] == model.certificate_.value and found.data == model.data_
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()


# What cannot be saved


def fitted(estimator: Any, n_classes: int = 3) -> Any:
    rng = np.random.default_rng(0)
    return cf.OneVsRestClassifier(estimator).fit(rng.normal(size=(60, 2)), np.arange(60) % n_classes)


def test_a_model_of_another_library_is_refused_by_its_name(tmp_path):
    with pytest.raises(
        ModelFileError, match=r"estimators_\[0\] cannot be saved.* Got 'LogisticRegression' of 'sklearn'"
    ):
        cf.save(fitted(TheirLogistic()), tmp_path / "m.certifit")


def test_levels_and_numbers_of_models_are_limited(monkeypatch):
    nested = cf.OneVsRestClassifier(cf.OneVsRestClassifier(cf.GaussianNB()))
    model = fitted(nested)
    again = from_bytes(to_bytes(model))
    assert len(again.estimators_[2].estimators_[0].estimators_) == 1 and str(again) == str(model)
    with pytest.raises(ModelFileError, match="deeper than 4 levels"):
        to_bytes(fitted(cf.OneVsRestClassifier(nested)))
    model.estimators_[1] = model
    with pytest.raises(ModelFileError, match="deeper than 4 levels"):
        to_bytes(model)
    monkeypatch.setattr(nesting, "MOST_MODELS", 4)
    with pytest.raises(ModelFileError, match="more than 4 models"):
        to_bytes(again)
    with pytest.raises(ModelFileError, match="is made of 5 models, and a file has room for 1 to 4"):
        to_bytes(fitted(cf.GaussianNB(), 5))


@pytest.mark.parametrize("change", [{"estimator__alpha": 3.0}, {"estimator": cf.GaussianNB()}, {"n_jobs": 0}])
def test_parameters_that_are_not_those_of_the_fit_are_refused(change):
    model = fitted(cf.LogisticRegression(0.1)).set_params(**change)
    with pytest.raises(ModelFileError, match=r"not th(ose|at) of its fit|n_jobs must be"):
        to_bytes(model)


# Forged files


def test_the_format_is_that_of_the_model():
    refuse(edited(file_of(), "format", 1), "reads such a model in format 2")
    refuse(edited(file_of("ridge"), "format", 2), "reads such a model in format 1")
    refuse(edited(file_of(), "format", 3), "Use a newer certifit")


FORGED = {
    "one fewer": (lambda data: edited(data, "children.count", 2), "must follow each other"),
    "none": (lambda data: edited(data, "children.count", 0), "an integer from 1 to 1000"),
    "too many": (lambda data: edited(data, "children.count", 2**40), "an integer from 1 to 1000"),
    "many jobs": (lambda data: edited(data, "parameters.n_jobs", -(2**63)), "a whole number from -10000 to 10000"),
    "a list": (lambda data: edited(data, "children.shared", []), "must be an object"),
    "an end": (lambda data: with_array(data, "child_ends", np.array([5, 3, 4])), "must follow each other"),
    "floats": (lambda data: with_array(data, "child_ends", np.array([1.0, 2.0, 3.0])), "must follow each other"),
    "no bytes": (lambda data: with_array(data, "children", np.zeros(0, dtype=np.uint8)), "must follow each other"),
    "an array more": (lambda data: with_array(data, "shared.extra", np.ones(2)), "'extra' is no array|do not share"),
    "a model": (lambda data: edited(data, "children.shared.estimator", "ridge"), "."),
    "code": (lambda data: edited(data, "children.shared.estimator", "os.system"), "this version knows"),
    "a label": (lambda data: with_array(data, "shared.classes", np.array([0, 2])), "not of two classes, 0 and 1"),
    "itself": (lambda data: with_child(data, 0, lambda one: data), "unknown key|do not share|repeat"),
    "a digest": (lambda data: with_child(data, 1, lambda one: one[:-1] + b"\x00"), "do not match their digest"),
    "repeated": (lambda data: with_child(data, 1, lambda one: with_array(one, "classes", np.array([0, 1]))), "repeat"),
    "said twice": (
        lambda data: with_child(data, 1, lambda one: edited(one, "estimator", "logistic_regression")),
        "repeat",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_file_is_refused(case):
    forge, reason = FORGED[case]
    refuse(forge(file_of()), reason)


@pytest.mark.slow
def test_a_small_file_of_many_models_is_refused_before_they_are_built():
    """A thousand models that share a thousand models that share all they have."""
    said, arrays = container.from_bytes(file_of())
    whole = nesting.unfold(said["children"], {name: arrays[name] for name in arrays if nesting.is_nested(name)})[0]
    inner, nested = nesting.fold([whole] * 1000)
    labels = {name: array for name, array in arrays.items() if not nesting.is_nested(name)}
    model = {key: said[key] for key in ("estimator", "labels", "parameters", "target")} | {"children": inner}
    outer, nested = nesting.fold([(model, labels | nested)] * 1000)
    data = container.to_bytes(said | {"children": outer}, labels | nested)
    assert len(data) < 2_000_000
    refuse(data, "more than 1,000 models|not one estimator for every class")


def test_shared_content_may_not_grow_beyond_the_limits(monkeypatch):
    data = file_of()
    monkeypatch.setattr(nesting, "MAX_FILE", 30)
    refuse(data, "take more than 30 bytes")
    monkeypatch.setattr(nesting, "MOST_TEXT", 100)
    refuse(data, "share names and settings of more than 100 bytes")


@pytest.mark.slow
def test_damaged_models_inside_a_sound_file_are_refused_or_sound():
    counts = run(150, seed=1, name=NAMES[0])
    assert counts["nested refused"] > 0 and counts["blind sound"] == 0
