"""The certificate as an object: when it holds, what it says, how it is kept."""

from __future__ import annotations

import html
import json
import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import certifit as cf
from certifit.models.certificate import Certificate


def certificate(**changes: Any) -> Certificate:
    given: dict[str, Any] = {
        "claim": "relative excess of the objective", "theorem": "a theorem", "value": 1e-12, "tolerance": 1e-8,
        "rounding": 1e-20, "rank": 2, "n_columns": 2, "condition": 12.5, "names": ("intercept", "a", "b"),
        "digits": (14.2, 13.9, 9.1),
    }  # fmt: skip
    return Certificate(**given | changes)


@pytest.mark.parametrize(
    "value, holds", [(1e-9, True), (1e-8, True), (1.1e-8, False), (math.inf, False), (math.nan, False)]
)
def test_it_holds_iff_the_value_is_within_the_tolerance(value, holds):
    assert certificate(value=value).holds is holds
    assert certificate(value=value).sentences()[0].startswith("Converged" if holds else "NOT certified")


def test_the_number_printed_is_the_number_that_was_typed():
    text = str(certificate(value=3.2e-5, tolerance=1e-6))
    assert "3.2e-05" in text and "asked was 1e-06" in text
    assert repr(certificate()) == "Certificate(relative excess of the objective: 1.0e-12 <= tol 1e-08)"
    assert repr(certificate(value=1.0)) == "Certificate(relative excess of the objective: 1.0e+00 > tol 1e-08)"


def test_the_fewest_digits_are_told_with_their_coefficient():
    text = str(certificate())
    assert "at least 9 in every coefficient (fewest: 'b')" in text
    assert "1.2e+01" in text


def test_coefficients_without_a_digit_are_told():
    text = str(certificate(digits=(14.2, 0.0, 9.1)))
    assert "at least 9 in 2 of 3 coefficients" in text
    assert "No digit is proven for 'a'" in text
    assert "No digit is proven for 'intercept', 'a', 'b'" in str(certificate(digits=(0.0, 0.0, 0.0)))


def test_a_feature_named_intercept_is_counted_apart():
    text = str(certificate(names=("intercept", "intercept", "b")))
    assert "in every coefficient" in text and "No digit" not in text


def test_redundant_columns_are_told_and_long_lists_cut():
    text = str(certificate(rank=1, dependent=("b = 2 a",), digits=()))
    assert "1 column is redundant (rank 1 of 2): b = 2 a." in text
    many = tuple(f"x{j} = x0" for j in range(1, 31))
    text = str(certificate(rank=1, n_columns=31, dependent=many))
    assert "30 columns are redundant" in text and "x10 = x0; ..." in text and "x11" not in text


def test_a_dictionary_of_plain_types_brings_it_back():
    for given in (certificate(), certificate(dependent=("b = 2 a",), value=math.pi * 1e-9), certificate(digits=())):
        text = json.dumps(given.to_dict())
        assert Certificate.from_dict(json.loads(text)) == given


def test_the_certificate_of_a_fit_has_plain_types():
    rng = np.random.default_rng(0)
    for X, y in ((rng.normal(size=(9, 2)), rng.normal(size=9)), (rng.normal(size=(2, 9)), rng.normal(size=2))):
        for model in (cf.LinearRegression(), cf.Ridge(0.1)):
            found = model.fit(X, y).certificate_
            for f in fields(found):
                value = getattr(found, f.name)
                assert isinstance(value, str | int | float | tuple | None)
            assert all(isinstance(name, str) for name in found.names + found.dependent)
            assert Certificate.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_it_cannot_be_edited():
    with pytest.raises(FrozenInstanceError):
        certificate().value = 0.0


def test_a_notebook_shows_the_objective_and_the_certificate():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = cf.Ridge(alpha=0.1)
    assert "|w|^2" in model._repr_html_()
    page = model.fit(X, X[:, 0])._repr_mimebundle_()["text/html"]
    assert page == model._repr_html_() or "sk-container-id" in page  # scikit-learn numbers its diagrams
    assert html.escape(str(model.certificate_)) in page
