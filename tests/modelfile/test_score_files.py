"""Claims about models of scores and perceptrons in a file: the same bits come back, and nothing else is loaded."""

from __future__ import annotations

import copy
import random
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forge import edited, hexed, metadata, refuse, with_array, with_number
from fuzz import outcome, sealed
from samples import PERCEPTRONS, SCORES, fit, samples

import certifit as cf
from certifit.families.links import LINKS, Log, Power
from certifit.families.responses import FAMILIES, Poisson
from certifit.modelfile import ModelFileError, container, inspect, laws, scores
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.solvers.table import SOLVERS

CLASSIFIERS = [name for name in SCORES if name.startswith(("logistic", "softmax"))]


def fitted(name: str) -> Any:
    return copy.deepcopy(samples()[name].model)


def rows(n_rows: int = 30) -> tuple[Any, Any, Any]:
    """Columns, counts and flags."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 2))
    z = X @ [0.5, -0.5] + 0.5
    return X, rng.poisson(np.exp(z)).astype(float), z + rng.logistic(size=n_rows) > 0


def quietly(action: Any, *data: Any, **given: Any) -> Any:
    """A fit that says that it proves nothing."""
    with warnings.catch_warnings(action="ignore"):
        return action(*data, **given)


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
        assert {**row, "seconds": 0} == {**old, "seconds": 0}


def _bits(array: Any) -> Any:
    return array.tolist() if array.dtype == object else array.tobytes()


@pytest.mark.parametrize("name", [*SCORES, *PERCEPTRONS])
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
    X, labels = rows()[0], LABELS[kind]
    model = copy.deepcopy(model).fit(X, labels[(X[:, 0] > 0) * 1])
    again = from_bytes(to_bytes(model))
    assert again.classes_.dtype == model.classes_.dtype and again.classes_.tolist() == model.classes_.tolist()
    assert again.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("kind", LABELS)
def test_weights_of_classes_come_back_by_label(kind):
    X, _, is_high = rows()
    labels = LABELS[kind]
    model = cf.LogisticRegression(class_weight={labels[1].item() if labels.dtype != object else labels[1]: 3})
    again = from_bytes(to_bytes(model.fit(X, labels[is_high * 1])))
    assert sorted(again.class_weight) == sorted(labels.tolist()) and sorted(again.class_weight.values()) == [1, 3]
    assert again.fit(X, labels[is_high * 1]).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_a_model_of_every_solver_comes_back(solver):
    X, counts, _ = rows()
    model = quietly(cf.PoissonRegressor(0.1, solver=solver, max_iter=50).fit, X, counts)
    again = from_bytes(to_bytes(model))
    assert again.solver == solver and to_bytes(quietly(again.fit, X, counts)) == to_bytes(model)


def test_every_solver_and_every_family_of_the_library_has_its_name():
    assert ("auto", *SOLVERS) == scores.SOLVERS
    assert tuple(FAMILIES) == laws.NAMES
    assert {name for name, law in FAMILIES.items() if vars(law)} == {"tweedie", "negative-binomial"}
    for estimator, name in laws.LAWS.items():
        model = samples()[{"logistic_regression": "logistic likelihood"}.get(estimator, estimator.split("_")[0])].model
        assert model._family() == (FAMILIES[name], FAMILIES[name].default_link.name)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_with_every_link_comes_back(name):
    X, counts, is_high = rows(60)
    y = is_high.astype(float) if FAMILIES[name].means[1] == 1 else counts + 1
    for link in (None, *FAMILIES[name].links):
        model = quietly(cf.GLM(name, link, alpha=0.1, tol=1e-6).fit, 0.1 * X, y)
        again = from_bytes(to_bytes(model))
        assert again.link == link and again.objective == model.objective
        assert again._family() == model._family()
        assert again.predict(0.1 * X).tobytes() == model.predict(0.1 * X).tobytes()


def test_families_and_links_as_objects_come_back():
    X, counts, _ = rows()
    model = cf.GLM(cf.families.NegativeBinomial(0.25), Log()).fit(X, counts)
    again = from_bytes(to_bytes(model))
    assert (again.family, again.link) == (cf.families.NegativeBinomial(0.25), "log")
    assert from_bytes(to_bytes(cf.GLM(Poisson()).fit(X, counts))).family == "poisson"
    root = cf.GLM("poisson", LINKS["sqrt"], alpha=0.1).fit(0.1 * X, counts)
    assert from_bytes(to_bytes(root)).link == "sqrt"


def test_a_null_deviance_may_be_infinite():
    X, counts, _ = rows()
    model = cf.GLM("poisson", "identity", fit_intercept=False).fit(np.abs(X) + 1, counts + 1)
    assert model.inference_.null_deviance == np.inf
    assert from_bytes(to_bytes(model)).inference_.null_deviance == np.inf


def test_offset_and_exposure_are_named():
    X, counts, is_high = rows()
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
    X = rows()[0]
    model = quietly(cf.LogisticRegression(0.0).fit, X, X[:, 0] > 0)
    assert model.certificate_.fault and model.certificate_.separation is not None
    again = from_bytes(to_bytes(model))
    assert again.certificate_ == model.certificate_ and again.certificate_.sentences() == model.certificate_.sentences()
    assert again.certificate_.separation is None
    result = cf.verify(again, X, X[:, 0] > 0)
    assert not result and "There is no proof on this data." in str(result)


def test_an_estimate_says_so_after_a_load():
    X, counts, _ = rows()
    model = cf.GLM("gaussian", "log").fit(0.1 * X, counts + 1)
    assert from_bytes(to_bytes(model)).certificate_.is_local == model.certificate_.is_local is True


# ---- rows that come in parts


def test_a_model_of_parts_goes_on_from_its_file_and_is_saved_again():
    X, counts, is_high = rows(60)
    model = cf.PoissonRegressor(0.1, solver="sgd").partial_fit(X[:30], counts[:30])
    again = from_bytes(to_bytes(model)).partial_fit(X[30:], counts[30:])
    assert [row["iteration"] for row in from_bytes(to_bytes(again)).history_] == [0, 1]
    assert again.data_["n_rows"] == 60 and "seen once" in again.certificate_.fault
    model = cf.LogisticRegression(0.1, solver="averaged-sgd").partial_fit(X, is_high, [False, True])
    again = from_bytes(to_bytes(model))
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert from_bytes(to_bytes(again.partial_fit(X, is_high))).history_[-1]["iteration"] == 1


def test_parts_after_a_whole_fit_are_saved():
    X, counts, _ = rows()
    model = quietly(cf.PoissonRegressor(0.1, solver="sgd", max_iter=3).fit, X, counts).partial_fit(X, counts)
    numbers = [row["iteration"] for row in from_bytes(to_bytes(model)).history_]
    assert numbers == sorted(set(numbers)) and len(numbers) == len(model.history_)


def test_a_perceptron_goes_on_from_its_file_to_the_same_bits():
    X, _, is_high = rows()
    model = cf.Perceptron().partial_fit(X, is_high, [False, True])
    again = from_bytes(to_bytes(model))
    assert to_bytes(again.partial_fit(X, is_high)) == to_bytes(model.partial_fit(X, is_high))


# ---- perceptrons


def endless() -> Any:
    """A perceptron of rows that no weights part; it goes round."""
    return quietly(cf.Perceptron().fit, [[0.0], [1.0], [2.0]], [0, 1, 0])


def test_a_perceptron_without_end_keeps_its_proof_and_its_cycle():
    model = endless()
    again = from_bytes(to_bytes(model))
    assert model.cycle_ is not None and again.cycle_ == model.cycle_
    assert again.certificate_ == model.certificate_ and len(again.certificate_.rows) == 3
    assert again.certificate_.sentences() == model.certificate_.sentences()
    assert not cf.verify(again, [[0.0], [1.0], [2.0]], [0, 1, 0])


def test_row_numbers_of_a_perceptron_reach_no_memory():
    # They are told: rows of a proof by the certificate, those of an order to a later fit, which checks them.
    model, X, y, _ = samples()["perceptron in order"]
    for order in ([2**62], [len(y)] * 9, [0, 2**63 - 1]):
        forged = edited(with_array(to_bytes(model), "order", np.array(order)), "n_order", len(order))
        again = from_bytes(forged)
        assert again.predict(X).tobytes() == model.predict(X).tobytes() and cf.verify(again, X, y)
        with pytest.raises(ValueError, match="order"):
            again.fit(X, y)
        again.partial_fit(X, y)
    data = to_bytes(endless())
    for number in (-1, 3, 2**62, -(2**63)):
        refuse(with_number(data, "proof.rows", 0, number), "row numbers that are not those of the data")
        refuse(with_number(to_bytes(model), "order", 0, min(number, -1)), "row numbers of an order that are negative")


def test_damaged_files_of_models_with_faults_are_refused_or_give_a_sound_model():
    X = rows()[0]
    faulty = [endless(), quietly(cf.LogisticRegression(0.0).fit, X, X[:, 0] > 0)]
    originals = [to_bytes(model) for model in faulty]
    found = [
        outcome(originals, sealed(originals[i % 2], random.Random(i), originals), is_blind=False) for i in range(600)
    ]
    assert {"refused", "sound"} <= set(found)


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


@pytest.mark.parametrize("name", ["logistic", "softmax", "poisson", "gamma", "glm probit"])
def test_an_edited_certificate_does_not_hide_a_moved_weight(name, tmp_path):
    _, *data = samples()[name]
    forged = with_number(to_bytes(fitted(name)), "coef", (0, 0), fitted(name).coef_.flat[0] * (1 + 1e-4))
    for key in ("value", "rounding"):
        forged = edited(forged, f"certificate.{key}", hexed(0.0))
    (tmp_path / "m.certifit").write_bytes(forged)
    said = inspect(tmp_path / "m.certifit").certificate
    assert said["holds"] and said["value"] == 0 and said["is_verified"] is False
    assert "0.0e+00 was claimed" in str(cf.verify(tmp_path / "m.certifit", *data))


# ---- what save refuses


def test_a_solver_that_is_an_object_is_refused_with_the_way_out():
    X, counts, _ = rows()
    model = quietly(cf.PoissonRegressor(0.1, solver=cf.SGD(step=0.01)).fit, X, counts)
    with pytest.raises(ModelFileError, match=r"solver=SGD\(step=0.01.* model.set_params\(solver='sgd'\), then save"):
        to_bytes(model)
    assert from_bytes(to_bytes(model.set_params(solver="sgd"))).coef_.tobytes() == model.coef_.tobytes()


class OwnPoisson(Poisson):
    """A family of somebody's own."""


