"""encoder="auto" encodes the columns of a frame, for every model that takes an encoder."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import certifit as cf

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"x": RNG.normal(size=60), "city": RNG.choice(["a", "b", "c"], 60)})
FRAME.loc[3, "x"] = np.nan
Y = RNG.normal(size=60) + (FRAME["city"] == "b")
LABEL = np.where(Y > 0, "yes", "no")
MODELS = {
    "ridge": (cf.Ridge, Y),
    "logistic": (cf.LogisticRegression, LABEL),
    "tree": (cf.DecisionTreeRegressor, Y),
    "naive Bayes": (cf.GaussianNB, LABEL),
}


@pytest.mark.parametrize(("make", "y"), MODELS.values(), ids=MODELS)
def test_auto_is_the_encoder_with_its_defaults(make, y, tmp_path):
    auto, written = make(encoder="auto").fit(FRAME, y), make(encoder=cf.TableEncoder()).fit(FRAME, y)
    assert np.array_equal(auto.predict(FRAME), written.predict(FRAME))
    assert auto.get_params()["encoder"] == clone(auto).encoder == "auto"
    cf.save(auto, tmp_path / "m.certifit")
    assert np.array_equal(cf.load(tmp_path / "m.certifit").predict(FRAME), auto.predict(FRAME))


def test_it_goes_through_folds_and_comparisons():
    board = cf.leaderboard(
        {"ridge": cf.Ridge(encoder="auto"), "tree": cf.DecisionTreeRegressor(encoder="auto")}, FRAME, Y, cv=3
    )
    assert {entry.name for entry in board.entries} == {"ridge", "tree", "mean of y"}
    tuned = cf.CrossValidated(cf.Ridge(encoder="auto"), cv=3).fit(FRAME, Y)
    assert np.isfinite(tuned.predict(FRAME)).all()


def test_a_text_column_without_it_is_refused_with_the_word_to_use():
    with pytest.raises((TypeError, ValueError), match="encoder='auto'"):
        cf.Ridge().fit(FRAME.astype({"city": "category"}), Y)


def test_another_word_is_refused():
    with pytest.raises(TypeError, match="encoder must be None, 'auto' or TableEncoder"):
        cf.Ridge(encoder="onehot").fit(FRAME, Y)
