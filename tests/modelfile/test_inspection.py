"""Claims about inspect: it says what a load would give, and refuses what a load refuses."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from forge import split
from fuzz import blind, sealed
from samples import CLASSES as CLASSIFIERS
from samples import COMPONENTS, EVERY, NAMES, samples

import certifit as cf
from certifit.modelfile import ModelFileError, inspect
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.table import LEARNERS
from tests.repetitions import some_of


@pytest.fixture
def saved(tmp_path):
    def save(name: str) -> Any:
        cf.save(samples()[name].model, tmp_path / "m.certifit")
        return tmp_path / "m.certifit"

    return save


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_the_model_says(name, saved):
    model, found = samples()[name].model, inspect(saved(name))
    assert found.model["class"] == type(model).__name__
    assert found.model["objective"] == model.objective
    assert found.model["alpha"] == model.alpha_
    for key, value in found.model["parameters"].items():
        assert value == getattr(model, key)
    assert found.target == model.target_name_
    assert found.features["count"] == model.n_features_in_
    assert found.features["names"] == (list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None)
    assert found.coefficients["count"] == len(model.coef_)
    assert found.coefficients["n_nonzero"] == np.count_nonzero(model.coef_)
    assert found.coefficients["intercept"] == (model.intercept_ if model.fit_intercept else None)
    assert found.certificate["sentences"] == model.certificate_.sentences()
    assert {key: found.data[key] for key in model.data_} == model.data_
    assert (found.encoder is None) == (model.encoder_ is None)
    if found.encoder is not None:
        assert found.encoder["notes"] == model.encoder_.notes_


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_it_says_what_a_classifier_says(name, saved):
    model, found = samples()[name].model, inspect(saved(name))
    assert (found.model["class"], found.model["objective"]) == (type(model).__name__, model.objective)
    for key, value in found.model["parameters"].items():
        assert value == getattr(model, key)
    assert found.coefficients is None and found.components is None and found.target == model.target_name_
    assert found.classes["labels"] == model.classes_.tolist()
    assert found.classes["weights"] == model.class_count_.tolist()
    priors = [getattr(model, key) for key in ("priors_", "class_prior_") if hasattr(model, key)]
    wanted = priors[0] if priors else np.exp(model.class_log_prior_)
    assert found.classes["priors"] == wanted.tolist()
    assert found.classes["n_columns"] == len(model.column_names_)
    assert found.classes["left_out"] == [model.column_names_[j] for j in getattr(model, "redundant_", ())]
    assert found.classes.get("epsilon") == getattr(model, "epsilon_", None)
    assert found.certificate["sentences"] == model.certificate_.sentences()
    assert found.data == model.data_


@pytest.mark.parametrize("name", COMPONENTS)
def test_it_says_what_principal_components_say(name, saved):
    model, found = samples()[name].model, inspect(saved(name))
    assert (found.model["class"], found.model["objective"]) == ("PCA", model.objective)
    assert found.target is None and found.coefficients is None and found.classes is None
    assert found.components["variances"] == model.explained_variance_.tolist()
    assert found.components["total_variance"] == model.total_variance_
    assert (found.components["route"], found.components["n_columns"]) == (model.route_, len(model.column_names_))
    assert found.certificate["sentences"] == model.certificate_.sentences()
    assert found.data == {**model.data_, "n_iterations": model.n_iter_}


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.slow
def test_it_is_plain_json(name, saved):
    found = inspect(saved(name)).to_dict()
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_infinity_is_a_word(saved):
    path = saved("fewer rows than columns")
    found = inspect(path)
    found.coefficients["condition"] = float("inf")
    assert found.to_dict()["coefficients"]["condition"] == "infinity"


def test_sizes_and_digests_are_those_of_the_file(saved):
    path = saved("lasso")
    data, found = path.read_bytes(), inspect(path).file
    assert found["n_bytes"] == len(data) and found["format"] == 1 and found["library"] == cf.__version__
    assert found["sha256"] == hashlib.sha256(data).hexdigest()
    table, payload = split(data)
    assert found["sha256_payload"] == hashlib.sha256(payload).hexdigest()
    assert found["sha256_header"] == table["__metadata__"]["sha256_header"]


def test_factors_and_bounds_are_counted(saved):
    found = inspect(saved("elastic net by name")).model
    assert (found["n_factors"], found["n_bounded"]) == (1, 2)
    found = inspect(saved("lasso")).model
    assert (found["n_factors"], found["n_bounded"]) == (0, 0)
    assert "n_factors" not in inspect(saved("ridge")).model


def test_every_model_of_the_table_has_a_record_and_is_there_under_its_name():
    assert all(learner.load().__name__ == learner.name for learner in LEARNERS.values())
    assert all("certificate_" in learner.load_record().objects for learner in LEARNERS.values())


@pytest.mark.slow
def test_it_refuses_what_a_load_refuses_and_nothing_else(tmp_path):
    originals = [to_bytes(sample.model) for sample in samples().values()]
    path = tmp_path / "m.certifit"
    for i in range(some_of(600)):
        rng = random.Random(i)
        mutant = rng.choice([blind, sealed])(rng.choice(originals), rng, originals)
        path.write_bytes(mutant)
        assert _reads(lambda: inspect(path)) == _reads(lambda data=mutant: from_bytes(data)), i


def _reads(read: Any) -> bool:
    try:
        read()
    except ModelFileError as error:
        assert str(error).isprintable()
        return False
    return True


def test_a_plain_model_needs_neither_scikit_learn_nor_the_models(saved):
    code = (
        "import sys; from certifit.modelfile import inspect\n"
        "for path in sys.argv[1:]:\n"
        "    inspect(path)\n"
        "    assert not {'sklearn', 'pandas', 'pyarrow', 'certifit.models.linear'} & set(sys.modules), path"
    )
    paths = [str(saved(name)) for name in ("lasso", "ridge", "least squares")]
    subprocess.run([sys.executable, "-c", code, *paths], check=True)


def test_a_file_that_is_no_model_is_named(tmp_path):
    for content, reason in [(b"a,b\n1,2\n3,4\n", "announces a header"), (b"PK\x03\x04" + bytes(40), "a zip archive")]:
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ModelFileError, match=f"x' is not a sound model file: .*{reason}"):
            inspect(tmp_path / "x")
