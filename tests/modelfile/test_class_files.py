"""Claims about classifiers in a file: the same bits come back, more rows can follow, and nothing else is loaded."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from forge import edited, hexed, refuse, with_array, with_number
from samples import CLASSES, samples

import certifit as cf
from certifit.modelfile import ModelFileError, container, inspect
from certifit.modelfile.files import from_bytes, to_bytes


def fitted(name: str) -> Any:
    return copy.deepcopy(samples()[name].model)


# ---- the same model comes back


@pytest.mark.parametrize("name", CLASSES)
def test_labels_chances_and_attributes_are_the_same_bits(name, tmp_path):
    model, X, *_ = samples()[name]
    cf.save(model, tmp_path / "m.certifit")
    again = cf.load(tmp_path / "m.certifit")
    assert type(again) is type(model) and vars(again).keys() == vars(model).keys()
    assert again.classes_.dtype == model.classes_.dtype and again.classes_.tolist() == model.classes_.tolist()
    assert again.predict(X).tolist() == model.predict(X).tolist()
    for score in ("predict_log_proba", "predict_joint_log_proba"):
        assert getattr(again, score)(X).tobytes() == getattr(model, score)(X).tobytes()
    assert again.certificate_ == model.certificate_ and again.data_ == model.data_
    assert (again.objective, again.target_name_) == (model.objective, model.target_name_)
    for key, value in vars(model).items():
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and key.endswith("_"):
            assert getattr(again, key).tobytes() == value.tobytes(), key


LABELS = {
    "text": np.array(["b", "a\x1b", "é漢😀"]),
    "wider text": np.array(["b", "a", "c"], dtype="U30"),
    "objects": np.array(["", "nan", "a long label " * 99], dtype=object),
    "flags": np.array([True, False, True]),
    "small integers": np.array([-128, 0, 127], dtype=np.int8),
    "large integers": np.array([-(2**63), 0, 2**63 - 1]),
    "larger integers": np.array([0, 2**63, 2**64 - 1], dtype=np.uint64),
    "half": np.array([-2, 0, 2048], dtype=np.float16),
    "single": np.array([-2, 0, 2**24], dtype=np.float32),
    "double": np.array([-(2.0**53), -0.0, 2.0**52]),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("model", [cf.GaussianDiscriminant(), cf.BernoulliNB()])
def test_labels_of_any_type_are_kept_exactly(kind, model):
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = copy.deepcopy(model).fit(X, LABELS[kind][np.arange(12) % 3])
    again = from_bytes(to_bytes(model))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.predict(X).tolist() == model.predict(X).tolist()


NAIVE = ["gaussian naive", "gaussian naive weighted", "bernoulli", "bernoulli of two", "multinomial", "words"]


@pytest.mark.parametrize("name", [*NAIVE, "words hashed"])
def test_more_rows_after_a_load_give_the_bits_of_a_model_that_was_never_saved(name):
    model, X, y, weight = samples()[name]
    model, again = copy.deepcopy(model), from_bytes(to_bytes(model))
    rows = slice(3, 20)
    for one in (model, again):
        one.partial_fit(X[rows], y[rows], sample_weight=None if weight is None else weight[rows])
    assert to_bytes(again) == to_bytes(model)
    assert again.data_["n_rows"] == len(y) + 17


def test_a_model_of_parts_whose_rows_lie_far_apart_goes_on_from_its_file():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) + 1e3, np.arange(60) % 2
    whole = cf.GaussianNB().partial_fit(X[:10], y[:10], classes=[0, 1, 2])
    parts = from_bytes(to_bytes(whole))
    for begin in range(10, 60, 10):
        whole.partial_fit(X[begin : begin + 10], y[begin : begin + 10])
        parts = from_bytes(to_bytes(parts.partial_fit(X[begin : begin + 10], y[begin : begin + 10])))
    assert to_bytes(parts) == to_bytes(whole)
    assert parts.class_count_.tolist() == [30, 30, 0] and parts.class_prior_[2] == 0


def test_a_class_without_rows_comes_back():
    X, y = np.eye(4)[np.arange(8) % 4], np.arange(8) % 2
    for model in (cf.BernoulliNB(), cf.MultinomialNB(), cf.GaussianNB()):
        model.partial_fit(X, y, classes=["a", "b", "c"] if isinstance(y[0], str) else [0, 1, 5])
        again = from_bytes(to_bytes(model))
        assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
        assert again.predict_proba(X)[:, 2].max() == 0


def test_a_likelihood_that_was_given_a_maximum_is_stored_with_the_reason():
    X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 5.0], [2.0, 4.0], [3.0, 9.0]])
    y = [0, 0, 1, 1, 1]
    with pytest.warns(match="has no maximum. A millionth of every column's variance"):
        model = cf.GaussianDiscriminant("class").fit(X, y)
    again = from_bytes(to_bytes(model))
    assert again.certificate_ == model.certificate_ and again.certificate_.holds
    assert "no maximum without: the covariance is singular within class 0" in str(again.certificate_)
    assert cf.verify(again, X, y)
    again.covariance_[1, 0, 0] *= 1 + 1e-4
    assert not cf.verify(again, X, y)


def test_a_proof_that_cannot_be_is_stored_with_its_fault():
    """A column that is nearly, but not to rounding, a copy of another may say more about the class."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    X, y = np.column_stack([x[:, 0], x[:, 0] + 5e-15 * x[:, 1]]), np.arange(30) % 2
    with pytest.warns(match="NOT certified: Column 'x1' is left out"):
        model = cf.GaussianDiscriminant().fit(X, y)
    again = from_bytes(to_bytes(model))
    assert again.certificate_ == model.certificate_
    assert np.isinf(again.certificate_.value) and again.certificate_.fault
    result = cf.verify(again, X, y)
    assert not result and f"There is no proof on this data. {model.certificate_.fault}" in result.reasons


