"""Claims about verify: it holds for what fit left, and for nothing that differs from it."""

from __future__ import annotations

import copy
import dataclasses
import struct
from typing import Any

import numpy as np
import pytest
from forge import dumps, hexed, metadata, refuse, seal, split, with_text
from samples import EVERY, NAMES, samples
from sklearn.base import clone

import certifit as cf
from certifit.modelfile import ModelFileError, Verification
from certifit.modelfile.files import from_bytes, to_bytes


def nudged(model: Any, place: int, by: float = 1e-4) -> Any:
    """A copy with coefficient `place` (-1: the intercept) changed by a relative amount."""
    changed = copy.deepcopy(model)
    if place < 0:
        changed.intercept_ += by * max(abs(changed.intercept_), 1.0)
    else:
        changed.coef_[place] += by * max(abs(changed.coef_[place]), 1e-3)
    return changed


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.slow
def test_what_fit_left_is_verified_in_memory_and_from_its_file(name, tmp_path):
    model, *data = samples()[name]
    cf.save(model, tmp_path / "m.certifit")
    for given in (model, tmp_path / "m.certifit", str(tmp_path / "m.certifit")):
        result = cf.verify(given, *data)
        assert isinstance(result, Verification)
        assert result and result.holds and result.reasons == ()
        assert result.stored == model.certificate_
        assert result.certificate.names == model.certificate_.names
        assert str(result).startswith("Verified: on this data")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_nudge_of_any_coefficient_is_refused(name):
    model, *data = samples()[name]
    first = -1 if model.fit_intercept else 0
    for place in range(first, len(model.coef_)):
        result = cf.verify(nudged(model, place), *data)
        assert not result and not result.holds
        assert "was claimed" in str(result)
        assert str(result).startswith("NOT verified.")


