"""Claims about forged files: a number that follows from other numbers of a file cannot be another one."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
from forge import edited, hexed, metadata, refuse, with_array, with_number
from samples import EVERY, samples

import certifit as cf
from certifit.modelfile import ModelFileError, container
from certifit.modelfile.files import from_bytes, to_bytes
from certifit.modelfile.schema import refuse_any
from certifit.models.file_checks import are_inverse_roots, inverse_problems, is_orthonormal


def check_inverse(*given: Any) -> None:
    for problems in inverse_problems(*given):
        refuse_any(problems)


def file_of(name: str) -> bytes:
    return to_bytes(copy.deepcopy(samples()[name].model))


def array_of(data: bytes, name: str) -> Any:
    return container.from_bytes(data)[1][name].copy()


def moved(name: str, array: str, place: Any, factor: float = 1 + 1e-5) -> bytes:
    """A file with one number of an array times a factor."""
    data = file_of(name)
    return with_number(data, array, place, array_of(data, array)[place] * factor)


def scaled(name: str, path: str, factor: float) -> bytes:
    """A file with one float of its metadata times a factor."""
    data = file_of(name)
    node: Any = metadata(data)
    for key in path.split("."):
        node = node[key]
    return edited(data, path, hexed(float.fromhex(node["hex"]) * factor))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.slow
def test_a_certificate_is_held_against_the_tolerance_that_was_asked_for(name):
    refuse(edited(file_of(name), "certificate.tolerance", hexed(0.5)), "asked and 0.5 in the certificate")


def test_equal_directions_are_refused():
    data = file_of("components")
    directions = array_of(data, "state.components")
    directions[1] = directions[0]
    refuse(with_array(data, "state.components", directions), "directions that are not at right angles")


COMPONENTS = {
    "variances": (moved, ("components without centre", "state.variances", 0), "do not add up to the total"),
    "order": (moved, ("components without centre", "state.variances", 0, 0.38), "variances that are not sorted"),
    "dropped": (moved, ("components without centre", "state.dropped", 0, 0.9), "do not add up to the total"),
    "share": (scaled, ("components of few rows", "certificate.explained", 1.001), "a share of the variance"),
    "error": (scaled, ("components of few rows", "certificate.projection_error", 1.001), "a projection error"),
    "gap": (scaled, ("components of few rows", "certificate.gap", 2.0), "a gap that is not"),
    "value": (scaled, ("components", "certificate.value", 0.5), "not the worst of its parts"),
    "missed": (scaled, ("components", "certificate.residual", 1e9), "not the worst of its parts"),
    "total": (scaled, ("components by products", "total_variance", 2.0), "a share of the variance"),
}


@pytest.mark.parametrize("case", COMPONENTS)
def test_sums_and_shares_of_variances_follow_from_the_variances(case):
    change, place, reason = COMPONENTS[case]
    refuse(change(*place), reason)


def test_equal_variances_have_no_direction_of_their_own():
    X = np.vstack([np.eye(3), -np.eye(3)])
    data = to_bytes(cf.PCA(2).fit(X))
    refuse(with_number(data, "certificate.digits", 0, 9.0), "digits of a direction whose variance")


DISCRIMINANTS = [
    ("shared", "state.roots", (0, 1, 0), "roots that are not those"),
    ("shared", "state.covariance", (0, 0), "roots that are not those"),
    ("shared", "boundary.coef", (0, 1), "boundaries that are not"),
    ("shared", "boundary.intercept", 2, "boundaries that are not"),
    ("shared", "state.means", (0, 0), "boundaries that are not"),
    ("shared of two", "boundary.coef", (0, 0), "boundaries that are not"),
    ("per class", "state.roots", (1, 1, 1), "roots that are not those"),
    ("per class redundant", "state.covariance", (1, 0, 0), "roots that are not those"),
    ("diagonal", "state.roots", (0, 0, 1), "roots that are not those"),
    ("diagonal", "state.covariance", (1, 0), "roots that are not those"),
]


@pytest.mark.parametrize(("name", "array", "place", "reason"), DISCRIMINANTS)
def test_roots_and_boundaries_follow_from_covariances_means_and_priors(name, array, place, reason):
    refuse(moved(name, array, place), reason)


INFERENCE = {
    "residuals": (scaled, ("least squares", "inference.rss", 0.99), "not those of the objective"),
    "spread": (scaled, ("least squares", "inference.tss", 1.01), "not that of the target"),
    "spread about 0": (scaled, ("no intercept", "inference.tss", 1.01), "not that of the target"),
    "one side": (moved, ("least squares", "inference.inverse", (0, 1), 1.01), "not symmetric"),
    "a variance": (moved, ("least squares", "inference.inverse", (1, 1), 1.3), "not that of the rows' weights"),
    "an intercept": (moved, ("gamma", "inference.inverse", (0, 0), 1.01), "not that of the rows' weights"),
    "a small one": (moved, ("gamma", "inference.inverse", (1, 1), 1e-4), "a correlation beyond 1|not positive"),
    "information": (scaled, ("gamma", "inference.mean_information", 1.1), "not that of the rows' weights"),
    "deviance": (scaled, ("gamma", "inference.deviance", 0.99), "not that of the objective"),
    "null deviance": (scaled, ("gamma", "inference.null_deviance", 0.1), "above that of the null model"),
    "codes": (scaled, ("logistic", "data.target_sd", 0.9), "codes of classes"),
    "many codes": (scaled, ("softmax", "data.target_sd", 2.0), "codes of classes"),
    "strength": (scaled, ("ridge", "solution.alpha", 2.0), "which is not 1 / sum of weights"),
    "strength of scores": (scaled, ("logistic", "solution.alpha", 2.0), "which is not 1 / sum of weights"),
    "balance": (moved, ("softmax", "class_weight", 0, 1.01), "do not balance"),
    "margin": (scaled, ("perceptron", "certificate.margin", 2.0), "a bound that is not"),
    "radius": (scaled, ("perceptron", "certificate.radius", 0.5), "a bound that is not"),
    "no margin": (scaled, ("perceptron", "certificate.margin", 1e3), "within the radius"),
    "start": (moved, ("perceptron in order", "start", 0, 1e3), "a bound that is not"),
}


@pytest.mark.parametrize("case", INFERENCE)
def test_what_tables_and_proofs_say_follows_from_the_fit(case):
    change, place, reason = INFERENCE[case]
    refuse(change(*place), reason)


def test_a_proof_of_no_mistakes_ends_with_an_epoch_of_none():
    data = file_of("perceptron")
    mistakes = array_of(data, "mistakes")
    refuse(with_array(data, "mistakes", mistakes[::-1]), "mistakes in the last epoch")


def test_a_gaussian_pearson_sum_is_the_deviance():
    _, X, y, _ = samples()["least squares"]
    data = to_bytes(cf.GLM("gaussian").fit(X, y))
    pearson = float.fromhex(metadata(data)["inference"]["pearson"]["hex"])
    refuse(edited(data, "inference.pearson", hexed(2 * pearson)), "a Pearson sum")


def test_checks_refuse_small_contradictions_and_allow_rounding(rng):
    """Roots, orthonormal rows and inverses of any size, nearly dependent columns included."""
    for noise in (1.0, 1e-5, 1e-7):
        X = rng.normal(size=(50, 6))
        X[:, 5] = X[:, 0] + noise * X[:, 5]
        covariance = np.cov(X.T)
        roots = np.linalg.inv(np.linalg.cholesky(covariance))[None]
        used = np.ones(6, dtype=bool)
        assert are_inverse_roots(roots, covariance[None], used)
        roots[0, 3, 1] += 1e-3
        assert not are_inverse_roots(roots, covariance[None], used)
        A = np.linalg.inv(np.column_stack([np.ones(50), X]).T @ np.column_stack([np.ones(50), X]))
        check_inverse((A + A.T) / 2, 50.0, float(np.linalg.cond(X)))
    V = np.linalg.qr(rng.normal(size=(40, 8)))[0].T
    assert is_orthonormal(V, 0.0)
    assert not is_orthonormal(V + 1e-6, 0.0) and is_orthonormal(V + 1e-6, 1e-4)


def test_an_inverse_of_other_weights_is_refused(rng):
    X = np.column_stack([np.ones(30), rng.normal(size=(30, 3))])
    A = np.linalg.inv(X.T @ X)
    check_inverse(A, 30.0, 1.0)
    for wrong in (A * 1.01, A + np.eye(4, k=1) * 1e-4):
        with pytest.raises(ModelFileError, match="standard errors"):
            check_inverse(wrong, 30.0, 1.0)


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e13])
@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
@pytest.mark.slow
def test_honest_fits_far_from_1_are_saved_and_come_back(rng, offset, scale):
    X = (rng.normal(size=(20, 3)) + offset) * scale
    y, code = rng.normal(size=20) + offset, np.arange(20) % 2
    models = [
        (cf.LinearRegression(), y), (cf.Ridge(), y), (cf.GaussianNB(), code), (cf.GaussianDiscriminant(), code),
        (cf.GaussianDiscriminant("diagonal"), code), (cf.PCA(2), None), (cf.PCA(standardize=True), None),
        (cf.LogisticRegression(0.0), code),
    ]  # fmt: skip
    for model, target in models:
        with warnings.catch_warnings(action="ignore"):
            from_bytes(to_bytes(model.fit(X, target)))


def test_rows_that_do_not_vary_are_saved():
    model = cf.PCA(2).fit(np.full((10, 3), 7.0))
    assert from_bytes(to_bytes(model)).total_variance_ == 0