def test_columns_left_out_come_back_by_name():
    again = from_bytes(to_bytes(fitted("per class redundant")))
    assert again.redundant_ == (3, 4) and again.certificate_.dependent == ("x3", "x4")
    assert (again.certificate_.rank, again.certificate_.n_columns) == (3, 5)


def test_given_priors_come_back_as_an_array():
    assert from_bytes(to_bytes(fitted("per class"))).priors.tolist() == [0.2, 0.3, 0.5]
    assert from_bytes(to_bytes(fitted("multinomial"))).class_prior.tolist() == [0.0, 0.5, 0.5]
    assert from_bytes(to_bytes(fitted("shared"))).priors is None


@pytest.mark.parametrize("name", CLASSES)
def test_a_loaded_model_fits_to_the_same_bits(name):
    model, *data = samples()[name]
    assert to_bytes(from_bytes(to_bytes(model)).fit(*data)) == to_bytes(model)


# ---- verify

STATES = {
    "shared": ("means_", "priors_", "covariance_", "roots_", "coef_", "intercept_"),
    "per class": ("means_", "covariance_", "roots_"),
    "diagonal": ("means_", "covariance_", "roots_"),
    "gaussian naive": ("theta_", "var_", "class_prior_"),
    "bernoulli": ("feature_log_prob_", "class_log_prior_"),
    "multinomial": ("feature_log_prob_",),
    "words": ("feature_log_prob_", "class_log_prior_"),
}


def _counts(model: Any, attribute: str, place: int) -> bool:
    """Whether a number decides anything: not that of a column left out, or of a class of prior 0."""
    shape = getattr(model, attribute).shape
    column, label = np.unravel_index(place, shape)[-1], np.unravel_index(place, shape)[0]
    is_chance = attribute == "feature_log_prob_" and model.class_log_prior_[label] == -np.inf
    return not is_chance and (len(shape) < 2 or column not in getattr(model, "redundant_", ()))


