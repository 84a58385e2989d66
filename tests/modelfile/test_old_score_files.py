"""Claims about kept files of score models and perceptrons: every later version reads them.

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
EXPECTED = json.loads((FILES / "expected_scores.json").read_text())
MODELS = EXPECTED["models"]
INFERRED = [name for name, then in MODELS.items() if "standard_errors" in then]


def rows(name: str) -> Any:
    found = EXPECTED["data"][MODELS[name]["rows"]]
    return pd.DataFrame(found) if isinstance(found, dict) else np.array(found)


def target(name: str) -> Any:
    return np.array(EXPECTED["targets"][MODELS[name]["target"]])


def beside(name: str) -> dict[str, Any]:
    exposure = MODELS[name]["exposure"]
    return {} if exposure is None else {"exposure": np.array(EXPECTED["exposures"][exposure])}


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_has_the_weights_and_predictions_that_it_had_then(name):
    model, then = cf.load(FILES / f"{name}.certifit"), MODELS[name]
    assert [number.hex() for number in np.ravel(model.coef_).tolist()] == then["coef"]
    assert [number.hex() for number in np.ravel(model.intercept_).tolist()] == then["intercept"]
    if "classes" not in then:
        np.testing.assert_allclose(model.predict(rows(name)), then["predicted"], rtol=1e-12)
        return
    assert model.classes_.tolist() == then["classes"] and str(model.classes_.dtype) == then["dtype"]
    assert model.predict(rows(name)).tolist() == then["predicted"]
    score = getattr(model, "predict_log_proba", model.decision_function)
    np.testing.assert_allclose(score(rows(name)), then["scores"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", INFERRED)
def test_an_old_model_has_the_standard_errors_that_it_had_then(name):
    inference, then = cf.load(FILES / f"{name}.certifit").summary().inference, MODELS[name]
    np.testing.assert_allclose(inference.standard_errors, then["standard_errors"], rtol=1e-12)
    np.testing.assert_allclose(inference.deviance, then["deviance"], rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_verified_on_its_rows_where_it_was_proven(name):
    result = cf.verify(FILES / f"{name}.certifit", rows(name), target(name), **beside(name))
    assert result.holds == MODELS[name]["holds"], str(result)


def test_an_old_model_keeps_what_was_beside_its_target_and_what_has_no_end():
    assert cf.load(FILES / "poisson_exposure_0.1.certifit").exposure_name_ == "hours"
    assert cf.load(FILES / "logistic_0.1.certifit").class_weight == {"ham": 1.0, "spam": 2.0}
    assert cf.load(FILES / "glm_tweedie_polynomial_0.1.certifit").family == cf.families.Tweedie(power=1.6)
    endless = cf.load(FILES / "perceptron_endless_0.1.certifit").certificate_
    assert endless.rows and "no weights part the classes" in endless.fault


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_written_as_it_was(name):
    data = (FILES / f"{name}.certifit").read_bytes()
    assert content(to_bytes(from_bytes(data))) == content(data)