def squares() -> Any:
    return cf.Loss(lambda y, z: (y - z) ** 2 / 2, lambda y, z: z - y, lambda y, z: np.ones_like(z))


@pytest.mark.parametrize(
    ("family", "link", "reason"),
    [
        (squares(), None, r"family=Loss\(...\) is a loss of your own: code, which a model file never stores"),
        (OwnPoisson(), None, "family='OwnPoisson' is a family of your own: code"),
        ("poisson", Power(0.7), "link='Power' is a link of your own: code"),
    ],
)
def test_code_of_the_user_is_refused_by_name(family, link, reason):
    X, counts, _ = rows()
    model = quietly(cf.GLM(family, link, alpha=0.1, tol=1e-6).fit, 0.1 * X, counts + 1)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


CHANGES: list[tuple[str, str, Any, str]] = [
    ("logistic drawn", "class_weight", {1: 9.0}, "are not those of its fit"),
    ("logistic drawn", "class_weight", {"x": 9.0}, "class_weight names 'x'"),
    ("logistic drawn", "class_weight", None, "'class_weight' is no array"),
    ("logistic", "class_weight", "balanced", "'class_weight' is missing"),
    ("logistic", "solver", "magic", "solver must be one of"),
    ("logistic", "solver", print, "is an object"),
    ("logistic", "alpha", 2.0, "alpha 2.0 asked"),
    ("logistic", "classes_", np.array(["b", "a"]), "classes that are not sorted"),
    ("softmax", "coef_", np.zeros((2, 3)), "must be float64 of shape"),
    ("poisson", "coef_", np.array([np.nan, 0, 0]), "holds NaN or infinity"),
    ("poisson", "note", "mine", "no place for the attribute 'note'"),
    ("gamma", "coef_", np.ones(3), "set inference_ = None"),
    ("glm tweedie", "family", "poisson", "inference_ of this GLM"),
    ("glm tweedie", "family", "magic", "family must be one of"),
    ("glm tweedie", "link", "probit", "link of family 'tweedie' must be one of"),
    ("perceptron", "n_updates_", 1, "n_updates_ of this Perceptron"),
    ("perceptron", "order", [-1], "negative"),
    ("perceptron", "start", [1.0], "must be float64 of shape"),
]