@pytest.mark.parametrize("name", STATES)
@pytest.mark.slow
def test_verify_refuses_a_number_moved_by_a_ten_thousandth(name):
    _, *data = samples()[name]
    for attribute in STATES[name]:
        size = getattr(fitted(name), attribute).size
        for place in range(0, size, max(1, size // 20)):
            model = fitted(name)
            numbers = getattr(model, attribute).reshape(-1)
            before = numbers[place]
            numbers[place] *= 1 + 1e-4
            if before == numbers[place] or not _counts(model, attribute, place):
                continue
            result = cf.verify(model, *data)
            assert not result and "NOT verified" in str(result), (attribute, place)


@pytest.mark.parametrize("name", ["shared", "gaussian naive", "bernoulli", "multinomial"])
def test_verify_refuses_other_data(name):
    model, X, y, weight = samples()[name]
    X = np.asarray(X)
    model = copy.deepcopy(model).fit(X, y, weight)
    swapped = np.roll(y, 1)
    assert not cf.verify(model, X, swapped, weight)
    assert not cf.verify(model, np.roll(X, 1, axis=0), y, weight)
    few = cf.verify(model, X[:-1], y[:-1], None if weight is None else weight[:-1])
    assert "This is not the data the model was fitted on: 39 rows" in str(few) or weight is not None


def test_a_scan_of_labels_is_verified(tmp_path):
    _, X, y, _ = samples()["per class"]
    lines = [
        "a,b,c,kind",
        *(",".join([*map(repr, row.tolist()), f"k{label}"]) for row, label in zip(X, y, strict=True)),
    ]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    scan = cf.scan_csv(tmp_path / "d.csv", target="kind")
    for model in (cf.GaussianDiscriminant(), cf.GaussianNB(), cf.BernoulliNB()):
        cf.save(model.fit(scan), tmp_path / "m.certifit")
        assert cf.verify(tmp_path / "m.certifit", scan)
        assert cf.load(tmp_path / "m.certifit").predict(scan).tolist() == model.predict(scan).tolist()


# ---- what save refuses


@pytest.mark.parametrize(
    ("name", "attribute", "value", "reason"),
    [
        ("bernoulli", "alpha", 3.0, "chances that are not those of its counts and alpha"),
        ("bernoulli", "alpha", "1", "alpha must be a finite number"),
        ("bernoulli", "binarize", float("nan"), "must be a finite number"),
        ("multinomial", "class_prior", [0.5, 0.5, 0.0], "priors that are not those given"),
        ("multinomial", "class_prior", ["a", "b", "c"], "class_prior must be one number per class"),
        ("shared", "covariance", "class", "must be float64 of shape|is no array"),
        ("shared", "shrinkage", 2, "a number from 0 to 1"),
        ("shared", "priors", [0.5, 0.25, 0.25], "priors that are not those given"),
        ("gaussian naive", "var_smoothing", 1e-3, "an epsilon that is not the share"),
        ("gaussian naive", "theta_", np.full((3, 6), np.nan), "holds NaN or infinity"),
        ("shared", "classes_", np.array([1.5 + 2j, 2, 3]), "labels of dtype 'complex128'"),
        ("shared", "classes_", np.array(["b", "a", "c"]), "classes that are not sorted"),
        ("shared", "data_", {"n_rows": 3, "sum_weight": 4.0}, "weights do not add up"),
    ],
)
def test_a_model_changed_to_what_no_fit_leaves_is_not_written(name, attribute, value, reason):
    model = fitted(name)
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError, match=reason):
        to_bytes(model)


# ---- what load refuses

EDITS: dict[str, tuple[str, str, Any, str]] = {
    "another covariance": ("shared", "parameters.covariance", "os.system", "one of 'shared', 'class', 'diagonal'"),
    "covariance per class": ("shared", "parameters.covariance", "class", "is no array|must be float64 of shape"),
    "negative shrinkage": ("shared", "parameters.shrinkage", hexed(-0.1), "a number from 0 to 1"),
    "shrinkage is true": ("shared", "parameters.shrinkage", True, "a number from 0 to 1"),
    "what to do is code": ("shared", "parameters.singular", "__import__('os')", "one of 'raise', 'warn'"),
    "negative alpha": ("bernoulli", "parameters.alpha", hexed(-1.0), "finite number >= 0"),
    "another alpha": ("multinomial", "parameters.alpha", 1, "chances that are not those"),
    "another smoothing": ("gaussian naive", "parameters.var_smoothing", hexed(0.1), "an epsilon that is not the share"),
    "an infinite threshold": ("bernoulli", "parameters.binarize", hexed(float("inf")), "a finite number"),
    "a threshold that is text": ("bernoulli", "parameters.binarize", "0", "a finite number"),
    "equal priors asked": ("bernoulli", "parameters.fit_prior", False, "priors that are not those given"),
    "a basis of counts": ("bernoulli", "basis", None, "unknown key 'basis'"),
    "priors announced": ("shared", "has_priors", True, "'priors' is missing"),
    "priors denied": ("per class", "has_priors", False, "'priors' is no array"),
    "no classes": ("shared", "labels.count", 0, "from 1 to 100000"),
    "2**62 classes": ("shared", "labels.count", 2**62, "from 1 to 100000"),
    "99,999 classes": ("shared", "labels.count", 99_999, "must be float64 of shape"),
    "a class more": ("per class", "labels.count", 4, "must be (float64|int64) of shape"),
    "another dtype": ("per class", "labels.dtype", "float64", "'classes' must be float64"),
    "a smaller dtype": ("gaussian naive", "labels.dtype", "int8", "not numbers of dtype int8"),
    "flags": ("per class", "labels.dtype", "bool", "not numbers of dtype bool"),
    "complex labels": ("per class", "labels.dtype", "complex128", "must be one of"),
    "labels of objects": ("per class", "labels.dtype", "object", "is missing|is no array"),
    "labels of no width": ("shared", "labels.width", 0, "a width of 0"),
    "labels wider than any of them": ("shared", "labels.width", 2**20, "and 4096 at most: give the labels as objects"),
    "labels of a huge width": ("shared", "labels.width", 2**40, "give the labels as objects"),
    "a width of numbers": ("per class", "labels.width", 8, "a width of 8"),
    "no rows": ("shared", "data.n_rows", 0, "integer >= 1"),
    "other rows": ("bernoulli", "data.n_rows", 41, "rows of classes that do not add up"),
    "another weight": ("shared", "data.sum_weight", hexed(1.0), "weights do not add up"),
    "an infinite weight": ("shared", "data.sum_weight", hexed(float("inf")), "weights do not add up"),
    "negative epsilon": ("gaussian naive", "sums.epsilon", hexed(-1.0), "float >= 0"),
    "another epsilon": ("gaussian naive", "sums.epsilon", hexed(1e-3), "variances that are not those|an epsilon"),
    "a scale of 3": ("gaussian naive", "sums.weight_scale", hexed(3.0), "a power of two"),
    "an infinite scale": ("gaussian naive", "sums.weight_scale", hexed(float("inf")), "a power of two"),
    "a fault that holds": ("shared", "certificate.fault", "none", "a fault and a proof"),
    "a fault that is a list": ("shared", "certificate.fault", [], "must be a text"),
    "a negative shortfall": ("shared", "certificate.value", hexed(-1.0), ">= 0"),
    "a certificate of digits": ("shared", "certificate.has_digits", True, "unknown key 'has_digits'"),
    "sums of another kind": ("bernoulli", "sums", {}, "unknown key 'sums'"),
    "another class": ("bernoulli", "estimator", "multinomial_nb", "unknown key 'binarize'"),
    "a regression": ("bernoulli", "estimator", "ridge", "has no|unknown key"),
    "principal components": ("shared", "estimator", "pca", "has no|unknown key"),
}


@pytest.mark.parametrize("case", EDITS)
def test_illegal_content_under_right_digests_is_refused(case):
    name, path, value, reason = EDITS[case]
    refuse(edited(to_bytes(fitted(name)), path, value), reason)


NUMBERS: dict[str, tuple[str, str, Any, float, str]] = {
    "a prior moved": ("shared", "state.priors", 0, 0.9, "priors that are not those given"),
    "a given prior": ("per class", "priors", 0, 0.21, "do not add up to 1"),
    "a negative prior": ("per class", "priors", slice(0, 2), -0.25, "negative or do not add up"),
    "huge priors": ("per class", "priors", slice(0, 3), 1e308, "negative or do not add up"),
    "a negative weight": ("shared", "class_count", 0, -1.0, "a class of negative weight"),
    "weights beyond float64": ("shared", "class_count", slice(0, 3), 1e308, "whose sum is 0 or infinite"),
    "no weights": ("shared", "class_count", slice(0, 3), 0.0, "whose sum is 0 or infinite"),
    "a negative variance": ("shared", "state.covariance", (0, 0), -1.0, "a variance below 0"),
    "an asymmetric covariance": ("shared", "state.covariance", (0, 1), 9.0, "not symmetric"),
    "a covariance of 1e308": ("shared", "state.covariance", (0, 1), -1e308, "not symmetric"),
    "a root above": ("shared", "state.roots", (0, 0, 1), 1.0, "not lower triangles"),
    "no root": ("shared", "state.roots", (0, 1, 1), 0.0, "has no root"),
    "a negative root": ("per class", "state.roots", (0, 1, 1), -1.0, "has no root"),
    "a root of what is left out": ("per class redundant", "state.roots", (0, 4, 0), 1.0, "that is left out"),
    "a place below 0": ("per class redundant", "state.redundant", 0, -1, "redundant columns"),
    "a place twice": ("per class redundant", "state.redundant", 0, 4, "redundant columns"),
    "a place beyond": ("per class redundant", "state.redundant", 1, 5, "redundant columns"),
    "a place of 2**62": ("per class redundant", "state.redundant", 1, 2**62, "redundant columns"),
    "classes that come twice": ("per class", "classes", 1, -1, "not sorted"),
    "classes turned around": ("per class", "classes", 0, 9, "not sorted"),
    "a chance above 1": ("bernoulli", "state.log_p", (0, 0), 0.1, "a chance above 1"),
    "an infinite chance": ("bernoulli", "state.log_p", (0, 0), np.inf, "a chance above 1"),
    "no chance": ("bernoulli", "state.log_p", (0, 0), -np.inf, "chances that are not those"),
    "another chance": ("multinomial", "state.log_p", (1, 0), -0.5, "chances that are not those"),
    "an infinite prior": ("bernoulli", "state.log_priors", 0, np.inf, "a chance above 1"),
    "a prior of 0": ("bernoulli", "state.log_priors", 0, -np.inf, "priors that are not those given"),
    "a negative count": ("multinomial", "counts.columns", (1, 0), -1.0, "a count below 0"),
    "more rows than rows": ("bernoulli", "counts.columns", (1, 0), 1e6, "more rows with a column than rows"),
    "a class of -1 rows": ("bernoulli", "counts.rows", 0, -1, "do not add up"),
    "a class of 2**62 rows": ("bernoulli", "counts.rows", slice(0, 3), 2**62, "do not add up"),
    "a scale that is no power": ("gaussian naive", "sums.scale", 0, 0.3, "not powers of two"),
    "a negative scale": ("gaussian naive", "sums.scale", 0, -0.5, "not powers of two"),
    "another scale": ("gaussian naive", "sums.scale", 0, 2.0**-20, "not those of its sums|within rounding|epsilon"),
    "a negative scatter": ("gaussian naive", "sums.scatter", (0, 0), -1.0, "a scatter below 0"),
    "another scatter": ("gaussian naive", "sums.scatter", (0, 0), 1.0, "not those of its sums"),
    "no scatter": ("gaussian naive", "sums.scatter", (0, 0), 5e-324, "within rounding|not those of its sums"),
    "no variance": ("gaussian naive", "state.covariance", (0, 0), 0.0, "a variance below 0, or 0"),
    "a mean far away": ("gaussian naive", "state.means", (0, 0), 1e200, "within rounding|an epsilon"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_illegal_numbers_under_right_digests_are_refused(case):
    name, array, place, number, reason = NUMBERS[case]
    refuse(with_number(to_bytes(fitted(name)), array, place, number), reason)


@pytest.mark.parametrize("name", ["shared", "gaussian naive", "words"])
@pytest.mark.slow
def test_a_file_that_is_cut_and_a_flip_of_a_bit_are_refused(name):
    data = to_bytes(fitted(name))
    for size in range(0, len(data), 7):
        refuse(data[:size], ".")
    for position in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[position] ^= 1 << position % 8
        refuse(bytes(damaged), ".")


def test_an_edited_certificate_does_not_hide_a_moved_number(tmp_path):
    model, *rows = samples()["per class"]
    data = to_bytes(model)
    for path in ("certificate.value", "certificate.rounding"):
        data = edited(data, path, hexed(0.0))
    data = with_number(data, "state.means", (0, 0), model.means_[0, 0] * (1 + 1e-4))
    (tmp_path / "m.certifit").write_bytes(data)
    said = inspect(tmp_path / "m.certifit").certificate
    assert said["holds"] and said["is_verified"] is False
    assert not cf.verify(tmp_path / "m.certifit", *rows)


def test_labels_that_are_not_utf_8_or_do_not_fill_their_bytes_are_refused():
    data = to_bytes(fitted("shared"))
    refuse(with_number(data, "texts.classes", 0, 0xFF), "not valid UTF-8")
    refuse(with_number(data, "text_ends.classes", 2, 2**62), "must follow each other")
    refuse(with_number(data, "text_ends.classes", 0, -1), "must follow each other")
    refuse(with_array(data, "texts.classes", np.frombuffer(b"\x1b[31maaa\x00", np.uint8)), "NUL|must follow each other")


def test_arrays_of_another_shape_are_refused():
    data = to_bytes(fitted("shared"))
    for name, array in container.from_bytes(data)[1].items():
        if array.dtype == np.uint8 or not array.size:
            continue
        refuse(with_array(data, name, array[..., :-1]), "must be|redundant|follow each other|has no root|NUL")
        refuse(with_array(data, name, array.astype(np.int64 if array.dtype == np.float64 else np.float64)), "must be")


def test_no_warning_comes_out_of_a_forged_file():
    data = to_bytes(fitted("gaussian naive"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, array in container.from_bytes(data)[1].items():
            if array.dtype == np.float64 and name != "sums.shift":  # sums may be made about any number
                refuse(with_array(data, name, np.full_like(array, 1e308)), ".")
