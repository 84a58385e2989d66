"""Claims about kept files of classifiers and principal components: every later version reads them.

A file that is here is never written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzz import content

import certifit as cf
from certifit.modelfile.files import from_bytes, to_bytes

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected_classes.json").read_text())
MODELS = EXPECTED["models"]
CLASSIFIERS = [name for name, then in MODELS.items() if then["labels"] is not None]
COMPONENTS = [name for name, then in MODELS.items() if then["labels"] is None]


def rows(name: str) -> Any:
    found = EXPECTED["data"][MODELS[name]["rows"]]
    return pd.DataFrame(found) if isinstance(found, dict) else np.array(found)


def labels(name: str) -> Any:
    kind = MODELS[name]["labels"]
    return None if kind is None else np.array(EXPECTED["labels"][kind], dtype=object if kind == "object" else None)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_an_old_classifier_gives_the_labels_and_chances_that_it_gave_then(name):
    model, then = cf.load(FILES / f"{name}.certifit"), MODELS[name]
    assert model.classes_.tolist() == then["classes"] and str(model.classes_.dtype) == then["dtype"]
    assert model.predict(rows(name)).tolist() == then["predicted"]
    np.testing.assert_allclose(model.predict_log_proba(rows(name)), then["log_proba"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", COMPONENTS)
def test_old_components_give_the_scores_that_they_gave_then(name):
    model, then = cf.load(FILES / f"{name}.certifit"), MODELS[name]
    assert [variance.hex() for variance in model.explained_variance_.tolist()] == then["variances"]
    np.testing.assert_allclose(model.transform(rows(name)), then["scores"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_verified_on_its_rows(name):
    assert cf.verify(FILES / f"{name}.certifit", rows(name), labels(name))


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if "nb" in name])
def test_an_old_naive_bayes_takes_more_rows(name):
    model = cf.load(FILES / f"{name}.certifit").partial_fit(rows(name), labels(name))
    assert model.data_["n_rows"] == 24 and model.certificate_.holds


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_written_as_it_was(name):
    data = (FILES / f"{name}.certifit").read_bytes()
    assert content(to_bytes(from_bytes(data))) == content(data)