@pytest.mark.parametrize("noise", [1.0, 10.0])
def test_a_nudge_that_the_objective_hardly_feels_is_refused(noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X @ [1.0, 1.0, 1.0] + noise * rng.normal(size=500)
    model = cf.LinearRegression().fit(X, y)
    result = cf.verify(nudged(model, 0, 1e-5), X, y)
    assert result.certificate.holds and not result.holds


OTHER_DATA = ["least squares", "ridge", "chebyshev", "fewer rows than columns", "lasso", "lasso with bounds"]


@pytest.mark.parametrize("name", OTHER_DATA)
def test_other_data_of_the_same_size_are_refused(name):
    model, X, y, weight = samples()[name]
    for other_X, other_y in ((X, y[::-1]), (X, y + 1e-3 * np.arange(len(y))), (X * 1.001, y)):
        result = cf.verify(model, other_X, other_y, weight)
        assert not result
        assert not any("not the data" in reason for reason in result.reasons)


def test_one_changed_value_is_refused():
    model, X, y, _ = samples()["least squares"]
    changed = y.copy()
    changed[5] += 1e-6
    assert not cf.verify(model, X, changed)


def test_another_number_of_rows_is_said():
    model, X, y, _ = samples()["least squares"]
    result = cf.verify(model, X[:20], y[:20])
    assert not result
    assert result.reasons[0] == "This is not the data the model was fitted on: 20 rows, the model saw 24."


def test_other_weights_are_said():
    model, X, y, weight = samples()["weighted"]
    result = cf.verify(model, X, y)
    assert not result
    assert result.reasons[0].endswith(f"the weights sum to 24, the model saw {weight.sum():g}.")
    assert not cf.verify(model, X, y, weight[::-1])


WEIGHED = [
    cf.AdaBoostClassifier(3),
    cf.BaggingClassifier(cf.DecisionTreeClassifier(max_depth=2), 3),
    cf.Calibrated(cf.LinearSVC(), cv=2),
    cf.DecisionTreeClassifier(max_depth=2),
    cf.DecisionTreeRegressor(max_depth=2),
    cf.GaussianDiscriminant(),
    cf.GradientBoostingClassifier(3),
    cf.GradientBoostingRegressor(3),
    cf.LogisticRegression(0.1),
    cf.MLPClassifier((2,), max_iter=200),
    cf.MLPRegressor((2,), max_iter=200),
    cf.RandomForestClassifier(3),
    cf.RandomForestRegressor(3),
    cf.Ridge(0.1),
    cf.SVC(),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", WEIGHED, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("is_class_weighed", [True, False])
def test_rows_of_weight_0_are_no_other_data(model, is_class_weighed):
    """Nor is a class that has only such rows."""
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(24, 2)), np.arange(24) % 2, rng.choice([1.0, 2.0], size=24)
    weight[[3, 8, 11]] = 0
    y[3] = 1 if is_class_weighed else 2
    model = clone(model).fit(X, y, sample_weight=weight)
    result = cf.verify(model, X, y, weight)
    assert not any("not the data" in reason for reason in result.reasons)
    assert bool(result) == model.certificate_.holds


def test_the_order_of_rows_does_not_matter():
    model, X, y, _ = samples()["least squares"]
    order = np.random.default_rng(1).permutation(len(y))
    assert cf.verify(model, X[order], y[order])


def test_a_scan_is_verified(tmp_path):
    _, X, y, _ = samples()["least squares"]
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "d.csv", table, delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    scan = cf.scan_csv(tmp_path / "d.csv", target="y")
    model = cf.LinearRegression().fit(scan)
    assert cf.verify(model, scan)
    assert not cf.verify(nudged(model, 0), scan)


def test_no_solver_takes_part(monkeypatch):
    from certifit.models.least_squares import model as linear

    def solve(task: Any) -> None:
        raise AssertionError("verify called a solver")

    monkeypatch.setattr(linear, "solve", solve)
    for name in ("least squares", "ridge", "fewer rows than columns"):
        assert cf.verify(*samples()[name])


def test_a_nudged_coefficient_in_a_file_with_right_digests_is_refused(tmp_path):
    model, X, y, _ = samples()["least squares"]
    table, payload = split(to_bytes(model))
    start = table["coef"]["data_offsets"][0]
    forged = payload[:start] + struct.pack("<d", model.coef_[0] * (1 + 1e-4)) + payload[start + 8 :]
    (tmp_path / "m.certifit").write_bytes(seal(table, forged))
    assert cf.load(tmp_path / "m.certifit").coef_[0] != model.coef_[0]
    assert not cf.verify(tmp_path / "m.certifit", X, y)


def test_the_numbers_of_another_model_under_right_digests_are_refused():
    model, X, y, _ = samples()["ridge"]
    forged = seal(split(to_bytes(model))[0], split(to_bytes(cf.Ridge().fit(X, -2 * y)))[1])
    assert not cf.verify(from_bytes(forged), X, y)
    model, other = samples()["least squares"].model, samples()["exact"].model  # standard errors tell at once
    refuse(seal(split(to_bytes(model))[0], split(to_bytes(other))[1]), "not those of the objective")


def test_digits_claimed_beyond_those_proven_are_refused():
    model, X, y, _ = samples()["least squares"]
    table, payload = split(to_bytes(model))
    start, end = table["certificate.digits"]["data_offsets"]
    forged = from_bytes(seal(table, payload[:start] + struct.pack("<4d", *[15.0] * 4) + payload[end:]))
    result = cf.verify(forged, X, y)
    assert not result
    assert len(result.reasons) == 1
    assert result.reasons[0].startswith("Fewer digits are proven than claimed: '")


def test_a_smaller_excess_claimed_than_there_is_is_refused():
    model, X, y, _ = samples()["least squares"]
    tree = metadata(to_bytes(model))
    tree["certificate"]["value"] = hexed(0.0)
    result = cf.verify(from_bytes(with_text(to_bytes(model), dumps(tree))), X, y)
    assert not result
    assert "and 0.0e+00 was claimed" in str(result)


def test_another_rank_is_refused():
    model, X, y, _ = samples()["fewer rows than columns"]
    changed = copy.deepcopy(model)
    changed.certificate_ = dataclasses.replace(model.certificate_, rank=2)
    assert "The columns have rank 3 on this data, and rank 2 was claimed." in cf.verify(changed, X, y).reasons


def test_a_value_that_is_not_a_number_never_holds():
    model, X, y, _ = samples()["ridge"]
    broken = copy.deepcopy(model)
    broken.certificate_ = dataclasses.replace(model.certificate_, value=float("nan"))
    assert not cf.verify(broken, X, y)


def test_reasons_hold_no_control_characters():
    model, *data = samples()["named"]
    result = cf.verify(nudged(model, 0), *data)
    assert all(reason.isprintable() for reason in result.reasons)
    assert any(r"\x1b[31mred" in reason for reason in result.reasons)


def test_a_damaged_file_is_an_error_and_no_verdict(tmp_path):
    model, X, y, _ = samples()["ridge"]
    (tmp_path / "m.certifit").write_bytes(to_bytes(model)[:-1])
    with pytest.raises(ModelFileError):
        cf.verify(tmp_path / "m.certifit", X, y)


@pytest.mark.parametrize("model", [cf.LinearRegression(), cf.Ridge(), cf.Ridge(alpha=1e-3), cf.Ridge(alpha=10.0)])
@pytest.mark.slow
def test_every_fit_that_is_certified_is_verified_on_its_data(model):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n_rows, d = int(rng.integers(15, 300)), int(rng.integers(1, 10))
        X = rng.normal(size=(n_rows, d)) * 10.0 ** rng.integers(-3, 4, size=d) + 10.0 ** rng.integers(-3, 4, size=d)
        y = X @ rng.normal(size=d) + rng.normal(size=n_rows) * 10.0 ** rng.integers(-6, 3)
        weight = rng.uniform(0.1, 3.0, size=n_rows) if seed % 2 else None
        model.fit(X, y, weight)
        assert model.certificate_.holds
        assert cf.verify(model, X, y, weight).reasons == ()
