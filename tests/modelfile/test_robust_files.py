"""Claims about model files of Huber regression: the scale comes back, and nothing else than what was fitted."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pytest
from forge import dumps, hexed, metadata, refuse, with_text
from samples import ROBUST, samples

import certifit as cf
from certifit.modelfile import ModelFileError
from certifit.modelfile.files import from_bytes, to_bytes


def fitted(name: str = "huber") -> Any:
    return copy(samples()[name].model)


def edited(data: bytes, section: str, **changes: Any) -> bytes:
    """The file with entries of one record changed, and right digests."""
    tree = metadata(data)
    return with_text(data, dumps(tree | {section: tree[section] | changes}))


@pytest.mark.parametrize("name", ROBUST)
def test_the_scale_and_the_certificate_come_back_and_hold_on_the_rows(name):
    model, *rows = samples()[name]
    again = from_bytes(to_bytes(model))
    assert again.scale_.hex() == model.scale_.hex() and again.n_iter_ == model.n_iter_
    assert again.objective == model.objective
    assert cf.verify(again, *rows)


@pytest.mark.parametrize("name", ROBUST)
def test_a_loaded_model_fits_to_the_same_bits(name):
    model, *rows = samples()[name]
    again = from_bytes(to_bytes(model)).fit(*rows)
    assert again.coef_.tobytes() == model.coef_.tobytes() and again.scale_ == model.scale_


@pytest.mark.parametrize("name", ["huber", "huber mad"])
def test_verify_refuses_another_scale(name):
    model, *rows = samples()[name]
    data = to_bytes(model)
    forged = from_bytes(edited(data, "robust", scale=hexed(model.scale_ * (1 + 1e-3))))
    assert not cf.verify(forged, *rows)


@pytest.mark.parametrize(
    "changes",
    [{"alpha": hexed(0.2)}, {"delta": hexed(1.2)}, {"scale": "mad"}],
)
def test_verify_refuses_another_objective_under_right_digests(changes):
    model, *rows = samples()["huber"]
    data = edited(to_bytes(model), "parameters", **changes)
    if "alpha" in changes:
        data = edited(data, "solution", **changes)
    assert not cf.verify(from_bytes(data), *rows)


@pytest.mark.parametrize("name", ROBUST)
@pytest.mark.slow
def test_verify_refuses_a_coefficient_moved_by_a_ten_thousandth(name):
    model, *rows = samples()[name]
    for j in range(len(model.coef_)):
        forged = from_bytes(to_bytes(model))
        if not forged.coef_[j] or len(forged.null_intercept_):
            continue  # of redundant columns only sums are determined
        forged.coef_[j] *= 1 + 1e-4
        assert not cf.verify(forged, *rows), model.column_names_[j]


def test_a_fit_that_stopped_early_is_stored_with_what_it_can_prove():
    _, X, y = samples()["huber"][:3]
    with pytest.warns(match="NOT certified"):
        model = cf.HuberRegressor(scale=0.01, max_iter=1).fit(X, y)
    again = from_bytes(to_bytes(model))
    assert not again.certificate_.holds and again.certificate_ == model.certificate_
    result = cf.verify(again, X, y)
    assert not result and "above the tolerance" in str(result)


EDITS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "no scale": ("huber", "robust", {"scale": hexed(0.0)}, "a finite float > 0"),
    "negative scale": ("huber", "robust", {"scale": hexed(-1.0)}, "a finite float > 0"),
    "infinite scale": ("huber", "robust", {"scale": hexed(float("inf"))}, "a finite float > 0"),
    "scale is a text": ("huber", "robust", {"scale": "joint"}, "a finite float > 0"),
    "scale is null": ("huber", "robust", {"scale": None}, "a finite float > 0"),
    "another scale than asked": ("huber fixed", "robust", {"scale": hexed(0.6)}, "scale 0.5 asked and 0.6 used"),
    "another scale asked": ("huber fixed", "parameters", {"scale": 2}, "scale 2 asked and 0.5 used"),
    "a rule without a name": ("huber", "parameters", {"scale": "os.system"}, "'joint', 'mad' or a number"),
    "a rule that is true": ("huber", "parameters", {"scale": True}, "'joint', 'mad' or a number"),
    "a rule that is a list": ("huber", "parameters", {"scale": ["joint"]}, "'joint', 'mad' or a number"),
    "a scale of 1e-320": ("huber fixed", "parameters", {"scale": hexed(1e-320)}, "'joint', 'mad' or a number"),
    "delta 0": ("huber", "parameters", {"delta": 0}, "a finite number >= 1e-6"),
    "delta 1 with a joint scale": ("huber", "parameters", {"delta": 1}, "delta 1 with a joint scale"),
    "delta is infinite": ("huber", "parameters", {"delta": hexed(float("inf"))}, "a finite number >= 1e-6"),
    "delta is code": ("huber", "parameters", {"delta": "__import__('os')"}, "a finite number >= 1e-6"),
    "negative alpha": ("huber", "parameters", {"alpha": hexed(-0.1)}, "finite number >= 0"),
    "alpha is not the one used": ("huber", "parameters", {"alpha": 1}, "alpha 1 asked and 0.0 used"),
    "max_iter 0": ("huber", "parameters", {"max_iter": 0}, "from 1 to 1000000"),
    "max_iter 2**62": ("huber", "parameters", {"max_iter": 2**62}, "from 1 to 1000000"),
    "max_iter 2**63": ("huber", "parameters", {"max_iter": 2**63}, "64 bits"),
    "max_iter is true": ("huber", "parameters", {"max_iter": True}, "from 1 to 1000000"),
    "a parameter more": ("huber", "parameters", {"epsilon": 1}, "unknown key 'epsilon'"),
    "another rank": ("huber redundant", "solution", {"rank": 4}, "does not fit together"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, section, changes, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), section, **changes), reason)


def test_standard_errors_are_refused():
    data = to_bytes(fitted("huber"))
    tree = metadata(data) | {"inference": {"exponent": 0, "rss": hexed(1.0), "tss": hexed(1.0)}}
    refuse(with_text(data, dumps(tree)), "'inference.inverse' is missing|standard errors")


def test_another_class_under_right_digests_is_refused():
    for name, other in [("huber", "ridge"), ("huber", "lasso"), ("ridge", "huber_regressor")]:
        data = to_bytes(fitted(name))
        refuse(with_text(data, dumps(metadata(data) | {"estimator": other})), "has the unknown key|has no")


@pytest.mark.parametrize(
    "name, attribute, value",
    [
        ("huber fixed", "scale", 0.7),
        ("huber", "delta", 0.5),
        ("huber", "max_iter", 2**70),
        ("huber", "scale_", -1.0),
        ("huber", "scale_", np.nan),
    ],
)
def test_a_model_changed_to_an_illegal_one_is_not_written(name, attribute, value):
    model = fitted(name)
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match="cannot be saved"):
        to_bytes(model)
