"""Claims about what files of score models and perceptrons are refused: code, contradictions, illegal numbers."""

from __future__ import annotations

import copy
import random
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from forge import edited, hexed, metadata, refuse, with_array, with_number
from fuzz import outcome, sealed
from samples import endless, few_rows, quietly, samples

import certifit as cf
from certifit.mathematics.families.links import Power
from certifit.mathematics.families.responses import Poisson
from certifit.modelfile import ModelFileError, container, inspect
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.models.glm import modelfile as glm
from tests.repetitions import some_of


def fitted(name: str) -> Any:
    return copy.deepcopy(samples()[name].model)


# ---- what save refuses


def test_a_solver_that_is_an_object_is_refused_with_the_way_out():
    X, counts, _ = few_rows()
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
    X, counts, _ = few_rows()
    model = quietly(cf.GLM(family, link, alpha=0.1, tol=1e-6).fit, 0.1 * X, counts + 1)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


CHANGES: list[tuple[str, str, Any, str]] = [
    ("logistic drawn", "class_weight", {1: 9.0}, "are not those of its fit"),
    ("logistic drawn", "class_weight", {"x": 9.0}, "class_weight names 'x'"),
    ("logistic drawn", "class_weight", None, "class_weight_ of this LogisticRegression is not what its fit left"),
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
    "an order denied": ("perceptron in order", "order", "given", "'order' is no array"),
    "an order announced": ("perceptron", "order", "numbers", "'order' is missing"),
    "an order of code": ("perceptron", "order", "__import__('os')", "must be one of"),
    "a start announced": ("perceptron", "has_start", True, "'start' is missing"),
    "a negative threshold": ("perceptron", "parameters.delta", hexed(-1.0), ">= 0"),
    "a negative seed": ("perceptron", "parameters.random_state", -1, ">= 0"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, path, value, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), path, value), reason)


def test_an_infinite_sum_of_weights_is_legal_and_warns_of_nothing():
    """Weights of 1e308 add up to infinity; without a penalty 0 times that is no number."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = from_bytes(edited(to_bytes(fitted("glm exposed")), "data.sum_weight", hexed(np.inf)))
    assert model.data_["sum_weight"] == np.inf


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


ERRORS = {key: hexed(1.0) for key in glm.INFERENCE}


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
    X, _, is_high = few_rows()
    model = cf.LogisticRegression(0.0, **given).fit(X, is_high)
    refuse(_with_inverse(edited(to_bytes(model), "inference", ERRORS), 3), f"standard errors {problem}")


def test_standard_errors_of_three_classes_have_two_scores():
    X = few_rows()[0]
    model = cf.LogisticRegression(0.0).fit(X, np.arange(30) % 3)
    assert model.inference_ is not None
    refuse(_with_inverse(to_bytes(model), 3), r"6 names need shapes \(6,\) and \(6, 6\)")
    penalised = cf.LogisticRegression(0.1).fit(X, np.arange(30) % 3)
    refuse(_with_inverse(edited(to_bytes(penalised), "inference", ERRORS), 6), "standard errors under a penalty")


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


def test_row_numbers_of_a_perceptron_reach_no_memory():
    # They are told: rows of a proof by the certificate, those of an order to the epochs, which check them.
    model, X, y, _ = samples()["perceptron in order"]
    for order in ([2**62], [len(y)] * 9, [0, 2**63 - 1]):
        forged = edited(with_array(to_bytes(model), "order", np.array(order)), "n_order", len(order))
        again = from_bytes(forged)
        assert again.predict(X).tobytes() == model.predict(X).tobytes()
        for reads in (again.fit, partial(cf.verify, again)):
            with pytest.raises(ValueError, match="order"):
                reads(X, y)
        again.partial_fit(X, y)
    data = to_bytes(endless())
    for number in (-1, 3, 2**62, -(2**63)):
        refuse(with_number(data, "proof.rows", 0, number), "row numbers that are not those of the data")
        refuse(with_number(to_bytes(model), "order", 0, min(number, -1)), "row numbers of an order that are negative")


@pytest.mark.slow
def test_damaged_files_of_models_with_faults_are_refused_or_give_a_sound_model():
    X = few_rows()[0]
    faulty = [endless(), quietly(cf.LogisticRegression(0.0).fit, X, X[:, 0] > 0)]
    originals = [to_bytes(model) for model in faulty]
    found = [
        outcome(originals, sealed(originals[i % 2], random.Random(i), originals), is_blind=False)
        for i in range(some_of(600))
    ]
    assert {"refused", "sound"} <= set(found)


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