@pytest.mark.parametrize(("name", "attribute", "value", "reason"), CHANGES)
def test_a_model_changed_to_what_no_fit_leaves_is_not_written(name, attribute, value, reason):
    model = fitted(name)
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


# ---- what load refuses

EDITS: dict[str, tuple[str, str, Any, str]] = {
    "rank above columns": ("poisson", "certificate.rank", 4, "rank 4 of 3 columns"),
    "a relation too many": ("poisson", "certificate.dependent", ["x"], "more dependent columns"),
    "a fault that holds": ("poisson", "certificate.fault", "none", "a fault and a proof"),
    "a negative value": ("poisson", "certificate.value", hexed(-1.0), ">= 0"),
    "another alpha": ("poisson", "solution.alpha", hexed(3.0), "alpha 0.1 asked and 3.0 used"),
    "no alpha": ("poisson", "parameters.alpha", None, "finite number >= 0"),
    "a share above 1": ("poisson", "parameters.l1_ratio", 2, "a number from 0 to 1"),
    "a share that is true": ("poisson", "parameters.l1_ratio", True, "a number from 0 to 1"),
    "another solver": ("poisson", "parameters.solver", "os.system", "must be one of 'auto'"),
    "no iteration": ("poisson", "n_iterations", 0, "integer >= 1"),
    "2**40 iterations": ("poisson", "n_iterations", 2**40, "must be (float64|int64) of shape"),
    "iterations of the lasso": ("poisson", "penalty.iterations", [0], "unknown key 'iterations'"),
    "no intercept": ("poisson", "parameters.fit_intercept", False, "an intercept without fit_intercept"),
    "factors announced": ("poisson", "penalty.has_factors", True, "'penalty.factors' is missing"),
    "bounds denied": ("poisson lasso", "penalty.has_bounds", False, "is no array"),
    "an exposure of classes": ("logistic", "exposure", "e", "unknown key 'exposure'"),
    "an offset that is a number": ("poisson", "offset", 1, "must be a text"),
    "a law that is not asked": ("poisson", "law", {}, "unknown key 'law'"),
    "another estimator": ("poisson", "estimator", "glm", "has no 'law'"),
    "a classifier": ("poisson", "estimator", "logistic_regression", "has no|unknown key"),
    "another law": ("glm tweedie", "law.name", "os.system", "must be one of 'gaussian'"),
    "a law without its parameter": ("glm tweedie", "law.parameter", None, "a parameter of the family 'tweedie'"),
    "a law with another's parameter": ("glm exposed", "law.parameter", hexed(1.5), "a parameter of the family"),
    "an impossible power": ("glm tweedie", "law.parameter", hexed(2.5), "power must lie between 1 and 2"),
    "an impossible alpha": ("glm negative binomial", "law.parameter", hexed(-1.0), "does not fit together: alpha"),
    "a power that is text": ("glm tweedie", "law.parameter", "1.5", "finite float"),
    "another link": ("glm probit", "law.link", "sqrt", "link of family 'bernoulli' must be one of"),
    "a link that is code": ("glm probit", "law.link", "__import__('os')", "link of family 'bernoulli' must be"),
    "inference denied": ("glm exposed", "inference", None, "'inference.inverse' is no array"),
    "a negative sum of squares": ("glm exposed", "inference.pearson", hexed(-1.0), ">= 0"),
    "rows of an inference": ("glm exposed", "inference.n_rows", hexed(9.0), "unknown key 'n_rows'"),
    "a deviance that is not": ("glm exposed", "inference.deviance", None, "finite float"),
    "standard errors and a rank": ("glm exposed", "certificate.rank", 1, "standard errors of redundant columns"),
    "one class": ("logistic", "labels.count", 1, "must be (float64|int64) of shape|fewer than two|is missing"),
    "three classes": ("logistic", "labels.count", 3, "must be (float64|int64) of shape|labels"),
    "100,001 classes": ("softmax", "labels.count", 100_001, "from 1 to 100000"),
    "weights denied": ("logistic drawn", "class_weight", None, "'class_weight' is no array"),
    "weights announced": ("logistic", "class_weight", "given", "'class_weight' is missing"),
    "weights of another kind": ("logistic", "class_weight", "uniform", "one of 'balanced', 'given'"),
    "no epoch": ("perceptron", "n_epochs", 0, "integer >= 1"),
    "updates of their own": ("perceptron", "certificate.n_updates", 3, "unknown key 'n_updates'"),
    "another share": ("perceptron", "certificate.value", hexed(0.5), "a value that is not updates / bound"),
    "another bound": ("perceptron", "certificate.bound", hexed(1e9), "a value that is not updates / bound"),
    "no bound": ("perceptron", "certificate.bound", hexed(0.0), "a value that is not updates / bound"),
    "an unproven fault": ("perceptron", "certificate.fault", "none", "a fault and a proof"),
    "seen once": ("perceptron", "certificate.was_seen_once", True, "rows seen once, and no fault"),
    "a cycle of no length": ("perceptron", "cycle", {"first": 1, "last": 1}, "epochs of a cycle"),
    "a cycle to come": ("perceptron", "cycle", {"first": 1, "last": 10**9}, "epochs of a cycle"),
    "weights of rows": ("perceptron", "data.sum_weight", hexed(1.0), "which a perceptron does not take"),
    "an order denied": ("perceptron in order", "order", "given", "rows of an order"),
    "an order announced": ("perceptron", "order", "numbers", "0 rows of an order"),
    "an order of code": ("perceptron", "order", "__import__('os')", "must be one of"),
    "a start announced": ("perceptron", "has_start", True, "'start' is missing"),
    "a negative threshold": ("perceptron", "parameters.delta", hexed(-1.0), ">= 0"),
    "a negative seed": ("perceptron", "parameters.random_state", -1, ">= 0"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, path, value, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), path, value), reason)


