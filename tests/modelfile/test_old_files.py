"""Claims about model files of earlier versions and of this one: every later version reads them.

Those of least squares and ridge were written before models had encoders. A file that is here is never written again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fuzz import content
from keep import kept, read
from learners import Row

import certifit as cf
from certifit.modelfile.codec import key_of
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.table import PUBLIC

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_text())
KEPT = sorted(path.stem for path in FILES.glob("*.certifit"))
MODELS = sorted(EXPECTED.keys() - {"X", "y", "table"})
OTHERS = [  # see test_old_class_files and test_old_score_files; the others have their rows beside them
    name
    for kind in ("classes", "scores")
    for name in json.loads((FILES / f"expected_{kind}.json").read_text())["models"]
] + [name for name in KEPT if name.startswith("kernel_")]  # see test_kernel_ridge and test_kernel_models


def rows(model: Any) -> Any:
    if model.encoder_ is not None:
        return pd.DataFrame(EXPECTED["table"])
    X = np.array(EXPECTED["X"])
    return pd.DataFrame(X, columns=model.feature_names_in_) if hasattr(model, "feature_names_in_") else X


def test_there_is_a_file_of_each_class():
    missing = set(PUBLIC) - {key_of(cf.load(FILES / f"{name}.certifit")) for name in KEPT}
    assert not missing, "keep one: python tests/modelfile/keep.py KEY"


def test_every_file_has_its_numbers():
    assert sorted([*MODELS, *OTHERS, *kept()]) == KEPT


@pytest.mark.parametrize("name", kept())
def test_a_kept_file_answers_as_it_did_then_is_verified_and_written_as_it_was(name):
    X, y, answers = read(name)
    data = (FILES / f"{name}.certifit").read_bytes()
    model = from_bytes(data)
    np.testing.assert_allclose(Row.answers(model, X), answers, rtol=1e-12, atol=1e-12)
    assert cf.verify(model, X, y)
    assert content(to_bytes(model)) == content(data)


@pytest.mark.parametrize("name", MODELS)
def test_an_old_file_gives_the_numbers_that_it_gave_then(name):
    model, then = cf.load(FILES / f"{name}.certifit"), EXPECTED[name]
    assert [number.hex() for number in model.coef_.tolist()] == then["coef"]
    assert float(model.intercept_).hex() == then["intercept"]
    assert getattr(model, "scale_", 0.0).hex() == then.get("scale", (0.0).hex())
    np.testing.assert_allclose(model.predict(rows(model)), then["predictions"], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_verified_and_has_an_encoder_only_for_a_table(name):
    model = cf.load(FILES / f"{name}.certifit")
    assert (model.encoder is not None) == (model.encoder_ is not None) == name.startswith("table")
    assert cf.verify(model, rows(model), EXPECTED["y"])


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_is_written_as_it_was(name):
    data = (FILES / f"{name}.certifit").read_bytes()
    assert content(to_bytes(from_bytes(data))) == content(data)
