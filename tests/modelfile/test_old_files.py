"""Claims about model files that were written before models had encoders."""

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
EXPECTED = json.loads((FILES / "expected.json").read_text())
MODELS = sorted(path.stem for path in FILES.glob("*.certifit"))


def rows(model: Any) -> Any:
    X = np.array(EXPECTED["X"])
    return pd.DataFrame(X, columns=model.feature_names_in_) if hasattr(model, "feature_names_in_") else X


def test_there_is_a_file_of_each_class():
    assert [type(cf.load(FILES / f"{name}.certifit")).__name__ for name in MODELS] == ["LinearRegression", "Ridge"]


@pytest.mark.parametrize("name", MODELS)
def test_an_old_file_gives_the_numbers_that_it_gave_then(name):
    model, then = cf.load(FILES / f"{name}.certifit"), EXPECTED[name]
    assert [number.hex() for number in model.coef_.tolist()] == then["coef"]
    assert float(model.intercept_).hex() == then["intercept"]
    np.testing.assert_allclose(model.predict(rows(model)), then["predictions"], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_has_no_encoder_and_is_verified(name):
    model = cf.load(FILES / f"{name}.certifit")
    assert model.encoder is None and model.encoder_ is None
    assert cf.verify(model, rows(model), EXPECTED["y"])


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_written_as_it_was(name):
    data = (FILES / f"{name}.certifit").read_bytes()
    assert content(to_bytes(from_bytes(data))) == content(data)