NUMBERS: dict[str, tuple[str, str, Any, float, str]] = {
    "outside bounds": ("poisson lasso", "coef", (0, 2), 0.2, "a coefficient outside its bounds"),
    "bounds above 0": ("poisson lasso", "penalty.lower", 0, 0.5, "bounds without 0 between them"),
    "a negative factor": ("logistic drawn", "penalty.factors", 0, -1.0, "a penalty factor below 0"),
    "a negative weight": ("logistic drawn", "class_weight", 0, -1.0, "a class of negative weight"),
    "an infinite weight": ("logistic drawn", "class_weight", 0, np.inf, "holds NaN or infinity"),
    "an infinite intercept": ("softmax", "intercept", 0, np.inf, "holds NaN or infinity"),
    "an intercept after all": ("softmax without intercept", "intercept", 1, 0.5, "an intercept without fit_intercept"),
    "a variance of 0": ("gamma", "inference.inverse", (0, 0), 0.0, "its diagonal positive"),
    "a gap that is none": ("poisson", "history", (0, 1), np.nan, "holds NaN or infinity"),
    "an iteration before the first": ("poisson", "history.iterations", 0, -1, "iterations that do not follow"),
    "an iteration twice": ("poisson", "history.iterations", 1, 0, "iterations that do not follow"),
    "an iteration far back": ("poisson", "history.iterations", -1, -(2**63), "iterations that do not follow"),
    "negative mistakes": ("perceptron", "mistakes", 0, -1, "negative mistakes"),
    "more mistakes": ("perceptron", "mistakes", 0, 2**62, "a value that is not updates / bound"),
    "an infinite start": ("perceptron in order", "start", 0, np.inf, "holds NaN or infinity"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_illegal_numbers_under_right_digests_are_refused(case):
    name, array, place, number, reason = NUMBERS[case]
    refuse(with_number(to_bytes(fitted(name)), array, place, number), reason)


def test_multipliers_of_a_proof_are_positive():
    data = to_bytes(endless())
    refuse(with_number(data, "proof.multipliers", 0, 0.0), "multipliers that are not positive")
    refuse(edited(data, "certificate.fault", ""), "neither a fault nor a proof")


ERRORS = {key: hexed(1.0) for key in laws.INFERENCE}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("poisson", "under a penalty"),
        ("logistic drawn", "under a penalty"),
        ("glm redundant", "of redundant columns"),
    ],
)
def test_standard_errors_are_those_of_a_maximum_likelihood(name, problem):
    forged = edited(to_bytes(fitted(name)), "inference", ERRORS)
    size = fitted(name).coef_.shape[-1] + 1
    refuse(_with_inverse(forged, size), f"standard errors {problem}")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"class_weight": "balanced"}, "of weighted classes"),
        ({"bounds": (-9, 9)}, "within bounds"),
    ],
)
def test_standard_errors_of_classes_are_those_of_a_maximum_likelihood(given, problem):
    X, _, is_high = rows()
    model = cf.LogisticRegression(0.0, **given).fit(X, is_high)
    refuse(_with_inverse(edited(to_bytes(model), "inference", ERRORS), 3), f"standard errors {problem}")


