"""PCA as a transformer: names and frames, pipelines, wrong parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import certifit as cf


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
