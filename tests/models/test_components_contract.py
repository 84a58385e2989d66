"""scikit-learn's own checks of PCA, every one of them, names and frames, and the hostile battery."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import certifit as cf

MODELS = [
    cf.PCA(),
    cf.PCA(1),
    cf.PCA(0.9, standardize=True),
    cf.PCA("mle", solver="exact"),
    cf.PCA(whiten=True),
    cf.PCA(center=False, ddof=0),
    cf.PCA(1, solver="randomized"),
    cf.PCA(1, basis=cf.Polynomial(2)),
]


@parametrize_with_checks(MODELS)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_copies_transform_the_same(rng, model):
    X = rng.normal(size=(60, 4)) * [1, 2, 3, 4]
    fitted = clone(model).fit(X)
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), clone(fitted).fit(X)):
        assert np.array_equal(other.transform(X), fitted.transform(X))
        assert other.certificate_ == fitted.certificate_


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_fitted_model_holds_no_rows(rng, model):
    small, large = (clone(model).fit(rng.normal(size=(n, 3)) * [1, 2, 3]) for n in (50, 5000))
    assert len(pickle.dumps(large)) < len(pickle.dumps(small)) + 500


def test_frames_go_in_and_come_out_with_names(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"], index=np.arange(40) * 3)
    model = cf.PCA(2).set_output(transform="pandas").fit(frame)
    scores = model.transform(frame)
    assert list(scores.columns) == ["pca0", "pca1"] == list(model.get_feature_names_out())
    assert scores.index.equals(frame.index)
    assert list(model.feature_names_in_) == model.column_names_ == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[["b", "a", "c"]])


def test_components_are_a_step_of_a_pipeline(rng):
    X = rng.normal(size=(80, 5)) * [5, 4, 3, 2, 1]
    y = X @ np.ones(5)
    assert make_pipeline(cf.PCA(4), cf.LinearRegression()).fit(X, y).score(X, y) > 0.9


def test_what_needs_a_fit_says_so(rng):
    X, model = rng.normal(size=(5, 2)), cf.PCA()
    for method in ("transform", "inverse_transform", "projection_error", "certify"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)


WRONG = {
    "n_components": (0, -1, 1.5, True, "all", 9),
    "center": ("yes", None),
    "standardize": (1,),
    "whiten": ("no",),
    "solver": ("arpack",),
    "ddof": (2, -1, "one"),
    "basis": ("poly",),
    "encoder": (3,),
    "tol": (-1, "small"),
    "max_iter": (0, 1.5),
    "random_state": (-1, None),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_parameter_is_named_with_what_was_given(rng, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        cf.PCA(**{name: value}).fit(rng.normal(size=(20, 4)))


def test_a_share_needs_the_whole_spectrum(rng):
    with pytest.raises(ValueError, match=r"randomized.*number"):
        cf.PCA(0.9, solver="randomized").fit(rng.normal(size=(20, 4)))


def test_minka_needs_as_many_rows_as_columns(rng):
    with pytest.raises(ValueError, match=r"mle.*30 rows, 300 columns"):
        cf.PCA("mle").fit(rng.normal(size=(30, 300)))
