"""Claims: scores by name are those of scikit-learn, bit for bit, and so is what they refuse."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer

import certifit as cf
from certifit.selection.folds.fold_scores import Predicted
from certifit.selection.folds.scorers import MEAN, ROOT, NamedScorer, scorer_of


@pytest.mark.parametrize("n", [2, 7, 8, 1000, 12_345])
@pytest.mark.parametrize("name", [ROOT, MEAN, "r2"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_bits_of_scikit_learn(rng, n, name, is_weighted):
    y, predicted = rng.normal(size=(2, 2 * n))[:, ::2] * 1e3
    options = {"sample_weight": rng.exponential(size=n)} if is_weighted else {}
    scorers = NamedScorer(name), get_scorer(name)
    ours, theirs = (scorer(Predicted(predicted), None, y, **options) for scorer in scorers)
    assert np.float64(ours).tobytes() == np.float64(theirs).tobytes()


@pytest.mark.parametrize(
    "y, predicted",
    [
        (np.array([1, 2, 4]), np.array([1.0, 2.5, 3.0])),
        ([1.0, 2.0, 4.0], np.array([1.0, 2.5, 3.0])),
        (np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.5, 3.0], dtype=np.float32)),
        (np.array([[1.0, 2.0], [4.0, 3.0]]), np.array([[1.0, 2.5], [3.0, 3.0]])),
    ],
)
def test_what_is_no_vector_of_float64_is_left_to_scikit_learn(y, predicted):
    assert NamedScorer(ROOT)(Predicted(predicted), None, y) == get_scorer(ROOT)(Predicted(predicted), None, y)


@pytest.mark.parametrize(
    "y, predicted", [([1.0, np.nan], [1.0, 2.0]), ([1.0, 2.0], [np.inf, 2.0]), ([1.0], [1.0, 2.0])]
)
def test_what_scikit_learn_refuses_is_refused(y, predicted):
    with pytest.raises(ValueError, match=r"Input contains|inconsistent numbers of samples"):
        NamedScorer(ROOT)(Predicted(np.array(predicted)), None, np.array(y))


def test_classes_and_other_scores_are_scikit_learns(rng):
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = LogisticRegression().fit(X, y)
    assert scorer_of(model, "neg_log_loss")(model, X, y) == get_scorer("neg_log_loss")(model, X, y)
    assert scorer_of(model, "f1_macro")(model, X, y) == get_scorer("f1_macro")(model, X, y)
    assert scorer_of(LinearRegression().fit(X, y), None)(model, X, y) == model.score(X, y)
    with pytest.raises(ValueError, match="scoring"):
        scorer_of(model, "no such score")


@pytest.mark.parametrize(
    "asked, meant", [("auc", "roc_auc"), ("rmse", ROOT), ("log-loss", "neg_log_loss"), ("acuracy", "accuracy")]
)
def test_an_unknown_score_is_refused_with_the_name_that_is_meant(rng, asked, meant):
    X, y = rng.normal(size=(30, 2)), np.repeat([0, 1], 15)
    model = cf.LogisticRegression(alpha=0.1)
    for call in (
        cf.CrossValidated(model, scoring=asked).fit,
        cf.ForwardSelection(model, scoring=asked).fit,
        partial(cf.learning_curve, model, scoring=asked),
    ):
        with pytest.raises(ValueError, match=rf"Got '{asked}'\. Did you mean .*'{meant}'.*get_scorer_names"):
            call(X, y)
    with pytest.raises(TypeError, match=r"the name of one score or a callable\. Got 3"):
        cf.CrossValidated(model, scoring=3).fit(X, y)
    assert cf.CrossValidated(model, scoring="roc_auc", cv=3).fit(X, y).best_score_ >= 0


@pytest.mark.filterwarnings("ignore:invalid value encountered in matmul:RuntimeWarning")
def test_a_row_whose_loss_is_infinite_is_not_called_a_fold_of_one_row(rng):
    """A fit that did not see the row at 1000 predicts e^1000 for it."""
    x = rng.normal(size=300)
    y = rng.poisson(np.exp(x)).astype(float)
    x[7], y[7] = 1000.0, 3.0
    with pytest.raises(ValueError, match=r"it predicts a mean of 0 or beyond float64: transform the column"):
        cf.CrossValidated(cf.GLM("poisson")).fit(x[:, None], y)
