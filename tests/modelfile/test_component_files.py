"""Claims about principal components in a file: the same bits come back, and nothing else is loaded."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from forge import edited, hexed, refuse, with_number
from samples import COMPONENTS, samples

import certifit as cf
from certifit.modelfile import ModelFileError
from certifit.modelfile.files import from_bytes, to_bytes


def fitted(name: str = "components") -> Any:
    return copy.deepcopy(samples()[name].model)


@pytest.mark.parametrize("name", COMPONENTS)
def test_scores_errors_and_attributes_are_the_same_bits(name, tmp_path):
    model, X, *_ = samples()[name]
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert vars(again).keys() == vars(model).keys()
    scores = model.transform(X)
    assert again.transform(X).tobytes() == scores.tobytes()
    assert again.inverse_transform(scores).tobytes() == model.inverse_transform(scores).tobytes()
    assert again.projection_error(X).tobytes() == model.projection_error(X).tobytes()
    assert again.certificate_ == model.certificate_ and again.data_ == model.data_
    assert again.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()
    for key, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.dtype == np.float64:
            assert getattr(again, key).tobytes() == value.tobytes(), key
        elif isinstance(value, float | int):
            assert getattr(again, key) == value, key
    for row, old in zip(again.history_, model.history_, strict=True):
        assert {**row, "seconds": 0} == {**old, "seconds": 0}


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_loaded_model_fits_to_the_same_bits(name):
    model, *data = samples()[name]
    assert to_bytes(from_bytes(to_bytes(model)).fit(*data)) == to_bytes(model)


def test_every_route_is_among_the_samples():
    assert {samples()[name].model.route_ for name in COMPONENTS} == {"columns", "rows", "products"}


@pytest.mark.parametrize("name", COMPONENTS)
def test_verify_refuses_directions_variances_and_a_centre_that_were_moved(name):
    model, *data = samples()[name]
    for attribute in ("components_", "explained_variance_", "mean_", "scale_"):
        changed = fitted(name)
        numbers = getattr(changed, attribute).reshape(-1)
        place = int(np.argmax(np.abs(numbers)))
        numbers[place] = numbers[place] * (1 + 1e-4) + (1e-4 if attribute == "mean_" else 0)
        assert not cf.verify(changed, *data), attribute
    X, _, weight = data
    assert not cf.verify(model, X[:-1], None, None if weight is None else weight[:-1])


def test_verify_refuses_the_second_directions_for_the_first():
    data = samples()["components of few rows"][1:]
    _, _, right = np.linalg.svd(data[0] - data[0].mean(axis=0), full_matrices=False)
    changed = fitted("components of few rows")
    changed.components_ = np.ascontiguousarray(right[1:3])
    assert not cf.verify(changed, *data)


def test_a_search_that_stopped_early_is_stored_with_what_it_can_prove():
    X = np.random.default_rng(0).normal(size=(80, 60))
    with pytest.warns(match="NOT certified"):
        model = cf.PCA(2, solver="randomized", max_iter=1, tol=1e-12).fit(X)
    again = from_bytes(to_bytes(model))
    assert not again.certificate_.holds and again.certificate_ == model.certificate_
    assert again.certificate_.outside is not None and not cf.verify(again, X)


def test_a_scan_is_verified(tmp_path):
    X = samples()["components share"].X
    np.savetxt(tmp_path / "d.csv", X, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
    scan = cf.scan_csv(tmp_path / "d.csv")
    cf.save(cf.PCA(2).fit(scan), tmp_path / "m.certifit")
    assert cf.verify(tmp_path / "m.certifit", scan)


EDITS: dict[str, tuple[str, str, Any, str]] = {
    "no components": ("components of few rows", "parameters.n_components", 0, "a whole number >= 1, a share"),
    "a share of 1.5": ("components share", "parameters.n_components", hexed(1.5), "a whole number >= 1, a share"),
    "a share of 0": ("components share", "parameters.n_components", hexed(0.0), "a whole number >= 1, a share"),
    "another rule": ("components mle", "parameters.n_components", "os.system", "a whole number >= 1, a share"),
    "components are true": ("components mle", "parameters.n_components", True, "a whole number >= 1, a share"),
    "three asked": ("components of few rows", "parameters.n_components", 3, "3 directions asked and 2 found"),
    "ddof 2": ("components", "parameters.ddof", 2, "a number from 0 to 1"),
    "no steps": ("components", "parameters.max_iter", 0, "whole number >= 1"),
    "a negative seed": ("components", "parameters.random_state", -1, "whole number >= 0"),
    "another solver": ("components", "parameters.solver", "arpack", "must be one of"),
    "no centre": ("components", "parameters.center", False, "a centre without center"),
    "no scale": ("components share", "parameters.standardize", False, "a scale without standardize"),
    "another route": ("components", "route", "eval", "must be one of"),
    "products": ("components", "route", "products", "'history' is missing"),
    "no products": ("components by products", "route", "columns", "'history' is no array"),
    "2**62 directions": ("components", "n_directions", 2**62, "must be float64 of shape"),
    "no directions": ("components", "n_directions", 0, "integer >= 1"),
    "more steps": ("components", "n_iterations", 2, "a history of more than one step"),
    "2**62 steps": ("components by products", "n_iterations", 2**62, "must be float64 of shape"),
    "a smaller total": ("components", "total_variance", hexed(1e-3), "more than the total"),
    "an infinite total": ("components", "total_variance", hexed(float("inf")), "float >= 0"),
    "no rows": ("components", "data.n_rows", 0, "integer >= 1"),
    "no weight": ("components", "data.sum_weight", hexed(0.5), "fewer rows than ddof"),
    "an infinite weight": ("components", "data.sum_weight", hexed(float("inf")), "float >= 0"),
    "a rank beyond": ("components", "certificate.rank", 7, "a rank of more than all columns"),
    "a negative residual": ("components", "certificate.residual", hexed(-1.0), ">= 0"),
    "an infinite gap": ("components mle", "certificate.gap", hexed(float("inf")), "finite float"),
    "a target": ("components", "target", "y", "unknown key 'target'"),
    "a regression": ("components", "estimator", "ridge", "has no|unknown key"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, path, value, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), path, value), reason)


NUMBERS: dict[str, tuple[str, str, Any, float, str]] = {
    "a longer direction": ("components", "state.components", (0, 0), 2.0, "not of length 1"),
    "a direction beyond float64": ("components", "state.components", (0, slice(0, 3)), 1e308, "not of length 1"),
    "a negative variance": ("components", "state.variances", -1, -1.0, "a variance below 0"),
    "variances beyond float64": ("components", "state.variances", slice(0, 3), 1e308, "more than the total"),
    "a large one dropped": ("components of few rows", "state.dropped", 0, 1e9, "larger than one kept"),
    "a negative one dropped": ("components of few rows", "state.dropped", 0, -1e-9, "a variance below 0"),
    "a scale of 0": ("components share", "state.scale", 0, 0.0, "not above 0"),
    "a scale": ("components", "state.scale", 0, 2.0, "a scale without standardize"),
    "a centre": ("components without centre", "state.mean", 0, 1.0, "a centre without center"),
    "sixteen digits": ("components", "certificate.digits", 0, 16.0, "0 to 15"),
    "a step below 0": ("components by products", "history", 0, -np.inf, "a residual below 0"),
    "negative digits": ("components", "certificate.digits", 0, -1.0, "0 to 15"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_illegal_numbers_under_right_digests_are_refused(case):
    name, array, place, number, reason = NUMBERS[case]
    refuse(with_number(to_bytes(fitted(name)), array, place, number), reason)


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("n_components", 3, "3 directions asked and 6 found|asked and"),
        ("center", False, "a centre without center"),
        ("noise_variance_", 7.0, "noise_variance_ of this PCA"),
        ("singular_values_", np.ones(3), "singular_values_ of this PCA"),
        ("whiten", 2, "True or False"),
    ],
)
def test_a_model_changed_to_what_no_fit_leaves_is_not_written(attribute, value, reason):
    model = fitted()
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


@pytest.mark.parametrize("more, holds", [(0.9, True), (1.1, False)])
def test_digits_of_directions_may_fall_as_residuals_may_grow(rng, more, holds):
    """A residual at its rounding is up to ten times as large on another processor."""
    X = rng.normal(size=(40, 3)) * [3.0, 2.0, 1.0]
    model = cf.PCA(2).fit(X)
    kept = model.certificate_
    model.certificate_ = replace(kept, digits=tuple(digits + more for digits in kept.digits))
    assert bool(cf.verify(model, X)) == holds
