"""Claims about models of scores and perceptrons in a file: the same bits come back, and are told and verified."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import PERCEPTRONS, SCORES, endless, few_rows, fit, quietly, samples

import certifit as cf
from certifit.mathematics.families.links import LINKS, Log
from certifit.mathematics.families.responses import FAMILIES, Poisson
from certifit.minimise.minimum import SOLVERS
from certifit.modelfile import inspect
from certifit.modelfile.files import PASSING, from_bytes, to_bytes
from certifit.models.glm import modelfile as glm

CLASSIFIERS = [name for name in SCORES if name.startswith(("logistic", "softmax"))]


# ---- the same model comes back


@pytest.mark.parametrize("name", [*SCORES, *PERCEPTRONS])
def test_predictions_and_attributes_are_the_same_bits(name, tmp_path):
    model, X, *_ = samples()[name]
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert type(again) is type(model) and vars(again).keys() == vars(model).keys()
    for ask in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        if hasattr(model, ask):
            assert _bits(getattr(again, ask)(X)) == _bits(getattr(model, ask)(X)), ask
    for key, value in vars(model).items():
        if isinstance(value, np.ndarray) and key.endswith("_") and value.dtype != object:
            assert getattr(again, key).dtype == value.dtype and getattr(again, key).tobytes() == value.tobytes(), key
    assert again.certificate_ == model.certificate_ and again.data_ == model.data_
    assert (again.objective, again.target_name_) == (model.objective, model.target_name_)
    assert again.n_iter_ == model.n_iter_
    for row, old in zip(again.history_, model.history_, strict=True):
        kept = row.keys() - PASSING
        assert kept == old.keys() - PASSING
        assert {key: row[key] for key in kept} == {key: old[key] for key in kept}


def _bits(array: Any) -> Any:
    return array.tolist() if array.dtype == object else array.tobytes()


@pytest.mark.parametrize("name", [*SCORES, *PERCEPTRONS])
@pytest.mark.slow
def test_a_loaded_model_fits_to_the_same_bits(name):
    sample = samples()[name]
    assert to_bytes(fit(from_bytes(to_bytes(sample.model)), sample)) == to_bytes(sample.model)


def test_the_samples_are_what_they_should_be():
    found = {name: samples()[name].model for name in SCORES}
    assert found["softmax"].coef_.shape == (3, 3) and found["logistic"].coef_.shape == (1, 3)
    has_inference = {name for name, model in found.items() if model.inference_ is not None}
    assert has_inference == {"logistic likelihood", "gamma", "glm exposed", "glm tweedie", "glm probit"}
    exposed = found["poisson exposed"]
    assert (exposed.offset_name_, exposed.exposure_name_) == ("o", "e")


@pytest.mark.parametrize("name", ["logistic likelihood", "gamma", "glm exposed", "glm probit"])
def test_summary_and_intervals_are_the_same(name):
    model, X, *_ = samples()[name]
    again = from_bytes(to_bytes(model))
    assert str(again.summary()) == str(model.summary())
    for convention in ("R", "statsmodels"):
        assert str(again.summary(convention=convention)) == str(model.summary(convention=convention))
        ends = [one.predict_interval(X, 0.9, convention=convention) for one in (again, model)]
        assert ends[0].tobytes() == ends[1].tobytes()


def test_a_summary_that_needs_rows_takes_them_after_a_load():
    model, X, y, _ = samples()["glm tweedie"]
    again = from_bytes(to_bytes(model))
    assert np.isnan(again.inference_.saturated)
    assert str(again.summary(X, y)) == str(model.summary(X, y))


LABELS = {
    "text": np.array(["b", "a\x1b"]),
    "wider text": np.array(["b", "a"], dtype="U30"),
    "objects": np.array(["", "a long label " * 99], dtype=object),
    "flags": np.array([True, False]),
    "small integers": np.array([-128, 127], dtype=np.int8),
    "large integers": np.array([-(2**63), 2**63 - 1]),
    "larger integers": np.array([0, 2**64 - 1], dtype=np.uint64),
    "double": np.array([-0.0, 2.0**52]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("model", [cf.LogisticRegression(), cf.Perceptron()])
def test_labels_of_any_type_are_kept_exactly(kind, model):
    X, labels = few_rows()[0], LABELS[kind]
    model = copy.deepcopy(model).fit(X, labels[(X[:, 0] > 0) * 1])
    again = from_bytes(to_bytes(model))
    assert again.classes_.dtype == model.classes_.dtype and again.classes_.tolist() == model.classes_.tolist()
    assert again.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("kind", LABELS)
def test_weights_of_classes_come_back_by_label(kind):
    X, _, is_high = few_rows()
    labels = LABELS[kind]
    model = cf.LogisticRegression(class_weight={labels[1].item() if labels.dtype != object else labels[1]: 3})
    again = from_bytes(to_bytes(model.fit(X, labels[is_high * 1])))
    assert sorted(again.class_weight) == sorted(labels.tolist()) and sorted(again.class_weight.values()) == [1, 3]
    assert again.fit(X, labels[is_high * 1]).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("solver", glm.SOLVERS)
def test_a_model_of_every_solver_comes_back(solver):
    X, counts, _ = few_rows()
    model = quietly(cf.PoissonRegressor(0.1, solver=solver, max_iter=50).fit, X, counts)
    again = from_bytes(to_bytes(model))
    assert again.solver == solver and to_bytes(quietly(again.fit, X, counts)) == to_bytes(model)


def test_every_solver_and_every_family_of_the_library_has_its_name():
    assert ("auto", *SOLVERS, "coordinate-descent") == glm.SOLVERS
    assert tuple(FAMILIES) == glm.NAMES
    assert {name for name, law in FAMILIES.items() if vars(law)} == {"tweedie", "negative-binomial"}
    for estimator, name in glm.LAWS.items():
        model = samples()[{"logistic_regression": "logistic likelihood"}.get(estimator, estimator.split("_")[0])].model
        assert model._family() == (FAMILIES[name], FAMILIES[name].default_link.name)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_with_every_link_comes_back(name):
    X, counts, is_high = few_rows(60)
    y = is_high.astype(float) if FAMILIES[name].means[1] == 1 else counts + 1
    for link in (None, *FAMILIES[name].links):
        model = quietly(cf.GLM(name, link, alpha=0.1, tol=1e-6).fit, 0.1 * X, y)
        again = from_bytes(to_bytes(model))
        assert again.link == link and again.objective == model.objective
        assert again._family() == model._family()
        assert again.predict(0.1 * X).tobytes() == model.predict(0.1 * X).tobytes()


def test_families_and_links_as_objects_come_back():
    X, counts, _ = few_rows()
    model = cf.GLM(cf.families.NegativeBinomial(0.25), Log()).fit(X, counts)
    again = from_bytes(to_bytes(model))
    assert (again.family, again.link) == (cf.families.NegativeBinomial(0.25), "log")
    assert from_bytes(to_bytes(cf.GLM(Poisson()).fit(X, counts))).family == "poisson"
    root = cf.GLM("poisson", LINKS["sqrt"], alpha=0.1).fit(0.1 * X, counts)
    assert from_bytes(to_bytes(root)).link == "sqrt"


def test_a_null_deviance_may_be_infinite():
    X, counts, _ = few_rows()
    model = cf.GLM("poisson", "identity", fit_intercept=False).fit(np.abs(X) + 1, counts + 1)
    assert model.inference_.null_deviance == np.inf
    assert from_bytes(to_bytes(model)).inference_.null_deviance == np.inf


def test_offset_and_exposure_are_named():
    X, counts, is_high = few_rows()
    beside = pd.Series(X[:, 0], name="<b>")
    model = cf.PoissonRegressor(0.1).fit(X, counts, exposure=np.exp(beside))
    again = from_bytes(to_bytes(model))
    assert (again.offset_name_, again.exposure_name_) == (None, "<b>")
    assert cf.verify(again, X, counts, exposure=np.exp(beside)) and not cf.verify(again, X, counts)
    model = cf.LogisticRegression().fit(X, is_high, offset=beside)
    again = from_bytes(to_bytes(model))
    assert (again.offset_name_, again.exposure_name_) == ("<b>", None)
    assert cf.verify(again, X, is_high, offset=beside) and not cf.verify(again, X, is_high)


def test_separated_classes_are_stored_with_their_fault():
    X = few_rows()[0]
    model = quietly(cf.LogisticRegression(0.0).fit, X, X[:, 0] > 0)
    assert model.certificate_.fault and model.certificate_.separation is not None
    again = from_bytes(to_bytes(model))
    assert again.certificate_ == model.certificate_ and again.certificate_.sentences() == model.certificate_.sentences()
    assert again.certificate_.separation is None
    result = cf.verify(again, X, X[:, 0] > 0)
    assert not result and "There is no proof on this data." in str(result)


def test_an_estimate_says_so_after_a_load():
    X, counts, _ = few_rows()
    model = cf.GLM("gaussian", "log").fit(0.1 * X, counts + 1)
    assert from_bytes(to_bytes(model)).certificate_.is_local == model.certificate_.is_local is True


@pytest.mark.slow
def test_a_history_of_200_000_iterations_is_kept():
    model = copy.deepcopy(samples()["poisson"].model)
    row = {"objective": 1.0, "gap": float("inf"), "step": 0.5, "seconds": 0.0}
    model.history_ = [{"iteration": 2 * i, **row} for i in range(200_000)]
    again = from_bytes(to_bytes(model))
    assert again.n_iter_ == model.n_iter_ == 399_998 and len(again.history_) == 200_000


# ---- rows that come in parts


def test_a_model_of_parts_goes_on_from_its_file_and_is_saved_again():
    X, counts, is_high = few_rows(60)
    model = cf.PoissonRegressor(0.1, solver="sgd").partial_fit(X[:30], counts[:30])
    again = from_bytes(to_bytes(model)).partial_fit(X[30:], counts[30:])
    assert [row["iteration"] for row in from_bytes(to_bytes(again)).history_] == [0, 1]
    assert again.data_["n_rows"] == 60 and "seen once" in again.certificate_.fault
    model = cf.LogisticRegression(0.1, solver="averaged-sgd").partial_fit(X, is_high, [False, True])
    again = from_bytes(to_bytes(model))
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert from_bytes(to_bytes(again.partial_fit(X, is_high))).history_[-1]["iteration"] == 1


def test_parts_after_a_whole_fit_are_saved():
    X, counts, _ = few_rows()
    model = quietly(cf.PoissonRegressor(0.1, solver="sgd", max_iter=3).fit, X, counts).partial_fit(X, counts)
    numbers = [row["iteration"] for row in from_bytes(to_bytes(model)).history_]
    assert numbers == sorted(set(numbers)) and len(numbers) == len(model.history_)


def test_a_perceptron_goes_on_from_its_file_to_the_same_bits():
    X, _, is_high = few_rows()
    model = cf.Perceptron().partial_fit(X, is_high, [False, True])
    again = from_bytes(to_bytes(model))
    assert to_bytes(again.partial_fit(X, is_high)) == to_bytes(model.partial_fit(X, is_high))


# ---- perceptrons


def test_a_perceptron_without_end_keeps_its_proof_and_its_cycle():
    model = endless()
    again = from_bytes(to_bytes(model))
    assert model.cycle_ is not None and again.cycle_ == model.cycle_
    assert again.certificate_ == model.certificate_ and len(again.certificate_.rows) == 3
    assert again.certificate_.sentences() == model.certificate_.sentences()
    assert not cf.verify(again, [[0.0], [1.0], [2.0]], [0, 1, 0])


# ---- inspect


@pytest.mark.parametrize("name", SCORES)
def test_inspect_says_what_the_model_says(name, tmp_path):
    model = samples()[name].model
    cf.save(model, tmp_path / "m.certifit")
    found = inspect(tmp_path / "m.certifit")
    assert (found.model["class"], found.model["objective"]) == (type(model).__name__, model.objective)
    assert found.model["alpha"] == model.alpha_ and found.target == model.target_name_
    assert (found.model["offset"], found.model["exposure"]) == (model.offset_name_, model.exposure_name_)
    assert found.model["has_standard_errors"] == (model.inference_ is not None)
    assert found.certificate["sentences"] == model.certificate_.sentences()
    assert found.data == model.data_ | {"n_iterations": len(model.history_)}
    assert found.model["n_factors"] == (0 if model.penalty_factors is None else 1)
    if name in CLASSIFIERS:
        assert found.classes["labels"] == model.classes_.tolist()
    if name.startswith("softmax"):
        assert found.coefficients is None
        return
    assert found.coefficients["values"] == np.ravel(model.coef_).tolist()
    assert found.coefficients["intercept"] == (np.ravel(model.intercept_)[0] if model.fit_intercept else None)


@pytest.mark.parametrize("name", PERCEPTRONS)
def test_inspect_says_what_a_perceptron_says(name, tmp_path):
    model = samples()[name].model
    cf.save(model, tmp_path / "m.certifit")
    found = inspect(tmp_path / "m.certifit")
    assert (found.model["class"], found.model["objective"]) == ("Perceptron", model.objective)
    assert found.model["n_updates"] == model.n_updates_ and found.classes["labels"] == model.classes_.tolist()
    assert found.coefficients["values"] == model.coef_[0].tolist()
    assert found.certificate["sentences"] == model.certificate_.sentences()
    assert found.data == model.data_


# ---- verify


# Solvers with names may end as far from the minimum as such a weight is.
AT_THE_MINIMUM = [name for name in SCORES if name not in ("logistic in powers", "poisson", "glm redundant")]


@pytest.mark.parametrize("name", AT_THE_MINIMUM)
@pytest.mark.slow
def test_verify_refuses_a_weight_moved_by_a_ten_thousandth(name):
    model, *data = samples()[name]
    for place in np.ndindex(np.shape(model.coef_)):
        changed = copy.deepcopy(model)
        changed.coef_[place] += 1e-4 * max(abs(changed.coef_[place]), 1e-3)
        result = cf.verify(changed, *data)
        assert not result and "NOT verified" in str(result), place
    if model.fit_intercept:
        changed = copy.deepcopy(model)
        changed.intercept_ = changed.intercept_ + 1e-4
        assert name.startswith("softmax") or not cf.verify(changed, *data)


def test_verify_refuses_a_perceptron_whose_weights_part_nothing():
    model, X, y, _ = samples()["perceptron"]
    assert not cf.verify(model, X, y[::-1].copy())
    changed = copy.deepcopy(model)
    changed.coef_ = -changed.coef_
    assert not cf.verify(changed, X, y)


@pytest.mark.parametrize("name", ["logistic", "softmax", "poisson", "glm probit"])
def test_verify_refuses_other_data(name):
    model, X, y, weight = samples()[name]
    for other_X, other_y in ((X, np.roll(y, 1)), (np.roll(X, 1, axis=0), y), (X * 1.001, y)):
        assert not cf.verify(model, other_X, other_y, weight)
    assert "This is not the data" in str(cf.verify(model, X[:-4], y[:-4], None if weight is None else weight[:-4]))