def test_softmax_has_no_standard_errors():
    X = rows()[0]
    model = cf.LogisticRegression(0.0).fit(X, np.arange(30) % 3)
    refuse(_with_inverse(edited(to_bytes(model), "inference", ERRORS), 3), "standard errors of 3 classes")


def _with_inverse(data: bytes, size: int) -> bytes:
    said, arrays = container.from_bytes(data)
    return container.to_bytes(said, {**arrays, "inference.inverse": np.eye(size)})


def test_a_class_more_or_less_needs_its_row_of_weights():
    said, arrays = container.from_bytes(to_bytes(fitted("softmax without intercept")))
    for coef, intercept in (
        (arrays["coef"][:2], arrays["intercept"][:2]),
        (arrays["coef"][:1], arrays["intercept"][:1]),
    ):
        refuse(container.to_bytes(said, {**arrays, "coef": coef, "intercept": intercept}), "must be float64 of shape")
    said, arrays = container.from_bytes(to_bytes(fitted("logistic")))
    two = {**arrays, "coef": np.vstack([arrays["coef"]] * 2), "intercept": np.zeros(2)}
    refuse(container.to_bytes(said, two), "must be float64 of shape")


def test_a_file_says_nothing_twice():
    for name in ("softmax", "glm exposed", "perceptron"):
        said = metadata(to_bytes(fitted(name)))
        assert not {"names", "n_columns", "holds", "digits"} & said["certificate"].keys()
        assert (
            not {"estimate", "names", "family", "link", "n_rows", "sum_weight"} & (said.get("inference") or {}).keys()
        )
